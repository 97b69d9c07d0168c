"""The clock: events run in the order of their moments, and at one moment in that of their planning."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_sim.engine.clock import Clock


def planned(*moments: int, start: int = 100) -> tuple[Clock, list[tuple[int, int]]]:
    """A clock with one event for each moment; each notes the present time and its place in the plan."""
    clock = Clock(start)
    ran: list[tuple[int, int]] = []
    for place, moment in enumerate(moments):
        clock.at(moment, lambda place: ran.append((clock.now, place)), place)
    return clock, ran


@given(st.lists(st.integers(0, 300), max_size=20))
def test_events_run_in_the_order_of_their_moments_and_of_their_planning(moments: list[int]) -> None:
    clock, ran = planned(*moments)
    while clock.step():
        pass
    due = sorted((max(moment, 100), place) for place, moment in enumerate(moments))
    assert ran == due
    assert clock.events == len(moments)


def test_an_event_may_plan_others_for_the_same_moment() -> None:
    clock, ran = planned(110, 110)

    def plan() -> None:
        for place in (7, 8):
            clock.after(0, lambda place: ran.append((clock.now, place)), place)

    clock.at(110, plan)
    clock.run_until(110, 100)
    assert ran == [(110, 0), (110, 1), (110, 7), (110, 8)]
    assert clock.next_time() is None


def test_a_delay_counts_from_the_present() -> None:
    clock, ran = planned(130)
    clock.step()
    clock.after(5, lambda: ran.append((clock.now, 9)))
    assert clock.next_time() == 135
    clock.step()
    assert ran == [(130, 0), (135, 9)]
    assert clock.elapsed == 35


@pytest.mark.parametrize(
    ("moment", "ran", "now"), [(99, [], 100), (109, [], 109), (110, [110], 110), (125, [110, 120], 125)]
)
def test_the_clock_runs_up_to_a_moment_and_stands_there(moment: int, ran: list[int], now: int) -> None:
    clock, done = planned(110, 120, 130)
    clock.run_until(moment, 100)
    assert [at for at, _ in done] == ran
    assert clock.now == now


def test_a_world_without_end_is_stopped_after_so_many_events() -> None:
    clock = Clock(0)

    def again() -> None:
        clock.after(1, again)

    clock.at(0, again)
    clock.run_until(1_000, 10)
    assert (clock.events, clock.now) == (11, 10), "the clock stands at the last event"


def test_nothing_planned() -> None:
    clock = Clock(7)
    assert clock.next_time() is None
    assert not clock.step()
    assert clock.now == 7
