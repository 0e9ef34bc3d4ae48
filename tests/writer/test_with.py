"""`Writer` inside and outside of ``with``: what is gathered, what an error leaves, threads, forks, and its end."""

from __future__ import annotations

import copy
import os
import threading
import time
import traceback
import warnings
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from openmirror_writer import (
    LandingZone,
    OpenMirrorError,
    Roll,
    Writer,
)
from openmirror_writer.zone import LandingTable
from tests.writer.landing import (
    advances,
    all_landed,
    failing,
    inside,
    mirrored,
    names,
    record,
    refuse_file,
    tapped,
    until,
)

A, B, C, D = ({"id": i, "v": v} for i, v in enumerate("abcd"))


def break_off() -> None:
    raise ValueError("of the caller")


# ----------------------------------------------------------------------------------------------------------- gathering


def test_outside_with_each_call_is_a_file_that_is_durable_when_it_returns(orders: LandingTable) -> None:
    writer = Writer(orders)
    for position, row in enumerate((A, B)):
        writer.upsert([row], position=position)
        assert writer.published_position == position
    assert all_landed(orders) == [[(4, 0, "a")], [(4, 1, "b")]]


def test_inside_with_calls_are_gathered_and_published_at_the_end(orders: LandingTable) -> None:
    with Writer(orders) as writer:
        writer.upsert([A], position=1)
        writer.delete([{"id": 5}], position=2)
        assert names(orders) == []
        assert (writer.position, writer.published_position) == (2, None)
    assert all_landed(orders) == [[(4, 0, "a"), (2, 5, None)]]
    assert writer.published_position == 2


def test_a_full_file_is_published_inside_with(orders: LandingTable) -> None:
    with Writer(orders, roll=Roll(rows=2)) as writer:
        writer.upsert([A, B], position=1)
        until(lambda: "00000000000000000001.parquet" in names(orders))
        writer.upsert([C], position=2)
    assert all_landed(orders) == [[(4, 0, "a"), (4, 1, "b")], [(4, 2, "c")]]


def test_flush_returns_the_files_since_the_last_flush(orders: LandingTable) -> None:
    with Writer(orders, roll=Roll(rows=1)) as writer:
        writer.upsert([A], position=1)
        writer.upsert([B], position=2)
        assert [(f.number, f.rows, f.position) for f in writer.flush()] == [(1, 1, 1), (2, 1, 2)]
        assert writer.published_position == 2
        assert writer.flush() == []
        writer.upsert([C], position=3)
        assert [f.batch for f in writer.flush()] == [record(orders, 3).batch]
    outside = Writer(orders)
    outside.upsert([D])
    assert [f.number for f in outside.flush()] == [4]


def test_rows_that_waited_long_enough_are_published_by_the_next_call_at_the_latest(orders: LandingTable) -> None:
    with Writer(orders, roll=Roll(age=1e-6)) as writer:
        writer.upsert([A], position=1)
        writer.upsert([B], position=2)
        writer._worker.wait()  # type: ignore[union-attr] # inside with there is one
        assert all_landed(orders)[0][0] == (4, 0, "a")


def test_rows_that_waited_long_enough_are_published_and_proved_by_the_idle_worker(orders: LandingTable) -> None:
    with Writer(orders, roll=Roll(age=0.1)) as writer:
        writer.upsert([A], position=1)
        until(lambda: writer.published_position == 1)
        assert all_landed(orders) == [[(4, 0, "a")]]


def test_without_an_age_rows_wait_for_the_end(orders: LandingTable) -> None:
    with Writer(orders, roll=Roll(age=None), advance_interval=0.01) as writer:
        writer.upsert([A], position=1)
        until(lambda: writer._schedule.recorded_at > time.monotonic() - 0.02)
        assert names(orders) == []


def test_an_advance_is_recorded_and_proved_by_the_idle_worker_after_its_interval(orders: LandingTable) -> None:
    Writer(orders).upsert([A], position=1)
    with Writer(orders, advance_interval=0.1) as writer:
        writer.advance(7)
        until(lambda: writer.published_position == 7)
        assert [a.position for a in advances(orders)] == [7]
    assert len(advances(orders)) == 1


def test_the_idle_worker_records_no_advance_that_would_pass_a_buffered_row(orders: LandingTable) -> None:
    Writer(orders).upsert([A], position=1)
    with Writer(orders, roll=Roll(age=None), advance_interval=0.01) as writer:
        writer.upsert([B], position=2)
        before = writer._schedule.recorded_at
        until(lambda: writer._schedule.recorded_at > before)
        assert advances(orders) == []
        assert writer.published_position == 1


def test_the_idle_worker_publishes_at_a_call_boundary_only(orders: LandingTable) -> None:
    """Half a statement must not stand alone, so a call under way keeps the worker out."""
    inside, go = threading.Event(), threading.Event()

    def slow_rows() -> Iterator[dict[str, Any]]:
        inside.set()
        assert go.wait(30)
        yield B

    with Writer(orders, roll=Roll(age=0.01)) as writer, ThreadPoolExecutor(1) as pool:
        call = pool.submit(writer.upsert, slow_rows())
        inside.wait(30)
        writer._tick()
        assert names(orders) == []
        go.set()
        call.result()


def test_a_writer_can_be_used_after_with_and_in_another_one(orders: LandingTable) -> None:
    with Writer(orders) as writer:
        writer.upsert([A])
    writer.upsert([B])
    with writer:
        writer.upsert([C])
    assert len(all_landed(orders)) == 3


def test_a_with_inside_a_with_of_the_same_writer_is_refused(orders: LandingTable) -> None:
    with Writer(orders) as writer, pytest.raises(OpenMirrorError, match="inside a with block already"), writer:
        pass


# --------------------------------------------------------------------------------------- exceptions, discard, and back


def test_an_exception_discards_what_is_buffered_and_says_so(orders: LandingTable) -> None:
    writer = Writer(orders)
    first, second = partial(writer.upsert, [A], position=1), partial(writer.upsert, [B, C], position=2)
    with pytest.raises(ValueError, match="of the caller") as caught:
        inside(writer, first, writer.flush, second, break_off)
    assert caught.value.__notes__ == ["2 buffered rows of orders were discarded; go on from position 1"]
    assert (writer.position, all_landed(orders)) == (1, [[(4, 0, "a")]])


def test_an_exception_without_buffered_rows_gets_no_note(orders: LandingTable) -> None:
    with pytest.raises(ValueError, match="of the caller") as caught:
        inside(Writer(orders), break_off)
    assert not hasattr(caught.value, "__notes__")


def test_an_exception_waits_for_the_file_in_flight(zone: LandingZone) -> None:
    go, created = threading.Event(), []

    def slowly(operation: str, path: str) -> None:
        if operation == "create" and path.endswith(".parquet"):
            assert go.wait(30)
            created.append(path)

    writer = Writer(tapped(zone, before=slowly), roll=Roll(rows=1))
    with pytest.raises(ValueError, match="of the caller"):
        inside(writer, partial(writer.upsert, [A]), threading.Timer(0.05, go.set).start, break_off)
    assert len(created) == 1
    assert mirrored(zone) == [A]


def test_an_exception_tells_in_a_note_that_the_file_in_flight_failed_too(zone: LandingZone) -> None:
    table = tapped(zone, before=refuse_file(1))
    writer = Writer(table, roll=Roll(rows=1))
    with pytest.raises(ValueError, match="of the caller") as caught:
        inside(writer, partial(writer.upsert, [A]), break_off)
    assert caught.value.__notes__ == ["the file in flight of orders failed too: forbidden"]
    with pytest.raises(OpenMirrorError, match="failed before.*open a new one"):
        writer.upsert([A])


def test_discard_forgets_the_buffer_and_goes_back(orders: LandingTable) -> None:
    with Writer(orders) as writer:
        writer.upsert([A], position=1)
        writer.flush()
        writer.upsert([B], position=2)
        writer.advance(3)
        assert (writer.discard(), writer.position) == (1, 1)
        writer.upsert([C], position=2)
    assert all_landed(orders) == [[(4, 0, "a")], [(4, 2, "c")]]
    assert record(orders, 2).position == 2


def test_discard_without_rows_stays_at_the_position_that_was_reached(orders: LandingTable) -> None:
    with Writer(orders) as writer:
        writer.upsert([A], position=1)
        writer.flush()
        writer.advance(5)
        assert (writer.discard(), writer.position) == (0, 5)


@pytest.mark.parametrize("end", ["discard", "exception"])
def test_the_same_writer_skips_what_stands_beyond_its_position_as_a_new_one_would(
    orders: LandingTable, end: str
) -> None:
    writer = Writer(orders, roll=Roll(rows=2))
    writer.__enter__()
    writer.insert([A, B, C], position=1)  # the third row is buffered
    if end == "discard":
        assert writer.discard() == 1
    else:
        writer.__exit__(ValueError, ValueError(), None)
    assert writer.position is None
    writer.insert([A, B, C, D], position=1)
    writer.__exit__(None, None, None)
    assert mirrored(orders.zone) == [A, B, C, D]


def test_discard_behind_a_restart_does_not_publish_skipped_rows_again(orders: LandingTable) -> None:
    first = Writer(orders, roll=Roll(rows=2))
    with pytest.raises(ValueError, match="broke"):
        first.insert(failing(A, B, C), position=1)
    with Writer(orders, roll=Roll(rows=9)) as writer:
        writer.insert([A, B, C], position=1)  # two are skipped, one is buffered
        assert writer.discard() == 1
        writer.insert([A, B, C], position=1)
    assert mirrored(orders.zone) == [A, B, C]


# ----------------------------------------------------------------------------------------------- threads and processes


def test_threads_follow_each_other_and_no_row_is_lost(orders: LandingTable) -> None:
    with Writer(orders, roll=Roll(rows=5)) as writer, ThreadPoolExecutor(8) as pool:

        def upsert(thread: int) -> None:
            for number in range(20):
                writer.upsert([{"id": 100 * thread + number + i, "v": "x"} for i in (0, 1000)])

        list(pool.map(upsert, range(8)))
    rows = [row for file in all_landed(orders) for row in file]
    assert len(rows) == 8 * 20 * 2
    assert {row[1] for row in rows} == {100 * t + n + i for t in range(8) for n in range(20) for i in (0, 1000)}


def test_who_calls_while_another_thread_leaves_with_loses_no_row(orders: LandingTable) -> None:
    """A thread may leave ``with`` while others call: their rows are then published as outside of it."""
    for attempt in range(20):
        writer = Writer(orders)
        start = threading.Barrier(2)

        def call(base: int = attempt * 100, to: Writer = writer, start: threading.Barrier = start) -> None:
            start.wait(30)
            for number in range(10):
                to.upsert([{"id": base + number, "v": "x"}])

        with ThreadPoolExecutor(1) as pool:
            with writer:
                other = pool.submit(call)
                start.wait(30)
            other.result()
    assert len(mirrored(orders.zone)) == 200


@pytest.mark.skipif(not hasattr(os, "fork"), reason="only where processes fork")
def test_a_forked_child_is_refused_and_leaves_the_parents_rows_alone(tmp_path: Path) -> None:
    zone = LandingZone(tmp_path)
    table = zone.table("orders", key_columns=["id"], columns={"id": "int64", "v": "string"})
    with Writer(table) as writer:
        writer.upsert([A], position=1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of forks where threads run, from 3.12 on
            pid = os.fork()
        if pid == 0:
            code = 1
            try:
                code = _in_the_child(writer)
            except BaseException:  # noqa: BLE001 - the child must not go on in the test runner
                traceback.print_exc()
            finally:
                os._exit(code)
        _, status = os.waitpid(pid, 0)
        assert os.WEXITSTATUS(status) == 0
        writer.upsert([B], position=2)
    assert mirrored(zone) == [A, B]


def _in_the_child(writer: Writer) -> int:
    for act in (lambda: writer.upsert([C]), writer.flush, lambda: writer.__exit__(None, None, None)):
        with pytest.raises(OpenMirrorError, match="another process"):
            act()
    writer.__exit__(SystemExit, SystemExit(), None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        writer.__del__()
    return 0


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy])
def test_a_writer_cannot_be_copied(orders: LandingTable, how: Callable[[Any], Any]) -> None:
    with pytest.raises(OpenMirrorError, match="cannot be pickled"):
        how(Writer(orders))


# -------------------------------------------------------------------------------------------------- garbage collection


def test_rows_that_were_never_published_are_warned_of_with_their_number(orders: LandingTable) -> None:
    writer = Writer(orders)
    writer.__enter__()
    writer.upsert([A, B, C])
    held = [writer]
    del writer
    with pytest.warns(ResourceWarning, match="3 rows of orders were never published"):
        held.clear()


def test_a_writer_without_buffered_rows_is_not_warned_of(orders: LandingTable) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        writer = Writer(orders)
        writer.upsert([A])
        seen = weakref.ref(writer)
        del writer
        assert seen() is None, "a writer is in no ring of references"


def test_the_thread_of_a_forgotten_writer_ends(orders: LandingTable) -> None:
    writer = Writer(orders)
    writer.__enter__()
    thread = writer._worker._thread  # type: ignore[union-attr] # inside with there is one
    del writer
    thread.join(30)
    assert not thread.is_alive()
