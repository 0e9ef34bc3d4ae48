"""Temporary files that a killed process left behind."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from openmirror_writer import LandingZone, Writer

_NAME = "_00000000000000000002.0123456789abcdef0123456789abcdef.staged"


def _staged(folder: Path, hours: float) -> Path:
    file = folder / _NAME
    file.write_bytes(b"half")
    then = time.time() - hours * 3600
    os.utime(file, (then, then))
    return file


@pytest.mark.rule("record.9")
def test_a_leftover_of_more_than_an_hour_is_deleted_at_the_next_opening(tmp_path):
    """By the storage's clock: an hour older than the newest file."""
    table = LandingZone(tmp_path).table("t", key_columns=["id"])
    Writer(table).upsert([{"id": 1}])
    file = _staged(tmp_path / "t", hours=1.1)
    Writer(table)
    assert not file.exists()


def test_a_create_under_way_is_left_alone(tmp_path):
    """What is younger may belong to a writer that is still at work."""
    table = LandingZone(tmp_path).table("t", key_columns=["id"])
    Writer(table).upsert([{"id": 1}])
    file = _staged(tmp_path / "t", hours=0.5)
    Writer(table)
    assert file.exists()
