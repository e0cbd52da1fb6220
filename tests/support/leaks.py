"""All that is written while tests run is searched for what nobody may find there.

Tests put canaries into whatever people, tool servers and models say, and into secrets; no log, no
metric, no trace and no error may have one in it, nor anything that is made like a credential. What
is found ends a run of tests with a failure, however well each of them went.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, Final, Literal

import httpx
import pytest
from prometheus_client import REGISTRY, generate_latest

Kind = Literal["log", "metrics", "trace", "error"]

PROBLEM: Final = "application/problem+json"
FORBIDDEN: Final = {
    "a canary": re.compile(r"canary", re.IGNORECASE),
    "an assertion or a token": re.compile(r"\beyJ[\w-]{12,}\.[\w-]{12,}\."),
    "a credential in a header": re.compile(r"\b(?:bearer|basic) +[\w+/=.-]{12,}", re.IGNORECASE),
    "a password in an address": re.compile(r"\b[a-z][a-z0-9+]*://[^\s/:@\"']*:[^\s/@\"']+@"),
    "a private key": re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----"),
}
_OWN_FOLDERS = re.compile(r"/(?:pytest-of-|tests/)[^\s\"',:]*")
"""Paths have the names of tests in them."""
_AROUND = 60
_MOST_SHOWN = 50

_found: list[str] = []
_searched: Counter[str] = Counter()


def search(kind: Kind, text: str, where: str) -> list[str]:
    """Look through something that was written; note what must not be there, and return it."""
    _searched[kind] += len(text)
    text = _OWN_FOLDERS.sub("/…", text)
    found = [
        f"{kind} of {where}: {what}: …{text[max(at.start() - _AROUND, 0) : at.end() + _AROUND]!r}…"
        for what, looks_like in FORBIDDEN.items()
        for at in looks_like.finditer(text)
    ]
    _found.extend(found[:_MOST_SHOWN])
    return found


async def _search_error(response: httpx.Response) -> None:
    if response.headers.get("content-type", "").startswith(PROBLEM):
        await response.aread()
        request = response.request
        search("error", response.text, f"{request.method} {request.url.path}")


@pytest.fixture(scope="session", autouse=True)
def _every_error_is_searched() -> Any:
    """Errors of the service, whichever client of the tests' they were answered to."""
    make = httpx.AsyncClient.__init__

    def made(client: httpx.AsyncClient, *given: Any, **named: Any) -> None:
        make(client, *given, **named)
        hooks = client.event_hooks
        client.event_hooks = {**hooks, "response": [*hooks["response"], _search_error]}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(httpx.AsyncClient, "__init__", made)
        yield


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """What a test's own process printed and logged meanwhile."""
    if report.when == "teardown":  # it has what was captured before as well
        for _, text in report.sections:
            search("log", text, report.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand over what a process of several has found; or end the run as what was found demands."""
    search("metrics", generate_latest(REGISTRY).decode(), "the tests' process")
    if (output := getattr(session.config, "workeroutput", None)) is not None:
        output["leaks"] = _found, dict(_searched)
    elif _found and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take what one of several processes has found."""
    found, searched = getattr(node, "workeroutput", {}).get("leaks", ((), {}))
    _found.extend(found)
    _searched.update(searched)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what was searched, and what was found."""
    sizes = ", ".join(f"{size:,} characters of {kind}" for kind, size in sorted(_searched.items()))
    terminalreporter.write_line(f"Searched for what nobody may read there: {sizes}")
    if _found:
        terminalreporter.section("Written where nobody may find it", red=True, bold=True)
        for line in _found[:_MOST_SHOWN]:
            terminalreporter.write_line(line, red=True)
