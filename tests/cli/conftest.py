"""Running the command line inside the test's process."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest

from openmirror_writer.cli import main


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


Run = Callable[..., Ended]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run ``openmirror`` with arguments, on a terminal of 200 columns."""
    monkeypatch.setenv("COLUMNS", "200")

    def run_main(*arguments: object) -> Ended:
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return Ended(int(ended.value.code or 0), out, err)

    return run_main
