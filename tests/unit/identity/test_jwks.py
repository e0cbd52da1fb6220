"""The issuer's keys: remembered, rotated, and used for a while when the issuer is down."""

from __future__ import annotations

import asyncio
import json

import pytest
from joserfc.jwk import ECKey, RSAKey

from tenancy.errors import IdentityRejected, IdentityUnavailable
from tenancy.identity import IdentityVerifier
from tests.unit.identity.issuer import (
    SETTINGS,
    Clock,
    Issuer,
    bearer,
    claims,
    new_key,
    sign,
)

DAY = 24 * 3600


def long_lived(issuer: Issuer) -> list[tuple[bytes, bytes]]:
    """Headers that stay good while the clock moves by hours."""
    return bearer(sign(issuer.keys[-1], claims(exp=int(claims()["iat"]) + DAY)))


def _short_rsa_key(kid: str) -> dict[str, object]:
    raw = RSAKey.binding.generate_private_key(1024).public_key()
    return dict(RSAKey(raw, raw, {"kid": kid}).as_dict(private=False))


class TestKeysThatAreKnown:
    async def test_are_fetched_once(self, verifier: IdentityVerifier, issuer: Issuer) -> None:
        for _ in range(3):
            await verifier.verify(bearer(issuer.token()))
        assert issuer.fetches == 1

    async def test_are_fetched_again_after_ten_minutes(
        self, verifier: IdentityVerifier, issuer: Issuer, clock: Clock
    ) -> None:
        headers = long_lived(issuer)
        await verifier.verify(headers)
        clock.advance(599)
        await verifier.verify(headers)
        assert issuer.fetches == 1
        clock.advance(1)
        await verifier.verify(headers)
        assert issuer.fetches == 2

    async def test_are_forgotten_when_the_issuer_withdraws_them(
        self, verifier: IdentityVerifier, issuer: Issuer, clock: Clock
    ) -> None:
        headers = long_lived(issuer)
        await verifier.verify(headers)
        issuer.keys = [new_key("second")]
        clock.advance(600)
        with pytest.raises(IdentityRejected):
            await verifier.verify(headers)


class TestANewKey:
    async def test_is_found_at_its_first_use(
        self, verifier: IdentityVerifier, issuer: Issuer
    ) -> None:
        old = bearer(issuer.token())
        await verifier.verify(old)
        issuer.keys.append(new_key("second"))
        await verifier.verify(bearer(issuer.token()))
        await verifier.verify(old)
        assert issuer.fetches == 2

    async def test_is_looked_for_at_most_every_half_minute(
        self, verifier: IdentityVerifier, issuer: Issuer, clock: Clock
    ) -> None:
        await verifier.verify(bearer(issuer.token()))
        unknown = bearer(sign(new_key("unknown"), claims(exp=claims()["iat"] + 3600)))
        for seconds, fetches in ((0, 2), (29, 2), (1, 3), (1, 3)):
            clock.advance(seconds)
            with pytest.raises(IdentityRejected):
                await verifier.verify(unknown)
            assert issuer.fetches == fetches

    async def test_is_not_looked_for_twice_by_one_request(
        self, verifier: IdentityVerifier, issuer: Issuer
    ) -> None:
        with pytest.raises(IdentityRejected):
            await verifier.verify(bearer(sign(new_key("unknown"), claims())))
        assert issuer.fetches == 1


class TestOneFetch:
    async def test_serves_all_who_wait(self, verifier: IdentityVerifier, issuer: Issuer) -> None:
        issuer.may_answer.clear()
        headers = bearer(issuer.token())
        waiting = [asyncio.create_task(verifier.verify(headers)) for _ in range(50)]
        await issuer.asked.wait()
        issuer.may_answer.set()
        assert len({identity.subject for identity in await asyncio.gather(*waiting)}) == 1
        assert issuer.fetches == 1

    async def test_serves_all_who_look_for_a_new_key(
        self, verifier: IdentityVerifier, issuer: Issuer
    ) -> None:
        await verifier.verify(bearer(issuer.token()))
        issuer.keys.append(new_key("second"))
        issuer.asked.clear()
        issuer.may_answer.clear()
        headers = bearer(issuer.token())
        waiting = [asyncio.create_task(verifier.verify(headers)) for _ in range(50)]
        await issuer.asked.wait()
        issuer.may_answer.set()
        await asyncio.gather(*waiting)
        assert issuer.fetches == 2

    async def test_goes_on_when_the_one_who_began_it_is_cancelled(
        self, verifier: IdentityVerifier, issuer: Issuer
    ) -> None:
        issuer.may_answer.clear()
        headers = bearer(issuer.token())
        first = asyncio.create_task(verifier.verify(headers))
        await issuer.asked.wait()
        second = asyncio.create_task(verifier.verify(headers))
        first.cancel()
        await asyncio.wait({first})
        assert first.cancelled()
        issuer.may_answer.set()
        assert (await second).subject == "ada"
        assert issuer.fetches == 1

    async def test_ends_with_the_verifier(self, issuer: Issuer, clock: Clock) -> None:
        verifier = IdentityVerifier(SETTINGS, issuer, now=clock, clock=clock)
        issuer.may_answer.clear()
        waiting = asyncio.create_task(verifier.verify(bearer(issuer.token())))
        await issuer.asked.wait()
        await verifier.aclose()
        with pytest.raises(IdentityUnavailable):
            await waiting
        assert issuer.closed


class TestAnIssuerThatIsDown:
    async def test_at_the_start_lets_nobody_in_and_is_asked_again_soon(
        self, verifier: IdentityVerifier, issuer: Issuer, clock: Clock
    ) -> None:
        issuer.down = True
        headers = bearer(issuer.token())
        for _ in range(3):
            with pytest.raises(IdentityUnavailable):
                await verifier.verify(headers)
        assert issuer.fetches == 1
        issuer.down = False
        clock.advance(1)
        await verifier.verify(headers)

    async def test_is_believed_in_its_last_word_for_a_bounded_time(
        self, verifier: IdentityVerifier, issuer: Issuer, clock: Clock
    ) -> None:
        headers = long_lived(issuer)
        await verifier.verify(headers)
        issuer.down = True
        clock.advance(SETTINGS.keys_usable_for - 1)
        await verifier.verify(headers)
        clock.advance(1)
        with pytest.raises(IdentityUnavailable):
            await verifier.verify(headers)

    async def test_is_not_asked_by_every_request(
        self, verifier: IdentityVerifier, issuer: Issuer, clock: Clock
    ) -> None:
        headers = long_lived(issuer)
        await verifier.verify(headers)
        issuer.down = True
        clock.advance(600)
        for _ in range(5):
            await verifier.verify(headers)
        assert issuer.fetches == 2
        issuer.down = False
        clock.advance(30)
        await verifier.verify(headers)
        assert issuer.fetches == 3

    @pytest.mark.parametrize(
        "raw",
        [b"", b"<html>", b"[]", b"{}", b'{"keys": 7}', b'{"keys": []}', b"[" * 99_999, b"\xff"],
    )
    async def test_may_also_talk_nonsense(
        self, verifier: IdentityVerifier, issuer: Issuer, raw: bytes
    ) -> None:
        issuer.raw = raw
        with pytest.raises(IdentityUnavailable):
            await verifier.verify(bearer(issuer.token()))


class TestJunkInTheKeySet:
    @pytest.mark.parametrize(
        "junk",
        [
            7,
            None,
            [],
            {},
            {"kty": "oct", "k": "c2VjcmV0", "kid": "first"},
            {"kty": "AKP", "kid": "first", "pub": "AAAA"},
            {"kty": "EC", "kid": "first"},
            {"kty": "EC", "kid": "first", "crv": "P-256", "x": 7, "y": []},
            {"kty": "EC", "kid": "first", "crv": "P-256", "x": "AAAA", "y": "AAAA"},
            {"kty": "RSA", "kid": "first", "n": "", "e": "AQAB"},
            {"kty": ["EC"], "kid": "first"},
            ECKey.generate_key("secp256k1", {"kid": "first"}).as_dict(private=False),
            ECKey.generate_key("P-256", {"kid": "first"}).as_dict(private=True),
            ECKey.generate_key("P-256", {"kid": "first", "use": "enc"}).as_dict(private=False),
            ECKey.generate_key("P-256").as_dict(private=False),
            _short_rsa_key("first"),
        ],
        ids=lambda junk: "-".join(map(str, junk)) if isinstance(junk, dict) else str(junk)[:30],
    )
    async def test_is_passed_over(
        self, verifier: IdentityVerifier, issuer: Issuer, junk: object
    ) -> None:
        good = issuer.keys[0].as_dict(private=False)
        issuer.raw = json.dumps({"keys": [junk, good]}).encode()
        await verifier.verify(bearer(issuer.token()))

    async def test_alone_is_no_key_set(self, verifier: IdentityVerifier, issuer: Issuer) -> None:
        issuer.raw = json.dumps({"keys": [issuer.keys[0].as_dict(private=True)]}).encode()
        with pytest.raises(IdentityUnavailable):
            await verifier.verify(bearer(issuer.token()))
