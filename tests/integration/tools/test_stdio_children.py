"""Tool servers that are child processes: what they get, what they see, and that they end."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import stat
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Literal

import pytest

from app.settings import SettingsError
from app.tools.pool.failures import Reason, ToolServerUnavailable
from app.tools.pool.pool import ToolPool
from app.tools.servers import Credential, McpServer, StdioTransport
from app.tools.stdio import child
from app.tools.stdio.command import LIMITS
from app.tools.stdio.sandbox import choose_sandbox
from tests.support.tool_servers.pools import (
    NO_CREDENTIAL,
    QUICK,
    SECONDS,
    Footprint,
    called,
    is_running,
    once,
    quick,
    running_pool,
    said,
    somebody,
    until,
)

Kind = Literal["none", "bubblewrap"]


@pytest.fixture(params=["none", "bubblewrap"])
async def sandbox(request: pytest.FixtureRequest) -> Kind:
    """Both ways, where the machine has both."""
    kind: Kind = request.param
    if kind == "bubblewrap":
        try:
            await choose_sandbox(kind)
        except SettingsError:
            pytest.skip("bubblewrap does not work here")
    return kind


@pytest.fixture
async def either(tmp_path: Path, sandbox: Kind) -> AsyncIterator[ToolPool]:
    """A pool with a sandbox, and one without."""
    async with running_pool(tmp_path, sandbox) as pool:
        yield pool


@pytest.fixture
async def pool(tmp_path: Path) -> AsyncIterator[ToolPool]:
    async with running_pool(tmp_path) as pool:
        yield pool


@pytest.fixture(autouse=True)
def short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """With servers that are not going to end by themselves."""
    monkeypatch.setattr(child, "INPUT_CLOSED_SECONDS", 0.3)
    monkeypatch.setattr(child, "TERMINATED_SECONDS", 0.3)
    monkeypatch.setattr(child, "KILLED_SECONDS", SECONDS)


class TestEnvironment:
    async def test_is_what_is_allowed_and_nothing_else(
        self, either: ToolPool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # Given a worker with a secret, and a catalogue that names it as other programs would
        monkeypatch.setenv("STOA_DATABASE_URL", "postgresql://secret")
        server = quick(env={"WANTED": "${STOA_DATABASE_URL}", "PLACE": "{user_folder}/x"})

        # When the user's server is asked for its environment
        async with either.lease(
            somebody(), server, Credential(env={"KEY": "theirs"})
        ) as connection:
            found = json.loads(await said(connection, "environment"))
            folder = json.loads(await said(connection, "whoami"))["folder"]

        # Then it is the allow-list, and what looks like a variable has arrived as text
        assert found == {
            "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
            "HOME": folder,
            "LANG": "C.UTF-8",
            "WANTED": "${STOA_DATABASE_URL}",
            "PLACE": f"{folder}/x",
            "KEY": "theirs",
        }

    async def test_is_never_on_a_command_line(self, either: ToolPool) -> None:
        server = quick(env={"KEY": "a-secret-value"})
        before = Footprint()
        async with either.lease(somebody(), server, NO_CREDENTIAL):
            started = Footprint().processes - before.processes
            lines = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in started]
        assert lines
        assert not any(b"a-secret-value" in line for line in lines)

    async def test_arguments_name_the_users_own_folder(self, pool: ToolPool) -> None:
        server = quick("{user_folder}", "${user_folder}")
        found = json.loads(await once(pool, somebody(), server, "whoami"))
        assert found["arguments"] == [found["folder"], "${user_folder}"]


class TestFolders:
    async def test_are_closed_to_others_and_say_nothing(
        self, pool: ToolPool, tmp_path: Path
    ) -> None:
        owner = somebody()
        folder = Path(json.loads(await once(pool, owner, quick(), "whoami"))["folder"])
        for each in (folder, folder.parent, tmp_path / "mcp"):
            assert stat.S_IMODE(each.stat().st_mode) == 0o700
        assert str(owner) not in str(folder)
        assert owner.hex not in str(folder)

    async def test_are_the_same_when_a_user_comes_again(self, pool: ToolPool) -> None:
        owner = somebody()
        await once(pool, owner, quick(), "note", text="first")
        pool.forget(owner, "quick")
        notes, file = json.loads(await once(pool, owner, quick(), "note", text="second"))
        assert notes == ["second"]
        assert file == "first\nsecond\n"

    async def test_a_link_in_a_folders_place_is_not_followed(
        self, pool: ToolPool, tmp_path: Path
    ) -> None:
        owner, elsewhere = somebody(), tmp_path / "elsewhere"
        elsewhere.mkdir()
        folder = Path(json.loads(await once(pool, owner, quick(), "whoami"))["folder"])
        pool.forget(owner, "quick")
        folder.rmdir()
        folder.symlink_to(elsewhere)
        with pytest.raises(ToolServerUnavailable):
            await once(pool, owner, quick(), "whoami")


class TestLimits:
    async def test_hold_for_memory_files_and_dumps(self, either: ToolPool) -> None:
        found = json.loads(await once(either, somebody(), quick(), "limits"))
        assert found == {name: [LIMITS[name], LIMITS[name]] for name in found}

    async def test_errors_are_dropped_and_output_that_is_no_message_is_passed_over(
        self,
        pool: ToolPool,
        caplog: pytest.LogCaptureFixture,
        capfd: pytest.CaptureFixture[str],
    ) -> None:
        caplog.set_level(logging.DEBUG)
        assert json.loads(await once(pool, somebody(), quick("noisy"), "note", text="a"))[0] == [
            "a"
        ]
        logged = caplog.text + "".join(capfd.readouterr())
        assert "a secret" not in logged
        assert "starting up" not in logged


class TestEnding:
    async def test_a_server_that_heeds_its_input_is_gone_with_it(self, either: ToolPool) -> None:
        before = Footprint()
        await once(either, somebody(), quick(), "note", text="a")
        await either.stop()
        await until(lambda: Footprint().processes <= before.processes)

    @pytest.mark.parametrize("how", [("deaf",), ("forks",)], ids=lambda how: how[0])
    async def test_one_that_heeds_nothing_is_killed_with_all_it_started(
        self, either: ToolPool, how: tuple[str, ...]
    ) -> None:
        before = Footprint()
        await once(either, somebody(), quick(*how), "note", text="a")
        started = Footprint().processes - before.processes
        assert started
        await either.stop()
        await until(lambda: not any(is_running(pid) for pid in started))

    async def test_an_idle_servers_end_is_noticed_at_once(self, either: ToolPool) -> None:
        # Given an open connection that nobody uses
        owner = somebody()
        before = Footprint()
        await once(either, owner, quick(), "note", text="a")
        started = Footprint().processes - before.processes

        # When its process is killed
        for pid in started:
            with contextlib.suppress(ProcessLookupError):  # the sandbox's own end with it
                os.kill(pid, signal.SIGKILL)

        # Then it is gone from the pool without anybody calling, and the next call has another
        await until(lambda: either.open_connections == 0)
        notes, _ = json.loads(await once(either, owner, quick(), "note", text="b"))
        assert notes == ["b"]

    async def test_a_killed_worker_leaves_none(self, sandbox: Kind, tmp_path: Path) -> None:
        # Given a process with a server in mid-call
        worker = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.support.tool_servers.worker",
            str(tmp_path),
            sandbox,
            stdout=asyncio.subprocess.PIPE,
        )
        assert worker.stdout is not None
        started = json.loads(await worker.stdout.readline())
        assert started

        # When it is killed
        worker.kill()
        await worker.wait()

        # Then its servers end
        await until(lambda: not any(is_running(pid) for pid in started))


class TestSandbox:
    async def test_hides_secrets_and_other_peoples_folders(self, tmp_path: Path) -> None:
        try:
            await choose_sandbox("bubblewrap")
        except SettingsError:
            pytest.skip("bubblewrap does not work here")
        secret = tmp_path / "stoa.toml"
        secret.write_text("database_url")
        look = "import os, sys; [print(os.path.exists(each)) for each in sys.argv[1:]]"
        async with running_pool(tmp_path, "bubblewrap") as pool:
            theirs = Path(json.loads(await once(pool, somebody(), quick(), "whoami"))["folder"])
            mine = Path(json.loads(await once(pool, somebody(), quick(), "whoami"))["folder"])
        command = Sandboxed(mine, "-c", look, str(secret), str(theirs), str(mine), "/proc/self")
        assert await command.output() == ["False", "False", "True", "True"]

        # Nor are other people's folders seen where all that is around them may be read
        around = Sandboxed(mine, "-c", look, str(theirs), str(mine), readable=(str(tmp_path),))
        assert await around.output() == ["False", "True"]

    async def test_lets_nobody_fill_the_machines_memory_with_files(self, tmp_path: Path) -> None:
        try:
            await choose_sandbox("bubblewrap")
        except SettingsError:
            pytest.skip("bubblewrap does not work here")
        look = """
import os, pathlib, sys
def is_kept(place):
    try:
        pathlib.Path(place, "file").write_text("x")
    except OSError:
        return False
    return True
print(*(is_kept(each) for each in ("/", "/etc", "/dev", "../..", "..", ".", "/tmp", "/dev/shm")))
print(max(os.statvfs(each).f_blocks * os.statvfs(each).f_frsize for each in ("/tmp", "/dev/shm")))
open("/dev/null", "w").write("x")
"""
        async with running_pool(tmp_path, "bubblewrap") as pool:
            mine = Path(json.loads(await once(pool, somebody(), quick(), "whoami"))["folder"])
        *kept, most = await Sandboxed(mine, "-c", look).output()
        assert kept == ["False"] * 5 + ["True"] * 3
        assert int(most) <= 256 * 1024**2

    async def test_that_is_insisted_on_and_missing_stops_the_start(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PATH", str(tmp_path))
        pool = ToolPool(tmp_path, sandbox="bubblewrap")
        with pytest.raises(SettingsError, match="STOA_MCP_SANDBOX"):
            await pool.start()


class Sandboxed:
    """Python in the sandbox of a folder."""

    def __init__(self, folder: Path, *arguments: str, readable: tuple[str, ...] = ()) -> None:
        self.folder = folder
        self.arguments = arguments
        self.readable = readable

    async def output(self) -> list[str]:
        from app.tools.stdio.command import command_of  # noqa: PLC0415 - only here

        transport = StdioTransport(sys.executable, self.arguments, {}, self.readable)
        command = command_of(transport, NO_CREDENTIAL, self.folder)
        wrapped = (await choose_sandbox("bubblewrap")).wrap(command)
        process = await asyncio.create_subprocess_exec(
            *wrapped, env=dict(command.env), stdout=asyncio.subprocess.PIPE
        )
        said, _ = await process.communicate()
        return said.decode().split()


class TestPrograms:
    async def test_that_are_not_there_are_told_of(self, pool: ToolPool) -> None:
        server = McpServer("none", StdioTransport("no-such-program"))
        with pytest.raises(ToolServerUnavailable) as caught:
            await once(pool, somebody(), server, "note")
        assert caught.value.reason == Reason.UNREACHABLE

    async def test_that_end_at_once_are_told_of(self, pool: ToolPool) -> None:
        with pytest.raises(ToolServerUnavailable) as caught:
            await once(pool, somebody(), quick("exit-at-once"), "note")
        assert caught.value.reason == Reason.EXITED

    async def test_may_be_named_by_their_place(self, pool: ToolPool) -> None:
        transport = StdioTransport(sys.executable, ("-I", str(QUICK)), {}, (str(QUICK.parent),))
        async with pool.lease(somebody(), McpServer("by-path", transport), NO_CREDENTIAL) as found:
            result = await called(found, "fail")
        assert result.is_error
