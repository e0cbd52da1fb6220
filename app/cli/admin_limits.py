"""``stoa admin limits``: what one person may use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from app.cli import limit_values
from app.cli.acting import command_act, note_command
from app.cli.console import console

if TYPE_CHECKING:
    from app.admin.limits_views import UserLimits
    from tenancy.acts import Act

application = typer.Typer(
    help="What one person may use: their plan, and limits of their own. A change is in force at"
    " once. Connects with STOA_DISPATCH_DATABASE_URL. Exits 1 when nobody has that id, 2 when a"
    " limit cannot have that value.",
    callback=note_command,
    no_args_is_help=True,
)
User = Annotated[UUID, typer.Argument(metavar="USER", help="The person's id.", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


@application.command()
def show(user: User, *, json: AsJson = False) -> None:
    """Show what a person may use, and where it comes from."""
    import asyncio

    _print(asyncio.run(_show(command_act(), user)), json=json)


@application.command("set")
def set_(
    user: User,
    values: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME=VALUE]...", help=limit_values.HELP)
    ] = None,
    *,
    plan: Annotated[
        str | None, typer.Option(help="Give them this plan; `none` takes theirs away.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Change a person's limits or plan; what is not named stays as it is."""
    import asyncio

    from tenancy.errors import InvalidInput

    if not values and plan is None:
        raise typer.BadParameter("Name a limit, or a --plan.")
    try:
        _print(asyncio.run(_set(command_act(), user, values or [], plan)), json=json)
    except InvalidInput as error:
        raise typer.BadParameter(str(error)) from error


@application.command()
def clear(user: User, *, json: AsJson = False) -> None:
    """Take away a person's plan and limits: what holds for everybody holds for them."""
    import asyncio

    _print(asyncio.run(_clear(command_act(), user)), json=json)


async def _show(act: Act, user: UUID) -> UserLimits:
    from app.admin.acts import looked
    from app.admin.scheduler import scheduler_admin
    from app.settings import load_settings

    settings = load_settings()
    async with scheduler_admin(settings) as admin:
        await looked(settings, act, user)
        return await admin.limits_of(user)


async def _set(act: Act, user: UUID, values: list[str], plan: str | None) -> UserLimits:
    from app.admin.scheduler import scheduler_admin
    from app.settings import load_settings

    async with scheduler_admin(load_settings()) as admin:
        now = await admin.limits_of(user)
        if plan is not None:
            now.plan = None if plan == limit_values.UNLIMITED else plan
        wanted = limit_values.changed(now.limits, values)
        return await admin.set_limits(user, now.plan, wanted, act)


async def _clear(act: Act, user: UUID) -> UserLimits:
    from app.admin.scheduler import scheduler_admin
    from app.settings import load_settings

    async with scheduler_admin(load_settings()) as admin:
        return await admin.clear_limits(user, act)


def _print(limits: UserLimits, *, json: bool) -> None:
    if json:
        typer.echo(limits.model_dump_json(indent=2))
        return
    from app.admin.limits_report import limits_report

    console().print(limits_report(limits))
