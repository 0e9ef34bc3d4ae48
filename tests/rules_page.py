"""docs/rules_tests.md: which tests prove each rule, as their marks say. `python -m tests.rules_page` writes it.

A test names what it proves: ``@pytest.mark.rule("4.2", "L37")``. It is on the side of its folder, see `SIDES`, unless
the mark says otherwise: ``on="mirror"``, ``on=("producer", "mirror")``. Marks are read from the source, so their
arguments are literals. `check` has a cell for each rule that tests/check/planted.py breaks.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.check.planted import PLANTED
from tests.rulebook import STATEMENTS, Side, reasons, unseen, wordings

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "rules_tests.md"

_PRODUCER: tuple[Side, ...] = ("producer",)
_MIRROR: tuple[Side, ...] = ("mirror",)
_CHECK: tuple[Side, ...] = ("check",)
SIDES: dict[str, tuple[Side, ...]] = {
    "tests/check": _CHECK,
    "tests/formats": _PRODUCER,
    "tests/formats/test_text_reader.py": _MIRROR,
    "tests/rows": _PRODUCER,
    "tests/spark": _MIRROR,
    "tests/storage": _PRODUCER,
    "tests/test_chain.py": _MIRROR,
    "tests/test_changes.py": _PRODUCER,
    "tests/test_column_types.py": _PRODUCER,
    "tests/test_layout.py": _PRODUCER,
    "tests/test_leftovers.py": _PRODUCER,
    "tests/test_lifecycle.py": _PRODUCER,
    "tests/test_metadata.py": _PRODUCER,
    "tests/test_record.py": _PRODUCER,
    "tests/test_replay.py": _MIRROR,
    "tests/test_schema.py": _PRODUCER,
    "tests/test_worked_examples.py": ("producer", "mirror", "check"),
    "tests/test_zone.py": _PRODUCER,
    "tests/writer": _PRODUCER,
}
"""Folder or file to the sides that its tests are on; the longest name counts."""
COLUMNS: tuple[Side, ...] = ("producer", "mirror", "check")

_HEAD = """\
# The rules of a landing zone, and the tests that prove them

Made from the marks of the tests by `python -m tests.rules_page`; `tests/test_rules_page.py` keeps it true. The numbers
are those of [rules.md](rules.md), and behind them `L1` to `L63`: the statements of the page that documents the landing
zone, in short.

* *producer*: what the writer puts into a zone, and what it refuses.
* *mirror*: what becomes of it, in Delta tables or by `replay`.
* *check*: what is found in a folder. A number in front of the words: this rule is broken on purpose, and is the one
  thing found.

Behind a dash stands why a rule has no test on a side, or why no folder can show that it is broken. What an empty cell
would prove is not built yet.

| rule | in short | producer | mirror | check |
|---|---|---|---|---|
"""


class Proof(NamedTuple):
    """A test, or a rule broken on purpose, that proves a rule on one side."""

    number: str
    side: Side
    file: str
    words: str


def page(found: Sequence[Proof]) -> str:
    """Return the whole page, of what `proofs` found."""
    cells: dict[tuple[str, Side], list[str]] = {}
    for proof in found:
        cells.setdefault((proof.number, proof.side), []).append(f"[{proof.words}](../{proof.file})")
    for place, reason in (unseen() | reasons()).items():
        cells.setdefault(place, []).append(f"— ({reason})")
    lines = [
        [number, wording, *("; ".join(cells.get((number, side), [])) for side in COLUMNS)]
        for number, wording in wordings().items()
    ]
    return _HEAD + "".join(f"| {' | '.join(line)} |\n" for line in lines)


def proofs() -> list[Proof]:
    """Return what the tests prove, in the order of their files."""
    marked = [proof for path in sorted((ROOT / "tests").rglob("test_*.py")) for proof in marks(path)]
    return [*marked, *planted()]


def planted() -> list[Proof]:
    """Return a proof for each rule that is broken on purpose, and for each statement that says the same."""
    found = []
    for each in PLANTED:
        same = [number for number, statement in STATEMENTS.items() if each.rule in statement.rules]
        words = f"{each.rule} {each.what}".replace("<", "(").replace(">", ")")
        found += [Proof(number, "check", "tests/check/planted.py", words) for number in (each.rule, *same)]
    return found


def marks(path: Path) -> Iterator[Proof]:
    """Yield what the tests of one file prove.

    Raises:
        ValueError: A mark has an argument that is no literal, or its file is on no side.
    """
    file = path.relative_to(ROOT).as_posix()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef):
            words = node.name.removeprefix("test_").replace("_", " ")
            for number, side in _named(node, file):
                yield Proof(number, side, file, words)


def _named(test: ast.FunctionDef, file: str) -> Iterator[tuple[str, Side]]:
    for mark in test.decorator_list:
        if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.rule":
            on: Side | tuple[Side, ...] | None = next((ast.literal_eval(word.value) for word in mark.keywords), None)
            sides = _sides_of(file) if on is None else (on,) if isinstance(on, str) else on
            for number in mark.args:
                yield from ((ast.literal_eval(number), side) for side in sides)


def _sides_of(file: str) -> tuple[Side, ...]:
    known = [place for place in SIDES if file == place or file.startswith(f"{place}/")]
    if not known:
        msg = f"{file} is on no side: give its marks on=, or add it to SIDES"
        raise ValueError(msg)
    return SIDES[max(known, key=len)]


if __name__ == "__main__":
    PAGE.write_text(page(proofs()), encoding="utf-8")
