"""``stoa bench overhead``: the service against the bare loop it is built on, in one run.

The same three-step graph without a model, with about 2 KB of state, on the same Postgres:
once as a bare LangGraph loop with the library's saver, once through HTTP, queue, worker and
SSE. Rounds alternate, so that whatever else the machine does hits both alike.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from app.bench.floor import open_floor
from app.bench.graphs.three_steps import Steps
from app.bench.load import Load, drive
from app.bench.service import open_service

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from app.bench.load import Timing

    RunOnce = Callable[[int], Awaitable[Timing]]

_INPUT: Steps = {"steps": [], "text": "x" * 2000}
_WARM_UP = 20


@dataclass(slots=True)
class Measured:
    """One side: many runs in flight, and one run alone."""

    together: Load = field(default_factory=Load)
    alone: Load = field(default_factory=Load)

    async def round(self, run_once: RunOnce, runs: int, in_flight: int) -> None:
        """Measure one round of both."""
        self.alone.add(await drive(run_once, max(runs // 10, 10), 1))
        self.together.add(await drive(run_once, runs, in_flight))


async def bench_overhead(
    floor_dsn: str, service_dsns: Mapping[str, str], *, runs: int, rounds: int, in_flight: int
) -> None:
    """Measure and print.

    Args:
        floor_dsn: an empty database for the bare loop.
        service_dsns: ``STOA_…_DATABASE_URL`` settings of a migrated database.
        runs: runs per side and round.
        rounds: how often the sides alternate.
        in_flight: runs at once.
    """
    floor, service = Measured(), Measured()
    async with open_floor(floor_dsn, _INPUT) as bare, open_service(service_dsns, _INPUT) as whole:
        for run_once in (bare, whole):
            await drive(run_once, _WARM_UP, in_flight)
        for _ in range(rounds):
            await floor.round(bare, runs, in_flight)
            await service.round(whole, runs, in_flight)
    Console().print(_table(floor, service, in_flight))


def _table(floor: Measured, service: Measured, in_flight: int) -> Table:
    table = Table(title="A run of three steps without a model")
    for heading in ("", "bare loop", "Stoa", "ratio", "goal"):
        table.add_column(heading, justify="left" if not heading else "right")
    rate = [side.together.runs_per_second for side in (floor, service)]
    table.add_row(f"runs/s, {in_flight} in flight", *_both(rate), "≥ 0.5, aim 0.7")
    for name, percent in (("p50", 50), ("p99", 99)):
        for where, loads in (
            ("alone", (floor.alone, service.alone)),
            (f"{in_flight} in flight", (floor.together, service.together)),
        ):
            first = [load.first_event_ms(percent) for load in loads]
            whole = [load.completion_ms(percent) for load in loads]
            goals = ("≤ 20 ms", "≤ 2") if (percent, where) == (50, "alone") else ("", "")
            table.add_row(f"first event {name} ms, {where}", *_both(first), goals[0])
            table.add_row(f"completion {name} ms, {where}", *_both(whole), goals[1])
    return table


def _both(values: list[float]) -> tuple[str, str, str]:
    return (f"{values[0]:.1f}", f"{values[1]:.1f}", f"{values[1] / values[0]:.2f}")
