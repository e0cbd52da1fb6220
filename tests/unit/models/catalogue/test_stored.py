"""The catalogue's file is a good one at every moment, and alone in its folder."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from app.models.catalogue.stored import CatalogueFile, Stored

MOST_BYTES = 1000


def parse(raw: bytes) -> str:
    """Take what begins well."""
    if not raw.startswith(b"good"):
        raise ValueError
    return raw.decode()


@pytest.fixture
def file(tmp_path: Path) -> CatalogueFile:
    return CatalogueFile(tmp_path / "folder" / "models.json", MOST_BYTES)


def names(tmp_path: Path) -> list[str]:
    return sorted(each.name for each in (tmp_path / "folder").iterdir())


class TestTheFile:
    def test_is_not_there_at_first(self, file: CatalogueFile) -> None:
        assert file.read(parse) is None

    def test_is_replaced_by_what_is_good(self, file: CatalogueFile, tmp_path: Path) -> None:
        first = file.replace(b"good 1", parse)
        second = file.replace(b"good 2", parse)
        assert (first.value, second.value) == ("good 1", "good 2")
        assert file.read(parse) == second
        assert names(tmp_path) == ["models.json"]

    def test_is_read_by_whoever_knows_another(self, file: CatalogueFile) -> None:
        stored = file.replace(b"good 1", parse)
        assert file.read(parse, known=stored.written_at - 1) == stored
        assert file.read(parse, known=stored.written_at) is None

    def test_is_as_old_as_its_date_says_unless_that_is_to_come(self) -> None:
        now = time.time_ns()
        assert 3600 <= Stored("good", now - 3600 * 10**9).age_seconds < 7200
        assert Stored("good", now + 3600 * 10**9).age_seconds == float("inf")

    def test_stays_where_what_came_is_not(self, file: CatalogueFile, tmp_path: Path) -> None:
        file.replace(b"good 1", parse)
        with pytest.raises(ValueError):  # noqa: PT011 - the test's own
            file.replace(b"junk", parse)
        assert (tmp_path / "folder" / "models.json").read_bytes() == b"good 1"
        assert names(tmp_path) == ["models.json"]

    def test_stays_where_it_cannot_be_written(
        self, file: CatalogueFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file.replace(b"good 1", parse)

        def full(_descriptor: int) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            with pytest.raises(OSError, match="No space"):
                file.replace(b"good 2", parse)
        assert (tmp_path / "folder" / "models.json").read_bytes() == b"good 1"
        assert names(tmp_path) == ["models.json"]

    def test_that_holds_junk_is_as_good_as_none(self, file: CatalogueFile, tmp_path: Path) -> None:
        file.replace(b"good 1", parse)
        (tmp_path / "folder" / "models.json").write_bytes(b"junk")
        assert file.read(parse) is None

    def test_is_read_no_further_than_one_may_be_long(
        self, file: CatalogueFile, tmp_path: Path
    ) -> None:
        path = tmp_path / "folder" / "models.json"
        file.replace(b"good".ljust(MOST_BYTES), parse)
        assert file.read(parse) is not None
        with path.open("ab") as whoever_shares_the_folder:
            whoever_shares_the_folder.truncate(2**40)
        assert file.read(parse) is None

    def test_that_never_ends_is_as_good_as_none(self, file: CatalogueFile, tmp_path: Path) -> None:
        (tmp_path / "folder").mkdir()
        (tmp_path / "folder" / "models.json").symlink_to("/dev/zero")
        assert file.read(parse) is None

    def test_loses_what_a_killed_process_left_beside_it(
        self, file: CatalogueFile, tmp_path: Path
    ) -> None:
        file.replace(b"good 1", parse)
        left, being_written = (tmp_path / "folder" / f".catalogue-{n}" for n in (1, 2))
        for each in (left, being_written):
            each.write_bytes(b"half")
        os.utime(left, (time.time() - 7200, time.time() - 7200))
        file.replace(b"good 2", parse)
        assert names(tmp_path) == [".catalogue-2", "models.json"]
