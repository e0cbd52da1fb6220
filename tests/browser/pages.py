"""The pages beside the chats: how one comes to them, and what holds of each."""

from __future__ import annotations

import asyncio

from playwright.async_api import expect

from tests.browser.visitor import Visitor

FINGER = 44
"""How high a control has to be at least, in pixels."""
SMALL = """least => [...document.querySelectorAll("main :is(a, button, summary, input, select)")]
  .filter((each) => each.checkVisibility())
  .map((each) => [each.closest("label") ?? each, each.textContent])
  .filter(([each]) => each.getBoundingClientRect().height < least)
  .map(([each, text]) => text || each.outerHTML)"""
"""Names the controls of the page that are less high than that."""


async def models_found_again(operator: Visitor) -> None:
    """Return once the service has found that every model server works."""
    states = {"failing"}
    while states != {"open"}:
        await asyncio.sleep(0.1)
        states = {pool["state"] for pool in (await operator.get("/admin/pools"))["pools"]}


async def open_page(
    visitor: Visitor,
    name: str,
    *,
    title: str | None = None,
    on_phone: bool = False,
    account: str = "Account and settings",
) -> None:
    """Go to a page of the account's menu; its title is the item's unless said otherwise."""
    if on_phone:
        await visitor.page.get_by_role("button", name="Open the list of chats").tap()
    await visitor.page.get_by_role("button", name=account).click()
    await visitor.page.get_by_role("menuitem", name=name).click()
    heading = visitor.page.get_by_role("heading", name=title or name, level=1)
    await expect(heading).to_be_visible()
