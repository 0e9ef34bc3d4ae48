"""A zone, a Delta table and mirrors without I/O: the real protocol, driven through interleavings and crashes."""

from __future__ import annotations

import random
from collections.abc import Generator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from openmirror_writer.errors import StorageError
from openmirror_writer.formats import Footer
from openmirror_writer.layout import GENERATION, METADATA, data_file, data_number
from openmirror_writer.metadata import Generation, TableMetadata
from openmirror_writer.record import Record
from openmirror_writer.spark.mirror.columns import Column
from openmirror_writer.spark.mirror.state import TableName, TargetState, Unreadable
from openmirror_writer.spark.mirror.steps import (
    Bad,
    Commit,
    CommitAnswer,
    Conflict,
    Done,
    PassResult,
    ReadFooters,
    ReadTarget,
    RemoveTarget,
    Skipped,
    table_pass,
)
from openmirror_writer.storage import (
    Content,
    Created,
    CreateFile,
    DeleteFile,
    Entry,
    Exists,
    ListFolder,
    Listing,
    ReadFile,
    RenameFile,
)

COLUMNS = (Column("id", "long"),)
SCHEMA = pa.schema([("id", pa.int64())])
TABLE = TableName("orders")
DAY = timedelta(days=1)

AppliedRow = tuple[int, int, int]
"""Life of the folder, number of the file, revision of its content."""


@dataclass(frozen=True)
class Object:
    """What stands under a path. ``row`` is the truth about a data file, which no protocol sees."""

    data: bytes
    identity: str
    modified: datetime
    footer: Footer | Unreadable | None = None
    row: AppliedRow = (0, 0, 0)
    bad_page: bool = False
    stale: bool = False


@dataclass
class Table:
    """A Delta table."""

    state: TargetState
    rows: list[AppliedRow] = field(default_factory=list)


class World:
    """Everything that stands somewhere. One call of `answer` is one atomic step."""

    def __init__(self, *, own: bool = True, tables: tuple[str, ...] = ("orders", "items")) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        self.own = own
        self.objects: dict[str, Object] = {}
        self.target: Table | None = None
        self.root = "ok"
        self.life = 0
        self.dying = False
        self.ledger: dict[int, list[Object]] = {}
        self.serial = 0
        self.trace: list[str] = []
        for name in tables:
            if name != TABLE.name:
                self.put(f"{name}/{METADATA}", b"{}")

    # ------------------------------------------------------------------------------------------------ the zone

    def put(self, path: str, data: bytes, **more: Any) -> Object:
        self.serial += 1
        made = self.objects[path] = Object(data, f"e{self.serial}", self.now, **more)
        return made

    def inside(self, folder: str) -> list[str]:
        return [path for path in self.objects if path.startswith(f"{folder}/")]

    def tick(self, hours: float = 1.0) -> None:
        self.now += timedelta(hours=hours)

    def append(self, bad: str = "") -> None:
        """The publisher adds the next file; it makes the folder first where there is none."""
        if self.dying:
            self.erode()
            return
        self.tick()
        if not self.published():
            self.life += 1
            self.ledger[self.life] = []
            if self.own:
                self.put(f"{TABLE.folder}/{GENERATION}", Generation(generation=f"g{self.life}").to_bytes())
            self.put(f"{TABLE.folder}/{METADATA}", TableMetadata(key_columns=("id",)).to_bytes())
        files = self.ledger[self.life]
        number = len(files) + 1
        files.append(self.write(number, (self.life, number, 0), bad=bad))
        self.trace.append(f"publisher: file {number} of life {self.life} {bad}")

    def write(self, number: int, row: AppliedRow, *, bad: str = "", **record: Any) -> Object:
        life = row[0]
        told = Record(
            **{
                "generation": f"g{life}",
                "number": number,
                "previous": None if number == 1 else f"b{life}.{number - 1}",
                "batch": f"b{life}.{number}",
                "writer": "w",
                "phase": "following",
                "by": "simulation",
                **{k: v for k, v in record.items() if k != "stale"},
            }
        )
        path = f"{TABLE.folder}/{data_file(number)}"
        footer: Footer | Unreadable
        if bad == "footer":
            footer = Unreadable("this is no readable Parquet file")
        else:
            footer = Footer("", 1, SCHEMA, False, None, None, None, told if self.own else None)  # noqa: FBT003
        return self.put(path, b"", footer=footer, row=row, bad_page=bad == "page", stale=bool(record.get("stale")))

    def repair(self) -> None:
        """The publisher replaces damaged files; the record stays."""
        for path, found in list(self.objects.items()):
            if found.bad_page or isinstance(found.footer, Unreadable):
                life, number, revision = found.row
                del self.objects[path]
                self.ledger[life][number - 1] = self.write(number, (life, number, revision + 1))
                self.trace.append(f"publisher: repairs {number}")

    def drop(self) -> None:
        """The folder goes at once."""
        for path in self.inside(TABLE.folder):
            del self.objects[path]
        self.dying = False
        self.tick()
        self.trace.append(f"publisher: DROPS life {self.life}")

    def erode(self) -> None:
        """The folder goes entry by entry, in any order."""
        paths = self.published()
        self.dying = len(paths) > 1
        if paths:
            path = random.Random(self.serial + len(paths)).choice(paths)
            del self.objects[path]
            self.trace.append(f"publisher: deletes {path}")

    def make_stale(self) -> None:
        """A writer that was paused creates a number that was moved away."""
        names = {path.rpartition("/")[2] for path in self.inside(TABLE.folder) if path.count("/") == 1}
        moved = {path.rpartition("/")[2] for path in self.inside(TABLE.folder) if path.count("/") > 1} - names
        if moved and self.own:
            number = data_number(min(moved)) or 0
            previous = None if number == 1 else f"b{self.life}.{number - 1}"
            self.write(number, (self.life, number, 99), batch=f"stale{number}", previous=previous, stale=True)
            self.trace.append(f"another writer: stale file {number}")

    def delete_stale(self) -> None:
        for path in [p for p, o in self.objects.items() if o.stale]:
            del self.objects[path]

    def present(self) -> list[AppliedRow] | None:
        """Return what the table should hold; None: there should be none."""
        return [f.row for f in self.ledger[self.life]] if self.published() else None

    def published(self) -> list[str]:
        """Return the publisher's files: not the claims that a mirror left behind."""
        return [path for path in self.inside(TABLE.folder) if ".claim-" not in path]

    # --------------------------------------------------------------------------------------------- the answers

    def answer(self, request: object) -> Any:
        match request:
            case ListFolder(folder):
                return self.listing(folder)
            case ReadFile(path):
                found = self.objects.get(path)
                return None if found is None else Content(found.data, found.identity)
            case CreateFile(path, data):
                return Exists() if path in self.objects else Created(self.put(path, data).identity)
            case DeleteFile(path, identity):
                return self._take(path, identity) is not None
            case RenameFile(source, target, identity):
                return self._rename(source, target, identity)
            case ReadTarget():
                return self.target.state if self.target else TargetState()
            case ReadFooters(folder, numbers):
                return [self._footer(folder.data_path(n), folder.names.data[n].identity) for n in numbers]
            case RemoveTarget(_, version):
                if self.target and self.target.state.dropped and self.target.state.version == version:
                    self.target = None
                return None
        raise AssertionError(request)

    def listing(self, folder: str) -> Listing:
        if self.root == "unreadable":
            raise StorageError("the storage does not answer")
        if self.root == "empty":
            return Listing({}, frozenset())
        prefix = f"{folder}/" if folder else ""
        files: dict[str, Entry] = {}
        folders: set[str] = set()
        for path, found in self.objects.items():
            if path.startswith(prefix):
                name, *below = path[len(prefix) :].split("/", 1)
                if below:
                    folders.add(name)
                else:
                    files[name] = Entry(found.identity, len(found.data), found.modified)
        return Listing(files, frozenset(folders))

    def _footer(self, path: str, identity: str) -> Footer | Unreadable | None:
        found = self.objects.get(path)
        return found.footer if found is not None and found.identity == identity else None

    def _take(self, path: str, identity: str | None) -> Object | None:
        found = self.objects.get(path)
        return self.objects.pop(path) if found and identity in {None, found.identity} else None

    def _rename(self, source: str, target: str, identity: str | None) -> bool:
        if target in self.objects:
            return False
        found = self._take(source, identity)
        if found is not None:
            self.objects[target] = found
        return found is not None


def transaction(world: World, commit: Commit) -> Generator[str, None, CommitAnswer]:
    """One Delta statement, as three steps: snapshot, read, commit."""
    yield "start"
    before = world.target
    stored = before.state.version if before else None
    if stored != commit.expected or (stored or 0) >= commit.version:
        return Skipped()
    seen = before.state if before else None
    yield "read"
    rows: list[AppliedRow] = []
    for file in commit.files:
        found = world.objects.get(f"{commit.table.folder}/{file.name}")
        if found is None or found.identity != file.entry.identity:
            return Conflict(f"{file.name} was replaced")
        if found.bad_page:
            return Bad(file.name, "a page is damaged")
        rows.append(found.row)
    yield "commit"
    if (world.target.state if world.target else None) != seen:
        return Conflict("ConcurrentTransactionException")
    number = (seen.commit if seen and seen.commit is not None else -1) + 1
    if commit.kind in {"rebuild", "drop"}:
        state = TargetState(
            exists=True,
            version=commit.version,
            generation=commit.generation,
            dropped=commit.dropped,
            columns=commit.columns,
            keys=commit.keys,
            folder=commit.table.folder,
            commit=number,
        )
        world.target = Table(state, rows)
    else:
        assert world.target is not None
        world.target.rows.extend(rows)
        world.target.state = replace(world.target.state, version=commit.version, commit=number)
    world.trace.append(f"{commit.kind} commits {rows}")
    return Done({None: len(rows)})


class Process:
    """A pass under way: `step` makes one request, or one part of a statement, happen."""

    def __init__(self, world: World, limit: int = 3) -> None:
        self.world = world
        self.steps = table_pass(TABLE, now=world.now, limit=limit)
        self.result: PassResult | None = None
        self.request: object = None
        self.statement: Generator[str, None, CommitAnswer] | None = None
        self._resume(None)

    def step(self) -> None:
        """Do the next thing; nothing if the pass has ended."""
        if self.result is not None:
            return
        if isinstance(self.request, Commit):
            self._step_statement(self.request)
            return
        try:
            answer = self.world.answer(self.request)
        except StorageError as error:
            self._resume(error)
        else:
            self._resume(answer)

    def _step_statement(self, commit: Commit) -> None:
        self.statement = self.statement or transaction(self.world, commit)
        try:
            next(self.statement)
        except StopIteration as stop:
            self.statement = None
            self._resume(stop.value)

    def _resume(self, answer: object) -> None:
        try:
            self.request = self.steps.throw(answer) if isinstance(answer, StorageError) else self.steps.send(answer)
        except StopIteration as stop:
            self.result = stop.value

    def until(self, kind: type) -> None:
        """Go on until a request of this kind is the next to be answered, or the pass ends."""
        while self.result is None and not isinstance(self.request, kind):
            self.step()

    def finish(self) -> PassResult:
        while self.result is None:
            self.step()
        return self.result


def run(world: World, limit: int = 3) -> PassResult:
    return Process(world, limit).finish()


def published(count: int, **more: Any) -> World:
    """Return a world in which ``count`` files were published."""
    world = World(**more)
    for _ in range(count):
        world.append()
    return world


def standing(world: World, place: str = "") -> list[int]:
    """Return the numbers of the data files in the folder, or in a folder in it."""
    folder = f"{TABLE.folder}/{place}".rstrip("/")
    return sorted(n for name in world.listing(folder).files if (n := data_number(name)) is not None)
