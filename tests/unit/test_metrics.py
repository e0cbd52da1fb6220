"""Scraping often costs one question a second, and a database that is away is a metric too."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from structlog.testing import capture_logs

from app.metrics import RecentFacts, SchedulerCollector, _broken_off
from tenancy.database.engine import DatabaseUnavailable
from tenancy.scheduler.facts import SchedulerFacts

SAID = "what PostgreSQL quotes of a row"


class CountedFacts(SchedulerFacts):
    """Facts that are never the same twice."""

    def __init__(self) -> None:
        self.asked = 0
        self.away = False

    async def read(self) -> dict[str, Any]:
        self.asked += 1
        await asyncio.sleep(0)
        if self.away:
            raise DatabaseUnavailable
        return {"asked": self.asked}


class TestFacts:
    async def test_are_asked_for_once_however_many_want_them(self) -> None:
        facts = CountedFacts()
        recent = RecentFacts(facts, lambda: 100.0)
        found = await asyncio.gather(*(recent.read() for _ in range(50)))
        assert found == [{"asked": 1}] * 50

    async def test_are_asked_for_anew_after_a_second(self) -> None:
        now = 100.0
        recent = RecentFacts(CountedFacts(), lambda: now)
        assert await recent.read() == {"asked": 1}
        now = 100.9
        assert await recent.read() == {"asked": 1}
        now = 101.0
        assert await recent.read() == {"asked": 2}

    async def test_that_nobody_foresaw_to_fail_are_missing_too_and_leave_one_record(self) -> None:
        class Broken(CountedFacts):
            async def read(self) -> dict[str, Any]:
                raise RuntimeError(SAID)

        registry = CollectorRegistry()
        registry.register(SchedulerCollector(RecentFacts(Broken()), asyncio.get_running_loop()))
        with capture_logs() as lines:
            text = (await asyncio.to_thread(generate_latest, registry)).decode()
        assert "stoa_database_up 0.0" in text
        (record,) = lines
        assert (record["stage"], record["error"]) == ("metrics", "RuntimeError")
        assert SAID not in str(record)

    async def test_are_missing_while_the_database_is_away_and_that_is_said(self) -> None:
        facts = CountedFacts()
        facts.away = True
        registry = CollectorRegistry()
        registry.register(SchedulerCollector(RecentFacts(facts), asyncio.get_running_loop()))
        text = (await asyncio.to_thread(generate_latest, registry)).decode()
        assert "stoa_database_up 0.0" in text
        assert "stoa_runs" not in text


class TestAScrapeThatBreaksOff:
    def test_leaves_nothing_on_standard_error(self, capsys: pytest.CaptureFixture[str]) -> None:
        for error in (ConnectionResetError(SAID), BrokenPipeError(SAID)):
            try:
                raise error
            except ConnectionError:
                _broken_off(None, None)
        assert capsys.readouterr().err == ""

    def test_by_a_fault_of_ours_leaves_one_record(self) -> None:
        with capture_logs() as lines:
            try:
                raise RuntimeError(SAID)  # noqa: TRY301 - as where a scrape is answered
            except RuntimeError:
                _broken_off(None, None)
        (record,) = lines
        assert (record["stage"], record["error"]) == ("metrics", "RuntimeError")
