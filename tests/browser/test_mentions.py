"""Mentioning things in a message: found while it is typed, chosen, sent, and seen by the model."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest
from playwright.async_api import Locator, Page, Route, expect

from tests.browser.conftest import PHONE, Meet, Stack
from tests.browser.pages import FINGER, models_found_again
from tests.browser.visitor import Visitor
from tests.support.model_server import Script

pytestmark = pytest.mark.browser

SEARCH = "**/mentions/search"
SEAT = "Likes the window seat"
COMPOSING = """field => field.dispatchEvent(new KeyboardEvent(
  "keydown", { key: "Enter", isComposing: true, bubbles: true, cancelable: true }))"""


def field(visitor: Visitor) -> Locator:
    """Where a message is written, whatever it is to a screen reader just now."""
    return visitor.page.get_by_label("Message", exact=True)


def things(visitor: Visitor) -> Locator:
    return visitor.page.get_by_role("listbox", name="Things to mention")


def thing(visitor: Visitor, name: str | re.Pattern[str]) -> Locator:
    return things(visitor).get_by_role("option", name=name)


def chips(visitor: Visitor) -> Locator:
    return visitor.page.get_by_role("list", name="Mentioned in this message").get_by_role("button")


async def write(visitor: Visitor, text: str) -> None:
    """Type behind what is there, key by key."""
    await field(visitor).press_sequentially(text)


async def mention(visitor: Visitor, typed: str, name: str) -> None:
    """Type a part of its name after an @ and choose it with Enter."""
    await write(visitor, f"@{typed}")
    await expect(thing(visitor, name)).to_be_visible()
    await field(visitor).press("Enter")
    await expect(things(visitor)).to_have_count(0)


async def remember(visitor: Visitor, text: str) -> str:
    memory: str = (await visitor.post("/memories", {"content": text}))["memory_id"]
    return memory


async def refs(visitor: Visitor) -> list[object]:
    """What the messages of the chat that is open were stored with."""
    state = await visitor.get(f"/threads/{visitor.thread_id}/state")
    messages = state["values"]["messages"]
    return [
        each["additional_kwargs"].get("mentions") for each in messages if each["type"] == "human"
    ]


def found(*titles: str, memories: str = "ok") -> dict[str, Any]:
    """What the search answers: chats of these titles, and how it went with memories."""
    chats = [
        {"version": 1, "ref": f"thread:{title}", "provider": "stoa", "kind": "thread", "id": title}
        | {"title": title, "url": None, "scope": None}
        for title in titles
    ]
    kinds = {"thread": ("ok", chats), "memory": (memories, [])}
    groups = [
        {"source": f"{kind}s", "provider": "stoa", "kind": kind, "display_name": kind}
        | {"status": status, "results": results}
        for kind, (status, results) in kinds.items()
    ]
    return {"query": "", "groups": groups}


class Held:
    """Searches of a page that are answered when a test says so."""

    def __init__(self, page: Page) -> None:
        self.waiting: asyncio.Queue[tuple[str, Route]] = asyncio.Queue()
        self.ended: asyncio.Queue[str] = asyncio.Queue()
        page.on("requestfailed", lambda request: self._end(request.url, request.post_data))

    def _end(self, url: str, body: str | None) -> None:
        if url.endswith("/mentions/search"):
            self.ended.put_nowait(json.loads(body or "{}")["q"])

    async def hold(self, route: Route) -> None:
        self.waiting.put_nowait((json.loads(route.request.post_data or "{}")["q"], route))


class TestAMention:
    async def test_is_found_and_chosen_with_the_keyboard(self, meet: Meet) -> None:
        ada = await meet("Ada who chooses")
        await remember(ada, SEAT)
        # It is a plain field until something is searched for.
        await expect(ada.composer).to_be_focused()
        await write(ada, "Which @window")
        await expect(thing(ada, SEAT)).to_have_attribute("aria-selected", "true")
        combobox = ada.page.get_by_role("combobox", name="Message", exact=True)
        await expect(combobox).to_be_focused()
        await expect(combobox).to_have_attribute("aria-expanded", "true")
        listed = await things(ada).get_attribute("id")
        await expect(combobox).to_have_attribute("aria-controls", listed or "")
        active = await thing(ada, SEAT).get_attribute("id")
        await expect(combobox).to_have_attribute("aria-activedescendant", active or "")
        await expect(ada.page.get_by_role("status").filter(has_text="1 found.")).to_have_count(1)
        await combobox.press("Enter")
        await expect(ada.composer).to_have_value(f"Which @“{SEAT}” ")
        await expect(chips(ada)).to_have_count(1)

        # The arrow keys go from the last one to the first, and Tab chooses as Enter does.
        await write(ada, "@t")
        options = things(ada).get_by_role("option")
        await expect(options.nth(1)).to_be_visible()
        last = await options.last.locator("span").first.text_content()
        await field(ada).press("ArrowUp")
        await expect(options.last).to_have_attribute("aria-selected", "true")
        await field(ada).press("ArrowDown")
        await expect(options.first).to_have_attribute("aria-selected", "true")
        await field(ada).press("ArrowUp")
        await field(ada).press("Tab")
        await expect(ada.composer).to_be_focused()
        whole = f"Which @“{SEAT}” @“{last}” "
        await expect(ada.composer).to_have_value(whole)

        # A reload keeps it; what is deleted in a part is gone as a whole.
        await ada.page.reload()
        await expect(ada.composer).to_have_value(whole)
        await expect(chips(ada)).to_have_count(2)
        await ada.composer.press("End")
        await ada.composer.press("Backspace")
        await ada.composer.press("Backspace")
        await expect(ada.composer).to_have_value(f"Which @“{SEAT}” ")
        await expect(chips(ada)).to_have_count(1)
        assert ada.complaints == []

    async def test_is_sent_seen_by_the_model_and_shown(self, stack: Stack, meet: Meet) -> None:
        ada = await meet("Ada who points")
        memory = await remember(ada, SEAT)
        await ada.say("Trip to Oslo")
        await ada.finished("You said: Trip to Oslo")
        trip = ada.thread_id
        await ada.page.get_by_role("link", name="New chat").click()
        await expect(ada.questions).to_have_count(0)
        await write(ada, "My ")
        await mention(ada, "window", SEAT)
        await write(ada, "on the ")
        await mention(ada, "trip", "Trip to Oslo")
        await ada.composer.press("Enter")
        await expect(ada.composer).to_be_empty()
        await expect(chips(ada)).to_have_count(0)
        await ada.finished(f"You said: My @“{SEAT}” on the @“Trip to Oslo”")
        assert await refs(ada) == [[f"memory:{memory}", f"thread:{trip}"]]
        asked = json.dumps(stack.model.requests[-1].body, ensure_ascii=False)
        assert asked.count(SEAT) > 1

        # It is shown where it was sent, and a chat that is mentioned is a click away.
        await ada.page.reload()
        await expect(ada.typed).to_have_text(f"My {SEAT} on the Trip to Oslo")
        await ada.typed.get_by_role("link", name="Trip to Oslo").click()
        await ada.finished("You said: Trip to Oslo")
        assert ada.complaints == []

    async def test_is_chosen_and_taken_out_with_a_finger(self, meet: Meet) -> None:
        ada = await meet("Ada on the train who points", viewport=PHONE, has_touch=True)
        await remember(ada, f"{SEAT}, and much besides that is longer than a phone is wide")
        await ada.composer.tap()
        await write(ada, "@window")
        option = thing(ada, re.compile(SEAT))
        await expect(option).to_be_in_viewport()
        box = await option.bounding_box()
        assert box is not None
        assert box["height"] >= FINGER
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= PHONE["width"]
        await expect(field(ada)).to_be_in_viewport()
        assert not await ada.is_wider_than_the_screen()
        await option.tap()
        await expect(chips(ada)).to_have_count(1)
        box = await chips(ada).bounding_box()
        assert box is not None
        assert box["height"] >= FINGER
        assert not await ada.is_wider_than_the_screen()
        await chips(ada).tap()
        await expect(chips(ada)).to_have_count(0)
        await expect(ada.composer).to_be_empty()
        assert ada.complaints == []


class TestTheList:
    async def test_goes_with_escape_and_leaves_what_was_typed(
        self, stack: Stack, meet: Meet
    ) -> None:
        ada = await meet("Ada who changes her mind")
        await remember(ada, SEAT)
        stack.model.enqueue(Script(text="One. Two. Three.", stall_at=1))
        await ada.say("Count.")
        await expect(ada.stop_button).to_be_visible()
        await write(ada, "my @window")
        await expect(thing(ada, SEAT)).to_be_visible()
        # A key press that composes a character is none for the list.
        await field(ada).evaluate(COMPOSING)
        await expect(thing(ada, SEAT)).to_be_visible()
        await field(ada).press("Escape")
        await expect(things(ada)).to_have_count(0)
        await expect(ada.composer).to_have_value("my @window")
        await expect(ada.composer).to_be_focused()
        await write(ada, " seat")
        await expect(things(ada)).to_have_count(0)
        # Nor was the answer stopped by it; the next @ is another search.
        await expect(ada.stop_button).to_be_visible()
        await write(ada, ", @window")
        await expect(thing(ada, SEAT)).to_be_visible()
        await ada.page.get_by_role("main").click(position={"x": 5, "y": 5})
        await expect(things(ada)).to_have_count(0)
        await expect(field(ada)).to_have_value("my @window seat, @window")
        assert ada.complaints == []

    async def test_shows_what_was_asked_for_last(self, meet: Meet) -> None:
        ada = await meet("Ada who types on")
        searches = Held(ada.page)
        await ada.page.route(SEARCH, searches.hold)
        await write(ada, "@o")
        asked, first = await searches.waiting.get()
        assert asked == "o"
        # What is typed meanwhile takes its place, and nobody waits for it any more.
        await write(ada, "s")
        assert await searches.ended.get() == "o"
        asked, second = await searches.waiting.get()
        assert asked == "os"
        await first.fulfill(json=found("Too late"))
        await second.fulfill(json=found("Oslo"))
        await expect(things(ada).get_by_role("option")).to_have_text(["Oslo"])
        # While the next one is on its way, what is shown can be chosen.
        await write(ada, "l")
        await searches.waiting.get()
        await expect(things(ada)).to_have_attribute("aria-busy", "true")
        await field(ada).press("Enter")
        assert await searches.ended.get() == "osl"
        await expect(ada.composer).to_have_value("@“Oslo” ")
        assert ada.complaints == []

    async def test_leaves_alone_what_goes_on_as_a_sentence(self, meet: Meet) -> None:
        ada = await meet("Ada who has more to say")
        await ada.page.route(SEARCH, lambda route: route.fulfill(json=found("Oslo")))
        await write(ada, "@os")
        await expect(thing(ada, "Oslo")).to_be_visible()
        # One word of it may still be found: Enter would put that in the place of all of them.
        await write(ada, ", is it far?")
        await expect(things(ada)).to_have_count(0)
        await field(ada).press("Enter")
        await ada.finished("You said: @os, is it far?")
        assert ada.complaints == []

    async def test_says_which_source_has_no_answer_beside_what_others_have(
        self, meet: Meet
    ) -> None:
        ada = await meet("Ada who waits for no source")
        answer = found("Oslo", memories="timeout")
        await ada.page.route(SEARCH, lambda route: route.fulfill(json=answer))
        await write(ada, "@os")
        await expect(thing(ada, "Oslo")).to_be_visible()
        told = ada.page.get_by_role("paragraph").filter(
            has_text="Memories: did not answer in time."
        )
        await expect(told).to_be_visible()
        heard = ada.page.get_by_role("status").filter(has_text="1 found.")
        await expect(heard).to_contain_text("Memories: did not answer in time.")
        answer = found(memories="unauthorized")
        await write(ada, "x")
        await expect(
            ada.page.get_by_role("paragraph").filter(has_text="Nothing found")
        ).to_be_visible()
        await expect(things(ada)).to_have_count(0)
        # Nothing is there to be chosen: Enter sends what was typed.
        await field(ada).press("Enter")
        await ada.finished("You said: @osx")
        assert ada.complaints == []

    async def test_keeps_what_was_typed_whatever_the_search_says(self, meet: Meet) -> None:
        ada = await meet("Ada whose search fails")
        answers: list[dict[str, Any]] = [
            {"status": 400, "json": {"code": "invalid_input", "detail": "No."}},
            {"status": 429, "json": {"code": "request_rate_exceeded", "detail": "Slowly."}},
            {"status": 500, "json": {"code": "internal", "detail": "Oh."}},
        ]

        async def fail(route: Route) -> None:
            if answers:
                await route.fulfill(**answers.pop(0))
            else:
                await route.abort()

        await ada.page.route(SEARCH, fail)
        told = ada.page.get_by_role("paragraph").filter(has_text="The search did not work.")
        for key, reason in (
            ("a", "No."),
            ("b", "too many requests"),
            ("c", "on our side"),
            ("d", "cannot be reached"),
        ):
            await write(ada, "@a" if key == "a" else key)
            await expect(told).to_contain_text(reason)
        await expect(field(ada)).to_have_value("@abcd")
        await ada.page.unroute(SEARCH)
        await remember(ada, "abcde")
        await write(ada, "e")
        await expect(thing(ada, "abcde")).to_be_visible()
        await expect(told).to_have_count(0)
        # Its sign-in may have run out as well: what was typed is there after the next one.
        await ada.page.route(SEARCH, lambda route: route.fulfill(status=401))
        await field(ada).press("Backspace")
        await expect(ada.page.get_by_role("heading", name="You are signed out")).to_be_visible()
        await ada.page.unroute(SEARCH)
        await ada.page.reload()
        await expect(ada.composer).to_have_value("@abcd")


class TestAMessageThatMentions:
    async def test_is_not_sent_where_that_is_gone_and_says_what(self, meet: Meet) -> None:
        ada = await meet("Ada who points at what is gone")
        memory = await remember(ada, SEAT)
        await mention(ada, "window", SEAT)
        await mention(ada, "time", "time_now")
        gone = await ada.context.request.delete(f"{ada.base_url}/memories/{memory}")
        assert gone.ok
        await ada.composer.press("Enter")
        await expect(ada.failure).to_contain_text(f"“{SEAT}” is not there any more.")
        await expect(ada.composer).to_have_value(f"@“{SEAT}” @“time_now”")
        await expect(ada.questions).to_have_count(0)
        await ada.page.get_by_role("button", name=f"Take “{SEAT}” out of the message").click()
        await expect(ada.composer).to_have_value("@“time_now”")
        await expect(ada.composer).to_be_focused()
        await ada.composer.press("Enter")
        await ada.finished("You said: @“time_now”")
        assert await refs(ada) == [["tool:stoa:time_now"]]

    async def test_mentions_the_same_when_it_is_answered_anew(
        self, stack: Stack, meet: Meet
    ) -> None:
        ada = await meet("Ada who tries again and points", operator=True)
        memory = await remember(ada, SEAT)
        stack.model.enqueue(Script(status=404, error="model 'smollm2' not found"))
        await write(ada, "My ")
        await mention(ada, "window", SEAT)
        await ada.composer.press("Enter")
        await expect(ada.failure).to_be_visible()
        await models_found_again(ada)
        await ada.page.get_by_role("button", name="Try again").click()
        await ada.finished(f"You said: My @“{SEAT}”")
        assert await refs(ada) == [[f"memory:{memory}"]]
        assert json.dumps(stack.model.requests[-1].body, ensure_ascii=False).count(SEAT) > 1
