"""The mirror and the Spark sources. Needs ``pip install 'openmirror-writer[spark]'`` and Java 17 or newer."""

# Before anything of this package is imported, so that whoever lacks the extra reads how to get it.
try:
    import delta
    import pyspark
except ImportError as error:
    raise ImportError(
        "openmirror_writer.spark needs PySpark and Delta Lake: pip install 'openmirror-writer[spark]'"
    ) from error

from openmirror_writer.spark.mirror import Mirror, MirrorReport, TableReport
from openmirror_writer.spark.session import local_session

__all__ = ["Mirror", "MirrorReport", "TableReport", "local_session"]

del delta, pyspark
