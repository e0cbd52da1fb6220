"""Calls whose server asks the person something: how they are put to the person, and answered.

A call that stops at questions is no result and no failure. It is handed on in the state beside its
siblings' results, put to the person with all others that ask in one interrupt, and made again with
what was answered. Pure but for :func:`put_to_person`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from langgraph.types import interrupt

from app.agent.forms import check_content
from app.agent.state import AskingCall, ToolTask
from app.tools.questions import CallQuestions, Reply
from tenancy.errors import InvalidInput

if TYPE_CHECKING:
    from app.tools.calls import AgentTool
    from app.tools.questions import Question

ELICITATION = "elicitation"
"""The ``type`` of the interrupt's value."""
MOST_ROUNDS = 5
"""How often one call may come back to the person."""
MOST_QUESTIONS = 16
"""In one round of one call."""
MOST_QUESTION_BYTES = 128 * 1024
"""Of one question, as JSON."""
ASKED_TOO_MUCH = "The tool asked the person more than it may, and was not called again."

_ACTIONS = ("accept", "decline", "cancel")


class InvalidReply(InvalidInput):
    """What a person answered does not fit what they were asked."""

    code = "invalid_reply"
    message = "The answer does not fit what was asked."


def questions_for(task: ToolTask) -> CallQuestions:
    """What a call is made with: everything that the person has answered to its server so far."""
    replies = task.get("replies", {})
    return CallQuestions({key: Reply(**reply) for key, reply in replies.items()})


def stopped_at(task: ToolTask, questions: Sequence[Question], tool: AgentTool) -> AskingCall | None:
    """The call as it waits for the person; None where its server asks more than it may."""
    asked = [_question_json(question) for question in questions]
    rounds = task.get("rounds", 0) + 1
    too_large = any(len(json.dumps(each)) > MOST_QUESTION_BYTES for each in asked)
    if rounds > MOST_ROUNDS or not 0 < len(asked) <= MOST_QUESTIONS or too_large:
        return None
    return AskingCall(
        call=task["call"],
        message_id=task["message_id"],
        replies=dict(task.get("replies", {})),
        rounds=rounds,
        server=tool.server,
        tool=tool.own_name or tool.name,
        questions=asked,
    )


def put_to_person(calls: Sequence[AskingCall]) -> list[AskingCall]:
    """Interrupt the run, once for all calls; when it goes on, return them with the replies."""
    answer = interrupt({"type": ELICITATION, "calls": [_call_json(call) for call in calls]})
    return [_with_replies(call, answer["replies"][_id_of(call)]) for call in calls]


def answered_calls(calls: Sequence[AskingCall]) -> list[ToolTask]:
    """The calls that are to be made again."""
    return [
        ToolTask(
            call=call["call"],
            message_id=call["message_id"],
            replies=call["replies"],
            rounds=call["rounds"],
        )
        for call in calls
        if not call["questions"]
    ]


def check_replies(asked: Mapping[str, Any], given: object) -> None:
    """See that an answer is one to each question of an interrupt's value.

    Raises:
        InvalidReply: it is not; says where, and nothing of what was given.
    """
    replies = _only(given, {"replies"}, "The answer")["replies"]
    calls = {call["tool_call_id"]: call["questions"] for call in asked["calls"]}
    by_call = _only(replies, calls, "`replies`")
    for call_id, questions in calls.items():
        by_key = _only(by_call[call_id], {each["key"] for each in questions}, "A call's replies")
        for question in questions:
            _check_reply(by_key[question["key"]], question)


def _with_replies(call: AskingCall, replies: Mapping[str, Any]) -> AskingCall:
    return {**call, "questions": [], "replies": {**call["replies"], **replies}}


def _id_of(call: ToolTask) -> str:
    return call["call"]["id"] or ""


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


def _only(given: object, keys: Any, what: str) -> Mapping[str, Any]:  # noqa: ANN401 - set or dict
    """An object with exactly these keys."""
    if not isinstance(given, Mapping) or set(given) != set(keys):
        raise InvalidReply(f"{what} has one entry for each thing that was asked, and no other.")
    return given


def _question_json(question: Question) -> dict[str, Any]:
    return {
        "key": question.key,
        "message": question.message,
        "schema": None if question.schema is None else dict(question.schema),
        "url": question.url,
    }


def _call_json(call: AskingCall) -> dict[str, Any]:
    return {
        "server": call["server"],
        "tool": call["tool"],
        "tool_call_id": _id_of(call),
        "questions": call["questions"],
    }
