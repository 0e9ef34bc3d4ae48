"""Dict rows: their shape, their keys, NULLs, and the place of a fault in the whole call."""

import random
import sqlite3
from collections import OrderedDict, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openmirror_writer.errors import InvalidRowError
from openmirror_writer.rows import CHUNK_ROWS, Needs, encode, encode_keys
from openmirror_writer.schema import declared_columns

COLUMNS = declared_columns({"id": "int64", "region": "string", "amount": "decimal(9,2)", "note": "string"})
UPSERT = Needs(COLUMNS, ("id", "region"), frozenset(COLUMNS.names), "sales.orders")
DELETE = Needs(COLUMNS, ("id", "region"), frozenset({"id", "region"}), "sales.orders")


def row(number: int, **changes: Any) -> dict[str, Any]:
    return {"id": number, "region": "eu", "amount": Decimal(number % 1000), "note": None} | changes


def encoded(rows: object, needs: Needs = UPSERT) -> list[dict[str, Any]]:
    return [line for batch in encode(rows, needs) for line in batch.to_pylist()]


def refusal(rows: object, needs: Needs = UPSERT) -> InvalidRowError:
    with pytest.raises(InvalidRowError) as caught:
        encoded(rows, needs)
    assert caught.value.table == "sales.orders"
    return caught.value


def test_batches_have_the_tables_columns_and_at_most_a_chunk_of_rows() -> None:
    batches = list(encode((row(n) for n in range(2 * CHUNK_ROWS + 5)), UPSERT))
    assert [batch.num_rows for batch in batches] == [CHUNK_ROWS, CHUNK_ROWS, 5]
    assert all(batch.schema == COLUMNS for batch in batches)
    assert batches[2].column("id").to_pylist() == [2 * CHUNK_ROWS + n for n in range(5)]


@pytest.mark.parametrize("count", [1, 255, 256, 257, CHUNK_ROWS - 1, CHUNK_ROWS, CHUNK_ROWS + 1])
def test_every_row_arrives_once_and_in_order(count: int) -> None:
    assert encoded(row(n) for n in range(count)) == [row(n) for n in range(count)]


def test_no_rows_are_no_batches() -> None:
    assert list(encode([], UPSERT)) == []
    assert list(encode(iter(()), DELETE)) == []


def test_rows_are_read_lazily() -> None:
    read = 0

    def source() -> Iterator[dict[str, Any]]:
        nonlocal read
        for read in range(1, 10 * CHUNK_ROWS):
            yield row(read)

    next(encode(source(), UPSERT))
    assert read <= CHUNK_ROWS


def test_the_order_of_names_in_a_row_is_free() -> None:
    assert encoded([row(1), dict(reversed(row(2).items()))]) == [row(1), row(2)]


def test_a_table_of_one_column_works() -> None:
    needs = Needs(declared_columns({"id": "int64"}), ("id",), frozenset({"id"}), "t")
    assert encoded([{"id": 1}, {"id": 2}], needs) == [{"id": 1}, {"id": 2}]


class Readings(Mapping[str, Any]):
    """A mapping that is no dict."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.values_by_name = values

    def __getitem__(self, name: str) -> Any:
        return self.values_by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values_by_name)

    def __len__(self) -> int:
        return len(self.values_by_name)


@pytest.mark.parametrize("make", [OrderedDict, MappingProxyType, Readings, lambda values: defaultdict(str, values)])
@pytest.mark.parametrize("needs", [UPSERT, DELETE], ids=["upsert", "delete"])
def test_any_mapping_is_a_row(make: Any, needs: Needs) -> None:
    assert encoded([row(1), make(row(2))], needs) == [row(1), row(2)]


def test_a_defaultdict_does_not_make_up_a_missing_column() -> None:
    lacking = defaultdict(lambda: None, {"id": 1, "region": "eu", "amount": Decimal(1)})
    assert refusal([lacking]).column == "note"
    lacking["colour"] = "red"  # now the number of columns fits
    assert refusal([lacking]).column == "colour"


def test_a_missing_column_is_named_with_its_row_and_key() -> None:
    lacking = row(7)
    del lacking["amount"]
    error = refusal([*(row(n) for n in range(300)), lacking])
    assert (error.row, error.column, error.key) == (300, "amount", {"id": 7, "region": "eu"})
    assert "id, region, amount, note" in error.message


@pytest.mark.parametrize("needs", [UPSERT, DELETE], ids=["upsert", "delete"])
def test_an_unknown_column_is_named_with_the_known_ones(needs: Needs) -> None:
    error = refusal([row(0), row(1, colour="red")], needs)
    assert (error.row, error.column, error.key) == (1, "colour", {"id": 1, "region": "eu"})
    assert "id, region, amount, note" in error.message


def test_an_unknown_column_in_place_of_another_is_found() -> None:
    """The number of columns fits."""
    swapped = row(1, colour="red")
    del swapped["note"]
    assert refusal([row(0), swapped]).column == "colour"


def test_a_name_that_is_no_text_is_refused() -> None:
    assert "must be text" in refusal([{**row(1), 5: "x"}]).message


@pytest.mark.parametrize("needs", [UPSERT, DELETE], ids=["upsert", "delete"])
def test_a_row_marker_among_the_columns_points_to_the_verbs(needs: Needs) -> None:
    error = refusal([row(1, __rowMarker__=4)], needs)
    assert error.column == "__rowMarker__"
    assert "write()" in error.message


@pytest.mark.parametrize("key", ["id", "region"])
@pytest.mark.parametrize("needs", [UPSERT, DELETE], ids=["upsert", "delete"])
def test_a_null_key_is_refused(key: str, needs: Needs) -> None:
    rows = [row(n) for n in range(CHUNK_ROWS + 10)]
    rows[CHUNK_ROWS + 3][key] = None
    error = refusal(rows, needs)
    assert (error.row, error.column) == (CHUNK_ROWS + 3, key)
    assert error.key == {"id": CHUNK_ROWS + 3, "region": "eu"} | {key: None}
    assert "NULL" in error.message


def test_null_in_a_column_declared_not_null_is_refused() -> None:
    columns = declared_columns({"id": "int64", "name": "string not null"})
    needs = Needs(columns, ("id",), frozenset(columns.names), "sales.orders")
    assert encoded([{"id": 1, "name": "x"}], needs) == [{"id": 1, "name": "x"}]
    error = refusal([{"id": 1, "name": "x"}, {"id": 2, "name": None}], needs)
    assert (error.row, error.column, error.key) == (1, "name", {"id": 2})
    assert "not null" in error.message


def test_a_delete_needs_its_keys_only_and_its_rows_may_differ() -> None:
    key = {"id": 1, "region": "eu"}
    absent = {"amount": None, "note": None}
    rows = [key, key | {"note": "x"}, key | {"amount": Decimal(1)}, row(4)]
    assert encoded(rows, DELETE) == [key | absent, key | absent | {"note": "x"}, key | absent | {"amount": 1}, row(4)]
    assert encoded([key], DELETE) == [key | absent]
    error = refusal([key, {"id": 2}], DELETE)
    assert (error.row, error.column, error.key) == (1, "region", {"id": 2})


def test_old_keys_are_the_key_columns_and_nothing_else() -> None:
    [batch] = encode_keys([{"region": "eu", "id": 1}], UPSERT)
    assert batch.schema == pa.schema([COLUMNS.field("id"), COLUMNS.field("region")])
    assert batch.to_pylist() == [{"id": 1, "region": "eu"}]
    with pytest.raises(InvalidRowError, match="the columns here are id, region") as caught:
        list(encode_keys([{"id": 1, "region": "eu", "note": None}], UPSERT))
    assert caught.value.column == "note"
    with pytest.raises(InvalidRowError, match="missing"):
        list(encode_keys([{"id": 1}], UPSERT))
    with pytest.raises(InvalidRowError, match="NULL"):
        list(encode_keys([{"id": 1, "region": None}], UPSERT))


def a_row_of_sqlite() -> sqlite3.Row:
    connection = sqlite3.connect(":memory:")
    connection.row_factory = sqlite3.Row
    found: sqlite3.Row = connection.execute("select 1 as id, 'eu' as region").fetchone()
    connection.close()
    return found


@pytest.mark.parametrize(
    ("value", "way_out"),
    [
        (a_row_of_sqlite(), "dict(row)"),
        ((1, "eu"), "dict(zip(names, row))"),
        (None, "dict"),
        ("id", "dict"),
        (pa.record_batch({"id": [1]}), "pyarrow.Table"),
    ],
    ids=["sqlite3.Row", "tuple", "None", "text", "record batch"],
)
@pytest.mark.parametrize("needs", [UPSERT, DELETE], ids=["upsert", "delete"])
def test_a_row_that_is_no_mapping_is_refused(value: Any, way_out: str, needs: Needs) -> None:
    error = refusal([row(0), value], needs)
    assert error.row == 1
    assert way_out in error.message


class Lazy:
    """A query that was not run, such as a LazyFrame."""

    def collect(self) -> None: ...


@pytest.mark.parametrize(
    ("rows", "way_out"),
    [
        (None, "rows is None"),
        ({"id": 1}, "wrap it in a list"),
        (OrderedDict(), "wrap it in a list"),
        ("[]", "parse it first"),
        (b"[]", "parse it first"),
        (5, "iterable"),
        (dict, "iterable"),
        (Lazy(), "collect()"),
    ],
)
def test_what_is_no_rows_at_all_is_refused_before_anything_is_read(rows: object, way_out: str) -> None:
    with pytest.raises(InvalidRowError) as caught:
        encode(rows, UPSERT)
    assert way_out in caught.value.message
    assert caught.value.table == "sales.orders"


@pytest.mark.parametrize("mistake", [KeyError("note"), ValueError("theirs"), InvalidRowError("theirs")])
@pytest.mark.parametrize("needs", [UPSERT, DELETE], ids=["upsert", "delete"])
def test_an_error_of_the_source_passes_through(mistake: Exception, needs: Needs) -> None:
    def source() -> Iterator[dict[str, Any]]:
        yield row(1)
        raise mistake

    with pytest.raises(type(mistake)) as caught:
        encoded(source(), needs)
    assert caught.value is mistake


def test_an_int_of_thousands_of_digits_can_be_named() -> None:
    """Python refuses to print it."""
    assert "column=id" in str(refusal([row(1, id=10**5000)])).replace("'", "")


KINDS: dict[str, tuple[Any, Any]] = {
    "int64": (5, 1.5),
    "int8": (5, 200),
    "float32": (0.5, 1e300),
    "float64": (0.5, True),
    "decimal(9,2)": (Decimal("1.25"), Decimal("1.001")),
    "bool": (False, 0),
    "string": ("x", "\udcff"),
    "binary": (b"x", "x"),
    "date": (date(2024, 1, 1), datetime(2024, 1, 1)),  # noqa: DTZ001
    "timestamp": (datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 1, 1)),  # noqa: DTZ001
    "timestamp_ntz": (datetime(2024, 1, 1), datetime(2024, 1, 1, tzinfo=UTC)),  # noqa: DTZ001
}


@settings(max_examples=30)
@given(data=st.data(), seed=st.integers(0, 2**32))
def test_a_bad_cell_anywhere_is_found(data: st.DataObject, seed: int) -> None:
    """In any column, at any row of up to three chunks, among good values and NULLs."""
    columns = declared_columns({"id": "int64", **{f"c {kind}": kind for kind in KINDS}})
    needs = Needs(columns, ("id",), frozenset(columns.names), "t")
    count = data.draw(st.sampled_from([1, 300, CHUNK_ROWS, CHUNK_ROWS + 1, 2 * CHUNK_ROWS + 100]))
    edges = [0, 255, 256, CHUNK_ROWS - 1, CHUNK_ROWS, 2 * CHUNK_ROWS, count - 1]
    at = data.draw(st.sampled_from([edge for edge in edges if edge < count]) | st.integers(0, count - 1))
    kind = data.draw(st.sampled_from(list(KINDS)))
    chance = random.Random(seed)
    good = {f"c {name}": value for name, (value, _) in KINDS.items()}
    sparse = {name: value if chance.random() > 0.5 else None for name, value in good.items()}
    rows = [{"id": n, **(good if chance.random() > 0.5 else sparse)} for n in range(count)]
    rows[at][f"c {kind}"] = KINDS[kind][1]
    batches = encode(rows, needs)
    for _ in range(at // CHUNK_ROWS):
        assert next(batches).num_rows == CHUNK_ROWS
    with pytest.raises(InvalidRowError) as caught:
        next(batches)
    error = caught.value
    assert (error.row, error.column, error.value, error.type) == (at, f"c {kind}", KINDS[kind][1], kind)
    assert error.key == {"id": at}


def test_a_chunk_whose_text_exceeds_one_array_becomes_several_batches() -> None:
    """An array holds 2 GiB; here the limit is two rows."""

    def chunked_above_two(values: Any) -> Any:
        array = pa.array(values, pa.string())
        return array if len(values) <= 2 else pa.chunked_array([array])

    needs = Needs(COLUMNS, ("id", "region"), frozenset(COLUMNS.names), "t")
    small = replace(needs.python_types[3], build=chunked_above_two)
    needs.__dict__["python_types"] = (*needs.python_types[:3], small)
    batches = list(encode([row(n, note="x") for n in range(7)], needs))
    assert [line["id"] for batch in batches for line in batch.to_pylist()] == list(range(7))
    assert max(batch.num_rows for batch in batches) == 2
    with pytest.raises(InvalidRowError) as caught:
        list(encode([row(0), row(1), row(2), row(3, id=None)], needs))
    assert caught.value.row == 3
