"""The way from the commands to Spark, which is an optional extra and takes seconds to import."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from openmirror_writer.spark import Mirror
    from openmirror_writer.zone import LandingZone

SHORT_QUERIES: Mapping[str, str] = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
"""Only Java's first compiler and its plain collector: a few queries on small tables take half the time (the demo's 31 s
of CPU instead of 60), long ones on large tables take longer."""


class MissingExtraError(ImportError):
    """A command needs an extra that is not installed; the message says how to install it."""


def mirror(zone: LandingZone, target: str, options: Mapping[str, str] | None = None) -> Mirror:
    """Return the mirror of a zone over the local Spark session, which is started if there is none.

    Args:
        zone: The landing zone.
        target: The folder of the Delta tables.
        options: Of a session that is started, such as `SHORT_QUERIES`.

    Raises:
        MissingExtraError: PySpark or Delta Lake is not installed.
        OpenMirrorError: As `openmirror_writer.spark.local_session`.
    """
    try:
        from openmirror_writer.spark import Mirror, local_session  # noqa: PLC0415 - an optional extra
    except ImportError as error:
        raise MissingExtraError(_HOW_TO_INSTALL) from error
    return Mirror(local_session(options=options), zone, target)


def delta_rows(path: str) -> list[dict[str, Any]]:
    """Return the rows of a Delta table as the local Spark session reads them, column to value.

    Raises:
        MissingExtraError: As `mirror`.
        OpenMirrorError: As `mirror`.
    """
    try:
        from openmirror_writer.spark import local_session  # noqa: PLC0415 - an optional extra
    except ImportError as error:
        raise MissingExtraError(_HOW_TO_INSTALL) from error
    session = local_session(options=SHORT_QUERIES)
    return [row.asDict() for row in session.read.format("delta").load(path).collect()]


_HOW_TO_INSTALL = "this command needs Spark: pip install 'openmirror-writer[cli,spark]'"
