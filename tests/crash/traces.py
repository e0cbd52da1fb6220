"""Whether anything of a person is left: in every table of a database, in every file of a folder."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import asyncpg

_TABLES = """
SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'm') AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')
ORDER BY 1, 2
"""


@dataclass(frozen=True)
class Traces:
    """What a person can be told by: their id, and a word that nobody else says."""

    user_id: UUID
    word: str

    def found_in(self, content: bytes) -> bool:
        """Whether it is there, as text, as bytes, or as the bytes that a dump writes as hex."""
        return any(needle in content for needle in self._needles())

    async def found_in_database(self, connection: asyncpg.Connection) -> list[str]:
        """The tables that a dump of the whole database has anything of them in."""
        tables = await connection.fetch(_TABLES)
        return [
            table["relname"]
            for table in tables
            if self.found_in(await copied(connection, table["nspname"], table["relname"]))
        ]

    def found_in_folders(self, folders: Iterable[Path]) -> list[str]:
        """The files that have anything of them in their content, or in their name."""
        return [
            str(file)
            for folder in folders
            for file in sorted(folder.rglob("*"))
            if self.found_in(os.fsencode(file.relative_to(folder)))
            or (file.is_file() and self.found_in(file.read_bytes()))
        ]

    def _needles(self) -> list[bytes]:
        plain = [self.user_id.bytes, self.word.encode()]
        return [
            *plain,
            *(each.hex().encode() for each in plain),
            *(base64.b64encode(each).rstrip(b"=")[:-1] for each in plain),
            str(self.user_id).encode(),
        ]


async def copied(connection: asyncpg.Connection, schema: str, table: str) -> bytes:
    """All of a table, as a dump has it."""
    parts: list[bytes] = []

    async def keep(part: bytes) -> None:
        parts.append(part)

    await connection.copy_from_table(table, schema_name=schema, output=keep)
    return b"".join(parts)
