"""When a writer publishes what waits, and when it records a position that moved without rows."""

from __future__ import annotations

import pytest

from openmirror_writer.writer.schedule import Schedule


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def schedule(clock: Clock) -> Schedule:
    return Schedule(age=60, advance_interval=600, clock=clock)


def test_rows_wait_for_their_age(schedule: Schedule, clock: Clock) -> None:
    schedule.call_ended(rows_wait=True)
    clock.now += 59
    assert not schedule.is_file_due
    clock.now += 1
    assert schedule.is_file_due


def test_the_oldest_row_counts(schedule: Schedule, clock: Clock) -> None:
    schedule.call_ended(rows_wait=True)
    clock.now += 59
    schedule.call_ended(rows_wait=True)
    clock.now += 1
    assert schedule.is_file_due


def test_a_file_that_was_cut_for_its_size_takes_the_age_with_it(schedule: Schedule, clock: Clock) -> None:
    schedule.call_ended(rows_wait=True)
    clock.now += 59
    schedule.buffer_left()  # in the middle of a call whose last rows are buffered anew
    schedule.call_ended(rows_wait=True)
    clock.now += 1
    assert not schedule.is_file_due


def test_an_empty_buffer_is_never_due(schedule: Schedule, clock: Clock) -> None:
    clock.now += 1000
    assert not schedule.is_file_due
    schedule.call_ended(rows_wait=True)
    schedule.call_ended(rows_wait=False)
    clock.now += 1000
    assert not schedule.is_file_due


def test_without_an_age_rows_wait_for_ever(clock: Clock) -> None:
    schedule = Schedule(age=None, advance_interval=600, clock=clock)
    schedule.call_ended(rows_wait=True)
    clock.now += 1e9
    assert not schedule.is_file_due


def test_a_record_is_due_when_nothing_told_the_position_for_its_interval(schedule: Schedule, clock: Clock) -> None:
    clock.now += 599
    assert not schedule.is_record_due
    clock.now += 1
    assert schedule.is_record_due
    schedule.recorded()
    assert (schedule.is_record_due, schedule.recorded_at) == (False, 1600.0)
