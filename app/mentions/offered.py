"""What a person's tool servers offer, and the service itself, to be mentioned.

Found by what was listed last: no server is asked while somebody types.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from app.mentions.matching import best
from app.mentions.refs import Kind, Ref
from app.mentions.sources import Found, SourceFailed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from app.connections.standing import UserServer
    from app.mentions.sources import Asked
    from tenancy.principal import Owner

OWN_SERVER = "stoa"
"""Stands for the service in references to tools that come with it; no server may be called so."""
_UNMET = ("needs_key", "needs_authorization")


class Servers(Protocol):
    """What is needed of ``UserConnections``."""

    async def of(self, owner: Owner) -> Sequence[UserServer]:
        """The servers that the person's runs may use."""
        ...


class ResourceSource:
    """What servers let be read."""

    source = "resources"
    provider = "mcp"
    kind: Kind = "resource"
    display_name = "Resources"

    def __init__(self, servers: Servers) -> None:
        self._servers = servers

    async def find(self, asked: Asked) -> Sequence[Found]:
        """Those whose title, name or address fits."""
        servers = await _usable(self._servers, asked.owner)
        listed = [(each.server.name, one) for each in servers for one in each.resources]
        chosen = best(
            asked.query, listed, lambda it: _names(it[1].title, it[1].name, it[1].uri), asked.limit
        )
        return [
            Found(
                Ref("resource", one.uri, server), one.title or one.name, "/tools", offered_by=server
            )
            for server, one in chosen
        ]


class PromptSource:
    """Prompts of servers, those that are told nothing first: nobody is asked for arguments."""

    source = "prompts"
    provider = "mcp"
    kind: Kind = "prompt"
    display_name = "Prompts"

    def __init__(self, servers: Servers) -> None:
        self._servers = servers

    async def find(self, asked: Asked) -> Sequence[Found]:
        """Those whose title or name fits."""
        servers = await _usable(self._servers, asked.owner)
        listed = [
            (each.server.name, one)
            for each in servers
            for one in each.prompts
            if not one.needs_arguments
        ]
        chosen = best(asked.query, listed, lambda it: _names(it[1].title, it[1].name), asked.limit)
        return [
            Found(
                Ref("prompt", one.name, server), one.title or one.name, "/tools", offered_by=server
            )
            for server, one in chosen
        ]


class ToolSource:
    """Tools that the person's runs have: the service's own, then those of their servers."""

    source = "tools"
    provider = "mcp"
    kind: Kind = "tool"
    display_name = "Tools"

    def __init__(self, servers: Servers, own: Iterable[str]) -> None:
        self._servers = servers
        self._own = tuple(own)

    async def find(self, asked: Asked) -> Sequence[Found]:
        """Those whose title or name fits, or whose server's name does."""
        listed: list[tuple[str, str, str | None]] = [(OWN_SERVER, each, None) for each in self._own]
        for each in await self._servers.of(asked.owner):
            name = each.server.name
            tools = [tool for tool in each.listing or () if each.server.offers(tool.name)]
            listed += [(name, tool.name, tool.title) for tool in tools]
        if not listed:
            raise SourceFailed("not_configured")
        chosen = best(asked.query, listed, lambda it: _names(it[2], it[1], it[0]), asked.limit)
        return [
            Found(
                Ref("tool", name, server),
                title or name,
                "/tools",
                offered_by=server if server != OWN_SERVER else "stoa",
            )
            for server, name, title in chosen
        ]


async def _usable(servers: Servers, owner: Owner) -> Sequence[UserServer]:
    """The servers that can be searched.

    Raises:
        SourceFailed: the person has none, or has to give something to each before.
    """
    found = await servers.of(owner)
    if not found:
        raise SourceFailed("not_configured")
    usable = [each for each in found if each.state not in _UNMET]
    if not usable:
        raise SourceFailed("unauthorized")
    return usable


def _names(*given: str | None) -> list[str]:
    return [name for name in given if name]
