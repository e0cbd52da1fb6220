"""What a request knows of its connection: whether it is over, and how to break it off.

Closing it would wait for a client that does not read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import Scope

_EXTENSION = "stoa.connection"


class HttpProtocol(HttpToolsProtocol):
    """HTTP/1.1 whose requests know their connection."""

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        transport = self.transport
        known: dict[object, object] = {"abort": transport.abort, "is_closing": transport.is_closing}
        self.scope["extensions"] = {_EXTENSION: known}


def abort_connection(scope: Scope) -> None:
    """Drop a request's connection, and what is still to be sent on it.

    Another server than ours has no way to: it closes what was answered incompletely.
    """
    abort = _known(scope, "abort")
    if abort is not None:
        abort()


def is_connection_over(scope: Scope) -> bool:
    """Whether nobody is at the other end of a request any more, or nobody is to be.

    Of another server than ours it is not known before somebody waits for that.
    """
    is_closing = _known(scope, "is_closing")
    return is_closing is not None and bool(is_closing())


def _known(scope: Scope, name: str) -> Callable[[], object] | None:
    found: Callable[[], object] | None = scope.get("extensions", {}).get(_EXTENSION, {}).get(name)
    return found
