"""``stoa admin models``: what people may choose from."""

from __future__ import annotations

from typing import Annotated

import typer

from app.cli.acting import command_act
from app.cli.console import console

NOT_ALL = 3


def models(
    *,
    refresh: Annotated[
        bool, typer.Option("--refresh", help="Have the catalogue of prices read anew.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Show the models that people may choose: what each can do and costs, as it looks from here.

    With --refresh, the catalogue of prices is read from STOA_CATALOGUE_URL into
    STOA_CATALOGUE_FOLDER; processes that share the folder notice it within half a minute. Connects
    with STOA_DISPATCH_DATABASE_URL, since a look goes on record.

    Exits 0 when every model answers, 3 when one does not, 1 when the catalogue cannot be had.
    """
    import asyncio

    from app.admin.models import look_at_models, models_table
    from app.settings import load_settings

    found = asyncio.run(look_at_models(load_settings(), command_act(), refresh=refresh))
    if json:
        from app.api.model_schemas import model_json
        from app.runs.wire import to_json

        typer.echo(to_json([model_json(each) for each in found]).decode())
    else:
        console().print(models_table(found))
    if any(each.status != "available" for each in found):
        raise typer.Exit(NOT_ALL)
