"""A server that answers after the time for its call was over: it is listened to, and recorded."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import Any

import asyncpg
import pytest

from app.tools.ledger import Ledger
from app.tools.mcp import late
from app.tools.mcp.calling import ServerCalls
from app.tools.mcp.late import LateAnswers
from app.tools.site import CallSite
from app.tools.waiting import InDoubt
from app.worker.equip import Outfitter
from tenancy.errors import LeaseLost
from tenancy.principal import ClaimedRun
from tests.integration.tools.office import Office, Worker, make
from tests.integration.tools.test_calling import Held, states
from tests.support.tool_servers.recording import RecordingServer, text

CALL_SECONDS = 0.3


@dataclass
class Ear:
    """Hears of what was recorded late."""

    runs: asyncio.Queue[ClaimedRun] = field(default_factory=asyncio.Queue)

    def __call__(self, run: ClaimedRun, _goes_on: bool) -> None:
        self.runs.put_nowait(run)


@pytest.fixture
def ear() -> Ear:
    return Ear()


async def opened(
    office: Office, server: RecordingServer, ear: Ear, *, seconds: float = 60, **stoa: Any
) -> Worker:
    """A worker that listens for so long."""
    entry = {"url": server.url, "stoa": {"timeout": {"call": CALL_SECONDS}, **stoa}}
    worker = await office.open({"notes": entry})
    listening = LateAnswers(ear, seconds)
    office.stack.push_async_callback(listening.aclose)
    services = replace(worker.services, late=listening)
    return replace(
        worker,
        services=services,
        outfitter=Outfitter(office.tenants, services, worker.outfitter._limits),
    )


class TestAnAnswerAfterItsTime:
    @pytest.mark.parametrize("is_error", [False, True], ids=["a result", "an error"])
    async def test_is_recorded_and_is_what_the_model_is_told_then(
        self,
        office: Office,
        server: RecordingServer,
        ear: Ear,
        superuser: asyncpg.Connection,
        is_error: bool,
    ) -> None:
        go = asyncio.Event()

        async def slow(_: object) -> Any:
            await go.wait()
            return text("that was that", is_error=is_error)

        server.offer("write", slow)
        worker = await opened(office, server, ear)
        with pytest.raises(InDoubt):
            await worker.call("notes__write")
        assert server.given_up.empty()
        go.set()
        assert await ear.runs.get() == office.run
        assert await states(superuser) == ["failed" if is_error else "done"]
        message = await worker.call("notes__write")
        assert (message.text, message.status) == (
            "that was that",
            "error" if is_error else "success",
        )
        assert len(server.calls) == 1

    async def test_needs_its_connection_until_then_and_gives_it_back(
        self, office: Office, server: RecordingServer, ear: Ear
    ) -> None:
        held = Held()
        server.offer("write", held)
        worker = await opened(office, server, ear)
        with pytest.raises(InDoubt):
            await worker.call("notes__write")
        (connection,) = worker.services.pool._tasks
        assert connection.leases == 1
        held.go.set()
        await ear.runs.get()
        assert connection.leases == 0

    async def test_is_not_waited_for_for_ever(
        self, office: Office, server: RecordingServer, ear: Ear, superuser: asyncpg.Connection
    ) -> None:
        server.offer("write", Held())
        worker = await opened(office, server, ear, seconds=1)
        with pytest.raises(InDoubt):
            await worker.call("notes__write")
        assert await server.given_up.get() == "write"
        assert await states(superuser) == ["started"]

    async def test_is_not_waited_for_where_the_worker_ends(
        self, office: Office, server: RecordingServer, ear: Ear, superuser: asyncpg.Connection
    ) -> None:
        held = Held()
        server.offer("write", held)
        worker = await opened(office, server, ear)
        with pytest.raises(InDoubt):
            await worker.call("notes__write")
        await held.begun.wait()
        await worker.services.late.aclose()
        assert await server.given_up.get() == "write"
        assert await states(superuser) == ["started"]

    async def test_is_of_no_interest_where_the_call_only_reads(
        self, office: Office, server: RecordingServer, ear: Ear
    ) -> None:
        server.offer("read", Held())
        terms: dict[str, Any] = {"trust": {"read_only": ["read"]}, "timeout": {"call": 1}}
        worker = await opened(office, server, ear, **terms)
        assert (await worker.call("notes__read")).text == "The tool did not answer in time."
        assert await server.given_up.get() == "read"

    async def test_is_listened_to_for_so_many_calls_of_one_person(
        self,
        office: Office,
        server: RecordingServer,
        ear: Ear,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        server.offer("write", Held())
        worker = await opened(office, server, ear, timeout={"call": 1})
        equipment = await worker.equip()
        monkeypatch.setattr(late, "MOST_OF_ONE", 3)
        calls = [make(equipment, "notes__write", {"n": n}, str(n)) for n in range(4)]
        ended = await asyncio.gather(*calls, return_exceptions=True)
        assert {type(each) for each in ended} == {InDoubt}
        assert await server.given_up.get() == "write"
        assert server.given_up.empty()


class TestAnAnswerToWhoeverLostTheRun:
    async def test_is_recorded_all_the_same(
        self, office: Office, server: RecordingServer, ear: Ear, superuser: asyncpg.Connection
    ) -> None:
        """Who took it over has found the call in doubt."""

        async def meanwhile(_: object) -> Any:
            await superuser.execute("UPDATE runs SET fence = fence + 1")
            return text("it was written")

        server.offer("write", meanwhile)
        worker = await opened(office, server, ear, timeout={"call": 30})
        services = worker.services
        ledger = Ledger(office.tenants, office.run, office.thread)
        calls = ServerCalls(office.run, services.pool, services.credentials, ledger, services.late)
        notes = (await services.connections.find(office.run, "notes")).server
        with pytest.raises(LeaseLost):
            await calls.make(CallSite("message", "call"), notes, "write", {})
        earlier = await ledger.find(CallSite("message", "call"), {})
        assert earlier is not None
        assert earlier.result == {"content": "it was written", "outcome": "ok"}
        assert await ear.runs.get() == office.run
