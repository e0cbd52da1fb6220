"""A folder of tombstones: each is there as a whole or not at all, and says nobody's name."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from app.erasure.errors import TombstoneNotWritten, TombstoneUnusable
from app.erasure.tombstone_files import Tombstone, TombstoneFolder

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


def tombstone(days: float = 90, erasure_id: UUID | None = None) -> Tombstone:
    return Tombstone(erasure_id or uuid4(), "k1", bytes(range(32)), NOW + timedelta(days=days))


@pytest.fixture
def folder(tmp_path: Path) -> TombstoneFolder:
    return TombstoneFolder(tmp_path / "kept" / "tombstones")


class TestAFolder:
    def test_gives_back_what_was_put_in(self, folder: TombstoneFolder) -> None:
        written = [tombstone(), tombstone()]
        for each in written:
            folder.write(each)
        assert folder.read() == sorted(written, key=lambda each: str(each.erasure_id))

    def test_that_is_not_there_is_empty(self, folder: TombstoneFolder) -> None:
        assert folder.read() == []
        assert folder.drop_expired(NOW) == 0

    def test_is_its_owners_only(self, folder: TombstoneFolder) -> None:
        folder.write(tombstone())
        (file,) = folder.path.iterdir()
        assert folder.path.stat().st_mode & 0o777 == 0o700
        assert file.stat().st_mode & 0o777 == 0o600

    def test_has_one_file_per_erasure_however_often_it_is_written(
        self, folder: TombstoneFolder
    ) -> None:
        same = uuid4()
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(lambda _: folder.write(tombstone(erasure_id=same)), range(40)))
        assert [path.name for path in folder.path.iterdir()] == [f"{same}.json"]
        assert len(folder.read()) == 1

    def test_leaves_other_peoples_files_alone(self, folder: TombstoneFolder) -> None:
        folder.write(tombstone())
        (folder.path / "README.txt").write_text("kept by the operator")
        (folder.path / f".{uuid4()}.ab.partial").write_text("{")
        assert len(folder.read()) == 1

    def test_that_cannot_be_written_says_so(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("no folder")
        with pytest.raises(TombstoneNotWritten, match="STOA_TOMBSTONE_FOLDER cannot be written"):
            TombstoneFolder(tmp_path / "file").write(tombstone())

    def test_that_cannot_be_read_says_so(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("no folder")
        with pytest.raises(TombstoneUnusable, match="cannot be read"):
            TombstoneFolder(tmp_path / "file").read()


class TestAFile:
    @pytest.mark.parametrize(
        "content",
        [
            "",
            "{",
            "[]",
            "{}",
            "[" * 4000,
            json.dumps({"version": 2}),
        ],
        ids=["empty", "cut short", "a list", "nothing", "brackets", "of a later version"],
    )
    def test_that_is_no_tombstone_stops_whoever_reads_on(
        self, folder: TombstoneFolder, content: str
    ) -> None:
        folder.write(tombstone())
        broken = folder.path / f"{uuid4()}.json"
        broken.write_text(content)
        with pytest.raises(TombstoneUnusable, match=str(broken)):
            folder.read()

    @pytest.mark.parametrize(
        "change",
        [
            {"erasure_id": str(uuid4())},
            {"version": 2},
            {"user_hash": "no hash"},
            {"expires_at": "2027-01-01T00:00:00"},
            {"expires_at": 7},
            {"erasure_id": 7},
        ],
        ids=["another's", "of a later version", "no hash", "without a zone", "no time", "a number"],
    )
    def test_that_was_changed_stops_whoever_reads_on(
        self, folder: TombstoneFolder, change: dict[str, object]
    ) -> None:
        folder.write(tombstone())
        (file,) = folder.path.iterdir()
        file.write_text(json.dumps({**json.loads(file.read_text()), **change}))
        with pytest.raises(TombstoneUnusable):
            folder.read()

    @pytest.mark.timeout(60)
    @pytest.mark.parametrize("kind", ["pipe", "folder", "device", "link to nothing that ends"])
    def test_that_is_no_file_stops_whoever_reads_on_and_is_not_waited_for(
        self, folder: TombstoneFolder, kind: str
    ) -> None:
        folder.write(tombstone())
        broken = folder.path / f"{uuid4()}.json"
        if kind == "pipe":
            os.mkfifo(broken)
        elif kind == "folder":
            broken.mkdir()
        else:
            broken.symlink_to("/dev/null" if kind == "device" else "/dev/zero")
        with pytest.raises(TombstoneUnusable, match=str(broken)):
            folder.read()


class TestATimeThatIsOver:
    def test_takes_the_file_away_and_no_other(self, folder: TombstoneFolder) -> None:
        over, now, later = tombstone(-1), tombstone(0), tombstone(0.01)
        for each in (over, now, later):
            folder.write(each)
        assert folder.drop_expired(NOW) == 2
        assert folder.read() == [later]

    def test_takes_away_what_a_writer_left_that_died(self, folder: TombstoneFolder) -> None:
        folder.write(tombstone())
        old, new = (folder.path / f".{uuid4()}.{name}.partial" for name in ("old", "new"))
        for path, minutes in ((old, 61), (new, 59)):
            path.write_text("{")
            at = (NOW - timedelta(minutes=minutes)).timestamp()
            os.utime(path, (at, at))
        assert folder.drop_expired(NOW) == 0
        assert (old.exists(), new.exists()) == (False, True)
