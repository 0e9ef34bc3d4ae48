"""Columns: how they are declared, in which types they stand in files, and what is refused."""

from typing import Any

import pyarrow as pa
import pytest

from openmirror_writer.errors import SchemaRefusedError
from openmirror_writer.schema import (
    check_column_names,
    check_keys,
    declared_columns,
    declared_type,
    file_type,
    landed_type,
    type_text,
)

NAMES: dict[str, pa.DataType] = {
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "uint8": pa.uint8(),
    "uint16": pa.uint16(),
    "uint32": pa.uint32(),
    "uint64": pa.uint64(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "decimal(1,0)": pa.decimal128(1, 0),
    "decimal(18,2)": pa.decimal128(18, 2),
    "decimal(38,38)": pa.decimal128(38, 38),
    "bool": pa.bool_(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
SYNONYMS = {"float": "float32", "double": "float64", "boolean": "bool", "date32": "date"}
IN_FILES: list[tuple[pa.DataType, pa.DataType]] = [
    (pa.large_string(), pa.string()),
    (pa.string_view(), pa.string()),
    (pa.dictionary(pa.int8(), pa.large_string()), pa.string()),
    (pa.large_binary(), pa.binary()),
    (pa.binary_view(), pa.binary()),
    (pa.binary(16), pa.binary()),
    (pa.dictionary(pa.int32(), pa.int64()), pa.int64()),
    (pa.date64(), pa.date32()),
    (pa.timestamp("s"), pa.timestamp("us")),
    (pa.timestamp("ms"), pa.timestamp("ms")),
    (pa.timestamp("ns"), pa.timestamp("us")),
    (pa.timestamp("ms", tz="Europe/Berlin"), pa.timestamp("ms", tz="UTC")),
    (pa.timestamp("ns", tz="+02:00"), pa.timestamp("us", tz="UTC")),
    (pa.decimal32(9, 2), pa.decimal128(9, 2)),
    (pa.decimal64(18, 2), pa.decimal128(18, 2)),
    (pa.decimal256(38, 2), pa.decimal128(38, 2)),
    (pa.float16(), pa.float32()),
    (pa.json_(), pa.string()),
    (pa.run_end_encoded(pa.int32(), pa.string_view()), pa.string()),
]
WAYS_OUT: list[tuple[pa.DataType, str]] = [
    (pa.null(), "declare it with columns="),
    (pa.list_(pa.int64()), "declare it as 'json'"),
    (pa.struct([("a", pa.int64())]), "declare it as 'json'"),
    (pa.map_(pa.string(), pa.int64()), "declare it as 'json'"),
    (pa.time32("ms"), "declare it as 'time'"),
    (pa.time64("us"), "declare it as 'time'"),
    (pa.duration("us"), "int64"),
    (pa.month_day_nano_interval(), "text"),
    (pa.uuid(), "declare it as 'uuid'"),
    (pa.bool8(), "hand over its storage"),
    (pa.dictionary(pa.int8(), pa.duration("s")), "int64"),
    (pa.decimal256(39, 2), "Delta holds 1 to 38 digits"),
    (pa.decimal128(5, -2), "Delta holds 1 to 38 digits"),
]


# ----------------------------------------------------------------------------------------------------- declarations


@pytest.mark.parametrize(("name", "kind"), NAMES.items(), ids=NAMES)
def test_a_declared_name_is_this_arrow_type(name: str, kind: pa.DataType) -> None:
    assert declared_columns({"c": name}) == pa.schema([("c", kind)])


@pytest.mark.parametrize(("name", "same"), SYNONYMS.items())
def test_a_type_may_have_a_second_name(name: str, same: str) -> None:
    assert declared_columns({"c": name}) == declared_columns({"c": same})


@pytest.mark.parametrize(("name", "kind"), NAMES.items(), ids=NAMES)
def test_a_file_type_is_printed_as_it_is_declared(name: str, kind: pa.DataType) -> None:
    assert type_text(kind) == name


def test_a_file_type_that_has_no_name_is_printed_as_arrow_names_it() -> None:
    assert type_text(pa.timestamp("ms", tz="UTC")) == "timestamp[ms, tz=UTC]"


@pytest.mark.parametrize("text", ["INT64", "  int64 ", "Int64  NOT   NULL"])
def test_case_and_white_space_do_not_count(text: str) -> None:
    assert declared_columns({"c": text}).field("c").type == pa.int64()


@pytest.mark.parametrize("text", ["decimal(18,2)", "DECIMAL( 18 , 2 )"])
def test_a_decimal_may_be_spaced(text: str) -> None:
    assert declared_columns({"c": text}).field("c").type == pa.decimal128(18, 2)


@pytest.mark.parametrize("kind", ["string", "decimal(18,2)"])
def test_a_column_is_nullable_unless_declared_otherwise(kind: str) -> None:
    columns = declared_columns({"a": kind, "b": f"{kind} not null"})
    assert [field.nullable for field in columns] == [True, False]


def test_columns_keep_their_order() -> None:
    assert declared_columns({"z": "int8", "a": "int8", "m": pa.int8()}).names == ["z", "a", "m"]


def test_an_arrow_schema_declares_types_and_nullability_and_no_metadata() -> None:
    given = pa.schema(
        [pa.field("a", pa.large_string(), nullable=False, metadata={"x": "y"})], metadata={"pandas": "{}"}
    )
    columns = declared_columns(given)
    assert columns.equals(pa.schema([pa.field("a", pa.string(), nullable=False)]), check_metadata=True)


@pytest.mark.parametrize(
    "kind", ["int", "varchar(20)", "decimal", "decimal(18)", "decimal(\u0661,1)", "", "not null", "interval"]
)
def test_an_unknown_type_name_is_refused_with_the_known_ones(kind: str) -> None:
    with pytest.raises(SchemaRefusedError, match=r"known: decimal\(p,s\), int8, .*timestamp_ntz") as caught:
        declared_columns({"a": "int64", "b": kind})
    assert (caught.value.column, caught.value.type) == ("b", kind)


@pytest.mark.parametrize("kind", ["decimal(0,0)", "decimal(39,2)", "decimal(2,3)"])
def test_a_decimal_that_delta_cannot_hold_is_refused(kind: str) -> None:
    with pytest.raises(SchemaRefusedError, match="1 to 38 digits") as caught:
        declared_columns({"b": kind})
    assert (caught.value.column, caught.value.type) == ("b", kind)


@pytest.mark.parametrize("kind", [int, None, 64])
def test_a_type_that_is_neither_text_nor_arrow_is_refused(kind: Any) -> None:
    with pytest.raises(SchemaRefusedError, match="use a type name such as 'int64' or an Arrow type") as caught:
        declared_columns({"b": kind})
    assert caught.value.column == "b"


@pytest.mark.parametrize("columns", [[("a", "int64")], "int64", 3])
def test_columns_that_are_neither_a_map_nor_a_schema_are_refused(columns: Any) -> None:
    with pytest.raises(SchemaRefusedError, match="a map of name to type or a pyarrow.Schema"):
        declared_columns(columns)


@pytest.mark.parametrize("form", ["json", "uuid", "time"])
def test_a_column_that_is_stored_as_text_is_a_string_column_that_knows_its_form(form: str) -> None:
    columns = declared_columns({"a": f"{form} not null"})
    assert columns.equals(declared_columns({"a": "string not null"}))
    assert declared_type(columns.field("a")) == form
    assert declared_columns(columns).equals(columns, check_metadata=True)


@pytest.mark.parametrize(
    ("kind", "form"), [(pa.json_(), "json"), (pa.json_(pa.string_view()), "json"), (pa.uuid(), "uuid")], ids=str
)
def test_arrows_own_json_and_uuid_declare_the_same(kind: Any, form: str) -> None:
    for columns in (declared_columns({"a": kind}), declared_columns(pa.schema([("a", kind)]))):
        assert (columns.field("a").type, declared_type(columns.field("a"))) == (pa.string(), form)


# -------------------------------------------------------------------------------------------------------- file types


@pytest.mark.parametrize(("given", "stands"), IN_FILES, ids=str)
def test_representations_of_the_same_values_are_one_type_in_files(given: pa.DataType, stands: pa.DataType) -> None:
    assert file_type("c", given) == stands


@pytest.mark.parametrize("kind", [*NAMES.values(), *(stands for _, stands in IN_FILES)], ids=str)
def test_a_file_type_stays_what_it_is(kind: pa.DataType) -> None:
    assert file_type("c", kind) == kind


@pytest.mark.rule("4.9")
@pytest.mark.parametrize(("kind", "way_out"), WAYS_OUT, ids=str)
def test_a_type_that_cannot_be_mirrored_is_refused_with_the_way_out(kind: pa.DataType, way_out: str) -> None:
    with pytest.raises(SchemaRefusedError, match=way_out) as caught:
        file_type("payload", kind)
    assert caught.value.column == "payload"
    assert caught.value.type is not None


@pytest.mark.parametrize(
    ("kind", "reason"), [(pa.timestamp("ns"), "nanoseconds"), (pa.float16(), "16-bit"), (pa.uuid(), "'uuid'")]
)
def test_a_column_of_a_file_that_spark_cannot_read_is_refused_though_a_writer_converts_it(
    kind: Any, reason: str
) -> None:
    with pytest.raises(SchemaRefusedError, match=reason) as caught:
        landed_type("at", kind)
    assert (caught.value.column, caught.value.type) == ("at", str(kind))


@pytest.mark.parametrize(
    ("kind", "stands"), [(pa.large_string(), pa.string()), (pa.timestamp("ms"), pa.timestamp("ms"))]
)
def test_a_column_of_a_file_that_spark_reads_is_one_of_ours(kind: Any, stands: Any) -> None:
    assert landed_type("v", kind) == stands


# ------------------------------------------------------------------------------------------------------------- names


@pytest.mark.rule("4.9")
@pytest.mark.parametrize(
    ("names", "reason"),
    [
        ([], "at least one column"),
        (["a", ""], "must be text that is not empty"),
        (["a", 1], "must be text that is not empty, got 1"),
        (["a", "__rowMarker__"], "is the writer's own"),
        (["a", "__ROWMARKER__"], "is the writer's own"),
        (["a", "b\ud800"], "lone surrogate"),
        (["a", "a"], "'a' and 'a' differ by case at most"),
        (["Straße", "STRASSE"], "differ by case at most"),
    ],
)
def test_names_that_cannot_stand_together_are_refused(names: list[object], reason: str) -> None:
    with pytest.raises(SchemaRefusedError, match=reason):
        check_column_names(names)


@pytest.mark.parametrize("name", ["a b", "a.b", "größe", "订单", "a,;{}()=", "_id", " ", "a`b", "x" * 1_000])
def test_a_usual_name_is_taken(name: str) -> None:
    assert declared_columns({name: "int64"}).names == [name]


def test_a_schema_with_one_name_twice_is_refused() -> None:
    with pytest.raises(SchemaRefusedError, match="differ by case at most") as caught:
        declared_columns(pa.schema([("a", pa.int8()), ("A", pa.int8())]))
    assert caught.value.column == "A"


# -------------------------------------------------------------------------------------------------------------- keys

COLUMNS = declared_columns({"id": "int64", "region": "string"})


@pytest.mark.parametrize("keys", [[], ["id"], ["region", "id"]])
def test_keys_are_columns_of_the_table(keys: list[str]) -> None:
    check_keys(keys, COLUMNS, table="orders")


def test_keys_are_taken_as_they_are_while_the_columns_are_not_known() -> None:
    check_keys(["anything"], None, table="orders")


@pytest.mark.parametrize(
    ("keys", "reason", "column"),
    [
        (["id", "id"], "name a column twice", None),
        (["id", "ID"], "name a column twice", None),
        (["nr"], "is none of the table's columns", "nr"),
        (["ID"], "is none of the table's columns", "ID"),
        ([7], "is no name", None),
    ],
)
def test_keys_that_do_not_fit_the_columns_are_refused(keys: Any, reason: str, column: str | None) -> None:
    with pytest.raises(SchemaRefusedError, match=reason) as caught:
        check_keys(keys, COLUMNS, table="orders")
    assert (caught.value.table, caught.value.column) == ("orders", column)
