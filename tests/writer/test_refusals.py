"""Bad input: a typed error with its parts, nothing of that file in the zone, and the writer goes on."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import partial
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

from openmirror_writer import (
    ChangeBatch,
    InvalidRowError,
    LandingZone,
    OpenMirrorError,
    Roll,
    RowMarker,
    SchemaRefusedError,
    Writer,
)
from openmirror_writer.layout import data_file
from openmirror_writer.zone import LandingTable
from tests.writer.landing import identities, landed, mirrored, names

NOON = datetime(2026, 1, 2, 12, 0, 0, 123_456)  # noqa: DTZ001 - a value without a zone is one of the cases
NOON_UTC = NOON.replace(tzinfo=UTC)
GOOD: dict[Any, Any] = {
    "int64": 1,
    "int8": 1,
    "uint8": 1,
    "float64": 1.0,
    "float32": 1.0,
    "decimal(9,2)": Decimal("1.25"),
    "bool": True,
    "string": "a",
    "binary": b"a",
    "date": date(2026, 1, 2),
    "timestamp": NOON_UTC,
    "timestamp_ntz": NOON,
    pa.timestamp("ms"): NOON.replace(microsecond=0),
    "json": {"a": 1},
    "uuid": UUID(int=1),
    "time": time(12),
}

SILENT_CONVERSIONS = [
    ("int64", 1.5),
    ("int64", 1.0),
    ("int64", Decimal("1.5")),
    ("int64", Decimal(1)),
    ("int64", True),
    ("int64", "1"),
    ("int64", float("nan")),
    ("int64", 2**63),
    ("int8", 128),
    ("uint8", -1),
    ("float64", True),
    ("float64", Decimal("0.5")),
    ("float64", 2**53 + 1),
    ("float32", 1e39),
    ("decimal(9,2)", 0.5),
    ("decimal(9,2)", Decimal("0.125")),
    ("decimal(9,2)", Decimal(10**7)),
    ("decimal(9,2)", Decimal("NaN")),
    ("bool", 1),
    ("bool", "true"),
    ("string", b"bytes"),
    ("string", 7),
    ("binary", "text"),
    ("date", NOON),
    ("date", 7),
    ("timestamp", NOON),
    ("timestamp", 7),
    ("timestamp", date(2026, 1, 2)),
    ("timestamp_ntz", NOON_UTC),
    (pa.timestamp("ms"), NOON),
    ("string", time(12)),
    ("string", "half a pair: \ud800"),
    ("json", {"a": float("nan")}),
    ("json", {1: "a"}),
    ("json", 7),
    ("uuid", UUID(int=1).bytes),
    ("time", time(12, tzinfo=UTC)),
]

ARROW_CONVERSIONS = [
    ("int64", pa.array([1.5])),
    ("int8", pa.array([128])),
    ("float64", pa.array([True])),
    ("float64", pa.array([2**53 + 1])),
    ("decimal(9,2)", pa.array([0.5])),
    ("decimal(9,2)", pa.array([Decimal("0.125")])),
    ("string", pa.array([b"bytes"])),
    ("binary", pa.array(["text"])),
    ("date", pa.array([NOON])),
    ("timestamp", pa.array([NOON], pa.timestamp("us"))),
    ("timestamp", pa.array([7])),
    ("timestamp_ntz", pa.array([NOON], pa.timestamp("us", tz="UTC"))),
    ("timestamp_ntz", pa.array([1_001], pa.timestamp("ns"))),
    (pa.timestamp("ms"), pa.array([NOON], pa.timestamp("us"))),
    ("json", pa.array([[float("nan")]])),
    ("uuid", pa.array([UUID(int=1).bytes], pa.binary(16))),
    ("time", pa.array([1_001], pa.int64()).view(pa.time64("ns"))),
]


def kind_id(value: object) -> str:
    return f"{value.type}" if isinstance(value, pa.Array) else ascii(value)[:30]


def refused(
    table: LandingTable, call: Callable[[Writer], Any], *, good: Callable[[Writer], Any], roll: Roll | None = None
) -> OpenMirrorError:
    """The error of a call, behind which nothing has changed and the same writer goes on; inside ``with`` as outside."""
    for inside in (False, True):
        writer = Writer(table, roll=roll or Roll())
        before, position = identities(table), writer.position
        if inside:
            writer.__enter__()
        with pytest.raises(OpenMirrorError) as caught:
            call(writer)
        assert writer.position == position
        assert writer.flush() == []
        assert identities(table) == before
        assert caught.value.published_rows == 0
        good(writer)
        if inside:
            writer.__exit__(None, None, None)
        assert len(identities(table)) > len(before)
    return caught.value


def table_of(zone: LandingZone, kind: Any) -> LandingTable:
    return zone.table("orders", key_columns=["id"], columns={"id": "int64", "v": kind})


@pytest.mark.parametrize(("kind", "value"), SILENT_CONVERSIONS, ids=kind_id)
@pytest.mark.parametrize("verb", ["insert", "initial_load"])
def test_no_value_is_converted_in_silence(zone: LandingZone, kind: Any, value: object, verb: str) -> None:
    table = table_of(zone, kind)
    rows = [{"id": 1, "v": GOOD[kind]}, {"id": 2, "v": None}, {"id": 3, "v": value}]
    if verb == "initial_load":
        writer = Writer(table)
        with pytest.raises(InvalidRowError):
            writer.initial_load(rows, position=1)
        assert (names(table), writer.state, writer.position) == ([], "new", None)
        return
    error = refused(
        table,
        lambda w: w.insert(rows, position=1),
        good=lambda w: w.insert(rows[:2]),
    )
    assert isinstance(error, InvalidRowError)
    assert (error.table, error.row, error.key, error.column) == ("orders", 2, {"id": 3}, "v")
    assert repr(error.value) == repr(value)
    assert error.type is not None


YEAR_10000 = 253_402_300_800


@pytest.mark.parametrize(
    ("kind", "key"),
    [
        ("timestamp", pa.array([0, YEAR_10000], pa.timestamp("s", "UTC"))),
        ("timestamp_ntz", pa.array([0, -YEAR_10000], pa.timestamp("s"))),
        ("date", pa.array([0, YEAR_10000 // 86_400], pa.int32()).view(pa.date32())),
    ],
    ids=kind_id,
)
@pytest.mark.parametrize("verb", ["write", "write a batch", "update", "delete"])
def test_a_key_outside_of_the_years_1_to_9999_is_refused_and_named(
    zone: LandingZone, kind: str, key: pa.Array[Any], verb: str
) -> None:
    """Python has no value for it, and a key is compared in Python."""
    orders = zone.table("orders", key_columns=["at"], columns={"at": kind, "v": "int8"})
    table = pa.table({"at": key, "v": pa.array([1, 2], pa.int8())})
    markers = pa.array([RowMarker.DELETE, RowMarker.INSERT], pa.int32())
    calls: dict[str, Callable[[Writer], Any]] = {
        "write": lambda w: w.write(table.append_column("__rowMarker__", markers)),
        "write a batch": lambda w: w.write(ChangeBatch(table.to_batches()[0], markers)),
        "update": lambda w: w.update(table.slice(0, 1), table.select(["at"]).slice(1)),
        "delete": lambda w: w.delete(table.select(["at"])),
    }
    error = refused(orders, calls[verb], good=lambda w: w.upsert([{"at": GOOD[kind], "v": 1}]))
    assert isinstance(error, InvalidRowError)
    row = 0 if verb == "update" else 1
    assert (error.table, error.row, error.column, error.type) == ("orders", row, "at", kind)
    assert error.key == {"at": error.value}
    assert "holds the years 1 to 9999" in error.message


@pytest.mark.parametrize(("kind", "array"), ARROW_CONVERSIONS, ids=kind_id)
def test_no_arrow_value_is_converted_in_silence(zone: LandingZone, kind: Any, array: pa.Array[Any]) -> None:
    table = table_of(zone, kind)
    bad = pa.table({"id": pa.array([3]), "v": array})
    error = refused(table, lambda w: w.insert(bad), good=lambda w: w.insert([{"id": 1, "v": GOOD[kind]}]))
    assert isinstance(error, InvalidRowError)
    assert (error.table, error.column) == ("orders", "v")


@pytest.mark.parametrize("call", [True, False])
def test_a_column_called_like_the_marker_is_refused(zone: LandingZone, call: bool) -> None:  # noqa: FBT001
    if not call:
        with pytest.raises(SchemaRefusedError) as caught:
            zone.table("orders", key_columns=["id"], columns={"id": "int64", "__ROWMARKER__": "int32"})
        assert (caught.value.table, caught.value.column) == ("orders", "__ROWMARKER__")
        return
    table = table_of(zone, "string")
    row = {"id": 1, "v": "a", "__rowMarker__": 4}
    error = refused(table, lambda w: w.upsert([row]), good=lambda w: w.upsert([{"id": 1, "v": "a"}]))
    assert error.column == "__rowMarker__"
    error = refused(table, lambda w: w.upsert(pa.Table.from_pylist([row])), good=lambda w: w.delete([{"id": 1}]))
    assert error.column == "__rowMarker__"


@pytest.mark.parametrize("rows", [[{"id": 1, "__rowMarker__": 4}], pa.table({"id": [1], "__rowMarker__": [4]})])
def test_a_column_called_like_the_marker_is_not_inferred(zone: LandingZone, rows: Any) -> None:
    table = zone.table("orders", key_columns=["id"])
    error = refused(table, lambda w: w.upsert(rows), good=lambda w: w.upsert([{"id": 1}]))
    assert error.column == "__rowMarker__"


@pytest.mark.rule("6.2", "L43")
@pytest.mark.parametrize("verb", ["insert", "update", "upsert"])
@pytest.mark.parametrize(("row", "column"), [({"id": 1}, "v"), ({"v": "a"}, "id"), ({"id": 1, "v": "a", "w": 1}, "w")])
def test_a_row_has_every_column_and_no_other(zone: LandingZone, verb: str, row: dict[str, Any], column: str) -> None:
    good = {"id": 1, "v": "a"}
    error = refused(
        table_of(zone, "string"),
        lambda w: getattr(w, verb)([good, row]),
        good=lambda w: getattr(w, verb)([good]),
    )
    assert isinstance(error, InvalidRowError)
    assert (error.table, error.row, error.column) == ("orders", 1, column)


def _delete(rows: list[dict[str, Any]], writer: Writer) -> None:
    writer.delete(rows)


def test_a_delete_needs_its_keys_and_what_is_never_null_and_no_unknown_column(zone: LandingZone) -> None:
    table = zone.table(
        "orders", key_columns=["id", "part"], columns={"id": "int64", "part": "string", "n": "int8 not null"}
    )
    whole = {"id": 1, "part": "a", "n": 7}
    for row, column in (
        ({"id": 1, "n": 7}, "part"),
        ({"id": 1, "part": "a"}, "n"),
        ({"id": 1, "part": "a", "n": None}, "n"),
        ({**whole, "w": 1}, "w"),
    ):
        error = refused(table, partial(_delete, [whole, row]), good=partial(_delete, [whole]))
        assert isinstance(error, InvalidRowError)
        assert (error.row, error.column) == (1, column)


@pytest.mark.rule("2.1")
@pytest.mark.parametrize("verb", ["insert", "update", "upsert", "delete"])
def test_a_key_is_never_null(zone: LandingZone, verb: str) -> None:
    good = {"id": 1, "v": "a"}
    error = refused(
        table_of(zone, "string"),
        lambda w: getattr(w, verb)([good, {"id": None, "v": "a"}]),
        good=lambda w: getattr(w, verb)([good]),
    )
    assert isinstance(error, InvalidRowError)
    assert (error.row, error.column, error.key) == (1, "id", {"id": None})


def test_an_old_key_is_never_null(zone: LandingZone) -> None:
    good = {"id": 1, "v": "a"}
    error = refused(
        table_of(zone, "string"),
        lambda w: w.update([good], old_keys=[{"id": None}]),
        good=lambda w: w.update([good], old_keys=[{"id": 2}]),
    )
    assert isinstance(error, InvalidRowError)
    assert error.column == "id"


@pytest.mark.parametrize("row", [None, 7, "text", ("id", 1), [("id", 1)], object()])
def test_a_row_is_a_mapping(zone: LandingZone, row: object) -> None:
    good = {"id": 1, "v": "a"}
    error = refused(table_of(zone, "string"), lambda w: w.upsert([good, row]), good=lambda w: w.upsert([good]))
    assert isinstance(error, InvalidRowError)
    assert (error.table, error.row) == ("orders", 1)


@pytest.mark.parametrize("rows", [None, 7, "text", b"bytes", {"id": 1, "v": "a"}, pa.array([1])])
@pytest.mark.parametrize("verb", ["insert", "upsert", "delete", "initial_load"])
def test_rows_are_rows(zone: LandingZone, rows: Any, verb: str) -> None:
    for table in (table_of(zone, "string"), zone.table("new", key_columns=["id"])):
        writer = Writer(table)
        with pytest.raises((InvalidRowError, SchemaRefusedError)) as caught:
            getattr(writer, verb)(rows)
        assert caught.value.table == table.name
        assert names(table) == []


@pytest.mark.rule("4.9")
@pytest.mark.parametrize("name", ["_metadata", "_Metadata", "__om_act", "__OM_x"])
@pytest.mark.parametrize("is_declared", [True, False])
def test_a_column_name_that_the_mirror_stops_at_is_refused(zone: LandingZone, name: str, *, is_declared: bool) -> None:
    columns = {"id": "int64", name: "string"} if is_declared else None
    with pytest.raises(SchemaRefusedError, match="cannot be mirrored.*rename it") as caught:
        Writer(zone.table("orders", key_columns=["id"], columns=columns)).upsert([{"id": 1, name: "a"}])
    assert (caught.value.table, caught.value.column) == ("orders", name)
    assert identities(zone.table("orders")) == {}


@pytest.mark.parametrize(("declared", "first"), [({"id": "int64", "ID": "string"}, None), (None, {"id": 1, "ID": "a"})])
def test_column_names_that_differ_by_case_only_are_refused(zone: LandingZone, declared: Any, first: Any) -> None:
    with pytest.raises(SchemaRefusedError, match="differ by case") as caught:
        Writer(zone.table("orders", key_columns=["id"], columns=declared)).upsert([first])
    assert (caught.value.table, caught.value.column) == ("orders", "ID")
    assert identities(zone.table("orders")) == {}


@pytest.mark.parametrize(
    ("first", "said"),
    [
        ({"id": 1, "v": None}, "tells no type"),
        ({"id": 1, "v": Decimal("1.5")}, "decimals"),
        ({"id": 1, "v": NOON}, "without a zone"),
        ({"id": 1, "v": time(12)}, "as 'time'"),
        ({"id": 1, "v": timedelta(1)}, "durations"),
        ({"id": 1, "v": {"nested": 1}}, "as 'json'"),
        ({"id": 1, "v": UUID(int=1)}, "as 'uuid'"),
        ({"id": 1, "v": object()}, "no column type"),
        ({"id": 1, "": 1}, "not empty"),
        ({"id": 1, "\ud800": 1}, "surrogate"),
        ({"w": 1}, "none of the table's columns"),
    ],
)
def test_inference_refuses_what_it_would_have_to_guess(zone: LandingZone, first: dict[str, Any], said: str) -> None:
    table = zone.table("orders", key_columns=["id"])
    writer = Writer(table)
    with pytest.raises(SchemaRefusedError, match=said) as caught:
        writer.upsert([first])
    assert caught.value.table == "orders"
    assert (names(table), writer.columns) == ([], None)
    writer.upsert([{"id": 1, "v": "a"}])


def test_dates_and_datetimes_in_one_column_are_refused(zone: LandingZone) -> None:
    with pytest.raises(SchemaRefusedError, match="mixes date, datetime with a zone"):
        Writer(zone.table("orders", key_columns=["id"])).upsert(
            [{"id": 1, "v": date(2026, 1, 2)}, {"id": 2, "v": NOON_UTC}]
        )


@pytest.mark.rule("1.1", "1.3")
@pytest.mark.parametrize(
    "name",
    [
        *(
            "a/b",
            "/a",
            "a\\b",
            ".",
            "..",
            "../a",
            "_orders",
            "orders.schema",
            "orders.SCHEMA",
            "",
            " ",
            " a",
            "a ",
            "a.",
        ),
        *("a\x00b", "a\nb", "\x7f", "a\u202eb", "x" * 256, "a%2fb", "a#b", "a?b", "a:b"),
    ],
)
@pytest.mark.parametrize("kind", ["table", "schema"])
def test_a_name_that_is_no_folder_which_the_service_finds_is_refused(zone: LandingZone, name: str, kind: str) -> None:
    with pytest.raises(SchemaRefusedError, match=f"{kind} name"):
        zone.table(name if kind == "table" else "orders", schema_name=name if kind == "schema" else None)
    assert zone.storage.names("").folders == frozenset()


@pytest.mark.parametrize("name", [None, 7, b"orders"])
def test_a_name_is_text(zone: LandingZone, name: Any) -> None:
    with pytest.raises(SchemaRefusedError, match="not text"):
        zone.table(name)


def test_a_table_whose_name_differs_from_another_by_case_only_is_refused(zone: LandingZone) -> None:
    Writer(zone.table("Orders", key_columns=["id"])).upsert([{"id": 1}])
    with pytest.raises(SchemaRefusedError, match="'Orders'.*by case only") as caught:
        Writer(zone.table("orders", key_columns=["id"]))
    assert (caught.value.table, caught.value.file) == ("orders", "Orders")
    assert names(zone.table("orders")) == []


@pytest.mark.rule("2.1", "L8")
@pytest.mark.parametrize("columns", [{"id": "int64"}, {"id": "string"}])
def test_keys_are_among_the_columns_and_each_once(zone: LandingZone, columns: dict[str, str]) -> None:
    for keys in (["other"], ["id", "id"], ["id", "ID"], "id"):
        with pytest.raises(SchemaRefusedError):
            zone.table("orders", key_columns=keys, columns=columns)


@pytest.mark.parametrize(
    "kind", ["text", "decimal(39,0)", "decimal(5,6)", "list", pa.list_(pa.int8()), pa.time64("us"), 7]
)
def test_a_type_that_cannot_be_mirrored_is_refused(zone: LandingZone, kind: Any) -> None:
    with pytest.raises(SchemaRefusedError) as caught:
        zone.table("orders", key_columns=["id"], columns={"id": "int64", "v": kind})
    assert (caught.value.table, caught.value.column) == ("orders", "v")


def test_a_row_behind_many_good_ones_is_named_and_none_of_its_file_stands(zone: LandingZone) -> None:
    """Files that were full before it stand; the one that would hold it does not."""
    table = table_of(zone, "string")
    writer = Writer(table, roll=Roll(rows=10_000))
    rows = [{"id": number, "v": "x"} for number in range(20_000)]
    rows[17_000] = {"id": 17_000, "v": 5}
    with pytest.raises(InvalidRowError) as caught:
        writer.insert(rows, position=1)
    assert (caught.value.row, caught.value.key, caught.value.published_rows) == (17_000, {"id": 17_000}, 10_000)
    assert "published_rows=10000" in str(caught.value)
    assert len(landed(table, 1)) == 10_000
    assert data_file(2) not in names(table)
    rows[17_000] = {"id": 17_000, "v": "mended"}
    writer.insert(rows, position=1)
    assert len(mirrored(zone)) == 20_000
