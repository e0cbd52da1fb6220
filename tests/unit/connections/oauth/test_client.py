"""Who the service is to an authorization server, and where it may ask."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.connections.oauth.client import PublicAddress
from app.connections.oauth.errors import OAuthAddressRefused, OAuthNotConfigured
from app.connections.oauth.reach import check_address, trusted_origins
from app.tools.servers import (
    CredentialKind,
    CredentialRule,
    HttpTransport,
    McpServer,
    StdioTransport,
)

SERVER = McpServer(
    "tickets",
    HttpTransport("http://10.0.0.5:8000/mcp"),
    credential=CredentialRule(
        CredentialKind.OAUTH, origins=("https://id.corp",), issuer="https://as.corp/tenant"
    ),
)


class TestTheServicesOwnDescription:
    @pytest.mark.parametrize("written", ["https://stoa.example", "https://stoa.example/"])
    def test_names_itself_and_where_browsers_come_back_to(self, written: str) -> None:
        document = PublicAddress(written).document()
        assert document is not None
        assert document["client_id"] == "https://stoa.example/.well-known/oauth-client.json"
        assert document["redirect_uris"] == ["https://stoa.example/connections/callback"]

    def test_is_there_on_loopback_where_one_tries_things(self) -> None:
        assert PublicAddress("http://127.0.0.1:8080").document() is not None

    @pytest.mark.parametrize("written", ["http://stoa.example", None])
    def test_is_not_there_where_no_server_would_believe_it(self, written: str | None) -> None:
        assert PublicAddress(written).document() is None

    def test_nor_is_anything_begun_that_could_not_come_back(self) -> None:
        with pytest.raises(OAuthNotConfigured):
            PublicAddress(None).callback  # noqa: B018 - raises


class TestTrustedOrigins:
    def test_are_what_the_operator_wrote(self) -> None:
        assert trusted_origins(SERVER) == {
            "http://10.0.0.5:8000",
            "https://id.corp",
            "https://as.corp",
        }

    def test_are_none_where_a_person_did(self) -> None:
        assert trusted_origins(replace(SERVER, is_own=True)) == frozenset()

    def test_are_none_of_a_program(self) -> None:
        assert trusted_origins(replace(SERVER, transport=StdioTransport("true"))) == frozenset()


class TestAnAddress:
    @pytest.mark.parametrize(
        "url", ["https://as.example.com/token?tenant=1", "http://10.0.0.5:8000/token"]
    )
    def test_is_asked_where_it_is_public_or_trusted(self, url: str) -> None:
        assert check_address(url, trusted_origins(SERVER)) == url

    @pytest.mark.parametrize(
        "url",
        [
            "",
            "token",
            "//as.example.com",
            "ftp://as.example.com",
            "file:///etc/passwd",
            "data:application/json,{}",
            "http://as.example.com/token",
            "http://10.0.0.5:8001/token",
            "https://10.0.0.5/token",
            "https://localhost/token",
            "https://0x7f000001/token",
            "https://user@as.example.com/token",
            "https://as.example.com/token#part",
            "https://as.example.com:22/token",
            "https://as.example.com/\r\nHost: x",
            "https://[::ffff:10.0.0.5]/token",
            f"https://as.example.com/{'x' * 3000}",
        ],
    )
    def test_is_not_asked_anywhere_else(self, url: str) -> None:
        with pytest.raises(OAuthAddressRefused):
            check_address(url, trusted_origins(SERVER))
