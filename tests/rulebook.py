"""The rules and statements that tests name with ``@pytest.mark.rule``, and why some have no test on a side.

A rule is one of the landing zone (`openmirror_writer.check.RULES`) or a statement ``L1`` to ``L63`` of the page that
documents it, here in short. A test is on the side of its folder, see `tests.rules_page`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from openmirror_writer.check import RULES

Side = Literal["producer", "mirror", "check"]


class Statement(NamedTuple):
    """One statement of the page: its wording, and the rules of the landing zone as which `check` reports it."""

    wording: str
    rules: tuple[str, ...] = ()


STATEMENTS: Mapping[str, Statement] = {
    "L1": Statement("the mirrored database is made in the portal or by the API"),
    "L2": Statement("each mirrored database has a landing zone of its own"),
    "L3": Statement("the publisher puts metadata and data files there, Parquet or text", ("2.11", "4.1")),
    "L4": Statement("files are uncompressed, Snappy, GZIP or ZSTD", ("4.1",)),
    "L5": Statement("the zone is watched for new tables and new data"),
    "L6": Statement("one folder per table, of its name", ("1.1",)),
    "L7": Statement("each table folder has `_metadata.json`", ("2.11",)),
    "L8": Statement("keyColumns are the columns of the unique key", ("2.1",)),
    "L9": Statement("a key of the two columns C1 and C2", ("2.1",)),
    "L10": Statement("without keyColumns there are no updates and deletes", ("2.15",)),
    "L11": Statement("keyColumns may come later and never change", ("7.6",)),
    "L12": Statement("columns have a data type there; only text needs it", ("2.5",)),
    "L13": Statement("eleven data types, with examples", ("5.9", "5.10")),
    "L14": Statement("`_partnerEvents.json` is optional", ("3.1",)),
    "L15": Statement("the example of `_partnerEvents.json`", ("3.1",)),
    "L16": Statement("it stands at the root", ("3.1",)),
    "L17": Statement("sourceType is any text", ("3.1",)),
    "L18": Statement("partnerName is any text", ("3.1",)),
    "L19": Statement("the first row of text is the header", ("5.1", "5.2")),
    "L20": Statement("the metadata tell how to read text", ("2.5", "2.7")),
    "L21": Statement("RowSeparator is CR LF, LF or CR", ("5.3",)),
    "L22": Statement("ColumnSeparator is comma, semicolon, bar or tab", ("5.4",)),
    "L23": Statement("QuoteCharacter is a double or single quote, or empty", ("5.5",)),
    "L24": Statement("EscapeCharacter is a backslash, slash, double quote, or empty", ("5.6",)),
    "L25": Statement("NullValue is the text that means NULL", ("5.7",)),
    "L26": Statement("Encoding is UTF-8 or another one", ("5.8",)),
    "L27": Statement("SchemaDefinition names the columns and does not change", ("2.5", "7.7")),
    "L28": Statement("FileFormat is CSV, or DelimitedText", ("2.6",)),
    "L29": Statement("FileExtension comes with DelimitedText", ("2.7",)),
    "L30": Statement("the example of a .tsv file", ("2.10",)),
    "L31": Statement("where the properties of that example stand", ("2.8", "2.16")),
    "L32": Statement("a file holds a marker and data columns", ("6.1",)),
    "L33": Statement("the marker is called `__rowMarker__`", ("6.1",)),
    "L34": Statement("what each marker does with a key that is there, and one that is not", ("6.1",)),
    "L35": Statement("the marker is the last column", ("6.1",)),
    "L36": Statement("rows apply in their order, files in theirs", ("6.4",)),
    "L37": Statement("files are numbered with 20 digits from 1 on", ("4.2",)),
    "L38": Statement("the last file stays", ("4.3",)),
    "L39": Statement("a file without markers is inserts", ("6.5",)),
    "L40": Statement("the first load has no markers, changes have", ("6.5",)),
    "L41": Statement("changes apply one after the other", ("6.4",)),
    "L42": Statement("changes are incremental from the first marker on", ("6.5",)),
    "L43": Statement("an updated row carries all columns", ("6.2",)),
    "L44": Statement("the example of E0001, which moves to Bellevue", ("6.4",)),
    "L45": Statement("a changed key is a delete and an insert", ("6.3",)),
    "L46": Statement("a delete needs its key columns only", ("6.2",)),
    "L47": Statement("the example of E0001, which becomes E0002", ("6.3",)),
    "L48": Statement("tables are added, dropped and renamed by their folders", ("7.8", "7.10")),
    "L49": Statement("a deleted folder drops its table", ("7.8",)),
    "L50": Statement("a folder made again rebuilds its table", ("7.9",)),
    "L51": Statement("a folder that is being read may not go at once", ("record.8",)),
    "L52": Statement("a renamed table is a new folder and a full load", ("7.10",)),
    "L53": Statement("schemas are folders `<schema>.schema`", ("1.2",)),
    "L54": Statement("the example of three tables in two schemas", ("1.2",)),
    "L55": Statement("simple types; complex ones as JSON text, binary ones as bytes", ("4.9",)),
    "L56": Statement("new columns are added to the table", ("7.1", "7.3")),
    "L57": Statement("a column left out is NULL in new rows", ("7.2", "7.3")),
    "L58": Statement("a column goes with a rebuild only", ("7.9",)),
    "L59": Statement("the table has all columns that ever came", ("7.1", "7.2")),
    "L60": Statement("a type changes with a rebuild only", ("7.9",)),
    "L61": Statement("another type stops the table", ("7.4",)),
    "L62": Statement("a column is renamed with a rebuild only", ("7.5",)),
    "L63": Statement("processed files are moved, and go after seven days", ("4.4",)),
}

_PLATFORM = "it is done in the portal or by the service, outside of the landing zone"
_REQUESTS = "it concerns requests to OneLake, and no storage of this version sends any"
_SERVICE = "only the service says or does it"
_MIRROR = "it is for the mirror to say or do"
_PUBLISHER = "it is for the publisher to keep; the mirror cannot tell"
_NO_EVENTS = "the mirror does not read partner events"
_ALL: tuple[Side, ...] = ("producer", "mirror", "check")

_REASONS: tuple[tuple[str, tuple[Side, ...], str], ...] = (
    ("L1 L2 7.12 8.2 8.6", _ALL, _PLATFORM),
    ("8.4 8.5 10.1 10.2 10.3 10.4 10.5", _ALL, _REQUESTS),
    ("2.13", ("producer",), _MIRROR),
    ("3.1 L14 L15 L16 L17 L18", ("mirror",), _NO_EVENTS),
    ("3.2", ("producer",), "the caller gives the name for each zone"),
    ("3.2", ("mirror",), _NO_EVENTS),
    ("4.6", ("mirror",), _PUBLISHER),
    ("L5 8.1 8.3 9.2", ("producer",), _MIRROR),
    ("9.1", ("producer", "mirror"), "nothing is refused below the service's own limit; `check` tells"),
    ("L5", ("check",), "it is done by the reader of the folder"),
    ("record.9", ("mirror",), "the mirror reads no temporary files"),
)
"""Numbers, sides, and why those have no test there; what `check` cannot see, its rules say themselves: `unseen`."""

OPEN: frozenset[tuple[str, Side]] = frozenset(
    {
        ("2.2", "mirror"),  # the order of files by time
        ("2.4", "mirror"),  # the conditional update
        ("2.13", "mirror"),  # options of the mirror: it has one way, the strict one
        ("2.14", "mirror"),
        ("4.7", "producer"),
        ("4.7", "mirror"),
    }
)
"""What is not built yet: these cells may be empty."""


def wordings() -> dict[str, str]:
    """Return all numbers in their order, each with its wording."""
    rules = {number: rule.wording for number, rule in RULES.items()}
    return rules | {number: statement.wording for number, statement in STATEMENTS.items()}


def reasons() -> dict[tuple[str, Side], str]:
    """Return why a number has no test on a side."""
    return {(n, side): reason for numbers, sides, reason in _REASONS for n in numbers.split() for side in sides}


def unseen() -> dict[tuple[str, Side], str]:
    """Return why a folder cannot show a rule, or any rule of a statement, broken: in the words of `check`."""
    found = {number: rule.unseen for number, rule in RULES.items()}
    for number, (_, rules) in STATEMENTS.items():
        is_seen = not rules or any(RULES[rule].shows for rule in rules)
        found[number] = None if is_seen else RULES[rules[0]].unseen
    return {(number, "check"): reason for number, reason in found.items() if reason is not None}
