"""Which storage a URL means."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from openmirror_writer.errors import StorageError
from openmirror_writer.storage import open_storage
from openmirror_writer.storage.local import LocalStorage
from openmirror_writer.storage.memory import MemoryStorage


@pytest.mark.parametrize(
    ("url", "folder"),
    [
        ("/data/zone", "/data/zone"),
        (Path("/data/zone"), "/data/zone"),
        ("/data/50% #1?", "/data/50% #1?"),
        ("file:///data/zone", "/data/zone"),
        ("file:/data/zone", "/data/zone"),
        ("file://localhost/data/zone", "/data/zone"),
        ("file:///data/a%20b%23%3F%25", "/data/a b#?%"),
    ],
)
def test_a_path_or_file_url_is_a_local_folder(url: str | Path, folder: str) -> None:
    storage = open_storage(url)
    assert isinstance(storage, LocalStorage)
    assert storage.url == folder


def test_a_relative_path_is_below_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert open_storage("zone").url == str(tmp_path / "zone")
    assert open_storage(".").url == str(tmp_path)


def test_a_tilde_is_the_users_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert open_storage("~/zone").url == str(tmp_path / "zone")


def test_memory_is_the_memory_of_the_process() -> None:
    root = f"opening-{uuid4().hex}"
    open_storage(f"memory://{root}/zone").create("t/1", b"data")
    storage = open_storage(f"memory://{root}")
    assert isinstance(storage, MemoryStorage)
    assert storage.url == f"memory://{root}"
    assert storage.names("zone/t").files.keys() == {"1"}


def test_a_storage_of_ones_own_is_returned_as_it_is() -> None:
    storage = MemoryStorage("zone")
    assert open_storage(storage) is storage


@pytest.mark.parametrize("url", ["s3://key:secret@bucket/zone?sig=secret", "abfss://secret@onelake/zone", "://secret"])
def test_an_unknown_kind_of_url_is_refused_without_its_secrets(url: str) -> None:
    with pytest.raises(StorageError, match="is not supported by this version; use a local path or memory://") as caught:
        open_storage(url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["file://zone", "file://zone/orders", "file:///data/zone?x=1", "file:///data/a#b", "file://", "file:"]
)
def test_a_file_url_of_which_a_part_would_be_left_out_is_refused(url: str) -> None:
    with pytest.raises(StorageError, match="file:///absolute/path"):
        open_storage(url)


def test_an_empty_url_does_not_mean_the_working_folder() -> None:
    with pytest.raises(StorageError, match="is empty"):
        open_storage("")


@pytest.mark.parametrize("url", [None, 7, b"/data/zone", {"url": "/data"}])
def test_what_is_neither_a_url_nor_a_storage_is_refused(url: Any) -> None:
    with pytest.raises(StorageError, match=f"{type(url).__name__} is no storage"):
        open_storage(url)
