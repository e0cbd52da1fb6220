"""A person, an MCP server that wants to know who they are, and whoever vouches for them there.

The servers and the database are there for all tests of the package; each test has people of its
own, and servers that have forgotten the test before.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import uuid4

import asyncpg
import pytest

from tenancy.database.tenant import TenantDatabase
from tenancy.principal import Principal
from tests.integration.connections.oauth.stage import CLIENT, SECRET, Stage
from tests.support.oauth_server.authorization import TestAuthorizationServer, authorization_server
from tests.support.oauth_server.resource import ProtectedMcpServer, protected_mcp_server
from tests.support.tenancy import TestDatabase, sign_in


@pytest.fixture(scope="package")
async def database(template: TestDatabase) -> AsyncIterator[TestDatabase]:
    """A migrated database for all."""
    copy = TestDatabase(template.server, f"stoa_test_{uuid4().hex[:12]}")
    await copy.server.copy_database(template.name, copy.name)
    yield copy
    await copy.server.drop_database(copy.name)


@pytest.fixture(scope="package")
async def tenants(database: TestDatabase) -> AsyncIterator[TenantDatabase]:
    """The tenant door."""
    door = TenantDatabase(database.settings("service"))
    yield door
    await door.close()


@pytest.fixture(scope="package")
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


@pytest.fixture(scope="package")
async def servers() -> AsyncIterator[ProtectedMcpServer]:
    """An MCP server, and the authorization server whose tokens it takes."""
    async with authorization_server() as server, protected_mcp_server(server) as protected:
        yield protected


@pytest.fixture
async def protected(servers: ProtectedMcpServer) -> ProtectedMcpServer:
    """The MCP server."""
    servers.forget()
    return servers


@pytest.fixture
async def authorization(protected: ProtectedMcpServer) -> TestAuthorizationServer:
    """The authorization server, which knows the service."""
    server = protected.authorization
    server.forget()
    server.register(CLIENT, Stage.CALLBACK, SECRET, "client_secret_basic")
    return server


@pytest.fixture
async def stage(
    tenants: TenantDatabase, protected: ProtectedMcpServer, authorization: TestAuthorizationServer
) -> Stage:
    """Both, and the service's part."""
    return Stage(tenants, protected)
