"""The way from the commands to Spark, which is an optional extra and takes seconds to import."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from openmirror_writer.spark import Mirror
    from openmirror_writer.zone import LandingZone


class MissingExtraError(ImportError):
    """A command needs an extra that is not installed; the message says how to install it."""


def session() -> SparkSession:
    """Return the local Spark session with Delta Lake, started if there is none.

    Raises:
        MissingExtraError: PySpark or Delta Lake is not installed.
        OpenMirrorError: As `openmirror_writer.spark.local_session`.
    """
    try:
        from openmirror_writer.spark import local_session  # noqa: PLC0415 - an optional extra
    except ImportError as error:
        raise MissingExtraError("this command needs Spark: pip install 'openmirror-writer[cli,spark]'") from error
    return local_session()


def mirror(spark: SparkSession, zone: LandingZone, target: str) -> Mirror:
    """Return the mirror of a zone over a session from `session`."""
    from openmirror_writer.spark import Mirror  # noqa: PLC0415 - an optional extra, installed as there is a session

    return Mirror(spark, zone, target)
