"""The one thread of a writer."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable

import pytest

from openmirror_writer.formats import EncodedFile
from openmirror_writer.record import Record
from openmirror_writer.writer.cut import FileContent
from openmirror_writer.writer.worker import Worker

FILE = FileContent((), "following", None)


def no_tick() -> Callable[[], None]:
    return lambda: None


def unencoded(content: FileContent) -> EncodedFile:
    raise AssertionError("nothing was to be encoded")


class Encoded:
    """Stands for encoded rows where nobody looks into them."""

    def __init__(self, content: FileContent) -> None:
        self.content = content

    def finish(self, record: Record) -> bytes:
        raise AssertionError(record)


def numbered(position: int) -> FileContent:
    return FileContent((), "following", position)


def test_files_are_published_in_their_order() -> None:
    published: list[FileContent] = []
    worker = Worker(Encoded, lambda file, _: published.append(file), no_tick)
    for number in range(20):
        worker.submit(numbered(number))
    worker.wait()
    worker.stop()
    assert [file.position for file in published] == list(range(20))


def test_stop_waits_for_the_file_in_flight_and_ends_the_thread() -> None:
    go, published = threading.Event(), []
    before = threading.active_count()

    def publish(file: FileContent, _: EncodedFile | None) -> None:
        go.wait()
        published.append(file)

    worker = Worker(unencoded, publish, no_tick)
    worker.submit(FILE)
    threading.Timer(0.05, go.set).start()
    worker.stop()
    assert published == [FILE]
    assert not [t for t in threading.enumerate() if t.name == "openmirror-writer" and t is worker._thread]
    assert threading.active_count() <= before + 1  # the timer


def test_what_a_file_raises_comes_at_the_next_submit_and_wait_and_no_file_follows_it() -> None:
    published: list[FileContent] = []

    def publish(file: FileContent, encoding: EncodedFile | None) -> None:
        if file.position == 1:
            raise ValueError("refused")
        published.append(file)

    worker = Worker(Encoded, publish, no_tick)
    worker.submit(numbered(0))
    worker.submit(numbered(1))
    with pytest.raises(ValueError, match="refused"):
        worker.wait()
    with pytest.raises(ValueError, match="refused"):
        worker.submit(numbered(2))
    worker.stop()
    assert [file.position for file in published] == [0]
    assert isinstance(worker.failure, ValueError)


def test_an_idle_worker_ticks_and_keeps_what_the_tick_raises() -> None:
    ticked = threading.Event()

    def tick() -> None:
        ticked.set()
        raise ValueError("in the tick")

    worker = Worker(unencoded, lambda *_: None, lambda: tick)
    assert ticked.wait(30)
    with pytest.raises(ValueError, match="in the tick"):
        worker.submit(FILE)
    worker.stop()


def test_the_thread_ends_when_nobody_is_there_any_more() -> None:
    class Owner:
        def tick(self) -> None:
            pass

    owner = Owner()
    worker = Worker(unencoded, lambda *_: None, weakref.WeakMethod(owner.tick))
    del owner
    gc.collect()
    worker._thread.join(30)
    assert not worker._thread.is_alive()


def test_one_file_waits_as_it_is_and_a_further_one_is_encoded_by_the_caller() -> None:
    begun, go, seen = threading.Event(), threading.Event(), []

    def publish(file: FileContent, encoding: EncodedFile | None) -> None:
        begun.set()
        go.wait()
        seen.append((file.position, encoding.content.position if isinstance(encoding, Encoded) else None))

    def encode(content: FileContent) -> EncodedFile:
        go.set()  # the first file cannot go on before the third one is encoded
        return Encoded(content)

    worker = Worker(encode, publish, no_tick)
    worker.submit(numbered(0))
    assert begun.wait(30)
    worker.submit(numbered(1))
    worker.submit(numbered(2))
    worker.stop()
    assert seen == [(0, None), (1, None), (2, 2)]
