"""What a lease gives, and what tells one connection from another."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import mcp_types

    from app.tools.pool.failures import Reason
    from app.tools.readable import Readable
    from app.tools.servers import ListedTool
    from tenancy.principal import UserId

Progress = Callable[[float, float | None, str | None], Awaitable[None]]


class ToolConnection(Protocol):
    """What a lease gives: one server, as one user."""

    @property
    def tools(self) -> tuple[ListedTool, ...]:
        """What is offered, as last listed."""

    @property
    def listing_version(self) -> str:
        """The same for the same tools."""

    @property
    def lost(self) -> Reason | None:
        """Why it ended though nobody had closed it; None as long as it did not."""

    @property
    def readable(self) -> Readable:
        """What it lets be read, as last listed: tools are known before that is."""

    async def until_whole(self, seconds: float) -> None:
        """Return once all that it offers was listed, or cannot be, or the time is over."""

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        meta: Mapping[str, Any],
        seconds: float,
        progress: Progress | None = None,
        late_seconds: float = 0.0,
    ) -> mcp_types.CallToolResult:
        """Make one call; an error that the server answers with is a result.

        ``late_seconds`` is how much longer an answer is waited for though the call's time is over.

        Raises:
            Asked: the server has questions; see :mod:`app.tools.questions`.
            ToolServerUnavailable: there is no answer. The call may have had an effect.
            TimeoutError: there was none in time, nor is it waited for any more.
        """

    async def read_resource(self, uri: str, *, seconds: float) -> mcp_types.ReadResourceResult:
        """Read a resource by what its server knows it by.

        Raises:
            NotReadable: the server answered with an error.
            ToolServerUnavailable: there is no answer.
            TimeoutError: there was none in time.
        """

    async def get_prompt(self, name: str, *, seconds: float) -> mcp_types.GetPromptResult:
        """Ask for what a prompt says that is told nothing; raises as for resources."""


@dataclass(frozen=True, slots=True)
class ConnectionKey:
    """Who may share a connection: nobody with another owner, configuration or credential."""

    owner: UserId | None
    server: str
    server_version: str
    credential_version: int
