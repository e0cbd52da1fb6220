"""A call that its person has to approve: what they approved is what is made, or they are asked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from app.runs.deciding import Decision
from app.tools.effects import Found, IntendedCall, Needs
from app.tools.fingerprint import fingerprint
from app.tools.ledger import Ledger
from app.tools.servers import HttpTransport, McpServer, Trust
from app.tools.site import CallSite
from app.tools.waiting import NotApproved
from tenancy.database.crossing import DispatchDatabase
from tenancy.database.tenant import TenantDatabase
from tenancy.principal import Principal
from tests.integration.tenancy.asking import (
    ARGUMENTS,
    SCHEMA,
    Asking,
    approve,
    asked_call,
)

TICKETS = McpServer("tickets", HttpTransport("https://tickets.test/mcp"))
LOOKING = replace(TICKETS, trust=Trust(read_only=frozenset({"*"})))
CALL = IntendedCall(TICKETS, "create_ticket", ARGUMENTS, 1)
NEEDS = Needs("p1", "", fingerprint(SCHEMA), 0)
OTHER = {"title": "Trams are early"}
OPENING: dict[str, Any] = {"subject": "", "asked": {"schema": SCHEMA}}
"""Of a call that is asked about at its first use in a thread."""


@dataclass
class Desk:
    """A person's thread, and what they decide in it."""

    asking: Asking
    run: Any = None
    approval: UUID | None = None

    async def approves(self, how: str = "approve", **asked: Any) -> Ledger:
        """Have the person decide on a call; the ledger of whoever goes on."""
        run_id = await self.asking.waiting(asked_call(**{"grant_version": 1, **asked}))
        (approval,) = await self.asking.approvals(run_id)
        decision = approve(approval)
        if how == "edit":
            decision = replace(decision, decision="edit", arguments=OTHER)
        if how == "reject":
            decision = Decision(approval.approval_id, "reject")
        await self.asking.decide(run_id, decision)
        self.approval = approval.approval_id
        self.run = await self.asking.claim()
        return Ledger(self.asking.tenants, self.run, self.asking.threads[run_id])

    def site(self, number: int = 1, arguments: dict[str, Any] = ARGUMENTS) -> CallSite:
        """Where a call stands that may be made by what was decided."""
        return CallSite("message", f"call-{number}", fingerprint(arguments), self.approval)


@pytest.fixture
def desk(
    tenants: TenantDatabase,
    dispatch: DispatchDatabase,
    superuser: asyncpg.Connection,
    alice: Principal,
) -> Desk:
    return Desk(Asking(tenants, dispatch, superuser, alice))


async def begun(superuser: asyncpg.Connection) -> int:
    return int(await superuser.fetchval("SELECT count(*) FROM effects"))


async def connect(superuser: asyncpg.Connection, **columns: Any) -> None:
    """Store how the person's connection is."""
    names, places = ", ".join(columns), ", ".join(f"${n + 1}" for n in range(len(columns)))
    await superuser.execute(
        f"INSERT INTO connections (user_id, server, {names})"
        f" SELECT user_id, 'tickets', {places} FROM users",
        *columns.values(),
    )


class TestACallThatNeedsAnApproval:
    async def test_is_not_made_without_one(self, desk: Desk, superuser: asyncpg.Connection) -> None:
        ledger = await desk.approves()
        entry = await ledger.begin(replace(desk.site(), approval=None), CALL, NEEDS)
        assert (entry.found, entry.changed) == (Found.UNAPPROVED, ())
        assert await begun(superuser) == 0

    async def test_is_made_once_it_was_approved_and_never_twice(
        self, desk: Desk, superuser: asyncpg.Connection
    ) -> None:
        ledger = await desk.approves()
        entry = await ledger.begin(desk.site(), CALL, NEEDS)
        assert entry.found is Found.BEGUN
        assert entry.key is not None
        await ledger.end(desk.site(), entry.key, "done", {"content": "it", "outcome": "ok"})
        assert (await ledger.begin(desk.site(), CALL, NEEDS)).found is Found.DONE
        assert await begun(superuser) == 1

    async def test_is_made_as_the_person_edited_it_and_not_otherwise(self, desk: Desk) -> None:
        ledger = await desk.approves("edit")
        entry = await ledger.begin(desk.site(), CALL, NEEDS)
        assert (entry.found, entry.changed) == (Found.UNAPPROVED, ("arguments",))
        edited = replace(CALL, arguments=OTHER)
        assert (await ledger.begin(desk.site(1, OTHER), edited, NEEDS)).found is Found.BEGUN

    async def test_that_was_rejected_is_not_made(self, desk: Desk) -> None:
        ledger = await desk.approves("reject")
        entry = await ledger.begin(desk.site(), CALL, NEEDS)
        assert (entry.found, entry.changed) == (Found.UNAPPROVED, ())

    async def test_is_not_made_by_the_approval_of_another(self, desk: Desk) -> None:
        ledger = await desk.approves()
        entry = await ledger.begin(desk.site(2), CALL, NEEDS)
        assert (entry.found, entry.changed) == (Found.UNAPPROVED, ())

    async def test_is_not_made_by_somebody_elses(
        self, desk: Desk, bob: Principal, tenants: TenantDatabase, dispatch: DispatchDatabase
    ) -> None:
        await desk.approves()
        his = Desk(Asking(tenants, dispatch, desk.asking.superuser, bob))
        ledger = await his.approves()
        entry = await ledger.begin(desk.site(), CALL, NEEDS)
        assert (entry.found, entry.changed) == (Found.UNAPPROVED, ())

    async def test_that_only_reads_needs_it_as_well(self, desk: Desk) -> None:
        ledger = await desk.approves()
        looking = replace(CALL, server=LOOKING)
        without = replace(desk.site(), approval=None)
        assert (await ledger.begin(without, looking, NEEDS)).found is Found.UNAPPROVED
        assert (await ledger.begin(desk.site(), looking, NEEDS)).found is Found.BEGUN

    async def test_of_a_tool_of_the_services_own_is_looked_at_alike(self, desk: Desk) -> None:
        ledger = await desk.approves(server=None, tool="fetch", grant_version=None)
        needs = Needs("p1", "")
        await ledger.admit(desk.site(), "fetch", ARGUMENTS, needs)
        with pytest.raises(NotApproved) as refused:
            await ledger.admit(desk.site(), "fetch", OTHER, needs)
        assert refused.value.changed == ("arguments",)


class TestWhatChangesInBetween:
    @pytest.mark.parametrize(
        ("call", "needs", "changed"),
        [
            (CALL, replace(NEEDS, policy_version="p2"), "policy"),
            (replace(CALL, tool="close_ticket"), NEEDS, "tool"),
            (CALL, replace(NEEDS, schema_sha256=fingerprint({})), "schema"),
            (replace(CALL, arguments=OTHER), NEEDS, "arguments"),
        ],
        ids=["the rules", "the tool", "its schema", "the arguments"],
    )
    async def test_is_told_and_the_call_is_not_made(
        self,
        desk: Desk,
        superuser: asyncpg.Connection,
        call: IntendedCall,
        needs: Needs,
        changed: str,
    ) -> None:
        ledger = await desk.approves()
        entry = await ledger.begin(desk.site(), call, needs)
        assert (entry.found, entry.changed) == (Found.UNAPPROVED, (changed,))
        assert await begun(superuser) == 0
        record = await desk.asking.audit("actor", "action", "approval_id", "why")
        assert record[-1] == ("service", "refused", desk.approval, changed)

    async def test_is_told_of_the_message_too(self, desk: Desk) -> None:
        """What is sent is what was approved, and yet the message says something else."""
        ledger = await desk.approves()
        entry = await ledger.begin(desk.site(1, OTHER), CALL, NEEDS)
        assert (entry.found, entry.changed) == (Found.UNAPPROVED, ("arguments",))

    async def test_is_told_of_an_approval_whose_time_is_over(
        self, desk: Desk, superuser: asyncpg.Connection
    ) -> None:
        ledger = await desk.approves()
        await superuser.execute("UPDATE approvals SET expires_at = now() - interval '1 second'")
        entry = await ledger.begin(desk.site(), CALL, NEEDS)
        assert (entry.found, entry.changed) == (Found.UNAPPROVED, ("expired",))

    async def test_is_told_of_another_account_and_not_of_the_same_renewed(
        self, desk: Desk, superuser: asyncpg.Connection
    ) -> None:
        ledger = await desk.approves()
        await connect(superuser, version=3, grant_version=1)
        renewed = replace(CALL, version=3)
        looking = replace(renewed, server=LOOKING)
        assert (await ledger.begin(desk.site(), looking, NEEDS)).found is Found.BEGUN
        await superuser.execute("UPDATE connections SET grant_version = 2")
        entry = await ledger.begin(desk.site(), renewed, NEEDS)
        assert (entry.found, entry.changed) == (Found.UNAPPROVED, ("connection",))

    async def test_is_told_of_an_account_where_there_was_none_and_of_none_any_more(
        self, desk: Desk
    ) -> None:
        """The operator lets a server be used in nobody's name, or in everybody's own."""
        ledger = await desk.approves()
        shared = replace(CALL, version=None)
        entry = await ledger.begin(desk.site(), shared, NEEDS)
        assert (entry.found, entry.changed) == (Found.UNAPPROVED, ("connection",))
        ledger = await desk.approves(grant_version=None, message_id="message")
        entry = await ledger.begin(desk.site(), CALL, NEEDS)
        assert (entry.found, entry.changed) == (Found.UNAPPROVED, ("connection",))

    async def test_of_what_the_person_says_of_such_calls_is_heard_at_the_call(
        self, desk: Desk, superuser: asyncpg.Connection
    ) -> None:
        ledger = await desk.approves()
        await connect(superuser, approval_version=1)
        assert (await ledger.begin(desk.site(), CALL, NEEDS)).found is Found.STALE
        newer = replace(NEEDS, approval_version=1)
        assert (await ledger.begin(desk.site(), CALL, newer)).found is Found.BEGUN


class TestAnApprovalForTheThread:
    async def test_lets_other_calls_of_the_tool_be_made(self, desk: Desk) -> None:
        ledger = await desk.approves(**OPENING)
        another = replace(CALL, arguments=OTHER)
        assert (await ledger.begin(desk.site(2, OTHER), another, NEEDS)).found is Found.BEGUN

    @pytest.mark.parametrize(
        ("call", "needs", "changed"),
        [
            (CALL, replace(NEEDS, subject="elsewhere.test"), ()),
            (CALL, replace(NEEDS, policy_version="p2"), ("policy",)),
            (CALL, replace(NEEDS, schema_sha256=fingerprint({})), ("schema",)),
            (replace(CALL, tool="close_ticket"), NEEDS, ("tool",)),
            (replace(CALL, server=replace(TICKETS, name="mail")), NEEDS, ("tool",)),
        ],
        ids=["of another subject", "by other rules", "of another schema", "another's", "elsewhere"],
    )
    async def test_lets_none_be_made_that_it_was_not_meant_of(
        self, desk: Desk, call: IntendedCall, needs: Needs, changed: tuple[str, ...]
    ) -> None:
        ledger = await desk.approves(**OPENING)
        entry = await ledger.begin(desk.site(2), call, needs)
        assert (entry.found, entry.changed) == (Found.UNAPPROVED, changed)

    async def test_is_none_where_the_person_did_not_say_so(self, desk: Desk) -> None:
        asked = {"schema": SCHEMA, "may_open_thread": True}
        ledger = await desk.approves(subject="", asked=asked)
        entry = await ledger.begin(desk.site(2), CALL, NEEDS)
        assert (entry.found, entry.changed) == (Found.UNAPPROVED, ())

    async def test_is_none_in_another_thread(self, desk: Desk) -> None:
        await desk.approves(**OPENING)
        opened = desk.approval
        elsewhere = await desk.approves(message_id="another")
        desk.approval = opened
        entry = await elsewhere.begin(desk.site(2), CALL, NEEDS)
        assert (entry.found, entry.changed) == (Found.UNAPPROVED, ())
