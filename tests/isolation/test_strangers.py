"""What exists for Alice is, to Bob, what never existed: the same exception, the same words."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID, uuid4

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import empty_checkpoint

from app.agent.graphs import AGENT, GraphCatalogue
from app.runs.cancelling import cancel_runs
from app.runs.deletion import delete_run, delete_thread
from app.runs.events import Event, append_events, read_log, settle_run
from app.runs.history import ThreadHistory
from app.runs.runs import RunRequest, create_run, get_run, list_runs
from app.runs.state_update import StateChange, StateUpdates
from app.runs.tail import RunTail
from app.runs.threads import (
    ThreadFilter,
    count_threads,
    create_thread,
    get_thread,
    search_threads,
    update_thread,
)
from app.settings import Settings
from tenancy.checkpoints.pool import CheckpointPool
from tenancy.checkpoints.state_saver import StateSaver
from tenancy.database.crossing import DispatchDatabase
from tenancy.database.tenant import TenantDatabase
from tenancy.errors import StoaError
from tenancy.principal import ClaimedRun, Principal
from tenancy.run_states import RunState
from tests.support.tenancy import ASSISTANT, TestDatabase, claimed_run, make_thread

DELETE_ROWS = "SELECT done FROM tenant.delete_thread_rows($1, $2, $3)"


async def said(work: Awaitable[Any]) -> tuple[type[BaseException], str, str] | Any:
    """What comes of it: a value, or an exception's kind, code and words."""
    try:
        return await work
    except StoaError as error:
        return type(error), error.code, str(error)


class Scene:
    """Alice's thread with a run under way; whatever Bob does with ids."""

    def __init__(
        self, tenants: TenantDatabase, pool: CheckpointPool, graphs: GraphCatalogue, tail: RunTail
    ) -> None:
        self.tenants = tenants
        self.history = ThreadHistory(tenants, pool, graphs)
        self.state_updates = StateUpdates(tenants, pool, graphs)
        self.tail = tail
        self._pool = pool

    async def read(self, person: Principal, work: Callable[..., Any], *args: Any) -> Any:
        async with self.tenants.reading(person) as tx:
            return await work(tx, *args)

    async def write(
        self, person: Principal, work: Callable[..., Any], *args: Any, **more: Any
    ) -> Any:
        async with self.tenants.writing(person) as tx:
            return await work(tx, *args, **more)

    async def follow(self, person: Principal, run_id: UUID) -> list[Any]:
        return [event async for event in self.tail.follow(person, run_id)]

    async def write_state(self, person: Principal, thread_id: UUID) -> None:
        saver = StateSaver(self._pool, self.tenants, person)
        config: RunnableConfig = {
            "configurable": {"thread_id": str(thread_id), "checkpoint_ns": ""}
        }
        await saver.aput(config, empty_checkpoint(), {"source": "update", "step": 0}, {})
        await saver.write(None)

    async def delete_rows(self, person: Principal, thread_id: UUID) -> None:
        """Deletes nothing, unless the thread is marked as deleted; then there is nothing more."""
        assert (await self.tenants.call(person, DELETE_ROWS, thread_id, 1))[0][0]


@pytest.fixture
async def scene(
    database: TestDatabase, tenants: TenantDatabase, checkpoints: CheckpointPool
) -> Scene:
    graphs = GraphCatalogue(Settings.model_validate({"model": "smollm2"}))
    tail = RunTail(tenants, database.dsn("service"))
    return Scene(tenants, checkpoints, graphs, tail)


@pytest.fixture
async def alices(
    tenants: TenantDatabase, dispatch: DispatchDatabase, alice: Principal
) -> tuple[UUID, ClaimedRun]:
    thread_id = await make_thread(tenants, alice)
    run = await claimed_run(tenants, dispatch, alice, thread_id)
    await append_events(tenants, run, 1, [Event("metadata", b"{}")])
    return thread_id, run


def deeds(scene: Scene, bob: Principal) -> dict[str, Callable[[UUID, UUID], Awaitable[Any]]]:
    """Everything that can be done with a thread's and a run's id."""
    run = RunRequest(input={"messages": ["hi"]})
    made: dict[str, Any] = {"assistant_id": ASSISTANT, "graph_id": AGENT, "request": run}
    return {
        "get_thread": lambda t, r: scene.read(bob, get_thread, t),
        "update_thread": lambda t, r: scene.write(bob, update_thread, t, metadata={"a": 1}),
        "delete_thread": lambda t, r: scene.write(bob, delete_thread, t),
        "delete_run": lambda t, r: scene.write(bob, delete_run, t, r),
        "delete_thread_rows": lambda t, r: scene.delete_rows(bob, t),
        "cancel_runs": lambda t, r: cancel_runs(scene.tenants, bob, run_ids=[r]),
        "cancel_runs of a thread": lambda t, r: cancel_runs(scene.tenants, bob, thread_id=t),
        "search_threads": lambda t, r: scene.read(bob, search_threads, ThreadFilter(ids=(t,))),
        "count_threads": lambda t, r: scene.read(bob, count_threads, ThreadFilter(ids=(t,))),
        "create_run": lambda t, r: create_run(scene.tenants, bob, thread_id=t, **made),
        "get_run": lambda t, r: scene.read(bob, get_run, t, r),
        "list_runs": lambda t, r: scene.read(bob, list_runs, t),
        "read_log": lambda t, r: read_log(scene.tenants, bob, r, 0),
        "follow": lambda t, r: scene.follow(bob, r),
        "append_events": lambda t, r: append_events(
            scene.tenants, ClaimedRun(bob.user_id, r, 1), 2, [Event("forged", b"{}")]
        ),
        "settle_run": lambda t, r: settle_run(
            scene.tenants, ClaimedRun(bob.user_id, r, 1), RunState.ERROR, 2, []
        ),
        "state": lambda t, r: scene.history.state(bob, t),
        "state at a checkpoint": lambda t, r: scene.history.state(bob, t, str(uuid4())),
        "change of state": lambda t, r: scene.state_updates.apply(bob, t, StateChange(None)),
        "rows of a change of state": lambda t, r: scene.write_state(bob, t),
        "history": lambda t, r: anext(scene.history.history(bob, t), None),
    }


class TestAnIdOfAlices:
    async def test_is_to_bob_as_one_that_never_was(
        self, scene: Scene, bob: Principal, alices: tuple[UUID, ClaimedRun]
    ) -> None:
        thread_id, run = alices
        for name, deed in deeds(scene, bob).items():
            with_hers = await said(deed(thread_id, run.run_id))
            with_nobodys = await said(deed(uuid4(), uuid4()))
            assert with_hers == with_nobodys, name
            if with_hers not in (None, 0, []):
                assert with_hers[1].endswith(("_not_found", "_lost")), name

    async def test_is_in_order_for_alice(
        self, scene: Scene, alice: Principal, alices: tuple[UUID, ClaimedRun]
    ) -> None:
        thread_id, run = alices
        last = (
            "delete_thread",
            "delete_run",
            "cancel_runs",
            "cancel_runs of a thread",
            "settle_run",
            "follow",
            "append_events",
            "state at a checkpoint",
        )
        for name, deed in deeds(scene, alice).items():
            if name not in last:
                found = await said(deed(thread_id, run.run_id))
                assert not (isinstance(found, tuple) and str(found[1]).endswith("_not_found")), name

    async def test_can_be_bobs_as_well(
        self,
        scene: Scene,
        alice: Principal,
        bob: Principal,
        alices: tuple[UUID, ClaimedRun],
    ) -> None:
        """Were it refused, Bob would learn that it exists."""
        thread_id, _ = alices
        theirs = await scene.write(bob, create_thread, thread_id=thread_id, metadata={"of": "bob"})
        assert theirs.thread_id == thread_id
        assert (await scene.read(alice, get_thread, thread_id)).metadata == {}
        await scene.write(bob, delete_thread, thread_id)
        assert (await scene.read(alice, get_thread, thread_id)).thread_id == thread_id

    async def test_leaves_her_run_as_it_was(
        self, scene: Scene, alice: Principal, bob: Principal, alices: tuple[UUID, ClaimedRun]
    ) -> None:
        thread_id, run = alices
        for deed in deeds(scene, bob).values():
            await said(deed(thread_id, run.run_id))
        page = await read_log(scene.tenants, alice, run.run_id, 0)
        assert page is not None
        assert (page.state, len(page.events)) == (RunState.RUNNING, 1)
