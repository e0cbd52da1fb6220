"""What of a believed assertion is kept, and in which form."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.identity.issuer import Issuer, bearer

if TYPE_CHECKING:
    from tenancy.identity import IdentityVerifier


class TestRoles:
    @pytest.mark.parametrize("groups", ["stoa-admins", ["stoa-admins"], ["a", "stoa-admins", 7]])
    async def test_admin_is_who_the_claim_names(
        self, verifier: IdentityVerifier, issuer: Issuer, groups: object
    ) -> None:
        identity = await verifier.verify(bearer(issuer.token(groups=groups)))
        assert identity.roles == {"admin"}

    @pytest.mark.parametrize(
        "groups",
        [
            ...,
            None,
            "",
            [],
            "not-stoa-admins",
            "STOA-ADMINS",
            {"stoa-admins": True},
            1,
            [["stoa-admins"]],
            "stoa-admins,others",
            True,
        ],
    )
    async def test_nobody_else_is(
        self, verifier: IdentityVerifier, issuer: Issuer, groups: object
    ) -> None:
        identity = await verifier.verify(bearer(issuer.token(groups=groups)))
        assert identity.roles == frozenset()


class TestNames:
    @pytest.mark.parametrize(
        ("said", "kept"),
        [
            ("  Ada \n Lovelace\t", "Ada Lovelace"),
            ("Ada\x00\ud800Lovelace", "Ada Lovelace"),
            ("\u202eecalevoL adA", "ecalevoL adA"),
            ("A" * 5000, "A" * 200),
            ("Ame\u0301lie", "Amélie"),
            ("👩\u200d💻", "👩\u200d💻"),
            ("", None),
            (" \u200e\x00 ", None),
            (7, None),
            (["Ada"], None),
            (..., None),
        ],
    )
    async def test_are_made_fit_to_be_shown(
        self, verifier: IdentityVerifier, issuer: Issuer, said: object, kept: str | None
    ) -> None:
        identity = await verifier.verify(bearer(issuer.token(name=said)))
        assert identity.name == kept

    async def test_fall_back_to_the_user_name(
        self, verifier: IdentityVerifier, issuer: Issuer
    ) -> None:
        token = issuer.token(name=None, preferred_username="ada")
        assert (await verifier.verify(bearer(token))).name == "ada"


class TestMailAddresses:
    @pytest.mark.parametrize(
        "said", ["", "ada", "ada @example.com", "a" * 300 + "@example.com", "a\x00@b", 7, None, ...]
    )
    async def test_are_left_out_when_they_are_none(
        self, verifier: IdentityVerifier, issuer: Issuer, said: object
    ) -> None:
        assert (await verifier.verify(bearer(issuer.token(email=said)))).email is None


class TestSubjects:
    @pytest.mark.parametrize("subject", [" ada", "ada", "Ada", "Ame\u0301lie", "%", "u_1"])
    async def test_are_kept_exactly_as_they_are(
        self, verifier: IdentityVerifier, issuer: Issuer, subject: str
    ) -> None:
        assert (await verifier.verify(bearer(issuer.token(sub=subject)))).subject == subject
