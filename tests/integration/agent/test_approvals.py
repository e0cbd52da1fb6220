"""A turn that stops before any of its calls is made, until its person has decided on each."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import UUID, uuid4

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from app.agent.agent import build_agent
from app.agent.answer import MOST_CALLS
from app.agent.approving import EXPIRED, REJECTED
from app.agent.asking import CHANGED_TOO_OFTEN, MOST_ROUNDS
from app.agent.equipment import Equipment
from app.agent.gate import UNREADABLE
from app.agent.graphs import SYSTEM_PROMPT
from app.models.chat import build_chat_model
from app.tools.approval.ruling import Ask
from app.tools.fingerprint import fingerprint
from app.tools.outcomes import NOBODY_KNOWS
from app.tools.questions import Question
from tests.integration.agent.conversation import THREAD, Conversation
from tests.integration.agent.deciding import (
    Bank,
    Opened,
    asked,
    calling,
    calls_in,
    decide,
    decision,
    go_on_with,
    in_doubt,
    not_approved,
    open_question,
    results,
)
from tests.support.model_server import Script, ScriptedModelServer, ToolCall
from tests.support.models import FreeSeats, model_calls

ACCOUNT = Question("Which account?", None, "https://bank.test/account")


@pytest.fixture
def bank() -> Bank:
    return Bank()


@pytest.fixture
def opened() -> Opened:
    return Opened()


@pytest.fixture
async def conversation(
    server: ScriptedModelServer, bank: Bank, opened: Opened
) -> AsyncIterator[Conversation]:
    model = build_chat_model("smollm2", context=4096, output=64)
    agent = build_agent(model, SYSTEM_PROMPT, 4032, bank.tools())
    equipment = Equipment(permissions=opened)
    async with model_calls(FreeSeats(server.url, context=4096)):
        with equipment.entered():
            yield Conversation(agent.copy(update={"checkpointer": InMemorySaver()}))


class TestATurnWithACallThatNeedsApproval:
    async def test_stops_before_any_of_its_calls_is_made(
        self, server: ScriptedModelServer, conversation: Conversation, bank: Bank
    ) -> None:
        server.enqueue(calling("look a", "pay b", "pay c"))
        await conversation.say("do it").task
        _, value = await open_question(conversation)
        assert [each["args"] for each in calls_in(value)] == [{"name": "b"}, {"name": "c"}]
        assert bank.sites == []
        approvals = [decision("approve"), decision("approve")]
        await (await decide(conversation, *approvals)).task
        assert sorted(bank.effects) == ["paid b", "paid c", "saw a"]
        assert (await conversation.last()).text == "You said: do it"
        assert len(server.requests) == 2

    async def test_shows_exactly_what_would_be_done_in_the_shape_that_clients_know(
        self, server: ScriptedModelServer, conversation: Conversation
    ) -> None:
        server.enqueue(calling("pay b", says="I'll pay them."))
        await conversation.say("do it").task
        _, value = await open_question(conversation)
        message = (await conversation.messages())[-1]
        assert isinstance(message, AIMessage)
        (request,) = value["action_requests"]
        assert request["tool_call_id"] == message.tool_calls[0]["id"]
        assert request["message_id"] == message.id
        assert (request["name"], request["tool"], request["server"]) == ("pay", "pay", None)
        assert request["args"] == message.tool_calls[0]["args"]
        assert request["arguments_sha256"] == fingerprint(request["args"]).hex()
        assert request["schema_sha256"] == fingerprint(request["asked"]["schema"]).hex()
        assert request["asked"]["model_said"] == "I'll pay them."
        assert request["asked"]["tool_description"] == "Pay somebody."
        assert (request["policy_version"], request["subject"]) == ("1", None)
        assert value["review_configs"] == [
            {
                "action_name": "pay",
                "allowed_decisions": ["approve", "edit", "reject"],
                "args_schema": request["asked"]["schema"],
            }
        ]

    async def test_asks_the_same_under_the_same_id_however_often_it_is_taken_up(
        self, server: ScriptedModelServer, conversation: Conversation
    ) -> None:
        server.enqueue(calling("pay b"))
        await conversation.say("do it").task
        asked_first = await open_question(conversation)
        await conversation.go_on().task
        assert await open_question(conversation) == asked_first

    async def test_calls_under_the_approval_of_each_call(
        self, server: ScriptedModelServer, conversation: Conversation, bank: Bank
    ) -> None:
        server.enqueue(calling("pay b", "pay c"))
        await conversation.say("do it").task
        approvals = [decision("approve"), decision("approve")]
        await (await decide(conversation, *approvals)).task
        given = {UUID(each["approval_id"]) for each in approvals}
        assert {site.approval for site in bank.sites} == given
        hashes = {fingerprint({"name": name}) for name in "bc"}
        assert {site.arguments_sha256 for site in bank.sites} == hashes

    async def test_takes_one_step_more_than_another(
        self, server: ScriptedModelServer, conversation: Conversation, bank: Bank
    ) -> None:
        server.enqueue(calling("pay b"))
        await conversation.say("do it", steps=2).task
        await (await decide(conversation, decision("approve"))).task
        steps = [
            state.metadata or {} async for state in conversation.graph.aget_state_history(THREAD)
        ]
        assert [step["step"] for step in reversed(steps)][-1] == 4  # model, ask, tools, model
        assert bank.effects == ["paid b"]

    async def test_tells_the_model_of_arguments_that_nobody_could_be_shown(
        self, server: ScriptedModelServer, conversation: Conversation, bank: Bank
    ) -> None:
        call = ToolCall(name="pay", arguments={"name": "a\x00b"})
        server.enqueue(Script(tool_calls=(call,)))
        await conversation.say("do it").task
        assert [each.text for each in await results(conversation)] == [UNREADABLE]
        assert bank.sites == []

    @pytest.mark.parametrize(
        ("said", "kept"),
        [(2**64 - 1, 2**64 - 1), (10**22, 1e22), (2**64 + 1, str(2**64 + 1))],
        ids=["as large as is kept", "a float's", "larger"],
    )
    async def test_shows_and_makes_calls_with_the_numbers_that_its_thread_keeps(
        self,
        server: ScriptedModelServer,
        conversation: Conversation,
        bank: Bank,
        said: int,
        kept: float | str,
    ) -> None:
        server.enqueue(Script(tool_calls=(ToolCall(name="count", arguments={"name": said}),)))
        await conversation.say("do it").task
        _, value = await open_question(conversation)
        (request,) = value["action_requests"]
        assert repr(request["args"]) == repr({"name": kept})
        assert request["arguments_sha256"] == fingerprint(request["args"]).hex()
        await (await decide(conversation, decision("approve"))).task
        assert bank.effects == [f"counted {kept!r}"]

    async def test_makes_no_more_calls_than_a_person_could_be_asked_about(
        self, server: ScriptedModelServer, conversation: Conversation, bank: Bank
    ) -> None:
        server.enqueue(calling(*["pay b"] * (MOST_CALLS + 1)))
        await conversation.say("do it").task
        _, value = await open_question(conversation)
        assert len(value["action_requests"]) == MOST_CALLS

    async def test_stops_as_well_where_its_message_got_into_the_thread_in_another_way(
        self, conversation: Conversation, bank: Bank
    ) -> None:
        await conversation.say("hi").task
        call = {"name": "pay", "args": {"name": "b"}, "id": "c1", "type": "tool_call"}
        message = AIMessage("", id="m1", tool_calls=[call])
        with Equipment().entered():  # whoever updates a state is no run, and has no tools
            update = {"messages": [HumanMessage("pay"), message]}
            await conversation.graph.aupdate_state(THREAD, update, as_node="model")
        assert await conversation.next() == ("gate",)
        await conversation.go_on().task
        assert bank.sites == []
        await (await decide(conversation, decision("approve"))).task
        assert bank.effects == ["paid b"]


class TestADecision:
    async def test_to_reject_tells_the_model_so_in_the_persons_words_and_makes_the_rest(
        self, server: ScriptedModelServer, conversation: Conversation, bank: Bank
    ) -> None:
        server.enqueue(calling("pay b", "pay c", "look d"))
        await conversation.say("do it").task
        rejected = decision("reject", reason='They said "no"')
        await (await decide(conversation, rejected, decision("approve"))).task
        assert sorted(bank.effects) == ["paid c", "saw d"]
        (told,) = [each for each in await results(conversation) if each.status == "error"]
        said = r'Their reason, in their own words: "They said \"no\""'
        assert told.text == f"{REJECTED} {said}"
        assert told.response_metadata["stoa"]["outcome"] == "rejected"

    async def test_to_reject_everything_leaves_the_turn_to_the_model(
        self, server: ScriptedModelServer, conversation: Conversation, bank: Bank
    ) -> None:
        server.enqueue(calling("pay b"))
        await conversation.say("do it").task
        await (await decide(conversation, decision("reject"))).task
        assert [each.text for each in await results(conversation)] == [REJECTED]
        assert (await conversation.last()).text == "You said: do it"
        assert bank.effects == []

    async def test_that_nobody_took_in_time_is_no(
        self, server: ScriptedModelServer, conversation: Conversation, bank: Bank
    ) -> None:
        server.enqueue(calling("pay b"))
        await conversation.say("do it").task
        await (await decide(conversation, decision(None))).task
        (told,) = await results(conversation)
        assert (told.text, told.status) == (EXPIRED, "error")
        assert told.response_metadata["stoa"]["outcome"] == "expired"
        assert bank.effects == []

    async def test_to_edit_makes_the_call_with_the_persons_arguments_and_all_see_it(
        self, server: ScriptedModelServer, conversation: Conversation, bank: Bank
    ) -> None:
        server.enqueue(calling("pay b", "pay c"))
        await conversation.say("do it").task
        (_, before) = await conversation.messages()
        edited = decision("edit", arguments={"name": "e"})
        await (await decide(conversation, edited, decision("approve"))).task
        assert sorted(bank.effects) == ["paid c", "paid e"]
        _, made, *_ = await conversation.messages()
        assert isinstance(made, AIMessage)
        assert made.id == before.id
        assert [call["args"] for call in made.tool_calls] == [{"name": "e"}, {"name": "c"}]
        (site,) = [each for each in bank.sites if str(each.approval) == edited["approval_id"]]
        assert site.arguments_sha256 == fingerprint({"name": "e"})
        sent = server.requests[-1].body["messages"]
        assert isinstance(sent, list)
        assert [call["function"]["arguments"] for call in sent[2]["tool_calls"]] == [
            {"name": "e"},
            {"name": "c"},
        ]
        told = next(each["content"] for each in sent if each["role"] == "tool")
        assert (
            told == "[The person changed this call's arguments; it was made with theirs.]\npaid e"
        )
        assert [each.text for each in await results(conversation)] == ["paid e", "paid c"]

    async def test_comes_with_what_has_changed_since(
        self, server: ScriptedModelServer, conversation: Conversation
    ) -> None:
        server.enqueue(calling("pay b"))
        await conversation.say("do it").task
        noted = decision("approve", notes=["graph", "memory"])
        await (await decide(conversation, noted)).task
        (result,) = await results(conversation)
        assert result.text == "paid b"
        assert result.response_metadata["stoa"]["notes"] == ["graph", "memory"]
        told = str(server.requests[-1].body["messages"])
        assert "[This assistant was changed" in told
        assert "[What is remembered" in told

    async def test_on_some_of_the_calls_leaves_the_others_open_and_makes_none(
        self, server: ScriptedModelServer, conversation: Conversation, bank: Bank
    ) -> None:
        server.enqueue(calling("pay b", "pay c"))
        await conversation.say("do it").task
        first, value = await open_question(conversation)
        one = calls_in(value)[0]["tool_call_id"]
        await go_on_with(conversation, first, {one: decision("approve")}).task
        second, value = await open_question(conversation)
        assert second != first
        assert [each["args"] for each in calls_in(value)] == [{"name": "c"}]
        assert bank.sites == []
        await (await decide(conversation, decision("approve"))).task
        assert sorted(bank.effects) == ["paid b", "paid c"]


class TestACallThatIsAskedAboutAtTheFirstUse:
    async def test_is_made_without_asking_where_the_thread_is_open_for_it(
        self, server: ScriptedModelServer, conversation: Conversation, bank: Bank, opened: Opened
    ) -> None:
        opened.found["b"] = permission = uuid4()
        server.enqueue(calling("visit b"))
        await conversation.say("do it").task
        assert bank.effects == ["visited b"]
        assert [site.approval for site in bank.sites] == [permission]
        assert opened.asked == [(None, "visit", "b")]

    async def test_is_asked_about_where_it_turns_to_something_else(
        self, server: ScriptedModelServer, conversation: Conversation, bank: Bank, opened: Opened
    ) -> None:
        opened.found["b"] = uuid4()
        server.enqueue(calling("visit b", "visit c"))
        await conversation.say("do it").task
        _, value = await open_question(conversation)
        (request,) = calls_in(value)
        assert (request["args"], request["subject"]) == ({"name": "c"}, "c")
        assert request["asked"]["may_open_thread"] is False
        await (await decide(conversation, decision("approve"))).task
        assert sorted(bank.effects) == ["visited b", "visited c"]

    async def test_is_open_too_where_the_person_may_say_always(
        self, server: ScriptedModelServer, conversation: Conversation, bank: Bank, opened: Opened
    ) -> None:
        bank.always.may_open_thread = True
        opened.found["b"] = uuid4()
        server.enqueue(calling("pay b", "pay c"))
        await conversation.say("do it").task
        _, value = await open_question(conversation)
        (request,) = calls_in(value)
        assert (request["subject"], request["asked"]["may_open_thread"]) == ("c", True)


class TestWhatWasApproved:
    async def test_is_asked_about_again_with_what_has_changed_beside_its_siblings_results(
        self, server: ScriptedModelServer, conversation: Conversation, bank: Bank
    ) -> None:
        server.enqueue(calling("pay b", "pay c"))
        await conversation.say("do it").task
        first, _ = await open_question(conversation)
        bank.stops = [not_approved("schema", "connection")]
        await (await decide(conversation, decision("approve"), decision("approve"))).task
        second, value = await open_question(conversation)
        assert second != first
        (request,) = calls_in(value)
        assert request["changed"] == request["asked"]["changed"] == ["schema", "connection"]
        assert len(bank.effects) == 1
        await (await decide(conversation, decision("approve"))).task
        assert sorted(bank.effects) == ["paid b", "paid c"]

    async def test_is_given_up_where_something_changes_each_time(
        self, server: ScriptedModelServer, conversation: Conversation, bank: Bank
    ) -> None:
        server.enqueue(calling("pay b"))
        await conversation.say("do it").task
        bank.stops = [not_approved("policy")] * (MOST_ROUNDS + 1)
        for _ in range(MOST_ROUNDS + 1):
            await (await decide(conversation, decision("approve"))).task
        assert [each.text for each in await results(conversation)] == [CHANGED_TOO_OFTEN]
        assert bank.effects == []

    async def test_needs_an_approval_where_its_policy_became_stricter_after_the_gate(
        self, server: ScriptedModelServer, conversation: Conversation, bank: Bank
    ) -> None:
        bank.always.ask = Ask.NEVER
        server.enqueue(calling("pay b", "look a"))
        run = conversation.say("do it")
        bank.always.then = run.stop.drain
        assert await run.is_drained()
        assert await conversation.next() == ("tools", "tools")
        bank.always.ask = Ask.ALWAYS
        await conversation.go_on().task
        _, value = await open_question(conversation)
        assert [each["args"] for each in calls_in(value)] == [{"name": "b"}]
        assert bank.effects == ["saw a"]
        await (await decide(conversation, decision("approve"))).task
        assert bank.effects == ["saw a", "paid b"]


class TestACallInDoubt:
    @pytest.mark.parametrize("word", ["happened", "repeat", "leave_out"])
    async def test_is_taken_up_again_with_what_the_person_says_of_it(
        self, server: ScriptedModelServer, conversation: Conversation, bank: Bank, word: str
    ) -> None:
        bank.always.ask = Ask.NEVER
        bank.stops = [in_doubt()]
        server.enqueue(calling("pay b", "look a"))
        await conversation.say("do it").task
        _, value = await open_question(conversation)
        (call,) = calls_in(value)
        assert value["type"] == "in_doubt"
        assert (call["server"], call["tool"], call["name"]) == ("bank", "pay", "pay")
        assert call["known"] == {"why": "timeout", "sent": 1}
        assert call["arguments_sha256"] == fingerprint(call["arguments"]).hex()
        said = decision(word)
        await (await decide(conversation, said)).task
        assert str(bank.sites[-1].doubt) == said["approval_id"]

    async def test_is_taken_up_again_where_its_outcome_came_after_all(
        self, server: ScriptedModelServer, conversation: Conversation, bank: Bank
    ) -> None:
        bank.stops = [in_doubt()]
        server.enqueue(calling("look b"))
        await conversation.say("do it").task
        closed = decision("repeat", state="superseded", decision=None)
        await (await decide(conversation, closed)).task
        assert str(bank.sites[-1].doubt) == closed["approval_id"]
        assert bank.effects == ["saw b"]

    async def test_stays_so_where_nobody_says_anything(
        self, server: ScriptedModelServer, conversation: Conversation, bank: Bank
    ) -> None:
        bank.stops = [in_doubt()]
        server.enqueue(calling("look b"))
        await conversation.say("do it").task
        await (await decide(conversation, decision(None))).task
        (told,) = await results(conversation)
        assert (told.text, told.response_metadata["stoa"]["outcome"]) == (NOBODY_KNOWS, "lost")
        assert bank.effects == []


class TestCallsThatWaitForDifferentThings:
    async def test_are_asked_about_one_kind_after_the_other_and_made_together(
        self, server: ScriptedModelServer, conversation: Conversation, bank: Bank
    ) -> None:
        bank.always.ask = Ask.NEVER
        bank.stops = [asked(ACCOUNT), in_doubt(), not_approved()]
        server.enqueue(calling("pay a", "pay b", "pay c"))
        await conversation.say("do it").task
        kinds = []
        cancelled = {ACCOUNT.key: {"action": "cancel"}}
        words = [
            decision("approve"),
            decision("repeat"),
            decision("answer", replies=cancelled),
        ]
        for said in words:
            _, value = await open_question(conversation)
            kinds.append(value.get("type", "call"))
            assert bank.effects == []
            await (await decide(conversation, said)).task
        assert kinds == ["call", "in_doubt", "elicitation"]
        assert sorted(bank.effects) == ["paid a", "paid b", "paid c"]


class TestInsteadOfADecision:
    async def test_a_new_message_closes_the_call_and_nothing_is_asked_any_more(
        self, server: ScriptedModelServer, conversation: Conversation, bank: Bank
    ) -> None:
        server.enqueue(calling("pay b"))
        await conversation.say("do it").task
        await conversation.say("never mind").task
        assert (await conversation.last()).text == "You said: never mind"
        assert not (await conversation.graph.aget_state(THREAD)).next
        assert bank.sites == []

    async def test_a_run_without_input_asks_again(
        self, server: ScriptedModelServer, conversation: Conversation, bank: Bank
    ) -> None:
        server.enqueue(calling("pay b"))
        run = conversation.say("do it")
        bank.always.then = run.stop.drain
        assert await run.is_drained()
        assert await conversation.next() == ("ask",)
        await conversation.go_on().task
        await (await decide(conversation, decision("approve"))).task
        assert bank.effects == ["paid b"]
