"""A rollback takes back what a run wrote to its thread: all of it, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import asyncpg
import pytest

from app.agent.state import SNAPSHOT_EVERY
from app.runs.cancelling import CancelAction, cancel_runs
from app.runs.events import settle_run
from app.runs.runs import RunRequest, create_run
from tenancy.checkpoints.pool import CheckpointPool
from tenancy.checkpoints.saver import TenantSaver
from tenancy.database.crossing import DispatchDatabase
from tenancy.database.tenant import TenantDatabase
from tenancy.errors import LeaseLost
from tenancy.principal import ClaimedRun, Principal
from tenancy.run_states import RunState
from tests.integration.tenancy.conversation import Conversation
from tests.support.tenancy import (
    ASSISTANT,
    claim_runs,
    expire_leases,
    make_thread,
    make_worker,
)

TURNS_TO_A_SNAPSHOT = SNAPSHOT_EVERY // 2


class DyingSaver(TenantSaver):
    """Its process dies after the input's writes, before the checkpoint that they lead to."""

    async def aput(self, *arguments: Any) -> Any:
        raise LeaseLost


@pytest.fixture
async def conversation(
    checkpoints: CheckpointPool,
    tenants: TenantDatabase,
    dispatch: DispatchDatabase,
    superuser: asyncpg.Connection,
    alice: Principal,
    bob: Principal,
) -> Conversation:
    """Alice's thread with two turns in it; Bob has one with the same id."""
    thread_id = uuid4()
    talks = []
    for person in (bob, alice):
        await make_thread(tenants, person, thread_id)
        talk = Conversation(checkpoints, tenants, dispatch, superuser, person, thread_id)
        await talk.say("one")
        talks.append(talk)
    await talks[-1].say("two")
    return talks[-1]


BEFORE = ["one", "to one", "two", "to two"]


async def nothing(talk: Conversation, run: ClaimedRun) -> None:
    """The run was claimed, no more."""


async def input_only(talk: Conversation, run: ClaimedRun) -> None:
    """Its input lies at the checkpoint of before, no checkpoint of its own is stored."""
    with pytest.raises(LeaseLost):
        await talk.turn(run, "three", DyingSaver)


async def half(talk: Conversation, run: ClaimedRun) -> None:
    """It was killed in the middle of the answer."""
    talk.go.clear()
    talk.answering.clear()
    turn = asyncio.create_task(talk.turn(run, "three", TenantSaver))
    await talk.answering.wait()
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    talk.go.set()


async def whole(talk: Conversation, run: ClaimedRun) -> None:
    """It did everything but settle."""
    await talk.turn(run, "three", TenantSaver)


every_position = pytest.mark.parametrize("position", [nothing, input_only, half, whole])


async def cancel(talk: Conversation, run: ClaimedRun, action: CancelAction) -> None:
    """As its owner asks for it; the worker is gone, so it happens on the spot."""
    await expire_leases(talk.superuser)
    (cancelled,) = await cancel_runs(talk.tenants, talk.person, run_ids=[run.run_id], action=action)
    assert cancelled.state == RunState.CANCELLED


class TestARolledBackRun:
    @every_position
    async def test_leaves_every_row_as_it_was(
        self, position: Any, conversation: Conversation
    ) -> None:
        before = await conversation.rows()
        run = await conversation.claim()
        await position(conversation, run)
        assert (await conversation.rows() == before) == (position is nothing)
        await cancel(conversation, run, "rollback")
        assert await conversation.rows() == before
        assert await conversation.messages() == BEFORE

    @every_position
    async def test_is_unknown_to_the_next(self, position: Any, conversation: Conversation) -> None:
        run = await conversation.claim()
        await position(conversation, run)
        await cancel(conversation, run, "rollback")
        conversation.prompts.clear()
        await conversation.say("four")
        assert conversation.prompts == [[*BEFORE, "four"]]
        assert await conversation.messages() == [*BEFORE, "four", "to four"]

    async def test_is_rolled_back_by_its_worker_when_it_settles(
        self, conversation: Conversation
    ) -> None:
        before = await conversation.rows()
        run = await conversation.claim()
        await whole(conversation, run)
        (asked,) = await cancel_runs(
            conversation.tenants, conversation.person, run_ids=[run.run_id], action="rollback"
        )
        assert asked.state == RunState.RUNNING
        assert await conversation.rows() != before
        settled = await settle_run(conversation.tenants, run, RunState.SUCCESS, 1, [])
        assert settled == RunState.CANCELLED
        assert await conversation.rows() == before

    async def test_is_rolled_back_by_the_next_message_that_says_so(
        self, conversation: Conversation
    ) -> None:
        before = await conversation.rows()
        run = await conversation.claim()
        await half(conversation, run)
        await expire_leases(conversation.superuser)
        accepted = await create_run(
            conversation.tenants,
            conversation.person,
            thread_id=conversation.thread_id,
            assistant_id=ASSISTANT,
            graph_id="agent",
            request=RunRequest(input={"messages": ["four"]}),
            multitask_strategy="rollback",
        )
        assert accepted.ended == (run.run_id,)
        assert await conversation.rows() == before

    async def test_takes_every_attempt_with_it(
        self, conversation: Conversation, dispatch: DispatchDatabase
    ) -> None:
        before = await conversation.rows()
        run = await conversation.claim()
        await half(conversation, run)
        await expire_leases(conversation.superuser)
        await dispatch.reap_expired_leases()
        (again,) = await claim_runs(dispatch, await make_worker(dispatch), 1, 10)
        await whole(conversation, again)
        await cancel(conversation, again, "rollback")
        assert await conversation.rows() == before
        await conversation.say("four")
        assert await conversation.messages() == [*BEFORE, "four", "to four"]

    async def test_of_a_thread_that_it_began_leaves_an_empty_one(
        self, conversation: Conversation, tenants: TenantDatabase
    ) -> None:
        conversation.thread_id = await make_thread(tenants, conversation.person)
        run = await conversation.claim()
        await whole(conversation, run)
        await cancel(conversation, run, "rollback")
        assert await conversation.messages() == []
        await conversation.say("four")
        assert await conversation.messages() == ["four", "to four"]

    @pytest.mark.parametrize("turns", [TURNS_TO_A_SNAPSHOT - 2, TURNS_TO_A_SNAPSHOT - 1])
    async def test_may_be_the_one_that_stored_the_messages_in_full(
        self, turns: int, conversation: Conversation
    ) -> None:
        for number in range(2, turns):
            await conversation.say(str(number))
        before, said = await conversation.rows(), await conversation.messages()
        run = await conversation.claim()
        await whole(conversation, run)
        await cancel(conversation, run, "rollback")
        assert await conversation.rows() == before
        for turn in ("four", "five", "six"):
            await conversation.say(turn)
        added = [text for turn in ("four", "five", "six") for text in (turn, f"to {turn}")]
        assert await conversation.messages() == [*said, *added]


class TestAnInterruptedRun:
    @pytest.mark.parametrize(
        ("position", "kept"),
        [(nothing, []), (input_only, []), (half, ["three"]), (whole, ["three", "to three"])],
    )
    async def test_leaves_what_it_had_committed_to_the_next(
        self, position: Any, kept: Sequence[str], conversation: Conversation
    ) -> None:
        run = await conversation.claim()
        await position(conversation, run)
        await cancel(conversation, run, "interrupt")
        conversation.prompts.clear()
        await conversation.say("four")
        assert conversation.prompts == [[*BEFORE, *kept, "four"]]
        assert await conversation.messages() == [*BEFORE, *kept, "four", "to four"]

    async def test_is_continued_without_what_died_in_between(
        self, conversation: Conversation
    ) -> None:
        """A message whose run died at once was never said; it must not turn up with the next."""
        run = await conversation.claim()
        await half(conversation, run)
        await cancel(conversation, run, "interrupt")
        between = await conversation.claim()
        with pytest.raises(LeaseLost):
            await conversation.turn(between, "never said", DyingSaver)
        await cancel(conversation, between, "interrupt")
        conversation.prompts.clear()
        await conversation.say(None)
        assert conversation.prompts == [[*BEFORE, "three"]]
        assert await conversation.messages() == [*BEFORE, "three", "to three"]

    @every_position
    async def test_stays_though_the_next_is_rolled_back(
        self, position: Any, conversation: Conversation
    ) -> None:
        run = await conversation.claim()
        await position(conversation, run)
        await cancel(conversation, run, "interrupt")
        before = await conversation.messages()
        after = await conversation.claim()
        await whole(conversation, after)
        await cancel(conversation, after, "rollback")
        assert await conversation.messages() == before
