"""A cancel that was accepted holds, whatever dies between the acceptance and its effect."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from app.bench.chaos.client import Person
from app.bench.chaos.promises import Promise
from tests.crash.stage import Stage, new_thread
from tests.support.deployment import STEADY_LEASE
from tests.support.faulty.fault import Fault
from tests.support.model_server import Script
from tests.support.processes import StoaProcess

HALF = Script(text="You said: Tell me everything.", stall_at=3)


@dataclass
class Answering:
    """A run whose answer stands half-way."""

    person: Person
    run: Promise
    reading: asyncio.Task[None]

    async def state(self) -> Any:
        """How the run stands."""
        return (await self.person.ask("GET", self.run.location))["state"]


async def half_answered(stage: Stage) -> Answering:
    person = stage.person()
    stalls = stage.deployment.stalls
    stage.deployment.model.enqueue(HALF)
    run = await person.say(new_thread(), "Tell me everything.")
    await stage.deployment.model.wait_for_stall(stalls + 1)
    return Answering(person, run, asyncio.create_task(person.read(run)))


async def cancel_unanswered(answering: Answering, web: StoaProcess, headers: Any) -> None:
    """Cancel at a web process that dies once it has accepted."""
    async with httpx.AsyncClient(trust_env=False, headers=headers, timeout=60) as client:
        with pytest.raises(httpx.TransportError):
            await client.post(f"{web.url}{answering.run.location}/cancel")
    await web.died()


class TestACancelThatWasAccepted:
    async def test_holds_though_the_worker_dies_as_it_follows(self, stage: Stage) -> None:
        await stage.open_web()
        doomed = await stage.deployment.start_faulty_worker(
            Fault("cancel.followed"), **STEADY_LEASE
        )
        rescuer = await stage.deployment.prepare_worker(**STEADY_LEASE)
        answering = await half_answered(stage)
        await answering.person.stop(answering.run, action="interrupt", wait=False)
        await doomed.died()
        await rescuer.let_go()
        await stage.deployment.lease_over(doomed)
        await answering.reading
        assert await answering.state() == "cancelled"
        await stage.assert_whole()
        await rescuer.terminate()

    async def test_holds_though_the_web_process_dies_before_it_tells_anybody(
        self, stage: Stage
    ) -> None:
        worker = await stage.deployment.start_worker(**STEADY_LEASE)
        answering = await half_answered(stage)
        doomed = await stage.deployment.start_web(fault=Fault("cancel.accepted"))
        await cancel_unanswered(answering, doomed, stage.headers_of(answering.person))
        await answering.reading
        assert await answering.state() == "cancelled"
        await stage.assert_whole()
        await worker.terminate()

    async def test_holds_though_everything_dies(self, stage: Stage) -> None:
        worker = await stage.deployment.start_worker(**STEADY_LEASE)
        answering = await half_answered(stage)
        doomed = await stage.deployment.start_web(fault=Fault("cancel.accepted"))
        # It hears of the cancel only from the database.
        worker.freeze()
        await cancel_unanswered(answering, doomed, stage.headers_of(answering.person))
        await worker.kill()
        await stage.kill_webs()
        await asyncio.gather(stage.open_web(), stage.deployment.start_worker(**STEADY_LEASE))
        await stage.deployment.lease_over(worker)
        await answering.reading
        assert await answering.state() == "cancelled"
        await stage.assert_whole()
