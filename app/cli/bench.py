"""``stoa bench``: what the service costs over what it is built on."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

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
        settings = {
            "STOA_DATABASE_URL": dsns.service,
            "STOA_DISPATCH_DATABASE_URL": dsns.dispatch,
            "STOA_MAINTENANCE_DATABASE_URL": dsns.maintenance,
        }
        await bench_overhead(
            postgres.dsn("owner", "floor"),
            settings,
            runs=runs,
            rounds=rounds,
            in_flight=in_flight,
        )
    finally:
        await postgres.stop()
