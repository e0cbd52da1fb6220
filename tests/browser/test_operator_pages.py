"""What operators see and set: who waits, people, pools, limits, who has left, the record."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Locator, Request, expect

from app.erasure.receipts import verify_receipt
from tests.browser.conftest import DESKTOP, PHONE, SLOTS, Meet, Stack
from tests.browser.pages import FINGER, SMALL, open_page
from tests.browser.queueing import begin, limit, occupy, workers
from tests.browser.visitor import Visitor
from tests.support.frozen import frozen

pytestmark = pytest.mark.browser

CANARY = "Canary sentence about the harbour"
INVALID = "Failed to load resource: the server responded with a status of 422"
GONE = "Failed to load resource: the server responded with a status of 403"
UNKNOWN = "Failed to load resource: the server responded with a status of 404"
PAGES = ("Queue", "People", "Pools and workers", "Limits", "Deletions", "Record")


async def turn_to(olga: Visitor, name: str) -> None:
    """Go to another of the operators' pages."""
    pages = olga.page.get_by_role("navigation", name="Pages for operators")
    await pages.get_by_role("link", name=name, exact=True).click()
    await expect(olga.page.get_by_role("heading", name=name, level=1)).to_be_focused()


async def id_of(visitor: Visitor) -> str:
    return str((await visitor.get("/me"))["user_id"])


def at_fact(place: Locator, name: str) -> Locator:
    """The value beside a name."""
    return (
        place.locator("dl > div").filter(has=place.page.get_by_text(name, exact=True)).locator("dd")
    )


class TestTheQueue:
    async def test_says_who_waits_and_goes_on_when_a_pool_takes_more(
        self, stack: Stack, meet: Meet, olga: Visitor
    ) -> None:
        ada = await meet("Ada who waits")
        bob = await meet("Bob who holds")
        ada_id = await id_of(ada)
        await open_page(olga, "For operators", title="Queue")
        held = await occupy(bob, stack)
        await begin(ada, "My secret question")
        waits = olga.page.get_by_role("region", name="Who waits").get_by_role("listitem")
        await expect(waits.filter(has_text=ada_id[:8])).to_contain_text("others are before them")
        assert "secret" not in await olga.page.content()

        await turn_to(olga, "Pools and workers")
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
        await expect(pool.get_by_role("button", name=re.compile("Change"))).to_be_focused()
        working = olga.page.get_by_role("region", name="Workers").get_by_role("listitem")
        # One that another test has held for long may still be listed as lost.
        state = at_fact(working, "State").filter(has_text=re.compile("^Working$"))
        await expect(state.first).to_be_visible()
        await turn_to(olga, "Queue")
        await expect(waits.filter(has_text=ada_id[:8])).to_have_count(0)
        stack.model.release(held)
        assert olga.complaints_except(INVALID) == []


class TestLimits:
    async def test_of_somebody_are_set_and_hold_at_once(
        self, stack: Stack, meet: Meet, olga: Visitor
    ) -> None:
        ada = await meet("Ada who is held")
        await open_page(olga, "For operators", title="Queue")
        await turn_to(olga, "Limits")
        people = olga.page.get_by_role("region", name="Limits of somebody")
        await people.get_by_role("textbox", name="Id of a person").fill(await id_of(ada))
        await people.get_by_role("button", name="Open").click()
        form = people.get_by_role("form", name=re.compile("Change the limits of"))
        running = form.get_by_role("textbox", name="Runs at once", exact=True)
        await running.fill("-1")
        for screen in (PHONE, DESKTOP):
            await olga.resize(screen)
            assert not await olga.is_wider_than_the_screen()
            assert await olga.page.evaluate(SMALL, FINGER) == []
        await running.press("Enter")
        await expect(running).to_have_accessible_description(re.compile("a whole number from 0"))
        await running.fill("0")
        await running.press("Enter")
        await expect(form).to_have_count(0)
        await ada.say("Hello?")
        await expect(ada.page.get_by_text("An operator has put your runs on hold.")).to_be_visible()
        await turn_to(olga, "Queue")
        person = olga.page.get_by_role("region", name="People").locator(
            f"[data-person='{await id_of(ada)}']"
        )
        await expect(person).to_contain_text("suspended")
        await person.get_by_role("button", name=re.compile("Change the limits")).click()
        await person.get_by_role("textbox", name="Runs at once", exact=True).fill("")
        await person.get_by_role("button", name="Save").click()
        await ada.finished("You said: Hello?")
        assert olga.complaints_except(INVALID) == []

    async def test_are_in_plans_that_people_are_given(
        self, stack: Stack, meet: Meet, olga: Visitor
    ) -> None:
        ada = await meet("Ada on a plan")
        await open_page(olga, "For operators", title="Queue")
        await turn_to(olga, "Limits")
        plans = olga.page.get_by_role("region", name="Plans")
        await plans.get_by_role("button", name="New plan").click()
        await plans.get_by_role("textbox", name="Name of the plan").fill("team")
        await plans.get_by_role("textbox", name="Chats", exact=True).fill("7")
        await plans.get_by_role("checkbox", name="No limit: Runs at once").check()
        await plans.get_by_role("button", name="Save").click()
        team = plans.locator("[data-plan=team]")
        await expect(team).to_contain_text("no limit")

        people = olga.page.get_by_role("region", name="Limits of somebody")
        await people.get_by_role("textbox", name="Id of a person").fill(await id_of(ada))
        await people.get_by_role("button", name="Open").click()
        form = people.get_by_role("form", name=re.compile("Change the limits of"))
        await form.get_by_role("combobox", name=re.compile("Plan of")).select_option("team")
        await form.get_by_role("button", name="Save").click()
        await expect(team).to_contain_text("1 person")
        await open_page(ada, "Usage and limits")
        await expect(ada.page.get_by_text("Plan: team")).to_be_visible()
        threads = ada.page.locator("[data-limit=threads]")
        await expect(threads).to_contain_text("0 of 7 chats")
        await expect(ada.page.locator("[data-limit=running]")).to_contain_text("no limit")

        await team.get_by_role("button", name="Delete the plan team").click()
        await expect(team.get_by_role("alert")).to_be_visible()
        await limit(olga, ada)
        await team.get_by_role("button", name="Delete the plan team").click()
        await expect(team).to_have_count(0)
        assert ada.complaints == []


class TestAPerson:
    async def test_is_suspended_and_let_go_on(self, stack: Stack, meet: Meet) -> None:
        ada = await meet("Ada on hold")
        await ada.say(CANARY)
        await ada.finished(f"You said: {CANARY}")
        ada_id = await id_of(ada)
        olga = await meet("Olga on duty", operator=True)
        await open_page(olga, "For operators", title="Queue")
        await turn_to(olga, "People")
        await olga.page.get_by_role("main").get_by_role("link", name=ada_id[:8]).click()
        title = olga.page.get_by_role("heading", name=f"Person {ada_id[:8]}", level=1)
        await expect(title).to_be_focused()
        account = olga.page.get_by_role("region", name="Account")
        await expect(at_fact(account, "State")).to_have_text("Active")
        await expect(at_fact(account, "Chats")).to_have_text("1")
        region = olga.page.get_by_role("region", name="What is kept")
        await expect(at_fact(region, "threads")).to_have_text("1")
        for screen in (PHONE, DESKTOP):
            await olga.resize(screen)
            assert not await olga.is_wider_than_the_screen()
            assert await olga.page.evaluate(SMALL, FINGER) == []
        content = await olga.page.content()
        assert CANARY not in content
        assert "Ada" not in content

        await account.get_by_role("button", name="Suspend").click()
        dialog = olga.page.get_by_role("dialog", name=f"Suspend {ada_id[:8]}?")
        await dialog.get_by_role("button", name="Suspend").click()
        await expect(at_fact(account, "State")).to_contain_text("Suspended since")
        held = ada.page.get_by_role("heading", name="Your account is suspended", level=1)
        await expect(held).to_be_focused()
        record = ada.page.get_by_role("region", name="What was done with your account")
        await expect(record).to_contain_text("The account was suspended: an operator")
        async with ada.page.expect_download() as downloading:
            await ada.page.get_by_role("link", name="Download everything").click()
        assert (await (await downloading.value).failure()) is None

        await account.get_by_role("button", name="Let go on").click()
        await expect(at_fact(account, "State")).to_have_text("Active")
        await ada.page.reload()
        await ada.finished(f"You said: {CANARY}")
        assert olga.complaints == []
        assert ada.complaints_except(GONE) == []

    async def test_is_erased_which_leaves_a_receipt_and_facts(
        self, stack: Stack, meet: Meet
    ) -> None:
        ada = await meet("Ada who is sent away")
        await ada.say(CANARY)
        await ada.finished(f"You said: {CANARY}")
        await ada.at_rest()
        ada_id = await id_of(ada)
        olga = await meet("Olga who erases", operator=True)
        await olga.page.goto(f"{stack.url}/operator/people/{ada_id}")
        account = olga.page.get_by_role("region", name="Account")
        with frozen(await workers(olga)):
            await account.get_by_role("button", name="Delete").click()
            dialog = olga.page.get_by_role("dialog", name=re.compile(f"^Delete {ada_id[:8]}"))
            sure = dialog.get_by_role("button", name="Delete everything")
            await expect(sure).to_be_disabled()
            await dialog.get_by_role("textbox", name=f"Type {ada_id[:8]}").fill(ada_id[:8])
            await sure.click()
            await expect(at_fact(account, "State")).to_contain_text("Being deleted")
            gone = ada.page.get_by_role("heading", name="This account cannot be used", level=1)
            await expect(gone).to_be_visible()
            await account.get_by_role("link", name="See how far the deletion is").click()
            erasure = olga.page.locator("[data-erasure]").first
            await expect(erasure).to_have_attribute("data-state", "begun")
        await expect(erasure).to_have_attribute("data-state", "done")
        assert ada_id not in await olga.page.content()
        async with olga.page.expect_download() as downloading:
            await erasure.get_by_role("link", name="Download the receipt").click()
        receipt = await (await downloading.value).path()
        keys = await (await olga.context.request.get(f"{stack.url}/.well-known/jwks.json")).body()
        assert verify_receipt(receipt.read_text(encoding="ascii"), keys)["requested_by"] == (
            "operator"
        )

        await turn_to(olga, "Record")
        await olga.page.get_by_role("combobox", name="What").select_option("erasure_begun")
        await olga.page.get_by_role("button", name="Show").click()
        entry = olga.page.locator("[data-action=erasure_begun]").first
        await expect(at_fact(entry, "Account")).to_contain_text("somebody who has left")
        await expect(at_fact(entry, "By")).to_contain_text((await id_of(olga))[:8])
        await olga.page.get_by_role("textbox", name="Id of a person").fill("Ada")
        await olga.page.get_by_role("button", name="Show").click()
        await expect(olga.failure).to_have_text("This is no id of a person.")
        await olga.page.goto(f"{stack.url}/operator/people/{ada_id}")
        await expect(olga.page.get_by_text("There is nobody with this id.")).to_be_visible()
        refused = (UNKNOWN, INVALID)
        assert [each for each in olga.complaints if not each.startswith(refused)] == []


class TestTheOperatorsPages:
    async def test_are_one_after_the_other_by_keyboard_in_german_on_a_phone(
        self, stack: Stack, meet: Meet
    ) -> None:
        olga = await meet("", viewport=PHONE, locale="de-DE")
        await olga.enter("Olga unterwegs", operator=True)
        await olga.page.goto(f"{stack.url}/queue")
        pages = olga.page.get_by_role("navigation", name="Seiten für Betreiber")
        links = pages.get_by_role("link")
        await expect(links).to_have_count(len(PAGES))
        await expect(links.first).to_have_attribute("aria-current", "page")
        for number in (*range(1, len(PAGES)), 0):
            await links.nth(number).focus()
            await olga.page.keyboard.press("Enter")
            await expect(links.nth(number)).to_have_attribute("aria-current", "page")
            await expect(olga.page.get_by_role("heading", level=1)).to_be_focused()
            await expect(olga.page.get_by_role("status", name=re.compile("geladen"))).to_have_count(
                0
            )
            assert not await olga.is_wider_than_the_screen()
            assert await olga.page.evaluate(SMALL, FINGER) == []
        assert olga.complaints == []

    async def test_are_for_nobody_else(self, stack: Stack, meet: Meet) -> None:
        ada = await meet("Ada who is curious")
        asked: list[str] = []

        def note(request: Request) -> None:
            asked.append(request.url)

        ada.page.on("request", note)
        await ada.account()
        usage = ada.page.get_by_role("menuitem", name="Usage and limits")
        await expect(usage).to_be_visible()
        await expect(ada.page.get_by_role("menuitem", name="For operators")).to_have_count(0)
        for path in ("/queue", "/operator/people", "/operator/erasures", "/operator/audit"):
            await ada.page.goto(f"{stack.url}{path}")
            title = ada.page.get_by_role("heading", name="This page is for operators")
            await expect(title).to_be_visible()
        assert [url for url in asked if "/admin" in url] == []
        assert (await ada.context.request.get(f"{stack.url}/admin/queue")).status == 403
        assert ada.complaints == []
