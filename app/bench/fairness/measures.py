"""How fair it was. Pure: from what is written down of the calls to numbers."""

from __future__ import annotations

from collections import deque
from itertools import combinations, pairwise
from typing import TYPE_CHECKING

from app.bench.fairness.people import HIGHEST_COST, MOST_SEATS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from app.bench.fairness.ledger import Call, Ledger
    from app.bench.fairness.people import Person

_ASKED, _GRANTED, _ENDED = 1, 2, 0
"""What happens at the same moment happens in this order: ended, asked, granted."""


def events(calls: Sequence[Call]) -> list[tuple[float, int, Call]]:
    """Everything that happened to calls, in order."""
    happened = [(call.asked, _ASKED, call) for call in calls]
    happened += [(call.granted, _GRANTED, call) for call in calls if call.granted is not None]
    happened += [(call.ended, _ENDED, call) for call in calls if call.ended is not None]
    return sorted(happened, key=lambda each: each[:2])


def bound(people: Sequence[Person]) -> float:
    """What no two people's use may differ by while both could have been served."""
    return max(
        3 * HIGHEST_COST * (MOST_SEATS / one.weight + MOST_SEATS / other.weight)
        for one, other in combinations(people, 2)
    )


def largest_difference(people: Sequence[Person], calls: Sequence[Call], most_seats: int) -> float:
    """How far two people's completed cost by weight grew apart, at most, while both were eligible.

    That is: over any interval in which both had work waiting, and fewer seats than they may have.
    """
    happened = events(calls)
    return max(
        _largest_of_pair(happened, (one, other), people, most_seats)
        for one, other in combinations(range(len(people)), 2)
    )


def _largest_of_pair(
    happened: Sequence[tuple[float, int, Call]],
    pair: tuple[int, int],
    people: Sequence[Person],
    most_seats: int,
) -> float:
    waiting = dict.fromkeys(pair, 0)
    running = dict.fromkeys(pair, 0)
    lead = lowest = highest = largest = 0.0
    together = False
    for _, what, call in happened:
        if call.person not in pair:
            continue
        if what == _ASKED:
            waiting[call.person] += 1
        elif what == _GRANTED:
            waiting[call.person] -= 1
            running[call.person] += 1
        else:
            running[call.person] -= 1
            gain = call.cost / people[call.person].weight
            lead += gain if call.person == pair[0] else -gain
        # What ends in the moment in which an interval begins is not of it.
        if not all(waiting[each] and running[each] < most_seats for each in pair):
            together = False
        elif not together:
            together = True
            lowest = highest = lead
        else:
            lowest, highest = min(lowest, lead), max(highest, lead)
            largest = max(largest, highest - lowest)
    return largest


def served(calls: Sequence[Call], person: int, begin: float, end: float) -> float:
    """What a person's calls cost in some time: a call's cost is spread over its length."""
    cost = 0.0
    for call in calls:
        if call.person == person and call.granted is not None and call.ended is not None:
            within = min(call.ended, end) - max(call.granted, begin)
            if within > 0:
                cost += call.cost * within / (call.ended - call.granted)
    return cost


def windows(ledger: Ledger, seconds: float) -> Iterator[tuple[float, float]]:
    """The measured time in windows of a length, or as one if it is shorter."""
    number = max(1, int(ledger.seconds / seconds))
    length = min(seconds, ledger.seconds)
    return pairwise(ledger.began + n * length for n in range(number + 1))


def jain(people: Sequence[Person], ledger: Ledger, seconds: float) -> list[float]:
    """Jain's index of what people were served by weight, for each window of so many seconds.

    1: all the same; 1/n: one has everything.
    """
    found = []
    for begin, end in windows(ledger, seconds):
        shares = [
            served(ledger.calls, number, begin, end) / person.weight
            for number, person in enumerate(people)
        ]
        squares = sum(share**2 for share in shares)
        found.append(sum(shares) ** 2 / (len(shares) * squares) if squares else 1.0)
    return found


def waits(ledger: Ledger, person: int) -> list[float]:
    """How long a person's calls waited that waited in the measured time; until its end at most."""
    until = [
        (call, ledger.ended if call.granted is None else min(call.granted, ledger.ended))
        for call in ledger.calls
        if call.person == person and call.asked <= ledger.ended
    ]
    return [end - call.asked for call, end in until if end >= ledger.began]


def lengths(ledger: Ledger) -> list[float]:
    """How long calls had their seats."""
    return [
        call.ended - call.granted
        for call in ledger.calls
        if call.granted is not None and call.ended is not None and call.ended > ledger.began
    ]


def idle_times(ledger: Ledger, people: int, seats: int, most_seats: int) -> list[tuple[float, int]]:
    """For how long so many seats were used by nobody while somebody was eligible."""
    waiting, running = [0] * people, [0] * people
    since, unused = 0.0, 0
    found = []
    for at, what, call in events(ledger.calls):
        if what == _ASKED:
            waiting[call.person] += 1
        elif what == _GRANTED:
            waiting[call.person] -= 1
            running[call.person] += 1
        else:
            running[call.person] -= 1
        if unused and ledger.began <= since < at <= ledger.ended:
            found.append((at - since, unused))
        is_eligible = any(waiting[each] and running[each] < most_seats for each in range(people))
        since, unused = at, (seats - sum(running)) * is_eligible
    return found


def handovers(ledger: Ledger, people: int, most_seats: int) -> list[float]:
    """How long each seat was unused, that somebody was eligible for, until it was used again."""
    freed: deque[float] = deque()
    waiting, running = [0] * people, [0] * people
    found = []
    for at, what, call in events(ledger.calls):
        if what == _ASKED:
            waiting[call.person] += 1
        elif what == _GRANTED:
            waiting[call.person] -= 1
            running[call.person] += 1
            if freed and (since := freed.popleft()) >= ledger.began:
                found.append(at - since)
        else:
            running[call.person] -= 1
            freed.append(at)
        if not any(waiting[each] and running[each] < most_seats for each in range(people)):
            freed.clear()
    return found
