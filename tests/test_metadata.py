"""The JSON files of a landing zone."""

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from openmirror_writer.errors import ApplyError, SchemaRefusedError
from openmirror_writer.metadata import (
    BY_TIME,
    SEQUENTIAL,
    Claim,
    ColumnDefinition,
    FileFormatTypeProperties,
    Generation,
    PartnerEvents,
    SchemaDefinition,
    SourceInfo,
    TableMetadata,
    copied_mistakes,
    parse,
    parse_claim,
)
from tests.worked_examples import TSV_METADATA as TSV

EVERYTHING = {"keyColumns": ["id", "Region"], "fileDetectionStrategy": BY_TIME, "isUpsertDefaultRowMarker": True}
_PROPERTIES = list(EVERYTHING)


def _read(text: str) -> TableMetadata:
    return parse(TableMetadata, text.encode(), file="orders/_metadata.json")


@pytest.mark.rule("2.1", "2.2", "2.3")
def test_all_properties_are_read() -> None:
    metadata = _read(json.dumps(EVERYTHING))
    assert metadata.key_columns == ("id", "Region")
    assert metadata.file_detection_strategy == "LastUpdateTimeFileDetection"
    assert metadata.is_upsert_default_row_marker


@pytest.mark.rule("2.2", "2.3")
def test_an_empty_object_has_the_documented_defaults() -> None:
    assert _read("{}") == TableMetadata(
        key_columns=(), file_detection_strategy="SequentialFileName", is_upsert_default_row_marker=False
    )


@pytest.mark.rule("2.9")
@given(st.data())
def test_property_names_are_read_in_any_casing_and_written_as_documented(data: st.DataObject) -> None:
    spelled = {
        "".join(data.draw(st.sampled_from([letter.lower(), letter.upper()])) for letter in name): EVERYTHING[name]
        for name in _PROPERTIES
    }
    metadata = _read(json.dumps(spelled))
    assert metadata == TableMetadata.model_validate(EVERYTHING)
    assert json.loads(metadata.to_bytes()) == EVERYTHING


def test_only_the_keys_are_always_written() -> None:
    assert TableMetadata().to_bytes() == b'{"keyColumns":[]}'
    assert TableMetadata(key_columns=("größe",)).to_bytes() == '{"keyColumns":["größe"]}'.encode()


@pytest.mark.parametrize("name", _PROPERTIES)
def test_a_property_that_is_null_counts_as_absent(name: str) -> None:
    assert _read(json.dumps({name: None})) == TableMetadata()


@pytest.mark.rule("2.9")
def test_properties_that_we_do_not_know_are_kept_and_written_back() -> None:
    column = {"Name": "a", "DataType": "Geography", "Precision": 3}
    unknown = {
        "SchemaDefinition": {"Columns": [column], "Version": None},
        "FileFormatTypeProperties": {"Compression": {"Level": 3}},
        "colour": None,
    }
    metadata = _read(json.dumps({"KeyColumns": ["id"], **unknown}))
    assert json.loads(metadata.to_bytes()) == {"keyColumns": ["id"], **unknown}


def test_the_name_of_a_python_attribute_is_no_property() -> None:
    metadata = _read('{"key_columns": ["id"]}')
    assert metadata.key_columns == ()
    assert json.loads(metadata.to_bytes()) == {"keyColumns": [], "key_columns": ["id"]}


@pytest.mark.rule("2.9")
@pytest.mark.parametrize("text", ['{"keyColumns": ["a"], "KeyColumns": ["b"]}', '{"KEYCOLUMNS": [], "keycolumns": []}'])
def test_two_spellings_of_one_property_are_refused(text: str) -> None:
    with pytest.raises(SchemaRefusedError, match="keyColumns stands there twice"):
        _read(text)


@pytest.mark.rule("2.1", "2.2", "2.3")
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "Invalid JSON"),
        ('{"keyColumns": ["id"]', "Invalid JSON"),
        ("[]", "should be an object"),
        ('{"keyColumns": "id"}', "keyColumns: Input should be a valid array"),
        ('{"KEYCOLUMNS": [1]}', "keyColumns.0: Input should be a valid string"),
        ('{"fileDetectionStrategy": "newest"}', "fileDetectionStrategy: Input should be 'SequentialFileName'"),
        ('{"isUpsertDefaultRowMarker": "perhaps"}', "isUpsertDefaultRowMarker"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_file_and_the_property(text: str, reason: str) -> None:
    with pytest.raises(SchemaRefusedError, match=reason) as caught:
        _read(text)
    assert caught.value.file == "orders/_metadata.json"
    assert "mend it by hand" in caught.value.message


def test_bytes_that_are_no_utf_8_are_refused() -> None:
    with pytest.raises(SchemaRefusedError, match="orders/_metadata.json is not readable"):
        parse(TableMetadata, '{"keyColumns": []}'.encode("utf-16"), file="orders/_metadata.json")


def test_a_byte_order_mark_is_skipped() -> None:
    assert _read('\ufeff{"keyColumns": ["id"]}').key_columns == ("id",)


# ------------------------------------------------------------------------------------------------------ delimited text


def test_the_documented_tsv_example_is_read() -> None:
    metadata = _read(TSV)
    assert metadata == TableMetadata(
        key_columns=("id",),
        conditional_update_column="seqNum",
        schema_definition=SchemaDefinition(
            columns=(
                ColumnDefinition(name="id", data_type="Int32"),
                ColumnDefinition(name="name", data_type="String", is_nullable=True),
                ColumnDefinition(name="age", data_type="Int32", is_nullable=True),
                ColumnDefinition(name="seqNum", data_type="Int64", is_nullable=False),
            )
        ),
        file_format="DelimitedText",
        file_extension="tsv",
        file_format_type_properties=FileFormatTypeProperties(
            first_row_as_header=True,
            row_separator="\r\n",
            column_separator=",",
            quote_character="'",
            escape_character="\\",
            null_value="N/A",
            encoding="UTF-8",
        ),
    )


@pytest.mark.rule("2.4", "2.9", "L30")
def test_the_documented_tsv_example_is_written_as_it_was_read_with_the_documented_casing() -> None:
    written = _read(TSV).to_bytes().decode()
    expected = TSV.replace("KeyColumns", "keyColumns", 1)
    assert written == json.dumps(json.loads(_in_our_order(expected)), separators=(",", ":"))


def _in_our_order(text: str) -> str:
    properties = json.loads(text)
    order = ["keyColumns", "ConditionalUpdateColumn", "SchemaDefinition", "FileFormat", "FileExtension"]
    return json.dumps({name: properties[name] for name in [*order, "FileFormatTypeProperties"]})


def _respelled(value: object, spell: Callable[[str], str]) -> object:
    if isinstance(value, dict):
        return {spell(name): _respelled(inner, spell) for name, inner in value.items()}
    return [_respelled(inner, spell) for inner in value] if isinstance(value, list) else value


@pytest.mark.rule("2.9")
@pytest.mark.parametrize("spell", [str.lower, str.upper, str.swapcase], ids=["lower", "upper", "swapped"])
def test_nested_property_names_are_read_in_any_casing(spell: Callable[[str], str]) -> None:
    assert _read(json.dumps(_respelled(json.loads(TSV), spell))) == _read(TSV)


def test_two_spellings_of_one_nested_property_are_refused() -> None:
    with pytest.raises(SchemaRefusedError, match="Encoding stands there twice"):
        _read('{"FileFormatTypeProperties": {"Encoding": "UTF-8", "encoding": "ascii"}}')


@pytest.mark.parametrize("name", ["SchemaDefinition", "FileFormat", "FileExtension", "FileFormatTypeProperties"])
def test_a_text_property_that_is_null_counts_as_absent(name: str) -> None:
    assert _read(json.dumps({name: None})) == TableMetadata()


@pytest.mark.rule("5.2", "5.7", "L19", on=("producer", "mirror"))
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"FileFormatTypeProperties": {"FirstRowAsHeader": false}}', "FirstRowAsHeader.*it must be true"),
        ('{"SchemaDefinition": {"Columns": [{"Name": "a"}]}}', "SchemaDefinition.Columns.0.DataType: Field required"),
        ('{"SchemaDefinition": {}}', "SchemaDefinition.Columns: Field required"),
        ('{"FileFormatTypeProperties": {"NullValue": 0}}', "NullValue: Input should be a valid string"),
        ('{"ConditionalUpdateColumn": ["a"]}', "ConditionalUpdateColumn: Input should be a valid string"),
    ],
)
def test_text_properties_that_cannot_be_read_are_refused_by_name(text: str, reason: str) -> None:
    with pytest.raises(SchemaRefusedError, match=reason) as caught:
        _read(text)
    assert caught.value.file == "orders/_metadata.json"


# ---------------------------------------------------------------------------------- mistakes of the documents' examples


@pytest.mark.rule("2.10")
@pytest.mark.parametrize("after", [', "NullValue": "N/A"', ',\n "NullValue": "N/A"', ""])
def test_the_single_backslash_of_the_documents_is_named_with_line_and_fix(after: str) -> None:
    text = '{"keyColumns": ["id"],\n "FileFormatTypeProperties": {\n  "EscapeCharacter": "\\"' + after + "}\n}"
    with pytest.raises(SchemaRefusedError, match=r"Invalid JSON") as caught:
        _read(text)
    assert r'in line 3 write "EscapeCharacter": "\\"' in caught.value.message


@pytest.mark.rule("2.10")
@pytest.mark.parametrize("value", [BY_TIME, SEQUENTIAL, f'"{BY_TIME}', f"{BY_TIME},"])
def test_the_missing_quotes_of_the_documents_are_named_with_line_and_fix(value: str) -> None:
    with pytest.raises(SchemaRefusedError, match="Invalid JSON") as caught:
        _read('{"keyColumns": ["id"],\n\n "fileDetectionStrategy": ' + value + "\n}")
    assert 'in line 3 write the value of "fileDetectionStrategy" with quotes around it' in caught.value.message


@pytest.mark.rule("2.10")
def test_the_em_spaces_of_the_documents_are_named_with_line_and_fix() -> None:
    with pytest.raises(SchemaRefusedError, match="in line 2 indent with plain spaces"):
        _read('{\n\u2003"keyColumns": ["id"]\n}')


def test_the_line_of_a_mistake_is_the_line_of_its_value() -> None:
    ((line, _),) = copied_mistakes('{"escapecharacter":\n "\\"\n}')
    assert line == 2


def test_all_copied_mistakes_are_named_at_once_in_the_order_of_the_lines() -> None:
    text = '{\n\u2003"EscapeCharacter": "\\",\n "fileDetectionStrategy": ' + BY_TIME + "}"
    with pytest.raises(SchemaRefusedError, match="in line 2 indent .*; in line 2 write .*; in line 3 write"):
        _read(text)


def test_a_right_backslash_is_no_mistake_where_something_else_is_wrong() -> None:
    with pytest.raises(SchemaRefusedError, match="mend it by hand"):
        _read(TSV.replace('"FileExtension"', "FileExtension"))


@pytest.mark.parametrize("model", [TableMetadata(), Generation(generation="g")])
def test_a_file_that_was_read_does_not_change(model: BaseModel) -> None:
    with pytest.raises(ValidationError, match="frozen"):
        setattr(model, next(iter(type(model).model_fields)), "x")


# ---------------------------------------------------------------------------------------------------- partner events


def test_partner_events_come_back_as_they_were_written() -> None:
    info = SourceInfo(
        source_type="SQL", source_version="2022", additional_information={"a": None, "b": [1, {"c": "ü"}]}
    )
    events = PartnerEvents(partner_name="testPartner", source_info=info)
    assert parse(PartnerEvents, events.to_bytes(), file="_partnerEvents.json") == events


@pytest.mark.rule("3.1", "L15")
def test_partner_events_are_written_as_documented() -> None:
    info = SourceInfo(source_type="SQL", source_version="2022", additional_information={"edition": "x"})
    written = json.loads(PartnerEvents(partner_name="testPartner", source_info=info).to_bytes())
    source = {"sourceType": "SQL", "sourceVersion": "2022", "additionalInformation": {"edition": "x"}}
    assert written == {"partnerName": "testPartner", "sourceInfo": source}


def test_partner_events_without_a_name_are_refused() -> None:
    with pytest.raises(SchemaRefusedError, match="partnerName: Field required"):
        parse(PartnerEvents, b'{"sourceInfo": {"sourceType": "SQL"}}', file="_partnerEvents.json")


# --------------------------------------------------------------------------------------------------------- generation


def test_a_generation_comes_back_as_it_was_written() -> None:
    generation = Generation(generation="0b4f")
    assert generation.to_bytes() == b'{"generation":"0b4f"}'
    assert parse(Generation, generation.to_bytes(), file="f") == generation


@pytest.mark.parametrize("text", ["{}", '{"generation": ""}', '{"generation": 7}'])
def test_a_generation_without_an_id_is_refused(text: str) -> None:
    with pytest.raises(SchemaRefusedError, match="generation"):
        parse(Generation, text.encode(), file="orders/_generation.json")


# --------------------------------------------------------------------------------------------------------------- claims


def test_a_claim_is_read_as_it_is_written() -> None:
    assert parse_claim(Claim(last=7).to_bytes(), file="t/_c.json") == Claim(last=7)


@pytest.mark.parametrize("text", ["", "{}", '{"last": 0}', '{"last": "x"}', "7"])
def test_a_damaged_claim_is_refused_with_the_way_out(text: str) -> None:
    with pytest.raises(ApplyError, match=r"t/_c.json does not say where a batch .* ends: if no mirror runs") as caught:
        parse_claim(text.encode(), file="t/_c.json")
    assert caught.value.file == "t/_c.json"
