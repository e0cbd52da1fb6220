"""What the operator's rules and a person's word come to for one call."""

from __future__ import annotations

import json
from time import thread_time
from typing import Any

import pytest

from app.tools.approval.policy import ToolPolicy
from app.tools.approval.rules import Rule, ToolRules
from app.tools.approval.ruling import Ask
from app.tools.approval.word import PersonsWord, Word

SMALL = json.dumps({"properties": {"amount": {"type": "number", "maximum": 100}}})
DEAR = json.dumps({"properties": {"amount": {"exclusiveMinimum": 100}}, "required": ["amount"]})


def policy(rules: ToolRules, tool: str = "pay", **said: Ask) -> ToolPolicy:
    word = {"*" if name == "others" else name: ask for name, ask in said.items()}
    return ToolPolicy(tool, rules, PersonsWord(Word(word, version=1)))


def always(**said: Ask) -> ToolPolicy:
    return policy(ToolRules.same(Ask.ALWAYS), **said)


class TestStrictness:
    @pytest.mark.parametrize("operator", list(Ask))
    @pytest.mark.parametrize("person", [Ask.FIRST_USE, Ask.ALWAYS])
    def test_the_stricter_of_both_holds(self, operator: Ask, person: Ask) -> None:
        order = [Ask.NEVER, Ask.FIRST_USE, Ask.ALWAYS]
        ruling = policy(ToolRules.same(operator), pay=person).ruling({})
        assert order.index(ruling.ask) == max(order.index(operator), order.index(person))

    def test_a_persons_word_on_a_tool_goes_before_that_on_the_others(self) -> None:
        said = {"others": Ask.ALWAYS, "pay": Ask.FIRST_USE}
        never = ToolRules.same(Ask.NEVER)
        assert policy(never, **said).ruling({}).ask is Ask.FIRST_USE
        assert policy(never, "book", **said).ruling({}).ask is Ask.ALWAYS

    def test_a_word_that_is_not_known_here_asks_always(self) -> None:
        word = PersonsWord(Word.read({"pay": "at_night"}, 3, None))
        ruling = ToolPolicy("pay", ToolRules.same(Ask.NEVER), word).ruling({})
        assert ruling.ask is Ask.ALWAYS

    async def test_a_word_that_changed_holds_once_it_is_read_anew(self) -> None:
        async def read() -> Word:
            return Word({"*": Ask.ALWAYS}, version=2, grant_version=4)

        word = PersonsWord(Word(), read)
        tool = ToolPolicy("pay", ToolRules.same(Ask.NEVER), word)
        before = tool.ruling({})
        await word.refresh()
        after = tool.ruling({})
        assert (before.ask, after.ask) == (Ask.NEVER, Ask.ALWAYS)
        assert before.version != after.version
        assert (word.version, word.grant_version) == (2, 4)


class TestOpeningAThread:
    def test_what_the_operator_asks_always_cannot_be_opened(self) -> None:
        assert not always().ruling({}).may_open_thread
        assert not always(pay=Ask.ALWAYS).ruling({}).may_open_thread

    def test_unless_the_operator_says_so(self) -> None:
        rules = ToolRules((Rule(Ask.ALWAYS, for_thread=True),))
        assert policy(rules).ruling({}).may_open_thread

    @pytest.mark.parametrize("operator", [Ask.NEVER, Ask.FIRST_USE])
    def test_what_a_person_made_stricter_themselves_can(self, operator: Ask) -> None:
        assert policy(ToolRules.same(operator), pay=Ask.ALWAYS).ruling({}).may_open_thread

    def test_an_approval_of_one_rule_says_nothing_of_anothers_calls(self) -> None:
        rules = ToolRules((Rule(Ask.FIRST_USE, SMALL), Rule(Ask.FIRST_USE, DEAR)))
        tool = policy(rules)
        small, dear = tool.ruling({"amount": 5}), tool.ruling({"amount": 500})
        assert small.subject != dear.subject
        assert tool.ruling({"amount": 6}).subject == small.subject
        assert small.version == dear.version


class TestVersions:
    def test_are_the_same_for_the_same_rules(self) -> None:
        assert always().ruling({}).version == always().ruling({"a": 1}).version

    def test_a_word_on_another_tool_changes_nothing(self) -> None:
        assert always().ruling({}).version == always(book=Ask.ALWAYS).ruling({}).version

    def test_any_change_is_another(self) -> None:
        rules = [
            *(ToolRules.same(each) for each in Ask),
            ToolRules((Rule(Ask.ALWAYS, for_thread=True),)),
            ToolRules((Rule(Ask.ALWAYS, SMALL),)),
            ToolRules((Rule(Ask.ALWAYS, DEAR),)),
            ToolRules((Rule(Ask.ALWAYS, SMALL), Rule(Ask.ALWAYS, DEAR))),
        ]
        versions = {policy(each).ruling({}).version for each in rules}
        versions |= {policy(each, pay=Ask.ALWAYS).ruling({}).version for each in rules}
        assert len(versions) == 2 * len(rules)


class TestArguments:
    """Whatever a model writes, the answer comes soon, and is never looser than it should be."""

    RULES = ToolRules((Rule(Ask.ALWAYS, DEAR), Rule(Ask.NEVER)))

    def test_usual_ones_are_looked_at(self) -> None:
        assert policy(self.RULES).ruling({"amount": 5}).ask is Ask.NEVER

    @pytest.mark.parametrize(
        "amount",
        [float("nan"), float("inf"), 10**400, "\ud800", b"bytes", {"a": {1, 2}}],
        ids=["nan", "infinite", "huge", "half a character", "bytes", "a set"],
    )
    def test_no_number_slips_by(self, amount: Any) -> None:
        assert policy(self.RULES).ruling({"amount": amount}).ask is Ask.ALWAYS

    def test_too_long_ones_are_asked_about(self) -> None:
        assert policy(self.RULES).ruling({"text": "x" * 300_000}).ask is Ask.ALWAYS

    def test_too_deep_ones_are_asked_about(self) -> None:
        deep: Any = 1
        for _ in range(100_000):
            deep = [deep]
        assert policy(self.RULES).ruling({"text": deep}).ask is Ask.ALWAYS

    def test_true_is_not_one(self) -> None:
        one = Rule(Ask.NEVER, json.dumps({"properties": {"n": {"const": 1}}, "required": ["n"]}))
        rules = policy(ToolRules((one,)))
        assert rules.ruling({"n": 1}).ask is Ask.NEVER
        assert rules.ruling({"n": True}).ask is Ask.ALWAYS

    @pytest.mark.parametrize("pattern", ["(a+)+$", "^(a|aa)*$", r"(?:\w|a)*a(?:\w|a){20}$"])
    def test_no_pattern_takes_longer_than_its_text_is_long(self, pattern: str) -> None:
        when = {"type": "object", "properties": {"text": {"type": "string", "pattern": pattern}}}
        tool = policy(ToolRules((Rule(Ask.NEVER, json.dumps(when)),)))
        begun = thread_time()
        ruling = tool.ruling({"text": "a" * 200_000 + "!"})
        assert ruling.ask is Ask.ALWAYS
        assert thread_time() - begun < 10
