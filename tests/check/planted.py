"""Broken rules: each planted once, in a zone that breaks no other."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from datetime import timedelta
from typing import Any, NamedTuple

import pyarrow as pa

from openmirror_writer.formats import sha256_of
from openmirror_writer.layout import (
    DROPPING,
    GENERATION,
    METADATA,
    PARTNER_EVENTS,
    PROCESSED,
    claim_file,
    data_file,
    sidecar_file,
)
from openmirror_writer.record import new_id
from openmirror_writer.schema import ROW_MARKER
from tests.check.landing import ForeignZone, Landing, OurText, OurZone, csv, parquet, rows

META = f"orders/{METADATA}"
PARTNER = {"partnerName": "testPartner", "sourceInfo": {"sourceType": "SQL"}}


def at(number: int, extension: str = "parquet") -> str:
    return f"orders/{data_file(number, extension)}"


class Planted(NamedTuple):
    """A broken rule, and the one finding that it must give."""

    rule: str
    what: str
    severity: str
    file: str | None
    words: str
    zone: Callable[[], Landing]


def foreign(*changes: Callable[[ForeignZone], Any], files: int = 3, **properties: Any) -> Callable[[], Landing]:
    """A zone of another publisher with these properties in its metadata, then changed."""

    def build() -> Landing:
        zone = ForeignZone({"keyColumns": ["id"], **properties}, files)
        for change in changes:
            change(zone)
        return zone

    return build


def ours(*changes: Callable[[OurZone], Any]) -> Callable[[], Landing]:
    def build() -> Landing:
        zone = OurZone()
        for change in changes:
            change(zone)
        return zone

    return build


def ours_as_text(*changes: Callable[[OurText], Any]) -> Callable[[], Landing]:
    def build() -> Landing:
        zone = OurText()
        for change in changes:
            change(zone)
        return zone

    return build


def sidecar(number: int, content: bytes) -> str:
    """The path of a record whose batch is ``b``."""
    return f"orders/{sidecar_file(number, sha256_of(content), 'b')}"


def last_is(table: pa.Table, **options: Any) -> Callable[[], Landing]:
    return foreign(lambda zone: zone.rows(3, table, **options))


ROW = "1,a,4"


def text(*files: str | bytes, extension: str = "tsv", **properties: Any) -> Callable[[], Landing]:
    """A table of text files with these properties instead of good ones; None takes one away.

    Args:
        files: Of each what stands below the header, or its bytes; default: one good file.
        extension: Of the files.
        properties: Of the metadata.
    """
    described: dict[str, Any] = {
        "keyColumns": ["id"],
        "SchemaDefinition": schema({"Name": "id", "DataType": "Int32"}, {"Name": "v", "DataType": "String"}),
        "FileFormat": "DelimitedText",
        "FileExtension": "tsv",
        **properties,
    }

    def build() -> Landing:
        zone = ForeignZone({name: value for name, value in described.items() if value is not None}, files=0)
        for number, file in enumerate(files or (ROW,), start=1):
            zone.put(at(number, extension), csv(file) if isinstance(file, str) else file)
        return zone

    return build


def schema(*columns: dict[str, Any]) -> dict[str, Any]:
    return {"Columns": list(columns)}


def options(**properties: Any) -> Callable[[], Landing]:
    return text(FileFormatTypeProperties=properties)


def column(**properties: Any) -> Callable[[], Landing]:
    return text(SchemaDefinition=schema({"Name": "id", "DataType": "Int32"}, {"Name": "v", **properties}))


def raw(text_of_metadata: str | bytes) -> Callable[[], Landing]:
    return foreign(lambda zone: zone.put(META, text_of_metadata))


def leftover(zone: Landing, path: str, hours: float) -> None:
    zone.put(path, b"half")
    zone.age(path, timedelta(hours=hours))


def changed(zone: Landing, change: Callable[[Landing], Any]) -> Landing:
    change(zone)
    return zone


OLD_DATE = pa.array([1, 2], pa.date32())
NEW_DATE = pa.array([1, 2], pa.timestamp("us"))
REQUIRED = schema({"Name": "id", "DataType": "Int32"}, {"Name": "v", "DataType": "String", "IsNullable": False})
PLANTED = [
    # -------------------------------------------------------------------------------------------- 1 paths
    Planted("1.1", "case twins", "error", "orders", "same table as Orders", foreign(
        lambda z: z.copy("orders", "Orders"))),
    Planted("1.1", "two schemas by case", "error", "sales.schema", "by case only", foreign(
        lambda z: z.copy("orders", "sales.schema/a"), lambda z: z.copy("orders", "Sales.schema/b"))),
    Planted("1.1", "a name with a dot at its end", "error", "items.", "ends with a dot", foreign(
        lambda z: z.copy("orders", "items."))),
    Planted("1.1", "a schema without a name", "error", ".schema", "is empty", foreign(
        lambda z: z.copy("orders", ".schema/items"))),
    Planted("1.2", "a schema folder without its suffix", "error", "sales", "name it sales.schema", foreign(
        lambda z: z.copy("orders", "sales/orders"))),
    Planted("1.2", "the suffix in another casing", "warning", "sales.Schema", "sales.schema", foreign(
        lambda z: z.copy("orders", "sales.Schema/orders"))),
    Planted("1.2", "the default schema and its name", "error", "dbo.schema/orders", "same table", foreign(
        lambda z: z.copy("orders", "dbo.schema/orders"))),
    Planted("1.3", "an ignored table", "warning", "_items", "ignored", foreign(lambda z: z.copy("orders", "_items"))),
    Planted("1.3", "an ignored table in a schema", "warning", "s.schema/_items", "ignored", foreign(
        lambda z: z.copy("orders", "s.schema/_items"))),
    Planted("1.3", "an ignored file", "warning", f"orders/_{data_file(4)}", "ignored", foreign(
        lambda z: z.put(f"orders/_{data_file(4)}", parquet(rows())))),
    Planted("1.4", "a file at the root", "warning", data_file(1), "no table's folder", foreign(
        lambda z: z.put(data_file(1), parquet(rows())))),
    Planted("1.4", "metadata in a schema folder", "warning", f"s.schema/{METADATA}", "no table's folder", foreign(
        lambda z: z.put(f"s.schema/{METADATA}", {}))),
    Planted("1.4", "a folder in a table's folder", "warning", "orders/2024", "inside a table's folder", foreign(
        lambda z: z.put(f"orders/2024/{data_file(1)}", b"x"))),
    # -------------------------------------------------------------------------------------------- 2 metadata
    Planted("2.1", "keys that are text", "error", META, "keyColumns is 'id'", foreign(keyColumns="id")),
    Planted("2.1", "a key twice", "error", META, "twice", foreign(keyColumns=["id", "id"])),
    Planted("2.1", "a key that is no column", "error", META, "'ID' is none of", foreign(keyColumns=["ID"])),
    Planted("2.1", "five keys", "warning", META, "5 key columns", foreign(
        *(lambda z, n=n: z.rows(n, rows({c: pa.array([1, 2]) for c in "abcd"})) for n in (1, 2, 3)),
        keyColumns=["id", "a", "b", "c", "d"])),
    Planted("2.1", "keys that nobody gave", "note", META, "absent", foreign(
        lambda z: z.rows(1, rows(markers=None)), files=1, keyColumns=None)),
    Planted("2.1", "NULL in a key", "warning", at(3), "1 rows have NULL", last_is(
        rows({"id": pa.array([1, None], pa.int64())}))),
    Planted("2.1", "NULL in a key without statistics", "warning", at(3), "1 rows have NULL", last_is(
        rows({"id": pa.array([1, None], pa.int64())}), write_statistics=False)),
    Planted("2.1", "a text key that is not described", "error", META, "not in SchemaDefinition", text(
        keyColumns=["nr"])),
    Planted("2.1", "NULL in a key of text", "warning", at(1, "tsv"), "1 rows have NULL", text(f"{ROW}\r\n,b,4")),
    Planted("2.2", "an unknown order", "error", META, "'ByName'", foreign(fileDetectionStrategy="ByName")),
    Planted("2.3", "upserts that are text", "error", META, "'true'", foreign(isUpsertDefaultRowMarker="true")),
    Planted("2.3", "upserts without a key", "error", META, "no keyColumns", foreign(
        lambda z: z.rows(1, rows(markers=None)), files=1, keyColumns=[], isUpsertDefaultRowMarker=True)),
    Planted("2.4", "a condition that is no column", "error", META, "'seqNum'", foreign(
        ConditionalUpdateColumn="seqNum")),
    Planted("2.4", "a condition that is no text", "error", META, "is 7", foreign(ConditionalUpdateColumn=7)),
    Planted("2.5", "text without types", "error", META, "no SchemaDefinition", text(SchemaDefinition=None)),
    Planted("2.5", "a description without columns", "error", META, "no Columns", text(
        SchemaDefinition={}, keyColumns=[])),
    Planted("2.5", "a column without a name", "error", META, "column 1", text(
        SchemaDefinition=schema({"Name": "id", "DataType": "Int32"}, {"DataType": "String"}))),
    Planted("2.5", "a column twice", "error", META, "'ID' twice", text(
        SchemaDefinition=schema({"Name": "id", "DataType": "Int32"}, {"Name": "ID", "DataType": "Int32"}))),
    Planted("2.6", "an unknown format", "error", META, "'JSON'", text(FileFormat="JSON")),
    Planted("2.6", "tsv as CSV", "error", META, "means CSV", text(FileFormat=None)),
    Planted("2.6", "Parquet as text", "error", META, "Parquet", foreign(FileFormat="CSV")),
    Planted("2.7", "no extension", "error", META, "without FileExtension", text(FileExtension=None)),
    Planted("2.7", "a dot", "warning", META, "'.tsv'", text(FileExtension=".tsv")),
    Planted("2.7", "another extension", "error", META, "'psv'", text(FileExtension="psv")),
    Planted("2.7", "an extension that is no text", "error", META, "is 7", text(FileExtension=7)),
    Planted("2.8", "options that are a list", "error", META, "FileFormatTypeProperties is", text(
        FileFormatTypeProperties=["utf-8"])),
    Planted("2.9", "a property in two casings", "error", META, "keycolumns stands there twice", foreign(
        KeyColumns=["id"])),
    Planted("2.9", "an inner property in two casings", "error", META, "filetypes.encoding", foreign(
        FileTypes={"Encoding": "a", "encoding": "b"})),
    Planted("2.10", "no JSON", "error", META, "line 2 is no valid JSON", raw('{"keyColumns":\n id}')),
    Planted("2.10", "no UTF-8", "error", META, "not UTF-8", raw('{"keyColumns": ["é"]}'.encode("latin-1"))),
    Planted("2.10", "no object", "error", META, "no JSON object", raw('["id"]')),
    Planted("2.10", "nested too deeply", "error", META, "cannot be read", raw("[" * 100_000)),
    Planted("2.10", "what only our reader refuses", "error", META, "nothing tells how to read", text(
        comment="\ud800")),
    Planted("2.11", "no metadata", "error", "orders", "does not take the files", foreign(lambda z: z.delete(META))),
    Planted("2.11", "metadata in another casing", "error", "orders/_Metadata.json", "spelled otherwise", foreign(
        lambda z: z.move(META, "orders/_Metadata.json"))),
    Planted("2.11", "a life without anything in it", "warning", "items", "nothing is published", foreign(
        lambda z: z.put(f"items/{GENERATION}", {"generation": "x"}))),
    Planted("2.12", "metadata alone", "warning", META, "two weeks", foreign(files=0)),
    Planted("2.15", "changes without keys", "error", at(1), "the marker 4", foreign(keyColumns=[])),
    Planted("2.15", "changes where nobody gave keys", "error", at(1), "the marker 4", foreign(keyColumns=None)),
    Planted("2.15", "changes in text without keys", "error", at(1, "tsv"), "the marker 4", text(keyColumns=[])),
    Planted("2.16", "nullable as text", "error", META, "IsNullable of the column 'v' is 'no'", column(
        DataType="String", IsNullable="no")),
    Planted("2.16", "NULL where none may be", "error", at(1, "tsv"), "row 1 of the column 'v' is NULL", text(
        f"{ROW}\r\n2,,4", SchemaDefinition=REQUIRED)),
    Planted("2.16", "NULL in a key where none may be", "error", at(1, "tsv"), "row 0 of the column 'v' is NULL", text(
        "2,,4", SchemaDefinition=REQUIRED, keyColumns=["v"])),
    Planted("2.17", "the marker is described", "error", META, "lists __rowMarker__", text(
        SchemaDefinition=schema({"Name": "id", "DataType": "Int32"}, {"Name": ROW_MARKER, "DataType": "Int32"}))),
    # -------------------------------------------------------------------------------------------- 3 partner events
    Planted("3.1", "no JSON", "error", PARTNER_EVENTS, "line 1", foreign(
        lambda z: z.put(PARTNER_EVENTS, "{partnerName}"))),
    Planted("3.1", "no name", "error", PARTNER_EVENTS, "partnerName is absent", foreign(
        lambda z: z.put(PARTNER_EVENTS, {**PARTNER, "partnerName": None}))),
    Planted("3.1", "no source", "error", PARTNER_EVENTS, "sourceInfo.sourceType is absent", foreign(
        lambda z: z.put(PARTNER_EVENTS, {"partnerName": "x"}))),
    Planted("3.1", "another casing", "warning", "_partnerevents.json", "spelled otherwise", foreign(
        lambda z: z.put("_partnerevents.json", PARTNER))),
    # -------------------------------------------------------------------------------------------- 4 data files
    Planted("4.1", "no Parquet", "error", at(3), "no readable Parquet", foreign(
        lambda z: z.put(at(3), b"PAR1 nothing"))),
    Planted("4.1", "a truncated file", "error", at(3), "no readable Parquet", foreign(
        lambda z: z.put(at(3), z.get(at(3))[:-20]))),
    Planted("4.1", "another codec", "error", at(3), "BROTLI", last_is(rows(), compression="brotli")),
    Planted("4.1", "another extension", "error", at(3, "csv"), "the file is csv, the others are parquet", foreign(
        lambda z: z.move(at(3), at(3, "csv")))),
    Planted("4.1", "gzip that is cut off", "error", at(1, "tsv"), "gzip file is damaged", text(
        gzip.compress(csv(ROW))[:-9])),
    Planted("4.1", "text in Snappy", "error", at(1, "tsv"), "Snappy", text(b"\xff\x06\x00\x00sNaPpY" + csv(ROW))),
    Planted("4.1", "text of another encoding", "error", at(1, "tsv"), "no text in UTF-8", text(
        csv("1,\xe9,4").decode().encode("latin-1"))),
    Planted("4.1", "a row of other width", "error", at(1, "tsv"), "row 1: this row has 2 cells", text(
        csv(ROW, "2,b", ROW))),
    Planted("4.1", "a quote that never ends", "error", at(1, "tsv"), "row 1, column 'v': a cell cannot be read", text(
        csv(ROW, '2,"b,4'))),
    Planted("4.1", "an extension that the other text has not", "error", at(2, "csv"), "the others are tsv", lambda: (
        changed(text(ROW, ROW, ROW)(), lambda z: z.move(at(2, "tsv"), at(2, "csv"))))),
    Planted("4.2", "too few digits", "error", "orders/4.parquet", "20 digits", foreign(
        lambda z: z.put("orders/4.parquet", parquet(rows())))),
    Planted("4.2", "two extensions", "error", f"{at(4)}.gz", "20 digits", foreign(
        lambda z: z.put(f"{at(4)}.gz", b"x"))),
    Planted("4.2", "number 0", "error", at(0), "the first number is 1", foreign(
        lambda z: z.put(at(0), parquet(rows())))),
    Planted("4.2", "a gap", "error", at(6), "files 4 to 5 are missing", foreign(lambda z: z.rows(6))),
    Planted("4.2", "a gap in our files", "error", at(4), "file 3 is missing", ours(lambda z: z.delete(at(3)))),
    Planted("4.2", "a first number above 1", "error", at(2), "file 1 is missing", foreign(lambda z: z.delete(at(1)))),
    Planted("4.2", "two files of one number", "error", at(3, "csv"), "has the number 3", foreign(
        lambda z: z.put(at(3, "csv"), "id\r\n1\r\n"))),
    Planted("4.3", "the last file was moved", "error", f"orders/{PROCESSED}/{data_file(3)}", "next number", foreign(
        *(lambda z, n=n: z.process(n) for n in (1, 2, 3)))),
    Planted("4.5", "a number used twice", "error", at(1), "was used before", foreign(
        lambda z: z.process(1), lambda z: z.rows(1, rows({"v": pa.array(["x", "y"])})))),
    Planted("4.7", "ties", "warning", "orders/a.parquet", "b.parquet", foreign(
        *(lambda z, n=n: z.put(f"orders/{n}.parquet", parquet(rows())) for n in "ab"),
        lambda z: z.same_time("orders/a.parquet", "orders/b.parquet"),
        files=0, fileDetectionStrategy="LastUpdateTimeFileDetection")),
    Planted("4.8", "zero bytes", "error", at(3), "zero bytes", foreign(lambda z: z.put(at(3), b""))),
    Planted("4.8", "zero bytes of ours", "error", at(2), "zero bytes", ours(lambda z: z.put(at(2), b""))),
    Planted("4.8", "zero bytes of text", "error", at(2, "tsv"), "zero bytes", lambda: changed(
        text()(), lambda z: z.put(at(2, "tsv"), b""))),
    Planted("4.8", "text without a row", "error", at(1, "tsv"), "no row below its header", text(csv())),
    Planted("4.8", "text of one empty line", "error", at(1, "tsv"), "no row below its header", text(b"\r\n")),
    Planted("4.9", "no column", "error", at(1), "no column", foreign(
        lambda z: z.rows(1, rows({"id": None, "v": None})), files=1, keyColumns=[], isUpsertDefaultRowMarker=None)),
    Planted("4.9", "columns that differ by case", "error", at(3), "'v' and 'V' are one", last_is(
        rows({"V": pa.array(["x", "y"])}))),
    *(
        Planted("4.9", f"a {array.type}", "error", at(3), str(array.type).partition("<")[0],
            last_is(rows({"x": array})))
        for array in (
            pa.array([[1], [2]]),
            pa.array([{"a": 1}, {"a": 2}]),
            pa.array([1, 2], pa.timestamp("ns")),
            pa.array([1, 2], pa.time64("us")),
            pa.array([1, 2], pa.float16()),
            pa.array([1, 2], pa.decimal256(40, 0)),
            pa.nulls(2),
            pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0" * 16, b"1" * 16], pa.binary(16))),
        )
    ),
    # -------------------------------------------------------------------------------------------- 5 delimited text
    Planted("5.1", "no header", "error", at(1, "tsv"), "is no header", text(csv(ROW, header=ROW))),
    Planted("5.1", "other separators than described", "error", at(1, "tsv"), "is no header", text(
        csv(ROW).replace(b",", b"\t"))),
    Planted("5.1", "a header that cannot be read", "error", at(1, "tsv"), "in the header", text(
        csv(ROW, header='id,v"v,__rowMarker__'))),
    Planted("5.1", "a name twice", "error", at(1, "tsv"), "'v' 2 times", text(
        csv("1,a,b,4", header="id,v,v,__rowMarker__"))),
    Planted("5.1", "a column in another casing", "error", at(1, "tsv"), "names ['ID']", text(
        csv(ROW, header="ID,v,__rowMarker__"))),
    Planted("5.1", "no key column", "error", at(1, "tsv"), "does not name the columns ['id']", text(
        csv("a,4", header="v,__rowMarker__"))),
    Planted("5.1", "a column less in all files", "warning", at(1, "tsv"), f"the same in {data_file(2, 'tsv')}", text(
        *[csv("1,4", header="id,__rowMarker__")] * 2)),
    Planted("5.1", "no required column", "error", at(1, "tsv"), "does not name the columns ['v']", text(
        csv("1,4", header="id,__rowMarker__"), SchemaDefinition=REQUIRED)),
    Planted("5.2", "no header", "error", META, "FirstRowAsHeader is False", options(FirstRowAsHeader=False)),
    Planted("5.3", "a row separator", "error", META, "RowSeparator is '|'", options(RowSeparator="|")),
    Planted("5.4", "a column separator", "error", META, "ColumnSeparator is ':'", options(columnseparator=":")),
    Planted("5.5", "a quote", "error", META, "QuoteCharacter is '`'", options(QuoteCharacter="`")),
    Planted("5.6", "an escape", "error", META, "EscapeCharacter is '^'", options(EscapeCharacter="^")),
    Planted("5.7", "a null that is a number", "error", META, "NullValue is 0", options(NullValue=0)),
    Planted("5.7", "a null with a separator", "error", META, "cannot be told", options(NullValue="a,b")),
    Planted("5.8", "an encoding", "error", META, "'utf-9'", options(Encoding="utf-9")),
    Planted("5.8", "an encoding that only Python has", "error", META, "'rot13'", options(Encoding="rot13")),
    Planted("5.8", "an encoding without the separator", "error", META, "does not fit", options(
        Encoding="cp500", NullValue="\u20ac")),
    Planted("5.9", "a type", "error", META, "'varchar'", column(DataType="varchar")),
    Planted("5.9", "no type", "error", META, "is None", column()),
    Planted("5.10", "a decimal", "error", META, "text has no decimal", column(DataType="Decimal(18,2)")),
    Planted("5.11", "a text that is no number", "error", at(1, "tsv"), "row 1 of the column 'id' is 'x'", text(
        f"{ROW}\r\nx,b,4\r\ny,b,4")),
    Planted("5.11", "a number that is too large", "error", at(1, "tsv"), "no Int32", text("2147483648,a,4")),
    Planted("5.11", "one in gzip", "error", at(1, "tsv"), "row 0 of the column 'id'", text(
        gzip.compress(csv("1.5,a,4")))),
    *(
        Planted("5.11", f"no {kind}", "error", at(1, "tsv"), f"is {value!r}, which is no {kind}", text(
            f"1,{value},4", SchemaDefinition=schema(
                {"Name": "id", "DataType": "Int32"}, {"Name": "v", "DataType": kind})))
        for kind, value in (
            ("Double", "NaN"), ("Single", "1e39"), ("Int16", "40000"), ("Int64", "0x10"), ("DateTime", "yesterday"),
            ("IDate", "2024-02-30"), ("Boolean", "ja"), ("ByteArray", "abc"),
        )
    ),
    Planted("5.13", "a column that is not described", "warning", at(1, "tsv"), "lacks the columns ['w']", text(
        csv("1,a,b,4", header="id,v,w,__rowMarker__"))),
    # -------------------------------------------------------------------------------------------- 6 row markers
    Planted("6.1", "not last", "note", at(3), "not the last", last_is(
        rows().select([ROW_MARKER, "id", "v"]))),
    Planted("6.1", "twice", "error", at(3), "2 columns", last_is(
        rows().append_column(ROW_MARKER, pa.array([4, 4], pa.int32())))),
    Planted("6.1", "as text", "error", at(3), "string", last_is(rows(markers=["4", "2"], marker_type=pa.string()))),
    Planted("6.1", "in another casing", "error", at(1), "'__rowmarker__'", foreign(
        lambda z: z.rows(1, rows().rename_columns(["id", "v", "__rowmarker__"])), files=1)),
    Planted("6.1", "NULL", "error", at(3), "row 1 has the marker NULL", last_is(rows(markers=[4, None]))),
    Planted("6.1", "3, between legal ones", "error", at(3), "row 0 has the marker 3", last_is(rows(markers=[3, 4]))),
    Planted("6.1", "above 4", "error", at(3), "row 1 has the marker 5", last_is(rows(markers=[0, 5]))),
    Planted("6.1", "below 0, without statistics", "error", at(3), "row 0 has the marker -1", last_is(
        rows(markers=[-1, 2]), write_statistics=False)),
    Planted("6.1", "not last in text", "note", at(1, "tsv"), "not the last", text(
        csv("4,1,a", header="__rowMarker__,id,v"))),
    Planted("6.1", "twice in text", "error", at(1, "tsv"), "2 columns", text(
        csv("1,a,4,4", header="id,v,__rowMarker__,__rowMarker__"))),
    Planted("6.1", "in another casing in text", "error", at(1, "tsv"), "'__rowmarker__'", text(
        csv(ROW, header="id,v,__rowmarker__"))),
    Planted("6.1", "a word in text", "error", at(1, "tsv"), "row 1 has the marker 'U'", text(f"{ROW}\r\n2,b,U")),
    Planted("6.1", "3 in text, before a word", "error", at(1, "tsv"), "row 1 has the marker 3", text(
        f"{ROW}\r\n2,b,3\r\n3,c,U")),
    Planted("6.1", "NULL in text", "error", at(1, "tsv"), "row 1 has the marker NULL", text(f"{ROW}\r\n2,b,")),
    Planted("6.2", "no key column", "error", at(3), "'id' is missing", last_is(rows({"id": None}))),
    Planted("6.2", "no required key column", "error", at(3), "'id' is missing", foreign(
        *(lambda z, n=n: z.rows(n, rows(required=["id"])) for n in (1, 2)), lambda z: z.rows(3, rows({"id": None})))),
    Planted("6.2", "text without a key column", "error", at(1, "tsv"), "'id' is missing", text(
        csv("a,4", header="v,__rowMarker__"), ROW)),
    Planted("6.5", "no markers any more", "warning", at(2), f"the same in {data_file(3)}", foreign(
        *(lambda z, n=n: z.rows(n, rows(markers=None)) for n in (2, 3)))),
    Planted("6.5", "text without markers", "warning", at(1, "tsv"), f"the same in {data_file(2, 'tsv')}", text(
        *[csv("1,a", header="id,v")] * 2)),
    Planted("6.5", "text without markers behind some with them", "warning", at(2, "tsv"), "text file has no", text(
        ROW, csv("1,a", header="id,v"))),
    Planted("6.5", "text without markers whose rows are upserts", "warning", at(1, "tsv"), "are upserts", text(
        csv("1,a", header="id,v"), isUpsertDefaultRowMarker=True)),
    # -------------------------------------------------------------------------------------------- 7 over time
    Planted("7.3", "a required column added", "error", at(3), "'x' is added", last_is(
        rows({"x": pa.array([1, 2])}, required=["x"]))),
    Planted("7.3", "a required column left out", "error", at(2), "'v' is left out", foreign(
        lambda z: z.rows(1, rows(required=["v"])), *(lambda z, n=n: z.rows(n, rows({"v": None})) for n in (2, 3)))),
    Planted("7.4", "int32 to int64", "error", at(2), f"the same in {data_file(3)}", foreign(
        lambda z: z.rows(1, rows({"v": pa.array([1, 2], pa.int32())})),
        *(lambda z, n=n: z.rows(n, rows({"v": pa.array([1, 2], pa.int64())})) for n in (2, 3)))),
    Planted("7.4", "date to timestamp, and back", "error", at(2), "timestamp_ntz", foreign(
        *(lambda z, n=n, d=d: z.rows(n, rows({"v": d})) for n, d in ((1, OLD_DATE), (2, NEW_DATE), (3, OLD_DATE))))),
    Planted("7.4", "left out, and back as another type", "error", at(3), "'v' is int64", foreign(
        lambda z: z.rows(2, rows({"v": None})), lambda z: z.rows(3, rows({"v": pa.array([1, 2])})))),
    Planted("7.4", "nullability alone", "error", at(3), "not null", last_is(rows(required=["v"]))),
    Planted("7.4", "behind files that were moved", "error", at(3), "'v' is int64", foreign(
        lambda z: z.process(1), lambda z: z.process(2), lambda z: z.rows(3, rows({"v": pa.array([1, 2])})))),
    Planted("7.5", "a column renamed", "warning", at(3), "'v' is gone as 'w' comes", last_is(
        rows({"v": None, "w": pa.array(["a", "b"])}))),
    Planted("7.5", "a required column renamed", "error", at(2), "'v' is gone as 'w' comes", foreign(
        lambda z: z.rows(1, rows(required=["v"])),
        lambda z: z.rows(2, rows({"v": None, "w": pa.array(["a", "b"])}, required=["w"])), files=2)),
    Planted("7.6", "a key that the first file lacks", "error", META, "'nr' is not in", foreign(
        *(lambda z, n=n: z.rows(n, rows({"nr": pa.array([1, 2])}, required=["nr"])) for n in (2, 3)),
        keyColumns=["nr"])),
    Planted("7.7", "a column that comes", "error", at(2, "tsv"), "adds ['w'], compared with", text(
        ROW, *[csv("1,a,b,4", header="id,v,w,__rowMarker__")] * 2)),
    Planted("7.7", "a column that goes", "error", at(3, "tsv"), "lacks ['v'], compared with", text(
        ROW, ROW, csv("1,4", header="id,__rowMarker__"))),
    Planted("7.7", "a column that the first file lacks", "error", at(1, "tsv"), "lacks ['v'], compared with", text(
        csv("1,4", header="id,__rowMarker__"), ROW)),
    Planted("7.7", "another order", "warning", at(2, "tsv"), "another order", text(
        ROW, csv("a,1,4", header="v,id,__rowMarker__"))),
    # -------------------------------------------------------------------------------------------- our own files
    Planted("record.1", "not readable", "error", f"orders/{GENERATION}", "does not name", ours(
        lambda z: z.put(f"orders/{GENERATION}", "{}"))),
    Planted("record.2", "gone", "error", f"orders/{GENERATION}", "is gone", ours(
        lambda z: z.delete(f"orders/{GENERATION}"))),
    Planted("record.3", "of another life, the next number", "error", at(5), "stale", ours(
        lambda z: z.put(at(5), z.file(4, generation=new_id(), number=5)))),
    Planted("record.3", "of another life, far above", "error", at(40), "stale", ours(
        lambda z: z.put(at(40), z.file(4, generation=new_id(), number=40)))),
    Planted("record.4", "a number that a move has freed", "error", at(2), f"/{data_file(2)} is the file of", ours(
        lambda z: z.put("late", z.file(2)), lambda z: z.process(1), lambda z: z.process(2),
        lambda z: z.move("late", at(2)))),
    Planted("record.4", "one that breaks other rules too", "error", at(2), "is the file of", ours(
        lambda z: z.put("late", z.file(2, {"v": pa.array([1])})), lambda z: z.process(1), lambda z: z.process(2),
        lambda z: z.move("late", at(2)))),
    Planted("record.5", "a fork", "error", at(5), f"does not continue {at(4)}", ours(
        lambda z: z.put(at(5), z.file(4, number=5, previous=new_id())))),
    Planted("record.5", "no beginning", "error", at(1), "does not continue the beginning", ours(
        *(lambda z, n=n: z.delete(at(n)) for n in (2, 3, 4)), lambda z: z.put(at(1), z.file(1, previous=new_id())))),
    Planted("record.6", "a copy under the next number", "error", at(5), "says that this is file 4", ours(
        lambda z: z.put(at(5), z.get(at(4))))),
    Planted("record.7", "a newer version", "error", at(5), "version 2", ours(
        lambda z: z.put(at(5), z.file(4, v=2)))),
    Planted("record.7", "a damaged advance", "error", f"orders/_{4:020d}.advance-0.json", "damaged", ours(
        lambda z: z.put(f"orders/_{4:020d}.advance-0.json", "{}"))),
    Planted("record.7", "a damaged claim", "error", f"orders/{claim_file(1, 'abc')}", "does not say where", ours(
        lambda z: z.put(f"orders/{claim_file(1, 'abc')}", {"last": 0}))),
    Planted("record.8", "a drop that was begun", "error", f"orders/{DROPPING}", "was begun", ours(
        lambda z: z.put(f"orders/{DROPPING}", "{}"), lambda z: z.delete(at(2)))),
    Planted("record.9", "a leftover", "note", f"orders/_{5:020d}.{'0' * 32}.staged", "killed", ours(
        lambda z: leftover(z, f"orders/_{5:020d}.{'0' * 32}.staged", 1.1))),
    Planted("record.9", "a leftover at the root", "note", f"_partnerEvents.{'0' * 32}.staged", "killed", foreign(
        lambda z: z.put(PARTNER_EVENTS, PARTNER), lambda z: leftover(z, f"_partnerEvents.{'0' * 32}.staged", 1.1))),
    # -------------------------------------------------------------------------------------------- beside text
    Planted("record.1", "not readable, of text", "error", f"orders/{GENERATION}", "does not name", ours_as_text(
        lambda z: z.put(f"orders/{GENERATION}", "{}"))),
    Planted("record.2", "gone, of text", "error", f"orders/{GENERATION}", "is gone", ours_as_text(
        lambda z: z.delete(f"orders/{GENERATION}"))),
    Planted("record.3", "text of another life", "error", at(5, "csv"), "stale", ours_as_text(
        lambda z: z.publish(5, 4, generation=new_id()))),
    Planted("record.4", "text under a number that a move has freed", "error", at(2, "csv"), "is the file of", (
        ours_as_text(lambda z: z.process(1), lambda z: z.process(2), lambda z: z.publish(2, 2)))),
    Planted("record.4", "stale text that breaks other rules too", "error", at(2, "csv"), "is the file of", ours_as_text(
        lambda z: z.process(1), lambda z: z.process(2), lambda z: z.publish(2, 2, "x,z,9"))),
    Planted("record.5", "a fork of text", "error", at(5, "csv"), f"does not continue {at(4, 'csv')}", ours_as_text(
        lambda z: z.publish(5, 4, previous=sha256_of(b"another")))),
    Planted("record.6", "a copy of text under the next number", "error", at(5, "csv"), "says that this is file 4", (
        ours_as_text(lambda z: z.put(at(5, "csv"), z.get(at(4, "csv")))))),
    Planted("record.6", "a record that names another number", "error", at(4, "csv"), "says that this is file 3", (
        ours_as_text(lambda z: z.put(z.sidecar(4), z.get(z.sidecar(4)).replace(b'"number":4', b'"number":3'))))),
    Planted("record.7", "a damaged record of text", "error", sidecar(5, csv("9,z,4")), "is damaged", ours_as_text(
        lambda z: z.publish(5, 4, batch="b"), lambda z: z.put(sidecar(5, csv("9,z,4")), "{}"))),
    Planted("record.7", "a newer version beside text", "error", sidecar(5, csv("9,z,4")), "version 2", ours_as_text(
        lambda z: z.publish(5, 4, batch="b", v=2))),
    Planted("record.7", "a record that is gone", "error", at(2, "csv"), "is gone", ours_as_text(
        lambda z: z.delete(z.sidecar(2)))),
    Planted("record.9", "a record without its file", "note", sidecar(1, b"old"), "is gone or never came", ours_as_text(
        lambda z: z.process(1), lambda z: z.process(2), lambda z: z.delete(f"orders/{PROCESSED}/{data_file(1, 'csv')}"),
        lambda z: leftover(z, sidecar(1, b"old"), 1.1))),
]  # fmt: skip
