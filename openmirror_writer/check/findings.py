"""What `check` finds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Literal

Severity = Literal["error", "warning", "note"]
"""``error``: the service stops at it, or what is published does not reach the table. ``warning``: it works today, or
works otherwise than it looks. ``note``: nothing has to be done."""

REPAIR = "delete it: openmirror check --repair"
"""What to do with a file that is proved to be of no use."""
_NAMED = 3
"""How many further files of the same fault are named."""


@dataclass(frozen=True)
class Finding:
    """One broken rule.

    Attributes:
        severity: ``error``, ``warning`` or ``note``.
        rule: Its number, see `openmirror_writer.check.rules`.
        message: What is wrong.
        remedy: What to do.
        table: ``"orders"``, ``"sales.orders"``; None if it is about the zone.
        file: The path below the zone's root; None if it is about no single file or folder.
        line: In a JSON file that cannot be parsed, counted from 1; else None.
        identity: Of a file that `repair` may delete; None: it leaves this finding alone.
    """

    severity: Severity
    rule: str
    message: str
    remedy: str
    table: str | None = None
    file: str | None = None
    line: int | None = None
    identity: str | None = None


def at(file: str | None, findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings with the file that they are about, those that name none."""
    return [replace(finding, file=finding.file or file) for finding in findings]


def fold(findings: Iterable[Finding]) -> list[Finding]:
    """Make one finding of those that differ by their file only, and name further files in it.

    A publisher that makes a mistake makes it in every file.
    """
    same: dict[Finding, list[Finding]] = {}
    for finding in findings:
        same.setdefault(replace(finding, file=None, identity=None), []).append(finding)
    folded: list[Finding] = []
    for first, *more in same.values():
        if more and first.identity is None:
            folded.append(replace(first, message=f"{first.message}; the same in {_names(more)}"))
        else:
            folded += [first, *more]  # each stands for a file of its own that can be deleted
    return folded


def _names(findings: list[Finding]) -> str:
    names = [PurePosixPath(finding.file or "").name for finding in findings]
    rest = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {rest} more files" if rest > 0 else "")
