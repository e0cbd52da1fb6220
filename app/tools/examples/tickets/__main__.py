"""Runs the server: by stdio unless it is told a port."""

from __future__ import annotations

import argparse
from pathlib import Path

from app.tools.examples.tickets.desk import Desk
from app.tools.examples.tickets.server import tickets_server

A_DAY = 24 * 60 * 60


def main() -> None:
    """Serve until the end of the input, or a signal."""
    parser = argparse.ArgumentParser(prog="tickets", description="A replay-safe tool server.")
    parser.add_argument("--file", type=Path, default=Path("tickets.db"), help="where they are kept")
    parser.add_argument("--http", type=int, metavar="PORT", help="speak by streamable HTTP")
    parser.add_argument("--host", default="127.0.0.1", help="where to listen, by HTTP")
    parser.add_argument(
        "--idempotency-ttl",
        type=float,
        default=A_DAY,
        metavar="SECONDS",
        help="how long a key is known; what mcp.json says of it must not be longer",
    )
    given = parser.parse_args()
    with Desk(given.file, ttl_seconds=given.idempotency_ttl) as desk:
        server = tickets_server(desk)
        if given.http is None:
            server.run("stdio")
        else:
            server.run("streamable-http", host=given.host, port=given.http)


if __name__ == "__main__":
    main()
