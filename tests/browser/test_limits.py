"""What people see of their limits and of the queue, and what operators see and set."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Locator, Request, Route, expect

from tests.browser.conftest import DESKTOP, PHONE, Meet, Stack
from tests.browser.visitor import Visitor
from tests.support.model_server import RecordedRequest, Script

pytestmark = pytest.mark.browser

ANSWER = "one two three four five six"
FINGER = 44
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


async def open_page(visitor: Visitor, name: str, *, on_phone: bool = False) -> None:
    """Go to a page of the account's menu."""
    if on_phone:
        await visitor.page.get_by_role("button", name="Open the list of chats").tap()
    await visitor.account()
    await visitor.page.get_by_role("menuitem", name=name).click()
    await expect(visitor.page.get_by_role("heading", name=name, level=1)).to_be_visible()


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
        await expect(ada.page).to_have_title("Usage and limits – Stoa")
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

    async def test_goes_on_without_the_stream(
        self, stack: Stack, meet: Meet, olga: Visitor
    ) -> None:
        ada = await meet("Anna ohne Strom", locale="de-DE", operator=False, color_scheme="dark")

        async def refuse(route: Route) -> None:
            await route.abort()

        await ada.page.route("**/events", refuse)
        await ada.page.goto(f"{stack.url}/usage")
        title = ada.page.get_by_role("heading", name="Verbrauch und Grenzen", level=1)
        await expect(title).to_be_visible()
        held = await occupy(ada, stack)
        await expect(of_limit(ada, "running")).to_contain_text("1 von 4 Läufen zugleich")
        await expect(ada.page.get_by_text("Die laufende Anzeige ist unterbrochen")).to_be_visible()
        await ada.page.unroute_all(behavior="wait")
        stack.model.release(held)
        await expect(of_limit(ada, "running")).to_contain_text("0 von 4 Läufen zugleich")
        assert ada.complaints_except("Failed to load resource: net::ERR_FAILED") == []
