"""Breaking a connection off: closing it would wait for a client that does not read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

if TYPE_CHECKING:
    from starlette.types import Scope

_EXTENSION = "stoa.connection"


class HttpProtocol(HttpToolsProtocol):
    """HTTP/1.1 whose requests can break their connection off."""

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        self.scope["extensions"] = {_EXTENSION: {"abort": self.transport.abort}}


def abort_connection(scope: Scope) -> None:
    """Drop a request's connection, and what is still to be sent on it.

    Another server than ours has no way to: it closes what was answered incompletely.
    """
    abort = scope.get("extensions", {}).get(_EXTENSION, {}).get("abort")
    if abort is not None:
        abort()
