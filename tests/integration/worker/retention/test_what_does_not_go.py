"""What cannot be dropped, or is too much, keeps back nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import asyncpg
import pytest
from prometheus_client import CollectorRegistry

from app.worker.retention.batches import OwnedDuty, Work
from app.worker.retention.meter import RetentionMeter
from tenancy.database.due import LOGS
from tenancy.database.upkeep import DueRow
from tenancy.principal import Principal, UserId
from tests.integration.worker.retention.conftest import DAY, Retaining, until

DROPPED = "SELECT log_dropped_at IS NOT NULL FROM runs WHERE run_id = $1"
_KEEP = """
CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'this row stays' USING ERRCODE = '{state}';
END $$;
CREATE TRIGGER keep BEFORE DELETE ON run_events FOR EACH ROW WHEN (OLD.run_id = '{run}')
EXECUTE FUNCTION keep()
"""


class TestALogThatCannotBeDropped:
    @pytest.mark.parametrize("state", ["XX001", "57014"], ids=["broken", "timed out"])
    async def test_keeps_back_no_other(
        self,
        state: str,
        superuser: asyncpg.Connection,
        alice: Principal,
        bob: Principal,
        retaining: Retaining,
        ended_run: Callable[..., Any],
    ) -> None:
        """However it fails, and though it is the one that has been due for longest."""
        stays, *others = [await ended_run(each) for each in (alice, bob, bob)]
        for n, run in enumerate((stays, *others)):
            await superuser.execute(
                "UPDATE runs SET ended_at = ended_at - make_interval(days => $2) WHERE run_id = $1",
                *(run.run_id, 100 - n),
            )
        await superuser.execute(_KEEP.format(state=state, run=stays.run_id))
        metrics = CollectorRegistry()
        async with retaining(owners=1, metrics=metrics, event_retention_seconds=30 * DAY):
            for run in others:
                await until(superuser, DROPPED, run.run_id)
        assert not await superuser.fetchval(DROPPED, stays.run_id)
        failures = metrics.get_sample_value("stoa_retention_failures_total", {"kind": "events"})
        assert failures is not None
        assert failures >= 1


class TestAKindOfWhichEverMoreIsDue:
    async def test_lets_others_have_their_turn(self) -> None:
        async def one_more(*_: Any, **__: Any) -> list[DueRow]:
            return [DueRow(UserId(uuid4()), uuid4(), 1.0)]

        async def drop(*_: Any) -> list[tuple[int, bool]]:
            await asyncio.sleep(0)
            return [(1, False)]

        everything: Any = SimpleNamespace(due=one_more, call=drop)
        meter = RetentionMeter(CollectorRegistry())
        duty = OwnedDuty("events", LOGS, "SELECT")
        await duty.perform(Work(everything, everything, meter, turn_seconds=0.05))
