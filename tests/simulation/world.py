"""An adversarial world for the protocols: any interleaving, lost and late answers, crashes, pauses, drops.

A process is a generator that yields a request; the world decides who goes next and what happens to the request. A
`Model` takes rules of the design away: the histories must then go wrong.
"""

from __future__ import annotations

import random
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from openmirror_writer.changes import ChangeBatch
from openmirror_writer.errors import OpenMirrorError
from openmirror_writer.formats import DelimitedText, Parquet
from openmirror_writer.layout import GENERATION, data_file, data_number, replacement_record, sort_names
from openmirror_writer.lifecycle import beginning_replacement, dropping, ending_replacement
from openmirror_writer.metadata import Generation, Replacement, parse
from openmirror_writer.record import Record
from openmirror_writer.storage import Created, CreateFile, DeleteFile, Entry, ListFolder, Listing, Lost
from openmirror_writer.writer.cut import Call, Cutter, FileContent, Roll, Skip
from openmirror_writer.writer.fence import Fence
from openmirror_writer.writer.resume import open_table
from openmirror_writer.zone import LandingTable, LandingZone
from tests.simulation.source import COLUMNS, Row, Source, SourceCall, apply, sorted_values
from tests.simulation.standing import DataFiles, StandingFile
from tests.simulation.store import EPOCH, SimStore, Stored

DAY = 86400.0
FORMATS = (Parquet(), DelimitedText())


class Crash(BaseException):
    """The process is gone."""


@dataclass(frozen=True)
class Model:
    """Rules that the model may leave out; each switch must make the simulation fail."""

    no_proof: bool = False  # whatever stands in the folder, a writer's listing shows its own last file as the highest
    previous_unchecked: bool = False  # the service takes any `previous` for the right one
    no_generation: bool = False  # every generation marker looks like the one before
    no_comparison: bool = False  # pending rows are skipped whatever they are
    no_replacement: bool = False  # writers do not look whether their table is being replaced


class BlindSkip(Skip):
    """Skips pending rows without looking at them."""

    def over(self, batch: ChangeBatch, *, table: str) -> Skip | None:
        left = self.rows - batch.num_rows
        return BlindSkip(left, self.at, self.digest) if left else None


class SimWriter:
    """What the public writer does, without threads: its wiring of the real decisions."""

    def __init__(self, world: World, name: str, *, max_calls: int, rng: random.Random | None) -> None:
        self.world, self.name, self.max_calls, self.rng = world, name, max_calls, rng
        self.error: OpenMirrorError | None = None
        self.done = False
        self.acknowledged: int = 0
        self.fence: Fence | None = None
        world.readings += 1
        self.backwards = world.fickle and world.readings % 2 == 0

    def run(self) -> Generator[Any, Any, None]:
        try:
            yield from self._run()
            self.done = True
        except OpenMirrorError as error:
            self.error = error

    def _run(self) -> Generator[Any, Any, None]:
        world = self.world

        def clock() -> float:
            return world.store.now

        resumed = yield from open_table(world.table, None, clock, for_writing=True)
        fence = self.fence = Fence(world.table, resumed, writer=self.name, by="simulation", clock=clock)
        skip = resumed.skip
        if skip is not None and world.model.no_comparison:
            skip = BlindSkip(skip.rows, skip.at, skip.digest)
        cutter = Cutter(Roll(rows=2), resumed.progress, skip, table=world.table.label)
        for call in self._calls(resumed.progress.state, resumed.progress.position or 0):
            yield from self._take(fence, cutter, call)
        rest = cutter.take()
        if rest is not None:
            yield from fence.publish(rest, self._encode)
        progress = cutter.progress
        if progress.position != fence.recorded and fence.last and cutter.skip is None:
            yield from fence.advance(progress)
        yield from fence.confirm()

    def _calls(self, state: str, position: int) -> Iterator[SourceCall]:
        left = self.max_calls
        if state != "following":
            yield self.world.source.load()
            left -= 1
        for call in self.world.source.calls(position, self.rng):
            if not left:
                return
            left -= 1
            yield replace(call, rows=call.rows[::-1]) if self.backwards and call.verb == "insert" else call

    def _take(self, fence: Fence, cutter: Cutter, call: SourceCall) -> Generator[Any, Any, None]:
        cutter.begin(Call(call.position, load=call.verb == "load"))
        files: list[FileContent] = []
        try:
            if call.rows:
                files = cutter.add(call.batch(), exact=call.verb != "upsert")
            files += cutter.end()
        except OpenMirrorError:
            cutter.abort()
            raise
        for content in files:
            if content.rows or self.world.table.format.can_be_empty:
                yield from fence.publish(content, self._encode)

    def _encode(self, content: FileContent, record: Record) -> bytes:
        return self.world.table.format.begin(COLUMNS, content.batches).finish(record)


@dataclass
class Process:
    what: SimWriter | SimDropper | Any
    steps: Generator[Any, Any, Any]
    request: Any


class SimDropper:
    """What `drop_table` does."""

    protocol = staticmethod(dropping)

    def __init__(self, world: World) -> None:
        self.world = world
        self.error: OpenMirrorError | None = None
        self.done = False

    def run(self) -> Generator[Any, Any, None]:
        before = self.world.generation()
        try:
            yield from self.protocol(self.world.table)
        except OpenMirrorError as error:
            self.error = error
            return
        if before is not None:
            self.world.dropped.add(before)
        yield from self._behind_drop()

    def _behind_drop(self) -> Generator[Any, Any, None]:
        self.done = True
        yield from ()


@dataclass(frozen=True)
class AskForDrop:
    """The caller of `replace_table` looks whether the mirrored database has dropped the table."""

    path: str = ""


class SimReplacer(SimDropper):
    """What `replace_table` does, with the patience of three questions."""

    protocol = staticmethod(beginning_replacement)

    def _behind_drop(self) -> Generator[Any, Any, None]:
        for _ in range(3):
            if (yield AskForDrop()):
                yield from ending_replacement(self.world.table)
                self.done = True
                return
        self.error = OpenMirrorError("the mirrored database has not dropped the table")


class Service:
    """The mirroring service, as the design's mirror does it: follows the chain, keeps its last file, moves others."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.generation: str | None = None
        self.mark = 0
        self.applied: dict[int, str] = {}
        self.refused: str | None = None
        self.rows: dict[int, list[str | None]] = {}

    def has_dropped(self) -> bool:
        """Drop the table if its folder is gone, and say whether there is none."""
        if not self.world.store.names(self.world.table.folder).files:
            self.generation, self.mark, self.applied, self.rows = None, 0, {}, {}
        return self.generation is None

    def apply_one(self) -> bool:
        """Apply the next file of the chain; False if there is none."""
        generation = self.world.generation()
        if generation is None or self.world.dropping():
            return False
        mine = {n: f for n, f in self.world.files().items() if f.is_of(generation)}
        if self.generation != generation and 1 in mine:
            self.generation, self.mark, self.applied, self.rows = generation, 0, {}, {}
        following = mine.get(self.mark + 1)
        if self.generation != generation or following is None or following.record is None:
            return False
        previous = self.applied.get(self.mark)
        if following.record.previous != previous and not self.world.model.previous_unchecked:
            self.refused = f"fork at {self.mark + 1}"
            return False
        self.mark += 1
        self.applied[self.mark] = following.follower
        apply(self.rows, following.rows)
        self.world.log(f"service applies {self.mark} {following.follower[:4]}")
        return True

    def move(self, rng: random.Random, most: int) -> None:
        files = self.world.files()
        movable = [n for n, f in files.items() if n < self.mark and f.follower == self.applied.get(n)]
        for n in rng.sample(movable, min(most, len(movable))):
            name = self.world.data_file(n)
            folder = self.world.table.folder
            if self.world.store.rename(f"{folder}/{name}", f"{folder}/_ProcessedFiles/{name}"):
                self.world.store.objects[f"{folder}/_ProcessedFiles/{name}"].modified = self.world.store.now
                self.world.log(f"service moves {n}")


@dataclass
class World:
    source: Source
    model: Model = field(default_factory=Model)
    fickle: bool = False  # whether each reading gives the inserts of a position in another order than the one before
    format: Parquet | DelimitedText = field(default_factory=Parquet)
    trace: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.store = SimStore()
        self.table: LandingTable = LandingZone(self.store).table(
            "t", key_columns=["k"], columns=COLUMNS, format=self.format
        )
        self._data_files = DataFiles(self.store, self.table)
        self.service = Service(self)
        self.processes: list[Process] = []
        self.network: list[CreateFile] = []
        self.purged: dict[str, tuple[str | None, Stored]] = {}  # with the life in which it was deleted
        self.dropped: set[str] = set()
        self.drops = 0
        self.replacing: str | None = None  # the life that is to end, from the note in the zone until that is taken away
        self.is_settling = False
        self.finished: list[Any] = []
        self.bad: list[str] = []
        self.chain: list[StandingFile] = []
        self.stale: list[StandingFile] = []
        self.readings = 0
        self.operator_deletes = 0

    # ------------------------------------------------------------------------------------------------ what stands

    def generation(self) -> str | None:
        stored = self.store.objects.get(self.table.path(GENERATION))
        return None if stored is None else stored.data.decode().split('"')[3]

    def dropping(self) -> bool:
        return self.table.path("_dropping.json") in self.store.objects

    def files(self) -> dict[int, StandingFile]:
        return self._data_files.standing(self.generation())

    def data_file(self, number: int) -> str:
        return data_file(number, self.format.extension)

    def landing_rows(self, path: str, stored: Stored) -> list[Row]:
        return self._data_files.rows(path, stored)

    # ------------------------------------------------------------------------------------------------ processes

    def start(self, what: Any) -> Process:
        steps = what.run()
        process = Process(what, steps, None)
        self.drops += isinstance(what, SimDropper)
        self.log(f"{self.name(what)} starts")
        self._send(process, None)
        return process

    def step(self, process: Process, fault: str = "none") -> None:
        """Let one process do its request, under a fault: see `FAULTS`."""
        request = process.request
        if fault in {"lost", "late", "crash, late"} and not isinstance(request, CreateFile):
            fault = "none"
        self.log(f"{self.name(process.what)}: {describe(request)} {'' if fault == 'none' else fault}")
        if fault == "crash before":
            self._crash(process)
        elif fault == "crash after":
            self.carry_out(request)
            self._crash(process)
        elif fault == "crash, late":
            self.network.append(request)
            self._crash(process)
        elif fault == "late":
            self.network.append(request)
            self._send(process, Lost("late"))
        elif fault == "lost":
            self.carry_out(request)
            self._send(process, Lost("lost"))
        else:
            answer = self.carry_out(request)
            if self.model.no_proof and isinstance(process.what, SimWriter) and isinstance(request, ListFolder):
                answer = self._as_believed(process.what, answer)
            if self.model.no_replacement and isinstance(process.what, SimWriter) and self._is_note(request):
                answer = None
            self._send(process, answer)

    def operator_deletes_last(self) -> None:
        """An operator deletes the highest file, which the service has not applied: a repair that goes wrong."""
        numbers = self.files()
        if numbers and max(numbers) > max(self.service.mark, 1):
            self.operator_deletes += 1
            self.log(f"operator deletes {max(numbers)}")
            del self.store.objects[numbers[max(numbers)].path]
            if self.chain and self.chain[-1].number == max(numbers):
                self.chain.pop()

    def deliver(self, index: int) -> None:
        """Let a request land that was on its way when its sender gave it up."""
        request = self.network.pop(index)
        self.log(f"the network delivers {describe(request)}")
        self.carry_out(request)

    def is_dropped(self) -> bool:
        """Whether the mirrored database has dropped the table."""
        return self.service.has_dropped()

    def carry_out(self, request: Any) -> Any:
        if isinstance(request, AskForDrop):
            return self.is_dropped()
        if self._is_note(request):
            return self._carry_out_note(request)
        is_marker = isinstance(request, CreateFile) and request.path.endswith(GENERATION)
        if is_marker and self.model.no_generation:
            request = CreateFile(request.path, Generation(generation="always").to_bytes())
        if isinstance(request, DeleteFile) and is_sidecar(request.path) and request.path in self.store.objects:
            self.purged[request.path] = self.generation(), self.store.objects[request.path]
        answer = self.store.answer(request)
        if isinstance(request, CreateFile) and isinstance(answer, Created):
            if is_marker and self.model.no_generation:
                self.store.objects[request.path].identity = "always"
            self._note_created(request, answer)
        return answer

    def _is_note(self, request: Any) -> bool:
        return getattr(request, "path", None) == replacement_record(self.table.label)

    def _carry_out_note(self, request: Any) -> Any:
        answer = self.store.answer(request)
        if isinstance(request, DeleteFile) and answer:
            self.replacing = None
        elif isinstance(request, CreateFile) and isinstance(answer, Created):
            noted = parse(Replacement, request.data, file=request.path).generation
            if noted == self.generation():  # else it came late, and stands in nobody's way before the next drop
                self.replacing = noted
        return answer

    def run_to_end(self, process: Process, most: int = 3000) -> None:
        while process in self.processes and most:
            self.step(process)
            most -= 1

    def pass_time(self, seconds: float) -> None:
        self.store.now += seconds
        self.log(f"{seconds:.0f} s pass")
        for path in [
            p
            for p, s in self.store.objects.items()
            if "/_ProcessedFiles/" in p and self.store.now - s.modified > 7 * DAY
        ]:
            self.purged[path] = self.generation(), self.store.objects.pop(path)

    def restored(self) -> SimStore:
        """The zone with what the service deleted after seven days put back, so that it can be replayed from file 1."""
        store, life = SimStore(), self.generation()
        purged = {path: stored for path, (generation, stored) in self.purged.items() if generation == life}
        store.objects = {**purged, **self.store.objects}
        return store

    def log(self, line: str) -> None:
        self.trace.append(f"t={self.store.now:<8.0f} {line}")

    def name(self, what: Any) -> str:
        return getattr(what, "name", type(what).__name__)

    def _send(self, process: Process, answer: Any) -> None:
        try:
            process.request = process.steps.send(answer)
            if process not in self.processes:
                self.processes.append(process)
        except StopIteration:
            if process in self.processes:
                self.processes.remove(process)
            self.finished.append(process.what)
            self.log(f"{self.name(process.what)} ends: {process.what.error or 'well'}")
        if isinstance(process.what, SimWriter):
            self._check_acknowledged(process.what)

    @staticmethod
    def _as_believed(writer: SimWriter, answer: Listing) -> Listing:
        if writer.fence is None or not writer.fence.last:
            return answer
        own = data_file(writer.fence.last, writer.world.format.extension)
        files = {n: e for n, e in answer.files.items() if n <= own or not n[0].isdigit()}
        files.setdefault(own, Entry("?", 0, EPOCH))
        return Listing(files, answer.folders)

    def _crash(self, process: Process) -> None:
        self.processes.remove(process)
        process.steps.close()

    # ------------------------------------------------------------------------------------------------ what must hold

    def _note_created(self, request: CreateFile, answer: Created) -> None:
        number = data_number(request.path.rpartition("/")[2])
        if number is None:
            return
        made = self._data_files.read(number, request.path, self.store.objects[request.path], self.generation())
        if self.replacing is not None and made.record is not None and not made.is_of(self.replacing):
            self.fail(f"file {number} of a new life came while the table was being replaced")
        tail = self.chain[-1] if self.chain else None
        is_same_life = tail is not None and tail.record is not None and made.is_of(tail.record.generation)
        previous = made.record.previous if made.record else None
        if made.is_of(self.generation()) and number == 1 and previous is None and not is_same_life:
            self.chain = [made]
        elif is_same_life and tail and (number, previous) == (tail.number + 1, tail.follower):
            self.chain.append(made)
        else:
            self.stale.append(made)
            self.log(f"(stale: {number} {made.follower[:4]})")

    def _check_acknowledged(self, writer: SimWriter) -> None:
        """What a writer calls published must be in the chain, as long as nobody drops the table."""
        position = (writer.fence.published_position if writer.fence else None) or 0
        if position <= writer.acknowledged or self.drops or self.operator_deletes:
            return
        writer.acknowledged = position
        positions = [file.record.position or 0 for file in self.chain if file.record]
        for path, stored in self.store.objects.items():
            if ".advance-" in path and self.chain:
                record = Record.model_validate_json(stored.data)
                if record.previous == self.chain[-1].follower:
                    positions.append(record.position or 0)
        if position > max(positions, default=0):
            self.fail(f"{writer.name} acknowledged {position}, the chain holds {max(positions, default=0)}")

    def fail(self, what: str) -> None:
        self.bad.append(what)
        self.log(f"!! {what}")


FAULTS = ("none", "lost", "late", "crash before", "crash after", "crash, late")


def is_sidecar(path: str) -> bool:
    name = path.rpartition("/")[2]
    return bool(sort_names({name: None}).sidecars)


def describe(request: Any) -> str:
    where = getattr(request, "path", getattr(request, "folder", getattr(request, "source", "")))
    path: str = getattr(where, "folder", where)  # a request may hold what was found in the folder
    return f"{type(request).__name__} {path.rpartition('/')[2]}"


def as_lists(table: pa.Table | None) -> dict[int, list[str]]:
    state: dict[int, list[str | None]] = {}
    for row in [] if table is None else table.to_pylist():
        state.setdefault(row["k"], []).append(row["v"])
    return sorted_values(state)
