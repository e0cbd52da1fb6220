"""Languages and screens."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from tests.browser.conftest import DESKTOP, PHONE, Meet, Stack
from tests.support.model_server import Script

pytestmark = pytest.mark.browser

WIDE = "\n".join(
    [
        "A table:",
        "",
        "| " + " | ".join(f"column number {number}" for number in range(12)) + " |",
        "|" + "---|" * 12,
        "| " + " | ".join("content" for _ in range(12)) + " |",
        "",
        "```python",
        "print(" + " + ".join(f"'{number} words and more'" for number in range(30)) + ")",
        "```",
        "",
        "Donaudampfschifffahrtsgesellschaft" * 12,
    ]
)


class TestLanguages:
    async def test_the_browsers_language_is_spoken(self, stack: Stack, meet: Meet) -> None:
        anna = await meet("", locale="de-DE")
        await anna.page.goto(stack.url)
        await expect(anna.page.get_by_role("heading", name="Bei Stoa anmelden")).to_be_visible()
        await anna.page.locator("#name").fill("Anna")
        await anna.page.keyboard.press("Enter")
        composer = anna.page.get_by_role("textbox", name="Nachricht", exact=True)
        await composer.fill("Guten Tag")
        await composer.press("Enter")
        answer = anna.page.get_by_role("article", name="Assistent", exact=True)
        await expect(answer).to_have_attribute("aria-busy", "false")
        await expect(anna.page.get_by_role("article", name="Sie", exact=True)).to_have_count(1)
        await expect(anna.page.locator("html")).to_have_attribute("lang", "de")
        assert anna.complaints == []

    async def test_another_one_can_be_chosen_and_stays(self, stack: Stack, meet: Meet) -> None:
        ada = await meet("Ada who learns German")
        await ada.account()
        await ada.page.get_by_role("menuitemradio", name="Deutsch").click()
        composer = ada.page.get_by_role("textbox", name="Nachricht", exact=True)
        await expect(composer).to_be_visible()
        await ada.page.reload()
        await expect(composer).to_be_visible()
        await ada.page.get_by_role("button", name="Konto und Einstellungen").click()
        await ada.page.get_by_role("menuitemradio", name="English").click()
        await expect(ada.composer).to_be_visible()
        assert ada.complaints == []


class TestScreens:
    @pytest.mark.parametrize("viewport", [PHONE, DESKTOP], ids=["phone", "desktop"])
    async def test_nothing_is_wider_than_the_screen(
        self, stack: Stack, meet: Meet, viewport: dict[str, int]
    ) -> None:
        ada = await meet(f"Ada at {viewport['width']}", viewport=viewport)
        assert not await ada.is_wider_than_the_screen()
        stack.model.enqueue(Script(text=WIDE))
        await ada.say("x" * 300)
        await ada.finished("A table:")
        await expect(ada.answer.get_by_role("table")).to_be_visible()
        await expect(ada.composer).to_be_in_viewport()
        assert not await ada.is_wider_than_the_screen()
        assert ada.complaints == []

    async def test_on_a_phone_the_chats_are_behind_a_button(self, stack: Stack, meet: Meet) -> None:
        ada = await meet("Ada on the train", viewport=PHONE, has_touch=True, is_mobile=True)
        await ada.say("From the train")
        await ada.finished("You said: From the train")
        await expect(ada.chats).to_have_count(0)
        await ada.page.get_by_role("link", name="New chat").tap()
        await expect(ada.questions).to_have_count(0)
        await ada.page.get_by_role("button", name="Open the list of chats").tap()
        assert not await ada.is_wider_than_the_screen()
        await ada.chats.filter(has_text="From the train").tap()
        await ada.finished("You said: From the train")
        await expect(ada.composer).to_be_in_viewport()
        assert not await ada.is_wider_than_the_screen()
        assert ada.complaints == []
