"""Who is asking: the verified identity, and the user it belongs to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NewType, Protocol
from uuid import UUID

if TYPE_CHECKING:
    from datetime import datetime

UserId = NewType("UserId", UUID)
"""A random, opaque id. Never derived from what the identity provider calls the person."""

ADMIN = "admin"
"""The role of operators."""


class Owner(Protocol):
    """Anything that names the user whose rows may be touched.

    Two things do: a request's :class:`Principal`, and a claimed run, whose row names its user.
    """

    @property
    def user_id(self) -> UserId:
        """The user whose rows are visible."""
        ...


@dataclass(frozen=True, slots=True)
class Identity:
    """What a verified assertion says. Held in memory for one request; never logged."""

    issuer: str
    subject: str
    expires_at: datetime
    name: str | None = None
    email: str | None = None
    roles: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Principal:
    """The verified identity of a request, and its user."""

    user_id: UserId
    identity: Identity


@dataclass(frozen=True, slots=True)
class ClaimedRun:
    """A run that this worker owns while its lease lives and the fence stands."""

    user_id: UserId
    run_id: UUID
    fence: int

    @property
    def is_first_claim(self) -> bool:
        """Whether nobody had it before: each claim and each release raises the fence."""
        return self.fence == 1
