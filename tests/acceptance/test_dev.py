"""``stoa dev``: one command, everything, and nothing left behind."""

from __future__ import annotations

import asyncio
import os
import pwd
import signal
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.dev.child import RunAs
from app.dev.supervisor.folder import open_folder
from app.erasure.receipts import verify_receipt
from tests.support.development import READY, Command, forked_stoa, stoa
from tests.support.held_ports import held_port
from tests.support.model_server import ScriptedModelServer
from tests.support.processes import PATIENCE
from tests.support.weights import give_weights

SERVICE = {"postgres", "gateway", "web", "worker"}
KEYED = {"kind": "key"}
"""A credential that is to be set later."""


@pytest.fixture(scope="module")
async def ollama() -> AsyncIterator[str]:
    async with ScriptedModelServer() as server:
        yield server.url


@pytest.fixture
def port() -> Iterator[str]:
    """One that nobody listens on."""
    with held_port() as port:
        yield str(port)


@asynccontextmanager
async def development(
    data: Path, ollama: str, *options: str, shipped: bool = False
) -> AsyncIterator[Command]:
    """``stoa dev`` on this folder, ready; started from nothing, as people do, where asked."""
    environment = {
        "STOA_OLLAMA_URL": ollama,
        "STOA_MODEL": "scripted",
        "STOA_MCP_OWN_SERVERS": "true",
    }
    start = stoa if shipped else forked_stoa
    with held_port() as port:
        arguments = ("dev", "--data", str(data), "--port", str(port), *options)
        async with start(*arguments, environment=environment) as command:
            assert await command.until(f"{READY}: http://localhost:{port}"), command.output
            yield command


async def refused(*options: str, run_as: RunAs | None = None) -> str:
    """What ``stoa dev`` says when it does not start."""
    async with stoa("dev", *options, run_as=run_as) as command:
        status = await command.ended()
    assert status == 1, command.output
    assert "Traceback" not in command.output
    return command.output


def address(command: Command) -> str:
    return command.output.partition(f"{READY}: ")[2].split()[0]


@asynccontextmanager
async def signed_in(command: Command, name: str) -> AsyncIterator[httpx.AsyncClient]:
    """A browser's way in: sent to the sign-in page, a name, and back."""
    async with httpx.AsyncClient(
        base_url=address(command), follow_redirects=True, timeout=PATIENCE
    ) as client:
        page = await client.get("/", headers={"Accept": "text/html"})
        assert "/oauth2/" in page.url.path
        answer = await client.post("/oauth2/sign_in", data={"name": name})
        assert answer.status_code < 500, answer.text
        yield client


async def left(client: httpx.AsyncClient) -> dict[str, Any]:
    """The erasure of whoever is signed in, once it is done."""
    begun = await client.delete("/me")
    assert begun.status_code == 202, begun.text
    async with asyncio.timeout(PATIENCE):
        while True:
            found: dict[str, Any] = (await client.get(begun.headers["Location"])).json()
            if found["state"] == "done":
                return found
            await asyncio.sleep(0.05)


async def published_keys(client: httpx.AsyncClient) -> bytes:
    """The gateway's key and those of the service, for which it waits a moment only."""
    async with asyncio.timeout(PATIENCE):
        while True:
            answer = await client.get("/.well-known/jwks.json")
            if len(answer.json()["keys"]) > 1:
                return answer.content


class TestRunning:
    async def test_it_serves_until_ctrl_c_and_leaves_no_process(
        self, tmp_path: Path, ollama: str
    ) -> None:
        async with development(tmp_path / "data", ollama, shipped=True) as command:
            assert set(command.processes()) >= SERVICE
            assert str(tmp_path / "data") in command.output
            async with signed_in(command, "ada") as client:
                assert (await client.get("/me")).status_code == 200
                own = {"name": "mine", "url": "https://mcp.invalid.net/", "credential": KEYED}
                added = await client.post("/connections", json=own)
                assert added.status_code == 201, added.text  # there is a vault to keep a key in
                erasure = await left(client)
                published = await published_keys(client)
                claims = verify_receipt(erasure["receipt"], published)
            assert claims["erasure_id"] == erasure["erasure_id"]
            kept = tmp_path / "data" / "tombstones" / f"{erasure['erasure_id']}.json"
            assert kept.is_file()
            command.interrupt()
            assert await command.ended() == 0
            assert await command.leaves_nothing()

    async def test_a_start_after_kill_9_finds_people_and_their_threads_again(
        self, tmp_path: Path, ollama: str
    ) -> None:
        async with development(tmp_path / "data", ollama, shipped=True) as command:
            command.processes()
            async with signed_in(command, "ada") as client:
                before = (await client.get("/me")).json()["user_id"]
                created = await client.post("/threads", json={})
                assert created.status_code == 200, created.text
            command.interrupt(signal.SIGKILL)
            await command.ended()
            assert await command.leaves_nothing()
        async with development(tmp_path / "data", ollama) as command:
            # Another port than before, and the same person.
            async with signed_in(command, "ada") as client:
                assert (await client.get("/me")).json()["user_id"] == before
                threads = (await client.post("/threads/search", json={})).json()
            assert [thread["thread_id"] for thread in threads] == [created.json()["thread_id"]]

    async def test_what_dies_is_started_again_and_two_on_one_folder_are_refused(
        self, tmp_path: Path, ollama: str, port: str
    ) -> None:
        data = tmp_path / "data"
        async with development(data, ollama) as command:
            said = await refused("--data", str(data), "--port", port)
            assert f"runs already on {data} (process {command.pid})" in said
            assert "runs already" in await refused("--data", str(data), "--reset")

            command.processes()["worker"].kill()
            assert await command.until("worker ended (killed by SIGKILL)")
            assert await command.until("worker ready")
            assert set(command.processes()) >= SERVICE
            command.interrupt(signal.SIGTERM)
            assert await command.ended() == 0
            assert await command.leaves_nothing()

    async def test_reset_starts_afresh(self, tmp_path: Path, ollama: str, port: str) -> None:
        data = tmp_path / "data"
        with open_folder(data) as folder:
            (folder.path / "postgres").mkdir()
            (folder.path / "postgres" / "PG_VERSION").write_text("15")
        said = await refused("--data", str(data), "--port", port)
        assert "PostgreSQL 15" in said
        assert "--reset" in said
        async with development(data, ollama, "--reset") as command:
            async with signed_in(command, "ada") as client:
                assert (await client.get("/me")).status_code == 200
            # In the middle of everything, twice: at once, and still nothing is left.
            command.processes()
            command.interrupt()
            command.interrupt()
            assert await command.ended() == 0
            assert await command.leaves_nothing()


class TestWithoutAnOllama:
    async def test_the_small_model_takes_its_place_and_says_so(
        self, tmp_path: Path, port: str
    ) -> None:
        data = tmp_path / "data"
        await give_weights(data)
        nowhere = f"http://127.0.0.1:{port}"
        async with development(data, nowhere) as command:
            assert f"No Ollama answers at {nowhere}" in command.output
            assert "small local model" in command.output
            assert set(command.processes()) >= {*SERVICE, "model"}
            async with signed_in(command, "ada") as client:
                thread = (await client.post("/threads", json={})).json()["thread_id"]
                run = {
                    "assistant_id": "agent",
                    "input": {"messages": [{"role": "user", "content": "Say hello."}]},
                }
                answer = await client.post(f"/threads/{thread}/runs/wait", json=run, timeout=240)
            assert answer.status_code == 200, answer.text
            messages = answer.json()["messages"]
            assert [message["type"] for message in messages] == ["human", "ai"]
            assert messages[1]["content"]
            command.interrupt()
            assert await command.ended() == 0
            assert await command.leaves_nothing()


class TestWhatStandsInTheWay:
    async def test_a_taken_port_is_named(self, tmp_path: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            said = await refused("--data", str(tmp_path / "data"), "--port", str(port))
        assert f"Port {port} is taken" in said
        assert "--port" in said

    async def test_a_folder_without_write_permission_is_named(self, tmp_path: Path) -> None:
        parent = tmp_path / "closed"
        parent.mkdir(mode=0o555)
        said = await refused("--data", str(parent / "data"), run_as=unprivileged())
        assert "no permission to write" in said
        assert "--data" in said

    async def test_a_folder_with_other_things_in_it_is_left_alone(self, tmp_path: Path) -> None:
        letter = tmp_path / "letter.txt"
        letter.write_text("dear ada")
        said = await refused("--data", str(tmp_path), "--reset")
        assert "not a data folder of Stoa's" in said
        assert letter.read_text() == "dear ada"

    async def test_a_file_in_the_place_of_the_folder_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "data").write_text("")
        said = await refused("--data", str(tmp_path / "data"))
        assert f"{tmp_path / 'data'} cannot be used" in said

    async def test_a_wrong_setting_is_wrong_use(self) -> None:
        async with stoa("dev", environment={"STOA_MODLE": "x"}) as command:
            assert await command.ended() == 2
        assert "Unknown setting: STOA_MODLE" in command.output
        assert "Traceback" not in command.output


def unprivileged() -> RunAs | None:
    """Somebody who is not root, whose word permissions are not law for."""
    if os.geteuid() != 0:
        return None
    nobody = pwd.getpwnam("nobody")
    # The interpreter may lie where only root may look; looking is not writing.
    return RunAs(nobody.pw_uid, nobody.pw_gid, search=True)
