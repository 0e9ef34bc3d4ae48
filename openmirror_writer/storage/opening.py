"""Which storage a URL means."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote, urlsplit

from openmirror_writer.errors import StorageError
from openmirror_writer.storage.contract import Storage
from openmirror_writer.storage.local import LocalStorage
from openmirror_writer.storage.memory import MemoryStorage


def open_storage(url: str | os.PathLike[str] | Storage) -> Storage:
    """Return the storage behind a URL; nothing is read or written yet.

    Args:
        url: A local path, ``file://...`` or ``memory://...``; or a storage of one's own, which is returned as it is.

    Raises:
        StorageError: The scheme is not one that this version knows.

    >>> open_storage("memory://zone").url
    'memory://zone'
    """
    if not isinstance(url, str | os.PathLike):
        return url
    text = os.fspath(url)
    scheme, separator, rest = text.partition("://")
    if not separator:
        if text.startswith("file:"):
            return LocalStorage(unquote(urlsplit(text).path))
        return LocalStorage(Path(text).expanduser())
    if scheme == "file":
        return LocalStorage(unquote(urlsplit(text).path))
    if scheme == "memory":
        return MemoryStorage(rest)
    msg = f"{scheme}:// is not supported by this version; use a local path or memory://"
    raise StorageError(msg)


