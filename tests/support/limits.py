"""People's limits, set as an operator would."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg
import httpx
import orjson

from tests.support.service import RunningService

PATIENCE = 30.0
LOOK_SECONDS = 0.05


async def limit(
    service: RunningService,
    client: httpx.AsyncClient,
    who: str | None = None,
    **limits: float | None,
) -> str:
    """Give the person behind a client limits of their own, in place of those they had.

    ``who`` is their id, where they cannot be asked just now. Returns it.
    """
    user_id = who or str((await client.get("/me")).json()["user_id"])
    connection = await asyncpg.connect(service.postgres.dsn("owner", service.database))
    try:
        await connection.execute(
            "INSERT INTO user_limits (user_id, limits) VALUES ($1, $2)"
            " ON CONFLICT (user_id) DO UPDATE SET limits = EXCLUDED.limits",
            user_id,
            orjson.dumps(limits).decode(),
        )
    finally:
        await connection.close()
    return user_id


async def settled_usage(
    client: httpx.AsyncClient, calls: int, path: str = "/me/usage", **params: str
) -> dict[str, Any]:
    """What was used once so many calls are settled, which may be a little after their runs' end."""
    async with asyncio.timeout(PATIENCE):
        while True:
            found: dict[str, Any] = (await client.get(path, params=params)).json()
            if found["total"]["calls"] >= calls:
                return found
            await asyncio.sleep(LOOK_SECONDS)


async def limits_of(client: httpx.AsyncClient) -> dict[str, Any]:
    """What a person sees of their limits."""
    answer = await client.get("/me/limits")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def named(limits: dict[str, Any], name: str) -> dict[str, Any]:
    """One of the limits that a person sees."""
    (found,) = (each for each in limits["limits"] if each["name"] == name)
    return dict(found)
