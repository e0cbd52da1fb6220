"""A machine that slept longer than its worker's lease: nobody has to tell the worker."""

from __future__ import annotations

import asyncio
import sys
import threading
import time

import pytest

from tests.integration.worker.test_lease import PATIENCE, Kept
from tests.support.tenancy import TestDatabase


@pytest.mark.skipif(sys.platform != "linux", reason="other systems count sleep in no clock")
async def test_a_lease_that_ended_while_the_machine_slept_is_given_up_at_once(
    database: TestDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only one clock of the kernel's went on; the database, asked, would renew the lease."""
    kept = Kept(database)
    await kept.keeper.start()
    real, slept = time.clock_gettime, 0.0

    def clock(which: int) -> float:
        # Other workers of this process, which later tests share, have not slept.
        has_slept = threading.current_thread() is kept.keeper._thread
        return real(which) + (slept if has_slept and which == time.CLOCK_BOOTTIME else 0)

    monkeypatch.setattr(time, "clock_gettime", clock)
    try:
        assert not kept.lost.is_set()
        slept = 3600.0
        async with asyncio.timeout(PATIENCE):
            await kept.lost.wait()
    finally:
        await kept.keeper.stop()
