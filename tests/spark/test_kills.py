"""The mirror is stopped, by exceptions and by real kills, and started again: the table becomes the source's.

The real writer publishes the files. Most of them hold inserts, so a file that is applied twice shows in the table.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, Self

import pytest
from pyspark.sql import SparkSession

from openmirror_writer.layout import PROCESSED
from openmirror_writer.replay import replay
from openmirror_writer.spark import Mirror
from openmirror_writer.spark.mirror.state import unpack
from openmirror_writer.storage import Listing
from openmirror_writer.storage.local import LocalStorage
from openmirror_writer.zone import LandingZone
from tests.writer.feeder import Source, feed, orders

pytestmark = pytest.mark.skipif(os.name == "nt", reason="process groups and SIGKILL are POSIX")

SCRIPT = Path(__file__).with_name("mirror_process.py")
TXN = ("spark.databricks.delta.write.txnAppId", "spark.databricks.delta.write.txnVersion")
PATIENCE = 300.0
"""Seconds after which a process that does not get on counts as hanging."""


class Scene:
    """A zone that the writer has filled, and the target of its mirrors."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.zone, self.target = folder / "zone", folder / "target"
        self.delta = self.target / "dbo" / "orders"
        feed(orders(LocalStorage(self.zone)), Source())
        self.published = self.standing()

    def standing(self, place: str = "") -> dict[str, str]:
        """Return the data files, name to identity, in the table's folder or in a folder in it."""
        listed = LocalStorage(self.zone).names(f"orders/{place}".rstrip("/")).files
        return {name: entry.identity for name, entry in sorted(listed.items()) if name.endswith(".parquet")}

    def rows(self, spark: SparkSession) -> list[dict[str, Any]]:
        found = spark.read.format("delta").load(str(self.delta)).collect()
        return in_order([row.asDict() for row in found])

    def commits(self) -> list[Path]:
        return sorted((self.delta / "_delta_log").glob("*.json"))

    def marks(self) -> list[int]:
        """Return the number of the last file applied, as each commit says."""
        actions = [json.loads(line) for commit in self.commits() for line in commit.read_text().splitlines()]
        return [unpack(action["txn"]["version"])[1] for action in actions if "txn" in action]

    def check(self, spark: SparkSession) -> None:
        """Run the mirror until nothing is left; everything stands as if it had run once."""
        mirror = Mirror(spark, LandingZone(self.zone), self.target)
        report = mirror.run_once()
        report.raise_for_failures()
        table = report.tables["orders"]
        assert (table.status, table.reason, table.stale) == ("Replicating", None, ())
        assert self.rows(spark) == Source().table()
        assert in_order(replay(LandingZone(self.zone))["orders"].to_pylist()) == Source().table()
        *moved, last = self.published.items()
        assert self.standing(PROCESSED) == dict(moved)
        assert self.standing() == dict([last])
        marks = self.marks()
        assert marks == sorted(set(marks)), "a batch was applied twice"
        assert (len(marks), marks[-1]) == (len(self.commits()), len(self.published))
        again = mirror.run_once().tables["orders"]
        assert (again.files, again.version, again.stale) == (0, table.version, ())


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: (row["id"], row["v"]))


# ------------------------------------------------------------------------------------------------------- exceptions


class Stopped(Exception):  # noqa: N818 - what happened, not an error
    """Injected: the mirror is stopped here."""


class StoppingStorage(LocalStorage):
    """A zone that stops the mirror as soon as it has changed anything, in the zone or in its Delta table."""

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene.zone)
        self.scene = scene
        self.commits = scene.commits()

    def create(self, path: str, data: bytes) -> NoReturn:
        super().create(path, data)
        raise Stopped("claim")

    def rename(self, source: str, target: str, *, if_identity: str | None = None) -> NoReturn:
        super().rename(source, target, if_identity=if_identity)
        raise Stopped("move")

    def delete(self, path: str, *, if_identity: str | None = None) -> NoReturn:
        super().delete(path, if_identity=if_identity)
        raise Stopped("delete")

    def names(self, folder: str) -> Listing:
        # Every round lists the folder before it changes anything, so this comes right behind a commit.
        if self.scene.commits() != self.commits:
            raise Stopped("commit")
        return super().names(folder)


def test_a_mirror_that_is_stopped_after_each_of_its_steps_gives_the_same_table(
    spark: SparkSession, tmp_path: Path
) -> None:
    """One step at a time; a stop after a look is a stop after the last step, for a look leaves nothing behind."""
    scene = Scene(tmp_path)
    stops: Counter[str] = Counter()
    ended = False
    while not ended:
        zone = LandingZone(StoppingStorage(scene))
        try:
            Mirror(spark, zone, scene.target, files_per_commit=7).run_once().raise_for_failures()
            ended = True
        except Stopped as stop:
            stops[str(stop)] += 1
        assert [spark.conf.get(name, None) for name in TXN] == [None, None], "the next INSERT would be dropped"
    assert (len(scene.published), stops) == (13, {"claim": 2, "commit": 2, "move": 12})
    scene.check(spark)


# ------------------------------------------------------------------------------------------------------------ kills


@dataclass(frozen=True)
class Moment:
    """When a mirror is killed: some seconds after it has made its n-th file of a kind.

    ``data`` is a data file of the Delta table: its commit is still to come.
    """

    kind: str
    n: int
    seconds: float

    @classmethod
    def drawn(cls, chance: random.Random, batches: int) -> Self:
        """Draw a moment in the first batches, of three files each, or at the start of the next one."""
        last = {"claim": batches + 1, "data": batches, "commit": batches, "move": 3 * batches - 1}
        kind = chance.choice(list(last))
        seconds = chance.choice([0, chance.uniform(0, 0.02), chance.uniform(0, 0.3)])
        return cls(kind, chance.randint(1, last[kind]), seconds)

    def has_come(self, scene: Scene) -> bool:
        folder = scene.zone / "orders"
        match self.kind:
            case "claim":
                found = folder.glob("_*.claim-*")
            case "data":
                found = scene.delta.glob("*.parquet")
            case "commit":
                found = (scene.delta / "_delta_log").glob("*.json")
            case _:
                found = (folder / PROCESSED).glob("*.parquet")
        return len(list(found)) >= self.n


@contextmanager
def mirror_process(scene: Scene) -> Iterator[subprocess.Popen[str]]:
    """Start a mirror; in the end it and its Java are killed, and gone, whatever happens."""
    temporary = scene.folder / "tmp"
    temporary.mkdir(exist_ok=True)
    process = subprocess.Popen(
        [sys.executable, str(SCRIPT), str(scene.zone), str(scene.target), "3"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        env={**os.environ, "TMPDIR": str(temporary)},
        start_new_session=True,
    )
    try:
        yield process
    except BaseException as error:
        error.add_note(killed(process))
        raise
    killed(process)


def killed(process: subprocess.Popen[str]) -> str:
    """Kill a process and its Java; returns what they printed, which ends when the last of them is gone."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    return process.communicate(timeout=PATIENCE)[0]


def kill(scene: Scene, moment: Moment) -> None:
    """Start a mirror and kill it at a moment."""
    with mirror_process(scene) as process:
        wait(process, scene, moment)
    assert process.returncode == -signal.SIGKILL


def wait(process: subprocess.Popen[str], scene: Scene, moment: Moment) -> None:
    deadline = time.monotonic() + PATIENCE
    while not moment.has_come(scene):
        assert process.poll() is None
        assert time.monotonic() < deadline, "the mirror hangs"
        time.sleep(0.005)
    time.sleep(moment.seconds)


def kill_two(spark: SparkSession, folder: Path, seed: int, batches: int) -> None:
    """Kill two mirrors, each on a zone of its own; they run at once, for the start of Java takes most of the time."""
    chance = random.Random(seed)
    moments = [Moment.drawn(chance, batches) for _ in range(2)]
    try:
        scenes = [Scene(folder / str(number)) for number in range(2)]
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(kill, scenes, moments))
        for scene in scenes:
            scene.check(spark)
    except BaseException as error:
        error.add_note(f"seed {seed}: {moments}")
        raise


def test_a_mirror_that_is_killed_and_started_again_gives_the_same_table(spark: SparkSession, tmp_path: Path) -> None:
    kill_two(spark, tmp_path, random.randrange(2**32), batches=1)


@pytest.mark.exhaustive
@pytest.mark.parametrize("_", range(20))
def test_forty_mirrors_that_are_killed_and_started_again_give_the_same_table(
    spark: SparkSession, tmp_path: Path, _: int
) -> None:
    kill_two(spark, tmp_path, random.randrange(2**32), batches=4)


@pytest.mark.exhaustive
@pytest.mark.parametrize("_", range(5))
def test_two_mirrors_in_two_processes_give_the_same_table(spark: SparkSession, tmp_path: Path, _: int) -> None:
    scene = Scene(tmp_path)
    with mirror_process(scene) as process:
        wait(process, scene, Moment("claim", 1, 0.0))
        Mirror(spark, LandingZone(scene.zone), scene.target, files_per_commit=2).run_once().raise_for_failures()
        process.communicate(timeout=PATIENCE)
        assert process.returncode == 0
    scene.check(spark)
