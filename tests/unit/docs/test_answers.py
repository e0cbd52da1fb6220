"""Every answer names the code that makes it true and a test that shows it."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest

from tests.unit.docs.pages import DOCS, ROOT


@dataclass(frozen=True)
class Answer:
    """One question with what is said about it."""

    question: str
    code: tuple[str, ...]
    tests: tuple[tuple[str, str], ...]


_BLOCK = re.compile(r"^\*\*(.+?)\*\*\n(.*?)^Code: (.+?)\nTest: (.+?)$", re.MULTILINE | re.DOTALL)
_TEST = re.compile(r"`(tests/[\w/]+\.(?:py|ts|tsx))` `(\w+)`")
TEXT = (DOCS / "answers.md").read_text(encoding="utf-8")
ANSWERS = [
    Answer(question, tuple(re.findall(r"`([^`]+)`", code)), tuple(_TEST.findall(tests)))
    for question, _, code, tests in _BLOCK.findall(TEXT)
]


def test_every_question_has_an_answer() -> None:
    assert len(ANSWERS) == len(re.findall(r"^\*\*.+\*\*$", TEXT, re.MULTILINE)) > 0


@pytest.mark.parametrize("answer", ANSWERS, ids=[answer.question for answer in ANSWERS])
def test_an_answer_names_code_and_a_test_that_exist(answer: Answer) -> None:
    assert answer.code
    assert [path for path in answer.code if not (ROOT / path).exists()] == []
    assert answer.tests
    for path, name in answer.tests:
        assert f"def {name}(" in (ROOT / path).read_text(encoding="utf-8"), (path, name)
