"""Asking and being answered: word by word, across reloads, and when the model fails."""

from __future__ import annotations

import asyncio
import contextlib
import re

import pytest
from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Route, expect

from tests.browser.conftest import Meet, Stack
from tests.browser.pages import models_found_again
from tests.support.model_server import Script

pytestmark = pytest.mark.browser

ANSWER = "one two three four five six"
PART = "one two three"


class TestAnAnswer:
    async def test_appears_while_it_is_made(self, stack: Stack, meet: Meet) -> None:
        ada = await meet("Ada")
        stalls = stack.stalls
        stack.model.enqueue(Script(text=ANSWER, stall_at=3))
        await ada.say("Count.")
        request = await stack.model.wait_for_stall(stalls + 1)
        await expect(ada.answer.locator("p")).to_have_text(PART)
        await expect(ada.answer).to_have_attribute("aria-busy", "true")
        (run,) = await ada.get(f"/threads/{ada.thread_id}/runs")
        assert run["status"] == "running"
        await expect(ada.chats).to_contain_text(["Count."])

        stack.model.release(request)
        await ada.finished(ANSWER)
        await expect(ada.questions).to_have_count(1)
        assert await ada.state() == [("human", "Count."), ("ai", ANSWER)]
        assert ada.complaints == []

    async def test_is_shown_whole_though_an_older_state_was_still_on_its_way(
        self, stack: Stack, meet: Meet
    ) -> None:
        ada = await meet("Ada who is quick")
        stalls = stack.stalls
        stack.model.enqueue(Script(text=ANSWER, stall_at=3))
        read, late = asyncio.Event(), asyncio.Event()

        async def hold(route: Route) -> None:
            response = await route.fetch()
            read.set()
            await late.wait()
            with contextlib.suppress(PlaywrightError):  # it is not waited for any more
                await route.fulfill(response=response)

        await ada.page.route("**/state", hold, times=1)
        await ada.say("Count.")
        request = await stack.model.wait_for_stall(stalls + 1)
        await read.wait()
        stack.model.release(request)
        try:
            await ada.finished(ANSWER)
        finally:
            late.set()
        await ada.page.unroute_all(behavior="wait")
        await ada.finished(ANSWER)
        assert ada.complaints == []

    async def test_is_gone_on_with_in_the_same_chat(self, stack: Stack, meet: Meet) -> None:
        ada = await meet("Ada again")
        await ada.composer.fill("First")
        await ada.page.get_by_role("button", name="Send").click()
        await ada.finished("You said: First")
        await ada.say("Second")
        await expect(ada.answers).to_have_count(2)
        await ada.finished("You said: Second")
        await expect(ada.chats).to_have_count(1)
        await ada.page.get_by_role("link", name="New chat").first.click()
        await expect(ada.answers).to_have_count(0)
        await ada.say("Elsewhere")
        await ada.finished("You said: Elsewhere")
        await expect(ada.chats).to_have_count(2)
        await ada.chats.filter(has_text="First").click()
        await expect(ada.questions).to_have_text(["First", "Second"])
        assert ada.complaints == []


class TestAReload:
    async def test_in_mid_answer_goes_on_with_it_and_doubles_nothing(
        self, stack: Stack, meet: Meet
    ) -> None:
        ada = await meet("Ada who reloads")
        stalls = stack.stalls
        stack.model.enqueue(Script(text=ANSWER, stall_at=3))
        await ada.say("Count.")
        request = await stack.model.wait_for_stall(stalls + 1)
        await expect(ada.answer.locator("p")).to_have_text(PART)
        await ada.page.reload()
        await expect(ada.answer.locator("p")).to_have_text(PART)
        await expect(ada.answer).to_have_attribute("aria-busy", "true")
        await expect(ada.questions).to_have_text(["Count."])

        stack.model.release(request)
        await ada.finished(ANSWER)
        await expect(ada.questions).to_have_text(["Count."])
        await expect(ada.answers).to_have_text([ANSWER])
        assert await ada.state() == [("human", "Count."), ("ai", ANSWER)]
        await ada.page.reload()
        await ada.finished(ANSWER)
        await expect(ada.answers).to_have_count(1)
        await expect(ada.questions).to_have_count(1)
        (run,) = await ada.get(f"/threads/{ada.thread_id}/runs")
        assert run["status"] == "success"
        assert ada.complaints == []


class TestAFailure:
    async def test_is_said_plainly_survives_a_reload_and_can_be_tried_again(
        self, stack: Stack, meet: Meet
    ) -> None:
        ada = await meet("Ada without a model", operator=True)
        stack.model.enqueue(Script(status=404, error="model 'smollm2' not found"))
        await ada.say("Hello?")
        told = "The language model is not installed on the model server."
        await expect(ada.failure).to_contain_text(told)
        await ada.page.reload()
        await expect(ada.failure).to_contain_text(told)
        (run,) = await ada.get(f"/threads/{ada.thread_id}/runs")
        await expect(ada.failure).to_contain_text(f"Reference: {run['run_id']}")
        await expect(ada.questions).to_have_text(["Hello?"])
        await models_found_again(ada)
        await ada.failure.get_by_role("button", name="Try again").click()
        await ada.finished("You said: Hello?")
        await expect(ada.failure).to_have_count(0)
        await expect(ada.questions).to_have_count(1)
        assert ada.complaints_except("model_missing: ") == []

    async def test_in_mid_answer_keeps_what_had_come(self, stack: Stack, meet: Meet) -> None:
        ada = await meet("Ada who is cut off")
        stack.model.enqueue(Script(text=ANSWER, cut_at=3))
        await ada.say("Count.")
        for _ in range(2):
            await expect(ada.failure).to_contain_text("broke off in the middle")
            await ada.finished(PART)
            await expect(ada.answers).to_have_count(1)
            await ada.page.reload()
        assert await ada.state() == [("human", "Count."), ("ai", PART)]
        await ada.say("And now?")
        await ada.finished("You said: And now?")
        assert ada.complaints_except("model_stream_cut: ") == []

    async def test_that_is_read_again_loses_no_message_that_is_sent_meanwhile(
        self, stack: Stack, meet: Meet
    ) -> None:
        ada = await meet("Ada who cannot wait")
        stack.model.enqueue(Script(text=ANSWER, cut_at=3))
        await ada.say("Count.")
        await expect(ada.failure).to_contain_text("broke off in the middle")
        asked, may_go_on = asyncio.Event(), asyncio.Event()

        async def hold(route: Route) -> None:
            asked.set()
            await may_go_on.wait()
            await route.continue_()

        async def refuse(route: Route) -> None:
            await route.abort()

        await ada.page.route(re.compile("/runs/[^/]+/stream"), hold)
        await ada.page.route("**/runs/stream", refuse)
        await ada.page.reload()
        await asked.wait()
        await ada.say("And now?")
        may_go_on.set()
        await expect(ada.failure).to_contain_text("The service cannot be reached")
        await ada.page.unroute_all(behavior="wait")
        await ada.failure.get_by_role("button", name="Try again").click()
        await ada.finished("You said: And now?")
        await expect(ada.typed).to_have_text(["Count.", "And now?"])

    async def test_is_what_a_screen_reader_is_told_and_not_that_it_was_answered(
        self, stack: Stack, meet: Meet
    ) -> None:
        ada = await meet("Ada who listens")
        await ada.be_patient()
        await ada.listen()
        stack.model.enqueue(Script(text=ANSWER, cut_at=3))
        await ada.say("Count.")
        heard = await ada.heard("The answer could not be finished")
        assert heard == ["The assistant is answering.", "The answer could not be finished"]
