"""Tools whose calls wait for their person, and the person's decisions as a worker hands them on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

from langchain_core.messages import ToolMessage
from langgraph.types import Command

from app.tools.approval.ruling import Ask, Ruling
from app.tools.calls import AgentTool
from app.tools.questions import Asked, Question
from app.tools.site import CallSite, site_of_call
from app.tools.waiting import InDoubt, MustWait, NotApproved
from tests.integration.agent.conversation import CALL_SECONDS, THREAD, Conversation, Run
from tests.support.model_server import Script, ToolCall


@dataclass
class Asks:
    """A policy that says the same of each call, until the test has it say something else."""

    ask: Ask
    version: str = "1"
    may_open_thread: bool = False
    then: Callable[[], None] = lambda: None
    """What happens when it is asked for the first time: in the step in which the model answers."""

    def ruling(self, arguments: Mapping[str, Any]) -> Ruling:
        """What the test wants."""
        self.then()
        return Ruling(self.ask, self.version, arguments.get("name", ""), self.may_open_thread)


@dataclass
class Bank:
    """Tools that ask first, always or at the first use, and one that doesn't."""

    effects: list[str] = field(default_factory=list)
    sites: list[CallSite] = field(default_factory=list)
    stops: list[MustWait] = field(default_factory=list)
    """What the next calls stop at."""
    always: Asks = field(default_factory=lambda: Asks(Ask.ALWAYS))
    once: Asks = field(default_factory=lambda: Asks(Ask.FIRST_USE))

    async def pay(self, name: str) -> str:
        """Pay somebody."""
        return self._do(f"paid {name}")

    async def visit(self, name: str) -> str:
        """Visit somebody."""
        return self._do(f"visited {name}")

    async def count(self, name: Any) -> str:
        """Count anything."""
        return self._do(f"counted {name!r}")

    async def look(self, name: str) -> str:
        """Look at somebody."""
        return self._do(f"saw {name}")

    def tools(self) -> list[AgentTool]:
        """As an agent is given them."""

        def made(function: Callable[..., Any], policy: Asks | None) -> AgentTool:
            tool = AgentTool.from_function(function, read_only=False, timeout_seconds=CALL_SECONDS)
            return replace(tool, policy=policy)

        return [
            made(self.pay, self.always),
            made(self.count, self.always),
            made(self.visit, self.once),
            made(self.look, None),
        ]

    def _do(self, what: str) -> str:
        self.sites.append(site_of_call.get())
        if self.stops:
            raise self.stops.pop(0)
        self.effects.append(what)
        return what


@dataclass
class Opened:
    """What was approved for the rest of the thread, by what it turns to."""

    found: dict[str, Any] = field(default_factory=dict)
    asked: list[tuple[str | None, str, str]] = field(default_factory=list)

    async def find(self, server: str | None, tool: str, ruling: Ruling) -> Any:
        """What the test has put there."""
        self.asked.append((server, tool, ruling.subject))
        return self.found.get(ruling.subject)


def calling(*calls: str, says: str = "") -> Script:
    """An answer that makes calls: ``tool name``."""
    parts = [call.split() for call in calls]
    made = (ToolCall(name=tool, arguments={"name": name}) for tool, name in parts)
    return Script(text=says, tool_calls=tuple(made))


async def open_question(conversation: Conversation) -> tuple[str, dict[str, Any]]:
    """The one interrupt that is open: its id and its value."""
    (interrupt,) = (await conversation.graph.aget_state(THREAD)).interrupts
    return interrupt.id, interrupt.value


def calls_in(value: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The calls that an interrupt asks about, whatever it asks."""
    calls: Sequence[Mapping[str, Any]] = value.get("action_requests") or value["calls"]
    return calls


def decision(word: str | None, **fields: Any) -> dict[str, Any]:
    """One, as it stands in a row. None: nobody decided in time."""
    blank: dict[str, Any] = {"arguments": None, "reason": None, "replies": None, "notes": []}
    state = "expired" if word is None else "decided"
    return {"approval_id": str(uuid4()), "state": state, "decision": word, **blank, **fields}


async def decide(conversation: Conversation, *decisions: dict[str, Any]) -> Run:
    """Decide on all calls that are asked about, in their order, and go on."""
    interrupt_id, value = await open_question(conversation)
    ids = [call["tool_call_id"] for call in calls_in(value)]
    return go_on_with(conversation, interrupt_id, dict(zip(ids, decisions, strict=True)))


def go_on_with(conversation: Conversation, interrupt_id: str, decided: dict[str, Any]) -> Run:
    """Go on with what was decided of an interrupt's calls, by their ids."""
    answers = {interrupt_id: {"decisions": decided}}
    return Run(conversation.graph, Command(resume=answers), 25)


async def results(conversation: Conversation) -> list[ToolMessage]:
    """What came of all calls."""
    return [each for each in await conversation.messages() if isinstance(each, ToolMessage)]


def not_approved(*changed: str) -> MustWait:
    """What was approved does not hold any more."""
    return NotApproved(changed)


def in_doubt() -> MustWait:
    """Nobody knows what came of it."""
    return InDoubt({"why": "timeout", "sent": 1}, "bank", "pay")


def asked(question: Question) -> MustWait:
    """The tool's server asks something."""
    return Asked([question])
