"""A person's folder goes whole, whatever is in it, and nobody else's does."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest

from app.erasure import emptying, folders
from app.erasure.folders import FoldersOfAnother, delete_folder, delete_strangers
from app.tools.stdio.folders import make_folder
from tenancy.principal import UserId

OURS = "a database's id"


def somebody() -> UserId:
    return UserId(uuid4())


def kept(root: Path, owner: UserId | None) -> Path:
    """A folder in which a server of theirs has kept something."""
    folder = make_folder(root, owner, "notes")
    (folder / "notes.txt").write_text("what was said")
    return folder.parent


async def these(*users: UserId) -> AsyncIterator[UserId]:
    for each in users:
        yield each


class TestThePersonsFolder:
    async def test_is_deleted_and_no_other(self, tmp_path: Path) -> None:
        leaver, stayer = somebody(), somebody()
        there = [kept(tmp_path, each) for each in (leaver, stayer, None)]
        assert await delete_folder(tmp_path, leaver)
        assert [each.exists() for each in there] == [False, True, True]

    async def test_need_not_be_there(self, tmp_path: Path) -> None:
        assert not await delete_folder(tmp_path / "nowhere", somebody())

    async def test_is_deleted_by_one_of_those_who_are_at_it_at_once(self, tmp_path: Path) -> None:
        """As workers of one host are."""
        leaver = somebody()
        folder = kept(tmp_path, leaver)
        for number in range(300):
            (folder / f"{number}").mkdir()
            (folder / f"{number}" / "file").touch()
        deleted = await asyncio.gather(*(delete_folder(tmp_path, leaver) for _ in range(4)))
        assert sorted(deleted) == [False, False, False, True]
        assert not folder.exists()

    async def test_is_deleted_where_its_server_has_shut_parts_of_it(self, tmp_path: Path) -> None:
        leaver = somebody()
        inner = kept(tmp_path, leaver) / "notes" / "shut"
        inner.mkdir()
        (inner / "file").write_text("hidden")
        inner.chmod(0)
        assert await delete_folder(tmp_path, leaver)
        assert not inner.parent.parent.exists()

    async def test_is_deleted_without_what_its_links_lead_to(self, tmp_path: Path) -> None:
        leaver, elsewhere = somebody(), tmp_path / "elsewhere"
        elsewhere.mkdir(mode=0o750)
        (elsewhere / "file").write_text("somebody else's")
        folder = kept(tmp_path / "mcp", leaver)
        (folder / "notes" / "link").symlink_to(elsewhere)
        assert await delete_folder(tmp_path / "mcp", leaver)
        assert (elsewhere / "file").exists()
        assert elsewhere.stat().st_mode & 0o777 == 0o750

    @pytest.mark.timeout(60)
    async def test_is_deleted_where_it_is_deeper_than_any_path(self, tmp_path: Path) -> None:
        leaver = somebody()
        folder = kept(tmp_path, leaver)
        within = os.open(folder, os.O_RDONLY)
        for _ in range(1200):
            os.mkdir("deeper", dir_fd=within)
            inner = os.open("deeper", os.O_RDONLY, dir_fd=within)
            os.close(within)
            within = inner
        os.close(within)
        assert await delete_folder(tmp_path, leaver)
        assert not folder.exists()

    async def test_is_not_waited_for_while_a_program_writes_into_it(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        leaver = somebody()
        folder = kept(tmp_path, leaver)
        monkeypatch.setattr(emptying, "PATIENCE_SECONDS", 0.0)
        with pytest.raises(TimeoutError):
            await delete_folder(tmp_path, leaver)
        assert folder.exists()

    async def test_goes_where_it_is_a_link_itself(self, tmp_path: Path) -> None:
        leaver, elsewhere = somebody(), tmp_path / "elsewhere"
        elsewhere.mkdir()
        kept(tmp_path / "mcp", leaver).rename(tmp_path / "moved")
        folder = make_folder(tmp_path / "mcp", leaver, "notes").parent
        (folder / "notes").rmdir()
        folder.rmdir()
        folder.symlink_to(elsewhere)
        assert await delete_folder(tmp_path / "mcp", leaver)
        assert elsewhere.exists()
        assert not folder.is_symlink()


@pytest.fixture
async def ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folders of a service, which is there already; and all of them are soon old."""
    assert await delete_strangers(tmp_path, OURS, these()) == 0
    monkeypatch.setattr(folders, "YOUNG_SECONDS", -1.0)
    return tmp_path


class TestFoldersOfNobody:
    async def test_are_deleted_and_those_of_users_and_of_everybody_are_not(
        self, ours: Path
    ) -> None:
        gone, user = somebody(), somebody()
        there = [kept(ours, each) for each in (gone, user, None)]
        assert await delete_strangers(ours, OURS, these(user, somebody())) == 1
        assert [each.exists() for each in there] == [False, True, True]

    async def test_are_deleted_whatever_a_program_says_of_their_age(self, ours: Path) -> None:
        late = kept(ours, somebody())
        os.utime(late, (2**33, 2**33))
        assert await delete_strangers(ours, OURS, these()) == 1

    async def test_are_deleted_though_one_cannot_be(
        self, ours: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        one, other = sorted(kept(ours, somebody()) for _ in range(2))

        def refused(folder: Path) -> bool:
            if folder == one:
                raise PermissionError
            return emptying.delete_tree(folder)

        monkeypatch.setattr(folders, "delete_tree", refused)
        with pytest.raises(PermissionError):
            await delete_strangers(ours, OURS, these())
        assert [one.exists(), other.exists()] == [True, False]

    async def test_are_left_while_they_are_young(
        self, ours: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Somebody may have come after the people were looked up."""
        monkeypatch.undo()
        young = kept(ours, somebody())
        assert await delete_strangers(ours, OURS, these()) == 0
        assert young.exists()

    async def test_are_left_where_another_database_knows_whose_they_are(self, ours: Path) -> None:
        theirs = kept(ours, somebody())
        with pytest.raises(FoldersOfAnother):
            await delete_strangers(ours, "another", these())
        assert theirs.exists()

    async def test_are_left_where_they_were_there_before_it_was_said_whose_they_are(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(folders, "YOUNG_SECONDS", -1.0)
        before = kept(tmp_path, somebody())
        os.utime(before, (0, 0))
        assert await delete_strangers(tmp_path, OURS, these()) == 0
        assert before.exists()

    @pytest.mark.parametrize("name", ["shared", "README", "not-a-persons", "A" * 32])
    async def test_are_not_what_the_service_has_not_made(self, ours: Path, name: str) -> None:
        other = ours / name
        other.mkdir()
        assert await delete_strangers(ours, OURS, these()) == 0
        assert other.exists()
