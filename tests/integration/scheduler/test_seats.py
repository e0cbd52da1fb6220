"""Seats are given out one by one, to whoever has used least, and come back whatever happens."""

from __future__ import annotations

from tenancy.principal import Principal
from tests.integration.scheduler.conftest import Stage, pool


class TestASeat:
    async def test_is_taken_at_once_where_one_is_free(self, stage: Stage, alice: Principal) -> None:
        await stage.pools.declare([pool(capacity=1)])
        run = await stage.run_of(alice)
        call, asked = await stage.ask(run)
        assert asked.outcome == "taken"
        assert asked.seat is not None
        assert asked.seat.url == "http://default.test"
        assert (await stage.settle(run, call)).first

    async def test_goes_to_whoever_waits_when_it_is_given_back(
        self, stage: Stage, alice: Principal, bob: Principal
    ) -> None:
        await stage.pools.declare([pool(capacity=1)])
        run, other = await stage.run_of(alice), await stage.run_of(bob)
        first, _ = await stage.ask(run)
        second, asked = await stage.ask(other)
        assert asked.outcome == "waiting"
        assert (await stage.settle(run, first)).granted == (second,)
        assert (await stage.seats.take_up(bob.user_id, second)).outcome == "taken"

    async def test_is_charged_once(self, stage: Stage, alice: Principal) -> None:
        await stage.pools.declare([pool(capacity=1)])
        run = await stage.run_of(alice)
        call, _ = await stage.ask(run)
        assert (await stage.settle(run, call)).first
        assert not (await stage.settle(run, call)).first
