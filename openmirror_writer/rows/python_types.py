"""Which Python values go into which column, and what becomes of them. Strict: whatever would lose something is refused.

| column | takes | refuses, among others |
|---|---|---|
| integers | int; whatever registers as ``numbers.Integral`` | bool, float (even 1.0), Decimal, out of range |
| ``float32``, ``float64`` | float (rounded to float32), an exact int | bool, Decimal, Fraction, overflow to infinity |
| ``decimal(p,s)`` | Decimal and int that fit exactly | bool, float, NaN, infinity, more digits |
| ``bool`` | bool, numpy's bool | int |
| ``string`` | str | bytes, lone surrogates |
| ``binary`` | bytes, bytearray, memoryview | str |
| ``date`` | date | datetime |
| ``timestamp`` | datetime with a zone, of which the instant is kept | datetime without one, date, nanoseconds |
| ``timestamp_ntz`` | datetime without a zone | datetime with one, date, nanoseconds |

Subclasses go in as what they are (``IntEnum`` as int, ``StrEnum`` as str, ``pandas.Timestamp`` as datetime).
"""

from __future__ import annotations

import math
import operator
import struct
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal, Inexact, InvalidOperation, localcontext
from fractions import Fraction
from functools import partial
from itertools import repeat
from numbers import Integral, Rational, Real
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

FAILURES = (
    pa.ArrowInvalid,
    pa.ArrowTypeError,
    pa.ArrowNotImplementedError,
    OverflowError,
    UnicodeEncodeError,
    TypeError,
    ValueError,
)
"""What pyarrow raises for a value that it cannot convert; TypeError also where a datetime lacks its zone."""

_NONE = type(None)
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - the epoch of columns without a zone
_EPOCH_UTC = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_SECOND = -62_135_596_800
"""0001-01-01 in seconds since the epoch: the first instant that Spark and Python hold."""
_END_SECOND = 253_402_300_800
"""10000-01-01, the first instant that they do not hold."""
_SINGLE = struct.Struct("<f")  # the native "f" would pack infinity without a word
_EXACT = Context(prec=4000, traps=[Inexact, InvalidOperation])
"""Wide enough for any Decimal that fits a column after its trailing zeros; longer ones are refused."""


_ZERO = Decimal(0)


class UnfitError(Exception):
    """A value does not fit; the text says why and what to hand over instead."""


@dataclass(frozen=True)
class PythonType:
    """How Python values become a column of one type.

    Attributes:
        plain: The exact types that `build` takes; it converts them without loss or raises one of `FAILURES`.
        canonical: Turns one value that is not None into one of ``plain``, or raises `UnfitError`.
        build: Values of ``plain`` to an array; a chunked one if they are too large for one array.
        safe: Whether the array holds what the values say; asked only if they did not go through ``canonical``.
    """

    plain: frozenset[type]
    canonical: Callable[[object], object]
    build: Callable[[Sequence[Any]], pa.Array[Any]]
    safe: Callable[[pa.Array[Any]], bool]


def python_type(kind: pa.DataType) -> PythonType:
    """Return how Python values become a column of a file type.

    Args:
        kind: One of the types of `openmirror_writer.schema`.
    """
    if pa.types.is_timestamp(kind):
        return _timestamp_type(kind)
    if pa.types.is_integer(kind):
        return _type(kind, {int}, partial(_integer, kind=kind))
    if pa.types.is_floating(kind):
        single = kind == pa.float32()
        return _type(kind, {float, int}, partial(_float, single=single), _has_no_infinity if single else _always)
    if pa.types.is_decimal128(kind):
        return _decimal_type(kind)
    plain, canonical = _SIMPLE[kind]
    return _type(kind, plain, canonical)


def unwrapped_bool(value: object) -> object:
    """Return a bool of numpy as bool, anything else as it is; told by its type's name, since numpy may be absent."""
    kind = type(value)
    return bool(value) if kind.__module__ == "numpy" and kind.__name__ in {"bool", "bool_"} else value


def is_real(value: object) -> bool:
    """Return whether this is a binary floating point number, numpy's ones included."""
    return isinstance(value, Real) and not isinstance(value, Rational)


def _always(_: pa.Array[Any]) -> bool:
    return True


def _type(
    kind: pa.DataType,
    plain: set[type],
    canonical: Callable[[object], object],
    safe: Callable[[pa.Array[Any]], bool] = _always,
) -> PythonType:
    return PythonType(frozenset(plain) | {_NONE}, canonical, partial(pa.array, type=kind), safe)


def _timestamp_type(kind: pa.TimestampType[Any, Any]) -> PythonType:
    aware = kind.tz is not None
    build = partial(_timestamps, kind=kind, epoch=_EPOCH_UTC if aware else _EPOCH)
    canonical = partial(_datetime, aware=aware, milliseconds=kind.unit == "ms")
    return PythonType(frozenset({datetime, _NONE}), canonical, build, _within_years if aware else _always)


def _decimal_type(kind: pa.Decimal128Type[Any, Any]) -> PythonType:
    build = partial(_decimals, kind=kind, unit=_unit(kind.scale))
    canonical = partial(_decimal, precision=kind.precision, scale=kind.scale)
    return PythonType(frozenset({Decimal, int, _NONE}), canonical, build, _always)


def _has_no_infinity(array: pa.Array[Any]) -> bool:
    return not pc.any(pc.is_inf(array)).as_py()


def _within_years(array: pa.Array[Any]) -> bool:
    """Whether all instants lie in the years 1 to 9999 of UTC: a zone can push a datetime out of them."""
    bounds: Any = pc.min_max(array.view(pa.int64()))
    low, high = bounds["min"].as_py(), bounds["max"].as_py()
    per_second = 1000 if array.type.unit == "ms" else 1_000_000
    return low is None or (_FIRST_SECOND * per_second <= low and high < _END_SECOND * per_second)


def _timestamps(values: Sequence[datetime | None], kind: pa.TimestampType[Any, Any], epoch: datetime) -> pa.Array[Any]:
    # Subtracting here takes a quarter of the time of pyarrow's own conversion, and raises where zone and no zone meet.
    since = [None if value is None else value - epoch for value in values]
    array = pa.array(since, pa.duration("us"))
    return (array if kind.unit == "us" else array.cast(pa.duration(kind.unit))).view(kind)


def _unit(scale: int) -> Decimal:
    return Decimal((0, (1,), -scale))


def _decimals(values: Sequence[Any], kind: pa.DataType, unit: Decimal) -> pa.Array[Any]:
    # pyarrow 26 turns 1E-39 into 0 in a decimal(38,0), and overflows 128 bits with 39 digits: both where digits behind
    # the point are dropped. An exact sum has as many of them as the longest value, which takes 0.3 of the time of
    # building to find out; looking at each value takes 0.7. None and zeros need no look.
    try:
        with localcontext(_EXACT):
            exponent: Any = sum(filter(None, values), _ZERO).as_tuple().exponent
        if exponent < unit.as_tuple().exponent:
            deque(map(_EXACT.quantize, filter(None, values), repeat(unit)), maxlen=0)
    except (Inexact, InvalidOperation, TypeError) as error:  # TypeError: NaN and infinity have no exponent
        msg = "digits would be lost"
        raise pa.ArrowInvalid(msg) from error
    return pa.array(values, kind)


def _refusal(value: object, wanted: str) -> UnfitError:
    return UnfitError(
        f"{type(value).__name__} is not converted in silence; hand over {wanted}, or declare another type"
    )


def _integer(value: object, kind: pa.DataType) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral):
        if is_real(value) and math.isnan(value):  # type: ignore[arg-type] # is_real says that it is a number
            raise UnfitError("NaN is not NULL; hand over None, or declare the column float64")
        raise _refusal(value, "an int")
    number = operator.index(value)
    unsigned = pa.types.is_unsigned_integer(kind)
    bits = kind.bit_width if unsigned else kind.bit_width - 1
    low, high = (0 if unsigned else -(1 << bits)), (1 << bits) - 1
    if not low <= number <= high:
        raise UnfitError(f"{kind} holds {low} to {high}; declare a wider type")
    return number


def _float(value: object, *, single: bool) -> float:
    if isinstance(value, bool) or not (isinstance(value, Integral) or is_real(value)):
        raise _refusal(value, "a float")
    try:
        number = float.__float__(value) if isinstance(value, float) else float(value)  # type: ignore[arg-type]
        rounded: float = _SINGLE.unpack(_SINGLE.pack(number))[0] if single else number
    except OverflowError as error:
        raise UnfitError("it is too large and would become infinite; declare a wider type, or decimal(p,s)") from error
    if isinstance(value, Integral) and Fraction(rounded) != operator.index(value):
        raise UnfitError("this int has no exact float; declare the column int64 or decimal(p,s)")
    # numpy's longdouble has more digits than a float.
    if not isinstance(value, Integral) and number != value and not math.isnan(number):
        raise UnfitError("this number has more digits than a float holds; hand over a float")
    return number


def _decimal(value: object, precision: int, scale: int) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, (Decimal, Integral)):
        raise _refusal(value, "a Decimal or an int")
    number = Decimal(value) if isinstance(value, Decimal) else Decimal(operator.index(value))
    if not number.is_finite():
        raise UnfitError(
            "a decimal column holds neither NaN nor infinity; hand over None, or declare the column float64"
        )
    try:
        fitted = number.quantize(_unit(scale), context=_EXACT)
    except (Inexact, InvalidOperation):
        fitted = None
    if fitted is None or (fitted and fitted.adjusted() + 1 + scale > precision):
        raise UnfitError(
            f"decimal({precision},{scale}) holds {precision - scale} digits before and {scale} behind the point, "
            "nothing is rounded; round it yourself, or declare more digits"
        )
    return fitted


def _bool(value: object) -> bool:
    plain = unwrapped_bool(value)
    if not isinstance(plain, bool):
        raise _refusal(value, "True or False")
    return plain


def _string(value: object) -> str:
    if not isinstance(value, str):
        if isinstance(value, (bytes, bytearray, memoryview)):
            raise UnfitError("bytes are not text; decode them, or declare the column binary")
        raise _refusal(value, "a str")
    text = str.__str__(value)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UnfitError(f"the character {error.start} is a lone surrogate, which UTF-8 cannot hold") from error
    return text


def _binary(value: object) -> bytes:
    if not isinstance(value, (bytes, bytearray, memoryview)):
        if isinstance(value, str):
            raise UnfitError("text is not bytes; encode it, or declare the column string")
        raise _refusal(value, "bytes")
    return bytes(value)


def _date(value: object) -> date:
    if isinstance(value, datetime):
        raise UnfitError(
            "a datetime would lose its time; hand over value.date(), or declare the column timestamp or timestamp_ntz"
        )
    if not isinstance(value, date):
        raise _refusal(value, "a datetime.date")
    return date(value.year, value.month, value.day)


def _datetime(value: object, *, aware: bool, milliseconds: bool) -> datetime:
    wanted = "a datetime with a zone" if aware else "a datetime without a zone"
    if not isinstance(value, datetime):
        raise _refusal(value, wanted)
    if value != value:  # noqa: PLR0124 - pandas' NaT is a datetime that does not equal itself
        raise UnfitError("not a time is not NULL; hand over None")
    if is_aware(value) != aware:
        declared, other = ("timestamp", "timestamp_ntz") if aware else ("timestamp_ntz", "timestamp")
        raise UnfitError(f"{declared} takes {wanted}; convert it at the source, or declare the column {other}")
    if getattr(value, "nanosecond", 0):
        raise UnfitError(
            "its nanoseconds would be cut; round it to microseconds, or declare the column int64 or string"
        )
    if milliseconds and value.microsecond % 1000:
        raise UnfitError("its microseconds would be cut; round it, or declare the column timestamp or timestamp_ntz")
    if aware and not _FIRST_SECOND <= (value - _EPOCH_UTC) // timedelta(seconds=1) < _END_SECOND:
        raise UnfitError("in UTC it is outside of the years 1 to 9999, which is all that a timestamp holds")
    if type(value) is datetime:
        return value
    # A subclass may bring an arithmetic of its own.
    parts = (value.year, value.month, value.day, value.hour, value.minute, value.second, value.microsecond)
    return datetime(*parts, tzinfo=value.tzinfo, fold=value.fold)


def is_aware(value: datetime) -> bool:
    """Return whether a datetime is an instant: it has a zone, and the zone has an offset."""
    return value.tzinfo is not None and value.utcoffset() is not None


_SIMPLE: Mapping[pa.DataType, tuple[set[type], Callable[[object], object]]] = {
    pa.bool_(): ({bool}, _bool),
    pa.string(): ({str}, _string),
    pa.binary(): ({bytes, bytearray}, _binary),
    pa.date32(): ({date}, _date),
}
