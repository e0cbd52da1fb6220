"""The built-in agent: a model that answers, and calls tools until it has what it needs."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, SystemMessage
from langchain_core.messages.utils import count_tokens_approximately
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

from app.agent.answer import INCOMPLETE, stream_answer
from app.agent.history import answered
from app.agent.state import AgentState, ToolTask
from app.agent.trimming import newest_turns
from app.stopping import stop_of
from app.tools.calls import AgentTool, run_call

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from langchain_core.messages import BaseMessage, ToolMessage
    from langchain_ollama import ChatOllama
    from langgraph.graph.state import CompiledStateGraph
    from langgraph.runtime import Runtime


def build_agent(
    model: ChatOllama,
    system_prompt: Path,
    prompt_tokens: int,
    tools: Sequence[AgentTool] = (),
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Compile an agent. ``prompt_tokens`` is what the model's window leaves for the prompt.

    Each call of a tool is a task of its own, so after a crash only the unfinished ones are made
    again. Told to stop, the agent keeps what it has: the run's next step is then the model's, and
    a run without input goes on there.

    Raises:
        ValueError: two tools have the same name.
    """
    by_name = {tool.name: tool for tool in tools}
    if len(by_name) < len(tools):
        raise ValueError("Each tool of an agent needs a name of its own")
    bare = [tool.tool for tool in tools]
    speaker = model.bind_tools(bare) if bare else model
    room = prompt_tokens - count_tokens_approximately([], tools=list(bare))

    async def answer(state: AgentState, *, runtime: Runtime[None]) -> dict[str, list[AIMessage]]:
        prompt = await _prompt(state["messages"], system_prompt, room)
        message = await stream_answer(speaker, prompt, stop_of(runtime))
        return {"messages": [] if message is None else [message]}

    async def use_tool(state: ToolTask, *, runtime: Runtime[None]) -> dict[str, list[ToolMessage]]:
        return {"messages": [await run_call(state["call"], by_name, stop_of(runtime))]}

    graph = StateGraph(AgentState)
    graph.add_node("model", answer)
    graph.add_node("tools", use_tool)
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", _after_answer, ["model", "tools", END])
    graph.add_edge("tools", "model")
    return graph.compile()


async def _prompt(
    messages: Sequence[BaseMessage], system_prompt: Path, tokens: int
) -> list[BaseMessage]:
    """The system prompt, read anew each time, and the newest turns that fit the window."""
    system = SystemMessage(await asyncio.to_thread(system_prompt.read_text, encoding="utf-8"))
    left = tokens - count_tokens_approximately([system])
    return [system, *newest_turns(answered(messages), left, count_tokens_approximately)]


def _after_answer(state: AgentState) -> str | list[Send]:
    """An answer that was cut off, or never begun, is the model's to go on with."""
    if not state["messages"]:
        return END  # the owner has emptied the thread
    last = state["messages"][-1]
    if not isinstance(last, AIMessage) or INCOMPLETE in last.response_metadata:
        return "model"
    return [Send("tools", ToolTask(call=call)) for call in last.tool_calls] or END
