"""Files of tombstones go by the database's clock, and with them the last trace of who left."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from pathlib import Path
from uuid import uuid4

import asyncpg
from prometheus_client import CollectorRegistry

from app.erasure.tombstone_files import Tombstone, TombstoneFolder
from tests.integration.worker.retention.conftest import PATIENCE, Retaining


async def counted(metrics: CollectorRegistry, name: str) -> float:
    """What a counter of these files says, once it is more than nothing."""
    async with asyncio.timeout(PATIENCE):
        while True:
            if value := metrics.get_sample_value(name, {"kind": "tombstone_files"}):
                return value
            await asyncio.sleep(0.01)


class TestATombstonesFile:
    async def test_goes_when_its_time_is_over(
        self, superuser: asyncpg.Connection, retaining: Retaining, tmp_path: Path
    ) -> None:
        now: datetime = await superuser.fetchval("SELECT clock_timestamp()")
        folder, metrics = TombstoneFolder(tmp_path / "tombstones"), CollectorRegistry()
        over, kept = [
            Tombstone(uuid4(), "k", b"hash", now + timedelta(minutes=minutes))
            for minutes in (-1, 60)
        ]
        for each in (over, kept):
            folder.write(each)
        async with retaining(metrics=metrics, tombstone_folder=folder.path):
            assert await counted(metrics, "stoa_retention_rows_dropped_total") == 1
        assert folder.read() == [kept]

    async def test_that_cannot_be_read_is_left_for_somebody_to_look_at(
        self, retaining: Retaining, tmp_path: Path
    ) -> None:
        metrics = CollectorRegistry()
        (tmp_path / f"{uuid4()}.json").write_text("{")
        async with retaining(metrics=metrics, tombstone_folder=tmp_path):
            assert await counted(metrics, "stoa_retention_failures_total") >= 1
        assert len(list(tmp_path.iterdir())) == 1
