"""A developer's own vault keys: made once, for their eyes only."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.dev.errors import DevelopmentError
from app.dev.supervisor.vault import ensure_vault_keys
from tenancy.vault import WrappingKeys


class TestVaultKeys:
    def test_are_made_once_for_their_owner_only(self, tmp_path: Path) -> None:
        path = ensure_vault_keys(tmp_path)
        assert WrappingKeys.parse(path.read_text().strip()).newest == "development"
        assert path.stat().st_mode & 0o777 == 0o600
        before = path.read_text()
        assert ensure_vault_keys(tmp_path).read_text() == before

    def test_of_two_folders_are_not_the_same(self, tmp_path: Path) -> None:
        folders = [tmp_path / "a", tmp_path / "b"]
        for folder in folders:
            folder.mkdir()
        one, other = [ensure_vault_keys(folder).read_text() for folder in folders]
        assert one != other

    def test_that_cannot_be_written_are_named(self, tmp_path: Path) -> None:
        with pytest.raises(DevelopmentError, match="vault-keys cannot be written"):
            ensure_vault_keys(tmp_path / "gone")
