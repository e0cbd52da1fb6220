"""Everything about a person as one archive.

A table at a time and a conversation at a time; no transaction is open while anything is sent. What
is written meanwhile may be in it or not. The archive's last member says what it holds, so that one
that was cut off is not taken for a whole one, even if a program mends it.
"""

from __future__ import annotations

from contextlib import aclosing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import structlog

from app.export.archive import Archive, Content, Member
from app.export.folder import FolderFiles, FoundFile, LeftOut
from app.export.headings import Heading, next_headings
from app.export.manifest import NAME, manifest
from app.export.names import safe_name
from app.tools.stdio.folders import owner_folder
from tenancy.database.retry import while_database_is_away
from tenancy.errors import NotFound, ServiceUnavailable, StoaError, UserUnavailable
from tenancy.export.rows import OwnRows

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from app.export.conversation import Conversations, Format
    from tenancy.database.tenant import TenantDatabase
    from tenancy.principal import Owner

log = structlog.get_logger(__name__)

HEADINGS_AT_ONCE = 100
UNREADABLE = "What it holds could not be read as a conversation; its rows are in `data/`."


class ExportCut(ServiceUnavailable):
    """The person left while everything of theirs was being taken along."""

    code = "export_cut"
    message = "The export was cut short: the account is being erased."


class Everything:
    """Makes archives. One at a time is enough for anybody; whoever asks for them sees to that."""

    def __init__(
        self, database: TenantDatabase, conversations: Conversations, folders: Path
    ) -> None:
        self._database = database
        self._conversations = conversations
        self._folders = folders
        self._rows = OwnRows(database)

    async def may_begin(self, owner: Owner) -> None:
        """Refuse whom `begin` would refuse, and begin nothing."""
        await self._rows.may_begin(owner)

    async def begin(self, owner: Owner) -> None:
        """Put it on record. What follows may be cut off; that it was begun is what counts.

        Raises:
            UserUnavailable: the person is being erased.
            TooManyExports: they have begun ten in an hour.
        """
        await self._rows.begin(owner)

    async def archive(self, owner: Owner) -> AsyncGenerator[bytes, None]:
        """The archive, in pieces.

        Raises:
            ExportCut: the person is being erased. Nothing more is to be sent, not even an end.
            DatabaseUnavailable: Postgres cannot be reached, alike.
        """
        try:
            async with aclosing(self._pieces(owner)) as pieces:
                async for piece in pieces:
                    yield piece
        except UserUnavailable as error:
            raise ExportCut from error

    async def _pieces(self, owner: Owner) -> AsyncGenerator[bytes, None]:
        made_at = datetime.now(UTC)
        archive, left_out = Archive(owner.user_id, made_at), list[LeftOut]()
        async with aclosing(self._members(owner, left_out)) as members:
            async for member in members:
                async with aclosing(archive.write(member)) as pieces:
                    async for piece in pieces:
                        yield piece
        await self._rows.tables(owner)  # not for somebody who left meanwhile
        has_files = self._folder(owner).is_dir()
        said = manifest(owner.user_id, made_at, archive.written, left_out, has_files=has_files)
        last = _given(NAME, [Content(said)], has_rows=False)
        async with aclosing(archive.write(last)) as pieces:
            async for piece in pieces:
                yield piece
        yield archive.end()

    async def _members(self, owner: Owner, left_out: list[LeftOut]) -> AsyncGenerator[Member, None]:
        for table in await self._rows.tables(owner):
            yield Member(f"data/{table}.ndjson", self._table(owner, table), {"table": table})
        async with aclosing(self._conversation_members(owner, left_out)) as conversations:
            async for member in conversations:
                yield member
        files = FolderFiles(owner.user_id, self._folder(owner))
        async with aclosing(files.found()) as found:
            async for each in found:
                if isinstance(each, FoundFile):
                    yield Member(
                        f"files/{each.name}",
                        files.content(each),
                        {"path": each.path},
                        has_rows=False,
                        most_bytes=each.size,
                    )
                else:
                    left_out.append(LeftOut(f"files/{each.path}", each.why))

    async def _table(self, owner: Owner, table: str) -> AsyncGenerator[Content, None]:
        async with aclosing(self._rows.pieces(owner, table)) as pieces:
            async for piece in pieces:
                yield Content(piece.lines, piece.rows)

    async def _conversation_members(
        self, owner: Owner, left_out: list[LeftOut]
    ) -> AsyncGenerator[Member, None]:
        number, last = 0, None
        while headings := await while_database_is_away(self._headings, owner, last):
            for last in headings:
                number += 1
                name = f"conversations/{number:05}-{safe_name(last.title or '')}"
                about = {"thread_id": str(last.thread_id)}
                for form, pieces in (await self._files(owner, last, left_out)).items():
                    has_rows = form == "jsonl"
                    yield _given(f"{name}.{form}", pieces, about, has_rows=has_rows)

    async def _headings(self, owner: Owner, last: Heading | None) -> list[Heading]:
        async with self._database.reading(owner) as tx:
            return await next_headings(tx, last, HEADINGS_AT_ONCE)

    async def _files(
        self, owner: Owner, heading: Heading, left_out: list[LeftOut]
    ) -> dict[Format, list[Content]]:
        """A conversation's; none where it was deleted meanwhile, or no graph here can read it."""
        try:
            return await while_database_is_away(self._conversations.files, owner, heading)
        except NotFound:
            return {}
        except StoaError:
            raise
        except Exception as error:  # noqa: BLE001 - one must not keep all the rest
            log.warning("a conversation could not be exported", error=type(error).__name__)
            left_out.append(LeftOut(f"conversations/{heading.thread_id}", UNREADABLE))
            return {}

    def _folder(self, owner: Owner) -> Path:
        return owner_folder(self._folders, owner.user_id)


def _given(
    name: str, pieces: list[Content], about: dict[str, Any] | None = None, *, has_rows: bool
) -> Member:
    """A file whose pieces are there already, each for as long as it is needed."""

    async def content() -> AsyncGenerator[Content, None]:
        while pieces:
            yield pieces.pop(0)

    return Member(name, content(), about or {}, has_rows, sum(len(each.data) for each in pieces))
