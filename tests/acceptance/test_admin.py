"""``stoa admin``: an operator puts things right, and sees a run's life without its words."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import AsyncIterator, Iterator
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from app.logging import tenant_reference
from tenancy.principal import UserId
from tests.support import forked
from tests.support.deployment import Deployment, deployed
from tests.support.development import stoa
from tests.support.frames import new_thread, read_run, start_run
from tests.support.held_ports import held_port
from tests.support.model_server import Script
from tests.support.processes import PATIENCE, StoaProcess
from tests.support.tenancy import TestDatabase, expire_leases

CANARY = "the canary sings at midnight"


@pytest.fixture(scope="module")
async def deployment(
    template: TestDatabase, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Deployment]:
    async with deployed(template, tmp_path_factory.mktemp("admin")) as deployment:
        yield deployment


@pytest.fixture(scope="module")
def metrics_port() -> Iterator[int]:
    with held_port() as port:
        yield port


@pytest.fixture(scope="module")
async def web(deployment: Deployment, metrics_port: int) -> StoaProcess:
    return await deployment.start_web(STOA_WEB_METRICS_PORT=str(metrics_port))


async def admin(deployment: Deployment, *arguments: str) -> tuple[int, str]:
    """Exit status and output of a command of an operator's, who has these two addresses."""
    environment = {
        "STOA_DISPATCH_DATABASE_URL": deployment.database.dsn("dispatch"),
        "STOA_MAINTENANCE_DATABASE_URL": deployment.database.dsn("maintenance"),
        # Longer than any test: a seat that has cooled down between two looks is put in order too.
        "STOA_SEAT_COOLDOWN_SECONDS": "3600",
    }
    return await forked.run(("admin", *arguments), environment)


async def inspected(deployment: Deployment, run_id: str) -> dict[str, Any]:
    status, output = await admin(deployment, "run", run_id, "--json")
    assert status == 0, output
    timeline: dict[str, Any] = json.loads(output)
    return timeline


def run_id_of(location: str) -> str:
    return location.rpartition("/")[2]


class TestReconcile:
    async def test_keeps_a_killed_worker_until_its_lease_is_over_then_gives_its_run_back(
        self, deployment: Deployment, web: StoaProcess
    ) -> None:
        client = deployment.http("ada", web)
        stalls = deployment.stalls
        deployment.model.enqueue(Script(text="one two", stall_at=1), Script(text="one two"))
        worker = await deployment.start_worker(STOA_LEASE_SECONDS="600")
        location = await start_run(client, await new_thread(client), "Count.")
        await deployment.model.wait_for_stall(stalls + 1)

        status, output = await admin(deployment, "reconcile", "--dry-run")
        assert status == 0
        assert "alive" in output
        assert "Nothing to do." in output

        await worker.kill()
        status, output = await admin(deployment, "reconcile")
        assert status == 0
        assert all(word in output for word in ("absent", "dead", "preserved", "not over yet"))

        async with deployment.superuser() as superuser:
            await expire_leases(superuser)
        status, output = await admin(deployment, "reconcile", "--dry-run")
        assert status == 3
        assert all(word in output for word in (run_id_of(location), "repaired", "stopped", "dry"))
        assert (await client.get(location)).json()["state"] == "running"

        status, output = await admin(deployment, "reconcile")
        assert status == 0
        assert all(word in output for word in (run_id_of(location), "repaired", "stopped", "Done."))
        assert (await client.get(location)).json()["state"] == "pending"

        assert await admin(deployment, "reconcile") == (0, "Nothing to do.\n")
        other = await deployment.start_worker()
        await read_run(client, location)
        assert (await client.get(location)).json()["state"] == "success"
        await other.terminate()

        timeline = await inspected(deployment, run_id_of(location))
        assert [each["ended_by"] for each in timeline["attempts"]] == ["lost", "success"]
        assert [each["fence"] for each in timeline["attempts"]] == [1, 3]
        assert (timeline["attempt"], timeline["attempts_spent"]) == (2, 1)

    async def test_without_a_database_is_one_message(self) -> None:
        environment = {"STOA_DISPATCH_DATABASE_URL": "postgresql://r:hushhush@127.0.0.1:1/none"}
        async with stoa("admin", "reconcile", environment=environment) as command:
            assert await command.ended() == 1
        assert command.output.startswith("stoa: ")
        assert "hushhush" not in command.output

    async def test_without_its_setting_is_wrong_use(self) -> None:
        async with stoa("admin", "reconcile") as command:
            assert await command.ended() == 2
        assert "Set STOA_DISPATCH_DATABASE_URL" in command.output


class TestARun:
    async def test_is_told_with_its_claims_steps_and_events_and_without_a_word_of_anybodys(
        self, deployment: Deployment, web: StoaProcess
    ) -> None:
        client = deployment.http("a canary", web)
        worker = await deployment.start_worker()
        thread = await client.post("/threads", json={"metadata": {CANARY: CANARY}})
        answer = await client.post(
            f"/threads/{thread.json()['thread_id']}/runs",
            json={
                "assistant_id": "agent",
                "input": {"messages": [{"role": "user", "content": CANARY, "id": CANARY}]},
                "metadata": {CANARY: CANARY},
                "config": {"tags": [CANARY], "metadata": {CANARY: CANARY}},
                "stream_mode": ["values", "messages-tuple"],
            },
            headers={"Idempotency-Key": CANARY.replace(" ", "-")},
        )
        assert answer.status_code == 200, answer.text
        run = answer.json()
        frames = await read_run(client, f"/threads/{run['thread_id']}/runs/{run['run_id']}")
        await worker.terminate()
        async with deployment.superuser() as superuser:
            user_id = await superuser.fetchval(
                "SELECT user_id FROM runs WHERE run_id = $1", UUID(run["run_id"])
            )
            # A graph may name its nodes as it likes, even after what was said.
            await superuser.execute(
                "INSERT INTO checkpoints"
                " (user_id, thread_id, checkpoint_ns, checkpoint_id, checkpoint, run_id)"
                " VALUES ($1, $2, $3, $3, '{}', $4)",
                *(user_id, UUID(run["thread_id"]), CANARY, UUID(run["run_id"])),
            )
            await superuser.execute(
                "INSERT INTO run_events (user_id, run_id, seq, event, data)"
                " VALUES ($1, $2, 1000, $3, 'abc')",
                *(user_id, UUID(run["run_id"]), f"updates|{CANARY}"),
            )
            said = await superuser.fetchval(
                "SELECT octet_length(data) FROM run_events WHERE seq = 1 AND run_id = $1",
                UUID(run["run_id"]),
            )

        timeline = await inspected(deployment, run["run_id"])
        status, text = await admin(deployment, "run", run["run_id"])
        assert status == 0
        for output in (json.dumps(timeline), text):
            assert "canary" not in output.lower()
            assert str(user_id) not in output
            assert tenant_reference(UserId(user_id)) in output
            assert run["thread_id"] in output

        assert (timeline["state"], timeline["error_code"]) == ("success", None)
        assert timeline["lease"] is None
        (attempt,) = timeline["attempts"]
        assert (attempt["fence"], attempt["ended_by"], attempt["host"]) == (
            1,
            "success",
            socket.gethostname(),
        )
        events = {each["kind"]: each for each in timeline["events"]}
        assert {frame.event for frame in frames} - {"end"} < set(events)
        assert events["metadata"]["bytes"] == said
        assert (events["updates"]["count"], events["updates"]["bytes"]) == (1, 3)
        checkpoints = timeline["checkpoints"]
        assert (checkpoints["sub"], checkpoints["namespaces"]) == (1, 1)
        assert checkpoints["steps"][0]["step"] == -1
        assert checkpoints["root"] == len(checkpoints["steps"]) >= 3
        moments = [each["at"] for each in checkpoints["steps"]]
        assert moments == sorted(moments)
        assert timeline["created_at"] < attempt["claimed_at"] < moments[0] < timeline["ended_at"]

    async def test_under_way_says_who_has_it_and_until_when(
        self, deployment: Deployment, web: StoaProcess
    ) -> None:
        client = deployment.http("eve", web)
        stalls = deployment.stalls
        deployment.model.enqueue(Script(text="one two", stall_at=1))
        worker = await deployment.start_worker()
        location = await start_run(client, await new_thread(client), "Count.")
        await deployment.model.wait_for_stall(stalls + 1)
        timeline = await inspected(deployment, run_id_of(location))
        assert (timeline["state"], timeline["ended_at"]) == ("running", None)
        assert (timeline["lease"]["host"], timeline["lease"]["over"]) == (
            os.uname().nodename,
            False,
        )
        assert timeline["attempts"][0]["host"] == os.uname().nodename
        status, text = await admin(deployment, "run", run_id_of(location))
        assert status == 0
        assert timeline["lease"]["worker_id"] in text
        await worker.kill()

    async def test_that_nobody_has_is_a_failure_that_says_so(self, deployment: Deployment) -> None:
        unknown = str(uuid4())
        status, output = await admin(deployment, "run", unknown)
        assert (status, output) == (1, f"stoa: There is no run {unknown}; it may be deleted.\n")

    async def test_that_is_no_id_is_wrong_use(self, deployment: Deployment) -> None:
        status, output = await admin(deployment, "run", "abc")
        assert status == 2
        assert "Invalid value for 'ID'" in output

    async def test_is_not_looked_for_with_a_role_that_reads_content(
        self, deployment: Deployment
    ) -> None:
        environment = {"STOA_MAINTENANCE_DATABASE_URL": deployment.database.dsn("service")}
        async with stoa("admin", "run", str(uuid4()), environment=environment) as command:
            assert await command.ended() == 1
        assert "may do too much" in command.output


class TestTheQueue:
    async def test_is_shown_with_who_waits_and_why_and_without_a_word_of_anybodys(
        self, deployment: Deployment, web: StoaProcess
    ) -> None:
        client = deployment.http("a canary in line", web)
        thread = await client.post("/threads", json={"metadata": {CANARY: CANARY}})
        message = {"role": "user", "content": CANARY}
        run = await client.post(
            f"/threads/{thread.json()['thread_id']}/runs",
            json={"assistant_id": "agent", "input": {"messages": [message]}, "after_seconds": 3600},
        )
        me = (await client.get("/me")).json()["user_id"]
        status, text = await admin(deployment, "queue")
        assert status == 0
        assert all(word in text for word in (me, run.json()["run_id"], "scheduled", "People"))
        assert "canary" not in (text + deployment.all_logs()).lower()


class TestAWebProcess:
    async def test_serves_metrics_on_a_port_of_its_own(
        self, deployment: Deployment, web: StoaProcess, metrics_port: int
    ) -> None:
        async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE) as client:
            metrics = await client.get(f"http://127.0.0.1:{metrics_port}/metrics")
        assert "stoa_database_up 1.0" in metrics.text
