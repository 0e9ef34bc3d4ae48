"""The command ``openmirror trace``."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest

from openmirror_writer import LandingZone, OpenMirrorError, Writer
from openmirror_writer.cli.trace import parse_key
from openmirror_writer.layout import DROPPING, PROCESSED, data_file
from openmirror_writer.replay import landing_files
from openmirror_writer.zone import LandingTable

COLUMNS = {
    "id": "int64",
    "name": "string",
    "at": "timestamp",
    "local": "timestamp_ntz",
    "day": "date",
    "price": "decimal(9,2)",
    "share": "double",
    "done": "bool",
}


@pytest.fixture
def zone() -> LandingZone:
    return LandingZone(f"memory://{uuid4().hex}")


@pytest.fixture
def orders(zone: LandingZone) -> LandingTable:
    table = zone.table("orders", key_columns=["id", "name"], columns=COLUMNS)
    writer = Writer(table)
    row: dict[str, Any] = dict.fromkeys(COLUMNS)
    writer.initial_load([{**row, "id": 1, "name": "a=b"}, {**row, "id": 2, "name": "x"}], position=1)
    writer.update([{**row, "id": 1, "name": "a=b", "done": True, "day": dt.date(2026, 1, 2)}], position=2)
    writer.delete([{"id": 1, "name": "a=b"}], position=3)
    return table


def test_the_rows_of_a_key_are_printed_in_order(run: Any, zone: LandingZone, orders: LandingTable) -> None:
    name = data_file(1)
    assert zone.storage.rename(orders.path(name), orders.path(f"{PROCESSED}/{name}"))
    ended = run("trace", zone.url, "orders", "id=1", "name=a=b")
    assert ended.code == 0
    lines = [[cell.strip() for cell in line.split("│")[1:-1]] for line in ended.out.splitlines() if "│" in line]
    assert [line[:3] + line[4:] for line in lines] == [
        ["1", "0", "unmarked", "applied", "_ProcessedFiles"],
        ["2", "0", "1 update", "applied", "orders"],
        ["3", "0", "2 delete", "applied", "orders"],
    ]
    assert "done=True" in lines[1][3]


def test_json_holds_every_value_as_text_that_json_lacks(run: Any, zone: LandingZone, orders: LandingTable) -> None:
    rows = json.loads(run("trace", zone.url, orders.label, "id=1", "--json").out)
    assert [(row["row"], row["marker"], row["state"], row["moved"]) for row in rows] == [
        (0, None, "applied", False),
        (0, 1, "applied", False),
        (0, 2, "applied", False),
    ]
    assert rows[1]["values"]["day"] == "2026-01-02"
    assert rows[1]["values"]["done"] is True


def test_a_key_without_rows_says_so(run: Any, zone: LandingZone, orders: LandingTable) -> None:
    ended = run("trace", zone.url, orders.label, "id=9")
    assert (ended.code, ended.out) == (0, "No landing row of orders has id=9.\n")


def test_files_that_do_not_go_on_are_told(run: Any, zone: LandingZone, orders: LandingTable) -> None:
    zone.storage.delete(orders.path(data_file(1)))
    ended = run("trace", zone.url, orders.label, "id=1")
    assert "waiting" in ended.out
    assert "The files do not go on: file 1 is gone" in ended.out


def test_a_table_that_is_not_there_is_an_error_that_names_the_others(
    run: Any, zone: LandingZone, orders: LandingTable
) -> None:
    ended = run("trace", zone.url, "items", "id=1")
    assert ended.code == 1
    assert f"there are: {orders.label}" in ended.err


def test_a_folder_that_is_not_taken_is_an_error(run: Any, zone: LandingZone, orders: LandingTable) -> None:
    zone.storage.create(orders.path(DROPPING), b"{}")
    ended = run("trace", zone.url, orders.label, "id=1")
    assert ended.code == 1
    assert "does not take this folder" in ended.err


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("id=-7", -7),
        ("name=", ""),
        ("name=a=b", "a=b"),
        ("at=2026-01-02T03:04:05Z", dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)),
        ("local=2026-01-02 03:04:05.000006", dt.datetime(2026, 1, 2, 3, 4, 5, 6)),  # noqa: DTZ001
        ("day=2026-01-02", dt.date(2026, 1, 2)),
        ("price=1.50", Decimal("1.50")),
        ("share=0.25", 0.25),
        ("done=true", True),
    ],
)
def test_a_value_is_read_in_the_type_of_its_column(orders: LandingTable, text: str, value: object) -> None:
    landed = landing_files(orders)
    assert landed is not None
    column = text.partition("=")[0]
    assert parse_key([text], landed, "orders") == {column: value}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id", "'id' is not COLUMN=VALUE with a column of"),
        ("nr=1", "'nr=1' is not COLUMN=VALUE with a column of"),
        ("id=1.5", "'1.5' is no int64"),
        ("day=soon", "'soon' is no date"),
    ],
)
def test_a_key_that_does_not_fit_is_an_error(orders: LandingTable, text: str, message: str) -> None:
    landed = landing_files(orders)
    assert landed is not None
    with pytest.raises(OpenMirrorError, match=message):
        parse_key([text], landed, "orders")
