"""A zone of its own for each test, and publishers in processes of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest

from openmirror_writer.zone import LandingTable, LandingZone
from tests.writer import feeder

Publishers = Callable[[list[dict[str, Any]]], list[dict[str, Any]]]


@pytest.fixture
def zone() -> LandingZone:
    return LandingZone(f"memory://{uuid4()}")


@pytest.fixture
def orders(zone: LandingZone) -> LandingTable:
    return zone.table("orders", key_columns=["id"], columns={"id": "int64", "v": "string"})


@pytest.fixture(scope="session")
def publishers() -> Iterator[Publishers]:
    """Give orders to `feeder.serve`, one process each; what became of them."""
    with subprocess.Popen(
        [sys.executable, feeder.__file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
    ) as server:

        def give(orders: list[dict[str, Any]]) -> list[dict[str, Any]]:
            assert server.stdin is not None
            assert server.stdout is not None
            server.stdin.write(json.dumps(orders) + "\n")
            server.stdin.flush()
            answer: list[dict[str, Any]] = json.loads(server.stdout.readline())
            return answer

        yield give
