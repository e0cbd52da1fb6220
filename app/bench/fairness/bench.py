"""Plays every part with every way of giving out seats, one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console

from app.bench.database import bench_database
from app.bench.fairness.backstage import Backstage
from app.bench.fairness.dispatchers import FirstComeSeats, RoundRobinSeats
from app.bench.fairness.parts import EQUALS, RETURNING, WEIGHTED, Results, flooded
from app.bench.fairness.people import PACE
from app.bench.fairness.play import play
from app.bench.fairness.server import CountingModel
from app.bench.fairness.stage import LocalStage, PostgresStage, Stage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.bench.fairness.ledger import Ledger
    from app.bench.fairness.people import Person

FAIR = "fair"
TRUE_COSTS = "fair, true costs"
FIRST_COME = "first come"
ROUND_ROBIN = "round robin"
FLOODS = (100, 1_000, 10_000)


async def bench_fairness(
    owner_dsn: str, *, seconds: float, floods: Sequence[int] = FLOODS, seed: int = 1
) -> list[Results]:
    """Measure in a database of its own.

    Args:
        owner_dsn: a superuser's DSN.
        seconds: how long each part is measured.
        floods: how many calls of one user wait while a light user asks.
        seed: chooses the sizes of the calls.
    """
    console = Console()
    async with (
        CountingModel(PACE) as model,
        bench_database(owner_dsn) as database,
        Backstage(database.owner) as backstage,
    ):
        stages: tuple[Stage, ...] = (
            PostgresStage(FAIR, database, backstage, model.url),
            PostgresStage(TRUE_COSTS, database, backstage, model.url, knows_costs=True),
            LocalStage(FIRST_COME, FirstComeSeats, model.url),
            LocalStage(ROUND_ROBIN, RoundRobinSeats, model.url),
        )
        results = [Results(stage.name, stage.most_seats) for stage in stages]

        async def measure(stage: Stage, people: Sequence[Person]) -> Ledger:
            with console.status(f"{stage.name}: {', '.join(each.name for each in people)}"):
                return await play(stage, people, seconds, seed)

        for stage, result in zip(stages, results, strict=True):
            result.equals = await measure(stage, EQUALS)
            if stage.name == TRUE_COSTS:
                continue
            result.weighted = await measure(stage, WEIGHTED)
            result.returning = await measure(stage, RETURNING)
            for calls in floods:
                result.floods[calls] = await measure(stage, flooded(calls))
    return results
