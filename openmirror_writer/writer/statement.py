"""Rows and a verb become marked batches. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from openmirror_writer.changes import ChangeBatch, RowMarker
from openmirror_writer.errors import InvalidRowError, SchemaRefusedError


def marked(rows: Iterable[pa.RecordBatch], marker: RowMarker) -> Iterator[ChangeBatch]:
    """Give every row the same marker."""
    for batch in rows:
        yield ChangeBatch(batch, _markers(marker, batch.num_rows))


def key_change(
    rows: Sequence[pa.RecordBatch],
    old_keys: Sequence[pa.RecordBatch],
    columns: pa.Schema,
    keys: Sequence[str],
    table: str,
) -> list[ChangeBatch]:
    """Make one statement that changes keys: all its deletes, then all its rows.

    A row whose key stayed is an update; one whose key changed is a delete of the old key and an upsert of the new one
    (not an insert, so that it can be published again). All deletes come first, so that keys can be swapped.

    Args:
        rows: The rows as they are now, in the table's columns.
        old_keys: Their keys as they were, row by row; the key columns only.
        columns: The table's columns.
        keys: The key columns.
        table: Label for errors.

    Raises:
        InvalidRowError: As many old keys as rows are needed, and no key may come twice among the old or the new ones.
    """
    new = pa.Table.from_batches(rows, schema=columns).combine_chunks()
    key_schema = pa.schema([columns.field(k) for k in keys])
    old = pa.Table.from_batches(old_keys, schema=key_schema).combine_chunks()
    if new.num_rows != old.num_rows:
        msg = f"update got {new.num_rows} rows and {old.num_rows} old_keys: give one old key a row, in the same order"
        raise InvalidRowError(msg, table=table, row=min(new.num_rows, old.num_rows))
    new_keys, were = _tuples(new.select(list(keys))), _tuples(old)
    _refuse_twice("the new", new_keys, keys, table)
    _refuse_twice("the old", were, keys, table)
    changed = pa.array([a != b for a, b in zip(were, new_keys, strict=True)], pa.bool_())
    deletes = _delete_rows(new.filter(changed), old.filter(changed), keys)
    markers = pc.if_else(
        changed, pa.scalar(int(RowMarker.UPSERT), pa.int32()), pa.scalar(int(RowMarker.UPDATE), pa.int32())
    )
    batches = [ChangeBatch(b, _markers(RowMarker.DELETE, b.num_rows)) for b in deletes.to_batches() if b.num_rows]
    offset = 0
    for batch in new.to_batches():
        batches.append(ChangeBatch(batch, markers.slice(offset, batch.num_rows)))
        offset += batch.num_rows
    return batches


def judged(batches: Iterable[ChangeBatch], keys: Sequence[str], table: str) -> Iterator[tuple[ChangeBatch, bool]]:
    """Tell of each batch of one call whether it holds an insert that must not be published twice, see `Resets`.

    Args:
        batches: With markers, in order.
        keys: The key columns.
        table: Label for errors.

    Raises:
        SchemaRefusedError: Another marker than 0, and no key columns.
    """
    resets = Resets(keys)
    for batch in batches:
        if batch.markers is not None and set(pc.unique(batch.markers).to_pylist()) - {int(RowMarker.INSERT)}:
            refuse_keyless("write of another marker than 0", keys, table)
        yield batch, resets.holds_exact(batch)


def refuse_keyless(verb: str, keys: Sequence[str], table: str) -> None:
    """Refuse a verb that looks rows up by their key.

    Raises:
        SchemaRefusedError: The table has no key columns.
    """
    if not keys:
        msg = f"{verb} needs key columns, and this table has none: use insert, or make the table with key_columns="
        raise SchemaRefusedError(msg, table=table)


class Resets:
    """Tells of the batches of one call whether they hold an insert that must not be published twice.

    An insert behind a delete of its key in the same call is harmless: publishing the call again deletes the key first.
    """

    def __init__(self, keys: Sequence[str]) -> None:
        """Begin a call on a table with these key columns (none: every insert counts)."""
        self._keys = list(keys)
        self._deleted: set[tuple[object, ...]] = set()

    def holds_exact(self, batch: ChangeBatch) -> bool:
        """Take the next batch of the call; tell whether it holds such an insert."""
        if batch.markers is None:
            return batch.num_rows > 0
        kinds = set(pc.unique(batch.markers).to_pylist())
        if not self._keys:
            return RowMarker.INSERT in kinds
        if kinds == {int(RowMarker.INSERT)} and not self._deleted:
            return True
        if not kinds & {int(RowMarker.INSERT), int(RowMarker.DELETE)}:
            return False
        exact = False
        keys = _tuples(pa.Table.from_batches([batch.rows]).select(self._keys))
        for marker, key in zip(batch.markers.to_pylist(), keys, strict=True):
            if marker == RowMarker.DELETE:
                self._deleted.add(key)
            elif marker == RowMarker.INSERT and key not in self._deleted:
                exact = True
        return exact


def _delete_rows(new: pa.Table, old: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Old keys in the table's columns: other columns are NULL, or the new row's value where NULL is not allowed."""
    columns = []
    for field in new.schema:
        if field.name in keys:
            columns.append(old.column(field.name))
        elif field.nullable:
            columns.append(pa.chunked_array([pa.nulls(new.num_rows, field.type)]))
        else:
            columns.append(new.column(field.name))
    return pa.Table.from_arrays(columns, schema=new.schema)


def _refuse_twice(which: str, values: Sequence[tuple[object, ...]], keys: Sequence[str], table: str) -> None:
    seen: dict[tuple[object, ...], int] = {}
    for row, key in enumerate(values):
        if key in seen:
            msg = f"{which} key of row {row} is also that of row {seen[key]}: one update call may name each key once"
            raise InvalidRowError(msg, table=table, row=row, key=dict(zip(keys, key, strict=True)))
        seen[key] = row


def _tuples(table: pa.Table) -> list[tuple[object, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def _markers(marker: RowMarker, rows: int) -> pa.Int32Array:
    return pa.repeat(pa.scalar(int(marker), pa.int32()), rows)
