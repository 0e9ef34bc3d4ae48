"""What a well-formed row is, and its rewriting to the one form that pyarrow's parser reads exactly.

pyarrow.csv takes more than these options allow (text behind a closing quote, an escape before anything and outside of
quotes, any newline as end of a row), and knows no text without quotes that has escapes. So the text is matched against
its grammar first. Cells that pyarrow reads as they are meant, which are nearly all, pass in one match; each other one
is unescaped and written in double quotes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from openmirror_writer.formats.text.dialect import Dialect

_Pattern = re.Pattern[bytes]


class MalformedTextError(Exception):
    """Text that is none of the dialect; `Grammar.scan` tells where."""


@dataclass(frozen=True)
class Grammar:
    """The cells of a dialect, in UTF-8.

    Attributes:
        quote: What pyarrow is to take as the quote, doubled in values; `"` where the dialect has none.
        plain_run: Any number of cells that pyarrow reads right, each with its end.
        odd_cell: One of the others, as group 1, its end as group 2; None if there are none. Neither of the two takes
            the end of a row before an empty row.
        any_cell: One cell of either kind, as group 1, its end as group 2.
        escape: Of the dialect.
        quoted: Whether the others stand in quotes.
        row_separator: Of the dialect.
        one_column: Whether an empty row is one: that of a single empty cell.
    """

    quote: bytes
    plain_run: _Pattern
    odd_cell: _Pattern | None
    any_cell: _Pattern
    escape: bytes
    quoted: bool
    row_separator: bytes
    one_column: bool

    def normalised(self, text: bytes, offset: int) -> bytes:
        """Return the rows from an offset on as pyarrow reads them exactly.

        Args:
            text: Whole rows in UTF-8, the last one with its row separator.
            offset: Where a row begins.

        Raises:
            MalformedTextError: As said.
        """
        if text.startswith(self.row_separator, offset) and not self.one_column:
            raise MalformedTextError
        parts = []
        while True:
            plain = self.plain_run.match(text, offset)
            end = offset if plain is None else plain.end()
            parts.append(text[offset:end])
            if end == len(text):
                return b"".join(parts)
            odd = self.odd_cell and self.odd_cell.match(text, end)
            if odd is None:
                raise MalformedTextError
            value = self.value_of(odd[1])
            parts += [self.quote, value.replace(self.quote, self.quote * 2), self.quote, odd[2]]
            offset = odd.end()

    def first_row(self, text: bytes) -> tuple[list[bytes], int]:
        """Return the values of the cells of the first row, and the offset behind its row separator.

        Raises:
            MalformedTextError: As said.
        """
        values: list[bytes] = []
        offset = 0
        while True:
            cell = self.any_cell.match(text, offset)
            if cell is None:
                raise MalformedTextError
            values.append(self.value_of(cell[1]))
            offset = cell.end()
            if cell[2] == self.row_separator:
                return values, offset

    def scan(self, text: bytes) -> tuple[list[int], int | None]:
        """Count the cells of each row, up to the first malformed cell; slow, for errors.

        Args:
            text: Whole rows in UTF-8.

        Returns:
            The counts, and the offset of a malformed cell; it counts as one of its row, the last one. None: all cells
            are well-formed.
        """
        counts = [0]
        offset = 0
        while offset < len(text):
            cell = self.any_cell.match(text, offset)
            counts[-1] += 1
            if cell is None:
                return counts, offset
            offset = cell.end()
            if cell[2] == self.row_separator:
                counts.append(0)
        return counts[:-1], None

    def value_of(self, cell: bytes) -> bytes:
        """Return the value of a cell: without its quotes and escapes."""
        if self.quoted:
            if not cell.startswith(self.quote):
                return cell
            cell = cell[1:-1]
        return re.sub(re.escape(self.escape) + rb"(?s:(.))", rb"\1", cell) if self.escape else cell


def grammar_of(dialect: Dialect, *, one_column: bool = False) -> Grammar:
    """Return the grammar of a dialect.

    Args:
        dialect: The options.
        one_column: Whether an empty row is one: that of a single empty cell.
    """
    quoted, bare, odd = _cells(dialect)
    plain = rb"|".join([*quoted, bare])
    if not dialect.quote and dialect.escape:  # the text of NULL may hold the escape; it is no escape there
        plain = re.escape(dialect.null_value.encode()) + rb"|" + plain
    separator, newline = (re.escape(text.encode()) for text in (dialect.column_separator, dialect.row_separator))
    end = rb"(?:%b|%b)" % (separator, newline)
    end_before_a_row = end if one_column else rb"(?:%b|%b(?!%b))" % (separator, newline, newline)
    every = plain if odd is None else plain + rb"|" + odd
    return Grammar(
        quote=(dialect.quote or '"').encode(),
        plain_run=re.compile(rb"(?:(?:%b)%b)*+" % (plain, end_before_a_row)),
        odd_cell=None if odd is None else re.compile(rb"(%b)(%b)" % (odd, end_before_a_row)),
        any_cell=re.compile(rb"(%b)(%b)" % (every, end)),
        escape=dialect.escape.encode(),
        quoted=bool(dialect.quote),
        row_separator=dialect.row_separator.encode(),
        one_column=one_column,
    )


def _cells(dialect: Dialect) -> tuple[list[bytes], bytes, bytes | None]:
    """Return the patterns of plain cells in quotes, of plain bare ones, and of the odd ones."""
    quote, escape = re.escape(dialect.quote.encode()), re.escape(dialect.escape.encode())
    border = re.escape(dialect.column_separator.encode()) + rb"\r\n"
    if not dialect.quote:
        bare = rb'[^"%b%b]*+' % (escape, border)
        return (
            [],
            bare,
            rb"(?:[^%b%b]++|%b[%b%b])*+" % (escape, border, escape, escape, border)
            if escape
            else (rb"[^%b]*+" % border),
        )
    bare = rb"[^%b%b]*+" % (quote, border)
    if dialect.doubles_quotes:
        return [rb"%b(?:[^%b]++|%b%b)*+%b" % (quote, quote, quote, quote, quote)], bare, None
    plain = rb"%b[^%b%b]*+%b" % (quote, quote, escape, quote)
    odd = rb"%b(?:[^%b%b]++|%b[%b%b])*+%b" % (quote, quote, escape, escape, quote, escape, quote)
    return [plain], bare, odd if escape else None
