"""``stoa bench``: what the service costs over what it is built on."""

from __future__ import annotations

import shutil
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from rich.table import Table

    from app.bench.chaos.report import Report
    from app.bench.chaos.run import Plan
    from app.bench.chaos.stage import Ground
    from app.bench.fairness.parts import Results
    from tenancy.migrate import RoleDsns

application = typer.Typer(help="Measure Stoa on this machine.", no_args_is_help=True)


@application.command()
def overhead(
    runs: Annotated[int, typer.Option(help="Runs per side and round.", min=10)] = 300,
    rounds: Annotated[int, typer.Option(help="How often the sides alternate.", min=1)] = 3,
    in_flight: Annotated[int, typer.Option(help="Runs at once.", min=1)] = 50,
) -> None:
    """Measure the service against a bare LangGraph loop on the same embedded Postgres."""
    import uvloop

    with TemporaryDirectory(prefix="stoa-bench-", ignore_cleanup_errors=True) as folder:
        uvloop.run(_overhead(Path(folder), runs, rounds, in_flight))


@application.command()
def rls(
    rows: Annotated[
        int, typer.Option(help="Rows in each hot table, a hundred per user.", min=1000)
    ] = 1_000_000,
) -> None:
    """Measure the hot queries with and without policies, on an embedded Postgres."""
    import uvloop

    with TemporaryDirectory(prefix="stoa-bench-", ignore_cleanup_errors=True) as folder:
        uvloop.run(_rls(Path(folder), rows))


@application.command()
def tools(
    calls: Annotated[int, typer.Option(help="Calls per side, way and round.", min=10)] = 200,
    rounds: Annotated[int, typer.Option(help="How often the sides alternate.", min=1)] = 3,
    durable: Annotated[  # noqa: FBT002 - an option
        bool, typer.Option(help="Whether each commit waits for the disk.")
    ] = True,
) -> None:
    """Measure a call of a tool against one by a bare client, by stdio and by HTTP."""
    import uvloop

    with TemporaryDirectory(prefix="stoa-bench-", ignore_cleanup_errors=True) as folder:
        uvloop.run(_tools(Path(folder), calls, rounds, durable=durable))


@application.command()
def dispatch(
    queued: Annotated[
        list[int] | None,
        typer.Option(
            help="How many calls, and runs, wait. Default: 1000, 100000, 1000000.", min=10
        ),
    ] = None,
    clients: Annotated[
        list[int] | None, typer.Option(help="How many ask at once. Default: 1, 4, 8.", min=1)
    ] = None,
    rounds: Annotated[int, typer.Option(help="How often each is measured.", min=1)] = 3,
    seconds: Annotated[float, typer.Option(help="For how long.", min=0.1)] = 5,
    durable: Annotated[  # noqa: FBT002 - an option
        bool, typer.Option(help="Whether each commit waits for the disk.")
    ] = True,
) -> None:
    """Measure how fast seats and runs are given out, with more and more that wait."""
    import uvloop

    from app.bench.dispatch import BACKLOGS, CLIENTS

    backlogs, at_once = tuple(queued or BACKLOGS), tuple(clients or CLIENTS)
    with TemporaryDirectory(prefix="stoa-bench-", ignore_cleanup_errors=True) as folder:
        uvloop.run(_dispatch(Path(folder), backlogs, at_once, rounds, seconds, durable=durable))


@application.command()
def fairness(
    seconds: Annotated[
        float | None,
        typer.Option(help="How long each part is measured. Default: 12; 1 if quick.", min=0.1),
    ] = None,
    flood: Annotated[
        list[int] | None,
        typer.Option(
            help="Calls of one user that wait beside a light user's."
            " Default: 100, 1000, 10000; 10, 100 if quick.",
            min=1,
        ),
    ] = None,
    quick: Annotated[bool, typer.Option(help="Half a minute instead of five.")] = False,  # noqa: FBT002
    seed: Annotated[int, typer.Option(help="Chooses the sizes of the calls.")] = 1,
    folder: Annotated[Path, typer.Option(help="Where the plots are written.")] = Path(),
) -> None:
    """Measure how evenly people share a model, beside first come first served and round robin.

    Exit 1 if two people's use was farther apart than it may be, or a seat stayed free.
    """
    import uvloop
    from rich.console import Console

    from app.bench.fairness.bench import FLOODS, bench_fairness
    from app.bench.fairness.plot import draw
    from app.bench.fairness.report import faults_in, table_of
    from app.dev.postgres import EmbeddedPostgres

    async def measure(data: Path) -> list[Results]:
        # Nothing waits for the disk: what is measured is who is next, not how fast it is decided.
        postgres = EmbeddedPostgres(data, temporary=True)
        await postgres.start()
        try:
            return await bench_fairness(
                postgres.dsn("owner"),
                seconds=seconds or (1 if quick else 12),
                floods=flood or ((10, 100) if quick else FLOODS),
                seed=seed,
            )
        finally:
            await postgres.stop()

    with TemporaryDirectory(prefix="stoa-bench-", ignore_cleanup_errors=True) as data:
        results = uvloop.run(measure(Path(data)))
    console = Console()
    console.print(table_of(results))
    for file in draw(results, folder):
        console.print(f"Drawn in {file}")
    for fault in (faults := faults_in(results)):
        console.print(fault)
    if faults:
        raise typer.Exit(1)


@application.command()
def chaos(
    minutes: Annotated[float, typer.Option(help="How long things go wrong.", min=0.1)] = 10,
    seed: Annotated[int, typer.Option(help="Chooses everything that goes wrong.")] = 1,
    faults: Annotated[
        int | None, typer.Option(help="How many things go wrong. Default: 100 a minute.", min=1)
    ] = None,
    webs: Annotated[int, typer.Option(help="Web processes.", min=1)] = 2,
    workers: Annotated[int, typer.Option(help="Workers.", min=1)] = 2,
    logs: Annotated[
        Path | None, typer.Option(help="Folder for what the processes log. Default: none.")
    ] = None,
) -> None:
    """Let processes, connections and Postgres fail under load; exit 1 if anything broke."""
    import uvloop
    from rich.console import Console

    from app.bench.chaos.run import Plan

    wanted = faults if faults is not None else max(1, round(minutes * 100))
    plan = Plan(minutes * 60, wanted, seed, {"web": webs, "worker": workers})
    with TemporaryDirectory(prefix="stoa-bench-", ignore_cleanup_errors=True) as folder:
        report = uvloop.run(_chaos(Path(folder), plan, logs))
    report.print(Console())
    if not report.is_clean:
        raise typer.Exit(1)


@application.command()
def streams(
    in_flight: Annotated[int, typer.Option("--streams", help="Streams in flight.", min=1)] = 200,
    seconds: Annotated[float, typer.Option(help="How long each answer takes.", min=5)] = 20,
    words_per_second: Annotated[
        float, typer.Option(help="How fast the model speaks, to each.", min=0.1)
    ] = 2,
    idle: Annotated[int, typer.Option(help="Streams in which nothing happens.", min=0)] = 500,
) -> None:
    """Measure an event's way from the model to the client, and what an idle stream costs."""
    import uvloop

    with TemporaryDirectory(prefix="stoa-bench-", ignore_cleanup_errors=True) as folder:
        uvloop.run(_streams(Path(folder), in_flight, seconds, words_per_second, idle))


@application.command()
def takeover(
    rounds: Annotated[int, typer.Option(help="Takeovers of each kind.", min=1)] = 3,
    lease: Annotated[float, typer.Option(help="Seconds of a lease.", min=1)] = 30,
    reap: Annotated[float, typer.Option(help="Seconds between looks for dead workers.")] = 5,
) -> None:
    """Measure how soon another worker goes on with a run whose own one is gone."""
    import uvloop
    from rich.console import Console

    from app.bench.takeover import bench_takeover

    async def measure(folder: Path) -> Table:
        async with _ground(folder, folder / "logs") as ground:
            return await bench_takeover(
                ground, rounds=rounds, lease_seconds=lease, reap_seconds=reap
            )

    with TemporaryDirectory(prefix="stoa-bench-", ignore_cleanup_errors=True) as folder:
        Console().print(uvloop.run(measure(Path(folder))))


@application.command()
def cancel(
    rounds: Annotated[int, typer.Option(help="Answers that are stopped.", min=1)] = 50,
) -> None:
    """Measure how soon a model server knows that an answer is not wanted any more."""
    import uvloop
    from rich.console import Console

    from app.bench.cancel import bench_cancel

    async def measure(folder: Path) -> Table:
        async with _ground(folder, folder / "logs") as ground:
            return await bench_cancel(ground, rounds=rounds)

    with TemporaryDirectory(prefix="stoa-bench-", ignore_cleanup_errors=True) as folder:
        Console().print(uvloop.run(measure(Path(folder))))


@application.command()
def waiting(
    runs: Annotated[int, typer.Option(help="Runs that wait at once.", min=1)] = 1000,
    settle: Annotated[
        float, typer.Option(help="Seconds in which nothing happens before it is counted.", min=0)
    ] = 4,
) -> None:
    """Measure what runs cost that wait for their people to approve a call."""
    import uvloop

    with TemporaryDirectory(prefix="stoa-bench-", ignore_cleanup_errors=True) as folder:
        uvloop.run(_waiting(Path(folder), runs, settle))


@application.command()
def export(
    megabytes: Annotated[int, typer.Option(help="How much the person has.", min=1)] = 1000,
) -> None:
    """Measure what a web process holds while somebody takes everything along. On Linux."""
    import uvloop

    with TemporaryDirectory(prefix="stoa-bench-", ignore_cleanup_errors=True) as folder:
        uvloop.run(_export(Path(folder), megabytes))


@application.command()
def erasure(
    rows: Annotated[int, typer.Option(help="How many rows the person has.", min=5001)] = 1_000_000,
    seconds: Annotated[
        float, typer.Option(help="How long is measured without it, before and after.", min=0.1)
    ] = 30,
    clients: Annotated[int, typer.Option(help="How many others at once.", min=1)] = 2,
    durable: Annotated[  # noqa: FBT002 - an option
        bool, typer.Option(help="Whether each commit waits for the disk.")
    ] = True,
) -> None:
    """Measure what others notice while somebody with very many rows is erased."""
    import uvloop

    with TemporaryDirectory(prefix="stoa-bench-", ignore_cleanup_errors=True) as folder:
        uvloop.run(_erasure(Path(folder), rows, seconds, clients, durable=durable))


async def _erasure(folder: Path, rows: int, seconds: float, clients: int, *, durable: bool) -> None:
    from app.bench.erasure import bench_erasure
    from app.dev.postgres import EmbeddedPostgres
    from tenancy.migrate import RoleDsns, migrate

    postgres = EmbeddedPostgres(folder, temporary=not durable)
    await postgres.start()
    try:
        dsns = RoleDsns(*(postgres.dsn(role) for role in ("service", "dispatch", "maintenance")))
        owner = postgres.dsn("owner")
        migrate(owner, dsns)
        await bench_erasure(
            _settings(dsns), owner, folder, rows=rows, seconds=seconds, clients=clients
        )
    finally:
        await postgres.stop()


async def _export(folder: Path, megabytes: int) -> None:
    from app.bench.export import bench_export
    from app.dev.postgres import EmbeddedPostgres
    from tenancy.migrate import RoleDsns, migrate

    postgres = EmbeddedPostgres(folder, temporary=True)
    await postgres.start()
    try:
        dsns = RoleDsns(*(postgres.dsn(role) for role in ("service", "dispatch", "maintenance")))
        owner = postgres.dsn("owner")
        migrate(owner, dsns)
        await bench_export(_settings(dsns), owner, folder, megabytes=megabytes)
    finally:
        await postgres.stop()


async def _chaos(folder: Path, plan: Plan, logs: Path | None) -> Report:
    from app.bench.chaos.run import bench_chaos

    async with _ground(folder, logs or folder / "logs") as ground:
        return await bench_chaos(ground, plan)


@asynccontextmanager
async def _ground(folder: Path, logs: Path) -> AsyncIterator[Ground]:
    """A Postgres and what else a cluster stands on. The server's log is kept with the others."""
    from app.bench.chaos.stage import Ground
    from app.dev.child import start_guarded
    from app.dev.postgres import EmbeddedPostgres
    from tenancy.migrate import RoleDsns, migrate

    logs.mkdir(parents=True, exist_ok=True)
    # Nothing waits for the disk: it is processes that die here, not the machine.
    postgres = EmbeddedPostgres(folder, temporary=True)
    await postgres.start()
    try:
        dsns = RoleDsns(*(postgres.dsn(role) for role in ("service", "dispatch", "maintenance")))
        owner = postgres.dsn("owner")
        migrate(owner, dsns)
        yield Ground(postgres, _settings(dsns), owner, start_guarded, logs)
    finally:
        await postgres.stop()
        shutil.copy(postgres.log, logs)


@application.command()
def retention(
    rows: Annotated[int, typer.Option(help="Events that are kept.", min=800)] = 200_000,
    cycles: Annotated[int, typer.Option(help="How often a quarter is replaced.", min=1)] = 6,
    rest: Annotated[
        float, typer.Option(help="Seconds that autovacuum has for the table after each.", min=0)
    ] = 5,
) -> None:
    """Measure what it costs to drop old logs, and whether their table grows."""
    import uvloop

    with TemporaryDirectory(prefix="stoa-bench-", ignore_cleanup_errors=True) as folder:
        uvloop.run(_retention(Path(folder), rows, cycles, rest))


async def _retention(folder: Path, rows: int, cycles: int, rest: float) -> None:
    from app.bench.retention import bench_retention
    from app.dev.postgres import EmbeddedPostgres

    postgres = EmbeddedPostgres(folder)
    await postgres.start()
    try:
        await bench_retention(postgres.dsn("owner"), rows, cycles, rest)
    finally:
        await postgres.stop()


async def _rls(folder: Path, rows: int) -> None:
    from app.bench.rls import bench_rls
    from app.dev.postgres import EmbeddedPostgres

    postgres = EmbeddedPostgres(folder)
    await postgres.start()
    try:
        await bench_rls(postgres.dsn("owner"), rows)
    finally:
        await postgres.stop()


async def _dispatch(
    folder: Path,
    backlogs: tuple[int, ...],
    clients: tuple[int, ...],
    rounds: int,
    seconds: float,
    *,
    durable: bool,
) -> None:
    from app.bench.dispatch import bench_dispatch
    from app.dev.postgres import EmbeddedPostgres

    postgres = EmbeddedPostgres(folder, temporary=not durable)
    await postgres.start()
    try:
        await bench_dispatch(
            postgres.dsn("owner"),
            backlogs=backlogs,
            clients=clients,
            rounds=rounds,
            seconds=seconds,
        )
    finally:
        await postgres.stop()


async def _tools(folder: Path, calls: int, rounds: int, *, durable: bool) -> None:
    from app.bench.tools import bench_tools
    from app.dev.postgres import EmbeddedPostgres

    postgres = EmbeddedPostgres(folder, temporary=not durable)
    await postgres.start()
    try:
        await bench_tools(postgres.dsn("owner"), folder, calls=calls, rounds=rounds)
    finally:
        await postgres.stop()


async def _overhead(folder: Path, runs: int, rounds: int, in_flight: int) -> None:
    from app.bench.overhead import bench_overhead
    from app.dev.postgres import EmbeddedPostgres
    from tenancy.migrate import RoleDsns, create_database, migrate

    postgres = EmbeddedPostgres(folder)
    await postgres.start()
    try:
        dsns = RoleDsns(*(postgres.dsn(role) for role in ("service", "dispatch", "maintenance")))
        migrate(postgres.dsn("owner"), dsns)
        create_database(postgres.dsn("owner"), "floor")
        await bench_overhead(
            postgres.dsn("owner", "floor"),
            _settings(dsns),
            runs=runs,
            rounds=rounds,
            in_flight=in_flight,
        )
    finally:
        await postgres.stop()


async def _streams(
    folder: Path, in_flight: int, seconds: float, words_per_second: float, idle: int
) -> None:
    from app.bench.streams import bench_streams
    from app.dev.postgres import EmbeddedPostgres
    from tenancy.migrate import RoleDsns, migrate

    postgres = EmbeddedPostgres(folder)
    await postgres.start()
    try:
        dsns = RoleDsns(*(postgres.dsn(role) for role in ("service", "dispatch", "maintenance")))
        migrate(postgres.dsn("owner"), dsns)
        await bench_streams(
            _settings(dsns),
            streams=in_flight,
            seconds=seconds,
            words_per_second=words_per_second,
            idle_streams=idle,
        )
    finally:
        await postgres.stop()


async def _waiting(folder: Path, runs: int, settle: float) -> None:
    from app.bench.waiting import bench_waiting
    from app.dev.postgres import EmbeddedPostgres
    from tenancy.migrate import RoleDsns, migrate

    postgres = EmbeddedPostgres(folder, temporary=True)
    await postgres.start()
    try:
        dsns = RoleDsns(*(postgres.dsn(role) for role in ("service", "dispatch", "maintenance")))
        migrate(postgres.dsn("owner"), dsns)
        owner = postgres.dsn("owner")
        await bench_waiting(_settings(dsns), owner, folder, runs=runs, settle_seconds=settle)
    finally:
        await postgres.stop()


def _settings(dsns: RoleDsns) -> dict[str, str]:
    return {
        "STOA_DATABASE_URL": dsns.service,
        "STOA_DISPATCH_DATABASE_URL": dsns.dispatch,
        "STOA_MAINTENANCE_DATABASE_URL": dsns.maintenance,
    }
