"""The part of a turn in which its tools are called: the gate, the questions, and the calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from langchain_core.messages import AIMessage, ToolMessage
from langgraph.graph import END
from langgraph.types import Send

from app.agent.answer import INCOMPLETE
from app.agent.asking import handed_on, is_open, put_to_person, ready_tasks
from app.agent.elicitation import questions_for
from app.agent.equipment import equipment
from app.agent.gate import complaint_about_call, gated, needs_gate, require_approval
from app.agent.notes import with_notes
from app.agent.state import AgentState, AskingCall, ToolTask
from app.stopping import stop_of
from app.tools.calls import run_call
from app.tools.fingerprint import fingerprint
from app.tools.outcomes import error_result
from app.tools.questions import questions_of_call
from app.tools.site import CallSite, site_of_call
from app.tools.waiting import MustWait

if TYPE_CHECKING:
    from collections.abc import Mapping

    from langgraph.graph import StateGraph
    from langgraph.runtime import Runtime

    from app.tools.calls import AgentTool


class Calling:
    """The nodes between the model's message and its next one. ``tools`` are everybody's."""

    def __init__(self, tools: Mapping[str, AgentTool]) -> None:
        self._tools = tools

    def add_to(self, graph: StateGraph[Any, Any, Any, Any]) -> None:
        """Add the nodes, and the ways between them and ``model``."""
        graph.add_node("gate", self._gate)
        graph.add_node("ask", self._ask)
        graph.add_node("tools", self._use_tool)
        graph.add_conditional_edges("model", self._after_answer, ["model", *_CALLING, END])
        graph.add_conditional_edges("gate", _after_asking, ["model", "ask", "tools"])
        graph.add_conditional_edges("ask", _after_asking, ["model", "ask", "tools"])
        graph.add_edge("tools", "model")

    @property
    def usable(self) -> dict[str, AgentTool]:
        """The tools of the run that this code works for, by the names that the model knows."""
        return {**equipment().tools, **self._tools}

    async def gate(self, message: AIMessage) -> list[AskingCall]:
        """All calls of a message that makes one which needs the person's word; else none.

        Asked with the model's answer, it costs no step of its own.
        """
        if not needs_gate(message, self.usable):
            return []
        return await gated(message, self.usable, equipment().permissions)

    async def _gate(self, state: AgentState) -> dict[str, Any]:
        """The same for a message whose calls were left by an earlier run, or by an update."""
        last = state["messages"][-1] if state["messages"] else None
        if not isinstance(last, AIMessage):
            return {}  # the calls were closed meanwhile
        return {"asking": await self.gate(last)}

    def _ask(self, state: AgentState) -> dict[str, Any]:
        """Wait for the person. Nothing does who has closed the calls meanwhile."""
        asking = state.get("asking")
        return put_to_person(asking, state["messages"], self.usable) if asking else {}

    async def _use_tool(self, state: ToolTask, *, runtime: Runtime[None]) -> dict[str, Any]:
        """Make one call. What goes wrong is a result: its siblings are in the middle of theirs."""
        run, usable, call = equipment(), self.usable, state["call"]
        if (complaint := complaint_about_call(call)) is not None:
            return {"messages": [error_result(call, complaint, usable.get(call["name"]))]}
        site_of_call.set(_site_of(state))
        questions_of_call.set(questions_for(state))
        try:
            require_approval(state, usable.get(call["name"]))
            made = await run_call(call, usable, stop_of(runtime), run.slots, run.earlier)
        except MustWait as why:
            waiting = handed_on(state, why, usable.get(call["name"]))
            return {"messages" if isinstance(waiting, ToolMessage) else "asking": [waiting]}
        return {"messages": [with_notes(made, state.get("notes", ()))]}

    def _after_answer(self, state: AgentState) -> str | list[Send]:
        """An answer that was cut off, or never begun, is the model's to go on with."""
        if state.get("asking"):
            return _after_asking(state)
        if not state["messages"]:
            return END  # the owner has emptied the thread
        last = state["messages"][-1]
        if not isinstance(last, AIMessage) or INCOMPLETE in last.response_metadata:
            return "model"
        if needs_gate(last, self.usable):
            return "gate"
        tasks = [ToolTask(call=call, message_id=last.id or "") for call in last.tool_calls]
        return [Send("tools", task) for task in tasks] or END


_CALLING = ("gate", "ask", "tools")


def _after_asking(state: AgentState) -> str | list[Send]:
    """One kind of question after the other; then all calls that may be made."""
    asking = state.get("asking", [])
    if is_open(asking):
        return "ask"
    return [Send("tools", task) for task in ready_tasks(asking)] or "model"


def _site_of(task: ToolTask) -> CallSite:
    """Where a call stands, and what lets it be made."""
    call = task["call"]
    return CallSite(
        task["message_id"],
        call["id"] or "",
        fingerprint(call["args"]),
        UUID(task["approval"]) if "approval" in task else None,
        UUID(task["doubt"]) if "doubt" in task else None,
    )
