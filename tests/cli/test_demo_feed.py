"""What the demo's writer does, without the process around it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from uuid import uuid4

import pytest

from openmirror_writer import LandingZone, Writer, replay
from openmirror_writer.cli.demo_feed import TABLE, feed, flights_table
from openmirror_writer.cli.demo_source import Batch, Flights, key_of
from openmirror_writer.cli.flights_data import flights_path


@pytest.fixture
def zone() -> LandingZone:
    return LandingZone(f"memory://{uuid4().hex}")


class Interrupted(Flights):
    """A source that breaks after some batches."""

    def batches(self, after: str | None = None) -> Iterator[Batch]:
        for number, batch in enumerate(super().batches(after)):
            if number == 20:
                raise InterruptedError
            yield batch


def test_the_zone_replays_to_the_source(zone: LandingZone) -> None:
    flights = Flights(flights_path(), days=1)
    feed(zone, flights)
    assert {key_of(row): row for row in replay(zone)[TABLE].to_pylist()} == flights.final_rows()


def test_a_broken_feed_goes_on_where_the_zone_says(zone: LandingZone, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InterruptedError):
        feed(zone, Interrupted(flights_path(), days=1))
    capsys.readouterr()
    flights = Flights(flights_path(), days=1)
    feed(zone, flights)
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert told[0]["state"] == "following"
    assert flights.start < told[0]["position"] < told[-1]["position"]
    assert {key_of(row): row for row in replay(zone)[TABLE].to_pylist()} == flights.final_rows()


def test_a_second_feed_finds_nothing_to_do(zone: LandingZone, capsys: pytest.CaptureFixture[str]) -> None:
    flights = Flights(flights_path(), days=1)
    feed(zone, flights)
    capsys.readouterr()
    feed(zone, flights)
    assert len(capsys.readouterr().out.splitlines()) == 1
    assert Writer(flights_table(zone)).position == list(flights.batches())[-1].position
