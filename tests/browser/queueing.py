"""Answers that take as long as a test wants, and limits that an operator sets."""

from __future__ import annotations

from tests.browser.conftest import Stack
from tests.browser.visitor import Visitor
from tests.support.model_server import RecordedRequest, Script

ANSWER = "one two three four five six"


async def begin(visitor: Visitor, question: str) -> str:
    """Have a question asked in a new chat, from elsewhere; returns the chat."""
    thread: str = (await visitor.post("/threads", {}))["thread_id"]
    messages = [{"type": "human", "content": question}]
    run = {
        "assistant_id": "agent",
        "input": {"messages": messages},
        "stream_mode": ["values", "messages-tuple"],
    }
    await visitor.post(f"/threads/{thread}/runs", run)
    return thread


async def occupy(visitor: Visitor, stack: Stack, question: str = "Hold.") -> RecordedRequest:
    """Have an answer begun that ends when it is told to."""
    stalls = stack.stalls
    stack.model.enqueue(Script(text=ANSWER, stall_at=3))
    await begin(visitor, question)
    return await stack.model.wait_for_stall(stalls + 1)


async def workers(olga: Visitor) -> list[int]:
    """The processes of the workers there are, on this machine."""
    found = await olga.get("/admin/workers")
    return [each["pid"] for each in found if each["lease_seconds"] > 0]


async def limit(olga: Visitor, visitor: Visitor, **limits: int | None) -> None:
    """Set what somebody may use, in place of all that was set."""
    user_id = (await visitor.get("/me"))["user_id"]
    body = {"plan": None, "limits": limits}
    await olga.send("PUT", f"/admin/users/{user_id}/limits", body)
