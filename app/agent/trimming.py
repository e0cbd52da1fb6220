"""Which part of a long conversation a model is given: the newest that fits, in whole turns.

A turn is what a person said and everything up to their next words. Pure; the messages are in the
order of ``history.answered``: the results of tool calls follow the message that makes the calls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage

Counter = Callable[[list[BaseMessage]], int]
Group = list[BaseMessage]


def newest_turns(messages: Sequence[BaseMessage], tokens: int, count: Counter) -> list[BaseMessage]:
    """The newest turns that fit.

    Where not even the last one does, what the person said in it and the newest of what followed:
    never the results of tool calls without the calls. Something is always left, though it fill the
    window by itself: the model's server will say so.
    """
    turns = _split(messages, lambda message: isinstance(message, HumanMessage))
    if not turns:
        return []
    kept = _newest(turns, tokens, count)
    if not kept:
        return _shortened(turns[-1], tokens, count)
    if len(kept) > 1 and not isinstance(kept[0][0], HumanMessage):
        kept = kept[1:]  # what stood before anybody's first words
    return _flat(kept)


def _shortened(turn: Group, tokens: int, count: Counter) -> list[BaseMessage]:
    question = turn[:1] if isinstance(turn[0], HumanMessage) else []
    exchanges = _split(turn[len(question) :], lambda message: not isinstance(message, ToolMessage))
    kept = _newest(exchanges, tokens - count(question), count) or exchanges[-1:]
    return [*question, *_flat(kept)]


def _newest(groups: Sequence[Group], tokens: int, count: Counter) -> list[Group]:
    kept: list[Group] = []
    for group in reversed(groups):
        tokens -= count(group)
        if tokens < 0:
            break
        kept.insert(0, group)
    return kept


def _split(
    messages: Sequence[BaseMessage], begins_group: Callable[[BaseMessage], bool]
) -> list[Group]:
    groups: list[Group] = []
    for message in messages:
        if begins_group(message) or not groups:
            groups.append([])
        groups[-1].append(message)
    return groups


def _flat(groups: Sequence[Group]) -> list[BaseMessage]:
    return [message for group in groups for message in group]
