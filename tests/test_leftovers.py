"""What is left behind: temporary files of killed processes, and records of text files that are gone."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from openmirror_writer import DelimitedText, LandingTable, LandingZone, Writer
from openmirror_writer.layout import PROCESSED, data_file, sort_names
from openmirror_writer.storage import perform
from openmirror_writer.writer.resume import open_table
from tests.writer.feeder import Tapped

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


@pytest.fixture
def texts(tmp_path: Path) -> LandingTable:
    """A table of three text files with a record beside each."""
    table = LandingZone(tmp_path).table("t", key_columns=["id"], columns={"id": "int64"}, format=DelimitedText())
    for n in (1, 2, 3):
        Writer(table).upsert([{"id": n}], position=n)
    return table


def _records(table: LandingTable) -> list[int]:
    return sorted(number for number, _ in sort_names(table.zone.storage.names("t").files).sidecars)


def _age_records(folder: Path, hours: float) -> None:
    for file in folder.glob("_*.*.*.json"):
        then = time.time() - hours * 3600
        os.utime(file, (then, then))


def test_the_record_of_a_text_file_goes_at_an_opening_when_its_file_is_gone_and_the_others_stay(texts, tmp_path):
    """One file was moved and then deleted, one was moved, the last one stands."""
    folder = tmp_path / "t"
    (folder / PROCESSED).mkdir()
    (folder / data_file(1, "csv")).unlink()
    (folder / data_file(2, "csv")).rename(folder / PROCESSED / data_file(2, "csv"))
    _age_records(folder, hours=1.1)
    assert (Writer(texts).position, _records(texts)) == (3, [2, 3])


def test_the_record_of_a_writer_that_is_just_sending_stays(texts, tmp_path):
    """Its file has not come yet, and another writer has gone on meanwhile."""
    folder = tmp_path / "t"
    (folder / data_file(1, "csv")).unlink()
    _age_records(folder, hours=0.9)
    assert (Writer(texts).position, _records(texts)) == (3, [1, 2, 3])


def test_looking_deletes_no_record(texts, tmp_path):
    folder = tmp_path / "t"
    (folder / data_file(1, "csv")).unlink()
    _age_records(folder, hours=2)
    perform(texts.zone.storage, open_table(texts, None, time.monotonic))
    assert _records(texts) == [1, 2, 3]


def test_where_no_record_is_old_no_further_folder_is_listed(texts):
    listed: list[str] = []
    zone = LandingZone(Tapped(texts.zone.storage, before=lambda operation, path: listed.append(path)))
    Writer(zone.table("t", key_columns=["id"], columns={"id": "int64"}, format=DelimitedText()))
    assert [path for path in listed if path.endswith(PROCESSED)] == []


def test_a_create_under_way_is_left_alone(tmp_path):
    """What is younger may belong to a writer that is still at work."""
    table = LandingZone(tmp_path).table("t", key_columns=["id"])
    Writer(table).upsert([{"id": 1}])
    file = _staged(tmp_path / "t", hours=0.5)
    Writer(table)
    assert file.exists()
