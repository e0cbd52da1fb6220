"""The data folder: ours, locked, and emptied only where it is ours."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.dev.errors import DevelopmentError
from app.dev.supervisor.folder import open_folder


class TestOpening:
    def test_makes_the_folder_closed_to_others(self, tmp_path: Path) -> None:
        with open_folder(tmp_path / "a" / "data") as folder:
            assert folder.path.stat().st_mode & 0o066 == 0

    def test_works_again_on_the_same_folder(self, tmp_path: Path) -> None:
        for _ in range(2):
            with open_folder(tmp_path / "data") as folder:
                (folder.path / "anything").write_text("x")

    def test_goes_on_where_a_start_was_cut_off(self, tmp_path: Path) -> None:
        with open_folder(tmp_path / "data") as folder:
            (folder.path / "stoa-data").write_text("")
        with open_folder(tmp_path / "data") as folder:
            assert (folder.path / "stoa-data").read_text() == "1\n"

    def test_is_refused_while_another_has_it(self, tmp_path: Path) -> None:
        with (
            open_folder(tmp_path / "data"),
            pytest.raises(DevelopmentError, match="runs already"),
            open_folder(tmp_path / "data"),
        ):
            pass

    def test_is_refused_for_another_format(self, tmp_path: Path) -> None:
        with open_folder(tmp_path / "data") as folder:
            (folder.path / "stoa-data").write_text("99\n")
        with (
            pytest.raises(DevelopmentError, match="another version"),
            open_folder(tmp_path / "data"),
        ):
            pass


class TestReset:
    def test_deletes_what_people_made_and_keeps_the_model(self, tmp_path: Path) -> None:
        with open_folder(tmp_path / "data") as folder:
            for name in ("postgres", "postgres.new", "model"):
                (folder.path / name).mkdir()
            for name in ("credentials.json", "gateway-key.json"):
                (folder.path / name).write_text("{}")
            folder.reset()
            left = {entry.name for entry in folder.path.iterdir()}
        assert left == {"lock", "model", "stoa-data"}
