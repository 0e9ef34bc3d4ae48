"""Who may use a writer: one thread at a time, in its own process, until a publish failed."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from openmirror_writer.errors import ConcurrentWriterError, OpenMirrorError
from openmirror_writer.writer.gate import Gate

FAILURE = ConcurrentWriterError("another writer", table="t")


def fail() -> None:
    raise FAILURE


def failed_elsewhere() -> Gate:
    """A gate whose worker failed; the caller has not seen it."""
    gate = Gate("t")
    with ThreadPoolExecutor(1) as pool, pytest.raises(ConcurrentWriterError):
        pool.submit(gate.guarded, fail).result()
    return gate


def is_free(gate: Gate) -> bool:
    with gate.entered_if_free() as free:
        return free


def test_threads_go_in_one_after_the_other() -> None:
    gate, inside = Gate("t"), threading.Event()

    def enter() -> None:
        with gate.entered():
            inside.set()

    with ThreadPoolExecutor(2) as pool:
        with gate.entered():
            waiting = pool.submit(enter)
            assert pool.submit(is_free, gate).result() is False
            assert not inside.is_set()
        waiting.result()
    assert inside.is_set()
    assert is_free(gate)


def test_a_failure_in_another_thread_is_raised_as_it_is_and_once() -> None:
    gate = failed_elsewhere()
    with pytest.raises(ConcurrentWriterError), gate.entered():
        pass
    with pytest.raises(OpenMirrorError, match="failed before.*open a new one") as caught, gate.entered():
        pass
    assert type(caught.value) is OpenMirrorError
    assert caught.value.__cause__ is FAILURE


def test_a_failure_that_the_caller_has_seen_is_not_raised_again() -> None:
    gate = Gate("t")
    with pytest.raises(ConcurrentWriterError), gate.entered():
        gate.guarded(fail)
    with pytest.raises(OpenMirrorError, match="failed before"), gate.entered():
        pass


def test_a_failed_writer_is_not_free() -> None:
    assert not is_free(failed_elsewhere())


def test_the_end_may_be_entered_after_a_failure() -> None:
    with failed_elsewhere().entered_at_the_end():
        pass


def test_a_failure_is_noted_on_another_error_and_not_on_itself() -> None:
    error = ValueError("of the caller")
    gate = failed_elsewhere()
    gate.note_failure(error)
    assert error.__notes__ == [f"the file in flight of t failed too: {FAILURE}"]
    failed_elsewhere().note_failure(FAILURE)
    assert not hasattr(FAILURE, "__notes__")


def test_an_error_of_the_caller_is_no_failure() -> None:
    gate = Gate("t")
    with pytest.raises(ValueError, match="of the caller"), gate.entered():
        raise ValueError("of the caller")
    with gate.entered():
        pass


def test_another_process_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate("t")
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert gate.is_forked
    with pytest.raises(OpenMirrorError, match="another process"), gate.entered():
        pass
