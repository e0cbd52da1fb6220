"""A receipt verifies with the published keys, wherever it is verified, and no changed one does."""

from __future__ import annotations

import base64
import json
import string
from collections.abc import Iterator
from typing import Any

import jwt
import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from app.erasure.errors import ErasureNotConfigured, ReceiptRefused
from app.erasure.receipts import KIND, Receipts, verify_receipt
from app.erasure.signing import SigningKeys
from app.settings import Settings
from tests.support.erasures import VERIFIED, signing_keys_of, verified
from tests.support.vaults import keys_of

KEYS = signing_keys_of("2026-b", "2026-a")
DAY = 86400.0


def published(keys: SigningKeys = KEYS) -> bytes:
    return json.dumps(keys.published()).encode()


def receipts(keys: SigningKeys = KEYS, **changes: Any) -> Receipts:
    chosen: dict[str, Any] = {
        "issuer": "https://stoa.example.org",
        "tombstone_seconds": 90 * DAY,
        "audit_seconds": 400 * DAY,
    }
    return Receipts(keys, **{**chosen, **changes})


@pytest.fixture(scope="module")
def receipt() -> str:
    return receipts().sign(VERIFIED)


class TestAReceipt:
    def test_says_what_was_deleted_that_nothing_is_left_and_what_stays(self, receipt: str) -> None:
        assert verify_receipt(receipt, published()) == {
            "iss": "https://stoa.example.org",
            "erasure_id": "0198c0de-0000-4000-8000-00000000e2a5",
            "requested_at": "2026-11-30T12:00:00.000Z",
            "requested_by": "person",
            "verified_at": "2026-11-30T12:00:30.000Z",
            "deleted": {"messages": 1_000_000, "users": 1},
            "remaining": {"messages": 0, "users": 0},
            "keys_destroyed": 1,
            "tokens_revoked": 2,
            "tokens_not_revoked": 1,
            "folders_deleted": 4,
            "kept": [
                {"what": "tombstone", "until": "2027-02-28T12:00:00.000Z"},
                {"what": "anonymous_record", "until": "2028-01-04T12:00:30.000Z"},
            ],
        }

    def test_names_no_issuer_where_there_is_no_public_address(self) -> None:
        claims = verify_receipt(receipts(issuer=None).sign(VERIFIED), published())
        assert "iss" not in claims

    def test_says_of_what_stays_for_good_that_it_does(self) -> None:
        claims = verify_receipt(receipts(audit_seconds=None).sign(VERIFIED), published())
        assert claims["kept"][1] == {"what": "anonymous_record", "until": None}

    def test_is_made_as_the_settings_say(self) -> None:
        settings = Settings.model_validate(
            {"signing_keys": keys_of("k1"), "public_url": "https://stoa.example.org/"}
        )
        claims = verify_receipt(
            Receipts.of(settings).sign(VERIFIED), published(signing_keys_of("k1"))
        )
        assert claims["iss"] == "https://stoa.example.org"

    def test_is_not_made_without_keys(self) -> None:
        with pytest.raises(ErasureNotConfigured):
            Receipts.of(Settings.model_validate({"signing_keys": None}))

    def test_verifies_with_its_key_while_that_is_published(self) -> None:
        old = receipts(signing_keys_of("2026-a")).sign(VERIFIED)
        assert verify_receipt(old, published())["erasure_id"] == str(VERIFIED.erasure_id)
        with pytest.raises(ReceiptRefused, match="not published"):
            verify_receipt(old, published(signing_keys_of("2026-b")))

    def test_may_have_space_around_it(self, receipt: str) -> None:
        assert verify_receipt(f"\n {receipt}\r\n", published())


class TestAnotherLibrary:
    def test_verifies_a_receipt(self, receipt: str) -> None:
        keys = jwt.PyJWKSet.from_json(published().decode())
        header = jwt.get_unverified_header(receipt)
        claims = jwt.decode(receipt, keys[header["kid"]], algorithms=["EdDSA"])
        assert claims == verify_receipt(receipt, published())
        assert header["typ"] == KIND

    def test_refuses_a_changed_one(self, receipt: str) -> None:
        keys = jwt.PyJWKSet.from_json(published().decode())
        head, payload, signature = receipt.split(".")
        other = _encoded(_decoded(payload).replace(b"1000000", b"2000000"))
        with pytest.raises(jwt.InvalidSignatureError):
            jwt.decode(f"{head}.{other}.{signature}", keys["2026-b"], algorithms=["EdDSA"])

    def test_needs_no_library_at_all(self, receipt: str) -> None:
        (key,) = [key for key in KEYS.published()["keys"] if key["kid"] == "2026-b"]
        signed, _, signature = receipt.rpartition(".")
        verifier = Ed25519PublicKey.from_public_bytes(_decoded(key["x"]))
        verifier.verify(_decoded(signature), signed.encode())
        with pytest.raises(InvalidSignature):
            verifier.verify(_decoded(signature), signed.encode() + b"A")


class TestAChangedReceipt:
    def test_does_not_verify_whichever_character_was_changed(self, receipt: str) -> None:
        for changed in _with_one_character_changed(receipt):
            with pytest.raises(ReceiptRefused):
                verify_receipt(changed, published())

    @pytest.mark.parametrize(
        "claim", [{"deleted": {}}, {"remaining": {"messages": 3}}, {"requested_by": "operator"}]
    )
    def test_does_not_verify_though_it_reads_well(
        self, receipt: str, claim: dict[str, Any]
    ) -> None:
        head, payload, signature = receipt.split(".")
        claims = {**json.loads(_decoded(payload)), **claim}
        changed = f"{head}.{_encoded(json.dumps(claims).encode())}.{signature}"
        with pytest.raises(ReceiptRefused):
            verify_receipt(changed, published())

    @pytest.mark.parametrize(
        "header",
        [
            {"alg": "none"},
            {"alg": "HS256"},
            {"kid": "2026-a"},
            {"kid": "never"},
            {"kid": 7},
            {"typ": "JWT"},
            {"crit": ["b64"], "b64": False},
        ],
        ids=["unsigned", "shared secret", "other key", "no key", "no id", "no receipt", "critical"],
    )
    def test_does_not_verify_with_another_header(
        self, receipt: str, header: dict[str, Any]
    ) -> None:
        head, payload, signature = receipt.split(".")
        changed = _encoded(json.dumps({**json.loads(_decoded(head)), **header}).encode())
        with pytest.raises(ReceiptRefused):
            verify_receipt(f"{changed}.{payload}.{signature}", published())

    def test_of_two_receipts_put_together_does_not_verify(self, receipt: str) -> None:
        other = receipts().sign(verified(deleted={}))
        head, payload, _ = receipt.split(".")
        with pytest.raises(ReceiptRefused):
            verify_receipt(f"{head}.{payload}.{other.rpartition('.')[2]}", published())

    def test_signed_with_a_key_of_somebody_elses_under_the_same_id_does_not_verify(self) -> None:
        seed = base64.b64encode(bytes(32)).decode()
        forged = receipts(SigningKeys.parse(f"2026-b:{seed}")).sign(VERIFIED)
        with pytest.raises(ReceiptRefused):
            verify_receipt(forged, published())

    def test_is_not_taken_for_something_else_that_the_keys_have_signed(self) -> None:
        with pytest.raises(ReceiptRefused):
            verify_receipt(KEYS.sign(b"{}", "something-else+jwt"), published())

    @pytest.mark.parametrize(
        "text",
        ["", "a.b", "....", "a.b.c", "ä.b.c", "e30.e30.", "[" * 9999, "a" * 100_000],
        ids=["nothing", "two", "five", "three", "not ascii", "empty", "brackets", "large"],
    )
    def test_that_never_was_one_is_refused(self, text: str) -> None:
        with pytest.raises(ReceiptRefused):
            verify_receipt(text, published())

    @pytest.mark.parametrize("document", [b"", b"{}", b'{"keys": []}', b"[]"])
    def test_is_not_verified_by_what_is_no_set_of_keys(self, receipt: str, document: bytes) -> None:
        with pytest.raises(ReceiptRefused, match="keys"):
            verify_receipt(receipt, document)


class TestWhatIsPublished:
    def test_is_every_public_half_and_no_secret_one(self) -> None:
        keys = KEYS.published()["keys"]
        assert [key["kid"] for key in keys] == ["2026-b", "2026-a"]
        assert all(set(key) == {"kty", "crv", "x", "kid", "use", "alg"} for key in keys)

    def test_is_all_that_a_key_shows(self) -> None:
        assert "seeds" not in repr(KEYS)


def _with_one_character_changed(receipt: str) -> Iterator[str]:
    """Every place once, by a character that may stand there."""
    characters = string.ascii_letters + string.digits + "-_"
    for place, character in enumerate(receipt):
        other = characters[(characters.find(character) + 1) % len(characters)]
        yield f"{receipt[:place]}{other}{receipt[place + 1 :]}"


def _decoded(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def _encoded(part: bytes) -> str:
    return base64.urlsafe_b64encode(part).rstrip(b"=").decode()
