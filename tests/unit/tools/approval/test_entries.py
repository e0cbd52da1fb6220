"""What may stand under ``stoa.approval``, and what is said about what may not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from app.settings import SettingsError
from app.tools.approval.ruling import Ask
from app.tools.catalogue import Catalogue, own_server
from app.tools.servers import CredentialRule, McpServer

SMALL = {
    "type": "object",
    "properties": {"amount": {"type": "number", "maximum": 100}},
    "required": ["amount"],
}


def server_with(folder: Path, approval: Any, usual: Ask = Ask.NEVER) -> McpServer:
    file = folder / "mcp.json"
    entry = {"command": "server", "stoa": {} if approval is None else {"approval": approval}}
    file.write_text(json.dumps({"mcpServers": {"bank": entry}}), encoding="utf-8")
    return Catalogue.load([file], usual).servers["bank"]


def complaint(folder: Path, approval: Any) -> str:
    with pytest.raises(SettingsError) as caught:
        server_with(folder, approval)
    return str(caught.value).replace(str(folder), "")


def word(server: McpServer, tool: str, **arguments: Any) -> Ask:
    return server.approval.of(tool).verdict(arguments).ask


class TestWords:
    def test_one_is_said_of_every_tool(self, tmp_path: Path) -> None:
        server = server_with(tmp_path, "first_use")
        assert word(server, "pay") is Ask.FIRST_USE

    def test_a_tools_own_goes_before_that_for_the_others(self, tmp_path: Path) -> None:
        server = server_with(tmp_path, {"*": "always", "look": "never"})
        assert word(server, "look") is Ask.NEVER
        assert word(server, "pay") is Ask.ALWAYS

    @pytest.mark.parametrize("usual", list(Ask))
    def test_that_are_not_said_are_the_settings(self, tmp_path: Path, usual: Ask) -> None:
        assert word(server_with(tmp_path, None, usual), "pay") is usual
        server = server_with(tmp_path, {"look": "never"}, usual)
        assert word(server, "pay") is usual
        assert word(server, "look") is Ask.NEVER

    def test_of_a_tool_that_is_not_there_yet_may_be_said(self, tmp_path: Path) -> None:
        assert word(server_with(tmp_path, {"to come": "always"}), "to come") is Ask.ALWAYS

    def test_a_persons_own_server_asks_always(self) -> None:
        server = own_server("notes", "https://notes.example.com/mcp", CredentialRule())
        verdict = server.approval.of("anything").verdict({})
        assert verdict.ask is Ask.ALWAYS
        assert not verdict.for_thread


class TestRules:
    def test_the_first_that_a_call_falls_under_counts(self, tmp_path: Path) -> None:
        server = server_with(
            tmp_path,
            {"pay": [{"when": SMALL, "ask": "never"}, {"ask": "first_use"}]},
        )
        assert word(server, "pay", amount=100) is Ask.NEVER
        assert word(server, "pay", amount=101) is Ask.FIRST_USE

    def test_a_call_that_falls_under_none_needs_an_approval(self, tmp_path: Path) -> None:
        server = server_with(tmp_path, {"pay": [{"when": SMALL, "ask": "never"}]})
        assert word(server, "pay", amount=101) is Ask.ALWAYS
        assert word(server, "pay") is Ask.ALWAYS
        assert word(server, "pay", amount="1") is Ask.ALWAYS

    def test_a_list_may_be_for_every_tool(self, tmp_path: Path) -> None:
        server = server_with(tmp_path, [{"when": SMALL, "ask": "never"}])
        assert word(server, "pay", amount=1) is Ask.NEVER
        assert word(server, "book", amount=1000) is Ask.ALWAYS

    def test_a_policy_is_no_reason_for_another_connection(self, tmp_path: Path) -> None:
        versions = {
            server_with(tmp_path, each).version for each in ("never", "always", [{"ask": "always"}])
        }
        assert len(versions) == 1


class TestRefusals:
    @pytest.mark.parametrize(
        ("approval", "said"),
        [
            ("canary", "`stoa.approval.*`: must be `never`, `first_use` or `always`"),
            (
                {"pay": "canary"},
                "`stoa.approval.pay`: must be `never`, `first_use` or `always`, or a list",
            ),
            (5, "`stoa.approval`: must be an object"),
            ({"pay": None}, "`stoa.approval.pay`: must be a list"),
            ({"": "never"}, "`stoa.approval"),
            ({"x" * 129: "never"}, "`stoa.approval"),
            ([], "has no rule in it"),
            ([{}], "`stoa.approval.*.0.ask`: is missing"),
            (["never"], "`stoa.approval.*.0` must be an object"),
            ([{"ask": "canary"}], "`stoa.approval.*.0.ask`: must be 'never', 'first_use' or"),
            (
                [{"ask": "never", "wen": {}}],
                "unknown key `wen` in `stoa.approval.*.0`: did you mean `when`",
            ),
            ([{"ask": "never"}, {"ask": "always"}], "a rule without `when` is for all calls"),
            ([{"ask": "never", "for_thread": True}], "`for_thread` means something for `always`"),
            ([{"ask": "always", "for_thread": "yes"}], "`stoa.approval.*.0.for_thread`"),
            ([{"when": {"required": ["a"]}, "ask": "always"}] * 17, "at most 16"),
        ],
    )
    def test_say_what_to_do_and_quote_nothing(
        self, tmp_path: Path, approval: Any, said: str
    ) -> None:
        text = complaint(tmp_path, approval)
        assert "server `bank`" in text
        assert said in text
        assert "canary" not in text

    @pytest.mark.parametrize(
        ("when", "said"),
        [
            ("canary", "must be an object"),
            ({"$ref": "https://canary.example/schema"}, "`$ref` cannot be used"),
            ({"$ref": "#"}, "`$ref` cannot be used"),
            ({"$id": "https://canary.example/"}, "`$id` cannot be used"),
            ({"properties": {"a": {"maximun": 5}}}, "`maximun` cannot be used"),
            ({"properties": {"a": {"format": "uri"}}}, "`format` cannot be used"),
            ({"type": "canary"}, "is not a JSON Schema"),
            ({"properties": {"a": "canary"}}, "must be a JSON Schema"),
            ({"properties": []}, "must be a JSON Schema"),
            ({"anyOf": {}}, "must be a JSON Schema"),
            ({"anyOf": []}, "is not a JSON Schema"),
            ({"minProperties": -1}, "is not a JSON Schema"),
            ({"properties": {"a": {"pattern": "("}}}, "no lookaround"),
            ({"properties": {"a": {"pattern": "(?=canary)"}}}, "no lookaround"),
            ({"properties": {"a": {"pattern": r"(a)\1"}}}, "no lookaround"),
            ({"properties": {"a": {"pattern": "((a{1000}){1000}){1000}"}}}, "no lookaround"),
            ({"properties": {"a": {"const": "x" * 20_000}}}, "is longer than 16384"),
            ({"anyOf": [{"type": "object"}] * 101}, "more than 100 schemas"),
        ],
    )
    def test_of_conditions(self, tmp_path: Path, when: Any, said: str) -> None:
        text = complaint(tmp_path, {"pay": [{"when": when, "ask": "always"}]})
        assert said in text
        assert "canary" not in text

    def test_of_conditions_that_are_too_deep(self, tmp_path: Path) -> None:
        when: Any = {"type": "object"}
        for _ in range(12):
            when = {"not": when}
        assert "nested deeper than 12" in complaint(tmp_path, [{"when": when, "ask": "always"}])

    def test_of_numbers_that_are_none(self, tmp_path: Path) -> None:
        when = {"properties": {"a": {"const": float("nan")}}}
        assert "is not JSON" in complaint(tmp_path, [{"when": when, "ask": "always"}])


class TestConditionsThatLoosen:
    """What lets a call through unasked must not do so because something was left out."""

    @pytest.mark.parametrize("ask", ["never", "first_use"])
    @pytest.mark.parametrize(
        ("when", "said"),
        [
            (
                {"properties": {"amount": {"type": "number", "maximum": 100}}},
                "would hold for calls without `amount` too: name it under `required`",
            ),
            (
                {"properties": {"amount": {"maximum": 100}}, "required": ["amount"]},
                '`maximum` would hold for anything that is no number too: say `"type": "number"`',
            ),
            (
                {
                    "properties": {"path": {"type": ["string", "array"], "pattern": "^/tmp/"}},
                    "required": ["path"],
                },
                "`pattern` would hold for anything that is no string too",
            ),
            (
                {"anyOf": [{"properties": {"amount": {"const": 1}}}]},
                "would hold for calls without `amount` too",
            ),
            (
                {"not": {"properties": {"amount": {"type": "number", "minimum": 100}}}},
                "`type` within `not` lets anything of another kind through",
            ),
            (
                {"not": {"properties": {"amount": {"minimum": 100}}, "required": ["amount"]}},
                "`not` would hold for calls without `amount` too: leave out `required` there",
            ),
            (
                {"not": {"properties": {"force": {"const": True}}}},
                "`const` within `not` lets anything of another kind through",
            ),
            (
                {"not": {"oneOf": [{"minProperties": 3}, {"required": ["force"]}]}},
                "`oneOf` within `not` lets anything of another kind through",
            ),
            (
                {"not": {"not": {"properties": {"amount": {"maximum": 100}}}}},
                "has a `not` within a `not`: say what must hold instead",
            ),
        ],
    )
    def test_are_refused(self, tmp_path: Path, ask: str, when: Any, said: str) -> None:
        assert said in complaint(tmp_path, {"pay": [{"when": when, "ask": ask}]})

    @pytest.mark.parametrize(
        "when",
        [
            {},
            {"required": ["amount"]},
            {"properties": {"amount": {"const": 1}}, "required": ["amount"]},
            {
                "properties": {"amount": {"type": ["integer", "number"], "minimum": 1}},
                "required": ["amount"],
            },
            {"not": {"properties": {"path": {"pattern": "^/etc/"}}}},
            {"anyOf": [{"not": {"required": ["force"]}}, {"maxProperties": 1}]},
            {
                "properties": {"kind": {"type": "string", "not": {"enum": ["drop"]}}},
                "required": ["kind"],
            },
        ],
    )
    def test_are_taken_where_they_are_explicit(self, tmp_path: Path, when: Any) -> None:
        server = server_with(tmp_path, {"pay": [{"when": when, "ask": "never"}]})
        assert server.approval.of("pay").word == "by_arguments"

    def test_one_that_makes_stricter_may_hold_for_more(self, tmp_path: Path) -> None:
        dear = {"properties": {"amount": {"exclusiveMinimum": 100}}}
        rules = [{"when": dear, "ask": "always"}, {"ask": "never"}]
        server = server_with(tmp_path, {"pay": rules})
        assert word(server, "pay", amount=1) is Ask.NEVER
        assert word(server, "pay", amount=101) is Ask.ALWAYS
        assert word(server, "pay") is Ask.ALWAYS
        assert word(server, "pay", amount="1") is Ask.ALWAYS

    @pytest.mark.parametrize(
        ("when", "said"),
        [
            (
                {"properties": {"amount": {"type": "number", "minimum": 100}}},
                "`when` of rule 1 `minimum` beside `type` lets anything of another kind through",
            ),
            (
                {"not": {"properties": {"amount": {"maximum": 100}}}},
                "would hold for calls without `amount` too: name it under `required`",
            ),
            ({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}, "say `anyOf`"),
        ],
    )
    def test_one_that_makes_stricter_must_not_be_evaded_to_a_looser_one(
        self, tmp_path: Path, when: Any, said: str
    ) -> None:
        for looser in ("never", "first_use"):
            rules = [{"when": when, "ask": "always"}, {"ask": looser}]
            assert said in complaint(tmp_path, {"pay": rules})
        stricter = [{"when": when, "ask": "always"}, {"ask": "always"}]
        assert word(server_with(tmp_path, {"pay": stricter}), "pay") is Ask.ALWAYS

    @pytest.mark.parametrize(
        "when",
        [
            {"type": "object", "properties": {"force": {"const": True}}, "required": ["force"]},
            {
                "not": {
                    "properties": {"amount": {"type": "number", "maximum": 100}},
                    "required": ["amount"],
                }
            },
        ],
    )
    def test_one_that_makes_stricter_may_name_what_it_is_about(
        self, tmp_path: Path, when: Any
    ) -> None:
        rules = [{"when": when, "ask": "always"}, {"ask": "never"}]
        server = server_with(tmp_path, {"pay": rules})
        assert word(server, "pay", amount=1000, force=True) is Ask.ALWAYS
