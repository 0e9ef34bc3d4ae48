"""Which storage a URL means."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from openmirror_writer.errors import StorageError
from openmirror_writer.storage.contract import Storage
from openmirror_writer.storage.local import LocalStorage
from openmirror_writer.storage.memory import MemoryStorage


def open_storage(url: str | os.PathLike[str] | Storage) -> Storage:
    """Return the storage behind a URL; nothing is read or written yet.

    Args:
        url: A local path, ``file://...`` or ``memory://...``; or a storage of one's own, which is returned as it is.

    Raises:
        StorageError: The scheme is not one that this version knows, or the URL names no place: it is empty, or a
            ``file:`` URL with a host, a query or a fragment.

    >>> open_storage("memory://zone").url
    'memory://zone'
    """
    if not isinstance(url, str | os.PathLike):
        return _checked(url)
    text = os.fspath(url)
    scheme, separator, rest = text.partition("://")
    if text.startswith("file:"):
        return LocalStorage(_path_of(text))
    if not separator and text:
        return LocalStorage(Path(text).expanduser())
    if not text:
        msg = "the URL of the landing zone is empty; give a folder (. for this one) or memory://<name>"
        raise StorageError(msg)
    if scheme == "memory":
        return MemoryStorage(rest)
    msg = f"{scheme}:// is not supported by this version; use a local path or memory://"
    raise StorageError(msg)


def _checked(storage: object) -> Storage:
    if isinstance(storage, Storage):
        return storage
    msg = f"{type(storage).__name__} is no storage; give a path, a URL or an object with the methods of Storage"
    raise StorageError(msg)


def _path_of(url: str) -> str:
    """Return the path of a ``file:`` URL; what would be left out in silence is refused."""
    parts = urlsplit(url)
    if parts.netloc not in {"", "localhost"} or parts.query or parts.fragment or not parts.path:
        msg = "a file URL is file:///absolute/path, with %23 for '#' and %3F for '?'; or give the plain path"
        raise StorageError(msg)
    return url2pathname(parts.path)
