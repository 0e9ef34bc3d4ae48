"""The memory of the process: one store, that of fsspec."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import uuid4

import fsspec
import pytest
from fsspec.implementations import memory

from openmirror_writer.errors import StorageError
from openmirror_writer.storage.memory import MemoryStorage


@pytest.fixture
def root() -> str:
    return f"memory-{uuid4().hex}"


def test_an_identity_does_not_lean_on_the_clock_or_on_addresses(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class StoppedClock(datetime):
        @classmethod
        def now(cls, tz: object = None) -> StoppedClock:
            return cls(2026, 1, 1, tzinfo=UTC)

    monkeypatch.setattr(memory, "datetime", StoppedClock)
    storage = MemoryStorage(root)
    identities = []
    for _ in range(100):
        identities.append(storage.create("f", b"data"))
        storage.delete("f")
    assert len(set(identities)) == 100


def test_two_storages_of_one_root_hold_the_same_files(root: str) -> None:
    MemoryStorage(root).create("t/1", b"data")
    content = MemoryStorage(f"/{root}/").read("t/1")
    assert content is not None
    assert content.data == b"data"


def test_a_root_whose_name_begins_alike_is_another_one(root: str) -> None:
    MemoryStorage(root).create("t/1", b"data")
    assert MemoryStorage(root[:-1]).names("").folders == frozenset()
    assert MemoryStorage(f"{root}2").read("t/1") is None


def test_files_that_others_put_there_are_seen(root: str) -> None:
    fsspec.filesystem("memory").pipe_file(f"/{root}/t/1", b"foreign")
    storage = MemoryStorage(root)
    content = storage.read("t/1")
    assert content is not None
    assert content.data == b"foreign"
    assert storage.names("t").files["1"].identity == content.identity
    assert storage.delete("t/1", if_identity=content.identity)


def test_others_see_our_files(root: str) -> None:
    MemoryStorage(root).create("t/1", b"data")
    assert fsspec.filesystem("memory").cat_file(f"/{root}/t/1") == b"data"


def test_spark_cannot_read_it_and_the_error_says_what_can(root: str) -> None:
    with pytest.raises(StorageError, match="use a local folder"):
        MemoryStorage(root).location("t/1")
