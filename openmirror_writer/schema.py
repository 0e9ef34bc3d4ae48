"""The columns of a table: how they are declared, and which are refused. Producer and consumer share this model.

A type is declared by its name (`openmirror_writer.column_types`, docs/types.md: ``int64``, ``decimal(18,2)``, ``json``)
or as an Arrow type. `` not null`` behind a name declares a column that is never NULL.

Columns of JSON, UUIDs and times of day stand in files as text. Which form a column's text has is kept in the metadata
of its Arrow field, and only there: equal columns are equal whatever their form, and a file's column is plain text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from openmirror_writer.column_types import COLUMN_TYPES, DECIMAL, MAX_PRECISION, ColumnType, TextForm, column_type
from openmirror_writer.errors import SchemaRefusedError, shorten

ROW_MARKER = "__rowMarker__"
"""The column that says what a row does: int32, the last one; `openmirror_writer.changes.RowMarker` has its values."""

_FORM = b"openmirror.form"
_EXTENSION = b"ARROW:extension:name"
_NAMED: Mapping[str, ColumnType] = {
    name: each for each in COLUMN_TYPES if each is not DECIMAL for name in (each.name.lower(), *each.synonyms)
}
_EXTENSION_FORMS: Mapping[str, TextForm] = {"arrow.json": TextForm.JSON, "arrow.uuid": TextForm.UUID}
_DECIMAL = re.compile(r"decimal\(\s*([0-9]+)\s*,\s*([0-9]+)\s*\)")

INTERNAL = "__om_"
"""Names with this beginning are the mirror's own while it applies a batch."""
_TAKEN = frozenset({ROW_MARKER.casefold(), "_metadata"})
"""Spark and Delta read a file's name and row numbers from ``_metadata``: a merge fails where a column is called so."""

Columns = Mapping[str, "str | pa.DataType"] | pa.Schema
"""How a caller declares columns, in their order; with an Arrow schema, ``nullable=False`` of a field counts."""


def declared_columns(columns: Columns) -> pa.Schema:
    """Return the declaration as an Arrow schema in the types that files carry.

    Args:
        columns: Column name to type (by its name, or an Arrow type), or an Arrow schema. Arrow's ``json`` and ``uuid``
            declare the types of these names.

    Raises:
        SchemaRefusedError: A name or type that the service, or Spark when it reads the file, would refuse; or it is
            neither a map nor a schema.

    >>> declared_columns({"id": "int64 not null", "amount": "decimal(18,2)"})
    id: int64 not null
    amount: decimal128(18, 2)
    """
    given: object = columns
    if isinstance(given, pa.Schema):
        fields = [_declared_field(field) for field in given]
    elif isinstance(given, Mapping):
        fields = [_declared(name, kind) for name, kind in given.items()]
    else:
        msg = f"columns= takes a map of name to type or a pyarrow.Schema, got {type(given).__name__}"
        raise SchemaRefusedError(msg)
    check_column_names([f.name for f in fields])
    return pa.schema(fields)


def check_column_names(names: Sequence[object]) -> None:
    """Refuse column names that cannot stand together in one table.

    Raises:
        SchemaRefusedError: No column, an empty name, ``__rowMarker__``, one that cannot be mirrored (`name_fault`) or
            that UTF-8 cannot hold, or two that differ by case at most (Delta does not tell them apart).
    """
    if not names:
        msg = "a table needs at least one column; give columns=, or a first row that has some"
        raise SchemaRefusedError(msg)
    seen: dict[str, str] = {}
    for name in names:
        if not isinstance(name, str) or not name:
            msg = f"a column name must be text that is not empty, got {shorten(name)}"
            raise SchemaRefusedError(msg, column=name if isinstance(name, str) else shorten(name))
        if name.casefold() == ROW_MARKER.casefold():
            msg = f"the column {name!r} is the writer's own; rename yours, or hand it to write() as Arrow's last column"
            raise SchemaRefusedError(msg, column=name)
        fault = name_fault(name)
        if fault is not None:
            raise SchemaRefusedError(fault, column=name)
        try:
            name.encode()
        except UnicodeEncodeError as error:
            msg = f"the column name {name!r} holds a lone surrogate, which UTF-8 cannot hold; rename it"
            raise SchemaRefusedError(msg, column=name) from error
        if name.casefold() in seen:
            msg = f"the columns {seen[name.casefold()]!r} and {name!r} differ by case at most; rename one"
            raise SchemaRefusedError(msg, column=name)
        seen[name.casefold()] = name


def name_fault(name: str) -> str | None:
    """Tell in words why no data column that is to be mirrored can have this name, in any casing; None if it can.

    >>> name_fault("metadata") is None, name_fault("_Metadata") is None
    (True, False)
    """
    folded = name.casefold()
    if folded and folded not in _TAKEN and not folded.startswith(INTERNAL):
        return None
    return (
        f"the column name {name!r} cannot be mirrored ({ROW_MARKER} marks rows, Spark keeps _metadata for itself, and "
        f"the mirror all that begins with {INTERNAL}): rename it"
    )


def check_keys(keys: Sequence[str], columns: pa.Schema | None, *, table: str) -> None:
    """Refuse key columns that are no names, that repeat, or that the table does not have.

    Args:
        keys: Key columns; none: a table that takes inserts only.
        columns: The table's columns; None while they are not known.
        table: For the error.

    Raises:
        SchemaRefusedError: As said.
    """
    odd = [key for key in keys if not _is_text(key)]
    if odd:
        msg = f"the key column {shorten(odd[0])} is no name; give the names of columns"
        raise SchemaRefusedError(msg, table=table)
    if len({k.casefold() for k in keys}) != len(keys):
        msg = f"the key columns {list(keys)} name a column twice"
        raise SchemaRefusedError(msg, table=table)
    for key in keys:
        if columns is not None and key not in columns.names:
            msg = f"the key column {key!r} is none of the table's columns {columns.names}"
            raise SchemaRefusedError(msg, table=table, column=key)


def file_type(name: str, kind: pa.DataType) -> pa.DataType:
    """Return the type in which a column of Arrow type ``kind`` stands in files.

    Representations of the same values are one type: large and view strings and Arrow's ``json`` are ``string``,
    dictionaries and run-end encoded arrays their values, float16 is float32, an instant of any zone is one of UTC,
    seconds and nanoseconds are microseconds. Whether each value fits is not looked at here.

    Args:
        name: The column, for the error.
        kind: What the caller has.

    Raises:
        SchemaRefusedError: The service or Spark cannot read the type, or a guess would be needed; with the way out.
    """
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return file_type(name, kind.value_type)
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind) or extension_name(kind) == "arrow.json":
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind) or pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_date64(kind):
        return pa.date32()
    if pa.types.is_float16(kind):
        return pa.float32()
    if pa.types.is_timestamp(kind):
        return pa.timestamp("ms" if kind.unit == "ms" else "us", tz="UTC" if kind.tz else None)
    if pa.types.is_decimal(kind):
        return _decimal(name, kind.precision, kind.scale)
    if column_type(kind) is not None:
        return kind
    msg = f"the column {name!r} has type {kind}, which cannot be mirrored: {_way_out(kind)}"
    raise SchemaRefusedError(msg, column=name, type=str(kind))


def landed_type(name: str, kind: pa.DataType) -> pa.DataType:
    """Return the type of a column that was found in a Parquet file, as `file_type` names it.

    Args:
        name: The column, for the error.
        kind: Its Arrow type, as pyarrow reads it from the file.

    Raises:
        SchemaRefusedError: As `file_type`; or Spark cannot read the type, though a writer could convert it.
    """
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        msg = f"the column {name!r} holds timestamps in nanoseconds, which Spark cannot read: publish microseconds"
        raise SchemaRefusedError(msg, column=name, type=str(kind))
    if pa.types.is_float16(kind):
        msg = f"the column {name!r} holds 16-bit floats, which Spark cannot read: publish float32"
        raise SchemaRefusedError(msg, column=name, type=str(kind))
    return file_type(name, kind)


def refuse_unknown_extension(field: pa.Field[Any]) -> None:
    """Refuse a column of an extension type that is known by its name only: storage may mean anything.

    Raises:
        SchemaRefusedError: The field has such a type, with the way out.
    """
    name = (field.metadata or {}).get(_EXTENSION)
    if name is not None:
        extension = name.decode(errors="replace")
        msg = f"the column {field.name!r} has the extension type {extension}: {_EXTENSION_WAY_OUT}"
        raise SchemaRefusedError(msg, column=field.name, type=extension)


def extension_name(kind: pa.DataType) -> str | None:
    """Return the name of an extension type, None for any other type.

    >>> extension_name(pa.uuid()), extension_name(pa.string())
    ('arrow.uuid', None)
    """
    return kind.extension_name if isinstance(kind, pa.BaseExtensionType) else None


def type_text(kind: pa.DataType) -> str:
    """Return how a file type is declared, the inverse of `declared_columns` for one type; Arrow's name if it has none.

    >>> type_text(pa.timestamp("us")), type_text(pa.decimal128(18, 2))
    ('timestamp_ntz', 'decimal(18,2)')
    """
    found = column_type(kind)
    return str(kind) if found is None else found.name


def declared_type(field: pa.Field[Any]) -> str:
    """Return how the type of a column is declared, ``json``, ``uuid`` and ``time`` included; without ``not null``.

    >>> declared_type(declared_columns({"tags": "json"}).field("tags"))
    'json'
    """
    form = text_form(field)
    return type_text(field.type) if form is None else form.value


def text_form(field: pa.Field[Any]) -> TextForm | None:
    """Return which text a column of declared columns holds; None: plain values of its type."""
    form = (field.metadata or {}).get(_FORM)
    return None if form is None else TextForm(form.decode())


def _is_text(name: object) -> bool:
    return isinstance(name, str)


def _declared(name: str, kind: object) -> pa.Field[Any]:
    if isinstance(kind, pa.DataType):
        return _declared_field(pa.field(name, kind))
    if not isinstance(kind, str):
        msg = f"the column {name!r} is declared as {shorten(kind)}; use a type name such as 'int64' or an Arrow type"
        raise SchemaRefusedError(msg, column=name)
    text = " ".join(kind.lower().split())
    nullable = not text.endswith(" not null")
    text = text.removesuffix(" not null")
    if match := _DECIMAL.fullmatch(text):
        return pa.field(name, _decimal(name, int(match[1]), int(match[2])), nullable=nullable)
    if text not in _NAMED:
        msg = f"the column {name!r} is declared as {kind!r}; known: decimal(p,s), {', '.join(_NAMED)}"
        raise SchemaRefusedError(msg, column=name, type=kind)
    return _field(name, _NAMED[text].arrow, _NAMED[text].form, nullable=nullable)


def _declared_field(field: pa.Field[Any]) -> pa.Field[Any]:
    refuse_unknown_extension(field)
    form = _EXTENSION_FORMS.get(extension_name(field.type) or "")
    if form is None and pa.types.is_string(field.type):
        form = text_form(field)  # of columns that were declared before
    kind = file_type(field.name, field.type) if form is None else pa.string()
    return _field(field.name, kind, form, nullable=field.nullable)


def _field(name: str, kind: pa.DataType, form: TextForm | None, *, nullable: bool) -> pa.Field[Any]:
    metadata = None if form is None else {_FORM: form.value.encode()}
    return pa.field(name, kind, nullable=nullable, metadata=metadata)


def _decimal(name: str, precision: int, scale: int) -> pa.DataType:
    if not 1 <= precision <= MAX_PRECISION or not 0 <= scale <= precision:
        kind = f"decimal({precision},{scale})"
        msg = (
            f"the column {name!r} is {kind}; Delta holds 1 to {MAX_PRECISION} digits, 0 to all of them decimal: "
            "declare digits that fit, or string and hand over text"
        )
        raise SchemaRefusedError(msg, column=name, type=kind)
    return pa.decimal128(precision, scale)


_EXTENSION_WAY_OUT = "hand over its storage, cast to a plain type"


def _way_out(kind: pa.DataType) -> str:
    if pa.types.is_null(kind):
        return "nothing tells its type; declare it with columns="
    if pa.types.is_nested(kind):
        return "declare it as 'json' with columns=, to write it as JSON text"
    if pa.types.is_time(kind):
        return "Delta has no time of day; declare it as 'time' with columns=, to write it as text HH:MM:SS.ffffff"
    if pa.types.is_duration(kind):
        return "hand it over as a number in an int64 column"
    if extension_name(kind) == "arrow.uuid":
        return "declare it as 'uuid' with columns=, to write it as text"
    if extension_name(kind) is not None:
        return _EXTENSION_WAY_OUT
    return "hand it over as text in a string column"
