"""Ranges of integers, compared with a set."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from pulsar_sansio.broker.storage.ranges import Ranges


@given(st.lists(st.integers(0, 30)), st.integers(-1, 31))
def test_ranges_are_a_set(numbers: list[int], upto: int) -> None:
    ranges, model = Ranges(), set[int]()
    for number in numbers:
        assert ranges.add(number) == (number not in model)
        model.add(number)
    ranges.remove_up_to(upto)
    model = {number for number in model if number > upto}
    assert {number for first, last in ranges for number in range(first, last + 1)} == model
    assert ranges.count == len(model)
    pairs = list(ranges)
    assert all(last + 1 < first for (_, last), (first, _) in itertools.pairwise(pairs)), "never adjacent"
    for number in range(32):
        assert (number in ranges) == (number in model)
        assert ranges.next_outside(number) == next(each for each in range(number, 99) if each not in model)
