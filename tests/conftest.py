"""Fixtures for every test: each is made only when a test asks for it."""

from __future__ import annotations

import gc
from typing import Final, Literal, get_args

import pytest
from hypothesis import HealthCheck, settings

from tests.support import forked

# Imports and rewritten tests make next to no garbage, and stay: see `pytest_collection_finish`.
gc.disable()

pytest_plugins = ["tests.support.tenancy", "tests.support.leaks"]

# How long an example takes says how busy the machine is, and nothing of what is shown.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

Size = Literal["normal", "nightly"]
SIZES: Final[tuple[Size, ...]] = get_args(Size)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--size",
        choices=SIZES,
        default="normal",
        help="how long tests that try things at random go on: seconds, or many minutes",
    )


def pytest_itemcollected(item: pytest.Item) -> None:
    """Refuse a name that another process gives otherwise: no two could share the tests out."""
    if not isinstance(item, pytest.Function) or not hasattr(item, "callspec"):
        return
    for name, value in item.callspec.params.items():
        unordered = isinstance(value, set | frozenset) and str(value) in item.nodeid
        if unordered or f"0x{id(value):x}" in item.nodeid:
            raise pytest.UsageError(f"{item.nodeid}: the text of {name!r} is not always the same")


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_sessionfinish() -> None:
    forked.stop()


@pytest.fixture(scope="session")
def nightly(request: pytest.FixtureRequest) -> bool:
    """Whether there is all night for what is tried at random."""
    return bool(request.config.getoption("--size") == "nightly")
