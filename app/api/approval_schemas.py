"""What clients get about questions to their person, and how they decide them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, model_validator

from app.api.schemas import QueryModel, StrictModel
from app.runs.approvals import ApprovalState, DecisionWord, Kind
from app.runs.deciding import LONGEST_REASON

_FIELDS: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    "approve": (frozenset({"arguments_sha256"}), frozenset({"scope"})),
    "edit": (frozenset({"arguments_sha256", "arguments"}), frozenset()),
    "reject": (frozenset(), frozenset({"arguments_sha256", "reason"})),
    "answer": (frozenset({"replies"}), frozenset({"arguments_sha256"})),
    "happened": (frozenset(), frozenset({"arguments_sha256", "reason"})),
    "repeat": (frozenset({"arguments_sha256"}), frozenset()),
    "leave_out": (frozenset(), frozenset({"arguments_sha256", "reason"})),
}
"""What each decision needs, and what else it may come with."""

APPROVE_EXAMPLE: dict[str, Any] = {
    "decision": "approve",
    "arguments_sha256": "0f9b1a5ee9a6c6f9a1d7e3b0c2d4f6a8b0c1d2e3f4a5b6c7d8e9f0a1b2c3d4e5",
}
_EXAMPLE: dict[str, Any] = {
    "approval_id": "3a1f9f64-1c0e-4a52-9f0e-6d0c7b1b2a10",
    "kind": "call",
    "thread_id": "0b0e4b9c-6a39-4b8c-9d51-7a1e5a1c9f10",
    "thread_title": "The broken lamp",
    "run_id": "6f1c1f0e-6f0f-4f8a-8f3b-0d4e0a8f6a51",
    "interrupt_id": "6d1f0c8e2b7a4f35b0c9d8e7f6a5b4c3",
    "message_id": "run--0195d1c2-6a39-7b8c-9d51-7a1e5a1c9f10",
    "tool_call_id": "call_1",
    "server": "tickets",
    "tool": "create",
    "arguments": {"title": "The lamp is broken"},
    "arguments_sha256": APPROVE_EXAMPLE["arguments_sha256"],
    "asked": {
        "schema": {"type": "object", "properties": {"title": {"type": "string"}}},
        "tool_description": "Opens a ticket.",
        "model_said": "I will open a ticket.",
        "changed": [],
    },
    "decisions": ["approve", "edit", "reject"],
    "subject": None,
    "may_open_thread": True,
    "state": "open",
    "decision": None,
    "decided_arguments": None,
    "for_thread": False,
    "reason": None,
    "late_outcome": None,
    "created_at": "2026-03-01T10:15:00.000000Z",
    "expires_at": "2026-03-31T10:15:00.000000Z",
    "decided_at": None,
}


class ApprovalQuery(QueryModel):
    """Which questions: those that match every given field."""

    state: ApprovalState | Literal["all"] = "open"
    kind: Kind | None = None
    thread_id: UUID | None = None
    run_id: UUID | None = None
    server: Annotated[str, Field(max_length=200)] | None = None


class ApprovalPage(ApprovalQuery):
    """Which questions to list."""

    limit: Annotated[int, Field(ge=1, le=100)] = 50
    offset: Annotated[int, Field(ge=0, le=1_000_000)] = 0


class ReplyBody(StrictModel):
    """What is answered to one question of a tool's server."""

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, Any] | None = Field(None, description="The form, where it is accepted.")


class DecisionBody(StrictModel):
    """A decision, with what belongs to it and nothing else."""

    decision: DecisionWord = Field(description="One of the question's `decisions`.")
    arguments_sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = Field(
        None,
        description="That of the arguments which the person saw; needed by `approve`, `edit` and"
        " `repeat`, and checked wherever it is sent.",
    )
    arguments: dict[str, Any] | None = Field(
        None, description="Of `edit`: what the call is made with instead, the whole of it."
    )
    reason: Annotated[str, Field(min_length=1, max_length=LONGEST_REASON)] | None = Field(
        None, description="Of `reject`, `happened` and `leave_out`: in words, for the model."
    )
    replies: dict[str, ReplyBody] | None = Field(
        None, description="Of `answer`: one to each question, by its `key`."
    )
    scope: Literal["call", "thread"] | None = Field(
        None,
        description="Of `approve`. With `thread`, where `may_open_thread`, calls like it are not"
        " asked about in this conversation again. Default: `call`.",
    )

    @model_validator(mode="after")
    def _holds_what_belongs_to_it(self) -> Self:
        needed, possible = _FIELDS[self.decision]
        given = {name for name, value in self if value is not None} - {"decision"}
        if missing := sorted(needed - given):
            raise ValueError(f"`{self.decision}` needs `{missing[0]}`.")
        if others := sorted(given - needed - possible):
            raise ValueError(f"`{others[0]}` is not for `{self.decision}`.")
        return self


class LateOutcomeView(BaseModel):
    """What a server answered to a call after its time, when its person had been asked already."""

    result: Any = Field(description="As the model would have been given it.")
    outcome: str | None = Field(description="As in the messages of calls: `ok`, `error`, `cut`.")
    at: datetime


class ApprovalView(BaseModel):
    """A question to a person about one call of a tool, and what became of it."""

    model_config = ConfigDict(json_schema_extra={"example": _EXAMPLE})

    approval_id: UUID
    kind: Kind = Field(
        description="`call`: may it be made? `elicitation`: its server asks something. `in_doubt`:"
        " it was begun, and nobody knows what came of it."
    )
    thread_id: UUID
    thread_title: str | None
    run_id: UUID = Field(description="The run that waits, and goes on with its last decision.")
    interrupt_id: str = Field(description="Under which the thread's state has the question too.")
    message_id: str = Field(description="Of the model's message that makes the call.")
    tool_call_id: str
    server: str | None = Field(description="Null: the tool comes with the service.")
    tool: str = Field(description="As its server calls it.")
    arguments: dict[str, Any] = Field(description="Exactly those that the call is made with.")
    arguments_sha256: str
    asked: dict[str, Any] = Field(
        description="What else is to be shown. Of a call: `schema`, `tool_description`, what the"
        " model said with it (`model_said`: its own words), what has `changed` since it was"
        " approved before. Of an elicitation: `questions`. Of one in doubt: what is `known`."
    )
    decisions: list[DecisionWord] = Field(description="Those that can be taken.")
    subject: str | None = Field(
        description="What approving it opens for the rest of the conversation: empty for the tool,"
        " or the host that it turns to. Null: this call alone, unless `scope` says otherwise."
    )
    may_open_thread: bool = Field(description="Whether `scope: thread` can be chosen.")
    state: ApprovalState
    decision: DecisionWord | None
    decided_arguments: dict[str, Any] | None = Field(description="Those of an `edit`.")
    for_thread: bool = Field(description="Whether it was approved for the whole conversation.")
    reason: str | None
    late_outcome: LateOutcomeView | None = Field(
        description="Of one in doubt: what was heard of it after its person had been asked."
    )
    created_at: datetime
    expires_at: datetime = Field(description="After it, nobody can decide: it counts as rejected.")
    decided_at: datetime | None = Field(description="When it was decided, or closed otherwise.")
