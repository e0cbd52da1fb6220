"""Hashes of who was here: the same person has the same, and no key but its own makes it."""

from __future__ import annotations

from uuid import UUID

from app.erasure.hashing import PersonHashes, identity_hashes
from app.settings import Settings
from tenancy.principal import UserId
from tests.support.erasures import signing_keys_of
from tests.support.vaults import keys_of

ADA = "https://issuer.test\nada"
USER = UserId(UUID(int=7))


class TestAHash:
    def test_of_an_identity_is_made_under_the_first_key_and_looked_for_under_each(self) -> None:
        hashes = PersonHashes(signing_keys_of("new", "old"))
        before = PersonHashes(signing_keys_of("old"))
        assert hashes.identity_hashes(ADA) == [
            hashes.identity_hash(ADA),
            before.identity_hash(ADA),
        ]
        assert len({*hashes.identity_hashes(ADA), *hashes.identity_hashes(ADA + "n")}) == 4

    def test_of_a_user_is_made_under_the_key_that_is_named(self) -> None:
        hashes = PersonHashes(signing_keys_of("new", "old"))
        assert hashes.user_hash(USER) == hashes.user_hash(USER, "new")
        assert hashes.user_hash(USER, "old") == PersonHashes(signing_keys_of("old")).user_hash(USER)
        assert hashes.user_hash(USER, "old") != hashes.user_hash(USER)
        assert (hashes.has("old"), hashes.has("older")) == (True, False)

    def test_of_one_use_is_none_of_another(self) -> None:
        hashes = PersonHashes(signing_keys_of("k"))
        assert hashes.identity_hash(USER.bytes.decode("latin-1")) != hashes.user_hash(USER)

    def test_is_not_looked_for_where_there_are_no_keys(self) -> None:
        assert identity_hashes(Settings.model_validate({"signing_keys": None}))(ADA) == []
        some = identity_hashes(Settings.model_validate({"signing_keys": keys_of("k")}))
        assert some(ADA) == PersonHashes(signing_keys_of("k")).identity_hashes(ADA)
