"""Who may have another connection, and whose goes for it."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from app.tools.pool.admission import Decision, PoolLimits, admit
from tenancy.principal import UserId

ANN, BEN, CAS = (UserId(UUID(int=n)) for n in range(1, 4))
LIMITS = PoolLimits(total=4, per_user=2)
ROOMY = PoolLimits(total=4, per_user=9)


@dataclass(frozen=True)
class Has:
    owner: UserId | None
    is_idle: bool = False
    is_closing: bool = False
    last_used: float = 0.0


ADMITTED: Decision[Has] = Decision(admitted=True)
WAIT: Decision[Has] = Decision(admitted=False)


def evict(chosen: Has) -> Decision[Has]:
    return Decision(admitted=False, evict=chosen)


class TestAdmission:
    def test_there_is_room_until_there_is_none(self) -> None:
        assert admit(ANN, [Has(BEN)] * 3, LIMITS) == ADMITTED
        assert admit(ANN, [Has(ANN), *[Has(BEN)] * 3], LIMITS) == WAIT

    def test_whoever_has_most_of_what_they_may_have_gives_up_their_own(self) -> None:
        old, new = Has(ANN, is_idle=True, last_used=1), Has(ANN, is_idle=True, last_used=2)
        assert admit(ANN, [new, old], LIMITS) == evict(old)
        assert admit(ANN, [Has(ANN), Has(ANN), Has(BEN, is_idle=True)], LIMITS) == WAIT

    def test_what_was_unused_for_longest_goes(self) -> None:
        old, new = Has(BEN, is_idle=True, last_used=1), Has(BEN, is_idle=True, last_used=2)
        assert admit(ANN, [new, old, Has(CAS), Has(CAS)], LIMITS) == evict(old)

    def test_somebodys_only_one_goes_last(self) -> None:
        only = Has(BEN, is_idle=True, last_used=1)
        one_of_two = Has(CAS, is_idle=True, last_used=2)
        assert admit(ANN, [only, one_of_two, Has(CAS), Has(ANN)], LIMITS) == evict(one_of_two)

    def test_whoever_has_none_gets_one_though_all_are_in_use(self) -> None:
        assert admit(ANN, [Has(BEN), Has(BEN), Has(CAS), Has(CAS)], LIMITS) == ADMITTED
        assert admit(BEN, [Has(BEN), *[Has(CAS)] * 3], LIMITS) == WAIT

    def test_nobody_waits_for_others_servers_that_are_slow_to_go(self) -> None:
        going = Has(BEN, is_closing=True)
        assert admit(CAS, [going, Has(BEN, is_idle=True), Has(CAS), Has(CAS)], ROOMY) == ADMITTED
        assert admit(ANN, [*[going] * 3, *[Has(CAS)] * 4], LIMITS) == ADMITTED

    def test_but_so_many_at_most_are_going_at_once(self) -> None:
        going = Has(BEN, is_closing=True)
        held = [going, going, Has(BEN, is_idle=True), Has(CAS), Has(ANN)]
        assert admit(CAS, held, LIMITS) == WAIT

    def test_whoever_has_enough_waits_for_their_own(self) -> None:
        mine = [Has(ANN, is_closing=True), Has(ANN, is_idle=True)]
        assert admit(ANN, mine, LIMITS) == WAIT

    def test_shared_ones_are_counted_in_all_only(self) -> None:
        assert admit(None, [Has(None)] * 3, LIMITS) == ADMITTED

    def test_nor_can_anybody_keep_a_shared_one_out(self) -> None:
        assert admit(None, [Has(None), *[Has(BEN)] * 3], LIMITS) == ADMITTED

    @given(
        st.lists(
            st.builds(
                Has,
                st.sampled_from([ANN, BEN, CAS, None]),
                st.booleans(),
                st.just(False),
                st.integers(0, 9).map(float),
            )
        ),
        st.sampled_from([ANN, BEN, CAS, None]),
    )
    def test_nothing_in_use_is_ever_evicted(self, held: list[Has], owner: UserId | None) -> None:
        chosen = admit(owner, held, LIMITS).evict
        assert chosen is None or chosen.is_idle
