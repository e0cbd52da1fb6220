"""``stoa admin vault``: the keys that people's credentials are kept under."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.acting import command_act, note_command
from app.cli.console import console
from app.cli.failures import FAILED

if TYPE_CHECKING:
    from app.admin.vault import VaultKeyView, VaultRotation
    from tenancy.acts import Act

TO_ROTATE = 3
application = typer.Typer(
    help="The keys that people's credentials are kept under: which are in use, and replacing them."
    " Shows ids and counts, and nothing that is kept. Also connects with"
    " STOA_DISPATCH_DATABASE_URL, since both go on record.",
    callback=note_command,
    no_args_is_help=True,
)
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


@application.command()
def status(*, json: AsJson = False) -> None:
    """Show what is kept under which key of STOA_VAULT_KEYS, and which may be taken out.

    Connects with STOA_MAINTENANCE_DATABASE_URL.

    Exits 0 when everything is under the first key, 3 when something is to be rotated, 1 when
    something is under a key that the settings do not have.
    """
    import asyncio

    from app.admin.vault_report import keys_report

    keys = asyncio.run(_status(command_act()))
    if json:
        from pydantic import TypeAdapter

        from app.admin.vault import VaultKeyView

        typer.echo(TypeAdapter(list[VaultKeyView]).dump_json(keys, indent=2).decode())
    else:
        console().print(keys_report(keys))
    if any(key.data_keys and not key.configured for key in keys):
        raise typer.Exit(FAILED)
    if any(key.data_keys and not key.wraps for key in keys):
        raise typer.Exit(TO_ROTATE)


@application.command()
def rotate(
    *,
    data_keys: Annotated[
        bool,
        typer.Option(
            "--data-keys",
            help="Also give everybody a new data key, and seal their credentials under it.",
        ),
    ] = False,
    older_than: Annotated[
        float,
        typer.Option(
            help="With --data-keys: seconds. Younger ones are left, so that a rotation that was"
            " stopped goes on where it was.",
            min=0,
        ),
    ] = 3600,
    json: AsJson = False,
) -> None:
    """Put every data key under the first key of STOA_VAULT_KEYS.

    Everybody's, also of suspended people; not of those who are being erased. The service may run
    meanwhile, if each of its processes has both keys. Safe at any time and as often as you like.
    Connects with STOA_MAINTENANCE_DATABASE_URL, and with STOA_DATABASE_URL for each user.

    Exits 1 when it could not be done for somebody.
    """
    import asyncio

    from app.admin.vault_report import rotation_report

    done = asyncio.run(_rotate(command_act(), older_than if data_keys else None))
    if json:
        typer.echo(done.model_dump_json(indent=2))
    else:
        console().print(rotation_report(done))
    if done.failed:
        raise typer.Exit(FAILED)


async def _status(act: Act) -> list[VaultKeyView]:
    from app.admin.acts import looked
    from app.admin.vault import vault_keys
    from app.settings import load_settings

    settings = load_settings()
    await looked(settings, act)
    return await vault_keys(settings)


async def _rotate(act: Act, older_than_seconds: float | None) -> VaultRotation:
    from app.admin.acts import acts
    from app.admin.vault import rotate
    from app.settings import load_settings

    settings = load_settings()
    async with acts(settings) as record:
        await record.did(act, "vault_rotated")
    return await rotate(settings, older_than_seconds=older_than_seconds)
