"""All of it, as a person lives through it: at the door, in the browser, in a run."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import httpx
import pytest
from structlog.testing import capture_logs

from tests.integration.connections.oauth.stage import parameters, visit
from tests.support.front_door import FrontDoor, front_door
from tests.support.model_server import Script, ToolCall
from tests.support.oauth_server.authorization import TestAuthorizationServer
from tests.support.oauth_server.resource import ProtectedMcpServer
from tests.support.postgres import PostgresServer
from tests.support.service import RunningService, running_service

VAULT_KEYS = "k1:" + "A" * 43 + "="
FROM_ELSEWHERE = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
LOOK_SECONDS = 0.05
PATIENCE = 60


@pytest.fixture(scope="module")
async def door() -> AsyncIterator[FrontDoor]:
    """Where the service is reached."""
    async with front_door() as door:
        yield door


@pytest.fixture(scope="module")
async def service(
    postgres: PostgresServer,
    servers: ProtectedMcpServer,
    door: FrontDoor,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[RunningService]:
    """A service whose operator offers the MCP server to everybody."""
    catalogue = tmp_path_factory.mktemp("catalogue") / "mcp.json"
    credential = {"kind": "oauth", "origins": [servers.authorization.origin]}
    entry = {"url": servers.url, "stoa": {"credential": credential}}
    catalogue.write_text(json.dumps({"mcpServers": {"protected": entry}}), encoding="utf-8")
    async with running_service(
        postgres,
        mcp_config=[catalogue],
        vault_keys=VAULT_KEYS,
        public_url=door.url,
        builtin_tools=(),
        mcp_sandbox="none",
    ) as running:
        door.open_to(running.url, running.issuer)
        yield running


class Visitor:
    """A person and their browser."""

    def __init__(self, service: RunningService, door: FrontDoor) -> None:
        self.name = f"visitor-{uuid4().hex[:8]}"
        self.service = service
        self.browser = door.browser(self.name)

    async def connection(self) -> dict[str, Any]:
        """How the server stands with them."""
        found: dict[str, Any] = (await self.browser.get("/connections/protected")).json()
        return found

    async def begin(self) -> str:
        """Where their consent is asked for."""
        answer = await self.browser.post("/connections/protected/authorize")
        assert answer.status_code == 200, answer.text
        url: str = answer.json()["authorization_url"]
        return url

    async def come_back(self, callback: str) -> httpx.Response:
        """What the browser is answered when it is sent back."""
        return await self.browser.get(callback, headers=FROM_ELSEWHERE)

    async def authorize(self) -> None:
        """All of it, until a worker has looked at the server."""
        answer = await self.come_back(await visit(await self.begin()))
        assert answer.headers["location"] == "/tools?connected=protected"
        await self.until("available")

    async def until(self, state: str) -> dict[str, Any]:
        """Wait until the server stands so."""
        async with asyncio.timeout(PATIENCE):
            while (found := await self.connection())["state"] != state:  # noqa: ASYNC110
                await asyncio.sleep(LOOK_SECONDS)
        return found

    async def ask(self) -> str:
        """Have the model call the server's tool; return what it was answered."""
        self.service.model.enqueue(
            Script(tool_calls=(ToolCall(name="protected__whoami"),)), Script(text="Done.")
        )
        client = self.service.sdk(self.name)
        thread = await client.threads.create()
        said: Any = {"messages": [{"role": "user", "content": "who am I?"}]}
        values: Any = await client.runs.wait(thread["thread_id"], "agent", input=said)
        (told,) = [each for each in values["messages"] if each["type"] == "tool"]
        return str(told["content"])


@pytest.fixture
async def superuser_of_service(service: RunningService) -> AsyncIterator[asyncpg.Connection]:
    """Sees every row of the service's."""
    connection = await asyncpg.connect(service.postgres.dsn("owner", service.database))
    yield connection
    await connection.close()


@pytest.fixture
async def visitor(
    service: RunningService, door: FrontDoor, authorization: TestAuthorizationServer
) -> AsyncIterator[Visitor]:
    """A person who is new here."""
    visitor = Visitor(service, door)
    async with visitor.browser:
        yield visitor


class TestAPersonConnects:
    async def test_and_the_tools_are_called_in_their_name(
        self, visitor: Visitor, protected: ProtectedMcpServer
    ) -> None:
        assert (await visitor.connection())["state"] == "needs_authorization"
        await visitor.authorize()
        connection = await visitor.connection()
        assert connection["credential"]["kind"] == "oauth"
        assert connection["credential"]["is_set"]
        assert [tool["name"] for tool in connection["tools"]] == ["whoami"]
        protected.requests.clear()
        assert "somebody who was let in" in await visitor.ask()
        (token,) = protected.authorization.records.tokens
        assert set(protected.tokens) == {token.access_token}

    async def test_the_answer_to_the_browser_leaves_no_trace_of_the_code(
        self, visitor: Visitor
    ) -> None:
        with capture_logs() as lines:
            callback = await visit(await visitor.begin())
            answer = await visitor.come_back(callback)
        said = parameters(callback)
        assert answer.status_code == 303
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["referrer-policy"] == "no-referrer"
        logged = json.dumps(lines, default=str)
        assert "/connections/callback" in logged
        for secret in (said["code"], said["state"], said["iss"]):
            assert secret not in logged
            assert secret not in answer.headers["location"] + answer.text

    async def test_not_by_a_state_of_somebody_elses(
        self, visitor: Visitor, service: RunningService, door: FrontDoor
    ) -> None:
        callback = await visit(await visitor.begin())
        thief = Visitor(service, door)
        async with thief.browser:
            answer = await thief.come_back(callback)
            assert answer.headers["location"] == "/tools?failed=&code=authorization_not_found"
            assert not (await thief.connection())["credential"]["is_set"]
        # Whose it is can still come back with it.
        answer = await visitor.come_back(callback)
        assert answer.headers["location"] == "/tools?connected=protected"

    async def test_not_without_their_consent(
        self, visitor: Visitor, authorization: TestAuthorizationServer
    ) -> None:
        authorization.behaviour.consents = False
        answer = await visitor.come_back(await visit(await visitor.begin()))
        location = answer.headers["location"]
        assert location == "/tools?failed=protected&code=authorization_denied"
        assert not (await visitor.connection())["credential"]["is_set"]

    async def test_nobody_else_is_connected_by_it(
        self, visitor: Visitor, service: RunningService, door: FrontDoor
    ) -> None:
        await visitor.authorize()
        other = Visitor(service, door)
        async with other.browser:
            assert (await other.connection())["state"] == "needs_authorization"


class TestWhatIsFoundOfATokenElsewhere:
    async def test_nothing_in_the_database_nor_in_any_log(
        self,
        visitor: Visitor,
        protected: ProtectedMcpServer,
        superuser_of_service: asyncpg.Connection,
    ) -> None:
        with capture_logs() as lines:
            await visitor.authorize()
            await visitor.ask()
        (token,) = protected.authorization.records.tokens
        assert token.refresh_token is not None
        tables = await superuser_of_service.fetch(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
        )
        for secret in (token.access_token, token.refresh_token):
            assert secret not in json.dumps(lines, default=str)
            for (table,) in tables:
                found = await superuser_of_service.fetchval(
                    f'SELECT count(*) FROM "{table}" t'
                    " WHERE strpos(t::text, $1) > 0 OR strpos(t::text, $2) > 0",
                    secret,
                    secret.encode().hex(),
                )
                assert found == 0, table


class TestTokensEnd:
    async def test_one_that_is_about_to_is_renewed_before_a_call(
        self, visitor: Visitor, protected: ProtectedMcpServer
    ) -> None:
        # Given tokens that are said to be about to end, and are taken for as long as it takes
        protected.authorization.behaviour.token = {"expires_in": 1}
        await visitor.authorize()
        protected.authorization.behaviour.token = {}
        asked = len(protected.authorization.records.asked)
        protected.requests.clear()
        assert "somebody who was let in" in await visitor.ask()
        newest = protected.authorization.records.tokens[-1]
        assert protected.tokens[-1] == newest.access_token
        assert len(protected.authorization.records.asked) == asked + 1

    async def test_where_the_person_took_their_consent_back_they_are_asked_again(
        self, visitor: Visitor, protected: ProtectedMcpServer
    ) -> None:
        await visitor.authorize()
        protected.authorization.records.revoke_all()
        asked = len(protected.authorization.records.asked)
        assert "somebody who was let in" not in await visitor.ask()
        await visitor.until("needs_authorization")
        # It was tried once to renew it, and not again and again.
        assert len(protected.authorization.records.asked) == asked + 1
        await visitor.authorize()
        assert "somebody who was let in" in await visitor.ask()

    async def test_where_only_the_access_token_is_dead_it_is_renewed(
        self, visitor: Visitor, protected: ProtectedMcpServer
    ) -> None:
        await visitor.authorize()
        dead = protected.authorization.records.tokens[-1]
        dead.is_dead = True
        protected.requests.clear()
        assert "somebody who was let in" in await visitor.ask()
        assert protected.tokens[-1] == protected.authorization.records.tokens[-1].access_token
        assert protected.tokens[-1] != dead.access_token


class TestAPersonDisconnects:
    async def test_and_their_tokens_are_given_back(
        self, visitor: Visitor, protected: ProtectedMcpServer
    ) -> None:
        await visitor.authorize()
        token = protected.authorization.records.tokens[-1]
        answer = await visitor.browser.post("/connections/protected/disconnect")
        assert answer.json()["state"] == "disconnected"
        records = protected.authorization.records
        assert records.given_back == [token.refresh_token, token.access_token]
        protected.requests.clear()
        await visitor.ask()
        assert not protected.requests

    async def test_and_what_was_under_way_connects_them_no_more(self, visitor: Visitor) -> None:
        callback = await visit(await visitor.begin())
        await visitor.browser.post("/connections/protected/disconnect")
        answer = await visitor.come_back(callback)
        assert answer.headers["location"] == "/tools?failed=&code=authorization_not_found"
        assert (await visitor.connection())["state"] == "disconnected"


class TestWhoTheServiceIs:
    async def test_can_be_read_by_anybody(self, service: RunningService, door: FrontDoor) -> None:
        async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE) as anybody:
            answer = await anybody.get(f"{door.url}/.well-known/oauth-client.json")
        assert answer.status_code == 200
        document = answer.json()
        assert document["client_id"] == f"{door.url}/.well-known/oauth-client.json"
        assert document["redirect_uris"] == [f"{door.url}/connections/callback"]
        assert document["token_endpoint_auth_method"] == "none"
        assert answer.headers["cache-control"] == "public, max-age=300"


class TestWhoAsks:
    async def test_a_server_that_is_not_theirs_is_no_server(self, visitor: Visitor) -> None:
        answer = await visitor.browser.post("/connections/unknown/authorize")
        assert answer.status_code == 404

    async def test_nobody_comes_back_who_is_not_signed_in(self, service: RunningService) -> None:
        answer = await service.client(None).get("/connections/callback?state=x&code=y")
        assert answer.status_code == 401

    async def test_pages_of_other_origins_begin_nothing(self, visitor: Visitor) -> None:
        answer = await visitor.browser.post(
            "/connections/protected/authorize", headers={"Sec-Fetch-Site": "cross-site"}
        )
        assert answer.status_code == 403

    async def test_a_server_of_their_own_is_none_where_people_may_not_have_any(
        self, visitor: Visitor, superuser_of_service: asyncpg.Connection
    ) -> None:
        me = (await visitor.browser.get("/me")).json()["user_id"]
        await superuser_of_service.execute(
            "INSERT INTO connections (user_id, server, url, auth)"
            " VALUES ($1, 'mine', 'https://mcp.example.com', 'oauth')",
            UUID(me),
        )
        answer = await visitor.browser.post("/connections/mine/authorize")
        assert answer.status_code == 404
