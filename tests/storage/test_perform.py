"""Protocols against a real storage: what is sent again, what never is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar
from uuid import uuid4

import pytest
import stamina

from openmirror_writer.errors import AuthenticationError, StorageError
from openmirror_writer.storage import (
    Content,
    Created,
    CreateFile,
    DeleteFile,
    Entry,
    Exists,
    ListFolder,
    Listing,
    Lost,
    ReadFile,
    RenameFile,
    Request,
    Steps,
    Storage,
    answer_to,
    creating,
    deleting,
    listing,
    perform,
    reading,
    removing,
    renaming,
    replacing,
)
from openmirror_writer.storage.memory import MemoryStorage

T = TypeVar("T")

ATTEMPTS = 3
BUSY = StorageError("the storage is busy", retryable=True)
FULL = StorageError("the disk is full")
REFUSED = AuthenticationError("the credential is not accepted")


class Failing:
    """A storage that carries out each call, or not, and fails as often as it is told."""

    url = "failing://zone"

    def __init__(self, inner: Storage, error: StorageError, times: int, *, carries_out: bool) -> None:
        self.inner = inner
        self.calls: list[str] = []
        self._error = error
        self._times = times
        self._carries_out = carries_out

    def _call(self, name: str, call: Callable[[], T]) -> T:
        self.calls.append(name)
        fails = len(self.calls) <= self._times
        answer = call() if self._carries_out or not fails else None
        if fails:
            raise self._error
        return answer  # type: ignore[return-value] # the call was made

    def create(self, path: str, data: bytes) -> str | None:
        return self._call("create", lambda: self.inner.create(path, data))

    def rename(self, source: str, target: str, *, if_identity: str | None = None) -> bool:
        return self._call("rename", lambda: self.inner.rename(source, target, if_identity=if_identity))

    def replace(self, path: str, data: bytes, *, if_identity: str) -> str | None:
        return self._call("replace", lambda: self.inner.replace(path, data, if_identity=if_identity))

    def names(self, folder: str) -> Listing:
        return self._call("names", lambda: self.inner.names(folder))

    def read(self, path: str, start: int = 0, end: int | None = None) -> Content | None:
        return self._call("read", lambda: self.inner.read(path, start, end))

    def identity(self, path: str) -> Entry | None:
        return self._call("identity", lambda: self.inner.identity(path))

    def delete(self, path: str, *, if_identity: str | None = None) -> bool:
        return self._call("delete", lambda: self.inner.delete(path, if_identity=if_identity))

    def remove_folder(self, folder: str) -> None:
        return self._call("remove_folder", lambda: self.inner.remove_folder(folder))

    def location(self, path: str) -> str:
        return f"{self.url}/{path}"


@pytest.fixture(autouse=True)
def _no_waiting() -> Iterator[None]:
    """Retry at once, up to three attempts."""
    with stamina.set_testing(testing=True, attempts=ATTEMPTS):
        yield


@pytest.fixture
def memory() -> MemoryStorage:
    return MemoryStorage(f"perform-{uuid4().hex}")


def _busy(memory: MemoryStorage, times: int = 1, *, carries_out: bool = False) -> Failing:
    return Failing(memory, BUSY, times, carries_out=carries_out)


# -------------------------------------------------------------------------------------------------------- each request


def test_each_request_gets_the_storages_answer(memory: MemoryStorage) -> None:
    created = perform(memory, creating("t/1", b"data"))
    assert isinstance(created, Created)
    assert perform(memory, creating("t/1", b"other")) == Exists()
    assert perform(memory, reading("t/1", 1, 3)) == Content(b"at", created.identity)
    assert perform(memory, reading("t/2")) is None
    assert set(perform(memory, listing("t")).files) == {"1"}
    assert not perform(memory, renaming("t/1", "t/2", "another"))
    assert perform(memory, renaming("t/1", "t/2", created.identity))
    assert not perform(memory, deleting("t/2", "another"))
    assert perform(memory, deleting("t/2", None))
    perform(memory, removing("t"))
    assert perform(memory, listing("")).folders == frozenset()


def test_what_is_no_request_is_a_mistake_of_ours(memory: MemoryStorage) -> None:
    with pytest.raises(AssertionError, match="unknown request"):
        answer_to(memory, "t/1")  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------------------- retries


@pytest.mark.parametrize(
    ("request_", "call"),
    [(ListFolder("t"), "names"), (ReadFile("t/1"), "read"), (DeleteFile("t/1", None), "delete")],
    ids=["list", "read", "delete"],
)
def test_what_does_no_harm_twice_is_tried_again(memory: MemoryStorage, request_: Request, call: str) -> None:
    memory.create("t/1", b"data")
    storage = _busy(memory, ATTEMPTS - 1)
    assert answer_to(storage, request_)
    assert storage.calls == [call] * ATTEMPTS


@pytest.mark.parametrize(
    "request_", [ListFolder("t"), ReadFile("t/1"), DeleteFile("t/1", None)], ids=["list", "read", "delete"]
)
def test_in_the_end_the_storages_own_error_is_raised(memory: MemoryStorage, request_: Request) -> None:
    storage = _busy(memory, ATTEMPTS)
    with pytest.raises(StorageError) as caught:
        answer_to(storage, request_)
    assert caught.value is BUSY
    assert len(storage.calls) == ATTEMPTS


@pytest.mark.parametrize("error", [FULL, REFUSED], ids=["full", "refused"])
@pytest.mark.parametrize(
    "request_",
    [ListFolder("t"), ReadFile("t/1"), CreateFile("t/1", b""), DeleteFile("t/1", None), RenameFile("t/1", "t/2", None)],
    ids=["list", "read", "create", "delete", "rename"],
)
def test_an_error_that_no_retry_mends_is_raised_at_once(
    memory: MemoryStorage, request_: Request, error: StorageError
) -> None:
    storage = Failing(memory, error, 1, carries_out=False)
    with pytest.raises(StorageError) as caught:
        answer_to(storage, request_)
    assert caught.value is error
    assert len(storage.calls) == 1


@pytest.mark.parametrize("carries_out", [False, True], ids=["not carried out", "carried out"])
def test_a_create_without_an_answer_is_lost_and_not_sent_again(memory: MemoryStorage, *, carries_out: bool) -> None:
    storage = _busy(memory, carries_out=carries_out)
    answer = perform(storage, creating("t/1", b"data"))
    assert isinstance(answer, Lost)
    assert "the storage is busy" in answer.reason
    assert storage.calls == ["create"]


def test_a_rename_is_not_sent_again(memory: MemoryStorage) -> None:
    memory.create("t/1", b"data")
    storage = _busy(memory, carries_out=True)
    with pytest.raises(StorageError, match="busy"):
        perform(storage, renaming("t/1", "t/2", None))
    assert storage.calls == ["rename"]


def test_a_delete_whose_answer_was_lost_answers_false(memory: MemoryStorage) -> None:
    memory.create("t/1", b"data")
    assert not perform(_busy(memory, carries_out=True), deleting("t/1", None))
    assert memory.read("t/1") is None


def test_a_replace_is_carried_out_on_the_file_of_its_identity_only(memory: MemoryStorage) -> None:
    identity = memory.create("t/1", b"data")
    assert identity is not None
    found = perform(_busy(memory, ATTEMPTS - 1), replacing("t/1", b"new", identity))
    assert found == memory.names("t").files["1"].identity
    assert perform(memory, replacing("t/1", b"newer", identity)) is None
    content = memory.read("t/1")
    assert content is not None
    assert content.data == b"new"


def test_a_replace_whose_answer_was_lost_answers_none(memory: MemoryStorage) -> None:
    identity = memory.create("t/1", b"data")
    assert identity is not None
    assert perform(_busy(memory, carries_out=True), replacing("t/1", b"new", identity)) is None
    content = memory.read("t/1")
    assert content is not None
    assert content.data == b"new"


# ------------------------------------------------------------------------------------------------------------ protocols


def test_a_protocol_returns_its_value(memory: MemoryStorage) -> None:
    def copying() -> Steps[bool]:
        content = yield from reading("t/1")
        assert content is not None
        answer = yield from creating("t/2", content.data)
        return isinstance(answer, Created)

    memory.create("t/1", b"data")
    assert perform(memory, copying())


def test_a_protocol_without_requests_returns_at_once(memory: MemoryStorage) -> None:
    def deciding() -> Steps[int]:
        return 7
        yield

    assert perform(memory, deciding()) == 7


def test_a_protocol_is_thrown_the_error_of_its_request_and_may_clean_up(memory: MemoryStorage) -> None:
    cleaned: list[str] = []

    def cleaning() -> Steps[None]:
        try:
            yield from reading("t/1")
        finally:
            cleaned.append("up")

    with pytest.raises(StorageError, match="disk is full"):
        perform(Failing(memory, FULL, 1, carries_out=False), cleaning())
    assert cleaned == ["up"]


def test_a_protocol_may_catch_the_error_and_go_on(memory: MemoryStorage) -> None:
    def trying() -> Steps[Content | None]:
        try:
            yield from reading("t/1")
        except StorageError:
            yield from creating("t/1", b"made")
        return (yield from reading("t/1"))

    content = perform(Failing(memory, FULL, 1, carries_out=False), trying())
    assert content is not None
    assert content.data == b"made"


def test_a_protocol_may_catch_the_error_and_end(memory: MemoryStorage) -> None:
    def giving_up() -> Steps[str]:
        try:
            yield from reading("t/1")
        except StorageError as error:
            return error.message
        return "read"

    assert perform(Failing(memory, FULL, 1, carries_out=False), giving_up()) == "the disk is full"
