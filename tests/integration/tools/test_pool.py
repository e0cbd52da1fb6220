"""Connections to tool servers: shared by nobody they are not for, and closed under nobody."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psutil
import pytest
from prometheus_client import CollectorRegistry, generate_latest
from structlog.testing import capture_logs

from app.tools.pool import breaker
from app.tools.pool.admission import PoolLimits
from app.tools.pool.breaker import REST_AFTER
from app.tools.pool.failures import Reason, ToolServerUnavailable
from app.tools.pool.pool import ToolPool
from app.tools.servers import Credential, McpServer, Scope
from app.tools.stdio import child
from app.worker.metrics import MeasuredTools
from tenancy.principal import UserId
from tests.support.tool_servers.pools import (
    NO_CREDENTIAL,
    SECONDS,
    Footprint,
    called,
    impatient,
    once,
    quick,
    running_pool,
    said,
    somebody,
    text_of,
    until,
    until_nothing_more_than,
)


@pytest.fixture
async def pool(tmp_path: Path) -> AsyncIterator[ToolPool]:
    async with running_pool(tmp_path) as pool:
        yield pool


@pytest.fixture(autouse=True)
def short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """With servers that hang, once their input is closed."""
    monkeypatch.setattr(child, "INPUT_CLOSED_SECONDS", 0.1)
    monkeypatch.setattr(child, "KILLED_SECONDS", SECONDS)


@pytest.fixture(scope="module", autouse=True)
def others_told() -> None:
    """What the tests of other files have left is told of before it is taken for what these did."""
    gc.collect()


@pytest.fixture(autouse=True)
def quiet_logs(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Whatever happens to connections, nothing that their tasks did wrong is in a log."""
    yield
    gc.collect()  # what nobody asked after is told of when it goes
    logged = " ".join(record.getMessage() + str(record.exc_info) for record in caplog.records)
    for wrong in ("cancel scope", "never retrieved", "Task was destroyed", "Traceback"):
        assert wrong not in logged


async def pid(pool: ToolPool, owner: UserId, server: McpServer, version: int = 0) -> int:
    async with pool.lease(owner, server, Credential(version=version)) as connection:
        return int(json.loads(await said(connection, "whoami"))["pid"])


async def in_a_call(pool: ToolPool, owner: UserId, server: McpServer) -> asyncio.Task[str]:
    """A call under way that does not end by itself."""
    asleep = Path(json.loads(await once(pool, owner, server, "whoami"))["folder"]) / "asleep"
    task = asyncio.create_task(once(pool, owner, server, "sleep"))
    await until(asleep.exists)
    asleep.unlink()
    return task


class TestSharing:
    async def test_fifty_users_of_a_stateful_server_share_nothing(self, tmp_path: Path) -> None:
        # Given fifty people, more than there may be connections for at once
        people = [somebody() for _ in range(50)]
        limits = PoolLimits(total=20)

        # When each of them notes something of their own, all at the same time, twice
        async def noting(pool: ToolPool, owner: UserId, text: str) -> tuple[str, list[str], str]:
            async with pool.lease(owner, quick(), NO_CREDENTIAL) as connection:
                about = json.loads(await said(connection, "whoami"))
                notes, file = json.loads(await said(connection, "note", text=text))
                return about["folder"], notes, file

        async with running_pool(tmp_path, limits=limits) as pool:
            first = await asyncio.gather(*(noting(pool, each, f"{each} 1") for each in people))
            second = await asyncio.gather(*(noting(pool, each, f"{each} 2") for each in people))

        # Then nobody has seen a process, a folder or a note of anybody else's
        assert len({folder for folder, _, _ in first}) == len(people)
        for owner, (_, notes, file) in zip(people, first, strict=True):
            assert notes == [f"{owner} 1"]
            assert file == f"{owner} 1\n"
        for owner, (_, notes, file) in zip(people, second, strict=True):
            assert set(notes) <= {f"{owner} 1", f"{owner} 2"}
            assert file == f"{owner} 1\n{owner} 2\n"

    async def test_one_users_calls_go_over_one_connection(self, pool: ToolPool) -> None:
        owner = somebody()
        found = await asyncio.gather(*(pid(pool, owner, quick()) for _ in range(10)))
        assert len(set(found)) == 1

    async def test_a_shared_server_is_everybodys(self, pool: ToolPool) -> None:
        server = quick(scope=Scope.SHARED)
        assert await pid(pool, somebody(), server) == await pid(pool, somebody(), server)

    async def test_another_configuration_or_credential_is_another_connection(
        self, pool: ToolPool
    ) -> None:
        owner = somebody()
        first = await pid(pool, owner, quick())
        other = await pid(pool, owner, quick(env={"A": "b"}))
        newer = await pid(pool, owner, quick(env={"A": "b"}), version=1)
        assert len({first, other, newer}) == 3
        # and what was there before goes, once nobody uses it
        await until(lambda: pool.open_connections == 1)

    async def test_an_outdated_connection_is_kept_for_whoever_uses_it(self, pool: ToolPool) -> None:
        owner = somebody()
        async with pool.lease(owner, quick(), NO_CREDENTIAL) as old:
            await pid(pool, owner, quick(), version=1)
            assert text_of(await called(old, "whoami"))
        await until(lambda: pool.open_connections == 1)


class TestWaiting:
    async def test_whoever_stops_waiting_leaves_the_others_their_connection(
        self, pool: ToolPool
    ) -> None:
        owner = somebody()
        waiting = [asyncio.create_task(pid(pool, owner, quick())) for _ in range(5)]
        await until(lambda: pool.open_connections == 1)
        waiting[0].cancel()
        found = await asyncio.gather(*waiting, return_exceptions=True)
        assert isinstance(found[0], asyncio.CancelledError)
        assert len(set(found[1:])) == 1

    async def test_cancelling_a_call_ends_no_other(self, pool: ToolPool) -> None:
        mine, theirs = somebody(), somebody()
        task = await in_a_call(pool, mine, quick())
        before = await pid(pool, theirs, quick())
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await pid(pool, theirs, quick()) == before


class TestTimeouts:
    @pytest.mark.parametrize(
        ("behaviour", "limits"),
        [("hang-connect", {"connect": 0.5}), ("hang-list", {"listing": 0.2})],
        ids=["connect", "list"],
    )
    async def test_a_server_that_hangs_is_given_up(
        self, pool: ToolPool, behaviour: str, limits: dict[str, float]
    ) -> None:
        server = quick(behaviour, timeouts=impatient(**limits))
        with pytest.raises(ToolServerUnavailable) as caught:
            await once(pool, somebody(), server, "note")
        assert caught.value.reason == Reason.TIMEOUT
        await until(lambda: pool.open_connections == 0)

    async def test_a_call_that_hangs_is_given_up(self, pool: ToolPool) -> None:
        async with pool.lease(somebody(), quick(), NO_CREDENTIAL) as connection:
            with pytest.raises(TimeoutError):
                await connection.call("sleep", {}, meta={}, seconds=0.1)

    async def test_a_server_that_is_killed_in_mid_call_is_told_of_at_once(
        self, pool: ToolPool
    ) -> None:
        owner = somebody()
        task = await in_a_call(pool, owner, quick())
        os.kill(await self._process_of(pool), signal.SIGKILL)
        with pytest.raises(ToolServerUnavailable) as caught:
            await task
        assert caught.value.reason == Reason.EXITED
        assert await pid(pool, owner, quick())

    @staticmethod
    async def _process_of(pool: ToolPool) -> int:
        (connection,) = pool._tasks
        assert connection.pid is not None
        return connection.pid


class TestBreaker:
    @pytest.fixture(autouse=True)
    def long_rest(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Longer than it takes to ask again."""
        monkeypatch.setattr(breaker, "REST_SECONDS", 300.0)

    async def test_a_server_that_fails_again_and_again_is_left_alone(self, pool: ToolPool) -> None:
        owner, server = somebody(), quick("exit-at-once")
        reasons = []
        for _ in range(REST_AFTER + 1):
            with pytest.raises(ToolServerUnavailable) as caught:
                await once(pool, owner, server, "note")
            reasons.append(caught.value.reason)
        assert reasons == [Reason.EXITED] * REST_AFTER + [Reason.RESTING]

    async def test_one_that_dies_in_every_call_is_left_alone(self, pool: ToolPool) -> None:
        owner = somebody()
        for _ in range(REST_AFTER):
            with pytest.raises(ToolServerUnavailable):
                await once(pool, owner, quick(), "die")
        with pytest.raises(ToolServerUnavailable) as caught:
            await once(pool, owner, quick(), "whoami")
        assert caught.value.reason == Reason.RESTING

    async def test_it_is_not_left_alone_for_anybody_else(self, pool: ToolPool) -> None:
        owner = somebody()
        for _ in range(REST_AFTER):
            with pytest.raises(ToolServerUnavailable):
                await once(pool, owner, quick(), "die")
        assert await pid(pool, somebody(), quick())

    async def test_a_person_who_connects_anew_is_not_kept_waiting(self, pool: ToolPool) -> None:
        owner = somebody()
        for _ in range(REST_AFTER):
            with pytest.raises(ToolServerUnavailable):
                await once(pool, owner, quick(), "die")
        pool.forget(owner, "quick")
        assert await pid(pool, owner, quick())


class TestForgetting:
    async def test_ends_calls_under_way_and_opens_anew(self, pool: ToolPool) -> None:
        owner = somebody()
        first = await pid(pool, owner, quick())
        task = await in_a_call(pool, owner, quick())
        pool.forget(owner, "quick")
        with pytest.raises(ToolServerUnavailable) as caught:
            await task
        assert caught.value.reason == Reason.CLOSED
        assert await pid(pool, owner, quick()) != first

    async def test_ends_what_is_being_opened(self, pool: ToolPool) -> None:
        owner = somebody()
        waiting = asyncio.create_task(once(pool, owner, quick("hang-connect"), "note"))
        await until(lambda: pool.open_connections == 1)
        pool.forget(owner, "quick")
        with pytest.raises(ToolServerUnavailable) as caught:
            await waiting
        assert caught.value.reason == Reason.CLOSED
        await until(lambda: pool.open_connections == 0)

    @pytest.mark.parametrize("heard", [True, False])
    async def test_leaves_nobody_waiting_who_would_open_with_what_is_over(
        self, tmp_path: Path, heard: bool
    ) -> None:
        owner = somebody()
        async with running_pool(tmp_path, limits=PoolLimits(per_user=1)) as pool:
            async with pool.lease(owner, quick(name="a"), NO_CREDENTIAL):
                waiting = asyncio.create_task(pid(pool, owner, quick(name="b"), version=1))
                other = asyncio.create_task(pid(pool, owner, quick(name="c")))
                await asyncio.sleep(0)
                if heard:
                    pool.forget(owner, "b")
                else:
                    pool.let_go(owner, "b")
            with pytest.raises(ToolServerUnavailable) as ended:
                await waiting
            assert ended.value.reason == Reason.CLOSED
            assert await other

    async def test_leaves_everybody_elses(self, pool: ToolPool) -> None:
        mine, theirs = somebody(), somebody()
        before = await pid(pool, theirs, quick())
        pool.forget(mine, "quick")
        assert await pid(pool, theirs, quick()) == before


class TestDropping:
    async def test_ends_all_of_somebodys_children_and_calls_and_nobody_elses(
        self, pool: ToolPool
    ) -> None:
        leaver, other = somebody(), somebody()
        servers = [quick(name="a"), quick("deaf", name="b")]
        own = [await pid(pool, leaver, server) for server in servers]
        task = await in_a_call(pool, leaver, servers[0])
        theirs = await pid(pool, other, quick())
        assert pool.owners == {leaver, other}
        await pool.drop(leaver, for_good=True)
        # Then nothing of it is left by the time that it returns
        assert not [each for each in own if psutil.pid_exists(each)]
        assert pool.owners == {other}
        assert await pid(pool, other, quick()) == theirs
        with pytest.raises(ToolServerUnavailable):
            await task

    async def test_lets_nobody_open_anything_for_somebody_who_leaves(self, pool: ToolPool) -> None:
        leaver, suspended = somebody(), somebody()
        waiting = asyncio.create_task(once(pool, leaver, quick("hang-connect"), "note"))
        await until(lambda: pool.open_connections == 1)
        await pool.drop(leaver, for_good=True)
        for asked in (waiting, pid(pool, leaver, quick(name="another"))):
            with pytest.raises(ToolServerUnavailable) as caught:
                await asked
            assert caught.value.reason == Reason.CLOSED
        await pool.drop(suspended, for_good=False)
        assert await pid(pool, suspended, quick())


class TestRoom:
    async def test_eviction_under_load_closes_nothing_in_use(self, tmp_path: Path) -> None:
        # Given room for six, and six people who go from one of three servers to the next
        people = [somebody() for _ in range(6)]
        processes: set[str] = set()

        async def working(pool: ToolPool, owner: UserId) -> None:
            for turn in range(6):
                server = quick(name=f"server-{turn % 3}")
                async with pool.lease(owner, server, NO_CREDENTIAL) as connection:
                    first = await said(connection, "whoami")
                    await called(connection, "sleep", for_seconds=0.01)
                    assert await said(connection, "whoami") == first
                    processes.add(first)

        # When they all do so at once, Then every lease holds from its beginning to its end
        limits = PoolLimits(total=6, per_user=2)
        with capture_logs() as lines:
            async with running_pool(tmp_path, limits=limits) as pool:
                await asyncio.gather(*(working(pool, each) for each in people))
                await until(lambda: pool.open_connections <= 6)
        assert len(processes) > 3 * len(people)  # some were evicted, and opened again
        assert [line["event"] for line in lines if "server" in line] == []

    async def test_what_is_unused_goes_for_whoever_needs_room(self, tmp_path: Path) -> None:
        async with running_pool(tmp_path, limits=PoolLimits(total=2)) as pool:
            people = [somebody() for _ in range(4)]
            for each in people:
                await pid(pool, each, quick())
            await until(lambda: pool.open_connections <= 2)

    async def test_one_person_has_so_many_at_most(self, tmp_path: Path) -> None:
        owner = somebody()
        busy, other = quick(name="busy"), quick(name="other", timeouts=impatient(connect=0.2))
        async with running_pool(tmp_path, limits=PoolLimits(per_user=1)) as pool:
            async with pool.lease(owner, busy, NO_CREDENTIAL):
                with pytest.raises(ToolServerUnavailable) as caught:
                    await pid(pool, owner, other)
                assert caught.value.reason == Reason.FULL
                # and nobody else minds
                assert await pid(pool, somebody(), busy)
            assert await pid(pool, owner, quick(name="other"))

    async def test_everybody_can_have_one_though_all_are_in_use(self, tmp_path: Path) -> None:
        async with running_pool(tmp_path, limits=PoolLimits(total=2)) as pool:
            owner = somebody()
            async with (
                pool.lease(owner, quick(name="a"), NO_CREDENTIAL),
                pool.lease(owner, quick(name="b"), NO_CREDENTIAL),
            ):
                assert await pid(pool, somebody(), quick())

    async def test_whoever_waits_gets_what_is_given_back(self, tmp_path: Path) -> None:
        owner = somebody()
        async with running_pool(tmp_path, limits=PoolLimits(per_user=1)) as pool:
            async with pool.lease(owner, quick(name="a"), NO_CREDENTIAL):
                waiting = asyncio.create_task(pid(pool, owner, quick(name="b")))
                await asyncio.sleep(0)
            assert await waiting

    async def test_an_unused_connection_is_closed_and_one_in_use_is_not(
        self, tmp_path: Path
    ) -> None:
        async with running_pool(tmp_path, limits=PoolLimits(idle_seconds=0.2)) as pool:
            async with pool.lease(somebody(), quick(), NO_CREDENTIAL) as connection:
                await pid(pool, somebody(), quick())
                await until(lambda: pool.open_connections == 1)
                assert await said(connection, "whoami")
            await until(lambda: pool.open_connections == 0)


class TestStopping:
    async def test_leaves_no_process_descriptor_or_task(self, tmp_path: Path) -> None:
        async with running_pool(tmp_path) as warm:
            await pid(warm, somebody(), quick())
        before = Footprint()
        pool = ToolPool(tmp_path, sandbox="none")
        await pool.start()
        owner = somebody()
        hanging = await in_a_call(pool, owner, quick())
        opening = asyncio.create_task(once(pool, owner, quick("hang-connect", name="b"), "note"))
        await until(lambda: pool.open_connections == 2)
        await pool.stop()
        for each in (hanging, opening):
            with pytest.raises(ToolServerUnavailable):
                await each
        await until_nothing_more_than(before)

    async def test_nothing_is_opened_afterwards(self, tmp_path: Path) -> None:
        async with running_pool(tmp_path) as pool:
            await pool.stop()
            with pytest.raises(ToolServerUnavailable) as caught:
                await pid(pool, somebody(), quick())
        assert caught.value.reason == Reason.CLOSED

    @pytest.mark.timeout(900)
    async def test_connecting_and_closing_leaves_nothing_however_often(
        self, tmp_path: Path, nightly: bool
    ) -> None:
        async with running_pool(tmp_path) as pool:
            await pid(pool, somebody(), quick())
            await self._cycle(pool, 4)
            before = Footprint()
            for _ in range(250 if nightly else 6):
                await self._cycle(pool, 4)
            await until_nothing_more_than(before)

    @staticmethod
    async def _cycle(pool: ToolPool, at_once: int) -> None:
        """Some connect and end in order, some are killed."""
        people = [somebody() for _ in range(at_once)]
        first, *others = people
        with contextlib.suppress(ToolServerUnavailable):
            await once(pool, first, quick(), "die")
        await asyncio.gather(*(pid(pool, each, quick()) for each in others))
        for each in people:
            pool.forget(each, "quick")
        left = {each for each in pool._tasks if each.owner in people}
        await until(lambda: not left & set(pool._tasks))


class TestWhatIsCounted:
    async def test_is_each_connection_and_call_by_the_operators_names(self, tmp_path: Path) -> None:
        registry = CollectorRegistry()
        alice = somebody()
        async with running_pool(tmp_path, watch=MeasuredTools(registry)) as pool:
            await once(pool, alice, quick(), "whoami")
            await once(pool, alice, quick(), "fail")
            own = quick(name="private", is_own=True)
            async with pool.lease(alice, own, NO_CREDENTIAL) as connection:
                with pytest.raises(TimeoutError):
                    await called(connection, "sleep", 0.01)
            with pytest.raises(ToolServerUnavailable):
                await once(pool, alice, quick("exit-at-once", name="broken"), "whoami")
            assert sample(registry, "stoa_tool_connections", server="quick") == 1
            calls = "stoa_tool_call_seconds_count"
            assert sample(registry, calls, server="quick", outcome="ok") == 1
            assert sample(registry, calls, server="quick", outcome="error") == 1
            assert sample(registry, calls, server="own", outcome="timeout") == 1
            lost = "stoa_tool_connections_lost_total"
            assert sample(registry, lost, server="broken", reason="exited") == 1
        assert sample(registry, "stoa_tool_connections", server="quick") == 0
        assert "private" not in generate_latest(registry).decode()


def sample(registry: CollectorRegistry, name: str, **labels: str) -> float | None:
    return registry.get_sample_value(name, labels)
