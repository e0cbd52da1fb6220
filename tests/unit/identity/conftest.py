"""An issuer, a clock, and a verifier that trusts the one and reads the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tenancy.identity import IdentityVerifier
from tests.unit.identity.issuer import SETTINGS, Clock, Issuer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def issuer() -> Issuer:
    return Issuer()


@pytest.fixture
async def verifier(issuer: Issuer, clock: Clock) -> AsyncIterator[IdentityVerifier]:
    verifier = IdentityVerifier(SETTINGS, issuer, now=clock, clock=clock)
    yield verifier
    await verifier.aclose()
