"""What all tests share: the profiles of hypothesis and one Spark session."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# No deadline: the machines that run the tests are shared, and a slow moment is no failure. A failure prints the line
# that repeats it.
settings.register_profile("quick", deadline=None, derandomize=False, print_blob=True)
settings.register_profile(
    "exhaustive",
    parent=settings.get_profile("quick"),
    max_examples=5_000,
    stateful_step_count=100,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("quick")  # --hypothesis-profile on the command line wins

# Only Java's first compiler and its plain collector: the many short queries of tests take 20 % less time.
_SHORT_QUERIES = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkSession]":
    """Return the one session of the run. Tests that ask for it are marked ``spark`` below."""
    from openmirror_writer.spark import local_session  # noqa: PLC0415 - most runs of a few tests need no Spark

    session = local_session(options={"spark.driver.extraJavaOptions": _SHORT_QUERIES})
    yield session
    session.stop()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test that needs Spark, so that ``-m "not spark"`` leaves a quick run."""
    for item in items:
        if isinstance(item, pytest.Function) and "spark" in item.fixturenames:
            item.add_marker("spark")
