"""Publish data into Microsoft Fabric open mirroring.

`LandingZone` names where a mirrored database takes its files from, `LandingZone.table` one table, and `Writer`
publishes rows to it. `replay` gives what the tables hold by the documented semantics. The mirror on Spark is in
`openmirror_writer.spark`.
"""

from openmirror_writer.changes import Change, ChangeBatch, RowMarker
from openmirror_writer.check import Finding, Repaired, check, repair
from openmirror_writer.errors import (
    ApplyError,
    AuthenticationError,
    ConcurrentWriterError,
    InvalidRowError,
    OpenMirrorError,
    ResumeMismatchError,
    SchemaRefusedError,
    StorageError,
    TableGoneError,
    UnknownPositionError,
)
from openmirror_writer.formats import DelimitedText, Parquet
from openmirror_writer.lifecycle import drop_table, replace_table
from openmirror_writer.metadata import PartnerEvents, SourceInfo
from openmirror_writer.replay import replay
from openmirror_writer.writer import PublishedFile, Roll, Writer
from openmirror_writer.zone import LandingTable, LandingZone

__all__ = [
    "ApplyError",
    "AuthenticationError",
    "Change",
    "ChangeBatch",
    "ConcurrentWriterError",
    "DelimitedText",
    "Finding",
    "InvalidRowError",
    "LandingTable",
    "LandingZone",
    "OpenMirrorError",
    "Parquet",
    "PartnerEvents",
    "PublishedFile",
    "Repaired",
    "ResumeMismatchError",
    "Roll",
    "RowMarker",
    "SchemaRefusedError",
    "SourceInfo",
    "StorageError",
    "TableGoneError",
    "UnknownPositionError",
    "Writer",
    "check",
    "drop_table",
    "repair",
    "replace_table",
    "replay",
]
