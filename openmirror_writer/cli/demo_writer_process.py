"""The demo's writer as a process that can be killed.

``python -m openmirror_writer.cli.demo_writer_process ZONE DAYS PACE``; it is no module to import.
"""

from __future__ import annotations

import sys

from openmirror_writer.cli.demo_feed import feed
from openmirror_writer.cli.demo_source import Flights
from openmirror_writer.cli.flights_data import flights_path
from openmirror_writer.zone import LandingZone

if __name__ == "__main__":
    feed(LandingZone(sys.argv[1]), Flights(flights_path(), int(sys.argv[2])), float(sys.argv[3]))
