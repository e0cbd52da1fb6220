"""Calls on real seats: a server that fails is left out until it is well, and calls go elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from uuid import UUID

import asyncpg
import ollama
import pytest
from structlog.testing import capture_logs

from app.models.access import ModelAccess
from app.models.clients import patch_clients
from app.models.errors import ModelError
from app.models.scope import RunScope
from app.models.seats import SeatKeeper
from app.worker.tend import SeatTender
from tenancy.database.crossing import DispatchDatabase
from tenancy.database.signals import SEAT_GRANTED, Announcer, Listener
from tenancy.database.tenant import TenantDatabase
from tenancy.principal import Principal
from tenancy.scheduler.components import ComponentDatabase
from tenancy.scheduler.pools import PoolDatabase, PoolDeclaration
from tenancy.scheduler.seats import SeatDatabase
from tests.support.held_ports import held_port
from tests.support.model_server import Script, ScriptedModelServer
from tests.support.models import QUICK
from tests.support.tenancy import (
    MODEL,
    TestDatabase,
    claim_runs,
    make_thread,
    make_worker,
    queue_run,
)

SAID = "You said: hi"
WAIT_SECONDS = 0.3
PROBE_SECONDS = 0.05
COOLDOWN_SECONDS = 10.0
PATIENCE = 30.0


@dataclass
class Scheduler:
    """A worker's way to real seats."""

    tenants: TenantDatabase
    dispatch: DispatchDatabase
    seats: SeatDatabase
    pools: PoolDatabase
    components: ComponentDatabase
    superuser: asyncpg.Connection
    worker: UUID
    keeper: SeatKeeper
    access: ModelAccess

    async def declare(self, *servers: tuple[str, str], capacity: int = 2) -> None:
        """Have pools with these names at these addresses."""
        declared = [
            PoolDeclaration(name, url, url, None, MODEL, capacity, 1000, 500)
            for name, url in servers
        ]
        self.keeper.tell(await self.pools.declare(declared))

    @asynccontextmanager
    async def run_of(self, person: Principal) -> AsyncIterator[RunScope]:
        """Within, calls are those of a run of a person's."""
        await queue_run(self.tenants, person, await make_thread(self.tenants, person))
        (run,) = await claim_runs(self.dispatch, self.worker, 1)
        scope = RunScope(run, self.access)
        try:
            with scope.entered():
                yield scope
        finally:
            scope.close()
            await scope.ended(PATIENCE)

    @asynccontextmanager
    async def tended(self) -> AsyncIterator[None]:
        """Within, failing pools are probed."""
        tender = SeatTender(
            self.seats,
            self.pools,
            self.components,
            self.keeper,
            COOLDOWN_SECONDS,
            PROBE_SECONDS,
        )
        await tender.start()
        try:
            yield
        finally:
            await tender.stop()

    async def settled(self) -> None:
        """Wait until every seat is given back."""
        while giving_back := tuple(self.keeper._settling):
            await asyncio.wait(giving_back, timeout=PATIENCE)

    async def states(self) -> dict[str, tuple[str, str | None]]:
        """How each pool stands, and why."""
        rows = await self.superuser.fetch("SELECT pool, state, reason FROM pools")
        return {row["pool"]: (row["state"], row["reason"]) for row in rows}

    async def calls(self) -> int:
        """Calls that wait or have a seat."""
        return int(await self.superuser.fetchval("SELECT count(*) FROM model_calls"))

    @staticmethod
    async def until(look: Callable[[], Awaitable[object]], expected: object) -> None:
        """Look until it is so."""
        async with asyncio.timeout(PATIENCE):
            while await look() != expected:  # noqa: ASYNC110 - another process
                await asyncio.sleep(0)


@pytest.fixture
async def scheduler(
    database: TestDatabase,
    tenants: TenantDatabase,
    dispatch: DispatchDatabase,
    superuser: asyncpg.Connection,
) -> AsyncIterator[Scheduler]:
    patch_clients()
    seats = SeatDatabase(database.settings("dispatch"))
    pools = PoolDatabase(database.settings("dispatch"))
    components = ComponentDatabase(database.settings("dispatch"))
    worker = await make_worker(dispatch)
    keeper = SeatKeeper(worker, seats, {}, lambda call: None, WAIT_SECONDS)
    access = ModelAccess(keeper, replace(QUICK, first_byte_seconds=PATIENCE))
    try:
        yield Scheduler(
            tenants, dispatch, seats, pools, components, superuser, worker, keeper, access
        )
    finally:
        await access.aclose()
        await keeper.stop()
        await seats.close()
        await pools.close()
        await components.close()


@pytest.fixture
async def other() -> AsyncIterator[ScriptedModelServer]:
    async with ScriptedModelServer() as running:
        yield running


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address where no server is, unless the test starts one."""
    with held_port() as port:
        yield f"http://127.0.0.1:{port}"


async def ask(model: str = "smollm2") -> str:
    return (await ollama.AsyncClient().generate(model, "hi")).response or ""


async def code_of_failure() -> str:
    with pytest.raises(ModelError) as caught:
        await ask()
    return caught.value.code


class TestAPoolThatCannotBeReached:
    async def test_is_out_at_once_and_its_call_goes_to_another(
        self, scheduler: Scheduler, server: ScriptedModelServer, nobody: str, alice: Principal
    ) -> None:
        await scheduler.declare(("a", nobody), ("b", server.url))
        async with scheduler.run_of(alice):
            assert await ask() == SAID
            assert await scheduler.states() == {
                "a": ("failing", "unreachable"),
                "b": ("open", None),
            }
            assert await ask() == SAID

    async def test_is_named_in_the_log_though_nobodys_run_failed(
        self, scheduler: Scheduler, server: ScriptedModelServer, nobody: str, alice: Principal
    ) -> None:
        await scheduler.declare(("a", nobody), ("b", server.url))
        with capture_logs() as lines:
            async with scheduler.run_of(alice):
                assert await ask() == SAID
        (line,) = (each for each in lines if each["event"] == "a model server failed")
        assert (line["pool"], line["failure"]) == ("a", "unreachable")

    async def test_is_waited_for_a_while_if_there_is_no_other(
        self, scheduler: Scheduler, nobody: str, alice: Principal
    ) -> None:
        await scheduler.declare(("a", nobody))
        started = asyncio.get_running_loop().time()
        async with scheduler.run_of(alice):
            assert await code_of_failure() == "ollama_unreachable"
        assert asyncio.get_running_loop().time() - started >= WAIT_SECONDS
        await scheduler.settled()
        assert await scheduler.calls() == 0

    async def test_is_back_once_a_probe_finds_it_well_and_calls_that_wait_go_on(
        self, scheduler: Scheduler, nobody: str, alice: Principal
    ) -> None:
        await scheduler.declare(("a", nobody))
        scheduler.keeper._wait_seconds = 2 * PATIENCE
        port = int(nobody.rpartition(":")[2])
        async with scheduler.run_of(alice), scheduler.tended():
            asking = asyncio.create_task(ask())
            await scheduler.until(scheduler.states, {"a": ("failing", "unreachable")})
            async with ScriptedModelServer(port=port):
                assert await asking == SAID
        assert await scheduler.states() == {"a": ("open", None)}

    async def test_is_out_before_anybody_is_kept_waiting(
        self, scheduler: Scheduler, nobody: str
    ) -> None:
        await scheduler.declare(("a", nobody))
        async with scheduler.tended():
            await scheduler.until(scheduler.states, {"a": ("failing", "unreachable")})


class TestAPoolThatLacksTheModel:
    async def test_is_out_at_once_and_its_call_goes_to_another(
        self, scheduler: Scheduler, server: ScriptedModelServer, alice: Principal
    ) -> None:
        async with ScriptedModelServer(models=("something else",)) as bare:
            await scheduler.declare(("a", bare.url), ("b", server.url))
            async with scheduler.run_of(alice), scheduler.tended():
                assert await ask() == SAID
            assert (await scheduler.states())["a"] == ("failing", "model_missing")

    async def test_is_an_error_at_once_if_no_other_has_it(
        self, scheduler: Scheduler, alice: Principal
    ) -> None:
        async with ScriptedModelServer(models=()) as bare:
            await scheduler.declare(("a", bare.url))
            scheduler.keeper._wait_seconds = 2 * PATIENCE
            async with scheduler.run_of(alice), asyncio.timeout(PATIENCE):
                assert await code_of_failure() == "model_missing"
                assert await code_of_failure() == "model_missing"
            assert len(bare.requests) == 1

    async def test_is_waited_for_where_another_only_cannot_be_reached(
        self, scheduler: Scheduler, nobody: str, alice: Principal
    ) -> None:
        async with ScriptedModelServer(models=()) as bare:
            await scheduler.declare(("a", bare.url), ("b", nobody))
            async with scheduler.run_of(alice):
                assert await code_of_failure() == "ollama_unreachable"

    async def test_of_a_model_that_nobody_has_none_is_asked(
        self, scheduler: Scheduler, server: ScriptedModelServer, alice: Principal
    ) -> None:
        await scheduler.declare(("a", server.url))
        async with scheduler.run_of(alice):
            with pytest.raises(ModelError, match="not installed"):
                await ask("unheard-of")
        assert server.requests == []


class TestAPoolThatFails:
    @pytest.mark.parametrize(
        "script",
        [Script(status=500), Script(error_at=0), Script(error_at=1)],
        ids=["500", "error line", "error line in the middle"],
    )
    async def test_is_out_the_third_time_in_a_row(
        self,
        scheduler: Scheduler,
        server: ScriptedModelServer,
        script: Script,
        alice: Principal,
        bob: Principal,
    ) -> None:
        await scheduler.declare(("a", server.url))
        server.answer_with(script)
        for person, state in ((alice, "open"), (alice, "open"), (bob, "failing")):
            async with scheduler.run_of(person):
                assert await code_of_failure() == "model_failed"
                await scheduler.settled()
                assert await scheduler.states() == {"a": (state, "failed")}

    async def test_between_two_answers_stays(
        self, scheduler: Scheduler, server: ScriptedModelServer, alice: Principal
    ) -> None:
        await scheduler.declare(("a", server.url))
        async with scheduler.run_of(alice):
            for script in (Script(status=500), Script(status=500), Script()) * 2:
                server.enqueue(script)
                if script.status == 200:
                    assert await ask() == SAID
                else:
                    assert await code_of_failure() == "model_failed"
        await scheduler.settled()
        assert (await scheduler.states())["a"][0] == "open"

    async def test_in_mid_answers_that_are_cut_is_out_and_their_calls_go_to_another(
        self,
        scheduler: Scheduler,
        server: ScriptedModelServer,
        other: ScriptedModelServer,
        alice: Principal,
    ) -> None:
        await scheduler.declare(("a", server.url), ("b", other.url), capacity=8)
        server.answer_with(Script(cut_at=1))
        async with scheduler.run_of(alice):
            answers = await asyncio.gather(*(ask() for _ in range(14)), return_exceptions=True)
            assert SAID in answers
            assert {str(each) for each in answers} - {SAID} <= {
                "The connection to the model broke off in the middle of the answer. Try again."
            }
            await scheduler.settled()
            assert (await scheduler.states())["a"] == ("failing", "failed")
            assert await ask() == SAID

    @pytest.mark.parametrize(
        ("script", "code"),
        [
            (Script(status=503), "model_busy"),
            (Script(status=400), "model_tools_unsupported"),
            (Script(load_only=True), "model_empty"),
            (Script(error_at=0, error="error parsing tool call: raw='{'"), "model_malformed"),
        ],
        ids=["busy", "unsupported", "only loading", "tool call that cannot be read"],
    )
    async def test_only_for_one_call_or_for_a_moment_stays(
        self,
        scheduler: Scheduler,
        server: ScriptedModelServer,
        script: Script,
        code: str,
        alice: Principal,
    ) -> None:
        await scheduler.declare(("a", server.url))
        server.answer_with(script)
        async with scheduler.run_of(alice):
            for _ in range(3):
                assert await code_of_failure() == code
        await scheduler.settled()
        assert await scheduler.states() == {"a": ("open", None)}
        assert await scheduler.calls() == 0


class TestACallThatWaits:
    async def test_is_woken_when_the_seat_before_it_is_given_back(
        self, scheduler: Scheduler, server: ScriptedModelServer, alice: Principal
    ) -> None:
        await scheduler.declare(("a", server.url), capacity=1)
        server.enqueue(Script(stall_at=1))
        async with scheduler.run_of(alice):
            first = asyncio.create_task(ask())
            stalled = await server.wait_for_stall()
            second = asyncio.create_task(ask())
            await scheduler.until(scheduler.calls, 2)
            assert len(server.requests) == 1
            server.release(stalled)
            assert [await first, await second] == [SAID, SAID]
        assert server.most_running == 1

    async def test_for_the_seat_of_an_answer_that_is_just_being_read_gets_it(
        self, scheduler: Scheduler, server: ScriptedModelServer, alice: Principal
    ) -> None:
        await scheduler.declare(("a", server.url), capacity=1)
        async with scheduler.run_of(alice), asyncio.timeout(PATIENCE):
            parts = await ollama.AsyncClient().generate("smollm2", "hi", stream=True)
            asides = [await ask() async for _ in parts]
        assert set(asides) == {SAID}
        assert server.most_running == 1

    async def test_leaves_the_queue_at_once_when_its_run_ends(
        self, scheduler: Scheduler, server: ScriptedModelServer, alice: Principal, bob: Principal
    ) -> None:
        await scheduler.declare(("a", server.url), capacity=1)
        server.enqueue(Script(stall_at=1))
        async with scheduler.run_of(alice):
            holding = asyncio.create_task(ask())
            await server.wait_for_stall()
            async with scheduler.run_of(bob) as waiting:
                asking = asyncio.create_task(asyncio.to_thread(ollama.generate, "smollm2", "hi"))
                await scheduler.until(scheduler.calls, 2)
                waiting.close()
                with pytest.raises(ModelError, match="while a run is being executed"):
                    await asking
            await scheduler.until(scheduler.calls, 1)
            holding.cancel()
        assert len(server.requests) == 1

    async def test_that_was_cancelled_while_it_was_given_its_seat_gives_it_back(
        self, scheduler: Scheduler, server: ScriptedModelServer, alice: Principal
    ) -> None:
        await scheduler.declare(("a", server.url), capacity=1)
        async with scheduler.run_of(alice):
            for turns in range(1, 40):
                asking = asyncio.create_task(ask())
                for _ in range(turns):
                    await asyncio.sleep(0)
                asking.cancel()
                await asyncio.wait({asking})
            assert await ask() == SAID
        await scheduler.settled()
        assert await scheduler.calls() == 0


class TestTwoWorkers:
    @pytest.mark.parametrize("told", [True, False], ids=["told", "nobody told"])
    async def test_a_seat_that_one_gives_back_goes_to_a_call_that_waits_in_the_other(
        self,
        scheduler: Scheduler,
        server: ScriptedModelServer,
        database: TestDatabase,
        alice: Principal,
        bob: Principal,
        told: bool,
    ) -> None:
        await scheduler.declare(("a", server.url), capacity=1)
        server.enqueue(Script(stall_at=1))
        async with (
            asyncio.timeout(PATIENCE),
            another_worker(scheduler, database, told=told) as there,
            scheduler.run_of(alice),
        ):
            holding = asyncio.create_task(ask())
            stalled = await server.wait_for_stall()
            async with there.run_of(bob):
                waiting = asyncio.create_task(ask())
                await scheduler.until(scheduler.calls, 2)
                server.release(stalled)
                assert [await holding, await waiting] == [SAID, SAID]


@asynccontextmanager
async def another_worker(
    scheduler: Scheduler, database: TestDatabase, *, told: bool
) -> AsyncIterator[Scheduler]:
    """One that is told by the first of the seats that its calls are given, or is not."""
    worker = await make_worker(scheduler.dispatch)
    poll_seconds = 2 * PATIENCE if told else 0.05
    keeper = SeatKeeper(worker, scheduler.seats, {}, lambda call: None, WAIT_SECONDS, poll_seconds)
    access = ModelAccess(keeper, QUICK)
    announcer = Announcer(database.dsn("service"))
    listener = Listener(database.dsn("service"), {SEAT_GRANTED: keeper.hear})
    if told:
        scheduler.keeper._announce = announcer.seat_granted
    await announcer.start()
    await listener.start()
    try:
        yield replace(scheduler, worker=worker, keeper=keeper, access=access)
    finally:
        await listener.stop()
        await announcer.stop()
        await access.aclose()
        await keeper.stop()
