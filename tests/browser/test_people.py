"""Two people, each in a browser of their own: nobody sees anything of the other's."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from tests.browser.conftest import Meet, Stack

pytestmark = pytest.mark.browser


class TestTwoPeople:
    async def test_see_nothing_of_each_other(self, stack: Stack, meet: Meet) -> None:
        ada = await meet("Ada Lovelace")
        await ada.say("My secret question")
        await ada.finished("You said: My secret question")

        bob = await meet("Bob")
        await expect(bob.page.get_by_text("No chats yet")).to_be_visible()
        await expect(bob.chats).to_have_count(0)
        assert bob.complaints == []
        await bob.page.goto(ada.page.url)
        await expect(
            bob.page.get_by_role("heading", name="This chat does not exist")
        ).to_be_visible()
        assert "secret" not in await bob.page.content()

        await bob.page.get_by_role("button", name="Start a new chat").click()
        await bob.say("A question of mine")
        await bob.finished("You said: A question of mine")
        await expect(bob.chats).to_have_count(1)
        await ada.page.reload()
        await ada.finished("You said: My secret question")
        await expect(ada.chats).to_have_count(1)
        assert ada.complaints == []

    async def test_a_strangers_chat_looks_like_one_that_never_was(
        self, stack: Stack, meet: Meet
    ) -> None:
        ada = await meet("Ada once more")
        await ada.say("Mine")
        await ada.finished("You said: Mine")
        bob = await meet("Bob once more")
        seen = []
        for thread_id in (ada.thread_id, "5ac1dba5-8b8f-4a5e-a6b0-3c0a5c9f0000"):
            await bob.page.goto(f"{stack.url}/chat/{thread_id}")
            await expect(
                bob.page.get_by_role("heading", name="This chat does not exist")
            ).to_be_visible()
            seen.append(await bob.page.get_by_role("main").inner_text())
        assert seen[0] == seen[1]


class TestSigningOut:
    async def test_ends_at_the_sign_in_page_and_shows_nothing_any_more(
        self, stack: Stack, meet: Meet
    ) -> None:
        ada = await meet("Ada who leaves")
        await ada.say("Before I go")
        await ada.finished("You said: Before I go")
        chat = ada.page.url
        await ada.account()
        await expect(ada.page.get_by_text("Signed in as Ada who leaves")).to_be_visible()
        await ada.page.get_by_role("menuitem", name="Sign out").click()
        await expect(ada.page.locator("#name")).to_be_visible()
        await ada.page.goto(chat)
        await expect(ada.page.locator("#name")).to_be_visible()
        assert "Before I go" not in await ada.page.content()
        # Whoever comes next in the same browser finds a service of their own.
        await ada.page.locator("#name").fill("Eve")
        await ada.page.keyboard.press("Enter")
        await expect(
            ada.page.get_by_role("heading", name="This chat does not exist")
        ).to_be_visible()
        await expect(ada.chats).to_have_count(0)
