"""Errors: what they say, what they keep, and that they survive a process border."""

import copy
import pickle
import re
from typing import Any, NoReturn

import pytest

from openmirror_writer import errors
from openmirror_writer.errors import AuthenticationError, InvalidRowError, OpenMirrorError, StorageError, shorten

LEAVES = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, OpenMirrorError)]


class Unprintable:
    def __repr__(self) -> NoReturn:
        raise KeyError("its repr is broken")


def _endless() -> list[Any]:
    inner: list[Any] = []
    for _ in range(100_000):
        inner = [inner]
    return inner


@pytest.mark.parametrize("kind", LEAVES)
def test_one_except_clause_catches_every_error(kind: type[OpenMirrorError]) -> None:
    with pytest.raises(OpenMirrorError, match="it went wrong"):
        raise kind("it went wrong")


def test_the_tree_at_the_top_of_the_module_names_every_error() -> None:
    named = re.findall(r"\* ``(\w+)``", errors.__doc__ or "")
    assert sorted(named) == sorted(kind.__name__ for kind in LEAVES)


def test_a_refused_credential_is_a_storage_error_that_no_retry_mends() -> None:
    error = AuthenticationError("the credential is not accepted")
    assert isinstance(error, StorageError)
    assert not error.retryable


def test_a_message_without_parts_stands_alone() -> None:
    assert str(OpenMirrorError("close the other writer")) == "close the other writer"


def test_the_parts_that_are_known_stand_behind_the_message() -> None:
    error = InvalidRowError("mend it", table="sales.orders", row=0, key={"id": 7}, column="v", value="x", type="int64")
    assert str(error) == "mend it [table='sales.orders', row=0, key={'id': 7}, column='v', value='x', type='int64']"


def test_a_table_that_is_named_later_shows() -> None:
    error = OpenMirrorError("mend it")
    error.table = "orders"
    assert str(error) == "mend it [table='orders']"


def test_rows_that_are_published_already_show() -> None:
    error = InvalidRowError("mend it")
    assert error.published_rows == 0
    error.published_rows = 12
    assert str(error) == "mend it [published_rows=12]"


def test_a_large_value_cannot_flood_a_log() -> None:
    assert shorten("x" * 1_000) == "'" + "x" * 199 + "... (1002 characters)"


@pytest.mark.parametrize("value", [10**5_000, _endless(), Unprintable()], ids=["huge int", "deep list", "broken repr"])
def test_a_value_that_cannot_be_printed_does_not_hide_the_message(value: object) -> None:
    text = str(InvalidRowError("mend it", value=value))
    assert text.startswith("mend it [value=<")
    assert "cannot be printed" in text


@pytest.mark.parametrize("kind", LEAVES)
def test_an_error_keeps_its_parts_across_a_process_border(kind: type[OpenMirrorError]) -> None:
    error = kind("mend it", table="orders", file="orders/x", row=3, key={"id": 1}, value=b"\xff", position=[1, "a"])
    error.published_rows = 5
    error.add_note("2 rows were discarded")
    other = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert type(other) is kind
    assert vars(other) == vars(error)
    assert str(other) == str(error)


def test_a_storage_error_stays_retryable_across_a_process_border() -> None:
    error = StorageError("try again", retryable=True)
    assert pickle.loads(pickle.dumps(error)).retryable  # noqa: S301 - our own bytes
    assert copy.copy(error).retryable
