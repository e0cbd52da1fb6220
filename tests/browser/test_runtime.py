"""What everybody is told while a part of the service does not work, and what stays as it was."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import Browser, expect

from tests.browser.conftest import PHONE
from tests.browser.unwell import (
    NAMES,
    OPERATORS,
    Unwell,
    assert_in_place,
    bar,
    bars,
    unwell,
)
from tests.browser.visitor import LOOK_SECONDS, PATIENCE, Visitor
from tests.support.sites import answer
from tests.support.tenancy import TestDatabase

pytestmark = pytest.mark.browser

Meet = Callable[..., Awaitable[Visitor]]
SMALLEST = {"width": 320, "height": 568}
LOST = "The service cannot answer right now"
REFUSAL = answer(b"", status="500 Internal Server Error")
ACCEPTED = answer(b"", status="202 Accepted")

_PUBLISHING = "SELECT pg_get_functiondef('dispatch.publish_worker'::regproc)"
_LOCK = "PERFORM pg_advisory_xact_lock(8);"
_IS_WAITING = (
    "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND objid = 8 AND NOT granted"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))"
)


@pytest.fixture(scope="module")
async def place(
    chromium: Browser, template: TestDatabase, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Unwell]:
    async with unwell(chromium, template, tmp_path_factory.mktemp("unwell")) as place:
        yield place


@pytest.fixture
async def meet(place: Unwell) -> AsyncIterator[Meet]:
    """Bring somebody to a service that works, and leave one that does."""
    async with place.people() as meet:
        yield meet
    await place.works()


@asynccontextmanager
async def words_held(place: Unwell) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """No worker's word that it is ready is heard in here; gives how to wait for one."""
    async with place.deployment.superuser() as holder, place.deployment.superuser() as looker:
        publishing = await holder.fetchval(_PUBLISHING)
        await holder.execute(publishing.replace("BEGIN", f"BEGIN {_LOCK}", 1))
        await holder.execute("SELECT pg_advisory_lock(8)")

        async def on_its_way() -> None:
            async with asyncio.timeout(PATIENCE):
                while not await looker.fetchval(_IS_WAITING):  # noqa: ASYNC110
                    await asyncio.sleep(LOOK_SECONDS)

        try:
            yield on_its_way
        finally:
            await holder.execute("SELECT pg_advisory_unlock(8)")
            await holder.execute(publishing)


async def reconnected(place: Unwell, *tabs: Visitor) -> None:
    """Cut everything that the pages follow; return once each of them follows it again."""
    async with asyncio.TaskGroup() as all_tabs:
        for tab in tabs:
            all_tabs.create_task(_follows(tab))
        await asyncio.sleep(0)
        place.to_web.block()
        # The first of them has noticed.
        await tabs[0].page.wait_for_event("requestfailed")
        place.to_web.clear()


async def _follows(tab: Visitor) -> None:
    async with tab.page.expect_response(
        lambda response: response.url.endswith("/events") and response.ok, timeout=PATIENCE * 1000
    ):
        pass


class TestTheOnlyWorkerThatIsKilled:
    async def test_is_told_on_every_page_and_takes_nothing_until_another_one_is_ready(
        self, place: Unwell, meet: Meet
    ) -> None:
        ada = await meet("ada")
        await ada.say("Hello")
        await ada.finished("You said: Hello")
        await ada.composer.fill("Half a thought")
        chat = ada.page.url
        other = await ada.another_tab()
        await other.page.goto(f"{place.url}/memory")
        search = other.page.get_by_role("searchbox")
        await search.fill("book 17")
        bob = await meet("bob", PHONE, has_touch=True, is_mobile=True)
        await bob.composer.fill("Anybody there?")

        await place.kill_worker()
        everybody = (ada, other, bob)
        for tab in everybody:
            await expect(bar(tab)).to_contain_text(LOST)
            await expect(bar(tab)).to_contain_text("What works on answers has stopped.")
            await expect(bar(tab)).to_contain_text("Whoever runs the service has to see to it.")
            await expect(bar(tab)).to_have_attribute("aria-atomic", "false")
            await assert_in_place(tab, actions=0)
        await expect(bob.composer).to_be_focused()

        # What is sent is taken, and waits.
        await bob.composer.press("Enter")
        await expect(bob.composer).to_be_empty()
        await expect(bob.typed).to_have_text(["Anybody there?"])

        async with words_held(place) as on_its_way:
            await reconnected(place, *everybody)
            await place.start_worker()
            await on_its_way()
            await place.looked_again()
            newcomer = await ada.another_tab()
            for tab in (*everybody, newcomer):
                await expect(bar(tab)).to_contain_text(LOST)
                assert await bars(tab) == ["came"]
            await expect(ada.composer).to_have_text("Half a thought")
            await expect(ada.typed).to_have_text(["Hello"])
            await expect(ada.answers).to_have_count(1)
            await expect(search).to_have_value("book 17")
            assert (ada.page.url, other.page.url) == (chat, f"{place.url}/memory")

        for tab in (*everybody, newcomer):
            await expect(bar(tab)).to_have_count(0)
            assert await bars(tab) == ["came", "went"]
        await bob.finished("You said: Anybody there?")
        await expect(ada.composer).to_have_text("Half a thought")
        await expect(search).to_have_value("book 17")


class TestAWorkerThatLeavesInOrder:
    async def test_is_not_told_of_while_another_one_works(self, place: Unwell, meet: Meet) -> None:
        ada = await meet("ada who notices nothing")
        leaving = place.worker
        await place.start_worker()
        assert await leaving.terminate() == 0
        await place.looked_again()
        await ada.say("Hello")
        await ada.finished("You said: Hello")
        assert await bars(ada) == []
        assert ada.complaints == []


class TestAModelServerThatIsStopped:
    async def test_tells_an_operator_what_to_do_who_can_have_things_restarted(
        self, place: Unwell, meet: Meet
    ) -> None:
        olga = await meet("olga", PHONE, OPERATORS, has_touch=True, is_mobile=True)
        anna = await meet("anna", locale="de-DE")
        sven = await meet("sven")
        sven_id = (await sven.get("/me"))["user_id"]
        await olga.post(f"/admin/users/{sven_id}/suspend", {})
        on_hold = sven.page.get_by_role("heading", name="Your account is suspended")
        await sven.page.reload()
        await expect(on_hold).to_be_visible()

        await place.deployment.model.stop()
        await expect(bar(anna)).to_contain_text("Der Dienst kann gerade nicht antworten")
        await expect(bar(anna)).to_contain_text("Ein Sprachmodell ist nicht erreichbar.")
        await assert_in_place(anna, actions=0)
        await expect(bar(sven)).to_contain_text("A language model cannot be reached.")
        await expect(on_hold).to_be_visible()
        await assert_in_place(sven, actions=0)
        await expect(bar(olga)).to_contain_text("A model server does not answer: start Ollama")
        await assert_in_place(olga, actions=2)

        restart = bar(olga).get_by_role("button", name="Restart the service")
        refused = bar(olga).get_by_text("The restart did not begin.")
        place.hook.replies["/restart"] = REFUSAL
        for _ in range(2):
            await restart.focus()
            await restart.press("Enter")
            await expect(refused).to_be_visible()
            await expect(restart).to_be_focused()
        await assert_in_place(olga, actions=2)
        place.hook.replies["/restart"] = ACCEPTED
        await restart.tap()
        await expect(bar(olga)).to_contain_text("The restart has been asked for.")
        await expect(refused).to_have_count(0)
        await bar(olga).get_by_role("link", name="Pools and workers").tap()
        await expect(olga.page.get_by_role("heading", level=1)).to_have_text("Pools and workers")
        await expect(bar(olga)).to_be_visible()

        await place.deployment.restart_model()
        for person in (olga, anna, sven):
            await expect(bar(person)).to_have_count(0)
            assert await bars(person) == ["came", "went"]
        assert len(place.hook.asked) == 3


class TestAToolServerThatIsKilled:
    async def test_is_told_to_its_one_person_who_can_connect_anew(
        self, place: Unwell, meet: Meet
    ) -> None:
        bob = await meet("bob with notes")
        await connect(bob)
        of_others = place.children()
        ada = await meet("ada with notes", PHONE, has_touch=True, is_mobile=True)
        await connect(ada)
        await ada.composer.fill("Half a thought")
        hidden = place.script.rename(place.script.with_suffix(".gone"))
        for child in place.children() - of_others:
            child.kill()
        for name in NAMES.values():
            await expect(bar(ada)).to_contain_text(
                f"Your connection to “{name}” does not work: it has ended by itself."
            )
        await expect(bar(ada)).not_to_contain_text(LOST)
        await assert_in_place(ada, actions=2)
        await ada.resize(SMALLEST)
        await assert_in_place(ada, actions=2)
        await expect(ada.composer).to_be_in_viewport()

        notes = bar(ada).get_by_role("button", name="Reconnect to Notes")
        place.to_web.block()
        await notes.tap()
        await expect(bar(ada)).to_contain_text("The service cannot be reached.")
        place.to_web.clear()
        await notes.tap()
        await expect(bar(ada)).to_contain_text("The connection to “Notes” still does not work.")
        hidden.rename(place.script)
        await notes.tap()
        await expect(notes).to_have_count(0)
        await expect(bar(ada)).to_be_visible()
        await bar(ada).get_by_role("button", name="Reconnect").tap()
        await expect(bar(ada)).to_have_count(0)
        assert await bars(ada) == ["came", "went"]
        await expect(ada.composer).to_have_text("Half a thought")
        assert await bars(bob) == []


async def connect(person: Visitor) -> None:
    """Have all their servers looked at, and wait until these work."""
    for server in NAMES:
        await person.post(f"/connections/{server}/reconnect", {})
    async with asyncio.timeout(PATIENCE):
        while not await all_work(person):  # noqa: ASYNC110
            await asyncio.sleep(LOOK_SECONDS)


async def all_work(person: Visitor) -> bool:
    """Whether all of their servers do."""
    return all(each["state"] == "available" for each in await person.get("/connections"))


class TestADatabaseThatIsAway:
    async def test_is_told_on_open_pages_and_keeps_what_is_on_them(
        self, place: Unwell, meet: Meet
    ) -> None:
        ada = await meet("ada without a database")
        await ada.say("Hello")
        await ada.finished("You said: Hello")
        await ada.composer.fill("Half a thought")
        place.to_database.block()
        await expect(bar(ada)).to_contain_text("Its database cannot be reached.")
        await expect(bar(ada)).not_to_contain_text("What you send")
        await ada.context.set_offline(True)
        await expect(bar(ada)).to_contain_text("You are offline.")
        await expect(ada.page.get_by_text("You are offline.")).to_have_count(1)
        await ada.context.set_offline(False)
        await expect(bar(ada)).not_to_contain_text("You are offline.")
        await expect(ada.typed).to_have_text(["Hello"])
        newcomer = Visitor(ada.context, await ada.context.new_page(), ada.base_url)
        await newcomer.page.goto(ada.page.url)
        away = newcomer.page.get_by_role("heading", name="The service is not available")
        await expect(away).to_be_visible()
        place.to_database.clear()
        await expect(bar(ada)).to_have_count(0)
        assert await bars(ada) == ["came", "went"]
        await expect(newcomer.typed).to_have_text(["Hello"])
        await expect(ada.composer).to_have_text("Half a thought")
        await expect(ada.answers).to_have_count(1)
