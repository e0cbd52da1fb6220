"""``stoa admin queue``, ``pools``, ``workers``, ``usage``: who waits, where, and what was used."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Literal
from uuid import UUID

import typer

from app.cli.acting import command_act
from app.cli.console import console

if TYPE_CHECKING:
    from app.admin.queue_views import PoolView, QueueView
    from app.admin.usage import UsageOfAll
    from app.admin.workers_views import WorkerView
    from tenancy.acts import Act

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

    found = asyncio.run(_queue(command_act(), limit))
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
    found = asyncio.run(_pools(command_act(), wanted))
    if json:
        from pydantic import TypeAdapter

        from app.admin.queue_views import PoolView

        typer.echo(TypeAdapter(list[PoolView]).dump_json(found, indent=2).decode())
    else:
        console().print(pools_table(found))
    if any(pool.state == "failing" for pool in found):
        raise typer.Exit(FAILING)


def workers(*, json: AsJson = False) -> None:
    """Show the workers: what each holds, and how long its lease is good for.

    Connects with STOA_DISPATCH_DATABASE_URL.
    """
    import asyncio

    from app.admin.workers_report import workers_table

    found = asyncio.run(_workers(command_act()))
    if json:
        from pydantic import TypeAdapter

        from app.admin.workers_views import WorkerView

        typer.echo(TypeAdapter(list[WorkerView]).dump_json(found, indent=2).decode())
    else:
        console().print(workers_table(found))


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

    Connects with STOA_MAINTENANCE_DATABASE_URL, and with STOA_DISPATCH_DATABASE_URL, since a look
    goes on record.

    Exits 2 when there is no such range, or it has more than 1000 steps.
    """
    import asyncio

    from app.admin.usage_report import usage_report
    from tenancy.errors import InvalidInput

    try:
        times = (in_utc(begin), in_utc(end))
        found = asyncio.run(_usage(command_act(), times, bucket, user, limit))
    except InvalidInput as error:
        raise typer.BadParameter(str(error)) from error
    if json:
        typer.echo(found.model_dump_json(indent=2, by_alias=True))
    else:
        console().print(usage_report(found))


async def _queue(act: Act, limit: int) -> QueueView:
    from app.admin.acts import looked
    from app.admin.scheduler import scheduler_admin
    from app.settings import load_settings

    settings = load_settings()
    async with scheduler_admin(settings) as admin:
        await looked(settings, act)
        return await admin.queue(limit)


async def _workers(act: Act) -> list[WorkerView]:
    from app.admin.acts import looked
    from app.admin.scheduler import scheduler_admin
    from app.settings import load_settings

    settings = load_settings()
    async with scheduler_admin(settings) as admin:
        await looked(settings, act)
        return await admin.workers()


async def _pools(act: Act, wanted: list[tuple[str, int | None]]) -> list[PoolView]:
    from app.admin.acts import looked
    from app.admin.scheduler import scheduler_admin
    from app.settings import load_settings

    settings = load_settings()
    async with scheduler_admin(settings) as admin:
        if not wanted:
            await looked(settings, act)
        for pool, capacity in wanted:
            await admin.set_capacity(pool, capacity, act)
        return await admin.pools()


async def _usage(
    act: Act,
    times: tuple[datetime | None, datetime | None],
    bucket: Literal["hour", "day"],
    user: UUID | None,
    limit: int,
) -> UsageOfAll:
    from app.admin.acts import looked
    from app.admin.usage import usage_admin
    from app.settings import load_settings

    settings = load_settings()
    begin, end = times
    async with usage_admin(settings) as admin:
        await looked(settings, act, user)
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


def in_utc(moment: datetime | None) -> datetime | None:
    """A time as it was said, which is of UTC."""
    from datetime import UTC

    if moment is None or moment.tzinfo is not None:
        return moment
    return moment.replace(tzinfo=UTC)
