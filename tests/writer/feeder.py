"""Publishers in processes of their own, for tests that kill, pause or race them.

``python feeder.py`` reads orders from its standard input, one JSON list a line, forks a publisher for each order of the
list, and answers with a line when all have ended or stopped. So the imports are paid once, and each publisher is a real
process, to which real signals go. No import of a test, so that it starts anywhere. An order has a ``folder``, what to
``do`` and perhaps

* ``kill_before`` or ``kill_after``: the process kills itself at that operation on the storage, counted from 0;
* ``kill_inside``: it kills itself before that call of the operating system by which local files are created;
* ``kill_seconds``: it is killed from outside when so many seconds have passed;
* ``seconds``: a pause in each call, so that a kill from outside comes somewhere in the middle.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from openmirror_writer import ConcurrentWriterError, LandingZone, OpenMirrorError, Roll, Writer
from openmirror_writer.layout import data_number
from openmirror_writer.storage import Content, Entry, Listing, Storage, open_storage
from openmirror_writer.zone import LandingTable

COLUMNS = {"id": "int64", "v": "string"}
Row = dict[str, Any]
T = TypeVar("T")


class Tapped:
    """A storage that tells somebody before and after each operation; what that raises is raised."""

    def __init__(
        self,
        storage: Storage,
        *,
        before: Callable[[str, str], None] = lambda _operation, _path: None,
        after: Callable[[str, str], None] = lambda _operation, _path: None,
    ) -> None:
        self.storage, self.before, self.after = storage, before, after

    @property
    def url(self) -> str:
        return self.storage.url

    def create(self, path: str, data: bytes) -> str | None:
        return self._told("create", path, lambda: self.storage.create(path, data))

    def rename(self, source: str, target: str, *, if_identity: str | None = None) -> bool:
        return self._told("rename", source, lambda: self.storage.rename(source, target, if_identity=if_identity))

    def replace(self, path: str, data: bytes, *, if_identity: str) -> str | None:
        return self._told("replace", path, lambda: self.storage.replace(path, data, if_identity=if_identity))

    def names(self, folder: str) -> Listing:
        return self._told("names", folder, lambda: self.storage.names(folder))

    def read(self, path: str, start: int = 0, end: int | None = None) -> Content | None:
        return self._told("read", path, lambda: self.storage.read(path, start, end))

    def identity(self, path: str) -> Entry | None:
        return self._told("identity", path, lambda: self.storage.identity(path))

    def delete(self, path: str, *, if_identity: str | None = None) -> bool:
        return self._told("delete", path, lambda: self.storage.delete(path, if_identity=if_identity))

    def remove_folder(self, folder: str) -> None:
        self._told("remove_folder", folder, lambda: self.storage.remove_folder(folder))

    def location(self, path: str) -> str:
        return self.storage.location(path)

    def _told(self, operation: str, path: str, act: Callable[[], T]) -> T:
        self.before(operation, path)
        answer = act()
        self.after(operation, path)
        return answer


# ----------------------------------------------------------------------------------------------------------- the source


@dataclass(frozen=True)
class SourceCall:
    verb: str
    rows: list[Row]
    old_keys: list[Row] | None = None


def _rows(first: int, count: int, text: str) -> list[Row]:
    return [{"id": first + i, "v": f"{text}{i}"} for i in range(count)]


@dataclass
class Source:
    """Position 0 is the load; call i leads to position i + 1."""

    load: list[Row] = field(default_factory=lambda: _rows(0, 11, "load"))
    calls: list[SourceCall] = field(
        default_factory=lambda: [
            SourceCall("insert", _rows(100, 9, "a")),  # several files
            SourceCall("upsert", _rows(3, 2, "b")),
            SourceCall("insert", _rows(100, 1, "twin")),  # several rows of one key
            SourceCall("update", [{"id": 5, "v": "was 4"}, {"id": 4, "v": "was 5"}], [{"id": 4}, {"id": 5}]),
            SourceCall("delete", [{"id": 1}, {"id": 101}]),
            SourceCall("upsert", []),
            SourceCall("upsert", _rows(200, 7, "c")),  # several files
            SourceCall("insert", _rows(300, 1, "d")),
            SourceCall("insert", _rows(301, 1, "e")),
            SourceCall("update", [{"id": 900, "v": "was 0"}], [{"id": 0}]),
            SourceCall("insert", _rows(400, 6, "f")),
            SourceCall("delete", [{"id": 400}]),
            SourceCall("upsert", []),
        ]
    )

    def table(self) -> list[Row]:
        """What the table holds in the end, by a reading of the semantics that shares no code with the package."""
        rows = [dict(row) for row in self.load]
        for call in self.calls:
            gone = [row["id"] for row in (call.old_keys or [])]
            if call.verb == "delete":
                gone = [row["id"] for row in call.rows]
            rows = [row for row in rows if row["id"] not in gone]
            if call.verb in {"upsert", "update"}:
                for row in call.rows:
                    twins = [standing for standing in rows if standing["id"] == row["id"]]
                    rows = [standing for standing in rows if standing["id"] != row["id"]] + [row] * max(len(twins), 1)
            elif call.verb == "insert":
                rows += call.rows
        return sorted(rows, key=lambda row: (row["id"], row["v"]))


def orders(storage: Storage) -> LandingTable:
    return LandingZone(storage).table("orders", key_columns=["id"], columns=COLUMNS)


def feed(table: LandingTable, source: Source, seconds: float = 0.0) -> None:
    """Bring the table to the end of the source, from where it stands."""
    roll = Roll(rows=4, age=None)
    with Writer(table, roll=roll) as writer:
        if writer.state != "following":
            writer.initial_load(_slowly(source.load, seconds), position=0)
        for index in range(writer.position, len(source.calls)):
            time.sleep(seconds)
            call = source.calls[index]
            if call.old_keys is not None:
                writer.update(call.rows, call.old_keys, position=index + 1)
            else:
                getattr(writer, call.verb)(_slowly(call.rows, seconds), position=index + 1)


def _slowly(rows: list[Row], seconds: float) -> Iterator[Row]:
    for row in rows:
        time.sleep(seconds / 4)
        yield row


# ------------------------------------------------------------------------------------------------------------ the kills


def kill_self() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Countdown:
    """Kills this process at the n-th call, counted from 0; never for None."""

    def __init__(self, n: int | None) -> None:
        self.left = n

    def __call__(self, *_: object) -> None:
        if self.left is None:
            return
        if self.left == 0:
            kill_self()
        self.left -= 1


def kill_inside_create(n: int) -> None:
    """Kill this process before the n-th ``fsync``, ``link`` or ``unlink``, the steps of creating a local file."""
    count = Countdown(n)

    def counted(step: Callable[..., None]) -> Callable[..., None]:
        def call(*args: Any, **options: Any) -> None:
            count()
            step(*args, **options)

        return call

    for name in ("fsync", "link", "unlink"):
        setattr(os, name, counted(getattr(os, name)))


def publish(order: dict[str, Any]) -> None:
    """Feed `Source` into the table, to the end or to the kill."""
    if "kill_inside" in order:
        kill_inside_create(order["kill_inside"])
    storage = Tapped(
        open_storage(order["folder"]),
        before=Countdown(order.get("kill_before")),
        after=Countdown(order.get("kill_after")),
    )
    feed(orders(storage), Source(), order.get("seconds", 0.0))


def pause(order: dict[str, Any]) -> None:
    """Publish a file, then another one, and stop at ``at``: before the call, or between its proof and its create."""

    def stop(operation: str, path: str) -> None:
        if order["at"] == "create" and operation == "create" and data_number(path.rpartition("/")[2]) == 2:
            os.kill(os.getpid(), signal.SIGSTOP)

    writer = Writer(orders(Tapped(open_storage(order["folder"]), before=stop)))
    writer.insert(_rows(0, 3, "first"), position=1)
    if order["at"] == "call":
        os.kill(os.getpid(), signal.SIGSTOP)
    error: OpenMirrorError | None = None
    try:
        writer.insert(_rows(10, 3, "paused"), position=2)
    except OpenMirrorError as raised:
        error = raised
    told = {"error": type(error).__name__, "message": str(error), "published_position": writer.published_position}
    Path(order["result"]).write_text(json.dumps(told), encoding="utf-8")


def race(order: dict[str, Any]) -> None:
    """Insert files of three rows; after a refusal go on with a new writer and the next file. Tell which were taken."""
    table = orders(open_storage(order["folder"]))
    taken: list[list[Any]] = []
    writer: Writer | None = None
    for number in range(order["files"]):
        rows = _rows(order["first"] + 10 * number, 3, "r")
        try:
            writer = writer or Writer(table)
            writer.insert(rows)
            taken.append([rows[0]["id"], [file.batch for file in writer.flush()]])
        except ConcurrentWriterError:
            writer = None
    Path(order["result"]).write_text(json.dumps(taken), encoding="utf-8")


def serve() -> None:
    """Fork publishers for each line of the standard input; answer what became of them."""
    feed(orders(open_storage("memory://warm")), Source())  # what Arrow imports at its first use is paid once too
    for line in sys.stdin:
        todo = json.loads(line)
        pids = [order["pid"] if order["do"] == "wait" else _forked(order) for order in todo]
        if "kill_seconds" in todo[0]:
            time.sleep(todo[0]["kill_seconds"])
            os.kill(pids[0], signal.SIGKILL)
        sys.stdout.write(json.dumps([_became(pid) for pid in pids]) + "\n")
        sys.stdout.flush()


def _forked(order: dict[str, Any]) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        {"publish": publish, "pause": pause, "race": race}[order["do"]](order)
        code = 0
    except BaseException:  # noqa: BLE001 - the child must not go on in the loop of its parent
        traceback.print_exc()
    finally:
        os._exit(code)


def _became(pid: int) -> dict[str, Any]:
    _, status = os.waitpid(pid, os.WUNTRACED)
    if os.WIFSTOPPED(status):
        return {"stopped": pid}
    killed = os.WIFSIGNALED(status)
    return {"killed": killed, "code": None if killed else os.WEXITSTATUS(status)}


if __name__ == "__main__":
    serve()
