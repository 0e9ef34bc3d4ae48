"""The one list of types that a column can have: what each is when declared, in Arrow, Parquet, text, Spark and Delta.

``docs/types.md`` is this list as a page, and its test checks each line of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import pyarrow as pa

MAX_PRECISION = 38
"""Decimal digits that Delta holds."""


class TextForm(StrEnum):
    """Values that have no type of their own in Delta, and stand in files as text of one form."""

    JSON = "json"
    """JSON text (RFC 8259) without white space, keys in the order of the value."""
    UUID = "uuid"
    """32 hexadecimal digits in lower case, ``8-4-4-4-12``."""
    TIME = "time"
    """``HH:MM:SS.ffffff``, so that the order of the texts is that of the times."""


@dataclass(frozen=True)
class ColumnType:
    """One type of a column.

    Attributes:
        name: As it is declared and printed.
        arrow: In memory and, by `physical` and `logical`, in files. Of ``decimal(p,s)``: the widest of the family.
        physical: Parquet's physical type.
        logical: Parquet's logical type as pyarrow prints it (without flags of old readers); ``None`` if there is none.
        text: ``DataType`` of a column in a ``SchemaDefinition``; None: the type does not stand in delimited text.
        spark: As Spark's SQL names what it reads from the file, and the type of the column in Delta.
        delta: The same type as Delta spells it in its log.
        takes: Python values that go in, in words.
        refuses: What is refused and what to do instead, in words.
        form: Which text the column holds, None for plain values.
        synonyms: Other names by which it can be declared.
    """

    name: str
    arrow: pa.DataType
    physical: str
    logical: str
    text: str | None
    spark: str
    delta: str
    takes: str
    refuses: str
    form: TextForm | None = None
    synonyms: tuple[str, ...] = ()


_NO_INTEGER = "`bool`, `float` (even 1.0), `Decimal`, `timedelta`, out of range → hand over an `int`; a wider type"
_NO_TIMESTAMP = "`date`, years outside of 1 to 9999 → convert at the source"
_NANOSECONDS = "nanoseconds that are not whole microseconds → round, or `int64`"
_MICROSECONDS = "microseconds that are not whole milliseconds → round, or declare microseconds"
_ZONE = "a `datetime` without a zone → give it its zone, or `timestamp_ntz`"
_NO_ZONE = "a `datetime` with a zone → `timestamp`"
_INSTANT = "`datetime` with a zone; the instant is kept, the zone is not"


def _integer(name: str, spark: str, delta: str, text: str | None) -> ColumnType:
    kind: pa.DataType = pa.type_for_alias(name)  # type: ignore[call-overload] # the stubs list the names one by one
    signed = str(not name.startswith("u")).lower()
    logical = "None" if name in {"int32", "int64"} else f"Int(bitWidth={kind.bit_width}, isSigned={signed})"
    physical = "INT64" if kind.bit_width == 64 else "INT32"  # noqa: PLR2004 - Parquet has these two
    refuses = _NO_INTEGER if text else f"{_NO_INTEGER}; delimited text → `int64`, `string`, Parquet"
    return ColumnType(name, kind, physical, logical, text, spark, delta, "`int` in range", refuses)


def _float(name: str, physical: str, text: str, takes: str, synonym: str) -> ColumnType:
    return ColumnType(
        name,
        pa.type_for_alias(name),  # type: ignore[call-overload] # the same
        physical,
        "None",
        text,
        synonym,
        synonym,
        takes,
        "`bool`, `Decimal`, an `int` without an exact float, a number that would become infinite → `decimal(p,s)`",
        synonyms=(synonym,),
    )


def _timestamp(name: str, kind: pa.TimestampType[Any, Any]) -> ColumnType:
    instant, unit = kind.tz is not None, {"us": "microseconds", "ms": "milliseconds"}[kind.unit]
    adjusted = str(instant).lower()
    spark = "timestamp" if instant else "timestamp_ntz"
    return ColumnType(
        name,
        kind,
        "INT64",
        f"Timestamp(isAdjustedToUTC={adjusted}, timeUnit={unit})",
        "DateTime",
        spark,
        spark,
        _INSTANT if instant else "`datetime` without a zone",
        f"{_ZONE if instant else _NO_ZONE}; {_NANOSECONDS if kind.unit == 'us' else _MICROSECONDS}; {_NO_TIMESTAMP}",
    )


def _text(form: TextForm, takes: str, refuses: str) -> ColumnType:
    return replace(_STRING, name=form.value, takes=takes, refuses=refuses, form=form)


_STRING = ColumnType(
    "string",
    pa.string(),
    "BYTE_ARRAY",
    "String",
    "String",
    "string",
    "string",
    "`str`",
    "`bytes` → decode, or `binary`; a lone surrogate; `dict`, `list` → `json`; `UUID` → `uuid`; `time` → `time`",
)
DECIMAL = ColumnType(
    "decimal(p,s)",
    pa.decimal128(MAX_PRECISION, 0),
    "FIXED_LEN_BYTE_ARRAY",
    "Decimal(precision=p, scale=s)",
    None,
    "decimal(p,s)",
    "decimal(p,s)",
    "`Decimal`, `int` that fit exactly",
    "`float`, NaN, infinity → `float64`; more digits → round, or more digits; more than 38 → `string`; "
    "delimited text → `float64`, `string`, Parquet",
)
COLUMN_TYPES: tuple[ColumnType, ...] = (
    _integer("int8", "tinyint", "byte", "Int16"),
    _integer("int16", "smallint", "short", "Int16"),
    _integer("int32", "int", "integer", "Int32"),
    _integer("int64", "bigint", "long", "Int64"),
    _integer("uint8", "smallint", "short", "Int16"),
    _integer("uint16", "int", "integer", "Int32"),
    _integer("uint32", "bigint", "long", "Int64"),
    _integer("uint64", "decimal(20,0)", "decimal(20,0)", None),
    _float("float32", "FLOAT", "Single", "`float` (rounded), an exact `int`; NaN and infinities as they are", "float"),
    _float("float64", "DOUBLE", "Double", "`float`, an exact `int`; NaN and infinities as they are", "double"),
    DECIMAL,
    ColumnType(
        "bool",
        pa.bool_(),
        "BOOLEAN",
        "None",
        "Boolean",
        "boolean",
        "boolean",
        "`bool`",
        "`int` → `bool(value)`, or `int8`",
        synonyms=("boolean",),
    ),
    _STRING,
    ColumnType(
        "binary",
        pa.binary(),
        "BYTE_ARRAY",
        "None",
        "ByteArray",
        "binary",
        "binary",
        "`bytes`, `bytearray`, `memoryview`",
        "`str` → encode, or `string`",
    ),
    ColumnType(
        "date",
        pa.date32(),
        "INT32",
        "Date",
        "IDate",
        "date",
        "date",
        "`date`",
        "`datetime` → `value.date()`, or `timestamp`, `timestamp_ntz`; years outside of 1 to 9999",
        synonyms=("date32",),
    ),
    _timestamp("timestamp", pa.timestamp("us", tz="UTC")),
    _timestamp("timestamp_ntz", pa.timestamp("us")),
    # Without a name: they stay what they are where an Arrow schema or a standing file has them.
    _timestamp("timestamp[ms, tz=UTC]", pa.timestamp("ms", tz="UTC")),
    _timestamp("timestamp[ms]", pa.timestamp("ms")),
    _text(
        TextForm.JSON,
        "`dict` with `str` keys, `list`, inside them also `str`, `int`, `float`, `bool`, `None`; `str` that is JSON "
        "text, kept as it is",
        "NaN and infinity → `None`; other values inside (`Decimal`, `datetime`, `bytes`, `tuple`) → text or numbers; "
        "a single number or `bool`, text that is no JSON → `json.dumps(value)`",
    ),
    _text(
        TextForm.UUID,
        "`UUID`; `str` of the form 8-4-4-4-12, put into lower case",
        "`bytes`, 16 bytes of Arrow → `UUID(bytes=...)` or `UUID(bytes_le=...)`, Arrow's `uuid`; other text → "
        "`UUID(text)`",
    ),
    _text(
        TextForm.TIME,
        "`time` without a zone; `str` of the form `HH:MM:SS.ffffff`",
        "a `time` with a zone → take the zone off; `timedelta` → `int64`; nanoseconds that are not whole microseconds "
        "→ round",
    ),
)
"""All of them, in the order in which they are told of."""

_PLAIN: Mapping[pa.DataType, ColumnType] = {each.arrow: each for each in COLUMN_TYPES if each.form is None}
_FORMS: Mapping[TextForm, ColumnType] = {each.form: each for each in COLUMN_TYPES if each.form is not None}


def column_type(kind: pa.DataType, form: TextForm | None = None) -> ColumnType | None:
    """Return what a type of a file is in all places; None if no column of a file has it.

    Args:
        kind: An Arrow type.
        form: Which text a string column holds; None: any.

    >>> column_type(pa.uint8()).spark, column_type(pa.decimal128(18, 2)).delta, column_type(pa.float16())
    ('smallint', 'decimal(18,2)', None)
    """
    if form is not None:
        return _FORMS[form]
    if pa.types.is_decimal128(kind):
        name = f"decimal({kind.precision},{kind.scale})"
        logical = f"Decimal(precision={kind.precision}, scale={kind.scale})"
        return replace(DECIMAL, name=name, arrow=kind, logical=logical, spark=name, delta=name)
    return _PLAIN.get(kind)


def text_type(kind: pa.DataType) -> str | None:
    """Return the ``DataType`` by which delimited text declares a column; None if text cannot hold the type.

    Args:
        kind: The Arrow type of the column.

    >>> text_type(pa.uint16()), text_type(pa.decimal128(18, 2))
    ('Int32', None)
    """
    found = column_type(kind)
    return None if found is None else found.text
