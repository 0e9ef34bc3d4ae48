"""Writers in several real processes on one table: a paused one, and four at once."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from openmirror_writer import Writer, replay
from openmirror_writer.layout import data_file, data_number
from openmirror_writer.storage import open_storage
from openmirror_writer.writer.fence import PROOF_SECONDS
from openmirror_writer.zone import LandingTable, LandingZone
from tests.writer.conftest import Publishers
from tests.writer.feeder import orders
from tests.writer.landing import identities, move_processed, record

pytestmark = pytest.mark.skipif(os.name == "nt", reason="forks, and pauses with SIGSTOP")


@pytest.fixture
def table(tmp_path: Path) -> LandingTable:
    return orders(open_storage(tmp_path / "zone"))


@pytest.fixture
def paused(publishers: Publishers, tmp_path: Path, table: LandingTable) -> Callable[..., dict[str, Any]]:
    """Pause a writer, let another publish five files and a mirror move four of them, let the first one go on."""

    def run(at: str, seconds: float) -> dict[str, Any]:
        result = tmp_path / "result"
        (answer,) = publishers([{"do": "pause", "at": at, "folder": str(tmp_path / "zone"), "result": str(result)}])
        try:
            other = Writer(table)
            for number in range(2, 7):
                other.insert([{"id": number * 100, "v": "other"}], position=number)
            move_processed(table, [1, 2, 3, 4])
            before = identities(table)
            time.sleep(seconds)
        finally:
            os.kill(answer["stopped"], signal.SIGCONT)
        assert publishers([{"do": "wait", "pid": answer["stopped"]}]) == [{"killed": False, "code": 0}]
        told: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
        return {**told, "wrote": sorted(identities(table).keys() - before.keys())}

    return run


def check_only_the_other_writer_counts(table: LandingTable) -> None:
    rows = replay(table.zone)["orders"].to_pylist()
    want = [(0, "first0"), (1, "first1"), (2, "first2"), *((number * 100, "other") for number in range(2, 7))]
    assert sorted((row["id"], row["v"]) for row in rows) == want


def test_a_writer_that_was_paused_for_longer_than_a_proof_holds_writes_nothing(
    paused: Callable[..., dict[str, Any]], table: LandingTable
) -> None:
    told = paused("call", PROOF_SECONDS + 0.2)
    assert (told["error"], told["published_position"], told["wrote"]) == ("ConcurrentWriterError", 1, [])
    check_only_the_other_writer_counts(table)


@pytest.mark.parametrize("at", ["call", "create"])
def test_a_file_that_a_short_pause_lets_through_is_named_and_never_applied(
    paused: Callable[..., dict[str, Any]], table: LandingTable, at: str
) -> None:
    """Its number was free again, so its create succeeded: only the proof behind it tells."""
    told = paused(at, 0.0)
    assert (told["error"], told["published_position"]) == ("ConcurrentWriterError", 1)
    assert told["wrote"] == [data_file(2)]
    assert f"delete them: orders/{data_file(2)}" in told["message"]
    check_only_the_other_writer_counts(table)
    with Writer(table) as writer:
        assert writer.position == 6
        writer.insert([{"id": 9999, "v": "next"}], position=7)
    assert {"id": 9999, "v": "next"} in replay(table.zone)["orders"].to_pylist()


def test_of_four_writers_at_once_each_file_is_there_whole_or_its_writer_was_refused(
    publishers: Publishers, tmp_path: Path, table: LandingTable
) -> None:
    todo = [
        {
            "do": "race",
            "first": 1000 * n,
            "files": 8,
            "folder": str(tmp_path / "zone"),
            "result": str(tmp_path / str(n)),
        }
        for n in range(4)
    ]
    assert publishers(todo) == [{"killed": False, "code": 0}] * 4
    taken = [file for n in range(4) for file in json.loads((tmp_path / str(n)).read_text(encoding="utf-8"))]
    numbers = sorted(filter(None, map(data_number, table.zone.storage.names(table.folder).files)))
    assert numbers == list(range(1, len(numbers) + 1))
    batches = [record(table, number).batch for number in numbers]
    assert {batch for _, of_file in taken for batch in of_file} <= set(batches)
    ids = [row["id"] for row in replay(LandingZone(tmp_path / "zone"))["orders"].to_pylist()]
    assert len(ids) == len(set(ids)) == 3 * len(numbers), "every file that stands is whole and applied once"
    assert {first for first, _ in taken} <= {i for i in ids if i % 10 == 0}
    assert len(taken) >= 8, "of four that try at once one goes through"
