"""Old states of a thread go; what is left reads as before, and can be gone on and forked from."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from operator import add
from typing import Annotated, Any, TypedDict
from uuid import uuid4

import asyncpg
import pytest
from langchain_core.messages import AnyMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages

from app.agent.state import fold_messages
from app.runs.events import settle_run
from app.runs.runs import RunRequest, create_run
from tenancy.checkpoints.pool import CheckpointPool
from tenancy.checkpoints.saver import TenantReader, TenantSaver
from tenancy.checkpoints.state_saver import StateSaver
from tenancy.database.crossing import DispatchDatabase
from tenancy.database.tenant import TenantDatabase
from tenancy.errors import ThreadBusy
from tenancy.principal import Principal
from tenancy.run_states import RunState
from tests.integration.tenancy.conversation import TABLES, Conversation
from tests.support.tenancy import ASSISTANT, PATIENCE, make_thread

PRUNE = "SELECT dropped, done FROM tenant.prune_checkpoints($1, $2, $3, $4)"
DAY = 24 * 3600.0
MONTH = 30 * DAY


class Delta(TypedDict):
    """The built-in agent's kind of state, with a copy of it all at every third change."""

    messages: Annotated[list[AnyMessage], DeltaChannel(fold_messages, snapshot_frequency=3)]


class Whole(TypedDict):
    """An operator's graph as most are: each state holds everything again."""

    messages: Annotated[list[AnyMessage], add_messages]
    turns: Annotated[int, add]


def joined(words: list[str], updates: Any) -> list[str]:
    """Append updates, one after the other."""
    return [*words, *(word for update in updates for word in update)]


def joined_once(words: list[str], update: list[str]) -> list[str]:
    """Append an update."""
    return [*words, *update]


class OutOfStep(TypedDict):
    """Two channels that are stored as deltas, copied whole at different times."""

    messages: Annotated[list[AnyMessage], DeltaChannel(fold_messages, snapshot_frequency=3)]
    words: Annotated[list[str], DeltaChannel(joined, snapshot_frequency=2)]


class DeltaTalk(Conversation):
    """A graph of deltas within a graph of deltas; the inner one begins anew with every call."""

    said = "abcde"
    state: Any = Delta
    inner_state: Any = None
    inner_saver: Any = None

    def graph(self, saver: Any) -> Any:
        inner = StateGraph(self.inner_state or self.state)
        inner.add_node("answer", self._answer)
        inner.add_edge(START, "answer")
        inner.add_edge("answer", END)
        graph = StateGraph(self.state)
        graph.add_node("model", inner.compile(checkpointer=self.inner_saver))
        graph.add_edge(START, "model")
        graph.add_edge("model", END)
        return graph.compile(checkpointer=saver)

    async def _answer(self, state: Any) -> dict[str, Any]:
        return await super()._answer(state)


class WholeTalk(DeltaTalk):
    """Every state whole."""

    state = Whole

    async def _answer(self, state: Any) -> dict[str, Any]:
        return {**await super()._answer(state), "turns": 1}


class OutOfStepTalk(DeltaTalk):
    """The sixth turn's state is the first one that holds both channels whole."""

    state = OutOfStep
    said = "abcdefg"

    async def _answer(self, state: Any) -> dict[str, Any]:
        return {**await super()._answer(state), "words": [str(len(state["messages"]))]}


class Remembering(TypedDict):
    """What only the inner graph knows: how often it was called."""

    messages: Annotated[list[AnyMessage], add_messages]
    remembered: Annotated[list[str], joined_once]


class Noting(TypedDict):
    """The same, stored as deltas, and never whole."""

    messages: Annotated[list[AnyMessage], add_messages]
    remembered: Annotated[list[str], DeltaChannel(joined, snapshot_frequency=50)]


class RememberingTalk(WholeTalk):
    """What the inner graph holds outlives its calls."""

    inner_state: Any = Remembering
    inner_saver = True

    async def _answer(self, state: Any) -> dict[str, Any]:
        self.remembered = list(state.get("remembered", []))
        said = await Conversation._answer(self, state)
        return {**said, "remembered": [str(state["messages"][-1].content)]}


class NotingTalk(RememberingTalk):
    """So does this, and it is stored as deltas."""

    inner_state = Noting


KINDS = [DeltaTalk, WholeTalk, OutOfStepTalk, RememberingTalk, NotingTalk]
every_kind = pytest.mark.parametrize("kind", KINDS, ids=[kind.__name__ for kind in KINDS])

Begin = Callable[[type[DeltaTalk]], Any]


@pytest.fixture
def begin(
    checkpoints: CheckpointPool,
    tenants: TenantDatabase,
    dispatch: DispatchDatabase,
    superuser: asyncpg.Connection,
    alice: Principal,
    bob: Principal,
) -> Begin:
    """A thread of Alice's; Bob has one with the same id, whose only turn is as old."""

    async def begun(kind: type[DeltaTalk]) -> DeltaTalk:
        thread_id = uuid4()
        talks = []
        for person in (bob, alice):
            await make_thread(tenants, person, thread_id)
            talks.append(kind(checkpoints, tenants, dispatch, superuser, person, thread_id))
        await talks[0].say("hello")
        return talks[1]

    return begun


async def age(talk: Conversation, seconds: float = 2 * MONTH) -> None:
    """Let all that there is be so old."""
    for table, column in (("checkpoints", "created_at"), ("threads", "unpruned_since")):
        await talk.superuser.execute(
            f"UPDATE {table} SET {column} = {column} - make_interval(secs => $1)", seconds
        )


async def prune(talk: Conversation, *, rows: int = 1000, older_than: float = MONTH) -> list[int]:
    """Prune to the end; how many rows went with each batch."""
    batches, done = [], False
    while not done:
        ((dropped, done),) = await talk.tenants.call(
            talk.person, PRUNE, talk.thread_id, older_than, rows
        )
        batches.append(dropped)
    return batches


async def states(talk: Conversation) -> dict[str, Any]:
    """Every state that the thread's history shows, with those of the graph within."""
    graph = talk.graph(TenantReader(talk.pool, talk.tenants, talk.person))
    found = {}
    async for each in graph.aget_state_history(talk.config):
        whole = await graph.aget_state(each.config, subgraphs=True)
        found[each.config["configurable"]["checkpoint_id"]] = (
            {key: str(value) for key, value in each.values.items()},
            each.next,
            [str(task.state.values) for task in whole.tasks if task.state],
        )
    return found


async def others(talk: Conversation) -> list[tuple[Any, ...]]:
    """What everybody else has."""
    rows = (await talk.rows())["checkpoints"]
    return [row for row in rows if row[0] != talk.person.user_id]


async def count(talk: Conversation) -> int:
    rows = await talk.rows()
    return sum(len(rows[table]) for table in TABLES)


async def turns(talk: Conversation, *said: str) -> None:
    for each in said:
        await talk.say(each)


class TestAThreadWhoseOldStatesArePruned:
    @every_kind
    async def test_reads_as_before_in_all_that_is_left_after_every_batch(
        self, kind: type[DeltaTalk], begin: Begin
    ) -> None:
        talk = await begin(kind)
        await turns(talk, *talk.said)
        await age(talk)
        await talk.say("young")
        before, messages, bobs = await states(talk), await talk.messages(), await others(talk)
        left, done = before, False
        while not done:
            ((dropped, done),) = await talk.tenants.call(
                talk.person, PRUNE, talk.thread_id, MONTH, 40
            )
            left = await states(talk)
            assert left == {each: before[each] for each in left}
            assert await talk.messages() == messages
            assert dropped <= 40
        assert len(left) < len(before)
        assert set(sorted(before)[-3:]) <= set(left), "the turn that is young is there, whole"
        rows = await talk.rows()
        assert await prune(talk) == [0]
        assert await talk.rows() == rows
        assert await others(talk) == bobs

    async def test_is_pruned_whatever_a_client_has_put_beside_its_states(
        self, begin: Begin
    ) -> None:
        talk = await begin(WholeTalk)
        await turns(talk, *talk.said)
        await talk.superuser.execute(
            "UPDATE checkpoints SET metadata ="
            """ metadata || '{"counters_since_delta_snapshot": 5, "parents": "none"}'"""
        )
        await age(talk)
        assert sum(await prune(talk)) > 0

    @every_kind
    async def test_goes_on_from_where_it_was_and_is_forked_from_whatever_is_left(
        self, kind: type[DeltaTalk], begin: Begin
    ) -> None:
        talk = await begin(kind)
        await turns(talk, *talk.said)
        await age(talk)
        messages, before = await talk.messages(), await states(talk)
        await prune(talk)
        left = await states(talk)
        await talk.say("on")
        assert await talk.messages() == [*messages, "on", "to on"]
        assert talk.prompts[-1] == [*messages, "on"]
        for checkpoint_id in left:
            saver = StateSaver(talk.pool, talk.tenants, talk.person)
            head = await saver.aget_tuple(talk.config)
            assert head is not None
            config = {"configurable": {**talk.config["configurable"]}}
            config["configurable"]["checkpoint_id"] = checkpoint_id
            forked = await talk.graph(saver).aupdate_state(config, {"messages": []}, "model")
            await saver.write(head.config["configurable"]["checkpoint_id"])
            now = (await talk.graph(saver).aget_state(forked)).values
            assert str(now["messages"]) == before[checkpoint_id][0].get("messages", "[]")

    @pytest.mark.parametrize("kind", [RememberingTalk, NotingTalk])
    async def test_answers_anew_with_what_the_graph_within_knew_then(
        self, kind: type[RememberingTalk], begin: Begin
    ) -> None:
        talk = await begin(kind)
        await turns(talk, *talk.said)
        await age(talk)
        assert sum(await prune(talk)) > 0
        left = await states(talk)
        before_the_answer = max(each for each, (_, to_do, _) in left.items() if to_do == ("model",))
        run = await talk.claim()
        await talk.turn(run, None, TenantSaver, before_the_answer)
        assert talk.remembered == list(talk.said[:-1])

    async def test_keeps_a_graph_of_whole_states_to_its_last_turn(self, begin: Begin) -> None:
        talk = await begin(WholeTalk)
        await turns(talk, "a")
        once = await count(talk)
        await turns(talk, *"bcde")
        await age(talk)
        last_turn = sorted(await states(talk))[-4:]
        await prune(talk)
        assert sorted(await states(talk)) == last_turn
        assert await count(talk) <= once + 5, "the last turn, and the state that it began from"
        assert await talk.superuser.fetchval(
            "SELECT count(*) = 0 FROM checkpoints c WHERE parent_checkpoint_id IS NOT NULL"
            " AND NOT EXISTS (SELECT FROM checkpoints p WHERE p.user_id = c.user_id"
            " AND p.thread_id = c.thread_id AND p.checkpoint_ns = c.checkpoint_ns"
            " AND p.checkpoint_id = c.parent_checkpoint_id)"
        )


class TestAThreadThatARunHolds:
    async def test_is_left_as_it_is(self, begin: Begin) -> None:
        talk = await begin(DeltaTalk)
        await turns(talk, *"abcde")
        run = await talk.claim()
        await talk.turn(run, "i", TenantSaver)
        await age(talk)
        rows = await talk.rows()
        for state, sql in (("running", ""), ("waiting", "state = 'waiting', worker_id = NULL")):
            if sql:
                await talk.superuser.execute(f"UPDATE runs SET {sql} WHERE run_id = $1", run.run_id)
            assert await prune(talk) == [0], state
        assert await talk.rows() == rows

    async def test_that_waits_in_the_queue_too(self, begin: Begin) -> None:
        talk = await begin(DeltaTalk)
        await turns(talk, *"abcde")
        await create_run(
            talk.tenants,
            talk.person,
            thread_id=talk.thread_id,
            assistant_id=ASSISTANT,
            graph_id="agent",
            request=RunRequest(input={}),
        )
        await age(talk)
        assert await prune(talk) == [0]

    async def test_is_pruned_once_it_has_ended(self, begin: Begin) -> None:
        talk = await begin(DeltaTalk)
        await turns(talk, *"abcde")
        run = await talk.claim()
        await talk.turn(run, "i", TenantSaver)
        await settle_run(talk.tenants, run, RunState.SUCCESS, 1, [])
        await age(talk)
        assert sum(await prune(talk)) > 0


class TestAChangeOfAStateThatIsPrunedMeanwhile:
    async def test_is_refused(self, begin: Begin) -> None:
        talk = await begin(WholeTalk)
        await turns(talk, *"abcde")
        oldest = min(await states(talk))
        saver = StateSaver(talk.pool, talk.tenants, talk.person)
        head = await saver.aget_tuple(talk.config)
        assert head is not None
        config = {"configurable": {**talk.config["configurable"], "checkpoint_id": oldest}}
        await talk.graph(saver).aupdate_state(config, {"messages": []}, "model")
        await age(talk)
        await prune(talk)
        assert oldest not in await states(talk)
        with pytest.raises(ThreadBusy):
            await saver.write(head.config["configurable"]["checkpoint_id"])


class TestWhenToLook:
    async def test_a_thread_without_anything_old_is_not_looked_at(self, begin: Begin) -> None:
        talk = await begin(WholeTalk)
        await turns(talk, *"ab")
        assert await prune(talk) == [0]
        assert await talk.superuser.fetchval(
            "SELECT bool_and(unpruned_since IS NOT NULL) FROM threads"
        )

    async def test_one_that_was_looked_at_is_again_once_more_of_it_is_old(
        self, begin: Begin
    ) -> None:
        talk = await begin(WholeTalk)
        await turns(talk, *"abc")
        await age(talk)
        await turns(talk, *"d")
        assert sum(await prune(talk)) > 0
        since = "SELECT unpruned_since FROM threads WHERE user_id = $1"
        young = await talk.superuser.fetchval(since, talk.person.user_id)
        assert young == await talk.superuser.fetchval(
            "SELECT min(created_at) FROM checkpoints"
            " WHERE user_id = $1 AND created_at > now() - interval '30 days'",
            talk.person.user_id,
        )
        await age(talk)
        await prune(talk)
        assert await talk.superuser.fetchval(since, talk.person.user_id) is None
        await talk.say("e")
        assert await talk.superuser.fetchval(since, talk.person.user_id) is not None

    async def test_two_workers_at_once_do_not_wait_for_each_other(self, begin: Begin) -> None:
        talk = await begin(DeltaTalk)
        await turns(talk, *"abcde")
        await age(talk)
        async with talk.superuser.transaction():
            await talk.superuser.execute(
                "SELECT FROM threads WHERE user_id = $1 FOR NO KEY UPDATE", talk.person.user_id
            )
            async with asyncio.timeout(PATIENCE):
                assert await prune(talk) == [0]
        assert sum(await prune(talk)) > 0
