"""``kill -9`` at each point where a run can be left: another worker brings it to its one end."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from tests.crash.stage import Stage, new_thread
from tests.support.deployment import STEADY_LEASE
from tests.support.faulty.fault import Fault
from tests.support.frames import new_thread as made_thread
from tests.support.frames import read_run, start_run
from tests.support.model_server import Script
from tests.support.processes import StoaProcess


@pytest.fixture(scope="module")
async def web(stage: Stage) -> StoaProcess:
    return await stage.open_web()


@pytest.mark.usefixtures("web")
class TestAWorkerThatIsKilled:
    @pytest.mark.parametrize(
        "fault",
        [
            Fault("claim.before"),
            Fault("claim.after"),
            Fault("token.first"),
            Fault("checkpoint.before"),
            Fault("checkpoint.before", nth=2),
            Fault("checkpoint.after"),
            Fault("checkpoint.after", nth=2),
            Fault("settle.before"),
            Fault("settle.after"),
        ],
        ids=lambda fault: f"{fault.point}-{fault.nth}",
    )
    async def test_leaves_its_run_to_another_one(self, stage: Stage, fault: Fault) -> None:
        person, thread_id = stage.person(), new_thread()
        doomed = await stage.deployment.start_faulty_worker(fault, **STEADY_LEASE)
        rescuer = await stage.deployment.prepare_worker(**STEADY_LEASE)
        reading = asyncio.create_task(person.say_and_read(thread_id, "Where were we?"))
        await doomed.died()
        await rescuer.let_go()
        await stage.deployment.lease_over(doomed)
        await reading
        await person.say_and_read(thread_id, "And now?")
        await stage.assert_whole()
        await rescuer.kill()

    async def test_leaves_its_run_to_another_one_while_it_drains(self, stage: Stage) -> None:
        person, thread_id = stage.person(), new_thread()
        stalls = stage.deployment.stalls
        stage.deployment.model.enqueue(Script(text="never told", stall_at=1))
        doomed = await stage.deployment.start_faulty_worker(Fault("drain.begun"), **STEADY_LEASE)
        rescuer = await stage.deployment.prepare_worker(**STEADY_LEASE)
        reading = asyncio.create_task(person.say_and_read(thread_id, "Are you leaving?"))
        await stage.deployment.model.wait_for_stall(stalls + 1)
        doomed.process.terminate()
        await doomed.died()
        await rescuer.let_go()
        await stage.deployment.lease_over(doomed)
        await reading
        await stage.assert_whole()
        await rescuer.kill()


class TestAWebProcessThatIsKilled:
    async def test_leaves_the_answer_that_it_accepted_to_a_worker_and_to_whoever_asks_again(
        self, stage: Stage, web: StoaProcess
    ) -> None:
        deployment = stage.deployment
        worker = await deployment.start_worker()
        elsewhere = deployment.http("patient", web)
        thread_id = await made_thread(elsewhere)
        question = {"question": "May I?"}
        location = await start_run(elsewhere, thread_id, assistant="asking", graph_input=question)
        await read_run(elsewhere, location)
        doomed = await deployment.start_web(fault=Fault("answer.accepted"))
        answer = {"assistant_id": "asking", "command": {"resume": "yes"}}
        path, key = f"/threads/{thread_id}/runs", {"Idempotency-Key": "one"}
        with pytest.raises(httpx.TransportError):
            await deployment.http("patient", doomed).post(path, json=answer, headers=key)
        await doomed.died()
        again = await elsewhere.post(path, json=answer, headers=key)
        assert (again.status_code, again.headers["content-location"]) == (200, location)
        frames = await read_run(elsewhere, location)
        assert frames[-1].data["status"] == "success"
        state = (await elsewhere.get(f"/threads/{thread_id}/state")).json()
        assert state["values"] == {**question, "answer": "yes"}
        await worker.kill()
