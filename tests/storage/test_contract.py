"""What every storage promises; the suite runs over each implementation."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from openmirror_writer.storage import Listing, Storage
from openmirror_writer.storage.local import LocalStorage
from openmirror_writer.storage.memory import MemoryStorage

T = TypeVar("T")
RACERS = 8


@pytest.fixture(params=["local", "memory"])
def new_storage(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Storage]:
    """Return a factory: each storage that it makes is empty."""
    if request.param == "memory":
        return lambda: MemoryStorage(f"contract-{uuid4().hex}")
    return lambda: LocalStorage(tmp_path / uuid4().hex)


@pytest.fixture
def storage(new_storage: Callable[[], Storage]) -> Storage:
    return new_storage()


def _create(storage: Storage, path: str, data: bytes = b"data") -> str:
    identity = storage.create(path, data)
    assert identity is not None
    return identity


def _data(storage: Storage, path: str) -> bytes | None:
    content = storage.read(path)
    return None if content is None else content.data


def _race(calls: Sequence[Callable[[], T]]) -> list[T]:
    """Make the calls at the same moment, each in a thread."""
    barrier = threading.Barrier(len(calls))

    def run(call: Callable[[], T]) -> T:
        barrier.wait()
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


def test_it_is_a_storage(storage: Storage) -> None:
    assert isinstance(storage, Storage)


# ------------------------------------------------------------------------------------------------------------ create


@pytest.mark.parametrize("data", [b"", b"data", bytes(range(256)) * 4_000], ids=["empty", "small", "1 MB"])
def test_what_was_created_is_read(storage: Storage, data: bytes) -> None:
    _create(storage, "orders/1", data)
    assert _data(storage, "orders/1") == data


def test_folders_come_into_being_by_themselves(storage: Storage) -> None:
    _create(storage, "sales.schema/orders/_ProcessedFiles/1")
    assert storage.names("sales.schema/orders").folders == {"_ProcessedFiles"}


def test_a_taken_name_is_not_created_again(storage: Storage) -> None:
    identity = _create(storage, "orders/1", b"first")
    assert storage.create("orders/1", b"second") is None
    content = storage.read("orders/1")
    assert content is not None
    assert (content.data, content.identity) == (b"first", identity)


def test_a_lost_create_leaves_nothing_behind(storage: Storage) -> None:
    _create(storage, "orders/1")
    storage.create("orders/1", b"second")
    assert set(storage.names("orders").files) == {"1"}


@pytest.mark.parametrize("name", ["a b", "größe", "订单", "50%", "a#b", "a?b", "%2F", "a+b", "x" * 200])
def test_a_name_is_taken_as_it_is(storage: Storage, name: str) -> None:
    _create(storage, f"{name}.schema/{name}/{name}")
    assert storage.names("").folders == {f"{name}.schema"}
    assert set(storage.names(f"{name}.schema/{name}").files) == {name}
    assert _data(storage, f"{name}.schema/{name}/{name}") == b"data"


# ---------------------------------------------------------------------------------------------------------- identity


def test_every_method_tells_the_same_identity(storage: Storage) -> None:
    identity = _create(storage, "orders/1")
    content, entry = storage.read("orders/1", 0, 1), storage.identity("orders/1")
    assert content is not None
    assert entry is not None
    assert {content.identity, entry.identity, storage.names("orders").files["1"].identity} == {identity}


def test_an_entry_tells_size_and_time(storage: Storage) -> None:
    before = datetime.now(UTC)
    _create(storage, "orders/1", b"12345")
    entry = storage.identity("orders/1")
    assert entry is not None
    assert entry.size == 5
    assert abs(entry.modified - before) < timedelta(hours=1)
    assert storage.names("orders").files["1"] == entry


def test_an_identity_never_repeats_within_a_path(storage: Storage) -> None:
    identities = []
    for _ in range(50):
        identities.append(_create(storage, "orders/1", b"the same content"))
        storage.delete("orders/1")
    assert len(set(identities)) == 50


def test_two_objects_of_the_same_content_differ(storage: Storage) -> None:
    assert _create(storage, "orders/1") != _create(storage, "orders/2")


def test_nothing_has_no_identity(storage: Storage) -> None:
    assert storage.identity("orders/1") is None


# -------------------------------------------------------------------------------------------------------------- read


@pytest.mark.parametrize(
    ("start", "end"), [(0, None), (0, 3), (3, 6), (3, None), (8, 100), (10, None), (99, 200), (5, 5)]
)
def test_a_range_is_read_as_a_slice(storage: Storage, start: int, end: int | None) -> None:
    _create(storage, "orders/1", b"0123456789")
    content = storage.read("orders/1", start, end)
    assert content is not None
    assert content.data == b"0123456789"[start:end]


@pytest.mark.parametrize("path", ["orders/2", "items/1", "orders", "orders/1/x"])
def test_where_no_file_stands_there_is_nothing(storage: Storage, path: str) -> None:
    _create(storage, "orders/1")
    assert storage.read(path) is None
    assert storage.identity(path) is None
    assert not storage.delete(path)
    assert not storage.rename(path, "items/9")
    assert storage.replace(path, b"new", if_identity="e1") is None
    assert set(storage.names("orders").files) == {"1"}


# ----------------------------------------------------------------------------------------------------------- listing


def test_a_listing_holds_one_folder_and_names_those_in_it(storage: Storage) -> None:
    for path in ["orders/1", "orders/_ProcessedFiles/0", "orders/_a/b/c", "orders2/1", "order/1", "root.json"]:
        _create(storage, path)
    listing = storage.names("orders")
    assert set(listing.files) == {"1"}
    assert listing.folders == {"_ProcessedFiles", "_a"}
    root = storage.names("")
    assert set(root.files) == {"root.json"}
    assert root.folders == {"orders", "orders2", "order"}


@pytest.mark.parametrize("folder", ["", "items", "items/deep", "orders/1"])
def test_an_absent_folder_is_empty(storage: Storage, folder: str) -> None:
    if folder:
        _create(storage, "orders/1")
    assert storage.names(folder) == Listing({}, frozenset())


# ------------------------------------------------------------------------------------------------------------ rename


def test_a_renamed_file_stands_under_its_new_name_only(storage: Storage) -> None:
    identity = _create(storage, "orders/1")
    assert storage.rename("orders/1", "orders/_ProcessedFiles/1", if_identity=identity)
    assert _data(storage, "orders/1") is None
    assert _data(storage, "orders/_ProcessedFiles/1") == b"data"


def test_a_rename_does_not_overwrite(storage: Storage) -> None:
    _create(storage, "orders/1", b"one")
    _create(storage, "orders/2", b"two")
    assert not storage.rename("orders/1", "orders/2")
    assert (_data(storage, "orders/1"), _data(storage, "orders/2")) == (b"one", b"two")


def test_a_rename_to_the_same_name_changes_nothing(storage: Storage) -> None:
    _create(storage, "orders/1")
    assert not storage.rename("orders/1", "orders/1")
    assert _data(storage, "orders/1") == b"data"


def test_a_rename_moves_only_the_file_of_that_identity(storage: Storage) -> None:
    stale = _create(storage, "orders/1", b"one")
    storage.delete("orders/1")
    _create(storage, "orders/1", b"one")
    assert not storage.rename("orders/1", "orders/2", if_identity=stale)
    assert set(storage.names("orders").files) == {"1"}


# ----------------------------------------------------------------------------------------------------------- replace


def test_a_replaced_file_has_new_content_and_a_new_identity(storage: Storage) -> None:
    identity = _create(storage, "f", b"one")
    replaced = storage.replace("f", b"two", if_identity=identity)
    content = storage.read("f")
    assert content is not None
    assert (content.data, content.identity) == (b"two", replaced)
    assert replaced != identity
    assert set(storage.names("").files) == {"f"}


def test_a_replace_leaves_another_file_alone(storage: Storage) -> None:
    stale = _create(storage, "f", b"one")
    storage.replace("f", b"two", if_identity=stale)
    assert storage.replace("f", b"six", if_identity=stale) is None
    assert _data(storage, "f") == b"two"


# ------------------------------------------------------------------------------------------------------------ delete


def test_a_deleted_file_is_gone_and_its_name_is_free(storage: Storage) -> None:
    identity = _create(storage, "orders/1")
    assert storage.delete("orders/1", if_identity=identity)
    assert _data(storage, "orders/1") is None
    assert not storage.delete("orders/1", if_identity=identity)
    _create(storage, "orders/1")


def test_a_delete_takes_only_the_file_of_that_identity(storage: Storage) -> None:
    stale = _create(storage, "orders/1")
    storage.delete("orders/1")
    _create(storage, "orders/1")
    assert not storage.delete("orders/1", if_identity=stale)
    assert _data(storage, "orders/1") == b"data"


def test_a_delete_without_identity_takes_any_file(storage: Storage) -> None:
    _create(storage, "orders/1")
    assert storage.delete("orders/1")
    assert _data(storage, "orders/1") is None


# ----------------------------------------------------------------------------------------------------------- folders


def test_a_folder_without_files_is_gone_after_it_was_removed(storage: Storage) -> None:
    for path in ["orders/1", "orders/_ProcessedFiles/0", "items/1"]:
        _create(storage, path)
    storage.delete("orders/1")
    storage.delete("orders/_ProcessedFiles/0")
    storage.remove_folder("orders")
    assert storage.names("").folders == {"items"}


def test_a_folder_with_files_stays(storage: Storage) -> None:
    _create(storage, "orders/_ProcessedFiles/0")
    storage.remove_folder("orders")
    assert _data(storage, "orders/_ProcessedFiles/0") == b"data"


def test_removing_an_absent_folder_is_no_error(storage: Storage) -> None:
    storage.remove_folder("orders/deep")


# ------------------------------------------------------------------------------------------------------------- races


def test_of_threads_that_create_one_name_exactly_one_wins(storage: Storage) -> None:
    for number in range(20):
        path = f"orders/{number}"
        answers = _race([partial(storage.create, path, str(racer).encode()) for racer in range(RACERS)])
        [winner] = [racer for racer, identity in enumerate(answers) if identity is not None]
        content = storage.read(path)
        assert content is not None
        assert (content.data, content.identity) == (str(winner).encode(), answers[winner])


def test_of_threads_that_rename_to_one_name_exactly_one_wins(storage: Storage) -> None:
    for number in range(10):
        for racer in range(RACERS):
            _create(storage, f"{number}/{racer}", str(racer).encode())
        moves = [partial(storage.rename, f"{number}/{racer}", f"{number}/last") for racer in range(RACERS)]
        [winner] = [racer for racer, moved in enumerate(_race(moves)) if moved]
        assert _data(storage, f"{number}/last") == str(winner).encode()
        losers = {str(racer) for racer in range(RACERS)} - {str(winner)}
        assert set(storage.names(str(number)).files) == {"last", *losers}


def test_of_threads_that_move_one_file_exactly_one_wins(storage: Storage) -> None:
    for number in range(10):
        path = f"{number}/1"
        move = partial(storage.rename, path, if_identity=_create(storage, path))
        assert sum(_race([partial(move, f"{number}/to/{racer}") for racer in range(RACERS)])) == 1
        assert len(storage.names(f"{number}/to").files) == 1


def test_of_threads_that_replace_one_file_exactly_one_wins(storage: Storage) -> None:
    identity = _create(storage, "f", b"first")
    for _ in range(10):
        replace = partial(storage.replace, "f", if_identity=identity)
        answers = _race([partial(replace, str(racer).encode()) for racer in range(RACERS)])
        [winner] = [racer for racer, answer in enumerate(answers) if answer is not None]
        assert _data(storage, "f") == str(winner).encode()
        identity = answers[winner] or ""


def test_a_file_is_moved_or_deleted_but_not_both(storage: Storage) -> None:
    for number in range(20):
        path = f"{number}/1"
        identity = _create(storage, path)
        move = partial(storage.rename, path, f"{number}/2", if_identity=identity)
        moved, deleted = _race([move, partial(storage.delete, path, if_identity=identity)])
        assert moved != deleted
        assert set(storage.names(str(number)).files) == ({"2"} if moved else set())


# ------------------------------------------------------------------------------------------------- against the model

_PATHS = ["a", "t/1", "t/2", "t/_p/1"]
_path = st.sampled_from(_PATHS)
_steps = st.one_of(
    st.tuples(st.just("create"), _path, st.binary(max_size=2)),
    st.tuples(st.just("delete"), _path, st.booleans()),
    st.tuples(st.just("rename"), _path, _path, st.booleans()),
    st.tuples(st.just("replace"), _path, st.binary(max_size=2)),
)


class Pair:
    """A storage and the dict that says what must stand in it: path to data and identity."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self.model: dict[str, tuple[bytes, str]] = {}

    def _identity(self, path: str) -> str:
        return self.model[path][1] if path in self.model else "e1"

    def create(self, path: str, data: bytes) -> None:
        identity = self.storage.create(path, data)
        assert (identity is None) == (path in self.model)
        if identity is not None:
            self.model[path] = (data, identity)

    def delete(self, path: str, by_identity: bool) -> None:  # noqa: FBT001 - drawn
        deleted = self.storage.delete(path, if_identity=self._identity(path) if by_identity else None)
        assert deleted == (path in self.model)
        self.model.pop(path, None)

    def rename(self, source: str, target: str, by_identity: bool) -> None:  # noqa: FBT001 - drawn
        moved = self.storage.rename(source, target, if_identity=self._identity(source) if by_identity else None)
        assert moved == (source in self.model and target not in self.model)
        if moved:
            data, _ = self.model.pop(source)
            entry = self.storage.identity(target)
            assert entry is not None
            self.model[target] = (data, entry.identity)

    def replace(self, path: str, data: bytes) -> None:
        identity = self.storage.replace(path, data, if_identity=self._identity(path))
        assert (identity is not None) == (path in self.model)
        if identity is not None:
            self.model[path] = (data, identity)

    def check(self) -> None:
        for path in _PATHS:
            content = self.storage.read(path)
            assert (None if content is None else (content.data, content.identity)) == self.model.get(path)
        for folder in ("", "t", "t/_p"):
            names = {name: entry.identity for name, entry in self.storage.names(folder).files.items()}
            assert names == {
                path.rpartition("/")[2]: identity
                for path, (_, identity) in self.model.items()
                if path.rpartition("/")[0] == folder
            }


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])  # each run has its own storage
@given(steps=st.lists(_steps, max_size=12))
def test_every_history_has_the_answers_of_a_dict(
    new_storage: Callable[[], Storage], steps: list[tuple[str, ...]]
) -> None:
    pair = Pair(new_storage())
    for verb, *arguments in steps:
        getattr(pair, verb)(*arguments)
        pair.check()
