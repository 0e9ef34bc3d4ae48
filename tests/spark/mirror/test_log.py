"""Reading a Delta log without Spark."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from openmirror_writer.errors import ApplyError
from openmirror_writer.spark.mirror.columns import Column
from openmirror_writer.spark.mirror.log import (
    DROPPED_PROPERTY,
    GENERATION_PROPERTY,
    KEYS_PROPERTY,
    LATER_KEYS_PROPERTY,
    REQUIRED_PROPERTY,
    LogPart,
    parse_checksum,
    read_target,
    remove_table,
    sort_log,
    target_state,
)
from openmirror_writer.spark.mirror.state import TargetState
from openmirror_writer.storage import ListFolder, ReadFile, Storage, open_storage, perform

FIELDS = [
    {"name": "id", "type": "long", "nullable": True, "metadata": {}},
    {"name": "amount", "type": "decimal(18,2)", "nullable": True, "metadata": {}},
]
METADATA = {
    "schemaString": json.dumps({"type": "struct", "fields": FIELDS}),
    "configuration": {GENERATION_PROPERTY: "g1", KEYS_PROPERTY: '["id"]', REQUIRED_PROPERTY: '["amount"]'},
}
UUID = "0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f"


@pytest.fixture
def storage(request: pytest.FixtureRequest) -> Storage:
    return open_storage(f"memory://{request.node.name}")


def put(storage: Storage, name: str, data: bytes) -> None:
    assert storage.create(f"t/_delta_log/{name}", data) is not None


def txn(version: int, app: str = "openmirror") -> dict[str, Any]:
    return {"txn": {"appId": app, "version": version, "lastUpdated": 1}}


def lines(*actions: dict[str, Any]) -> bytes:
    return b"\n".join(json.dumps(action).encode() for action in ({"commitInfo": {}}, *actions))


def commit(storage: Storage, version: int, *actions: dict[str, Any]) -> None:
    put(storage, f"{version:020d}.json", lines(*actions))


def checksum(storage: Storage, version: int, ours: int | None, **more: Any) -> None:
    transactions = [{"appId": "other", "version": 99}] + (
        [] if ours is None else [{"appId": "openmirror", "version": ours}]
    )
    put(
        storage,
        f"{version:020d}.crc",
        json.dumps({"setTransactions": transactions, "metadata": METADATA, **more}).encode(),
    )


def checkpoint(storage: Storage, name: str, *actions: dict[str, Any]) -> None:
    kind = pa.schema(
        [
            ("txn", pa.struct([("appId", pa.string()), ("version", pa.int64())])),
            (
                "metaData",
                pa.struct([("schemaString", pa.string()), ("configuration", pa.map_(pa.string(), pa.string()))]),
            ),
            ("add", pa.struct([("path", pa.string())])),
        ]
    )
    rows = [{**dict.fromkeys(("txn", "metaData", "add")), **action} for action in actions]
    for row in rows:
        if row["metaData"]:
            row["metaData"] = {**row["metaData"], "configuration": list(row["metaData"]["configuration"].items())}
        if row["txn"]:
            row["txn"].pop("lastUpdated", None)
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, kind), sink)
    put(storage, name, sink.getvalue())


def state(storage: Storage) -> TargetState:
    return perform(storage, read_target("t"))


def test_no_log_is_no_table(storage: Storage) -> None:
    assert state(storage) == TargetState()


def test_the_newest_checksum_tells_all(storage: Storage) -> None:
    checksum(storage, 7, 41)
    commit(storage, 7, txn(41))
    assert state(storage) == TargetState(
        exists=True,
        version=41,
        generation="g1",
        columns=(Column("id", "long"), Column("amount", "decimal(18,2)", nullable=False)),
        keys=("id",),
        commit=7,
    )


def test_commits_above_the_newest_checksum_win(storage: Storage) -> None:
    checksum(storage, 7, 41)
    commit(storage, 7)
    commit(storage, 8, txn(42), txn(1, app="other"))
    commit(storage, 9)
    found = state(storage)
    assert (found.version, found.commit, found.generation) == (42, 9, "g1")


def test_a_table_that_never_saw_a_commit_of_ours_has_no_version(storage: Storage) -> None:
    commit(storage, 0, {"metaData": METADATA})
    commit(storage, 1, txn(5, app="other"))
    found = state(storage)
    assert (found.exists, found.version) == (True, None)


@pytest.mark.parametrize("damaged", [b"", b"{}", b'{"metadata": null, "setTransactions": null}', b"[1]", b"\xff"])
def test_a_checksum_that_does_not_tell_is_passed_over(storage: Storage, damaged: bytes) -> None:
    assert parse_checksum(damaged) is None
    put(storage, f"{0:020d}.crc", damaged)
    commit(storage, 0, {"metaData": METADATA}, txn(3))
    assert state(storage).version == 3


def test_a_checkpoint_ends_the_search(storage: Storage) -> None:
    checkpoint(storage, f"{5:020d}.checkpoint.parquet", {"metaData": METADATA}, txn(3), txn(9, app="other"))
    commit(storage, 5)
    commit(storage, 6)
    assert (state(storage).version, state(storage).generation) == (3, "g1")


def test_all_parts_of_a_checkpoint_are_read(storage: Storage) -> None:
    checkpoint(storage, f"{5:020d}.checkpoint.{1:010d}.{2:010d}.parquet", {"metaData": METADATA})
    checkpoint(storage, f"{5:020d}.checkpoint.{2:010d}.{2:010d}.parquet", txn(3))
    assert (state(storage).version, state(storage).generation) == (3, "g1")


def test_a_checkpoint_with_a_part_missing_is_none(storage: Storage) -> None:
    checkpoint(storage, f"{5:020d}.checkpoint.{1:010d}.{2:010d}.parquet", {"metaData": METADATA}, txn(1))
    commit(storage, 5, txn(3))
    commit(storage, 4, {"metaData": METADATA})
    assert state(storage).version == 3


@pytest.mark.parametrize("kind", ["json", "parquet"])
def test_the_top_level_file_of_a_v2_checkpoint_tells(storage: Storage, kind: str) -> None:
    name = f"{5:020d}.checkpoint.{UUID}.{kind}"
    if kind == "json":
        put(storage, name, lines({"metaData": METADATA}, txn(3)))
    else:
        checkpoint(storage, name, {"metaData": METADATA}, txn(3))
    assert (state(storage).version, state(storage).commit) == (3, 5)


def test_a_log_with_a_hole_is_an_error_and_not_silence(storage: Storage) -> None:
    commit(storage, 4, txn(3))
    commit(storage, 2, {"metaData": METADATA})
    with pytest.raises(ApplyError, match="version 3 is missing"):
        state(storage)


def test_a_log_that_begins_too_late_is_an_error(storage: Storage) -> None:
    commit(storage, 4, {"metaData": METADATA})
    with pytest.raises(ApplyError, match="not complete"):
        state(storage)


def test_a_damaged_commit_is_an_error(storage: Storage) -> None:
    put(storage, f"{0:020d}.json", b'{"txn": ')
    with pytest.raises(ApplyError, match="damaged"):
        state(storage)


def test_other_names_mean_nothing() -> None:
    names = sort_log(["_last_checkpoint", f"{3:020d}.{5:020d}.compacted.json", f".{1:020d}.json.crc", "_commits"])
    assert names.newest is None


def test_a_file_that_goes_away_between_listing_and_reading_is_looked_for_again(storage: Storage) -> None:
    commit(storage, 0, {"metaData": METADATA}, txn(1))
    steps = read_target("t")
    listing = storage.names("t/_delta_log")
    assert next(steps) == ListFolder("t/_delta_log")
    assert isinstance(steps.send(listing), ReadFile)
    assert steps.send(None) == ListFolder("t/_delta_log")


def dropped(storage: Storage) -> None:
    metadata = {**METADATA, "configuration": {DROPPED_PROPERTY: datetime(2026, 1, 1, tzinfo=UTC).isoformat()}}
    commit(storage, 0, {"metaData": METADATA}, txn(1))
    commit(storage, 1, {"metaData": metadata}, txn(2))
    checksum(storage, 1, 2, metadata=metadata)
    put(storage, "_last_checkpoint", b"{}")
    put(storage, "_staged_commits/x.json", b"{}")
    assert storage.create("t/part-0.parquet", b"x") is not None


def test_the_directory_of_a_dropped_table_is_removed(storage: Storage) -> None:
    dropped(storage)
    assert state(storage).dropped == datetime(2026, 1, 1, tzinfo=UTC)
    perform(storage, remove_table("t", 2))
    assert storage.names("") == storage.names("nothing")


def test_a_directory_whose_table_came_again_is_not_removed(storage: Storage) -> None:
    dropped(storage)
    commit(storage, 2, {"metaData": METADATA}, txn(3))
    perform(storage, remove_table("t", 2))
    assert state(storage).version == 3
    assert "part-0.parquet" in storage.names("t").files


def test_a_removal_that_was_stopped_anywhere_still_reads_as_dropped(storage: Storage) -> None:
    dropped(storage)
    steps = remove_table("t", 2)
    answer: Any = None
    while storage.names("").folders:
        found = state(storage)
        assert (found.version, found.dropped is not None) == (2, True)
        try:
            request = steps.send(answer)
        except StopIteration:
            break
        from_storage = perform(storage, _one(request))
        answer = from_storage
    assert storage.names("") == storage.names("nothing")


def _one(request: object) -> Any:
    return (yield request)


@pytest.mark.parametrize(("generation", "keys"), [("g1", ("amount",)), ("g0", ("id",))])
def test_keys_that_came_later_count_in_the_generation_they_came_in(generation: str, keys: tuple[str, ...]) -> None:
    later = json.dumps({"generation": generation, "keys": ["amount"]})
    configuration = {GENERATION_PROPERTY: "g1", KEYS_PROPERTY: '["id"]', LATER_KEYS_PROPERTY: later}
    metadata = {**METADATA, "configuration": configuration}
    assert target_state(LogPart(version=1, metadata=metadata), 3).keys == keys
