"""Rules of the records: which files belong to the folder's life and follow each other. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from openmirror_writer.chain import follow, is_of_generation
from openmirror_writer.check.findings import REPAIR, Finding
from openmirror_writer.check.look import SeenTable
from openmirror_writer.check.seen import SeenFile
from openmirror_writer.layout import GENERATION

_LOAD_AGAIN = "drop_table, then load again"


@dataclass(frozen=True)
class Judged:
    """What the records say.

    Attributes:
        findings: What is wrong with them.
        rejected: Files that do not count: stale ones, and those under a number that was used before.
    """

    findings: tuple[Finding, ...]
    rejected: frozenset[SeenFile]


def judge_records(seen: SeenTable, files: Collection[SeenFile]) -> Judged:
    """Tell which files do not belong where they stand.

    Args:
        seen: The table's folder.
        files: Its data files, moved ones first among those of one number.
    """
    path, generation = seen.path(GENERATION), seen.generation
    if generation is None and GENERATION in seen.files:
        message = "_generation.json does not name the life of the folder"
        return Judged((Finding("error", "record.1", message, _LOAD_AGAIN, file=path),), frozenset())
    if generation is None and any(file.record for file in files):
        message = "files have records, and _generation.json is gone: writers are refused"
        return Judged((Finding("error", "record.2", message, _LOAD_AGAIN, file=path),), frozenset())
    late = [file for file in files if not is_of_generation(file, generation)]
    ours = [file for file in files if is_of_generation(file, generation)]
    findings = [_of_another_life(file, generation) for file in late]
    wrong = {file for file in ours if file.record and file.record.number != file.number}
    findings += [_wrong_number(file) for file in ours if file in wrong]
    lost = _without_their_records(ours)
    findings += [_lost(file) for file in lost]
    rejected = set(late)
    for run in _runs(_known(ours, lost)):
        chain = follow(run, run[0].number)
        taken = {file.number: file for file in chain.files}
        findings += [_second(file, taken[file.number]) for file in chain.stale]
        rejected |= set(chain.stale)
        if chain.fork is not None and chain.fork not in wrong:
            findings.append(_fork(chain.fork, chain.files[-1] if chain.files else None))
    return Judged(tuple(findings), frozenset(rejected))


def _without_their_records(files: Collection[SeenFile]) -> list[SeenFile]:
    """Return the text files without a record that another file's record names as the one before."""
    named = {file.record.previous for file in files if file.record}
    return [file for file in files if file.readable and file.record is None and file.sha256 in named]


def _known(files: Iterable[SeenFile], lost: Collection[SeenFile]) -> list[SeenFile]:
    """Return the files below the first one whose record cannot be read: what follows that one nobody can tell."""
    numbered = [file for file in files if file.number]
    unknown = min((file.number for file in numbered if not file.readable or file in lost), default=None)
    return [file for file in numbered if unknown is None or file.number < unknown]


def _runs(files: Iterable[SeenFile]) -> Iterator[list[SeenFile]]:
    """Yield the files between two gaps, by number."""
    run: list[SeenFile] = []
    for file in sorted(files, key=lambda each: each.number):  # stable: moved ones stay first
        if run and file.number > run[-1].number + 1:
            yield run
            run = []
        run.append(file)
    if run:
        yield run


def _of_another_life(file: SeenFile, generation: str | None) -> Finding:
    theirs = file.record.generation if file.record else None
    message = f"stale: the file is of generation {theirs}, the folder of {generation}; it came late, after a drop"
    return Finding("error", "record.3", message, REPAIR, file=file.path, identity=file.entry.identity)


def _second(file: SeenFile, taken: SeenFile) -> Finding:
    if file.record is None:
        message = f"the number {file.number} was used before, by {taken.path}"
        return Finding("error", "4.5", message, "publish it under the next number", file=file.path)
    message = f"stale: {taken.path} is the file of this number; a writer that was paused has published late"
    return Finding("error", "record.4", message, REPAIR, file=file.path, identity=file.entry.identity)


def _lost(file: SeenFile) -> Finding:
    message = "the record that stood beside the file is gone: what follows cannot be told from a fork"
    return Finding("error", "record.7", message, f"put it back, or {_LOAD_AGAIN}", file=file.path)


def _wrong_number(file: SeenFile) -> Finding:
    number = file.record.number if file.record else None
    message = f"the record says that this is file {number}: it was copied or renamed"
    return Finding(
        "error", "record.6", message, "delete it, and publish the right file under this name", file=file.path
    )


def _fork(file: SeenFile, before: SeenFile | None) -> Finding:
    follows = before.path if before else "the beginning of the table"
    message = f"a fork: the file does not continue {follows}; two writers have published"
    remedy = "stop one of them; delete the file that is not yours, or drop_table and load again"
    return Finding("error", "record.5", message, remedy, file=file.path)
