"""``stoa bench``: what the service costs over what it is built on."""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from app.bench.chaos.report import Report
    from app.bench.chaos.run import Plan
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


async def _chaos(folder: Path, plan: Plan, logs: Path | None) -> Report:
    from app.bench.chaos.run import bench_chaos
    from app.dev.child import start_guarded
    from app.dev.postgres import EmbeddedPostgres
    from tenancy.migrate import RoleDsns, migrate

    chosen = logs or folder / "logs"
    chosen.mkdir(parents=True, exist_ok=True)
    postgres = EmbeddedPostgres(folder, temporary=True)
    await postgres.start()
    try:
        dsns = RoleDsns(*(postgres.dsn(role) for role in ("service", "dispatch", "maintenance")))
        owner = postgres.dsn("owner")
        migrate(owner, dsns)
        return await bench_chaos(plan, postgres, _settings(dsns), owner, start_guarded, chosen)
    finally:
        await postgres.stop()
        shutil.copy(postgres.log, chosen)


async def _rls(folder: Path, rows: int) -> None:
    from app.bench.rls import bench_rls
    from app.dev.postgres import EmbeddedPostgres

    postgres = EmbeddedPostgres(folder)
    await postgres.start()
    try:
        await bench_rls(postgres.dsn("owner"), rows)
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


def _settings(dsns: RoleDsns) -> dict[str, str]:
    return {
        "STOA_DATABASE_URL": dsns.service,
        "STOA_DISPATCH_DATABASE_URL": dsns.dispatch,
        "STOA_MAINTENANCE_DATABASE_URL": dsns.maintenance,
    }
