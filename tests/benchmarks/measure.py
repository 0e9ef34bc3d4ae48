"""Ratios to a floor: both sides run in turn, several times, in one process; the median is what counts."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Ratio:
    """Seconds of each run of what is measured and of its floor, pair by pair."""

    name: str
    ours: list[float]
    floor: list[float]

    @property
    def median(self) -> float:
        return statistics.median(a / b for a, b in zip(self.ours, self.floor, strict=True))

    def __str__(self) -> str:
        ratios = sorted(a / b for a, b in zip(self.ours, self.floor, strict=True))
        return (
            f"{self.name}: {self.median:.2f} (pairs {ratios[0]:.2f} to {ratios[-1]:.2f}; medians "
            f"{statistics.median(self.ours):.2f} s against {statistics.median(self.floor):.2f} s; {len(ratios)} pairs)"
        )


def ratio(
    name: str, ours: Callable[[], object], floor: Callable[[], object], runs: int = 5, *, warm_floor: bool = True
) -> Ratio:
    """Run both in turn ``runs`` times, after one run of each that does not count; print and return the ratio.

    A floor that takes minutes may go without: what it shares with the other side is warm by then.
    """
    ours()
    if warm_floor:
        floor()
    pairs = [(_seconds(ours), _seconds(floor)) for _ in range(runs)]
    result = Ratio(name, [a for a, _ in pairs], [b for _, b in pairs])
    print(result)
    return result


def _seconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started
