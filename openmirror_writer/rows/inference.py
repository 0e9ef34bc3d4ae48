"""Column types from Python values. Whatever would be a guess is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from numbers import Integral
from typing import Any

import pyarrow as pa

from openmirror_writer.column_types import TextForm
from openmirror_writer.errors import SchemaRefusedError
from openmirror_writer.rows.python_types import is_aware, is_real, unwrapped_bool

_INT64 = range(-(2**63), 2**63)


def infer_type(name: str, values: Sequence[Any], table: str) -> pa.DataType:
    """Return the type of a column.

    ``int`` becomes int64, ``float`` or both float64, ``str`` string, ``bool`` bool, ``bytes`` binary, ``date`` date32,
    ``datetime`` with a zone an instant in UTC.

    Args:
        name: The column, for the error.
        values: Its first values; None tells nothing.
        table: For the error.

    Raises:
        SchemaRefusedError: All are None, or the type would be a guess; with the way out.
    """
    kinds = {_kind(value) for value in values if value is not None}
    if kinds == {"int"} and not all(value is None or int(value) in _INT64 for value in values):
        kinds = {"int outside of 64 bits"}
    found = _TYPES.get(frozenset(kinds))
    if found is None:
        raise SchemaRefusedError(f"the column {name!r} {_reason(kinds)}", table=table, column=name)
    return found


def _kind(value: object) -> str:
    value = unwrapped_bool(value)
    for kind, name in _KINDS:
        if isinstance(value, kind):
            return name
    if isinstance(value, datetime):
        return "datetime with a zone" if value == value and is_aware(value) else "datetime without a zone"  # noqa: PLR0124 - pandas' NaT
    if isinstance(value, date):
        return "date"
    return "float" if is_real(value) else type(value).__name__


def _reason(kinds: set[str]) -> str:
    declare = "declare it with columns="
    if not kinds:
        return f"is None in all of the first rows, which tells no type; {declare}"
    if kinds == {"Decimal"}:
        return f"holds decimals, whose digits would be a guess; {declare}, such as 'decimal(18,2)'"
    if kinds == {"datetime without a zone"}:
        return f"holds datetimes without a zone; {declare} as 'timestamp_ntz', or give them their zone"
    if kinds == {"int outside of 64 bits"}:
        return f"holds ints outside of 64 bits; {declare} as 'decimal(38,0)', 'uint64' or 'string'"
    if len(kinds) > 1:
        return f"mixes {', '.join(sorted(kinds))}; hand over one kind, or {declare}"
    kind = kinds.pop()
    if kind in _STORED_AS_TEXT:
        return f"holds values of type {kind}, which Delta has no type for; {declare} as '{_STORED_AS_TEXT[kind]}'"
    if kind == "timedelta":
        return f"holds durations, which Delta has no type for; {declare} as 'int64', and hand over a number"
    return f"holds values of type {kind}, for which there is no column type; hand over text"


_STORED_AS_TEXT: Mapping[str, TextForm] = {
    "dict": TextForm.JSON,
    "list": TextForm.JSON,
    "UUID": TextForm.UUID,
    "time": TextForm.TIME,
}
_KINDS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (bool, "bool"),
    (Integral, "int"),
    (float, "float"),
    (str, "str"),
    ((bytes, bytearray, memoryview), "bytes"),
    (Decimal, "Decimal"),
)
_TYPES: Mapping[frozenset[str], pa.DataType] = {
    frozenset({"bool"}): pa.bool_(),
    frozenset({"int"}): pa.int64(),
    frozenset({"float"}): pa.float64(),
    frozenset({"int", "float"}): pa.float64(),
    frozenset({"str"}): pa.string(),
    frozenset({"bytes"}): pa.binary(),
    frozenset({"date"}): pa.date32(),
    frozenset({"datetime with a zone"}): pa.timestamp("us", tz="UTC"),
}
