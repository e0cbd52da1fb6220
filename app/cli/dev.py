"""``stoa dev``: everything, on one machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    port: Annotated[
        int, typer.Option(help="Port of the address for the browser.", min=1, max=65535)
    ] = 8000,
    data: Annotated[Path, typer.Option(help="Folder that keeps the data.")] = Path(".stoa"),
    *,
    reset: Annotated[
        bool, typer.Option("--reset", help="Delete the data of earlier starts first.")
    ] = False,
) -> None:
    """Start everything on this machine: database, sign-in, web, worker and a small model.

    The model is only started where no Ollama answers at STOA_OLLAMA_URL. Other settings hold as
    they do in production. Ctrl-C ends everything; the data stays.
    """
    import asyncio

    from app.dev.supervisor import run_development

    raise typer.Exit(asyncio.run(run_development(port=port, data=data, reset=reset)))
