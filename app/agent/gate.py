"""Where a turn stops before anything of it has run, if its person has to approve any of its calls.

What needs no word waits with the rest: the calls of a turn are made together.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from app.agent.approving import approval_wanted, may_ask, ruling_on
from app.agent.asking import waiting_call
from app.agent.state import ToolTask
from app.tools.approval.ruling import Ask
from app.tools.texts import is_storable
from app.tools.waiting import NotApproved

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from langchain_core.messages import AIMessage, ToolCall

    from app.agent.state import AskingCall
    from app.tools.approval.ruling import Ruling
    from app.tools.calls import AgentTool


UNREADABLE = "The arguments hold characters or numbers that cannot be kept. It was not made."


class Permissions(Protocol):
    """What a person has approved for the rest of the thread."""

    async def find(self, server: str | None, tool: str, ruling: Ruling) -> UUID | None:
        """The approval that covers such calls of the tool; None: there is none."""
        ...


def needs_gate(message: AIMessage, tools: Mapping[str, AgentTool]) -> bool:
    """Whether any of the calls may need the person's word; pure.

    One of a tool that is not known here may: whoever looks may be no run, with nothing to go by.
    """
    return any(
        call["name"] not in tools or may_ask(call, tools[call["name"]])
        for call in message.tool_calls
    )


async def gated(
    message: AIMessage, tools: Mapping[str, AgentTool], permissions: Permissions | None
) -> list[AskingCall]:
    """All calls of a message, each with what it asks of the person, if anything."""
    waiting = []
    for call in message.tool_calls:
        waiting.append(await _gated(call, message.id or "", tools.get(call["name"]), permissions))
        # To check arguments by a schema is work for the processor: others' runs go on meanwhile.
        await asyncio.sleep(0)
    return waiting


def complaint_about_call(call: ToolCall) -> str | None:
    """Why nobody could make a call, whatever its tool; None where they can. Pure."""
    return None if is_storable(call["args"]) else UNREADABLE


def require_approval(task: ToolTask, tool: AgentTool | None) -> None:
    """See that a call which needs an approval has one.

    Whether it holds, whoever makes the call finds out. Of a server's tool they find out the rest as
    well: such a call may have been made before, and then there is nothing to approve.

    Raises:
        NotApproved: it has none.
    """
    is_ours = tool is not None and tool.server is None
    if is_ours and "approval" not in task and ruling_on(task["call"], tool) is not None:
        raise NotApproved


async def _gated(
    call: ToolCall, message_id: str, tool: AgentTool | None, permissions: Permissions | None
) -> AskingCall:
    task = ToolTask(call=call, message_id=message_id)
    ruling = ruling_on(call, tool)
    if tool is None or ruling is None:
        server = None if tool is None else tool.server
        return waiting_call(task, None, server, call["name"])
    name = tool.own_name or tool.name
    may_be_open = ruling.ask is Ask.FIRST_USE or ruling.may_open_thread
    if permissions is not None and may_be_open:
        permission = await permissions.find(tool.server, name, ruling)
        if permission is not None:
            task["approval"] = str(permission)
            return waiting_call(task, None, tool.server, name)
    return waiting_call(task, approval_wanted(call, tool, ruling), tool.server, name)
