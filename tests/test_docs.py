"""What the documentation shows is true: examples run, named files stand, every command is described."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from openmirror_writer.cli import app

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").glob("*.md"))]


def _blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL)


def test_the_smallest_example_prints_what_it_says(tmp_path):
    """The first example of the README is a whole program, and its last line says what it prints."""
    example = _blocks(README, "python")[0]
    promised = example.strip().rpartition("  # ")[2]
    for _ in range(2):  # the second run resumes from the zone that the first one left
        ran = subprocess.run([sys.executable, "-c", example], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (ran.returncode, ran.stdout.strip()) == (0, promised), ran.stderr


def test_the_smallest_example_is_ten_lines_at_most():
    """Blank lines not counted."""
    assert len([line for line in _blocks(README, "python")[0].splitlines() if line.strip()]) <= 10


@pytest.mark.parametrize("page", [page for page in PAGES[1:] if _blocks(page, "python")], ids=lambda page: page.name)
def test_the_examples_of_a_page_run(page, tmp_path):
    """All Python of a page under docs/ is one program."""
    program = "\n".join(_blocks(page, "python"))
    ran = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_and_named_tests_exist(page):
    """A page names only files that stand in the repository."""
    text = page.read_text()
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in link]
    named = re.findall(r"`((?:tests|docs|samples)/[^`*]*)`", text)
    missing = [link for link in links if not (page.parent / link).exists()]
    missing += [name for name in named if not (ROOT / name.rstrip("/")).exists()]
    assert not missing


def test_every_command_is_described_in_the_readme():
    """A command that nobody can find might as well not be there."""
    names = [command.name or getattr(command.callback, "__name__", "") for command in app.registered_commands]
    assert names
    assert [name for name in names if f"openmirror {name}" not in README.read_text()] == []


def test_the_commands_of_the_readme_are_those_of_ci():
    """CI calls what the README tells a newcomer to call."""
    tests = next(line for block in _blocks(README, "sh") for line in block.splitlines() if line.endswith("-e tests"))
    assert tests in (ROOT / ".ci" / "run").read_text()
