"""Two workers, many calls, one refresh token that is good for once."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import asyncpg
import pytest

from app.connections.credentials import Credentials
from app.connections.errors import CredentialMissing
from app.connections.keeping import CredentialKeeper
from app.connections.known import KnownConnections
from app.connections.oauth.tokens import Tokens
from app.connections.rows import ConnectionRows
from app.tools.servers import Credential
from tenancy.database.tenant import TenantDatabase
from tenancy.principal import Principal
from tenancy.vault import Vault
from tests.integration.connections.oauth.stage import KEYS, Stage


class SilentAnnouncer:
    """Nobody listens."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


class Workers:
    """Two processes' worth of credentials, and what one person has kept."""

    def __init__(self, tenants: TenantDatabase, stage: Stage, person: Principal) -> None:
        self._stage = stage
        self._person = person
        self._rows = ConnectionRows(tenants)
        vault = Vault(tenants, KEYS)
        announcer: Any = SilentAnnouncer()
        self._keeper = CredentialKeeper(self._rows, vault)
        self.both = [
            Credentials(self._rows, vault, stage.oauth, announcer, KnownConnections())
            for _ in range(2)
        ]

    async def keep(self, tokens: Tokens) -> None:
        """Keep tokens as the person's credential."""
        server = self._stage.server.name
        connection = await self._rows.store(self._person, server, own=False)
        assert connection is not None
        plain, life = tokens.plain(), tokens.expires_in
        assert await self._keeper.keep(self._person, connection, "oauth", plain, expires_in=life)

    async def ask(self, worker: int = 0) -> Credential:
        """What a call of the person's proves itself with."""
        return await self.both[worker].current(self._person, self._stage.server)

    async def refused(self, credential: Credential, worker: int = 0) -> None:
        """The server has not taken it."""
        await self.both[worker].refused(self._person, self._stage.server, credential)


@pytest.fixture
async def tokens(stage: Stage, alice: Principal) -> Tokens:
    """What an authorization of Alice's led to."""
    return await stage.tokens(alice)


@pytest.fixture
async def workers(tenants: TenantDatabase, stage: Stage, alice: Principal) -> Workers:
    return Workers(tenants, stage, alice)


def renewals(stage: Stage) -> int:
    """How often tokens were renewed, or tried to be."""
    asked = stage.authorization.records.asked
    return sum(each["grant_type"] == "refresh_token" for each in asked)


class TestATokenThatIsAboutToEnd:
    async def test_is_renewed_by_one_for_all(
        self, stage: Stage, workers: Workers, tokens: Tokens
    ) -> None:
        await workers.keep(replace(tokens, expires_in=5))
        given = await asyncio.gather(*(workers.ask(n % 2) for n in range(12)))
        assert renewals(stage) == 1
        newest = stage.authorization.records.tokens[-1].access_token
        assert {each.headers["Authorization"] for each in given} == {f"Bearer {newest}"}

    async def test_by_somebody_else_while_one_waits(
        self, stage: Stage, workers: Workers, tokens: Tokens
    ) -> None:
        await workers.keep(replace(tokens, expires_in=5))
        stage.authorization.reached.clear()
        stage.authorization.released.clear()
        first = asyncio.create_task(workers.ask(0))
        await stage.authorization.reached.wait()
        second = asyncio.create_task(workers.ask(1))
        stage.authorization.released.set()
        assert (await first) == (await second)
        assert renewals(stage) == 1

    async def test_is_renewed_to_the_end_though_whoever_wanted_it_is_gone(
        self, stage: Stage, workers: Workers, tokens: Tokens
    ) -> None:
        await workers.keep(replace(tokens, expires_in=5))
        stage.authorization.reached.clear()
        stage.authorization.released.clear()
        asking = asyncio.create_task(workers.ask())
        await stage.authorization.reached.wait()
        asking.cancel()
        stage.authorization.released.set()
        await workers.both[0].aclose()
        # What was given for the old token, which is used up, is there for the next.
        await workers.ask(1)
        assert renewals(stage) == 1

    async def test_does_as_long_as_nobody_can_renew_it(
        self, stage: Stage, workers: Workers, tokens: Tokens
    ) -> None:
        await workers.keep(replace(tokens, expires_in=20))
        stage.authorization.behaviour.refuses_with = "temporarily_unavailable"
        assert (await workers.ask()).headers == tokens.headers()

    async def test_and_then_no_more(self, stage: Stage, workers: Workers, tokens: Tokens) -> None:
        await workers.keep(replace(tokens, expires_in=0))
        stage.authorization.behaviour.refuses_with = "temporarily_unavailable"
        with pytest.raises(CredentialMissing) as missing:
            await workers.ask()
        assert missing.value.reason == "unreachable"

    async def test_is_renewed_once_for_a_call_however_briefly_the_next_one_lives(
        self, stage: Stage, workers: Workers, tokens: Tokens
    ) -> None:
        stage.authorization.behaviour.expires_in = 3
        await workers.keep(replace(tokens, expires_in=3))
        await workers.ask()
        assert renewals(stage) == 1

    async def test_is_over_where_the_answer_was_lost(
        self, stage: Stage, workers: Workers, tokens: Tokens, superuser: asyncpg.Connection
    ) -> None:
        await workers.keep(replace(tokens, expires_in=0))
        stage.authorization.behaviour.loses_answers = True
        with pytest.raises(CredentialMissing):
            await workers.ask()
        stage.authorization.behaviour.loses_answers = False
        for _ in range(3):
            with pytest.raises(CredentialMissing) as missing:
                await workers.ask()
            assert missing.value.reason == "needs_authorization"
        # Once with an answer that was lost, once with one that said no: then nobody is asked.
        assert renewals(stage) == 2


class TestATokenThatItsServerRefuses:
    async def test_is_renewed_by_one_for_all(
        self, stage: Stage, workers: Workers, tokens: Tokens
    ) -> None:
        await workers.keep(tokens)
        refused = await workers.ask()
        await asyncio.gather(*(workers.refused(refused, n % 2) for n in range(6)))
        assert renewals(stage) == 1
        assert (await workers.ask()).headers != refused.headers

    async def test_is_over_if_the_new_one_is_refused_too(
        self, stage: Stage, workers: Workers, tokens: Tokens
    ) -> None:
        await workers.keep(tokens)
        await workers.refused(await workers.ask())
        with pytest.raises(CredentialMissing) as missing:
            await workers.refused(await workers.ask())
        assert missing.value.reason == "needs_authorization"
        with pytest.raises(CredentialMissing):
            await workers.ask(1)
        assert renewals(stage) == 1

    async def test_is_over_where_it_cannot_be_renewed(
        self, stage: Stage, workers: Workers, tokens: Tokens
    ) -> None:
        await workers.keep(tokens)
        refused = await workers.ask()
        stage.authorization.records.revoke_all()
        for _ in range(2):
            with pytest.raises(CredentialMissing) as missing:
                await workers.refused(refused)
            assert missing.value.reason == "needs_authorization"
        assert renewals(stage) == 1
