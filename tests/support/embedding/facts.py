"""Two hundred facts about invented people, and questions about most of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final


@dataclass(frozen=True)
class Fact:
    """A fact, and how somebody asks for it who does not remember the words."""

    text: str
    question: str | None


def _read() -> tuple[Fact, ...]:
    lines = Path(__file__).with_name("facts.txt").read_text(encoding="utf-8").splitlines()
    parts = [line.partition("|") for line in lines if line and not line.startswith("#")]
    return tuple(Fact(text.strip(), asked.strip() or None) for text, _, asked in parts)


FACTS: Final = _read()
