"""The pytest plugin: fixtures for tests of a publisher. Spark is not imported before `mirror` is used."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from openmirror_writer import testing
from openmirror_writer.zone import LandingZone

if TYPE_CHECKING:
    from openmirror_writer.spark import Mirror


@pytest.fixture
def landing_zone(tmp_path: Path) -> LandingZone:
    """Return an empty landing zone in a temporary folder of this test.

    >>> def test_my_publisher(landing_zone):
    ...     publish_orders(landing_zone)
    ...     assert replay(landing_zone)["orders"].num_rows == 3
    """
    return LandingZone(tmp_path / "zone")


@pytest.fixture
def mirror_target(tmp_path: Path) -> Path:
    """Return the folder in which `mirror` puts its tables: ``<schema or "dbo">/<table>``."""
    return tmp_path / "target"


@pytest.fixture
def mirror(landing_zone: LandingZone, mirror_target: Path, openmirror_spark: Any) -> Mirror:  # noqa: ANN401
    """Return a mirror that applies `landing_zone` to Delta tables in `mirror_target`.

    Raises:
        ImportError: PySpark or Delta Lake is not installed; the message says how to install them.

    >>> def test_my_publisher(landing_zone, mirror, mirror_target, openmirror_spark):
    ...     publish_orders(landing_zone)
    ...     mirror.run_once().raise_for_failures()
    ...     orders = openmirror_spark.read.format("delta").load(str(mirror_target / "dbo" / "orders"))
    ...     assert orders.count() == 3
    """
    return testing.Mirror(openmirror_spark, landing_zone, mirror_target)


@pytest.fixture(scope="session")
def openmirror_spark() -> Any:  # noqa: ANN401 - a SparkSession; only openmirror_writer.spark knows PySpark
    """Return the local Spark session with Delta Lake, started once, or the one that runs already; it ends with Python.

    Raises:
        ImportError: PySpark or Delta Lake is not installed; the message says how to install them.
        OpenMirrorError: As `openmirror_writer.spark.local_session`.
    """
    from openmirror_writer.spark import local_session  # noqa: PLC0415 - an optional extra

    return local_session()
