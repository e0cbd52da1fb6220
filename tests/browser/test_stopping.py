"""Stopping an answer, and going on with it."""

from __future__ import annotations

import asyncio

import pytest
from playwright.async_api import Route, expect

from tests.browser.conftest import PHONE, Meet, Stack
from tests.browser.visitor import Visitor
from tests.support.model_server import RecordedRequest, Script

pytestmark = pytest.mark.browser

ANSWER = "one two three four five six"
PART = "one two three"
# A refused stream is known to be refused, but what the refusal says is a while in coming.
SLOW_REFUSALS = """() => {
  const read = Response.prototype.text;
  Response.prototype.text = async function () {
    const text = await read.call(this);
    if (this.url.includes("/stream")) await window.untilHome();
    return text;
  };
}"""


async def ask(ada: Visitor, stack: Stack) -> RecordedRequest:
    """Ask, and wait until half of the answer is there."""
    stalls = stack.stalls
    stack.model.enqueue(Script(text=ANSWER, stall_at=3))
    await ada.say("Count.")
    request = await stack.model.wait_for_stall(stalls + 1)
    await expect(ada.answer.locator("p")).to_have_text(PART)
    return request


async def states(ada: Visitor) -> list[str]:
    """The states of the chat's runs, the first one first."""
    runs = await ada.get(f"/threads/{ada.thread_id}/runs")
    return [run["state"] for run in sorted(runs, key=lambda run: str(run["created_at"]))]


class TestStop:
    async def test_ends_the_answer_and_keeps_what_had_come(self, stack: Stack, meet: Meet) -> None:
        ada = await meet("Ada who stops")
        request = await ask(ada, stack)
        gone = sum(each.disconnected_at is not None for each in stack.model.requests)
        await ada.stop_button.click()
        assert await stack.model.wait_for_disconnect(gone + 1) is request
        await ada.finished(PART)
        await expect(ada.mark).to_have_text("Stopped")
        await expect(ada.stop_button).to_have_count(0)
        await expect(ada.chats.first).to_contain_text("Stopped")
        assert await states(ada) == ["cancelled"]

        await ada.page.reload()
        await ada.finished(PART)
        await expect(ada.mark).to_have_text("Stopped")
        await expect(ada.continue_button).to_be_visible()
        await expect(ada.answers).to_have_count(1)
        await expect(ada.questions).to_have_count(1)
        assert ada.complaints == []

    async def test_tells_a_screen_reader_so_and_not_that_it_was_answered(
        self, stack: Stack, meet: Meet
    ) -> None:
        ada = await meet("Ada who listens and stops")
        await ada.be_patient()
        await ada.listen()
        await ask(ada, stack)
        await ada.stop_button.click()
        heard = await ada.heard("Stopped")
        assert heard == ["The assistant is answering.", "Stopping…", "Stopped"]

    async def test_is_what_escape_does(self, stack: Stack, meet: Meet) -> None:
        ada = await meet("Ada who escapes")
        await ask(ada, stack)
        await ada.composer.press("Escape")
        await expect(ada.mark).to_have_text("Stopped")
        assert ada.complaints == []

    async def test_works_after_a_reload(self, stack: Stack, meet: Meet) -> None:
        ada = await meet("Ada who comes back to stop")
        await ask(ada, stack)
        await ada.page.reload()
        await expect(ada.answer.locator("p")).to_have_text(PART)
        await ada.stop_button.click()
        await ada.finished(PART)
        await expect(ada.mark).to_have_text("Stopped")
        assert ada.complaints == []

    async def test_names_the_tool_that_it_waits_for(self, stack: Stack, meet: Meet) -> None:
        ada = await meet("Ada who saves")
        stalls = stack.stalls
        stack.model.enqueue(Script(text=ANSWER, stall_at=0))
        thread = await ada.post("/threads", {})
        run = {
            "assistant_id": "saving",
            "input": {"messages": [{"type": "human", "content": "Save it."}]},
            "config": {"configurable": {"model_url": stack.model.url}},
        }
        await ada.post(f"/threads/{thread['thread_id']}/runs", run)
        await ada.page.goto(f"{stack.url}/chat/{thread['thread_id']}")
        request = await stack.model.wait_for_stall(stalls + 1)
        await ada.stop_button.click()
        await expect(ada.page.get_by_text("Stopping: finishing save")).to_be_visible()
        stack.model.release(request)
        await expect(ada.stop_notice).to_contain_text("You stopped this")
        assert request.disconnected_at is None
        assert await states(ada) == ["cancelled"]
        assert ada.complaints == []

    async def test_that_gets_no_answer_says_so_and_can_be_repeated(
        self, stack: Stack, meet: Meet
    ) -> None:
        ada = await meet("Ada in a tunnel")
        await ask(ada, stack)

        async def refuse(route: Route) -> None:
            await route.abort()

        await ada.page.route("**/cancel?*", refuse)
        await ada.stop_button.click()
        await expect(ada.failure).to_contain_text("could not be stopped")
        await ada.page.unroute_all(behavior="wait")
        await ada.stop_button.click()
        await expect(ada.mark).to_have_text("Stopped")
        await expect(ada.failure).to_have_count(0)
        assert ada.complaints_except("Failed to load resource: net::ERR_FAILED") == []

    async def test_that_comes_too_late_changes_nothing(self, stack: Stack, meet: Meet) -> None:
        ada = await meet("Ada who is late")
        request = await ask(ada, stack)

        async def hold(route: Route) -> None:
            stack.model.release(request)
            while (await states(ada)) != ["success"]:
                pass
            await route.continue_()

        await ada.page.route("**/cancel?*", hold)
        await ada.stop_button.click()
        await ada.finished(ANSWER)
        await ada.page.unroute_all(behavior="wait")
        await expect(ada.mark).to_have_count(0)
        await expect(ada.failure).to_have_count(0)
        await expect(ada.stop_button).to_have_count(0)
        assert ada.complaints == []

    async def test_before_the_first_word_leaves_the_question_to_be_asked_again(
        self, stack: Stack, meet: Meet
    ) -> None:
        ada = await meet("Ada who regrets")
        stalls = stack.stalls
        stack.model.enqueue(Script(text=ANSWER, stall_at=0))
        await ada.say("Count.")
        await stack.model.wait_for_stall(stalls + 1)
        await ada.stop_button.click()
        for _ in range(2):
            await expect(ada.stop_notice).to_contain_text("You stopped this before")
            await expect(ada.typed).to_have_text(["Count."])
            await expect(ada.answers).to_have_count(0)
            await ada.page.reload()
        await ada.page.get_by_role("button", name="Try again").click()
        await ada.finished("You said: Count.")
        await expect(ada.questions).to_have_count(1)
        assert ada.complaints == []


class TestAQueuedMessage:
    async def test_waits_below_the_answer_and_is_answered_after_it(
        self, stack: Stack, meet: Meet
    ) -> None:
        ada = await meet("Ada who hurries")
        request = await ask(ada, stack)
        await ada.say("And then?")
        await expect(ada.page.locator("#content").get_by_text("Queued")).to_be_visible()
        await expect(ada.typed).to_have_text(["Count.", "And then?"])
        await ada.page.reload()
        await expect(ada.typed).to_have_text(["Count.", "And then?"])
        stack.model.release(request)
        await expect(ada.answers).to_have_count(2)
        await ada.finished("You said: And then?")
        await expect(ada.typed).to_have_text(["Count.", "And then?"])
        said = ["Count.", ANSWER, "And then?", "You said: And then?"]
        assert [text for _, text in await ada.state()] == said
        assert ada.complaints == []

    async def test_can_be_stopped_and_is_not_lost(self, stack: Stack, meet: Meet) -> None:
        ada = await meet("Ada with a full plate")
        held = []
        for number in range(4):  # as many as one person may have running
            stalls = stack.stalls
            stack.model.enqueue(Script(text=ANSWER, stall_at=3))
            body = {"input": {"messages": [{"role": "user", "content": f"{number}"}]}}
            thread = await ada.post("/threads", {})
            path = f"/threads/{thread['thread_id']}/runs"
            await ada.post(path, {"assistant_id": "agent", **body})
            held.append(await stack.model.wait_for_stall(stalls + 1))
        try:
            await ada.say("One more?")
            await expect(ada.chats.first).to_contain_text("Queued")
            await ada.stop_button.click()
            for _ in range(2):
                await expect(ada.stop_notice).to_contain_text("You stopped this before")
                await expect(ada.typed).to_have_text(["One more?"])
                await ada.page.reload()
            assert await states(ada) == ["cancelled"]
        finally:
            for request in held:
                stack.model.release(request)
        await ada.page.get_by_role("button", name="Try again").click()
        await ada.finished("You said: One more?")
        await expect(ada.questions).to_have_count(1)
        assert ada.complaints == []

    async def test_that_is_deleted_with_its_chat_leaves_no_error_behind(
        self, stack: Stack, meet: Meet
    ) -> None:
        ada = await meet("Ada who has had enough")
        await ask(ada, stack)
        await ada.say("And then?")
        await expect(ada.page.locator("#content").get_by_text("Queued")).to_be_visible()
        refused, gone_home = asyncio.Event(), asyncio.Event()

        async def hold_delete(route: Route) -> None:
            response = await route.fetch()
            await refused.wait()
            await route.fulfill(response=response)

        async def until_home() -> None:
            refused.set()
            await gone_home.wait()

        await ada.page.expose_function("untilHome", until_home)
        await ada.page.evaluate(SLOW_REFUSALS)
        await ada.page.route(f"**/threads/{ada.thread_id}", hold_delete)
        await ada.delete_chat("Count.")
        home = ada.page.get_by_role("heading", name="What would you like to know?")
        await expect(home).to_be_visible()
        async with ada.page.expect_console_message(lambda told: "HTTP 404" in told.text):
            gone_home.set()
        # What a stream brings is drawn within 40 ms; that nothing is drawn can only be waited out.
        await ada.page.wait_for_timeout(400)
        await expect(ada.failure).to_have_count(0)
        await expect(home).to_be_visible()
        await ada.page.unroute_all(behavior="wait")


class TestContinue:
    async def test_goes_on_after_a_stop(self, stack: Stack, meet: Meet) -> None:
        ada = await meet("Ada who changes her mind")
        await ask(ada, stack)
        await ada.stop_button.click()
        await expect(ada.mark).to_have_text("Stopped")
        stack.model.enqueue(Script(text="four five six"))
        await ada.continue_button.click()
        await ada.finished("four five six")
        await expect(ada.continue_button).to_have_count(0)
        await expect(ada.answers.first).to_contain_text(PART)
        await expect(ada.questions).to_have_count(1)
        assert await states(ada) == ["cancelled", "success"]
        assert ada.complaints == []

    async def test_that_does_not_arrive_says_so_and_can_be_repeated(
        self, stack: Stack, meet: Meet
    ) -> None:
        ada = await meet("Ada in another tunnel")
        await ask(ada, stack)
        await ada.stop_button.click()
        await expect(ada.mark).to_have_text("Stopped")

        async def refuse(route: Route) -> None:
            await route.abort()

        await ada.page.route("**/runs/stream", refuse)
        await ada.continue_button.click()
        await expect(ada.failure).to_contain_text("The service cannot be reached")
        await ada.page.unroute_all(behavior="wait")
        stack.model.enqueue(Script(text="four five six"))
        await ada.failure.get_by_role("button", name="Continue").click()
        await ada.finished("four five six")
        await expect(ada.failure).to_have_count(0)

    async def test_goes_on_after_the_last_allowed_step(self, stack: Stack, meet: Meet) -> None:
        ada = await meet("Ada with many steps")
        thread = await ada.post("/threads", {})
        message = {"type": "human", "content": "Go."}
        run = {
            "assistant_id": "steps",
            "input": {"messages": [message]},
            "config": {"recursion_limit": 2},
        }
        await ada.post(f"/threads/{thread['thread_id']}/runs", run)
        await ada.page.goto(f"{stack.url}/chat/{thread['thread_id']}")
        for _ in range(2):
            await expect(ada.failure).to_contain_text("as many steps as it may take in one go")
            await expect(ada.answers).to_have_count(2)
            await ada.page.reload()
        await ada.failure.get_by_role("button", name="Continue").click()
        await ada.finished("Step 3.")
        await expect(ada.failure).to_have_count(0)
        await expect(ada.answers).to_have_count(3)
        assert await states(ada) == ["error", "success"]
        assert ada.complaints_except("recursion_limit: ") == []

    async def test_goes_on_after_a_failure_in_mid_answer(self, stack: Stack, meet: Meet) -> None:
        ada = await meet("Ada who is cut off and goes on")
        stack.model.enqueue(Script(text=ANSWER, cut_at=3))
        await ada.say("Count.")
        for _ in range(2):
            await expect(ada.failure).to_contain_text("broke off in the middle")
            await expect(ada.mark).to_have_text("Incomplete")
            await ada.page.reload()
        stack.model.enqueue(Script(text="four five six"))
        await ada.failure.get_by_role("button", name="Continue").click()
        await ada.finished("four five six")
        await expect(ada.failure).to_have_count(0)
        assert ada.complaints_except("model_stream_cut: ") == []


class TestOnAPhone:
    async def test_stop_is_as_large_as_a_finger(self, stack: Stack, meet: Meet) -> None:
        ada = await meet("Ada on a small screen", viewport=PHONE, has_touch=True, is_mobile=True)
        await ask(ada, stack)
        await ada.composer.fill("And then?")
        for button in (ada.stop_button, ada.page.get_by_role("button", name="Send")):
            box = await button.bounding_box()
            assert box is not None
            assert min(box["width"], box["height"]) >= 44
        assert not await ada.is_wider_than_the_screen()
        await ada.composer.fill("")
        await ada.stop_button.tap()
        await expect(ada.mark).to_have_text("Stopped")
        await expect(ada.continue_button).to_be_in_viewport()
        assert not await ada.is_wider_than_the_screen()
        assert ada.complaints == []
