"""An archive that is sent while it is made: whole, or nothing that anybody takes for one."""

from __future__ import annotations

import hashlib
import io
import os
import zipfile
from asyncio import create_subprocess_exec
from asyncio.subprocess import PIPE
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from pathlib import Path
from shutil import which
from uuid import uuid4

import pytest

from app.export.archive import Archive, Content, Member
from tenancy.principal import UserId

MADE_AT = datetime(2026, 3, 1, 10, 15, 30, tzinfo=UTC)
NOISE = os.urandom(300_000)
"""Which nothing makes smaller, so that it is given out before its member ends."""


async def content(*parts: bytes) -> AsyncGenerator[Content, None]:
    for part in parts:
        yield Content(part, 1)


async def failing() -> AsyncGenerator[Content, None]:
    yield Content(NOISE)
    raise ConnectionError


async def pieces_of(archive: Archive, *members: Member) -> AsyncGenerator[bytes, None]:
    for member in members:
        async with aclosing(archive.write(member)) as pieces:
            async for piece in pieces:
                yield piece


async def written(archive: Archive, *members: Member) -> bytes:
    whole = [piece async for piece in pieces_of(archive, *members)]
    return b"".join([*whole, archive.end()])


def names_in(archive: bytes) -> Sequence[str]:
    return zipfile.ZipFile(io.BytesIO(archive)).namelist()


@pytest.fixture
def archive() -> Archive:
    return Archive(UserId(uuid4()), MADE_AT)


class TestAnArchive:
    async def test_holds_what_was_put_in_and_says_what_that_was(self, archive: Archive) -> None:
        parts = [b"one\n", NOISE, b"", b"three\n"]
        whole = await written(
            archive,
            Member("data/a.ndjson", content(*parts), {"table": "a"}),
            Member("files/größe.txt", content(b"x"), has_rows=False),
        )
        opened = zipfile.ZipFile(io.BytesIO(whole))
        assert opened.testzip() is None
        assert opened.read("data/a.ndjson") == b"".join(parts)
        assert opened.getinfo("files/größe.txt").date_time == (2026, 3, 1, 10, 15, 30)
        first, second = archive.written
        assert (first.name, first.rows, first.about) == ("data/a.ndjson", 4, {"table": "a"})
        assert first.bytes == sum(map(len, parts))
        assert first.sha256 == hashlib.sha256(b"".join(parts)).hexdigest()
        assert (second.rows, second.bytes) == (None, 1)

    @pytest.mark.skipif(which("unzip") is None, reason="there is no other program")
    async def test_is_read_by_another_program(self, archive: Archive, tmp_path: Path) -> None:
        whole = await written(archive, Member("data/a.ndjson", content(NOISE)))
        (tmp_path / "a.zip").write_bytes(whole)
        reading = await create_subprocess_exec(
            *("unzip", "-p", tmp_path / "a.zip"), stdout=PIPE, stderr=PIPE
        )
        read, complaints = await reading.communicate()
        assert (reading.returncode, complaints, read) == (0, b"", NOISE)

    async def test_has_the_long_form_only_where_it_may_be_needed(self, archive: Archive) -> None:
        known = Member("known", content(b"x"), most_bytes=10)
        pieces = [piece async for piece in pieces_of(archive, known)]
        assert b"\xff\xff\xff\xff" not in b"".join([*pieces, archive.end()])

    async def test_is_given_out_while_it_is_made(self, archive: Archive) -> None:
        waiting = pieces_of(archive, Member("a", content(NOISE)), Member("b", failing()))
        async with aclosing(waiting) as pieces:
            assert len(await anext(pieces)) > len(NOISE) * 0.9

    @pytest.mark.parametrize("read", [1, 2])
    async def test_that_was_broken_off_is_none(self, archive: Archive, read: int) -> None:
        pieces = pieces_of(archive, Member("a", content(NOISE)), Member("b", failing()))
        sent = b"".join([await anext(pieces) for _ in range(read)])
        if read == 2:
            with pytest.raises(ConnectionError):
                await anext(pieces)
        await pieces.aclose()
        assert len(sent) > len(NOISE) * 0.9 * read
        with pytest.raises(zipfile.BadZipFile):
            names_in(sent)
