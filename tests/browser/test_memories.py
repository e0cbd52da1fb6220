"""The page of what is remembered about a person."""

from __future__ import annotations

import pytest
from playwright.async_api import Locator, expect

from tests.browser.conftest import PHONE, Meet, Stack
from tests.browser.visitor import Visitor
from tests.support.model_server import Script, ToolCall

pytestmark = pytest.mark.browser

FINGER = 44
PAGE = 20
SMALL = """least => [...document.querySelectorAll("main :is(a, button, input, textarea)")]
  .filter((each) => each.checkVisibility() && each.getBoundingClientRect().height < least)
  .map((each) => each.textContent || each.outerHTML)"""


def memory(visitor: Visitor, text: str) -> Locator:
    return visitor.page.get_by_role("main").get_by_role("listitem").filter(has_text=text)


async def open_memory(visitor: Visitor, *, on_phone: bool = False) -> None:
    """Go there by the account's menu."""
    if on_phone:
        await visitor.page.get_by_role("button", name="Open the list of chats").tap()
    await visitor.account()
    await visitor.page.get_by_role("menuitem", name="Memory").click()
    await expect(visitor.page.get_by_role("heading", name="Memory", level=1)).to_be_visible()


async def write_down(visitor: Visitor, text: str) -> None:
    await visitor.page.get_by_role("button", name="Write something down").click()
    await visitor.page.get_by_role("textbox", name="What should be remembered?").fill(text)
    await visitor.page.get_by_role("button", name="Save").click()
    await expect(memory(visitor, text)).to_be_visible()


class TestMemory:
    async def test_is_written_changed_and_deleted(self, meet: Meet) -> None:
        ada = await meet("Ada who writes it down", viewport=PHONE, has_touch=True)
        await open_memory(ada, on_phone=True)
        await expect(ada.page.get_by_text("Nothing is remembered yet")).to_be_visible()
        await write_down(ada, "Takes the train, never the plane")
        await memory(ada, "train").get_by_role("button", name="Change").click()
        field = ada.page.get_by_role("textbox", name="Memory")
        await expect(field).to_be_focused()
        await field.fill("Takes the night train" + "!" * 300)
        await ada.page.get_by_role("button", name="Save").click()
        await expect(memory(ada, "night train")).to_contain_text("changed")
        assert not await ada.is_wider_than_the_screen()
        assert await ada.page.evaluate(SMALL, FINGER) == []
        await memory(ada, "night train").get_by_role("button", name="Delete").click()
        dialog = ada.page.get_by_role("dialog", name="Delete this memory?")
        await dialog.get_by_role("button", name="Delete").click()
        await expect(ada.page.get_by_text("Nothing is remembered yet")).to_be_visible()
        assert ada.complaints == []

    async def test_leads_to_the_chat_that_it_came_from(self, stack: Stack, meet: Meet) -> None:
        ada = await meet("Ada who tells")
        remembering = ToolCall(name="remember", arguments={"content": "Likes the window seat"})
        stack.model.enqueue(Script(text="", tool_calls=(remembering,)))
        stack.model.enqueue(Script(text="I will."))
        await ada.say("Remember where I sit.")
        await ada.finished("I will.")
        chat = ada.page.url
        await open_memory(ada)
        await memory(ada, "window seat").get_by_role("link").click()
        await ada.finished("I will.")
        assert ada.page.url == chat
        assert ada.complaints == []

    async def test_is_searched_leafed_through_and_emptied(self, meet: Meet) -> None:
        ada = await meet("Ada who keeps much")
        for number in range(PAGE + 1):
            await ada.post("/memories", {"content": f"Has read book {number}"})
        await open_memory(ada)
        await expect(ada.page.get_by_text("21 memories")).to_be_visible()
        await expect(memory(ada, "Has read")).to_have_count(PAGE)
        await ada.page.get_by_role("button", name="Older").click()
        await expect(memory(ada, "Has read")).to_have_count(1)
        await expect(memory(ada, "Has read book 0")).to_be_visible()

        await ada.page.get_by_role("searchbox").fill("book 17")
        await ada.page.get_by_role("button", name="Search").click()
        await expect(memory(ada, "Has read book 17")).to_be_visible()
        await ada.page.get_by_role("button", name="Show all").click()

        await ada.page.get_by_role("button", name="Delete everything").click()
        dialog = ada.page.get_by_role("dialog", name="Delete everything that is remembered?")
        sure = dialog.get_by_role("button", name="Delete everything")
        await expect(sure).to_be_disabled()
        await dialog.get_by_role("textbox").fill("DELETE")
        await sure.click()
        await expect(ada.page.get_by_text("Nothing is remembered yet")).to_be_visible()
        assert await ada.get("/memories") == []
        assert ada.complaints == []
