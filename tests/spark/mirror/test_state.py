"""Versions, checks and claims."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmirror_writer.errors import ApplyError
from openmirror_writer.spark.mirror.state import TableName, check_of, is_table, pack, unpack

INCARNATIONS = st.integers(0, (1 << 13) - 1)
NUMBERS = st.integers(0, (1 << 30) - 1)


@given(INCARNATIONS, NUMBERS, st.text())
def test_a_version_tells_what_it_was_packed_from(incarnation: int, number: int, identity: str) -> None:
    version = pack(incarnation, number, identity)
    assert unpack(version) == (incarnation, number, check_of(identity) if number else 0)
    assert 0 <= version < 1 << 63, "Delta stores a signed 64-bit number"


@given(st.tuples(INCARNATIONS, NUMBERS), st.tuples(INCARNATIONS, NUMBERS), st.text(), st.text())
def test_a_later_life_or_a_later_file_has_the_higher_version(
    one: tuple[int, int], other: tuple[int, int], identity: str, another: str
) -> None:
    if one < other:
        assert pack(*one, identity) < pack(*other, another)


@pytest.mark.parametrize(("incarnation", "number"), [(1 << 13, 1), (1, 1 << 30)])
def test_what_no_longer_fits_the_version_is_refused(incarnation: int, number: int) -> None:
    with pytest.raises(ApplyError, match="another target"):
        pack(incarnation, number, "b")


@pytest.mark.rule("1.2", "L53")
def test_a_table_without_schema_lands_in_dbo() -> None:
    assert TableName("orders").target == "dbo/orders"
    assert TableName("orders", "sales").target == "sales/orders"
    assert TableName("orders", "sales").folder == "sales.schema/orders"


@pytest.mark.rule("1.3")
def test_folders_of_others_are_no_tables() -> None:
    assert [n for n in ("orders", "_openmirror", "sales.schema", "Sales.Schema") if is_table(n)] == ["orders"]
