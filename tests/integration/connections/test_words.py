"""A person's word on when they want to be asked, and what approvals are told of credentials."""

from __future__ import annotations

import json
from functools import partial
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from app.connections.own import accepted_server
from app.tools.approval.ruling import Ask
from app.tools.approval.word import PersonsWord, Word
from app.tools.entries import versioned
from app.tools.servers import (
    CredentialKind,
    CredentialRule,
    HttpTransport,
    McpServer,
    Scope,
    StdioTransport,
)
from tenancy.database.signals import CONNECTION_CHANGED, CONNECTION_REVOKED
from tenancy.errors import TooManyRuleChanges
from tenancy.principal import Principal
from tests.integration.connections.process import Process, running_process
from tests.support.tenancy import TestDatabase

OWN = accepted_server("mine", "https://mcp.stoa-people.org/mcp", "key", "X-Key")
TICKETS = versioned(
    McpServer(
        "tickets",
        HttpTransport("http://tickets.test"),
        credential=CredentialRule(CredentialKind.HEADER, "X-Key", "{key}"),
    )
)
SIGNED = versioned(
    McpServer(
        "signed",
        HttpTransport("https://signed.test"),
        credential=CredentialRule(CredentialKind.OAUTH),
    )
)
CLOCK = versioned(McpServer("clock", StdioTransport("clock"), scope=Scope.SHARED))


async def word(process: Process, person: Principal, server: str) -> Word:
    return (await process.connections.find(person, server)).word


async def grant(process: Process, person: Principal, server: str) -> int | None:
    return (await word(process, person, server)).grant_version


async def records(superuser: asyncpg.Connection, user_id: UUID) -> list[tuple[Any, ...]]:
    rows = await superuser.fetch(
        """
        SELECT a.actor, a.action, a.server, t.kind, t.text
        FROM audit_references r JOIN audit a USING (reference)
        LEFT JOIN audit_texts t USING (user_id, audit_id)
        WHERE r.user_id = $1 ORDER BY a.audit_id, t.kind
        """,
        user_id,
    )
    return [tuple(each) for each in rows]


class TestAPersonsWord:
    async def test_is_kept_for_them_alone(
        self, database: TestDatabase, alice: Principal, bob: Principal
    ) -> None:
        async with running_process(database, TICKETS) as process:
            await process.changes.say_approval(alice, "tickets", {"close": Ask.ALWAYS})
            said = await word(process, alice, "tickets")
            assert (said.rules, said.version) == ({"close": Ask.ALWAYS}, 1)
            assert await word(process, bob, "tickets") == Word(grant_version=1)

    async def test_is_of_another_version_only_once_it_is_another(
        self, database: TestDatabase, alice: Principal
    ) -> None:
        async with running_process(database, TICKETS) as process:
            versions = []
            for rules in ({"*": Ask.ALWAYS}, {"*": Ask.ALWAYS}, {"*": Ask.FIRST_USE}, {}):
                await process.changes.say_approval(alice, "tickets", rules)
                versions.append((await word(process, alice, "tickets")).version)
            assert versions == [1, 1, 2, 3]

    async def test_is_heard_by_a_run_under_way_that_reads_it_anew(
        self, database: TestDatabase, alice: Principal
    ) -> None:
        async with running_process(database, CLOCK) as process:
            known = await word(process, alice, "clock")
            held = PersonsWord(known, lambda: process.connections.word(alice, CLOCK))
            await process.changes.say_approval(alice, "clock", {"*": Ask.ALWAYS})
            assert (held.version, held.on("now")) == (0, Ask.NEVER)
            await held.refresh()
            assert (held.version, held.on("now")) == (1, Ask.ALWAYS)

    async def test_is_told_to_their_feeds_and_ends_no_connection(
        self, database: TestDatabase, alice: Principal
    ) -> None:
        async with running_process(database, TICKETS) as process:
            await process.changes.set_key(alice, "tickets", "k")
            before = await process.connections.find(alice, "tickets")
            process.announcer.forget()
            await process.changes.say_approval(alice, "tickets", {"*": Ask.ALWAYS})
            assert len(process.announcer.said(CONNECTION_CHANGED)) == 1
            assert not process.announcer.said(CONNECTION_REVOKED)
            after = await process.connections.find(alice, "tickets")
            assert after.version == before.version
            assert after.word.grant_version == before.word.grant_version

    async def test_is_on_record_with_what_they_wrote_apart(
        self, database: TestDatabase, superuser: asyncpg.Connection, alice: Principal
    ) -> None:
        async with running_process(database, TICKETS) as process:
            await process.changes.add(alice, OWN, "k")
            for server in ("tickets", "tickets", "mine"):
                await process.changes.say_approval(alice, server, {"*": Ask.ALWAYS})
        said = json.dumps({"*": "always"})
        assert await records(superuser, alice.user_id) == [
            ("person", "rules_changed", "tickets", "reason", said),
            ("person", "rules_changed", None, "reason", said),
            ("person", "rules_changed", None, "server", "mine"),
        ]

    async def test_changes_twenty_times_an_hour_at_most_and_never_unseen(
        self, database: TestDatabase, superuser: asyncpg.Connection, alice: Principal
    ) -> None:
        async with running_process(database, TICKETS) as process:
            for number in range(20):
                asks = (Ask.ALWAYS, Ask.FIRST_USE)[number % 2]
                await process.changes.say_approval(alice, "tickets", {"*": asks})
            with pytest.raises(TooManyRuleChanges) as refused:
                await process.changes.say_approval(alice, "tickets", {})
            assert 3500 < (refused.value.retry_seconds or 0) <= 3600
            assert len(await records(superuser, alice.user_id)) == 20
            after = await process.connections.find(alice, "tickets")
            assert after.word.version == 20


class TestAGrant:
    """What an approval goes by: whose account a call is made with."""

    async def test_is_another_with_each_key_that_is_given_or_taken(
        self, database: TestDatabase, alice: Principal
    ) -> None:
        async with running_process(database, TICKETS) as process:
            seen = [await grant(process, alice, "tickets")]
            for key in ("first", "second"):
                await process.changes.set_key(alice, "tickets", key)
                seen.append(await grant(process, alice, "tickets"))
            await process.changes.forget_key(alice, "tickets")
            seen.append(await grant(process, alice, "tickets"))
            await process.changes.disconnect(alice, "tickets")
            seen.append(await grant(process, alice, "tickets"))
            assert seen == [1, 2, 3, 4, 5]

    async def test_is_the_same_while_it_is_only_renewed_or_connected_anew(
        self, database: TestDatabase, alice: Principal
    ) -> None:
        async with running_process(database, SIGNED) as process:
            await process.changes.connect(alice, "signed")
            found = await process.connections.find(alice, "signed")
            assert found.connection_id is not None
            keep = partial(process.keeper.keep, alice, found.connection_id, "oauth")
            assert await keep(b"tokens")
            first = await process.connections.find(alice, "signed")
            assert await keep(b"newer", expected_version=first.version, refreshed=True)
            await process.changes.connect(alice, "signed", anew=True)
            renewed = await process.connections.find(alice, "signed")
            assert renewed.version > first.version
            assert renewed.word.grant_version == first.word.grant_version == 2

    async def test_is_nobodys_where_all_use_one_connection(
        self, database: TestDatabase, alice: Principal
    ) -> None:
        async with running_process(database, CLOCK) as process:
            await process.changes.connect(alice, "clock")
            assert await grant(process, alice, "clock") is None

    async def test_of_a_removed_server_is_not_that_of_one_of_the_same_name(
        self, database: TestDatabase, alice: Principal
    ) -> None:
        async with running_process(database) as process:
            seen: list[int | None] = []
            for _ in range(2):
                await process.changes.add(alice, OWN, "k")
                found = await word(process, alice, "mine")
                seen += [found.grant_version, found.version]
                await process.changes.remove(alice, "mine")
            assert len(set(seen)) == len(seen)
            assert min(each or 0 for each in seen) > 1_000_000
