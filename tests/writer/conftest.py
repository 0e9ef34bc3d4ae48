"""A zone of its own for each test."""

from __future__ import annotations

from uuid import uuid4

import pytest

from openmirror_writer.zone import LandingTable, LandingZone


@pytest.fixture
def zone() -> LandingZone:
    return LandingZone(f"memory://{uuid4()}")


@pytest.fixture
def orders(zone: LandingZone) -> LandingTable:
    return zone.table("orders", key_columns=["id"], columns={"id": "int64", "v": "string"})
