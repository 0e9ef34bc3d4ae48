"""The command line as a whole: errors, exit codes, missing extras."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from typing import Any

import pytest


def python(code: str, *without: str) -> subprocess.CompletedProcess[str]:
    """Run code in a Python that cannot import some packages."""
    blocked = f"import sys; sys.modules.update(dict.fromkeys({list(without)!r}))\n"
    return subprocess.run([sys.executable, "-c", blocked + code], capture_output=True, text=True, check=False)


def test_an_error_is_one_message_on_stderr_without_a_traceback(run: Any) -> None:
    ended = run("trace", "memory://nothing-here", "orders", "id=1")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err == (
        "openmirror: there is no such table in memory://nothing-here; there are: none [table='orders']\n"
    )


def test_wrong_usage_ends_with_2(run: Any) -> None:
    ended = run("inspect")
    assert ended.code == 2
    assert "Missing argument" in ended.err


def test_the_version_is_that_of_the_package(run: Any) -> None:
    assert run("--version").out.strip() == version("openmirror-writer")


@pytest.mark.parametrize("command", ["inspect", "trace", "apply", "demo"])
def test_every_command_has_help(run: Any, command: str) -> None:
    ended = run(command, "--help")
    assert ended.code == 0
    assert "Usage: openmirror" in ended.out


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_without_its_extra_the_command_line_says_what_to_install(missing: str) -> None:
    ended = python("import openmirror_writer.cli", missing)
    assert ended.returncode == 1
    assert ended.stderr.rstrip().endswith(
        "ImportError: the command openmirror needs typer and rich: pip install 'openmirror-writer[cli]'"
    )


@pytest.mark.parametrize("missing", ["pyspark", "delta"])
def test_without_spark_apply_says_what_to_install(missing: str) -> None:
    ended = python("from openmirror_writer.cli import main; main(['apply', 'zone', 'target'])", missing)
    assert ended.returncode == 1
    assert ended.stderr == "openmirror: this command needs Spark: pip install 'openmirror-writer[cli,spark]'\n"


def test_looking_at_a_zone_does_not_import_spark() -> None:
    ended = python(
        "import atexit; atexit.register(lambda: print('pyspark' in sys.modules))\n"
        "from openmirror_writer.cli import main; main(['inspect', 'memory://zone'])"
    )
    assert ended.stdout.endswith("False\n")
