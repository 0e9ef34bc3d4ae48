"""A landing zone, its tables, and looking at a folder in which others work."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from openmirror_writer.errors import (
    ApplyError,
    ConcurrentWriterError,
    OpenMirrorError,
    SchemaRefusedError,
    StorageError,
)
from openmirror_writer.layout import GENERATION, METADATA, PARTNER_EVENTS, data_file
from openmirror_writer.lifecycle import drop_table
from openmirror_writer.metadata import Generation, PartnerEvents, SourceInfo, TableMetadata
from openmirror_writer.replay import replay
from openmirror_writer.schema import declared_columns
from openmirror_writer.storage import Content, ListFolder, ReadFile, Request, Steps, perform
from openmirror_writer.storage.memory import MemoryStorage
from openmirror_writer.writer import Writer
from openmirror_writer.zone import FolderState, LandingZone, look, moved_files

PARTNER = PartnerEvents(partner_name="testPartner", source_info=SourceInfo(source_type="SQL"))


@pytest.fixture
def storage() -> MemoryStorage:
    return MemoryStorage(f"zone-{uuid4().hex}")


@pytest.fixture
def zone(storage: MemoryStorage) -> LandingZone:
    return LandingZone(storage)


def _labels(zone: LandingZone) -> list[str]:
    return [table.label for table in zone.tables()]


# ------------------------------------------------------------------------------------------------------------ the zone


def test_naming_a_zone_and_a_table_touches_no_storage(tmp_path: Path) -> None:
    LandingZone(tmp_path / "zone").table("orders", schema_name="sales", key_columns=["id"], columns={"id": "int64"})
    assert list(tmp_path.iterdir()) == []


def test_a_zone_shows_where_it_is_and_no_secrets(storage: MemoryStorage) -> None:
    zone = LandingZone(storage, partner=PARTNER)
    assert repr(zone) == f"LandingZone({storage.url!r})"
    assert repr(zone) in repr(zone.table("orders"))
    with pytest.raises(StorageError) as caught:
        LandingZone(storage, credential="secret", storage_options={"account_key": "secret"})
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("options", [{"credential": "x"}, {"storage_options": {"anon": True}}])
def test_options_that_the_storage_does_not_take_are_refused(tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(StorageError, match="takes neither credential= nor storage_options="):
        LandingZone(tmp_path, **options)


# --------------------------------------------------------------------------------------------------------- declarations


def test_a_table_is_what_was_declared(zone: LandingZone) -> None:
    columns = {"id": "int64", "region": "string not null"}
    table = zone.table("orders", schema_name="sales", key_columns=["id"], columns=columns, unmarked_rows="upsert")
    assert (table.folder, table.parent, table.label) == ("sales.schema/orders", "sales.schema", "sales.orders")
    assert table.path("x") == "sales.schema/orders/x"
    assert table.key_columns == ("id",)
    assert table.columns == declared_columns(columns)
    assert json.loads(table.metadata(["id"], declared_columns(columns)).to_bytes()) == {
        "keyColumns": ["id"],
        "isUpsertDefaultRowMarker": True,
    }


def test_a_table_of_which_nothing_is_declared_is_as_in_the_folder(zone: LandingZone) -> None:
    table = zone.table("orders")
    assert (table.folder, table.parent, table.label) == ("orders", "", "orders")
    assert (table.key_columns, table.columns, table.unmarked_are_upserts) == (None, None, False)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"name": "_orders"}, "the service ignores"),
        ({"schema_name": "a/b"}, "schema name 'a/b' holds a path"),
        ({"schema_name": ""}, "is empty"),
        ({"columns": {"id": "varchar"}}, "'id' is declared as 'varchar'"),
        ({"columns": [("id", "int64")]}, "columns= takes a map"),
        ({"key_columns": "id"}, "is text; give a list of names"),
        ({"key_columns": [1]}, "is no name"),
        ({"key_columns": ["nr"], "columns": {"id": "int64"}}, "'nr' is none of the table's columns"),
        ({"file_order": "modification_time"}, "use 'sequential'"),
        ({"unmarked_rows": "Upsert"}, "use 'insert' or 'upsert'"),
        ({"format": "csv"}, r"use Parquet\(...\)"),
    ],
)
def test_what_cannot_be_declared_is_refused(zone: LandingZone, options: dict[str, Any], reason: str) -> None:
    with pytest.raises(SchemaRefusedError, match=reason):
        zone.table(**{"name": "orders", "schema_name": "sales", **options})


def test_the_error_of_a_declaration_names_the_table(zone: LandingZone) -> None:
    with pytest.raises(SchemaRefusedError) as caught:
        zone.table("orders", schema_name="sales", columns={"id": "varchar"})
    assert (caught.value.table, caught.value.column) == ("sales.orders", "id")


# ---------------------------------------------------------------------------------------------------- what stands there


def test_a_zone_that_does_not_exist_has_no_tables(zone: LandingZone) -> None:
    assert zone.tables() == []


def test_tables_are_listed_by_schema_and_name(zone: LandingZone, storage: MemoryStorage) -> None:
    for folder in ["orders", "Items", "sales.schema/orders", "sales.schema/items", "a.schema/z", "z.schema/a"]:
        storage.create(f"{folder}/{METADATA}", b"{}")
    assert _labels(zone) == ["Items", "orders", "a.z", "sales.items", "sales.orders", "z.a"]
    assert all((table.key_columns, table.columns) == (None, None) for table in zone.tables())


@pytest.mark.rule("1.3")
def test_what_begins_with_an_underscore_is_no_table(zone: LandingZone, storage: MemoryStorage) -> None:
    ours = ["_openmirror/x", "_scratchPad/a/x", "_x.schema/orders/x", "sales.schema/_tmp/x"]
    for path in [*ours, "readme.txt", "sales.schema/readme.txt"]:
        storage.create(path, b"")
    assert _labels(zone) == []


ODD = ["orders.", "a:b", " orders ", "50%", "line\nbreak", "a\\b"]


@pytest.mark.parametrize("name", ODD)
def test_a_folder_whose_name_we_would_refuse_is_listed(zone: LandingZone, storage: MemoryStorage, name: str) -> None:
    storage.create(f"{name}/{METADATA}", b"{}")
    storage.create(f"sales.schema/{name}/{METADATA}", b"{}")
    with pytest.raises(SchemaRefusedError):
        zone.table(name)
    assert [table.folder for table in zone.tables()] == [name, f"sales.schema/{name}"]
    assert len(set(_labels(zone))) == 2


def test_the_suffix_of_a_schema_is_read_in_any_casing_and_written_as_documented(zone: LandingZone) -> None:
    Writer(zone.table("orders", schema_name="sales", key_columns=["id"])).upsert([{"id": 1}])
    for name in zone.storage.names("sales.schema/orders").files:
        assert zone.storage.rename(f"sales.schema/orders/{name}", f"sales.SCHEMA/orders/{name}")
    assert [(table.label, table.folder) for table in zone.tables()] == [("sales.orders", "sales.SCHEMA/orders")]
    assert replay(zone)["sales.orders"].to_pylist() == [{"id": 1}]
    assert zone.table("orders", schema_name="sales").folder == "sales.schema/orders"


def test_a_folder_with_the_suffix_in_a_schema_folder_is_a_table(zone: LandingZone, storage: MemoryStorage) -> None:
    storage.create(f"sales.schema/sales.Schema/{METADATA}", b"{}")
    assert [table.folder for table in zone.tables()] == ["sales.schema/sales.Schema"]


def test_two_folders_of_one_table_are_not_replayed_as_one(zone: LandingZone, storage: MemoryStorage) -> None:
    for schema in ("sales.schema", "sales.Schema"):
        storage.create(f"{schema}/orders/{METADATA}", b"{}")
    with pytest.raises(ApplyError, match="sales.Schema/orders and sales.schema/orders are one table") as caught:
        replay(zone)
    assert (caught.value.table, caught.value.file) == ("sales.orders", "sales.schema/orders")


def test_a_schema_folder_without_a_name_is_listed(zone: LandingZone, storage: MemoryStorage) -> None:
    storage.create(f".schema/orders/{METADATA}", b"{}")
    assert [table.folder for table in zone.tables()] == [".schema/orders"]


@pytest.mark.parametrize("name", ODD)
def test_a_folder_whose_name_we_would_refuse_can_be_looked_at_and_dropped(tmp_path: Path, name: str) -> None:
    zone = LandingZone(tmp_path)
    zone.storage.create(f"{name}/{METADATA}", b'{"keyColumns": ["id"]}')
    zone.storage.create(f"{name}/{GENERATION}", Generation(generation="g").to_bytes())
    [table] = zone.tables()
    state = perform(zone.storage, look(table.folder))
    assert state.metadata is not None
    assert state.metadata.key_columns == ("id",)
    assert replay(zone) == {}
    drop_table(table)
    assert zone.tables() == []


def test_no_two_tables_of_a_zone_have_one_label(zone: LandingZone, storage: MemoryStorage) -> None:
    for folder in ["sales.orders", "sales.schema/orders", "a.b.schema/c", "a.schema/b.c"]:
        storage.create(f"{folder}/{METADATA}", b"{}")
    assert len(set(_labels(zone))) == 4


# ------------------------------------------------------------------------------------------------------- partner events


def _partner(storage: MemoryStorage) -> bytes | None:
    content = storage.read(PARTNER_EVENTS)
    return None if content is None else content.data


def test_without_partner_events_none_are_written(zone: LandingZone, storage: MemoryStorage) -> None:
    zone.ensure_partner_events()
    assert _partner(storage) is None


def test_partner_events_are_written_once(storage: MemoryStorage) -> None:
    LandingZone(storage, partner=PARTNER).ensure_partner_events()
    first = storage.identity(PARTNER_EVENTS)
    LandingZone(storage, partner=PARTNER).ensure_partner_events()
    assert _partner(storage) == PARTNER.to_bytes()
    assert storage.identity(PARTNER_EVENTS) == first


def test_partner_events_that_json_changes_are_still_the_same_ones(storage: MemoryStorage) -> None:
    info = SourceInfo(source_type="SQL", additional_information={"versions": (1, 2)})
    zone = LandingZone(storage, partner=PartnerEvents(partner_name="testPartner", source_info=info))
    zone.ensure_partner_events()
    zone.ensure_partner_events()


def test_partner_events_that_say_the_same_in_another_spelling_are_left_alone(storage: MemoryStorage) -> None:
    spelled = b'{ "PartnerName": "testPartner", "sourceInfo": {"SourceType": "SQL", "sourceVersion": null} }'
    storage.create(PARTNER_EVENTS, spelled)
    LandingZone(storage, partner=PARTNER, replace_partner=True).ensure_partner_events()
    assert _partner(storage) == spelled


@pytest.mark.parametrize("standing", [b'{"partnerName": "other", "sourceInfo": {"sourceType": "SQL"}}', b"garbage"])
def test_other_partner_events_are_replaced_only_if_asked_for(storage: MemoryStorage, standing: bytes) -> None:
    storage.create(PARTNER_EVENTS, standing)
    with pytest.raises(OpenMirrorError, match="replace_partner=True") as caught:
        LandingZone(storage, partner=PARTNER).ensure_partner_events()
    assert (caught.value.file, caught.value.value) == (PARTNER_EVENTS, standing.decode())
    assert _partner(storage) == standing
    LandingZone(storage, partner=PARTNER, replace_partner=True).ensure_partner_events()
    assert _partner(storage) == PARTNER.to_bytes()


# -------------------------------------------------------------------------------------------------- looking at a folder


def _put(storage: MemoryStorage, name: str, data: bytes) -> str:
    storage.delete(f"orders/{name}")
    identity = storage.create(f"orders/{name}", data)
    assert identity is not None
    return identity


def _generation(name: str) -> bytes:
    return Generation(generation=name).to_bytes()


def _keys(*names: str) -> bytes:
    return TableMetadata(key_columns=names).to_bytes()


class Looking:
    """Drives `look` by hand; between two requests a test changes the folder."""

    def __init__(self, storage: MemoryStorage) -> None:
        self.requests: list[str] = []
        self.state: FolderState | None = None
        self._storage = storage
        self._steps: Steps[FolderState] = look("orders")
        self._take(None)

    def answer(self, times: int = 1) -> None:
        """Answer the next requests from what stands in the folder now."""
        for _ in range(times):
            match self._next:
                case ListFolder(folder):
                    self._take(self._storage.names(folder))
                case ReadFile(path, start, end):
                    self._take(self._storage.read(path, start, end))

    def finish(self) -> FolderState:
        while self.state is None:
            self.answer()
        return self.state

    def _take(self, answer: Any) -> None:
        try:
            self._next: Request = self._steps.send(answer)
        except StopIteration as stop:
            self.state = stop.value
        else:
            assert isinstance(self._next, ListFolder | ReadFile)
            self.requests.append(self._next.folder if isinstance(self._next, ListFolder) else self._next.path)


def test_an_absent_folder_is_empty(storage: MemoryStorage) -> None:
    state = perform(storage, look("orders"))
    assert (state.names.last, state.generation, state.generation_identity, state.metadata) == (0, None, None, None)
    assert not state.dropping


def test_a_look_tells_what_stands_in_the_folder(storage: MemoryStorage) -> None:
    identity = _put(storage, GENERATION, _generation("g1"))
    _put(storage, METADATA, _keys("id"))
    _put(storage, data_file(3), b"data")
    _put(storage, "_dropping.json", b"{}")
    looking = Looking(storage)
    state = looking.finish()
    assert looking.requests == ["orders", f"orders/{GENERATION}", f"orders/{METADATA}"]
    assert (state.generation, state.generation_identity) == ("g1", identity)
    assert state.metadata == TableMetadata(key_columns=("id",))
    assert state.dropping
    assert state.data_path(3) == f"orders/{data_file(3)}"


@pytest.mark.parametrize("vanished", [GENERATION, METADATA])
def test_a_file_that_vanishes_between_two_requests_is_looked_for_again(storage: MemoryStorage, vanished: str) -> None:
    _put(storage, GENERATION, _generation("g1"))
    _put(storage, METADATA, _keys("id"))
    looking = Looking(storage)
    looking.answer()
    storage.delete(f"orders/{vanished}")
    state = looking.finish()
    assert (state.generation is None) == (vanished == GENERATION)
    assert (state.metadata is None) == (vanished == METADATA)
    assert looking.requests.count("orders") == 2


@pytest.mark.parametrize("requests", [1, 2], ids=["before the generation is read", "before the metadata are read"])
def test_a_folder_that_was_made_again_meanwhile_is_read_as_one_life(storage: MemoryStorage, requests: int) -> None:
    _put(storage, GENERATION, _generation("g1"))
    _put(storage, METADATA, _keys("id"))
    looking = Looking(storage)
    looking.answer(requests)
    identity = _put(storage, GENERATION, _generation("g2"))
    _put(storage, METADATA, _keys("nr"))
    state = looking.finish()
    assert (state.generation, state.generation_identity) == ("g2", identity)
    assert state.metadata == TableMetadata(key_columns=("nr",))


def test_a_file_that_comes_behind_the_listing_is_not_yet_there(storage: MemoryStorage) -> None:
    looking = Looking(storage)
    looking.answer()
    _put(storage, METADATA, _keys("id"))
    assert looking.finish().metadata is None


def _always_changed(steps: Steps[FolderState], storage: MemoryStorage) -> FolderState:
    """Answer so that each file that is read is another one than listed."""
    answer: Any = None
    try:
        while True:
            request = steps.send(answer)
            answer = storage.names("orders") if isinstance(request, ListFolder) else Content(b"{}", "another")
    except StopIteration as stop:
        state: FolderState = stop.value
        return state


def test_a_folder_that_is_never_quiet_is_an_error_that_a_retry_may_mend(storage: MemoryStorage) -> None:
    _put(storage, GENERATION, _generation("g1"))
    with pytest.raises(StorageError, match="changes at every look") as caught:
        _always_changed(look("orders"), storage)
    assert caught.value.retryable
    assert caught.value.file == "orders"


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        (METADATA, b"garbage", "is not readable"),
        (METADATA, b'{"keyColumns": ["a"], "KeyColumns": ["b"]}', "stands there twice"),
        (METADATA, b'{"fileDetectionStrategy": "LastUpdateTimeFileDetection"}', "not supported by this version"),
        (GENERATION, b"", "is not readable"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(storage: MemoryStorage, name: str, data: bytes, reason: str) -> None:
    _put(storage, name, data)
    with pytest.raises(SchemaRefusedError, match=reason) as caught:
        perform(storage, look("orders"))
    assert caught.value.file == f"orders/{name}"


def test_two_data_files_of_one_number_are_refused(storage: MemoryStorage) -> None:
    _put(storage, data_file(1), b"")
    _put(storage, data_file(1, "csv"), b"")
    with pytest.raises(ConcurrentWriterError, match="one number"):
        perform(storage, look("orders"))


@pytest.mark.rule("1.4", "4.4", "L63")
@pytest.mark.parametrize("folders", [[], ["_ProcessedFiles"], ["_ProcessedFiles", "_FilesReadyToDelete"]])
def test_moved_files_are_found_in_both_folders(storage: MemoryStorage, folders: Sequence[str]) -> None:
    for number, folder in enumerate(folders, start=1):
        _put(storage, f"{folder}/{data_file(number)}", b"data")
        _put(storage, f"{folder}/readme.txt", b"")
    found = perform(storage, moved_files("orders"))
    assert {number: path for number, (path, _) in found.items()} == {
        number: f"orders/{folder}/{data_file(number)}" for number, folder in enumerate(folders, start=1)
    }
    assert all(entry == storage.identity(path) for path, entry in found.values())
