"""What makes a test build fail does nothing to the program that people run."""

from __future__ import annotations

from tests.crash.stage import Stage, new_thread
from tests.support.deployment import STEADY_LEASE
from tests.support.faulty.fault import Fault


class TestTheShippedProgram:
    async def test_reads_no_faults(self, stage: Stage) -> None:
        armed = Fault("claim.after").environment
        await stage.open_web()
        worker = await stage.deployment.start_shipped_worker(**STEADY_LEASE, **armed)
        await stage.person().say_and_read(new_thread(), "Still there?")
        assert worker.process.returncode is None
        await stage.assert_whole()
        await stage.assert_nothing_left(worker)
