"""What people see of their limits and of the queue."""

from __future__ import annotations

import asyncio
import contextlib
import re

import pytest
from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Locator, Route, expect

from tests.browser.conftest import DESKTOP, PHONE, Meet, Stack
from tests.browser.pages import FINGER, SMALL, open_page
from tests.browser.queueing import ANSWER, begin, limit, occupy
from tests.browser.visitor import Visitor
from tests.support.model_server import Script

pytestmark = pytest.mark.browser

REFUSED = "Failed to load resource: the server responded with a status of 429"
# Whether the page has ever said that the answer waits.
WATCH = """() => {
  window.waited = false;
  const look = () => { window.waited ||= document.querySelector("[data-waiting]") !== null; };
  new MutationObserver(look).observe(document.body, { childList: true, subtree: true });
}"""
# Whether the page has ever ceased to say that something runs.
MISS = """() => {
  window.missed = false;
  const shown = document.querySelector("main");
  const look = () => { window.missed ||= !shown.textContent.includes("Begun meanwhile"); };
  new MutationObserver(look).observe(document.body, { childList: true, subtree: true });
}"""


def complaints_of(visitor: Visitor) -> list[str]:
    """The page's complaints without those of the browser and the client about a refusal."""
    return [each for each in visitor.complaints_except(REFUSED) if "HTTP 429" not in each]


def of_limit(visitor: Visitor, name: str) -> Locator:
    return visitor.page.locator(f"[data-limit={name}]")


def row(visitor: Visitor, title: str) -> Locator:
    """A run in the list of those that run and wait."""
    runs = visitor.page.get_by_role("region", name="Running and waiting")
    return runs.get_by_role("listitem").filter(has_text=title)


class TestUsageAndLimits:
    @pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
    async def test_moves_while_a_run_runs_and_others_wait(
        self, stack: Stack, meet: Meet, olga: Visitor, viewport: dict[str, int]
    ) -> None:
        on_phone = viewport is PHONE
        ada = await meet(f"Ada at {viewport['width']}", viewport=viewport, has_touch=on_phone)
        bob = await meet("Bob who was first")
        await open_page(ada, "Usage and limits", on_phone=on_phone)
        await expect(ada.page.get_by_text("Nothing is running or waiting.")).to_be_visible()
        await expect(of_limit(ada, "running")).to_contain_text("0 of 4 runs at once")

        held = await occupy(bob, stack)
        stalls = stack.stalls
        stack.model.enqueue(Script(text=ANSWER, stall_at=3))
        await begin(ada, "First of mine")
        await expect(row(ada, "First of mine")).to_contain_text("Next in line")
        await begin(ada, "Second of mine")
        await expect(of_limit(ada, "running")).to_contain_text("2 of 4 runs at once")
        await expect(row(ada, "Second of mine")).to_contain_text("The model is busy.")
        await expect(row(ada, "Second of mine")).to_contain_text("in line")
        model = ada.page.get_by_role("region", name="The model now")
        await expect(model).to_contain_text("0 of 1 calls under way are yours")

        stack.model.release(held)
        mine = await stack.model.wait_for_stall(stalls + 1)
        await expect(row(ada, "First of mine")).to_contain_text("Running")
        await expect(model).to_contain_text("1 of 1 calls under way are yours")
        await expect(of_limit(ada, "seats")).to_contain_text("Limit reached")
        assert not await ada.is_wider_than_the_screen()
        assert await ada.page.evaluate(SMALL, FINGER) == []

        await row(ada, "Second of mine").get_by_role("button").click()
        await expect(row(ada, "Second of mine")).to_have_count(0)
        stack.model.release(mine)
        await expect(ada.page.get_by_text("Nothing is running or waiting.")).to_be_visible()
        await expect(of_limit(ada, "tokens_per_day")).to_contain_text(
            re.compile(r"[1-9]\d* tokens today, no limit")
        )
        assert ada.complaints == []

    async def test_knows_what_began_before_it_could_be_told(
        self, stack: Stack, meet: Meet, olga: Visitor
    ) -> None:
        ada = await meet("Ada on a slow line")
        asked, may_go_on = asyncio.Event(), asyncio.Event()

        async def hold(route: Route) -> None:
            asked.set()
            await may_go_on.wait()
            await route.continue_()

        await ada.page.route("**/events", hold)
        await ada.page.goto(f"{stack.url}/usage")
        await expect(ada.page.get_by_text("Nothing is running or waiting.")).to_be_visible()
        await asked.wait()
        held = await occupy(ada, stack, "Begun meanwhile")
        may_go_on.set()
        await expect(row(ada, "Begun meanwhile")).to_contain_text("Running")
        stack.model.release(held)
        await expect(ada.page.get_by_text("Nothing is running or waiting.")).to_be_visible()
        assert ada.complaints == []

    async def test_knows_what_began_while_it_was_asking(
        self, stack: Stack, meet: Meet, olga: Visitor
    ) -> None:
        ada = await meet("Ada on a slower line")
        read, late = asyncio.Event(), asyncio.Event()

        async def hold(route: Route) -> None:
            if "busy" not in (route.request.post_data or ""):
                await route.continue_()
                return
            response = await route.fetch()
            read.set()
            await late.wait()
            await route.fulfill(response=response)

        await ada.page.route("**/threads/search", hold)
        await ada.page.goto(f"{stack.url}/usage")
        await read.wait()
        held = await occupy(ada, stack, "Begun meanwhile")
        await expect(of_limit(ada, "running")).to_contain_text("1 of 4 runs at once")
        late.set()
        await expect(row(ada, "Begun meanwhile")).to_contain_text("Running")
        stack.model.release(held)
        await expect(ada.page.get_by_text("Nothing is running or waiting.")).to_be_visible()
        assert ada.complaints == []

    async def test_takes_no_older_answer_for_what_it_was_told_since(
        self, stack: Stack, meet: Meet, olga: Visitor
    ) -> None:
        ada = await meet("Ada whose answer is late")
        read, late = asyncio.Event(), asyncio.Event()

        async def hold(route: Route) -> None:
            response = await route.fetch()
            read.set()
            await late.wait()
            with contextlib.suppress(PlaywrightError):  # it is not waited for any more
                await route.fulfill(response=response)

        async def begin_later(route: Route) -> None:
            await read.wait()
            await route.continue_()

        await ada.page.route("**/me/limits", hold)
        await ada.page.route("**/events", begin_later)
        await ada.page.goto(f"{stack.url}/usage")
        await read.wait()
        held = await occupy(ada, stack, "Begun meanwhile")
        await expect(row(ada, "Begun meanwhile")).to_contain_text("Running")
        await ada.page.evaluate(MISS)
        late.set()
        await ada.page.unroute_all(behavior="wait")
        # That nothing else is shown can only be waited out.
        await ada.page.wait_for_timeout(400)
        assert not await ada.page.evaluate("window.missed")
        stack.model.release(held)
        await expect(ada.page.get_by_text("Nothing is running or waiting.")).to_be_visible()
        assert ada.complaints == []

    async def test_leads_into_the_conversation_and_back(
        self, stack: Stack, meet: Meet, olga: Visitor
    ) -> None:
        ada = await meet("Ada who wanders")
        held = await occupy(ada, stack, "Where am I?")
        await ada.page.goto(f"{stack.url}/usage")
        await expect(ada.page).to_have_title(re.compile("^Usage and limits"))
        await row(ada, "Where am I?").get_by_role("link").click()
        await expect(ada.answer.locator("p")).to_have_text("one two three")
        stack.model.release(held)
        await ada.finished(ANSWER)
        await ada.page.go_back()
        title = ada.page.get_by_role("heading", name="Usage and limits", level=1)
        await expect(title).to_be_focused()
        assert ada.complaints == []

    async def test_draws_what_was_used_and_says_it_in_tables(
        self, stack: Stack, meet: Meet
    ) -> None:
        ada = await meet("Ada who counts")
        await ada.say("Hello")
        await ada.finished("You said: Hello")
        await open_page(ada, "Usage and limits")
        tokens = ada.page.get_by_role("figure").filter(has_text="Tokens")
        await expect(tokens).to_contain_text(re.compile(r"[1-9]\d* tokens: [1-9]"))
        await expect(tokens.locator(".recharts-bar-rectangle path").first).to_be_visible()
        await tokens.get_by_text("Tokens as a table").click()
        await expect(tokens.get_by_role("row")).to_have_count(25)
        await ada.page.get_by_role("button", name="Last 30 days").click()
        await expect(tokens.get_by_role("row")).to_have_count(31)
        cells = tokens.get_by_role("row").last.get_by_role("cell")
        used = [re.compile(r"^[1-9]\d*$")] * await cells.count()
        await expect(cells).to_have_text(used)
        assert ada.complaints == []

    async def test_goes_on_without_the_stream(self, stack: Stack, meet: Meet) -> None:
        anna = await meet("", locale="de-DE", color_scheme="dark")

        async def refuse(route: Route) -> None:
            await route.abort()

        await anna.page.route("**/events", refuse)
        await anna.enter("Anna ohne Strom")
        await open_page(anna, "Verbrauch und Grenzen", account="Konto und Einstellungen")
        held = await occupy(anna, stack)
        await expect(of_limit(anna, "running")).to_contain_text("1 von 4 Läufen zugleich")
        await expect(anna.page.get_by_text("Die laufende Anzeige ist unterbrochen")).to_be_visible()
        await anna.page.unroute_all(behavior="wait")
        stack.model.release(held)
        await expect(of_limit(anna, "running")).to_contain_text("0 von 4 Läufen zugleich")
        assert anna.complaints_except("Failed to load resource: net::ERR_FAILED") == []


class TestAPlaceInTheChat:
    async def test_is_shown_while_the_answer_waits(
        self, stack: Stack, meet: Meet, olga: Visitor
    ) -> None:
        bob = await meet("Bob in a hurry")
        held = await occupy(bob, stack)
        ada = await meet("Ada with patience")
        await ada.listen()
        await ada.say("Is anybody there?")
        place = ada.page.get_by_text("Next in line")
        await expect(place).to_be_visible()
        await expect(ada.page.get_by_text("The model is busy.")).to_be_visible()
        await ada.page.reload()
        await expect(place).to_be_visible()
        await ada.be_patient()
        await ada.listen()
        stack.model.release(held)
        await ada.finished("You said: Is anybody there?")
        await expect(place).to_have_count(0)
        heard = await ada.heard("The assistant has answered. You said: Is anybody there?")
        assert heard.count("Your message waits for its turn.") == 1
        assert ada.complaints == []

    async def test_is_not_shown_where_it_begins_at_once(self, stack: Stack, meet: Meet) -> None:
        ada = await meet("Ada who is served")
        await ada.be_patient()
        await ada.page.evaluate(WATCH)
        for question in ("One?", "Two?"):
            await ada.say(question)
            await ada.finished(f"You said: {question}")
        assert not await ada.page.evaluate("window.waited")
        assert ada.complaints == []


class TestALimitInTheChat:
    async def test_of_what_waits_leaves_the_message_where_it_was_written(
        self, stack: Stack, meet: Meet, olga: Visitor
    ) -> None:
        ada = await meet("Ada who asks too much")
        await limit(olga, ada, queued=0)
        await ada.composer.fill("Too much?")
        await ada.composer.press("Enter")
        await expect(ada.failure).to_contain_text("As many of your messages wait as may")
        await expect(ada.composer).to_have_value("Too much?")
        await expect(ada.questions).to_have_count(0)
        await limit(olga, ada)
        await ada.composer.press("Enter")
        await ada.finished("You said: Too much?")
        await expect(ada.failure).to_have_count(0)

        await limit(olga, ada, queued=0, running=0)
        await ada.composer.fill("And this?")
        await ada.composer.press("Enter")
        await expect(ada.failure).to_contain_text("As many of your messages wait as may")
        await expect(ada.composer).to_have_value("And this?")
        await expect(ada.typed).to_have_text(["Too much?"])
        assert complaints_of(ada) == []

    async def test_in_mid_answer_leaves_it_there_as_well(
        self, stack: Stack, meet: Meet, olga: Visitor
    ) -> None:
        ada = await meet("Ada who interrupts")
        stalls = stack.stalls
        stack.model.enqueue(Script(text=ANSWER, stall_at=3))
        await ada.say("Count.")
        held = await stack.model.wait_for_stall(stalls + 1)
        await expect(ada.answer.locator("p")).to_have_text("one two three")
        await limit(olga, ada, queued=0)
        await ada.composer.fill("And then?")
        await ada.composer.press("Enter")
        await expect(ada.failure).to_contain_text("Not sent.")
        await expect(ada.composer).to_have_value("And then?")
        stack.model.release(held)
        await ada.finished(ANSWER)
        await expect(ada.composer).to_have_value("And then?")
        assert complaints_of(ada) == []

    async def test_of_tokens_says_when_they_come_back(
        self, stack: Stack, meet: Meet, olga: Visitor
    ) -> None:
        ada = await meet("Ada who talks a lot")
        await limit(olga, ada, tokens_per_day=1)
        await ada.say("Hello")
        await ada.finished("You said: Hello")
        await ada.settled(calls=1)
        await ada.composer.fill("And again")
        await ada.composer.press("Enter")
        await expect(ada.failure).to_contain_text("Your tokens are used up for now.")
        await expect(ada.failure).to_contain_text(
            re.compile(r"You can try again in \d+ (s|min|h)\.")
        )
        await expect(ada.composer).to_have_value("And again")
        assert complaints_of(ada) == []

    async def test_of_chats_leaves_the_message_in_the_new_one(
        self, stack: Stack, meet: Meet, olga: Visitor
    ) -> None:
        ada = await meet("Ada who keeps all")
        await ada.say("Hello")
        await ada.finished("You said: Hello")
        await limit(olga, ada, threads=1)
        await ada.page.get_by_role("link", name="New chat").click()
        await ada.composer.fill("One more")
        await ada.composer.press("Enter")
        await expect(ada.failure).to_contain_text("You keep as many chats as you may.")
        await expect(ada.composer).to_have_value("One more")
        await ada.delete_chat("Hello")
        await expect(ada.chats).to_have_count(0)
        await ada.composer.press("Enter")
        await ada.finished("You said: One more")
        assert complaints_of(ada) == []
