"""`repair`: deletes what is proved stale, and nothing else."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from openmirror_writer import Repaired, check, repair, replay
from openmirror_writer.layout import PROCESSED, data_file
from openmirror_writer.record import new_id
from tests.check.landing import ForeignZone, Landing, OurText, OurZone, parquet, rows
from tests.check.planted import at, leftover, sidecar


def _late(zone: OurZone) -> str:
    """A file of a life that was dropped."""
    zone.put(at(5), zone.file(4, generation=new_id(), number=5))
    return at(5)


def _paused(zone: OurZone) -> str:
    """A file under a number that a move has set free."""
    zone.put("late", zone.file(2))
    for number in (1, 2):
        zone.process(number)
    zone.move("late", at(2))
    return at(2)


def _killed(zone: OurZone) -> str:
    path = f"orders/_{5:020d}.{'0' * 32}.staged"
    leftover(zone, path, 1.1)
    return path


def _late_text(zone: OurText) -> str:
    return zone.publish(5, 4, generation=new_id())


def _paused_text(zone: OurText) -> str:
    zone.process(1)
    zone.process(2)
    return zone.publish(2, 2)


def _record_of_old_text(zone: OurText) -> str:
    for number in (1, 2):
        zone.process(number)
        zone.delete(f"orders/{PROCESSED}/{data_file(number, 'csv')}")
    zone.process(3)
    leftover(zone, sidecar(2, b"old"), 1.1)
    return sidecar(2, b"old")


@pytest.mark.parametrize(
    ("kind", "plant"),
    [
        (OurZone, _late),
        (OurZone, _paused),
        (OurZone, _killed),
        (OurText, _late_text),
        (OurText, _paused_text),
        (OurText, _record_of_old_text),
    ],
    ids=lambda each: each.__name__,
)
def test_what_is_stale_is_deleted_and_nothing_else(kind: type[Landing], plant: Callable[[Landing], str]) -> None:
    zone = kind()
    path = plant(zone)
    before = set(files(zone))
    (done,) = repair(zone.zone, check(zone.zone))
    assert (done.deleted, done.finding.file) == (True, path)
    assert before - set(files(zone)) == {path}
    assert check(zone.zone) == []


def test_what_is_repaired_can_be_replayed() -> None:
    zone = OurZone()
    _paused(zone)
    repair(zone.zone, check(zone.zone))
    assert set(replay(zone.zone)["orders"].column("id").to_pylist()) == {2, 3, 4}


def test_behind_text_whose_record_is_gone_nothing_is_proved_stale() -> None:
    zone = OurText()
    for number in (1, 2, 3):
        zone.process(number)
    zone.publish(3, 3)
    zone.delete(zone.sidecar(2))
    (found,) = check(zone.zone)
    assert (found.rule, found.identity) == ("record.7", None)


def test_a_file_that_is_another_one_by_now_stays() -> None:
    zone = OurZone()
    _late(zone)
    findings = check(zone.zone)
    zone.put(at(5), zone.file(4, number=5))
    assert repair(zone.zone, findings) == [Repaired(findings[0], deleted=False)]
    assert at(5) in files(zone)


def test_a_file_that_is_gone_is_no_error() -> None:
    zone = OurZone()
    _late(zone)
    findings = check(zone.zone)
    zone.delete(at(5))
    assert [each.deleted for each in repair(zone.zone, findings)] == [False]


def test_several_stale_files_are_all_deleted() -> None:
    """Findings that differ by their file only are not folded where each file is to be deleted."""
    zone = OurZone()
    late = new_id()
    for number in (5, 6):
        zone.put(at(number), zone.file(4, generation=late, number=number))
    repair(zone.zone, check(zone.zone))
    assert check(zone.zone) == []


def test_a_gap_does_not_hide_a_stale_file_above_it() -> None:
    zone = OurZone()
    zone.put("late", zone.file(4))
    for number in (3, 4):
        zone.process(number)
    zone.move("late", at(4))
    zone.delete(at(2))
    findings = check(zone.zone)
    assert [(found.rule, found.file) for found in findings if found.identity] == [("record.4", at(4))]


def test_files_of_another_publisher_are_never_deleted() -> None:
    zone = ForeignZone()
    zone.process(1)
    zone.rows(1, rows(markers=[0, 0]))
    (found,) = check(zone.zone)
    assert (found.rule, found.identity) == ("4.5", None)
    assert repair(zone.zone, [found]) == []


def test_without_a_readable_generation_nothing_is_proved_stale() -> None:
    for plant in (lambda z: z.delete("orders/_generation.json"), lambda z: z.put("orders/_generation.json", "?")):
        zone = OurZone()
        _paused(zone)
        plant(zone)
        assert repair(zone.zone, check(zone.zone)) == []


def test_above_a_file_that_cannot_be_read_nothing_is_proved_stale() -> None:
    zone = OurZone()
    for number in (1, 2, 3):
        zone.process(number)
    zone.put(f"orders/{PROCESSED}/{data_file(2)}", b"no Parquet")
    zone.put(at(3), parquet(rows()))
    assert repair(zone.zone, check(zone.zone)) == []


def files(zone: Landing) -> list[str]:
    found: list[str] = []
    folders = [""]
    while folders:
        folder = folders.pop()
        inside = zone.storage.names(folder)
        found += [f"{folder}/{name}".lstrip("/") for name in inside.files]
        folders += [f"{folder}/{name}".lstrip("/") for name in inside.folders]
    return found
