"""Publishing files of one table for real."""

from __future__ import annotations

import logging
import time

import pyarrow as pa
import pytest

from openmirror_writer.changes import ChangeBatch
from openmirror_writer.errors import OpenMirrorError
from openmirror_writer.layout import data_file
from openmirror_writer.schema import declared_columns
from openmirror_writer.writer.cut import FileContent, Progress
from openmirror_writer.writer.publish import FilePublisher, seconds
from openmirror_writer.zone import LandingTable, LandingZone
from tests.writer.landing import advances, content, landed, record

COLUMNS = declared_columns({"id": "int64", "v": "string"})


def a_file(position: object = 1, rows: int = 2) -> FileContent:
    batch = pa.record_batch({"id": list(range(rows)), "v": ["x"] * rows}, schema=COLUMNS)
    return FileContent((ChangeBatch(batch, pa.array([4] * rows, pa.int32())),), "following", position)


@pytest.mark.rule("record.6")
def test_a_file_stands_with_its_record_and_is_reported_once(orders: LandingTable) -> None:
    publisher = FilePublisher(orders, None)
    publisher.publish(a_file(7))
    (file,) = publisher.take_files()
    data = content(orders, data_file(1)).data
    of_file = record(orders, 1)
    assert (file.table, file.path, file.number, file.rows) == ("orders", f"orders/{data_file(1)}", 1, 2)
    assert (file.bytes, file.position, file.batch) == (len(data), 7, of_file.batch)
    assert (of_file.number, of_file.previous, of_file.position, of_file.phase) == (1, None, 7, "following")
    assert of_file.by.startswith("openmirror-writer ")
    assert landed(orders, 1) == [(4, 0, "x"), (4, 1, "x")]
    assert publisher.take_files() == []


@pytest.mark.rule("record.5")
def test_records_form_a_chain_of_one_writer_and_one_generation(orders: LandingTable) -> None:
    publisher = FilePublisher(orders, None)
    for position in range(3):
        publisher.publish(a_file(position))
    records = [record(orders, number) for number in (1, 2, 3)]
    assert [r.previous for r in records] == [None, records[0].batch, records[1].batch]
    assert len({r.batch for r in records}) == 3
    assert len({(r.generation, r.writer) for r in records}) == 1


def test_every_writer_has_an_id_of_its_own(orders: LandingTable) -> None:
    for _ in range(2):
        FilePublisher(orders, None).publish(a_file())
    assert record(orders, 1).writer != record(orders, 2).writer


def test_it_counts_the_rows_that_it_published(orders: LandingTable) -> None:
    publisher = FilePublisher(orders, None)
    publisher.publish(a_file(rows=2))
    publisher.publish(a_file(rows=3))
    assert (publisher.rows, publisher.last) == (5, 2)


def test_who_changes_a_reported_position_changes_nothing_else(orders: LandingTable) -> None:
    publisher = FilePublisher(orders, None)
    publisher.publish(a_file({"0": 1}))
    publisher.take_files()[0].position["0"] = 99
    publisher.confirm()
    assert publisher.published_position == {"0": 1} == publisher.recorded_position


def test_an_advance_is_recorded_and_durable_when_confirmed(orders: LandingTable) -> None:
    publisher = FilePublisher(orders, None)
    publisher.publish(a_file(1))
    publisher.advance(Progress("following", 2))
    publisher.confirm()
    assert [advance.position for advance in advances(orders)] == [2]
    assert (publisher.published_position, publisher.recorded_position) == (2, 2)


def test_a_file_without_known_columns_is_refused(zone: LandingZone) -> None:
    publisher = FilePublisher(zone.table("orders", key_columns=["id"]), None)
    with pytest.raises(OpenMirrorError, match="give columns="):
        publisher.publish(a_file())


def test_what_is_published_is_logged_without_a_value(orders: LandingTable, caplog: pytest.LogCaptureFixture) -> None:
    publisher = FilePublisher(orders, None)
    with caplog.at_level(logging.DEBUG, logger="openmirror_writer"):
        publisher.publish(a_file("secret position"))
        publisher.advance(Progress("following", "secret position"))
    first, second = caplog.messages
    assert first.startswith(f"published orders/{data_file(1)}: 2 rows, ")
    assert second == "advanced orders behind file 1"
    assert "secret" not in caplog.text


def test_seconds_go_on_while_the_process_is_paused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert seconds() <= seconds()
    monkeypatch.delattr(time, "CLOCK_BOOTTIME", raising=False)
    assert seconds() <= time.monotonic()
