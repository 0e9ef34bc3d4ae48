"""The demo's source: deterministic, in order, and true to the data set."""

from __future__ import annotations

import csv
from collections import Counter

import pytest

from openmirror_writer.cli.demo_source import KEYS, Flights, key_of
from openmirror_writer.cli.flights_data import flights_path


@pytest.fixture
def flights() -> Flights:
    return Flights(flights_path())


def test_the_end_is_the_data_set_without_cancelled_flights(flights: Flights) -> None:
    with flights_path().open(encoding="utf-8", newline="") as file:
        flown = [row for row in csv.DictReader(file) if row["dep_time"]]
    texts = [
        {name: "" if value is None else str(value) for name, value in row.items()}
        for row in flights.final_rows().values()
    ]
    for row in texts:
        row["flight"] = str(int(row["flight"]) % 9000)  # the renumbered ones
    assert Counter(tuple(row.values()) for row in texts) == Counter(tuple(row.values()) for row in flown)


def test_the_plan_knows_nothing_of_what_happened(flights: Flights) -> None:
    unknown = ("dep_time", "dep_delay", "arr_time", "arr_delay", "air_time")
    assert len(flights.schedule()) == 2546
    assert all(row[name] is None for row in flights.schedule() for name in unknown)


def test_all_kinds_of_events_occur(flights: Flights) -> None:
    kinds = Counter(event.kind for event in flights.events)
    assert kinds == {"departed": 1677, "landed": 1674, "cancelled": 869, "renumbered": 64}


def test_each_event_finds_the_row_that_it_changes(flights: Flights) -> None:
    standing = {key_of(row) for row in flights.schedule()}
    for event in flights.events:
        standing.remove(event.old_key)
        if event.kind != "cancelled":
            assert key_of(event.row) not in standing
            standing.add(key_of(event.row))


def test_a_renumbered_flight_has_another_key(flights: Flights) -> None:
    assert all((key_of(event.row) != event.old_key) == (event.kind == "renumbered") for event in flights.events)


def test_positions_go_up_as_text_from_the_start_on(flights: Flights) -> None:
    positions = [flights.start, *(batch.position for batch in flights.batches())]
    assert positions == sorted(set(positions))
    assert (positions[0], positions[-1]) == ("2013-02-07 00:00", "2013-02-10 04:00")


def test_it_can_be_read_again_from_any_position(flights: Flights) -> None:
    batches = list(flights.batches())
    for index, batch in enumerate(batches):
        assert list(Flights(flights_path()).batches(after=batch.position))[:2] == batches[index + 1 : index + 3]
        if index > 5:
            break
    assert list(flights.batches(after=batches[-1].position)) == []


def test_a_statement_names_no_flight_twice_and_keeps_the_order(flights: Flights) -> None:
    for batch in flights.batches():
        statements = list(batch.statements())
        assert [event for _, events in statements for event in events] == batch.events
        for kind, events in statements:
            assert {event.kind for event in events} == {kind}
            assert len({event.old_key for event in events}) == len(events)


def test_fewer_days_are_the_first_ones() -> None:
    one = Flights(flights_path(), days=1)
    assert {row["day"] for row in one.schedule()} == {7}
    assert set(one.final_rows()) <= set(Flights(flights_path()).final_rows())
    assert len(KEYS) == 6
