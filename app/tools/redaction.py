"""Takes a connection's secrets out of what its server says, wherever they would appear. Pure."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, urlsplit

from app.tools.servers import StdioTransport
from app.tools.texts import one_line

if TYPE_CHECKING:
    from app.tools.servers import Credential, McpServer

REDACTED = "[redacted]"
SHORTEST = 4
SHORTEST_PART = 8
"""What is shorter says nothing, and would be found in any text."""

_SCHEMES = {"bearer", "basic", "token", "digest", "apikey", "api-key", "key"}
"""First words of headers that anybody may know."""
_TELLING = re.compile(r"auth|key|token|secret|pass|credential|cookie|session|dsn", re.IGNORECASE)
"""Names of an operator's variables and headers whose values are secrets."""
_PARTS = re.compile(r"[\s,;=]+")
_PER_CHARACTER = 4
"""How much more of a text is looked at than is shown: some of it may be what nobody sees."""


class Redactor:
    """Knows what must not be said of one connection."""

    def __init__(self, server: McpServer, credential: Credential, shortest: int = SHORTEST) -> None:
        """``shortest``: what has fewer characters is left, since it may be any word."""
        values = {*credential.headers.values(), *credential.env.values(), *_of_operator(server)}
        forms = {form for value in values for part in _parts(value) for form in _forms(part)}
        secrets = sorted((each for each in forms if len(each) >= shortest), key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, secrets))) if secrets else None
        self.longest = len(secrets[0]) if secrets else 0
        """How many characters the longest secret has."""

    def text(self, text: str) -> str:
        """The text without secrets."""
        return text if self._pattern is None else self._pattern.sub(REDACTED, text)

    def holds_secret(self, texts: Iterable[str]) -> bool:
        """Whether one of the texts says a secret."""
        return any(self.text(text) != text for text in texts)

    def value(self, value: Any) -> Any:  # noqa: ANN401 - JSON of any kind
        """A JSON value without secrets, in its keys too."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(str(name)): self.value(each) for name, each in value.items()}
        if isinstance(value, list):
            return [self.value(each) for each in value]
        return value


def shown(text: str | None, longest: int, redactor: Redactor | None) -> str:
    """A short text of a server's as people see it: one line of at most so many characters.

    First without what hides a secret, then without the secret; what may be the beginning of one
    where a long text is cut goes as well.
    """
    if not text:
        return ""
    margin = 0 if redactor is None else redactor.longest
    most = _PER_CHARACTER * (longest + margin)
    said = one_line(text[:most])
    if redactor is not None:
        said = redactor.text(said)
        if len(text) > most:
            said = said[: max(0, len(said) - margin)]
    return said[:longest]


def _of_operator(server: McpServer) -> Iterator[str]:
    """What the catalogue itself tells the server, where it is a secret by its name."""
    transport = server.transport
    if isinstance(transport, StdioTransport):
        told = dict(transport.env)
    else:
        told = dict(transport.headers)
        parts = urlsplit(transport.url)
        yield from (each for each in (parts.username, parts.password) if each)
        told = {**told, **dict(parse_qsl(parts.query))}
    yield from (value for name, value in told.items() if _TELLING.search(name))
    if server.credential.client_secret:
        yield server.credential.client_secret


def _parts(value: str) -> Iterator[str]:
    """A value, and what it is put together of."""
    yield value
    for part in _PARTS.split(value):
        if part.lower() not in _SCHEMES:
            yield from (each for each in (part, *_decoded(part)) if len(each) >= SHORTEST_PART)


def _decoded(part: str) -> Iterator[str]:
    """The name and password of a basic authorization: the password by itself is the secret."""
    try:
        said = base64.b64decode(part + "=" * (-len(part) % 4), validate=True).decode()
    except (binascii.Error, ValueError):
        return
    if said.isprintable() and ":" in said:
        yield said
        yield said.partition(":")[2]


def _forms(secret: str) -> Iterator[str]:
    """How a secret may be written."""
    yield secret
    yield quote(secret, safe="")
    yield json.dumps(secret)[1:-1]
    yield base64.b64encode(secret.encode()).decode().rstrip("=")
