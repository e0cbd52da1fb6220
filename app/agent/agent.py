"""The built-in agent: a model that answers, and calls tools until it has what it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage
from langchain_core.messages.utils import count_tokens_approximately
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

from app.agent.answer import INCOMPLETE, stream_answer
from app.agent.asking import (
    ASKED_TOO_MUCH,
    answered_calls,
    put_to_person,
    questions_for,
    stopped_at,
)
from app.agent.equipment import equipment
from app.agent.prompt import build_prompt
from app.agent.state import SHOWN, AgentState, AskingCall, ToolTask
from app.agent.toolless import ToolOffer, unused_servers
from app.stopping import stop_of
from app.tools.calls import AgentTool, error_result, run_call
from app.tools.described import described
from app.tools.questions import Asked, questions_of_call
from app.tools.site import CallSite, site_of_call

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from langchain_ollama import ChatOllama
    from langgraph.graph.state import CompiledStateGraph
    from langgraph.runtime import Runtime

    from app.tools.described import Description


def build_agent(
    model: ChatOllama,
    system_prompt: Path,
    prompt_tokens: int,
    tools: Sequence[AgentTool] = (),
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Compile an agent. ``prompt_tokens`` is what the model's window leaves for the prompt.

    ``tools`` are everybody's; those of a run's user come with the run (``app.agent.equipment``).

    Each call of a tool is a task of its own, so after a crash only the unfinished ones are made
    again. A model that calls no tools is asked without. Told to stop, the agent keeps what it has:
    the run's next step is then the model's, and a run without input goes on there. Calls whose
    servers ask the person something wait for the end of their siblings, and are put to the person
    together.

    Raises:
        ValueError: two tools have the same name.
    """
    by_name = {tool.name: tool for tool in tools}
    if len(by_name) < len(tools):
        raise ValueError("Each tool of an agent needs a name of its own")
    offer = ToolOffer(model.model)

    async def answer(state: AgentState, *, runtime: Runtime[None]) -> dict[str, Any]:
        if asking := state.get("asking"):
            return {"asking": asking}  # first it is the person's turn
        run = equipment()
        usable = {**run.tools, **by_name}.values()

        async def ask(offered: Sequence[Description]) -> AIMessage | None:
            if not offered and (unused := unused_servers(usable)):
                runtime.stream_writer({"type": "tools_missing", "servers": unused})
            speaker = model.bind_tools(offered) if offered else model
            room = prompt_tokens - count_tokens_approximately([], tools=list(offered))
            prompt = await build_prompt(state["messages"], system_prompt, room, run)
            return await stream_answer(speaker, prompt, stop_of(runtime))

        message = await offer.made([described(tool.tool) for tool in usable], ask)
        return {"messages": [] if message is None else [message]}

    async def use_tool(state: ToolTask, *, runtime: Runtime[None]) -> dict[str, Any]:
        run = equipment()
        usable = {**run.tools, **by_name}
        site_of_call.set(CallSite(state["message_id"], state["call"]["id"] or ""))
        questions_of_call.set(questions_for(state))
        stop = stop_of(runtime)
        try:
            made = await run_call(state["call"], usable, stop, run.slots, run.earlier)
            return {"messages": [made]}
        except Asked as asked:
            tool = usable[state["call"]["name"]]
            call = stopped_at(state, asked.questions, tool)
        if call is None:
            return {"messages": [error_result(state["call"], ASKED_TOO_MUCH, tool)]}
        return {"asking": [call]}

    graph = StateGraph(AgentState)
    graph.add_node("model", answer)
    graph.add_node("tools", use_tool)
    graph.add_node("ask", _ask)
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", _after_answer, ["model", "tools", "ask", END])
    graph.add_edge("tools", "model")
    graph.add_conditional_edges("ask", _after_asking, ["model", "tools"])
    agent = graph.compile()
    agent.stream_channels = list(SHOWN)
    return agent


def _ask(state: AgentState) -> dict[str, list[AskingCall]]:
    """Wait for the person. Nothing does who has closed the calls meanwhile."""
    asking = state.get("asking")
    return {"asking": put_to_person(asking)} if asking else {}


def _after_asking(state: AgentState) -> str | list[Send]:
    return [Send("tools", task) for task in answered_calls(state.get("asking", []))] or "model"


def _after_answer(state: AgentState) -> str | list[Send]:
    """An answer that was cut off, or never begun, is the model's to go on with."""
    if state.get("asking"):
        return "ask"
    if not state["messages"]:
        return END  # the owner has emptied the thread
    last = state["messages"][-1]
    if not isinstance(last, AIMessage) or INCOMPLETE in last.response_metadata:
        return "model"
    tasks = [ToolTask(call=call, message_id=last.id or "") for call in last.tool_calls]
    return [Send("tools", task) for task in tasks] or END
