"""The worked examples of the landing zone's documentation, value for value, and how they are put into a zone."""

from __future__ import annotations

import io
import json
import struct
from datetime import date, datetime
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.parquet as pq

from openmirror_writer import ChangeBatch, DelimitedText, LandingTable, LandingZone, PartnerEvents, SourceInfo, Writer
from openmirror_writer.layout import METADATA, data_file
from openmirror_writer.schema import ROW_MARKER

COMPOSITE_KEY = '{"keyColumns" : ["C1", "C2"]}'
PARTNER = {
    "partnerName": "testPartner",
    "sourceInfo": {
        "sourceType": "SQL",
        "sourceVersion": "2019",
        "additionalInformation": {"testKey": "testValue"},
    },
}
SCHEMA_FOLDERS = ("Schema1.schema/TableA", "Schema1.schema/TableB", "Schema2.schema/TableC")
FIRST_FILES = ("00000000000000000001.parquet", "00000000000000000002.parquet")

MOVED_EMPLOYEE = """\
EmployeeID,EmployeeLocation,__rowMarker__
E0001,Redmond,0
E0002,Redmond,0
E0003,Redmond,0
E0001,Bellevue,1
"""
CHANGED_KEY = """\
EmployeeID,EmployeeLocation,__rowMarker__
E0001,Bellevue,0
E0001,NULL,2
E0002,Bellevue,0
"""
EMPLOYEES = {
    "moved": (MOVED_EMPLOYEE, [("E0001", "Bellevue"), ("E0002", "Redmond"), ("E0003", "Redmond")]),
    "changed": (CHANGED_KEY, [("E0002", "Bellevue")]),
}
"""Table to the rows of its one file, as the documents show them, and to the rows of the mirrored table."""

MARKERS: dict[int, tuple[list[str], list[str]]] = {
    0: (["new"], ["old", "new"]),
    1: (["new"], ["new"]),
    2: ([], []),
    4: (["new"], ["new"]),
}
"""Marker to the rows of a key in the target: where it had none, and where it had the row ``old``."""

TSV_METADATA = """{"KeyColumns": ["id"], "ConditionalUpdateColumn": "seqNum",
 "SchemaDefinition": {"Columns": [
   {"Name": "id", "DataType": "Int32"}, {"Name": "name", "DataType": "String", "IsNullable": true},
   {"Name": "age", "DataType": "Int32", "IsNullable": true},
   {"Name": "seqNum", "DataType": "Int64", "IsNullable": false}]},
 "FileFormat": "DelimitedText", "FileExtension": "tsv",
 "FileFormatTypeProperties": {"FirstRowAsHeader": true, "RowSeparator": "\\r\\n", "ColumnSeparator": ",",
   "QuoteCharacter": "'", "EscapeCharacter": "\\\\", "NullValue": "N/A", "Encoding": "UTF-8"}}
"""
"""The example of a .tsv file, its backslash and its em spaces mended."""
TSV_AS_PRINTED = TSV_METADATA.replace(r'"\\"', r'"\"').replace("\n ", "\n\u2003", 1)
"""The two mistakes that the documents print, back again: in line 8 and in line 2."""
TSV_FILE = (
    "id,name,age,seqNum,__rowMarker__\r\n"
    "1,'Smith, John',40,1,0\r\n"
    "2,'O\\'Neill',N/A,2,0\r\n"
    "3,'N/A',41,3,0\r\n"
    "1,N/A,42,4,4\r\n"
)
TSV_COLUMNS = {"id": "int32", "name": "string", "age": "int32", "seqNum": "int64 not null"}
TSV_FORMAT = DelimitedText(quote="'", null_value="N/A", extension="tsv")
TSV_ROWS = [(1, None, 42, 4), (2, "O'Neill", None, 2), (3, "N/A", 41, 3)]


DATA_TYPES: dict[str, tuple[str, object]] = {
    "Double": ("3.14159", 3.14159),
    "Single": ("3.14", struct.unpack("f", struct.pack("f", 3.14))[0]),
    "Int16": ("-32768", -32_768),
    "Int32": ("32768", 32_768),
    "Int64": ("2147483648", 2_147_483_648),
    "DateTime": ("2025-06-17 14:30:00", datetime(2025, 6, 17, 14, 30)),  # noqa: DTZ001 - text carries no zone
    "IDate": ("2025-06-17", date(2025, 6, 17)),
    "ITime": ("14:30:00", "14:30:00"),
    "String": ("text", "text"),
    "Boolean": ("true", True),
    "ByteArray": ("00ff", b"\x00\xff"),
}
"""Data type to the example of the documents, or the first value that the type before lacks, and what it is read as."""


CODECS: tuple[Literal["none", "snappy", "gzip", "zstd"], ...] = ("none", "snappy", "gzip", "zstd")
"""The compressions that the documents name."""


def zone_of_all_examples(path: Path) -> LandingZone:
    """Publish all examples, the text ones by hand and the others by the writer, into a new zone."""
    zone = LandingZone(path, partner=partner())
    for name in EMPLOYEES:
        publish_employees(zone, name)
    publish_markers(zone)
    for folder in SCHEMA_FOLDERS:
        publish_in_schema(zone, folder)
    put_tsv(zone)
    put_data_types(zone)
    put_codecs(zone)
    return zone


def partner() -> PartnerEvents:
    info = SourceInfo(source_type="SQL", source_version="2019", additional_information={"testKey": "testValue"})
    return PartnerEvents(partner_name="testPartner", source_info=info)


def publish_employees(zone: LandingZone, name: str) -> LandingTable:
    """Write the rows of one of `EMPLOYEES` as they stand, markers and all, into one file."""
    header, *lines = [line.split(",") for line in EMPLOYEES[name][0].splitlines()]
    *columns, marker = header
    assert marker == ROW_MARKER
    cells = [[None if cell == "NULL" else cell for cell in line[:-1]] for line in lines]
    batch = pa.record_batch([pa.array(column, pa.string()) for column in zip(*cells, strict=True)], columns)
    table = zone.table(name, key_columns=["EmployeeID"], columns=batch.schema)
    Writer(table).write(ChangeBatch(batch, pa.array([int(line[-1]) for line in lines], pa.int32())), position=1)
    return table


def publish_markers(zone: LandingZone) -> LandingTable:
    """Meet each marker with a key that the target lacks, and with one that it has."""
    table = zone.table("markers", key_columns=["id"], columns={"id": "string", "v": "string"})
    writer = Writer(table)
    verbs = {0: writer.insert, 1: writer.update, 2: writer.delete, 4: writer.upsert}
    writer.initial_load([{"id": f"{marker} present", "v": "old"} for marker in MARKERS], position=0)
    for marker in MARKERS:
        rows = [{"id": f"{marker} {where}", "v": "new"} for where in ("absent", "present")]
        verbs[marker](rows, position=marker + 1)
    return table


def markers_expected() -> list[tuple[str, str]]:
    return sorted(
        (f"{marker} {where}", value)
        for marker, cells in MARKERS.items()
        for where, values in zip(("absent", "present"), cells, strict=True)
        for value in values
    )


def publish_in_schema(zone: LandingZone, folder: str) -> LandingTable:
    schema, name = folder.split(".schema/")
    table = zone.table(name, schema_name=schema, key_columns=["C1"], columns={"C1": "string"})
    Writer(table).upsert([{"C1": folder}], position=1)
    return table


def put_tsv(zone: LandingZone, metadata: str = TSV_METADATA, name: str = "people") -> LandingTable:
    """Put the .tsv table there as another publisher would."""
    table = zone.table(name, columns=TSV_COLUMNS, format=TSV_FORMAT)
    assert zone.storage.create(table.path(data_file(1, "tsv")), TSV_FILE.encode()) is not None
    assert zone.storage.create(table.path(METADATA), metadata.encode()) is not None
    return table


def put_data_types(zone: LandingZone) -> None:
    """Put a CSV table of one row there, whose columns are named as their types."""
    columns = [{"Name": name, "DataType": name} for name in DATA_TYPES]
    metadata = {"keyColumns": ["Int32"], "SchemaDefinition": {"Columns": columns}}
    cells = ",".join(text for text, _ in DATA_TYPES.values())
    rows = f"{','.join(DATA_TYPES)},{ROW_MARKER}\r\n{cells},4\r\n"
    assert zone.storage.create(f"types/{data_file(1, 'csv')}", rows.encode()) is not None
    assert zone.storage.create(f"types/{METADATA}", json.dumps(metadata).encode()) is not None


def put_codecs(zone: LandingZone) -> None:
    """Put a Parquet table there, of one file for each of `CODECS`."""
    assert zone.storage.create(f"codecs/{METADATA}", b'{"keyColumns": ["codec"]}') is not None
    for number, codec in enumerate(CODECS, 1):
        sink = io.BytesIO()
        pq.write_table(pa.table({"codec": [codec]}), sink, compression=codec)
        assert zone.storage.create(f"codecs/{data_file(number)}", sink.getvalue()) is not None
