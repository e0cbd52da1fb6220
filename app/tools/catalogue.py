"""The operator's tool servers: one or several ``mcp.json`` files. See docs/tools.md."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from pydantic import ValidationError

from app.settings import SettingsError
from app.tools.approval.rules import ServerRules
from app.tools.approval.ruling import Ask
from app.tools.complaints import complaint
from app.tools.entries import read_entry, versioned
from app.tools.names import why_unusable
from app.tools.servers import CredentialRule, HttpTransport, McpServer

if TYPE_CHECKING:
    from pathlib import Path

_SERVERS = "mcpServers"


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The servers that the operator offers to everybody, by name."""

    servers: Mapping[str, McpServer] = field(default_factory=dict)

    @classmethod
    def load(cls, paths: Sequence[Path], usual: Ask = Ask.NEVER) -> Self:
        """Read all files. ``usual`` is when people are asked where a file says nothing of it.

        Raises:
            SettingsError: one cannot be used; the message says what to do, and quotes no value.
        """
        servers: dict[str, McpServer] = {}
        for path in paths:
            for name, entry in _entries(path).items():
                if name in servers:
                    raise SettingsError(
                        f"{path}: server `{name}` is in another file too; give it another name"
                    )
                servers[name] = _server(path, name, entry, usual)
        return cls(servers)


def own_server(name: str, url: str, rule: CredentialRule) -> McpServer:
    """A server that a user added by its address. Each of its calls needs their approval.

    Raises:
        ValueError: the name cannot be used; the message ends a sentence that begins with it.
    """
    if wrong := why_unusable(name):
        raise ValueError(wrong)
    always = ServerRules.same(Ask.ALWAYS)
    server = McpServer(name, HttpTransport(url), credential=rule, approval=always, is_own=True)
    return versioned(server)


def _server(path: Path, name: str, entry: object, usual: Ask) -> McpServer:
    if wrong := why_unusable(name):
        raise SettingsError(f"{path}: server `{name}` {wrong}")
    try:
        return read_entry(name, entry, usual)
    except ValidationError as error:
        said = "\n".join(f"{path}: server `{name}`: {complaint(item)}" for item in error.errors())
        raise SettingsError(f"{said}\nSee docs/tools.md.") from None


def _entries(path: Path) -> Mapping[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"), object_pairs_hook=_without_twins)
    except OSError as error:
        said = f"STOA_MCP_CONFIG: {path} cannot be read: {error.strerror}"
        raise SettingsError(said) from None
    except UnicodeDecodeError:
        raise SettingsError(f"{path} cannot be read: it is not UTF-8 text") from None
    except json.JSONDecodeError as error:
        said = f"{path}, line {error.lineno}, is not JSON (no comments, no comma at an end)"
        raise SettingsError(f"{said}: {error.msg}") from None
    except _Twins as error:
        raise SettingsError(f"{path}: `{error}` is there twice; take one out") from None
    except RecursionError:
        raise SettingsError(f"{path} is nested too deeply") from None
    if not isinstance(content, dict) or not isinstance(content.get(_SERVERS), dict):
        raise SettingsError(f'{path} must be of the form {{"{_SERVERS}": {{…}}}}')
    if extra := sorted(set(content) - {_SERVERS}):
        raise SettingsError(f"{path}: unknown key `{extra[0]}`: only `{_SERVERS}` may stand there")
    entries: Mapping[str, Any] = content[_SERVERS]
    return entries


class _Twins(Exception):
    """A key stands twice in one object; JSON readers would forget the first silently."""


def _without_twins(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise _Twins(key)
        found[key] = value
    return found
