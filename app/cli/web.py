"""``stoa web``: one web process."""

from __future__ import annotations

from typing import Annotated

import typer

from app.cli.turn import Turn, TurnSocket


def command(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.", min=1, max=65535)] = 8000,
    turn_socket: TurnSocket = None,
) -> None:
    """Serve the API and the browser client. Any number may run beside each other."""
    from app.cli.process import importing, run

    with importing():
        from app.api.process import serve_web
        from app.settings import load_settings

    turn = Turn(turn_socket)
    settings = load_settings()
    turn.wait()
    run(settings, lambda loaded: serve_web(loaded, host, port))
