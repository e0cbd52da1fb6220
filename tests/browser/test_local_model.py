"""The small model that comes with Stoa, from the browser and back."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from tests.browser.conftest import visitors
from tests.support.development import development
from tests.support.held_ports import held_port
from tests.support.weights import give_weights

pytestmark = pytest.mark.browser

PATIENCE_MS = 300_000
"""It works in earnest, on a machine that may have much else to do."""


class TestTheLocalModel:
    async def test_answers_a_person_in_a_browser(self, chromium: Browser, tmp_path: Path) -> None:
        data = tmp_path / "data"
        await give_weights(data)
        with held_port() as port:
            nowhere = f"http://127.0.0.1:{port}"
            async with development(data, nowhere) as url, visitors(chromium, url) as meet:
                ada = await meet("Ada")
                await ada.say("What is the capital of France?")
                await expect(ada.answer).to_have_attribute(
                    "aria-busy", "false", timeout=PATIENCE_MS
                )
                # What it knows is shown with a seed elsewhere: here it may say anything.
                await expect(ada.answer).to_have_text(re.compile(r"\S"))
                assert [who for who, _ in await ada.state()] == ["human", "ai"]
                assert all(text for _, text in await ada.state())
                assert ada.complaints == []
