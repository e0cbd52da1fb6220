"""What the tests of authorizations are played on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

import httpx

from app.connections.oauth.authorizations import Answer, Authorizations, Finished
from app.connections.oauth.client import CALLBACK_PATH, PublicAddress
from app.connections.oauth.oauth import OAuth
from app.connections.oauth.tokens import Tokens
from app.tools.servers import CredentialKind, CredentialRule, HttpTransport, McpServer
from tenancy.database.tenant import TenantDatabase
from tenancy.principal import Owner, Principal
from tenancy.vault.keys import WrappingKeys
from tenancy.vault.vault import Vault
from tests.support.oauth_server.resource import ProtectedMcpServer
from tests.support.tls import NO_AUTHORITY

CLIENT = "stoa-client"
SECRET = "the client's secret"
KEYS = WrappingKeys.parse("k1:" + "A" * 43 + "=")


class Stage:
    """One MCP server in the operator's catalogue, and the authorizations there."""

    PUBLIC_URL: ClassVar = "https://stoa.example.com"
    CALLBACK: ClassVar = f"{PUBLIC_URL}{CALLBACK_PATH}"

    def __init__(self, tenants: TenantDatabase, protected: ProtectedMcpServer) -> None:
        self.protected = protected
        self.authorization = protected.authorization
        self.server = McpServer(
            "protected",
            HttpTransport(protected.url),
            credential=CredentialRule(
                CredentialKind.OAUTH,
                client_id=CLIENT,
                client_secret=SECRET,
                origins=(self.authorization.origin,),
            ),
            version="v1",
        )
        self.kept: list[tuple[Owner, Tokens]] = []
        self.is_changed = False
        self.oauth = OAuth(PublicAddress(self.PUBLIC_URL))
        self.authorizations = Authorizations(tenants, Vault(tenants, KEYS), self, self.oauth)

    def changed(self, **rule: Any) -> McpServer:
        """The server, as another operator would have it."""
        self.server = replace(self.server, credential=replace(self.server.credential, **rule))
        return self.server

    async def find_server(self, owner: Owner, name: str) -> McpServer | None:
        return self.server if name == self.server.name else None

    async def keep_tokens(
        self, owner: Owner, server: McpServer, tokens: Tokens, version: int
    ) -> bool:
        if not self.is_changed:
            self.kept.append((owner, tokens))
        return not self.is_changed

    async def begin(self, person: Principal) -> str:
        """The address at which the person is asked."""
        return await self.authorizations.begin(person, self.server)

    async def consent(self, url: str) -> Answer:
        """Say yes (or no) there, and bring back what the browser is sent back with."""
        return answer_in(await visit(url))

    async def authorize(self, person: Principal) -> Finished:
        """All of it."""
        return await self.authorizations.finish(
            person, await self.consent(await self.begin(person))
        )

    async def tokens(self, person: Principal) -> Tokens:
        """What all of it leads to."""
        assert (await self.authorize(person)).failure is None
        return self.kept[-1][1]


async def visit(url: str) -> str:
    """Where the browser is sent from there."""
    async with httpx.AsyncClient(trust_env=False, verify=NO_AUTHORITY, timeout=60) as browser:
        answer = await browser.get(url)
    assert answer.status_code == 302, answer.text
    return answer.headers["location"]


def parameters(url: str) -> dict[str, str]:
    """The parameters of an address, each of which is there once."""
    found = parse_qs(urlsplit(url).query, strict_parsing=True)
    assert all(len(values) == 1 for values in found.values())
    return {name: values[0] for name, values in found.items()}


def answer_in(callback: str) -> Answer:
    """What an address that the browser is sent back to says."""
    said = parameters(callback)
    return Answer(said["state"], said.get("code"), said.get("error"), said.get("iss"))
