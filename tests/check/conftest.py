"""Zones in memory go when their test ends: a listing looks through all files of the process."""

from collections.abc import Iterator

import pytest
from fsspec.implementations.memory import MemoryFileSystem


@pytest.fixture(autouse=True)
def _memory_as_before() -> Iterator[None]:
    before = set(MemoryFileSystem.store)
    yield
    for path in set(MemoryFileSystem.store) - before:
        del MemoryFileSystem.store[path]
