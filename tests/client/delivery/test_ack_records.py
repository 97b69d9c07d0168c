"""`BatchAcknowledgement`, compared with the set of a batch's unacknowledged messages."""

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_sansio.client.delivery.ack_records import (
    OUT_OF_ORDER,
    BatchAcknowledgement,
    Deliveries,
    EntryAcknowledgement,
)

SIZE = 5
ALL = (1 << SIZE) - 1


class Tracker:
    index_acknowledgement = False
    transactions = False


def record(open_bits: int = ALL, *, index: bool = False, stamp: int | None = 7) -> BatchAcknowledgement:
    tracker = Tracker()
    tracker.index_acknowledgement = index
    return BatchAcknowledgement(Deliveries(cast(Any, tracker)), (1, 2), SIZE, open_bits, stamp)


def test_in_order_a_count_is_enough() -> None:
    batch = record()
    assert not batch.begun
    for index in range(SIZE):
        assert batch.acknowledge(index)
        assert not batch.acknowledge(index)
        assert batch.in_order == index + 1
        assert batch.begun
    assert batch.complete


def test_out_of_order_bits_are_kept() -> None:
    batch = record()
    assert batch.acknowledge(1)
    assert batch.in_order == OUT_OF_ORDER
    assert batch.open_bits == 0b11101
    assert not batch.acknowledge(1)
    batch.acknowledge_through(2)
    assert batch.open_bits == 0b11000
    assert batch.begun
    batch.acknowledge_through(99)
    assert batch.complete


def test_a_batch_that_comes_in_part_begins_with_the_open_messages() -> None:
    batch = record(0b01100)
    assert batch.in_order == OUT_OF_ORDER
    assert batch.begun
    assert not batch.acknowledge(0)
    assert batch.acknowledge(2)
    assert batch.open_bits == 0b01000


def test_the_tracker_is_needed_at_the_last_message_or_with_index_acknowledgement_at_the_first() -> None:
    assert record().checkpoint == SIZE - 1
    assert record(index=True).checkpoint == 0
    batch = record(index=True)
    batch.count_alone()
    assert batch.checkpoint == SIZE - 1
    batch.past()
    batch.count_alone()
    assert batch.checkpoint == batch.in_order


def test_refused_messages_are_open_and_not_unsettled() -> None:
    batch = record()
    assert batch.refused == 0
    assert batch.refuse(0b00110)
    assert not batch.refuse(0b00110)
    assert batch.refuse(0b01110)
    assert (batch.refused, batch.unsettled) == (0b01110, 0b10001)
    batch.acknowledge(1)
    assert (batch.refused, batch.unsettled) == (0b01100, 0b10001)
    batch.acknowledge_through(SIZE)
    assert not batch.refuse(ALL)


def test_a_redelivery_clears_refusals_and_takes_the_brokers_bits() -> None:
    batch = record()
    batch.refuse(0b00001)
    batch.past().asked = True
    batch.delivered_again(None)
    past = batch.past()
    assert (past.count, past.refused, past.asked) == (1, 0, False)
    assert batch.in_order == 0
    batch.delivered_again(0b11100)
    assert batch.open_bits == 0b11100
    batch.delivered_again(ALL)
    assert batch.open_bits == 0b11100, "the broker may not know yet what was acknowledged"
    assert batch.past().count == 3


def test_after_a_redelivery_every_acknowledgement_needs_the_tracker() -> None:
    batch = record()
    batch.acknowledge(0)
    batch.delivered_again(None)
    assert batch.checkpoint == 1
    batch.acknowledge_through(2)
    assert batch.checkpoint == 3


@pytest.mark.parametrize(
    ("size", "stamp", "own", "same"),
    [(SIZE, 7, 7, True), (SIZE, 8, 7, False), (SIZE + 1, 7, 7, False), (SIZE, 8, None, True)],
)
def test_another_batch_at_its_position_is_told_apart(
    size: int, stamp: int, own: int | None, same: bool
) -> None:
    assert record(stamp=own).is_of(size, stamp) is same


def test_what_another_record_holds_unsent_is_taken_over() -> None:
    batch, other = record(), record()
    batch.acknowledge(4)
    other.acknowledge(0)
    batch.take_over(other)
    assert batch.open_bits == 0b01110
    assert other.checkpoint == other.in_order
    longer = BatchAcknowledgement(other.deliveries, (1, 2), SIZE + 1, (1 << SIZE + 1) - 1, 7)
    longer.acknowledge(1)
    batch.take_over(longer)
    assert batch.open_bits == 0b01110, "a batch of another size has other messages"


def test_an_entry_of_one_message_needs_no_count() -> None:
    entry = EntryAcknowledgement(Deliveries(cast(Any, Tracker())), 3)
    assert (entry.era, entry.in_order, entry.checkpoint) == (3, OUT_OF_ORDER, OUT_OF_ORDER)
    assert not entry.deliveries.left


STEPS = st.lists(st.tuples(st.sampled_from("art"), st.integers(0, SIZE + 1)), max_size=12)


@given(st.integers(0, ALL), STEPS)
def test_it_always_equals_the_set_of_open_messages(open_bits: int, steps: list[tuple[str, int]]) -> None:
    batch = record(open_bits)
    left = {index for index in range(SIZE) if open_bits >> index & 1}
    refused: set[int] = set()
    for step, index in steps:
        if step == "a" and index < SIZE:
            assert batch.acknowledge(index) == (index in left)
            left.discard(index)
        elif step == "t":
            batch.acknowledge_through(index)
            left = {each for each in left if each > index}
        elif step == "r" and index < SIZE:
            assert batch.refuse(1 << index) == (index in left and index not in refused)
            refused |= {index} & left
        refused &= left
        assert batch.open_bits == sum(1 << each for each in left)
        assert batch.refused == sum(1 << each for each in refused)
        assert batch.complete == (not left)
