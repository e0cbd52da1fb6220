"""A call of which nobody knows what came: the person's word on it, and a late outcome."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from app.runs.cancelling import cancel_runs
from app.runs.deciding import Decision
from app.tools.effects import Entry, Found, IntendedCall, Needs
from app.tools.fingerprint import fingerprint
from app.tools.ledger import Ledger
from app.tools.mcp.made import HAPPENED, LEFT_OUT, Made
from app.tools.servers import HttpTransport, McpServer, Trust
from app.tools.site import CallSite
from tenancy.database.crossing import DispatchDatabase
from tenancy.database.tenant import TenantDatabase
from tenancy.errors import LeaseLost
from tenancy.principal import ClaimedRun, Principal
from tests.integration.tenancy.asking import ARGUMENTS, SCHEMA, Asking, asked_call, in_doubt

CALL = IntendedCall(
    McpServer("tickets", HttpTransport("https://tickets.test/mcp")), "create_ticket", ARGUMENTS, 1
)
NEEDS = Needs(schema_sha256=fingerprint(SCHEMA), approval_version=0)
RESULT = {"content": "ticket 7", "outcome": "ok"}
REFUSED = {"content": "no such queue", "outcome": "error"}
LOST: dict[str, Any] = {"grant_version": 1}
ANOTHER_ACCOUNT = """
    INSERT INTO connections (user_id, server, grant_version)
    SELECT user_id, 'tickets', 2 FROM users
"""

SWITCHED_OFF = """
    INSERT INTO connections (user_id, server, enabled)
    SELECT user_id, 'tickets', false FROM users
"""
TRUSTED = replace(
    CALL,
    server=replace(
        CALL.server, trust=Trust(idempotent=frozenset({"*"}), idempotency_ttl_seconds=60)
    ),
)


@dataclass
class Desk:
    """A person's run, a call of which was begun and never heard of again."""

    asking: Asking
    ledger: Ledger = field(init=False)
    run: ClaimedRun = field(init=False)
    thread: UUID = field(init=False)
    key: UUID = field(init=False)
    site: CallSite = field(init=False)

    async def begin(self) -> None:
        """Begin it, as the run's first attempt did."""
        self.run = await self.asking.run()
        self.thread = self.asking.threads[self.run.run_id]
        self.ledger = Ledger(self.asking.tenants, self.run, self.thread)
        self.site = CallSite("message", "call-1", fingerprint(ARGUMENTS))
        begun = await self.ledger.begin(self.site, CALL, NEEDS)
        assert begun.key is not None
        self.key = begun.key

    async def ask(self, *more: dict[str, Any], interrupt: str = "1") -> UUID:
        """Put it before the person; the question's id."""
        asked = in_doubt(interrupt_id=interrupt, **LOST)
        await self.asking.ask(self.run, asked, *more)
        found = await self.asking.approvals(self.run.run_id)
        (question,) = [each for each in found if each.state == "open" and each.kind == "in_doubt"]
        return question.approval_id

    async def answer(self, word: Any, reason: str | None = None, interrupt: str = "1") -> None:
        """Put it before the person, who answers; then a worker goes on with the run."""
        await self.decide(await self.ask(interrupt=interrupt), word, reason)
        await self.go_on()

    async def decide(self, question: UUID, word: Any, reason: str | None = None) -> None:
        """Take the person's answer."""
        seen = fingerprint(ARGUMENTS) if word == "repeat" else None
        decision = Decision(question, word, seen, reason=reason)
        await self.asking.decide(self.run.run_id, decision)
        self.site = replace(self.site, doubt=question)

    async def go_on(self) -> None:
        """Have another worker take the run up."""
        self.run = await self.asking.claim()
        self.ledger = Ledger(self.asking.tenants, self.run, self.thread)

    async def told(self) -> Made | None:
        """What the model is told without the server; None: nothing yet."""
        earlier = await self.ledger.settle_doubt(self.site, ARGUMENTS)
        assert earlier is not None
        return None if earlier.result is None else Made.from_json(earlier.result)

    async def effect(self, *columns: str) -> tuple[Any, ...]:
        """What is on record."""
        row = await self.asking.superuser.fetchrow(f"SELECT {', '.join(columns)} FROM effects")
        assert row is not None
        return tuple(row)


@pytest.fixture
async def desk(
    tenants: TenantDatabase,
    dispatch: DispatchDatabase,
    superuser: asyncpg.Connection,
    alice: Principal,
) -> Desk:
    desk = Desk(Asking(tenants, dispatch, superuser, alice))
    await desk.begin()
    return desk


class TestAPersonsWord:
    @pytest.mark.parametrize(
        ("word", "reason", "text", "outcome", "state"),
        [
            ("happened", None, HAPPENED, "ok", "done"),
            (
                *("happened", "It is ticket 7.", f"{HAPPENED}\n\nThey say: It is ticket 7.", "ok"),
                "done",
            ),
            ("leave_out", None, LEFT_OUT, "lost", "failed"),
        ],
        ids=["that it happened", "that it did, and how", "that it is left out"],
    )
    async def test_is_what_the_model_is_told_and_nothing_is_sent(
        self, desk: Desk, word: str, reason: str | None, text: str, outcome: str, state: str
    ) -> None:
        await desk.answer(word, reason)
        for _ in range(2):
            assert await desk.told() == Made(text, outcome)  # type: ignore[arg-type] # a StrEnum
        assert (await desk.ledger.begin(desk.site, CALL, NEEDS)).found == state
        assert await desk.effect("state", "sent") == (state, 1)
        assert ("service", "settled") in await desk.asking.audit("actor", "action")

    async def test_to_repeat_it_holds_once_and_under_the_same_key(self, desk: Desk) -> None:
        await desk.answer("repeat")
        assert await desk.told() is None
        entry = await desk.ledger.begin(desk.site, CALL, NEEDS)
        assert (entry, entry.sent) == (Entry(Found.BEGUN, desk.key), 2)
        assert (await desk.ledger.begin(desk.site, CALL, NEEDS)).found is Found.IN_DOUBT
        assert await desk.effect("repeated_for", "sent") == (desk.site.doubt, 2)

    async def test_can_be_asked_for_again_after_a_repeat_that_nobody_heard_of_either(
        self, desk: Desk
    ) -> None:
        await desk.answer("repeat")
        await desk.ledger.begin(desk.site, CALL, NEEDS)
        await desk.answer("repeat", interrupt="2")
        entry = await desk.ledger.begin(desk.site, CALL, NEEDS)
        assert (entry, entry.sent) == (Entry(Found.BEGUN, desk.key), 3)

    @pytest.mark.parametrize(
        ("statement", "needs", "changed"),
        [
            (ANOTHER_ACCOUNT, NEEDS, "connection"),
            (SWITCHED_OFF, NEEDS, "connection"),
            ("SELECT 1", replace(NEEDS, schema_sha256=fingerprint({})), "schema"),
            ("UPDATE approvals SET expires_at = now() - interval '1 second'", NEEDS, "expired"),
        ],
        ids=["another account", "switched off", "another schema", "its time is over"],
    )
    async def test_to_repeat_it_does_not_hold_of_something_else(
        self, desk: Desk, statement: str, needs: Needs, changed: str
    ) -> None:
        await desk.answer("repeat")
        await desk.asking.superuser.execute(statement)
        entry = await desk.ledger.begin(desk.site, CALL, needs)
        assert (entry.found, entry.changed) == (Found.IN_DOUBT, (changed,))
        assert await desk.effect("sent") == (1,)

    async def test_needs_no_approval_beside_it(self, desk: Desk) -> None:
        await desk.answer("repeat")
        asking = replace(NEEDS, policy_version="p1", subject="")
        assert (await desk.ledger.begin(desk.site, CALL, asking)).found is Found.BEGUN

    async def test_on_another_call_says_nothing_of_this_one(self, desk: Desk) -> None:
        await desk.answer("repeat")
        other = replace(desk.site, tool_call_id="call-2", doubt=None)
        await desk.ledger.begin(other, CALL, NEEDS)
        entry = await desk.ledger.begin(replace(other, doubt=desk.site.doubt), CALL, NEEDS)
        assert entry.found is Found.IN_DOUBT

    async def test_holds_of_a_call_that_had_not_been_begun(self, desk: Desk) -> None:
        """The time for all of it was over before it was on record."""
        await desk.asking.superuser.execute("DELETE FROM effects")
        await desk.answer("leave_out")
        assert await desk.told() == Made(LEFT_OUT, "lost")  # type: ignore[arg-type] # a StrEnum


class TestACallThatMayBeRepeatedByItself:
    async def test_is_not_for_another_account(
        self, desk: Desk, superuser: asyncpg.Connection
    ) -> None:
        await superuser.execute(ANOTHER_ACCOUNT)
        entry = await desk.ledger.begin(desk.site, TRUSTED, NEEDS)
        assert (entry.found, entry.changed) == (Found.IN_DOUBT, ("connection",))
        await superuser.execute("UPDATE connections SET grant_version = 1")
        assert (await desk.ledger.begin(desk.site, TRUSTED, NEEDS)).found is Found.BEGUN

    async def test_is_not_by_a_connection_that_was_switched_off(
        self, desk: Desk, superuser: asyncpg.Connection
    ) -> None:
        await superuser.execute(SWITCHED_OFF)
        entry = await desk.ledger.begin(desk.site, TRUSTED, NEEDS)
        assert (entry.found, entry.changed) == (Found.IN_DOUBT, ("connection",))

    async def test_is_not_where_its_person_would_have_to_approve_it_by_now(
        self, desk: Desk
    ) -> None:
        """Nor are they asked as if it had not been begun: to reject it would not undo it."""
        asking = replace(NEEDS, policy_version="p1", subject="")
        entry = await desk.ledger.begin(desk.site, TRUSTED, asking)
        assert (entry.found, entry.changed) == (Found.IN_DOUBT, ("policy",))


class TestAnOutcomeThatComesLate:
    @pytest.mark.parametrize(("ending", "result"), [("done", RESULT), ("failed", REFUSED)])
    async def test_closes_the_question_and_the_run_goes_on_with_it(
        self, desk: Desk, ending: Any, result: dict[str, Any]
    ) -> None:
        question = await desk.ask()
        assert await desk.ledger.record_late(desk.site, desk.key, ending, result) is True
        assert await desk.asking.state(desk.run.run_id) == "pending"
        (asked,) = await desk.asking.approvals(desk.run.run_id)
        assert (asked.state, asked.decision) == ("superseded", None)
        await desk.go_on()
        desk.site = replace(desk.site, doubt=question)
        assert await desk.told() == Made.from_json(result)
        assert (await desk.ledger.begin(desk.site, CALL, NEEDS)).result == result
        record = await desk.asking.audit("actor", "action", "why")
        assert record[-2:] == [
            ("service", "superseded", "late_outcome"),
            ("service", "late_outcome", ending),
        ]

    async def test_leaves_what_else_is_asked_to_the_person(self, desk: Desk) -> None:
        await desk.ask(asked_call(2, interrupt_id="1"))
        assert await desk.ledger.record_late(desk.site, desk.key, "done", RESULT) is False
        assert await desk.asking.state(desk.run.run_id) == "waiting"
        found = await desk.asking.approvals(desk.run.run_id)
        assert [each.state for each in found] == ["superseded", "open"]

    async def test_may_come_before_the_question_does(self, desk: Desk) -> None:
        assert await desk.ledger.record_late(desk.site, desk.key, "done", RESULT) is False
        await desk.asking.ask(desk.run, in_doubt(**LOST))
        assert await desk.asking.state(desk.run.run_id) == "pending"
        (asked,) = await desk.asking.approvals(desk.run.run_id)
        assert asked.state == "superseded"

    async def test_goes_before_an_answer_that_nobody_has_acted_on(self, desk: Desk) -> None:
        await desk.decide(await desk.ask(), "repeat")
        await desk.ledger.record_late(desk.site, desk.key, "done", RESULT)
        await desk.go_on()
        assert (await desk.ledger.begin(desk.site, CALL, NEEDS)).result == RESULT

    async def test_stands_beside_what_the_person_said(self, desk: Desk) -> None:
        first = desk.ledger
        await desk.answer("leave_out")
        await desk.told()
        for _ in range(2):
            await first.record_late(desk.site, desk.key, "done", RESULT)
        assert await desk.told() == Made(LEFT_OUT, "lost")  # type: ignore[arg-type] # a StrEnum
        (asked,) = await desk.asking.approvals(desk.run.run_id)
        assert (asked.state, asked.late_result) == ("decided", RESULT)
        assert asked.late_at is not None

    async def test_stands_beside_a_repeat_that_is_under_way(self, desk: Desk) -> None:
        first = desk.ledger
        await desk.answer("repeat")
        entry = await desk.ledger.begin(desk.site, CALL, NEEDS)
        await first.record_late(desk.site, desk.key, "done", RESULT)
        assert await desk.effect("state") == ("started",)
        assert entry.key is not None
        again = {**RESULT, "content": "ticket 8"}
        await desk.ledger.end(desk.site, entry.key, "done", again)
        assert (await desk.told()) == Made.from_json(again)

    async def test_of_a_repeat_is_what_came_of_the_call(self, desk: Desk) -> None:
        await desk.answer("repeat")
        await desk.ledger.begin(desk.site, CALL, NEEDS)
        await desk.ask(interrupt="2")
        assert await desk.ledger.record_late(desk.site, desk.key, "done", RESULT) is True
        await desk.go_on()
        assert await desk.told() == Made.from_json(RESULT)

    async def test_of_a_run_that_is_over_is_on_record(self, desk: Desk) -> None:
        await desk.ask()
        await cancel_runs(desk.asking.tenants, desk.asking.person, run_ids=[desk.run.run_id])
        assert await desk.ledger.record_late(desk.site, desk.key, "done", RESULT) is False
        assert await desk.asking.state(desk.run.run_id) == "cancelled"
        assert await desk.effect("state") == ("done",)

    async def test_under_another_key_is_nothings(self, desk: Desk) -> None:
        await desk.ask()
        assert await desk.ledger.record_late(desk.site, UUID(int=1), "done", RESULT) is None
        assert await desk.asking.state(desk.run.run_id) == "waiting"

    async def test_of_somebody_elses_is_nothings(self, desk: Desk, bob: Principal) -> None:
        his = Ledger(desk.asking.tenants, replace(desk.run, user_id=bob.user_id), desk.thread)
        assert await his.record_late(desk.site, desk.key, "done", RESULT) is None
        assert await desk.effect("state") == ("started",)

    async def test_and_an_answer_in_the_same_instant_let_the_run_go_on_once(
        self, desk: Desk
    ) -> None:
        question = await desk.ask()
        decided, _ = await asyncio.gather(
            desk.decide(question, "happened"),
            desk.ledger.record_late(desk.site, desk.key, "done", RESULT),
            return_exceptions=True,
        )
        del decided  # whether it was in time is nobody's to say
        assert await desk.asking.state(desk.run.run_id) == "pending"
        await desk.go_on()
        desk.site = replace(desk.site, doubt=question)
        assert await desk.told() == Made.from_json(RESULT)


class TestWhoeverLostTheRun:
    async def test_says_nothing_of_a_doubt(self, desk: Desk) -> None:
        await desk.decide(await desk.ask(), "happened")
        with pytest.raises(LeaseLost):
            await desk.ledger.settle_doubt(desk.site, ARGUMENTS)
        assert await desk.effect("state") == ("started",)
