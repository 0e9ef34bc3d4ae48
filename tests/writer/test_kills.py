"""Real kills: whatever SIGKILL leaves behind, the next writer brings the table to equal the source, without gaps."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from openmirror_writer.layout import MOVED, data_number
from openmirror_writer.replay import replay
from openmirror_writer.storage import open_storage
from openmirror_writer.zone import LandingZone
from tests.writer.conftest import Publishers
from tests.writer.feeder import Source, orders
from tests.writer.landing import move_processed

pytestmark = pytest.mark.skipif(os.name == "nt", reason="forks, and kills with SIGKILL")

Publish = Callable[..., dict[str, Any]]

_STEPS_OF_A_PUBLISH = 14
"""Operations on the storage up to the second file: the first look, the generation, file 1, the proof, the metadata."""
_STEPS_OF_LOCAL_CREATES = 16
"""Calls of the operating system by which the first four local files are created, four each."""


@pytest.fixture
def publish(publishers: Publishers) -> Publish:
    """Let a publisher run, to its end or its kill."""

    def order(folder: Path, **how: Any) -> dict[str, Any]:
        (answer,) = publishers([{"do": "publish", "folder": str(folder), **how}])
        assert answer["killed"] or answer["code"] == 0, "see the traceback on standard error"
        return answer

    return order


def standing(zone: Path) -> list[int]:
    """Numbers of the data files, those that were moved included."""
    found = [zone / "orders", *(zone / "orders" / moved for moved in MOVED)]
    names = [path.name for folder in found if folder.is_dir() for path in folder.iterdir()]
    return sorted(filter(None, map(data_number, names)))


def check_table_equals_source(folder: Path) -> None:
    numbers = standing(folder)
    assert numbers == list(range(1, len(numbers) + 1))
    rows = replay(LandingZone(folder))["orders"].to_pylist()
    assert sorted(rows, key=lambda row: (row["id"], row["v"])) == Source().table()


def move_some(folder: Path) -> None:
    """What the service does meanwhile: all files but the last may be moved away."""
    table = orders(open_storage(folder))
    numbers = sorted(filter(None, map(data_number, table.zone.storage.names(table.folder).files)))
    move_processed(table, numbers[: random.randint(0, max(len(numbers) - 1, 0))])


def kill_at_each_step(publish: Publish, tmp_path: Path, kind: str, most: int | None) -> int:
    """Kill at one step after the other, each in a zone of its own; return how many kills it took."""
    step = 0
    while most is None or step < most:
        folder = tmp_path / str(step)
        if not publish(folder, **{kind: step})["killed"]:
            break
        move_some(folder)
        publish(folder)
        check_table_equals_source(folder)
        step += 1
    return step


def kill_at_random(publish: Publish, tmp_path: Path, kills: int) -> None:
    """Kill at random moments, on and on until a zone is complete, then in the next one."""
    killed = zone = 0
    while killed < kills:
        folder = tmp_path / f"zone-{zone}"
        zone += 1
        while publish(folder, seconds=0.01, kill_seconds=random.uniform(0.0, 0.4))["killed"]:
            killed += 1
            move_some(folder)
        check_table_equals_source(folder)


def test_a_publisher_that_is_not_killed_brings_the_table_to_equal_the_source(publish: Publish, tmp_path: Path) -> None:
    assert publish(tmp_path) == {"killed": False, "code": 0}
    check_table_equals_source(tmp_path)
    numbers = standing(tmp_path)
    assert len(numbers) > 8, "several files a position"
    assert len(numbers) < len(Source().calls) + len(Source().load) / 4, "several positions a file"


@pytest.mark.rule("4.6")
def test_twenty_kills_at_random_moments(publish: Publish, tmp_path: Path) -> None:
    kill_at_random(publish, tmp_path, 20)


@pytest.mark.exhaustive
def test_two_hundred_kills_at_random_moments(publish: Publish, tmp_path: Path) -> None:
    kill_at_random(publish, tmp_path, 200)


@pytest.mark.parametrize("kind", ["kill_before", "kill_after"])
def test_a_kill_at_each_step_of_the_first_publishes(publish: Publish, tmp_path: Path, kind: str) -> None:
    assert kill_at_each_step(publish, tmp_path, kind, _STEPS_OF_A_PUBLISH) == _STEPS_OF_A_PUBLISH


def test_a_kill_at_each_step_inside_of_local_creates(publish: Publish, tmp_path: Path) -> None:
    """Between the temporary file, its sync, the link that gives it its name, and the sync of the folder."""
    assert kill_at_each_step(publish, tmp_path, "kill_inside", _STEPS_OF_LOCAL_CREATES) == _STEPS_OF_LOCAL_CREATES


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", ["kill_before", "kill_after", "kill_inside"])
def test_a_kill_at_each_step_there_is(publish: Publish, tmp_path: Path, kind: str) -> None:
    assert kill_at_each_step(publish, tmp_path, kind, None) > _STEPS_OF_LOCAL_CREATES


@pytest.mark.exhaustive
def test_a_kill_at_each_step_of_the_restart_behind_each_kill(publish: Publish, tmp_path: Path) -> None:
    for first in range(0, 60, 3):
        for second in range(0, 24, 2):
            folder = tmp_path / f"{first}-{second}"
            publish(folder, kill_inside=first)
            publish(folder, kill_after=second)
            publish(folder)
            check_table_equals_source(folder)
