"""``stoa admin users``: people in numbers, and whether they may use the service."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal
from uuid import UUID

import typer

from app.cli.acting import command_act, note_command
from app.cli.console import console

if TYPE_CHECKING:
    from app.admin.users_views import UserDetail, UserPage
    from tenancy.acts import Act

application = typer.Typer(
    help="People: ids, states, times, counts and sizes, and whether they may use the service."
    " Connects with STOA_MAINTENANCE_DATABASE_URL, and with STOA_DISPATCH_DATABASE_URL, since what"
    " is done or looked at here goes on record. Exits 1 when nobody has that id.",
    callback=note_command,
    no_args_is_help=True,
)
User = Annotated[UUID, typer.Argument(metavar="USER", help="The person's id.", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
State = Literal["active", "suspended", "erasing"]
Order = Literal["created_at", "last_seen_at"]


@application.command("list")
def list_(
    state: Annotated[State | None, typer.Option(help="Only those in this state.")] = None,
    sort: Annotated[Order, typer.Option(help="The latest first.")] = "created_at",
    limit: Annotated[int, typer.Option(help="People to show.", min=1, max=1000)] = 20,
    offset: Annotated[int, typer.Option(help="People to pass over.", min=0)] = 0,
    *,
    json: AsJson = False,
) -> None:
    """Show people: what there is of them, and since when."""
    import asyncio

    from app.admin.users_report import users_report

    page = asyncio.run(_list(command_act(), state, sort, limit, offset))
    if json:
        typer.echo(page.model_dump_json(indent=2))
    else:
        console().print(users_report(page))


@application.command()
def show(user: User, *, json: AsJson = False) -> None:
    """Show one person: what there is of them, what they may use, and what they used."""
    import asyncio

    _print(asyncio.run(_show(command_act(), user)), json=json)


@application.command()
def suspend(user: User, *, json: AsJson = False) -> None:
    """Let a person use the service no more. Nothing of theirs is lost, and what waits stays."""
    import asyncio

    _print(asyncio.run(_suspend(command_act(), user)), json=json)


@application.command()
def resume(user: User, *, json: AsJson = False) -> None:
    """Let a person who was suspended use the service again; what waited goes on."""
    import asyncio

    _print(asyncio.run(_resume(command_act(), user)), json=json)


async def _list(act: Act, state: State | None, order: Order, limit: int, offset: int) -> UserPage:
    from app.admin.acts import looked
    from app.admin.users import users_admin
    from app.settings import load_settings

    settings = load_settings()
    await looked(settings, act)
    async with users_admin(settings) as admin:
        return await admin.users(state, order, limit, offset)


async def _show(act: Act, user: UUID) -> UserDetail:
    from app.admin.acts import looked
    from app.admin.users import users_admin
    from app.settings import load_settings

    settings = load_settings()
    await looked(settings, act, user)
    async with users_admin(settings) as admin:
        return await admin.user(user)


async def _suspend(act: Act, user: UUID) -> UserDetail:
    from app.admin.users import users_admin
    from app.settings import load_settings

    async with users_admin(load_settings()) as admin:
        return await admin.suspend(user, act)


async def _resume(act: Act, user: UUID) -> UserDetail:
    from app.admin.users import users_admin
    from app.settings import load_settings

    async with users_admin(load_settings()) as admin:
        return await admin.resume(user, act)


def _print(user: UserDetail, *, json: bool) -> None:
    if json:
        typer.echo(user.model_dump_json(indent=2))
        return
    from app.admin.users_report import user_report

    console().print(user_report(user))
