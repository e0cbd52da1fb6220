"""What a tool's server asks the person in the middle of a call. Pure.

A call that stops at questions is made again with everything that was answered to its server.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from app.agent.forms import check_content
from app.agent.state import AskingCall, ToolTask
from app.tools.fingerprint import fingerprint
from app.tools.questions import CallQuestions, Reply
from app.tools.texts import is_storable
from tenancy.errors import InvalidInput

if TYPE_CHECKING:
    from app.tools.questions import Question

ELICITATION = "elicitation"
"""The kind of question, and the ``type`` of the interrupt's value."""
MOST_QUESTIONS = 16
"""In one round of one call."""
MOST_QUESTION_BYTES = 128 * 1024
"""Of all of these together, as JSON: a turn may make many calls, and its state holds them."""

_ACTIONS = ("accept", "decline", "cancel")
_UNANSWERED = {"action": "cancel"}


class InvalidReply(InvalidInput):
    """What a person answered does not fit what they were asked."""

    code = "invalid_reply"
    message = "The answer does not fit what was asked."


def questions_for(task: ToolTask) -> CallQuestions:
    """What a call is made with: everything that the person has answered to its server so far."""
    replies = task.get("replies", {})
    return CallQuestions({key: Reply(**reply) for key, reply in replies.items()})


def elicited(questions: Sequence[Question]) -> dict[str, Any] | None:
    """What a call asks; None where its server asks more at once than it may, or what may not be."""
    asked = [_question_json(question) for question in questions]
    too_large = len(json.dumps(asked)) > MOST_QUESTION_BYTES
    if not 0 < len(asked) <= MOST_QUESTIONS or too_large or not is_storable(asked):
        return None
    return {"kind": ELICITATION, "questions": asked}


def elicitations(calls: Sequence[AskingCall]) -> dict[str, Any]:
    """The interrupt's value."""
    return {"type": ELICITATION, "calls": [_call_json(call) for call in calls]}


def replied(call: AskingCall, decision: Mapping[str, Any]) -> AskingCall:
    """The call with what its server is told: that nobody answers, where nobody did in time."""
    asked = (call["asks"] or {})["questions"]
    given = decision["replies"] or {each["key"]: _UNANSWERED for each in asked}
    return {**call, "asks": None, "replies": {**call.get("replies", {}), **given}}


def check_replies(questions: Sequence[Mapping[str, Any]], given: object) -> None:
    """See that an answer is one to each question of one call: ``{key: {action, content?}}``.

    Raises:
        InvalidReply: it is not; says where, and nothing of what was given.
    """
    keys = {each["key"] for each in questions}
    if not isinstance(given, Mapping) or set(given) != keys:
        raise InvalidReply("`replies` has one entry for each question, and no other.")
    for question in questions:
        _check_reply(given[question["key"]], question)


def _check_reply(reply: object, question: Mapping[str, Any]) -> None:
    if not isinstance(reply, Mapping) or not {"action"} <= set(reply) <= {"action", "content"}:
        raise InvalidReply("A reply is `{action, content?}`.")
    if reply["action"] not in _ACTIONS:
        raise InvalidReply(f"A reply's `action` is one of {', '.join(_ACTIONS)}.")
    content = reply.get("content")
    if reply["action"] != "accept" or question["schema"] is None:
        if content is not None:
            raise InvalidReply("`content` is for a form that was accepted.")
    elif (wrong := check_content(question["schema"], content)) is not None:
        raise InvalidReply(f"A reply's `content` does not fit the form: {wrong}.")


def _question_json(question: Question) -> dict[str, Any]:
    return {
        "key": question.key,
        "message": question.message,
        "schema": None if question.schema is None else dict(question.schema),
        "url": question.url,
    }


def _call_json(call: AskingCall) -> dict[str, Any]:
    made = call["call"]
    return {
        "server": call["server"],
        "tool": call["tool"],
        "tool_call_id": made["id"] or "",
        "message_id": call["message_id"],
        "arguments": made["args"],
        "arguments_sha256": fingerprint(made["args"]).hex(),
        "questions": (call["asks"] or {})["questions"],
    }
