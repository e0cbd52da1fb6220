"""The agent's tools: for the run's user and nobody else, and once, however often they are made."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest
from langchain_core.messages import ToolCall, ToolMessage

from app.memory.memories import Memories
from app.memory.run import memory_for_run
from app.tools.calls import AgentTool, run_call
from app.tools.site import CallSite, site_of_call
from tenancy.checkpoints.memories import MOST_CHARACTERS
from tenancy.database.crossing import DispatchDatabase
from tenancy.database.tenant import TenantDatabase
from tenancy.principal import ClaimedRun, Principal
from tests.integration.memory.conftest import LIMITS
from tests.support.tenancy import claimed_run, expire_leases, make_thread

FACT = "Nadia works as a veterinarian."


class Agent:
    """Calls the tools as the built-in agent does."""

    def __init__(self, tenants: TenantDatabase, run: ClaimedRun, limits: Any = LIMITS) -> None:
        self._database, self._run, self._limits = tenants, run, limits
        self.tools: dict[str, AgentTool] = {}

    async def call(self, tool: str, call_id: str = "call", **arguments: Any) -> ToolMessage:
        tools = memory_for_run(self._database, self._run, self._limits, None).tools
        token = site_of_call.set(CallSite("message", call_id))
        try:
            return await run_call(ToolCall(name=tool, args=arguments, id=call_id), tools, None)
        finally:
            site_of_call.reset(token)


@pytest.fixture
def agent(tenants: TenantDatabase, run: ClaimedRun) -> Agent:
    return Agent(tenants, run)


def said(message: ToolMessage) -> Any:
    assert message.status == "success", message.text
    return json.loads(message.text)


class TestWhatIsRemembered:
    async def test_comes_from_its_run_and_conversation(
        self, agent: Agent, memories: Memories, alice: Principal, run: ClaimedRun
    ) -> None:
        memory_id = UUID(said(await agent.call("remember", content=FACT))["memory_id"])
        memory = await memories.get(alice, memory_id)
        assert (memory.content, memory.run_id) == (FACT, run.run_id)
        assert memory.thread_id is not None

    async def test_still_comes_from_there_when_the_person_corrects_it(
        self, agent: Agent, memories: Memories, alice: Principal
    ) -> None:
        await agent.call("remember", content=FACT)
        ((memory,), _) = await memories.page(alice, limit=5, offset=0)
        edited = await memories.edit(alice, memory.memory_id, "Nadia is retired.")
        assert (edited.run_id, edited.thread_id) == (memory.run_id, memory.thread_id)
        written, _ = await memories.add(alice, "Written by herself.")
        assert (written.run_id, written.thread_id) == (None, None)

    async def test_comes_from_nowhere_once_the_conversation_is_deleted(
        self, agent: Agent, memories: Memories, alice: Principal, superuser: asyncpg.Connection
    ) -> None:
        await agent.call("remember", content=FACT)
        await superuser.execute("UPDATE threads SET deleted_at = now()")
        ((memory,), _) = await memories.page(alice, limit=5, offset=0)
        assert (memory.run_id, memory.thread_id) == (None, None)

    async def test_is_one_memory_though_the_call_is_made_again(
        self, agent: Agent, memories: Memories, alice: Principal
    ) -> None:
        first, again = [await agent.call("remember", content=FACT) for _ in range(2)]
        assert said(first)["memory_id"] == said(again)["memory_id"]
        assert (await memories.page(alice, limit=5, offset=0))[1] == 1

    async def test_stays_as_the_person_has_corrected_it_though_the_call_is_made_again(
        self, agent: Agent, memories: Memories, alice: Principal
    ) -> None:
        memory_id = UUID(said(await agent.call("remember", content=FACT))["memory_id"])
        await memories.edit(alice, memory_id, "Nadia is retired.")
        await agent.call("remember", content=FACT)
        ((memory,), total) = await memories.page(alice, limit=5, offset=0)
        assert (memory.content, total) == ("Nadia is retired.", 1)

    async def test_is_one_memory_though_it_is_said_in_two_conversations(
        self,
        agent: Agent,
        tenants: TenantDatabase,
        dispatch: DispatchDatabase,
        alice: Principal,
        memories: Memories,
    ) -> None:
        await agent.call("remember", content=FACT)
        other = await claimed_run(tenants, dispatch, alice, await make_thread(tenants, alice))
        answer = said(await Agent(tenants, other).call("remember", content=f" {FACT} "))
        assert answer["result"] == "This was known already."
        assert (await memories.page(alice, limit=5, offset=0))[1] == 1

    async def test_is_two_memories_where_a_model_numbers_no_calls(
        self, agent: Agent, memories: Memories, alice: Principal
    ) -> None:
        await agent.call("remember", call_id="", content=FACT)
        await agent.call("remember", call_id="", content="Another.")
        assert (await memories.page(alice, limit=5, offset=0))[1] == 2

    async def test_is_nothing_for_a_run_that_is_lost(
        self, agent: Agent, memories: Memories, alice: Principal, superuser: asyncpg.Connection
    ) -> None:
        kept, _ = await memories.add(alice, FACT)
        await expire_leases(superuser)
        for call in (
            await agent.call("remember", content="Too late."),
            await agent.call("forget", memory_id=str(kept.memory_id)),
        ):
            assert call.status == "error"
        assert await memories.page(alice, limit=5, offset=0) == ([kept], 1)

    @pytest.mark.parametrize("odd", ["\0", "\ud83d"])
    async def test_is_what_a_database_can_hold_of_it(
        self, agent: Agent, memories: Memories, alice: Principal, odd: str
    ) -> None:
        assert said(await agent.call("remember", content=f"{odd}{FACT}"))["result"] == "Remembered."
        ((memory,), _) = await memories.page(alice, limit=5, offset=0)
        assert memory.content.removeprefix("?") == FACT
        assert said(await agent.call("recall", query=f"Nadia{odd}"))
        assert "Forgotten" in (await agent.call("forget", what=f"{odd}{FACT}")).text

    async def test_is_no_more_than_fits(
        self, tenants: TenantDatabase, run: ClaimedRun, memories: Memories, alice: Principal
    ) -> None:
        answer = await Agent(tenants, run, {"memory_bytes": 50}).call("remember", content=FACT)
        assert answer.status == "error"
        assert "full" in answer.text
        assert (await memories.page(alice, limit=5, offset=0))[1] == 0


class TestWhatIsRecalled:
    async def test_is_what_answers_the_question(
        self, agent: Agent, memories: Memories, alice: Principal, bob: Principal
    ) -> None:
        memory, _ = await memories.add(alice, FACT)
        await memories.add(alice, "The harbour is closed.")
        await memories.add(bob, "Nadia is Bob's veterinarian.")
        (found,) = said(await agent.call("recall", query="Nadia's job as veterinarian"))
        assert (found["content"], found["memory_id"]) == (FACT, str(memory.memory_id))

    async def test_may_be_nothing(self, agent: Agent) -> None:
        assert said(await agent.call("recall", query="anything")) == []


class TestWhatIsForgotten:
    async def test_is_one_memory_by_its_id_or_its_words(
        self, agent: Agent, memories: Memories, alice: Principal
    ) -> None:
        memory, _ = await memories.add(alice, FACT)
        await memories.add(alice, "The harbour is closed.")
        assert (await agent.call("forget", memory_id=str(memory.memory_id))).status == "success"
        assert (await agent.call("forget", what="the harbour is closed")).status == "success"
        assert (await memories.page(alice, limit=5, offset=0))[1] == 0

    async def test_is_nothing_that_only_looks_like_it(
        self, agent: Agent, memories: Memories, alice: Principal
    ) -> None:
        memory, _ = await memories.add(alice, FACT)
        answer = await agent.call("forget", what="veterinarian")
        assert answer.status == "error"
        assert str(memory.memory_id) in answer.text
        assert (await memories.page(alice, limit=5, offset=0))[1] == 1

    async def test_is_nothing_of_somebody_elses(
        self, agent: Agent, memories: Memories, bob: Principal
    ) -> None:
        his, _ = await memories.add(bob, FACT)
        unknown = await agent.call("forget", memory_id=str(uuid4()))
        strangers = await agent.call("forget", memory_id=str(his.memory_id))
        assert strangers.text == unknown.text
        assert (await memories.page(bob, limit=5, offset=0))[1] == 1


class TestAModelThatWantsMore:
    @pytest.mark.parametrize(
        ("tool", "arguments"),
        [
            ("remember", {"content": FACT, "user_id": "somebody"}),
            ("remember", {"content": FACT, "namespace": ["memories"]}),
            ("remember", {"content": "x" * (MOST_CHARACTERS + 1)}),
            ("remember", {"content": ""}),
            ("remember", {"content": "   "}),
            ("remember", {}),
            ("recall", {"query": "a", "user_id": "somebody"}),
            ("recall", {"query": ""}),
            ("forget", {"memory_id": "*"}),
            ("forget", {}),
        ],
        ids=str,
    )
    async def test_is_told_what_is_wrong(
        self,
        agent: Agent,
        memories: Memories,
        alice: Principal,
        tool: str,
        arguments: dict[str, Any],
    ) -> None:
        answer = await agent.call(tool, **arguments)
        assert answer.status == "error"
        assert answer.text != "The tool failed."
        assert (await memories.page(alice, limit=5, offset=0))[1] == 0

    def test_is_offered_no_scope(self, tenants: TenantDatabase, run: ClaimedRun) -> None:
        tools = memory_for_run(tenants, run, LIMITS, None).tools
        assert {name: sorted(tool.tool.args) for name, tool in tools.items()} == {
            "remember": ["content"],
            "recall": ["query"],
            "forget": ["memory_id", "what"],
        }
