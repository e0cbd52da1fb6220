"""``stoa admin erase`` and ``erasures``: erasing somebody, and what became of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal
from uuid import UUID

import typer

from app.cli.acting import command_act, note_command
from app.cli.console import console

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.erasure.restoring import Restored
    from app.erasure.views import ErasureView
    from tenancy.acts import Act

application = typer.Typer(
    help="Erasures: how far they are, what they deleted, and doing them again after a restore."
    " Connects with STOA_DISPATCH_DATABASE_URL.",
    callback=note_command,
    no_args_is_help=True,
)
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
State = Literal["begun", "stopping", "deleting", "verifying", "done"]

_SHOWN = 8
"""Characters of an id that have to be typed again."""
_LOOK_SECONDS = 0.5


def erase(
    user: Annotated[UUID, typer.Argument(metavar="USER", help="Their id.", show_default=False)],
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Until it is done.")] = False,
    json: AsJson = False,
) -> None:
    """Erase a person and everything that is theirs, for good. Asks before.

    A worker does it; `stoa admin erasures show` says how far it is. Begun before, it is the same
    erasure. Connects with STOA_DISPATCH_DATABASE_URL; needs STOA_SIGNING_KEYS.

    Exits 1 when nobody has that id, or it was not confirmed.
    """
    import asyncio

    act = command_act()
    if not yes:
        _confirm(user)
    _print(asyncio.run(_erase(user, act, wait=wait)), json=json)


@application.command("list")
def list_(
    state: Annotated[State | None, typer.Option(help="Only those in this state.")] = None,
    limit: Annotated[int, typer.Option(help="Erasures to show.", min=1, max=500)] = 20,
    offset: Annotated[int, typer.Option(help="Erasures to pass over.", min=0)] = 0,
    *,
    json: AsJson = False,
) -> None:
    """Show erasures, the newest first."""
    import asyncio

    found = asyncio.run(_list(command_act(), state, limit, offset))
    if json:
        from pydantic import TypeAdapter

        from app.erasure.views import ErasureView

        typer.echo(TypeAdapter(list[ErasureView]).dump_json(found, indent=2).decode())
    else:
        from app.cli.erasures_report import erasures_report

        console().print(erasures_report(found))


@application.command()
def show(
    erasure: Annotated[UUID, typer.Argument(metavar="ID", help="Its id.", show_default=False)],
    *,
    json: AsJson = False,
) -> None:
    """Show one erasure, with its receipt; until rows are deleted, also which workers it waits for.

    Exits 1 when there is none of that id.
    """
    import asyncio

    found, awaited = asyncio.run(_show(command_act(), erasure))
    _print(found, awaited, json=json)


@application.command()
def apply(
    folder: Annotated[
        Path | None,
        typer.Argument(help="With tombstones. Default: STOA_TOMBSTONE_FOLDER.", show_default=False),
    ] = None,
    *,
    json: AsJson = False,
) -> None:
    """Begin those erasures again that the database does not know, after it was restored.

    Web processes and workers do the same when they start. As often as you like. Connects with
    STOA_MAINTENANCE_DATABASE_URL too; needs the STOA_SIGNING_KEYS that the tombstones are under.

    Exits 1 when a tombstone cannot be read.
    """
    import asyncio

    done = asyncio.run(_apply(folder))
    if json:
        from pydantic import TypeAdapter

        from app.erasure.restoring import Restored

        typer.echo(TypeAdapter(Restored).dump_json(done, indent=2).decode())
    else:
        console().print(
            f"{done.tombstones} tombstones, {done.unknown} of erasures that the database does not"
            f" know. Begun again: {len(done.begun)}; of the others nobody is there."
        )


def _confirm(user: UUID) -> None:
    """Have the beginning of the id typed again.

    Raises:
        typer.Exit: it was not.
    """
    beginning = str(user)[:_SHOWN]
    said = typer.prompt(
        f"This erases {user} and everything that is theirs, for good. Type {beginning} to go on",
        default="",
        show_default=False,
    )
    if said.strip().lower() != beginning:
        typer.echo("Nothing was done.", err=True)
        raise typer.Exit(1)


async def _erase(user: UUID, act: Act, *, wait: bool) -> ErasureView:
    import asyncio

    from app.erasure.requests import erasure_requests
    from app.settings import load_settings
    from tenancy.principal import UserId

    async with erasure_requests(load_settings()) as requests:
        erasure = await requests.begin(UserId(user), "operator", act)
        while wait and erasure.state != "done":
            await asyncio.sleep(_LOOK_SECONDS)
            erasure = await requests.find(erasure.erasure_id)
        return erasure


async def _list(act: Act, state: State | None, limit: int, offset: int) -> list[ErasureView]:
    from app.admin.acts import looked
    from app.erasure.requests import erasure_requests
    from app.settings import load_settings

    settings = load_settings()
    await looked(settings, act)
    async with erasure_requests(settings) as requests:
        found, _ = await requests.list(limit, offset, state)
        return found


async def _show(act: Act, erasure_id: UUID) -> tuple[ErasureView, Sequence[UUID]]:
    from app.admin.acts import looked
    from app.erasure.requests import erasure_requests
    from app.settings import load_settings

    settings = load_settings()
    await looked(settings, act)
    async with erasure_requests(settings) as requests:
        found = await requests.find(erasure_id)
        return found, await requests.awaited(found)


async def _apply(folder: Path | None) -> Restored:
    from app.erasure.restoring import apply_tombstones
    from app.settings import SettingsError, load_settings

    settings = load_settings()
    if folder is None:
        settings.required("tombstone_folder")
    elif not folder.is_dir():
        raise SettingsError(f"{folder} is no folder.")
    return await apply_tombstones(settings, folder)


def _print(erasure: ErasureView, awaited: Sequence[UUID] = (), *, json: bool) -> None:
    if json:
        typer.echo(erasure.model_dump_json(indent=2))
        return
    from app.cli.erasures_report import erasure_report

    console().print(erasure_report(erasure, awaited))
    if erasure.receipt is not None:
        typer.echo(f"\nReceipt\n{erasure.receipt}")  # on one line, however long: to be copied
