"""``stoa admin queue``, ``pools`` and ``usage``: who waits, where, and what was used."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Literal
from uuid import UUID

import typer

from app.cli.console import console

if TYPE_CHECKING:
    from app.admin.queue_views import PoolView, QueueView
    from app.admin.usage import UsageOfAll

FAILING = 3
MOST_CAPACITY = 10_000
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Limit = Annotated[int, typer.Option(help="People, and things, to show.", min=1, max=1000)]


def queue(limit: Limit = 20, *, json: AsJson = False) -> None:
    """Show who waits, how long and why: models, pools, runs, people.

    Why is one of: queue (others are served first), own_limit (a limit of their own), thread (a run
    of the same thread goes first), scheduled, suspended, model_unavailable (no pool with the model
    is open), over_budget (their tokens are used up). Connects with STOA_DISPATCH_DATABASE_URL.
    """
    import asyncio

    from app.admin.queue_report import queue_report

    found = asyncio.run(_queue(limit))
    if json:
        typer.echo(found.model_dump_json(indent=2))
    else:
        console().print(queue_report(found))


def pools(
    *,
    set_capacity: Annotated[
        list[str] | None,
        typer.Option(
            "--set-capacity",
            metavar="POOL=N",
            help="Calls that a pool takes at once: a number, 0 suspends it, `default` is what the"
            " settings say. Any number of times.",
        ),
    ] = None,
    json: AsJson = False,
) -> None:
    """Show the pools with their seats, or set how many calls they take at once.

    More seats are given out at once; with fewer, calls in flight end as they would. Connects with
    STOA_DISPATCH_DATABASE_URL.

    Exits 0 when every pool works, 3 when one fails, 1 when there is no such pool.
    """
    import asyncio

    from app.admin.queue_report import pools_table

    wanted = [_capacity(each) for each in set_capacity or ()]
    found = asyncio.run(_pools(wanted))
    if json:
        from pydantic import TypeAdapter

        from app.admin.queue_views import PoolView

        typer.echo(TypeAdapter(list[PoolView]).dump_json(found, indent=2).decode())
    else:
        console().print(pools_table(found))
    if any(pool.state == "failing" for pool in found):
        raise typer.Exit(FAILING)


def usage(
    begin: Annotated[
        datetime | None, typer.Option("--from", help="In UTC. Default: 24 hours before the end.")
    ] = None,
    end: Annotated[datetime | None, typer.Option("--to", help="In UTC. Default: now.")] = None,
    bucket: Annotated[Literal["hour", "day"], typer.Option(help="Steps of time.")] = "hour",
    user: Annotated[UUID | None, typer.Option(help="Only this person's.")] = None,
    limit: Limit = 20,
    *,
    json: AsJson = False,
) -> None:
    """Show what was used, over time and by whom: tokens, calls, runs, seconds.

    Connects with STOA_MAINTENANCE_DATABASE_URL.

    Exits 2 when there is no such range, or it has more than 1000 steps.
    """
    import asyncio

    from app.admin.usage_report import usage_report
    from tenancy.errors import InvalidInput

    try:
        found = asyncio.run(_usage(_in_utc(begin), _in_utc(end), bucket, user, limit))
    except InvalidInput as error:
        raise typer.BadParameter(str(error)) from error
    if json:
        typer.echo(found.model_dump_json(indent=2, by_alias=True))
    else:
        console().print(usage_report(found))


async def _queue(limit: int) -> QueueView:
    from app.admin.scheduler import scheduler_admin
    from app.settings import load_settings

    async with scheduler_admin(load_settings()) as admin:
        return await admin.queue(limit)


async def _pools(wanted: list[tuple[str, int | None]]) -> list[PoolView]:
    from app.admin.scheduler import scheduler_admin
    from app.settings import load_settings

    async with scheduler_admin(load_settings()) as admin:
        for pool, capacity in wanted:
            await admin.set_capacity(pool, capacity)
        return await admin.pools()


async def _usage(
    begin: datetime | None,
    end: datetime | None,
    bucket: Literal["hour", "day"],
    user: UUID | None,
    limit: int,
) -> UsageOfAll:
    from app.admin.usage import usage_admin
    from app.settings import load_settings

    async with usage_admin(load_settings()) as admin:
        return await admin.usage(begin, end, bucket, user, limit)


def _capacity(said: str) -> tuple[str, int | None]:
    pool, _, value = said.rpartition("=")
    if pool and value == "default":
        return pool, None
    if not pool or not value.isascii() or not value.isdigit() or int(value) > MOST_CAPACITY:
        raise typer.BadParameter(
            f"Say POOL=N, N from 0 to {MOST_CAPACITY}, or POOL=default.",
            param_hint="--set-capacity",
        )
    return pool, int(value)


def _in_utc(moment: datetime | None) -> datetime | None:
    from datetime import UTC

    if moment is None or moment.tzinfo is not None:
        return moment
    return moment.replace(tzinfo=UTC)
