r"""How cells become delimited text: separators, quoting, escaping, the text of NULL, the encoding.

| quote | escape | a text value stands as |
|---|---|---|
| given | the same character | in quotes, quotes in it doubled (RFC 4180) |
| given | another one | in quotes, quotes and escapes in it with an escape before them |
| given | none | in quotes; a quote in it cannot be written |
| none | given | bare, separators, newlines and escapes in it with an escape before them |
| none | none | bare; a separator or a newline in it cannot be written |

With a quote every text and binary value stands in quotes, other values only where they are the text of NULL; whatever
stands in quotes is never NULL. Where there is a quote, an escape outside of quotes means nothing.
``\r`` and ``\n`` both count as newlines, whichever separates the rows.
"""

from __future__ import annotations

import codecs
import string
from collections.abc import Sequence
from dataclasses import dataclass

from openmirror_writer.errors import SchemaRefusedError, shorten
from openmirror_writer.schema import ROW_MARKER

COLUMN_SEPARATORS = (",", ";", "|", "\t")
ROW_SEPARATORS = ("\r\n", "\n", "\r")
QUOTES = ('"', "'", "")
ESCAPES = ("\\", "/", '"', "")

_NEWLINES = "\r\n"
_BYTE_ORDER_MARK = "\ufeff"
_PYTHON_ONLY = frozenset({"idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape"})
"""Python calls these encodings; no other reader of text does."""
_IN_EVERY_FILE = string.ascii_letters + string.digits + " +-.:_"


@dataclass(frozen=True)
class Dialect:
    r"""The options of delimited text that shape its characters.

    Attributes:
        column_separator: ``,`` (default), ``;``, ``|`` or a tab.
        row_separator: ``\r\n`` (default), ``\n`` or ``\r``.
        quote: ``"`` (default), ``'`` or empty: none.
        escape: ``\`` (default), ``/``, ``"`` or empty: none. The same as ``quote``: quotes are doubled.
        null_value: The text that stands for NULL, without quotes; empty by default. It holds no separator, newline or
            quote; ``"`` counts as one always.
        encoding: A name that Python knows, ``UTF-8`` by default; written to the metadata as it is given here. UTF-16
            and UTF-32 without a byte order in their name begin with a byte order mark.
    """

    column_separator: str = ","
    row_separator: str = "\r\n"
    quote: str = '"'
    escape: str = "\\"
    null_value: str = ""
    encoding: str = "UTF-8"

    def __post_init__(self) -> None:
        """Refuse what the service does not read, and what could not be read back.

        Raises:
            SchemaRefusedError: As said; the option, what it is and what it may be are named.
        """
        _one_of("column_separator", self.column_separator, COLUMN_SEPARATORS)
        _one_of("row_separator", self.row_separator, ROW_SEPARATORS)
        _one_of("quote", self.quote, QUOTES)
        _one_of("escape", self.escape, ESCAPES)
        _check_encoding(self.encoding)
        self._check_null_value()
        used = self.column_separator + self.row_separator + self.quote + self.escape + self.null_value
        if transcode(_IN_EVERY_FILE + used, self.encoding) is None:
            msg = f"encoding={self.encoding!r} cannot hold the characters of the other options; use UTF-8"
            raise SchemaRefusedError(msg)

    @property
    def doubles_quotes(self) -> bool:
        """Whether a quote in a quoted value is written twice (RFC 4180)."""
        return bool(self.quote) and self.escape == self.quote

    @property
    def unsafe(self) -> str:
        """The characters that a value can hold only behind an escape."""
        return self.quote + self.escape if self.quote else self.column_separator + _NEWLINES + self.escape

    @property
    def unwritable(self) -> str:
        """The characters that no value can hold; none where there is an escape."""
        return "" if self.escape else self.unsafe

    def protected(self, value: str) -> str:
        r"""Return a text value with quotes and escapes, as it stands in a file.

        Args:
            value: Text without `unwritable` characters.

        >>> Dialect().protected('say "hi"')
        '"say \\"hi\\""'
        """
        escaped = "".join(self.escape + char if char in self.unsafe else char for char in value)
        return f"{self.quote}{escaped}{self.quote}"

    def header(self, names: Sequence[str]) -> str:
        """Return the first row of a file, with the row separator: the names, ``__rowMarker__`` behind them.

        A name that could be misread stands in quotes, the others stand bare.

        Args:
            names: Of the data columns.

        Raises:
            SchemaRefusedError: These options cannot write a name.
        """
        cells = [self._header_cell(name) for name in [*names, ROW_MARKER]]
        return self.column_separator.join(cells) + self.row_separator

    def _header_cell(self, name: str) -> str:
        special = self.column_separator + _NEWLINES + '"' + self.quote + self.escape
        misread = name != name.strip() or name.startswith(_BYTE_ORDER_MARK) or name == self.null_value
        if any(char in name for char in self.unwritable) or (misread and not self.quote):
            reason = "quote, separator, newline, space at its end, byte order mark, or is the text of NULL"
            msg = f"the column name {name!r} needs a quote= and an escape= that can protect it (it has a {reason})"
            raise SchemaRefusedError(msg, column=name)
        if transcode(name, self.encoding) is None:
            msg = f"the column name {name!r} has characters that {self.encoding} lacks; use encoding='UTF-8'"
            raise SchemaRefusedError(msg, column=name)
        return self.protected(name) if misread or any(char in name for char in special) else name

    def _check_null_value(self) -> None:
        value: object = self.null_value
        forbidden = self.column_separator + _NEWLINES + '"' + self.quote
        if not isinstance(value, str) or any(char in value for char in forbidden):
            msg = f"null_value={shorten(value)} must be text without separators, newlines and quotes; use 'NULL', say"
            raise SchemaRefusedError(msg)
        if not self.quote and self.escape and _ends_in_escape(value, self.escape):
            msg = (
                f"null_value={value!r} ends in the escape, which would swallow the separator behind it; use 'NULL', say"
            )
            raise SchemaRefusedError(msg)


def transcode(text: str, encoding: str) -> bytes | None:
    """Return text in another encoding; None if that would lose or change a character.

    Some encodings change characters without an error: Shift_JIS makes a backslash of a yen sign. Therefore what is not
    Unicode is read back and compared.

    Args:
        text: All of it, so that a byte order mark and shifts stand where they belong.
        encoding: A name that Python knows.
    """
    try:
        data = text.encode(encoding)
        exact = codecs.lookup(encoding).name.startswith(("utf-8", "utf-16", "utf-32"))
        return data if exact or data.decode(encoding) == text else None
    except UnicodeError:
        return None


def is_utf_8(encoding: str) -> bool:
    """Return whether it is UTF-8 as Arrow holds it, without a byte order mark."""
    return codecs.lookup(encoding).name == "utf-8"


def _one_of(option: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        known = ", ".join(repr(each) for each in allowed)
        msg = f"{option}={shorten(value)} is not one that the service reads; use one of: {known}"
        raise SchemaRefusedError(msg)


def _check_encoding(encoding: object) -> None:
    if not isinstance(encoding, str) or not _is_encoding_of_text(encoding):
        msg = f"encoding={shorten(encoding)} is no known encoding of text; use 'UTF-8', say"
        raise SchemaRefusedError(msg)


def _is_encoding_of_text(name: str) -> bool:
    try:
        "".encode(name)  # those that map bytes to bytes fail here
        return codecs.lookup(name).name not in _PYTHON_ONLY
    except (LookupError, ValueError):
        return False


def _ends_in_escape(value: str, escape: str) -> bool:
    return bool((len(value) - len(value.rstrip(escape))) % 2)
