"""One person, one chat, two tabs: both show the same."""

from __future__ import annotations

import asyncio

import pytest
from playwright.async_api import expect

from tests.browser.conftest import Meet, Stack
from tests.support.model_server import Script

pytestmark = pytest.mark.browser

ANSWER = "one two three four five six"
PART = "one two three"


class TestTwoTabs:
    async def test_show_an_answer_that_one_of_them_asked_for_and_the_other_one_stops(
        self, stack: Stack, meet: Meet
    ) -> None:
        ada = await meet("Ada with two tabs")
        await ada.say("Hello")
        await ada.finished("You said: Hello")
        other = await ada.another_tab()
        await other.finished("You said: Hello")

        stalls = stack.stalls
        stack.model.enqueue(Script(text=ANSWER, stall_at=3))
        await ada.say("Count.")
        await stack.model.wait_for_stall(stalls + 1)
        await expect(other.typed).to_have_text(["Hello", "Count."])
        await expect(other.answer.locator("p")).to_have_text(PART)
        await expect(other.answer).to_have_attribute("aria-busy", "true")
        await other.stop_button.click()
        for tab in (ada, other):
            await tab.finished(PART)
            await expect(tab.mark).to_have_text("Stopped")
            await expect(tab.continue_button).to_be_visible()
        assert ada.complaints == other.complaints == []

    async def test_keep_one_order_of_what_is_sent_in_both(self, stack: Stack, meet: Meet) -> None:
        ada = await meet("Ada who types twice")
        await ada.say("Hello")
        await ada.finished("You said: Hello")
        other = await ada.another_tab()
        await other.finished("You said: Hello")

        stalls = stack.stalls
        stack.model.enqueue(Script(text=ANSWER, stall_at=3))
        await ada.say("Count.")
        request = await stack.model.wait_for_stall(stalls + 1)
        await other.say("And then?")
        for tab in (ada, other):
            await expect(tab.typed).to_have_text(["Hello", "Count.", "And then?"])
            await expect(tab.answer.locator("p")).to_have_text(PART)
        stack.model.release(request)
        for tab in (ada, other):
            await expect(tab.answers).to_have_count(3)
            await tab.finished("You said: And then?")
            await expect(tab.typed).to_have_text(["Hello", "Count.", "And then?"])
        assert ada.complaints == other.complaints == []

    async def test_sending_at_the_same_time_lose_and_double_nothing(
        self, stack: Stack, meet: Meet
    ) -> None:
        ada = await meet("Ada with two keyboards")
        await ada.say("Hello")
        await ada.finished("You said: Hello")
        other = await ada.another_tab()
        await other.finished("You said: Hello")
        await asyncio.gather(ada.say("From here"), other.say("From there"))
        for tab in (ada, other):
            await expect(tab.answers).to_have_count(3)
            await expect(tab.answer).to_have_attribute("aria-busy", "false")
        stored = [text for kind, text in await ada.state() if kind == "human"]
        assert sorted(stored) == ["From here", "From there", "Hello"]
        for tab in (ada, other):
            await expect(tab.typed).to_have_text(stored)
        assert ada.complaints == other.complaints == []

    async def test_lose_a_chat_together(self, stack: Stack, meet: Meet) -> None:
        ada = await meet("Ada who tidies up")
        await ada.say("Hello")
        await ada.finished("You said: Hello")
        other = await ada.another_tab()
        await other.finished("You said: Hello")
        await ada.delete_chat("Hello")
        await expect(ada.chats).to_have_count(0)
        gone = other.page.get_by_role("heading", name="This chat does not exist")
        await expect(gone).to_be_visible()
        await expect(other.chats).to_have_count(0)
        assert ada.complaints == []

    async def test_keep_a_draft_for_each_chat(self, stack: Stack, meet: Meet) -> None:
        ada = await meet("Ada who drafts")
        await ada.say("Hello")
        await ada.finished("You said: Hello")
        await ada.composer.fill("Half a thought")
        other = await ada.another_tab()
        await expect(other.composer).to_be_empty()
        await ada.page.get_by_role("link", name="New chat").first.click()
        await expect(ada.composer).to_be_empty()
        await ada.chats.first.click()
        await expect(ada.composer).to_have_value("Half a thought")

    async def test_closing_one_leaves_the_answer_to_go_on(self, stack: Stack, meet: Meet) -> None:
        ada = await meet("Ada who closes a tab")
        stalls = stack.stalls
        stack.model.enqueue(Script(text=ANSWER, stall_at=3))
        await ada.say("Count.")
        request = await stack.model.wait_for_stall(stalls + 1)
        await expect(ada.answer.locator("p")).to_have_text(PART)
        other = await ada.another_tab()
        await ada.page.close()
        await expect(other.answer.locator("p")).to_have_text(PART)
        stack.model.release(request)
        await other.finished(ANSWER)
        assert request.disconnected_at is None
        assert other.complaints == []
