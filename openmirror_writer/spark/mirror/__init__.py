"""The mirror: applies the files of a landing zone to Delta tables with the documented semantics."""

from openmirror_writer.spark.mirror.mirror import Mirror
from openmirror_writer.spark.mirror.report import MirrorReport, TableReport

__all__ = ["Mirror", "MirrorReport", "TableReport"]
