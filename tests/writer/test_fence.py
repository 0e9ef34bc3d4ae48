"""The fence: lost answers, other writers, drops; the proof, and what it takes to call something durable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from openmirror_writer.changes import ChangeBatch
from openmirror_writer.errors import (
    ConcurrentWriterError,
    OpenMirrorError,
    SchemaRefusedError,
    StorageError,
    TableGoneError,
)
from openmirror_writer.formats import Parquet
from openmirror_writer.layout import DROPPING, GENERATION, METADATA, advance_file, data_file
from openmirror_writer.metadata import Generation, TableMetadata
from openmirror_writer.record import Record, new_id
from openmirror_writer.schema import declared_columns
from openmirror_writer.storage import Storage, perform
from openmirror_writer.writer.cut import FileContent, Progress
from openmirror_writer.writer.fence import PROOF_SECONDS, Fence, PublishedFile
from openmirror_writer.writer.resume import open_table
from openmirror_writer.zone import LandingTable, LandingZone
from tests.writer.feeder import Tapped
from tests.writer.landing import advances, mirrored, move_processed, names, record

COLUMNS = declared_columns({"id": "int64"})


class Publisher:
    """One writer's fence on a storage that can be tapped, with a clock that the test moves."""

    def __init__(self, zone: LandingZone) -> None:
        self.now = 0.0
        self.operations: list[tuple[str, str]] = []
        self.before: Callable[[str, str], None] = lambda _operation, _path: None
        self.after: Callable[[str, str], None] = lambda _operation, _path: None
        self.storage: Storage = Tapped(zone.storage, before=self._note, after=self._tell_after)
        self.table = LandingZone(self.storage).table("orders", key_columns=["id"], columns=COLUMNS)
        resumed = perform(self.storage, open_table(self.table, "start", lambda: self.now))
        self.fence = Fence(self.table, resumed, writer="w", by="test", clock=lambda: self.now)
        self.operations.clear()

    def _note(self, operation: str, path: str) -> None:
        self.operations.append((operation, path.rpartition("/")[2]))
        self.before(operation, path)

    def _tell_after(self, operation: str, path: str) -> None:
        self.after(operation, path)

    def publish(self, position: Any = 1) -> PublishedFile:
        rows = ChangeBatch(pa.record_batch({"id": pa.array([7], pa.int64())}), pa.array([0], pa.int32()))
        content = FileContent((rows,), "following", position)
        return perform(self.storage, self.fence.publish(content, self._encode))

    def advance(self, position: Any) -> None:
        perform(self.storage, self.fence.advance(Progress("following", position)))

    def confirm(self) -> None:
        perform(self.storage, self.fence.confirm())

    @staticmethod
    def _encode(content: FileContent, of_file: Record) -> bytes:
        return Parquet().encode(COLUMNS, content.batches, of_file)

    def listings(self) -> int:
        return sum(operation == "names" for operation, _ in self.operations)


@pytest.fixture
def publisher(zone: LandingZone) -> Publisher:
    return Publisher(zone)


def lose(times: int, operation: str = "create", name: str = ".parquet") -> Callable[[str, str], None]:
    """Fail so many operations on files whose path ends so."""
    left = [times]

    def fail(what: str, path: str) -> None:
        if what == operation and path.endswith(name) and left[0]:
            left[0] -= 1
            raise StorageError("no answer", retryable=True)

    return fail


def put(table: LandingTable, name: str, data: bytes) -> None:
    assert table.zone.storage.create(table.path(name), data) is not None


# ------------------------------------------------------------------------------------------------------- the first file


@pytest.mark.rule("2.11", "2.12", "record.1", "L7")
def test_the_generation_comes_first_and_the_metadata_behind_the_first_file_and_a_proof(publisher: Publisher) -> None:
    publisher.publish()
    created = [name for operation, name in publisher.operations if operation == "create"]
    assert created == [GENERATION, data_file(1), METADATA]
    between = publisher.operations[publisher.operations.index(("create", data_file(1))) :]
    assert between.index(("names", "orders")) < between.index(("create", METADATA))


def test_the_generation_of_another_writer_is_adopted(zone: LandingZone) -> None:
    publisher, other = Publisher(zone), Publisher(zone)
    put(other.table, GENERATION, Generation(generation="of the other").to_bytes())
    publisher.publish()
    assert record(publisher.table, 1).generation == "of the other"


def test_a_lost_answer_of_the_generation_is_no_harm(publisher: Publisher) -> None:
    publisher.after = lose(1, name=GENERATION)
    publisher.publish()
    assert names(publisher.table) == [data_file(1), GENERATION, METADATA]


def test_who_comes_second_to_a_new_table_is_refused(zone: LandingZone) -> None:
    publisher, other = Publisher(zone), Publisher(zone)
    other.publish()
    with pytest.raises(ConcurrentWriterError, match="has published file 1"):
        publisher.publish()
    assert names(publisher.table) == [data_file(1), GENERATION, METADATA]


def test_a_drop_that_began_refuses_the_first_file(publisher: Publisher) -> None:
    put(publisher.table, DROPPING, b"{}")
    with pytest.raises(TableGoneError):
        publisher.publish()
    assert data_file(1) not in names(publisher.table)


def test_metadata_that_another_wrote_must_have_our_keys(publisher: Publisher) -> None:
    def other_writes(operation: str, path: str) -> None:
        if operation == "create" and path.endswith(".parquet"):
            put(publisher.table, METADATA, TableMetadata(key_columns=("other",)).to_bytes())

    publisher.after = other_writes
    with pytest.raises(SchemaRefusedError, match=r"keys \['other'\], ours are \['id'\]"):
        publisher.publish()


def test_metadata_that_a_drop_took_away_since_the_opening_is_written_again(zone: LandingZone) -> None:
    put(zone.table("orders"), METADATA, TableMetadata(key_columns=("id",)).to_bytes())
    publisher = Publisher(zone)
    zone.storage.delete(f"orders/{METADATA}")
    publisher.publish()
    assert METADATA in names(publisher.table)


def test_metadata_with_other_keys_that_came_since_the_opening_refuses_the_first_file(publisher: Publisher) -> None:
    put(publisher.table, METADATA, TableMetadata(key_columns=("other",)).to_bytes())
    with pytest.raises(SchemaRefusedError, match=r"keys \['other'\], ours are \['id'\]"):
        publisher.publish()
    assert data_file(1) not in names(publisher.table)


@pytest.mark.rule("2.11", "L7")
def test_metadata_that_is_missing_behind_a_file_is_written_with_the_next_file(zone: LandingZone) -> None:
    Publisher(zone).publish()
    zone.storage.delete(f"orders/{METADATA}")
    publisher = Publisher(zone)
    assert publisher.fence.has_unproved
    publisher.confirm()
    assert METADATA in names(publisher.table)


# --------------------------------------------------------------------------------------------------------- lost answers


@pytest.mark.rule("4.6")
def test_a_file_whose_answer_was_lost_is_found_to_be_ours(publisher: Publisher) -> None:
    publisher.after = lose(1)
    file = publisher.publish()
    assert (file.number, record(publisher.table, 1).batch) == (1, file.batch)
    publisher.publish(2)
    assert record(publisher.table, 2).previous == file.batch


@pytest.mark.rule("4.6")
def test_a_file_that_did_not_arrive_is_sent_again(publisher: Publisher) -> None:
    publisher.before = lose(2)
    file = publisher.publish()
    assert record(publisher.table, 1).batch == file.batch


def test_a_storage_that_never_answers_is_an_error_that_may_be_tried_again(publisher: Publisher) -> None:
    publisher.before = lose(99)
    with pytest.raises(StorageError, match="nobody knows whether this file stands: open a new writer") as caught:
        publisher.publish()
    assert caught.value.retryable
    assert caught.value.file == f"orders/{data_file(1)}"


def test_a_storage_that_refuses_is_not_asked_again(publisher: Publisher) -> None:
    def refuse(operation: str, path: str) -> None:
        if operation == "create" and path.endswith(".parquet"):
            raise StorageError("forbidden")

    publisher.before = refuse
    with pytest.raises(StorageError, match="forbidden"):
        publisher.publish()
    assert [o for o in publisher.operations if o == ("create", data_file(1))] == [("create", data_file(1))]


def test_a_file_that_stood_and_was_moved_before_it_is_sent_again_is_applied_once(publisher: Publisher) -> None:
    """The answer was lost, another writer went on behind it, the service moved both: its number is free again."""
    publisher.publish()

    def answer_lost_and_moved(operation: str, path: str) -> None:
        if operation == "create" and path.endswith(data_file(2)):
            publisher.after = lambda _operation, _path: None
            Publisher(publisher.table.zone).publish(3)
            move_processed(publisher.table, [1, 2])
            raise StorageError("no answer", retryable=True)

    publisher.after = answer_lost_and_moved
    publisher.publish(2)
    with pytest.raises(ConcurrentWriterError):
        publisher.confirm()
    assert publisher.fence.published_position == 1
    assert len(mirrored(publisher.table.zone)) == 3, "one row a file"
    assert names(publisher.table).count(data_file(2)) == 1


def test_a_number_that_is_taken_and_freed_again_between_two_requests_is_left_to_the_proof(zone: LandingZone) -> None:
    Publisher(zone).publish()
    publisher, other = Publisher(zone), Publisher(zone)
    other.publish(2)

    def move_before_the_look(operation: str, _: str) -> None:
        if operation == "names" and data_file(2) in names(other.table):
            other.publish(3)
            move_processed(other.table, [1, 2])

    publisher.before = move_before_the_look
    with pytest.raises(ConcurrentWriterError, match="file 3") as caught:
        publisher.publish(2)
    assert "delete them" not in caught.value.message


def test_a_resend_that_comes_late_is_proved_first(publisher: Publisher) -> None:
    publisher.publish()
    publisher.operations.clear()
    fail = lose(1)

    def slowly(operation: str, path: str) -> None:
        if operation == "create":
            publisher.now += PROOF_SECONDS + 1
        fail(operation, path)

    publisher.before = slowly
    publisher.publish(2)
    creates = [index for index, (operation, _) in enumerate(publisher.operations) if operation == "create"]
    assert len(creates) == 2
    assert ("names", "orders") in publisher.operations[creates[0] : creates[1]]


def test_a_late_resend_finds_that_the_lost_answer_was_a_yes(publisher: Publisher) -> None:
    publisher.publish()
    fail = lose(1)

    def slowly(operation: str, path: str) -> None:
        if operation == "create":
            publisher.now += PROOF_SECONDS + 1
        fail(operation, path)

    publisher.after = slowly
    file = publisher.publish(2)
    assert publisher.operations.count(("create", data_file(2))) == 1
    assert record(publisher.table, 2).batch == file.batch


# ------------------------------------------------------------------------------------------------------------ the proof


def test_a_create_soon_after_a_proof_needs_no_other_one(publisher: Publisher) -> None:
    publisher.publish()
    publisher.operations.clear()
    publisher.now += PROOF_SECONDS
    publisher.publish(2)
    assert publisher.listings() == 0


def test_a_create_late_after_a_proof_takes_one_first(publisher: Publisher) -> None:
    publisher.publish()
    publisher.operations.clear()
    publisher.now += PROOF_SECONDS + 0.1
    publisher.publish(2)
    assert publisher.operations == [("names", "orders"), ("create", data_file(2))]


def test_the_age_of_a_proof_counts_from_the_beginning_of_its_listing(publisher: Publisher) -> None:
    publisher.publish()
    publisher.now += PROOF_SECONDS + 0.1

    def slow_listing(operation: str, _: str) -> None:
        publisher.now += PROOF_SECONDS + 0.1 if operation == "names" else 0.0

    publisher.after = slow_listing
    publisher.publish(2)
    publisher.after = lambda _operation, _path: None
    publisher.operations.clear()
    publisher.publish(3)
    assert publisher.operations[0] == ("names", "orders")


def test_published_position_moves_only_at_a_proof_behind_the_create(publisher: Publisher) -> None:
    publisher.publish(1)
    publisher.confirm()
    publisher.publish(2)
    assert publisher.fence.published_position == 1
    publisher.now += PROOF_SECONDS + 1
    publisher.publish(3)
    assert publisher.fence.published_position == 2
    publisher.confirm()
    assert publisher.fence.published_position == 3


def test_nothing_to_prove_asks_nothing(publisher: Publisher) -> None:
    publisher.publish()
    publisher.confirm()
    publisher.operations.clear()
    publisher.confirm()
    assert publisher.operations == []


# ------------------------------------------------------------------------------------------------------- another writer


@pytest.mark.rule("4.2", "4.5")
def test_a_number_that_another_holds_is_a_conflict(zone: LandingZone) -> None:
    Publisher(zone).publish()
    publisher, other = Publisher(zone), Publisher(zone)
    other.publish(2)
    with pytest.raises(ConcurrentWriterError, match="another writer published file 2") as caught:
        publisher.publish(2)
    assert caught.value.file == f"orders/{data_file(2)}"


@pytest.mark.rule("4.5")
def test_a_number_that_something_else_holds_is_a_conflict(publisher: Publisher) -> None:
    publisher.publish()
    put(publisher.table, data_file(2), b"no parquet at all")
    with pytest.raises(ConcurrentWriterError):
        publisher.publish(2)


@pytest.mark.rule("4.5", "record.4")
def test_a_file_under_a_number_that_a_move_had_freed_is_named(zone: LandingZone) -> None:
    Publisher(zone).publish()
    publisher, other = Publisher(zone), Publisher(zone)
    other.publish(2)
    other.publish(3)
    move_processed(other.table, [1, 2])
    publisher.publish(2)
    with pytest.raises(ConcurrentWriterError, match=f"delete them: orders/{data_file(2)}") as caught:
        publisher.confirm()
    assert caught.value.file == f"orders/{data_file(3)}"
    assert publisher.fence.published_position == 1


def test_our_files_that_another_went_on_behind_are_not_named(zone: LandingZone) -> None:
    Publisher(zone).publish()
    publisher = Publisher(zone)
    publisher.publish(2)
    Publisher(zone).publish(3)
    with pytest.raises(ConcurrentWriterError) as caught:
        publisher.confirm()
    assert "delete them" not in caught.value.message


# -------------------------------------------------------------------------------------------------------- a folder gone


def test_a_last_file_that_is_gone_is_a_table_that_is_gone(publisher: Publisher) -> None:
    publisher.publish()
    publisher.storage.delete(f"orders/{data_file(1)}")
    publisher.now += PROOF_SECONDS + 1
    with pytest.raises(TableGoneError, match="last file that this writer knows is gone") as caught:
        publisher.publish(2)
    assert caught.value.file == f"orders/{data_file(1)}"


@pytest.mark.parametrize("what", ["gone", "another", "tombstone"])
def test_another_life_of_the_folder_is_a_table_that_is_gone(publisher: Publisher, what: str) -> None:
    publisher.publish()
    if what == "tombstone":
        put(publisher.table, DROPPING, b"{}")
    else:
        publisher.storage.delete(f"orders/{GENERATION}")
    if what == "another":
        put(publisher.table, GENERATION, Generation(generation="another").to_bytes())
    publisher.now += PROOF_SECONDS + 1
    with pytest.raises(TableGoneError, match="was dropped"):
        publisher.publish(2)
    assert data_file(2) not in names(publisher.table)


# ------------------------------------------------------------------------------------------------------------- advances


def test_an_advance_stands_behind_the_last_file_and_counts_on(publisher: Publisher) -> None:
    file = publisher.publish()
    publisher.advance(2)
    publisher.advance(3)
    found = advances(publisher.table)
    assert [(a.number, a.previous, a.position) for a in found] == [(1, file.batch, 2), (1, file.batch, 3)]
    publisher.publish(4)
    publisher.advance(5)
    assert advance_file(2, 0) in names(publisher.table)


def test_an_advance_is_durable_at_the_next_proof(publisher: Publisher) -> None:
    publisher.publish()
    publisher.confirm()
    publisher.advance(2)
    assert publisher.fence.published_position == 1
    publisher.confirm()
    assert publisher.fence.published_position == 2


def test_an_advance_whose_answer_was_lost_stands_once(publisher: Publisher) -> None:
    publisher.publish()
    publisher.after = lose(1, name=".json")
    publisher.advance(2)
    assert [a.position for a in advances(publisher.table)] == [2]
    publisher.advance(3)
    assert [a.position for a in advances(publisher.table)] == [2, 3]


def test_an_advance_of_an_earlier_life_of_the_number_is_passed_by(publisher: Publisher) -> None:
    publisher.publish()
    old = record(publisher.table, 1).model_copy(update={"previous": "another", "batch": new_id(), "position": 99})
    put(publisher.table, advance_file(1, 0), old.to_bytes())
    publisher.advance(2)
    assert [a.position for a in advances(publisher.table)] == [99, 2]


def test_an_advance_of_another_writer_behind_our_file_is_a_conflict(zone: LandingZone) -> None:
    Publisher(zone).publish()
    publisher, other = Publisher(zone), Publisher(zone)
    other.advance(2)
    with pytest.raises(ConcurrentWriterError):
        publisher.advance(2)


def test_an_advance_that_is_never_answered_is_an_error(publisher: Publisher) -> None:
    publisher.publish()
    publisher.before = lose(99, name=".json")
    with pytest.raises(StorageError, match="nobody knows whether the advance stands") as caught:
        publisher.advance(2)
    assert (caught.value.retryable, caught.value.position) == (True, 2)


@pytest.mark.parametrize("name", [GENERATION, METADATA])
def test_a_service_file_that_is_never_answered_is_an_error(publisher: Publisher, name: str) -> None:
    publisher.before = lose(99, name=name)
    with pytest.raises(StorageError) as caught:
        publisher.publish()
    assert (caught.value.retryable, caught.value.file) == (True, f"orders/{name}")
    assert isinstance(caught.value, OpenMirrorError)
