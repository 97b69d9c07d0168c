"""Deadlines: everything once, at its time, in the order of (time, setting)."""

from functools import partial
from gc import collect
from weakref import ref

from hypothesis import given
from hypothesis import strategies as st

from pulsar_sansio.core.deadlines import FEW, Deadlines


def test_nothing_is_due_where_nothing_is_set() -> None:
    deadlines = Deadlines()
    deadlines.slot(lambda: None)
    assert deadlines.next() is None
    deadlines.run(10)


def test_runs_by_time_and_by_order_of_setting_within_it() -> None:
    """Rule TIMER-01."""
    done: list[str] = []
    deadlines = Deadlines()
    a, b, c = (deadlines.slot(partial(done.append, name)) for name in "abc")
    c.set(5)
    a.set(7)
    b.set(5)
    assert deadlines.next() == 5
    deadlines.run(4)
    assert done == []
    deadlines.run(7)
    assert done == ["c", "b", "a"]
    assert deadlines.next() is None
    deadlines.run(9)
    assert done == ["c", "b", "a"]


def test_a_slot_is_due_only_when_it_was_set_for_last() -> None:
    done: list[int] = []
    deadlines = Deadlines()
    slot = deadlines.slot(lambda: done.append(1))
    slot.set(5)
    slot.set(9)
    assert slot.when == deadlines.next() == 9
    deadlines.run(8)
    assert done == []
    slot.set(3)
    assert deadlines.next() == 3
    deadlines.run(3)
    assert done == [1]
    assert slot.when is None
    deadlines.run(20)
    assert done == [1]


def test_a_cleared_slot_is_not_due() -> None:
    """Rule TIMER-16."""
    deadlines = Deadlines()
    slot = deadlines.slot(lambda: None)
    slot.set(5)
    slot.clear()
    assert deadlines.next() is None


def test_cleared_timers_far_ahead_are_forgotten() -> None:
    """A nearer timer never lets their entries surface."""
    deadlines = Deadlines()
    near = deadlines.slot(lambda: None)
    near.set(1)

    class Owner:
        def act(self) -> None: ...

    owners = []
    for number in range(5 * FEW):
        owner = Owner()
        owners.append(ref(owner))
        slot = deadlines.slot(owner.act)
        slot.set(10**18 + number)
        slot.clear()
    del owner, slot
    collect()
    assert sum(owner() is not None for owner in owners) <= 2 * FEW
    assert deadlines.next() == 1


def test_a_timer_whose_entry_was_removed_can_be_set_again() -> None:
    deadlines, done = Deadlines(), []
    far = deadlines.slot(lambda: done.append("far"))
    far.set(100)
    near = deadlines.slot(lambda: done.append("near"))
    near.set(50)
    for _ in range(2 * FEW):
        far.clear()
    far.set(70)
    deadlines.run(60)
    deadlines.run(100)
    assert done == ["near", "far"]


def test_an_action_that_sets_itself_for_now_waits_for_the_next_call() -> None:
    done: list[int] = []
    deadlines = Deadlines()

    def again() -> None:
        done.append(1)
        slot.set(5)

    slot = deadlines.slot(again)
    slot.set(5)
    deadlines.run(6)
    assert done == [1]
    assert deadlines.next() == 5
    deadlines.run(6)
    assert done == [1, 1]


def test_an_action_may_clear_and_set_others() -> None:
    done: list[str] = []
    deadlines = Deadlines()

    def first() -> None:
        done.append("first")
        second.clear()
        third.set(6)

    slot = deadlines.slot(first)
    second = deadlines.slot(lambda: done.append("second"))
    third = deadlines.slot(lambda: done.append("third"))
    slot.set(5)
    second.set(5)
    deadlines.run(7)
    assert done == ["first"]
    deadlines.run(7)
    assert done == ["first", "third"]


@given(st.lists(st.tuples(st.integers(0, 4), st.none() | st.integers(0, 50), st.booleans()), max_size=60))
def test_like_a_sorted_list(steps: list[tuple[int, int | None, bool]]) -> None:
    deadlines = Deadlines()
    done: list[int] = []
    slots = [deadlines.slot(partial(done.append, number)) for number in range(5)]
    model: dict[int, tuple[int, int]] = {}
    now = 0
    for order, (number, when, run) in enumerate(steps):
        if when is None:
            slots[number].clear()
            model.pop(number, None)
        else:
            slots[number].set(when)
            model[number] = (when, order)
        assert deadlines.next() == min((moment for moment, _ in model.values()), default=None)
        if run:
            now += 7
            due = sorted((key for key in model if model[key][0] <= now), key=lambda key: model[key])
            done.clear()
            deadlines.run(now)
            assert done == due
            for key in due:
                del model[key]
