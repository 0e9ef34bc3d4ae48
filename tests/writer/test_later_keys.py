"""A table made without key columns that gets some later: rule 2.1, "may be added later, never changed"."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from openmirror_writer.errors import ConcurrentWriterError, SchemaRefusedError, StorageError
from openmirror_writer.layout import METADATA
from openmirror_writer.metadata import TableMetadata
from openmirror_writer.writer import Writer
from openmirror_writer.zone import LandingTable, LandingZone
from tests.writer.feeder import Tapped
from tests.writer.landing import content, identities, mirrored, names

COLUMNS = {"id": "int64", "v": "string"}


def table_of(zone: LandingZone, *keys: str) -> LandingTable:
    return zone.table("orders", key_columns=keys, columns=COLUMNS)


def standing_keys(table: LandingTable) -> list[str]:
    found: list[str] = json.loads(content(table, METADATA).data)["keyColumns"]
    return found


def replace_metadata(table: LandingTable, data: bytes) -> None:
    identity = table.zone.storage.names(table.folder).files[METADATA].identity
    assert table.zone.storage.replace(table.path(METADATA), data, if_identity=identity)


@pytest.fixture
def keyless(zone: LandingZone) -> LandingTable:
    table = table_of(zone)
    Writer(table).insert([{"id": 1, "v": "a"}, {"id": 2, "v": "b"}], position=1)
    return table


@pytest.mark.rule("2.1", "L11")
def test_keys_that_come_later_hold_for_the_rows_before_too(zone: LandingZone, keyless: LandingTable) -> None:
    writer = Writer(table_of(zone, "id"))
    assert (writer.position, writer.key_columns) == (1, ("id",))
    writer.upsert([{"id": 2, "v": "B"}], position=2)
    writer.delete([{"id": 1}], position=3)
    assert mirrored(zone) == [{"id": 2, "v": "B"}]
    assert standing_keys(keyless) == ["id"]
    assert Writer(zone.table("orders")).key_columns == ("id",)


def test_the_keys_stand_in_the_metadata_before_the_first_file_and_not_earlier(
    zone: LandingZone, keyless: LandingTable
) -> None:
    operations: list[tuple[str, str]] = []
    tapped = LandingZone(Tapped(zone.storage, before=lambda *told: operations.append(told)))
    before = identities(keyless)
    writer = Writer(table_of(tapped, "id"))
    assert identities(keyless) == before
    writer.upsert([{"id": 2, "v": "B"}], position=2)
    changed = [(what, path) for what, path in operations if what in {"create", "replace"}]
    assert changed == [("replace", "orders/_metadata.json"), ("create", "orders/00000000000000000002.parquet")]


def test_other_properties_of_the_metadata_are_kept(zone: LandingZone, keyless: LandingTable) -> None:
    replace_metadata(keyless, b'{"KeyColumns": [], "somebodysOwn": {"a": 1}}')
    Writer(table_of(zone, "id")).upsert([{"id": 2, "v": "B"}], position=2)
    assert json.loads(content(keyless, METADATA).data) == {"keyColumns": ["id"], "somebodysOwn": {"a": 1}}


@pytest.mark.rule("7.6", "L11")
@pytest.mark.parametrize("keys", [(), ("v",), ("id", "v")])
def test_keys_that_stand_never_change(zone: LandingZone, keyless: LandingTable, keys: tuple[str, ...]) -> None:
    Writer(table_of(zone, "id")).upsert([{"id": 2, "v": "B"}], position=2)
    before = identities(keyless)
    with pytest.raises(SchemaRefusedError, match=r"rule 7.6.*drop_table") as caught:
        Writer(table_of(zone, *keys))
    assert caught.value.file == "orders/_metadata.json"
    assert identities(keyless) == before


def test_a_key_that_is_no_column_of_the_files_is_refused(zone: LandingZone, keyless: LandingTable) -> None:
    wide = zone.table("orders", key_columns=["new"], columns={**COLUMNS, "new": "int64"})
    before = identities(keyless)
    with pytest.raises(SchemaRefusedError, match="the key column 'new' is none of the table's columns"):
        Writer(wide)
    assert identities(keyless) == before


def test_keys_may_come_before_the_first_file(zone: LandingZone) -> None:
    table = table_of(zone, "id")
    assert zone.storage.create(table.path(METADATA), TableMetadata().to_bytes())
    Writer(table).upsert([{"id": 1, "v": "a"}], position=1)
    assert (standing_keys(table), mirrored(zone)) == (["id"], [{"id": 1, "v": "a"}])


def test_a_lost_answer_of_the_replacement_is_found_out(zone: LandingZone, keyless: LandingTable) -> None:
    lost: list[str] = []

    def lose(operation: str, path: str) -> None:
        if operation == "replace" and not lost:
            lost.append(path)
            raise StorageError("no answer", retryable=True)

    writer = Writer(table_of(LandingZone(Tapped(zone.storage, after=lose)), "id"))
    writer.upsert([{"id": 2, "v": "B"}], position=2)
    assert lost == ["orders/_metadata.json"]
    assert standing_keys(keyless) == ["id"]


def when_replaced(zone: LandingZone, do: Callable[[], object]) -> LandingZone:
    """A zone in which something happens just before the metadata is replaced."""

    def tap(operation: str, _path: str) -> None:
        if operation == "replace":
            do()

    return LandingZone(Tapped(zone.storage, before=tap))


def test_of_two_writers_that_bring_keys_one_is_refused(zone: LandingZone, keyless: LandingTable) -> None:
    other = TableMetadata(key_columns=("v",)).to_bytes()
    tapped = when_replaced(zone, lambda: replace_metadata(keyless, other))
    writer = Writer(table_of(tapped, "id"))
    with pytest.raises(SchemaRefusedError, match=r"came to stand with the keys \['v'\], ours are \['id'\]"):
        writer.upsert([{"id": 2, "v": "B"}], position=2)
    assert (standing_keys(keyless), len(names(keyless))) == (["v"], 3)


def test_metadata_that_another_writer_gave_the_same_keys_is_taken(zone: LandingZone, keyless: LandingTable) -> None:
    same = TableMetadata(key_columns=("id",)).to_bytes()
    writer = Writer(table_of(when_replaced(zone, lambda: replace_metadata(keyless, same)), "id"))
    writer.upsert([{"id": 2, "v": "B"}], position=2)
    assert mirrored(zone) == [{"id": 1, "v": "a"}, {"id": 2, "v": "B"}]


def test_a_writer_that_was_left_behind_brings_no_keys(zone: LandingZone, keyless: LandingTable) -> None:
    late = Writer(table_of(zone, "id"))
    Writer(keyless).insert([{"id": 3, "v": "c"}], position=2)
    with pytest.raises(ConcurrentWriterError):
        late.upsert([{"id": 2, "v": "B"}], position=2)
    assert standing_keys(keyless) == []
