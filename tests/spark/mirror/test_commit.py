"""The Delta statements, and what an error of Spark means."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark.errors import AnalysisException

from openmirror_writer.spark.mirror.columns import Column
from openmirror_writer.spark.mirror.commit import DeltaTable, failure, properties_before, statement, table_properties
from openmirror_writer.spark.mirror.state import TableName
from openmirror_writer.spark.mirror.steps import Bad, Commit, Conflict

TABLE = DeltaTable("file:///t`x", deletion_vectors=True)


def commit(**more: Any) -> Commit:
    told = {
        "table": TableName("orders"),
        "kind": "merge",
        "algebra": "merge",
        "version": 9,
        "expected": 8,
        "files": (),
        "generation": "g1",
        "keys": ("id",),
        "columns": (Column("id", "long"), Column("v`", "string", nullable=False)),
    }
    return Commit(**{**told, **more})


def test_the_merge_keeps_its_flag_in_on_and_matches_null_with_null() -> None:
    assert statement(commit(), TABLE, "s1") == (
        "MERGE INTO delta.`file:///t``x` AS t USING s1 AS s ON s.__om_act <> 'A' AND t.`id` <=> s.`id` "
        "WHEN MATCHED AND s.__om_act = 'D' THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET `id` = s.`id`, `v``` = s.`v``` "
        "WHEN NOT MATCHED AND s.__om_act IN ('A', 'U') THEN INSERT (`id`, `v```) VALUES (s.`id`, s.`v```)"
    )


@pytest.mark.parametrize("kind", ["append", "merge", "upsert_only"])
def test_a_statement_adds_columns_only_where_the_batch_has_some(kind: Any) -> None:
    assert "EVOLUTION" not in statement(commit(kind=kind), TABLE, "s1")
    added = statement(commit(kind=kind, added=(Column("v`", "string"),)), TABLE, "s1")
    assert added.startswith("MERGE WITH SCHEMA EVOLUTION INTO ")


def test_what_is_appended_with_a_new_column_matches_nothing() -> None:
    assert statement(commit(kind="append", added=(Column("v`", "string"),)), TABLE, "s1") == (
        "MERGE WITH SCHEMA EVOLUTION INTO delta.`file:///t``x` AS t USING s1 AS s ON false "
        "WHEN NOT MATCHED THEN INSERT (`id`, `v```) VALUES (s.`id`, s.`v```)"
    )


@pytest.mark.parametrize(
    ("more", "properties"),
    [
        ({}, {}),
        ({"added": (Column("v", "long"),)}, {}),
        ({"added": (Column("a b", "long"),)}, {"delta.columnMapping.mode": "name"}),
        ({"added": (Column("v", "timestamp_ntz"),)}, {"delta.feature.timestampNtz": "supported"}),
        ({"keys_came": True}, {"openmirror.laterKeys": '{"generation": "g1", "keys": ["id"]}'}),
    ],
)
def test_a_table_is_prepared_for_what_a_statement_cannot_set_itself(
    more: dict[str, Any], properties: dict[str, str]
) -> None:
    assert properties_before(commit(**more)) == properties


@pytest.mark.parametrize(("expected", "begins"), [(None, "CREATE TABLE delta"), (8, "CREATE OR REPLACE TABLE delta")])
def test_a_table_that_others_made_meanwhile_is_never_replaced(expected: int | None, begins: str) -> None:
    assert statement(commit(kind="rebuild", expected=expected), TABLE, "s1").startswith(begins)


@pytest.mark.rule("9.2")
def test_the_properties_tell_what_the_next_run_needs() -> None:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    assert table_properties(commit(dropped=moment), TABLE) == {
        "openmirror.generation": "g1",
        "openmirror.folder": "orders",
        "openmirror.keys": '["id"]',
        "openmirror.required": '["v`"]',
        "openmirror.dropped": "2026-01-01T00:00:00+00:00",
        "delta.enableDeletionVectors": "true",
    }


@pytest.mark.rule("9.2")
@pytest.mark.parametrize("name", ["a b", "a,b", "a;b", "a{b", "a(b", "a\nb", "a\tb", "a=b"])
def test_columns_are_mapped_by_name_where_parquet_cannot_spell_them(name: str) -> None:
    assert table_properties(commit(columns=(Column(name, "long"),)), TABLE)["delta.columnMapping.mode"] == "name"


def test_text_in_properties_is_escaped() -> None:
    sql = statement(commit(kind="rebuild", keys=("it's",)), TABLE, "s1")
    assert "'[\"it\\'s\"]'" in sql


@pytest.mark.parametrize(
    "text",
    [
        "[DELTA_CONCURRENT_TRANSACTION.X] io.delta.exceptions.ConcurrentTransactionException: this transaction",
        "Caused by: java.io.FileNotFoundException: File file:/z/00000000000000000001.parquet does not exist",
        "[USER_RAISED_EXCEPTION] openmirror: file 00000000000000000001.parquet row 0 was replaced since it was planned",
    ],
)
def test_what_others_did_meanwhile_is_a_conflict(text: str) -> None:
    assert isinstance(failure(AnalysisException(text)), Conflict)


def test_a_bad_marker_names_its_file_and_row() -> None:
    text = "x\nCaused by: [X] openmirror: file 00000000000000000007.parquet row 3 has the row marker 9 SQLSTATE"
    assert failure(AnalysisException(text)) == Bad(
        "00000000000000000007.parquet",
        "file 00000000000000000007.parquet row 3 has the row marker 9: publish the file again",
    )


def test_any_other_error_keeps_its_innermost_cause_and_the_file_it_names() -> None:
    text = "Job aborted\n  at x.y\nCaused by: a: file:/z/00000000000000000002.parquet\nCaused by: b: corrupt page"
    assert failure(AnalysisException(text)) == Bad(
        "00000000000000000002.parquet", "Spark could not apply it: b: corrupt page"
    )
