"""The built-in agent: a model that answers, and keeps what it had said when it is cut off."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    AnyMessage,
    SystemMessage,
    trim_messages,
)
from langchain_core.messages.utils import count_tokens_approximately
from langgraph.graph import END, START, StateGraph

from app.agent.state import AgentState
from app.models.errors import error_by_code
from app.models.failures import describe_model_failure

if TYPE_CHECKING:
    from pathlib import Path

    from langchain_core.runnables import RunnableConfig
    from langchain_ollama import ChatOllama
    from langgraph.graph.state import CompiledStateGraph

INCOMPLETE = "stoa_incomplete"
"""In a message's ``response_metadata``: the code of what cut it off."""


def build_agent(
    model: ChatOllama, system_prompt: Path, prompt_tokens: int
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Compile the agent. ``prompt_tokens`` is what the model's window leaves for the prompt."""

    async def answer(state: AgentState, config: RunnableConfig) -> dict[str, list[AIMessage]]:
        prompt = await _prompt(state["messages"], system_prompt, prompt_tokens)
        return {"messages": [await _stream_answer(model, prompt, config)]}

    graph = StateGraph(AgentState)
    graph.add_node("model", answer)
    graph.add_node("failed", _fail)
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", _after_answer, ["failed", END])
    graph.add_edge("failed", END)
    return graph.compile()


async def _prompt(
    messages: list[AnyMessage], system_prompt: Path, prompt_tokens: int
) -> list[AnyMessage]:
    """The system prompt, read anew each time, and the newest turns that fit the window."""
    text = await asyncio.to_thread(system_prompt.read_text, encoding="utf-8")
    fitting: list[Any] = trim_messages(
        [SystemMessage(text), *messages],
        max_tokens=prompt_tokens,
        token_counter=count_tokens_approximately,
        strategy="last",
        start_on="human",
        include_system=True,
    )
    # A last message that fills the window by itself goes to the model, which says so.
    return fitting if len(fitting) > 1 else [SystemMessage(text), messages[-1]]


async def _stream_answer(
    model: ChatOllama, prompt: list[AnyMessage], config: RunnableConfig
) -> AIMessage:
    """Collect the answer. Cut off after its first words, what came is kept and marked."""
    answer: AIMessageChunk | None = None
    try:
        async for chunk in model.astream(prompt, config):
            answer = chunk if answer is None else answer + chunk
    except Exception as error:
        failure = describe_model_failure(error)
        if failure is None or answer is None or not answer.text:
            raise
        return _message(answer, {INCOMPLETE: failure.code})
    if answer is None:
        raise error_by_code("model_stream_cut")
    return _message(answer, {})


def _message(answer: AIMessageChunk, marks: dict[str, str]) -> AIMessage:
    """The finished message, under the id that its chunks were streamed with."""
    return AIMessage(
        content=answer.content,
        id=answer.id,
        tool_calls=answer.tool_calls,
        additional_kwargs=answer.additional_kwargs,
        response_metadata={**answer.response_metadata, **marks},
        usage_metadata=answer.usage_metadata,
    )


def _after_answer(state: AgentState) -> str:
    return "failed" if INCOMPLETE in state["messages"][-1].response_metadata else END


def _fail(state: AgentState) -> None:
    """Fail the run after the partial answer was committed with the step before."""
    raise error_by_code(state["messages"][-1].response_metadata[INCOMPLETE])
