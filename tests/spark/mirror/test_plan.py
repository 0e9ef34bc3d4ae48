"""What names, footers and the target's record decide."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from openmirror_writer.formats import Footer
from openmirror_writer.layout import GENERATION, METADATA, data_file, sort_names
from openmirror_writer.metadata import TableMetadata
from openmirror_writer.record import Record
from openmirror_writer.schema import declared_columns
from openmirror_writer.spark.mirror.columns import Column
from openmirror_writer.spark.mirror.plan import (
    Batch,
    Life,
    Stop,
    algebra_of,
    applied_files,
    footers_wanted,
    next_batch,
    stale_files,
    where_to_go_on,
)
from openmirror_writer.spark.mirror.state import LandedFile, TargetState, Unreadable, pack
from openmirror_writer.storage import Entry
from openmirror_writer.zone import FolderState

LONG = pa.schema([("id", pa.int64())])
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def landed(
    number: int, /, *, generation: str | None = "g", markers: tuple[int, int] | None = None, **more: Any
) -> LandedFile:
    """Return a file of the chain of ``generation``; None: a foreign one. ``markers``: least and greatest."""
    columns = more.pop("columns", LONG)
    nulls = more.pop("nulls", 0)
    rows = more.pop("rows", 1)
    kind = more.pop("kind", pa.int32())
    extension = more.pop("extension", "parquet")
    record = None
    if generation is not None:
        told = {
            "generation": generation,
            "number": number,
            "previous": None if number == 1 else f"{generation}{number - 1}",
            "batch": f"{generation}{number}",
            "writer": "w",
            "phase": "following",
            "by": "tests",
        }
        record = Record(**{**told, **more})
    marked = markers is not None
    footer = Footer("e", rows, columns, marked, markers, nulls if marked else None, kind if marked else None, record)
    return LandedFile(number, data_file(number, extension), Entry(f"e{number}", 1, NOW), footer)


def unreadable(number: int) -> LandedFile:
    return LandedFile(number, data_file(number), Entry(f"e{number}", 0, NOW), Unreadable("no Parquet"))


def folder(
    *files: LandedFile, generation: str | None = "g", keys: tuple[str, ...] = ("id",), **more: Any
) -> FolderState:
    names = {file.name: file.entry for file in files}
    names[METADATA] = Entry("m", 1, NOW)
    if generation is not None:
        names[GENERATION] = Entry("gen", 1, NOW)
    metadata = TableMetadata(key_columns=keys, **more)
    return FolderState("orders", sort_names(names), generation, "gen" if generation else None, metadata)


def target(
    mark: int, *, identity: str | None = None, generation: str = "g", incarnation: int = 1, **more: Any
) -> TargetState:
    """Return a target that holds files 1 to ``mark`` of the chain of ``generation``."""
    told = {
        "exists": True,
        "version": pack(incarnation, mark, identity or f"{generation}{mark}"),
        "generation": generation,
        "columns": (Column("id", "long"),),
        "keys": ("id",),
        "folder": "orders",
    }
    return TargetState(**{**told, **more})


def decide(state: TargetState, *files: LandedFile, **more: Any) -> Life | Stop:
    return where_to_go_on(state, folder(*files, **more), by_number(*files))


def by_number(*files: LandedFile) -> Mapping[int, LandedFile]:
    return {file.number: file for file in files}


def life(state: TargetState, *files: LandedFile, **more: Any) -> Life:
    found = decide(state, *files, **more)
    assert isinstance(found, Life), found
    return found


def batch(state: TargetState, *files: LandedFile, limit: int = 10, claimed: int | None = None, **more: Any) -> Batch:
    return next_batch(life(state, *files, **more), state, folder(*files, **more), limit, claimed)


def numbers(found: Batch) -> list[int]:
    return [file.number for file in found.files]


# ------------------------------------------------------------------------------------------------------ where to go on


def test_a_new_table_starts_with_file_1() -> None:
    found = life(TargetState(), landed(1), landed(2))
    assert (found.rebuild, found.incarnation, found.start, found.generation) == (True, 1, 1, "g")


def test_a_table_goes_on_behind_its_mark() -> None:
    found = life(target(2), landed(2), landed(3))
    assert (found.rebuild, found.incarnation, found.start) == (False, 1, 3)


def test_another_generation_at_or_below_the_mark_calls_for_a_rebuild_in_the_next_incarnation() -> None:
    found = life(target(5, generation="old"), landed(1))
    assert (found.rebuild, found.incarnation, found.start, found.generation) == (True, 2, 1, "g")


def test_an_emptied_table_keeps_its_incarnation_when_it_comes_again() -> None:
    dropped = target(0, incarnation=3, dropped=NOW)
    assert life(dropped, landed(1)).incarnation == 3


@pytest.mark.rule("7.9", "L50")
def test_a_rebuild_starts_only_with_file_1() -> None:
    found = decide(target(5, generation="old"), landed(2))
    assert isinstance(found, Stop)
    assert (found.status, found.file, found.absent) == ("Failed", data_file(1), True)


def test_a_folder_made_again_without_data_is_waited_for() -> None:
    found = decide(target(5, generation="old"))
    assert isinstance(found, Stop)
    assert found.status == "Reseeding"


def test_a_foreign_folder_is_a_new_life_if_the_last_file_is_another_one() -> None:
    state = target(1, identity="e1", generation="foreign-x")
    assert not life(state, landed(1, generation=None), generation=None).rebuild
    state = target(1, identity="other", generation="foreign-x")
    assert life(state, landed(1, generation=None), generation=None).rebuild


def test_a_foreign_folder_with_fewer_files_than_the_mark_is_a_new_life() -> None:
    """The mirror never moves the last file it applied, so its absence means another folder."""
    state = target(5, identity="e5", generation="foreign-x")
    assert life(state, landed(1, generation=None), generation=None).rebuild


def test_a_writer_may_go_on_in_a_foreign_folder_without_a_rebuild() -> None:
    state = target(2, identity="g2", generation="foreign-x")
    assert not life(state, landed(2, previous="foreign"), landed(3)).rebuild


def test_a_vanished_last_file_fails() -> None:
    found = decide(target(5))
    assert isinstance(found, Stop)
    assert (found.status, found.file) == ("Failed", data_file(5))
    assert "drop_table" in (found.reason or "")


def test_a_delta_table_of_others_is_never_written_to() -> None:
    found = decide(TargetState(exists=True, version=None), landed(1))
    assert isinstance(found, Stop)
    assert found.status == "Failed"


def test_a_target_that_mirrors_another_folder_is_never_written_to() -> None:
    found = decide(target(1, folder="dbo.schema/orders"), landed(1))
    assert isinstance(found, Stop)
    assert "dbo.schema/orders" in (found.reason or "")


def test_other_key_columns_are_refused() -> None:
    found = decide(target(1, keys=("other",)), landed(1), landed(2))
    assert isinstance(found, Stop)
    assert found.file == METADATA


def test_key_columns_may_be_added_to_a_table_without_any() -> None:
    assert life(target(1, keys=()), landed(1), landed(2)).start == 2


def test_a_file_of_another_generation_than_the_folder_names_is_not_looked_at() -> None:
    assert life(target(2), landed(1, generation="old"), landed(2)).files.keys() == {2}


# --------------------------------------------------------------------------------------------------------- the batch


def test_a_batch_ends_before_a_gap_and_says_so() -> None:
    found = batch(target(1), landed(1), landed(2), landed(4), landed(5))
    assert numbers(found) == [2]
    assert found.stop is not None
    assert (found.stop.status, found.stop.file) == ("Replicating", data_file(3))
    assert found.stop.reason == "file 3 is missing, 4 to 5 wait for it"


def test_a_batch_ends_at_the_limit_and_at_a_claim() -> None:
    files = [landed(n) for n in range(1, 6)]
    assert numbers(batch(TargetState(), *files, limit=2)) == [1, 2]
    assert numbers(batch(TargetState(), *files, limit=2, claimed=4)) == [1, 2, 3, 4]


def test_the_columns_of_a_batch_are_those_of_the_table_and_behind_them_what_its_files_add() -> None:
    wide = declared_columns({"w": "date", "id": "int64"})
    other = declared_columns({"id": "int64", "x": "string"})
    columns = (Column("id", "long"), Column("w", "date"), Column("x", "string"))
    files = [landed(1), landed(2, columns=wide), landed(3, columns=other), landed(4)]
    assert batch(target(1), *files).columns == columns
    assert batch(TargetState(), *files).columns == columns


def test_a_column_of_an_earlier_file_of_the_batch_binds_the_later_ones() -> None:
    wide, other = (declared_columns({"id": "int64", "w": kind}) for kind in ("date", "string"))
    found = batch(target(1), landed(1), landed(2, columns=wide), landed(3), landed(4, columns=other))
    assert (numbers(found), found.columns) == ([2, 3], (Column("id", "long"), Column("w", "date")))
    assert found.stop is not None
    assert (found.stop.status, found.stop.file) == ("Failed", data_file(4))


def test_a_claimed_batch_is_never_shrunk() -> None:
    found = batch(TargetState(), landed(1), landed(2), claimed=3)
    assert (numbers(found), found.stop and found.stop.file) == ([], data_file(3))
    found = batch(TargetState(), landed(1), unreadable(2), landed(3), claimed=3)
    assert (numbers(found), found.stop and found.stop.file) == ([], data_file(2))


@pytest.mark.rule("6.1", "record.5", "record.6")
@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (unreadable(3), "no Parquet"),
        (landed(3, previous="g7"), "a fork"),
        (landed(3, previous="foreign"), "a fork"),
        (landed(3, previous=None), "a fork"),
        (landed(3, number=4), "number 4"),
        (landed(3, generation=None, extension="csv"), "this file has no record, and file 2 has one"),
        (landed(3, markers=(-1, 2)), "from -1 to 2"),
        (landed(3, markers=(0, 5)), "from 0 to 5"),
        (landed(3, markers=(0, 1), nulls=2), "2 rows have no row marker"),
        (landed(3, markers=(0, 1), kind=pa.string()), "must be an integer"),
        (landed(3, columns=pa.schema([("id", pa.int32())])), "SchemaMergeFailure: "),
    ],
)
def test_a_batch_ends_before_a_bad_file(bad: LandedFile, words: str) -> None:
    found = batch(target(1), landed(1), landed(2), bad, landed(4))
    assert numbers(found) == [2]
    assert found.stop is not None
    assert (found.stop.status, found.stop.file) == ("Failed", bad.name)
    assert words in (found.stop.reason or "")


def test_a_fork_right_above_the_mark_is_refused_even_if_the_last_file_is_gone_from_view() -> None:
    found = batch(target(1, identity="another"), landed(1), landed(2))
    assert found.files == ()
    assert found.stop is not None
    assert "fork" in (found.stop.reason or "")


def test_text_of_another_publisher_needs_no_record() -> None:
    one, two = (landed(n, generation=None, extension="csv") for n in (1, 2))
    assert numbers(batch(TargetState(), one, two)) == [1, 2]
    late = landed(2, generation=None, extension="csv")
    found = batch(target(1), landed(1), late)
    assert (found.files, found.stop and found.stop.file) == ((), late.name)


@pytest.mark.rule("2.15", "L10")
@pytest.mark.parametrize(("markers", "keys", "upsert"), [((0, 1), (), False), (None, (), True)])
def test_a_table_without_keys_takes_inserts_only(
    markers: tuple[int, int] | None, keys: tuple[str, ...], *, upsert: bool
) -> None:
    found = batch(TargetState(), landed(1, markers=markers), keys=keys, is_upsert_default_row_marker=upsert)
    assert found.stop is not None
    assert "keyColumns" in (found.stop.reason or "")


@pytest.mark.rule("6.2", "L46")
def test_a_key_column_must_be_in_the_file() -> None:
    found = batch(TargetState(), landed(1), keys=("nr",))
    assert found.stop is not None
    assert "'nr'" in (found.stop.reason or "")


@pytest.mark.parametrize(
    ("ranges", "upsert", "algebra"),
    [
        ([None, (0, 0)], False, "append"),
        ([None, (1, 4)], False, "merge"),
        ([None, (1, 4)], True, "upsert_only"),
        ([(1, 2)], False, "upsert_only"),
        ([(0, 4)], False, "merge"),
        ([], False, "append"),
    ],
)
def test_the_cheapest_way_is_told_from_the_footers(
    ranges: list[tuple[int, int] | None], algebra: str, *, upsert: bool
) -> None:
    files = [landed(n, markers=markers) for n, markers in enumerate(ranges, 1)]
    assert algebra_of(files, ["id"], upsert=upsert) == algebra


def test_files_without_rows_do_not_choose_the_way() -> None:
    assert algebra_of([landed(1, markers=(2, 2), rows=0), landed(2)], ["id"], upsert=False) == "append"


def test_markers_without_statistics_may_be_anything() -> None:
    file = landed(1, markers=(0, 0))
    assert isinstance(file.footer, Footer)
    blind = Footer("e", 1, LONG, True, None, None, pa.int32(), file.footer.record)  # noqa: FBT003
    assert algebra_of([LandedFile(1, file.name, file.entry, blind)], ["id"], upsert=False) == "merge"
    assert algebra_of([LandedFile(1, file.name, file.entry, blind)], [], upsert=False) == "append"


# ------------------------------------------------------------------------------------------------ below the mark


def proved(state: TargetState, *files: LandedFile, **more: Any) -> list[int]:
    return [file.number for file in applied_files(state, life(state, *files, **more))]


def stale(state: TargetState, *files: LandedFile, **more: Any) -> list[int]:
    where = decide(state, *files, **more)
    return stale_files(state, folder(*files, **more), by_number(*files), where if isinstance(where, Life) else None)


def test_what_the_chain_proves_was_applied() -> None:
    files = [landed(3), landed(4), landed(5), landed(6)]
    assert proved(target(5), *files) == [5, 4, 3]
    assert stale(target(5), *files) == []


@pytest.mark.rule("record.4")
def test_a_file_that_the_chain_does_not_name_is_stale() -> None:
    files = [landed(3), landed(4, batch="late"), landed(5)]
    assert proved(target(5), *files) == [5]
    assert stale(target(5), *files) == [3, 4]


def test_a_file_below_a_hole_is_stale() -> None:
    assert stale(target(5), landed(2), landed(5)) == [2]


def test_the_last_file_itself_may_be_stale_and_does_not_stop_the_table() -> None:
    files = [landed(5, batch="late"), landed(6)]
    assert stale(target(5), *files) == [5]
    assert numbers(batch(target(5), *files)) == [6]


@pytest.mark.rule("record.3")
def test_files_of_another_generation_are_stale_wherever_they_stand() -> None:
    assert stale(target(2), landed(2), landed(3, generation="old")) == [3]
    assert stale(target(9, generation="old"), landed(1), landed(2, generation="old")) == [2]


def test_a_foreign_run_below_the_mark_counts_as_applied() -> None:
    state = target(3, identity="e3", generation="foreign-x")
    files = [landed(n, generation=None) for n in (2, 3)]
    assert proved(state, *files, generation=None) == [3, 2]


def test_only_the_footers_that_decide_are_wanted() -> None:
    files = [landed(n) for n in (1, 2, 5, 7, 8, 9, 10, 11, 12)]
    assert footers_wanted(target(9), folder(*files), 2) == [1, 2, 7, 8, 9, 10, 11]
