"""`follow`: which columns the next files have, and which changes are refused, by the landing zone's section 7."""

from __future__ import annotations

import pyarrow as pa
import pytest

from openmirror_writer.errors import SchemaRefusedError
from openmirror_writer.schema import declared_columns
from openmirror_writer.writer.drift import FileColumns, follow

STANDING = declared_columns({"id": "int64", "n": "int32 not null", "v": "string", "d": "date"})
SAME = {"id": "int64", "n": "int32 not null", "v": "string", "d": "date"}


def followed(columns: dict[str, str]) -> FileColumns:
    return follow(STANDING, declared_columns(columns), ("id",), table="t", file="t/1")


def test_the_same_columns_in_another_order_change_nothing() -> None:
    assert followed(dict(reversed(SAME.items()))) == FileColumns(STANDING)


def test_new_columns_stand_behind_the_others_in_their_order() -> None:
    found = followed({"z": "bool", **SAME, "a": "decimal(9,2)"})
    assert found == FileColumns(declared_columns({**SAME, "z": "bool", "a": "decimal(9,2)"}))


def test_a_column_that_went_stays_in_the_files() -> None:
    assert followed({"id": "int64", "n": "int32 not null", "d": "date"}) == FileColumns(STANDING, frozenset({"v"}))


@pytest.mark.rule("7.5", "L62")
def test_a_renamed_column_is_one_that_went_and_one_that_came() -> None:
    found = followed({"id": "int64", "n": "int32 not null", "w": "string", "d": "date"})
    assert found == FileColumns(declared_columns({**SAME, "w": "string"}), frozenset({"v"}))


@pytest.mark.rule("2.14", "7.3", "7.4", "L61")
@pytest.mark.parametrize(
    ("columns", "rule", "column"),
    [
        ({**SAME, "w": "int8 not null"}, "7.3", "w"),
        ({"id": "int64", "v": "string", "d": "date"}, "7.3", "n"),
        ({**SAME, "n": "int64 not null"}, "7.4", "n"),
        ({**SAME, "d": "timestamp"}, "7.4", "d"),
        ({**SAME, "v": "string not null"}, "7.4", "v"),
        ({**SAME, "n": "int32"}, "7.4", "n"),
        ({"id": "int64", "n": "int32 not null", "V": "string", "d": "date"}, "7.5", "V"),
        ({"n": "int32 not null", "v": "string", "d": "date"}, "7.6", "id"),
    ],
)
def test_a_change_that_the_mirror_stops_at_is_refused_with_its_rule_and_the_way_out(
    columns: dict[str, str], rule: str, column: str
) -> None:
    with pytest.raises(SchemaRefusedError, match=rf"{column!r}.*\(rule {rule}\).*drop_table and load again") as caught:
        followed(columns)
    assert (caught.value.table, caught.value.file, caught.value.column) == ("t", "t/1", column)
    assert caught.value.type is not None


def test_milliseconds_do_not_become_microseconds() -> None:
    standing = pa.schema([pa.field("id", pa.int64()), pa.field("at", pa.timestamp("ms"))])
    with pytest.raises(SchemaRefusedError, match="rule 7.4"):
        follow(standing, declared_columns({"id": "int64", "at": "timestamp_ntz"}), ("id",), table="t")
