"""What `check` reads: little, one file at a time, and from a folder that others work in."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from openmirror_writer import LandingZone, StorageError, check
from openmirror_writer.check.facts import ParquetFacts, read_facts
from openmirror_writer.storage import ReadFile, answer_to
from tests.check.landing import ForeignZone, OurZone, parquet, rows
from tests.check.planted import at, text
from tests.writer.feeder import Tapped

MANY = 20_000


def requests_for(table: pa.Table, **options: Any) -> tuple[list[ReadFile], ParquetFacts]:
    zone = ForeignZone(files=0)
    data = parquet(table, **options)
    assert len(data) > 64 * 1024
    zone.put(at(1), data)
    steps = read_facts(at(1), len(data), ["id"])
    asked: list[ReadFile] = []
    answer: Any = None
    while True:
        try:
            asked.append(steps.send(answer))
        except StopIteration as stop:
            return asked, stop.value
        answer = answer_to(zone.storage, asked[-1])


def big(markers: list[int]) -> pa.Table:
    noise = np.random.default_rng(1).integers(0, 2**62, MANY)
    return rows({"id": pa.array(noise), "v": pa.array([""] * MANY)}, markers=markers)


def test_of_most_files_only_the_footer_is_read() -> None:
    (asked,), facts = requests_for(big([4] * MANY))
    assert asked.start > 0
    assert (facts.rows, facts.greatest_marker, facts.bad_marker) == (MANY, 4, None)


@pytest.mark.parametrize(("markers", "bad"), [([2, 4], None), ([2, 4, 3], 2)])
def test_all_of_a_file_is_read_where_an_illegal_marker_may_hide_between_legal_ones(markers, bad) -> None:
    table = big((markers * MANY)[:MANY])
    asked, facts = requests_for(table)
    assert [read.start > 0 for read in asked] == [True, False]
    assert (facts.bad_marker and facts.bad_marker.row) == bad


def test_all_of_a_file_is_read_where_no_statistics_tell_the_nulls() -> None:
    asked, facts = requests_for(big([4] * MANY), write_statistics=False)
    assert [read.start > 0 for read in asked] == [True, False]
    assert facts.null_keys == {}


def test_a_file_that_is_moved_while_the_folder_is_read_is_found_where_it_went() -> None:
    zone = OurZone()
    moves = [1, 2]

    def move(operation: str, path: str) -> None:
        if operation == "read" and moves and path == at(moves[0]):
            zone.process(moves.pop(0))

    assert check(LandingZone(Tapped(zone.storage, before=move))) == []
    assert moves == []


def test_a_folder_that_never_stands_still_is_an_error_that_may_be_retried() -> None:
    zone = OurZone()

    def move_there_and_back(operation: str, path: str) -> None:
        if operation == "read" and path == at(2):
            zone.move(at(2), "aside")

    def back(operation: str, path: str) -> None:
        if operation == "read" and path == at(2):
            zone.move("aside", at(2))

    with pytest.raises(StorageError, match="changes at every look") as raised:
        check(LandingZone(Tapped(zone.storage, before=move_there_and_back, after=back)))
    assert raised.value.retryable
    assert raised.value.table == "orders"


def test_a_storage_that_fails_is_told() -> None:
    def fail(operation: str, path: str) -> None:
        if operation == "read":
            raise StorageError("no")

    with pytest.raises(StorageError, match="no"):
        check(LandingZone(Tapped(OurZone().storage, before=fail)))


def test_text_is_read_once_and_one_file_after_the_other() -> None:
    read: list[str] = []
    storage = text(*["1,a,4"] * 3)().storage
    assert check(LandingZone(Tapped(storage, before=lambda operation, path: read.append(f"{operation} {path}")))) == []
    assert [each for each in read if each.endswith(".tsv")] == [f"read {at(n, 'tsv')}" for n in (1, 2, 3)]


def test_text_is_not_read_where_its_description_is_broken() -> None:
    read: list[str] = []
    storage = text("no,row", FileExtension=None)().storage
    (found,) = check(LandingZone(Tapped(storage, before=lambda operation, path: read.append(path))))
    assert (found.rule, at(1, "tsv") in read) == ("2.7", False)
