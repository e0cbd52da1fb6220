"""The built-in agent: a model that answers, and calls tools until it has what it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_core.messages.utils import count_tokens_approximately
from langgraph.graph import START, StateGraph

from app.agent.answer import stream_answer
from app.agent.calling import Calling
from app.agent.equipment import equipment
from app.agent.prompt import build_prompt
from app.agent.speakers import Speaker
from app.agent.state import SHOWN, AgentState
from app.agent.toolless import ToolOffer, unused_servers
from app.stopping import stop_of
from app.tools.described import described

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from langchain_core.messages import AIMessage
    from langchain_ollama import ChatOllama
    from langgraph.graph.state import CompiledStateGraph
    from langgraph.runtime import Runtime

    from app.tools.calls import AgentTool
    from app.tools.described import Description


def build_agent(
    model: ChatOllama,
    system_prompt: Path,
    prompt_tokens: int,
    tools: Sequence[AgentTool] = (),
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Compile an agent. ``prompt_tokens`` is what the model's window leaves for the prompt.

    A run whose equipment says what to speak with speaks with that instead.

    ``tools`` are everybody's; those of a run's user come with the run (``app.agent.equipment``).

    A turn with a call that needs its person's word stops before any of its calls is made. Each call
    of a tool is a task of its own, so after a crash only the unfinished ones are made again. A
    model that calls no tools is asked without. Told to stop, the agent keeps what it has: the run's
    next step is then the model's, and a run without input goes on there. Calls that must wait for
    the person after all wait for the end of their siblings, and are put to the person together.

    Raises:
        ValueError: two tools have the same name.
    """
    by_name = {tool.name: tool for tool in tools}
    if len(by_name) < len(tools):
        raise ValueError("Each tool of an agent needs a name of its own")
    own, calling = Speaker(model, prompt_tokens, ToolOffer(model.model)), Calling(by_name)

    async def answer(state: AgentState, *, runtime: Runtime[None]) -> dict[str, Any]:
        if asking := state.get("asking"):
            return {"asking": asking}  # first it is the person's turn
        run = equipment()
        speaker = run.speaker or own
        usable = calling.usable.values()

        async def ask(offered: Sequence[Description]) -> AIMessage | None:
            if not offered and (unused := unused_servers(usable)):
                runtime.stream_writer({"type": "tools_missing", "servers": unused})
            asked = speaker.chat.bind_tools(offered) if offered else speaker.chat
            room = speaker.prompt_tokens - count_tokens_approximately([], tools=list(offered))
            prompt = await build_prompt(state["messages"], system_prompt, room, run)
            return await stream_answer(asked, prompt, stop_of(runtime))

        message = await speaker.offer.made([described(tool.tool) for tool in usable], ask)
        if message is None:
            return {"messages": []}
        return {"messages": [message], "asking": await calling.gate(message)}

    graph = StateGraph(AgentState)
    graph.add_node("model", answer)
    graph.add_edge(START, "model")
    calling.add_to(graph)
    agent = graph.compile()
    agent.stream_channels = list(SHOWN)
    return agent
