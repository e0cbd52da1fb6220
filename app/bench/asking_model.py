"""A model that calls a tool of the tickets' server, whatever it is told."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from app.bench.model import PacedModel, call_line

SERVER: Final = "tickets"
"""As it is called in ``mcp.json``."""


class AskingModel(PacedModel):
    """Wants to open a ticket whenever a person says something, and thanks for the result."""

    def __init__(self) -> None:
        super().__init__(lambda _: "Done.", 0)

    async def _chat(
        self, asked: dict[str, Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if asked["messages"][-1]["role"] != "user":
            await super()._chat(asked, reader, writer)
            return
        self._begin(writer)
        writer.write(call_line(f"{SERVER}__create", {"title": "The lamp is broken"}))
        self._end(writer)
        await writer.drain()
