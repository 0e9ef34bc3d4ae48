"""Names of folders and files."""

import re
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmirror_writer.errors import ConcurrentWriterError, SchemaRefusedError
from openmirror_writer.layout import (
    advance_file,
    case_twin,
    check_name,
    claim_file,
    data_file,
    data_number,
    drop_record,
    sort_names,
    table_folder,
    table_label,
)

MOST_BYTES = 255
NO_DATA_FILES = {
    "the metadata": "_metadata.json",
    "19 digits": "0000000000000000001.parquet",
    "21 digits": "000000000000000000001.parquet",
    "number 0: the first is 1": "00000000000000000000.parquet",
    "no extension": "00000000000000000001",
    "an empty extension": "00000000000000000001.",
    "two extensions": "00000000000000000001.csv.gz",
    "a temporary name": "_00000000000000000001.parquet",
    "a line break": "00000000000000000001.parquet\n",
    "digits of another script": "\u0660" * 19 + "\u0661.parquet",
    "a sign": "+0000000000000000001.parquet",
}
REFUSED = {
    "": "is empty",
    "  ": "is empty",
    "_orders": "the service ignores",
    "..": "holds a path",
    "a/b": "holds a path",
    "a\\b": "holds a path",
    " orders": "white space",
    "orders ": "white space",
    "orders.": "ends with a dot",
    "orders.schema": "schema folder",
    "orders.SCHEMA": "schema folder",
    "a:b": "holds ':'",
    "50%": "holds '%'",
    "a#b": "holds '#'",
    "a\nb": r"holds '\n'",
    "a\ud800": r"holds '\ud800'",
    "a\u00a0b": r"holds '\xa0'",
}


@given(st.integers(1, 10**20 - 1))
def test_a_number_comes_back_from_its_name(number: int) -> None:
    assert data_number(data_file(number)) == number


@pytest.mark.rule("4.2", "L37")
@given(st.integers(1, 10**20 - 1), st.integers(1, 10**20 - 1))
def test_names_sort_as_their_numbers_do(one: int, other: int) -> None:
    assert (data_file(one) < data_file(other)) == (one < other)


@pytest.mark.rule("4.2", "L37")
@pytest.mark.parametrize("name", NO_DATA_FILES.values(), ids=NO_DATA_FILES)
def test_this_is_no_data_file(name: str) -> None:
    assert data_number(name) is None
    assert sort_names({name: 1}).data == {}


@pytest.mark.rule("1.4")
def test_a_folder_is_sorted_into_what_its_files_are() -> None:
    names = [data_file(1), data_file(12, "CSV"), advance_file(12, 0), advance_file(12, 10), claim_file(12, "af01")]
    special = ["_metadata.json", "_generation.json", "_dropping.json"]
    others = ["_3f.tmp", "readme.txt", "_00000000000000000001.0.staged"]
    folder = sort_names({name: name for name in names + special + others})
    assert folder.data == {1: names[0], 12: names[1]}
    assert folder.extensions == {1: "parquet", 12: "CSV"}
    assert folder.advances == {(12, 0): names[2], (12, 10): names[3]}
    assert folder.claims == {names[4]: names[4]}
    assert folder.special == {name: name for name in special}
    assert folder.last == 12


def test_an_empty_folder_has_the_last_number_0() -> None:
    assert sort_names({}).last == 0


def test_two_data_files_of_one_number_are_refused_by_name() -> None:
    twins = f"{data_file(7, 'csv')} and {data_file(7)}"
    with pytest.raises(ConcurrentWriterError, match=re.escape(twins)):
        sort_names({data_file(7): 1, data_file(7, "csv"): 2})
    with pytest.raises(ConcurrentWriterError, match=re.escape(twins)):
        sort_names({data_file(7, "csv"): 2, data_file(7): 1})


@pytest.mark.rule("1.1")
@pytest.mark.parametrize(("name", "reason"), REFUSED.items(), ids=map(repr, REFUSED))
@pytest.mark.parametrize("kind", ["table", "schema"])
def test_a_name_that_cannot_be_a_folder_is_refused_with_the_reason(kind: str, name: str, reason: str) -> None:
    with pytest.raises(SchemaRefusedError, match=re.escape(reason)) as caught:
        check_name(kind, name)
    assert caught.value.message.startswith(f"{kind} name {name!r}")
    assert caught.value.table == (name if kind == "table" else None)


@pytest.mark.parametrize("name", ["orders", "Order Lines", "größe", "订单", "a.b", "dbo", "0", "x" * 255])
def test_a_usual_name_is_taken(name: str) -> None:
    check_name("table", name)


def test_a_name_that_is_no_text_is_refused() -> None:
    with pytest.raises(SchemaRefusedError, match="is int, not text"):
        check_name("table", 7)  # type: ignore[arg-type]


@pytest.mark.parametrize(("kind", "most"), [("table", 255), ("schema", 255 - len(".schema"))])
def test_a_folder_name_has_at_most_255_bytes(kind: str, most: int) -> None:
    check_name(kind, "é" * (most // 2))
    with pytest.raises(SchemaRefusedError, match=f"is longer than {most} bytes"):
        check_name(kind, "é" * (most // 2 + 1))


def test_the_longest_schema_name_makes_a_folder_that_can_be_made() -> None:
    folder = table_folder("x" * 255, "s" * 248)
    assert [len(part) for part in folder.split("/")] == [255, 255]


def test_two_tables_never_have_one_label() -> None:
    names = ["".join(letters) for length in (1, 2, 3) for letters in product("a.`", repeat=length)]
    tables = list(product(names, [None, *names]))
    assert len({table_label(name, schema_name) for name, schema_name in tables}) == len(tables)


def test_the_note_of_a_drop_fits_a_file_name_for_every_table() -> None:
    longest = [table_label("x" * 255, "s" * 248), table_label("y" * 255, "s" * 248), table_label("訂" * 85, None)]
    paths = [drop_record(label) for label in longest]
    assert all(len(path.removeprefix("_openmirror/").encode()) <= MOST_BYTES for path in paths)
    assert len(set(paths)) == len(paths)


@pytest.mark.rule("1.1")
@pytest.mark.parametrize(("name", "twin"), [("ORDERS", "orders"), ("orders", None), ("STRASSE", "straße")])
def test_a_twin_differs_by_case_only(name: str, twin: str | None) -> None:
    assert case_twin(name, ["items", "orders", "straße"]) == twin
