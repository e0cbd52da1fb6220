"""Tools in a conversation: what was used, what came of it, and what a server asks on the way."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.async_api import Locator, Request, expect

from tests.browser.conftest import PHONE, Meet, ToolStack
from tests.browser.travel_desk import PAYING
from tests.browser.visitor import Visitor
from tests.support.model_server import Script, ToolCall

pytestmark = pytest.mark.browser

FINGER = 44
RESULT = re.compile("result$")


def uses(*calls: tuple[str, dict[str, Any]], saying: str = "") -> Script:
    """An answer that calls tools."""
    return Script(
        text=saying, tool_calls=tuple(ToolCall(name=name, arguments=given) for name, given in calls)
    )


def lines(visitor: Visitor, state: str) -> Locator:
    """The tools of the conversation that stand like this."""
    return visitor.page.locator(f"[data-call={state}]")


def line(visitor: Visitor, name: str) -> Locator:
    """What unfolds a tool, or several."""
    return visitor.page.get_by_role("group").get_by_role("button", name=re.compile(name))


async def ask_for_a_booking(visitor: Visitor, tools: ToolStack) -> Locator:
    """Have the desk ask, and return its question."""
    tools.model.enqueue(uses(("travel__book", {})))
    await visitor.say("Book it.")
    question = visitor.page.get_by_role("region", name="Question from travel")
    await expect(question).to_be_visible()
    return question


async def answer_the_desk(question: Locator, seats: str = "2") -> None:
    await question.get_by_role("textbox", name="Your name").fill("Ada")
    await question.get_by_role("textbox", name="Seats").fill(seats)
    await question.get_by_role("button", name="Send").click()


class TestAToolThatWasUsed:
    async def test_is_one_line_that_unfolds_to_what_went_in_and_came_out(
        self, tools: ToolStack, welcome: Meet
    ) -> None:
        ada = await welcome("Ada who travels")
        fetched: list[str] = []
        ada.page.on("request", lambda request: fetched.append(_host_of(request)))
        tools.model.enqueue(uses(("travel__train", {"to": "Ulm"}), saying="Let me look."))
        tools.model.enqueue(Script(text="At four past twelve."))
        await ada.say("When is the next train?")
        await ada.finished("At four past twelve.")
        await expect(lines(ada, "done")).to_contain_text(re.compile(r"travel · train[\d.]+ s"))

        for _ in range(2):
            train = line(ada, "travel · train")
            await expect(train).to_have_attribute("aria-expanded", "false")
            await train.press("Enter")
            await expect(train).to_have_attribute("aria-expanded", "true")
            given = ada.page.get_by_role("region", name="Given to the tool")
            await expect(given.locator("pre")).to_have_text('{\n  "to": "Ulm"\n}')
            result = ada.page.get_by_role("region", name=RESULT)
            await expect(result.locator("pre")).to_contain_text('"at": "12:04"')
            await expect(result.locator("pre")).to_contain_text("<img src=")
            await expect(result.locator("img")).to_have_count(0)
            await ada.page.reload()
            await ada.finished("At four past twelve.")
        assert set(fetched) == {"localhost"}
        assert ada.complaints == []

    async def test_is_told_with_the_others_of_its_turn_and_shows_its_picture(
        self, tools: ToolStack, welcome: Meet
    ) -> None:
        ada = await welcome("Ada on the train", viewport=PHONE, has_touch=True, is_mobile=True)
        tools.model.enqueue(uses(("travel__map_of", {"place": "Ulm"}), ("travel__refund", {})))
        tools.model.enqueue(uses(("travel__train", {"to": "Ulm" * 60})))
        tools.model.enqueue(Script(text="There it is."))
        await ada.say("Where is it?")
        await ada.finished("There it is.")
        together = line(ada, "3 tools used")
        await expect(together).to_contain_text(re.compile(r"[\d.]+ s · 1 failed"))
        await together.tap()
        await expect(lines(ada, "done")).to_have_count(2)
        await expect(lines(ada, "failed").last).to_contain_text("travel · refund")
        await line(ada, "travel · map_of").tap()
        picture = ada.page.get_by_role("img", name="Picture from the tool")
        await expect(picture).to_have_js_property("naturalWidth", 1)
        await line(ada, "travel · train").tap()
        for button in await ada.page.get_by_role("group").get_by_role("button").all():
            box = await button.bounding_box()
            assert box is not None
            assert box["height"] >= FINGER
        assert not await ada.is_wider_than_the_screen()
        assert ada.complaints == []

    async def test_says_how_far_it_has_come_as_long_as_it_runs(
        self, tools: ToolStack, welcome: Meet
    ) -> None:
        ada = await welcome("Ada at the station")
        tools.model.enqueue(uses(("travel__platform", {})))
        tools.model.enqueue(Script(text="Seven."))
        await ada.say("Which platform?")
        await tools.travel.waiting.wait()
        running = lines(ada, "running")
        await expect(running).to_contain_text("25% · asking the station")
        await expect(running).to_contain_text(re.compile(r"Running · [1-9]\d* s"))
        await ada.page.reload()
        await expect(running).to_contain_text("25% · asking the station")
        await ada.be_patient()
        await ada.listen()
        tools.travel.go_on.set()
        await ada.finished("Seven.")
        await expect(lines(ada, "done")).to_have_count(1)
        heard = await ada.heard("The assistant has answered. Seven.")
        assert heard == ["The assistant is answering.", "The assistant has answered. Seven."]
        assert ada.complaints == []

    async def test_that_is_missing_is_told_with_the_way_to_the_connections(
        self, tools: ToolStack, welcome: Meet
    ) -> None:
        ada = await welcome("Ada who misses one")
        tools.model.enqueue(Script(text="Without it, then."))
        await ada.say("Use them all.")
        await ada.finished("Without it, then.")
        missing = ada.page.locator("[data-missing]")
        await expect(missing).to_contain_text(
            "The tools of gone are missing: it cannot be reached."
        )
        await expect(missing).not_to_contain_text("vault")  # which she has never set up
        await missing.get_by_role("link", name="See your connections").click()
        await expect(
            ada.page.get_by_role("heading", name="Tools and connections", level=1)
        ).to_be_visible()


class TestAQuestionOfAServer:
    async def test_is_a_form_of_its_own_that_survives_a_reload(
        self, tools: ToolStack, welcome: Meet
    ) -> None:
        ada = await welcome("Ada who books")
        question = await ask_for_a_booking(ada, tools)
        await expect(question).to_contain_text("The tool server “travel” asks")
        await expect(question).to_contain_text("Who travels, and on how many seats?")
        await expect(question).to_contain_text("Never give it a password")
        await expect(lines(ada, "asking")).to_contain_text("Waiting for you")
        await ada.page.reload()
        await answer_the_desk(question, "9")
        await expect(question).to_contain_text("At most 4.")
        tools.model.enqueue(Script(text="It is booked."))
        await question.get_by_role("checkbox", name="A seat at the window").check()
        await answer_the_desk(question, "2")
        await ada.finished("It is booked.")
        await expect(question).to_have_count(0)
        await line(ada, "travel · book").click()
        result = ada.page.get_by_role("region", name=RESULT)
        await expect(result).to_contain_text("2 for Ada, at the window")
        assert ada.complaints == []

    async def test_that_leads_elsewhere_names_the_place_and_opens_it_when_that_is_confirmed(
        self, tools: ToolStack, welcome: Meet
    ) -> None:
        ada = await welcome("Ada who pays")
        await ada.context.route(f"{PAYING}*", lambda route: route.fulfill(body="Paid."))
        tools.model.enqueue(uses(("travel__pay", {})))
        await ada.say("Pay.")
        question = ada.page.get_by_role("region", name="Question from travel")
        await expect(question).to_contain_text(PAYING)
        await expect(question.get_by_role("button", name="Send")).to_have_count(0)
        await question.get_by_role("button", name="Open pay.stoa-people.com").click()
        async with ada.context.expect_page() as opened:
            await question.get_by_role("link", name="Go to pay.stoa-people.com").click()
        page = await opened.value
        await expect(page.get_by_text("Paid.")).to_be_visible()
        assert await page.evaluate("window.opener") is None
        assert await page.evaluate("document.referrer") == ""
        tools.model.enqueue(Script(text="Thank you."))
        await question.get_by_role("button", name="Send").click()
        await ada.finished("Thank you.")
        await line(ada, "travel · pay").click()
        await expect(ada.page.get_by_role("region", name=RESULT)).to_contain_text("paid: accept")
        assert ada.complaints == []

    async def test_is_gone_in_every_tab_once_it_is_answered_in_one(
        self, tools: ToolStack, welcome: Meet
    ) -> None:
        ada = await welcome("Ada with two tabs")
        await ask_for_a_booking(ada, tools)
        other = await ada.another_tab()
        question = other.page.get_by_role("region", name="Question from travel")
        await expect(question).to_be_visible()
        tools.model.enqueue(Script(text="As you like."))
        await question.get_by_role("button", name="Decline").click()
        for tab in (other, ada):
            await tab.finished("As you like.")
            await expect(tab.page.get_by_role("region", name="Question")).to_have_count(0)
        assert ada.complaints + other.complaints == []

    async def test_can_be_left_by_stopping_the_answer(
        self, tools: ToolStack, welcome: Meet
    ) -> None:
        ada = await welcome("Ada who changes her mind")
        question = await ask_for_a_booking(ada, tools)
        await ada.stop_button.click()
        await expect(question).to_have_count(0)
        await expect(ada.stop_notice).to_contain_text("You stopped this")
        tools.model.enqueue(Script(text="Something else."))
        await ada.say("Never mind.")
        await ada.finished("Something else.")
        assert ada.complaints == []


def _host_of(request: Request) -> str:
    return re.sub(r"^\w+://([^/:]+).*", r"\1", request.url)
