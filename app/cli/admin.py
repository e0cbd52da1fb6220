"""``stoa admin``: what an operator does and looks into, without reading anybody's words."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

import typer

from app.cli import (
    admin_audit,
    admin_erasures,
    admin_limits,
    admin_models,
    admin_plans,
    admin_queue,
    admin_receipt,
    admin_tools,
    admin_users,
    admin_vault,
)
from app.cli.acting import command_act, note_command
from app.cli.console import console
from app.cli.failures import FAILED

SOMETHING_TO_DO = 3

application = typer.Typer(
    help="Look after a deployment: who waits and why, what people may use and have used, what"
    " became of a run, what dead processes left, which keys are in use, which tool servers work."
    " Shows ids, states, counts and times, never what anybody wrote. What is done and looked at is"
    " on record, with the account that did.",
    callback=note_command,
    no_args_is_help=True,
)
application.command()(admin_queue.queue)
application.command()(admin_queue.pools)
application.command()(admin_queue.workers)
application.command()(admin_models.models)
application.command()(admin_queue.usage)
application.command()(admin_tools.tools)
application.command()(admin_audit.audit)
application.command()(admin_erasures.erase)
application.command()(admin_receipt.receipt)
application.add_typer(admin_users.application, name="users")
application.add_typer(admin_erasures.application, name="erasures")
application.add_typer(admin_limits.application, name="limits")
application.add_typer(admin_plans.application, name="plans")
application.add_typer(admin_vault.application, name="vault")


@application.command()
def reconcile(
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be done.")
    ] = False,
) -> None:
    """Put back the runs of dead workers and clear the workers away, if their death is proven.

    Proven means: the lease is over by the database's clock, and the run's fence could be raised.
    Whatever may be alive stays; no run is ever deleted. Safe at any time and as often as you like:
    workers do the same when they start. Connects with STOA_DISPATCH_DATABASE_URL.

    Exits 0 when nothing is left to do, 1 when something failed, and, with --dry-run, 3 when
    something would be done.
    """
    import asyncio

    from app.admin.reconciliation import findings_table, outcome_line, reconcile_once
    from app.settings import load_settings

    summary = asyncio.run(reconcile_once(load_settings(), command_act(), dry_run=dry_run))
    screen = console()
    if summary.findings:
        screen.print(findings_table(summary))
    screen.print(outcome_line(summary))
    if summary.failures:
        raise typer.Exit(FAILED)
    if dry_run and summary.changed:
        raise typer.Exit(SOMETHING_TO_DO)


@application.command()
def run(
    run_id: Annotated[UUID, typer.Argument(metavar="ID", help="The run's id.", show_default=False)],
    *,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Show what became of a run: claims, fences, lease, steps, checkpoints and events by size.

    Finds anybody's run by its id. The user is shown as the reference that logs use, and nothing
    that a person wrote is shown or read: their own client has that. Connects with
    STOA_MAINTENANCE_DATABASE_URL, and with STOA_DISPATCH_DATABASE_URL, since a look goes on
    record.

    Exits 1 when there is no such run, 2 when that is no id.
    """
    import asyncio

    from app.admin.timeline_report import timeline_report
    from app.admin.timelines import timeline_of
    from app.settings import load_settings

    timeline = asyncio.run(timeline_of(load_settings(), run_id, command_act()))
    if json:
        typer.echo(timeline.model_dump_json(indent=2))
    else:
        console().print(timeline_report(timeline))
