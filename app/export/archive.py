"""A ZIP archive that is sent while it is made. Nothing of it is kept but what stands in its end.

By the standard library, which writes to what cannot be sought in: sizes and checksums follow each
member, and the directory of all is the end of the archive. One that was cut off has none, so that
nothing takes it for a whole one.
"""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any, cast

from app.runs.large_work import in_turn
from app.runs.sizes import LARGE_BYTES

if TYPE_CHECKING:
    from datetime import datetime

    from _typeshed import ReadableBuffer

    from tenancy.principal import UserId

LEVEL = 4
"""Of compression. 6, the usual one, made 2 % less of events and took half as long again."""
_OWNERS_ALONE = 0o100600 << 16


@dataclass(frozen=True, slots=True)
class Content:
    """A part of a member: its bytes, and how many rows those are."""

    data: bytes
    rows: int = 0


@dataclass(frozen=True, slots=True)
class Member:
    """A file of the archive, and where its content comes from."""

    name: str
    content: AsyncGenerator[Content, None]
    about: dict[str, Any] = field(default_factory=dict)
    """What else the manifest says of it."""
    has_rows: bool = True
    most_bytes: int | None = None
    """None: nobody knows before it has ended."""


@dataclass(frozen=True, slots=True)
class Written:
    """What went into the archive as one member."""

    name: str
    rows: int | None
    """None: it is not made of any."""
    bytes: int
    sha256: str
    about: dict[str, Any]


class Archive:
    """Members become pieces of a ZIP archive, one after the other.

    ``made_at`` is the time of every member.
    """

    def __init__(self, user_id: UserId, made_at: datetime) -> None:
        self._user_id = user_id
        self._made_at = made_at.timetuple()[:6]
        self._sink = _Sink()
        self._zip = zipfile.ZipFile(
            cast("IO[bytes]", self._sink), "w", zipfile.ZIP_DEFLATED, compresslevel=LEVEL
        )
        self.written: list[Written] = []

    async def write(self, member: Member) -> AsyncGenerator[bytes, None]:
        """Put a member in, and give what the archive grows by as it does.

        Once it is in, ``written`` ends with what it was.
        """
        info = zipfile.ZipInfo(member.name, self._made_at)
        info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, _OWNERS_ALONE
        rows, size, digest = 0, 0, hashlib.sha256()
        info.file_size = member.most_bytes or 0
        # 4 GiB and more need the long form from the start, which not every program reads.
        with self._zip.open(info, "w", force_zip64=member.most_bytes is None) as file:
            async with aclosing(member.content) as content:
                async for part in content:
                    await self._work(file, digest, part.data)
                    rows, size = rows + part.rows, size + len(part.data)
                    del part
                    if self._sink.size >= LARGE_BYTES:
                        yield self._sink.take()
        counted = rows if member.has_rows else None
        self.written.append(Written(member.name, counted, size, digest.hexdigest(), member.about))

    def end(self) -> bytes:
        """The rest: without it the archive is none."""
        self._zip.close()
        return self._sink.take()

    async def _work(self, file: IO[bytes], digest: hashlib._Hash, data: bytes) -> None:
        """Large pieces are worked on in a thread, so that everybody else is served between."""

        def put() -> None:
            digest.update(data)
            file.write(data)

        if len(data) >= LARGE_BYTES:
            await in_turn(self._user_id, put)
        else:
            put()


class _Sink:
    """Keeps what is written until it is taken. Cannot be sought in, and is never closed."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self.size = 0

    def write(self, data: ReadableBuffer, /) -> int:
        part = bytes(data)
        self._parts.append(part)
        self.size += len(part)
        return len(part)

    def flush(self) -> None:
        """There is nothing behind it."""

    def take(self) -> bytes:
        taken, self._parts, self.size = b"".join(self._parts), [], 0
        return taken
