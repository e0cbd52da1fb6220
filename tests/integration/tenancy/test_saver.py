"""LangGraph's checkpoints: one user's, under one run's fence, and no trace of what errors say."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any, TypedDict
from uuid import UUID, uuid4

import asyncpg
import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import Checkpoint, empty_checkpoint
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import END, START, StateGraph

from app.agent.state import AgentState
from tenancy.checkpoints.pool import CheckpointPool, Fence
from tenancy.checkpoints.saver import TenantReader, TenantSaver
from tenancy.database.crossing import DispatchDatabase
from tenancy.database.tenant import TenantDatabase
from tenancy.errors import LeaseLost, RunTrespassed, UserUnavailable
from tenancy.principal import ClaimedRun, Principal
from tests.support.tenancy import (
    PATIENCE,
    claimed_run,
    expire_leases,
    make_thread,
    set_user_state,
)

CANARY = "the canary sings at midnight"
TABLES = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")


class Bench:
    """Savers for whoever asks, and what the failing ones told."""

    def __init__(
        self, pool: CheckpointPool, tenants: TenantDatabase, dispatch: DispatchDatabase
    ) -> None:
        self.pool = pool
        self.tenants = tenants
        self.dispatch = dispatch
        self.told: list[BaseException] = []
        self.threads: dict[UUID, UUID] = {}

    async def run(self, person: Principal, thread_id: UUID) -> ClaimedRun:
        run = await claimed_run(self.tenants, self.dispatch, person, thread_id)
        self.threads[run.run_id] = thread_id
        return run

    def step_ended(self) -> None:
        pass

    def committed(self) -> None:
        pass

    def failed(self, error: BaseException) -> None:
        self.told.append(error)

    def saver(self, run: ClaimedRun, fence: int | None = None) -> TenantSaver:
        held = Fence(run.run_id, run.fence if fence is None else fence)
        return TenantSaver(self.pool, self.tenants, run, held, self.threads[run.run_id], self)

    def reader(self, person: Principal) -> TenantReader:
        return TenantReader(self.pool, self.tenants, person)


@pytest.fixture
async def bench(
    checkpoints: CheckpointPool, tenants: TenantDatabase, dispatch: DispatchDatabase
) -> Bench:
    return Bench(checkpoints, tenants, dispatch)


def config(thread_id: UUID, checkpoint_id: str | None = None) -> Any:
    where = {"thread_id": str(thread_id), "checkpoint_ns": ""}
    if checkpoint_id:
        where["checkpoint_id"] = checkpoint_id
    return {"configurable": where}


def checkpoint(words: object, checkpoint_id: str | None = None) -> Checkpoint:
    made = empty_checkpoint()
    made["id"] = checkpoint_id or made["id"]
    made["channel_values"] = {"words": words}
    made["channel_versions"] = {"words": "1"}
    return made


async def put(saver: TenantSaver, thread_id: UUID, made: Checkpoint) -> Any:
    return await saver.aput(config(thread_id), made, {"step": 0}, {"words": "1"})


async def rows(superuser: asyncpg.Connection) -> int:
    counts = [await superuser.fetchval(f"SELECT count(*) FROM {table}") for table in TABLES]
    return int(sum(counts))


async def everything(superuser: asyncpg.Connection) -> str:
    """Every table's content as text; what is bytes, decoded as far as it goes."""
    tables = await superuser.fetch(
        "SELECT oid::regclass::text AS name FROM pg_class"
        " WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
    )
    seen: list[str] = []
    for table in tables:
        for row in await superuser.fetch(f"SELECT * FROM {table['name']}"):
            seen += [
                v.decode(errors="replace") if isinstance(v, bytes) else str(v) for v in row.values()
            ]
    return "\n".join(seen)


class TestTwoUsersWithTheSameIds:
    async def test_stay_apart(self, bench: Bench, alice: Principal, bob: Principal) -> None:
        thread_id, checkpoint_id = uuid4(), empty_checkpoint()["id"]
        for person, words in ((alice, ["alice's"]), (bob, ["bob's"])):
            await make_thread(bench.tenants, person, thread_id)
            saver = bench.saver(await bench.run(person, thread_id))
            await put(saver, thread_id, checkpoint(words, checkpoint_id))
            await saver.aput_writes(config(thread_id, checkpoint_id), [("words", words)], "task")
            await saver.close()
        for person, words in ((alice, ["alice's"]), (bob, ["bob's"])):
            found = await bench.reader(person).aget_tuple(config(thread_id))
            assert found is not None
            assert found.checkpoint["channel_values"] == {"words": words}
            assert [write[2] for write in found.pending_writes or ()] == [words]

    async def test_do_not_learn_of_each_other(
        self, bench: Bench, alice: Principal, bob: Principal
    ) -> None:
        thread_id = await make_thread(bench.tenants, alice)
        saver = bench.saver(await bench.run(alice, thread_id))
        made = checkpoint(["alice's"])
        await put(saver, thread_id, made)
        reader = bench.reader(bob)
        for thread in (thread_id, uuid4()):
            assert await reader.aget_tuple(config(thread)) is None
            assert await reader.aget_tuple(config(thread, made["id"])) is None
            assert [found async for found in reader.alist(config(thread))] == []
        assert [found async for found in reader.alist(None)] == []

    async def test_are_told_the_same_of_a_strangers_thread_and_of_none(
        self, bench: Bench, alice: Principal, bob: Principal
    ) -> None:
        hers = await make_thread(bench.tenants, alice)
        await put(bench.saver(await bench.run(alice, hers)), hers, checkpoint(["alice's"]))
        run = await bench.run(bob, await make_thread(bench.tenants, bob))
        said = []
        for thread_id in (hers, uuid4()):
            bench.threads[run.run_id] = thread_id  # or the saver would not even ask
            with pytest.raises(LeaseLost) as refused:
                await put(bench.saver(run), thread_id, checkpoint(["bob's"]))
            said.append((type(refused.value), refused.value.args[0]))
        assert said[0] == said[1]


class TestALostFence:
    async def test_stores_nothing_and_tells_the_run(
        self, bench: Bench, alice: Principal, superuser: asyncpg.Connection
    ) -> None:
        thread_id = await make_thread(bench.tenants, alice)
        run = await bench.run(alice, thread_id)
        for fence in (run.fence - 1, run.fence + 1):
            saver = bench.saver(run, fence)
            made = checkpoint(["late"])
            with pytest.raises(LeaseLost):
                await put(saver, thread_id, made)
            with pytest.raises(LeaseLost):
                await saver.aput_writes(config(thread_id, made["id"]), [("words", ["l"])], "task")
        assert await rows(superuser) == 0
        assert [type(error) for error in bench.told] == [LeaseLost] * 4

    async def test_is_lost_when_the_workers_lease_is_over(
        self, bench: Bench, alice: Principal, superuser: asyncpg.Connection
    ) -> None:
        thread_id = await make_thread(bench.tenants, alice)
        saver = bench.saver(await bench.run(alice, thread_id))
        await expire_leases(superuser)
        with pytest.raises(LeaseLost):
            await put(saver, thread_id, checkpoint(["late"]))
        assert await rows(superuser) == 0

    async def test_is_lost_when_the_run_was_reaped(
        self, bench: Bench, alice: Principal, superuser: asyncpg.Connection
    ) -> None:
        thread_id = await make_thread(bench.tenants, alice)
        saver = bench.saver(await bench.run(alice, thread_id))
        await expire_leases(superuser)
        await bench.dispatch.reap_expired_leases()
        with pytest.raises(LeaseLost):
            await put(saver, thread_id, checkpoint(["late"]))
        assert await rows(superuser) == 0

    async def test_is_the_fence_of_one_thread_only(
        self, bench: Bench, alice: Principal, superuser: asyncpg.Connection
    ) -> None:
        own = await make_thread(bench.tenants, alice)
        other = await make_thread(bench.tenants, alice)
        run = await bench.run(alice, own)
        with pytest.raises(RunTrespassed):
            await put(bench.saver(run), other, checkpoint(["elsewhere"]))
        bench.threads[run.run_id] = other  # the database's own guard
        with pytest.raises(LeaseLost):
            await put(bench.saver(run), other, checkpoint(["elsewhere"]))
        assert await rows(superuser) == 0

    async def test_a_deleted_thread_is_not_brought_back(
        self, bench: Bench, alice: Principal, superuser: asyncpg.Connection
    ) -> None:
        thread_id = await make_thread(bench.tenants, alice)
        saver = bench.saver(await bench.run(alice, thread_id))
        await put(saver, thread_id, checkpoint(["early"]))
        await superuser.execute("DELETE FROM threads")
        assert await rows(superuser) == 0
        with pytest.raises(LeaseLost):
            await put(saver, thread_id, checkpoint(["late"]))
        assert await rows(superuser) == 0
        assert bench.told

    async def test_nothing_is_stored_for_somebody_who_is_being_erased(
        self, bench: Bench, alice: Principal, superuser: asyncpg.Connection
    ) -> None:
        thread_id = await make_thread(bench.tenants, alice)
        saver = bench.saver(await bench.run(alice, thread_id))
        await set_user_state(superuser, alice.user_id, "erasing")
        with pytest.raises(UserUnavailable):
            await put(saver, thread_id, checkpoint(["late"]))
        assert await rows(superuser) == 0


class _HeldBack(JsonPlusSerializer):
    """Serialises a marked value only when it is let go: as slow as a large state may be."""

    def __init__(self) -> None:
        super().__init__()
        self.reached = threading.Event()
        self.go = threading.Event()

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        if obj == ["slow"]:
            self.reached.set()
            assert self.go.wait(PATIENCE)
        return super().dumps_typed(obj)


class TestWritesAtOnce:
    async def test_a_slow_checkpoint_survives_a_batch_that_left_before_it(
        self, bench: Bench, alice: Principal
    ) -> None:
        """The library serialises in a thread; other writes of the run are committed meanwhile."""
        thread_id = await make_thread(bench.tenants, alice)
        saver = bench.saver(await bench.run(alice, thread_id))
        saver.serde = held_back = _HeldBack()
        made = checkpoint(["slow"])
        writing = asyncio.create_task(put(saver, thread_id, made))
        assert await asyncio.to_thread(held_back.reached.wait, PATIENCE)
        await saver.aput_writes(config(thread_id, made["id"]), [("words", ["quick"])], "task")
        held_back.go.set()
        await writing
        found = await bench.reader(alice).aget_tuple(config(thread_id))
        assert found is not None
        assert found.checkpoint["channel_values"] == {"words": ["slow"]}
        assert [write[2] for write in found.pending_writes or ()] == [["quick"]]

    async def test_fifty_tasks_at_once_all_arrive(self, bench: Bench, alice: Principal) -> None:
        thread_id = await make_thread(bench.tenants, alice)
        saver = bench.saver(await bench.run(alice, thread_id))
        made = checkpoint(["start"])
        await asyncio.gather(
            put(saver, thread_id, made),
            *(
                saver.aput_writes(config(thread_id, made["id"]), [("words", [n])], f"task {n}")
                for n in range(50)
            ),
        )
        found = await bench.reader(alice).aget_tuple(config(thread_id))
        assert found is not None
        assert sorted(write[2][0] for write in found.pending_writes or ()) == list(range(50))


class TestClosing:
    async def test_waits_for_what_is_in_flight(self, bench: Bench, alice: Principal) -> None:
        thread_id = await make_thread(bench.tenants, alice)
        saver = bench.saver(await bench.run(alice, thread_id))
        saver.serde = held_back = _HeldBack()
        writing = asyncio.create_task(put(saver, thread_id, checkpoint(["slow"])))
        assert await asyncio.to_thread(held_back.reached.wait, PATIENCE)
        closing = asyncio.create_task(saver.close())
        done, _ = await asyncio.wait([closing], timeout=0.05)
        assert not done
        held_back.go.set()
        await closing
        assert await bench.reader(alice).aget_tuple(config(thread_id)) is not None
        await writing

    async def test_refuses_strays(
        self, bench: Bench, alice: Principal, superuser: asyncpg.Connection
    ) -> None:
        thread_id = await make_thread(bench.tenants, alice)
        saver = bench.saver(await bench.run(alice, thread_id))
        await saver.close()
        made = checkpoint(["stray"])
        with pytest.raises(LeaseLost):
            await put(saver, thread_id, made)
        with pytest.raises(LeaseLost):
            await saver.aput_writes(config(thread_id, made["id"]), [("words", ["s"])], "task")
        assert await rows(superuser) == 0
        assert bench.told == []


class TestReadingWithoutAFence:
    async def test_cannot_write(
        self, bench: Bench, alice: Principal, superuser: asyncpg.Connection
    ) -> None:
        thread_id = await make_thread(bench.tenants, alice)
        reader = bench.reader(alice)
        made = checkpoint(["forged"])
        refused: list[Callable[[], Any]] = [
            lambda: reader.aput(config(thread_id), made, {}, {"words": "1"}),
            lambda: reader.aput_writes(config(thread_id, made["id"]), [("words", ["f"])], "task"),
            lambda: reader.adelete_thread(str(thread_id)),
        ]
        for deed in refused:
            with pytest.raises(LeaseLost):
                await deed()
        assert await rows(superuser) == 0

    async def test_cannot_prune(
        self, bench: Bench, alice: Principal, superuser: asyncpg.Connection
    ) -> None:
        thread_id = await make_thread(bench.tenants, alice)
        await put(bench.saver(await bench.run(alice, thread_id)), thread_id, checkpoint(["kept"]))
        before = await rows(superuser)
        with pytest.raises(Exception, match="read-only transaction"):
            await bench.reader(alice).aprune([str(thread_id)], strategy="delete")
        assert await rows(superuser) == before > 0


class _Steps(TypedDict):
    words: list[str]


class TestAnExceptionInANode:
    async def test_leaves_no_word_of_its_own_in_the_database(
        self, bench: Bench, alice: Principal, superuser: asyncpg.Connection
    ) -> None:
        thread_id = await make_thread(bench.tenants, alice)
        run = await bench.run(alice, thread_id)
        graph, attempts = _failing_once()
        saver = bench.saver(run)
        told: Any = {**config(thread_id), "metadata": {"run_id": str(run.run_id)}}
        compiled: Any = graph.compile(checkpointer=saver)
        with pytest.raises(ValueError, match=CANARY):
            await compiled.ainvoke({"words": ["hello"]}, told, durability="sync")
        dump = await everything(superuser)
        assert CANARY not in dump
        assert "hello" in dump  # the dump does see what is stored
        state = await graph.compile(checkpointer=bench.reader(alice)).aget_state(config(thread_id))
        assert [str(task.error) for task in state.tasks] == ["ValueError"]

        again = await compiled.ainvoke({"words": ["hello"]}, told, durability="sync")
        assert (again, attempts) == ({"words": ["done"]}, [1, 2])
        await saver.close()


def _failing_once() -> tuple[StateGraph[Any, Any, Any, Any], list[int]]:
    attempts: list[int] = []

    async def work(state: _Steps) -> _Steps:
        attempts.append(len(attempts) + 1)
        if len(attempts) == 1:
            raise ValueError(CANARY)
        return {"words": ["done"]}

    graph = StateGraph(_Steps)
    graph.add_node("work", work)
    graph.add_edge(START, "work")
    graph.add_edge("work", END)
    return graph, attempts


class TestTheAgentsOwnState:
    """Its messages are kept as differences, which have SQL of their own."""

    @pytest.fixture
    async def talked(self, bench: Bench, alice: Principal) -> tuple[Any, UUID]:
        thread_id = await make_thread(bench.tenants, alice)
        saver = bench.saver(await bench.run(alice, thread_id))
        turns = iter(range(100))

        async def answer(state: AgentState) -> dict[str, Any]:
            return {"messages": [AIMessage(f"answer {next(turns)}", id=str(uuid4()))]}

        graph = StateGraph(AgentState)
        graph.add_node("model", answer)
        graph.add_edge(START, "model")
        graph.add_edge("model", END)
        compiled: Any = graph.compile(checkpointer=saver)
        for turn in range(30):
            await compiled.ainvoke(
                {"messages": [HumanMessage(f"turn {turn}", id=str(uuid4()))]},
                {**config(thread_id), "metadata": {"run_id": str(uuid4())}},
                durability="sync",
            )
        await saver.close()
        return graph.compile(checkpointer=bench.reader(alice)), thread_id

    async def test_reads_the_same_each_time(self, talked: tuple[Any, UUID]) -> None:
        graph, thread_id = talked
        states = [await graph.aget_state(config(thread_id)) for _ in range(3)]
        texts = [[message.content for message in s.values["messages"]] for s in states]
        assert texts[0] == [f"{who} {n}" for n in range(30) for who in ("turn", "answer")]
        assert texts[1:] == texts[:1] * 2

    async def test_lists_earlier_states_newest_first(self, talked: tuple[Any, UUID]) -> None:
        graph, thread_id = talked
        states = [s async for s in graph.aget_state_history(config(thread_id), limit=7)]
        lengths = [len(state.values["messages"]) for state in states]
        assert lengths == sorted(lengths, reverse=True)
        assert lengths[0] == 60
        assert len(lengths) == 7

    async def test_is_nobody_elses(
        self, talked: tuple[Any, UUID], bench: Bench, bob: Principal
    ) -> None:
        graph, thread_id = talked
        bobs = graph.copy(update={"checkpointer": bench.reader(bob)})
        assert (await bobs.aget_state(config(thread_id))).values in ({}, {"messages": []})
        assert [s async for s in bobs.aget_state_history(config(thread_id))] == []
