"""Each rule that a folder shows: planted once, found once."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from openmirror_writer import check
from openmirror_writer.check import RULES
from openmirror_writer.check.root_rules import count_findings
from openmirror_writer.layout import PARTNER_EVENTS, data_file
from openmirror_writer.record import new_id
from tests.check.landing import ForeignZone, OurZone, rows
from tests.check.planted import META, PLANTED, Planted, at, raw

REPAIRABLE = {"record.3", "record.4", "record.9"}


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: f"{planted.rule} {planted.what}")
def test_a_broken_rule_is_one_finding(planted: Planted) -> None:
    landing = planted.zone()
    findings = check(landing.zone)
    assert [(f.rule, f.severity, f.file) for f in findings] == [(planted.rule, planted.severity, planted.file)], (
        findings
    )
    assert planted.words in f"{findings[0].message} {findings[0].remedy}"
    assert findings[0].remedy
    assert (findings[0].identity is not None) == (planted.rule in REPAIRABLE), (
        "only what is proved stale may be deleted"
    )


def test_every_rule_that_a_folder_shows_is_planted() -> None:
    tables = {"9.1"}  # below: a thousand folders are a list of names
    assert {planted.rule for planted in PLANTED} | tables == {rule.number for rule in RULES.values() if rule.shows}


def test_every_rule_is_shown_or_says_why_not() -> None:
    assert [rule.number for rule in RULES.values() if bool(rule.shows) == bool(rule.unseen)] == []


@pytest.mark.rule("9.1")
@pytest.mark.parametrize(("tables", "found"), [(1000, []), (1001, ["9.1"])])
def test_a_thousand_tables_are_the_limit(tables: int, found: list[str]) -> None:
    assert [finding.rule for finding in count_findings(tables)] == found


MISTAKES = [
    ('{"keyColumns": ["id"],\n "EscapeCharacter": "\\",\n "NullValue": "N/A"}', 2, r'"\\"'),
    ('{"EscapeCharacter": "\\"}', 1, r'"\\"'),
    ('{\n\n"fileDetectionStrategy": LastUpdateTimeFileDetection}', 3, "quotes around"),
    ('{"keyColumns": ["id"],\n\u2003"FileFormat": "CSV"}', 2, "plain spaces"),
]


@pytest.mark.rule("2.10")
@pytest.mark.parametrize(("metadata", "line", "remedy"), MISTAKES)
def test_a_mistake_of_the_documents_is_told_with_line_and_fix(metadata: str, line: int, remedy: str) -> None:
    (found,) = check(raw(metadata)().zone)
    assert (found.rule, found.severity, found.file, found.line) == ("2.10", "error", META, line)
    assert "an example of the documents" in found.message
    assert remedy in found.remedy


def test_both_mistakes_of_the_documents_are_two_findings() -> None:
    metadata = '{"fileDetectionStrategy": LastUpdateTimeFileDetection,\n"EscapeCharacter": "\\",\n"x": 1}'
    assert sorted((found.rule, found.line) for found in check(raw(metadata)().zone)) == [("2.10", 1), ("2.10", 2)]


def test_findings_come_by_table_and_file() -> None:
    zone = ForeignZone()
    zone.copy("orders", "sales.schema/items")
    zone.put("sales.schema/items/x.txt", b"x")
    zone.put(f"sales.schema/items/{data_file(2)}", b"")
    zone.put(at(3), b"")
    zone.put(PARTNER_EVENTS, "{}")
    assert [(found.table, found.rule) for found in check(zone.zone)] == [
        (None, "3.1"),
        ("orders", "4.8"),
        ("sales.items", "4.8"),
        ("sales.items", "4.2"),
    ]


def test_a_fault_of_every_file_is_one_finding_that_names_them() -> None:
    zone = ForeignZone()
    for number in range(1, 7):
        zone.rows(number, rows({"x": pa.array([[1], [2]])}))
    (found,) = check(zone.zone)
    assert found.file == at(1)
    assert f"the same in {data_file(2)}, {data_file(3)}, {data_file(4)} and 2 more files" in found.message


def test_faults_of_two_causes_are_two_findings() -> None:
    zone = ForeignZone()
    zone.rows(2, rows(markers=[9, 4]))
    zone.rows(3, rows(markers=[4, 9]))
    assert [(found.rule, found.file) for found in check(zone.zone)] == [("6.1", at(2)), ("6.1", at(3))]


def test_nothing_is_changed() -> None:
    zone = OurZone()
    zone.put(at(40), zone.file(4, generation=new_id(), number=40))
    before = zone.storage.names("orders").files
    assert check(zone.zone)
    assert zone.storage.names("orders").files == before


def test_a_finding_of_the_zone_names_no_table() -> None:
    zone = ForeignZone()
    zone.put(PARTNER_EVENTS, "{}")
    (found,) = check(zone.zone)
    assert found.table is None


def test_the_page_of_rules_is_the_table_of_rules() -> None:
    page = Path(__file__).parents[2] / "docs" / "rules.md"
    assert rules_page() == page.read_text(encoding="utf-8")


def rules_page() -> str:
    """The page, as the rules say it."""
    lines = [
        "# The rules of a landing zone",
        "",
        "Each rule of the landing zone in short, and what `openmirror check ZONE` reports where it is broken. The",
        "numbers are those of the findings: section and item; `record.n` are the rules of the files that this",
        "software adds ([record.md](record.md)). Behind a dash stands why a folder cannot show that a rule is broken.",
        "",
        "| rule | wording | what `check` shows |",
        "|---|---|---|",
    ]
    for rule in RULES.values():
        shown = rule.shows or f"— ({rule.unseen})"
        lines.append(f"| {rule.number} | {rule.wording} | {shown} |")
    return "\n".join(lines) + "\n"
