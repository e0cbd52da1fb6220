"""Everything that was ever written to the tables of a database, as the database counts it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import asyncpg


@dataclass(frozen=True)
class Written:
    """Each table's rows in their present versions. A row that is written again is another one."""

    versions: frozenset[tuple[str, str, str]]

    @classmethod
    async def so_far(cls, connection: asyncpg.Connection) -> Self:
        """Ask for every row's place and the transaction that wrote it."""
        tables = await connection.fetch(
            "SELECT relname FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace"
            " WHERE nspname = 'public' AND relkind = 'r' ORDER BY relname"
        )
        versions: set[tuple[str, str, str]] = set()
        for (table,) in tables:
            rows = await connection.fetch(f'SELECT ctid::text, xmin::text FROM public."{table}"')
            versions |= {(table, row["ctid"], row["xmin"]) for row in rows}
        return cls(frozenset(versions))
