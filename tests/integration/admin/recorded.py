"""What is on record in a service's database, read past every role."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import asyncpg
import httpx

from tests.support.service import RunningService
from tests.support.tenancy import TestDatabase

_ACTS = """
    SELECT a.action, a.route, a.account, a.object, a.why, a.actor, u.user_id, o.user_id AS by
    FROM audit a
    LEFT JOIN audit_references u ON u.reference = a.reference
    LEFT JOIN audit_references o ON o.reference = a.by_reference
    WHERE a.route IS NOT NULL AND (o.user_id = $1 OR a.account = $2) ORDER BY a.audit_id
"""


class Record:
    """Acts of operators, as they stand in the table itself."""

    def __init__(self, superuser: asyncpg.Connection) -> None:
        self.superuser = superuser

    async def acts(self, by: str | None = None, account: str | None = None) -> list[dict[str, Any]]:
        """What somebody did, or wanted to do, in order."""
        person = None if by is None else UUID(by)
        return [dict(row) for row in await self.superuser.fetch(_ACTS, person, account)]

    async def age(self, seconds: float) -> None:
        """Let all that is on record be older."""
        await self.superuser.execute(
            "ALTER TABLE audit DISABLE TRIGGER keep_record;"
            f"UPDATE audit SET at = at - interval '{seconds} seconds';"
            "ALTER TABLE audit ENABLE ALWAYS TRIGGER keep_record"
        )


@asynccontextmanager
async def record_of(service: RunningService) -> AsyncIterator[Record]:
    """The record of a service."""
    superuser = await TestDatabase(service.postgres, service.database).connect("owner")
    try:
        yield Record(superuser)
    finally:
        await superuser.close()


async def routes(http: httpx.AsyncClient) -> list[tuple[str, str, Any]]:
    """Every operators' route there is, with a body for it; a new one is covered without asking."""
    document = (await http.get("/openapi.json")).json()
    return [
        (method.upper(), path, _example(operation))
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
        if path.startswith("/admin/")
    ]


def _example(operation: dict[str, Any]) -> Any:
    content = operation.get("requestBody", {}).get("content", {})
    return content.get("application/json", {}).get("example")
