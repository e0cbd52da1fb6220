"""What operators see of what waits for people: how much, since when, and not a word of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from io import StringIO
from typing import TYPE_CHECKING, Any
from uuid import UUID

import asyncpg
import pytest
from rich.console import Console

from app.admin.queue_report import queue_report
from app.admin.queue_views import QueueView
from app.admin.timeline_report import timeline_report
from app.admin.timelines import Timeline, timeline_from
from app.metrics import scheduler_metrics
from app.runs.deciding import Decision
from tenancy.database.crossing import DispatchDatabase
from tenancy.database.inspection import InspectionDatabase
from tenancy.database.tenant import TenantDatabase
from tenancy.principal import Principal
from tenancy.scheduler.facts import SchedulerFacts
from tenancy.scheduler.oversight import OversightDatabase
from tests.integration.tenancy.asking import Asking, approve, asked_call, in_doubt
from tests.support.tenancy import MODEL, TestDatabase

if TYPE_CHECKING:
    from rich.console import RenderableType

CANARY = "the canary sings at midnight"
SECRETS: dict[str, Any] = {
    "server": "canary-server",
    "tool": "canary_tool",
    "arguments": {"title": CANARY},
    "message_id": CANARY,
}


@pytest.fixture
def asking(
    tenants: TenantDatabase,
    dispatch: DispatchDatabase,
    superuser: asyncpg.Connection,
    alice: Principal,
) -> Asking:
    return Asking(tenants, dispatch, superuser, alice)


@pytest.fixture
async def facts(database: TestDatabase) -> AsyncIterator[SchedulerFacts]:
    reading = SchedulerFacts(database.settings("dispatch"))
    yield reading
    await reading.close()


@pytest.fixture
async def inspection(database: TestDatabase) -> AsyncIterator[InspectionDatabase]:
    door = InspectionDatabase(database.settings("maintenance"))
    yield door
    await door.close()


def metrics_of(facts: Mapping[str, Any]) -> dict[tuple[str, ...], float]:
    return {
        (sample.name, *sample.labels.values()): sample.value
        for metric in scheduler_metrics(facts)
        for sample in metric.samples
    }


def printed(report: RenderableType) -> str:
    to = StringIO()
    Console(file=to, width=250).print(report)
    return to.getvalue()


async def timeline(inspection: InspectionDatabase, run_id: UUID) -> Timeline:
    found = await inspection.run(run_id)
    assert found is not None
    return timeline_from(found)


class TestWhatWaitsForPeople:
    async def test_is_counted_by_its_kind_with_the_age_of_the_oldest(
        self, asking: Asking, facts: SchedulerFacts
    ) -> None:
        before = metrics_of(await facts.read())
        run_id = await asking.waiting(asked_call(1), asked_call(2))
        await asking.waiting(in_doubt())
        await asking.superuser.execute(
            "UPDATE approvals SET created_at = created_at - interval '1 year' WHERE run_id = $1",
            run_id,
        )
        first, second = await asking.approvals(run_id)
        await asking.decide(run_id, approve(first))
        after = metrics_of(await facts.read())
        assert after["stoa_runs", "waiting"] == before["stoa_runs", "waiting"] + 2
        for kind, more in (("call", 1), ("in_doubt", 1), ("elicitation", 0)):
            key = ("stoa_questions_open", kind)
            assert after[key] == before[key] + more
        assert after["stoa_questions_oldest_seconds", "call"] > 364 * 86_400
        await asking.decide(run_id, approve(second))
        closed = metrics_of(await facts.read())
        assert closed["stoa_runs", "waiting"] == after["stoa_runs", "waiting"] - 1
        assert closed["stoa_questions_open", "call"] == before["stoa_questions_open", "call"]

    async def test_is_in_the_queues_report_without_a_word_of_anybodys(
        self, asking: Asking, database: TestDatabase
    ) -> None:
        await asking.waiting(asked_call(1, **SECRETS), asked_call(2, **SECRETS))
        oversight = OversightDatabase(database.settings("dispatch"))
        try:
            found = QueueView.model_validate(await oversight.queue(100, MODEL, {"weight": 1}))
        finally:
            await oversight.close()
        (calls,) = (each for each in found.questions if each.kind == "call")
        assert calls.open >= 2
        assert calls.people >= 1
        assert found.runs.waiting >= 1
        text = printed(queue_report(found))
        assert f"{found.runs.waiting} waiting for their person" in text
        assert "Questions to people" in text
        assert "canary" not in text + found.model_dump_json()


class TestARunThatAsked:
    async def test_tells_what_kind_of_question_and_until_when_and_not_a_word_of_it(
        self, asking: Asking, inspection: InspectionDatabase
    ) -> None:
        run_id = await asking.waiting(
            asked_call(1, **SECRETS), in_doubt(**SECRETS | {"tool_call_id": CANARY})
        )
        first, doubt = await asking.approvals(run_id)
        await asking.decide(run_id, Decision(first.approval_id, "reject", reason=CANARY))
        found = await timeline(inspection, run_id)
        assert [
            (each.kind, each.state, each.decision, each.approval_id) for each in found.questions
        ] == [
            ("call", "decided", "reject", first.approval_id),
            ("in_doubt", "open", None, doubt.approval_id),
        ]
        assert found.questions[1].expires_at == doubt.expires_at
        text = printed(timeline_report(found))
        assert "Questions to the person: 2" in text
        assert str(doubt.approval_id) in text
        assert "canary" not in text + found.model_dump_json()

    async def test_tells_of_its_calls_how_often_they_were_sent_and_which_have_no_outcome(
        self, asking: Asking, inspection: InspectionDatabase
    ) -> None:
        run = await asking.run()
        await asking.superuser.execute(
            "INSERT INTO effects (user_id, thread_id, run_id, fence, message_id, tool_call_id,"
            " server, tool, key, arguments_sha256, state, sent)"
            " VALUES ($1, $2, $3, 1, $4, $4, 'canary', 'canary', $3, '', 'started', 3)",
            *(asking.person.user_id, asking.threads[run.run_id], run.run_id, CANARY),
        )
        found = await timeline(inspection, run.run_id)
        assert (found.calls.begun, found.calls.sent, found.calls.without_outcome) == (1, 3, 1)
        text = printed(timeline_report(found))
        assert "1 begun, sent 3 times, 0 answered late, 1 without an outcome" in text
        assert "canary" not in text
