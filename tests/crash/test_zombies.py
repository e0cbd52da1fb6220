"""A worker that stood still past its lease, and wakes: it writes not one row more."""

from __future__ import annotations

import asyncio
import signal

import pytest

from tests.crash.stage import Stage, new_thread
from tests.crash.written import Written
from tests.support.deployment import QUICK_LEASE, STEADY_LEASE
from tests.support.faulty.fault import Fault
from tests.support.processes import StoaProcess

PATIENT = {"STOA_MAX_ATTEMPTS": "100"}


class TestAWorkerThatIsFrozenPastItsLease:
    @pytest.mark.parametrize(
        "fault",
        [
            Fault("claim.after", number=signal.SIGSTOP),
            Fault("token.first", number=signal.SIGSTOP),
            Fault("checkpoint.before", nth=2, number=signal.SIGSTOP),
            Fault("settle.before", number=signal.SIGSTOP),
        ],
        ids=lambda fault: fault.point,
    )
    async def test_writes_nothing_once_it_is_thawed(self, stage: Stage, fault: Fault) -> None:
        if not stage.origins:
            await stage.open_web()
        person, thread_id = stage.person(), new_thread()
        other = await stage.deployment.prepare_worker(**STEADY_LEASE, **PATIENT)
        reading = asyncio.create_task(person.say_and_read(thread_id, "Are you there?"))
        zombie = await standing_still(stage, fault)
        # Another one finishes what it had begun.
        await other.let_go()
        await reading
        await other.terminate()
        async with stage.deployment.superuser() as connection:
            before = await Written.so_far(connection)
            zombie.thaw()
            status = await zombie.process.wait()
            assert await Written.so_far(connection) == before
        assert status == 1, zombie.output
        assert "lost its lease" in zombie.output
        await stage.assert_whole()


async def standing_still(stage: Stage, fault: Fault) -> StoaProcess:
    """A worker that stands still at a point; on a busy machine one may lose its lease before."""
    while True:
        worker = await stage.deployment.start_faulty_worker(fault, **QUICK_LEASE, **PATIENT)
        if await worker.stopped():
            return worker
        assert "lost its lease" in worker.output, worker.output
