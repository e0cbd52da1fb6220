"""Reads what a server lets be read, over an open connection."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from mcp import MCPError
from pydantic import ValidationError

from app.tools.pool.calling import assert_answered, failed_requests
from app.tools.pool.failures import NotReadable, ToolServerUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

    import mcp_types

    from app.tools.pool.opening import Line


async def read_resource(line: Line, uri: str, server: str) -> mcp_types.ReadResourceResult:
    """Read a resource.

    Raises:
        NotReadable: the server answered with an error.
        ToolServerUnavailable: there is no answer.
    """
    with _answered(line, server):
        return await line.session.read_resource(uri)


async def get_prompt(line: Line, name: str, server: str) -> mcp_types.GetPromptResult:
    """Ask for what a prompt says that is told nothing; as for resources."""
    with _answered(line, server):
        return await line.session.get_prompt(name)


@contextmanager
def _answered(line: Line, server: str) -> Iterator[None]:
    """Tell whether the server has answered. Who reads is asked nothing: there is nobody to ask."""
    failed = failed_requests(line)
    try:
        with line.asking.during(None):
            yield
    except MCPError as error:
        assert_answered(line, error, failed, server)
        raise NotReadable from None
    except ValidationError:
        raise NotReadable from None
    except (RuntimeError, ValueError):  # it wants to know something first, or the session is over
        reason = line.wire.loss.reason
        if reason.done():
            raise ToolServerUnavailable(server, reason.result()) from None
        raise NotReadable from None
