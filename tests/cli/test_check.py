"""The command ``openmirror check``."""

from __future__ import annotations

import json
from typing import Any

import pytest

from openmirror_writer import LandingZone, Writer
from openmirror_writer.check import RULES
from openmirror_writer.layout import METADATA, data_file
from openmirror_writer.record import FOOTER_KEY
from openmirror_writer.zone import LandingTable


@pytest.fixture
def orders(tmp_path) -> LandingTable:
    table = LandingZone(tmp_path).table("orders", key_columns=["id"], columns={"id": "int64"})
    Writer(table).upsert([{"id": 1}], position=1)
    return table


@pytest.fixture
def stale(orders: LandingTable, tmp_path) -> str:
    """A file of a life that was dropped, under the next number."""
    other = LandingZone(tmp_path / "other").table("orders", key_columns=["id"], columns={"id": "int64"})
    Writer(other).upsert([{"id": 2}])
    content = other.zone.storage.read(other.path(data_file(1)))
    assert content is not None
    assert FOOTER_KEY in content.data
    other.zone.storage.delete(other.path(data_file(1)))
    for name in list(other.zone.storage.names("orders").files):
        other.zone.storage.delete(other.path(name))
    other.zone.storage.remove_folder("")
    path = orders.path(data_file(2))
    orders.zone.storage.create(path, content.data)
    return path


def test_a_clean_zone_says_so(run: Any, orders: LandingTable, tmp_path) -> None:
    ended = run("check", tmp_path)
    assert ended.code == 0
    assert ended.out == f"{orders.zone.url} breaks no rule that a folder can show.\n"


def test_a_zone_without_tables_is_told_apart_from_a_clean_one(run: Any, tmp_path) -> None:
    ended = run("check", tmp_path / "mistyped")
    assert ended.code == 0
    assert "holds no table: nothing was checked" in ended.out


def test_an_error_is_told_with_rule_place_and_remedy_and_exits_1(run: Any, orders: LandingTable, tmp_path) -> None:
    orders.zone.storage.create(orders.path(data_file(2)), b"")
    ended = run("check", tmp_path)
    assert ended.code == 1
    assert "4.8" in ended.out
    assert "zero bytes" in ended.out
    assert "1 error, 0 warnings, 0 notes" in ended.out


def test_warnings_alone_exit_0(run: Any, orders: LandingTable, tmp_path) -> None:
    orders.zone.storage.create("stray.txt", b"x")
    ended = run("check", tmp_path)
    assert ended.code == 0
    assert "0 errors, 1 warning, 0 notes" in ended.out


def test_text_in_brackets_is_shown_as_it_is(run: Any, orders: LandingTable, tmp_path) -> None:
    orders.zone.storage.create("[red]stray[red].txt", b"x")
    assert "[red]stray[red].txt" in run("check", tmp_path).out


def test_json_has_all_parts(run: Any, orders: LandingTable, tmp_path) -> None:
    orders.zone.storage.delete(orders.path(METADATA))
    orders.zone.storage.create(orders.path(METADATA), b"{\n}}")
    ended = run("check", tmp_path, "--json")
    assert ended.code == 1
    (found,) = json.loads(ended.out)
    assert found.pop("message").startswith("line 2 is no valid JSON")
    assert found == {
        "severity": "error",
        "rule": "2.10",
        "remedy": "mend it",
        "table": "orders",
        "file": orders.path(METADATA),
        "line": 2,
        "repairable": False,
    }


def test_json_of_a_clean_zone_is_an_empty_list(run: Any, orders: LandingTable, tmp_path) -> None:
    ended = run("check", tmp_path, "--json")
    assert (ended.code, json.loads(ended.out)) == (0, [])


def test_without_repair_nothing_is_deleted(run: Any, orders: LandingTable, stale: str, tmp_path) -> None:
    ended = run("check", tmp_path)
    assert ended.code == 1
    assert "openmirror check --repair" in ended.out
    assert orders.zone.storage.read(stale) is not None


def test_repair_says_what_and_why_then_deletes_and_exits_0(run, orders: LandingTable, stale: str, tmp_path) -> None:
    ended = run("check", tmp_path, "--repair")
    assert ended.code == 0
    assert f"Deleting {stale}: stale: the file is of generation" in ended.out
    assert orders.zone.storage.read(stale) is None
    assert run("check", tmp_path).code == 0


def test_repair_leaves_other_errors_and_exits_1(run, orders: LandingTable, stale: str, tmp_path) -> None:
    orders.zone.storage.create(orders.path("x.txt"), b"x")
    assert run("check", tmp_path, "--repair").code == 1
    assert orders.zone.storage.read(stale) is None
    assert orders.zone.storage.read(orders.path("x.txt")) is not None


def test_repair_in_json_says_what_was_deleted(run, orders: LandingTable, stale: str, tmp_path) -> None:
    ended = run("check", tmp_path, "--repair", "--json")
    (found,) = json.loads(ended.out)
    assert (ended.code, found["repairable"], found["deleted"]) == (0, True, True)


def test_repair_of_nothing_says_so(run: Any, orders: LandingTable, tmp_path) -> None:
    ended = run("check", tmp_path, "--repair")
    assert ended.code == 0
    assert "nothing to repair" in ended.out


def test_the_rules_are_listed_with_those_that_a_folder_cannot_show(run: Any) -> None:
    ended = run("check", "--rules")
    assert ended.code == 0
    assert all(rule.number in ended.out for rule in RULES.values())
    assert "why a folder cannot show it" in ended.out


def test_the_rules_are_listed_in_json(run: Any) -> None:
    listed = json.loads(run("check", "--rules", "--json").out)
    assert [rule["number"] for rule in listed] == list(RULES)


def test_no_zone_is_wrong_usage(run: Any) -> None:
    assert run("check").code == 2
