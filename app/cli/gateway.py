"""``stoa gateway``: sign-in for development."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    upstream: Annotated[str, typer.Option(help="URL of the web process behind it.")],
    key_file: Annotated[Path, typer.Option(help="Signing key; made where it is missing.")] = Path(
        ".stoa/gateway-key.json"
    ),
    audience: Annotated[str, typer.Option(help="`aud` of the assertions.")] = "stoa",
    issuer: Annotated[
        str | None, typer.Option(help="`iss` of the assertions. Default: its own URL.")
    ] = None,
    host: Annotated[str, typer.Option(help="Loopback address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.", min=1, max=65535)] = 8000,
) -> None:
    """Sign people in under any name they like. For development, on loopback only."""
    import asyncio

    from app.dev.gateway import GatewaySettings, serve_gateway

    settings = GatewaySettings(
        upstream=upstream,
        key_file=key_file,
        audience=audience,
        issuer=issuer,
        host=host,
        port=port,
    )
    asyncio.run(serve_gateway(settings))
