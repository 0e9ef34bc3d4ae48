"""The dialects of delimited text that tests try, and which values each can hold."""

from __future__ import annotations

from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from openmirror_writer.errors import SchemaRefusedError
from openmirror_writer.formats import DelimitedText

ENCODINGS = (
    "UTF-8",
    "utf-16",
    "utf-16-be",
    "utf-32",
    "utf-8-sig",
    "utf-7",
    "ascii",
    "windows-1252",
    "iso-8859-1",
    "iso-8859-15",
    "shift_jis",
    "gb18030",
    "big5",
    "euc-kr",
    "iso-2022-jp",
    "iso-2022-kr",
    "hz",
    "ibm037",
)
NULLS = ("", "N/A", "null", "NULL", "\\N", "/N", "0", "4", "true", "\\\\", "größe", " ")
SPECIAL = "\"'\\/,;|\t\r\n \0\ufeffN0ä¥‾日😀"


def _built(**options: Any) -> DelimitedText:
    try:
        return DelimitedText(**options)
    except SchemaRefusedError:
        assume(False)  # noqa: FBT003 - its only argument
        raise


DIALECTS = st.builds(
    _built,
    column_separator=st.sampled_from([",", ";", "|", "\t"]),
    row_separator=st.sampled_from(["\r\n", "\n", "\r"]),
    quote=st.sampled_from(['"', "'", ""]),
    escape=st.sampled_from(["\\", "/", '"', ""]),
    null_value=st.sampled_from(NULLS),
    encoding=st.sampled_from(ENCODINGS),
    extension=st.sampled_from(["csv", "tsv"]),
    compression=st.sampled_from(["none", "gzip", "zstd"]),
)
VALUES = st.none() | st.sampled_from(NULLS) | st.text(st.sampled_from(SPECIAL), max_size=6)


def can_be_read_back(value: str | None, text: DelimitedText) -> bool:
    """Say by the documented rules alone whether a value can stand in a file.

    Args:
        value: Of a text column.
        text: How the file is written.
    """
    if value is None:
        return True
    try:
        if value.encode(text.encoding).decode(text.encoding) != value:
            return False
    except UnicodeError:
        return False
    if text.quote:
        return bool(text.escape) or text.quote not in value
    if not text.escape:
        return value != text.null_value and not set(value) & {text.column_separator, "\r", "\n"}
    written = value
    for char in (text.escape, text.column_separator, "\r", "\n"):
        written = written.replace(char, text.escape + char)
    return text.null_value not in {value, written}
