"""``stoa model``: the small local model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.", min=1, max=65535)] = 11434,
    cache: Annotated[Path, typer.Option(help="Folder that keeps the weights.")] = Path(
        ".stoa/model"
    ),
    slots: Annotated[int, typer.Option(help="Answers in the making at once.", min=1)] = 2,
) -> None:
    """Serve a small language model on Ollama's wire, where there is no Ollama."""
    import asyncio
    import contextlib

    from app.dev.model.serve import serve_model
    from app.dev.model.settings import LocalModelSettings

    settings = LocalModelSettings(cache=cache, host=host, port=port, slots=slots)
    with contextlib.suppress(asyncio.CancelledError):
        asyncio.run(serve_model(settings))
