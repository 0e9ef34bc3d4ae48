"""The command ``openmirror inspect``."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import pytest

from openmirror_writer import LandingZone, Writer
from openmirror_writer.cli.inspect import inspect_zone
from openmirror_writer.layout import DROPPING, METADATA, PROCESSED, data_file
from openmirror_writer.zone import LandingTable


@pytest.fixture
def zone() -> LandingZone:
    return LandingZone(f"memory://{uuid4().hex}")


@pytest.fixture
def orders(zone: LandingZone) -> LandingTable:
    """A table of four files: the first moved, all markers."""
    table = zone.table("orders", schema_name="sales", key_columns=["id"], columns={"id": "int64", "city": "string"})
    writer = Writer(table)
    writer.initial_load([{"id": 1, "city": "Oslo"}, {"id": 2, "city": "Rome"}], position=1)
    writer.upsert([{"id": 3, "city": "Bern"}], position=2)
    writer.update([{"id": 5, "city": "Lima"}], old_keys=[{"id": 3}], position=3)
    writer.insert([{"id": 4, "city": None}], position=4)
    name = data_file(1)
    assert zone.storage.rename(table.path(name), table.path(f"{PROCESSED}/{name}"))
    return table


def test_a_table_is_told_with_all_that_stands(zone: LandingZone, orders: LandingTable) -> None:
    (found,) = inspect_zone(zone)
    assert found.table == orders.label == "sales.orders"
    assert found.folder == "sales.schema/orders"
    assert found.keys == ["id"]
    assert found.columns == {"id": "int64", "city": "string"}
    assert found.rows == {"unmarked": 2, "upsert": 2, "delete": 1, "insert": 1}
    assert found.files == {"standing": 3, "moved": 1, "stale": 0, "waiting": 0}
    assert (found.phase, found.position, found.problems) == ("following", 4, [])
    assert found.generation


def test_stale_and_waiting_files_are_told(zone: LandingZone, orders: LandingTable) -> None:
    content = zone.storage.read(orders.path(data_file(4)))
    assert content is not None
    zone.storage.create(orders.path(data_file(1)), content.data)  # late, under a number that a move has set free
    zone.storage.delete(orders.path(data_file(3)))
    (found,) = inspect_zone(zone)
    assert found.files == {"standing": 3, "moved": 1, "stale": 1, "waiting": 1}
    assert found.rows == {"unmarked": 2, "upsert": 1, "insert": 1}
    assert found.problems == [f"stale, never applied: sales.schema/orders/{data_file(1)}"]


def test_a_folder_that_is_not_taken_says_why(zone: LandingZone, orders: LandingTable) -> None:
    zone.storage.create(orders.path(DROPPING), b"{}")
    assert [(each.ingested, each.problems) for each in inspect_zone(zone)] == [
        (False, ["a drop has begun and not ended"])
    ]
    zone.storage.delete(orders.path(DROPPING))
    zone.storage.delete(orders.path(METADATA))
    assert "no _metadata.json" in inspect_zone(zone)[0].problems[0]


def test_a_table_that_cannot_be_read_does_not_hide_the_others(zone: LandingZone, orders: LandingTable) -> None:
    bad = zone.table("bad", key_columns=["id"])
    Writer(bad).upsert([{"id": 1}])
    zone.storage.create(bad.path(data_file(2)), b"no parquet")
    found = {each.table: each for each in inspect_zone(zone)}
    assert "no readable Parquet" in found["bad"].problems[0]
    assert not found[orders.label].problems


def test_a_fork_and_a_refused_writer_are_problems(zone: LandingZone, orders: LandingTable) -> None:
    zone.storage.delete(orders.path(f"{PROCESSED}/{data_file(1)}"))
    (found,) = inspect_zone(zone)
    assert "file 1 is gone" in found.problems[0]
    zone.storage.delete(orders.path("_generation.json"))
    assert any(problem.startswith("a writer would be refused") for problem in inspect_zone(zone)[0].problems)


def test_the_command_prints_it_for_people(run: Any, zone: LandingZone, orders: LandingTable) -> None:
    ended = run("inspect", zone.url)
    assert ended.code == 0
    assert orders.label in ended.out
    assert "id int64, city string" in ended.out
    assert "2 unmarked, 2 upsert, 1 delete, 1 insert" in ended.out


def test_the_command_prints_json(run: Any, zone: LandingZone, orders: LandingTable) -> None:
    (found,) = json.loads(run("inspect", zone.url, "--json").out)
    assert (found["table"], found["position"], found["files"]["moved"]) == (orders.label, 4, 1)


def test_a_zone_without_tables_says_so(run: Any, zone: LandingZone) -> None:
    assert run("inspect", zone.url).out == f"There is no table in {zone.url}.\n"
