"""A service without processes, on databases of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.integration.erasure.stage import Backups
from tests.support.databases import Databases
from tests.support.issuer import AUDIENCE, TestIssuer
from tests.support.vaults import keys_of


@pytest.fixture(scope="module")
async def issuer() -> AsyncIterator[TestIssuer]:
    async with TestIssuer() as running:
        yield running


@pytest.fixture(scope="module")
async def backups(
    databases: Databases, issuer: TestIssuer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Backups]:
    folder: Path = tmp_path_factory.mktemp("erasures")
    settings = {
        "identity_issuer": issuer.url,
        "identity_audience": AUDIENCE,
        "identity_jwks_url": issuer.jwks_url,
        "signing_keys": keys_of("k1"),
        "tombstone_folder": folder / "tombstones",
        "mcp_folder": folder / "mcp",
    }
    made = Backups(databases.server, settings)
    yield made
    await made.drop()
