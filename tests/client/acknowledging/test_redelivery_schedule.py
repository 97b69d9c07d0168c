"""Entries by the moment when they are to be asked for again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_sansio.client.acknowledging.redelivery_schedule import RedeliverySchedule

PLACES = st.tuples(st.integers(0, 1), st.integers(0, 4))
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), PLACES, st.integers(0, 9)),
        st.tuples(st.just("move"), PLACES, st.integers(0, 9)),
        st.tuples(st.just("discard"), PLACES, st.just(0)),
        st.tuples(st.just("through"), PLACES, st.just(0)),
        st.tuples(st.just("clear"), PLACES, st.just(0)),
        st.tuples(st.just("take"), PLACES, st.integers(0, 9)),
    ),
    max_size=30,
)


def test_the_earlier_moment_counts_and_the_last_one_where_it_moves() -> None:
    due = RedeliverySchedule()
    due.add((1, 0), 5)
    due.add((1, 0), 9)
    assert due.next() == 5
    due.add((1, 0), 3)
    assert due.next() == 3
    due.move((1, 0), 7)  # UNACK-03
    assert due.next() == 7
    assert due.take(6) == []
    assert due.take(7) == [(1, 0)]
    assert due.next() is None


def test_the_view_of_the_places_stays_the_same() -> None:
    due = RedeliverySchedule()
    positions = due.positions
    due.add((1, 0), 5)
    assert list(positions) == [(1, 0)]
    due.clear()
    assert not positions


@given(STEPS)
def test_as_a_plain_dict_would(steps: list[tuple[str, tuple[int, int], int]]) -> None:
    """Rule UNACK-06."""
    due = RedeliverySchedule()
    model: dict[tuple[int, int], int] = {}
    for step, position, when in steps:
        match step:
            case "add":
                due.add(position, when)
                model[position] = min(when, model.get(position, when))
            case "move":
                due.move(position, when)
                model[position] = when
            case "discard":
                due.discard(position)
                model.pop(position, None)
            case "through":
                due.discard_through(position)
                model = {each: at for each, at in model.items() if each > position}
            case "clear":
                due.clear()
                model.clear()
            case _:
                taken = due.take(when)
                assert sorted(taken) == sorted(each for each, at in model.items() if at <= when)
                assert [model[each] for each in taken] == sorted(model[each] for each in taken)
                model = {each: at for each, at in model.items() if at > when}
        assert due.next() == min(model.values(), default=None)
        assert len(due) == len(model)
        assert set(due.positions) == set(model)


@pytest.mark.parametrize("count", [1000])
def test_one_moment_is_kept_once_however_often_it_empties(count: int) -> None:
    due = RedeliverySchedule()
    for _ in range(count):
        due.add((1, 0), 5)
        due.discard((1, 0))
    assert len(due._moments) == 1
