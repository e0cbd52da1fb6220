"""Exactly one header line may carry the assertion."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tenancy.errors import AmbiguousIdentity, IdentityRejected
from tenancy.identity import IdentityVerifier
from tests.unit.identity.issuer import SETTINGS, Clock, Issuer, bearer


class TestTheAuthorizationHeader:
    @pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
    async def test_holds_a_bearer_token(
        self, verifier: IdentityVerifier, issuer: Issuer, scheme: str
    ) -> None:
        line = (b"Authorization", f"{scheme} {issuer.token()}".encode())
        await verifier.verify([line])

    @pytest.mark.parametrize(
        "value",
        [
            b"",
            b"Bearer",
            b"Bearer ",
            b"Basic YTpi",
            b"Bearer a.b",
            b"Bearer a.b.c.d",
            b"Bearer a.b.\xff",
            b"Bearer a.b.c, Bearer a.b.c",
            b"Bearer ..",
            b"Bearer a.b.c",
            b"Bearer " + b"a" * 10_000 + b"." + b"b" * 10_000 + b".c",
            b"Bearer " + b"9" * 5000 + b".b.c",
        ],
        ids=lambda value: repr(value[:30]),
    )
    async def test_is_refused_with_anything_else(
        self, verifier: IdentityVerifier, value: bytes
    ) -> None:
        with pytest.raises(IdentityRejected):
            await verifier.verify([(b"authorization", value)])

    async def test_is_refused_with_a_bare_token(
        self, verifier: IdentityVerifier, issuer: Issuer
    ) -> None:
        with pytest.raises(IdentityRejected):
            await verifier.verify([(b"authorization", issuer.token().encode())])

    async def test_is_needed(self, verifier: IdentityVerifier) -> None:
        with pytest.raises(IdentityRejected):
            await verifier.verify([(b"host", b"stoa.example")])


class TestADoubledHeader:
    async def test_is_ambiguous_even_when_both_say_the_same(
        self, verifier: IdentityVerifier, issuer: Issuer
    ) -> None:
        line = bearer(issuer.token())[1]
        with pytest.raises(AmbiguousIdentity):
            await verifier.verify([line, line])

    async def test_is_ambiguous_in_another_case(
        self, verifier: IdentityVerifier, issuer: Issuer
    ) -> None:
        value = bearer(issuer.token())[1][1]
        with pytest.raises(AmbiguousIdentity):
            await verifier.verify([(b"authorization", value), (b"AUTHORIZATION", b"Bearer x")])


class TestAHeaderOfTheGatewaysOwn:
    NAME = "X-Pomerium-Jwt-Assertion"

    @pytest.fixture
    def own(self, issuer: Issuer, clock: Clock) -> IdentityVerifier:
        return IdentityVerifier(replace(SETTINGS, header=self.NAME), issuer, now=clock, clock=clock)

    async def test_holds_the_bare_token(self, own: IdentityVerifier, issuer: Issuer) -> None:
        line = (self.NAME.encode(), issuer.token().encode())
        ignored = (b"authorization", b"Basic YTpi")
        await own.verify([ignored, line])

    @pytest.mark.parametrize(
        "twin",
        [b"x_pomerium_jwt_assertion", b"x-pomerium_jwt-assertion", b"X_Pomerium-Jwt-Assertion"],
    )
    async def test_is_ambiguous_beside_or_behind_an_underscore_twin(
        self, own: IdentityVerifier, issuer: Issuer, twin: bytes
    ) -> None:
        token = issuer.token().encode()
        with pytest.raises(AmbiguousIdentity):
            await own.verify([(twin, token), (self.NAME.lower().encode(), token)])
        with pytest.raises(AmbiguousIdentity):
            await own.verify([(twin, token)])


class TestSettingsThatCannotBeUsed:
    @pytest.mark.parametrize(
        "changes",
        [
            {"issuer": ""},
            {"audience": " "},
            {"admin_value": ""},
            {"header": "X User"},
            {"header": ""},
            {"jwks_url": "http://gateway.example/jwks"},
            {"jwks_url": "ftp://127.0.0.1/jwks"},
            {"jwks_url": "https://user:password@gateway.example/jwks"},
            {"jwks_url": "file:///etc/passwd"},
        ],
    )
    def test_are_refused_at_the_start(self, changes: dict[str, str]) -> None:
        with pytest.raises(ValueError, match="must"):
            replace(SETTINGS, **changes)  # type: ignore[arg-type]

    @pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost", "[::1]:8000"])
    def test_are_not_plain_http_on_loopback(self, host: str) -> None:
        replace(SETTINGS, jwks_url=f"http://{host}/jwks")
