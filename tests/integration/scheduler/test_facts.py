"""What metrics are made of says who waits for others, not who waits for themselves."""

from __future__ import annotations

import json

from tenancy.principal import Principal
from tests.integration.scheduler.conftest import Stage, pool

_OLDEST = "SELECT dispatch.scheduler_facts() -> 'oldest_wait_seconds' ->> 'model'"


class TestTheOldestWaitForAModel:
    async def test_is_nobodys_whom_only_their_own_limit_holds_back(
        self, stage: Stage, alice: Principal, bob: Principal
    ) -> None:
        await stage.pools.declare([pool(capacity=2)])
        await stage.limit(alice, json.dumps({"seats": 1}))
        await stage.take(await stage.run_of(alice))
        await stage.wait(await stage.run_of(alice))
        assert float(await stage.value(_OLDEST)) == 0
        await stage.take(await stage.run_of(bob))
        await stage.wait(await stage.run_of(bob))
        assert float(await stage.value(_OLDEST)) == 0

    async def test_is_that_of_somebody_who_waits_for_a_seat(
        self, stage: Stage, alice: Principal, bob: Principal
    ) -> None:
        await stage.pools.declare([pool(capacity=1)])
        await stage.take(await stage.run_of(alice))
        await stage.wait(await stage.run_of(bob))
        assert float(await stage.value(_OLDEST)) > 0
