"""A storage in a dict: answers the requests of protocols, and is a `Storage` for whatever reads the end result."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

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
    Steps,
    answer_to,
)

T = TypeVar("T")

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class Stored:
    data: bytes
    identity: str
    modified: float


class SimStore:
    """Every operation is atomic; `now` is the clock of the world."""

    url = "sim://zone"

    def __init__(self) -> None:
        self.objects: dict[str, Stored] = {}
        self.now = 0.0
        self._made = 0

    def answer(self, request: Any) -> Any:
        """Answer as the package does, without its retries, which would take longer than all else."""
        match request:
            case ListFolder(folder):
                return self.names(folder)
            case ReadFile(path, start, end):
                return self.read(path, start, end)
            case CreateFile(path, data):
                identity = self.create(path, data)
                return Exists() if identity is None else Created(identity)
            case DeleteFile(path, if_identity):
                return self.delete(path, if_identity=if_identity)
        return answer_to(self, request)

    def perform(self, steps: Steps[T]) -> T:
        """Drive a protocol to its end at once."""
        answer: Any = None
        while True:
            try:
                answer = self.answer(steps.send(answer))
            except StopIteration as stop:
                return stop.value  # type: ignore[no-any-return]

    def create(self, path: str, data: bytes) -> str | None:
        if path in self.objects:
            return None
        return self._put(path, data)

    def rename(self, source: str, target: str, *, if_identity: str | None = None) -> bool:
        if target in self.objects or not self._stands(source, if_identity):
            return False
        self.objects[target] = self.objects.pop(source)
        return True

    def replace(self, path: str, data: bytes, *, if_identity: str) -> str | None:
        return self._put(path, data) if self._stands(path, if_identity) else None

    def names(self, folder: str) -> Listing:
        prefix = f"{folder}/" if folder else ""
        files: dict[str, Entry] = {}
        folders: set[str] = set()
        for path, stored in self.objects.items():
            if path.startswith(prefix):
                name, *below = path[len(prefix) :].split("/", 1)
                if below:
                    folders.add(name)
                else:
                    files[name] = self._entry(stored)
        return Listing(files, frozenset(folders))

    def read(self, path: str, start: int = 0, end: int | None = None) -> Content | None:
        stored = self.objects.get(path)
        return None if stored is None else Content(stored.data[start:end], stored.identity)

    def identity(self, path: str) -> Entry | None:
        stored = self.objects.get(path)
        return None if stored is None else self._entry(stored)

    def delete(self, path: str, *, if_identity: str | None = None) -> bool:
        if not self._stands(path, if_identity):
            return False
        del self.objects[path]
        return True

    def remove_folder(self, folder: str) -> None:
        pass

    def location(self, path: str) -> str:
        return f"{self.url}/{path}"

    def _put(self, path: str, data: bytes) -> str:
        self._made += 1
        self.objects[path] = Stored(data, f"e{self._made}", self.now)
        return f"e{self._made}"

    def _stands(self, path: str, identity: str | None) -> bool:
        stored = self.objects.get(path)
        return stored is not None and (identity is None or stored.identity == identity)

    @staticmethod
    def _entry(stored: Stored) -> Entry:
        return Entry(stored.identity, len(stored.data), EPOCH + timedelta(seconds=stored.modified))
