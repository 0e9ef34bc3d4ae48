"""Which tables there are."""

from __future__ import annotations

import json

import pytest

from openmirror_writer.spark.mirror.discover import landed_tables, mirrored_tables
from openmirror_writer.spark.mirror.log import FOLDER_PROPERTY
from openmirror_writer.spark.mirror.state import TableName
from openmirror_writer.storage import Storage, open_storage, perform


@pytest.fixture
def storage(request: pytest.FixtureRequest) -> Storage:
    return open_storage(f"memory://{request.node.name}")


def folders(storage: Storage, *names: str) -> None:
    for name in names:
        storage.create(f"{name}/_metadata.json", b"{}")


def delta(storage: Storage, place: str, mirrors: str | None) -> None:
    metadata = {"schemaString": '{"fields": []}', "configuration": {FOLDER_PROPERTY: mirrors}}
    actions: list[object] = [{"metaData": metadata}]
    if mirrors is not None:
        actions.append({"txn": {"appId": "openmirror", "version": 1}})
    data = "\n".join(json.dumps(action) for action in actions).encode()
    assert storage.create(f"{place}/_delta_log/{0:020d}.json", data) is not None


@pytest.mark.rule("1.1", "1.2", "1.3", "L5", "L6", "L48", "L53")
def test_tables_stand_at_the_root_and_in_schema_folders(storage: Storage) -> None:
    folders(storage, "orders", "sales.schema/orders", "_openmirror", "_scratchPad", "sales.schema/_x")
    assert perform(storage, landed_tables()) == [TableName("orders"), TableName("orders", "sales")]


def test_a_schema_stands_in_a_folder_whose_suffix_has_any_casing(storage: Storage) -> None:
    folders(storage, "sales.Schema/orders")
    (table,) = perform(storage, landed_tables())
    assert (table.label, table.folder, table.target) == ("sales.orders", "sales.Schema/orders", "sales/orders")


def test_a_folder_with_the_suffix_in_a_schema_folder_is_reported(storage: Storage) -> None:
    folders(storage, "sales.schema/a.schema")
    (fault,) = perform(storage, mirrored_tables(perform(storage, landed_tables()))).values()
    assert "makes a schema folder of it" in (fault or "")


@pytest.mark.rule("1.1")
def test_a_folder_whose_name_no_service_takes_is_reported(storage: Storage) -> None:
    (fault,) = perform(storage, mirrored_tables([TableName("orders.")])).values()
    assert "ends with a dot" in (fault or "")


@pytest.mark.parametrize(
    "other", [TableName("orders", "dbo"), TableName("Orders"), TableName("orders", "dbo", ".Schema")]
)
def test_two_folders_that_land_in_one_place_are_not_both_mirrored(storage: Storage, other: TableName) -> None:
    found = perform(storage, mirrored_tables([TableName("orders"), other]))
    assert found[TableName("orders")] is None
    assert "lands in the same Delta table" in (found[other] or "")


def test_delta_tables_without_a_folder_are_found_by_the_folder_that_they_name(storage: Storage) -> None:
    delta(storage, "dbo/orders", "orders")
    delta(storage, "dbo/items", "dbo.schema/items")
    delta(storage, "sales/orders", "sales.schema/orders")
    delta(storage, "sales/odd", "sales.SCHEMA/odd")
    delta(storage, "dbo/theirs", None)
    found = perform(storage, mirrored_tables([TableName("orders", "sales")]))
    ours = {TableName("orders", "sales"), TableName("orders"), TableName("items", "dbo")}
    assert set(found) == {*ours, TableName("odd", "sales", ".SCHEMA")}
