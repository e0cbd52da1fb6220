"""Asked before acting: a call as its person sees it, and what becomes of it as they decide."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest
from playwright.async_api import Locator, Route, expect

from tests.browser.conftest import PHONE, Meet, ToolStack
from tests.browser.test_tools import uses
from tests.browser.visitor import Visitor
from tests.support.model_server import Script

pytestmark = pytest.mark.browser

PLACE = {"city": "Ulm", "floor": 2.0}
LATE = "Failed to load resource: the server responded with a status of 409"


def ticket(title: str, **more: Any) -> tuple[str, dict[str, Any]]:
    """A call that opens a ticket."""
    return ("office__open", {"title": title, "price": 1.0, "place": PLACE, **more})


def asked(visitor: Visitor, name: str = "") -> Locator:
    """What the person is asked."""
    return visitor.page.get_by_role("region", name=re.compile(f"{name}.*[?]"))


async def ask_for(visitor: Visitor, tools: ToolStack, *calls: tuple[str, dict[str, Any]]) -> None:
    """Have the model make calls, and wait until the person is asked of the last one."""
    tools.model.enqueue(uses(*calls, saying="I would do that now."))
    await visitor.say("Do it.")
    await expect(asked(visitor)).to_have_count(len(calls))


class TestACallThatWaitsForItsPerson:
    async def test_is_shown_as_it_will_be_made_and_is_made_with_what_they_changed(
        self, tools: ToolStack, welcome: Meet
    ) -> None:
        ada = await welcome("Ada who looks twice")
        await ada.listen()
        await ask_for(ada, tools, ticket("A lamp\u202e"))
        card = asked(ada, "office · open")
        said = card.get_by_role("figure", name=re.compile("own words, not checked by anybody"))
        await expect(said).to_contain_text("I would do that now.")
        await expect(card.locator("[data-argument=title] pre")).to_have_text("A lamp\\u{202e}")
        await expect(card.locator("[data-argument=price] pre")).to_have_text("1.0")
        await expect(card.locator("[data-argument=place] pre")).to_contain_text('"floor": 2.0')
        await expect(card).to_contain_text(re.compile("left to decide"))
        await expect(ada.page.locator("[data-call=asking]")).to_contain_text("Waiting for you")
        await card.get_by_role("button", name="Change…").press("Enter")
        title = card.get_by_role("textbox", name="Title")
        await expect(title).to_be_focused()
        await title.fill("A chair")
        await card.get_by_role("textbox", name="place").fill("{city: Bonn}")

        await ada.page.reload()  # what was begun is there
        await expect(title).to_have_value("A chair")
        await card.get_by_role("button", name="Approve").click()
        place = card.get_by_role("textbox", name="place")
        await expect(place).to_be_focused()
        await expect(card).to_contain_text("This is not JSON.")
        await place.fill('{"city": "Bonn"}')
        await card.get_by_role("button", name="Approve with changes").click()
        await expect(card.get_by_role("alert")).to_contain_text("does not take these changes")
        await place.fill('{"city": "Bonn", "floor": 3.50}')
        tools.model.enqueue(Script(text="The chair is reported."))
        await card.get_by_role("button", name="Approve with changes").click()
        await ada.finished("The chair is reported.")
        assert tools.office.opened[-1] == ("A chair", 1.0, "Bonn")
        await expect(card).to_have_count(0)
        assert ada.complaints_except("Failed to load resource: the server responded with") == []

    async def test_is_decided_by_itself_and_the_answer_goes_on_with_the_last(
        self, tools: ToolStack, welcome: Meet
    ) -> None:
        ada = await welcome("Ada who picks")
        await ask_for(ada, tools, ticket("One"), ticket("Two", urgent=True))
        first, second = asked(ada).nth(0), asked(ada).nth(1)
        await second.get_by_role("button", name="Reject…").press("Enter")
        reason = second.get_by_role("textbox", name="Why not?")
        await expect(reason).to_be_focused()
        await reason.fill("One is enough.")
        await second.get_by_role("button", name="Reject “open”").press("Enter")
        status = second.get_by_role("status")
        await expect(status).to_contain_text("Rejected. The answer goes on once the others are")
        await expect(status).to_be_focused()
        tools.model.enqueue(Script(text="One it is."))
        await first.get_by_role("button", name="Approve").click()
        await ada.finished("One it is.")
        assert [each[0] for each in tools.office.opened[-1:]] == ["One"]
        told = json.dumps(tools.model.requests[-1].body["messages"])
        assert "One is enough." in told
        await ada.page.get_by_role("group").get_by_role("button", name="2 tools used").click()
        await expect(ada.page.locator("[data-call=rejected]").last).to_contain_text("Rejected")
        assert ada.complaints == []

    async def test_is_asked_about_once_where_they_say_always_or_the_first_is_enough(
        self, tools: ToolStack, welcome: Meet
    ) -> None:
        ada = await welcome("Ada who trusts")
        await ask_for(ada, tools, ("office__close", {"ticket": 1}), ("office__note", {"text": "a"}))
        closing, noting = asked(ada, "office · close"), asked(ada, "office · note")
        await expect(noting).to_contain_text("may be used again in this conversation without")
        await noting.get_by_role("button", name="Approve").click()
        await closing.get_by_role("checkbox", name="Always in this conversation").check()
        again = uses(("office__close", {"ticket": 2}), ("office__note", {"text": "b"}))
        tools.model.enqueue(again, Script(text="All is done."))
        await closing.get_by_role("button", name="Approve").click()
        await ada.finished("All is done.")
        assert tools.office.closed[-2:] == [1, 2]
        assert tools.office.notes[-2:] == ["a", "b"]
        assert ada.complaints == []

    async def test_is_taken_back_by_a_new_message(self, tools: ToolStack, welcome: Meet) -> None:
        ada = await welcome("Ada who changes the subject")
        await ask_for(ada, tools, ticket("Never"))
        await expect(ada.page.get_by_text("what is asked is taken back")).to_be_visible()
        tools.model.enqueue(Script(text="As you like."))
        await ada.say("Something else.")
        await ada.finished("As you like.")
        await expect(asked(ada)).to_have_count(0)
        assert "Never" not in [each[0] for each in tools.office.opened]
        assert ada.complaints == []


class TestTheInbox:
    async def test_counts_and_decides_what_waits_in_all_chats_on_a_phone(
        self, tools: ToolStack, welcome: Meet
    ) -> None:
        anna = await welcome("", viewport=PHONE, locale="de-DE", has_touch=True, is_mobile=True)
        await anna.enter("Anna unterwegs")
        composer = anna.page.get_by_role("textbox", name="Nachricht", exact=True)
        tools.model.enqueue(uses(ticket("Donaudampfschifffahrt" * 9)))
        await composer.fill("Bitte melden.")
        await composer.press("Enter")
        await expect(asked(anna)).to_be_visible()
        assert not await anna.is_wider_than_the_screen()
        menu = anna.page.get_by_role("button", name="Liste der Chats öffnen, 1 Frage ist offen")
        await menu.tap()
        await anna.page.get_by_role("link", name="Eingang, 1 Frage ist offen").tap()
        await expect(anna.page.get_by_role("heading", name="Eingang", level=1)).to_be_focused()
        card = asked(anna, "office · open")
        await expect(card).to_be_visible()
        assert not await anna.is_wider_than_the_screen()
        tools.model.enqueue(Script(text="Gemeldet."))
        await card.get_by_role("button", name="Zustimmen").tap()
        await expect(anna.page.get_by_text("Nichts wartet auf Sie")).to_be_visible()
        await expect(anna.page.get_by_role("button", name="Liste der Chats öffnen")).to_have_text(
            ""
        )
        await anna.page.get_by_role("link", name="Entschieden").tap()
        await expect(anna.page.get_by_text("Zugestimmt.")).to_be_visible()
        await anna.page.get_by_role("link", name="Zum Chat").tap()
        await expect(anna.page.get_by_text("Gemeldet.").first).to_be_visible()
        assert anna.complaints == []


class TestADecisionThatWasTakenElsewhere:
    async def test_is_told_to_whoever_decides_too_late_and_is_no_error(
        self, tools: ToolStack, welcome: Meet
    ) -> None:
        ada = await welcome("Ada with two hands")
        await ask_for(ada, tools, ticket("Once"))
        other = await ada.another_tab()
        card = asked(other, "office · open")
        await expect(card).to_be_visible()
        is_over = asyncio.Event()

        async def hold(route: Route) -> None:
            await is_over.wait()
            await route.abort()

        for each in ("**/events", "**/approvals?**", "**/runs?**"):
            # From here on this tab hears nothing.
            await other.page.route(each, hold)
        tools.model.enqueue(Script(text="It is open."))
        await asked(ada).get_by_role("button", name="Approve").click()
        await ada.finished("It is open.")
        await card.get_by_role("button", name="Reject…").click()
        await card.get_by_role("button", name="Reject “open”").click()
        notice = other.page.locator("[data-elsewhere]")
        await expect(notice).to_contain_text("was approved already, in another tab or on another")
        await expect(other.page.locator("main").get_by_role("alert")).to_have_count(0)
        await notice.get_by_role("button", name="Close this notice").click()
        await expect(notice).to_have_count(0)
        assert other.complaints_except(LATE) == []
        assert ada.complaints == []
        is_over.set()
        await other.page.unroute_all(behavior="wait")

    async def test_is_told_to_whoever_is_about_to_decide(
        self, tools: ToolStack, welcome: Meet
    ) -> None:
        ada = await welcome("Ada with two minds")
        await ask_for(ada, tools, ticket("Twice"))
        other = await ada.another_tab()
        await asked(other).get_by_role("button", name="Change…").click()
        tools.model.enqueue(Script(text="Then not."))
        await asked(ada).get_by_role("button", name="Reject…").click()
        await asked(ada).get_by_role("button", name="Reject “open”").click()
        await expect(other.page.locator("[data-elsewhere]")).to_contain_text("was rejected already")
        for tab in (ada, other):
            await tab.finished("Then not.")
            await expect(asked(tab)).to_have_count(0)
        await expect(ada.page.locator("[data-elsewhere]")).to_have_count(0)
        assert ada.complaints + other.complaints == []


class TestACallOfWhichNobodyKnowsWhatCame:
    async def test_is_decided_with_what_is_known_and_the_assistant_is_told(
        self, tools: ToolStack, welcome: Meet
    ) -> None:
        ada = await welcome("Ada who waits in vain")
        tools.model.enqueue(uses(("post__send", {"to": "Grace"})))
        await ada.say("Write to Grace.")
        card = asked(ada, "What became of “post · send”")
        await expect(card).to_contain_text("Sent 1 time")
        await expect(card).to_contain_text("The server did not answer in time.")
        await expect(card.locator("[data-argument=to] pre")).to_have_text("Grace")
        for answer in ("Do it again", "Leave it out"):
            await expect(card.get_by_role("button", name=answer)).to_be_enabled()
        await card.get_by_role("textbox", name="What do you know of it?").fill("She has it.")
        tools.model.enqueue(Script(text="Good."))
        await card.get_by_role("button", name="It happened").click()
        await ada.finished("Good.")
        assert tools.office.sent == ["Grace"]
        assert "She has it." in json.dumps(tools.model.requests[-1].body["messages"])
        assert ada.complaints == []
