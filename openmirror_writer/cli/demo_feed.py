"""What the demo's writer does: it publishes flights, from where the landing zone says that it stands."""

from __future__ import annotations

import json
import time

from openmirror_writer.cli.demo_source import COLUMNS, KEYS, Batch, Flights
from openmirror_writer.writer import Roll, Writer
from openmirror_writer.zone import LandingTable, LandingZone

TABLE = "flights"
_ROWS_PER_FILE = 250
"""Small, so that a few days make some twenty files."""


def flights_table(zone: LandingZone) -> LandingTable:
    """Return the demo's table in a zone."""
    return zone.table(TABLE, key_columns=KEYS, columns=COLUMNS)


def feed(zone: LandingZone, flights: Flights, pace: float = 0.0) -> None:
    """Publish what is missing in the zone; print on stdout how far it is, one line of JSON for each half hour.

    Args:
        zone: The landing zone.
        flights: The source.
        pace: Seconds to wait behind each batch, so that somebody can watch it, or kill it.

    Raises:
        OpenMirrorError: As `Writer`.
    """
    with Writer(flights_table(zone), roll=Roll(rows=_ROWS_PER_FILE)) as writer:
        _tell(state=writer.state, position=writer.position)
        if writer.state != "following":
            writer.initial_load(flights.schedule(), position=flights.start)
        for batch in flights.batches(after=writer.position):
            play(writer, batch)
            _tell(state=writer.state, position=writer.position)
            time.sleep(pace)


def play(writer: Writer, batch: Batch) -> None:
    """Hand the events of a batch to the writer, in order: updates, deletes, and updates that change the key."""
    for kind, events in batch.statements():
        rows = [event.row for event in events]
        if kind == "cancelled":
            writer.delete(rows)
        elif kind == "renumbered":
            writer.update(rows, old_keys=[dict(zip(KEYS, event.old_key, strict=True)) for event in events])
        else:
            writer.update(rows)
    writer.advance(batch.position)


def _tell(**what: str | None) -> None:
    print(json.dumps(what), flush=True)  # noqa: T201 - the parent reads stdout
