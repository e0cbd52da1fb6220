"""A person, an MCP server that wants to know who they are, and whoever vouches for them there.

The servers are there for all tests of the package; each test has people of its own, and servers
that have forgotten the test before.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tenancy.database.tenant import TenantDatabase
from tests.integration.connections.oauth.stage import CLIENT, SECRET, Stage
from tests.support.oauth_server.authorization import TestAuthorizationServer, authorization_server
from tests.support.oauth_server.resource import ProtectedMcpServer, protected_mcp_server


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
