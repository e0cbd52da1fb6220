"""Choosing the model that answers: in the composer, for each chat, and what is said of each."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
from playwright.async_api import Browser, Locator, Route, expect

from tests.browser.conftest import DESKTOP, PHONE, SLOTS, Meet, visitors
from tests.browser.pages import FINGER
from tests.browser.visitor import Visitor
from tests.support.development import development
from tests.support.model_server import RecordedRequest, Script, ScriptedModelServer

pytestmark = pytest.mark.browser

SMALL, LARGE = "smollm2:latest", "large:8b"
PUBLISHED = {"far": {"models": {LARGE: {"cost": {"input": 0.5, "output": 1.5}}}}}


@dataclass
class Shop:
    """A service with two models to choose from, on servers of their own."""

    url: str
    small: ScriptedModelServer
    large: ScriptedModelServer


@pytest.fixture(scope="module")
async def shop(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Shop]:
    folder = tmp_path_factory.mktemp("shop")
    prices = folder / "prices.json"
    prices.write_text(json.dumps(PUBLISHED), encoding="utf-8")
    async with (
        ScriptedModelServer(slots=SLOTS) as small,
        ScriptedModelServer(
            slots=SLOTS, models=[LARGE], capabilities=["completion", "tools", "vision"]
        ) as large,
    ):
        pools = [
            {"name": "small", "url": small.url, "capacity": SLOTS},
            {"name": "large", "url": large.url, "model": LARGE, "provider": "far"}
            | {"capacity": SLOTS, "context": 8192},
        ]
        settings = {
            "STOA_POOL": json.dumps(pools),
            "STOA_CATALOGUE_URL": prices.as_uri(),
            "STOA_CATALOGUE_FOLDER": str(folder / "catalogue"),
        }
        async with development(folder / "data", None, at=None, **settings) as url:
            yield Shop(url, small, large)


@pytest.fixture
async def come(chromium: Browser, shop: Shop) -> AsyncIterator[Meet]:
    """Bring somebody to the service that has several models."""
    async with visitors(chromium, shop.url, shop.small) as bring:
        yield bring


def picker(visitor: Visitor) -> Locator:
    return visitor.page.get_by_role("button", name="Model: ")


def models(visitor: Visitor) -> Locator:
    return visitor.page.get_by_role("menuitemradio")


def told(visitor: Visitor, text: str) -> Locator:
    return visitor.page.get_by_role("status").filter(has_text=text)


async def chosen(visitor: Visitor, name: str) -> None:
    await expect(picker(visitor)).to_have_accessible_name(f"Model: {name}")


async def choose(visitor: Visitor, name: str) -> None:
    await picker(visitor).click()
    await models(visitor).filter(has_text=name).click()
    await expect(models(visitor)).to_have_count(0)
    await chosen(visitor, name)


def asked(server: ScriptedModelServer, text: str) -> list[RecordedRequest]:
    """The calls in which somebody said this."""
    return [each for each in server.requests if text in json.dumps(each.body)]


async def new_chat(visitor: Visitor) -> None:
    await visitor.page.get_by_role("link", name="New chat").click()
    await expect(visitor.questions).to_have_count(0)


async def models_but(visitor: Visitor, *missing: str, **changed: Any) -> list[dict[str, Any]]:
    """The models without some, and with something else said of each."""
    listed = await visitor.get("/models")
    return [each | changed for each in listed if each["model"] not in missing]


class TestTheModel:
    @pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
    async def test_is_chosen_by_what_it_can_and_costs(
        self, shop: Shop, come: Meet, viewport: dict[str, int]
    ) -> None:
        is_phone = viewport == PHONE
        ada = await come(f"Ada {viewport['width']}", viewport=viewport, has_touch=is_phone)
        await chosen(ada, SMALL)
        await (picker(ada).tap() if is_phone else picker(ada).click())
        await expect(models(ada)).to_have_count(2)
        small, large = models(ada).first, models(ada).last
        await expect(small).to_have_attribute("aria-checked", "true")
        await expect(small).to_contain_text("Default")
        await expect(small).to_contain_text("Tools · Thinking · costs time on the model server")
        await expect(large).to_contain_text("8,192 tokens of context · Tools · Images")
        await expect(large).to_contain_text("$0.50 in, $1.50 out per million tokens")
        for each in (small, large, picker(ada)):
            await expect(each).to_be_in_viewport()
            box = await each.bounding_box()
            assert box is not None
            assert box["height"] >= FINGER
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= viewport["width"]
        assert not await ada.is_wider_than_the_screen()
        if is_phone:
            await large.tap()
        else:
            await ada.page.keyboard.press("ArrowDown")
            await ada.page.keyboard.press("ArrowDown")
            await expect(large).to_be_focused()
            await ada.page.keyboard.press("Enter")
            await expect(picker(ada)).to_be_focused()
        await chosen(ada, LARGE)
        question = f"Which one are you, of {viewport['width']}?"
        await ada.say(question)
        await ada.finished(f"You said: {question}")
        assert [each.body["model"] for each in asked(shop.large, question)] == [LARGE]
        assert not await ada.is_wider_than_the_screen()
        assert ada.complaints == []

    async def test_stays_with_its_chat_and_is_what_new_ones_begin_with(
        self, shop: Shop, come: Meet
    ) -> None:
        ada = await come("Ada who has two")
        await choose(ada, LARGE)
        await ada.say("For the large one")
        await ada.finished("You said: For the large one")
        await new_chat(ada)
        await chosen(ada, LARGE)
        await choose(ada, SMALL)
        await ada.say("For the small one")
        await ada.finished("You said: For the small one")
        await ada.chats.filter(has_text="For the large one").click()
        await chosen(ada, LARGE)
        await ada.page.reload()
        await chosen(ada, LARGE)
        # What is sent while an answer is on its way goes to it as well.
        shop.large.enqueue(Script(text="One two", stall_at=1))
        await ada.say("And this?")
        await expect(ada.answer).to_contain_text("One")
        await ada.say("And that?")
        for held in asked(shop.large, "And this?"):
            shop.large.release(held)
        await ada.finished("You said: And that?")
        assert len(asked(shop.large, "And that?")) == 1
        assert ada.complaints == []

    async def test_that_is_mentioned_answers_that_message(self, shop: Shop, come: Meet) -> None:
        ada = await come("Ada who asks another one")
        await choose(ada, SMALL)
        field = ada.page.get_by_label("Message", exact=True)
        await field.press_sequentially("You, @large")
        await expect(ada.page.get_by_role("option", name=LARGE)).to_be_visible()
        await field.press("Enter")
        await ada.composer.press("Enter")
        await ada.finished(f"You said: You, @“{LARGE}”")
        assert len(asked(shop.large, "You, @")) == 1
        await chosen(ada, SMALL)
        assert ada.complaints == []


class TestAChoiceThatCannotBeKept:
    async def test_falls_back_to_the_default_and_says_so(self, shop: Shop, come: Meet) -> None:
        ada = await come("Ada whose model goes")
        await choose(ada, LARGE)
        left = await models_but(ada, LARGE)
        other = {**left[0], "model": "other:1b", "default": False}
        await ada.page.route("**/models", lambda route: route.fulfill(json=[*left, other]))
        await ada.page.reload()
        await chosen(ada, SMALL)
        gone = told(ada, f"“{LARGE}” is not offered any more. {SMALL} answers instead.")
        await expect(gone).to_be_visible()
        await ada.say("Who is there?")
        await ada.finished("You said: Who is there?")
        assert asked(shop.large, "Who is there?") == []
        # One that is there is a choice again.
        await choose(ada, SMALL)
        await expect(gone).to_have_count(0)
        assert ada.complaints == []

    async def test_is_told_by_the_service_where_the_page_does_not_know_yet(
        self, shop: Shop, come: Meet
    ) -> None:
        ada = await come("Ada whose page is old")
        listed = await models_but(ada)
        old = {**listed[1], "model": "gone:1b"}
        await ada.page.route("**/models", lambda route: route.fulfill(json=[*listed, old]))
        await ada.page.reload()
        await choose(ada, "gone:1b")
        await ada.page.unroute("**/models")
        await ada.composer.fill("Are you there?")
        await ada.composer.press("Enter")
        await expect(ada.failure).to_contain_text("is not offered any more. Choose another one.")
        await expect(ada.composer).to_have_value("Are you there?")
        # By now the page knows: the same message is answered by the default.
        await expect(told(ada, f"{SMALL} answers instead.")).to_be_visible()
        await ada.composer.press("Enter")
        await ada.finished("You said: Are you there?")

    async def test_holds_nothing_up_while_the_list_cannot_be_had(
        self, shop: Shop, come: Meet
    ) -> None:
        ada = await come("Ada without a list")
        await choose(ada, LARGE)

        async def fail(route: Route) -> None:
            await route.fulfill(status=500, json={"code": "internal"})

        await ada.page.route("**/models", fail)
        await ada.page.reload()
        missing = told(ada, "The list of models could not be loaded.")
        await expect(missing).to_contain_text(f"The default model answers instead of “{LARGE}”.")
        await expect(picker(ada)).to_have_count(0)
        await ada.say("Is anybody there?")
        await ada.finished("You said: Is anybody there?")
        assert asked(shop.large, "Is anybody there?") == []
        await ada.page.unroute("**/models")
        await ada.page.reload()
        await expect(missing).to_have_count(0)
        await expect(picker(ada)).to_be_visible()

    async def test_may_be_a_model_that_does_not_work_now(self, shop: Shop, come: Meet) -> None:
        anna = await come("", locale="de-DE")
        await anna.enter("Anna, deren Modell ruht")
        listed = await anna.get("/models")
        out = [listed[0], {**listed[1], "status": "unavailable"}]
        await anna.page.route("**/models", lambda route: route.fulfill(json=out))
        await anna.page.reload()
        await anna.page.get_by_role("button", name=f"Modell: {SMALL}").click()
        await expect(models(anna).last).to_contain_text("Was Sie ihm senden, wartet.")
        await expect(models(anna).last).to_contain_text(
            "hinein, 1,50\u00a0$ heraus je Million Token"
        )
        await models(anna).last.click()
        await expect(anna.page.get_by_role("button", name=f"Modell: {LARGE}")).to_be_visible()
        assert anna.complaints == []
