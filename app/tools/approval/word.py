"""A person's own word on when they want to be asked. It only ever makes rules stricter."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Self

from app.tools.approval.rules import ALL
from app.tools.approval.ruling import Ask


@dataclass(frozen=True, slots=True)
class Word:
    """What a person has said of one server's tools, and of which versions their connection is."""

    rules: Mapping[str, Ask] = field(default_factory=dict)
    """By the tool's name; ``*`` is all that are not named."""
    version: int = 0
    """Grows with each change of the rules; where nothing was ever said, 0."""
    grant_version: int | None = None
    """Of the credential, as the person gave it; None: calls are made with nobody's."""

    @classmethod
    def read(cls, stored: Mapping[str, str], version: int, grant_version: int | None) -> Self:
        """From how it is stored; what is not known here asks always."""
        known = {each.value: each for each in Ask}
        rules = {tool: known.get(said, Ask.ALWAYS) for tool, said in stored.items()}
        return cls(rules, version, grant_version)


class PersonsWord:
    """A person's word as it was last read, for all of a server's tools in one run.

    The gate, the call and the question read it here, so that they agree; whoever finds that it has
    changed since has it read anew.
    """

    def __init__(
        self, word: Word | None = None, read: Callable[[], Awaitable[Word]] | None = None
    ) -> None:
        self._word = word or Word()
        self._read = read

    @property
    def version(self) -> int:
        """Of the rules."""
        return self._word.version

    @property
    def grant_version(self) -> int | None:
        """Of the credential, as the person gave it; None: calls are made with nobody's."""
        return self._word.grant_version

    def on(self, tool: str) -> Ask:
        """When the person wants to be asked before a tool is called, at the least."""
        rules = self._word.rules
        return rules.get(tool, rules.get(ALL, Ask.NEVER))

    async def refresh(self) -> None:
        """Read it anew.

        Raises:
            DatabaseUnavailable: Postgres is away.
        """
        if self._read is not None:
            self._word = await self._read()
