"""A token that is about to end is renewed once, by one of all who need it, in all processes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest

from app.connections import refreshing
from app.connections.errors import CredentialMissing
from app.tools.servers import Credential
from tenancy.database.signals import CONNECTION_CHANGED, CONNECTION_REVOKED
from tenancy.database.tenant import TenantDatabase
from tenancy.principal import Principal
from tests.integration.connections.oauth.conftest import authorization as authorization
from tests.integration.connections.oauth.conftest import protected as protected
from tests.integration.connections.oauth.conftest import servers as servers
from tests.integration.connections.oauth.stage import Stage
from tests.integration.connections.process import Process, running_process
from tests.support.oauth_server.authorization import TestAuthorizationServer
from tests.support.oauth_server.resource import ProtectedMcpServer
from tests.support.tenancy import TestDatabase

PATIENCE = 60


class Authorized:
    """A person who has authorized a server, and two processes that call it for them."""

    def __init__(
        self, stage: Stage, person: Principal, one: Process, other: Process, superuser: object
    ) -> None:
        self.server = stage.server
        self.authorization = stage.authorization
        self.person = person
        self.one, self.other = one, other
        self._superuser = superuser

    async def current(self, process: Process | None = None) -> Credential:
        return await (process or self.one).credentials.current(self.person, self.server)

    async def many(self, number: int = 20) -> list[Credential]:
        """So many calls at once, in both processes."""
        calls = [self.current((self.one, self.other)[n % 2]) for n in range(number)]
        return await asyncio.gather(*calls)

    @property
    def renewals(self) -> int:
        """How often the authorization server was asked to renew."""
        asked = self.authorization.records.asked
        return sum(each["grant_type"] == "refresh_token" for each in asked)

    @property
    def newest(self) -> str:
        return self.authorization.records.tokens[-1].access_token

    async def let_time_pass(self, seconds: float) -> None:
        """Let the token, and whatever was begun, be so much older."""
        assert isinstance(self._superuser, asyncpg.Connection)
        await self._superuser.execute(
            """
            UPDATE connections SET expires_at = expires_at - make_interval(secs => $2),
              refreshing_until = refreshing_until - make_interval(secs => $2)
            WHERE user_id = $1
            """,
            *(self.person.user_id, seconds),
        )


@pytest.fixture
async def authorized(
    database: TestDatabase,
    tenants: TenantDatabase,
    superuser: asyncpg.Connection,
    protected: ProtectedMcpServer,
    authorization: TestAuthorizationServer,
    alice: Principal,
) -> AsyncIterator[Authorized]:
    """The token has an hour to live."""
    stage = Stage(tenants, protected)
    async with (
        running_process(database, stage.server) as one,
        running_process(database, stage.server) as other,
    ):
        await one.rows.store(alice, stage.server.name, own=False)
        tokens = await stage.tokens(alice)
        assert await one.changes.keep_tokens(alice, stage.server, tokens, 1)
        await superuser.execute(  # as a worker does that has looked at it
            "UPDATE connections SET check_wanted_at = NULL WHERE user_id = $1", alice.user_id
        )
        one.announcer.forget()
        yield Authorized(stage, alice, one, other, superuser)


class TestATokenThatIsAboutToEnd:
    async def test_is_renewed_once_by_twenty_who_need_it(self, authorized: Authorized) -> None:
        await authorized.let_time_pass(3600 - refreshing.BEFORE_SECONDS / 2)
        found = await authorized.many()
        assert authorized.renewals == 1
        assert {each.headers["Authorization"] for each in found} == {f"Bearer {authorized.newest}"}
        assert {each.version for each in found} == {3}

    async def test_keeps_what_was_listed_and_tells_the_person_not_the_connections(
        self, authorized: Authorized
    ) -> None:
        person, connections = authorized.person, authorized.one.connections
        before = await authorized.current()
        await connections.store_listing(person, authorized.server, before.version, [], "available")
        authorized.one.announcer.forget()
        await authorized.let_time_pass(3590)
        assert (await authorized.current()).version == before.version + 1
        (found,) = await connections.of(person)
        assert (found.listing, found.state) == ((), "available")
        assert len(authorized.one.announcer.said(CONNECTION_CHANGED)) == 1
        assert not authorized.one.announcer.said(CONNECTION_REVOKED)

    async def test_is_not_renewed_by_a_second_one_before_the_first_has_had_its_time(
        self, authorized: Authorized
    ) -> None:
        """The one that had begun is dead; that is not known before its lease is over."""
        await authorized.let_time_pass(3590)
        stored = await authorized.one.rows.credential(authorized.person, authorized.server.name)
        assert stored is not None
        about = (authorized.person, stored.connection_id, stored.version)
        assert await authorized.one.rows.begin_refresh(*about, 3600) == "yours"
        assert await authorized.other.rows.begin_refresh(*about, 3600) == "others"
        waiting = asyncio.create_task(authorized.current(authorized.other))
        await asyncio.sleep(0.2)
        assert (waiting.done(), authorized.renewals) == (False, 0)
        await authorized.let_time_pass(3601)
        async with asyncio.timeout(PATIENCE):
            found = await waiting
        assert found.headers["Authorization"] == f"Bearer {authorized.newest}"
        assert authorized.renewals == 1


class TestARenewalThatFails:
    async def test_for_good_asks_the_person_once_and_everybody_stops(
        self, authorized: Authorized
    ) -> None:
        authorized.authorization.records.revoke_all()
        await authorized.let_time_pass(3590)
        calls = [
            authorized.current(process)
            for process in (authorized.one, authorized.other)
            for _ in range(5)
        ]
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        reasons = {each.reason for each in outcomes if isinstance(each, CredentialMissing)}
        assert (len(outcomes), reasons) == (10, {"needs_authorization"})
        assert authorized.renewals == 1
        (found,) = await authorized.one.connections.of(authorized.person)
        assert (found.state, found.has_credential) == ("needs_authorization", False)


class TestAPersonWhoDisconnectsMeanwhile:
    async def test_is_not_connected_again_by_what_comes(self, authorized: Authorized) -> None:
        await authorized.let_time_pass(3590)
        authorized.authorization.released.clear()
        authorized.authorization.reached.clear()
        call = asyncio.create_task(authorized.current())
        async with asyncio.timeout(PATIENCE):
            await authorized.authorization.reached.wait()
            await authorized.other.changes.disconnect(authorized.person, authorized.server.name)
            authorized.authorization.released.set()
            with pytest.raises(CredentialMissing) as missing:
                await call
        assert missing.value.reason == "disconnected"
        assert authorized.newest in authorized.authorization.records.given_back
        found = await authorized.one.connections.find(authorized.person, authorized.server.name)
        assert (found.state, found.has_credential) == ("disconnected", False)
