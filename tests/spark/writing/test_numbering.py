"""The numbering of rows: names, ids, routes and cuts depend on the rows alone."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_sansio import HashingScheme, hash_key
from pulsar_spark.writing.numbering import (
    MAX_BATCH,
    MAX_ROWS,
    NO_ID,
    Cutter,
    batch_of,
    first_sequence_id,
    key_partition,
    keyless_partition,
    producer_name,
)

SIZES = st.lists(st.integers(0, 40), max_size=60)
EXTRA = st.sets(st.integers(0, 60), max_size=4)


def boundaries(
    sizes: list[int], extra: set[int], portions: list[int], max_messages: int = 7, max_bytes: int = 64
) -> set[int]:
    """The rows before which there is a cut, the rows coming in these portions."""
    cutter = Cutter(max_messages, max_bytes, set(extra))
    found: set[int] = set()
    start = 0
    for stop in [*sorted(portions), len(sizes)]:
        part = sizes[start:stop]
        found |= {start + offset for offset in cutter.cut(part)}
        start = max(start, stop)
    assert cutter.next_row == len(sizes)
    return found - {0}


def test_a_name_says_whose_rows_they_are() -> None:
    assert producer_name("spark", "6b1d", 3) == "spark-6b1d-3"


def test_ids_of_a_later_batch_are_higher_than_all_of_an_earlier_one() -> None:
    assert first_sequence_id(0) == 0
    assert first_sequence_id(4) + MAX_ROWS - 1 < first_sequence_id(5)
    assert batch_of(first_sequence_id(4) + MAX_ROWS - 1) == 4
    assert batch_of(NO_ID) < 0
    assert first_sequence_id(MAX_BATCH) + MAX_ROWS - 1 == 2**63 - 1


@pytest.mark.parametrize("batch", [-1, MAX_BATCH + 1])
def test_a_batch_that_has_no_ids_is_refused(batch: int) -> None:
    with pytest.raises(OverflowError, match=f"batch {batch}"):
        first_sequence_id(batch)


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=12), st.integers(1, 9))
def test_a_key_goes_where_the_java_client_puts_it(key: str, partitions: int) -> None:
    assert key_partition(key, partitions) == hash_key(HashingScheme.JAVA_STRING, key) % partitions


def test_rows_without_a_key_go_round() -> None:
    assert [keyless_partition(row, 3) for row in range(5)] == [0, 1, 2, 0, 1]


def test_an_entry_is_full_by_count_or_by_bytes() -> None:
    assert boundaries([1] * 10, set(), [], max_messages=4) == {4, 8}
    assert boundaries([5, 5, 5, 5], set(), [], max_bytes=11) == {2}
    assert boundaries([5, 6, 5, 6], set(), [], max_bytes=11) == {2, 4}
    assert boundaries([5, 7, 5], set(), [], max_bytes=11) == {1, 2}


def test_a_row_larger_than_an_entry_is_alone_in_one() -> None:
    assert boundaries([1, 99, 1, 1], set(), [], max_bytes=10) == {1, 2}
    assert boundaries([99, 99], set(), [], max_bytes=10) == {1, 2}


@given(SIZES, EXTRA, st.lists(st.integers(0, 60), max_size=5))
def test_portions_make_no_difference(sizes: list[int], extra: set[int], portions: list[int]) -> None:
    ends = [min(each, len(sizes)) for each in portions]
    assert boundaries(sizes, extra, ends) == boundaries(sizes, extra, [])


@given(SIZES, EXTRA)
def test_an_extra_cut_moves_no_other(sizes: list[int], extra: set[int]) -> None:
    asked = {row for row in extra if 0 < row <= len(sizes)}
    assert boundaries(sizes, extra, []) == boundaries(sizes, set(), []) | asked


@given(SIZES, EXTRA)
def test_no_entry_is_larger_than_allowed(sizes: list[int], extra: set[int]) -> None:
    cuts = sorted({0, len(sizes)} | boundaries(sizes, extra, []))
    for start, stop in pairwise(cuts):
        assert stop - start <= 7
        assert sum(sizes[start:stop]) <= 64 or stop - start == 1


@given(SIZES, EXTRA, st.integers(-1, 60))
def test_no_entry_straddles_what_the_broker_knew(sizes: list[int], earlier: set[int], known: int) -> None:
    """No entry straddles that limit, whatever extra cuts earlier attempts had and wherever the broker's
    knowledge ends."""
    cuts = sorted({0, len(sizes)} | boundaries(sizes, earlier | {known + 1}, []))
    assert not any(start <= known < stop - 1 for start, stop in pairwise(cuts))


def test_more_rows_than_there_are_ids_for_are_refused() -> None:
    cutter = Cutter(1000, 1000)
    cutter.next_row = MAX_ROWS - 1
    cutter.cut([1])
    with pytest.raises(OverflowError, match="more than"):
        cutter.cut([1])
