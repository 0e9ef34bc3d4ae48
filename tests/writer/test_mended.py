"""What a review found, kept from coming back."""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow as pa
import pytest

from openmirror_writer import LandingZone, OpenMirrorError, Roll, SchemaRefusedError, Writer, drop_table, replay
from openmirror_writer.writer import publish

COLUMNS = {"id": "int64", "v": "string"}
ROW = {"id": 1, "v": "a"}


@pytest.fixture
def zone(tmp_path: Path) -> LandingZone:
    return LandingZone(tmp_path)


def test_advance_without_a_position_is_refused(zone: LandingZone) -> None:
    """It would send the source back to its beginning."""
    writer = Writer(zone.table("t", key_columns=["id"], columns=COLUMNS))
    writer.insert([ROW], position=1)
    with pytest.raises(OpenMirrorError, match="position"):
        writer.advance(None)
    assert Writer(zone.table("t")).position == 1


def test_a_drop_between_opening_and_the_first_row_does_not_lose_the_metadata(zone: LandingZone) -> None:
    """The folder had metadata when the writer looked, and has none when it publishes."""
    table = zone.table("t", key_columns=["id"], columns=COLUMNS)
    zone.storage.create("t/_metadata.json", table.metadata(["id"], pa.schema([])).to_bytes())
    writer = Writer(table)
    drop_table(table)
    writer.upsert([ROW])
    assert replay(zone)["t"].to_pylist() == [ROW]


def test_upserts_without_keys_are_refused_at_once(zone: LandingZone) -> None:
    """The mirror could not apply them."""
    with pytest.raises(SchemaRefusedError, match="key"):
        zone.table("t", key_columns=[], columns=COLUMNS, unmarked_rows="upsert")


@pytest.mark.rule("2.3")
def test_rows_without_a_marker_mean_what_the_folder_says(zone: LandingZone) -> None:
    """A writer that means something else is refused."""
    Writer(zone.table("t", key_columns=["id"], columns=COLUMNS, unmarked_rows="upsert")).initial_load([ROW])
    with pytest.raises(SchemaRefusedError, match='unmarked_rows="upsert"'):
        Writer(zone.table("t"))
    Writer(zone.table("t", unmarked_rows="upsert"))


def test_a_quiet_feed_is_acknowledged(zone: LandingZone, monkeypatch: pytest.MonkeyPatch) -> None:
    """The idle worker takes the proof that makes `published_position` move."""
    with Writer(zone.table("t", key_columns=["id"], columns=COLUMNS), roll=Roll(rows=1)) as writer:
        writer.upsert([ROW], position=1)
        writer.upsert([ROW], position=2)
        real = publish.seconds
        monkeypatch.setattr(writer._publisher._fence, "_clock", lambda: real() + 60)
        deadline = time.monotonic() + 30
        while writer.published_position != 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert writer.published_position == 2


def test_a_drop_takes_what_others_put_below_the_folder(zone: LandingZone) -> None:
    """A folder that is left would be a table to the mirror."""
    table = zone.table("t", key_columns=["id"], columns=COLUMNS)
    Writer(table).upsert([ROW])
    zone.storage.create("t/odd/deep/file", b"x")
    drop_table(table)
    assert zone.tables() == []
