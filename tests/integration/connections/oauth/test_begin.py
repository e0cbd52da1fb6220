"""Beginning an authorization: what is found out about a server, and what is not believed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import asyncpg
import pytest

from app.connections.oauth.client import DOCUMENT_PATH
from app.connections.oauth.errors import (
    AuthorizationServerUnavailable,
    OAuthAddressRefused,
    OAuthClientRequired,
    OAuthIssuerMismatch,
    OAuthNotOffered,
    OAuthNotUsed,
    OAuthPkceRequired,
    OAuthRefused,
    OAuthResourceMismatch,
)
from app.tools.servers import CredentialKind, StdioTransport
from tenancy.authorizations import MOST_AUTHORIZATIONS
from tenancy.database.tenant import TenantDatabase
from tenancy.errors import StoaError
from tenancy.principal import Principal
from tests.integration.connections.oauth.stage import CLIENT, Stage, parameters
from tests.support.oauth_server.authorization import authorization_server
from tests.support.oauth_server.resource import protected_mcp_server

WELL_KNOWN = "/.well-known/oauth-protected-resource"


async def under_way(superuser: asyncpg.Connection, person: Principal) -> int:
    """How many authorizations of a person's are."""
    counted = "SELECT count(*) FROM authorizations WHERE user_id = $1"
    found: int = await superuser.fetchval(counted, person.user_id)
    return found


class TestWhatThePersonIsAsked:
    async def test_is_asked_for_this_server_under_a_proof_that_only_the_service_has(
        self, stage: Stage, alice: Principal
    ) -> None:
        url = await stage.begin(alice)
        asked = parameters(url)
        assert url.startswith(f"{stage.authorization.url}/authorize?")
        assert asked["response_type"] == "code"
        assert asked["client_id"] == CLIENT
        assert asked["redirect_uri"] == stage.CALLBACK
        assert asked["resource"] == stage.protected.url
        assert asked["code_challenge_method"] == "S256"
        assert len(asked["code_challenge"]) == 43
        assert len(asked["state"]) == 43

    async def test_never_twice_the_same(self, stage: Stage, alice: Principal) -> None:
        first, second = [parameters(await stage.begin(alice)) for _ in range(2)]
        assert first["state"] != second["state"]
        assert first["code_challenge"] != second["code_challenge"]

    async def test_the_scope_that_the_server_says_is_needed(
        self, stage: Stage, alice: Principal
    ) -> None:
        assert parameters(await stage.begin(alice))["scope"] == "tools:call"

    async def test_else_the_scopes_that_it_has(self, stage: Stage, alice: Principal) -> None:
        stage.protected.challenged_scope = None
        assert parameters(await stage.begin(alice))["scope"] == "tools:list"

    async def test_with_what_gives_a_refresh_token_where_that_is_known(
        self, stage: Stage, alice: Principal
    ) -> None:
        stage.authorization.behaviour.metadata["scopes_supported"] = ["offline_access"]
        assert parameters(await stage.begin(alice))["scope"] == "tools:call offline_access"

    async def test_but_what_the_operator_says_before_all(
        self, stage: Stage, alice: Principal
    ) -> None:
        stage.changed(scopes=("one", "two"))
        assert parameters(await stage.begin(alice))["scope"] == "one two"

    async def test_as_the_address_of_its_own_description_where_nobody_registered_it(
        self, stage: Stage, alice: Principal
    ) -> None:
        stage.changed(client_id=None, client_secret=None)
        asked = parameters(await stage.begin(alice))
        assert asked["client_id"] == f"{stage.PUBLIC_URL}{DOCUMENT_PATH}"


class TestWhereItIsDescribed:
    @pytest.mark.parametrize("place", [f"{WELL_KNOWN}/mcp", WELL_KNOWN])
    async def test_at_the_usual_places_if_the_server_does_not_say(
        self, stage: Stage, alice: Principal, place: str
    ) -> None:
        stage.protected.challenges = False
        stage.protected.description_path = place
        assert await stage.begin(alice)

    async def test_at_the_place_that_the_server_says(self, stage: Stage, alice: Principal) -> None:
        stage.protected.description_path = "/somewhere/else"
        assert await stage.begin(alice)

    @pytest.mark.parametrize("place", ["oauth", "openid", "openid appended"])
    async def test_the_authorization_server_at_one_of_its_own(
        self, tenants: TenantDatabase, alice: Principal, place: Any
    ) -> None:
        async with (
            authorization_server("/tenant/one") as server,
            protected_mcp_server(server) as protected,
        ):
            stage = Stage(tenants, protected)
            server.behaviour.document_place = place
            assert await stage.begin(alice)


def metadata(**fields: Any) -> dict[str, Any]:
    return fields


NOT_BELIEVED: dict[str, tuple[dict[str, Any], type[StoaError]]] = {
    "a foreign issuer": (metadata(issuer="https://evil.example.com"), OAuthIssuerMismatch),
    "an issuer that begins alike": (metadata(issuer="{url}.evil.example.com"), OAuthIssuerMismatch),
    "no issuer": (metadata(issuer=None), OAuthIssuerMismatch),
    "no word of PKCE": (metadata(code_challenge_methods_supported=None), OAuthPkceRequired),
    "PKCE that proves nothing": (
        metadata(code_challenge_methods_supported=["plain"]),
        OAuthPkceRequired,
    ),
    "no codes": (metadata(response_types_supported=["token"]), OAuthRefused),
    "no grant of codes": (metadata(grant_types_supported=["client_credentials"]), OAuthRefused),
    "no token endpoint": (metadata(token_endpoint=None), OAuthRefused),
    "a way of proving oneself that is not known": (
        metadata(token_endpoint_auth_methods_supported=["private_key_jwt"]),
        OAuthClientRequired,
    ),
    "tokens in plain sight": (
        metadata(token_endpoint="http://token.example.com/"),
        OAuthAddressRefused,
    ),
    "another port of this machine": (
        metadata(token_endpoint="http://127.0.0.1:5432/"),
        OAuthAddressRefused,
    ),
    "the inner network": (metadata(token_endpoint="https://10.0.0.1/token"), OAuthAddressRefused),
    "the cloud's own": (
        metadata(revocation_endpoint="https://169.254.169.254/latest"),
        OAuthAddressRefused,
    ),
    "loopback in other words": (metadata(token_endpoint="https://[::1]/"), OAuthAddressRefused),
    "a page that is a program": (
        metadata(authorization_endpoint="javascript:alert(1)"),
        OAuthRefused,
    ),
    "a name within": (
        metadata(authorization_endpoint="https://vault.internal/authorize"),
        OAuthAddressRefused,
    ),
    "a fragment": (metadata(authorization_endpoint="{url}/authorize#x"), OAuthAddressRefused),
}


class TestWhatIsNotBelieved:
    @pytest.fixture(autouse=True)
    async def nothing_is_under_way(
        self, stage: Stage, alice: Principal, superuser: asyncpg.Connection
    ) -> AsyncIterator[None]:
        yield
        assert await under_way(superuser, alice) == 0
        assert not stage.authorization.records.asked

    @pytest.mark.parametrize("case", NOT_BELIEVED)
    async def test_in_the_authorization_servers_description(
        self, stage: Stage, alice: Principal, case: str
    ) -> None:
        fields, refusal = NOT_BELIEVED[case]
        if refusal is OAuthIssuerMismatch:  # nor where the client would be known to anybody
            stage.changed(client_id=None, client_secret=None)
        stage.authorization.behaviour.metadata = {
            name: value.format(url=stage.authorization.url) if isinstance(value, str) else value
            for name, value in fields.items()
        }
        with pytest.raises(refusal):
            await stage.begin(alice)

    @pytest.mark.parametrize(
        "resource",
        [
            "https://mcp.example.com/mcp",
            "{origin}/other",
            "{origin}/mc",
            "http://127.0.0.1/mcp",
        ],
    )
    async def test_a_description_of_another_server(
        self, stage: Stage, alice: Principal, resource: str
    ) -> None:
        named = resource.format(origin=stage.protected.origin)
        stage.protected.description["resource"] = named
        with pytest.raises(OAuthResourceMismatch):
            await stage.begin(alice)

    @pytest.mark.parametrize(
        "issuer",
        ["http://127.0.0.1:1", "https://127.0.0.1", "http://as.example.com", "https://u@x.de"],
    )
    async def test_an_authorization_server_where_none_may_be(
        self, stage: Stage, alice: Principal, issuer: str
    ) -> None:
        stage.protected.description["authorization_servers"] = [issuer]
        with pytest.raises(OAuthAddressRefused):
            await stage.begin(alice)

    async def test_a_description_that_is_elsewhere_than_it_may_be(
        self, stage: Stage, alice: Principal
    ) -> None:
        stage.protected.origin = "http://127.0.0.1:1"
        with pytest.raises(OAuthAddressRefused):
            await stage.begin(alice)

    async def test_an_authorization_server_that_the_operator_did_not_name(
        self, stage: Stage, alice: Principal
    ) -> None:
        stage.changed(origins=())
        with pytest.raises(OAuthAddressRefused):
            await stage.begin(alice)

    async def test_an_issuer_that_the_client_is_not_registered_at(
        self, stage: Stage, alice: Principal
    ) -> None:
        stage.changed(issuer="https://issuer.example.com")
        with pytest.raises(OAuthIssuerMismatch):
            await stage.begin(alice)

    async def test_anything_within_for_a_server_of_ones_own(
        self, stage: Stage, alice: Principal
    ) -> None:
        stage.server = replace(stage.server, is_own=True)
        with pytest.raises(OAuthAddressRefused):
            await stage.begin(alice)
        assert not stage.protected.requests

    async def test_a_server_that_knows_no_client_by_its_description(
        self, stage: Stage, alice: Principal
    ) -> None:
        stage.authorization.behaviour.takes_documents = False
        stage.changed(client_id=None, client_secret=None)
        with pytest.raises(OAuthClientRequired):
            await stage.begin(alice)

    async def test_a_server_that_describes_nothing(self, stage: Stage, alice: Principal) -> None:
        stage.protected.challenges = False
        stage.protected.description_path = "/nowhere"
        with pytest.raises(OAuthNotOffered):
            await stage.begin(alice)

    @pytest.mark.parametrize("manner", ["redirect", "page", "labelled a page", "list", "depth"])
    async def test_an_answer_that_is_no_description(
        self, stage: Stage, alice: Principal, manner: Any
    ) -> None:
        stage.authorization.behaviour.describes = manner
        with pytest.raises(OAuthNotOffered):
            await stage.begin(alice)

    @pytest.mark.parametrize("manner", ["flood", "failure", "break"])
    async def test_an_answer_that_tells_nothing_of_the_server(
        self, stage: Stage, alice: Principal, manner: Any
    ) -> None:
        stage.authorization.behaviour.describes = manner
        with pytest.raises(AuthorizationServerUnavailable):
            await stage.begin(alice)

    async def test_that_a_program_on_this_machine_asks_for_consent(
        self, stage: Stage, alice: Principal
    ) -> None:
        stage.server = replace(stage.server, transport=StdioTransport("true"))
        with pytest.raises(OAuthNotUsed):
            await stage.begin(alice)

    async def test_that_a_server_with_keys_does(self, stage: Stage, alice: Principal) -> None:
        stage.changed(kind=CredentialKind.HEADER)
        with pytest.raises(OAuthNotUsed):
            await stage.begin(alice)


class TestWhatIsKept:
    async def test_nothing_that_would_help_a_thief_of_the_database(
        self, stage: Stage, alice: Principal, superuser: asyncpg.Connection
    ) -> None:
        state = parameters(await stage.begin(alice))["state"]
        row = await superuser.fetchval(
            "SELECT a::text FROM authorizations a WHERE user_id = $1", alice.user_id
        )
        assert state not in row
        assert state.encode().hex() not in row
        assert b"verifier".hex() not in row

    async def test_a_few_at_once_the_newest(
        self, stage: Stage, alice: Principal, superuser: asyncpg.Connection
    ) -> None:
        urls = [await stage.begin(alice) for _ in range(MOST_AUTHORIZATIONS + 1)]
        assert await under_way(superuser, alice) == MOST_AUTHORIZATIONS
        finished = await stage.authorizations.finish(alice, await stage.consent(urls[-1]))
        assert finished.failure is None

    async def test_no_longer_than_a_person_needs(
        self, stage: Stage, alice: Principal, superuser: asyncpg.Connection
    ) -> None:
        await stage.begin(alice)
        kept_for = await superuser.fetchval(
            "SELECT extract(epoch FROM expires_at - created_at)::float8 FROM authorizations"
            " WHERE user_id = $1",
            alice.user_id,
        )
        assert kept_for == pytest.approx(600, abs=1)
