"""A database for all tests of a file; each test has people of its own.

Not one for those of other files: what these leave to be looked at, a worker would take on.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import uuid4

import asyncpg
import pytest

from tenancy.database.tenant import TenantDatabase
from tenancy.principal import Principal
from tests.support.tenancy import TestDatabase, sign_in


@pytest.fixture(scope="module")
async def database(template: TestDatabase) -> AsyncIterator[TestDatabase]:
    """A migrated database for all."""
    copy = TestDatabase(template.server, f"stoa_test_{uuid4().hex[:12]}")
    await copy.server.copy_database(template.name, copy.name)
    yield copy
    await copy.server.drop_database(copy.name)


@pytest.fixture(scope="module")
async def tenants(database: TestDatabase) -> AsyncIterator[TenantDatabase]:
    """The tenant door."""
    door = TenantDatabase(database.settings("service"))
    yield door
    await door.close()


@pytest.fixture(scope="module")
async def superuser(database: TestDatabase) -> AsyncIterator[asyncpg.Connection]:
    """Sees every row, as a database administrator would."""
    connection = await database.connect("owner")
    yield connection
    await connection.close()


@pytest.fixture
async def alice(tenants: TenantDatabase) -> Principal:
    """A person."""
    return await sign_in(tenants, f"alice {uuid4()}")


@pytest.fixture
async def bob(tenants: TenantDatabase) -> Principal:
    """Another person."""
    return await sign_in(tenants, f"bob {uuid4()}")
