"""Taking a person's decisions on what a run asks. The caller announces it afterwards.

Decisions are kept in the questions' rows alone, and that is where the worker reads them: nothing
that a client sends reaches a graph as an answer in any other way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID, uuid4

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from app.agent.elicitation import check_replies
from app.runs.approvals import Approval, ApprovalClosed, ApprovalFilter, list_approvals
from app.runs.runs import NO_KEY, Run, get_run
from app.tools.fingerprint import fingerprint
from app.tools.mcp.arguments import complaint_about
from app.tools.texts import with_numbers_kept
from tenancy.errors import (
    ApprovalChanged,
    ApprovalExpired,
    ApprovalNotFound,
    InvalidInput,
    RunNotFound,
    StoaError,
)
from tenancy.tables import runs

if TYPE_CHECKING:
    from app.runs.approvals import DecisionWord
    from app.runs.resuming import Resume
    from app.runs.runs import IdempotencyKey
    from tenancy.database.tenant import TenantDatabase, TenantRead
    from tenancy.principal import Owner

LONGEST_REASON = 2000
"""Characters: the model is told them."""
_SEEN = ("approve", "edit", "repeat")
"""Decisions by which the call is made: the person says what they have seen of it."""
_REASONED = ("reject", "happened", "leave_out")


class InvalidDecision(InvalidInput):
    """A question cannot be decided like that."""

    code = "invalid_decision"
    message = "This cannot be decided like that."


class InvalidArguments(InvalidInput):
    """A person's arguments do not fit the tool."""

    code = "invalid_arguments"
    message = "The arguments do not fit the tool."


@dataclass(frozen=True, slots=True)
class Decision:
    """What a person decides of one call."""

    approval_id: UUID
    decision: DecisionWord
    arguments_sha256: bytes | None = None
    """Of the arguments that they were shown. Needed where the call is to be made."""
    arguments: Mapping[str, Any] | None = None
    """All of them, with ``edit``."""
    reason: str | None = None
    """With ``reject``, ``happened`` and ``leave_out``; the model is told."""
    replies: Mapping[str, Any] | None = None
    """To each question of the tool's server by its key, with ``answer``."""
    scope: Literal["call", "thread"] = "call"
    """``thread``, with ``approve``: calls like it need no approval for the rest of the thread."""


@dataclass(frozen=True, slots=True)
class Decided:
    """What came of it."""

    approvals: tuple[Approval, ...]
    """Those that were decided on, as they stand."""
    run: Run
    resumed: bool
    """Whether the run goes on: nothing else of it is open."""
    after: int = 0
    """The last event of the run's log until then."""
    is_new: bool = True
    """False: an idempotency key brought back what was decided before."""


_DECIDE = "SELECT * FROM tenant.decide_approvals($1, $2, $3, $4, $5, $6, $7, $8)"
_REFUSE = "SELECT tenant.refuse_decision($1, $2, $3, $4)"


async def decide(
    database: TenantDatabase,
    owner: Owner,
    run_id: UUID,
    decisions: Sequence[Decision],
    *,
    resume: Resume | None = None,
    idempotency: IdempotencyKey | None = None,
) -> Decided:
    """Decide on open questions of one run, all or none; committed on return.

    With the last one the run goes on. Of several who decide at once, one does. What is refused is
    on record, and none of it takes effect. ``resume``, without answers, says what else is to be
    streamed from then on.

    Raises:
        ApprovalNotFound: one of them is not the person's, or not this run's.
        ApprovalClosed: one was decided before, or taken back; it says how.
        ApprovalExpired: the time to decide on one is over.
        ApprovalChanged: one asks about other arguments than the person has seen.
        InvalidDecision, InvalidArguments, InvalidReply: one cannot be decided like that.
        IdempotencyConflict: the key came with another request before.
        RunNotFound: the run was deleted meanwhile.
    """
    if len({each.approval_id for each in decisions}) != len(decisions) or not decisions:
        raise InvalidDecision("Each approval is decided once.")
    given = [await _checked(database, owner, run_id, each) for each in decisions]
    key = (idempotency.route, idempotency.key, idempotency.fingerprint) if idempotency else NO_KEY
    kept = None if resume is None else resume.as_json()
    (row,) = await database.call(owner, _DECIDE, run_id, given, kept, uuid4(), *key)
    ids = [each.approval_id for each in decisions] if row["refused"] is None else []
    ids = ids if row["approval_id"] is None else [row["approval_id"]]
    async with database.reading(owner) as tx:
        stand = await list_approvals(tx, ApprovalFilter(ids=ids), limit=len(decisions))
        if row["refused"] is not None:
            raise _refusal(row["refused"], stand)
        by_id = {each.approval_id: each for each in stand}
        return Decided(
            approvals=tuple(by_id[each] for each in ids if each in by_id),
            run=await _run_of(tx, row["run_id"]),
            resumed=row["resumed_at"] is not None,
            after=row["last_seq"] or 0,
            is_new=row["is_new"],
        )


async def _run_of(tx: TenantRead, run_id: UUID) -> Run:
    thread_id = await tx.scalar(sa.select(runs.c.thread_id).where(runs.c.run_id == run_id))
    if thread_id is None:
        raise RunNotFound
    return await get_run(tx, thread_id, run_id)


def _refusal(why: str, stand: Sequence[Approval]) -> StoaError:
    if why == "closed" and stand:
        return ApprovalClosed(stand[0])
    refusals: Mapping[str, type[StoaError]] = {
        "expired": ApprovalExpired,
        "changed": ApprovalChanged,
        "invalid": InvalidDecision,
    }
    return refusals.get(why, ApprovalNotFound)()


async def _checked(
    database: TenantDatabase, owner: Owner, run_id: UUID, decision: Decision
) -> dict[str, Any]:
    """A decision as the database takes it; one that does not fit its question is put on record.

    Of a question that is not open any more, nothing is looked at but that.
    """
    async with database.reading(owner) as tx:
        wanted = ApprovalFilter(run_id=run_id, ids=[decision.approval_id])
        found = await list_approvals(tx, wanted, limit=1)
        if not found:
            raise ApprovalNotFound
        kept = replace(
            decision,
            arguments=await _as_kept(tx, decision.arguments),
            replies=await _as_kept(tx, decision.replies),
        )
    try:
        if found[0].state == "open":
            _check(kept, found[0])
    except InvalidInput as error:
        await database.call(owner, _REFUSE, decision.approval_id, decision.decision, error.code)
        raise
    return _as_json(kept)


_AS_KEPT = sa.select(sa.cast(sa.bindparam("value", type_=JSONB), JSONB))


async def _as_kept(tx: TenantRead, value: Any) -> Any:  # noqa: ANN401 - JSON of any kind
    """JSON as the database gives it back: what a worker gets is what was checked."""
    if value is None:
        return None
    return with_numbers_kept(await tx.scalar(_AS_KEPT, {"value": value}))


def _as_json(decision: Decision) -> dict[str, Any]:
    edited = decision.arguments
    return {
        "approval_id": str(decision.approval_id),
        "decision": decision.decision,
        "arguments_sha256": decision.arguments_sha256 and decision.arguments_sha256.hex(),
        "arguments": edited,
        "decided_sha256": None if edited is None else fingerprint(edited).hex(),
        "reason": decision.reason,
        "replies": decision.replies,
        "scope": decision.scope,
    }


def _check(decision: Decision, asked: Approval) -> None:
    """See that a decision is one that can be taken, with what belongs to it and nothing else. Pure.

    Raises:
        InvalidDecision, InvalidArguments, InvalidReply: it is not.
    """
    word, edited = decision.decision, decision.arguments
    if word not in asked.decisions:
        raise InvalidDecision(f"This is decided by one of: {', '.join(asked.decisions)}.")
    if word in _SEEN and decision.arguments_sha256 is None:
        raise InvalidDecision("Say by `arguments_sha256` which arguments you have seen.")
    if (edited is not None) != (word == "edit"):
        raise InvalidDecision("`arguments` are for `edit`, which needs them.")
    if decision.reason is not None and word not in _REASONED:
        raise InvalidDecision(f"A reason is for one of: {', '.join(_REASONED)}.")
    if len(decision.reason or "") > LONGEST_REASON:
        raise InvalidDecision(f"A reason has at most {LONGEST_REASON} characters.")
    if (decision.replies is not None) != (word == "answer"):
        raise InvalidDecision("`replies` are for `answer`, which needs them.")
    if decision.scope == "thread" and (word != "approve" or asked.subject is None):
        raise InvalidDecision("This cannot be approved for the whole conversation.")
    if edited is not None and (wrong := complaint_about(edited, asked.asked.get("schema") or {})):
        raise InvalidArguments(wrong)
    if decision.replies is not None:
        check_replies(asked.asked.get("questions", []), decision.replies)
