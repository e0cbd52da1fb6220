"""An envelope opens at its own place, under its own key, unchanged; and otherwise not at all."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest

from tenancy.principal import UserId
from tenancy.vault import VaultUnreadable
from tenancy.vault.envelope import (
    Place,
    new_data_key,
    seal,
    unseal,
    unwrap,
    version_of,
    wrap,
)

KEY = new_data_key()
PLACE = Place(UserId(uuid4()), "connection", "row/key")
SECRET = b"a secret"
SEALED = seal(KEY, 7, PLACE, SECRET)
ELSEWHERE = {
    "another user's": replace(PLACE, user_id=UserId(uuid4())),
    "another purpose's": replace(PLACE, purpose="authorization"),
    "another row's": replace(PLACE, field="other/key"),
    "cut at another point": replace(PLACE, purpose="connectionrow", field="/key"),
}


class TestASealedValue:
    def test_opens_at_its_place(self) -> None:
        assert unseal(KEY, PLACE, SEALED) == SECRET
        assert version_of(SEALED) == 7

    def test_says_nothing_of_what_is_in_it(self) -> None:
        assert SECRET not in SEALED
        assert seal(KEY, 7, PLACE, SECRET) != SEALED

    @pytest.mark.parametrize("place", ELSEWHERE.values(), ids=ELSEWHERE)
    def test_does_not_open_at_another(self, place: Place) -> None:
        with pytest.raises(VaultUnreadable):
            unseal(KEY, place, SEALED)

    def test_does_not_open_under_another_key(self) -> None:
        with pytest.raises(VaultUnreadable):
            unseal(new_data_key(), PLACE, SEALED)

    def test_does_not_open_with_any_bit_changed(self) -> None:
        for bit in range(len(SEALED) * 8):
            changed = bytearray(SEALED)
            changed[bit // 8] ^= 1 << bit % 8
            with pytest.raises(VaultUnreadable):
                unseal(KEY, PLACE, bytes(changed))

    def test_does_not_open_when_cut_short(self) -> None:
        for length in range(len(SEALED)):
            with pytest.raises(VaultUnreadable):
                unseal(KEY, PLACE, SEALED[:length])

    @pytest.mark.parametrize(
        "text", [b"", b"\1\0\0\0", b"\2" + SEALED[1:]], ids=["empty", "short", "newer"]
    )
    def test_of_another_format_has_no_version(self, text: bytes) -> None:
        with pytest.raises(VaultUnreadable):
            version_of(text)


class TestAWrappedKey:
    WRAPPING = new_data_key()
    FACTS: dict[str, Any] = {"key_id": "a", "user_id": PLACE.user_id, "version": 1}  # noqa: RUF012

    def wrapped(self) -> bytes:
        return wrap(self.WRAPPING, **self.FACTS, key=KEY)

    def test_opens_for_its_user_and_version_under_its_key(self) -> None:
        assert unwrap(self.WRAPPING, **self.FACTS, wrapped=self.wrapped()) == KEY
        assert KEY not in self.wrapped()

    @pytest.mark.parametrize(
        "other",
        [{"key_id": "b"}, {"user_id": UserId(uuid4())}, {"version": 2}],
        ids=["key", "user", "version"],
    )
    def test_does_not_open_as_another(self, other: dict[str, Any]) -> None:
        with pytest.raises(VaultUnreadable):
            unwrap(self.WRAPPING, **{**self.FACTS, **other}, wrapped=self.wrapped())

    def test_does_not_pass_for_a_value(self) -> None:
        with pytest.raises(VaultUnreadable):
            unseal(self.WRAPPING, PLACE, self.wrapped())
