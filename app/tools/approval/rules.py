"""What an operator says of a server's tools: when their people are asked before a call. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from app.tools.approval.conditions import Undecidable, holds, require_decidable
from app.tools.approval.ruling import Ask

ALL = "*"
"""Stands for every tool that is not named."""
BY_ARGUMENTS = "by_arguments"


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule on a tool's calls."""

    ask: Ask
    when: str | None = None
    """Which calls it is for: a condition on their arguments, as JSON text; None: all."""
    for_thread: bool = False
    """Whether a person who is always asked may say "always in this conversation"."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an operator's rules say of one call."""

    ask: Ask
    subject: str = ""
    for_thread: bool = False


@dataclass(frozen=True, slots=True)
class ToolRules:
    """The rules on one tool, the first that a call falls under counts. None: people are asked."""

    rules: tuple[Rule, ...]

    @classmethod
    def same(cls, ask: Ask) -> Self:
        """The same for every call."""
        return cls((Rule(ask),))

    @property
    def word(self) -> str:
        """The rules in one word: one of ``Ask``, or ``by_arguments``."""
        first = self.rules[0] if self.rules else Rule(Ask.ALWAYS)
        return first.ask.value if first.when is None else BY_ARGUMENTS

    def verdict(self, arguments: Mapping[str, Any]) -> Verdict:
        """What holds for a call; of arguments that cannot be looked at, the strictest."""
        match self.rules:
            case (Rule(when=None) as only, *_):
                return Verdict(only.ask, for_thread=only.for_thread)
        try:
            require_decidable(arguments)
        except Undecidable:
            return Verdict(Ask.ALWAYS)
        for number, rule in enumerate(self.rules, start=1):
            if rule.when is None or holds(rule.when, arguments):
                # An approval of a call of one rule says nothing of another rule's.
                return Verdict(rule.ask, f"rule:{number}", rule.for_thread)
        return Verdict(Ask.ALWAYS)


@dataclass(frozen=True, slots=True)
class ServerRules:
    """The rules on a server's tools."""

    tools: Mapping[str, ToolRules]
    """By the tool's name."""
    rest: ToolRules
    """For those that are not named."""

    @classmethod
    def same(cls, ask: Ask) -> Self:
        """The same for every call of every tool."""
        return cls({}, ToolRules.same(ask))

    def of(self, tool: str) -> ToolRules:
        """The rules on a tool, which need not be one that the server has; ``*``: the others."""
        return self.tools.get(tool, self.rest)
