"""What was asked and decided stays on record as it is, apart from what people wrote."""

from __future__ import annotations

from hashlib import sha256

import asyncpg
import pytest
import sqlalchemy as sa

from app.runs.approvals import ApprovalClosed
from app.runs.deciding import Decision
from tenancy.database.crossing import DispatchDatabase
from tenancy.database.tenant import TenantDatabase
from tenancy.errors import ApprovalExpired
from tenancy.principal import Principal
from tests.integration.tenancy.asking import Asking, approve, asked_call
from tests.support.leaving import leaving_of
from tests.support.postgres import Role
from tests.support.tenancy import TestDatabase

TABLES = ("audit", "audit_texts")
CHANGES = (
    "UPDATE {} SET at = at",
    "UPDATE {} SET at = at WHERE false",
    "DELETE FROM {}",
    "TRUNCATE {} CASCADE",
)


@pytest.fixture
def asking(
    tenants: TenantDatabase,
    dispatch: DispatchDatabase,
    superuser: asyncpg.Connection,
    alice: Principal,
) -> Asking:
    return Asking(tenants, dispatch, superuser, alice)


class TestARecord:
    @pytest.mark.parametrize("role", ["service", "dispatch", "maintenance", "owner"])
    async def test_can_be_changed_by_nobody_or_deleted_before_its_time(
        self, asking: Asking, database: TestDatabase, role: Role
    ) -> None:
        run_id = await asking.waiting()
        asked = await asking.approval(run_id)
        await asking.decide(run_id, Decision(asked.approval_id, "reject", reason="Not now."))
        before = [await asking.audit("audit::text"), await asking.texts()]
        connection = await database.connect(role)
        bind = "SELECT set_config('app.user_id', $1, false)"
        await connection.execute(bind, str(asking.person.user_id))
        try:
            for table in TABLES:
                for change in CHANGES:
                    with pytest.raises(asyncpg.PostgresError) as refused:
                        await connection.execute(change.format(table))
                    wanted = ("ST010",) if role == "owner" else ("ST010", "42501")
                    assert refused.value.sqlstate in wanted, (table, change)
        finally:
            await connection.close()
        assert [await asking.audit("audit::text"), await asking.texts()] == before

    async def test_can_be_deleted_by_maintenance_once_it_is_90_days_old(
        self, asking: Asking, database: TestDatabase
    ) -> None:
        await asking.superuser.execute(
            "INSERT INTO audit (actor, action, at) SELECT 'operator', days::text,"
            " now() - days * interval '1 day' FROM unnest(ARRAY[89, 91, 400]) AS days"
        )
        connection = await database.connect("maintenance")
        try:
            with pytest.raises(asyncpg.PostgresError, match="stays as it is"):
                await connection.execute("DELETE FROM audit")
            await connection.execute("DELETE FROM audit WHERE at < now() - interval '90 days'")
        finally:
            await connection.close()
        assert await asking.superuser.fetch("SELECT action FROM audit") == [("89",)]

    async def test_names_nobody_once_the_person_has_left(
        self, asking: Asking, database: TestDatabase
    ) -> None:
        run_id = await asking.waiting()
        asked = await asking.approval(run_id)
        await asking.decide(run_id, Decision(asked.approval_id, "reject", reason="My aunt is ill."))
        facts = (
            "SELECT audit::text FROM audit WHERE action IN ('asked', 'decided') ORDER BY audit_id"
        )
        before = await asking.superuser.fetch(facts)
        async with leaving_of(database, asking.tenants) as leaving:
            await leaving.erase(asking.person)
        assert len(before) == 2
        assert await asking.superuser.fetch(facts) == before
        assert await asking.superuser.fetchval("SELECT count(*) FROM audit_references") == 0
        assert await asking.texts() == set()
        assert str(asking.person.user_id) not in str(before)

    async def test_has_hashes_that_nobody_can_guess_at_without_the_persons_salt(
        self, asking: Asking
    ) -> None:
        asked = await asking.approval(await asking.waiting())
        ((kept,),) = set(await asking.audit("arguments_sha256"))
        salt = await asking.superuser.fetchval("SELECT salt FROM audit_references")
        assert len(salt) == 32
        assert kept == sha256(salt + asked.arguments_sha256).digest()

    async def test_holds_where_triggers_are_switched_off_for_a_session(
        self, asking: Asking, superuser: asyncpg.Connection
    ) -> None:
        await asking.waiting()
        await superuser.execute("SET session_replication_role = replica")
        with pytest.raises(asyncpg.PostgresError, match="stays as it is"):
            await superuser.execute("DELETE FROM audit")

    async def test_says_who_did_what_to_which_call(self, asking: Asking) -> None:
        run_id = await asking.waiting()
        asked = await asking.approval(run_id)
        await asking.decide(run_id, approve(asked))
        facts = ("actor", "action", "decision", "server", "tool", "tool_call_id", "policy_version")
        call = ("tickets", "create_ticket", "call-1", "p1")
        assert await asking.audit(*facts) == [
            ("service", "asked", None, *call),
            ("person", "decided", "approve", *call),
        ]
        same = ("thread_id", "run_id", "approval_id", "expires_at")
        assert set(await asking.audit(*same)) == {
            (asked.thread_id, run_id, asked.approval_id, asked.expires_at)
        }
        assert len(set(await asking.audit("arguments_sha256"))) == 1

    async def test_is_made_of_what_was_refused_too(self, asking: Asking) -> None:
        late = await asking.waiting()
        await asking.pass_time()
        with pytest.raises(ApprovalExpired):
            await asking.decide(late, approve(await asking.approval(late)))
        run_id = await asking.waiting()
        asked = await asking.approval(run_id)
        await asking.decide(run_id, approve(asked))
        with pytest.raises(ApprovalClosed):
            await asking.decide(run_id, Decision(asked.approval_id, "reject", reason="Too late."))
        facts = await asking.audit("actor", "action", "decision", "why")
        assert [each for each in facts if each[1] == "refused"] == [
            ("person", "refused", "approve", "expired"),
            ("person", "refused", "reject", "closed"),
        ]
        assert await asking.texts() == set()

    async def test_is_not_made_longer_by_asking_again_and_again(self, asking: Asking) -> None:
        run_id = await asking.waiting()
        asked = await asking.approval(run_id)
        await asking.decide(run_id, Decision(asked.approval_id, "reject", reason="My aunt is ill."))
        await asking.superuser.execute("UPDATE approvals SET refusals = 98")
        for _ in range(3):
            with pytest.raises(ApprovalClosed):
                await asking.decide(run_id, approve(asked))
        actions = [action for (action,) in await asking.audit()]
        assert actions == ["asked", "decided", "refused", "refused"]
        reasons = "SELECT count(*) FROM audit_texts WHERE kind = 'reason'"
        assert await asking.superuser.fetchval(reasons) == 1

    async def test_has_a_persons_words_apart_from_the_facts(self, asking: Asking) -> None:
        run_id = await asking.waiting()
        asked = await asking.approval(run_id)
        await asking.decide(run_id, Decision(asked.approval_id, "reject", reason="My aunt is ill."))
        assert await asking.texts() == {("reason", "My aunt is ill.")}
        assert "aunt" not in str(await asking.audit("audit::text"))

    @pytest.mark.parametrize("removed", [False, True], ids=["connected", "removed meanwhile"])
    async def test_has_the_names_of_a_persons_own_servers_apart_too(
        self, asking: Asking, removed: bool
    ) -> None:
        run = await asking.run()
        if not removed:
            await asking.superuser.execute(
                "INSERT INTO connections (user_id, server, url, auth)"
                " VALUES ($1, 'my-diary', 'https://diary.test', 'none')",
                asking.person.user_id,
            )
        await asking.ask(run, asked_call(server="my-diary", tool="read_diary", grant_version=7))
        asked = await asking.approval(run.run_id)
        await asking.decide(run.run_id, approve(asked))
        assert set(await asking.audit("server", "tool")) == {(None, None)}
        assert await asking.texts() == {("server", "my-diary"), ("tool", "read_diary")}

    async def test_names_an_operators_server_that_a_person_is_connected_to(
        self, asking: Asking
    ) -> None:
        await asking.superuser.execute(
            "INSERT INTO connections (user_id, server) VALUES ($1, 'tickets')",
            asking.person.user_id,
        )
        await asking.waiting(asked_call(grant_version=7))
        assert await asking.audit("server", "tool") == [("tickets", "create_ticket")]
        assert await asking.texts() == set()

    async def test_is_seen_by_its_person_alone(self, asking: Asking, bob: Principal) -> None:
        await asking.waiting()
        for person, seen in ((asking.person, 1), (bob, 0)):
            async with asking.tenants.reading(person) as tx:
                count = sa.select(sa.func.count()).select_from(sa.table("audit"))
                assert await tx.scalar(count) == seen
