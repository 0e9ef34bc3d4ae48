"""The record v1: what a published file says of itself."""

import json
from typing import Any
from uuid import UUID

import pytest

from openmirror_writer.errors import UnknownPositionError
from openmirror_writer.record import Pending, Record, new_id, parse_record

RECORD = Record(
    generation="0b4f",
    number=7,
    previous="batch 6",
    batch="batch 7",
    writer="writer 1",
    phase="following",
    position={"0": [12, "ü"]},
    pending={"": Pending(at=13, rows=2, replay="exact", digest="d1"), "1": Pending(rows=1, replay="safe")},
    by="openmirror-writer 0.1.0",
)


def _parsed(**changed: Any) -> Record:
    return parse_record(json.dumps({**json.loads(RECORD.to_bytes()), **changed}).encode(), file="orders/7")


def test_a_record_comes_back_as_it_was_written() -> None:
    assert parse_record(RECORD.to_bytes(), file="orders/7") == RECORD


def test_the_fields_are_those_of_version_1() -> None:
    fields = {"v", "generation", "number", "previous", "batch", "writer", "phase", "position", "pending", "by"}
    written = json.loads(RECORD.to_bytes())
    assert written.keys() == fields
    assert written["v"] == 1
    assert written["pending"][""] == {"at": 13, "rows": 2, "replay": "exact", "digest": "d1"}


def test_unknown_fields_are_ignored() -> None:
    assert _parsed(checksum="x", pending={"": {"rows": 1, "replay": "safe", "since": "x"}}).pending[""].rows == 1


def test_the_first_record_has_no_position_and_nothing_before_it() -> None:
    record = _parsed(number=1, previous=None, position=None, pending={})
    assert (record.previous, record.position, record.pending) == (None, None, {})


@pytest.mark.rule("record.7")
@pytest.mark.parametrize("version", [2, 17])
def test_a_higher_version_is_refused_whatever_else_stands_there(version: int) -> None:
    with pytest.raises(UnknownPositionError, match=f"has version {version}, we read version 1: upgrade") as caught:
        parse_record(b'{"v": %d, "batch": {"new": "form"}}' % version, file="orders/7")
    assert caught.value.file == "orders/7"


@pytest.mark.rule("record.7")
@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"v": 0}, "v: "),
        ({"v": "1.0"}, "v: "),
        ({"number": 0}, "number: "),
        ({"number": "x"}, "number: "),
        ({"phase": "done"}, "phase: "),
        ({"batch": None}, "batch: "),
        ({"pending": []}, "pending: "),
        ({"pending": {"": {"rows": 0, "replay": "safe"}}}, "pending..rows: "),
        ({"pending": {"": {"rows": 1, "replay": "perhaps"}}}, "pending..replay: "),
    ],
)
def test_a_record_that_does_not_fit_is_refused_with_its_field(changed: dict[str, Any], reason: str) -> None:
    with pytest.raises(UnknownPositionError, match=rf"is damaged \({reason}") as caught:
        _parsed(**changed)
    assert caught.value.file == "orders/7"


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"[]", b"null", b"\xff\xfe\x00", b'{"v": 1', b"[" * 1_000, b'{"v": 1e400}']
)
def test_garbage_is_refused(data: bytes) -> None:
    with pytest.raises(UnknownPositionError, match="is damaged"):
        parse_record(data, file="orders/7")


def test_an_id_is_random() -> None:
    ids = {new_id() for _ in range(100)}
    assert len(ids) == 100
    assert all(UUID(each).version == 4 for each in ids)
