"""Taking along what is one's own: everything as one archive, a conversation as a file."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import ExitStack
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from app.api.answers import json_answer
from app.api.dependencies import IN_TURN, LimitsDep, PrincipalDep, ServicesDep, open_stream
from app.api.downloads import attachment, download
from app.api.export_schemas import ArchiveQuery, DataView, ExportQuery
from app.api.openapi import problems
from app.export.headings import find_heading
from app.export.kept import kept_of
from app.export.names import safe_name
from app.sharing import retention_times

if TYPE_CHECKING:
    from app.export.conversation import Format
    from app.export.headings import Heading

router = APIRouter(tags=["leaving"], dependencies=[IN_TURN])

_MEDIA_TYPES: dict[Format, str] = {
    "md": "text/markdown; charset=utf-8",
    "jsonl": "application/x-ndjson",
}
_ARCHIVE: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "A ZIP archive: `data/<table>.ndjson` with every row, one a line;"
        " `conversations/` as Markdown and as one message a line; `files/` of one's tool servers,"
        " where this host has them; at last `manifest.json`: each member's size, rows and SHA-256,"
        " and what is not in. One that was cut off cannot be opened.",
        "content": {"application/zip": {"schema": {"type": "string", "format": "binary"}}},
    },
    204: {"description": "It may begin, and would have without `dry_run`."},
}
_CONVERSATION: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The conversation: for people (`md`), or one message a line (`jsonl`).",
        "content": {
            media_type.partition(";")[0]: {"schema": {"type": "string"}}
            for media_type in _MEDIA_TYPES.values()
        },
    }
}


async def _only_export(
    principal: PrincipalDep,
    services: ServicesDep,
    limits: LimitsDep,
    query: Annotated[ArchiveQuery, Query()],
) -> AsyncIterator[None]:
    """One of the person's streams, and the one export that they may have, held until it was sent.

    Who only asks holds nothing for longer than the question: the export follows at once.
    """
    with ExitStack() as held:
        held.enter_context(open_stream(services, principal, limits))
        held.enter_context(services.exports.held(principal.user_id))
        if query.dry_run:
            held.close()
        yield


_OnlyExportDep = Annotated[None, Depends(_only_export, scope="request")]


@router.get(
    "/me/export",
    operation_id="export_everything",
    response_class=Response,
    responses={**_ARCHIVE, **problems(409)},
)
async def export_everything(
    principal: PrincipalDep,
    services: ServicesDep,
    _only: _OnlyExportDep,
    query: Annotated[ArchiveQuery, Query()],
) -> Response:
    """Take along everything that is kept about oneself, as one archive.

    A suspended account may, too. It is one of one's streams, and one at a time.
    """
    if query.dry_run:
        await services.everything.may_begin(principal)
        return Response(status_code=204)
    await services.everything.begin(principal)
    return download(
        services,
        principal,
        services.everything.archive(principal),
        name=f"stoa-{datetime.now(UTC):%Y-%m-%d}.zip",
        media_type="application/zip",
    )


@router.get(
    "/threads/{thread_id}/export",
    operation_id="export_thread",
    response_class=Response,
    responses={**_CONVERSATION, **problems(404)},
)
async def export_thread(
    thread_id: UUID,
    principal: PrincipalDep,
    services: ServicesDep,
    query: Annotated[ExportQuery, Query()],
) -> Response:
    """Take along one conversation, as Markdown or as one message a line."""
    async with services.database.reading(principal) as tx:
        heading = await find_heading(tx, thread_id)
    files = await services.conversations.files(principal, heading, (query.format,))
    return Response(
        b"".join(piece.data for piece in files[query.format]),
        media_type=_MEDIA_TYPES[query.format],
        headers={"Content-Disposition": attachment(_file_name(heading, query.format))},
    )


@router.get("/me/data", operation_id="get_own_data", response_model=DataView, responses=problems())
async def get_own_data(principal: PrincipalDep, services: ServicesDep) -> Response:
    """Say what is kept of oneself, how much of each kind, and for how long."""
    kinds = await kept_of(services.database, principal)
    return json_answer(
        {
            "kinds": [asdict(kind) for kind in kinds],
            "total_bytes": sum(kind.bytes for kind in kinds),
            "retention": retention_times(services.settings),
        }
    )


def _file_name(heading: Heading, form: Format) -> str:
    return f"{safe_name(heading.title or '')}.{form}"
