"""A day's and a month's tokens: asked before a seat is given, counted when it comes back."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from app.runs.runs import RunRequest, create_run
from tenancy.errors import TokenBudgetExhausted
from tenancy.principal import Principal
from tests.integration.scheduler.conftest import Stage, pool
from tests.support.tenancy import ASSISTANT, make_thread

EXHAUSTED = "SELECT name, resets_at FROM tenant.exhausted_budget($1, $2::text::jsonb, $3)"
USE = (
    "INSERT INTO usage_hours (user_id, hour, model, prompt_tokens, output_tokens)"
    " VALUES ($1, $2, $3, $4, 0)"
)


def at(moment: str) -> datetime:
    """A moment, in UTC."""
    return datetime.fromisoformat(moment).replace(tzinfo=UTC)


class TestATokenBudget:
    @pytest.mark.parametrize("name", ["tokens_per_day", "tokens_per_month"])
    async def test_that_is_used_up_gives_no_seat_and_says_when_it_begins_anew(
        self, stage: Stage, alice: Principal, name: str
    ) -> None:
        await stage.pools.declare([pool()])
        await stage.limit(alice, f'{{"{name}": 150}}')
        run = await stage.run_of(alice)
        call = await stage.take(run)
        # What was begun is brought to its end.
        await stage.settle(run, call, 100, 50)
        _, asked = await stage.ask(run)
        assert asked.outcome == name
        assert asked.resets_at is not None
        assert asked.resets_at > datetime.now(UTC)
        assert await stage.value("SELECT count(*) FROM model_calls") == 0

    @pytest.mark.parametrize("name", ["tokens_per_day", "tokens_per_month"])
    async def test_that_is_used_up_while_calls_wait_lets_none_of_them_begin(
        self, stage: Stage, alice: Principal, name: str
    ) -> None:
        await stage.pools.declare([pool()])
        await stage.limit(alice, f'{{"{name}": 150}}')
        run = await stage.run_of(alice)
        first = await stage.take(run)
        waiting = [await stage.wait(run) for _ in range(3)]
        await stage.settle(run, first, 100, 50)
        vtime = await stage.vtime(alice)
        for call in waiting:
            asked = await stage.seats.take_up(run.user_id, call, {})
            assert asked.outcome == name
            assert asked.resets_at is not None
            assert await stage.value("SELECT count(taken_at) FROM model_calls") == 0
            await stage.settle(run, call, 0, 0)
        assert await stage.value("SELECT count(*) FROM model_calls") == 0
        assert await stage.value("SELECT sum(calls) FROM usage_hours") == 1
        assert await stage.vtime(alice) < vtime  # what their seats had been charged is given back

    async def test_that_is_used_up_lets_a_call_that_has_begun_come_to_its_end(
        self, stage: Stage, alice: Principal
    ) -> None:
        await stage.pools.declare([pool(capacity=3)])
        await stage.limit(alice, '{"tokens_per_day": 150}')
        run = await stage.run_of(alice)
        first, second = await stage.take(run), await stage.take(run)
        await stage.settle(run, first, 100, 50)
        assert await stage.outcome(run, second) == "taken"

    async def test_that_is_not_gives_one(self, stage: Stage, alice: Principal) -> None:
        await stage.pools.declare([pool()])
        await stage.limit(alice, '{"tokens_per_day": 151, "tokens_per_month": 151}')
        run = await stage.run_of(alice)
        await stage.settle(run, await stage.take(run), 100, 50)
        await stage.take(run)

    async def test_of_nothing_lets_nothing_begin_and_lifted_lets_it_go_on(
        self, stage: Stage, alice: Principal
    ) -> None:
        await stage.pools.declare([pool()])
        run = await stage.run_of(alice)
        await stage.limit(alice, '{"tokens_per_day": 0}')
        assert (await stage.ask(run))[1].outcome == "tokens_per_day"
        thread = await make_thread(stage.tenants, alice)
        with pytest.raises(TokenBudgetExhausted):
            await create_run(
                stage.tenants,
                alice,
                thread_id=thread,
                assistant_id=ASSISTANT,
                graph_id="agent",
                request=RunRequest(),
            )
        await stage.limit(alice, '{"tokens_per_day": null}')
        await stage.take(run)

    async def test_is_each_persons_own(
        self, stage: Stage, alice: Principal, bob: Principal
    ) -> None:
        await stage.pools.declare([pool()])
        await stage.limit(alice, '{"tokens_per_day": 0}')
        await stage.take(await stage.run_of(bob))

    @pytest.mark.parametrize(
        ("now", "limits", "exhausted"),
        [
            ("2026-03-08T23:59:59", '{"tokens_per_day": 10}', ("tokens_per_day", "2026-03-09")),
            ("2026-03-09T00:00:00", '{"tokens_per_day": 10}', None),
            ("2026-03-31T12:00:00", '{"tokens_per_month": 10}', ("tokens_per_month", "2026-04-01")),
            ("2026-04-01T00:00:00", '{"tokens_per_month": 10}', None),
            # The one that lasts longer is told: tomorrow there would be none either.
            (
                "2026-03-08T12:00:00",
                '{"tokens_per_day": 10, "tokens_per_month": 10}',
                ("tokens_per_month", "2026-04-01"),
            ),
        ],
    )
    async def test_is_of_days_and_months_of_utc_wherever_one_looks_from(
        self,
        stage: Stage,
        alice: Principal,
        now: str,
        limits: str,
        exhausted: tuple[str, str] | None,
    ) -> None:
        hour = at("2026-03-08T11:00:00")
        await stage.superuser.execute(USE, alice.user_id, hour, "one:latest", 6)
        await stage.superuser.execute(USE, alice.user_id, hour, "other:latest", 4)
        expected = None if exhausted is None else (exhausted[0], at(exhausted[1]))
        for zone in ("UTC", "America/Los_Angeles", "Pacific/Kiritimati"):
            await stage.superuser.execute(f"SET timezone = '{zone}'")
            row = await stage.superuser.fetchrow(EXHAUSTED, alice.user_id, limits, at(now))
            assert (None if row is None else (row["name"], row["resets_at"])) == expected, zone

    async def test_of_a_month_begins_anew_on_the_first(
        self, stage: Stage, alice: Principal
    ) -> None:
        for now, resets in (
            ("2026-01-31T10:00:00", "2026-02-01"),
            ("2026-02-28T23:00:00", "2026-03-01"),
            ("2028-02-29T23:00:00", "2028-03-01"),
            ("2026-12-31T23:59:59", "2027-01-01"),
        ):
            limits = '{"tokens_per_month": 0}'
            row = await stage.superuser.fetchrow(EXHAUSTED, alice.user_id, limits, at(now))
            assert row is not None
            assert row["resets_at"] == at(resets)
