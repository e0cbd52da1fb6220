"""From what a client of LangGraph's answers to decisions about what a run asks its person. Pure.

The built-in agent asks in LangChain's shape of a person in the loop, and in two of its own. What it
shows is the interrupt's value: a decision is about the arguments that stand in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from app.agent.elicitation import ELICITATION, InvalidReply
from app.runs.deciding import LONGEST_REASON, Decision, InvalidDecision
from tenancy.errors import InvalidInput, NothingWaits

if TYPE_CHECKING:
    from app.runs.approvals import Approval

_EDITED = ("edited_action", "editedAction")
"""LangGraph's JavaScript client sends either, or both."""
_BESIDE_TYPE = {"approve": frozenset[str](), "edit": frozenset(_EDITED), "reject": {"message"}}
_OF_DOUBT = ("happened", "repeat", "leave_out")

Json = Mapping[str, Any]


def decisions_for(
    answers: Json, asked: Mapping[str, Json], approvals: Sequence[Approval]
) -> list[Decision]:
    """What answers, by the ids of their interrupts, decide of what these ask.

    ``asked`` are the interrupts' values, by id; ``approvals`` the questions of their run. What is
    decided just so already is left out.

    Raises:
        NothingWaits: what they answer is not open.
        InvalidDecision: an answer does not fit what was asked; says where.
        InvalidReply: one to a tool's server does not.
    """
    rows = {(each.interrupt_id, each.tool_call_id): each for each in approvals}
    decisions: list[Decision] = []
    for interrupt_id, answer in answers.items():
        for call_id, decided in _decided(asked[interrupt_id], answer):
            row = rows.get((interrupt_id, call_id))
            if row is None:
                raise NothingWaits
            if not _stands(row, decided):
                decisions.append(Decision(approval_id=row.approval_id, **decided))
    if not decisions:
        raise NothingWaits
    return decisions


def _stands(row: Approval, decided: Json) -> bool:
    return (row.decision, row.decided_arguments, row.replies) == (
        decided["decision"],
        decided.get("arguments"),
        decided.get("replies"),
    )


def _decided(value: Json, answer: object) -> Iterator[tuple[str, dict[str, Any]]]:
    """What an answer decides of each call, by the call's id."""
    if "action_requests" in value:
        return _of_calls(value["action_requests"], answer)
    if value.get("type") == ELICITATION:
        return _of_questions(value["calls"], answer)
    return _of_doubts(value["calls"], answer)


def _of_calls(requests: Sequence[Json], answer: object) -> Iterator[tuple[str, dict[str, Any]]]:
    if not isinstance(answer, Mapping) or set(answer) != {"decisions"}:
        raise InvalidDecision("The answer is `{decisions: […]}`.")
    decisions = answer["decisions"]
    if not isinstance(decisions, list) or len(decisions) != len(requests):
        raise InvalidDecision(
            f"`decisions` has one for each action request, in their order: {len(requests)}."
        )
    for number, (request, given) in enumerate(zip(requests, decisions, strict=True)):
        yield request["tool_call_id"], _of_call(request, given, f"decisions[{number}]")


def _of_call(request: Json, given: object, where: str) -> dict[str, Any]:
    if not isinstance(given, Mapping) or given.get("type") not in [*_BESIDE_TYPE]:
        raise InvalidDecision(f"`{where}.type` is one of {', '.join(_BESIDE_TYPE)}.")
    if not {"type"} | _BESIDE_TYPE[given["type"]] >= set(given):
        raise InvalidDecision(f"`{where}` has a field that is not for `{given['type']}`.")
    decided = {"decision": given["type"], "arguments_sha256": _shown(request)}
    if given["type"] == "edit":
        decided["arguments"] = _edited(request, given, where)
    elif given["type"] == "reject":
        decided["reason"] = _reason(given.get("message"), f"{where}.message")
    return decided


def _edited(request: Json, given: Json, where: str) -> Json:
    """The arguments of an edited action, which is a call of the same tool."""
    actions = [given[name] for name in _EDITED if name in given]
    if not actions or any(action != actions[0] for action in actions):
        raise InvalidDecision(f"`{where}` needs one `edited_action`.")
    action, where = actions[0], f"{where}.edited_action"
    if not isinstance(action, Mapping) or set(action) != {"name", "args"}:
        raise InvalidDecision(f"`{where}` is `{{name, args}}`.")
    if action["name"] != request["name"]:
        raise InvalidDecision(f"`{where}.name` is another tool than the one that is asked about.")
    if not isinstance(action["args"], Mapping):
        raise InvalidDecision(f"`{where}.args` is an object.")
    arguments: Json = action["args"]
    return arguments


def _of_questions(calls: Sequence[Json], answer: object) -> Iterator[tuple[str, dict[str, Any]]]:
    for call, given in _by_call(calls, answer, "replies", InvalidReply):
        decided = {"decision": "answer", "replies": given}
        yield call["tool_call_id"], {**decided, "arguments_sha256": _shown(call)}


def _of_doubts(calls: Sequence[Json], answer: object) -> Iterator[tuple[str, dict[str, Any]]]:
    for call, given in _by_call(calls, answer, "answers", InvalidDecision):
        if not isinstance(given, Mapping) or not {"decision"} <= set(given) <= {
            "decision",
            "reason",
        }:
            raise InvalidDecision("An answer is `{decision, reason?}`.")
        if given["decision"] not in _OF_DOUBT:
            raise InvalidDecision(f"An answer's `decision` is one of {', '.join(_OF_DOUBT)}.")
        decided = {"decision": given["decision"], "arguments_sha256": _shown(call)}
        if given["decision"] != "repeat":
            decided["reason"] = _reason(given.get("reason"), "reason")
        elif "reason" in given:
            raise InvalidDecision("`reason` is not for `repeat`.")
        yield call["tool_call_id"], decided


def _shown(call: Json) -> bytes:
    return bytes.fromhex(call["arguments_sha256"])


def _by_call(
    calls: Sequence[Json], answer: object, name: str, error: type[InvalidInput]
) -> Iterator[tuple[Json, object]]:
    """The calls that are answered, each with what is said to it; the others stay open."""
    said = answer.get(name) if isinstance(answer, Mapping) and set(answer) == {name} else None
    if not isinstance(said, Mapping) or not said:
        raise error(f"The answer is `{{{name}: {{tool_call_id: …}}}}`, with one call at least.")
    asked = {call["tool_call_id"]: call for call in calls}
    if not asked.keys() >= set(said):
        raise error(f"`{name}` has a call that is not asked about.")
    for call_id, given in said.items():
        yield asked[call_id], given


def _reason(given: object, where: str) -> str | None:
    if given is None or given == "":
        return None
    if not isinstance(given, str) or len(given) > LONGEST_REASON:
        raise InvalidDecision(f"`{where}` is text of at most {LONGEST_REASON} characters.")
    return given
