"""A call that waits for its person: asked, decided once, and gone on with."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any
from uuid import uuid4

import asyncpg
import pytest

from app.agent.elicitation import InvalidReply
from app.runs import approvals
from app.runs.approvals import (
    Approval,
    ApprovalClosed,
    ApprovalFilter,
    DecisionWord,
    count_approvals,
    find_approval,
    find_approvals,
    list_approvals,
    read_approvals,
)
from app.runs.cancelling import cancel_runs
from app.runs.deciding import (
    LONGEST_REASON,
    Decided,
    Decision,
    InvalidArguments,
    InvalidDecision,
    decide,
)
from app.runs.events import settle_run
from app.runs.permissions import ThreadPermissions
from app.runs.resuming import Resume, WaitingRun, find_waiting_run, resume_run
from app.runs.runs import IdempotencyKey, get_run
from app.tools.approval.ruling import Ask, Ruling
from app.tools.fingerprint import fingerprint
from app.worker.decisions import answers_from
from tenancy.checkpoints.pool import CheckpointPool
from tenancy.checkpoints.store import TenantStore
from tenancy.database.crossing import DispatchDatabase
from tenancy.database.tenant import TenantDatabase
from tenancy.errors import (
    ApprovalChanged,
    ApprovalExpired,
    ApprovalNotFound,
    IdempotencyConflict,
    NothingWaits,
)
from tenancy.principal import Principal
from tenancy.run_states import RunState
from tests.integration.tenancy.asking import (
    ARGUMENTS,
    MONTH,
    Asking,
    approve,
    asked_call,
    asked_questions,
    in_doubt,
)
from tests.support.tenancy import make_thread

RACES = 50
EVERY_WORD: tuple[DecisionWord, ...] = (
    "approve",
    "edit",
    "reject",
    "answer",
    "happened",
    "repeat",
    "leave_out",
)


@pytest.fixture
def asking(
    tenants: TenantDatabase,
    dispatch: DispatchDatabase,
    superuser: asyncpg.Connection,
    alice: Principal,
) -> Asking:
    return Asking(tenants, dispatch, superuser, alice)


class TestARunThatAsks:
    async def test_waits_until_the_last_of_its_calls_is_decided(self, asking: Asking) -> None:
        run_id = await asking.waiting(asked_call(1), asked_call(2))
        first, second = await asking.approvals(run_id)
        assert not (await asking.decide(run_id, approve(first))).resumed
        assert await asking.state(run_id) == "waiting"
        done = await asking.decide(run_id, Decision(second.approval_id, "reject", reason="No."))
        assert (done.resumed, done.run.state) == (True, RunState.PENDING)
        assert await asking.state(run_id) == "pending"

    async def test_gives_its_next_attempt_what_was_decided(self, asking: Asking) -> None:
        run_id = await asking.waiting(asked_call(1), asked_call(2))
        first, second = await asking.approvals(run_id)
        reject = Decision(second.approval_id, "reject", reason="Not on a Sunday.")
        await asking.decide(run_id, approve(first), reject)
        given = await asking.given()
        assert [(each["tool_call_id"], each["decision"], each["reason"]) for each in given] == [
            ("call-1", "approve", None),
            ("call-2", "reject", "Not on a Sunday."),
        ]
        assert given[0]["approval_id"] == str(first.approval_id)
        assert (given[0]["graph_version"], given[0]["memory_changed"]) == ("g1", False)

    async def test_is_read_in_the_order_that_was_asked_for_few_at_once(
        self, asking: Asking, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(approvals, "HELD_AT_ONCE", 2)
        run_id = await asking.waiting(*(asked_call(number) for number in range(5)))
        async with asking.tenants.reading(asking.person) as tx:
            found = await find_approvals(tx, ApprovalFilter(run_id=run_id))
        assert set(found.values()) == {run_id}
        newest_first = list(reversed(await asking.approvals(run_id)))
        assert list(found) == [each.approval_id for each in newest_first]
        wanted = [*list(found)[:3], uuid4(), *list(found)[3:]]
        read = [each async for each in read_approvals(asking.tenants, asking.person, wanted)]
        assert read == newest_first

    async def test_gives_edited_arguments_as_their_hash_is_of(self, asking: Asking) -> None:
        """PostgreSQL writes numbers in its own way."""
        run_id = await asking.waiting()
        asked = await asking.approval(run_id)
        edited = {"title": "Trams are never late", "weight": 1e22}
        await asking.decide(
            run_id, Decision(asked.approval_id, "edit", asked.arguments_sha256, edited)
        )
        answers = answers_from(await asking.given(), "g1")
        (given,) = answers[asked.interrupt_id]["decisions"].values()
        assert repr(given["arguments"]) == repr(edited)
        kept = await asking.superuser.fetchval("SELECT decided_sha256 FROM approvals")
        assert fingerprint(given["arguments"]) == kept

    async def test_says_whether_memory_has_changed_since(
        self, asking: Asking, checkpoints: CheckpointPool
    ) -> None:
        memories = ("memories",)
        store = TenantStore(checkpoints, asking.person.user_id)
        for change in ({"content": "likes trams"}, {"content": "likes buses"}, None):
            run_id = await asking.waiting()
            await store.aput(memories, str(asking.person.user_id), change)  # type: ignore[arg-type]
            await asking.decide(run_id, approve(await asking.approval(run_id)))
            (given,) = await asking.given()
            assert given["memory_changed"] is True, change

    async def test_that_asks_again_what_was_decided_fails_instead_of_waiting_for_ever(
        self, asking: Asking
    ) -> None:
        run_id = await asking.waiting()
        await asking.decide(run_id, approve(await asking.approval(run_id)))
        await asking.ask(await asking.claim(), asked_call())
        assert await asking.state(run_id) == "error"

    async def test_asks_nothing_once_its_cancel_was_accepted(self, asking: Asking) -> None:
        run = await asking.run()
        await cancel_runs(asking.tenants, asking.person, run_ids=[run.run_id])
        reached = await settle_run(
            *(asking.tenants, run, RunState.WAITING, 1, []),
            approvals=[asked_call()],
            expire_seconds=MONTH,
        )
        assert reached is RunState.CANCELLED
        assert await asking.approvals(run.run_id) == []

    async def test_cannot_be_had_go_on_without_a_decision(self, asking: Asking) -> None:
        run_id = await asking.waiting()
        async with asking.tenants.reading(asking.person) as tx:
            waiting: WaitingRun = await find_waiting_run(tx, asking.threads[run_id])
        with pytest.raises(NothingWaits):
            await resume_run(asking.tenants, asking.person, waiting, Resume({"0" * 32: "go on"}))
        assert await asking.state(run_id) == "waiting"


class TestTwoAtOnce:
    async def test_on_two_calls_of_a_run_let_it_go_on_exactly_once(self, asking: Asking) -> None:
        for first, second in await asking.many_waiting(RACES, asked_call(1), asked_call(2)):
            run_id = first.run_id
            decided = await asyncio.gather(
                asking.decide(run_id, approve(first)), asking.decide(run_id, approve(second))
            )
            assert sorted(each.resumed for each in decided) == [False, True]
            assert await asking.state(run_id) == "pending"
        assert len(await asking.claim_all()) == RACES

    async def test_in_two_tabs_are_one_decision_and_the_other_is_told_which(
        self, asking: Asking
    ) -> None:
        for (asked,) in await asking.many_waiting(RACES, asked_call()):
            run_id = asked.run_id
            tabs = await asyncio.gather(
                asking.decide(run_id, approve(asked)),
                asking.decide(run_id, Decision(asked.approval_id, "reject")),
                return_exceptions=True,
            )
            (done,) = [each for each in tabs if isinstance(each, Decided)]
            (refused,) = [each for each in tabs if isinstance(each, ApprovalClosed)]
            stands = await asking.approval(run_id)
            assert refused.approval == stands == done.approvals[0]
            assert stands.decision == ("approve" if tabs[0] is done else "reject")
            assert await asking.state(run_id) == "pending"

    async def test_that_meet_at_the_run_leave_it_going_on(
        self, asking: Asking, superuser: asyncpg.Connection
    ) -> None:
        """Both have looked, and neither has decided, when they go on together."""
        run_id = await asking.waiting(asked_call(1), asked_call(2))
        first, second = await asking.approvals(run_id)
        async with superuser.transaction():
            await superuser.fetch("SELECT 1 FROM runs WHERE run_id = $1 FOR UPDATE", run_id)
            both = [
                asyncio.create_task(asking.decide(run_id, approve(each)))
                for each in (first, second)
            ]
            while await superuser.fetchval(WAITING_FOR_LOCKS) < len(both):
                done, _ = await asyncio.wait(both, timeout=0.002)
                assert not done
                await superuser.execute("SELECT pg_stat_clear_snapshot()")
        assert sorted([(await each).resumed for each in both]) == [False, True]
        assert await asking.state(run_id) == "pending"

    async def test_as_a_cancel_and_a_decision_end_in_one_of_both(self, asking: Asking) -> None:
        for (asked,) in await asking.many_waiting(RACES // 5, asked_call()):
            decided, _ = await asyncio.gather(
                asking.decide(asked.run_id, approve(asked)),
                cancel_runs(asking.tenants, asking.person, run_ids=[asked.run_id]),
                return_exceptions=True,
            )
            stands = await asking.approval(asked.run_id)
            assert stands.state == ("decided" if isinstance(decided, Decided) else "superseded")
            assert await asking.state(asked.run_id) == "cancelled"


NOT_LIKE_THAT: Sequence[dict[str, Any]] = (
    {"decision": "answer", "replies": {}},
    {"decision": "happened"},
    {"decision": "approve"},
    {"decision": "approve", "sees": True, "arguments": ARGUMENTS},
    {"decision": "approve", "sees": True, "reason": "Fine."},
    {"decision": "approve", "sees": True, "replies": {}},
    {"decision": "approve", "sees": True, "scope": "thread"},
    {"decision": "edit", "sees": True},
    {"decision": "edit", "arguments": ARGUMENTS},
    {"decision": "reject", "reason": "x" * (LONGEST_REASON + 1)},
    {"decision": "reject", "scope": "thread"},
)
NOT_FOR_THE_TOOL: Sequence[dict[str, Any]] = (
    {"title": 3},
    {},
    {**ARGUMENTS, "user_id": "x"},
)
WAITING_FOR_LOCKS = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock'
"""


class TestADecision:
    @pytest.mark.parametrize("word", ["approve", "edit", "repeat"])
    async def test_on_other_arguments_than_those_that_wait_is_refused(
        self, asking: Asking, word: Any
    ) -> None:
        run_id = await asking.waiting(in_doubt() if word == "repeat" else asked_call())
        asked = await asking.approval(run_id)
        other = fingerprint({**ARGUMENTS, "title": "Trams are early"})
        arguments = ARGUMENTS if word == "edit" else None
        with pytest.raises(ApprovalChanged):
            await asking.decide(run_id, Decision(asked.approval_id, word, other, arguments))
        assert await asking.approval(run_id) == asked
        assert await asking.state(run_id) == "waiting"

    async def test_too_late_is_refused(self, asking: Asking) -> None:
        run_id = await asking.waiting()
        await asking.pass_time()
        with pytest.raises(ApprovalExpired):
            await asking.decide(run_id, approve(await asking.approval(run_id)))
        assert (await asking.approval(run_id)).state == "open"

    async def test_that_is_one_of_several_is_taken_with_all_or_not(self, asking: Asking) -> None:
        run_id = await asking.waiting(asked_call(1), asked_call(2))
        first, second = await asking.approvals(run_id)
        with pytest.raises(ApprovalChanged):
            await asking.decide(
                run_id, approve(first), replace(approve(second), arguments_sha256=b"x")
            )
        assert await asking.approvals(run_id) == [first, second]

    async def test_twice_of_one_is_refused(self, asking: Asking) -> None:
        run_id = await asking.waiting()
        asked = await asking.approval(run_id)
        with pytest.raises(InvalidDecision):
            await asking.decide(run_id, approve(asked), Decision(asked.approval_id, "reject"))

    async def test_with_what_does_not_belong_to_it_is_refused_and_on_record(
        self, asking: Asking
    ) -> None:
        run_id = await asking.waiting()
        asked = await asking.approval(run_id)
        edits = [{"decision": "edit", "sees": True, "arguments": e} for e in NOT_FOR_THE_TOOL]
        for wrong in (*NOT_LIKE_THAT, *edits):
            seen: dict[str, Any] = (
                {"arguments_sha256": asked.arguments_sha256} if "sees" in wrong else {}
            )
            fields = {name: value for name, value in wrong.items() if name != "sees"}
            given = Decision(asked.approval_id, **fields, **seen)
            error = InvalidArguments if wrong in edits else InvalidDecision
            with pytest.raises(error):
                await asking.decide(run_id, given)
            assert await asking.approval(run_id) == asked, given
            on_record = (await asking.audit("action", "decision", "why"))[-1]
            assert on_record == ("refused", given.decision, error.code), given

    async def test_on_questions_answers_each_of_them(self, asking: Asking) -> None:
        run_id = await asking.waiting(asked_questions())
        asked = await asking.approval(run_id)
        badly: list[dict[str, Any]] = [{}, {"other": {}}]
        for wrong in (*badly, {"q": {"action": "accept", "content": {"word": 7}}}):
            with pytest.raises(InvalidReply):
                await asking.decide(run_id, Decision(asked.approval_id, "answer", replies=wrong))
        replies = {"q": {"action": "accept", "content": {"word": "tram"}}}
        await asking.decide(run_id, Decision(asked.approval_id, "answer", replies=replies))
        (given,) = await asking.given()
        assert (given["kind"], given["replies"]) == ("elicitation", replies)

    @pytest.mark.parametrize("word", ["happened", "leave_out"])
    async def test_on_a_call_in_doubt_says_what_to_make_of_it(
        self, asking: Asking, word: Any
    ) -> None:
        run_id = await asking.waiting(in_doubt())
        asked = await asking.approval(run_id)
        await asking.decide(run_id, Decision(asked.approval_id, word, reason="I looked."))
        (given,) = await asking.given()
        assert (given["decision"], given["reason"]) == (word, "I looked.")

    async def test_under_one_key_is_taken_once_and_answered_twice(self, asking: Asking) -> None:
        run_id = await asking.waiting()
        asked = await asking.approval(run_id)
        key = IdempotencyKey("POST /approvals/a", "key", b"body")
        first = await asking.decide(run_id, approve(asked), idempotency=key)
        again = await asking.decide(run_id, approve(asked), idempotency=key)
        assert (first.is_new, again.is_new) == (True, False)
        assert again.approvals == first.approvals
        assert again.run.run_id == run_id
        with pytest.raises(IdempotencyConflict):
            await asking.decide(
                run_id, approve(asked), idempotency=replace(key, fingerprint=b"other")
            )
        assert await asking.audit() == [("asked",), ("decided",)]

    async def test_that_was_refused_leaves_its_key_free(self, asking: Asking) -> None:
        run_id = await asking.waiting()
        asked = await asking.approval(run_id)
        key = IdempotencyKey("POST /approvals/a", "key", b"body")
        with pytest.raises(ApprovalChanged):
            await asking.decide(
                run_id, replace(approve(asked), arguments_sha256=b"x"), idempotency=key
            )
        right = await asking.decide(
            run_id, approve(asked), idempotency=replace(key, fingerprint=b"right")
        )
        assert (right.is_new, right.resumed) == (True, True)

    async def test_says_how_the_run_is_to_be_streamed_from_then_on(self, asking: Asking) -> None:
        run_id = await asking.waiting()
        resume = Resume({}, stream_modes=("updates",))
        await asking.decide(run_id, approve(await asking.approval(run_id)), resume=resume)
        run = await asking.claim()
        (row,) = await asking.tenants.call(
            *(run, "SELECT resume FROM tenant.begin_attempt($1, $2, $3, $4)"),
            *(run.run_id, run.fence, asking.worker),
        )
        assert row["resume"] == resume.as_json()

    async def test_of_a_run_that_does_not_wait_is_refused(self, asking: Asking) -> None:
        run_id = await asking.waiting()
        asked = await asking.approval(run_id)
        await asking.decide(run_id, approve(asked))
        await asking.claim()
        with pytest.raises(ApprovalClosed) as refused:
            await asking.decide(run_id, approve(asked))
        assert refused.value.approval.decision == "approve"


class TestSomebodyElses:
    async def test_question_is_not_there_whatever_is_decided(
        self, asking: Asking, bob: Principal
    ) -> None:
        run_id = await asking.waiting()
        asked = await asking.approval(run_id)
        for approval_id, word in product((asked.approval_id, uuid4()), EVERY_WORD):
            decision = Decision(approval_id, word, asked.arguments_sha256, ARGUMENTS)
            with pytest.raises(ApprovalNotFound):
                await decide(asking.tenants, bob, run_id, [decision])
            async with asking.tenants.reading(bob) as tx:
                with pytest.raises(ApprovalNotFound):
                    await find_approval(tx, approval_id)
        assert await asking.approval(run_id) == asked
        assert await asking.audit() == [("asked",)]

    async def test_run_is_not_there_for_a_question_of_ones_own(
        self, asking: Asking, bob: Principal
    ) -> None:
        """Nor is another run of one's own: what is decided is what that run asks."""
        mine = await asking.waiting()
        hers = await replace(asking, person=bob).waiting()
        other = await asking.waiting()
        asked = await asking.approval(mine)
        for run_id in (hers, other):
            with pytest.raises(ApprovalNotFound):
                await asking.decide(run_id, approve(asked))
        assert {await asking.state(each) for each in (mine, hers, other)} == {"waiting"}


class TestAPermission:
    RULING = Ruling(Ask.FIRST_USE, "p1", "example.org")

    async def found(self, asking: Asking, asked: Approval, **other: Any) -> bool:
        """Whether a call like one that was asked about can be made by its approval."""
        thread_id = other.pop("thread_id", asked.thread_id)
        person = other.pop("person", asking.person)
        tool = other.pop("tool", asked.tool)
        found = await ThreadPermissions(asking.tenants, person, thread_id).find(
            asked.server, tool, replace(self.RULING, **other)
        )
        assert found in (None, asked.approval_id)
        return found is not None

    async def test_comes_with_the_first_use_and_covers_what_is_alike(
        self, asking: Asking, bob: Principal
    ) -> None:
        asked_about = asked_call(server=None, tool="fetch", subject="example.org")
        run_id = await asking.waiting(asked_about)
        asked = await asking.approval(run_id)
        assert not await self.found(asking, asked)
        await asking.decide(run_id, approve(asked))
        assert await self.found(asking, asked)
        assert not await self.found(asking, asked, subject="example.com")
        assert not await self.found(asking, asked, version="p2")
        assert not await self.found(asking, asked, tool="fetch_all")
        other = await make_thread(asking.tenants, asking.person)
        assert not await self.found(asking, asked, thread_id=other)
        assert not await self.found(asking, asked, person=bob)
        await asking.pass_time()
        assert not await self.found(asking, asked)

    @pytest.mark.parametrize(
        ("asked", "decision", "opens"),
        [
            ({"subject": ""}, {"decision": "approve"}, True),
            ({"subject": None}, {"decision": "approve"}, False),
            ({"subject": ""}, {"decision": "reject"}, False),
            ({"subject": ""}, {"decision": "edit", "arguments": ARGUMENTS}, False),
            ({"subject": "", "may_open": True}, {"decision": "approve"}, False),
            ({"subject": "", "may_open": True}, {"decision": "approve", "scope": "thread"}, True),
        ],
        ids=[
            "first use",
            "this call alone",
            "rejected",
            "edited",
            "always asked",
            "always asked, for the thread",
        ],
    )
    async def test_is_given_by_what_is_approved_for_the_thread_alone(
        self, asking: Asking, asked: dict[str, Any], decision: dict[str, Any], opens: bool
    ) -> None:
        shown = {"may_open_thread": asked.get("may_open", False)}
        run_id = await asking.waiting(
            asked_call(subject=asked["subject"], asked={**asked_call()["asked"], **shown})
        )
        question = await asking.approval(run_id)
        decided = Decision(
            question.approval_id, arguments_sha256=question.arguments_sha256, **decision
        )
        (stands,) = (await asking.decide(run_id, decided)).approvals
        assert stands.for_thread is opens
        assert await self.found(asking, question, subject="") is opens


class TestTheInbox:
    async def test_shows_what_waits_in_every_thread_the_newest_first(
        self, asking: Asking, bob: Principal
    ) -> None:
        first = await asking.waiting(asked_call(server="a"))
        second = await asking.waiting(asked_questions(server="b"))
        decided = await asking.waiting(asked_call(server="b"))
        await replace(asking, person=bob).waiting()
        await asking.decide(decided, approve(await asking.approval(decided)))

        async def shown(wanted: ApprovalFilter) -> list[Any]:
            async with asking.tenants.reading(asking.person) as tx:
                found: Sequence[Approval] = await list_approvals(tx, wanted)
                assert await count_approvals(tx, wanted) == len(found)
            return [each.run_id for each in found]

        assert await shown(ApprovalFilter()) == [decided, second, first]
        assert await shown(ApprovalFilter("open")) == [second, first]
        assert await shown(ApprovalFilter("decided")) == [decided]
        assert await shown(ApprovalFilter(kind="elicitation")) == [second]
        assert await shown(ApprovalFilter(server="b")) == [decided, second]
        assert await shown(ApprovalFilter(run_id=first)) == [first]
        assert await shown(ApprovalFilter(thread_id=asking.threads[first])) == [first]

    async def test_has_pages(self, asking: Asking) -> None:
        runs = [await asking.waiting() for _ in range(3)]
        async with asking.tenants.reading(asking.person) as tx:
            page = await list_approvals(tx, limit=1, offset=1)
            assert [each.run_id for each in page] == [runs[1]]
            run = await get_run(tx, page[0].thread_id, runs[1])
        assert run.state is RunState.WAITING
