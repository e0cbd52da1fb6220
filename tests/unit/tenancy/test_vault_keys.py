"""The vault's keys as an operator writes them, and the words in which wrong ones are refused."""

from __future__ import annotations

import base64

import pytest

from app.settings import SettingsError, load_settings
from tenancy.vault import MalformedKeys, WrappingKeyMissing, WrappingKeys

CANARY = b"canary that nobody may repeat!!!"
ENCODED = base64.b64encode(CANARY).decode()
OTHER = base64.b64encode(bytes(32)).decode()

WRONG = {
    "without an id": ENCODED,
    "with an empty id": f":{ENCODED}",
    "with an id of other characters": f"an id:{ENCODED}",
    "with a long id": f"{'i' * 41}:{ENCODED}",
    "that is no base64": f"k:{ENCODED[:-1]}*",
    "that is cut short": f"k:{base64.b64encode(CANARY[:-1]).decode()}",
    "that is too long": f"k:{base64.b64encode(CANARY + b'!').decode()}",
    "with the id of another": f"k:{ENCODED},k:{OTHER}",
    "that is there twice": f"k:{ENCODED},l:{ENCODED}",
    "after a comma too many": f"k:{ENCODED},",
}


class TestKeys:
    def test_the_first_wraps_and_all_open(self) -> None:
        keys = WrappingKeys.parse(f"2026-b:{ENCODED}, 2026-a:{OTHER}")
        assert (keys.newest, keys.ids) == ("2026-b", ("2026-b", "2026-a"))
        assert (keys.of("2026-b"), keys.of("2026-a")) == (CANARY, bytes(32))

    def test_one_that_is_missing_is_named(self) -> None:
        with pytest.raises(WrappingKeyMissing) as refused:
            WrappingKeys.parse(f"k:{ENCODED}").of("gone")
        assert refused.value.key_id == "gone"

    def test_are_shown_by_nothing(self) -> None:
        keys = WrappingKeys.parse(f"k:{ENCODED}")
        assert "canary" not in f"{keys!r} {keys}"


class TestAKey:
    @pytest.mark.parametrize("text", WRONG.values(), ids=WRONG)
    def test_is_refused_without_being_repeated(
        self, text: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with pytest.raises(MalformedKeys) as refused:
            WrappingKeys.parse(text)
        monkeypatch.setenv("STOA_VAULT_KEYS", text)
        with pytest.raises(SettingsError, match=r"^STOA_VAULT_KEYS: key \d of \d ") as stopped:
            load_settings()
        for said in (str(refused.value), str(stopped.value)):
            assert not any(part in said for part in (ENCODED[:12], OTHER[:12], "an id", "iii"))

    def test_that_is_empty_is_none(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("STOA_VAULT_KEYS", " ")
        assert load_settings().vault_keys is None
