"""Deleting runs and threads over HTTP, whatever they are doing."""

from __future__ import annotations

import asyncpg
import httpx
import pytest

from app.api import thread_routes
from app.runs import deletion
from tests.support.deployment import GRAPHS
from tests.support.frames import follow, new_thread, read_run, start_run
from tests.support.model_server import Script
from tests.support.postgres import PostgresServer
from tests.support.service import RunningService, running_service

HALF = Script(text="one two three four", stall_at=2)
TABLES = (
    *("threads", "runs", "run_events", "effects"),
    *("checkpoints", "checkpoint_blobs", "checkpoint_writes"),
)


async def answering(service: RunningService, client: httpx.AsyncClient, thread_id: str) -> str:
    """A run whose answer has begun and does not go on; returns where it is."""
    service.model.enqueue(HALF)
    location = await start_run(client, thread_id)
    async with client.stream("GET", f"{location}/stream") as response:
        async for line in response.aiter_lines():
            if " two" in line:
                return location
    raise AssertionError


async def rows_of(service: RunningService, thread_id: str) -> dict[str, int]:
    connection = await asyncpg.connect(service.postgres.dsn("owner", service.database))
    try:
        runs = "SELECT run_id FROM runs WHERE thread_id = $1"
        return {
            table: await connection.fetchval(
                f"SELECT count(*) FROM {table} WHERE "
                + (f"run_id IN ({runs})" if table == "run_events" else "thread_id = $1"),
                thread_id,
            )
            for table in TABLES
        }
    finally:
        await connection.close()


async def record_calls(service: RunningService, thread_id: str, number: int) -> None:
    """Put calls of tools on record, as runs of the thread do."""
    connection = await asyncpg.connect(service.postgres.dsn("owner", service.database))
    try:
        await connection.execute(
            "INSERT INTO effects (user_id, thread_id, message_id, tool_call_id, run_id, fence,"
            " server, tool, key, arguments_sha256, state)"
            " SELECT t.user_id, t.thread_id, 'message', n::text, gen_random_uuid(), 1,"
            " 'notes', 'write', gen_random_uuid(), '', 'started'"
            " FROM threads t, generate_series(1, $2) n WHERE t.thread_id = $1",
            thread_id,
            number,
        )
    finally:
        await connection.close()


class TestARun:
    async def test_that_has_ended_goes_with_its_stream_and_leaves_the_conversation(
        self, service: RunningService
    ) -> None:
        client = service.client("abe")
        thread_id = await new_thread(client)
        first, second = [await start_run(client, thread_id, text) for text in ("one", "two")]
        await read_run(client, second)
        before = (await client.get(f"/threads/{thread_id}/state")).json()
        assert (await client.delete(first)).status_code == 204
        for gone in (first, f"{first}/stream", f"{first}/join"):
            answer = await client.get(gone)
            assert (answer.status_code, answer.json()["code"]) == (404, "run_not_found")
        assert (await client.delete(first)).status_code == 404
        assert (await client.get(f"/threads/{thread_id}/state")).json() == before
        await read_run(client, await start_run(client, thread_id, "three"))
        state = (await client.get(f"/threads/{thread_id}/state")).json()
        said = [each["content"] for each in state["values"]["messages"]]
        assert said[::2] == ["one", "two", "three"]

    async def test_that_is_answering_stops_and_lets_the_next_one_begin(
        self, service: RunningService
    ) -> None:
        client = service.client("bea")
        thread_id = await new_thread(client)
        running = await answering(service, client, thread_id)
        gone = sum(each.disconnected_at is not None for each in service.model.requests)
        queued = await start_run(client, thread_id, "next")
        assert (await client.delete(running)).status_code == 204
        await service.model.wait_for_disconnect(1 + gone)
        frames = await read_run(client, queued)
        assert frames[-1].data["status"] == "success"
        assert len((await client.get(f"/threads/{thread_id}/runs")).json()) == 1

    async def test_tells_whoever_follows_it(self, service: RunningService) -> None:
        client = service.client("cal")
        running = await answering(service, client, await new_thread(client))
        async with client.stream("GET", f"{running}/stream") as response:
            lines = response.aiter_lines()
            assert (await client.delete(running)).status_code == 204
            rest = [line async for line in lines if line.startswith(("event", "data"))]
        assert rest[-2:] == [
            "event: error",
            'data: {"error":"run_not_found","message":"There is no such run."}',
        ]

    async def test_lets_whoever_follows_its_thread_go_on(self, service: RunningService) -> None:
        client = service.client("cat")
        thread_id = await new_thread(client)
        running = await answering(service, client, thread_id)
        async with client.stream("GET", f"/threads/{thread_id}/stream") as response:
            frames = follow(response)
            first = await anext(frames)
            assert first.data["run_id"] == running.rpartition("/")[2]
            assert (await client.delete(running)).status_code == 204
            after = (await start_run(client, thread_id, "next")).rpartition("/")[2]
            names = []
            async for frame in frames:
                names.append(frame.event)
                if frame.event == "run_done":
                    break
            assert frame.data == {"run_id": after, "status": "success"}
            assert "error" not in names

    async def test_leaves_a_state_that_its_own_graph_reads(self, postgres: PostgresServer) -> None:
        async with running_service(postgres, graphs=GRAPHS) as service:
            client = service.client("con")
            thread_id = await new_thread(client)
            location = await start_run(
                client, thread_id, assistant="counting", graph_input={"until": 3}
            )
            await read_run(client, location)
            path = f"/threads/{thread_id}/state"
            before = (await client.get(path)).json()
            assert (await client.delete(location)).status_code == 204
            assert (await client.get(path)).json() == before
            assert before["values"] == {"n": 3, "until": 3}
            body = {"values": {"until": 5}, "as_node": "step"}
            assert (await client.post(path, json=body)).status_code == 200
            assert (await client.get(path)).json()["next"] == ["step"]

    async def test_of_another_thread_is_none(self, service: RunningService) -> None:
        client = service.client("dee")
        location = await start_run(client, await new_thread(client))
        run_id = location.rpartition("/")[2]
        other = await new_thread(client)
        assert (await client.delete(f"/threads/{other}/runs/{run_id}")).status_code == 404
        assert (await client.get(location)).status_code == 200


class TestAThread:
    async def test_stops_what_runs_on_it(self, service: RunningService) -> None:
        client = service.client("eli")
        thread_id = await new_thread(client)
        await answering(service, client, thread_id)
        await start_run(client, thread_id, "next")
        gone = sum(each.disconnected_at is not None for each in service.model.requests)
        assert (await client.delete(f"/threads/{thread_id}")).status_code == 204
        await service.model.wait_for_disconnect(1 + gone)
        assert set((await rows_of(service, thread_id)).values()) == {0}
        assert (await client.post("/threads", json={"thread_id": thread_id})).status_code == 200
        assert (await client.get(f"/threads/{thread_id}/runs")).json() == []


class TestAThreadThatIsLarge:
    @pytest.fixture
    def _everything_is_large(self, monkeypatch: pytest.MonkeyPatch) -> None:
        async def delete(tx: object, thread_id: object) -> deletion.Deleted:
            return await deletion.delete_thread(tx, thread_id, large=3)  # type: ignore[arg-type]

        monkeypatch.setattr(thread_routes, "delete_rows", delete)

    @pytest.fixture
    def _nobody_else_deletes_rows(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("app.worker.retention.service.duties", lambda _settings: [])

    @pytest.mark.usefixtures("_everything_is_large", "_nobody_else_deletes_rows")
    async def test_is_gone_at_once_and_its_rows_soon(self, postgres: PostgresServer) -> None:
        async with running_service(postgres) as service:
            client = service.client("fay")
            thread_id = await new_thread(client)
            done = await start_run(client, thread_id)
            await read_run(client, done)
            running = await answering(service, client, thread_id)
            gone = sum(each.disconnected_at is not None for each in service.model.requests)
            assert (await client.delete(f"/threads/{thread_id}")).status_code == 204
            await service.model.wait_for_disconnect(1 + gone)

            path = f"/threads/{thread_id}"
            for address in (
                path,
                f"{path}/state",
                f"{path}/runs",
                f"{path}/stream",
                done,
                f"{done}/join",
                f"{running}/stream",
            ):
                assert (await client.get(address)).status_code == 404, address
            assert (await client.post(f"{path}/history", json={})).status_code == 404
            assert (await client.patch(path, json={})).status_code == 404
            assert (await client.delete(path)).status_code == 404
            assert (await client.delete(done)).status_code == 404
            assert (await client.post(f"{running}/cancel")).status_code == 404
            assert (await client.post("/threads/search", json={})).json() == []
            assert (await client.post("/threads/count", json={})).json() == 0
            for if_exists in ("raise", "do_nothing"):
                body = {"thread_id": thread_id, "if_exists": if_exists}
                answer = await client.post("/threads", json=body)
                assert (answer.status_code, answer.json()["code"]) == (409, "thread_busy")
            said = {"messages": [{"role": "user", "content": "again"}]}
            run = {"assistant_id": "agent", "input": said}
            assert (await client.post(f"{path}/runs", json=run)).status_code == 404
            answer = await client.post(f"{path}/runs", json={**run, "if_not_exists": "create"})
            assert (answer.status_code, answer.json()["code"]) == (409, "thread_busy")

            await record_calls(service, thread_id, 9)
            left = await rows_of(service, thread_id)
            user = service.web.services.database
            owner = await service.web.services.directory.principal(
                await service.web.services.verifier.verify(
                    [
                        (name.lower().encode(), value.encode())
                        for name, value in service.issuer.headers("fay").items()
                    ]
                )
            )
            batches = 0
            while True:
                ((is_done,),) = await user.call(
                    owner, "SELECT done FROM tenant.delete_thread_rows($1, $2, $3)", thread_id, 4
                )
                now = await rows_of(service, thread_id)
                assert sum(left.values()) - sum(now.values()) <= 4 or is_done
                left = now
                batches += 1
                if is_done:
                    break
            assert batches > 2
            assert set(left.values()) == {0}
            assert (await client.post("/threads", json={"thread_id": thread_id})).status_code == 200
