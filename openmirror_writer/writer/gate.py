"""Who may use a writer: one thread at a time, in the process that opened it, until a publish has failed."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from openmirror_writer.errors import OpenMirrorError


class Gate:
    """Stands before every call of one writer.

    Attributes:
        failure: What the publish raised that failed; None if none did. The folder is then not known any more.
    """

    def __init__(self, table: str, is_whole: Callable[[], bool] = lambda: True) -> None:
        """Let this process in.

        Args:
            table: Label for errors.
            is_whole: Whether no row is lost. Asked when an error goes out, which may be an interrupt at any place; if
                not, the error is the failure.
        """
        self._table = table
        self._is_whole = is_whole
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._is_told = False
        self.failure: BaseException | None = None

    @property
    def is_forked(self) -> bool:
        """Whether this process is a child of the one that opened the writer."""
        return os.getpid() != self._pid

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Let one thread in, and only where the writer may still be used.

        Raises:
            BaseException: The failure, where the caller has not seen it yet.
            OpenMirrorError: The writer failed before, or was opened in another process.
        """
        with self.entered_at_the_end():
            self.refuse_failed()
            yield

    @contextmanager
    def entered_at_the_end(self) -> Iterator[None]:
        """Let one thread in, also after a failure.

        Raises:
            OpenMirrorError: The writer was opened in another process.
        """
        if self.is_forked:
            msg = "this writer was opened in another process: open one in each process"
            raise OpenMirrorError(msg, table=self._table)
        with self._lock:
            try:
                yield
            except BaseException as error:
                if self.failure is None and not self._is_whole():
                    self.failure = error
                self._is_told = self._is_told or error is self.failure
                raise

    @contextmanager
    def entered_if_free(self) -> Iterator[bool]:
        """Let a thread in that has time: False if another is inside, or the writer failed."""
        if not self._lock.acquire(blocking=False):
            yield False
            return
        try:
            yield self.failure is None
        finally:
            self._lock.release()

    def refuse_failed(self) -> None:
        """Raise a failure that the caller has not seen yet, for it came in another thread; then refuse every call.

        Raises:
            BaseException: The failure.
            OpenMirrorError: The writer failed before.
        """
        if self.failure is None:
            return
        if not self._is_told:
            self._is_told = True
            raise self.failure
        msg = f"this writer failed before ({_told(self.failure)}): open a new one, which finds out what stands"
        raise OpenMirrorError(msg, table=self._table) from self.failure

    def guarded(self, publish: Callable[..., None], *args: Any) -> None:  # noqa: ANN401 - those of `publish`
        """Publish something; what that raises ends the writer.

        Raises:
            BaseException: What ``publish`` raises.
        """
        try:
            publish(*args)
        except BaseException as error:
            self.failure = error
            raise

    def note_failure(self, error: BaseException) -> None:
        """Tell the caller of the failure in a note on another error, which leaves the writer's block."""
        if self.failure is None or self._is_told:
            return
        self._is_told = True
        if self.failure is not error:
            error.add_note(f"the file in flight of {self._table} failed too: {_told(self.failure)}")


def _told(failure: BaseException) -> str:
    return str(failure) or type(failure).__name__  # an interrupt has no message
