"""Everything that is kept of a person, table by table, in pieces of a bounded size.

Each piece is a transaction of its own, over when it is returned. A table is read in the order of
its primary key, and a piece begins after the key at which the last one ended: no row comes twice,
and none is missing that was there from beginning to end, whatever is written meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tenancy.database.retry import while_database_is_away
from tenancy.export.columns import AS_JSON, WITHHELD

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    import asyncpg

    from tenancy.database.tenant import TenantDatabase
    from tenancy.principal import Owner

PIECE_ROWS = 1000
PIECE_BYTES = 1_000_000
"""A piece ends with the row that makes it as large as this: a single one may be larger."""

_MAY = "SELECT tenant.may_export($1)"
_BEGIN = "SELECT tenant.begin_export($1)"
_TABLES = "SELECT name FROM tenant.begin_taking($1), tenant.own_tables()"
_READ = "SELECT line, key FROM tenant.read_own_rows($1, $2, $3, $4, $5, $6, $7)"
_MEASURE = "SELECT * FROM tenant.measure_own_rows($1, $2)"


@dataclass(frozen=True, slots=True)
class Piece:
    """Some rows of a table: lines of JSON, each with its end, and how many."""

    lines: bytes
    rows: int


@dataclass(frozen=True, slots=True)
class TableSize:
    """How much a table has of a person."""

    table: str
    rows: int
    bytes: int
    """As they are stored."""
    is_whole: bool
    """Whether all was looked at: else there is more than this."""


class OwnRows:
    """A person's rows, in every table that has any; also while they are suspended.

    Everything raises ``UserUnavailable`` once they are being erased, or gone, and
    ``DatabaseUnavailable`` while Postgres cannot be reached; a piece is waited for a few seconds.
    """

    def __init__(self, database: TenantDatabase) -> None:
        self._database = database

    async def may_begin(self, owner: Owner) -> None:
        """Say whether everything may be taken along just now; nothing of it is put on record.

        Raises:
            TooManyExports: that was done ten times within an hour.
        """
        await self._database.call(owner, _MAY)

    async def begin(self, owner: Owner) -> None:
        """Put on record that everything is taken along.

        Raises:
            TooManyExports: that was done ten times within an hour.
        """
        await self._database.call(owner, _BEGIN)

    async def tables(self, owner: Owner) -> list[str]:
        """Every table that may have rows of a person's, by name."""
        return [row["name"] for row in await self._database.call(owner, _TABLES)]

    async def pieces(
        self, owner: Owner, table: str, *, rows: int = PIECE_ROWS, size: int = PIECE_BYTES
    ) -> AsyncGenerator[Piece, None]:
        """A table's rows, read as the caller asks for more."""
        about = (table, sorted(WITHHELD.get(table, ())), sorted(AS_JSON.get(table, ())))
        after: list[str] | None = None
        while found := await self._read(owner, *about, after, rows, size):
            after = found[-1]["key"]
            piece = Piece(b"".join(row["line"] + b"\n" for row in found), len(found))
            del found  # a reader may take its time
            yield piece

    async def _read(self, owner: Owner, *about: object) -> list[asyncpg.Record]:
        """A piece; reading one twice changes nothing."""
        return await while_database_is_away(self._database.call, owner, _READ, *about)

    async def sizes(self, owner: Owner, *, most_rows: int) -> list[TableSize]:
        """How much each table has, without looking at more than so many rows of any."""
        rows = await self._database.call(owner, _MEASURE, most_rows)
        return [TableSize(*row.values()) for row in rows]
