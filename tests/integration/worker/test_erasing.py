"""What becomes of people who leave, come back, or are suspended, in a service that goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from tests.support.frames import new_thread, read_run, start_run
from tests.support.model_server import Script
from tests.support.postgres import PostgresServer
from tests.support.service import RunningService, Web, running_service
from tests.support.vaults import keys_of

PATIENCE = 30


@asynccontextmanager
async def service_of(postgres: PostgresServer, folder: Path) -> AsyncIterator[RunningService]:
    """A service that can erase people."""
    async with running_service(
        postgres,
        signing_keys=keys_of("signing"),
        tombstone_folder=folder / "tombstones",
        mcp_folder=folder / "mcp",
        max_attempts=1,  # whatever spends one ends its run
    ) as service:
        yield service


async def user_id(client: httpx.AsyncClient) -> str:
    """Whom the service takes the person for."""
    answer = await client.get("/me")
    assert answer.status_code == 200, answer.text
    return str(answer.json()["user_id"])


async def leave(client: httpx.AsyncClient) -> None:
    """Leave, and wait until that is over."""
    begun = await client.delete("/me")
    assert begun.status_code == 202, begun.text
    await until("done", client, begun.headers["location"])


async def until(state: str, client: httpx.AsyncClient, location: str) -> None:
    """Return once what is asked after is in this state."""
    async with asyncio.timeout(PATIENCE):
        while True:
            if (await client.get(location)).json()["state"] == state:
                return
            await asyncio.sleep(0.02)


class TestSomebodyWhoLeaves:
    async def test_and_comes_back_is_somebody_new_at_once_in_every_process(
        self, postgres: PostgresServer, tmp_path: Path
    ) -> None:
        async with service_of(postgres, tmp_path) as service:
            deaf: Web = await service.start_web()
            here, there = service.client("ada"), service.client("ada", url=deaf.url)
            before = await user_id(here)
            assert await user_id(there) == before
            await deaf.services.tail.stop()  # it hears of nothing any more
            await leave(here)
            after = await user_id(there)
            assert after != before
            assert await user_id(here) == after

    async def test_has_no_stream_open_any_more_and_nobody_else_loses_one(
        self, postgres: PostgresServer, tmp_path: Path
    ) -> None:
        async with service_of(postgres, tmp_path) as service:
            leaver, stayer = service.client("ada"), service.client("ben")
            async with (
                leaver.stream("GET", "/events") as own,
                stayer.stream("GET", "/events") as others,
            ):
                await leave(leaver)
                async with asyncio.timeout(PATIENCE):
                    async for _ in own.aiter_raw():
                        pass  # to its end
                await start_run(stayer, await new_thread(stayer))
                async with asyncio.timeout(PATIENCE):
                    async for piece in others.aiter_raw():
                        if b"event: run" in piece:
                            break


class TestAPersonWhoIsSuspended:
    @pytest.fixture
    async def service(
        self, postgres: PostgresServer, tmp_path: Path
    ) -> AsyncIterator[RunningService]:
        async with service_of(postgres, tmp_path) as service:
            yield service

    async def test_has_their_run_put_back_and_gone_on_with_once_they_are_back(
        self, service: RunningService
    ) -> None:
        person = service.client("ada")
        operator = service.client("olga", groups=["stoa-admins"])
        account = f"/admin/users/{await user_id(person)}"
        waiting = await start_run(person, await new_thread(person), after_seconds=3600)
        service.model.enqueue(Script(text="one two three", stall_at=1))
        location = await start_run(person, await new_thread(person))
        await service.model.wait_for_stall()

        assert (await operator.post(f"{account}/suspend")).status_code == 200
        await until("pending", person, location)
        await service.model.wait_for_disconnect()
        refused = await person.post("/threads", json={})
        assert (refused.status_code, refused.json()["code"]) == (403, "user_unavailable")
        # Nobody claims it meanwhile, though others' runs are.
        other = service.client("ben")
        frames = await read_run(other, await start_run(other, await new_thread(other)))
        assert frames[-1].data["status"] == "success"
        assert (await person.get(location)).json()["state"] == "pending"

        assert (await operator.post(f"{account}/resume")).status_code == 200
        assert (await read_run(person, location))[-1].data["status"] == "success"
        assert (await person.get(waiting)).json()["state"] == "pending"
