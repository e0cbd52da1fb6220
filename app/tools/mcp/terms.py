"""Under which rules one tool's calls are made."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from app.tools.approval.ruling import Ask
from app.tools.effects import Needs
from app.tools.fingerprint import fingerprint

if TYPE_CHECKING:
    from app.tools.approval.ruling import Policy
    from app.tools.approval.word import PersonsWord


class Terms:
    """What a policy and a schema say of each call, as far as they are known here."""

    def __init__(
        self,
        policy: Policy | None = None,
        word: PersonsWord | None = None,
        schema: Mapping[str, Any] | None = None,
    ) -> None:
        """Where there is no policy, nobody has to approve. ``word`` is the person's part of it."""
        self._policy = policy
        self._word = word
        self._schema = schema

    def needs(self, arguments: Mapping[str, Any]) -> Needs:
        """What a call with these arguments needs."""
        version = None if self._word is None else self._word.version
        ruling = None if self._policy is None else self._policy.ruling(arguments)
        if ruling is None or ruling.ask is Ask.NEVER:
            return Needs(schema_sha256=self._fingerprint, approval_version=version)
        return Needs(ruling.version, ruling.subject, self._fingerprint, version)

    @cached_property
    def _fingerprint(self) -> bytes | None:
        return None if self._schema is None else fingerprint(self._schema)

    async def renew(self) -> None:
        """Know what the person says by now of such calls.

        Raises:
            DatabaseUnavailable: Postgres is away.
        """
        if self._word is not None:
            await self._word.refresh()
