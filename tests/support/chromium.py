"""The Chromium that browser tests drive: one that is installed on the machine.

Best is that without a window, which renders pages as the others do and takes half of their CPU.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from playwright.async_api import Browser, async_playwright

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
ARGUMENTS = (
    "--headless=new",  # for those that could open a window
    "--no-sandbox",  # tests may run as root, and open nobody else's pages
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--js-flags=--no-opt --no-maglev",  # pages are left before code made faster has paid for itself
)

MISSING = f"no Chromium is installed (looked for {', '.join(NAMES)})"


def find_chromium() -> str | None:
    """Return the path of a Chromium, if there is one."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def is_required() -> bool:
    """Say whether a browser test that cannot run is a failure."""
    return os.environ.get("STOA_TEST_BROWSER") == "required"


@asynccontextmanager
async def launched(path: str) -> AsyncIterator[Browser]:
    """A running browser."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=path, args=ARGUMENTS, headless=True
        )
        try:
            yield browser
        finally:
            await browser.close()
