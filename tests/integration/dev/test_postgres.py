"""The embedded server, as a real process."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import psutil
import pytest

from app.dev.errors import DevelopmentError
from app.dev.postgres import EmbeddedPostgres
from tests.support.environment import REPOSITORY
from tests.support.frozen import frozen
from tests.support.held_ports import held_port

PATIENCE = 30.0
STILL_IN_USE = "pre-existing shared memory block"


@pytest.fixture(scope="module")
async def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a server that ran and was stopped; copy it, don't use it."""
    folder = tmp_path_factory.mktemp("made")
    server = EmbeddedPostgres(folder, temporary=True)
    await server.start()
    connection = await asyncpg.connect(server.dsn())
    await connection.execute("CREATE TABLE note AS SELECT 'kept' AS text")
    await connection.close()
    await server.stop()
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    copy = tmp_path / "data"
    shutil.copytree(made, copy)
    owner = (made / "postgres").stat()
    if os.geteuid() == 0:
        for path in ((copy / "postgres"), *(copy / "postgres").rglob("*")):
            os.chown(path, owner.st_uid, owner.st_gid)
    return copy


@pytest.fixture
async def server(folder: Path) -> AsyncIterator[EmbeddedPostgres]:
    server = EmbeddedPostgres(folder, temporary=True)
    yield server
    await server.stop(hurry=True)


async def note(server: EmbeddedPostgres) -> object:
    connection = await asyncpg.connect(server.dsn())
    try:
        return await connection.fetchval("SELECT text FROM note")
    finally:
        await connection.close()


def port_of(server: EmbeddedPostgres) -> int:
    return int(server.dsn().rpartition(":")[2].partition("/")[0])


class TestStarting:
    async def test_data_and_port_stay_between_starts(self, server: EmbeddedPostgres) -> None:
        await server.start()
        first = server.dsn()
        assert await note(server) == "kept"
        await server.stop()
        with held_port(port_of(server)):  # from others, not from the server itself
            await server.start()
        assert server.dsn() == first
        assert await note(server) == "kept"

    async def test_a_taken_port_is_changed(self, server: EmbeddedPostgres) -> None:
        await server.prepare()
        port = port_of(server)
        with socket.create_server(("127.0.0.1", port)):
            await server.start()
            assert f":{port}/" not in server.dsn()
            assert await note(server) == "kept"

    async def test_nobody_gets_in_without_the_password(self, server: EmbeddedPostgres) -> None:
        await server.start()
        _, _, there = server.dsn().rpartition("@")
        with pytest.raises(asyncpg.InvalidPasswordError):
            await asyncpg.connect(f"postgresql://postgres:wrong@{there}")

    async def test_the_passwords_are_their_owners_only(self, folder: Path) -> None:
        assert (folder / "credentials.json").stat().st_mode & 0o077 == 0

    async def test_it_listens_on_this_machine_only_and_never_as_root(
        self, server: EmbeddedPostgres
    ) -> None:
        await server.start()
        process = psutil.Process(server.pid)
        assert {each.laddr.ip for each in process.net_connections()} == {"127.0.0.1"}
        assert process.uids().effective != 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can have folders that only root enters")
class TestBelowAFolderThatOnlyRootEnters:
    async def test_it_runs_without_opening_that_folder(self, tmp_path: Path) -> None:
        closed = tmp_path / "closed"
        closed.mkdir(mode=0o700)
        server = EmbeddedPostgres(closed, temporary=True)
        await server.start()
        try:
            connection = await asyncpg.connect(server.dsn())
            assert await connection.fetchval("SELECT current_database()") == "stoa"
            await connection.close()
            assert psutil.Process(server.pid).uids().effective != 0
        finally:
            await server.stop()
        assert closed.stat().st_mode & 0o777 == 0o700


class TestAfterAKill:
    async def test_a_killed_server_starts_again_with_its_data(
        self, server: EmbeddedPostgres
    ) -> None:
        await server.start()
        os.kill(server.pid, signal.SIGKILL)
        await server.wait()
        await server.stop()
        await server.start()
        assert await note(server) == "kept"

    async def test_one_whose_children_have_not_noticed_yet_is_waited_for(
        self, server: EmbeddedPostgres
    ) -> None:
        await server.start()
        (child, *_) = psutil.Process(server.pid).children()
        with frozen([child.pid]):
            os.kill(server.pid, signal.SIGKILL)
            await server.wait()
            await server.stop()
            starting = asyncio.create_task(server.start())
            async with asyncio.timeout(PATIENCE):
                while STILL_IN_USE not in server.log.read_text():  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
        await starting
        assert await note(server) == "kept"

    async def test_a_killed_starter_takes_the_server_with_it(
        self, folder: Path, server: EmbeddedPostgres
    ) -> None:
        pid = await _start_elsewhere(folder)
        with contextlib.suppress(psutil.NoSuchProcess):  # it may be gone by now
            await asyncio.to_thread(psutil.wait_procs, [psutil.Process(pid)], PATIENCE)
        await server.start()
        assert server.pid != pid
        assert await note(server) == "kept"

    async def test_a_server_that_outlived_its_starter_is_ended_first(
        self, folder: Path, server: EmbeddedPostgres
    ) -> None:
        other = EmbeddedPostgres(folder, temporary=True)
        await other.start()
        orphan = psutil.Process(other.pid)
        await server.start()
        await other.wait()
        assert not orphan.is_running()
        assert await note(server) == "kept"

    async def test_a_number_that_belongs_to_another_program_now_is_no_obstacle(
        self, folder: Path, server: EmbeddedPostgres
    ) -> None:
        lines = [str(os.getpid()), str(folder / "postgres"), "1", "1", "", "127.0.0.1", "", "ready"]
        (folder / "postgres" / "postmaster.pid").write_text("\n".join(lines))
        await server.start()
        assert await note(server) == "kept"


class TestAFolderThatCannotBeUsed:
    async def test_another_major_version_is_named(
        self, folder: Path, server: EmbeddedPostgres
    ) -> None:
        (folder / "postgres" / "PG_VERSION").write_text("15\n")
        with pytest.raises(DevelopmentError, match=r"PostgreSQL 15(?s:.*)--reset"):
            await server.start()

    async def test_a_broken_one_says_how_to_go_on(
        self, folder: Path, server: EmbeddedPostgres
    ) -> None:
        (folder / "postgres" / "global" / "pg_control").write_bytes(b"\0" * 8192)
        with pytest.raises(DevelopmentError, match=r"cannot be used(?s:.*)--reset"):
            await server.start()

    async def test_one_without_its_passwords_says_how_to_go_on(
        self, folder: Path, server: EmbeddedPostgres
    ) -> None:
        (folder / "credentials.json").unlink()
        with pytest.raises(DevelopmentError, match=r"passwords(?s:.*)--reset"):
            await server.start()

    async def test_one_that_is_no_cluster_says_how_to_go_on(self, tmp_path: Path) -> None:
        (tmp_path / "postgres").mkdir()
        with pytest.raises(DevelopmentError, match=r"not a PostgreSQL data folder(?s:.*)--reset"):
            await EmbeddedPostgres(tmp_path).start()


async def _start_elsewhere(folder: Path) -> int:
    """Start the server from a process that is then killed; the server's process id."""
    code = (
        "import asyncio, os, sys\n"
        "from pathlib import Path\n"
        "from app.dev.postgres import EmbeddedPostgres\n"
        "async def main():\n"
        "    server = EmbeddedPostgres(Path(sys.argv[1]), temporary=True)\n"
        "    await server.start()\n"
        "    print(server.pid, flush=True)\n"
        "    os.kill(os.getpid(), 9)\n"
        "asyncio.run(main())\n"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, str(folder), stdout=asyncio.subprocess.PIPE, cwd=REPOSITORY
    )
    output, _ = await process.communicate()
    return int(output)
