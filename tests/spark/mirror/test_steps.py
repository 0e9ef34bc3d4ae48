"""The pass over one table, driven without I/O: claims, moves, drops, other mirrors, crashes."""

from __future__ import annotations

import pytest

from openmirror_writer.errors import ApplyError
from openmirror_writer.layout import METADATA, PROCESSED, data_file, drop_record, sidecar_file
from openmirror_writer.metadata import Generation
from openmirror_writer.spark.mirror.state import TargetState, pack, unpack
from openmirror_writer.spark.mirror.steps import Commit, ReadTarget, table_pass
from openmirror_writer.storage import CreateFile, ListFolder, Lost, RenameFile
from tests.spark.mirror.simulation import DAY, TABLE, Process, World, published, run, standing


def rows(world: World) -> list[int]:
    """Return the numbers of the files that the table holds."""
    return [number for _, number, _ in world.target.rows] if world.target else []


def claims(world: World) -> list[str]:
    return sorted(path for path in world.objects if ".claim-" in path)


def mark(world: World) -> int:
    return unpack(world.target.state.version or 0)[1] if world.target else 0


# ------------------------------------------------------------------------------------------------------- one mirror


@pytest.mark.rule("1.4", "4.2", "4.3", "4.4", "6.4", "L5", "L36", "L37", "L38", "L41", "L63")
def test_all_files_are_applied_in_order_and_all_but_the_last_one_are_moved() -> None:
    world = published(7)
    result = run(world, limit=3)
    assert rows(world) == [1, 2, 3, 4, 5, 6, 7]
    assert [(batch.first, batch.last) for batch in result.applied] == [(1, 3), (4, 6), (7, 7)]
    assert (result.status, result.last_file) == ("Replicating", 7)
    assert standing(world) == [7]
    assert standing(world, PROCESSED) == [1, 2, 3, 4, 5, 6]


def test_an_idle_pass_changes_nothing() -> None:
    world = published(2)
    run(world)
    before = dict(world.objects), world.target
    assert run(world).applied == ()
    assert (dict(world.objects), world.target) == before


def test_the_version_is_read_before_the_folder_is_listed() -> None:
    steps = table_pass(TABLE, now=World().now)
    assert next(steps) == ReadTarget(TABLE)
    assert steps.send(TargetState()) == ListFolder("orders")


@pytest.mark.rule("4.2", "L37")
def test_a_gap_waits_and_is_reported() -> None:
    world = published(4)
    gone = world.objects.pop(f"orders/{data_file(3)}")
    result = run(world)
    assert rows(world) == [1, 2]
    assert (result.status, result.file) == ("Replicating", f"orders/{data_file(3)}")
    world.objects[f"orders/{data_file(3)}"] = gone
    assert run(world).reason is None
    assert rows(world) == [1, 2, 3, 4]


@pytest.mark.parametrize("bad", ["footer", "page"])
def test_a_bad_file_stops_the_table_until_it_is_repaired(bad: str) -> None:
    world = published(2)
    run(world)
    world.append(bad=bad)
    world.append()
    result = run(world)
    assert (result.status, result.file) == ("Failed", f"orders/{data_file(3)}")
    assert rows(world) == [1, 2]
    world.repair()
    assert run(world).status == "Replicating"
    assert rows(world) == [1, 2, 3, 4]


def test_what_stands_before_a_bad_footer_is_applied_first() -> None:
    world = published(2)
    world.append(bad="footer")
    assert run(world).status == "Failed"
    assert rows(world) == [1, 2]


@pytest.mark.rule("record.3")
def test_a_stale_file_is_reported_and_left_and_does_not_stop_the_table() -> None:
    world = published(3)
    run(world)
    world.make_stale()
    world.append()
    result = run(world)
    assert result.stale == (f"orders/{data_file(1)}",)
    assert result.status == "Replicating"
    assert rows(world) == [1, 2, 3, 4]
    assert standing(world) == [1, 4]


def test_a_folder_of_anothers_files_is_mirrored_too() -> None:
    world = published(5, own=False)
    run(world)
    assert rows(world) == [1, 2, 3, 4, 5]
    assert standing(world) == [5]
    assert world.target is not None
    assert (world.target.state.generation or "").startswith("foreign-")


def test_an_error_of_the_storage_becomes_the_status_of_the_table() -> None:
    world = published(1)
    world.root = "unreadable"
    result = run(world)
    assert (result.status, result.reason) == ("Failed", "the storage does not answer")


def test_a_log_that_is_not_complete_stops_the_table() -> None:
    steps = table_pass(TABLE, now=World().now)
    next(steps)
    with pytest.raises(StopIteration) as stop:
        steps.throw(ApplyError("the log is not complete", file="dbo/orders/_delta_log"))
    assert (stop.value.value.status, stop.value.value.reason) == ("Failed", "the log is not complete")


@pytest.mark.rule("2.11", "L7", "L10")
def test_a_folder_without_metadata_is_not_applied() -> None:
    world = published(1)
    del world.objects[f"orders/{METADATA}"]
    assert run(world).status == "Initialized"
    assert world.target is None


@pytest.mark.rule("2.12", "8.1")
def test_a_folder_with_metadata_only_is_waited_for() -> None:
    world = published(1)
    del world.objects[f"orders/{data_file(1)}"]
    assert run(world).status == "Snapshotting"


# ----------------------------------------------------------------------------------------------------------- claims


def test_the_end_of_a_batch_is_claimed_before_its_statement() -> None:
    world = published(2)
    process = Process(world)
    process.until(Commit)
    (claim,) = claims(world)
    assert claim.startswith("orders/_00000000000000000001.claim-")
    assert world.objects[claim].data == b'{"last":2}'


def test_two_mirrors_never_apply_a_file_twice() -> None:
    """B reads 0; A commits 1 to 5; B then goes on with 1 to 7."""
    world = published(5)
    b = Process(world, limit=10)
    b.step()  # B has read that nothing is applied
    a = Process(world, limit=10)
    a.until(Commit)
    while not (world.target and world.target.rows):
        a.step()
    world.append()
    world.append()
    b.finish()
    a.finish()
    assert rows(world) == [1, 2, 3, 4, 5, 6, 7]


def test_a_mirror_that_claims_second_takes_the_end_of_the_first() -> None:
    world = published(5)
    a = Process(world, limit=10)
    a.until(Commit)
    world.append()
    world.append()
    b = Process(world, limit=10)
    b.until(Commit)
    assert isinstance(b.request, Commit)
    assert [file.number for file in b.request.files] == [1, 2, 3, 4, 5]


def test_a_mirror_that_finds_its_claim_taken_takes_the_end_that_stands_there() -> None:
    world = published(5)
    a = Process(world, limit=10)
    a.until(CreateFile)
    world.append()
    world.append()
    b = Process(world, limit=10)
    b.until(CreateFile)
    a.until(Commit)
    b.until(Commit)
    assert isinstance(b.request, Commit)
    assert [file.number for file in b.request.files] == [1, 2, 3, 4, 5]


def test_what_another_mirror_moved_is_not_taken_for_missing() -> None:
    world = published(5)
    late = Process(world)
    late.until(ListFolder)
    run(world)
    result = late.finish()
    assert (result.status, result.reason, result.last_file) == ("Replicating", None, 5)


def test_a_mirror_begins_with_the_batch_that_a_crash_left() -> None:
    world = published(5)
    Process(world, limit=10).until(Commit)
    world.append()
    assert [(batch.first, batch.last) for batch in run(world, limit=2).applied] == [(1, 5), (6, 6)]


def test_a_claimed_batch_waits_for_a_file_that_is_missing() -> None:
    world = published(3)
    Process(world).until(Commit)
    gone = world.objects.pop(f"orders/{data_file(2)}")
    result = run(world)
    assert (result.status, result.file, rows(world)) == ("Failed", f"orders/{data_file(2)}", [])
    world.objects[f"orders/{data_file(2)}"] = gone
    run(world)
    assert rows(world) == [1, 2, 3]


@pytest.mark.parametrize("carried_out", [True, False])
def test_a_claim_whose_answer_is_lost_is_looked_for(*, carried_out: bool) -> None:
    world = published(2)
    process = Process(world)
    process.until(CreateFile)
    if carried_out:
        world.answer(process.request)
    process._resume(Lost())
    assert process.finish().status == "Replicating"
    assert rows(world) == [1, 2]


def test_a_damaged_claim_stops_the_table() -> None:
    world = published(2)
    Process(world).until(Commit)
    (claim,) = claims(world)
    world.put(claim, b"{}")
    result = run(world)
    assert (result.status, result.file) == ("Failed", claim)


def test_a_file_that_is_replaced_before_the_statement_makes_the_round_start_again() -> None:
    world = published(2, own=False)
    process = Process(world)
    process.until(Commit)
    del world.objects[f"orders/{data_file(2)}"]
    world.ledger[1][1] = world.write(2, (1, 2, 1))
    assert process.finish().status == "Replicating"
    assert world.target is not None
    assert world.target.rows == [(1, 1, 0), (1, 2, 1)]


def test_the_folder_is_listed_again_right_before_the_statement() -> None:
    world = published(2, own=False)
    process = Process(world)
    process.until(CreateFile)
    del world.objects[f"orders/{data_file(2)}"]
    world.ledger[1][1] = world.write(2, (1, 2, 1))
    process.until(Commit)
    assert isinstance(process.request, Commit)
    assert process.request.files[1].identity == world.objects[f"orders/{data_file(2)}"].identity


# -------------------------------------------------------------------------------------------------- moves, clean-up


@pytest.mark.rule("4.5")
def test_a_file_that_took_the_name_of_an_applied_one_is_not_moved() -> None:
    world = published(2)
    process = Process(world)
    process.until(RenameFile)
    del world.objects[f"orders/{data_file(1)}"]
    world.write(1, (1, 1, 9), batch="late")
    process.finish()
    assert standing(world) == [1, 2]
    assert standing(world, PROCESSED) == []
    assert run(world).stale == (f"orders/{data_file(1)}",)


@pytest.mark.rule("4.4", "L38", "L63")
def test_moved_files_and_claims_go_after_seven_days_and_the_last_file_stays() -> None:
    world = published(2)
    run(world)
    world.now += 6 * DAY
    world.append()
    run(world)
    assert standing(world, PROCESSED) == [1, 2]
    world.now += 2 * DAY
    run(world)
    assert (standing(world, PROCESSED), standing(world), len(claims(world))) == ([], [3], 1)
    world.now += 8 * DAY
    run(world)
    assert (standing(world), len(claims(world))) == ([3], 1)


def test_the_record_of_a_text_file_goes_with_the_file() -> None:
    """That of a file that stands, or was moved less than seven days ago, stays."""
    world = published(1)
    names = [sidecar_file(number, "a" * 64, "b") for number in (1, 2, 3)]
    for name in names:
        world.put(f"orders/{name}", b"{}")
    run(world)
    world.now += 6 * DAY
    for _ in range(2):
        world.append()
        run(world)
    world.now += 2 * DAY
    run(world)
    assert (standing(world, PROCESSED), standing(world)) == ([2], [3])
    assert [name for name in names if f"orders/{name}" in world.objects] == names[1:]


def test_a_file_that_waited_long_is_kept_for_seven_days_after_it_was_applied() -> None:
    world = published(2)
    world.now += 8 * DAY
    run(world)
    run(world)
    assert standing(world, PROCESSED) == [1]


def test_the_claim_of_a_batch_that_was_not_applied_is_never_deleted() -> None:
    world = published(2)
    Process(world).until(Commit)
    gone = world.objects.pop(f"orders/{data_file(2)}")
    world.now += 30 * DAY
    run(world)
    assert len(claims(world)) == 1
    world.objects[f"orders/{data_file(2)}"] = gone


# ------------------------------------------------------------------------------------------------- drops and rebuilds


@pytest.mark.rule("7.8", "L49")
def test_a_folder_that_is_gone_drops_its_table_in_one_commit() -> None:
    world = published(3)
    run(world)
    world.drop()
    assert run(world).status == "Stopped"
    assert world.target is not None
    assert (world.target.rows, world.target.state.version) == ([], pack(2, 0, ""))
    assert world.target.state.dropped == world.now


@pytest.mark.rule("7.9", "L50")
def test_a_table_that_comes_again_is_rebuilt_in_one_commit() -> None:
    world = published(3)
    run(world)
    world.drop()
    world.append()
    run(world)
    assert world.target is not None
    assert world.target.rows == [(2, 1, 0)]
    assert unpack(world.target.state.version or 0)[:2] == (2, 1)
    assert world.target.state.commit == 1


def test_nothing_is_dropped_when_every_folder_is_gone_at_once() -> None:
    world = published(3)
    run(world)
    world.root = "empty"
    assert run(world).status == "Failed"
    assert rows(world) == [1, 2, 3]


@pytest.mark.parametrize(("noted", "status"), [("g1", "Stopped"), ("g0", "Failed")])
def test_the_only_table_is_dropped_if_the_zone_says_that_this_generation_was(noted: str, status: str) -> None:
    world = published(1, tables=("orders",))
    run(world)
    world.drop()
    world.put(drop_record("orders"), Generation(generation=noted).to_bytes())
    assert run(world).status == status


def test_a_folder_that_a_late_claim_made_anew_is_gone() -> None:
    world = published(2)
    late = Process(world)
    late.until(CreateFile)
    run(world)
    world.drop()
    late.step()
    assert claims(world)
    assert run(world).status == "Stopped"
    assert (rows(world), claims(world)) == ([], [])


@pytest.mark.rule("record.8", "L51")
def test_a_folder_that_is_being_dropped_is_left_alone() -> None:
    world = published(2)
    world.put("orders/_dropping.json", b"{}")
    assert run(world).status == "Stopped"
    assert world.target is None


def test_the_directory_of_a_dropped_table_goes_after_seven_days() -> None:
    world = published(1)
    run(world)
    world.drop()
    run(world)
    world.now += 6 * DAY
    run(world)
    assert world.target is not None
    world.now += 2 * DAY
    run(world)
    assert world.target is None


def test_a_statement_of_an_earlier_life_is_skipped() -> None:
    world = published(3)
    late = Process(world)
    late.until(Commit)
    run(world)
    world.drop()
    world.append()
    run(world)
    late.finish()
    assert world.target is not None
    assert world.target.rows == [(2, 1, 0)]


@pytest.mark.rule("4.3", "L38")
def test_a_vanished_last_file_fails() -> None:
    world = published(3)
    run(world)
    del world.objects[f"orders/{data_file(3)}"]
    result = run(world)
    assert (result.status, result.file) == ("Failed", f"orders/{data_file(3)}")
