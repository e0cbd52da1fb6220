"""The files of a person's tool servers: all of them, and nothing that only looks like one."""

from __future__ import annotations

import os
from pathlib import Path
from uuid import uuid4

import pytest

from app.export import folder as reading
from app.export.folder import FolderFiles, FoundFile
from tenancy.principal import UserId

OPEN = Path("/proc/self/fd")


async def read(folder: Path) -> tuple[dict[str, tuple[str, bytes]], dict[str, str]]:
    """Each file by its name in an archive, and what was left out."""
    files = FolderFiles(UserId(uuid4()), folder)
    taken, left_out = {}, {}
    async for each in files.found():
        if isinstance(each, FoundFile):
            taken[each.name] = each.path, b"".join([p.data async for p in files.content(each)])
        else:
            left_out[each.path] = each.why
    return taken, left_out


class TestAFolder:
    async def test_is_read_to_its_end_with_all_that_is_in_it(self, tmp_path: Path) -> None:
        (tmp_path / "tickets" / "deep").mkdir(parents=True)
        (tmp_path / "tickets" / "notes.txt").write_bytes(b"canary")
        (tmp_path / "tickets" / "deep" / "empty").touch()
        large = os.urandom(600_000)
        (tmp_path / "large").write_bytes(large)
        assert await read(tmp_path) == (
            {
                "tickets/notes.txt": ("tickets/notes.txt", b"canary"),
                "tickets/deep/empty": ("tickets/deep/empty", b""),
                "large": ("large", large),
            },
            {},
        )

    async def test_that_is_not_here_is_empty(self, tmp_path: Path) -> None:
        assert await read(tmp_path / "missing") == ({}, {})

    async def test_follows_no_link(self, tmp_path: Path) -> None:
        outside, inside = tmp_path / "outside", tmp_path / "inside"
        outside.mkdir()
        inside.mkdir()
        (outside / "secret").write_text("somebody else's")
        (inside / "file").symlink_to(outside / "secret")
        (inside / "folder").symlink_to(outside)
        taken, left_out = await read(inside)
        assert taken == {}
        assert left_out == {"file": "It is a link.", "folder": "It is a link."}
        (tmp_path / "linked").symlink_to(outside)
        assert await read(tmp_path / "linked") == ({}, {})

    @pytest.mark.timeout(60)
    async def test_waits_for_nobody_who_never_writes(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe")
        assert await read(tmp_path) == ({}, {"pipe": "It is no file."})

    async def test_gives_names_that_every_system_takes(self, tmp_path: Path) -> None:
        for name in (b"con", b"a:b", b"A B", b"\xff\xfe", b"..\\x"):
            Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)).write_bytes(name)
        taken, _ = await read(tmp_path)
        assert sorted(taken, key=str.casefold) == sorted(
            ["_con", "x", "\ufffd\ufffd", *_in_any_order(taken)], key=str.casefold
        )
        assert dict(taken.values()) == {
            "con": b"con",
            "a:b": b"a:b",
            "A B": b"A B",
            "\ufffd\ufffd": b"\xff\xfe",
            "..\\x": b"..\\x",
        }

    async def test_ends_where_there_is_too_much(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(reading, "MOST_ENTRIES", 4)
        monkeypatch.setattr(reading, "DEEPEST", 2)
        (tmp_path / "one" / "two").mkdir(parents=True)
        assert await read(tmp_path) == ({}, {"one/two": "It is too deep down."})
        for number in range(5):
            (tmp_path / f"{number}").mkdir()
        taken, left_out = await read(tmp_path)
        assert taken == {}
        assert reading.TOO_MANY in left_out.values()

    async def test_ends_where_paths_are_more_than_is_to_be_remembered(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(reading, "MOST_CHARACTERS", 1000)
        inner = tmp_path / ("n" * 200)
        inner.mkdir()
        for number in range(10):
            (inner / f"{number}").symlink_to("nowhere")
        _, left_out = await read(tmp_path)
        assert [*left_out.values()].count(reading.TOO_MANY) == 1
        assert sum(map(len, left_out)) <= 1000 + 202

    async def test_leaves_nothing_open(self, tmp_path: Path) -> None:
        (tmp_path / "a" / "b").mkdir(parents=True)
        (tmp_path / "a" / "b" / "c").touch()
        before = [*OPEN.iterdir()]
        found = FolderFiles(UserId(uuid4()), tmp_path).found()
        assert isinstance(await anext(found), FoundFile)
        assert len([*OPEN.iterdir()]) > len(before)
        await found.aclose()
        assert len([*OPEN.iterdir()]) == len(before)


def _in_any_order(taken: dict[str, tuple[str, bytes]]) -> list[str]:
    """The two names that are one where capital letters make no difference."""
    return [name for name, (path, _) in taken.items() if path in ("a:b", "A B")]
