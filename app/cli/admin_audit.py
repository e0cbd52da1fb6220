"""``stoa admin audit``: what was done with people's accounts, and by whom."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from app.cli.acting import command_act
from app.cli.console import console

if TYPE_CHECKING:
    from app.admin.audit_views import RecordEntry
    from tenancy.acts import Act


def audit(
    user: Annotated[UUID | None, typer.Option(help="Only what was done to this person.")] = None,
    by: Annotated[
        str | None, typer.Option(help="Only what an operator did: an id, or an account's name.")
    ] = None,
    action: Annotated[str | None, typer.Option(help="Only this action.")] = None,
    begin: Annotated[datetime | None, typer.Option("--from", help="In UTC.")] = None,
    end: Annotated[datetime | None, typer.Option("--to", help="In UTC.")] = None,
    before: Annotated[
        int | None, typer.Option(help="Only entries below this number.", min=1)
    ] = None,
    limit: Annotated[int, typer.Option(help="Entries to show.", min=1, max=1000)] = 20,
    *,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Show what is on record, the newest first: facts, and nothing that anybody wrote.

    Connects with STOA_MAINTENANCE_DATABASE_URL, and with STOA_DISPATCH_DATABASE_URL, since a look
    goes on record, too.

    Exits 2 when there is no such time.
    """
    import asyncio

    from app.admin.audit_report import record_table
    from app.cli.admin_queue import in_utc
    from tenancy.errors import InvalidInput

    times = (in_utc(begin), in_utc(end))
    try:
        entries = asyncio.run(_audit(command_act(), user, by, action, times, before, limit))
    except InvalidInput as error:
        raise typer.BadParameter(str(error)) from error
    if json:
        from pydantic import TypeAdapter

        from app.admin.audit_views import RecordEntry

        typer.echo(TypeAdapter(list[RecordEntry]).dump_json(entries, indent=2).decode())
    else:
        console().print(record_table(entries))


async def _audit(
    act: Act,
    user: UUID | None,
    by: str | None,
    action: str | None,
    times: tuple[datetime | None, datetime | None],
    before: int | None,
    limit: int,
) -> list[RecordEntry]:
    from app.admin.acts import looked
    from app.admin.audit import audit_admin, operator_named
    from app.settings import load_settings

    settings = load_settings()
    await looked(settings, act, user)
    begin, end = times
    async with audit_admin(settings) as admin:
        return await admin.entries(
            user_id=user,
            by=None if by is None else operator_named(by),
            action=action,
            begin=begin,
            end=end,
            before=before,
            limit=limit,
        )
