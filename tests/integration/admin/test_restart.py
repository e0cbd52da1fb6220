"""The restart that a deployment offers: to operators only, on record, and by its own hook."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import uuid4

import pytest
from pydantic import SecretStr

from app.runtime import restart
from app.runtime.restart import RestartFailed, ask_for_restart
from app.settings import SettingsError, load_settings
from tests.integration.admin.conftest import ADMINS, id_of
from tests.integration.admin.recorded import record_of
from tests.support.postgres import PostgresServer
from tests.support.service import RunningService, running_service

PATIENCE = 30
TOKEN = "a-token-of-the-hooks"
SECRET_WORDS = b"restart refused because of 10.0.0.7 pid 4711"
MOVED = b"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n"


def answering(status: str, body: bytes = b"") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


class Hook:
    """An address of a deployment's, and what came there."""

    def __init__(self) -> None:
        self.answer: bytes | None = answering("204 No Content")
        """None: there is none."""
        self.asked: list[bytes] = []
        self.port = 0
        self.gone = asyncio.Event()
        """Set when a client that was not answered has gone."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/restart?token={TOKEN}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Note what is asked, and answer, or wait until the client goes."""
        self.asked.append(await reader.readuntil(b"\r\n\r\n"))
        if self.answer is None:
            await reader.read()
            self.gone.set()
        else:
            writer.write(self.answer)
        writer.close()


@asynccontextmanager
async def listening() -> AsyncIterator[Hook]:
    hook = Hook()
    server = await asyncio.start_server(hook.serve, "127.0.0.1", 0)
    hook.port = server.sockets[0].getsockname()[1]
    async with server:
        yield hook


@pytest.fixture(scope="module")
async def offered(postgres: PostgresServer) -> AsyncIterator[tuple[RunningService, Hook]]:
    """A service that offers a restart, and its hook."""
    async with (
        listening() as hook,
        running_service(postgres, worker=False, restart_url=SecretStr(hook.url)) as running,
    ):
        yield running, hook


@pytest.fixture
def hook(offered: tuple[RunningService, Hook]) -> Hook:
    """It does what it is asked for, unless a test says otherwise."""
    hook = offered[1]
    hook.answer = answering("204 No Content")
    hook.asked.clear()
    return hook


class TestARestart:
    async def test_is_offered_to_operators_only(
        self, offered: tuple[RunningService, Hook], hook: Hook
    ) -> None:
        operator = offered[0].client("operator", groups=ADMINS)
        somebody = offered[0].client("somebody")
        assert (await operator.get("/me")).json()["can_restart"] is True
        assert (await somebody.get("/me")).json()["can_restart"] is False
        assert (await somebody.post("/admin/restart")).status_code == 403
        assert (await offered[0].client(None).post("/admin/restart")).status_code == 401
        assert hook.asked == []

    async def test_is_asked_for_once_and_on_record(
        self, offered: tuple[RunningService, Hook], hook: Hook
    ) -> None:
        operator = offered[0].client(f"operator {uuid4()}", groups=ADMINS)
        answer = await operator.post("/admin/restart")
        assert (answer.status_code, answer.json()) == (202, {"accepted": True})
        (asked,) = hook.asked
        assert asked.startswith(f"POST /restart?token={TOKEN} HTTP/1.1\r\n".encode())
        assert b"content-length: 0\r\n" in asked.lower()
        assert b"authorization" not in asked.lower()  # whoever asked is not told to it
        async with record_of(offered[0]) as record:
            (act,) = await record.acts(await id_of(operator))
        assert (act["actor"], act["action"], act["route"]) == (
            *("operator", "restart_asked", "POST /admin/restart"),
        )

    @pytest.mark.parametrize(
        "answer",
        [answering("500 Oh", SECRET_WORDS), answering("404 Not Found"), MOVED, b"no HTTP\r\n\r\n"],
        ids=["error", "unknown", "redirect", "junk"],
    )
    async def test_that_is_not_accepted_is_said_to_have_failed_and_no_more(
        self, offered: tuple[RunningService, Hook], hook: Hook, answer: bytes
    ) -> None:
        hook.answer = answer
        failed = await offered[0].client("operator", groups=ADMINS).post("/admin/restart")
        assert (failed.status_code, failed.json()["code"]) == (502, "restart_failed")
        for word in (TOKEN, "127.0.0.1", str(hook.port), "4711"):
            assert word not in failed.text
        assert len(hook.asked) == 1

    async def test_whose_hook_does_not_answer_is_not_waited_for(
        self, hook: Hook, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        hook.answer = None
        hook.gone.clear()
        assert restart.SECONDS == 10
        with pytest.raises(RestartFailed):
            await ask_for_restart(SecretStr(hook.url), seconds=0.3)
        async with asyncio.timeout(PATIENCE):
            await hook.gone.wait()

    async def test_whose_hook_is_not_there_has_failed(self) -> None:
        with pytest.raises(RestartFailed):
            await ask_for_restart(SecretStr("http://127.0.0.1:1/"))


class TestADeploymentThatOffersNone:
    async def test_says_so_to_operators(self, service: RunningService) -> None:
        operator = service.client("operator", groups=ADMINS)
        assert (await operator.get("/me")).json()["can_restart"] is False
        answer = await operator.post("/admin/restart")
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


class TestTheSetting:
    @pytest.mark.parametrize("said", ["restart", "ftp://there", "http://", f"//x/{TOKEN}"])
    def test_is_an_address_that_can_be_asked(
        self, monkeypatch: pytest.MonkeyPatch, said: str
    ) -> None:
        monkeypatch.setenv("STOA_RESTART_URL", said)
        with pytest.raises(SettingsError) as refused:
            load_settings()
        assert "STOA_RESTART_URL" in str(refused.value)
        assert TOKEN not in str(refused.value)
