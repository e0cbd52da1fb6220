"""``stoa admin plans``: limits by a name that people are given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from app.cli import limit_values
from app.cli.acting import command_act, note_command
from app.cli.console import console

if TYPE_CHECKING:
    from app.admin.limits_views import PlansView, PlanView
    from tenancy.acts import Act

application = typer.Typer(
    help="Limits by a name that people are given; `default` is everybody's who has no other. A"
    " change is in force at once, for everybody who has the plan. Connects with"
    " STOA_DISPATCH_DATABASE_URL. Exits 1 when there is no such plan, or somebody has it, 2 when a"
    " limit cannot have that value.",
    callback=note_command,
    no_args_is_help=True,
)
Plan = Annotated[str, typer.Argument(metavar="PLAN", help="Its name.", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


@application.command("list")
def list_(*, json: AsJson = False) -> None:
    """Show every plan, how many people have it, and which limits there are."""
    import asyncio

    from app.admin.limits_report import plans_report

    plans = asyncio.run(_list(command_act()))
    if json:
        typer.echo(plans.model_dump_json(indent=2))
    else:
        console().print(plans_report(plans))


@application.command("set")
def set_(
    plan: Plan,
    values: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME=VALUE]...", help=limit_values.HELP)
    ] = None,
    *,
    json: AsJson = False,
) -> None:
    """Make a plan, or change one; what is not named stays as it is."""
    import asyncio

    from app.admin.limits_report import said
    from tenancy.errors import InvalidInput

    try:
        changed = asyncio.run(_set(command_act(), plan, values or []))
    except InvalidInput as error:
        raise typer.BadParameter(str(error)) from error
    if json:
        typer.echo(changed.model_dump_json(indent=2))
    else:
        typer.echo(f"{changed.plan} ({changed.users} people): {said(changed.limits)}".rstrip())


@application.command()
def delete(plan: Plan) -> None:
    """Delete a plan that nobody has."""
    import asyncio

    asyncio.run(_delete(command_act(), plan))
    typer.echo("Done.")


async def _list(act: Act) -> PlansView:
    from app.admin.acts import looked
    from app.admin.scheduler import scheduler_admin
    from app.settings import load_settings

    settings = load_settings()
    async with scheduler_admin(settings) as admin:
        await looked(settings, act)
        return await admin.plans()


async def _set(act: Act, plan: str, values: list[str]) -> PlanView:
    from app.admin.scheduler import scheduler_admin
    from app.settings import load_settings

    async with scheduler_admin(load_settings()) as admin:
        known = {each.plan: each.limits for each in (await admin.plans()).plans}
        limits = limit_values.changed(known.get(plan, {}), values)
        return await admin.set_plan(plan, limits, act)


async def _delete(act: Act, plan: str) -> None:
    from app.admin.scheduler import scheduler_admin
    from app.settings import load_settings

    async with scheduler_admin(load_settings()) as admin:
        await admin.delete_plan(plan, act)
