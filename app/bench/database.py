"""A migrated database of a bench's own, on a server that is there already."""

from __future__ import annotations

import os
import secrets
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from uuid import uuid4

import sqlalchemy as sa
from sqlalchemy.engine import make_url

from tenancy.database.engine import DatabaseSettings, create_engine
from tenancy.migrate import RoleDsns, create_database, drop_database, migrate

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@dataclass(frozen=True, slots=True)
class BenchDatabase:
    """How each role reaches it; the owner is a superuser."""

    owner: DatabaseSettings
    service: DatabaseSettings
    dispatch: DatabaseSettings
    maintenance: DatabaseSettings


@asynccontextmanager
async def bench_database(owner_dsn: str) -> AsyncIterator[BenchDatabase]:
    """A database with roles of its own; both are dropped again.

    Args:
        owner_dsn: a superuser's DSN.
    """
    name = f"stoa_bench_{uuid4().hex[:12]}"
    url = make_url(owner_dsn).set(database=name)
    roles = RoleDsns(
        *(
            url.set(username=f"{name}_{role}", password=secrets.token_hex()).render_as_string(
                hide_password=False
            )
            for role in ("service", "dispatch", "maintenance")
        )
    )
    dsn = url.render_as_string(hide_password=False)
    create_database(owner_dsn, name)
    try:
        migrate(dsn, roles)
        owner = DatabaseSettings(dsn=dsn, statement_timeout=3600, idle_in_transaction_timeout=60)
        doors = (roles.service, roles.dispatch, roles.maintenance)
        yield BenchDatabase(owner, *(replace(owner, dsn=role) for role in doors))
    finally:
        drop_database(owner_dsn, name, roles)


async def settings_of(dsn: str) -> str:
    """What of a server's settings decides how fast it commits."""
    engine = create_engine(DatabaseSettings(dsn=dsn))
    names = ("fsync", "synchronous_commit", "shared_buffers")
    try:
        async with engine.connect() as connection:
            values = [
                (await connection.execute(sa.text(f"SHOW {name}"))).scalar() for name in names
            ]
    finally:
        await engine.dispose()
    said = ", ".join(f"{name} {value}" for name, value in zip(names, values, strict=True))
    return f"Postgres with {said}; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}."
