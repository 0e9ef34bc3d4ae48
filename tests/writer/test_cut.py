"""`Cutter`: which rows go into which file, what its record says, and where a writer that finds it goes on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import pyarrow as pa
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from openmirror_writer.changes import ChangeBatch, RowMarker
from openmirror_writer.errors import OpenMirrorError, ResumeMismatchError
from openmirror_writer.record import SINGLE_PARTITION, Pending
from openmirror_writer.schema import declared_columns
from openmirror_writer.writer.cut import Call, Cutter, FileContent, Progress, Roll, Skip
from openmirror_writer.writer.digest import digest, last_rows

COLUMNS = declared_columns({"id": "int64", "v": "string"})
ROW_BYTES = 8 + 4 + 4
"""At least so many bytes takes one row with an empty text."""
Verb = Literal["load", "insert", "upsert"]


def batch_of(ids: Sequence[int], marker: int | None, width: int = 0) -> ChangeBatch:
    rows = pa.RecordBatch.from_arrays(
        [pa.array(ids, pa.int64()), pa.array([f"{i:0{width}d}" if width else "" for i in ids], pa.string())],
        schema=COLUMNS,
    )
    return ChangeBatch(rows, None if marker is None else pa.array([marker] * len(ids), pa.int32()))


def ids_of(files: Sequence[FileContent]) -> list[Any]:
    return [value for file in files for batch in file.batches for value in batch.rows.column("id").to_pylist()]


@dataclass(frozen=True)
class SourceCall:
    """One call and its rows; ids go up through the whole source, so that an id is a place in it."""

    verb: Verb
    ids: tuple[int, ...]
    position: int | None
    whole: bool = False
    width: int = 0

    @property
    def marker(self) -> int | None:
        return {"load": None, "insert": int(RowMarker.INSERT), "upsert": int(RowMarker.UPSERT)}[self.verb]

    @property
    def is_exact(self) -> bool:
        return self.verb != "upsert"

    def batch(self) -> ChangeBatch:
        return batch_of(self.ids, self.marker, self.width)


@st.composite
def sources(draw: st.DrawFn) -> list[SourceCall]:
    """Calls in order, the first one perhaps a load; positions go up and are not told everywhere."""
    calls: list[SourceCall] = []
    first = 0
    for index in range(draw(st.integers(1, 7))):
        verb: Verb = "load" if index == 0 and draw(st.booleans()) else draw(st.sampled_from(["insert", "upsert"]))
        size = draw(st.integers(0, 9))
        calls.append(
            SourceCall(
                verb,
                tuple(range(first, first + size)),
                index + 1 if draw(st.integers(0, 3)) else None,
                whole=verb == "upsert" and draw(st.booleans()),
                width=draw(st.sampled_from([0, 0, 3, 40])),
            )
        )
        first += size
    return calls


rolls = st.builds(Roll, rows=st.integers(1, 6), bytes=st.sampled_from([1, 60, 150, 400, 10**6]))


def feed(
    cutter: Cutter, calls: Sequence[SourceCall], cuts: Iterator[int], flushes: Iterator[bool]
) -> list[FileContent]:
    """Give calls, in batches of drawn sizes; flush where drawn, and at the end."""
    files: list[FileContent] = []
    for call in calls:
        cutter.begin(Call(call.position, load=call.verb == "load", whole=call.whole))
        batch = call.batch()
        while batch.num_rows:
            size = next(cuts)
            files += cutter.add(batch.slice(0, size), exact=call.is_exact)
            batch = batch.slice(size)
        files += cutter.end()
        if next(flushes):
            files += [file for file in [cutter.take()] if file]
    return files + [file for file in [cutter.take()] if file]


def fresh(roll: Roll) -> Cutter:
    return Cutter(roll, Progress("new"), None, table="t")


def drawn(data: st.DataObject) -> tuple[Iterator[int], Iterator[bool]]:
    sizes = data.draw(st.lists(st.integers(1, 10), min_size=1, max_size=5), label="batch sizes")
    flushes = data.draw(st.lists(st.booleans(), min_size=1, max_size=5), label="flushes")

    def again(values: list[Any]) -> Iterator[Any]:
        while True:
            yield from values

    return again(sizes), again(flushes)


def fits(call: SourceCall, roll: Roll) -> bool:
    return len(call.ids) <= roll.rows and call.batch().nbytes + 16 * len(call.ids) <= roll.bytes


@pytest.mark.rule("6.4", "L36", "L41")
@given(calls=sources(), roll=rolls, data=st.data())
def test_the_files_in_order_hold_all_rows_in_order(calls: list[SourceCall], roll: Roll, data: st.DataObject) -> None:
    files = feed(fresh(roll), calls, *drawn(data))
    assert ids_of(files) == [i for call in calls for i in call.ids]


@given(calls=sources(), roll=rolls, data=st.data())
def test_a_call_that_fits_a_file_and_a_whole_call_are_never_split(
    calls: list[SourceCall], roll: Roll, data: st.DataObject
) -> None:
    files = feed(fresh(roll), calls, *drawn(data))
    file_of = {i: number for number, file in enumerate(files) for i in ids_of([file])}
    for call in calls:
        if call.whole or fits(call, roll):
            assert len({file_of[i] for i in call.ids}) <= 1


@given(calls=sources(), roll=rolls, data=st.data())
def test_no_file_is_over_a_limit_unless_it_holds_one_row_or_a_whole_call(
    calls: list[SourceCall], roll: Roll, data: st.DataObject
) -> None:
    whole = {i for call in calls if call.whole for i in call.ids}
    for file in feed(fresh(roll), calls, *drawn(data)):
        if not whole & set(ids_of([file])):
            assert file.rows <= roll.rows
            assert file.rows == 1 or sum(batch.nbytes for batch in file.batches) <= roll.bytes


@pytest.mark.rule("6.5", "L42")
@given(calls=sources(), roll=rolls, data=st.data())
def test_marked_and_marker_free_rows_never_share_a_file(
    calls: list[SourceCall], roll: Roll, data: st.DataObject
) -> None:
    for file in feed(fresh(roll), calls, *drawn(data)):
        assert len({batch.markers is None for batch in file.batches}) <= 1


@given(calls=sources(), roll=rolls, data=st.data())
def test_a_record_says_the_last_complete_position_and_counts_the_rows_behind_it(
    calls: list[SourceCall], roll: Roll, data: st.DataObject
) -> None:
    done = 0
    for file in feed(fresh(roll), calls, *drawn(data)):
        done += file.rows
        given_rows, told, behind = 0, None, 0
        for call in calls:
            given_rows += len(call.ids)
            if call.position is not None and given_rows <= done and file.position == call.position:
                told, behind = call.position, given_rows
            elif call.verb == "load" and file.phase == "following":
                behind = given_rows  # the end of a load needs no position: the phase tells it
        if file.position is not None:
            assert told == file.position, "a position that was told, all rows of which are in files"
        pending = file.pending.get(SINGLE_PARTITION)
        since = [call for call in calls if set(call.ids) & set(range(behind, done))]
        if pending is not None:
            assert pending.rows == done - behind > 0
            assert pending.replay == ("exact" if any(call.is_exact for call in since) else "safe")
            assert (pending.digest is not None) == (pending.replay == "exact")
        elif done > behind:
            assert file.position is None
            assert file.phase == "following", "only where no position was ever told nothing is counted"


@given(calls=sources(), roll=rolls, other=rolls, data=st.data())
def test_a_writer_that_finds_any_of_the_files_publishes_exactly_the_rest(
    calls: list[SourceCall], roll: Roll, other: Roll, data: st.DataObject
) -> None:
    files = feed(fresh(roll), calls, *drawn(data))
    if not files:
        return
    last = data.draw(st.integers(0, len(files) - 1), label="last file that stands")
    done = sum(file.rows for file in files[: last + 1])
    content = files[last]
    skip = Skip.of(content.pending)
    resumed = Cutter(other, Progress(content.phase, content.position), skip, table="t")
    first = next((n + 1 for n, call in enumerate(calls) if call.position == content.position is not None), 0)
    again = [call for call in calls[first:] if content.phase == "loading" or call.verb != "load"]
    safe_rows = [i for call in again for i in call.ids]
    event("exact" if skip else "safe")
    expected = [i for i in safe_rows if i >= done] if skip else safe_rows
    assert ids_of(feed(resumed, again, *drawn(data))) == expected


@given(calls=sources(), roll=rolls, data=st.data())
def test_after_discard_the_source_is_read_again_from_the_position_and_nothing_is_doubled(
    calls: list[SourceCall], roll: Roll, data: st.DataObject
) -> None:
    """The exact rows since the position are skipped, as by a new writer; buffered ones come again."""
    calls = [replace(call, verb="insert", whole=False, position=n + 1) for n, call in enumerate(calls)]
    cutter = fresh(roll)
    cuts, flushes = drawn(data)
    files: list[FileContent] = []
    for call in calls[: data.draw(st.integers(0, len(calls)), label="calls before")]:
        cutter.begin(Call(call.position))
        files += cutter.add(call.batch(), exact=True)
        files += cutter.end()
    buffered = cutter.buffered_rows
    assert cutter.discard() == buffered
    after = 0 if cutter.progress.position is None else cutter.progress.position
    files += feed(cutter, calls[after:], cuts, flushes)
    assert ids_of(files) == [i for call in calls for i in call.ids]


@given(calls=sources(), roll=rolls, data=st.data())
def test_a_call_that_fails_may_come_again_and_no_exact_row_is_doubled(
    calls: list[SourceCall], roll: Roll, data: st.DataObject
) -> None:
    calls = [replace(call, whole=False, position=n + 1, verb="insert") for n, call in enumerate(calls)]
    cutter = fresh(roll)
    files: list[FileContent] = []
    cuts, flushes = drawn(data)
    for call in calls:
        cutter.begin(Call(call.position))
        good = data.draw(st.integers(0, len(call.ids)), label="rows before the bad one")
        before = ids_of(files)
        files += cutter.add(call.batch().slice(0, good), exact=True)
        in_files = cutter.abort()
        assert in_files == len(set(ids_of(files)) - set(before) - {i for c in calls if c != call for i in c.ids})
        files += feed(cutter, [call], cuts, flushes)
    assert ids_of(files) == [i for call in calls for i in call.ids]


# --------------------------------------------------------------------------------------------------- one fact at a time


def load(cutter: Cutter, ids: Sequence[int], position: int | None = 1) -> list[FileContent]:
    return call(cutter, ids, None, position, load=True)


def call(
    cutter: Cutter, ids: Sequence[int], marker: int | None, position: int | None, *, load: bool = False
) -> list[FileContent]:
    cutter.begin(Call(position, load=load))
    files = cutter.add(batch_of(ids, marker), exact=marker in {None, 0}) if ids else []
    return files + cutter.end()


def pending_of(file: FileContent) -> Pending | None:
    return file.pending.get(SINGLE_PARTITION)


def test_a_load_of_no_rows_is_a_file_of_no_rows() -> None:
    (file,) = load(fresh(Roll()), [])
    assert (file.rows, file.phase, file.position, file.pending) == (0, "following", 1, {})


def test_the_file_that_ends_the_load_is_following_and_those_before_are_loading() -> None:
    files = load(fresh(Roll(rows=2)), range(5))
    assert [(f.phase, f.position) for f in files] == [("loading", None), ("loading", None), ("following", 1)]


def test_the_digest_of_pending_rows_covers_the_last_thousand() -> None:
    cutter = fresh(Roll(rows=1200))
    files = load(cutter, range(3000))
    assert pending_of(files[0]) == Pending(
        at=1, rows=1200, replay="exact", digest=digest([batch_of(range(200, 1200), None)])
    )
    assert pending_of(files[1]) == Pending(
        at=1, rows=2400, replay="exact", digest=digest([batch_of(range(1400, 2400), None)])
    )
    assert files[2].pending == {}


def test_many_small_calls_without_a_position_keep_the_last_thousand_rows() -> None:
    cutter = fresh(Roll(rows=10_000))
    call(cutter, [0], 0, 1)
    for i in range(1, 2302):
        call(cutter, [i], 0, None)
    file = cutter.take()
    assert file is not None
    assert pending_of(file) == Pending(rows=2301, replay="exact", digest=digest([batch_of(range(1302, 2302), 0)]))
    assert ids_of([file]) == list(range(2302))


def test_many_small_marker_free_batches_become_one_file_in_order() -> None:
    cutter = fresh(Roll())
    cutter.begin(Call(1, load=True))
    for i in range(3000):
        cutter.add(batch_of([i], None), exact=True)
    (file,) = cutter.end()
    assert ids_of([file]) == list(range(3000))


def test_pending_upserts_are_safe_and_come_again_whole() -> None:
    cutter = fresh(Roll(rows=2))
    files = call(cutter, range(5), 4, 7)
    assert pending_of(files[0]) == Pending(at=7, rows=2, replay="safe")
    resumed = Cutter(Roll(rows=9), Progress("following", None), Skip.of(files[0].pending), table="t")
    call(resumed, range(5), 4, 7)
    rest = resumed.take()
    assert rest is not None
    assert ids_of([rest]) == [0, 1, 2, 3, 4]


def test_one_insert_makes_all_pending_rows_exact() -> None:
    cutter = fresh(Roll(rows=4))
    call(cutter, [0, 1], 4, None)
    files = call(cutter, [2, 3, 4], 0, 7)
    assert pending_of(files[0]) is None, "no position was told yet"
    rest = cutter.take()
    assert rest is not None
    assert rest.position == 7
    cutter = Cutter(Roll(rows=4), Progress("following", 1), None, table="t")
    call(cutter, [0, 1], 4, None)
    call(cutter, [2], 0, None)
    file = cutter.take()
    assert file is not None
    marked = [batch_of([0, 1], 4), batch_of([2], 0)]
    assert pending_of(file) == Pending(rows=3, replay="exact", digest=digest(marked))


def test_rows_that_come_again_otherwise_are_a_mismatch() -> None:
    skip = Skip(2, 9, digest([batch_of([1, 2], 0)]))
    cutter = Cutter(Roll(), Progress("following", 1), skip, table="t")
    cutter.begin(Call(9))
    with pytest.raises(ResumeMismatchError) as caught:
        cutter.add(batch_of([2, 1], 0), exact=True)
    assert (caught.value.table, caught.value.position) == ("t", 9)


def test_rows_that_come_again_with_another_marker_are_a_mismatch() -> None:
    cutter = Cutter(Roll(), Progress("following", 1), Skip(1, 9, digest([batch_of([1], 0)])), table="t")
    cutter.begin(Call(9))
    with pytest.raises(ResumeMismatchError):
        cutter.add(batch_of([1], 4), exact=False)


@pytest.mark.parametrize("is_load", [True, False])
def test_fewer_rows_than_stand_are_a_mismatch_and_the_rows_may_come_again(is_load: bool) -> None:  # noqa: FBT001
    marker = None if is_load else 0
    skip = Skip(3, 9, digest([batch_of([1, 2, 3], marker)]))
    cutter = Cutter(Roll(), Progress("loading" if is_load else "following", None), skip, table="t")
    with pytest.raises(ResumeMismatchError):
        call(cutter, [1, 2], marker, 9, load=is_load)
    cutter.abort()
    files = call(cutter, [1, 2, 3, 4], marker, 9, load=is_load)
    rest = cutter.take()
    assert ids_of(files + ([rest] if rest else [])) == [4]


def test_an_advance_to_the_position_of_rows_that_did_not_come_again_is_a_mismatch() -> None:
    cutter = Cutter(Roll(), Progress("following", 1), Skip(1, 9, digest([batch_of([1], 0)])), table="t")
    with pytest.raises(ResumeMismatchError):
        cutter.advance(9)


def test_pending_rows_may_come_again_in_other_calls() -> None:
    """Two positions in one call before the crash, one by one behind it."""
    cutter = Cutter(Roll(rows=3), Progress("following", 1), None, table="t")
    (first,) = call(cutter, range(5), 0, 3)
    resumed = Cutter(Roll(rows=3), Progress("following", 1), Skip.of(first.pending), table="t")
    assert call(resumed, [0, 1], 0, 2) == []
    assert resumed.progress.position == 2
    call(resumed, [2, 3, 4], 0, 3)
    rest = resumed.take()
    assert rest is not None
    assert ids_of([rest]) == [3, 4]


def test_skipped_rows_count_as_pending_in_the_next_record() -> None:
    cutter = Cutter(Roll(rows=2), Progress("following", 1), None, table="t")
    (first, second) = call(cutter, range(5), 0, 3)
    resumed = Cutter(Roll(rows=1), Progress("following", 1), Skip.of(first.pending), table="t")
    files = call(resumed, range(5), 0, 3)
    assert [pending_of(file) for file in files[:2]] == [
        Pending(at=3, rows=3, replay="exact", digest=digest([batch_of(range(3), 0)])),
        pending_of(second),
    ]


def test_a_call_that_fails_with_nothing_in_files_leaves_all_as_it_was() -> None:
    cutter = fresh(Roll(rows=10))
    call(cutter, [1, 2], 0, 1)
    cutter.begin(Call(2))
    cutter.add(batch_of([3, 4], 0), exact=True)
    assert cutter.abort() == 0
    assert (cutter.progress.position, cutter.buffered_rows) == (1, 2)
    file = cutter.take()
    assert file is not None
    assert (ids_of([file]), file.pending) == ([1, 2], {})


def test_a_failed_call_of_upserts_is_published_again_whole() -> None:
    cutter = fresh(Roll(rows=2))
    cutter.begin(Call(1))
    files = cutter.add(batch_of(range(3), 4), exact=False)
    assert (ids_of(files), cutter.abort()) == ([0, 1], 2)
    files = call(cutter, range(3), 4, 1)
    assert ids_of(files) == [0, 1]
    rest = cutter.take()
    assert rest is not None
    assert (ids_of([rest]), rest.position) == ([2], 1)


def test_a_failed_load_has_begun_where_files_were_filled_and_not_before() -> None:
    cutter = fresh(Roll(rows=2))
    cutter.begin(Call(1, load=True))
    cutter.add(batch_of([0, 1], None), exact=True)
    assert cutter.abort() == 0
    states = [cutter.progress.state]
    cutter.begin(Call(1, load=True))
    cutter.add(batch_of([0, 1, 2], None), exact=True)
    assert cutter.abort() == 2
    assert [*states, cutter.progress.state] == ["new", "loading"]


def test_where_no_position_is_ever_told_a_failed_call_goes_on_behind_its_rows_in_files() -> None:
    cutter = fresh(Roll(rows=2))
    cutter.begin(Call())
    cutter.add(batch_of([0, 1, 2], 0), exact=True)
    assert cutter.abort() == 2
    assert cutter.skip is None


def test_an_empty_call_begins_nothing_and_advances() -> None:
    cutter = fresh(Roll())
    assert call(cutter, [], 4, 5) == []
    assert (cutter.progress.state, cutter.progress.position) == ("new", 5)


def test_discard_goes_back_behind_the_last_advance() -> None:
    cutter = fresh(Roll())
    cutter.advance(3)
    call(cutter, [1], 4, 4)
    assert cutter.discard() == 1
    assert (cutter.progress.position, cutter.progress.state) == (3, "new")


def test_a_call_inside_a_call_is_refused() -> None:
    cutter = fresh(Roll())
    cutter.begin(Call())
    for act in (lambda: cutter.begin(Call()), cutter.take, cutter.discard, lambda: cutter.advance(1)):
        with pytest.raises(OpenMirrorError, match="one after the other"):
            act()


@pytest.mark.parametrize("limits", [{"rows": 0}, {"bytes": 0}, {"age": 0}, {"age": -1.0}])
def test_a_limit_must_be_positive(limits: dict[str, Any]) -> None:
    with pytest.raises(OpenMirrorError, match="positive"):
        Roll(**limits)


def test_one_large_batch_is_cut_by_bytes() -> None:
    cutter = fresh(Roll(bytes=1000))
    cutter.begin(Call(1))
    files = [*cutter.add(batch_of(range(100), 4, width=30), exact=False), *cutter.end()]
    rest = cutter.take()
    files += [rest] if rest else []
    assert len(files) > 1
    assert all(sum(batch.nbytes for batch in file.batches) <= 1000 for file in files)
    assert ids_of(files) == list(range(100))


def test_a_tail_keeps_what_the_digest_needs() -> None:
    progress = Progress("following", 1)
    for i in range(2500):
        progress = progress.with_rows(batch_of([i], 0), exact=True)
    kept = [value for batch in last_rows(progress.tail) for value in batch.rows.column("id").to_pylist()]
    assert kept == list(range(1500, 2500))
