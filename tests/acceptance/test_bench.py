"""The benches of the scheduler, as small as they get: not how fast it is, but that it is fair."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from app.bench.export import bench_export
from tests.support import forked
from tests.support.postgres import PostgresServer, Role
from tests.support.service import migrated_database

pytestmark = pytest.mark.timeout(600)
"""Each starts a database and a service: on a busy machine that is a minute."""

ROLES: dict[str, Role] = {"": "service", "DISPATCH_": "dispatch", "MAINTENANCE_": "maintenance"}


async def bench(*arguments: str) -> str:
    """What a bench says, which ends well."""
    # So wide that no number that was measured has a table broken elsewhere.
    status, output = await forked.run(("bench", *arguments), {"COLUMNS": "200"})
    assert status == 0, output
    return output


class TestBenchFairness:
    async def test_finds_nobody_too_far_ahead_and_no_seat_left_free_and_draws_it(
        self, tmp_path: Path
    ) -> None:
        options = ("--quick", "--seconds", "0.3", "--flood", "20", "--folder", str(tmp_path))
        output = await bench("fairness", *options)
        assert "first come" in output
        assert (tmp_path / "fairness.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (tmp_path / "fairness.svg").read_text()


class TestBenchDispatch:
    async def test_measures_calls_and_claims_with_each_backlog(self) -> None:
        options = ("--queued", "100", "--queued", "200", "--clients", "2")
        quick = ("--rounds", "1", "--seconds", "0.1", "--no-durable")
        output = await bench("dispatch", *options, *quick)
        assert "calls, 2 clients" in output
        assert "claims, 2 clients" in output


class TestBenchTools:
    async def test_measures_a_call_by_each_way_against_a_bare_client(self) -> None:
        quick = ("--calls", "10", "--rounds", "1", "--no-durable")
        output = await bench("tools", *quick)
        assert "stdio, p50" in output
        assert "HTTP, p99" in output


class TestBenchWaiting:
    async def test_counts_what_is_held_and_has_each_approved_call_made_once(self) -> None:
        output = await bench("waiting", "--runs", "5", "--settle", "0")
        assert "worker: timers" in output
        assert "5 runs that wait" in output


class TestBenchExport:
    async def test_finds_in_the_archive_all_that_the_database_has(
        self, postgres: PostgresServer, tmp_path: Path
    ) -> None:
        async with migrated_database(postgres) as name:
            dsns = {
                f"STOA_{setting}DATABASE_URL": postgres.dsn(role, name)
                for setting, role in ROLES.items()
            }
            owner = postgres.dsn("owner", name)
            measured = await bench_export(dsns, owner, tmp_path, megabytes=2)
        assert measured.rows > 100
        assert measured.content > 2_000_000
        assert measured.peak >= measured.before > 0


class TestBenchErasure:
    async def test_measures_what_others_notice_while_somebody_is_erased(self) -> None:
        quick = ("--rows", "5001", "--seconds", "0.2", "--no-durable")
        output = await bench("erasure", *quick)
        assert "rows are erased in" in output
        assert "during (" in output


class TestBenchRetention:
    async def test_drops_a_quarter_in_each_cycle_either_way_of_vacuuming(self) -> None:
        output = await bench("retention", "--rows", "800", "--cycles", "2", "--rest", "0")
        dropped = re.findall(r"^│ +[12] │ +(\d+) │", output, re.MULTILINE)
        assert dropped == ["200"] * 4
        assert "vacuumed as Postgres does" in output
