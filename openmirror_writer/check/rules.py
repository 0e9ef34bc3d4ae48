"""The rules of a landing zone as data: which of them a folder can show, and what `check` says of them.

A rule's number is section.item: rows and sentences of a section are counted from 1, in their order on the page, where
they carry no number. ``record.n`` are the rules of the files that this software adds (docs/record.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Rule:
    """One rule.

    Attributes:
        number: ``"4.2"``, ``"record.3"``.
        wording: The rule in short.
        shows: What `check` reports where it is broken; None if a folder cannot show that.
        unseen: Why a folder cannot show it; None if it can.
    """

    number: str
    wording: str
    shows: str | None = None
    unseen: str | None = None


_OTHER_SIDE = "it concerns the reader of the folder, not what stands in it"
_PAST = "it happened in the past; the folder holds only the present"
_REQUESTS = "it concerns how requests are sent"
_STATUS = "it is said by the service, outside of the landing zone"

_RULES = (
    # ------------------------------------------------------------------------------------------------ 1 paths
    Rule(
        "1.1", "a table folder has a name that is one table's", "names that no folder may have, or that differ by case"
    ),
    Rule(
        "1.2",
        "a schema is a folder `<schema>.schema` with table folders",
        "tables below a folder without the suffix; two folders of one table",
    ),
    Rule("1.3", "discovery ignores names that begin with `_`", "a table folder or data file that is ignored"),
    Rule("1.4", "a table folder holds metadata, data files and what the service makes", "files and folders elsewhere"),
    # ------------------------------------------------------------------------------------------------ 2 metadata
    Rule(
        "2.1",
        "keyColumns is the list of the key's columns; fewer than five",
        "a key that is no list of columns of the files, NULL in a key, five and more",
    ),
    Rule("2.2", "fileDetectionStrategy is SequentialFileName or LastUpdateTimeFileDetection", "another value"),
    Rule("2.3", "isUpsertDefaultRowMarker is a boolean, and upserts need a key", "another value; true without a key"),
    Rule("2.4", "ConditionalUpdateColumn names a column", "no name of a column"),
    Rule(
        "2.5",
        "SchemaDefinition names the columns of text files and their types",
        "text without it; a column without a name, named twice",
    ),
    Rule("2.6", "FileFormat is CSV or DelimitedText", "another value, or one that the files are not of"),
    Rule(
        "2.7",
        "FileExtension is required with DelimitedText",
        "that it lacks, is written with a dot, or is not that of the files",
    ),
    Rule("2.8", "FileFormatTypeProperties holds the options of text", "no object"),
    Rule("2.9", "property names are read in any casing", "a property that stands there twice"),
    Rule("2.10", "metadata is valid JSON; two examples of the documents are not", "the line and how to mend it"),
    Rule("2.11", "a folder without `_metadata.json` is not taken", "a table folder without it"),
    Rule("2.12", "metadata comes with the first data", "a folder with nothing else"),
    Rule("2.13", "where the pages differ, an option decides", unseen=_OTHER_SIDE),
    Rule("2.14", "the writer is strict, the mirror has options", unseen=_OTHER_SIDE),
    Rule("2.15", "markers 1, 2 and 4 need key columns", "such rows in a table without"),
    Rule(
        "2.16",
        "IsNullable is true or false, true if left out",
        "another value; a NULL in text where it is false, with row and column",
    ),
    Rule("2.17", "`__rowMarker__` is not listed in SchemaDefinition", "that it is"),
    Rule("2.18", "compressed text is told by its first bytes", unseen=_OTHER_SIDE),
    # ------------------------------------------------------------------------------------------------ 3 partner events
    Rule(
        "3.1", "`_partnerEvents.json` has partnerName and sourceInfo, at the root", "one that does not, with the line"
    ),
    Rule("3.2", "one partnerName for all databases", unseen="other databases are other folders"),
    # ------------------------------------------------------------------------------------------------ 4 data files
    Rule(
        "4.1",
        "Parquet or delimited text, uncompressed, Snappy, GZIP or ZSTD",
        "unreadable files, text that is cut off or of another encoding, other codecs, mixed extensions",
    ),
    Rule(
        "4.2",
        "names are 20 digits and the extension, from 1 on without a gap",
        "other names, a number 0, a gap, two files of one number",
    ),
    Rule("4.3", "the last file stays, so that the next number is known", "a last file that is gone"),
    Rule("4.4", "processed files are moved, and deleted after seven days", unseen=_OTHER_SIDE),
    Rule("4.5", "a published path is never used for other content", "a number that a processed file has had"),
    Rule("4.6", "source batch and number are kept together across crashes", unseen=_PAST),
    Rule("4.7", "by modification time, ties have no order", "files of one modification time"),
    Rule("4.8", "a file is not empty", "files of zero bytes, text without a row below its header"),
    Rule(
        "4.9",
        "columns of simple types that Spark and Delta can hold",
        "other types, names that Delta does not tell apart",
    ),
    # ------------------------------------------------------------------------------------------------ 5 delimited text
    Rule(
        "5.1",
        "the first row is the header",
        "a first row that is none, that names a column twice, or lacks columns of SchemaDefinition",
    ),
    Rule("5.2", "FirstRowAsHeader is true", "another value"),
    Rule("5.3", "RowSeparator is CR LF, LF or CR", "another value"),
    Rule("5.4", "ColumnSeparator is comma, semicolon, bar or tab", "another value"),
    Rule("5.5", "QuoteCharacter is a double or single quote, or empty", "another value"),
    Rule("5.6", "EscapeCharacter is a backslash, slash, double quote, or empty", "another value"),
    Rule("5.7", "NullValue is text", "another value, or text that could be read otherwise"),
    Rule("5.8", "Encoding is the name of one", "a name that is none, or of one that lacks the separators"),
    Rule("5.9", "DataType is one of eleven names", "another name"),
    Rule("5.10", "text has no decimal", "a decimal DataType"),
    Rule(
        "5.11",
        "each Arrow type has one DataType",
        "a text that is no value of its column's DataType, with row and column",
    ),
    Rule("5.12", "ITime is a time of day in one edition, a date and time in another", unseen=_OTHER_SIDE),
    Rule("5.13", "columns that SchemaDefinition lacks arrive as NULL", "such columns in the header"),
    # ------------------------------------------------------------------------------------------------ 6 row markers
    Rule(
        "6.1",
        "`__rowMarker__` is an integer, 0, 1, 2 or 4, in the last column",
        "another place, type or value, NULL, two such columns",
    ),
    Rule("6.2", "rows carry all columns, deletes at least the key", "a file without a key column that others have"),
    Rule("6.3", "a changed key is a delete and an insert", unseen="an update of another key looks the same"),
    Rule("6.4", "rows apply from top to bottom, files in order", unseen=_OTHER_SIDE),
    Rule(
        "6.5",
        "a table turns incremental with the first marker; text always has them",
        "a file without markers behind one with them, text without markers",
    ),
    # ------------------------------------------------------------------------------------------------ 7 over time
    Rule("7.1", "a column added later is NULL in older rows", unseen="it is allowed: nothing is broken"),
    Rule("7.2", "a nullable column left out is NULL in new rows", unseen="it is allowed: nothing is broken"),
    Rule(
        "7.3", "a required column is neither added nor left out", "the column and the first file that lacks or adds it"
    ),
    Rule("7.4", "type and nullability of a column never change", "the column and the first file that differs"),
    Rule("7.5", "a renamed column is a new one", "a column that goes as another of its type comes"),
    Rule("7.6", "key columns never change", "a key column that the first files do not have"),
    Rule("7.7", "text files never change their columns", "a header that differs from that of the other files"),
    Rule("7.8", "a folder that is deleted drops the table", unseen=_PAST),
    Rule("7.9", "a folder that is made again rebuilds the table", unseen=_PAST),
    Rule("7.10", "a renamed table is a new folder and a full load", unseen=_PAST),
    Rule("7.11", "a rebuild waits until the table is gone", unseen=_STATUS),
    Rule("7.12", "stopping and starting the database loads everything again", unseen=_STATUS),
    # ------------------------------------------------------------------------------------------------ 8 to 10
    Rule("8.1", "the status of tables and of the database", unseen=_STATUS),
    Rule("8.2", "the monitoring files", unseen=_STATUS),
    Rule("8.3", "the error codes", unseen=_STATUS),
    Rule("8.4", "the REST calls and their token", unseen=_REQUESTS),
    Rule("8.5", "the storage token", unseen=_REQUESTS),
    Rule("8.6", "the definition of the mirrored database", unseen=_STATUS),
    Rule("9.1", "at most 1,000 tables and 1 TB of changes a day", "more tables"),
    Rule("9.2", "the target tables have column mapping and deletion vectors", unseen=_STATUS),
    Rule("10.1", "the two hosts of OneLake", unseen=_REQUESTS),
    Rule("10.2", "renames on the DFS host", unseen=_REQUESTS),
    Rule("10.3", "headers and parameters that OneLake allows", unseen=_REQUESTS),
    Rule("10.4", "a conditional create is atomic", unseen=_REQUESTS),
    Rule("10.5", "Files and Tables are neither created nor renamed", unseen=_REQUESTS),
    # ------------------------------------------------------------------------------------------------ our own files
    Rule("record.1", "`_generation.json` names the life of the folder", "one that is not readable"),
    Rule("record.2", "a folder of files with records has a `_generation.json`", "that it is gone"),
    Rule("record.3", "files belong to the life of the folder", "stale files of another life; --repair deletes them"),
    Rule(
        "record.4",
        "each number is one file of the chain",
        "stale files of a number that is taken; --repair deletes them",
    ),
    Rule("record.5", "each record names the file before", "a fork"),
    Rule("record.6", "a record carries the number of its file's name", "another number"),
    Rule(
        "record.7",
        "records and claims are readable",
        "damaged ones, newer versions, and a record of text that is gone from beside it",
    ),
    Rule("record.8", "a drop ends", "one that was begun"),
    Rule(
        "record.9",
        "temporary files are gone after an hour, records of text with their file",
        "leftovers of killed processes, records without a file; --repair deletes them",
    ),
)

RULES: Mapping[str, Rule] = {rule.number: rule for rule in _RULES}
"""All rules by number, in the order of the pages."""
