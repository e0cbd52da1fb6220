"""Whether what a message points at is there for its author: asked before the message is taken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from app.mentions.offered import OWN_SERVER
from app.mentions.refs import Ref, parse_ref
from app.runs.input_rules import MENTIONS, MOST_MENTIONS
from tenancy.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from app.connections.standing import UserServer
    from app.mentions.offered import Servers
    from tenancy.database.tenant import TenantDatabase
    from tenancy.principal import Owner

_FIND = "SELECT kind, id FROM tenant.find_mentioned($1, $2, $3, 0)"
_STORED = ("thread", "memory")
_LISTED = ("resource", "prompt", "tool")


class MentionNotFound(InvalidInput):
    """What a message points at is not there for its author, or not any more."""

    code = "mention_not_found"
    message = "A mention points at what is not there."

    def __init__(self, missing: Sequence[PlacedRef]) -> None:
        super().__init__(f"{missing[0].where} points at what is not there.")
        self.errors: list[dict[str, object]] = [
            {"loc": each.loc, "msg": "Points at what is not there."}
            for each in missing[:MOST_MENTIONS]
        ]


@dataclass(frozen=True, slots=True)
class PlacedRef:
    """A mention, and where in the messages it stands."""

    ref: Ref
    message: int
    place: int

    @property
    def where(self) -> str:
        """As a client finds it."""
        return f"`messages[{self.message}].additional_kwargs.mentions[{self.place}]`"

    @property
    def loc(self) -> list[str | int]:
        """As a program does."""
        return ["messages", self.message, "additional_kwargs", MENTIONS, self.place]


def mentions_in(given: Mapping[str, Any] | None) -> list[PlacedRef]:
    """The mentions of all messages of an input, or of a state's change. Pure.

    Raises:
        InvalidInput: one is of a kind that is not known, or names nothing.
    """
    return [
        PlacedRef(ref, number, place)
        for number, message in enumerate(_messages(given))
        for place, ref in enumerate(map(parse_ref, _refs_of(message)))
    ]


def mentioned_model(given: Mapping[str, Any] | None) -> str | None:
    """The first model that the newest message points at; None where it points at none. Pure.

    Raises:
        InvalidInput: as ``mentions_in``.
    """
    placed = mentions_in({"messages": _messages(given)[-1:]})
    return next((each.ref.name for each in placed if each.ref.kind == "model"), None)


class MentionCheck:
    """Looks for what messages point at, among what is its author's.

    Args:
        database: the tenant door.
        servers: which tool servers a person has, and what each has listed.
        own_tools: names of the tools that come with the service.
        models: tells at once which models there are, by their full names.
    """

    def __init__(
        self,
        database: TenantDatabase,
        servers: Servers,
        own_tools: Iterable[str],
        models: Callable[[], Collection[str]],
    ) -> None:
        self._database = database
        self._servers = servers
        self._own_tools = frozenset(own_tools)
        self.models = models

    async def require(self, owner: Owner, placed: Sequence[PlacedRef]) -> None:
        """See that everything is there. Of what is a stranger's, the same is said as of nothing.

        Raises:
            MentionNotFound: something is not; it says all that is not.
            DatabaseUnavailable: Postgres cannot be reached.
        """
        there = await self._stored(owner, [each.ref for each in placed])
        there |= await self._listed(owner, [each.ref for each in placed])
        there |= {Ref("model", name) for name in self.models()}
        missing = [each for each in placed if each.ref not in there]
        if missing:
            raise MentionNotFound(missing)

    async def _stored(self, owner: Owner, refs: Sequence[Ref]) -> set[Ref]:
        """Those conversations and memories that are there."""
        ids = {kind: [*_ids(refs, kind)] for kind in _STORED}
        if not any(ids.values()):
            return set()
        rows = await self._database.call(owner, _FIND, ids["thread"], ids["memory"])
        found = {(kind, str(id_)) for kind, id_ in rows}
        return {ref for ref in refs if (ref.kind, ref.name) in found}

    async def _listed(self, owner: Owner, refs: Sequence[Ref]) -> set[Ref]:
        """Those that a server of the person's offers, as far as it is known, or the service."""
        there = {Ref("tool", name, OWN_SERVER) for name in self._own_tools}
        if not any(ref.kind in _LISTED and ref not in there for ref in refs):
            return there
        for each in await self._servers.of(owner):
            there |= listed_by(each)
        return there


def listed_by(each: UserServer) -> set[Ref]:
    """Everything that may be mentioned of what one server listed. Pure."""
    name, tools = each.server.name, each.listing or ()
    offered = [one.name for one in tools if each.server.offers(one.name)]
    return {*titles_of(each), *(Ref("tool", tool, name) for tool in offered)}


def titles_of(each: UserServer) -> dict[Ref, str]:
    """What one server calls the resources and prompts that it listed. Pure."""
    name = each.server.name
    return {
        **{Ref("resource", one.uri, name): one.title or one.name for one in each.resources},
        **{Ref("prompt", one.name, name): one.title or one.name for one in each.prompts},
    }


def _ids(refs: Sequence[Ref], kind: str) -> Iterable[UUID]:
    for ref in refs:
        if ref.kind == kind and (id_ := uuid_of(ref.name)) is not None:
            yield id_


def uuid_of(name: str) -> UUID | None:
    """The id that a name is, if it is one as the service writes it."""
    try:
        found = UUID(name)
    except ValueError:
        return None
    return found if str(found) == name else None


def _messages(given: Mapping[str, Any] | None) -> list[Any]:
    messages = (given or {}).get("messages") or []
    return messages if isinstance(messages, list) else [messages]


def _refs_of(message: object) -> list[object]:
    more = message.get("additional_kwargs") if isinstance(message, dict) else None
    refs = more.get(MENTIONS) if isinstance(more, dict) else None
    return refs if isinstance(refs, list) else []
