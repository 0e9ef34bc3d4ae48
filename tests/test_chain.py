"""The chain of records: which file of a number counts."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from openmirror_writer.chain import follow, is_of_generation
from openmirror_writer.record import FOREIGN, Record


@dataclass(frozen=True, eq=False)
class File:
    number: int
    record: Record | None
    batch: str
    is_text: bool = False


def ours(number: int, batch: str, previous: str | None, generation: str = "g") -> File:
    fields = {"generation": generation, "number": number, "previous": previous, "batch": batch}
    return File(number, Record(writer="w", phase="following", by="test", **fields), batch)


def foreign(number: int, *, is_text: bool = False) -> File:
    return File(number, None, f"identity of {number}", is_text)


A, B, C = ours(1, "a", None), ours(2, "b", "a"), ours(3, "c", "b")


@pytest.mark.rule("record.5")
def test_files_follow_as_far_as_each_names_the_one_before():
    chain = follow([C, A, B])
    assert (chain.files, chain.stale, chain.fork) == ((A, B, C), (), None)


def test_a_gap_ends_the_chain_and_is_no_fork():
    chain = follow([A, C])
    assert (chain.files, chain.fork) == ((A,), None)


def test_a_file_that_names_another_one_before_is_a_fork():
    other = ours(2, "x", "another")
    chain = follow([A, other, C])
    assert (chain.files, chain.stale, chain.fork) == ((A,), (), other)


@pytest.mark.rule("record.4")
def test_the_second_file_of_a_number_is_stale():
    late = ours(2, "x", "a")
    assert follow([A, late, B, C]).files == (A, B, C)
    assert follow([A, late, B, C]).stale == (late,)


def test_of_two_files_that_none_names_the_first_counts():
    late = ours(2, "x", "a")
    assert follow([A, B, late]).files == (A, B)
    assert follow([A, late, B]).files == (A, late)


def test_a_file_of_the_right_number_that_does_not_follow_is_stale_beside_one_that_does():
    odd = ours(2, "x", "another")
    assert follow([A, odd, B]).stale == (odd,)


def test_a_foreign_file_follows_any_and_is_named_as_foreign():
    behind = ours(3, "c", FOREIGN)
    two = foreign(2)
    assert follow([A, two, behind]).files == (A, two, behind)
    assert follow([A, two, C]).fork is C


def test_text_without_a_record_does_not_follow_a_file_with_one():
    """It may be of a life of the folder that was dropped, together with its record."""
    late = foreign(3, is_text=True)
    assert (follow([A, B, late]).files, follow([A, B, late]).fork) == ((A, B), late)
    texts = (foreign(1, is_text=True), foreign(2, is_text=True))
    assert follow(texts).files == texts


def test_from_a_later_start_the_first_file_may_name_any():
    assert follow([B, C], start=2).files == (B, C)


def test_the_first_file_of_all_names_none_and_no_other_one_does():
    assert follow([ours(1, "a", "x")]).files == ()
    assert follow([ours(2, "b", None)], start=2).files == ()


def test_a_foreign_file_may_be_of_any_generation():
    assert is_of_generation(foreign(1), "g")
    assert is_of_generation(A, "g")
    assert not is_of_generation(A, "another")
    assert not is_of_generation(A, None)
