"""``stoa admin vault``: the keys that people's credentials are kept under."""

from __future__ import annotations

from typing import Annotated

import typer

from app.cli.console import console
from app.cli.failures import FAILED

TO_ROTATE = 3
application = typer.Typer(
    help="The keys that people's credentials are kept under: which are in use, and replacing them."
    " Shows ids and counts, and nothing that is kept.",
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

    from app.admin.vault import vault_keys
    from app.admin.vault_report import keys_report
    from app.settings import load_settings

    keys = asyncio.run(vault_keys(load_settings()))
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

    from app.admin import vault
    from app.admin.vault_report import rotation_report
    from app.settings import load_settings

    seconds = older_than if data_keys else None
    done = asyncio.run(vault.rotate(load_settings(), older_than_seconds=seconds))
    if json:
        typer.echo(done.model_dump_json(indent=2))
    else:
        console().print(rotation_report(done))
    if done.failed:
        raise typer.Exit(FAILED)
