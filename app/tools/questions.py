"""Questions that a server asks in the middle of a call (elicitation), and people's answers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal

from app.tools.waiting import MustWait


@dataclass(frozen=True, slots=True)
class Question:
    """What a server asks. Its text is the server's, not ours and not the model's."""

    message: str
    schema: Mapping[str, Any] | None
    """JSON schema of the form; None where the person is sent to ``url``."""
    url: str | None = None

    @property
    def key(self) -> str:
        """The same question has the same key when the call is made again."""
        said = json.dumps([self.message, self.schema, self.url], sort_keys=True)
        return hashlib.sha256(said.encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Reply:
    """What the person answered."""

    action: Literal["accept", "decline", "cancel"]
    content: Mapping[str, Any] | None = None


@dataclass(slots=True)
class CallQuestions:
    """One call's questions: those that are answered, and those that it stopped at."""

    replies: Mapping[str, Reply] = field(default_factory=dict)
    """By the question's key."""
    open: list[Question] = field(default_factory=list)


questions_of_call: ContextVar[CallQuestions | None] = ContextVar("questions_of_call", default=None)
"""Set around a call: what the connection's elicitation handler looks into."""


class Asked(MustWait):
    """A call stopped at questions of its server; it is made again once they are answered."""

    def __init__(self, questions: Sequence[Question]) -> None:
        super().__init__("the server asks")
        self.questions = tuple(questions)
