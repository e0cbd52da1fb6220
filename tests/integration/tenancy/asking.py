"""Runs that wait for their person's word on calls of tools."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

import asyncpg

from app.runs.approvals import Approval, ApprovalFilter, list_approvals
from app.runs.deciding import Decided, Decision, decide
from app.runs.events import settle_run
from app.tools.fingerprint import fingerprint
from tenancy.database.crossing import DispatchDatabase
from tenancy.database.tenant import TenantDatabase
from tenancy.principal import ClaimedRun, Principal
from tenancy.run_states import RunState
from tests.support.tenancy import claim_runs, make_thread, make_worker, queue_run

MONTH = 30 * 24 * 3600.0
SCHEMA = {
    "type": "object",
    "properties": {"title": {"type": "string"}, "weight": {"type": "number"}},
    "required": ["title"],
    "additionalProperties": False,
}
_BEGIN = "SELECT * FROM tenant.begin_attempt($1, $2, $3, $4)"
ARGUMENTS = {"title": "Trams are late"}


def asked_call(number: int = 1, **other: Any) -> dict[str, Any]:
    """A call as its run asks about it."""
    return {
        "interrupt_id": "0" * 32,
        "kind": "call",
        "message_id": "message",
        "tool_call_id": f"call-{number}",
        "server": "tickets",
        "tool": "create_ticket",
        "arguments": ARGUMENTS,
        "arguments_sha256": fingerprint(ARGUMENTS).hex(),
        "asked": {"schema": SCHEMA},
        "decisions": ["approve", "edit", "reject"],
        "subject": None,
        "policy_version": "p1",
        "schema_sha256": fingerprint(SCHEMA).hex(),
        "grant_version": None,
        "graph_version": "g1",
        **other,
    }


def asked_questions(**other: Any) -> dict[str, Any]:
    """A call whose server asks for a word."""
    schema = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
    question = {"key": "q", "message": "Which word?", "schema": schema, "url": None}
    return asked_call(
        kind="elicitation", decisions=["answer"], asked={"questions": [question]}, **other
    )


def in_doubt(**other: Any) -> dict[str, Any]:
    """A call that nobody knows the end of."""
    known = {"why": "lost", "started_at": "2026-01-01T00:00:00Z", "sent": 1}
    words = ["happened", "repeat", "leave_out"]
    return asked_call(kind="in_doubt", decisions=words, asked={"known": known}, **other)


@dataclass
class Asking:
    """One person's runs that ask, and what is decided of them."""

    tenants: TenantDatabase
    dispatch: DispatchDatabase
    superuser: asyncpg.Connection
    person: Principal
    threads: dict[UUID, UUID] = field(default_factory=dict)
    """Of each run."""
    worker: UUID = field(default_factory=uuid4)
    """The one that has claimed last."""

    async def run(self, thread_id: UUID | None = None) -> ClaimedRun:
        """A run that a worker holds."""
        thread_id = thread_id or await make_thread(self.tenants, self.person)
        run_id = (await queue_run(self.tenants, self.person, thread_id)).run_id
        self.threads[run_id] = thread_id
        return await self.claim()

    async def claim(self) -> ClaimedRun:
        """The one run that waits for a worker."""
        self.worker = await make_worker(self.dispatch)
        (run,) = await claim_runs(self.dispatch, self.worker, 10, 10)
        return run

    async def many_waiting(self, how_many: int, *asked: dict[str, Any]) -> list[list[Approval]]:
        """Runs that wait, each on a thread of its own: what each asks."""
        for _ in range(how_many):
            thread_id = await make_thread(self.tenants, self.person)
            await queue_run(self.tenants, self.person, thread_id)
        self.worker = await make_worker(self.dispatch)
        runs = await claim_runs(self.dispatch, self.worker, how_many)
        assert len(runs) == how_many
        for run in runs:
            await self.ask(run, *asked)
        return [await self.approvals(run.run_id) for run in runs]

    async def claim_all(self) -> list[ClaimedRun]:
        """Every run that waits for a worker."""
        return await claim_runs(self.dispatch, await make_worker(self.dispatch), 1000)

    async def ask(self, run: ClaimedRun, *asked: dict[str, Any], seconds: float = MONTH) -> None:
        """Have a run wait for its person's word on calls."""
        await settle_run(
            self.tenants, run, RunState.WAITING, 50, [], approvals=asked, expire_seconds=seconds
        )

    async def waiting(self, *asked: dict[str, Any], thread_id: UUID | None = None) -> UUID:
        """A run that waits: by default for one call's approval."""
        run = await self.run(thread_id)
        await self.ask(run, *(asked or (asked_call(),)))
        return run.run_id

    async def approvals(self, run_id: UUID) -> list[Approval]:
        """What a run asks or asked, by the calls' ids."""
        async with self.tenants.reading(self.person) as tx:
            found = await list_approvals(tx, ApprovalFilter(run_id=run_id), limit=100)
        return sorted(found, key=lambda each: each.tool_call_id)

    async def approval(self, run_id: UUID) -> Approval:
        """The one thing that a run asks or asked."""
        (asked,) = await self.approvals(run_id)
        return asked

    async def given(self) -> list[dict[str, Any]]:
        """What the next attempt of the one run that can go on begins with."""
        run = await self.claim()
        (row,) = await self.tenants.call(run, _BEGIN, run.run_id, run.fence, self.worker)
        given: list[dict[str, Any]] = row["approvals"]
        return given

    async def pass_time(self) -> None:
        """Let the time of every question be over, as if it had passed."""
        await self.superuser.execute(
            "UPDATE approvals SET expires_at = clock_timestamp() - interval '1 s'"
        )

    async def decide(self, run_id: UUID, *decisions: Decision, **other: Any) -> Decided:
        """Take a person's decisions."""
        return await decide(self.tenants, self.person, run_id, decisions, **other)

    async def state(self, run_id: UUID) -> str:
        """How a run stands."""
        return str(
            await self.superuser.fetchval("SELECT state FROM runs WHERE run_id = $1", run_id)
        )

    async def audit(self, *columns: str) -> list[tuple[Any, ...]]:
        """What is on record of the person, in order."""
        rows = await self.superuser.fetch(
            f"SELECT {', '.join(columns or ('action',))} FROM audit"
            " JOIN audit_references USING (reference) WHERE user_id = $1 ORDER BY audit_id",
            self.person.user_id,
        )
        return [tuple(row) for row in rows]

    async def texts(self) -> set[tuple[str, str]]:
        """What of it only the person may have written."""
        rows = await self.superuser.fetch("SELECT kind, text FROM audit_texts")
        return {(row["kind"], row["text"]) for row in rows}


def approve(approval: Approval, **other: Any) -> Decision:
    """Let the call be made as it was shown."""
    return Decision(approval.approval_id, "approve", approval.arguments_sha256, **other)
