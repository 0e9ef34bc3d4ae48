"""The end of the demo: source, replay and Delta table, three ways to the same rows, compared row by row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from openmirror_writer.cli import spark_extra
from openmirror_writer.cli.demo_feed import TABLE
from openmirror_writer.cli.demo_source import COLUMNS, Flights
from openmirror_writer.errors import OpenMirrorError
from openmirror_writer.layout import DEFAULT_SCHEMA
from openmirror_writer.replay import replay
from openmirror_writer.zone import LandingZone

_SHOWN = 5
"""Differing rows that are printed; the rest is counted."""


@dataclass(frozen=True)
class Comparison:
    """Two tables, compared as bags of rows.

    Attributes:
        left: What the first one is.
        right: What the second one is.
        rows: How many rows each has.
        only_left: Rows that the second one lacks, as often as it lacks them.
        only_right: The other way round.
    """

    left: str
    right: str
    rows: tuple[int, int]
    only_left: list[tuple[Any, ...]]
    only_right: list[tuple[Any, ...]]

    @property
    def differences(self) -> int:
        """How many rows differ: a changed row counts once."""
        return max(len(self.only_left), len(self.only_right))


def delta_path(target: str) -> str:
    """Return where the demo's table lands below the mirror's target."""
    return f"{target}/{DEFAULT_SCHEMA}/{TABLE}"


def compare_all(flights: Flights, zone: LandingZone, target: str) -> list[Comparison]:
    """Compare the three: the source's own account, the files by `replay`, the Delta table as Spark reads it.

    Raises:
        OpenMirrorError: The zone does not hold the demo's table, or cannot be replayed.
    """
    replayed = replay(zone).get(TABLE)
    if replayed is None:
        raise OpenMirrorError(f"there is no table of the demo in {zone.url}: run openmirror demo first", table=TABLE)
    source = as_bag(flights.final_rows().values())
    files = as_bag(replayed.to_pylist())
    delta = as_bag(spark_extra.delta_rows(delta_path(target)))
    return [
        compare("source", source, "replay of the files", files),
        compare("source", source, "Delta table", delta),
        compare("replay of the files", files, "Delta table", delta),
    ]


def as_bag(rows: Iterable[Mapping[str, Any]]) -> Counter[tuple[Any, ...]]:
    """Count the rows, each as its values in the order of the source's columns."""
    return Counter(tuple(row[name] for name in COLUMNS) for row in rows)


def compare(left: str, ours: Counter[tuple[Any, ...]], right: str, theirs: Counter[tuple[Any, ...]]) -> Comparison:
    """Compare two bags of rows."""
    rows = (ours.total(), theirs.total())
    return Comparison(left, right, rows, list((ours - theirs).elements()), list((theirs - ours).elements()))


def print_comparisons(console: Console, comparisons: list[Comparison]) -> None:
    """Print the result; of rows that differ the first few in full."""
    table = Table(title="Every row compared with every value", title_justify="left")
    for column in ("one", "rows", "other", "rows", "result"):
        table.add_column(column)
    for each in comparisons:
        result = f"{each.differences} difference{'' if each.differences == 1 else 's'}"
        style = "red" if each.differences else "green"
        table.add_row(each.left, str(each.rows[0]), each.right, str(each.rows[1]), f"[{style}]{result}[/]")
    for each in comparisons:
        for name, rows in ((each.left, each.only_left), (each.right, each.only_right)):
            for row in rows[:_SHOWN]:
                values = " ".join(f"{column}={value}" for column, value in zip(COLUMNS, row, strict=True))
                console.print(f"only in the {name}: {values}", style="red", markup=False, soft_wrap=True)
            if rows[_SHOWN:]:
                console.print(f"and {len(rows) - _SHOWN} more only in the {name}", style="red")
    console.print(table)
    if not any(each.differences for each in comparisons):
        console.print("0 differences", style="bold green")
