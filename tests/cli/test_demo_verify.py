"""The demo's comparison, without Spark."""

from __future__ import annotations

import io
from collections import Counter
from uuid import uuid4

import pytest
from rich.console import Console

from openmirror_writer import LandingZone, OpenMirrorError
from openmirror_writer.cli.demo_source import COLUMNS, Flights
from openmirror_writer.cli.demo_verify import Comparison, as_bag, compare, compare_all, print_comparisons
from openmirror_writer.cli.flights_data import flights_path

ROW = dict.fromkeys(COLUMNS)


def printed(*comparisons: Comparison) -> str:
    console = Console(file=io.StringIO(), width=500)
    print_comparisons(console, list(comparisons))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_equal_tables_have_no_differences() -> None:
    rows = as_bag([ROW, ROW, {**ROW, "flight": 1}])
    same = compare("source", rows, "Delta table", rows)
    assert (same.differences, same.rows) == (0, (3, 3))
    assert printed(same).endswith("\n0 differences\n")


@pytest.mark.parametrize(
    ("theirs", "differences"),
    [
        ([{**ROW, "tailnum": "N1"}], 1),
        ([], 1),
        ([ROW, ROW], 1),
        ([{**ROW, "flight": 1}, {**ROW, "flight": 2}], 2),
    ],
)
def test_a_changed_a_missing_and_a_double_row_each_differ(theirs: list[dict[str, object]], differences: int) -> None:
    comparison = compare("source", as_bag([ROW]), "Delta table", as_bag(theirs))
    assert comparison.differences == differences
    text = printed(comparison)
    assert f"{differences} difference" in text
    assert "0 differences" not in text


def test_differing_rows_are_printed_and_the_rest_is_counted() -> None:
    rows = as_bag({**ROW, "flight": number} for number in range(7))
    text = printed(compare("source", rows, "Delta table", Counter()))
    assert text.count("only in the source: ") == 5
    assert "flight=0 " in text
    assert "and 2 more only in the source" in text


def test_a_zone_without_the_demo_is_an_error() -> None:
    zone = LandingZone(f"memory://{uuid4().hex}")
    with pytest.raises(OpenMirrorError, match="run openmirror demo first"):
        compare_all(Flights(flights_path(), days=1), zone, "nowhere")
