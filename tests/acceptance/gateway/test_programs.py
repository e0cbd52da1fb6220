"""How programs come in without a browser."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from tenancy.errors import IdentityRejected
from tenancy.identity import IdentityVerifier
from tests.acceptance.gateway.process import PATIENCE, Gateway

if TYPE_CHECKING:
    from tests.acceptance.gateway.service import Service


class TestAProgram:
    @pytest.mark.parametrize("form", [{"json": {"name": "ada"}}, {"data": {"name": "ada"}}])
    async def test_gets_a_token_and_in_with_it(
        self, gateway: Gateway, service: Service, form: dict[str, Any]
    ) -> None:
        grant = (await gateway.browser.post("/oauth2/token", **form)).json()
        assert grant["token_type"] == "Bearer"
        assert grant["expires_in"] > 0
        bearer = {"Authorization": f"Bearer {grant['access_token']}"}
        assert (await gateway.browser.get("/me", headers=bearer)).status_code == 200
        assert grant["access_token"] not in str(service.headers)

    @pytest.mark.parametrize(
        ("content", "status"),
        [
            (b"", 400),
            (b"{", 400),
            (b"[]", 400),
            (b"{}", 422),
            (b'{"name": 7}', 422),
            (b'{"name": "\\ud800"}', 422),
            (b"[" * 9999, 400),
            (b" " * 20_000, 400),
        ],
    )
    async def test_is_told_what_is_wrong(
        self, gateway: Gateway, content: bytes, status: int
    ) -> None:
        headers = {"Content-Type": "application/json"}
        response = await gateway.browser.post("/oauth2/token", content=content, headers=headers)
        assert response.status_code == status
        assert response.headers["Content-Type"] == "application/problem+json"

    async def test_does_not_get_in_with_two_tokens(self, gateway: Gateway) -> None:
        grant = (await gateway.browser.post("/oauth2/token", json={"name": "ada"})).json()
        line = ("Authorization", f"Bearer {grant['access_token']}")
        assert (await gateway.browser.get("/me", headers=[line, line])).status_code == 401

    async def test_cannot_use_its_token_or_a_cookie_as_an_assertion(self, gateway: Gateway) -> None:
        grant = (await gateway.browser.post("/oauth2/token", json={"name": "ada"})).json()
        await gateway.sign_in()
        verifier = IdentityVerifier(gateway.identity)
        for value in (grant["access_token"], *gateway.browser.cookies.values()):
            with pytest.raises(IdentityRejected):
                await verifier.verify([(b"authorization", f"Bearer {value}".encode())])
        await verifier.aclose()


class TestWhatIsPublished:
    @pytest.mark.parametrize(
        ("published", "beside"),
        [
            (b'{"keys": [{"kty": "OKP", "kid": "receipts"}]}', ["receipts"]),
            (b"", []),
            (b'{"keys": {}}', []),
            (b"[" * 9999, []),
            (b" " * 100_000, []),
        ],
        ids=["keys", "nothing", "no list", "nonsense", "too much"],
    )
    async def test_is_the_gateways_key_and_the_services(
        self, gateway: Gateway, service: Service, published: bytes, beside: list[str]
    ) -> None:
        service.keys = published
        # The gateway waits for the service's a moment only.
        async with asyncio.timeout(PATIENCE):
            keys: list[dict[str, Any]] = []
            while len(keys) <= len(beside):
                answer = await gateway.browser.get("/.well-known/jwks.json")
                keys = answer.json()["keys"]
        assert [key["kid"] for key in keys[1:]] == beside
        assert "d" not in keys[0]
