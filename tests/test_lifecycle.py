"""The end of a table: a drop that is killed, raced or late does no harm."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from openmirror_writer import (
    ConcurrentWriterError,
    LandingZone,
    OpenMirrorError,
    StorageError,
    TableGoneError,
    Writer,
    drop_table,
    replace_table,
    replay,
)
from openmirror_writer.layout import (
    DROPPING,
    GENERATION,
    METADATA,
    PROCESSED,
    READY_TO_DELETE,
    data_file,
    drop_record,
    replacement_record,
)
from openmirror_writer.lifecycle import beginning_replacement, dropping, ending_replacement
from openmirror_writer.metadata import Dropped, Generation, Replacement, parse
from openmirror_writer.storage import CreateFile, DeleteFile, Lost, Request, Steps, answer_to
from openmirror_writer.zone import LandingTable

A, B = {"id": 1, "v": "a"}, {"id": 2, "v": "b"}


@pytest.fixture(params=["memory", "local"])
def zone(request: pytest.FixtureRequest, tmp_path: Path) -> LandingZone:
    return LandingZone(tmp_path if request.param == "local" else f"memory://{uuid4()}")


@pytest.fixture
def orders(zone: LandingZone) -> LandingTable:
    """A table with files in every place where they may stand."""
    table = zone.table("orders", schema_name="sales", key_columns=["id"])
    writer = Writer(table)
    for row in (A, B, A, B):
        writer.upsert([row], position=1)
    writer.advance(2)
    zone.storage.rename(table.path(data_file(1)), table.path(f"{PROCESSED}/{data_file(1)}"))
    zone.storage.rename(table.path(data_file(2)), table.path(f"{READY_TO_DELETE}/{data_file(2)}"))
    return table


def standing(table: LandingTable) -> dict[str, str]:
    found: dict[str, str] = {}
    for folder in ("", f"/{PROCESSED}", f"/{READY_TO_DELETE}"):
        files = table.zone.storage.names(f"{table.folder}{folder}").files
        found |= {f"{folder}/{name}": entry.identity for name, entry in files.items()}
    return found


def generation(table: LandingTable) -> bytes:
    content = table.zone.storage.read(table.path(GENERATION))
    assert content is not None
    return content.data


def note(table: LandingTable) -> bytes | None:
    content = table.zone.storage.read(drop_record(table.label))
    return None if content is None else content.data


def drive(
    table: LandingTable,
    protocol: Callable[[LandingTable], Steps[None]] = dropping,
    *,
    before: Callable[[Request], Any] = lambda _request: None,
    most: int | None = None,
) -> bool:
    """Drop step by step, or run another protocol; ``before`` may act, or answer in place of the storage.

    False if it was cut after ``most`` steps.
    """
    steps, answer = protocol(table), None
    done = 0
    while most is None or done < most:
        try:
            request = steps.send(answer)
        except StopIteration:
            return True
        answer = before(request) or answer_to(table.zone.storage, request)
        done += 1
    steps.close()
    return False


@pytest.mark.rule("7.8", "record.8", "L48", "L49")
def test_a_dropped_table_leaves_nothing_but_a_note_of_its_generation(orders: LandingTable) -> None:
    dropped = generation(orders)
    drop_table(orders)
    assert standing(orders) == {}
    assert note(orders) == dropped
    assert replay(orders.zone) == {}
    assert Writer(orders).state == "new"


def test_the_folder_itself_goes_too(tmp_path: Path) -> None:
    table = LandingZone(tmp_path).table("orders", key_columns=["id"])
    Writer(table).upsert([A])
    table.zone.storage.rename(table.path(data_file(1)), table.path(f"{PROCESSED}/{data_file(1)}"))
    drop_table(table)
    assert [path.name for path in tmp_path.iterdir()] == ["_openmirror"]


def test_files_in_folders_that_are_none_of_ours_go_too(orders: LandingTable) -> None:
    orders.zone.storage.create(orders.path("scratch/deep/file"), b"x")
    drop_table(orders)
    assert orders.zone.storage.names(orders.path("scratch/deep")).files == {}
    assert not orders.zone.storage.names("sales.schema").folders


def test_other_tables_stay(orders: LandingTable) -> None:
    other = orders.zone.table("other", key_columns=["id"])
    Writer(other).upsert([A])
    before = standing(other)
    drop_table(orders)
    assert standing(other) == before


def test_an_absent_table_is_dropped_without_a_word(zone: LandingZone) -> None:
    drop_table(zone.table("orders"))
    assert zone.storage.names("").folders == frozenset()


def test_a_folder_of_another_publisher_is_dropped_without_a_note(zone: LandingZone) -> None:
    table = zone.table("orders")
    zone.storage.create(table.path(METADATA), b'{"keyColumns":["id"]}')
    zone.storage.create(table.path(data_file(1)), b"theirs")
    drop_table(table)
    assert standing(table) == {}
    assert note(table) is None


def test_the_note_of_a_drop_keeps_those_of_earlier_ones(orders: LandingTable) -> None:
    """A mirror that was stopped all the time holds the first life, and has to learn that it was dropped."""
    first = generation(orders)
    drop_table(orders)
    Writer(orders).upsert([A])
    second = generation(orders)
    drop_table(orders)
    dropped = parse(Dropped, note(orders) or b"", file="")
    assert [dropped.holds(parse(Generation, life, file="").generation) for life in (first, second)] == [True, True]
    assert not dropped.holds("another")
    assert not dropped.holds(None)


def test_the_tombstone_comes_first_and_goes_last(orders: LandingTable) -> None:
    seen: list[str] = []

    def note_it(request: Request) -> None:
        if isinstance(request, CreateFile | DeleteFile):
            seen.append(request.path.rpartition("/")[2])

    drive(orders, before=note_it)
    assert (seen[0], seen[-1]) == (DROPPING, DROPPING)
    assert sorted({data_file(n) for n in range(1, 5)} & set(seen)) == [data_file(n) for n in range(1, 5)]


@pytest.mark.rule("7.8", "record.8", "L51")
def test_a_drop_that_was_killed_anywhere_is_refused_by_writers_and_finished_by_the_next(zone: LandingZone) -> None:
    most, cut = 0, True
    while cut:
        table = zone.table(f"t{most}", key_columns=["id"])
        for row in (A, B):
            Writer(table).upsert([row])
        dropped = generation(table)
        cut = not drive(table, most=most)
        if f"/{DROPPING}" in standing(table):
            with pytest.raises(TableGoneError, match="run drop_table"):
                Writer(table)
            assert table.label not in replay(zone)
        drop_table(table)
        assert standing(table) == {}
        assert note(table) == dropped
        most += 1
    assert most > 8


def test_a_file_that_comes_while_files_are_deleted_goes_too(orders: LandingTable) -> None:
    late: list[str | None] = []

    def come(request: Request) -> None:
        if isinstance(request, DeleteFile) and not late:
            late.append(orders.zone.storage.create(orders.path(data_file(5)), b"late"))

    assert drive(orders, before=come)
    assert late
    assert standing(orders) == {}


@pytest.mark.rule("7.8", "L51")
def test_a_file_that_the_service_moves_meanwhile_goes_too(orders: LandingTable) -> None:
    moved: list[bool] = []

    def move(request: Request) -> None:
        if isinstance(request, DeleteFile) and not moved:
            source = orders.path(data_file(3))
            moved.append(orders.zone.storage.rename(source, orders.path(f"{PROCESSED}/{data_file(3)}")))

    assert drive(orders, before=move)
    assert moved == [True]
    assert standing(orders) == {}


def test_a_drop_that_was_paused_does_not_touch_the_next_life_of_the_table(orders: LandingTable) -> None:
    reloaded: dict[str, str] = {}

    def others_act(request: Request) -> None:
        if isinstance(request, DeleteFile) and not reloaded:
            drop_table(orders)
            Writer(orders).upsert([A], position=1)
            reloaded.update(standing(orders))

    assert drive(orders, before=others_act)
    assert f"/{data_file(1)}" in reloaded
    assert standing(orders) == reloaded


@pytest.mark.parametrize("turns", range(6))
def test_two_drops_at_once_both_end_and_leave_nothing(zone: LandingZone, turns: int) -> None:
    table = zone.table("orders", key_columns=["id"])
    for row in (A, B, A):
        Writer(table).upsert([row])
    drops: list[Any] = [dropping(table), dropping(table)]
    answers: list[Any] = [None, None]
    turn = 0
    while drops:
        index = (turn // (turns + 1)) % len(drops)
        turn += 1
        try:
            request = drops[index].send(answers[index])
        except StopIteration:
            del drops[index], answers[index]
        else:
            answers[index] = answer_to(zone.storage, request)
    assert standing(table) == {}


def test_a_lost_answer_of_the_tombstone_is_no_harm(orders: LandingTable) -> None:
    lost: list[object] = []

    def lose(request: Request) -> Lost | None:
        if isinstance(request, CreateFile) and not lost:
            lost.append(answer_to(orders.zone.storage, request))
            return Lost("no answer")
        return None

    assert drive(orders, before=lose)
    assert lost
    assert standing(orders) == {}


@pytest.mark.parametrize("name", [DROPPING, "dropped-sales.orders.json"])
def test_a_storage_that_never_answers_is_an_error_that_says_to_call_again(orders: LandingTable, name: str) -> None:
    def lose(request: Request) -> Lost | None:
        return Lost() if isinstance(request, CreateFile) and request.path.endswith(name) else None

    with pytest.raises(StorageError, match="call drop_table again") as caught:
        drive(orders, before=lose)
    assert (caught.value.retryable, caught.value.table) == (True, "sales.orders")
    drop_table(orders)
    assert standing(orders) == {}


def test_files_that_come_as_fast_as_they_are_deleted_end_in_an_error() -> None:
    zone = LandingZone(f"memory://{uuid4()}")
    table = zone.table("orders", key_columns=["id"])
    zone.storage.create(table.path(data_file(1)), b"x")

    def again(request: Request) -> None:
        if isinstance(request, DeleteFile):
            zone.storage.delete(request.path)
            zone.storage.create(request.path, os.urandom(8))

    with pytest.raises(StorageError, match="stop the writers of this table") as caught:
        drive(table, before=again)
    assert (caught.value.retryable, caught.value.file) == (True, "orders")


def test_a_generation_that_cannot_be_read_does_not_keep_a_table(orders: LandingTable) -> None:
    orders.zone.storage.delete(orders.path(GENERATION))
    orders.zone.storage.create(orders.path(GENERATION), b"damaged")
    drop_table(orders)
    assert standing(orders) == {}


# ------------------------------------------------------------------------------------------------------ replacing


def replacement(table: LandingTable) -> bytes | None:
    content = table.zone.storage.read(replacement_record(table.label))
    return None if content is None else content.data


class Mirrored:
    """Says after some questions that the table is dropped, and what it saw until then."""

    def __init__(self, table: LandingTable, questions: int) -> None:
        self.table, self.left = table, questions
        self.refusals: list[str] = []

    def __call__(self) -> bool:
        with pytest.raises(TableGoneError, match="call replace_table again") as caught:
            Writer(self.table)
        self.refusals.append(caught.value.message)
        self.left -= 1
        return self.left < 0


@pytest.mark.rule("7.9", "7.11", "L50", "L58", "L60")
def test_a_replaced_table_begins_anew_when_the_mirrored_database_has_dropped_it(orders: LandingTable) -> None:
    old = generation(orders)
    mirrored = Mirrored(orders, 2)
    replace_table(orders, is_dropped=mirrored, poll=0.001)
    assert len(mirrored.refusals) == 3
    assert (standing(orders), note(orders), replacement(orders)) == ({}, old, None)
    new = orders.zone.table("orders", schema_name="sales", key_columns=["v"])
    Writer(new).upsert([A])
    assert generation(new) != old
    assert replay(orders.zone)["sales.orders"].to_pylist() == [A]


@pytest.mark.rule("7.9", "7.10", "L48", "L50", "L52", "L58", "L60", "L62", on=("producer", "mirror"))
def test_a_table_is_renamed_and_gets_other_columns_and_types_by_a_drop_and_a_full_load(zone: LandingZone) -> None:
    Writer(zone.table("old", key_columns=["id"])).initial_load([{"id": 1, "n": 2, "gone": "x"}], position=1)
    drop_table(zone.table("old"))
    writer = Writer(zone.table("new", key_columns=["id"]))
    writer.initial_load([{"id": 1, "n": "two", "renamed": "x"}], position=1)
    writer.upsert([{"id": 2, "n": "three", "renamed": "y"}], position=2)
    rows = [{"id": 1, "n": "two", "renamed": "x"}, {"id": 2, "n": "three", "renamed": "y"}]
    assert {label: table.to_pylist() for label, table in replay(zone).items()} == {"new": rows}


def test_a_wait_that_is_given_up_or_fails_goes_on_with_the_next_call(orders: LandingTable) -> None:
    def fails() -> bool:
        raise ValueError("no network")

    with pytest.raises(ValueError, match="no network"):
        replace_table(orders, is_dropped=fails)
    with pytest.raises(OpenMirrorError, match=r"has not dropped the table within 0\.0 s") as caught:
        replace_table(orders, is_dropped=lambda: False, timeout=0.0)
    assert caught.value.table == "sales.orders"
    with pytest.raises(TableGoneError, match="call replace_table again") as refused:
        Writer(orders)
    assert refused.value.file == "_openmirror/replacing-sales.orders.json"
    replace_table(orders, is_dropped=lambda: True)
    assert Writer(orders).state == "new"


@pytest.mark.parametrize("waited", [False, True])
def test_a_replacement_that_was_killed_anywhere_is_finished_by_the_next(zone: LandingZone, waited: bool) -> None:  # noqa: FBT001
    protocol = ending_replacement if waited else beginning_replacement
    most, cut = 0, True
    while cut:
        table = zone.table(f"t{most}", key_columns=["id"])
        for row in (A, B):
            Writer(table).upsert([row])
        old = generation(table)
        if waited:
            assert drive(table, beginning_replacement)
        cut = not drive(table, protocol, most=most)
        if replacement(table) is not None and f"/{data_file(2)}" not in standing(table):
            with pytest.raises(TableGoneError):
                Writer(table)
        replace_table(table, is_dropped=lambda: True)
        assert (standing(table), note(table), replacement(table)) == ({}, old, None)
        Writer(table).upsert([B])
        assert replay(zone)[table.label].to_pylist() == [B]
        most += 1
    assert most > (2 if waited else 12)


def test_a_table_that_was_loaded_anew_meanwhile_is_not_dropped(orders: LandingTable) -> None:
    orders.zone.storage.create(replacement_record(orders.label), Replacement(generation="an earlier life").to_bytes())
    before = standing(orders)
    with pytest.raises(ConcurrentWriterError, match="begun to load it anew") as caught:
        replace_table(orders, is_dropped=lambda: True)
    assert caught.value.table == "sales.orders"
    assert standing(orders) == before


def test_a_writer_that_was_opened_before_begins_nothing_while_the_table_is_replaced(orders: LandingTable) -> None:
    drop_table(orders)
    early = Writer(orders)
    assert drive(orders, beginning_replacement)
    with pytest.raises(TableGoneError, match="call replace_table again"):
        early.upsert([A])
    assert standing(orders) == {}


def test_what_a_refused_writer_left_does_not_keep_a_replacement(orders: LandingTable) -> None:
    """The replacement began between its two looks at the note: its marker stands, and no data."""
    assert drive(orders, beginning_replacement)
    orders.zone.storage.create(orders.path(GENERATION), Generation(generation="left").to_bytes())
    replace_table(orders, is_dropped=lambda: True)
    assert (standing(orders), replacement(orders)) == ({}, None)
    Writer(orders).upsert([A])


def test_a_folder_of_another_publisher_is_replaced(zone: LandingZone) -> None:
    table = zone.table("orders", key_columns=["id"])
    zone.storage.create(table.path(METADATA), b'{"keyColumns":["id"]}')
    zone.storage.create(table.path(data_file(1)), b"theirs")
    replace_table(table, is_dropped=lambda: True)
    assert (standing(table), replacement(table)) == ({}, None)
    Writer(table).upsert([A])


def test_a_storage_that_does_not_keep_the_note_drops_nothing(orders: LandingTable) -> None:
    before = standing(orders)

    def lose(request: Request) -> Lost | None:
        return Lost() if isinstance(request, CreateFile) else None

    with pytest.raises(StorageError, match="call replace_table again") as caught:
        drive(orders, beginning_replacement, before=lose)
    assert (caught.value.retryable, caught.value.table) == (True, "sales.orders")
    assert standing(orders) == before
