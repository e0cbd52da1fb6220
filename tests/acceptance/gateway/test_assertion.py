"""What the service is told about who is asking."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tenancy.identity import IdentityVerifier
from tests.acceptance.gateway.process import ISSUER, Gateway, running

if TYPE_CHECKING:
    from pathlib import Path

    from tests.acceptance.gateway.service import Service


class TestTheAssertion:
    async def test_is_what_the_service_verifies(self, gateway: Gateway, service: Service) -> None:
        verifier = IdentityVerifier(gateway.identity)
        await gateway.sign_in("Ada Lovelace", operator="1")
        await gateway.browser.get("/me")
        ada = await verifier.verify(service.headers)
        assert (ada.subject, ada.issuer, ada.name) == ("Ada Lovelace", ISSUER, "Ada Lovelace")
        assert ada.email == "ada.lovelace@dev.localhost"
        assert ada.roles == {"admin"}
        await gateway.sign_in("Bob")
        await gateway.browser.get("/me")
        bob = await verifier.verify(service.headers)
        assert (bob.subject, bob.roles) == ("Bob", frozenset())
        await verifier.aclose()

    async def test_replaces_whatever_the_client_claims(
        self, gateway: Gateway, service: Service
    ) -> None:
        await gateway.sign_in("Eve")
        grant = (await gateway.browser.post("/oauth2/token", json={"name": "Eve"})).json()
        forged = [
            ("Authorization", f"Bearer {grant['access_token']}"),
            ("X-Forwarded-User", "ada"),
            ("X_Forwarded_User", "ada"),
            ("X_Auth-Request_Email", "ada@example.com"),
            ("Cf-Access-Jwt-Assertion", "a.b.c"),
            ("X-Pomerium-Jwt-Assertion", "a.b.c"),
            ("X-Forwarded-For", "10.0.0.1"),
            ("Forwarded", "for=10.0.0.1"),
            ("X-Kept", "yes"),
            ("X-Dropped", "yes"),
            ("Connection", "X-Dropped, Authorization, Host"),
        ]
        response = await gateway.browser.get("/me", headers=forged)
        assert response.status_code == 200
        (line,) = service.lines("authorization")
        assert line != f"Bearer {grant['access_token']}"
        names = {key.decode().replace("_", "-") for key, _ in service.headers}
        assert not {name for name in names if name.startswith(("x-forwarded", "x-auth", "cf-"))}
        assert not names & {"forwarded", "x-pomerium-jwt-assertion", "x-dropped", "connection"}
        assert service.lines("x-kept") == ["yes"]
        assert service.lines("host") == [gateway.url.removeprefix("http://")]

    @pytest.mark.parametrize("twin", ["x-stoa-assertion", "X_Stoa_Assertion", "x-stoa_assertion"])
    async def test_stands_alone_in_the_configured_header(
        self, service: Service, key: Path, port: int, twin: str
    ) -> None:
        async with running(service, key, port, header="X-Stoa-Assertion") as gateway:
            await gateway.sign_in()
            await gateway.browser.get("/me", headers={twin: "a.b.c"})
            (line,) = service.lines("x-stoa-assertion")
            assert line.count(".") == 2
            assert line != "a.b.c"

    async def test_comes_without_the_gateways_cookie(
        self, gateway: Gateway, service: Service
    ) -> None:
        await gateway.sign_in()
        ((name, value),) = gateway.browser.cookies.items()
        await gateway.browser.get("/me")
        assert service.lines("cookie") == []
        ours = f"{name}={value}"
        await gateway.browser.get("/me", headers={"Cookie": f"theme=dark; {ours}; lang=de"})
        assert service.lines("cookie") == ["theme=dark; lang=de"]
