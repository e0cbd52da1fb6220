"""Everything that was ever written to the tables of a database, as the database counts it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import asyncpg

OF_A_SEAT = frozenset({"model_calls", "model_users", "models", "pools", "usage_hours"})
"""What a worker writes when it gives back a seat, as it should, also of a run that it has lost."""
OF_OTHERS = frozenset({"components"})
"""What web processes write by themselves: they look whether there is a worker at all."""


@dataclass(frozen=True)
class Written:
    """Each table's rows in their present versions. A row that is written again is another one."""

    versions: frozenset[tuple[str, str, str]]

    @classmethod
    async def so_far(cls, connection: asyncpg.Connection) -> Self:
        """Ask for every row's place and the transaction that wrote it."""
        tables = await connection.fetch(
            "SELECT relname FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace"
            " WHERE nspname = 'public' AND relkind = 'r' AND relname <> ALL ($1) ORDER BY relname",
            [*OF_A_SEAT, *OF_OTHERS],
        )
        versions: set[tuple[str, str, str]] = set()
        for (table,) in tables:
            rows = await connection.fetch(f'SELECT ctid::text, xmin::text FROM public."{table}"')
            versions |= {(table, row["ctid"], row["xmin"]) for row in rows}
        return cls(frozenset(versions))
