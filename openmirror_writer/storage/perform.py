"""Carries out protocols against a real storage."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import stamina

from openmirror_writer.errors import StorageError
from openmirror_writer.storage.contract import (
    Created,
    CreateFile,
    DeleteFile,
    Exists,
    ListFolder,
    Lost,
    ReadFile,
    RemoveFolder,
    RenameFile,
    ReplaceFile,
    Request,
    Steps,
    Storage,
)

T = TypeVar("T")

RETRY_SECONDS = 30.0
"""How long a request is tried again that does no harm when it is carried out twice."""


def perform(storage: Storage, steps: Steps[T]) -> T:
    """Drive a protocol to its end.

    What reads or deletes, or replaces by identity, is retried with backoff for `RETRY_SECONDS` if its error is
    retryable. A create is sent once: whether it may be resent is the protocol's decision, for a resend that comes late
    needs a proof first. A rename is sent once too: a second one could not tell "gone" from "moved by the first".

    Args:
        storage: Answers the requests.
        steps: The protocol; it is thrown the `StorageError` of a request that failed for good.

    Returns:
        What the protocol returns.

    Raises:
        StorageError: The storage failed for good.
        OpenMirrorError: Whatever the protocol decides to raise.
    """
    go_on: Callable[[], Any] = partial(steps.send, None)
    while True:
        try:
            request = go_on()
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]
        try:
            go_on = partial(steps.send, answer_to(storage, request))
        except StorageError as error:
            go_on = partial(steps.throw, error)


def answer_to(storage: Storage, request: Request) -> Any:  # noqa: ANN401 - one type per request, see the contract
    """Carry out one request, see `perform`.

    Args:
        storage: Where.
        request: What.

    Returns:
        Its answer, of the type that the request's class names. `Lost` for a create that failed but may succeed later.

    Raises:
        StorageError: The storage failed for good.
    """
    match request:
        case ListFolder(folder):
            return _retried(lambda: storage.names(folder))
        case ReadFile(path, start, end):
            return _retried(lambda: storage.read(path, start, end))
        case CreateFile(path, data):
            return _created(storage, path, data)
        case ReplaceFile(path, data, standing):
            return _retried(lambda: storage.replace(path, data, if_identity=standing))
        case DeleteFile(path, if_identity):
            return _retried(lambda: storage.delete(path, if_identity=if_identity))
        case RenameFile(source, target, if_identity):
            return storage.rename(source, target, if_identity=if_identity)
        case RemoveFolder(folder):
            return storage.remove_folder(folder)
    msg = f"unknown request {request!r}"
    raise AssertionError(msg)


def _created(storage: Storage, path: str, data: bytes) -> Created | Exists | Lost:
    try:
        identity = storage.create(path, data)
    except StorageError as error:
        if not error.retryable:
            raise
        return Lost(str(error))
    return Exists() if identity is None else Created(identity)


def _retried(call: Callable[[], T]) -> T:
    for attempt in stamina.retry_context(on=_is_retryable, attempts=None, timeout=RETRY_SECONDS):
        with attempt:
            return call()
    msg = "unreachable: stamina raises the last error"
    raise AssertionError(msg)


def _is_retryable(error: Exception) -> bool:
    return isinstance(error, StorageError) and error.retryable
