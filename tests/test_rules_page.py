"""docs/rules_tests.md is what the tests say, and each rule is proved on each side, or it is said why not."""

from __future__ import annotations

from pathlib import Path

import pytest

from openmirror_writer.check import RULES
from tests import rulebook, rules_page

Proofs = list[rules_page.Proof]
Places = set[tuple[str, str]]


@pytest.fixture(scope="module")
def proofs() -> Proofs:
    return rules_page.proofs()


@pytest.fixture(scope="module")
def told(proofs: Proofs) -> Places:
    """The cells that are not empty."""
    return {(proof.number, proof.side) for proof in proofs} | set(rulebook.reasons()) | set(rulebook.unseen())


def test_the_page_is_what_the_tests_say(proofs: Proofs) -> None:
    assert rules_page.PAGE.read_text(encoding="utf-8") == rules_page.page(proofs), "run python -m tests.rules_page"


def test_each_rule_has_a_test_or_a_reason_on_each_side_but_where_something_is_not_built(told: Places) -> None:
    every = {(number, side) for number in rulebook.wordings() for side in rules_page.COLUMNS}
    assert every - told - rulebook.OPEN == set()


def test_each_rule_has_a_test_or_a_reason_on_some_side(told: Places) -> None:
    assert rulebook.wordings().keys() - {number for number, _ in told} == set()


def test_no_test_names_a_rule_or_a_side_that_does_not_exist(proofs: Proofs) -> None:
    known, sides = rulebook.wordings(), rules_page.COLUMNS
    assert [proof for proof in proofs if proof.number not in known or proof.side not in sides] == []


def test_no_reason_is_given_for_what_a_test_proves_or_for_a_rule_that_does_not_exist(proofs: Proofs) -> None:
    proved, known = {(proof.number, proof.side) for proof in proofs}, rulebook.wordings()
    assert [place for place in rulebook.reasons() if place in proved or place[0] not in known] == []


def test_the_statements_are_l1_to_l63_and_name_rules_that_exist() -> None:
    assert list(rulebook.STATEMENTS) == [f"L{number}" for number in range(1, 64)]
    named = {rule for statement in rulebook.STATEMENTS.values() for rule in statement.rules}
    assert named <= RULES.keys()


def test_a_mark_that_cannot_be_read_from_the_source_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules_page, "ROOT", tmp_path)
    file = tmp_path / "test_elsewhere.py"
    file.write_text('@pytest.mark.rule("4.2")\ndef test_x(): ...\n')
    with pytest.raises(ValueError, match="test_elsewhere.py is on no side"):
        list(rules_page.marks(file))
    file.write_text("@pytest.mark.rule(NUMBER, on='mirror')\ndef test_x(): ...\n")
    with pytest.raises(ValueError, match="malformed"):
        list(rules_page.marks(file))
    file.write_text("@pytest.mark.rule('4.2', 'L37', on=('mirror', 'check'))\ndef test_a_b(): ...\n")
    assert [(proof.number, proof.side, proof.words) for proof in rules_page.marks(file)] == [
        ("4.2", "mirror", "a b"),
        ("4.2", "check", "a b"),
        ("L37", "mirror", "a b"),
        ("L37", "check", "a b"),
    ]
