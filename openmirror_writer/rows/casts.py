"""Which Arrow types go into which column, and the checked casts. Only what loses nothing is there (docs/types.md)."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from openmirror_writer.column_types import TextForm
from openmirror_writer.rows.python_types import is_within_years
from openmirror_writer.rows.text_forms import checked_texts, texts_from
from openmirror_writer.schema import extension_name

Cast = Callable[["pa.Array[Any]"], "pa.Array[Any]"]
"""Array to array of the column's type and the same length; raises one of `CAST_FAILURES`."""

CAST_FAILURES = (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowCapacityError)
"""What a cast raises when a value does not fit, or when the text of all values together exceeds 2 GiB."""


def cast_for(source: pa.DataType, target: pa.DataType, form: TextForm | None = None) -> Cast | None:
    """Return the cast from one Arrow type to the type of a column, None if there is none without loss.

    Args:
        source: What the caller has.
        target: One of the types of `openmirror_writer.column_types`.
        form: Which text a string column holds; None: any.
    """
    if pa.types.is_dictionary(source):
        inner = cast_for(source.value_type, target, form)
        return inner and partial(_decoded, then=inner)
    if pa.types.is_run_end_encoded(source):
        inner = cast_for(source.value_type, target, form)
        return inner and partial(_expanded, then=inner)
    if pa.types.is_null(source):
        return partial(_nulls, target=target)
    return _plain_cast(source, target) if form is None else _to_form(source, form)


def _plain_cast(source: pa.DataType, target: pa.DataType) -> Cast | None:
    if pa.types.is_timestamp(target) or pa.types.is_date(target):
        return partial(_within_years, target=target) if _is_same_kind(source, target) else None
    if extension_name(source) == "arrow.json":
        return _from_storage(source, target)
    if source == target:
        return _as_it_is
    if pa.types.is_integer(target):
        return partial(_safely, target=target) if pa.types.is_integer(source) else None
    if pa.types.is_floating(target):
        return _to_float(source, target)
    if pa.types.is_decimal128(target):
        return _to_decimal(source, target)
    if pa.types.is_large_string(source) or pa.types.is_large_binary(source):
        return partial(_from_large, target=target) if _is_same_kind(source, target) else None
    return partial(_safely, target=target) if _is_same_kind(source, target) else None


def nulls(length: int, kind: pa.DataType) -> pa.Array[Any]:
    """Return an array of NULLs."""
    array: pa.Array[Any] = pa.nulls(length, kind)  # type: ignore[call-overload] # the stubs list the types one by one
    return array


def is_text(kind: pa.DataType) -> bool:
    """Return whether it is one of the three string types."""
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


def is_bytes(kind: pa.DataType) -> bool:
    """Return whether it is one of the four binary types."""
    large_or_fixed = pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind)
    return pa.types.is_binary(kind) or pa.types.is_binary_view(kind) or large_or_fixed


def _is_same_kind(source: pa.DataType, target: pa.DataType) -> bool:
    if pa.types.is_timestamp(target):
        return pa.types.is_timestamp(source) and bool(source.tz) == bool(target.tz)
    if pa.types.is_date(target):
        return pa.types.is_date(source)
    return (is_text(source) and is_text(target)) or (is_bytes(source) and is_bytes(target))


def _to_float(source: pa.DataType, target: pa.DataType) -> Cast | None:
    if pa.types.is_integer(source):
        return partial(_exactly, target=target)
    if not pa.types.is_floating(source):
        return None
    return partial(_rounded, target=target) if target == pa.float32() else partial(_safely, target=target)


def _to_decimal(source: pa.DataType, target: pa.Decimal128Type[Any, Any]) -> Cast | None:
    if pa.types.is_decimal(source):
        return partial(_rescaled, target=target)
    return partial(_integers_to_decimal, target=target) if pa.types.is_integer(source) else None


def _as_it_is(array: pa.Array[Any]) -> pa.Array[Any]:
    return array


def _nulls(array: pa.Array[Any], target: pa.DataType) -> pa.Array[Any]:
    return nulls(len(array), target)


def _to_form(source: pa.DataType, form: TextForm) -> Cast | None:
    if is_text(source) or (extension_name(source), form) == ("arrow.json", TextForm.JSON):
        to_text = cast_for(source, pa.string())
        return to_text and partial(_checked, to_text=to_text, form=form)
    return texts_from(source, form)


def _checked(array: pa.Array[Any], to_text: Cast, form: TextForm) -> pa.Array[Any]:
    texts = to_text(array)
    texts.validate(full=True)  # text that is no UTF-8 cannot be looked into
    return checked_texts(texts, form)


def _from_storage(source: Any, target: pa.DataType) -> Cast | None:  # noqa: ANN401 - the stubs know no extension types
    inner = cast_for(source.storage_type, target)
    return inner and partial(_stored, then=inner)


def _stored(array: Any, then: Cast) -> pa.Array[Any]:  # noqa: ANN401 - the same
    return then(array.storage)


def _within_years(array: pa.Array[Any], target: pa.DataType) -> pa.Array[Any]:
    cast = array.cast(target, safe=True)
    if not is_within_years(cast):
        msg = f"{target} holds the years 1 to 9999"
        raise pa.ArrowInvalid(msg)
    return cast


def _safely(array: pa.Array[Any], target: pa.DataType) -> pa.Array[Any]:
    return array.cast(target, safe=True)


def _from_large(array: pa.Array[Any], target: pa.DataType) -> pa.Array[Any]:
    try:
        return array.cast(target, safe=True)
    except pa.ArrowInvalid:
        # A slice beyond the first 2 GiB of its parent is refused for where it lies; a copy of its own rows is not.
        return pa.concat_arrays([array]).cast(target, safe=True)


def _exactly(array: pa.Array[Any], target: pa.DataType) -> pa.Array[Any]:
    # pyarrow's own check refuses every int above 2**53, the exact ones too.
    floats = array.cast(target, safe=False)
    if not floats.cast(array.type, safe=True).equals(array):
        msg = "this int has no exact float; declare the column int64 or decimal(p,s)"
        raise pa.ArrowInvalid(msg)
    return floats


def _rounded(array: pa.Array[Any], target: pa.DataType) -> pa.Array[Any]:
    floats = array.cast(target)
    infinite = pc.is_inf(floats)
    if pc.any(infinite).as_py() and not infinite.equals(pc.is_inf(array)):
        msg = "it is too large and would become infinite; declare the column float64"
        raise pa.ArrowInvalid(msg)
    return floats


def _integers_to_decimal(array: pa.Array[Any], target: pa.Decimal128Type[Any, Any]) -> pa.Array[Any]:
    return _rescaled(array.cast(pa.decimal128(20, 0)), target)  # 20 digits hold every 64-bit integer


def _rescaled(array: pa.Array[Any], target: pa.Decimal128Type[Any, Any]) -> pa.Array[Any]:
    # pyarrow 26 multiplies first and looks afterwards: 14,000,000 as decimal(38,37) comes out as 0.78.
    source: Any = array.type
    before_the_point = target.precision - target.scale
    if before_the_point < source.precision - source.scale:
        narrow = pa.types.is_decimal32(source) or pa.types.is_decimal64(source)  # pyarrow knows no extremes of these
        extremes: Any = pc.min_max(array.cast(pa.decimal128(source.precision, source.scale)) if narrow else array)
        bound = Decimal((0, (1,), before_the_point))
        if any(value is not None and value.copy_abs() >= bound for value in extremes.as_py().values()):
            msg = f"{target} holds {before_the_point} digits before the point"
            raise pa.ArrowInvalid(msg)
    return array.cast(target, safe=True)


def _decoded(array: pa.DictionaryArray[Any, Any], then: Cast) -> pa.Array[Any]:
    words = _without_views(array.dictionary)
    # Decoded before it is cast: words that no row uses need not fit.
    return then(pa.DictionaryArray.from_arrays(array.indices, words).dictionary_decode())


def _without_views(array: pa.Array[Any]) -> pa.Array[Any]:
    """Return views as large text or bytes, all else as it is: pyarrow has no kernel that takes values out of views."""
    if pa.types.is_string_view(array.type):
        return array.cast(pa.large_string())
    return array.cast(pa.large_binary()) if pa.types.is_binary_view(array.type) else array


def _expanded(array: pa.RunEndEncodedArray[Any, Any], then: Cast) -> pa.Array[Any]:
    # Row by row the number of its run: pyarrow's own decoding knows no views, dictionaries and extension types. The
    # ends of the runs are those of the whole array, whichever slice of it this is.
    numbers = pa.array(range(len(array.values)), pa.int64())
    runs = pc.run_end_decode(pa.RunEndEncodedArray.from_arrays(array.run_ends, numbers))  # type: ignore[call-overload,attr-defined] # the stubs lack them
    return then(_without_views(array.values).take(runs.slice(array.offset, len(array))))
