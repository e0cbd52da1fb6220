"""Which hosts a person lets be visited, and how they are asked."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Protocol

from pydantic import BaseModel, Field, ValidationError

from app.outbound import Origin, UrlRefused, check_url
from app.tools.approval.ruling import Ask, Ruling
from app.tools.effects import Needs
from app.tools.refusal import ToolRefusal
from app.tools.site import CallSite, site_of_call
from tenancy.database.engine import DatabaseUnavailable

FETCH = "fetch"
SHOWN = 5_000
MOST_SHOWN = 20_000
UNKNOWN = "Whether this may be fetched could not be looked up. Try again later."


class Fetch(BaseModel):
    """Arguments of ``fetch``. A class of its own: one that is derived costs each run time."""

    url: str = Field(description="Whole address, with https:// or http://.")
    start: int = Field(0, ge=0, description="First character to show.")
    max_length: int = Field(SHOWN, ge=1, le=MOST_SHOWN, description="Most characters to show.")


class Admission(Protocol):
    """Sees that a call may be made, where it is made; see ``app.tools.ledger``."""

    async def admit(self, site: CallSite, tool: str, arguments: None, needs: Needs) -> None:
        """Return if it may, with the arguments that its message has.

        Raises:
            NotApproved: its person has to approve it first.
            DatabaseUnavailable: nothing is known, and it must not be made.
        """
        ...


def host_of(url: str, trusted: AbstractSet[str] = frozenset()) -> str | None:
    """The host that a fetch of this address visits, with its port unless that is the usual one.

    However it is spelled, it is one host. None where nothing is visited, since the address is one
    that is refused.
    """
    try:
        origin = Origin.of(check_url(url, https_only=False, trusted=trusted))
    except UrlRefused:
        return None
    return str(origin).partition("://")[2]


class Visits:
    """When a person is asked before a host is visited, as policy and where it is done."""

    def __init__(
        self, ask: Ask, admission: Admission, trusted: AbstractSet[str] = frozenset()
    ) -> None:
        self._ask = ask
        self._admission = admission
        self._trusted = trusted
        self._version = hashlib.sha256(f"{FETCH} {ask}".encode()).hexdigest()[:32]

    @property
    def are_free(self) -> bool:
        """Whether nobody is asked."""
        return self._ask is Ask.NEVER

    def ruling(self, arguments: Mapping[str, Any]) -> Ruling:
        """What holds for a call; one that visits nothing needs nobody's word."""
        try:
            host = host_of(Fetch.model_validate(arguments).url, self._trusted)
        except ValidationError:  # refused before anything is asked
            host = None
        return Ruling(Ask.NEVER if host is None else self._ask, self._version, host or "")

    async def require_approval(self, arguments: Mapping[str, Any]) -> None:
        """Return if the person lets the host be visited by the call that is being made.

        ``arguments`` are the call's, with what it left out filled in.

        Raises:
            NotApproved: they have to approve it first.
            ToolRefusal: that could not be found out.
        """
        ruling = self.ruling(arguments)
        if ruling.ask is Ask.NEVER:
            return
        needs = Needs(ruling.version, ruling.subject)
        try:
            await self._admission.admit(site_of_call.get(), FETCH, None, needs)
        except DatabaseUnavailable:
            raise ToolRefusal(UNKNOWN) from None
