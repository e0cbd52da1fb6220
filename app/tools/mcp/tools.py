"""A server's tools as the agent is given them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NoReturn

from langchain_core.messages import ToolCall, ToolMessage
from langchain_core.tools import BaseTool
from pydantic import PrivateAttr

from app.tools.approval.policy import ToolPolicy
from app.tools.approval.word import PersonsWord
from app.tools.calls import AgentTool
from app.tools.mcp.arguments import complaint_about
from app.tools.mcp.made import Made
from app.tools.mcp.names import tool_name
from app.tools.mcp.schemas import Schema, visible_schema
from app.tools.mcp.terms import Terms
from app.tools.outcomes import METADATA, Outcome
from app.tools.site import site_of_call
from app.tools.texts import shortened, storable
from tenancy.database.engine import DatabaseUnavailable

if TYPE_CHECKING:
    from app.tools.approval.ruling import Policy
    from app.tools.mcp.calling import ServerCalls
    from app.tools.servers import ListedTool, McpServer

DESCRIPTION_LENGTH = 2000
_AROUND_SECONDS = 30
"""What a call may take beside connecting and the call itself: the database, mostly."""


def bind_tools(
    server: McpServer,
    listed: Iterable[ListedTool],
    calls: ServerCalls,
    word: PersonsWord | None = None,
) -> list[AgentTool]:
    """Those of a server's tools that the operator lets be used, bound to a run's user.

    What the server itself says of a tool's harmlessness changes nothing. Where it lists two of one
    name, the second is left out. ``word`` is what the user has said of the server.
    """
    word = word or PersonsWord()
    bound: dict[str, AgentTool] = {}
    for each in listed:
        if server.offers(each.name):
            policy = ToolPolicy(each.name, server.approval.of(each.name), word)
            tool = _McpTool(server, each, calls, policy, word)
            bound.setdefault(tool.name, _as_agent_tool(server, each, tool, policy, word))
    return list(bound.values())


def _as_agent_tool(
    server: McpServer, listed: ListedTool, tool: BaseTool, policy: Policy, word: PersonsWord
) -> AgentTool:
    times = server.timeouts
    return AgentTool(
        tool,
        read_only=server.trust.is_read_only(listed.name),
        # A call may be made twice, each time on a new connection.
        timeout_seconds=2 * (times.connect + times.listing + times.call) + _AROUND_SECONDS,
        server=server.name,
        own_name=listed.name,
        policy=policy,
        word=word,
    )


class _McpTool(BaseTool):
    """A tool as LangChain calls it. Its schema is for the model; checked here, in bounded time."""

    _calls: ServerCalls = PrivateAttr()
    _server: McpServer = PrivateAttr()
    _own_name: str = PrivateAttr()
    _schema: Schema = PrivateAttr()
    _terms: Terms = PrivateAttr()

    def __init__(
        self,
        server: McpServer,
        listed: ListedTool,
        calls: ServerCalls,
        policy: Policy,
        word: PersonsWord,
    ) -> None:
        schema = visible_schema(listed.input_schema)
        about = storable(listed.description or listed.title or listed.name)
        super().__init__(
            name=tool_name(server.name, listed.name),
            description=shortened(about, DESCRIPTION_LENGTH),
            args_schema=schema,
        )
        self._calls = calls
        self._server = server
        self._own_name = listed.name
        self._schema = schema
        self._terms = Terms(policy, word, schema)

    def _run(self, /, **_: Any) -> NoReturn:  # noqa: ANN401
        """Not offered, though LangChain's base class wants it: it would block every other run.

        Raises:
            RuntimeError: always.
        """
        raise RuntimeError("Use the tool's async method (ainvoke).")

    async def _arun(self, /, **arguments: Any) -> ToolMessage:  # noqa: ANN401
        site = site_of_call.get()
        complaint = complaint_about(arguments, self._schema)
        about = (site, self._server, self._own_name, arguments)
        if complaint is not None:
            return _message(await self._calls.refuse(*about, complaint))
        return _message(await self._calls.make(*about, self._terms))


class RecordedCalls:
    """Answers, from the ledger, calls of tools that are not there any more."""

    def __init__(self, calls: ServerCalls) -> None:
        self._calls = calls

    async def result_of(self, call: ToolCall) -> ToolMessage | None:
        """What came of the call when it was made before; None: nothing is known of it.

        Raises:
            InDoubt: it was begun, and nobody knows what came of it.
        """
        try:
            made = await self._calls.recorded(site_of_call.get(), call["args"])
        except DatabaseUnavailable:
            return None
        return None if made is None else _message(made)


def _message(made: Made) -> ToolMessage:
    is_well = made.outcome in (Outcome.OK, Outcome.CUT)
    return ToolMessage(
        made.content,
        tool_call_id="",  # whoever made the call knows
        status="success" if is_well else "error",
        response_metadata={METADATA: {"outcome": made.outcome.value}},
    )
