"""Sources that can be read again: the same rows in the same order, cut into calls differently on each reading."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from openmirror_writer.changes import ChangeBatch

_TYPES: dict[str, pa.DataType] = {"k": pa.int64(), "v": pa.string()}
COLUMNS = pa.schema(_TYPES)
Row = tuple[int, int, str | None]  # marker, key, value


@dataclass(frozen=True)
class SourceCall:
    verb: str  # "load", "insert" or "upsert" (upserts and deletes)
    rows: tuple[Row, ...]
    position: int | None

    def batch(self) -> ChangeBatch:
        rows = pa.RecordBatch.from_arrays(
            [pa.array([r[1] for r in self.rows], pa.int64()), pa.array([r[2] for r in self.rows], pa.string())],
            schema=COLUMNS,
        )
        return ChangeBatch(rows, None if self.verb == "load" else pa.array([r[0] for r in self.rows], pa.int32()))


@dataclass(frozen=True)
class Source:
    """Position 1 is the snapshot; change i has position i + 2."""

    snapshot: tuple[Row, ...]
    changes: tuple[tuple[str, tuple[Row, ...]], ...]

    def table(self) -> dict[int, list[str]]:
        """What the table holds in the end."""
        state: dict[int, list[str | None]] = {}
        apply(state, [*self.snapshot, *(row for _, rows in self.changes for row in rows)])
        return sorted_values(state)

    def load(self) -> SourceCall:
        return SourceCall("load", self.snapshot, 1)

    def calls(self, after: int, rng: random.Random | None) -> Iterator[SourceCall]:
        index = max(after, 1) - 1
        while index < len(self.changes):
            verb, rows = self.changes[index]
            index += 1
            how = rng.randrange(3) if rng else 0
            if how == 1 and index < len(self.changes) and self.changes[index][0] == verb:  # two positions in one call
                rows += self.changes[index][1]
                index += 1
                yield SourceCall(verb, rows, index + 1)
            elif how == 2 and len(rows) > 1:  # one position in two calls
                yield SourceCall(verb, rows[:1], None)
                yield SourceCall(verb, rows[1:], index + 1)
            else:
                yield SourceCall(verb, rows, index + 1)


def apply(state: dict[int, list[str | None]], landing: Iterable[Row]) -> None:
    """What rows do to a table, by a reading of the semantics that shares no code with the package."""
    for marker, key, value in landing:
        rows = state.setdefault(key, [])
        if marker == 0:
            rows.append(value)
        elif marker == 2:
            rows.clear()
        elif rows:
            rows[:] = [value] * len(rows)
        else:
            rows.append(value)


def sorted_values(state: dict[int, list[str | None]]) -> dict[int, list[str]]:
    return {key: sorted(map(str, rows)) for key, rows in state.items() if rows}


def _i(key: int, value: str) -> Row:
    return (0, key, value)


def _u(key: int, value: str) -> Row:
    return (4, key, value)


def _d(key: int) -> Row:
    return (2, key, None)


SOURCES = [
    Source(
        (_i(1, "s1"), _i(2, "s2"), _i(3, "s3")),
        (
            ("upsert", (_u(1, "a"),)),
            ("insert", (_i(9, "i1"), _i(9, "i2"), _i(8, "i3"))),
            ("upsert", (_d(2), _u(1, "b"), _u(5, "c"))),
            ("insert", (_i(9, "i4"),)),
            ("upsert", (_u(1, "d"),)),
            ("upsert", (_u(2, "e"), _d(3))),
        ),
    ),
    Source(
        (_i(1, "s1"),),
        (
            ("insert", (_i(1, "x"),)),
            ("insert", (_i(1, "y"),)),
            ("upsert", ()),
            ("upsert", (_u(7, "u"),)),
            ("insert", (_i(1, "z"),)),
            ("upsert", (_d(7),)),
            ("upsert", ()),
        ),
    ),
    Source(
        (_i(1, "s"),),
        (
            ("insert", (_i(1, "a"),)),
            ("insert", (_i(1, "b"), _i(1, "c"), _i(1, "d"))),
            ("insert", (_i(1, "e"),)),
            ("insert", (_i(1, "f"), _i(1, "g"))),
            ("insert", (_i(2, "h"),)),
        ),
    ),
    Source(
        (),
        tuple(
            (
                "upsert" if i % 3 else "insert",
                (_u(i % 3, f"v{i}"), _u(5, f"w{i}")) if i % 3 else (_i(0, f"v{i}"), _i(6, f"x{i}")),
            )
            for i in range(9)
        ),
    ),
]
