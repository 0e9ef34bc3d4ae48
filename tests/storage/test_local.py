"""The local folder: whole files, what a killed process leaves, durability, and the operating system's errors."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

from openmirror_writer.errors import AuthenticationError, StorageError
from openmirror_writer.storage.local import LocalStorage

PROCESSES = 3
NAMES = 60

# A process that dies, as by SIGKILL, in a system function: argv = folder, function, its which-th call, code.
KILLED = """
import os, sys
from openmirror_writer.storage.local import LocalStorage
root, function, which, code = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
original, calls = getattr(os, function), []
def deadly(*arguments, **options):
    calls.append(arguments)
    if len(calls) == which:
        os._exit(9)
    return original(*arguments, **options)
setattr(os, function, deadly)
storage = LocalStorage(root)
exec(code)
"""
# A process that creates all names as soon as all processes are there: argv = folder, mark.
RACER = """
import sys
from pathlib import Path
from openmirror_writer.storage.local import LocalStorage
root, mark = sys.argv[1], sys.argv[2]
storage = LocalStorage(root)
storage.create("ready/" + mark, b"")
while len(storage.names("ready").files) < int(sys.argv[3]):
    pass
print(*[number for number in range(int(sys.argv[4])) if storage.create(f"t/{number}", mark.encode())])
"""


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path / "zone")


def _run(code: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8")


def _kill(root: Path, function: str, which: int, code: str) -> None:
    process = _run(KILLED, root, function, which, code)
    process.communicate()
    assert process.returncode == 9


def _failing(number: int) -> Callable[..., NoReturn]:
    def fail(*_: Any, **__: Any) -> NoReturn:
        raise OSError(number, os.strerror(number))

    return fail


def _data(storage: LocalStorage, path: str) -> bytes | None:
    content = storage.read(path)
    return None if content is None else content.data


# ------------------------------------------------------------------------------------------------------------- whole


def test_a_name_appears_when_its_bytes_are_durable_and_then_the_folder_is_synced(
    storage: LocalStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "zone" / "t").mkdir(parents=True)
    steps: list[str] = []
    fsync, link = os.fsync, os.link

    def seen_fsync(handle: int) -> None:
        found = os.fstat(handle)
        steps.append("sync folder" if stat.S_ISDIR(found.st_mode) else f"sync {found.st_size} bytes")
        fsync(handle)

    def seen_link(source: Path, target: Path) -> None:
        [standing] = target.parent.iterdir()
        steps.append(f"name {target.name}, before only {standing.name[0]}*{standing.suffix}")
        link(source, target)

    monkeypatch.setattr(os, "fsync", seen_fsync)
    monkeypatch.setattr(os, "link", seen_link)
    storage.create("t/1", b"12345")
    assert steps == ["sync 5 bytes", "name 1, before only _*.staged", "sync folder"]


def test_a_new_folder_is_synced_into_the_one_above_it(
    storage: LocalStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    fsync = os.fsync

    def seen_fsync(handle: int) -> None:
        synced.append(os.fstat(handle).st_ino)
        fsync(handle)

    monkeypatch.setattr(os, "fsync", seen_fsync)
    storage.create("s.schema/t/1", b"data")
    folders = [tmp_path, tmp_path / "zone", tmp_path / "zone" / "s.schema", tmp_path / "zone" / "s.schema" / "t"]
    assert [inode for inode in synced if inode in {path.stat().st_ino for path in folders}] == [
        path.stat().st_ino for path in folders
    ]


@pytest.mark.rule("4.5")
@pytest.mark.parametrize(("function", "which"), [("fsync", 3), ("link", 1)], ids=["while writing", "before the name"])
def test_a_process_that_is_killed_leaves_a_temporary_file_and_no_name(
    storage: LocalStorage, tmp_path: Path, function: str, which: int
) -> None:
    _kill(tmp_path / "zone", function, which, "storage.create('t/1', b'half')")
    [leftover] = storage.names("t").files
    assert leftover.startswith("_")
    assert leftover.endswith(".staged")
    assert storage.create("t/1", b"whole") is not None
    assert _data(storage, "t/1") == b"whole"


def test_a_process_that_is_killed_behind_the_name_leaves_a_whole_file(storage: LocalStorage, tmp_path: Path) -> None:
    _kill(tmp_path / "zone", "unlink", 1, "storage.create('t/1', b'whole')")
    assert _data(storage, "t/1") == b"whole"
    [leftover] = storage.names("t").files.keys() - {"1"}
    assert leftover.startswith("_")
    assert storage.create("t/1", b"other") is None
    assert storage.delete(f"t/{leftover}")
    assert _data(storage, "t/1") == b"whole"


def test_a_move_that_was_killed_half_way_is_finished_by_the_next_one(storage: LocalStorage, tmp_path: Path) -> None:
    identity = storage.create("t/1", b"data")
    _kill(tmp_path / "zone", "unlink", 1, "storage.rename('t/1', 't/_p/1')")
    assert _data(storage, "t/1") == _data(storage, "t/_p/1") == b"data"
    assert storage.rename("t/1", "t/_p/1", if_identity=identity)
    assert (_data(storage, "t/1"), _data(storage, "t/_p/1")) == (None, b"data")


def test_a_replace_that_was_killed_leaves_the_old_file(storage: LocalStorage, tmp_path: Path) -> None:
    identity = storage.create("f", b"old")
    _kill(tmp_path / "zone", "replace", 1, f"storage.replace('f', b'new', if_identity={identity!r})")
    assert _data(storage, "f") == b"old"
    assert storage.replace("f", b"new", if_identity=str(identity)) is not None
    assert _data(storage, "f") == b"new"


@pytest.mark.parametrize("function", ["fsync", "link"])
def test_a_create_that_fails_leaves_nothing(
    storage: LocalStorage, monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    (Path(storage.url) / "t").mkdir(parents=True)
    with monkeypatch.context() as broken:
        broken.setattr(os, function, _failing(errno.ENOSPC))
        with pytest.raises(StorageError):
            storage.create("t/1", b"data")
    assert storage.names("t").files == {}


def test_a_replace_that_fails_leaves_the_old_file_alone(storage: LocalStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    identity = str(storage.create("f", b"old"))
    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", _failing(errno.ENOSPC))
        with pytest.raises(StorageError):
            storage.replace("f", b"new", if_identity=identity)
    assert set(storage.names("").files) == {"f"}
    assert _data(storage, "f") == b"old"


def test_of_processes_that_create_one_name_exactly_one_wins(storage: LocalStorage, tmp_path: Path) -> None:
    racers = [_run(RACER, tmp_path / "zone", mark, PROCESSES, NAMES) for mark in range(PROCESSES)]
    won = [[int(number) for number in racer.communicate()[0].split()] for racer in racers]
    assert [racer.returncode for racer in racers] == [0] * PROCESSES
    assert sorted(number for numbers in won for number in numbers) == list(range(NAMES))
    for mark, numbers in enumerate(won):
        assert {_data(storage, f"t/{number}") for number in numbers} <= {str(mark).encode()}


# ---------------------------------------------------------------------------------------------------------- identity


def test_two_files_of_one_inode_size_and_kernel_tick_differ(
    storage: LocalStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for now in (1_700_000_000_123_456_700, 1_700_000_000_123_456_900):  # the kernel may count in milliseconds
        monkeypatch.setattr(time, "time_ns", lambda now=now: now)
        storage.create("f", b"data")
        assert (tmp_path / "zone" / "f").stat().st_mtime_ns == now
        storage.delete("f")


def test_a_second_name_of_a_file_does_not_make_it_go_when_it_is_renamed_to_itself(
    storage: LocalStorage, tmp_path: Path
) -> None:
    storage.create("f", b"data")
    os.link(tmp_path / "zone" / "f", tmp_path / "zone" / "_leftover.staged")
    assert not storage.rename("f", "f")
    assert _data(storage, "f") == b"data"


def test_a_rename_to_the_same_name_in_another_spelling_changes_nothing(storage: LocalStorage) -> None:
    storage.create("t/1", b"data")  # as on a file system that takes T/1 for t/1
    assert not storage.rename("t/1", "t/../t/1")
    assert _data(storage, "t/1") == b"data"


# ------------------------------------------------------------------------------------------------------------ errors


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM])
def test_a_refused_access_is_an_authentication_error_with_the_path(
    storage: LocalStorage, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    monkeypatch.setattr(os, "link", _failing(number))
    with pytest.raises(AuthenticationError, match="mend the rights of the folder") as caught:
        storage.create("t/1", b"data")
    assert caught.value.file == "t/1"
    assert not caught.value.retryable


@pytest.mark.parametrize(
    ("number", "retryable"),
    [
        (errno.ENOSPC, False),
        (errno.EDQUOT, False),
        (errno.EROFS, False),
        (errno.ENAMETOOLONG, False),
        (errno.EMLINK, False),
        (errno.EIO, True),
        (errno.ESTALE, True),
        (errno.ETIMEDOUT, True),
        (errno.EMFILE, True),
        (errno.ENOENT, True),
    ],
    ids=lambda part: errno.errorcode.get(part) if not isinstance(part, bool) else None,
)
def test_a_failure_of_the_file_system_says_whether_a_retry_may_help(
    storage: LocalStorage, monkeypatch: pytest.MonkeyPatch, number: int, *, retryable: bool
) -> None:
    monkeypatch.setattr(os, "link", _failing(number))
    with pytest.raises(StorageError, match=os.strerror(number)) as caught:
        storage.create("t/1", b"data")
    assert type(caught.value) is StorageError
    assert (caught.value.file, caught.value.retryable) == ("t/1", retryable)
    assert isinstance(caught.value.__cause__, OSError)


@pytest.mark.parametrize(
    ("function", "call"),
    [
        ("scandir", lambda storage: storage.names("t")),
        ("stat", lambda storage: storage.identity("t/1")),
        ("open", lambda storage: storage.delete("t/1")),
        ("unlink", lambda storage: storage.delete("t/1")),
        ("link", lambda storage: storage.rename("t/1", "t/2")),
        ("replace", lambda storage: storage.replace("t/1", b"x", if_identity=storage.identity("t/1").identity)),
        ("rmdir", lambda storage: storage.remove_folder("t")),
    ],
)
def test_every_method_turns_the_systems_errors_into_ours(
    storage: LocalStorage, monkeypatch: pytest.MonkeyPatch, function: str, call: Callable[[LocalStorage], object]
) -> None:
    storage.create("t/1", b"data")
    with monkeypatch.context() as broken:
        broken.setattr(os, function, _failing(errno.EIO))
        with pytest.raises(StorageError) as caught:
            call(storage)
    assert caught.value.retryable
    assert _data(storage, "t/1") == b"data"


def test_a_file_in_the_place_of_a_folder_is_a_storage_error(storage: LocalStorage) -> None:
    storage.create("t", b"data")
    with pytest.raises(StorageError):
        storage.create("t/1", b"data")


def test_a_folder_in_the_place_of_a_file_takes_the_name(storage: LocalStorage) -> None:
    storage.create("t/1/x", b"data")
    assert storage.create("t/1", b"data") is None


def test_a_file_that_goes_while_its_folder_is_listed_is_left_out(storage: LocalStorage, tmp_path: Path) -> None:
    storage.create("t/1", b"data")
    (tmp_path / "zone" / "t" / "2").symlink_to(tmp_path / "nowhere")
    assert set(storage.names("t").files) == {"1"}


# --------------------------------------------------------------------------------------------------------- locations


def test_nothing_is_made_before_the_first_create(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path / "zone")
    storage.names("")
    storage.read("t/1")
    storage.delete("t/1")
    storage.remove_folder("t")
    assert list(tmp_path.iterdir()) == []


def test_a_relative_root_stays_where_it_was_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    storage = LocalStorage("zone")
    monkeypatch.chdir("/")
    storage.create("t/1", b"data")
    assert storage.url == str(tmp_path / "zone")
    assert (tmp_path / "zone" / "t" / "1").read_bytes() == b"data"


def test_spark_gets_a_file_url_without_escapes(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path / "50% of ä")
    assert storage.location("t/a b") == f"file://{tmp_path}/50% of ä/t/a b"
