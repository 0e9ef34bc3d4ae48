"""Mirrors in the world: the real pass over a table, and a Delta table that behaves as Delta was measured to."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from openmirror_writer.errors import OpenMirrorError, SchemaRefusedError, UnknownPositionError
from openmirror_writer.footers import read_footer
from openmirror_writer.formats import DelimitedText, Footer, Parquet
from openmirror_writer.replay import replay
from openmirror_writer.spark.mirror.columns import columns_of
from openmirror_writer.spark.mirror.state import TableName, TargetState, Unreadable, unpack
from openmirror_writer.spark.mirror.steps import (
    Commit,
    Conflict,
    Done,
    ReadFooters,
    ReadTarget,
    RemoveTarget,
    Skipped,
    table_pass,
)
from openmirror_writer.storage import Created, CreateFile, DeleteFile, RenameFile
from openmirror_writer.zone import FolderState, LandingZone
from tests.simulation.settle import last_writer_ends
from tests.simulation.source import COLUMNS, Row, Source, apply, sorted_values
from tests.simulation.store import EPOCH
from tests.simulation.world import FORMATS, Model, World, as_lists

NAME = TableName("t")
_LIFE = 1 << 50  # versions hold number and check in the bits below


@dataclass(frozen=True)
class MirrorModel:
    """Rules of the mirror's protocol that the model may leave out; each switch must make the simulation fail."""

    no_claim: bool = False  # a claim is answered as made, and never stands
    no_incarnation: bool = False  # the stored version forgets which life of the folder it belongs to
    two_commits: bool = False  # a rebuild empties the table in a commit of its own
    moves_by_name: bool = False  # a move takes whatever stands under the name


@dataclass(frozen=True)
class Moment:
    """A point inside a Delta statement where others may come in between."""

    what: str
    path: str = ""


@dataclass
class DeltaTable:
    """Optimistic transactions: a statement sees the table as it began, and commits only if nobody else did."""

    rows: dict[int, list[str | None]] = field(default_factory=dict)
    state: TargetState = field(default_factory=TargetState)
    commits: int = 0


class SimMirror:
    """One pass over the table, with its statements taken apart."""

    def __init__(self, world: MirrorWorld, name: str, limit: int) -> None:
        self.world, self.name, self.limit = world, name, limit
        self.error: OpenMirrorError | None = None
        self.result: Any = None

    def run(self) -> Generator[Any, Any, None]:
        now = EPOCH + timedelta(seconds=self.world.store.now)
        steps = table_pass(NAME, now=now, limit=self.limit)
        answer: Any = None
        while True:
            try:
                request = steps.send(answer)
            except StopIteration as stop:
                self.result = stop.value
                return
            if isinstance(request, Commit):
                answer = yield from self._statement(request)
            else:
                answer = yield request

    def _statement(self, commit: Commit) -> Generator[Any, Any, Any]:
        world, table = self.world, self.world.delta
        yield Moment("reads the log")
        expected = None if commit.expected is None else world.forgetful(commit.expected)
        if table.state.version != expected:
            return Skipped()
        yield Moment("begins")
        if commit.expected is None and table.state.exists:
            return Conflict("the table exists")
        if self._stored() >= world.forgetful(commit.version):
            world.log(f"{self.name} is skipped")
            return Skipped()
        seen = table.commits
        yield Moment("reads")
        landing: list[Row] = []
        for file in commit.files:
            stored = world.store.objects.get(f"{commit.table.folder}/{file.name}")
            if stored is None or stored.identity != file.entry.identity:
                return Conflict(f"file {file.number} is gone or another")
            landing += world.landing_rows(file.name, stored)
        yield Moment("commits")
        if table.commits != seen:
            return Conflict("another transaction")
        if world.mirror_model.two_commits and commit.kind == "rebuild":
            table.rows = {}
            table.state = replace(table.state, exists=True, generation=commit.generation, dropped=None)
            seen = table.commits = table.commits + 1
            yield Moment("commits again")
            if table.commits != seen:
                return Conflict("another transaction")
        self._write(commit, landing)
        return Done({})

    def _write(self, commit: Commit, landing: list[Any]) -> None:
        table = self.world.delta
        if commit.kind in {"rebuild", "drop"}:
            table.rows = {}
        apply(table.rows, landing)
        table.commits += 1
        table.state = TargetState(
            exists=True,
            version=self.world.forgetful(commit.version),
            generation=commit.generation,
            dropped=commit.dropped,
            columns=columns_of(COLUMNS),
            keys=commit.keys,
            folder=commit.table.folder,
            commit=table.commits,
        )
        self.world.log(f"{self.name} commits {commit.kind} {[f.number for f in commit.files]} {unpack(commit.version)}")

    def _stored(self) -> int:
        version = self.world.delta.state.version
        return -1 if version is None else version


class MirrorWorld(World):
    """A world where mirrors take the place of the service."""

    def __init__(
        self, source: Source, model: MirrorModel | None = None, format: Parquet | DelimitedText = FORMATS[0]
    ) -> None:
        super().__init__(source, Model(), format=format)
        self.mirror_model = model or MirrorModel()
        self.delta = DeltaTable()
        self.mirrors = 0

    def start_mirror(self, limit: int) -> Any:
        self.mirrors += 1
        return self.start(SimMirror(self, f"M{self.mirrors}", limit))

    def is_dropped(self) -> bool:
        if self.is_settling:
            self.run_to_end(self.start_mirror(3))
        return not self.delta.state.exists or self.delta.state.dropped is not None

    def forgetful(self, version: int) -> int:
        return version % _LIFE + _LIFE if self.mirror_model.no_incarnation else version

    def carry_out(self, request: Any) -> Any:
        if isinstance(request, Moment):
            return None
        if isinstance(request, ReadTarget):
            return self.delta.state
        if isinstance(request, ReadFooters):
            return [self._footer(request.folder, number) for number in request.numbers]
        if isinstance(request, RemoveTarget):
            if self.delta.state.dropped is not None and self.delta.state.version == request.version:
                self.delta = DeltaTable()
            return None
        if self.mirror_model.no_claim and isinstance(request, CreateFile) and ".claim-" in request.path:
            return Created("never")
        if self.mirror_model.moves_by_name and isinstance(request, RenameFile):
            request = replace(request, if_identity=None)
        if (
            isinstance(request, DeleteFile)
            and "/_ProcessedFiles/" in request.path
            and request.path in self.store.objects
        ):
            self.purged[request.path] = self.generation(), self.store.objects[request.path]
        return super().carry_out(request)

    def _footer(self, folder: FolderState, number: int) -> Footer | Unreadable | None:
        try:
            footer = self.store.perform(read_footer(folder, number))
        except (UnknownPositionError, SchemaRefusedError) as error:
            return Unreadable(error.message)
        return footer if footer is not None and footer.identity == folder.names.data[number].identity else None


def settle_mirrors(world: MirrorWorld) -> list[str]:
    """Let everybody end, then one mirror work alone: table, replay and source must agree."""
    world.is_settling = True
    for process in list(world.processes):
        world.run_to_end(process)
    while world.network:
        world.deliver(0)
    if not last_writer_ends(world):
        return world.bad
    result: Any = None
    for _ in range(6):
        world.store.now += 60
        mirror = SimMirror(world, "M-last", 3)
        world.run_to_end(world.start(mirror))
        result = mirror.result
    want = world.source.table()
    got = sorted_values(world.delta.rows)
    if got != want:
        world.fail(f"the table is {got}, the source is {want}; the mirror says {result.status}: {result.reason}")
    elif result.status != "Replicating":
        world.fail(f"the mirror says {result.status}: {result.reason}")
    replayed = as_lists(replay(LandingZone(world.restored())).get("t"))
    if replayed != want:
        world.fail(f"replay gives {replayed}, the source is {want}")
    return world.bad
