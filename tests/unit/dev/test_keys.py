"""A developer's own keys: made once, for their eyes only."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.dev.errors import DevelopmentError
from app.dev.supervisor.keys import SIGNING_KEYS, VAULT_KEYS, ensure_keys
from tenancy.named_keys import parse_named_keys

KINDS = (VAULT_KEYS, SIGNING_KEYS)


@pytest.mark.parametrize("kind", KINDS)
class TestKeys:
    def test_are_made_once_for_their_owner_only(self, tmp_path: Path, kind: str) -> None:
        path = ensure_keys(tmp_path, kind)
        assert list(parse_named_keys(path.read_text().strip())) == ["development"]
        assert path.stat().st_mode & 0o777 == 0o600
        before = path.read_text()
        assert ensure_keys(tmp_path, kind).read_text() == before

    def test_of_two_folders_are_not_the_same(self, tmp_path: Path, kind: str) -> None:
        folders = [tmp_path / "a", tmp_path / "b"]
        for folder in folders:
            folder.mkdir()
        one, other = [ensure_keys(folder, kind).read_text() for folder in folders]
        assert one != other

    def test_that_cannot_be_written_are_named(self, tmp_path: Path, kind: str) -> None:
        with pytest.raises(DevelopmentError, match=f"{kind} cannot be written"):
            ensure_keys(tmp_path / "gone", kind)


class TestKeysOfTwoKinds:
    def test_are_not_the_same(self, tmp_path: Path) -> None:
        one, other = [ensure_keys(tmp_path, kind).read_text() for kind in KINDS]
        assert one != other
