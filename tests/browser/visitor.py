"""A person in a browser: what they see and do, named as the page names it for everybody."""

from __future__ import annotations

import asyncio
import re
from typing import Any

from playwright.async_api import BrowserContext, ConsoleMessage, Locator, Page, expect

PATIENCE = 60.0
LOOK_SECONDS = 0.05
# Whatever the live region says, in order, however short a time it says it.
LISTEN = """() => {
  window.heard = [];
  const hear = () => {
    const said = document.querySelector("[role=status][aria-live=polite]")?.textContent;
    if (said && said !== window.heard.at(-1)) window.heard.push(said);
  };
  const all = { childList: true, subtree: true, characterData: true };
  new MutationObserver(hear).observe(document.body, all);
  hear();
}"""


# What the page does once something has lasted for a moment, it does after minutes.
PATIENT = """() => {
  const later = window.setTimeout;
  window.setTimeout = (act, ms, ...more) =>
    later(act, ms >= 300 && ms < 1000 ? ms * 300 : ms, ...more);
}"""
NARROW = 768
"""As wide as a screen is at most whose list of chats is behind a button, in pixels."""


class Visitor:
    """One person in a browser of their own, who notices every complaint of the page."""

    def __init__(self, context: BrowserContext, page: Page, base_url: str) -> None:
        self.context = context
        self.page = page
        self.base_url = base_url
        self.complaints: list[str] = []
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(f"{message.text} {message.location.get('url', '')}")

    def complaints_except(self, beginning: str) -> list[str]:
        """The complaints without those of the stream's client about a run that failed."""
        return [each for each in self.complaints if not each.startswith(beginning)]

    async def sign_in(self, name: str, *, operator: bool = False) -> None:
        """Open the service and give a name on the page that it leads to."""
        await self.enter(name, operator=operator)
        await expect(self.composer).to_be_visible()

    async def enter(self, name: str, *, operator: bool = False) -> None:
        """The same, in whatever language the pages are."""
        await self.page.goto(self.base_url)
        await self.page.locator("[name=operator]").set_checked(operator)
        await self.page.locator("#name").fill(name)
        await self.page.keyboard.press("Enter")
        # That page has a field as well: what is gone to before it is left would take its place.
        await expect(self.page.locator("#name")).to_have_count(0)
        await expect(self.page.get_by_role("textbox")).to_be_visible()

    async def say(self, text: str) -> None:
        """Write a message and send it with Enter."""
        await self.composer.fill(text)
        await expect(self.page.get_by_role("button", name="Send")).to_be_enabled()
        await self.composer.press("Enter")
        await expect(self.composer).to_be_empty()

    async def another_tab(self) -> Visitor:
        """The same chat in another tab of the same browser."""
        other = Visitor(self.context, await self.context.new_page(), self.base_url)
        await other.page.goto(self.page.url)
        await expect(other.composer).to_be_visible()
        return other

    async def be_patient(self) -> None:
        """Take no moment of a slow machine for a wait worth telling, until the page is left."""
        await self.page.evaluate(PATIENT)

    async def resize(self, screen: dict[str, int]) -> None:
        """Look at the page on another screen, once it is laid out for that."""
        width, height = screen["width"], screen["height"]
        await self.page.set_viewport_size({"width": width, "height": height})
        await expect(self.page.locator("aside")).to_have_count(0 if width <= NARROW else 1)

    async def at_rest(self) -> None:
        """Return once nothing goes on in any chat of this person's, or there is no such person.

        What asks or has ended is no longer busy; a run that is held has to be let go before.
        """
        url = f"{self.base_url}/threads/search"
        async with asyncio.timeout(PATIENCE):
            while True:
                answer = await self.context.request.post(url, data={"status": "busy", "limit": 1})
                if not answer.ok or await answer.json() == []:
                    return
                await asyncio.sleep(LOOK_SECONDS)

    async def settled(self, calls: int) -> None:
        """Return once so many calls of a model are settled, a little after their answers' end."""
        async with asyncio.timeout(PATIENCE):
            while (await self.get("/me/usage"))["total"]["calls"] < calls:  # noqa: ASYNC110
                await asyncio.sleep(LOOK_SECONDS)

    async def listen(self) -> None:
        """Listen to what a screen reader is told, from now on until the page is left."""
        await self.page.evaluate(LISTEN)

    async def heard(self, last: str) -> list[str]:
        """All that a screen reader was told, once this has been the last of it."""
        await self.page.wait_for_function("last => window.heard.at(-1) === last", arg=last)
        heard: list[str] = await self.page.evaluate("window.heard")
        return heard

    async def delete_chat(self, title: str) -> None:
        """Delete a chat by its menu, and say that it is meant."""
        await self.page.get_by_role("button", name=f"More about the chat “{title}”").click()
        await self.page.get_by_role("menuitem", name="Delete").click()
        await self.page.get_by_role("button", name="Delete", exact=True).click()

    async def account(self) -> None:
        """Open the account's menu."""
        await self.page.get_by_role("button", name="Account and settings").click()

    @property
    def composer(self) -> Locator:
        return self.page.get_by_role("textbox", name="Message", exact=True)

    @property
    def questions(self) -> Locator:
        return self.page.get_by_role("article", name="You", exact=True)

    @property
    def typed(self) -> Locator:
        """What the person has typed, without what the page says about it."""
        return self.questions.locator("p")

    @property
    def answers(self) -> Locator:
        return self.page.get_by_role("article", name="Assistant", exact=True)

    @property
    def answer(self) -> Locator:
        return self.answers.last

    @property
    def chats(self) -> Locator:
        return self.page.get_by_role("navigation", name="Chats").get_by_role("link")

    @property
    def failure(self) -> Locator:
        return self.page.locator("main").get_by_role("alert")

    @property
    def stop_notice(self) -> Locator:
        """Where the answer would go on: that it was stopped."""
        return self.page.get_by_role("note")

    @property
    def stop_button(self) -> Locator:
        return self.page.get_by_role("button", name="Stop", exact=True)

    @property
    def continue_button(self) -> Locator:
        return self.page.get_by_role("button", name="Continue")

    @property
    def mark(self) -> Locator:
        """Below the last answer: that it is not whole."""
        return self.answer.get_by_text(re.compile("^(Stopped|Incomplete)$"))

    @property
    def thread_id(self) -> str:
        """The chat that is open."""
        return self.page.url.rpartition("/chat/")[2]

    async def finished(self, text: str) -> None:
        """Wait until the last answer is whole and says this."""
        await expect(self.answer).to_have_attribute("aria-busy", "false")
        await expect(self.answer.locator("p").first).to_have_text(text)

    async def state(self) -> list[tuple[str, str]]:
        """What the service has stored of the chat that is open: who said what."""
        answer = await self.get(f"/threads/{self.thread_id}/state")
        return [(each["type"], each["content"]) for each in answer["values"]["messages"]]

    async def get(self, path: str) -> Any:
        """Ask the API as this person, with the browser's own cookie."""
        answer = await self.context.request.get(f"{self.base_url}{path}")
        assert answer.ok, await answer.text()
        return await answer.json()

    async def post(self, path: str, body: object) -> Any:
        """Send the API something as this person, with the browser's own cookie."""
        return await self.send("POST", path, body)

    async def send(self, method: str, path: str, body: object) -> Any:
        """The same, by any method."""
        url = f"{self.base_url}{path}"
        answer = await self.context.request.fetch(url, method=method, data=body)
        assert answer.ok, await answer.text()
        return await answer.json()

    async def is_wider_than_the_screen(self) -> bool:
        """Say whether one would have to scroll sideways."""
        wide: bool = await self.page.evaluate(
            "() => document.documentElement.scrollWidth > document.documentElement.clientWidth"
        )
        return wide
