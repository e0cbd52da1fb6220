"""What stands under ``stoa.approval`` in an ``mcp.json``, and what it means."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
)
from pydantic import model_validator as check

from app.tools.approval.conditions import require_condition
from app.tools.approval.rules import ALL, Rule, ServerRules, ToolRules
from app.tools.approval.ruling import Ask, stricter

MOST_RULES = 16
"""On one tool."""
_WORDS = "must be `never`, `first_use` or `always`"


class RuleEntry(BaseModel):
    """One rule of a list."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    ask: Annotated[Ask, Field(strict=False)]
    when: dict[str, Any] | None = None
    for_thread: bool = False

    @check(mode="after")
    def _makes_sense(self) -> Self:
        if self.for_thread and self.ask is not Ask.ALWAYS:
            raise ValueError("`for_thread` means something for `always` only; leave it out")
        if self.when is not None:
            try:
                require_condition(self.when, loosens=self.ask is not Ask.ALWAYS)
            except ValueError as error:
                raise ValueError(f"`when` {error}") from None
        return self

    def rule(self) -> Rule:
        """What the entry says."""
        when = None if self.when is None else json.dumps(self.when, sort_keys=True)
        return Rule(self.ask, when, self.for_thread)


def _by_tool(value: object) -> object:
    """One word, or one list, is said of every tool."""
    return {ALL: value} if isinstance(value, str | list) else value


def _as_rules(value: object) -> object:
    """One word is one rule for all calls."""
    if isinstance(value, str):
        if value not in set(Ask):
            raise ValueError(f"{_WORDS}, or a list of rules")
        return ({"ask": value},)
    if value == []:
        raise ValueError("has no rule in it: say `always` where every call needs an approval")
    return value


def _require_reach(rules: tuple[RuleEntry, ...]) -> tuple[RuleEntry, ...]:
    """A rule that no call comes to says something that is not so, and so does one to evade."""
    if any(rule.when is None for rule in rules[:-1]):
        raise ValueError("a rule without `when` is for all calls: put it at the end")
    for number, rule in enumerate(rules, start=1):
        if rule.when is not None and any(_is_looser(each, rule) for each in rules[number:]):
            try:
                require_condition(rule.when, tightens=True)
            except ValueError as error:
                raise ValueError(f"`when` of rule {number} {error}") from None
    return rules


def _is_looser(one: RuleEntry, other: RuleEntry) -> bool:
    return one.ask is not other.ask and stricter(one.ask, other.ask) is other.ask


_Rules = Annotated[
    tuple[RuleEntry, ...],
    BeforeValidator(_as_rules),
    AfterValidator(_require_reach),
    Field(strict=False, max_length=MOST_RULES),
]
_Tool = Annotated[str, StringConstraints(min_length=1, max_length=128)]
Approval = Annotated[dict[_Tool, _Rules], BeforeValidator(_by_tool)]


def server_rules(said: Mapping[str, tuple[RuleEntry, ...]], usual: Ask) -> ServerRules:
    """What is said of a server's tools; ``usual`` holds where nothing is."""
    tools = {tool: ToolRules(tuple(each.rule() for each in said[tool])) for tool in said}
    rest = tools.pop(ALL, ToolRules.same(usual))
    return ServerRules(tools, rest)
