"""The rules that hold for a person's calls of one tool: the operator's and their own."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from app.tools.approval.rules import ToolRules
from app.tools.approval.ruling import Ask, Ruling, stricter
from app.tools.approval.word import PersonsWord


class ToolPolicy:
    """Of an operator's rules and a person's word, the stricter holds for each call."""

    def __init__(self, tool: str, rules: ToolRules, word: PersonsWord) -> None:
        self._tool = tool
        self._rules = rules
        self._word = word

    def ruling(self, arguments: Mapping[str, Any]) -> Ruling:
        """What holds for a call with these arguments, by the person's word as it is known now."""
        own = self._word.on(self._tool)
        verdict = self._rules.verdict(arguments)
        ask = stricter(verdict.ask, own)
        # What a person has made stricter themselves, they may open again; what the operator asks
        # for in every case, only where the operator says so.
        own_to_open = verdict.ask is not Ask.ALWAYS or verdict.for_thread
        return Ruling(
            ask,
            _version(self._rules, own),
            verdict.subject,
            may_open_thread=ask is Ask.ALWAYS and own_to_open,
        )


def _version(rules: ToolRules, own: Ask) -> str:
    """The same for the same rules and word, wherever they are put together."""
    said = [[dataclasses.astuple(rule) for rule in rules.rules], own]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:32]
