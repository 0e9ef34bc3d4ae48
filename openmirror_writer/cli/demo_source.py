"""The demo's source: three days of flights as a feed of changes that can be read again from any position. Pure.

The data set holds only how each flight ended. The events are derived from that: a flight is planned, departs, lands, or
is cancelled; a few get another flight number, which is part of the key. The order of events is that of the clock as far
as the data tell it.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

COLUMNS = {
    **dict.fromkeys(("year", "month", "day"), "int32"),
    "carrier": "string",
    "flight": "int32",
    **dict.fromkeys(("origin", "dest", "tailnum"), "string"),
    **dict.fromkeys(("sched_dep_time", "dep_time", "dep_delay", "sched_arr_time", "arr_time", "arr_delay"), "int32"),
    **dict.fromkeys(("air_time", "distance"), "int32"),
}
KEYS = ("year", "month", "day", "carrier", "flight", "origin")

DAYS = 3
"""How many days the data set has."""
_DEPARTURE = ("dep_time", "dep_delay")
_ARRIVAL = ("arr_time", "arr_delay", "air_time")
_RENUMBER_EVERY = 40
"""Every 40th flight of the plan is renumbered: about 60 of 2,546."""
_NEW_NUMBERS = 9000
"""Added to the number of a renumbered flight; no number of the data set is that high."""
_BATCH_MINUTES = 30
_TAXI_MINUTES = 20
_DIVERTED_MINUTES = 240
"""In the air, where the data set does not tell because the flight was diverted."""
_DAY_MINUTES = 24 * 60

Row = dict[str, Any]
Key = tuple[Any, ...]
Kind = Literal["renumbered", "cancelled", "departed", "landed"]


@dataclass(frozen=True)
class Event:
    """Something that happened to one flight.

    Attributes:
        minute: Since the first day began.
        kind: What happened.
        row: The flight's row afterwards; of a cancelled one, its key.
        old_key: The flight's key before.
    """

    minute: int
    kind: Kind
    row: Row
    old_key: Key


@dataclass(frozen=True)
class Batch:
    """The events of half an hour.

    Attributes:
        position: When it ends, ``"2013-02-08 14:30"``; as text, positions go up.
        events: In order.
    """

    position: str
    events: list[Event]

    def statements(self) -> Iterator[tuple[Kind, list[Event]]]:
        """Group the events that follow each other and are of one kind; no flight is twice in a group."""
        for kind, events in groupby(self.events, key=lambda event: event.kind):
            yield kind, list(events)


def key_of(row: Row) -> Key:
    """Return the key of a row, in the order of `KEYS`."""
    return tuple(row[name] for name in KEYS)


class Flights:
    """The first days of the data set as a source of changes."""

    def __init__(self, path: Path, days: int = DAYS) -> None:
        """Read the file.

        Args:
            path: The CSV file, see `openmirror_writer.cli.flights_data`.
            days: How many days, 1 to `DAYS`.
        """
        with path.open(encoding="utf-8", newline="") as file:
            rows = [_typed(row) for row in csv.DictReader(file)]
        self._first_day = min(_day(row) for row in rows)
        self._final = [row for row in rows if _day(row) < self._first_day + timedelta(days=days)]

    @property
    def start(self) -> str:
        """The position of the plan: before the first event."""
        return self._position(0)

    def schedule(self) -> list[Row]:
        """Return the plan of all days: what is known before the first flight; the initial load."""
        return [{**row, **dict.fromkeys(_DEPARTURE + _ARRIVAL)} for row in self._final]

    def batches(self, after: str | None = None) -> Iterator[Batch]:
        """Yield the half hours in which something happened, those behind a position (None: all); always the same."""
        return (batch for batch in self._batches if after is None or batch.position > after)

    @cached_property
    def events(self) -> list[Event]:
        """All events in order; those of one minute as they stand in the file."""
        events = [event for index, row in enumerate(self._final) for event in self._life(index, row)]
        return sorted(events, key=lambda event: event.minute)

    def final_rows(self) -> dict[Key, Row]:
        """Return what the source holds at the end: the events applied to a dict, and nothing of this package."""
        table = {key_of(row): row for row in self.schedule()}
        for event in self.events:
            del table[event.old_key]
            if event.kind != "cancelled":
                table[key_of(event.row)] = event.row
        return table

    @cached_property
    def _batches(self) -> list[Batch]:
        groups = groupby(self.events, key=lambda event: event.minute // _BATCH_MINUTES)
        return [Batch(self._position((half_hour + 1) * _BATCH_MINUTES), list(events)) for half_hour, events in groups]

    def _position(self, minute: int) -> str:
        return f"{self._first_day + timedelta(minutes=minute):%Y-%m-%d %H:%M}"

    def _life(self, index: int, final: Row) -> Iterator[Event]:
        midnight = (_day(final) - self._first_day).days * _DAY_MINUTES
        planned = midnight + _minutes(final["sched_dep_time"])
        row = {**final, **dict.fromkeys(_DEPARTURE + _ARRIVAL)}
        if index % _RENUMBER_EVERY == 0:
            old_key = key_of(row)
            row = {**row, "flight": row["flight"] + _NEW_NUMBERS}
            yield Event(midnight, "renumbered", row, old_key)
        key = key_of(row)
        if final["dep_time"] is None:
            yield Event(planned, "cancelled", dict(zip(KEYS, key, strict=True)), key)
            return
        departed = max(planned + final["dep_delay"], midnight)
        row = {**row, **{name: final[name] for name in _DEPARTURE}}
        yield Event(departed, "departed", row, key)
        if final["arr_time"] is not None:
            in_the_air = final["air_time"] or _DIVERTED_MINUTES
            row = {**row, **{name: final[name] for name in _ARRIVAL}}
            yield Event(departed + in_the_air + _TAXI_MINUTES, "landed", row, key)


def _typed(texts: dict[str, str]) -> Row:
    return {
        name: None if texts[name] == "" else texts[name] if kind == "string" else int(texts[name])
        for name, kind in COLUMNS.items()
    }


def _day(row: Row) -> datetime:
    return datetime(row["year"], row["month"], row["day"])  # noqa: DTZ001 - local time, as the data set has it


def _minutes(clock: int) -> int:
    """Return the minutes since midnight of a time of day written as the number HHMM.

    >>> _minutes(1730)
    1050
    """
    return clock // 100 * 60 + clock % 100
