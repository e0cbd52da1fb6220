"""Postgres goes away under load and comes back; connections are cut without a word."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from shutil import rmtree

import pytest
from sqlalchemy import make_url

from app.bench.chaos.wire import Wire
from app.bench.chaos.witness import survive_crashes
from app.dev.postgres import EmbeddedPostgres
from tests.crash.stage import Stage, new_thread, staged
from tests.crash.written import Written
from tests.support.deployment import STEADY_LEASE, deployed
from tests.support.model_server import Script
from tests.support.postgres import PostgresServer
from tests.support.tenancy import TestDatabase

PATIENCE = 60.0
"""Longer than a process needs to end that cannot reach Postgres."""
AGING_LEASE = {**STEADY_LEASE, "STOA_LEASE_SECONDS": "12"}
"""A sixth of it is more than a busy machine needs to stop a call in."""
_LOOK_SECONDS = 0.01
PACE = 40
"""Words a second: an answer of the load below takes about half a second."""


@pytest.fixture(scope="module")
async def server() -> AsyncIterator[EmbeddedPostgres]:
    """A server of its own, since others are at work on the usual one."""
    folder = Path(tempfile.mkdtemp(prefix="stoa-crash-"))
    folder.chmod(0o711)
    postgres = EmbeddedPostgres(folder, temporary=True)
    try:
        await postgres.start()
        yield postgres
    finally:
        await postgres.stop(hurry=True)
        rmtree(folder)


@asynccontextmanager
async def staged_on(server: EmbeddedPostgres, logs: Path) -> AsyncIterator[Stage]:
    superuser = make_url(server.dsn("owner", "postgres")).set(drivername="postgresql")
    template = TestDatabase(PostgresServer(superuser), f"stoa_template_{logs.name}")
    await template.server.create_database(template.name)
    await template.migrate()
    async with deployed(template, logs) as deployment, staged(deployment) as stage:
        await survive_crashes(stage.owner)
        yield stage


class TestPostgresThatIsRestarted:
    @pytest.mark.parametrize("hurry", [False, True], ids=["fast", "immediate"])
    async def test_costs_no_run_and_no_message(
        self, server: EmbeddedPostgres, tmp_path: Path, hurry: bool
    ) -> None:
        async with staged_on(server, tmp_path) as stage:
            stage.deployment.model.answer_with(Script(decode_tokens_per_second=PACE))
            web, worker, _ = await asyncio.gather(
                stage.open_web(),
                stage.deployment.start_worker(**STEADY_LEASE),
                stage.deployment.start_worker(**STEADY_LEASE),
            )
            talks = [asyncio.create_task(_talk(stage, number)) for number in range(6)]
            for _ in range(3):
                await asyncio.sleep(0.7)
                await server.stop(hurry=hurry)
                await server.start()
            await asyncio.gather(*talks)
            await stage.owner.dispose()
            await stage.assert_whole()
            assert web.process.returncode is None
            assert worker.process.returncode is None, worker.output

    async def test_costs_no_call_that_waits_for_a_seat_and_none_that_is_to_be_settled(
        self, server: EmbeddedPostgres, tmp_path: Path
    ) -> None:
        one_seat = {**STEADY_LEASE, "STOA_OLLAMA_CAPACITY": "1"}
        async with staged_on(server, tmp_path) as stage:
            model = stage.deployment.model
            model.enqueue(Script(text="You said: first", stall_at=1))
            await asyncio.gather(stage.open_web(), stage.deployment.start_worker(**one_seat))
            first = await _say(stage, "first")
            stalled = await model.wait_for_stall()
            second = await _say(stage, "second")
            async with stage.deployment.superuser() as connection, asyncio.timeout(PATIENCE):
                while await connection.fetchval("SELECT count(*) FROM model_calls") < 2:  # noqa: ASYNC110
                    await asyncio.sleep(_LOOK_SECONDS)
            await server.stop()
            model.release(stalled)
            await model.wait_for_finish()
            await server.start()
            await asyncio.gather(first, second)
            await stage.owner.dispose()
            await stage.assert_whole()
            # Neither run was given up: each asked the model once.
            assert len(model.requests) == 2
            async with stage.deployment.superuser() as connection:
                assert await connection.fetchval("SELECT count(*) FROM model_calls") == 0
                assert await connection.fetchval("SELECT sum(calls) FROM usage_hours") == 2


async def _say(stage: Stage, text: str) -> asyncio.Task[None]:
    person = stage.person()
    return asyncio.create_task(person.read(await person.say(new_thread(), text)))


async def _talk(stage: Stage, number: int) -> None:
    person, thread_id = stage.person(), new_thread()
    for turn in range(5):
        words = " ".join(["word"] * 15)
        await person.say_and_read(thread_id, f"talk {number} turn {turn} {words}")


class TestAConnectionThatIsCutWithoutAWord:
    async def test_ends_the_worker_in_time_and_another_one_takes_over(self, stage: Stage) -> None:
        await stage.open_web()
        database = stage.deployment.database
        url = make_url(database.dsn("service"))
        person, thread_id = stage.person(), new_thread()
        stage.deployment.model.enqueue(Script(text="never told", stall_at=1))
        async with Wire(lambda: (str(url.host), int(url.port or 5432))) as wire:
            cut = await stage.deployment.start_worker(**AGING_LEASE, **_through(wire, database))
            other = await stage.deployment.prepare_worker(**STEADY_LEASE)
            reading = asyncio.create_task(person.say_and_read(thread_id, "Hello?"))
            await stage.deployment.model.wait_for_stall()
            wire.silence()
            await other.let_go()
            await reading
            await other.terminate()
            # By its own clock it knew that its lease was about to end, and stopped before that.
            stopped, taken_over = stage.deployment.model.requests
            assert stopped.disconnected_at is not None
            assert stopped.disconnected_at < taken_over.received_at
            async with asyncio.timeout(PATIENCE):
                assert await cut.process.wait() == 1, cut.output
            async with stage.deployment.superuser() as connection:
                before = await Written.so_far(connection)
                wire.restore()
                wire.drop()
                assert await Written.so_far(connection) == before
        await stage.assert_whole()


def _through(wire: Wire, database: TestDatabase) -> dict[str, str]:
    def dsn(url: str) -> str:
        return make_url(url).set(port=wire.port).render_as_string(hide_password=False)

    return {
        "STOA_DATABASE_URL": dsn(database.dsn("service")),
        "STOA_DISPATCH_DATABASE_URL": dsn(database.dsn("dispatch")),
        "STOA_MAINTENANCE_DATABASE_URL": dsn(database.dsn("maintenance")),
    }
