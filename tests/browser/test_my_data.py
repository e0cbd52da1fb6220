"""What people see of what is kept about them, how they take it along, and how they leave."""

from __future__ import annotations

import asyncio
import json
import re
import zipfile
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from playwright.async_api import Download, Locator, Request, Route, expect

from app.erasure.receipts import verify_receipt
from tests.browser.conftest import PHONE, Meet, Stack
from tests.browser.pages import FINGER, SMALL, open_page
from tests.browser.queueing import workers
from tests.browser.visitor import LOOK_SECONDS, Visitor
from tests.support.frozen import frozen

pytestmark = pytest.mark.browser

CANARY = "Canary sentence about the lighthouse"
RUNNING = 409
GONE = "Failed to load resource: the server responded with a status of 403"


def kept(visitor: Visitor, kind: str) -> Locator:
    """A line of the table of what is kept."""
    return visitor.page.locator(f"[data-kind={kind}]").get_by_role("cell")


async def saved(visitor: Visitor, link: Locator) -> tuple[Download, Path]:
    """What the browser saves when a link is followed."""
    async with visitor.page.expect_download() as downloading:
        await link.click()
    download = await downloading.value
    return download, Path(await download.path())


async def take_along(visitor: Visitor) -> None:
    """Have everything, once the service knows as well that the one before has come whole."""
    url = f"{visitor.base_url}/me/export"
    while (answer := await visitor.context.request.get(url)).status == RUNNING:  # noqa: ASYNC110
        await asyncio.sleep(LOOK_SECONDS)
    assert answer.ok


async def leave(visitor: Visitor, *, word: str = "DELETE") -> None:
    """Ask for the end of the account, and mean it."""
    await visitor.page.get_by_role("button", name="Delete my account").click()
    dialog = visitor.page.get_by_role("dialog", name=re.compile("Delete your account"))
    sure = dialog.get_by_role("button", name="Delete everything")
    await expect(sure).to_be_disabled()
    field = dialog.get_by_role("textbox", name=f"Type {word}")
    await field.fill(word.lower())
    await expect(sure).to_be_disabled()
    await field.fill(word)
    await sure.click()


class TestMyData:
    async def test_says_what_is_kept_and_is_taken_along(self, meet: Meet) -> None:
        ada = await meet("Ada who keeps a diary")
        await ada.say(CANARY)
        await ada.finished(f"You said: {CANARY}")
        await open_page(ada, "My data")
        await expect(kept(ada, "conversations").first).to_have_text("1")
        await expect(kept(ada, "runs").last).to_have_text("until you delete it, or leave")
        await expect(kept(ada, "events").last).to_have_text(re.compile(r"deleted after \d+ days"))

        own = str((await ada.get("/me"))["user_id"])
        await expect(ada.page.get_by_text("give them this id")).to_contain_text(own[:8])

        download, path = await saved(ada, ada.page.get_by_role("link", name="Download everything"))
        assert download.suggested_filename.endswith(".zip")
        with zipfile.ZipFile(path) as archive:
            assert archive.testzip() is None
            manifest = json.loads(archive.read("manifest.json"))
            chats = [name for name in archive.namelist() if name.endswith(".md")]
            assert manifest["members"]
            assert [CANARY in archive.read(name).decode() for name in chats] == [True]
        await ada.page.reload()
        record = ada.page.get_by_role("region", name="What was done with your account")
        await expect(record.get_by_text("The data was exported: you")).to_be_visible()
        assert ada.complaints == []

    async def test_of_one_chat_is_in_its_menu(self, meet: Meet) -> None:
        ada = await meet("Ada who shares a chat")
        await ada.say(CANARY)
        await ada.finished(f"You said: {CANARY}")
        menu = ada.page.get_by_role("button", name=f"More about the chat “{CANARY}”")
        for item, kind in (("Save as text", ".md"), ("Save as data", ".jsonl")):
            await menu.click()
            choice = ada.page.get_by_role("menuitem", name=re.compile(item))
            download, path = await saved(ada, choice)
            assert download.suggested_filename == f"{CANARY}{kind}"
            assert CANARY in path.read_text(encoding="utf-8")
        assert ada.complaints == []

    async def test_says_why_it_cannot_be_had_just_now(self, meet: Meet) -> None:
        anna = await meet("", locale="de-DE")
        await anna.enter("Anna die alles zehnmal hat")
        await expect(anna.page.get_by_role("textbox", name="Nachricht")).to_be_visible()
        for _ in range(10):
            await take_along(anna)
        await anna.page.goto(f"{anna.base_url}/data")
        await anna.page.get_by_role("link", name="Alles herunterladen").click()
        alert = anna.page.get_by_role("alert", name="Das kann gerade nicht beginnen")
        await expect(alert).to_contain_text("sehr oft alles heruntergeladen")
        await expect(alert).to_contain_text(re.compile(r"In \d+ min können Sie"))

    async def test_of_a_chat_that_is_gone_says_so(self, meet: Meet) -> None:
        ada = await meet("Ada with two tabs and a chat")
        await ada.say(CANARY)
        await ada.finished(f"You said: {CANARY}")
        heard = asyncio.Event()

        async def hold(route: Route) -> None:
            await heard.wait()
            await route.continue_()

        # The list learns of it only when the chat could not be saved.
        await ada.page.route("**/threads/search", hold)
        gone = f"{ada.base_url}/threads/{ada.thread_id}"
        assert (await ada.context.request.delete(gone)).ok
        await ada.page.get_by_role("button", name=f"More about the chat “{CANARY}”").click()
        await ada.page.get_by_role("menuitem", name="Save as text").click()
        alert = ada.page.get_by_role("alert").filter(has_text="The chat could not be saved.")
        await expect(alert).to_contain_text("This chat is not there any more.")
        await alert.get_by_role("button", name="Close").click()
        await expect(alert).to_be_hidden()
        heard.set()
        await expect(ada.chats).to_have_count(0)

    async def test_fits_a_phone_and_is_said_in_german(self, meet: Meet) -> None:
        anna = await meet("", viewport=PHONE, locale="de-DE", has_touch=True)
        await anna.enter("Anna unterwegs")
        await anna.page.goto(f"{anna.base_url}/data")
        heading = anna.page.get_by_role("heading", name="Meine Daten", level=1)
        await expect(heading).to_be_focused()
        await expect(anna.page.get_by_role("table")).to_contain_text("Insgesamt")
        assert not await anna.is_wider_than_the_screen()
        assert await anna.page.evaluate(SMALL, FINGER) == []
        await anna.page.get_by_role("button", name="Mein Konto löschen").tap()
        await anna.page.get_by_role("textbox", name="Tippen Sie LÖSCHEN").fill("LÖSCHEN")
        await expect(anna.page.get_by_role("button", name="Alles löschen")).to_be_enabled()
        assert not await anna.is_wider_than_the_screen()
        await anna.page.keyboard.press("Escape")
        await expect(anna.page.get_by_role("button", name="Mein Konto löschen")).to_be_focused()
        assert anna.complaints == []


class TestLeaving:
    async def test_of_nobody_known_frightens_nobody(self, meet: Meet) -> None:
        ada = await meet("Ada who mistyped")
        await ada.page.goto(f"{ada.base_url}/leaving/{uuid4()}")
        title = ada.page.get_by_role("heading", level=1)
        await expect(title).to_have_text("Nothing is known of this deletion")
        await expect(ada.page).to_have_title(re.compile("^Nothing is known"))
        await ada.page.get_by_role("button", name="To your chats").click()
        await expect(ada.page.get_by_text("No chats yet")).to_be_visible()

    async def test_stops_all_else_and_ends_with_a_receipt(self, stack: Stack, meet: Meet) -> None:
        olga = await meet("Olga who watches", operator=True)
        ada = await meet("Ada who leaves for good")
        await ada.say(CANARY)
        await ada.finished(f"You said: {CANARY}")
        await ada.at_rest()
        before = str((await ada.get("/me"))["user_id"])
        other = await ada.another_tab()
        await open_page(ada, "My data")
        asked: list[str] = []

        def note(request: Request) -> None:
            asked.append(urlsplit(request.url).path)

        with frozen(await workers(olga)):
            await leave(ada)
            title = ada.page.get_by_role("heading", name="Your account is being deleted", level=1)
            await expect(title).to_be_focused()
            await expect(other.page.get_by_role("heading", level=1)).to_have_text(
                "Your account is being deleted"
            )
            ada.page.on("request", note)
            other.page.on("request", note)
            steps = ada.page.get_by_role("list", name="How far it is").get_by_role("listitem")
            await expect(steps.first).to_have_attribute("aria-current", "step")
            # Nothing else is to be had any more, and the way back to here is.
            lost = Visitor(ada.context, await ada.context.new_page(), stack.url)
            await lost.page.goto(stack.url)
            await lost.page.get_by_role("button", name="See how far it is").click()
            await expect(lost.page.get_by_role("heading", level=1)).to_have_text(
                "Your account is being deleted"
            )
            await lost.page.close()
        done = ada.page.get_by_role("heading", name="Your account is deleted", level=1)
        await expect(done).to_be_focused()
        assert {path for path in asked if not path.startswith("/assets/")} == {
            urlsplit(ada.page.url).path.replace("/leaving/", "/erasures/")
        }

        download, path = await saved(ada, ada.page.get_by_role("link", name="Download the receipt"))
        assert download.suggested_filename.startswith("stoa-receipt-")
        keys = await (await ada.context.request.get(f"{stack.url}/.well-known/jwks.json")).body()
        claims = verify_receipt(path.read_text(encoding="ascii"), keys)
        assert claims["deleted"]["threads"] == 1
        assert set(claims["remaining"].values()) == {0}
        await ada.page.get_by_text("What was deleted, table by table").click()
        row = ada.page.locator("[data-table=threads]").get_by_role("cell")
        await expect(row).to_have_text(["1", "0"])
        assert not await ada.is_wider_than_the_screen()
        assert await ada.page.evaluate(SMALL, FINGER) == []

        await ada.page.get_by_role("link", name="Begin anew with an empty account").click()
        await expect(ada.page.get_by_text("No chats yet")).to_be_visible()
        assert str((await ada.get("/me"))["user_id"]) != before
        assert [each for each in ada.complaints if not each.startswith(GONE)] == []
