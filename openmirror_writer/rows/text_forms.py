"""JSON, UUIDs and times of day as text: what becomes it, from Python values and from Arrow, and which text is it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import time
from functools import partial
from typing import Any, NoReturn
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from openmirror_writer.column_types import TextForm
from openmirror_writer.rows.python_types import PythonType, UnfitError
from openmirror_writer.schema import extension_name

_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_UUID_WRITTEN = "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"
_TIME = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]\.[0-9]{6}")
_DAY = 86_400_000_000
"""Microseconds."""
# Not orjson or pydantic_core: they write NaN as null, bytes as text and Decimals as text, without a word.
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_JSON_INSIDE = "dicts with text keys, lists, and in them str, int, float, bool and None"


def form_type(form: TextForm) -> PythonType:
    """Return how Python values become a column of text of one form.

    Args:
        form: Which text.
    """
    found = _FORMS[form]
    build = partial(pa.array, type=pa.string())
    return PythonType(frozenset({str, type(None)}), found.text_of, build, partial(_is_written, found))


def texts_from(source: pa.DataType, form: TextForm) -> Callable[[pa.Array[Any]], pa.Array[Any]] | None:
    """Return how arrays of values become arrays of text, None where they do not without loss.

    Text itself is not meant; see `checked_texts`.

    Args:
        source: The type of the values.
        form: Which text.
    """
    return _FORMS[form].texts_from(source)


def checked_texts(array: pa.Array[Any], form: TextForm) -> pa.Array[Any]:
    """Return text of a column as it is written: JSON as it is, the digits of UUIDs in lower case.

    Args:
        array: Strings.
        form: Which text they should be.

    Raises:
        pa.ArrowInvalid: One is something else.
    """
    found = _FORMS[form]
    return array if _is_written(found, array) else _each(array.to_pylist(), found.text_of)


@dataclass(frozen=True)
class _Form:
    """One form of text.

    Attributes:
        text_of: One value to its text, or `UnfitError`; text is checked.
        is_written: Whether each text of an array is as the form is written.
        texts_from: See the function of this name.
    """

    text_of: Callable[[object], str]
    is_written: Callable[[pa.Array[Any]], bool]
    texts_from: Callable[[pa.DataType], Callable[[pa.Array[Any]], pa.Array[Any]] | None]


def _is_written(form: _Form, array: pa.Array[Any]) -> bool:
    return form.is_written(array)


def _each(values: Sequence[object], text_of: Callable[[Any], str]) -> pa.Array[Any]:
    try:
        return pa.array([None if value is None else text_of(value) for value in values], pa.string())
    except UnfitError as error:
        raise pa.ArrowInvalid(str(error)) from error


# ---------------------------------------------------------------------------------------------------------------- JSON


def _json(value: object) -> str:
    if isinstance(value, str):
        return _checked_json(str.__str__(value))
    if not isinstance(value, (dict, list)):
        raise UnfitError(
            f"{type(value).__name__} is not converted in silence; a json column takes {_JSON_INSIDE}, or text that is "
            "JSON already: json.dumps(value)"
        )
    try:
        text = _ENCODER.encode(value)
        # The encoder turns keys into text and tuples into lists; what reads back as it was is what it was.
        is_same = json.loads(text) == value
        text.encode()
    except (TypeError, ValueError, RecursionError) as error:  # ValueError: NaN, circles, lone surrogates
        raise UnfitError(f"it does not become JSON ({error}); hand over {_JSON_INSIDE}") from error
    if not is_same:
        raise UnfitError(f"as JSON it reads back as another value; hand over {_JSON_INSIDE}")
    return text


def _checked_json(text: str) -> str:
    try:
        # Numbers stay text: JSON sets no bounds to them, Python does.
        json.loads(text, parse_int=str, parse_float=str, parse_constant=_refuse_constant)
        text.encode()
    except (ValueError, RecursionError) as error:
        raise UnfitError(
            f"a str in a json column is JSON text, and this is none ({error}); hand over json.dumps(value), or declare "
            "the column string"
        ) from error
    return text


def _refuse_constant(name: str) -> NoReturn:
    msg = f"{name} is not JSON"
    raise ValueError(msg)


def _is_json(array: pa.Array[Any]) -> bool:
    try:
        for text in array.to_pylist():
            if text is not None:
                _checked_json(text)
    except UnfitError:
        return False
    return True


def _json_from(source: pa.DataType) -> Callable[[pa.Array[Any]], pa.Array[Any]] | None:
    return _nested_to_json if pa.types.is_nested(source) and _is_json_inside(source) else None


def _is_json_inside(kind: Any) -> bool:  # noqa: ANN401 - the stubs do not tell the nested types apart
    """Whether all values of a type have one JSON value that says the same."""
    if pa.types.is_map(kind):
        return _is_text(kind.key_type) and _is_json_inside(kind.item_type)
    if pa.types.is_struct(kind):
        fields = list(kind.fields)
        is_clear = len({field.name for field in fields}) == len(fields)
        return is_clear and all(_is_json_inside(field.type) for field in fields)
    if pa.types.is_union(kind):
        return False
    if pa.types.is_nested(kind) or pa.types.is_dictionary(kind):
        return _is_json_inside(kind.value_type)  # type: ignore[union-attr] # those without are answered above
    return (
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_null(kind)
        or _is_text(kind)
    )


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


def _nested_to_json(array: pa.Array[Any]) -> pa.Array[Any]:
    array.validate(full=True)  # text that is no UTF-8 cannot be looked into
    try:
        values = array.to_pylist(maps_as_pydicts="strict")
    except KeyError as error:  # a key that a map has twice
        raise pa.ArrowInvalid(str(error.args[0])) from error
    return _each(values, _json)


# ---------------------------------------------------------------------------------------------------------------- UUID


def _uuid(value: object) -> str:
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, str) and _UUID.fullmatch(value):
        return str.__str__(value).lower()
    if isinstance(value, str):
        raise UnfitError("this text is no UUID of the form 8-4-4-4-12; hand over UUID(text), or declare it string")
    if isinstance(value, (bytes, bytearray, memoryview)):
        raise UnfitError(
            "the order of a UUID's bytes would be a guess; hand over UUID(bytes=value), or UUID(bytes_le=value) if "
            "SQL Server wrote them, or declare the column binary"
        )
    raise UnfitError(f"{type(value).__name__} is not converted in silence; hand over a uuid.UUID, or declare it string")


def _is_uuid(array: pa.Array[Any]) -> bool:
    return pc.all(pc.match_substring_regex(array, _UUID_WRITTEN)).as_py() is not False


def _uuid_from(source: pa.DataType) -> Callable[[pa.Array[Any]], pa.Array[Any]] | None:
    return _uuids_to_text if extension_name(source) == "arrow.uuid" else None


def _uuids_to_text(array: pa.Array[Any]) -> pa.Array[Any]:
    return _each(array.storage.to_pylist(), _hyphened)  # type: ignore[attr-defined] # an extension array


def _hyphened(data: bytes) -> str:
    digits = data.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


# --------------------------------------------------------------------------------------------------------- time of day


def _time(value: object) -> str:
    if isinstance(value, str) and _TIME.fullmatch(value):
        return str.__str__(value)
    if isinstance(value, str):
        raise UnfitError("this text is no time of day HH:MM:SS.ffffff; hand over a datetime.time, or declare it string")
    if not isinstance(value, time):
        raise UnfitError(
            f"{type(value).__name__} is not converted in silence; hand over a datetime.time, or declare another type"
        )
    if value.tzinfo is not None:
        raise UnfitError("it would lose its zone; take the zone off: value.replace(tzinfo=None), or declare it string")
    return time.isoformat(value, timespec="microseconds")


def _is_time(array: pa.Array[Any]) -> bool:
    return pc.all(pc.match_substring_regex(array, f"^{_TIME.pattern}$")).as_py() is not False


def _time_from(source: pa.DataType) -> Callable[[pa.Array[Any]], pa.Array[Any]] | None:
    return _times_to_text if pa.types.is_time(source) else None


def _times_to_text(array: pa.Array[Any]) -> pa.Array[Any]:
    micros = array.cast(pa.time64("us"), safe=True)
    bounds: Any = pc.min_max(micros.view(pa.int64()))
    low, high = bounds["min"].as_py(), bounds["max"].as_py()
    # pyarrow writes the text "<value out of range: 86400000000>".
    if low is not None and not (low >= 0 and high < _DAY):
        msg = "a time of day is 00:00:00 to 23:59:59.999999"
        raise pa.ArrowInvalid(msg)
    return micros.cast(pa.string())


_FORMS: Mapping[TextForm, _Form] = {
    TextForm.JSON: _Form(_json, _is_json, _json_from),
    TextForm.UUID: _Form(_uuid, _is_uuid, _uuid_from),
    TextForm.TIME: _Form(_time, _is_time, _time_from),
}
