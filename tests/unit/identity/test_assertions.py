"""Which assertions are believed."""

from __future__ import annotations

import hmac
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from joserfc.jwk import ECKey, RSAKey

from tenancy.errors import IdentityRejected
from tests.unit.identity.issuer import (
    AUDIENCE,
    ISSUER,
    NOW,
    Clock,
    Issuer,
    b64,
    bearer,
    claims,
    new_key,
    sign,
)

if TYPE_CHECKING:
    from tenancy.identity import IdentityVerifier

HUGE = 10**400


async def refused(verifier: IdentityVerifier, token: str) -> None:
    with pytest.raises(IdentityRejected) as caught:
        await verifier.verify(bearer(token))
    assert str(caught.value) == IdentityRejected.message, "a refusal says nothing about why"


class TestAGoodAssertion:
    async def test_says_who_is_asking(self, verifier: IdentityVerifier, issuer: Issuer) -> None:
        identity = await verifier.verify(bearer(issuer.token()))
        assert (identity.issuer, identity.subject) == (ISSUER, "ada")
        assert (identity.name, identity.email) == ("Ada Lovelace", "ada@example.com")
        assert identity.expires_at == datetime.fromtimestamp(NOW + 290, UTC)
        assert identity.roles == frozenset()

    @pytest.mark.parametrize(
        ("kind", "alg"),
        [("EC", "ES256"), ("RSA", "RS256"), ("RSA", "PS256"), ("OKP", "Ed25519"), ("OKP", "EdDSA")],
    )
    async def test_may_be_signed_with_any_asymmetric_algorithm_of_the_list(
        self, verifier: IdentityVerifier, issuer: Issuer, kind: str, alg: str
    ) -> None:
        issuer.keys = [new_key("k", kind)]
        token = sign(issuer.keys[0], claims(), alg)
        assert (await verifier.verify(bearer(token))).subject == "ada"

    @pytest.mark.parametrize("changes", [{"aud": [AUDIENCE]}, {"exp": NOW + 290.5}, {"nbf": NOW}])
    async def test_may_look_different(
        self, verifier: IdentityVerifier, issuer: Issuer, changes: dict[str, object]
    ) -> None:
        await verifier.verify(bearer(issuer.token(**changes)))

    async def test_may_be_half_a_minute_late_or_early(
        self, verifier: IdentityVerifier, issuer: Issuer
    ) -> None:
        await verifier.verify(bearer(issuer.token(exp=NOW - 29, iat=NOW - 300)))
        await verifier.verify(bearer(issuer.token(iat=NOW + 29, nbf=NOW + 29)))

    async def test_may_have_header_fields_that_nobody_knows(
        self, verifier: IdentityVerifier, issuer: Issuer
    ) -> None:
        await verifier.verify(bearer(sign(issuer.keys[0], claims(), extra="field")))

    @pytest.mark.parametrize("typ", ["JWT", "jwt", "at+jwt", "application/at+jwt", ...])
    async def test_says_that_it_is_a_jwt_or_says_nothing(
        self, verifier: IdentityVerifier, issuer: Issuer, typ: object
    ) -> None:
        await verifier.verify(bearer(sign(issuer.keys[0], claims(), typ=typ)))


class TestClaimsThatAreRefused:
    @pytest.mark.parametrize(
        "changes",
        [
            {"exp": NOW - 31, "iat": NOW - 300},
            {"exp": ...},
            {"exp": None},
            {"exp": str(NOW + 290)},
            {"exp": True},
            {"exp": float("nan")},
            {"exp": float("inf")},
            {"exp": HUGE, "iat": NOW - 0.5},
            {"exp": NOW - 20, "iat": NOW - 20},
            {"exp": NOW + 24 * 3600, "iat": NOW - 1},
            {"iat": ...},
            {"iat": "now"},
            {"iat": NOW + 31},
            {"iat": -HUGE, "exp": NOW + 0.5},
            {"nbf": NOW + 31},
            {"nbf": None},
            {"iss": ...},
            {"iss": ISSUER + "/"},
            {"iss": [ISSUER]},
            {"aud": ...},
            {"aud": "another"},
            {"aud": AUDIENCE.upper()},
            {"aud": [AUDIENCE, "another"]},
            {"aud": [AUDIENCE, AUDIENCE]},
            {"aud": []},
            {"aud": {AUDIENCE: True}},
            {"sub": ...},
            {"sub": ""},
            {"sub": 7},
            {"sub": "a" * 256},
            {"sub": "a\x00b"},
            {"sub": "a\ud800b"},
            {"sub": "a\nb"},
        ],
        ids=lambda changes: str(changes)[:40],
    )
    async def test_however_well_they_are_signed(
        self, verifier: IdentityVerifier, issuer: Issuer, changes: dict[str, object]
    ) -> None:
        await refused(verifier, issuer.token(**changes))

    @pytest.mark.parametrize("payload", [[], "ada", 7, None])
    async def test_when_they_are_no_object(
        self, verifier: IdentityVerifier, issuer: Issuer, payload: object
    ) -> None:
        await refused(verifier, sign(issuer.keys[0], payload))

    async def test_when_they_are_nested_without_end(
        self, verifier: IdentityVerifier, issuer: Issuer
    ) -> None:
        await refused(verifier, sign(issuer.keys[0], b"[" * 9000))
        deep = json.dumps(claims()).encode()[:-1] + b', "deep": ' + b"[" * 3000 + b"]" * 3000 + b"}"
        await refused(verifier, sign(issuer.keys[0], deep))

    async def test_when_they_are_too_many(self, verifier: IdentityVerifier, issuer: Issuer) -> None:
        await verifier.verify(bearer(issuer.token(groups=["g" * 10_000])))
        await refused(verifier, issuer.token(groups=["g" * 13_000]))

    async def test_from_the_moment_they_expire(
        self, verifier: IdentityVerifier, issuer: Issuer, clock: Clock
    ) -> None:
        token = issuer.token()
        await verifier.verify(bearer(token))
        clock.advance(320)
        await refused(verifier, token)


class TestSignaturesThatAreRefused:
    async def test_forged_with_another_key_of_the_same_id(self, verifier: IdentityVerifier) -> None:
        await refused(verifier, sign(new_key("first"), claims()))

    async def test_over_other_claims(self, verifier: IdentityVerifier, issuer: Issuer) -> None:
        header, _, signature = issuer.token().split(".")
        payload = b64(json.dumps(claims(sub="eve")).encode())
        await refused(verifier, f"{header}.{payload}.{signature}")

    @pytest.mark.parametrize("alg", ["none", "None", "NONE", "", None, 7, ["ES256"], "HS256"])
    async def test_by_no_algorithm_of_the_list(
        self, verifier: IdentityVerifier, issuer: Issuer, alg: object
    ) -> None:
        header = b64(json.dumps({"alg": alg, "kid": "first"}).encode())
        _, payload, signature = issuer.token().split(".")
        await refused(verifier, f"{header}.{payload}.{signature}")
        await refused(verifier, f"{header}.{payload}.")

    async def test_made_with_the_public_key_as_a_shared_secret(
        self, verifier: IdentityVerifier, issuer: Issuer
    ) -> None:
        rsa = RSAKey.generate_key(2048, {"kid": "rsa"})
        issuer.keys = [rsa]
        header = b64(json.dumps({"alg": "HS256", "kid": "rsa"}).encode())
        signed = f"{header}.{b64(json.dumps(claims()).encode())}"
        # By hand: no library signs this any more.
        secret = rsa.as_pem(private=False)
        signature = b64(hmac.digest(secret, signed.encode(), "sha256"))
        await refused(verifier, f"{signed}.{signature}")

    @pytest.mark.parametrize("kid", [..., "", None, 7, "unknown", "k" * 256, "../../etc/passwd"])
    async def test_without_the_id_of_a_published_key(
        self, verifier: IdentityVerifier, issuer: Issuer, kid: object
    ) -> None:
        protected = {"alg": "ES256"} | ({} if kid is ... else {"kid": kid})
        header = b64(json.dumps(protected).encode())
        _, payload, signature = issuer.token().split(".")
        await refused(verifier, f"{header}.{payload}.{signature}")

    async def test_by_a_key_that_the_token_brings_along(
        self, verifier: IdentityVerifier, issuer: Issuer
    ) -> None:
        stranger = ECKey.generate_key("P-256", {"kid": "first"})
        jwk = stranger.as_dict(private=False)
        await refused(verifier, sign(stranger, claims(), jwk=jwk))
        await refused(verifier, sign(stranger, claims(), jku="https://evil.example/jwks"))
        await refused(verifier, sign(stranger, claims(), x5u="https://evil.example/cert"))
        assert issuer.fetches == 1, "nothing but the issuer was asked, and only once"

    async def test_by_the_right_key_and_the_wrong_algorithm(
        self, verifier: IdentityVerifier, issuer: Issuer
    ) -> None:
        issuer.keys = [RSAKey.generate_key(2048, {"kid": "k", "alg": "RS256"})]
        other = RSAKey.import_key(issuer.keys[0].as_dict(private=True) | {"alg": "PS256"})
        await refused(verifier, sign(other, claims(), "PS256"))

    @pytest.mark.parametrize("crit", [["exp"], ["b64"], ["alg"], [], "exp", 7, None])
    async def test_with_a_critical_extension(
        self, verifier: IdentityVerifier, issuer: Issuer, crit: object
    ) -> None:
        await refused(verifier, sign(issuer.keys[0], claims(), crit=crit, exp=1))

    async def test_over_a_payload_that_is_not_encoded(
        self, verifier: IdentityVerifier, issuer: Issuer
    ) -> None:
        await refused(verifier, sign(issuer.keys[0], claims(), b64=False))

    @pytest.mark.parametrize("typ", ["logout+jwt", "secevent+jwt", "dpop+jwt", ""])
    async def test_on_something_else_than_an_assertion(
        self, verifier: IdentityVerifier, issuer: Issuer, typ: object
    ) -> None:
        await refused(verifier, sign(issuer.keys[0], claims(), typ=typ))
