"""The PostgreSQL server that tests use, and databases on it.

``STOA_TEST_DATABASE_URL`` names a server (a superuser's DSN); ``STOA_TEST_POSTGRES=container``
starts one in a container; otherwise it is the embedded one in a folder that goes afterwards.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal
from uuid import uuid4

import asyncpg
from sqlalchemy.engine import URL, make_url

from app.dev.postgres import EmbeddedPostgres
from app.dev.postgres.orphan import children_ended
from tenancy.migrate import RoleDsns, migrate

Role = Literal["owner", "service", "dispatch", "maintenance"]
ROLES: Final[tuple[Role, ...]] = ("service", "dispatch", "maintenance")
_PATIENCE = 60.0
_LOOK_SECONDS = 0.1


@dataclass(frozen=True)
class PostgresServer:
    """A server and the names and passwords of Stoa's roles on it."""

    superuser: URL
    suffix: str = field(default_factory=lambda: secrets.token_hex(4))
    password: str = field(default_factory=secrets.token_hex)
    _migrated: list[str] = field(default_factory=list, compare=False)
    _migrating: asyncio.Lock = field(default_factory=asyncio.Lock, compare=False)

    def dsn(self, role: Role, database: str) -> str:
        """Return the address of a database for a role; the owner's is the superuser's."""
        url = self.superuser.set(database=database)
        if role != "owner":
            url = url.set(username=f"stoa_{role}_{self.suffix}", password=self.password)
        return url.render_as_string(hide_password=False)

    async def create_database(self, name: str) -> None:
        """Create an empty database."""
        await self._execute(f'CREATE DATABASE "{name}" TEMPLATE template0 ENCODING UTF8')

    async def copy_database(self, source: str, name: str) -> None:
        """Create a database as a copy of one that nobody is connected to: faster than migrating."""
        await self._execute_alone(f'CREATE DATABASE "{name}" TEMPLATE "{source}"')

    async def template(self) -> str:
        """A migrated, empty database that nobody is connected to: made once, to be copied."""
        async with self._migrating:
            if not self._migrated:
                name = f"stoa_template_{uuid4().hex[:12]}"
                await self.create_database(name)
                self._migrated.append(name)
                dsns = RoleDsns(*(self.dsn(role, name) for role in ROLES))
                await asyncio.to_thread(migrate, self.dsn("owner", name), dsns)
        return self._migrated[0]

    async def drop_template(self) -> None:
        """Drop it, if there is one."""
        while self._migrated:
            await self.drop_database(self._migrated.pop())

    async def drop_database(self, name: str) -> None:
        """Drop a database, whoever is connected to it."""
        await self._execute_alone(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')

    async def drop_roles(self) -> None:
        """Drop the roles made for this server object, once their databases are gone."""
        for role in ROLES:
            await self._execute(f'DROP ROLE IF EXISTS "stoa_{role}_{self.suffix}"')

    async def _execute_alone(self, statement: str) -> None:
        """What wants nobody connected: a session that was ended may take a while to go."""
        async with asyncio.timeout(_PATIENCE):
            while True:
                try:
                    return await self._execute(statement)
                except asyncpg.ObjectInUseError:
                    await asyncio.sleep(_LOOK_SECONDS)

    async def _execute(self, statement: str) -> None:
        dsn = self.superuser.render_as_string(hide_password=False)
        connection = await asyncpg.connect(dsn, statement_cache_size=0)
        try:
            await connection.execute(statement)
        finally:
            await connection.close()


@asynccontextmanager
async def postgres_server() -> AsyncIterator[PostgresServer]:
    """Give out a server for the whole test run."""
    if given := os.environ.get("STOA_TEST_DATABASE_URL"):
        server = PostgresServer(_plain(given))
        try:
            yield server
        finally:
            await server.drop_template()
            await server.drop_roles()
    elif os.environ.get("STOA_TEST_POSTGRES") == "container":
        # Asks for a Docker engine when it is imported.
        from testcontainers.postgres import PostgresContainer  # noqa: PLC0415

        with PostgresContainer("postgres:18", driver=None) as container:
            yield PostgresServer(_plain(container.get_connection_url()))
    else:
        async with _embedded() as server:
            yield server


@asynccontextmanager
async def _embedded() -> AsyncIterator[PostgresServer]:
    folder = Path(tempfile.mkdtemp(prefix="stoa-test-"))
    # The server may run as another user, who has to get to its own folder.
    folder.chmod(0o711)
    postgres = EmbeddedPostgres(folder, temporary=True)
    try:
        await postgres.start()
        yield PostgresServer(_plain(postgres.dsn("owner", "postgres")))
    finally:
        await postgres.stop(hurry=True)
        await children_ended(folder / "postgres")  # of a server that was too slow, and was killed
        shutil.rmtree(folder)


def _plain(dsn: str) -> URL:
    return make_url(dsn).set(drivername="postgresql")
