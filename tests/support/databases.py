"""Databases that are used again: emptied between two tests, which costs less than a new copy."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final
from uuid import uuid4

import asyncpg

from tests.support.postgres import PostgresServer

_OURS: Final = "relnamespace::regnamespace::text NOT IN ('pg_catalog', 'information_schema')"
_CATALOGUES: Final = (
    "pg_attrdef",
    "pg_attribute",
    "pg_class",
    "pg_constraint",
    "pg_default_acl",
    "pg_index",
    "pg_namespace",
    "pg_policy",
    "pg_proc",
    "pg_rewrite",
    "pg_type",
)
_KEPT: Final = " UNION ALL ".join(
    f"SELECT '{name}', count(*), max(xmin::text::bigint) FROM {name}" for name in _CATALOGUES
)
"""Changes with every change of what the database consists of and who may do what with it."""
_TRIGGERS: Final = """
SELECT 'pg_trigger', count(*), sum(hashtextextended(t::text, 0)) FROM pg_trigger t
"""
"""By what they are, not by when that was written: emptying switches some off, and on again."""
_LEARNT: Final = f"""
SELECT 'planner', count(*), sum(reltuples)::bigint FROM pg_class WHERE relkind = 'r' AND {_OURS}
UNION ALL SELECT 'statistics', count(*), NULL FROM pg_statistic s JOIN pg_class ON oid = s.starelid
WHERE {_OURS}
UNION ALL SELECT 'settings', count(*), NULL FROM pg_db_role_setting JOIN pg_database d
ON d.oid = setdatabase WHERE d.datname = current_database()
UNION ALL SELECT 'connections', datconnlimit, datallowconn::int FROM pg_database
WHERE datname = current_database()
UNION ALL SELECT 'rights', count(*), NULL FROM pg_database, aclexplode(datacl)
WHERE datname = current_database()
"""
"""What plans depend on, and what is settled for the database as a whole."""
_FINGERPRINT: Final = f"{_KEPT} UNION ALL {_TRIGGERS} UNION ALL {_LEARNT}"
_MOST_ROWS: Final = 1000
"""What is deleted stays in the files for a while: a database that held more is dropped."""
_EMPTY: Final = """
DO $emptying$
DECLARE
  emptied text;
  held name;
  guards text[] := '{{}}';
  is_filled boolean;
  deleted bigint;
  altogether bigint := 0;
BEGIN
  SET LOCAL session_replication_role = replica;
  FOREACH emptied IN ARRAY string_to_array('{tables}', ',') LOOP
    EXECUTE format('SELECT EXISTS (SELECT FROM %s)', emptied) INTO is_filled;
    IF is_filled THEN
      -- What keeps the record as it is would keep this out, too.
      FOR held IN
        SELECT tgname FROM pg_trigger WHERE tgrelid = emptied::regclass AND tgenabled = 'A'
      LOOP
        EXECUTE format('ALTER TABLE %s DISABLE TRIGGER %I', emptied, held);
        guards := guards || format('ALTER TABLE %s ENABLE ALWAYS TRIGGER %I', emptied, held);
      END LOOP;
      EXECUTE 'DELETE FROM ' || emptied;
      GET DIAGNOSTICS deleted = ROW_COUNT;
      altogether := altogether + deleted;
    END IF;
  END LOOP;
  FOREACH emptied IN ARRAY guards LOOP
    EXECUTE emptied;
  END LOOP;
  IF altogether > {most} THEN
    RAISE EXCEPTION 'not worth keeping';
  END IF;
END $emptying$;
{seeds};
SELECT setval(seqrelid, seqstart, false) FROM pg_sequence;
SELECT pg_stat_reset();
"""
_END_OTHERS: Final = """
SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
"""


@dataclass
class Databases:
    """Copies of a template, given out one at a time as if each had just been made.

    One comes back as it was or not at all: where more than rows was changed, it is dropped.
    """

    server: PostgresServer
    template: str
    _idle: list[str] = field(default_factory=list)
    _fingerprint: list[asyncpg.Record] = field(default_factory=list)
    _emptying: str = ""

    @asynccontextmanager
    async def one(self) -> AsyncIterator[str]:
        """The name of one that nobody else uses."""
        name = self._idle.pop() if self._idle else await self._copy()
        kept = False
        try:
            yield name
            kept = await self._restored(name)
        finally:
            if kept:
                self._idle.append(name)
            else:
                await self.server.drop_database(name)

    async def drop(self) -> None:
        """Drop those that nobody uses."""
        while self._idle:
            await self.server.drop_database(self._idle.pop())

    async def _copy(self) -> str:
        name = f"stoa_test_{uuid4().hex[:12]}"
        await self.server.copy_database(self.template, name)
        if not self._emptying:
            async with self._superuser(name) as connection:
                self._fingerprint = await connection.fetch(_FINGERPRINT)
                self._emptying = await _emptying(connection)
        return name

    async def _restored(self, name: str) -> bool:
        try:
            async with self._superuser(name) as connection:
                await connection.execute(_END_OTHERS)
                if await connection.fetch(_FINGERPRINT) != self._fingerprint:
                    return False
                await connection.execute(self._emptying)
        except (asyncpg.PostgresError, OSError):
            return False
        return True

    @asynccontextmanager
    async def _superuser(self, name: str) -> AsyncIterator[asyncpg.Connection]:
        connection = await asyncpg.connect(self.server.dsn("owner", name), statement_cache_size=0)
        try:
            yield connection
        finally:
            await connection.close()


async def _emptying(fresh: asyncpg.Connection) -> str:
    """The statements that bring a database's rows to what they are now, in a fresh one."""
    tables = [
        row["name"]
        for row in await fresh.fetch(
            "SELECT oid::regclass::text AS name FROM pg_class"
            f" WHERE relkind = 'r' AND {_OURS} ORDER BY name"
        )
    ]
    seeds = [
        f"INSERT INTO {table} OVERRIDING SYSTEM VALUE"
        f" SELECT * FROM json_populate_recordset(NULL::{table}, {literal})"
        for table in tables
        if (
            literal := await fresh.fetchval(
                f"SELECT quote_literal(json_agg(row)::text) FROM {table} AS row"
            )
        )
    ]
    return _EMPTY.format(tables=",".join(tables), most=_MOST_ROWS, seeds=";\n".join(seeds))
