"""What people see of their limits and of the queue, and what operators see and set."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Locator, Request, Route, expect

from tests.browser.conftest import DESKTOP, PHONE, SLOTS, Meet, Stack
from tests.browser.visitor import Visitor
from tests.support.model_server import RecordedRequest, Script

pytestmark = pytest.mark.browser

ANSWER = "one two three four five six"
FINGER = 44
INVALID = "Failed to load resource: the server responded with a status of 422"
REFUSED = "Failed to load resource: the server responded with a status of 429"
# Whether the page has ever said that the answer waits.
WATCH = """() => {
  window.waited = false;
  const look = () => { window.waited ||= document.querySelector("[data-waiting]") !== null; };
  new MutationObserver(look).observe(document.body, { childList: true, subtree: true });
}"""
SMALL = """least => [...document.querySelectorAll("main :is(a, button, summary, input, select)")]
  .filter((each) => each.checkVisibility())
  .map((each) => [each.closest("label") ?? each, each.textContent])
  .filter(([each]) => each.getBoundingClientRect().height < least)
  .map(([each, text]) => text || each.outerHTML)"""


@pytest.fixture
async def olga(stack: Stack, meet: Meet) -> AsyncIterator[Visitor]:
    """An operator. The model takes one call at a time as long as she is here."""
    olga = await meet("Olga", operator=True)
    await olga.send("PATCH", "/admin/pools/default", {"capacity": 1})
    yield olga
    for request in stack.model.requests:
        stack.model.release(request)
    await olga.send("PATCH", "/admin/pools/default", {"capacity": None})


async def begin(visitor: Visitor, question: str) -> str:
    """Have a question asked in a new chat, from elsewhere; returns the chat."""
    thread: str = (await visitor.post("/threads", {}))["thread_id"]
    messages = [{"type": "human", "content": question}]
    run = {
        "assistant_id": "agent",
        "input": {"messages": messages},
        "stream_mode": ["values", "messages-tuple"],
    }
    await visitor.post(f"/threads/{thread}/runs", run)
    return thread


async def occupy(visitor: Visitor, stack: Stack, question: str = "Hold.") -> RecordedRequest:
    """Have an answer begun that ends when it is told to."""
    stalls = stack.stalls
    stack.model.enqueue(Script(text=ANSWER, stall_at=3))
    await begin(visitor, question)
    return await stack.model.wait_for_stall(stalls + 1)


async def limit(olga: Visitor, visitor: Visitor, **limits: int | None) -> None:
    """Set what somebody may use, in place of all that was set."""
    user_id = (await visitor.get("/me"))["user_id"]
    body = {"plan": None, "limits": limits}
    await olga.send("PUT", f"/admin/users/{user_id}/limits", body)


async def open_page(
    visitor: Visitor, name: str, *, on_phone: bool = False, account: str = "Account and settings"
) -> None:
    """Go to a page of the account's menu."""
    if on_phone:
        await visitor.page.get_by_role("button", name="Open the list of chats").tap()
    await visitor.page.get_by_role("button", name=account).click()
    await visitor.page.get_by_role("menuitem", name=name).click()
    await expect(visitor.page.get_by_role("heading", name=name, level=1)).to_be_visible()


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
        assert all(int(text) > 0 for text in await cells.all_inner_texts())
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
        await ada.listen()
        stack.model.release(held)
        await ada.finished("You said: Is anybody there?")
        await expect(place).to_have_count(0)
        heard = await ada.heard("The assistant has answered. You said: Is anybody there?")
        assert heard.count("Your message waits for its turn.") == 1
        assert ada.complaints == []

    async def test_is_not_shown_where_it_begins_at_once(self, stack: Stack, meet: Meet) -> None:
        ada = await meet("Ada who is served")
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
        await ada.page.get_by_role("button", name="Delete the chat “Hello”").click()
        await ada.page.get_by_role("button", name="Delete", exact=True).click()
        await expect(ada.chats).to_have_count(0)
        await ada.composer.press("Enter")
        await ada.finished("You said: One more")
        assert complaints_of(ada) == []


class TestTheQueueForOperators:
    async def test_says_who_waits_and_lets_capacity_and_limits_be_edited_in_place(
        self, stack: Stack, meet: Meet, olga: Visitor
    ) -> None:
        ada = await meet("Ada who waits")
        bob = await meet("Bob who holds")
        ada_id = str((await ada.get("/me"))["user_id"])
        await open_page(olga, "Queue and limits")
        held = await occupy(bob, stack)
        await begin(ada, "My secret question")
        waits = olga.page.get_by_role("region", name="Who waits").get_by_role("listitem")
        await expect(waits.filter(has_text=ada_id[:8])).to_contain_text("others are before them")
        assert "secret" not in await olga.page.content()

        pool = olga.page.locator("[data-pool=default]")
        await expect(pool).to_contain_text("1 of 1")
        await pool.get_by_role("button", name="Change the capacity of default").click()
        capacity = pool.get_by_role("textbox", name="Capacity of default")
        await expect(capacity).to_be_focused()
        for wrong, why in (("many", "This is not a number."), ("-1", "greater than or equal to 0")):
            await capacity.fill(wrong)
            await capacity.press("Enter")
            await expect(capacity).to_have_accessible_description(re.compile(why))
        await capacity.fill("2")
        await capacity.press("Enter")
        await expect(pool).to_contain_text(f"2, the settings say {SLOTS}")
        await expect(waits.filter(has_text=ada_id[:8])).to_have_count(0)
        await expect(pool.get_by_role("button", name=re.compile("Change"))).to_be_focused()

        # Nobody else is in the way any more: it is a limit of her own that she waits for next.
        people = olga.page.get_by_role("region", name="People")
        await people.get_by_role("textbox", name="Id of a person").fill(ada_id)
        await people.get_by_role("button", name="Open").click()
        form = people.get_by_role("form", name=re.compile("Change the limits of"))
        running = form.get_by_role("textbox", name="Runs at once", exact=True)
        await running.fill("-1")
        for screen in (PHONE, DESKTOP):
            await olga.page.set_viewport_size({"width": screen["width"], "height": 844})
            assert not await olga.is_wider_than_the_screen()
            assert await olga.page.evaluate(SMALL, FINGER) == []
        await running.press("Enter")
        await expect(running).to_have_accessible_description(re.compile("a whole number from 0"))
        await running.fill("0")
        await running.press("Enter")
        await expect(form).to_have_count(0)
        await ada.say("Hello?")
        await expect(ada.page.get_by_text("An operator has put your runs on hold.")).to_be_visible()
        person = people.locator(f"[data-person='{ada_id}']")
        await expect(person).to_contain_text("suspended")
        await person.get_by_role("button", name=re.compile("Change the limits")).click()
        await running.fill("")
        await running.press("Enter")
        await ada.finished("You said: Hello?")
        stack.model.release(held)
        assert olga.complaints_except(INVALID) == []

    async def test_has_plans_that_people_are_given(
        self, stack: Stack, meet: Meet, olga: Visitor
    ) -> None:
        ada = await meet("Ada on a plan")
        ada_id = str((await ada.get("/me"))["user_id"])
        await open_page(olga, "Queue and limits")
        plans = olga.page.get_by_role("region", name="Plans")
        await plans.get_by_role("button", name="New plan").click()
        await plans.get_by_role("textbox", name="Name of the plan").fill("team")
        await plans.get_by_role("textbox", name="Chats", exact=True).fill("7")
        await plans.get_by_role("checkbox", name="No limit: Runs at once").check()
        await plans.get_by_role("button", name="Save").click()
        team = plans.locator("[data-plan=team]")
        await expect(team).to_contain_text("no limit")

        people = olga.page.get_by_role("region", name="People")
        await people.get_by_role("textbox", name="Id of a person").fill(ada_id)
        await people.get_by_role("button", name="Open").click()
        form = people.get_by_role("form", name=re.compile("Change the limits of"))
        await form.get_by_role("combobox", name=re.compile("Plan of")).select_option("team")
        await form.get_by_role("button", name="Save").click()
        await expect(team).to_contain_text("1 person")
        await open_page(ada, "Usage and limits")
        await expect(ada.page.get_by_text("Plan: team")).to_be_visible()
        await expect(of_limit(ada, "threads")).to_contain_text("0 of 7 chats")
        await expect(of_limit(ada, "running")).to_contain_text("no limit")

        await team.get_by_role("button", name="Delete the plan team").click()
        await expect(team.get_by_role("alert")).to_be_visible()
        await limit(olga, ada)
        await team.get_by_role("button", name="Delete the plan team").click()
        await expect(team).to_have_count(0)
        assert ada.complaints == []

    async def test_is_for_nobody_else(self, stack: Stack, meet: Meet) -> None:
        ada = await meet("Ada who is curious")
        asked: list[str] = []

        def note(request: Request) -> None:
            asked.append(request.url)

        ada.page.on("request", note)
        await ada.account()
        usage = ada.page.get_by_role("menuitem", name="Usage and limits")
        await expect(usage).to_be_visible()
        await expect(ada.page.get_by_role("menuitem", name="Queue and limits")).to_have_count(0)
        await ada.page.goto(f"{stack.url}/queue")
        title = ada.page.get_by_role("heading", name="This page is for operators")
        await expect(title).to_be_visible()
        assert [url for url in asked if "/admin" in url] == []
        assert (await ada.context.request.get(f"{stack.url}/admin/queue")).status == 403
        assert ada.complaints == []
