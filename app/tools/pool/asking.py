"""Questions of a server in the middle of a call: answered with what the person said before.

Servers of the protocol of 2026 answer a call with questions, and are called again with replies.
Older ones ask over the connection while the call goes on, and do not say for which call; so they
are answered only where there is no doubt.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import mcp_types as wire

from app.tools.pool.listing import MAX_SCHEMA_BYTES
from app.tools.questions import Asked, CallQuestions, Question, Reply

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MAX_MESSAGE = 4096
"""Characters of a question; a longer one is answered with ``cancel``."""
MAX_QUESTIONS = 16
"""Of one call."""

_CANCEL = wire.ElicitResult(action="cancel")


class Refused(Exception):
    """A server wants something that is not offered: the model, or the user's folders."""


class Asking:
    """The calls under way on one connection, and what they are asked."""

    def __init__(self) -> None:
        self._calls: list[CallQuestions | None] = []

    @contextmanager
    def during(self, questions: CallQuestions | None) -> Iterator[None]:
        """A call is under way, whose questions are these; None where nobody could be asked."""
        self._calls.append(questions)
        try:
            yield
        finally:
            # By identity: two calls without questions of their own are equal.
            index = next(i for i, each in enumerate(self._calls) if each is questions)
            del self._calls[index]

    async def answer(
        self,
        context: object,  # noqa: ARG002 - says nothing of the call
        params: wire.ElicitRequestParams,
    ) -> wire.ElicitResult:
        """Answer a question that came over the connection.

        One that the person has not answered yet is left open and answered with ``cancel``.
        """
        if len(self._calls) != 1:
            return _CANCEL
        reply = self._reply(params, self._calls[0])
        return _CANCEL if reply is None else _result(reply)

    def responses(
        self, requests: Mapping[str, wire.InputRequest], questions: CallQuestions | None
    ) -> wire.InputResponses:
        """What goes with the call when it is made again.

        Raises:
            Asked: the person has not answered all of it yet.
            Refused: something else than a question was asked.
        """
        responses: wire.InputResponses = {}
        for key, request in requests.items():
            if not isinstance(request, wire.ElicitRequest):
                raise Refused
            reply = self._reply(request.params, questions)
            responses[key] = _CANCEL if reply is None else _result(reply)
        if questions is not None and questions.open:
            raise Asked(questions.open)
        return responses

    @staticmethod
    def _reply(params: wire.ElicitRequestParams, questions: CallQuestions | None) -> Reply | None:
        """The person's reply; None where there is none yet, and it is written down as open."""
        question = _question(params)
        if question is None or questions is None:
            return None
        reply = questions.replies.get(question.key)
        known = {each.key for each in questions.open}
        if reply is None and question.key not in known and len(known) < MAX_QUESTIONS:
            questions.open.append(question)
        return reply


def _question(params: wire.ElicitRequestParams) -> Question | None:
    """What is asked, if it can be put before a person."""
    if len(params.message) > MAX_MESSAGE:
        return None
    if isinstance(params, wire.ElicitRequestURLParams):
        return Question(params.message, None, params.url) if _is_web(params.url) else None
    schema = params.requested_schema
    if len(repr(schema)) > MAX_SCHEMA_BYTES:
        return None
    return Question(params.message, schema)


def _is_web(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and len(url) <= MAX_MESSAGE


def _result(reply: Reply) -> wire.ElicitResult:
    accepted = reply.action == "accept" and reply.content is not None
    content = dict(reply.content or {}) if accepted else None
    return wire.ElicitResult(action=reply.action, content=content)
