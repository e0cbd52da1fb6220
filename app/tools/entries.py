"""One server's entry in an ``mcp.json``: what may stand there, and what it means."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from pathlib import PurePath
from typing import Annotated, Any, Self
from urllib.parse import urlsplit

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
)
from pydantic import model_validator as check

from app.outbound import Origin, UrlRefused
from app.tools.approval.entries import Approval, server_rules
from app.tools.approval.rules import ServerRules
from app.tools.approval.ruling import Ask
from app.tools.servers import (
    USER_FOLDER,
    CredentialKind,
    CredentialRule,
    HttpTransport,
    McpServer,
    Scope,
    StdioTransport,
    Timeouts,
    Trust,
)

_FIELD_NAME = r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$"
_USUAL = Timeouts()

Name = Annotated[str, StringConstraints(min_length=1, max_length=128)]
HeaderName = Annotated[str, StringConstraints(pattern=_FIELD_NAME, max_length=128)]
HeaderValue = Annotated[str, StringConstraints(pattern=r"^[\x20-\x7e]*$", max_length=8192)]
Variable = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=128)]
Text = Annotated[str, StringConstraints(pattern=r"^[^\x00]*$", max_length=65_536)]
Seconds = Annotated[float, Field(gt=0, le=3600)]


def _all(value: object) -> object:
    """``true`` is all tools, ``false`` none."""
    if isinstance(value, bool):
        return ("*",) if value else ()
    return value


def _call(value: object) -> object:
    """A bare number is how long a call may take."""
    return {"call": value} if isinstance(value, int | float) else value


Tools = Annotated[tuple[Name, ...], BeforeValidator(_all)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class _Parts(_Strict):
    connect: Seconds = _USUAL.connect
    list: Seconds = _USUAL.listing
    call: Seconds = _USUAL.call


class _TrustEntry(_Strict):
    read_only: Annotated[Tools, Field(strict=False)] = ()
    idempotent: Annotated[Tools, Field(strict=False)] = ()
    idempotency_ttl: Annotated[float, Field(ge=0)] = 0


class _ToolsEntry(_Strict):
    allow: Annotated[tuple[Name, ...] | None, Field(strict=False)] = None
    deny: Annotated[tuple[Name, ...], Field(strict=False)] = ()


def _require_web_address(url: str) -> None:
    try:
        Origin.of(url)
    except UrlRefused:
        raise ValueError("`origins` and `issuer` must look like https://host:port") from None


class _CredentialEntry(_Strict):
    kind: Annotated[CredentialKind, Field(strict=False)]
    name: str | None = None
    template: Annotated[str, StringConstraints(max_length=1024)] | None = None
    client_id: Name | None = None
    client_secret: Name | None = None
    scopes: Annotated[tuple[Name, ...], Field(strict=False)] = ()
    origins: Annotated[tuple[Name, ...], Field(strict=False)] = ()
    issuer: Name | None = None

    @check(mode="after")
    def _fits_its_kind(self) -> Self:
        given = self.model_fields_set - {"kind"}
        meant = {
            CredentialKind.NONE: set(),
            CredentialKind.HEADER: {"name", "template"},
            CredentialKind.ENVIRONMENT: {"name", "template"},
            CredentialKind.OAUTH: {"client_id", "client_secret", "scopes", "origins", "issuer"},
        }[self.kind]
        if extra := sorted(given - meant):
            raise ValueError(f"`{extra[0]}` means nothing for the kind `{self.kind}`; leave it out")
        if self.template is not None and "{key}" not in self.template:
            raise ValueError("`template` must have `{key}` where the person's key goes")
        if self.kind is CredentialKind.ENVIRONMENT and self.name is None:
            raise ValueError("say the variable's `name`")
        wanted = _FIELD_NAME if self.kind is CredentialKind.HEADER else r"^[A-Za-z_][A-Za-z0-9_]*$"
        if self.name is not None and not re.fullmatch(wanted, self.name):
            raise ValueError("`name` must be that of a header or of a variable")
        for url in (*self.origins, *filter(None, [self.issuer])):
            _require_web_address(url)
        if self.client_secret is not None and self.client_id is None:
            raise ValueError("a `client_secret` needs its `client_id`")
        return self

    def rule(self) -> CredentialRule:
        """What goes where."""
        if self.kind is CredentialKind.HEADER:
            name = self.name or "Authorization"
            usual = "Bearer {key}" if name.lower() == "authorization" else "{key}"
            return CredentialRule(self.kind, name, self.template or usual)
        if self.kind is CredentialKind.ENVIRONMENT:
            return CredentialRule(self.kind, self.name or "", self.template or "{key}")
        return CredentialRule(
            self.kind,
            client_id=self.client_id,
            client_secret=self.client_secret,
            scopes=self.scopes,
            origins=self.origins,
            issuer=self.issuer,
        )


class _StoaEntry(_Strict):
    scope: Annotated[Scope, Field(strict=False)] = Scope.PER_USER
    title: Annotated[str, StringConstraints(min_length=1, max_length=80)] | None = None
    approval: Approval = {}
    trust: _TrustEntry = _TrustEntry()
    timeout: Annotated[_Parts, BeforeValidator(_call)] = _Parts()
    tools: _ToolsEntry = _ToolsEntry()
    credential: _CredentialEntry = _CredentialEntry(kind=CredentialKind.NONE)
    readable: Annotated[tuple[Text, ...], Field(strict=False)] = ()


class ServerEntry(_Strict):
    """What stands under a server's name."""

    type: str | None = None
    command: Annotated[Text, StringConstraints(min_length=1)] | None = None
    args: Annotated[tuple[Text, ...], Field(strict=False)] = ()
    env: dict[Variable, Text] = {}
    url: Annotated[str, StringConstraints(max_length=2048)] | None = None
    headers: dict[HeaderName, HeaderValue] = {}
    stoa: _StoaEntry = _StoaEntry()

    @check(mode="after")
    def _is_one_kind(self) -> Self:
        if (self.command is None) == (self.url is None):
            raise ValueError("say either `command` (a program) or `url` (streamable HTTP)")
        http, stdio = ("http", "streamable-http", "streamable_http"), ("stdio",)
        if self.type is not None and self.type not in (http if self.url else stdio):
            raise ValueError(
                f"`type` must be `{'http' if self.url else 'stdio'}` here or left out;"
                " servers are spoken to over stdio or streamable HTTP only"
            )
        foreign = {"headers"} if self.command else {"args", "env"}
        if extra := sorted(foreign & self.model_fields_set):
            raise ValueError(f"`{extra[0]}` means nothing beside `{self._way}`; leave it out")
        if self.url is not None:
            self._check_address(self.url)
        else:
            self._check_program(self.command or "")
        return self

    @check(mode="after")
    def _credential_fits(self) -> Self:
        credential = self.stoa.credential
        kind, shared = credential.kind, self.stoa.scope is Scope.SHARED
        if shared and kind is not CredentialKind.NONE:
            raise ValueError("a shared server has no user's credential; make it `per_user`")
        if shared and self._names_user_folder():
            raise ValueError(
                f"a shared server has no {USER_FOLDER}; make it `per_user` or take that out"
            )
        if kind is CredentialKind.ENVIRONMENT and self.command is None:
            raise ValueError("a credential of kind `environment` needs a server with a `command`")
        if kind in (CredentialKind.HEADER, CredentialKind.OAUTH) and self.url is None:
            raise ValueError(f"a credential of kind `{kind}` needs a server with a `url`")
        rule = credential.rule()
        taken = rule.name.lower() in {name.lower() for name in self.headers} or (
            kind is CredentialKind.ENVIRONMENT and rule.name in self.env
        )
        if kind is not CredentialKind.NONE and taken:
            raise ValueError(f"`{rule.name}` is the credential's; take it out beside it")
        return self

    @property
    def _way(self) -> str:
        return "command" if self.command else "url"

    def _names_user_folder(self) -> bool:
        return any(USER_FOLDER in text for text in (*self.args, *self.env.values()))

    def _check_address(self, url: str) -> None:
        try:
            parts = urlsplit(url)
            port_fits = parts.port is None or parts.port > 0
        except ValueError:
            raise ValueError("`url` is not an address") from None
        if parts.scheme not in ("http", "https") or not parts.hostname or not port_fits:
            raise ValueError("`url` must be an http or https address")
        if parts.username is not None or parts.password is not None:
            raise ValueError("`url` must not have a password in it; put it into `headers`")
        if parts.fragment:
            raise ValueError("`url` must not have a fragment")
        if self.stoa.readable:
            raise ValueError("`stoa.readable` means nothing beside `url`; leave it out")

    def _check_program(self, command: str) -> None:
        if "/" in command and not PurePath(command).is_absolute():
            raise ValueError("`command` must be a program's name or an absolute path")
        if any(not PurePath(each).is_absolute() for each in self.stoa.readable):
            raise ValueError("`stoa.readable` must be absolute paths")

    def server(self, name: str, usual: Ask) -> McpServer:
        """What this entry says, under its version; ``usual`` where it says nothing of approval."""
        stoa = self.stoa
        seconds = stoa.timeout
        transport: StdioTransport | HttpTransport
        if self.url is not None:
            transport = HttpTransport(self.url, dict(self.headers))
        else:
            transport = StdioTransport(self.command or "", self.args, dict(self.env), stoa.readable)
        return versioned(
            McpServer(
                name,
                transport,
                scope=stoa.scope,
                title=stoa.title,
                credential=stoa.credential.rule(),
                trust=Trust(
                    frozenset(stoa.trust.read_only),
                    frozenset(stoa.trust.idempotent),
                    stoa.trust.idempotency_ttl,
                ),
                approval=server_rules(stoa.approval, usual),
                allow=None if stoa.tools.allow is None else frozenset(stoa.tools.allow),
                deny=frozenset(stoa.tools.deny),
                timeouts=Timeouts(seconds.connect, seconds.list, seconds.call),
            )
        )


def versioned(server: McpServer) -> McpServer:
    """The same server with the hash of everything that its connections depend on as its version."""
    never = ServerRules.same(Ask.NEVER)
    said = dataclasses.asdict(dataclasses.replace(server, version="", approval=never))
    text = json.dumps(said, sort_keys=True, default=_plain)
    return dataclasses.replace(server, version=hashlib.sha256(text.encode()).hexdigest()[:32])


def _plain(value: object) -> object:
    if isinstance(value, AbstractSet):
        return sorted(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"no version can be made of a {type(value).__name__}")


def read_entry(name: str, entry: Any, usual: Ask) -> McpServer:  # noqa: ANN401 - what JSON holds
    """The server that an entry describes; ``usual`` is when its people are asked, unless it says.

    Raises:
        pydantic.ValidationError: it cannot be used; see :func:`app.tools.complaints.complaint`.
    """
    return ServerEntry.model_validate(entry).server(name, usual)
