"""What is known of an MCP server before anybody connects to it. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from app.tools.approval.rules import ServerRules
from app.tools.approval.ruling import Ask

USER_FOLDER = "{user_folder}"
"""In a child's arguments and environment: the absolute path of the user's own folder."""

SEPARATOR = "__"
"""Between a server's name and its tool's, in what the model calls; in no server's name."""


class Scope(StrEnum):
    """Who shares a connection to a server."""

    SHARED = "shared"
    """Everybody: it is given no user's data and no user's credential."""
    PER_USER = "per_user"
    """Nobody: each user has a connection, a process and a credential of their own."""


@dataclass(frozen=True, slots=True)
class StdioTransport:
    """A server that is a child process. Comes from the operator's catalogue only."""

    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    """All that the child's environment has beside ``PATH``, ``HOME``, ``LANG``; taken literally."""
    readable: tuple[str, ...] = ()
    """Paths that a sandboxed child may read beside the system's own."""


@dataclass(frozen=True, slots=True)
class HttpTransport:
    """A server that is reached by streamable HTTP."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


class CredentialKind(StrEnum):
    """How a server wants to know whom a call is made for."""

    NONE = "none"
    HEADER = "header"
    """A key that the person sets, sent in one header of every request."""
    ENVIRONMENT = "environment"
    """A key that the person sets, in one variable of their child process."""
    OAUTH = "oauth"


@dataclass(frozen=True, slots=True)
class CredentialRule:
    """What credential a server takes, and where it goes."""

    kind: CredentialKind = CredentialKind.NONE
    name: str = "Authorization"
    """The header or variable."""
    template: str = "Bearer {key}"
    client_id: str | None = None
    """A client registered beforehand; else Stoa's client id metadata document is named."""
    client_secret: str | None = field(default=None, repr=False)
    issuer: str | None = None
    """Where that client is registered; it is named, and its secret sent, nowhere else. Default:
    whoever issues for the server at its own origin, or at one of ``origins``."""
    scopes: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    """Where, beside the server's own origin, its authorization may be although that is no public
    address under https: ``scheme://host[:port]`` each."""


@dataclass(frozen=True, slots=True)
class Trust:
    """What the operator says of a server's tools; what the server says of itself is only a hint."""

    read_only: frozenset[str] = frozenset()
    """Tools that change nothing; ``*`` is all."""
    idempotent: frozenset[str] = frozenset()
    """Tools that may be repeated under the same key; ``*`` is all."""
    idempotency_ttl_seconds: float = 0

    def is_read_only(self, tool: str) -> bool:
        """Whether a call changes nothing."""
        return bool({tool, "*"} & self.read_only)

    def is_idempotent(self, tool: str) -> bool:
        """Whether a repeat under the same key is the same call."""
        return self.is_read_only(tool) or bool({tool, "*"} & self.idempotent)


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long each thing may take, in seconds."""

    connect: float = 15
    listing: float = 15
    call: float = 60


_NEVER = ServerRules.same(Ask.NEVER)


@dataclass(frozen=True, slots=True)
class McpServer:
    """One server that tools may come from."""

    name: str
    transport: StdioTransport | HttpTransport
    scope: Scope = Scope.PER_USER
    title: str | None = None
    credential: CredentialRule = CredentialRule()
    trust: Trust = Trust()
    approval: ServerRules = _NEVER
    """When people are asked before its tools are called: the operator's word, never loosened."""
    allow: frozenset[str] | None = None
    """The only tools that are offered; None is all."""
    deny: frozenset[str] = frozenset()
    timeouts: Timeouts = Timeouts()
    is_own: bool = False
    """Whether a user added it, so that its address is theirs and not the operator's."""
    version: str = ""
    """Hash of everything here but ``approval``: another configuration is another connection."""

    @property
    def log_name(self) -> str:
        """What logs call it: a name that a user gave is their own text."""
        return "own" if self.is_own else self.name

    def offers(self, tool: str) -> bool:
        """Whether the operator lets this tool be used."""
        return tool not in self.deny and (self.allow is None or tool in self.allow)


@dataclass(frozen=True, slots=True)
class Credential:
    """What one user's connection proves itself with. ``version`` is their connection row's."""

    version: int = 0
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class ListedTool:
    """A tool as its server describes it, within bounds. Untrusted text."""

    name: str
    description: str = ""
    title: str | None = None
    input_schema: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Unavailable:
    """Why a server's tools are missing, as a stable code that says nothing of its insides."""

    server: str
    reason: str
    """``unreachable``, ``exited``, ``timeout``, ``refused``, ``protocol``, ``resting`` (its
    breaker is open), ``full`` (no connection is free), ``closed`` (the connection was ended on our
    side), ``needs_key``, ``needs_authorization``, ``disconnected``, ``vault`` (the operator has to
    see to its keys), ``no_room`` (the model's window is too small for all of its tools),
    ``no_tools`` (the model calls none)."""
    is_news: bool = True
    """False where the person has never set the server up: that is no failure."""
