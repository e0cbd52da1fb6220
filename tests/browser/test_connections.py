"""The page of connections: how each server stands for a person, and what they do about it."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Locator, expect

from tests.browser.conftest import KEY, PHONE, Meet, ToolStack
from tests.browser.visitor import Visitor

pytestmark = pytest.mark.browser

FINGER = 44
INVALID = "Failed to load resource: the server responded with a status of 422"
OWN_URL = "https://own.stoa-people.com/mcp"
SMALL = """least => [...document.querySelectorAll("main :is(a, button, summary, input, select)")]
  .filter((each) => each.checkVisibility() && each.getBoundingClientRect().height < least)
  .map((each) => each.textContent || each.outerHTML)"""


def server(visitor: Visitor, name: str) -> Locator:
    return visitor.page.locator(f"[data-server={name}]")


async def open_connections(visitor: Visitor, *, on_phone: bool = False) -> None:
    """Go there by the account's menu."""
    if on_phone:
        await visitor.page.get_by_role("button", name="Open the list of chats").tap()
    await visitor.account()
    await visitor.page.get_by_role("menuitem", name="Tools and connections").click()
    title = visitor.page.get_by_role("heading", name="Tools and connections", level=1)
    await expect(title).to_be_visible()


async def set_key(visitor: Visitor, key: str, button: str = "Set a key") -> None:
    vault = server(visitor, "vault")
    await vault.get_by_role("button", name=button).click()
    field = vault.locator("input[type=password]")
    await field.fill(key)
    await vault.get_by_role("button", name="Save").click()
    await expect(field).to_have_count(0)


class TestConnections:
    async def test_say_how_each_server_stands_as_it_is_checked(self, welcome: Meet) -> None:
        ada = await welcome("Ada on the move", viewport=PHONE, has_touch=True)
        await open_connections(ada, on_phone=True)
        await server(ada, "travel").get_by_role("button", name="Check travel again").click()
        await server(ada, "gone").get_by_role("button", name="Check The lost one again").click()
        await expect(server(ada, "travel")).to_contain_text("Available")
        await expect(server(ada, "gone")).to_contain_text("Unavailable: it cannot be reached")
        await expect(server(ada, "vault")).to_contain_text("Needs a key")
        await expect(server(ada, "guarded")).to_contain_text("Needs your sign-in")

        tools = server(ada, "travel").locator("summary").filter(has_text="6 tools")
        await tools.click()
        await expect(server(ada, "travel")).to_contain_text("Look up a train")
        await expect(server(ada, "travel")).to_contain_text("only reads")
        readable = "1 resource to mention · 1 prompt to mention"
        await expect(server(ada, "travel")).to_contain_text(readable)
        assert not await ada.is_wider_than_the_screen()
        assert await ada.page.evaluate(SMALL, FINGER) == []
        assert ada.complaints == []

    async def test_take_a_key_that_is_never_shown_again(
        self, tools: ToolStack, welcome: Meet
    ) -> None:
        ada = await welcome("Ada with a key")
        await open_connections(ada)
        await set_key(ada, "not the one")
        await expect(server(ada, "vault")).to_contain_text(re.compile("A key is set"))
        assert f"Bearer {KEY}" not in tools.vault.bearers
        await set_key(ada, KEY, "Replace the key")
        await expect(server(ada, "vault")).to_contain_text("Available")
        assert f"Bearer {KEY}" in tools.vault.bearers
        await ada.page.reload()
        await expect(server(ada, "vault")).to_contain_text("A key is set")
        assert KEY not in await ada.page.content()
        await server(ada, "vault").get_by_role("button", name="Forget the key").click()
        await expect(server(ada, "vault")).to_contain_text("Needs a key")
        await expect(server(ada, "vault")).not_to_contain_text("A key is set")
        assert ada.complaints == []

    async def test_say_when_one_is_asked_and_take_ones_own_stricter_word(
        self, welcome: Meet
    ) -> None:
        ada = await welcome("", viewport=PHONE, has_touch=True, locale="de-DE")
        await ada.enter("Ada who is careful")
        await ada.page.goto(f"{ada.base_url}/tools")
        office = server(ada, "office")
        asks = office.locator("[data-asks]")
        await office.get_by_role("button", name="office neu prüfen").click()
        await expect(office).to_contain_text("4 Werkzeuge")
        await asks.locator("summary").press("Enter")
        await expect(asks.locator("summary")).to_have_text("Fragt Sie vorher: je nach Werkzeug")
        for tool, said in {
            "open": "Sie werden immer gefragt.",
            "note": "Sie werden beim ersten Mal in einem Gespräch gefragt.",
            "close": "Sie werden immer gefragt.",
            "send": "Sie werden nicht gefragt.",
        }.items():
            await expect(asks.locator(f"[data-rule={tool}] dd")).to_have_text(said)

        change = asks.get_by_role("button", name="Ändern, wann Sie gefragt werden: office")
        await change.press("Enter")
        whole = asks.get_by_role("combobox", name="Der ganze Server")
        await expect(whole).to_be_focused()
        await expect(asks.get_by_role("combobox", name="open")).to_have_count(0)
        note, send = (asks.get_by_role("combobox", name=name) for name in ("note", "send"))
        await expect(note.locator("option")).to_have_text(["Wie eingerichtet", "Immer"])
        await whole.select_option("Immer")
        await send.select_option("Beim ersten Mal im Gespräch")
        assert not await ada.is_wider_than_the_screen()
        assert await ada.page.evaluate(SMALL, FINGER) == []
        await asks.get_by_role("button", name="Speichern").press("Enter")
        await expect(change).to_be_focused()
        for tool, said in {
            "note": "Sie werden immer gefragt. Ohne Ihr Wort: beim ersten Mal in einem Gespräch.",
            "send": "Sie werden beim ersten Mal in einem Gespräch gefragt. Ohne Ihr Wort: nie.",
        }.items():
            await expect(asks.locator(f"[data-rule={tool}] dd")).to_have_text(said)
        kept = (await ada.get("/connections/office"))["approval"]["rules"]
        assert {tool: rule["yours"] for tool, rule in kept.items()} == {
            "*": "always",
            "send": "first_use",
            **dict.fromkeys(("open", "note", "close")),
        }
        assert ada.complaints == []

    async def test_are_ended_and_begun_again_in_every_tab(self, welcome: Meet) -> None:
        ada = await welcome("Ada who leaves")
        await open_connections(ada)
        other = Visitor(ada.context, await ada.context.new_page(), ada.base_url)
        await other.page.goto(ada.page.url)
        await server(ada, "travel").get_by_role("button", name="Disconnect").click()
        dialog = ada.page.get_by_role("dialog", name="Disconnect from travel?")
        await dialog.get_by_role("button", name="Disconnect").click()
        await expect(dialog).to_have_count(0)
        for tab in (ada, other):
            await expect(server(tab, "travel").locator("[data-state]")).to_have_text("Disconnected")
        await server(other, "travel").get_by_role("button", name="Connect to travel").click()
        await expect(server(ada, "travel")).to_contain_text("Available")
        assert ada.complaints + other.complaints == []

    async def test_are_signed_in_to_at_the_server_and_come_back_to(
        self, tools: ToolStack, welcome: Meet
    ) -> None:
        ada = await welcome("Ada who signs in")
        await open_connections(ada)
        signing = server(ada, "guarded").get_by_role("button", name="Sign in to guarded")
        tools.guarded.authorization.behaviour.consents = False
        await signing.click()
        await expect(ada.failure).to_contain_text("The sign-in to guarded did not work.")
        await expect(ada.failure).to_contain_text("said no")
        tools.guarded.authorization.behaviour.consents = True
        await signing.click()
        await expect(ada.page.get_by_role("status").filter(has_text="signed in")).to_have_text(
            "You are signed in to guarded."
        )
        await expect(server(ada, "guarded")).to_contain_text("Available")
        await expect(server(ada, "guarded")).to_contain_text("Signed in")
        assert ada.page.url.endswith("/tools")
        assert ada.complaints == []

    async def test_to_a_server_of_ones_own_are_added_and_removed(self, welcome: Meet) -> None:
        ada = await welcome("Ada who brings one")
        await open_connections(ada)
        await ada.page.get_by_role("button", name="Add a server").click()
        form = ada.page.get_by_role("form", name="Add a server")
        await form.get_by_role("textbox", name="Name").fill("mine")
        await form.get_by_role("textbox", name="Address").fill("http://127.0.0.1/mcp")
        await form.get_by_role("button", name="Save").click()
        await expect(form.get_by_role("alert")).to_contain_text("did not work")
        await form.get_by_role("textbox", name="Address").fill(OWN_URL)
        await form.get_by_role("combobox").select_option("By a key")
        await form.get_by_label("Key", exact=True).fill(KEY)
        await form.get_by_role("button", name="Save").click()
        await expect(server(ada, "mine")).to_contain_text(OWN_URL)
        await server(ada, "mine").get_by_role("button", name="Remove mine").click()
        dialog = ada.page.get_by_role("dialog", name="Remove mine?")
        await dialog.get_by_role("button", name="Remove", exact=True).click()
        await expect(server(ada, "mine")).to_have_count(0)
        assert ada.complaints_except(INVALID) == []
