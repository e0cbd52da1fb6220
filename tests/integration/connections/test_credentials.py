"""What a call is given to prove itself with, and when it is given nothing."""

from __future__ import annotations

from dataclasses import replace

import asyncpg
import pytest
from structlog.testing import capture_logs

from app.connections.errors import CredentialMissing
from app.connections.own import accepted_server
from app.tools.catalogue import own_server
from app.tools.entries import versioned
from app.tools.servers import (
    Credential,
    CredentialKind,
    CredentialRule,
    HttpTransport,
    McpServer,
    Scope,
    StdioTransport,
)
from tenancy.principal import Principal
from tests.integration.connections.process import Process, running_process
from tests.support.tenancy import TestDatabase

URL = "https://mcp.stoa-people.org/mcp"


def keyed(kind: CredentialKind, name: str, template: str = "{key}") -> McpServer:
    rule = CredentialRule(kind, name, template)
    return versioned(McpServer("tickets", HttpTransport("http://tickets.test"), credential=rule))


async def reason(process: Process, person: Principal, server: McpServer) -> str:
    """Why there is none."""
    with pytest.raises(CredentialMissing) as missing:
        await process.credentials.current(person, server)
    return missing.value.reason


class TestAKey:
    async def test_goes_where_the_operator_says(
        self, database: TestDatabase, alice: Principal
    ) -> None:
        header = keyed(CredentialKind.HEADER, "Authorization", "Token {key}")
        child = keyed(CredentialKind.ENVIRONMENT, "TICKETS_KEY")
        async with running_process(database, header) as process:
            await process.changes.set_key(alice, "tickets", "k{key}")
            found = await process.credentials.current(alice, header)
            assert found == Credential(2, headers={"Authorization": "Token k{key}"})
            found = await process.credentials.current(alice, child)
            assert found == Credential(2, env={"TICKETS_KEY": "k{key}"})
            assert "k{key}" not in repr(found)

    async def test_is_its_owners_only(
        self, database: TestDatabase, alice: Principal, bob: Principal
    ) -> None:
        server = keyed(CredentialKind.HEADER, "X-Key")
        async with running_process(database, server) as process:
            await process.changes.set_key(alice, "tickets", "hers")
            assert await reason(process, bob, server) == "needs_key"

    async def test_that_does_not_open_is_not_taken_for_none(
        self,
        database: TestDatabase,
        superuser: asyncpg.Connection,
        alice: Principal,
        bob: Principal,
    ) -> None:
        server = keyed(CredentialKind.HEADER, "X-Key")
        async with running_process(database, server) as process:
            for person in (alice, bob):
                await process.changes.set_key(person, "tickets", "a key")
            await superuser.execute(
                """
                UPDATE connections c SET credential = o.credential FROM connections o
                WHERE c.user_id = $1 AND o.user_id = $2
                """,
                *(alice.user_id, bob.user_id),
            )
            with capture_logs() as logs:
                assert await reason(process, alice, server) == "vault"
            (said,) = [each for each in logs if each["event"] == "a credential does not open"]
            assert said["log_level"] == "error"
            assert str(alice.user_id) not in str(said)


class TestADisconnectedServer:
    async def test_is_called_no_more(self, database: TestDatabase, alice: Principal) -> None:
        server = keyed(CredentialKind.HEADER, "X-Key")
        open_to_all = versioned(McpServer("clock", StdioTransport("clock")))
        async with running_process(database, server, open_to_all) as process:
            await process.changes.set_key(alice, "tickets", "k")
            assert await process.credentials.current(alice, open_to_all) == Credential(1)
            for each in (server, open_to_all):
                await process.changes.disconnect(alice, each.name)
                assert await reason(process, alice, each) == "disconnected"
            assert await process.connections.of(alice) == []


class TestAServerOfOnesOwn:
    async def test_that_was_removed_and_added_elsewhere_gets_no_key_at_the_old_address(
        self, database: TestDatabase, alice: Principal
    ) -> None:
        """A run that began before still has the old address."""
        async with running_process(database) as process:
            own = accepted_server("mine", URL, "key", "X-Key")
            await process.changes.add(alice, own, "first")
            old = (await process.connections.find(alice, "mine")).server
            await process.changes.remove(alice, "mine")
            assert await reason(process, alice, old) == "disconnected"
            await process.changes.add(alice, replace(own, url=f"{URL}/other"), "second")
            assert await reason(process, alice, old) == "disconnected"
            new = (await process.connections.find(alice, "mine")).server
            found = await process.credentials.current(alice, new)
            assert found.headers == {"X-Key": "second"}

    async def test_gives_its_key_to_no_server_of_the_operators_of_the_same_name(
        self, database: TestDatabase, alice: Principal
    ) -> None:
        theirs = replace(keyed(CredentialKind.HEADER, "X-Key"), name="mine")
        async with running_process(database) as before:
            own = accepted_server("mine", URL, "key", "X-Key")
            await before.changes.add(alice, own, "hers")
        async with running_process(database, theirs) as process:
            (found,) = await process.connections.of(alice)
            assert found.server == own_server("mine", URL, found.server.credential)
            assert await reason(process, alice, theirs) == "disconnected"
            await process.changes.remove(alice, "mine")
            assert await reason(process, alice, theirs) == "needs_key"


class TestASharedServer:
    async def test_is_given_nothing_of_anybodys(
        self, database: TestDatabase, alice: Principal
    ) -> None:
        shared = versioned(McpServer("clock", StdioTransport("clock"), scope=Scope.SHARED))
        async with running_process(database, shared) as process:
            await process.changes.connect(alice, "clock")
            assert await process.credentials.current(alice, shared) == Credential()
