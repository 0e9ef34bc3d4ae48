"""A writer in a process of its own that pauses itself; it imports no test, so that it starts anywhere.

``python paused_writer_process.py <zone>`` opens a writer on the table ``orders``, which has one file, and stops this
process right before it creates file 2. After SIGCONT it goes on, and prints what came of it as JSON.
"""

from __future__ import annotations

import json
import os
import signal
import sys

from openmirror_writer import LandingZone, OpenMirrorError, Writer
from openmirror_writer.layout import data_file
from openmirror_writer.storage.local import LocalStorage


class PausingStorage(LocalStorage):
    """A zone in which the second data file is created after a pause of any length."""

    def create(self, path: str, data: bytes) -> str | None:
        if path.endswith(data_file(2)):
            os.kill(os.getpid(), signal.SIGSTOP)
        return super().create(path, data)


def main(zone: str) -> None:
    writer = Writer(LandingZone(PausingStorage(zone)).table("orders"))  # the proof: this look at the folder
    error = ""
    try:
        writer.insert([{"id": 2, "v": "paused"}], position=1)
    except OpenMirrorError as raised:
        error = f"{type(raised).__name__}: {raised}"
    json.dump({"error": error, "published_position": writer.published_position}, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
