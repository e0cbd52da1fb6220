"""An erasure is a job that one process works on at a time, and that a crash only delays."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from uuid import uuid4

import asyncpg
import pytest

from app.metrics import scheduler_metrics
from tenancy.acts import Act
from tenancy.database.crossing import DispatchDatabase
from tenancy.database.tenant import TenantDatabase
from tenancy.errors import LeaseLost, UserUnavailable
from tenancy.principal import Principal
from tenancy.scheduler.facts import SchedulerFacts
from tests.integration.tenancy.locking import POOLS
from tests.support.leaving import Leaving, leaving_of
from tests.support.tenancy import (
    MODEL,
    TestDatabase,
    claim_runs,
    claimed_run,
    expire_leases,
    make_thread,
    make_worker,
    queue_run,
    sign_in,
)

SET_STATE = "SELECT dispatch.set_user_state($1, $2, NULL, 'root', 'stoa admin users')"


@pytest.fixture
async def leaving(database: TestDatabase, tenants: TenantDatabase) -> AsyncIterator[Leaving]:
    async with leaving_of(database, tenants) as what:
        yield what


async def _until_somebody_waits(superuser: asyncpg.Connection) -> None:
    while not await superuser.fetchval(  # noqa: ASYNC110 - the server tells nobody
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        " AND datname = current_database()"
    ):
        await asyncio.sleep(0.005)


class TestAskingToLeave:
    async def test_twice_begins_one_erasure(self, leaving: Leaving, alice: Principal) -> None:
        begun = await asyncio.gather(
            *(leaving.erasures.begin(alice.user_id, "person") for _ in range(4))
        )
        assert len(set(begun)) == 1
        (erasure,), total = await leaving.erasures.list(10)
        assert (erasure.erasure_id, erasure.user_id, total) == (begun[0], alice.user_id, 1)

    async def test_for_nobody_begins_none(self, leaving: Leaving) -> None:
        assert await leaving.erasures.begin(uuid4(), "operator") is None  # type: ignore[arg-type]

    async def test_waits_for_no_write_that_is_under_way_and_what_follows_does(
        self,
        leaving: Leaving,
        tenants: TenantDatabase,
        superuser: asyncpg.Connection,
        alice: Principal,
    ) -> None:
        """Of somebody who writes all the time it would never begin."""
        async with tenants.writing(alice):
            assert await leaving.erasures.begin(alice.user_id, "operator") is not None
            with pytest.raises(UserUnavailable):
                await make_thread(tenants, alice)
            following = asyncio.create_task(leaving.erasures.await_writers(alice.user_id))
            await _until_somebody_waits(superuser)
        await following

    async def test_is_on_record_with_whoever_asked(
        self, leaving: Leaving, superuser: asyncpg.Connection, alice: Principal, bob: Principal
    ) -> None:
        act = Act("DELETE /admin/users/{user_id}", by=bob.user_id)
        await leaving.erasures.begin(alice.user_id, "operator", act=act)
        await leaving.erasures.begin(bob.user_id, "person")
        facts = await superuser.fetch(
            "SELECT actor, action, route, whom.user_id AS whom, by.user_id AS by FROM audit"
            " JOIN audit_references whom USING (reference)"
            " LEFT JOIN audit_references by ON by.reference = by_reference ORDER BY audit_id"
        )
        assert [tuple(row) for row in facts] == [
            ("operator", "erasure_begun", act.route, alice.user_id, bob.user_id),
            ("person", "erasure_begun", None, bob.user_id, None),
        ]


class TestAJob:
    async def test_is_one_processs_until_its_time_is_over(
        self, leaving: Leaving, superuser: asyncpg.Connection, alice: Principal
    ) -> None:
        first = await leaving.begin(alice)
        assert await leaving.erasures.claim(60) is None
        await superuser.execute("UPDATE erasures SET working_until = now() - interval '1 s'")
        second = await leaving.erasures.claim(60)
        assert second is not None
        assert (second.erasure_id, second.step) == (first.erasure_id, first.step)
        # The first comes to itself again.
        assert not await leaving.erasures.keep(first, 60)
        assert not await leaving.erasures.advance(first, "revoke")
        assert not await leaving.erasures.fail(first, "anything")
        assert await leaving.erasures.advance(second, "revoke")

    async def test_is_given_to_one_of_many_who_ask(
        self, leaving: Leaving, alice: Principal, bob: Principal
    ) -> None:
        for person in (alice, bob):
            await leaving.erasures.begin(person.user_id, "person")
        claimed = await asyncio.gather(*(leaving.erasures.claim(60) for _ in range(4)))
        assert {job.user_id for job in claimed if job} == {alice.user_id, bob.user_id}
        assert claimed.count(None) == 2

    async def test_that_waits_lets_others_go_first(
        self, leaving: Leaving, alice: Principal, bob: Principal
    ) -> None:
        job = await leaving.begin(alice)
        await leaving.erasures.wait(job, 60)
        assert (await leaving.begin(bob)).user_id == bob.user_id

    async def test_that_cannot_go_on_keeps_back_nobody_elses(
        self, leaving: Leaving, tenants: TenantDatabase, alice: Principal, bob: Principal
    ) -> None:
        """However many of them there are, and whoever began first."""
        stuck = [await leaving.begin(person) for person in (alice, bob)]
        for job in stuck:
            await leaving.erasures.wait(job, 0)
        carol = await sign_in(tenants, "carol")
        assert (await leaving.begin(carol)).user_id == carol.user_id
        taken = [await leaving.erasures.claim(60) for _ in range(2)]
        assert [job.user_id for job in taken if job] == [alice.user_id, bob.user_id]

    async def test_that_failed_says_so_until_it_goes_on(
        self, leaving: Leaving, alice: Principal
    ) -> None:
        job = await leaving.begin(alice)
        await leaving.erasures.fail(job, "tombstone_not_written", 0)
        found = await leaving.erasures.find(job.erasure_id)
        assert found is not None
        assert found.failure == "tombstone_not_written"
        again = await leaving.erasures.claim(60)
        assert again is not None
        await leaving.erasures.advance(again, "revoke")
        found = await leaving.erasures.find(job.erasure_id)
        assert found is not None
        assert (found.failure, found.step) == (None, "revoke")

    async def test_forgets_whose_it_was_once_nothing_is_left_and_not_before(
        self, leaving: Leaving, superuser: asyncpg.Connection, alice: Principal
    ) -> None:
        job = await leaving.begin(alice)
        with pytest.raises(asyncpg.PostgresError, match="somebody is there still"):
            await leaving.erasures.advance(job, "sign", remaining={"runs": 0})
        await leaving.erasures.advance(job, "delete", deleted={"runs": 2, "threads": 1})
        await leaving.delete(alice)
        await superuser.execute("SELECT dispatch.declare_pools($1::text::jsonb)", POOLS)
        await superuser.execute(
            "UPDATE pools SET failures = 1, failed_for = sha256(uuid_send($1))", alice.user_id
        )
        await leaving.erasures.advance(job, "delete", deleted={"runs": 3})
        await leaving.erasures.advance(job, "sign", remaining={"runs": 0})
        await leaving.erasures.advance(job, "done", receipt="signed")
        found = await leaving.erasures.find(job.erasure_id)
        assert found is not None
        assert (found.user_id, found.deleted) == (None, {"runs": 5, "threads": 1})
        assert found.verified_at is not None
        assert found.ended_at is not None
        assert await superuser.fetchval("SELECT count(failed_for) FROM pools") == 0
        # Whoever has slept until now sets no tombstone that knows of nothing spent.
        with pytest.raises(asyncpg.NoDataFoundError):
            await leaving.erasures.record_tombstones(job.erasure_id, b"", [b"other"], "k", 60)
        for table in ("erasures", "erasure_stops", "tombstones", "audit"):
            said = await superuser.fetchval(f"SELECT string_agg(t::text, '') FROM {table} t")
            assert str(alice.user_id) not in (said or "")

    async def test_is_counted_with_its_age_and_whether_it_fails_until_it_is_done(
        self,
        leaving: Leaving,
        database: TestDatabase,
        superuser: asyncpg.Connection,
        alice: Principal,
        bob: Principal,
    ) -> None:
        facts = SchedulerFacts(database.settings("dispatch"))
        names = ("stoa_erasures_open", "stoa_erasures_failing", "stoa_erasures_oldest_seconds")

        async def counted() -> list[float]:
            found = {each.name: each for each in scheduler_metrics(await facts.read())}
            return [found[name].samples[0].value for name in names]

        try:
            assert await counted() == [0, 0, 0]
            await leaving.erase(alice)
            job = await leaving.begin(bob)
            await superuser.execute("UPDATE erasures SET requested_at = now() - interval '1 day'")
            await leaving.erasures.fail(job, "tombstone_not_written")
            is_open, failing, age = await counted()
            assert (is_open, failing, age >= 86_400) == (1, 1, True)
        finally:
            await facts.close()

    async def test_is_listed_with_all_there_are(
        self, leaving: Leaving, alice: Principal, bob: Principal
    ) -> None:
        ended = await leaving.erase(alice)
        open_job = await leaving.begin(bob)
        page, total = await leaving.erasures.list(1)
        assert ([each.erasure_id for each in page], total) == ([open_job.erasure_id], 2)
        page, total = await leaving.erasures.list(10, 0, ["done"])
        assert ([each.erasure_id for each in page], total) == ([ended], 1)
        unknown = uuid4()
        assert await leaving.erasures.unknown([ended, unknown]) == [unknown]


class TestStopping:
    async def test_ends_what_waits_and_tells_what_runs(
        self,
        leaving: Leaving,
        tenants: TenantDatabase,
        dispatch: DispatchDatabase,
        superuser: asyncpg.Connection,
        alice: Principal,
        bob: Principal,
    ) -> None:
        run = await claimed_run(tenants, dispatch, alice, await make_thread(tenants, alice))
        await queue_run(tenants, alice, await make_thread(tenants, alice), after_seconds=3600)
        await queue_run(tenants, bob, await make_thread(tenants, bob))
        job = await leaving.begin(alice)
        assert await leaving.erasures.end_runs(alice.user_id) == [run.run_id]
        assert not await leaving.erasures.is_quiet(job.erasure_id)
        stands = "SELECT user_id, state, cancel_requested_at IS NOT NULL FROM runs"
        assert {tuple(row) for row in await superuser.fetch(stands)} == {
            (alice.user_id, "running", True),
            (alice.user_id, "cancelled", True),
            (bob.user_id, "pending", False),
        }

    async def test_is_over_once_every_worker_that_lives_has_let_go(
        self,
        leaving: Leaving,
        tenants: TenantDatabase,
        dispatch: DispatchDatabase,
        superuser: asyncpg.Connection,
        alice: Principal,
    ) -> None:
        run = await claimed_run(tenants, dispatch, alice, await make_thread(tenants, alice))
        holder = await superuser.fetchval("SELECT worker_id FROM workers")
        other = await make_worker(dispatch)
        job = await leaving.begin(alice)
        for worker, awaited in ((holder, {holder, other}), (other, {other})):
            assert not await leaving.erasures.is_quiet(job.erasure_id)
            assert set(await leaving.erasures.awaited(job.erasure_id)) == awaited
            assert await leaving.erasures.to_stop(worker) == [(job.erasure_id, alice.user_id)]
            for _ in range(2):  # saying it once more changes nothing
                await leaving.erasures.stopped(job.erasure_id, worker, folders=1)
            assert await leaving.erasures.to_stop(worker) == []
            assert await leaving.erasures.end_runs(alice.user_id) == []
        assert await leaving.erasures.is_quiet(job.erasure_id)
        assert await leaving.erasures.awaited(job.erasure_id) == []
        found = await leaving.erasures.find(job.erasure_id)
        assert found is not None
        assert found.folders_deleted == 2
        with pytest.raises((LeaseLost, UserUnavailable)):
            await tenants.call(
                run,
                "SELECT tenant.append_events($1,$2,$3,1,$4,$5,$6,$6)",
                run.run_id,
                run.fence,
                ["values"],
                [b"{}"],
                [None],
            )

    async def test_waits_for_no_worker_that_is_dead(
        self,
        leaving: Leaving,
        tenants: TenantDatabase,
        dispatch: DispatchDatabase,
        superuser: asyncpg.Connection,
        alice: Principal,
    ) -> None:
        await claimed_run(tenants, dispatch, alice, await make_thread(tenants, alice))
        job = await leaving.begin(alice)
        await expire_leases(superuser)
        assert await leaving.erasures.end_runs(alice.user_id) == []
        assert await leaving.erasures.is_quiet(job.erasure_id)

    async def test_misses_no_claim_that_was_under_way(
        self,
        leaving: Leaving,
        database: TestDatabase,
        tenants: TenantDatabase,
        dispatch: DispatchDatabase,
        superuser: asyncpg.Connection,
        alice: Principal,
    ) -> None:
        """It found the person active, before the erasure began."""
        run = await queue_run(tenants, alice, await make_thread(tenants, alice))
        worker = await make_worker(dispatch)
        claiming = await database.connect("dispatch")
        try:
            claim = claiming.transaction()
            await claim.start()
            await claiming.fetch(
                "SELECT * FROM dispatch.claim_runs($1, 1, $2, '{}')", worker, MODEL
            )
            await leaving.begin(alice)
            ending = asyncio.create_task(leaving.erasures.end_runs(alice.user_id))
            await _until_somebody_waits(superuser)
            await claim.commit()
            assert await ending == [run.run_id]
        finally:
            await claiming.close()


class TestACallOfSomebodyWhoIsGone:
    async def test_is_settled_without_a_word(
        self,
        leaving: Leaving,
        tenants: TenantDatabase,
        database: TestDatabase,
        superuser: asyncpg.Connection,
        alice: Principal,
    ) -> None:
        """Their usage would be written just as their last row goes."""
        await superuser.execute(
            "INSERT INTO models (model, context, output) VALUES ($1, 9, 9)", MODEL
        )
        await superuser.execute("INSERT INTO run_queues (user_id) VALUES ($1)", alice.user_id)
        await superuser.execute(
            "INSERT INTO model_users (user_id, model, vtime) VALUES ($1, $2, 0)",
            alice.user_id,
            MODEL,
        )
        run = await queue_run(tenants, alice, await make_thread(tenants, alice))
        call = uuid4()
        await superuser.execute(
            "INSERT INTO model_calls (user_id, call_id, run_id, fence, worker_id, model, priority,"
            " asked_at) VALUES ($1, $2, $3, 1, $2, $4, 0, now())",
            *(alice.user_id, call, run.run_id, MODEL),
        )
        settle = "SELECT settled FROM dispatch.settle_call($1, $2, $3, 1, 1, NULL)"
        worker, eraser = await database.connect("dispatch"), await database.connect("service")
        try:
            await leaving.begin(alice)
            async with eraser.transaction():
                rows = "SELECT count(*) FROM tenant.erase_rows($1, 1000)"
                while await eraser.fetchval(rows, alice.user_id):
                    pass
                assert await eraser.fetchval("SELECT tenant.erase_user($1)", alice.user_id)
                # The call is there yet for whoever looks now.
                settling = asyncio.create_task(worker.fetchval(settle, alice.user_id, call, MODEL))
                await _until_somebody_waits(superuser)
            assert await settling is False
            assert await superuser.fetchval("SELECT count(*) FROM usage_hours") == 0
        finally:
            await worker.close()
            await eraser.close()


class TestSuspending:
    async def test_is_on_record_once_and_undone_by_resuming(
        self,
        tenants: TenantDatabase,
        superuser: asyncpg.Connection,
        database: TestDatabase,
        alice: Principal,
    ) -> None:
        operator = await database.connect("dispatch")
        try:
            for state in ("suspended", "suspended", "active"):
                assert await operator.fetchval(SET_STATE, alice.user_id, state) == state
            assert await operator.fetchval(SET_STATE, uuid4(), "active") is None
        finally:
            await operator.close()
        await make_thread(tenants, alice)
        acts = await superuser.fetch("SELECT action, account FROM audit ORDER BY audit_id")
        assert [tuple(act) for act in acts] == [("suspended", "root"), ("resumed", "root")]

    async def test_has_a_persons_runs_claimed_again_afterwards(
        self,
        tenants: TenantDatabase,
        dispatch: DispatchDatabase,
        database: TestDatabase,
        alice: Principal,
    ) -> None:
        await queue_run(tenants, alice, await make_thread(tenants, alice))
        worker = await make_worker(dispatch)
        operator = await database.connect("dispatch")
        try:
            await operator.fetchval(SET_STATE, alice.user_id, "suspended")
            assert await claim_runs(dispatch, worker, 1) == []
            await operator.fetchval(SET_STATE, alice.user_id, "active")
        finally:
            await operator.close()
        assert len(await claim_runs(dispatch, worker, 1)) == 1

    @pytest.mark.parametrize("state", ["active", "suspended"])
    async def test_is_refused_of_somebody_who_leaves(
        self, state: str, leaving: Leaving, database: TestDatabase, alice: Principal
    ) -> None:
        await leaving.begin(alice)
        operator = await database.connect("dispatch")
        try:
            with pytest.raises(asyncpg.PostgresError) as refused:
                await operator.fetchval(SET_STATE, alice.user_id, state)
            assert refused.value.sqlstate == "ST003"
        finally:
            await operator.close()
