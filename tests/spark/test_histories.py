"""Random histories: the Delta table, `replay` and an oracle of our own agree, row by row.

The histories of one example share one landing table, and so a few commits: the history's number is part of the key. The
oracle below is a plain list that is searched from end to end; it shares no code with `replay` or the mirror.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from uuid import uuid4

import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from openmirror_writer.changes import ChangeBatch
from openmirror_writer.layout import GENERATION, METADATA, data_file
from openmirror_writer.metadata import Generation, TableMetadata
from openmirror_writer.record import Record, new_id
from openmirror_writer.replay import replay
from openmirror_writer.schema import declared_columns
from openmirror_writer.spark import Mirror
from openmirror_writer.zone import LandingTable, LandingZone

HISTORIES = 320
"""Per example, each with a number of its own."""
COLUMNS = declared_columns({"history": "int64", "text": "string", "number": "double", "value": "int64"})
KEYS = ("history", "text", "number")
TEXTS = (None, "", "a", "it's")
NUMBERS = (None, 0.0, -0.0, 1.5, math.nan, -math.inf)

Key = tuple[str | None, float | None]


class Step(NamedTuple):
    """One landing row of a history; a marker of None stands in a marker-free file."""

    marker: int | None
    key: Key
    value: int | None


@dataclass
class History:
    """The rows of one history in order, and when each comes: before 0 in the marker-free files, then from 0 to 1."""

    steps: list[Step] = field(default_factory=list)
    times: list[float] = field(default_factory=list)

    def add(self, time: float, *steps: Step) -> None:
        self.steps += steps
        self.times += [time] * len(steps)


# ------------------------------------------------------------------------------------------------ the oracle


def expected(steps: Iterable[Step], *, unmarked: int) -> list[str]:
    """The rows of one history by the documentation's table of markers, in a form that can be compared."""
    table: list[Step] = []
    for step in steps:
        marker = unmarked if step.marker is None else step.marker
        twins = [index for index, row in enumerate(table) if same_key(row.key, step.key)]
        if marker == 0 or (marker in {1, 4} and not twins):
            table.append(step)
        elif marker in {1, 4}:
            for index in twins:
                table[index] = step
        elif marker == 2:
            table = [row for index, row in enumerate(table) if index not in twins]
    return sorted(shown(*row.key, row.value) for row in table)


def same_key(left: Key, right: Key) -> bool:
    return all(
        (a is None and b is None) or a == b or (is_nan(a) and is_nan(b)) for a, b in zip(left, right, strict=True)
    )


def is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


def shown(text: str | None, number: float | None, value: int | None) -> str:
    """Spark may keep either zero of a key; repr tells NULL, NaN and the rest apart."""
    return repr((text, 0.0 if number == 0.0 else number, value))


# ------------------------------------------------------------------------------------------------ making histories


def make_history(rng: random.Random) -> History:
    """Few keys, so that they meet; bursts of any length, so that they meet in a file, in a batch and across both."""
    keys: list[Key] = [(rng.choice(TEXTS), rng.choice(NUMBERS)) for _ in range(rng.randint(1, 3))]
    history = History()
    for time in sorted(rng.uniform(-1, 0) for _ in range(rng.choice((0, 0, 1, 2, 4)))):
        history.add(time, Step(None, rng.choice(keys), value(rng)))
    start, end = sorted((rng.random(), rng.random()))
    for time in sorted(rng.uniform(start, end) for _ in range(rng.randint(0, 9))):
        key, other = rng.choice(keys), rng.choice(keys)
        match rng.choice((0, 0, 1, 1, 2, 4, "key change")):
            case int(marker):
                history.add(time, Step(marker, key, value(rng)))
            case _:
                history.add(time, Step(2, key, None), Step(rng.choice((0, 4)), other, value(rng)))
    return history


def value(rng: random.Random) -> int | None:
    return None if rng.random() < 0.1 else rng.randrange(1000)


@dataclass(frozen=True)
class Plan:
    """Histories cut into files, and files into runs of the mirror.

    Attributes:
        histories: Their index is their number.
        files: Each a list of (number of the history, step), all marked or all marker-free.
        runs: Before how many files the mirror runs; the last run comes behind all files.
        unmarked: What rows without a marker mean: 0 or 4.
    """

    histories: list[History]
    files: list[list[tuple[int, Step]]]
    runs: list[int]
    unmarked: int


def make_plan(rng: random.Random, histories: int) -> Plan:
    made = [make_history(rng) for _ in range(histories)]
    rows = [
        (t, i, step) for i, history in enumerate(made) for t, step in zip(history.times, history.steps, strict=True)
    ]
    rows.sort(key=lambda row: row[0])  # stable: the two rows of a key change keep their order
    cuts = sorted(
        [*(rng.uniform(-1, 0) for _ in range(2)), 0.0, *(rng.random() for _ in range(rng.randint(12, 24))), 2.0]
    )
    files: list[list[tuple[int, Step]]] = []
    for cut in cuts:
        files.append([(i, step) for time, i, step in rows if time < cut])
        rows = rows[len(files[-1]) :]
    runs = sorted(rng.sample(range(1, len(files)), rng.randint(2, 4)))
    return Plan(made, files, [*runs, len(files)], rng.choice((0, 4)))


# ------------------------------------------------------------------------------------------------ playing them


class Feeder:
    """Publishes landing files without the writer, which would refuse a NULL in a key."""

    def __init__(self, table: LandingTable, *, unmarked: int) -> None:
        self.table = table
        self.generation = new_id()
        self.number = 0
        self.previous: str | None = None
        metadata = TableMetadata(key_columns=KEYS, is_upsert_default_row_marker=unmarked == 4)
        self.create(METADATA, metadata.to_bytes())
        self.create(GENERATION, Generation(generation=self.generation).to_bytes())

    def create(self, name: str, data: bytes) -> None:
        assert self.table.zone.storage.create(self.table.path(name), data) is not None

    def publish(self, rows: list[tuple[int, Step]], *, marked: bool) -> None:
        self.number += 1
        record = Record(
            generation=self.generation,
            number=self.number,
            previous=self.previous,
            batch=new_id(),
            writer="test",
            phase="following" if marked else "loading",
            by="test",
        )
        values = [dict(zip(COLUMNS.names, (i, *step.key, step.value), strict=True)) for i, step in rows]
        markers = pa.array([step.marker for _, step in rows], pa.int32()) if marked else None
        batch = ChangeBatch(pa.RecordBatch.from_pylist(values, schema=COLUMNS), markers)
        self.create(data_file(self.number), self.table.format.begin(COLUMNS, [batch]).finish(record))
        self.previous = record.batch


def play(plan: Plan, zone: LandingZone) -> Iterator[None]:
    """Publish the files; yields whenever the mirror is to run."""
    feeder = Feeder(zone.table("histories"), unmarked=plan.unmarked)
    marked = False
    for number, rows in enumerate(plan.files, start=1):
        marked = marked or any(step.marker is not None for _, step in rows)
        feeder.publish(rows, marked=marked)
        if number in plan.runs:
            yield


def found(rows: Iterable[dict[str, Any]]) -> dict[int, list[str]]:
    """The rows of each history, in the form of `expected`."""
    histories: dict[int, list[str]] = {}
    for row in rows:
        histories.setdefault(row["history"], []).append(shown(row["text"], row["number"], row["value"]))
    return {number: sorted(shown_rows) for number, shown_rows in histories.items()}


def check(plan: Plan, name: str, rows: Iterable[dict[str, Any]]) -> None:
    """Compare every history with the oracle; the first one that differs is named with its steps."""
    histories = found(rows)
    wrong = {
        number: (history, expected(history.steps, unmarked=plan.unmarked), histories.get(number, []))
        for number, history in enumerate(plan.histories)
        if histories.get(number, []) != expected(history.steps, unmarked=plan.unmarked)
    }
    for number, (history, wanted, got) in wrong.items():
        steps = "\n".join(f"  {time:+.3f} {step}" for time, step in zip(history.times, history.steps, strict=True))
        surplus, missing = Counter(got) - Counter(wanted), Counter(wanted) - Counter(got)
        pytest.fail(
            f"{name} is wrong in {len(wrong)} of {len(plan.histories)} histories, the first is {number} "
            f"(marker-free rows are {plan.unmarked}):\n{steps}\n"
            f"  surplus {dict(surplus)}\n  missing {dict(missing)}"
        )
    assert histories.keys() <= set(range(len(plan.histories))), f"{name} holds rows of no history"


@given(seed=st.integers(0, 2**64 - 1))
@settings(max_examples=10, phases=[Phase.explicit, Phase.reuse, Phase.generate])
def test_replay_equals_the_oracle(seed: int) -> None:
    """3,200 histories without Spark; `replay` alone is quick."""
    plan = make_plan(random.Random(seed), HISTORIES)
    zone = LandingZone(f"memory://{uuid4().hex}")
    for _ in play(plan, zone):
        pass
    check(plan, "replay", replay(zone)["histories"].to_pylist())


def delta_equals_replay_and_the_oracle(spark: SparkSession, seed: int) -> None:
    plan = make_plan(random.Random(seed), HISTORIES)
    with TemporaryDirectory() as folder:
        zone = LandingZone(Path(folder) / "zone")
        mirror = Mirror(spark, zone, f"{folder}/target")
        for _ in play(plan, zone):
            mirror.run_once().raise_for_failures()
        delta = spark.read.format("delta").load(f"{folder}/target/dbo/histories")
        check(plan, "the Delta table", [row.asDict() for row in delta.collect()])
        check(plan, "replay", replay(zone)["histories"].to_pylist())


# Hypothesis draws no more than a seed: 320 histories are too many choices for it to shrink, and each try takes seconds.
# The first seed is always 0, so that a run has one example that it shares with all runs, and one of its own.


@given(seed=st.integers(0, 2**64 - 1))
@settings(max_examples=2, phases=[Phase.explicit, Phase.reuse, Phase.generate])
def test_delta_equals_replay_and_the_oracle(spark: SparkSession, seed: int) -> None:
    """640 histories."""
    delta_equals_replay_and_the_oracle(spark, seed)


@pytest.mark.exhaustive
@given(seed=st.integers(0, 2**64 - 1))
@settings(max_examples=20, phases=[Phase.explicit, Phase.reuse, Phase.generate])
def test_delta_equals_replay_and_the_oracle_at_length(spark: SparkSession, seed: int) -> None:
    """6,400 histories."""
    delta_equals_replay_and_the_oracle(spark, seed)
