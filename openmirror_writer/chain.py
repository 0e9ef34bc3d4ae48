"""The chain of records: which file of a number counts. Pure.

Each file's record names the one before as ``previous``. The service moves processed files away, which frees their
names: a writer that was paused can publish under a number that was taken before. Only the chain tells such a file.

The record of a text file stands beside it, and goes with the folder that is dropped. A file that was on its way then
comes without one, into whatever life the folder has by now.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from openmirror_writer.record import FOREIGN, Record


class Chained(Protocol):
    """What the chain needs to know of a data file."""

    @property
    def number(self) -> int:
        """From its name."""

    @property
    def record(self) -> Record | None:
        """None if a foreign publisher wrote the file."""

    @property
    def batch(self) -> str:
        """What tells this file's content from any other under its number: what the chain names, else the identity."""

    @property
    def is_text(self) -> bool:
        """Whether its record, if it has one, stands beside it and can be lost."""


File = TypeVar("File", bound=Chained)


@dataclass(frozen=True)
class Chain(Generic[File]):
    """Files of one generation, sorted by what the chain says of them.

    Attributes:
        files: One for each number from the start on, in order, each following the one before.
        stale: Files whose number is taken by one of ``files``.
        fork: The first file whose number is the next one, but which does not follow; None if there is none.
    """

    files: tuple[File, ...]
    stale: tuple[File, ...]
    fork: File | None


def is_of_generation(file: Chained, generation: str | None) -> bool:
    """Return whether a file may belong to a life of its folder; a foreign publisher's file may belong to any."""
    return file.record is None or file.record.generation == generation


def follow(files: Iterable[File], start: int = 1) -> Chain[File]:
    """Follow the records from a number on, as far as each file names the one before as ``previous``.

    Args:
        files: Those of one generation. Of two that could stand under a number and of which the next file names none,
            the earlier one here counts: pass what the service moved away first.
        start: The first number. If it is not 1, the file before is not known, and the first file may name any.
    """
    at: dict[int, list[File]] = {}
    for file in files:
        at.setdefault(file.number, []).append(file)
    chain: list[File] = []
    while True:
        number = start + len(chain)
        fitting = [file for file in at.get(number, []) if _follows(file, chain[-1] if chain else None)]
        if not fitting:
            break
        # A writer that was paused can publish under a number that the move of the true file set free, and name the
        # same predecessor. The true one is what the next file names; where both are named, the first of them.
        named = {above.record.previous for above in at.get(number + 1, []) if above.record}
        chain.append(max(fitting, key=lambda file: file.batch in named))
    taken = {file.number: file for file in chain}
    stale = [file for number in sorted(taken) for file in at[number] if file is not taken[number]]
    return Chain(tuple(chain), tuple(stale), next(iter(at.get(start + len(chain), ())), None))


def _follows(file: Chained, before: Chained | None) -> bool:
    if file.record is None:
        # A foreign publisher tells nothing but the number; of text behind one of ours nobody can tell whose it is.
        return before is None or before.record is None or not file.is_text
    if before is None:
        return (file.record.previous is None) == (file.number == 1)
    return file.record.previous == (before.batch if before.record else FOREIGN)
