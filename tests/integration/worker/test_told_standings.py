"""What becomes of a person's connection is noted as it happens: what came last is what stays."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from structlog.testing import capture_logs

from app.connections.standing import UserServer
from app.tools.entries import versioned
from app.tools.pool.failures import Reason
from app.tools.pool.leased import ConnectionKey
from app.tools.servers import McpServer, StdioTransport
from app.worker.told_standings import ToldStandings
from tenancy.database.engine import DatabaseUnavailable
from tenancy.principal import Principal
from tests.integration.connections.process import Process, running_process
from tests.support.tenancy import TestDatabase

PATIENCE = 30
SERVER = versioned(McpServer("notes", StdioTransport("notes")))


@pytest.fixture
async def process(database: TestDatabase) -> AsyncIterator[Process]:
    async with running_process(database, SERVER) as running:
        yield running


@pytest.fixture
async def told(process: Process) -> AsyncIterator[ToldStandings]:
    told = ToldStandings(process.connections)
    yield told
    await told.aclose()


def key(person: Principal | None, version: int = 1) -> ConnectionKey:
    owner = None if person is None else person.user_id
    return ConnectionKey(owner, SERVER.name, SERVER.version, version)


async def noted(told: ToldStandings) -> None:
    """Return once nothing is left to be written."""
    async with asyncio.timeout(PATIENCE):
        while told._writing:  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0.01)


async def standing(process: Process, person: Principal) -> UserServer:
    return await process.connections.find(person, SERVER.name)


class TestAConnection:
    async def test_that_ends_is_told_to_its_person_only(
        self, process: Process, told: ToldStandings, alice: Principal, bob: Principal
    ) -> None:
        told.works(key(alice), SERVER)
        told.works(key(bob), SERVER)
        await noted(told)
        told.fails(key(alice), SERVER, Reason.EXITED)
        await noted(told)
        hers, his = await standing(process, alice), await standing(process, bob)
        assert (hers.state, hers.failing_reason) == ("unavailable", "exited")
        assert (his.state, his.failing_since) == ("available", None)

    async def test_that_ends_at_once_when_it_was_opened_stays_ended(
        self, process: Process, told: ToldStandings, alice: Principal
    ) -> None:
        told.works(key(alice), SERVER)
        told.fails(key(alice), SERVER, Reason.EXITED)
        await noted(told)
        assert (await standing(process, alice)).state == "unavailable"

    async def test_that_ends_while_that_it_works_is_being_noted_stays_ended(
        self,
        process: Process,
        told: ToldStandings,
        alice: Principal,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        store, writing, go_on = process.connections.store_listing, asyncio.Event(), asyncio.Event()

        async def store_slowly(*arguments: Any) -> None:
            writing.set()
            await go_on.wait()
            await store(*arguments)

        monkeypatch.setattr(process.connections, "store_listing", store_slowly)
        told.works(key(alice), SERVER)
        async with asyncio.timeout(PATIENCE):
            await writing.wait()
        told.fails(key(alice), SERVER, Reason.EXITED)
        go_on.set()
        await noted(told)
        assert (await standing(process, alice)).state == "unavailable"

    async def test_that_ends_while_the_database_is_away_is_noted_later(
        self,
        process: Process,
        told: ToldStandings,
        alice: Principal,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        store, missed = process.connections.store_listing, 2

        async def store_later(*arguments: Any) -> None:
            nonlocal missed
            if missed:
                missed -= 1
                raise DatabaseUnavailable
            await store(*arguments)

        monkeypatch.setattr(process.connections, "store_listing", store_later)
        told.fails(key(alice), SERVER, Reason.EXITED)
        await noted(told)
        assert (await standing(process, alice)).state == "unavailable"

    async def test_that_cannot_be_noted_is_on_record_and_the_next_is_noted(
        self,
        process: Process,
        told: ToldStandings,
        alice: Principal,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        async def broken(*arguments: Any) -> None:
            raise LookupError("words of somebody's")

        with monkeypatch.context() as patch, capture_logs() as lines:
            patch.setattr(process.connections, "store_listing", broken)
            told.works(key(alice), SERVER)
            await noted(told)
        assert [(each["log_level"], each["error"]) for each in lines] == [("error", "LookupError")]
        assert "words" not in str(lines)
        told.fails(key(alice), SERVER, Reason.EXITED)
        await noted(told)
        assert (await standing(process, alice)).state == "unavailable"

    async def test_of_an_earlier_credential_says_nothing_of_the_present_one(
        self, process: Process, told: ToldStandings, alice: Principal
    ) -> None:
        told.works(key(alice), SERVER)
        await noted(told)
        told.fails(key(alice, version=0), SERVER, Reason.EXITED)
        await noted(told)
        assert (await standing(process, alice)).state == "available"

    async def test_that_everybody_shares_is_nobodys(
        self, process: Process, told: ToldStandings, alice: Principal
    ) -> None:
        told.fails(key(None), SERVER, Reason.EXITED)
        await noted(told)
        assert (await standing(process, alice)).state == "unknown"
