"""Delimited text in the metadata: the options and columns of a table, there and back."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmirror_writer.changes import ChangeBatch
from openmirror_writer.errors import SchemaRefusedError
from openmirror_writer.formats import DelimitedText
from openmirror_writer.formats.text import columns_of, definition_of, text_of, with_text
from openmirror_writer.metadata import TableMetadata, parse
from openmirror_writer.schema import ROW_MARKER, declared_columns

COLUMNS = declared_columns({"id": "int32 not null", "name": "string"})


def _read(properties: dict[str, object]) -> TableMetadata:
    return parse(TableMetadata, json.dumps(properties).encode(), file="orders/_metadata.json")


def _text(properties: dict[str, object]) -> DelimitedText | None:
    return text_of(_read(properties), file="orders/_metadata.json")


def _columns(*columns: dict[str, object]) -> pa.Schema:
    definition = _read({"SchemaDefinition": {"Columns": columns}}).schema_definition
    assert definition is not None
    return columns_of(definition, file="orders/_metadata.json")


@pytest.mark.rule(
    "2.6", "2.8", "5.2", "5.3", "5.4", "5.5", "5.6", "5.7", "5.8", "L21", "L22", "L23", "L24", "L25", "L26", "L28"
)
def test_bare_text_is_written_as_csv_with_every_option() -> None:
    written = json.loads(with_text(TableMetadata(key_columns=("id",)), DelimitedText(), COLUMNS).to_bytes())
    assert written == {
        "keyColumns": ["id"],
        "SchemaDefinition": {
            "Columns": [
                {"Name": "id", "DataType": "Int32", "IsNullable": False},
                {"Name": "name", "DataType": "String", "IsNullable": True},
            ]
        },
        "FileFormat": "CSV",
        "FileFormatTypeProperties": {
            "FirstRowAsHeader": True,
            "RowSeparator": "\r\n",
            "ColumnSeparator": ",",
            "QuoteCharacter": '"',
            "EscapeCharacter": "\\",
            "NullValue": "",
            "Encoding": "UTF-8",
        },
    }


@pytest.mark.rule("2.6", "2.7", "L28", "L29")
def test_another_extension_makes_it_delimited_text() -> None:
    metadata = with_text(TableMetadata(), DelimitedText(extension="tsv", column_separator="\t"), COLUMNS)
    assert (metadata.file_format, metadata.file_extension) == ("DelimitedText", "tsv")


def test_unknown_properties_stay() -> None:
    standing = _read({"colour": "red", "FileFormatTypeProperties": {"Level": 3}})
    written = json.loads(with_text(standing, DelimitedText(), COLUMNS).to_bytes())
    assert (written["colour"], written["FileFormatTypeProperties"]["Level"]) == ("red", 3)


@pytest.mark.rule("5.10")
def test_columns_that_text_cannot_hold_are_refused() -> None:
    with pytest.raises(SchemaRefusedError, match="use Parquet, or declare it string"):
        with_text(TableMetadata(), DelimitedText(), declared_columns({"a": "decimal(9,2)"}))


@pytest.mark.rule(
    "5.3", "5.4", "5.5", "5.6", "5.7", "5.8", "L21", "L22", "L23", "L24", "L25", "L26", on=("producer", "mirror")
)
@given(
    st.builds(
        DelimitedText,
        column_separator=st.sampled_from([",", ";", "|", "\t"]),
        row_separator=st.sampled_from(["\r\n", "\n", "\r"]),
        quote=st.sampled_from(['"', "'", ""]),
        escape=st.sampled_from(["\\", "/", '"', ""]),
        null_value=st.sampled_from(["", "N/A", "\\N"]),
        encoding=st.sampled_from(["UTF-8", "utf-16", "Windows-1252", "Shift_JIS"]),
        extension=st.sampled_from(["csv", "tsv", "CSV"]),
    )
)
def test_options_come_back_from_the_file(text: DelimitedText) -> None:
    data = with_text(TableMetadata(), text, COLUMNS).to_bytes()
    assert text_of(parse(TableMetadata, data, file="m"), file="m") == text


@pytest.mark.rule("5.3", "5.4", "5.5", "5.6", "5.7", "5.8", "L21", "L22", "L23", "L24", "L25", "L26", on="mirror")
def test_properties_that_are_absent_have_their_defaults() -> None:
    assert _text({"FileFormat": "CSV"}) == DelimitedText()
    assert _text({"FileFormat": "CSV", "FileFormatTypeProperties": {"NullValue": "-"}}) == DelimitedText(null_value="-")


def test_an_empty_quote_is_not_absent() -> None:
    text = _text({"FileFormat": "CSV", "FileFormatTypeProperties": {"QuoteCharacter": "", "EscapeCharacter": ""}})
    assert text == DelimitedText(quote="", escape="")


@pytest.mark.rule("2.6", "L28", on="mirror")
def test_a_schema_definition_alone_means_csv() -> None:
    assert _text({"SchemaDefinition": {"Columns": []}}) == DelimitedText()


@pytest.mark.parametrize("properties", [{}, {"FileFormat": "Parquet", "SchemaDefinition": {"Columns": []}}])
def test_a_table_that_is_not_text_has_no_text_format(properties: dict[str, object]) -> None:
    assert _text(properties) is None


@pytest.mark.rule("2.7", "L29", on="mirror")
def test_the_dot_of_an_extension_is_skipped() -> None:
    assert _text({"FileFormat": "DelimitedText", "FileExtension": ".psv"}) == DelimitedText(extension="psv")


@pytest.mark.rule("2.6", "2.7", "5.4", "L22", "L28", "L29", on="mirror")
@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"FileFormat": "DelimitedText"}, "there is no FileExtension"),
        ({"FileFormat": "DelimitedText", "FileExtension": "."}, "there is no FileExtension"),
        ({"FileFormat": "Json"}, "the FileFormat 'Json' is not known"),
        ({"FileFormat": "CSV", "FileFormatTypeProperties": {"ColumnSeparator": ":"}}, "column_separator=':'"),
    ],
)
def test_metadata_that_describe_no_text_we_know_are_refused_with_the_file(
    properties: dict[str, object], message: str
) -> None:
    with pytest.raises(SchemaRefusedError, match=message) as caught:
        _text(properties)
    assert caught.value.file == "orders/_metadata.json"


# ------------------------------------------------------------------------------------------------------------ columns


@pytest.mark.rule("5.9", "5.11", "5.12", "L13", on="mirror")
@pytest.mark.parametrize(
    ("data_type", "kind"),
    [
        ("Double", pa.float64()),
        ("Single", pa.float32()),
        ("Int16", pa.int16()),
        ("Int32", pa.int32()),
        ("Int64", pa.int64()),
        ("DateTime", pa.timestamp("us")),
        ("IDate", pa.date32()),
        ("ITime", pa.string()),
        ("String", pa.string()),
        ("Boolean", pa.bool_()),
        ("ByteArray", pa.binary()),
    ],
)
def test_each_documented_data_type_is_a_column(data_type: str, kind: pa.DataType) -> None:
    assert _columns({"Name": "a", "DataType": data_type}) == pa.schema([pa.field("a", kind, nullable=True)])


@pytest.mark.rule("5.9", "5.11", "L13")
@pytest.mark.parametrize(
    ("kind", "data_type"),
    [
        ("float64", "Double"),
        ("float32", "Single"),
        ("int8", "Int16"),
        ("int16", "Int16"),
        ("uint8", "Int16"),
        ("int32", "Int32"),
        ("uint16", "Int32"),
        ("int64", "Int64"),
        ("uint32", "Int64"),
        ("timestamp", "DateTime"),
        ("timestamp_ntz", "DateTime"),
        ("date", "IDate"),
        ("bool", "Boolean"),
        ("binary", "ByteArray"),
        ("string", "String"),
    ],
)
def test_each_column_type_has_its_data_type(kind: str, data_type: str) -> None:
    assert definition_of(declared_columns({"a": kind})).columns[0].data_type == data_type


@pytest.mark.rule("2.16", "L31", on="mirror")
def test_is_nullable_is_read() -> None:
    read = _columns({"Name": "a", "DataType": "Int32", "IsNullable": False}, {"Name": "b", "DataType": "Int32"})
    assert [field.nullable for field in read] == [False, True]


@pytest.mark.rule("2.17", on="mirror")
def test_a_row_marker_in_the_definition_is_skipped() -> None:
    read = _columns({"Name": "a", "DataType": "Int32"}, {"Name": ROW_MARKER, "DataType": "Int32"})
    assert read.names == ["a"]


@pytest.mark.rule("2.17")
def test_the_row_marker_is_not_listed() -> None:
    metadata = with_text(TableMetadata(), DelimitedText(), COLUMNS)
    assert metadata.schema_definition is not None
    assert [column.name for column in metadata.schema_definition.columns] == ["id", "name"]


@pytest.mark.rule("5.9", "5.10", "L13", on="mirror")
@pytest.mark.parametrize("data_type", ["Decimal", "int32", ""])
def test_an_unknown_data_type_is_refused(data_type: str) -> None:
    with pytest.raises(SchemaRefusedError, match="is not known; use one of: Double, Single, Int16") as caught:
        _columns({"Name": "a", "DataType": data_type})
    assert (caught.value.file, caught.value.column) == ("orders/_metadata.json", "a")


def test_names_that_differ_by_case_at_most_are_refused_with_the_file() -> None:
    with pytest.raises(SchemaRefusedError, match="differ by case at most") as caught:
        _columns({"Name": "a", "DataType": "Int32"}, {"Name": "A", "DataType": "Int32"})
    assert caught.value.file == "orders/_metadata.json"


# -------------------------------------------------------------------------------------------- the documents' example


def test_rows_of_the_documented_tsv_example_are_written_and_read_by_its_own_metadata() -> None:
    properties = {"RowSeparator": "\r\n", "ColumnSeparator": ",", "QuoteCharacter": "'", "EscapeCharacter": "\\"}
    options = {"FirstRowAsHeader": True, **properties, "NullValue": "N/A", "Encoding": "UTF-8"}
    text = _text({"FileFormat": "DelimitedText", "FileExtension": "tsv", "FileFormatTypeProperties": options})
    assert text == DelimitedText(quote="'", null_value="N/A", extension="tsv")
    columns = _columns(
        {"Name": "id", "DataType": "Int32"},
        {"Name": "name", "DataType": "String", "IsNullable": True},
        {"Name": "age", "DataType": "Int32", "IsNullable": True},
        {"Name": "seqNum", "DataType": "Int64", "IsNullable": False},
    )
    rows: list[dict[str, Any]] = [
        {"id": 1, "name": "O'Neill", "age": None, "seqNum": 7},
        {"id": 2, "name": "N/A", "age": 40, "seqNum": 8},
        {"id": 3, "name": None, "age": 41, "seqNum": 9},
    ]
    batch = ChangeBatch(pa.RecordBatch.from_pylist(rows, schema=columns), pa.array([4, 4, 4], pa.int32()))
    data = text.encode(columns, [batch])
    assert data == (b"id,name,age,seqNum,__rowMarker__\r\n1,'O\\'Neill',N/A,7,4\r\n2,'N/A',40,8,4\r\n3,N/A,41,9,4\r\n")
    assert text.read(data, columns, "t/1").to_pylist() == [{**row, ROW_MARKER: 4} for row in rows]
