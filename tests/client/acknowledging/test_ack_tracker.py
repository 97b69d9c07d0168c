"""Acknowledged messages, and acknowledgements that wait to be sent."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_sansio.client.acknowledging import ack_tracker as acks
from pulsar_sansio.client.acknowledging.ack_tracker import AckContent, AckTracker
from pulsar_sansio.client.delivery.ack_records import BatchAcknowledgement
from pulsar_sansio.model.errors import LocalProtocolError
from pulsar_sansio.model.message_id import MessageId


def ids(drained: list[AckContent]) -> list[tuple[int, int, int | None]]:
    return [id_ for ack in drained for id_ in ack.ids]


def id_of(record: BatchAcknowledgement, index: int) -> MessageId:
    return MessageId(*record.position, -1, index, record.size)


class TestWithoutIndexAcknowledgement:
    def test_an_entry_is_acknowledged_when_its_last_message_is(self) -> None:
        """Rules ACK-04 and ACK-05."""
        tracker = AckTracker(False)
        record = tracker.batch((1, 0), 3, None, 0)
        assert not tracker.member(record, 2)  # ACK-05: nothing to send
        assert not tracker.member(record, 0)
        assert tracker.member(record, 1)
        assert ids(tracker.drain()) == [(1, 0, None)]
        assert tracker.drain() == []

    def test_again_changes_nothing(self) -> None:
        tracker = AckTracker(False)
        record = tracker.batch((1, 0), 2, None, 0)
        for index in (0, 0, 1, 1, 0):
            tracker.member(record, index)
        assert tracker.entry((1, 1))
        assert not tracker.entry((1, 1))  # ACK-01
        assert ids(tracker.drain()) == [(1, 0, None), (1, 1, None)]
        assert not tracker.member(record, 1)

    def test_ids_go_out_in_order(self) -> None:
        tracker = AckTracker(False)
        for position in [(2, 0), (1, 7), (1, 9), (1, 8)]:
            tracker.entry(position)
        assert ids(tracker.drain()) == [(1, 7, None), (1, 8, None), (1, 9, None), (2, 0, None)]  # ACK-10

    def test_all_deliveries_count_together(self) -> None:
        tracker = AckTracker(False)
        before = tracker.batch((1, 0), 3, None, 0)
        tracker.member(before, 0)
        again = tracker.batch((1, 0), 3, None, 0)
        assert again.open_bits == 0b110
        assert not tracker.member(again, 2)
        assert tracker.member(before, 1)
        assert ids(tracker.drain()) == [(1, 0, None)]

    def test_another_batch_in_its_place_counts_for_itself(self) -> None:
        tracker = AckTracker(False)
        tracker.member(tracker.batch((1, 0), 3, None, 0), 0)
        assert tracker.batch((1, 0), 3, None, 1).open_bits == 0b111
        tracker.member(tracker.batch((1, 0), 3, None, 1), 0)
        assert tracker.batch((1, 0), 2, None, 1).open_bits == 0b11

    def test_a_batch_that_ids_have_named_is_known_when_it_comes(self) -> None:
        tracker = AckTracker(False)
        tracker.individual(MessageId(1, 0, -1, 1, 3))
        assert tracker.batch((1, 0), 3, None, 7).open_bits == 0b101
        assert tracker.batch((1, 0), 3, None, 8).open_bits == 0b111

    def test_what_was_sent_as_a_whole_is_delivered_as_a_whole(self) -> None:
        tracker = AckTracker(False)
        record = tracker.batch((1, 0), 2, None, 0)
        tracker.member(record, 0)
        tracker.member(record, 1)
        tracker.drain()
        assert tracker.batch((1, 0), 2, None, 0).open_bits == 0b11

    def test_unless_it_was_asked_for_and_has_not_come_yet(self) -> None:
        tracker = AckTracker(False)
        record = tracker.batch((1, 0), 2, None, 0)
        tracker.member(record, 0)
        tracker.asked_for((1, 0))
        tracker.member(record, 1)
        tracker.drain()
        assert tracker.batch((1, 0), 2, None, 0).open_bits == 0
        assert tracker.entry((1, 0))
        tracker.drain()
        assert tracker.batch((1, 0), 2, None, 0).open_bits == 0b11

    def test_after_a_move_nothing_is_known(self) -> None:
        tracker = AckTracker(False)
        before = tracker.batch((1, 0), 2, None, 0)
        tracker.member(before, 0)
        tracker.moved()
        again = tracker.batch((1, 0), 2, None, 0)
        tracker.member(before, 1)
        assert again.open_bits == 0b11

    def test_a_batch_of_one(self) -> None:
        tracker = AckTracker(False)
        assert tracker.member(tracker.batch((1, 0), 1, None, 0), 0)

    def test_what_the_broker_does_not_want_delivered_need_not_be_acknowledged(self) -> None:
        tracker = AckTracker(False)
        record = tracker.batch((1, 0), 8, 0b0110, 0)
        assert not tracker.member(record, 1)
        assert tracker.member(record, 2)


class TestWithIndexAcknowledgement:
    def test_the_rest_of_the_batch_is_sent(self) -> None:
        tracker = AckTracker(True)
        record = tracker.batch((1, 0), 10, None, 0)
        assert tracker.member(record, 3)
        assert ids(tracker.drain()) == [(1, 0, 0b1111110111)]  # 1015, as on the wire

    def test_several_of_one_batch_make_one_id(self) -> None:
        tracker = AckTracker(True)
        record = tracker.batch((1, 0), 4, None, 0)
        for index in range(3):
            tracker.member(record, index)
        assert tracker.waiting == 1
        assert ids(tracker.drain()) == [(1, 0, 0b1000)]
        assert tracker.member(record, 3)
        assert ids(tracker.drain()) == [(1, 0, None)]

    def test_in_order_only_the_first_after_each_sending_is_the_trackers_business(self) -> None:
        tracker = AckTracker(True)
        record = tracker.batch((1, 0), 10, None, 0)
        assert record.checkpoint == 0
        tracker.member(record, 0)
        assert record.checkpoint == 9
        record.in_order = 4  # as the consumer counts
        assert ids(tracker.drain()) == [(1, 0, 0b1111110000)]
        assert record.checkpoint == 4

    def test_ordinary_and_index_acknowledgements_count_together(self) -> None:
        tracker = AckTracker(True)
        tracker.entry((1, 0))
        tracker.member(tracker.batch((1, 1), 3, None, 0), 0)
        assert tracker.waiting == 2  # BUG: a size trigger that only one of the kinds reaches

    def test_a_redelivery_leaves_out_what_waits_to_be_sent(self) -> None:
        tracker = AckTracker(True)
        tracker.member(tracker.batch((1, 0), 4, None, 0), 1)
        again = tracker.batch((1, 0), 4, None, 0)
        assert again.open_bits == 0b1101  # ACK-18
        tracker.member(again, 0)
        assert ids(tracker.drain()) == [(1, 0, 0b1100)]

    def test_an_entry_that_is_complete_goes_out_whole_whatever_waits_of_a_later_delivery(self) -> None:
        tracker = AckTracker(True)
        before = tracker.batch((1, 0), 2, None, 0)
        tracker.member(before, 0)
        tracker.batch((1, 0), 2, None, 0)
        assert tracker.member(before, 1)
        assert ids(tracker.drain()) == [(1, 0, None)]

    def test_after_a_redelivery_the_set_begins_with_what_was_delivered(self) -> None:
        tracker = AckTracker(True)
        record = tracker.batch((1, 0), 8, 0b11010101, 0)
        tracker.member(record, 0)
        assert ids(tracker.drain()) == [(1, 0, 0b11010100)]


class TestTwoDeliveriesOfOneBatch:
    """The broker delivers a batch again before the first delivery was dealt with: what is acknowledged of
    either counts for both."""

    def test_what_waits_of_the_first_is_sent_with_the_second(self) -> None:
        tracker = AckTracker(True)
        first = tracker.batch((1, 0), 3, None, 0)
        second = tracker.batch((1, 0), 3, None, 0)
        tracker.member(first, 0)
        tracker.member(second, 1)
        assert ids(tracker.drain()) == [(1, 0, 0b100)]

    def test_what_comes_later_of_the_first_is_sent_as_well(self) -> None:
        tracker = AckTracker(True)
        first = tracker.batch((1, 0), 4, None, 0)
        second = tracker.batch((1, 0), 4, None, 0)
        tracker.member(first, 0)
        tracker.member(second, 3)
        assert first.checkpoint == first.in_order  # the consumer does not count on by itself
        tracker.member(first, 1)
        assert ids(tracker.drain()) == [(1, 0, 0b0100)]

    def test_counting_is_not_enough_for_the_first_any_more(self) -> None:
        tracker = AckTracker(True)
        first = tracker.batch((1, 0), 4, None, 0)
        tracker.member(first, 0)
        assert first.checkpoint == 3
        tracker.batch((1, 0), 4, None, 0)
        assert first.checkpoint == first.in_order == 1
        assert tracker.member(first, 1)
        assert ids(tracker.drain()) == [(1, 0, 0b1100)]

    def test_together_they_may_be_all(self) -> None:
        tracker = AckTracker(True)
        first = tracker.batch((1, 0), 2, None, 0)
        second = tracker.batch((1, 0), 2, None, 0)
        tracker.member(first, 0)
        tracker.member(second, 1)
        assert ids(tracker.drain()) == [(1, 0, None)]

    def test_what_was_lost_of_the_first_joins_the_second(self) -> None:
        tracker = AckTracker(True)
        first = tracker.batch((1, 0), 3, None, 0)
        tracker.member(first, 0)
        (lost,) = tracker.drain()
        second = tracker.batch((1, 0), 3, None, 0)
        tracker.member(second, 2)
        tracker.put_back(lost)
        assert ids(tracker.drain()) == [(1, 0, 0b010)]


class TestById:
    def test_ids_add_up_to_the_entry(self) -> None:
        tracker = AckTracker(False)
        waits = [tracker.individual(MessageId(1, 0, -1, index, 3)) for index in (2, 0, 1)]
        assert waits == [False, False, True]

    def test_ids_and_messages_add_up(self) -> None:
        tracker = AckTracker(False)
        record = tracker.batch((1, 0), 2, None, 0)
        tracker.individual(MessageId(1, 0, -1, 1, 2))
        assert tracker.member(record, 0)

    @pytest.mark.parametrize("index_acknowledgement", [False, True])
    def test_an_id_of_an_entry_that_is_complete_already(self, index_acknowledgement: bool) -> None:
        tracker = AckTracker(index_acknowledgement)
        record = tracker.batch((1, 0), 2, None, 0)
        tracker.member(record, 0)
        assert tracker.member(record, 1)
        assert not tracker.individual(MessageId(1, 0, -1, 0, 2))
        assert ids(tracker.drain()) == [(1, 0, None)]

    def test_ids_count_for_the_last_delivery_also_where_an_earlier_one_is_complete_and_waits(self) -> None:
        tracker = AckTracker(True)
        first = tracker.batch((1, 0), 3, None, 0)
        tracker.drain()
        again = tracker.batch((1, 0), 3, None, 0)
        for index in range(3):
            tracker.member(first, index)
        tracker.individual(MessageId(1, 0, -1, 0, 3))
        tracker.individual(MessageId(1, 0, -1, 2, 3))
        tracker.drain()
        tracker.member(again, 1)
        assert again.complete

    def test_a_copy_of_the_last_message_acknowledges_its_batch_once_more(self) -> None:
        tracker = AckTracker(False)
        record = tracker.batch((1, 0), 2, None, 0)
        tracker.member(record, 0)
        assert tracker.copied(record, 1) == (record, True)
        assert ids(tracker.drain()) == [(1, 0, None)]
        assert tracker.copied(record, 1) == (record, True)
        assert ids(tracker.drain()) == [(1, 0, None)]

    def test_a_copy_counts_for_the_last_delivery(self) -> None:
        tracker = AckTracker(False)
        record = tracker.batch((1, 0), 1, None, 0)
        tracker.member(record, 0)
        tracker.drain()
        again = tracker.batch((1, 0), 1, None, 0)
        assert tracker.copied(record, 0) == (again, True)
        assert again.complete

    def test_an_id_without_index_is_the_whole_entry(self) -> None:
        tracker = AckTracker(False)
        tracker.batch((1, 0), 5, None, 0)
        assert tracker.individual(MessageId(1, 0))  # MSG-04
        assert ids(tracker.drain()) == [(1, 0, None)]

    @pytest.mark.parametrize(("index", "size", "why"), [(0, 0, "which size"), (3, 3, "has 3 messages")])
    def test_an_index_outside_of_its_batch(self, index: int, size: int, why: str) -> None:
        with pytest.raises(LocalProtocolError, match=why):
            AckTracker(False).check(MessageId(1, 0, -1, index, size))

    def test_a_delivered_batch_knows_better_than_the_id(self) -> None:
        tracker = AckTracker(False)
        tracker.batch((1, 0), 2, None, 0)
        tracker.check(MessageId(1, 0, -1, 1, 0))
        with pytest.raises(LocalProtocolError, match="has 2 messages"):
            tracker.check(MessageId(1, 0, -1, 5, 10))

    def test_open_batches_are_bounded(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(acks, "MAX_OPEN_BATCHES", 2)
        tracker = AckTracker(False)
        records = [tracker.batch((1, entry), 2, None, 0) for entry in range(3)]
        for record in records:
            tracker.member(record, 0)
        # The first is forgotten: by id its count begins again, by message it does not.
        assert tracker.forgotten == 0  # nothing of it was acknowledged then
        assert not tracker.individual(MessageId(1, 0, -1, 1, 2))
        assert tracker.individual(MessageId(1, 2, -1, 1, 2))
        assert tracker.member(records[0], 1)


class TestCumulative:
    def test_only_the_greatest_is_kept(self) -> None:
        tracker = AckTracker(False)
        assert tracker.cumulative(None, MessageId(1, 5))
        assert not tracker.cumulative(None, MessageId(1, 3))  # ACK-14
        assert tracker.cumulative(None, MessageId(2, 0))
        (ack,) = tracker.drain()
        assert ack.position is not None
        assert ack.ids == [(2, 0, None)]

    def test_what_was_sent_is_not_sent_again_on_the_same_connection(self) -> None:
        tracker = AckTracker(False)
        tracker.cumulative(None, MessageId(1, 5))
        tracker.drain()
        assert not tracker.cumulative(None, MessageId(1, 5))
        tracker.forget_sent()
        assert tracker.cumulative(None, MessageId(1, 4))

    def test_inside_a_batch_the_entry_before_it_is_acknowledged_once(self) -> None:
        tracker = AckTracker(False)
        record = tracker.batch((1, 5), 4, None, 0)
        assert tracker.cumulative(record, id_of(record, 1))
        assert ids(tracker.drain()) == [(1, 4, None)]  # ACK-06
        assert not tracker.cumulative(record, id_of(record, 2))
        assert tracker.cumulative(record, id_of(record, 3))
        assert ids(tracker.drain()) == [(1, 5, None)]

    def test_before_the_first_entry_of_a_ledger(self) -> None:
        tracker = AckTracker(False)
        record = tracker.batch((9, 0), 4, None, 0)
        tracker.cumulative(record, id_of(record, 0))
        assert ids(tracker.drain()) == [(9, -1, None)]  # seen in a recording of a reader

    def test_with_index_acknowledgement_the_rest_of_the_batch_is_sent(self) -> None:
        tracker = AckTracker(True)
        record = tracker.batch((1, 5), 10, None, 0)
        assert tracker.cumulative(record, id_of(record, 3))
        (ack,) = tracker.drain()
        assert ack.position is not None
        assert ack.ids == [(1, 5, 0b1111110000)]  # 1008, as on the wire

    def test_the_rest_of_a_batch_acknowledged_one_by_one_completes_it(self) -> None:
        tracker = AckTracker(False)
        record = tracker.batch((1, 5), 4, None, 0)
        for index in (3, 2):
            tracker.member(record, index)
        assert tracker.cumulative(record, id_of(record, 1))
        assert ids(tracker.drain()) == [(1, 5, None)]

    def test_it_goes_first_and_covers_what_is_before_it(self) -> None:
        tracker = AckTracker(True)
        for entry in (1, 2, 3, 8):
            tracker.entry((1, entry))
        tracker.member(tracker.batch((1, 4), 3, None, 0), 0)
        tracker.cumulative(None, MessageId(1, 5))
        assert ids(tracker.drain()) == [(1, 5, None), (1, 8, None)]  # ACK-10

    def test_a_partial_one_leaves_the_rest_of_its_own_batch_alone(self) -> None:
        tracker = AckTracker(True)
        record = tracker.batch((1, 5), 4, None, 0)
        tracker.member(record, 3)
        tracker.cumulative(record, id_of(record, 0))
        assert ids(tracker.drain()) == [(1, 5, 0b0110), (1, 5, 0b0110)]


class TestDuplicates:
    def test_only_what_waits_counts(self) -> None:
        tracker = AckTracker(False)
        tracker.entry((1, 0))
        assert tracker.is_duplicate((1, 0))
        assert not tracker.is_duplicate((1, 1))
        tracker.drain()
        # It may be lost on its way: then its messages must be redelivered (ACK-18).
        assert not tracker.is_duplicate((1, 0))

    def test_a_cumulative_one_covers_everything_before_it(self) -> None:
        """Rule ACK-20."""
        tracker = AckTracker(False)
        tracker.cumulative(None, MessageId(2, 3))
        assert tracker.is_duplicate((1, 900))
        assert tracker.is_duplicate((2, 3))
        assert not tracker.is_duplicate((2, 4))
        tracker.drain()
        assert not tracker.is_duplicate((2, 3))

    def test_a_partial_one_does_not_cover_its_own_entry(self) -> None:
        tracker = AckTracker(True)
        record = tracker.batch((2, 3), 4, None, 0)
        tracker.cumulative(record, id_of(record, 1))
        assert tracker.is_duplicate((2, 2))
        assert not tracker.is_duplicate((2, 3))


class TestLost:
    def test_a_lost_ack_waits_again(self) -> None:
        tracker = AckTracker(True)
        tracker.entry((1, 0))
        record = tracker.batch((1, 1), 3, None, 0)
        tracker.member(record, 0)
        (ack,) = tracker.drain()
        tracker.member(record, 2)
        tracker.put_back(ack)
        assert ids(tracker.drain()) == [(1, 0, None), (1, 1, 0b010)]

    def test_a_lost_cumulative_one_waits_again_unless_a_greater_one_does(self) -> None:
        tracker = AckTracker(False)
        tracker.cumulative(None, MessageId(1, 5))
        (lost,) = tracker.drain()
        tracker.put_back(lost)
        assert ids(tracker.drain()) == [(1, 5, None)]
        tracker.cumulative(None, MessageId(1, 6))
        tracker.put_back(lost)
        assert ids(tracker.drain()) == [(1, 6, None)]

    def test_a_lost_part_of_an_entry_that_is_whole_by_now_is_sent_as_a_whole(self) -> None:
        tracker = AckTracker(True)
        record = tracker.batch((1, 5), 2, None, 0)
        tracker.cumulative(record, id_of(record, 0))
        (lost,) = tracker.drain()
        tracker.member(record, 1)
        tracker.put_back(lost)
        assert ids(tracker.drain()) == [(1, 5, None), (1, 5, None)]

    def test_discarded(self) -> None:
        tracker = AckTracker(True)
        tracker.entry((1, 0))
        tracker.member(tracker.batch((1, 1), 3, None, 0), 0)
        tracker.cumulative(None, MessageId(0, 5))
        tracker.discard_waiting()
        assert tracker.waiting == 0
        assert tracker.drain() == []


def test_an_ack_has_at_most_a_thousand_ids() -> None:
    """Rule GAP-30."""
    tracker = AckTracker(False)
    for entry in range(2500):
        tracker.entry((1, entry))
    assert [len(ack.ids) for ack in tracker.drain()] == [1000, 1000, 500]


def test_nor_is_it_larger_than_a_frame() -> None:
    tracker = AckTracker(True)
    for entry in range(100):
        tracker.member(tracker.batch((1, entry), 100_000, None, 0), 5)
    frames = tracker.drain()
    assert sum(len(ack.ids) for ack in frames) == 100
    assert max(sum(11 * (bits or 0).bit_length() // 64 for *_, bits in ack.ids) for ack in frames) < 2**21


# --- against a model -------------------------------------------------------------------------------

SIZES = [0, 1, 2, 3, 5]
"""Entry i of ledger 1 is a batch of SIZES[i], 0: an entry of one message."""

steps = st.lists(
    st.tuples(
        st.sampled_from(["message", "id", "cumulative", "deliver", "drain", "lose"]),
        st.integers(0, len(SIZES) - 1),
        st.integers(0, 4),
    ),
    max_size=25,
)


class Model:
    """The naive way: a set of acknowledged messages for each delivery."""

    def __init__(self) -> None:
        self.acknowledged: dict[int, set[int]] = {entry: set() for entry in range(len(SIZES))}
        self.done: set[int] = set()
        """Entries of which all messages of one delivery are acknowledged, or that a cumulative one covers."""
        self.single: dict[int, set[int]] = {entry: set() for entry in range(len(SIZES))}
        """Messages acknowledged in any delivery."""

    def deliver(self, entry: int) -> None:
        self.acknowledged[entry] = set()

    def acknowledge(self, entry: int, index: int) -> None:
        self.acknowledged[entry].add(index)
        self.single[entry].add(index)
        if len(self.acknowledged[entry]) == max(SIZES[entry], 1):
            self.done.add(entry)

    def cumulative(self, entry: int, index: int) -> None:
        for earlier in range(entry):
            self.done.add(earlier)
        for member in range(index + 1):
            self.acknowledge(entry, member)


class BrokerView:
    """Return the broker's state after the ACKs."""

    def __init__(self) -> None:
        self.done: set[int] = set()
        self.open = {entry: (1 << max(size, 1)) - 1 for entry, size in enumerate(SIZES)}

    def take(self, drained: list[AckContent]) -> None:
        for ack in drained:
            for _, entry, bits in ack.ids:
                if ack.position is not None:
                    self.done.update(range(entry))
                if bits:
                    self.open[entry] &= bits
                elif entry >= 0:
                    self.open[entry] = 0
                if entry >= 0 and not self.open[entry]:
                    self.done.add(entry)


def run(index_acknowledgement: bool, moves: list[tuple[str, int, int]]) -> tuple[Model, BrokerView]:
    tracker = AckTracker(index_acknowledgement)
    records: dict[int, BatchAcknowledgement | None] = {}
    model, broker = Model(), BrokerView()

    def deliver(entry: int) -> None:
        size = SIZES[entry]
        records[entry] = tracker.batch((1, entry), size, None, 0) if size else None

    for entry in range(len(SIZES)):
        deliver(entry)
    for move, entry, number in moves:
        size = SIZES[entry]
        index = number % max(size, 1)
        record = records[entry]
        message_id = MessageId(1, entry, -1, index if size else -1, size)
        if move == "message":
            if record is None:
                tracker.entry((1, entry))
            else:
                tracker.member(record, index)
            model.acknowledge(entry, index)
        elif move == "id":
            tracker.individual(message_id)
            model.acknowledge(entry, index)
        elif move == "cumulative":
            tracker.cumulative(record, message_id)
            model.cumulative(entry, index)
        elif move == "deliver":
            if not tracker.is_duplicate((1, entry)) and not index_acknowledgement:
                deliver(entry)
                model.deliver(entry)
        elif move == "drain":
            broker.take(tracker.drain())
        else:
            for ack in tracker.drain():
                tracker.put_back(ack)
            tracker.forget_sent()
    broker.take(tracker.drain())
    return model, broker


@given(steps)
def test_the_same_entries_are_acknowledged_as_in_the_model(moves: list[tuple[str, int, int]]) -> None:
    model, broker = run(False, moves)
    assert broker.done == model.done
    for entry in set(range(len(SIZES))) - broker.done:
        assert broker.open[entry] == (1 << max(SIZES[entry], 1)) - 1  # nothing of it was told


@given(steps)
def test_with_index_acknowledgement_the_same_messages_are(moves: list[tuple[str, int, int]]) -> None:
    model, broker = run(True, moves)
    assert broker.done == model.done
    for entry in set(range(len(SIZES))) - broker.done:
        missing = {index for index in range(max(SIZES[entry], 1)) if not broker.open[entry] >> index & 1}
        assert missing == model.single[entry]


@given(st.permutations(range(6)), st.booleans(), st.sampled_from([1, 2, 3]))
def test_in_any_order_and_any_number_of_times(
    order: list[int], index_acknowledgement: bool, times: int
) -> None:
    tracker = AckTracker(index_acknowledgement)
    record = tracker.batch((1, 0), 6, None, 0)
    waits: list[bool] = []
    acknowledge: Callable[[int], bool] = lambda index: tracker.member(record, index)  # noqa: E731
    for index in order:
        waits.append(acknowledge(index))
        assert not any(acknowledge(index) for _ in range(times))
    assert waits[-1]
    assert ids(tracker.drain()) == [(1, 0, None)]
    assert record.complete
