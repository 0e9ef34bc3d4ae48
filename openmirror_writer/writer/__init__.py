"""The producer: `Writer` and what decides for it."""

from openmirror_writer.writer.cut import Roll
from openmirror_writer.writer.fence import PublishedFile
from openmirror_writer.writer.writer import Writer

__all__ = ["PublishedFile", "Roll", "Writer"]
