"""What becomes of people who leave, come back, or are suspended, in a service that goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import UUID

import asyncpg
import httpx
import pytest

from app.databases import dispatch_settings
from app.erasure import folders
from app.settings import Settings
from app.tools.stdio.folders import make_folder
from app.worker import erasing, letting_go
from tenancy.database.crossing import DispatchDatabase
from tenancy.database.engine import DatabaseUnavailable
from tenancy.database.signals import Announcer
from tenancy.database.tenant import TenantDatabase
from tenancy.erasure.records import ErasureDatabase
from tenancy.principal import Principal, UserId
from tests.support.deployment import GRAPHS
from tests.support.frames import new_thread, read_run, start_run
from tests.support.leaving import leaving_of
from tests.support.model_server import Script
from tests.support.postgres import PostgresServer, Role
from tests.support.service import RunningService, Web, running_service, running_worker
from tests.support.tenancy import TestDatabase, make_worker
from tests.support.tool_servers import pools
from tests.support.vaults import keys_of

PATIENCE = 30
_HOLD = """
CREATE FUNCTION held() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
CREATE TRIGGER held BEFORE DELETE ON threads FOR EACH ROW EXECUTE FUNCTION held()
"""


@asynccontextmanager
async def service_of(postgres: PostgresServer, folder: Path) -> AsyncIterator[RunningService]:
    """A service that can erase people."""
    (folder / "mcp").mkdir()  # as for the first server that is a child
    async with running_service(
        postgres,
        signing_keys=keys_of("signing"),
        tombstone_folder=folder / "tombstones",
        mcp_folder=folder / "mcp",
        graphs=GRAPHS,
        max_attempts=1,  # whatever spends one ends its run
    ) as service:
        yield service


@pytest.fixture(scope="module")
async def everybodys(
    postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[RunningService]:
    """One for all tests that leave it as it was; each has people of its own."""
    async with service_of(postgres, tmp_path_factory.mktemp("leaving")) as service:
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


async def until(what: str, client: httpx.AsyncClient, location: str, field: str = "state") -> None:
    """Return once what is asked after is in this state, or says this of another field."""
    async with asyncio.timeout(PATIENCE):
        while True:
            if (await client.get(location)).json()[field] == what:
                return
            await asyncio.sleep(0.02)


class TestSomebodyWhoLeaves:
    async def test_and_comes_back_is_somebody_new_at_once_in_every_process(
        self, everybodys: RunningService
    ) -> None:
        deaf: Web = await everybodys.start_web()
        here, there = everybodys.client("cleo"), everybodys.client("cleo", url=deaf.url)
        before = await user_id(here)
        assert await user_id(there) == before
        await deaf.services.tail.stop()  # it hears of nothing any more
        await leave(here)
        after = await user_id(there)
        assert after != before
        assert await user_id(here) == after

    async def test_is_let_go_of_though_nobody_says_a_word(
        self, postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(letting_go, "LOOK_SECONDS", 0.05)
        monkeypatch.setattr(erasing, "LOOK_SECONDS", 0.05)
        async with service_of(postgres, tmp_path) as service:
            leaver = service.client("ada")
            service.model.enqueue(Script(text="one two three", stall_at=1))
            await start_run(leaver, await new_thread(leaver))
            await service.model.wait_for_stall()
            database = ErasureDatabase(dispatch_settings(service.settings))
            whose = UserId(UUID(await user_id(leaver)))
            begun = await database.begin(whose, "operator")
            await until("done", leaver, f"/erasures/{begun}")
            await service.model.wait_for_disconnect()
            await database.close()

    async def test_has_no_folder_any_more_though_a_process_of_theirs_makes_it_anew(
        self, everybodys: RunningService, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(folders, "YOUNG_SECONDS", -1.0)
        leaver, stayer = everybodys.client("dora"), everybodys.client("emil")
        root = everybodys.settings.mcp_folder
        gone, stays = [
            make_folder(root, UserId(UUID(await user_id(each))), "notes").parent
            for each in (leaver, stayer)
        ]
        await leave(leaver)
        assert (gone.exists(), stays.exists()) == (False, True)
        gone.mkdir()
        async with running_worker(everybodys.settings):  # as one is started anew
            await pools.until(lambda: not gone.exists())
        assert stays.exists()

    async def test_reads_no_stream_on_at_a_process_that_did_not_hear_of_it(
        self, everybodys: RunningService
    ) -> None:
        deaf = await everybodys.start_web()
        leaver, stayer = (everybodys.client(each, url=deaf.url) for each in ("fay", "gus"))
        async with leaver.stream("GET", "/events") as own, stayer.stream("GET", "/events"):
            await deaf.services.tail.stop()
            await leave(everybodys.client("fay"))
            await deaf.services.tail.start()  # its connection is there again
            async with asyncio.timeout(PATIENCE):
                async for _ in own.aiter_raw():
                    pass  # to its end
            await pools.until(lambda: deaf.services.streams.count() == 1)

    async def test_has_no_stream_open_any_more_and_nobody_else_loses_one(
        self, everybodys: RunningService
    ) -> None:
        leaver, stayer = everybodys.client("hal"), everybodys.client("ida")
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


class TestAnErasureThatCannotGoOn:
    async def test_says_why_and_goes_on_once_it_can(
        self, postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(erasing, "LOOK_SECONDS", 0.05)
        monkeypatch.setattr(erasing, "AGAIN_SECONDS", 0.05)
        monkeypatch.setattr(erasing, "AFTER_FAILURE_SECONDS", 0.05)
        async with service_of(postgres, tmp_path) as service:
            leaver = service.client("ada")
            await new_thread(leaver)
            superuser = await asyncpg.connect(postgres.dsn("owner", service.database))
            await superuser.execute(_HOLD)
            begun = (await leaver.delete("/me")).headers["location"]
            await until("rows_left", leaver, begun, "failure")
            assert (await leaver.get(begun)).json()["state"] == "deleting"
            await superuser.execute("DROP TRIGGER held ON threads")
            await until("done", leaver, begun)
            assert (await leaver.get(begun)).json()["failure"] is None
            await superuser.close()

    async def test_keeps_no_worker_from_ending_while_the_database_is_away(
        self,
        database: TestDatabase,
        tenants: TenantDatabase,
        dispatch: DispatchDatabase,
        alice: Principal,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """It would be given back, and cannot be."""

        async def is_away(*_: object) -> bool:
            raise DatabaseUnavailable

        monkeypatch.setattr(ErasureDatabase, "wait", is_away)
        roles: tuple[Role, ...] = ("dispatch", "maintenance")
        dsns = {f"{role}_database_url": database.dsn(role) for role in roles}
        settings = Settings.model_validate({"signing_keys": keys_of("signing"), **dsns})
        await make_worker(dispatch)  # one that lets go of nobody
        async with leaving_of(database, tenants) as leaving:
            leading = erasing.Erasing(settings, tenants, Announcer(database.dsn("service")))
            await leading.start()
            begun = await leaving.erasures.begin(alice.user_id, "person")
            assert begun is not None
            leading.hear(None)
            while (  # noqa: ASYNC110 - nobody tells
                found := await leaving.erasures.find(begun)
            ) and found.step != "stop":
                await asyncio.sleep(0.01)
            async with asyncio.timeout(PATIENCE):
                await leading.stop()


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
        later = await start_run(person, await new_thread(person), after_seconds=3600)
        question = {"question": "May I?"}
        waiting = await start_run(
            person, await new_thread(person), assistant="asking", graph_input=question
        )
        await until("waiting", person, waiting)
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
        # Nothing that waited was ended by it.
        assert (await person.get(later)).json()["state"] == "pending"
        assert (await person.get(waiting)).json()["state"] == "waiting"
