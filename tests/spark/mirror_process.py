"""A mirror in a process of its own, to be killed; it imports no test, so that it starts anywhere.

``python mirror_process.py <zone> <target> <files per commit>`` runs once and then waits until its input ends: a kill
never comes too late, and nobody is left behind when those who started it are gone.
"""

from __future__ import annotations

import sys
import tempfile

from openmirror_writer import LandingZone
from openmirror_writer.spark import Mirror, local_session


def main(zone: str, target: str, files_per_commit: int) -> None:
    # The first two are for speed, see tests/conftest.py. Java, once killed, does not remove its temporary files.
    java = (
        "-XX:TieredStopAtLevel=1",
        "-XX:+UseSerialGC",
        "-XX:-UsePerfData",
        f"-Djava.io.tmpdir={tempfile.gettempdir()}",
    )
    # Not quiet: Java holds our output open, so that its end tells that Java has ended too.
    spark = local_session(quiet=False, options={"spark.driver.extraJavaOptions": " ".join(java)})
    Mirror(spark, LandingZone(zone), target, files_per_commit=files_per_commit).run_once().raise_for_failures()
    sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
