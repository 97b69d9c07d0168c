"""Messages that come in chunks (recording java-chunking)."""

import pickle
import zlib
from collections.abc import Callable
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsar_sansio.client.counters import ArrivalCounters
from pulsar_sansio.model.config import SubscriptionType
from pulsar_sansio.model.message_id import MessageId
from pulsar_sansio.wire import proto
from tests.client.broker_script import MILLISECOND, SECOND, ConsumerScript, entry_bytes

SHARED = SubscriptionType.SHARED


class Chunked(ConsumerScript):
    def __init__(self, **spec: Any) -> None:
        super().__init__(acknowledgement_group_time=0.0, **spec)
        self.accept()
        self.frames()
        self.outputs()

    def chunk(self, entry: int, number: int, parts: list[bytes], uuid: str = "p-0", **fields: Any) -> None:
        """MESSAGE with chunk `number` of a message."""
        fields = {
            "uuid": uuid,
            "num_chunks_from_msg": len(parts),
            "total_chunk_msg_size": sum(map(len, parts)),
            "chunk_id": number,
            **fields,
        }
        self.deliver(entry, entry_bytes(parts[number], **fields))

    def acknowledged(self) -> list[tuple[int, int]]:
        """Places in the ACKs since the last time."""
        acks = [command for name, command in self.frames() if name == "ACK"]
        return [(ledger, entry) for ack in acks for ledger, entry, _ in ack.message_ids]

    @property
    def counters(self) -> ArrivalCounters:
        return self.client.arrival_counters(self.consumer)

    @property
    def permits(self) -> int:
        """Granted, or on their way back; one for each message that is in the queue is missing."""
        permits = self.machine.permits
        return permits.at_broker + permits.unreported


PARTS = [b"abc", b"def", b"g"]


def test_the_last_chunk_makes_the_message() -> None:
    s = Chunked()
    for number in range(3):
        assert s.receive() is None
        s.chunk(10 + number, number, PARTS, partition_key="k")
    message = s.receive()
    assert (message.data, message.key) == (b"abcdefg", "k")
    assert message.message_id == MessageId(1, 12)
    assert message.message_id.first_chunk == (1, 10)
    assert pickle.loads(pickle.dumps(message)).message_id.first_chunk == (1, 10)


@pytest.mark.parametrize("by_id", [False, True])
def test_acknowledging_it_is_acknowledging_all_its_chunks(by_id: bool) -> None:
    s = Chunked()
    s.chunk(10, 0, PARTS)
    s.message(11)  # a message of another producer, in between
    s.chunk(12, 1, PARTS)
    s.chunk(13, 2, PARTS)
    s.receive()
    message = s.receive()
    s.acknowledge(message.message_id if by_id else message)
    assert s.acknowledged() == [(1, 10), (1, 12), (1, 13)]
    s.acknowledge(message)


def test_up_to_it_is_up_to_its_last_chunk() -> None:
    s = Chunked()
    for number in range(3):
        s.chunk(number, number, PARTS)
    s.acknowledge_cumulative(s.receive())
    assert s.acknowledged() == [(1, 2)]


def test_giving_it_back_asks_for_all_its_chunks_and_acknowledging_takes_that_back() -> None:
    s = Chunked(subscription_type=SHARED, negative_acknowledgement_delay=0.1)
    for number in range(3):
        s.chunk(number, number, PARTS)
    message = s.receive()
    s.negative_acknowledge(message)
    s.pass_time(200 * MILLISECOND)
    (redeliver,) = s.expect("REDELIVER_UNACKNOWLEDGED_MESSAGES")
    assert [each.entryId for each in redeliver.message_ids] == [0, 1, 2]
    s.negative_acknowledge(message)
    s.acknowledge(message)
    s.expect("ACK")
    s.pass_time(SECOND)
    s.expect()


@pytest.mark.parametrize("by_id", [False, True])
def test_giving_it_back_when_it_is_acknowledged_asks_for_nothing(by_id: bool) -> None:
    """An older delivery is not requested: its last chunk alone makes no message (REDEL-02, ACK-18)."""
    s = Chunked(subscription_type=SHARED, negative_acknowledgement_delay=0.1)
    for number in range(3):
        s.chunk(number, number, PARTS)
    message = s.receive()
    s.acknowledge(message)
    s.pass_time(SECOND)
    s.expect("ACK")
    s.negative_acknowledge(message.message_id if by_id else message)
    s.pass_time(SECOND)
    s.expect()


def test_it_costs_one_permit() -> None:
    s = Chunked(receiver_queue_size=100)
    for number in range(3):
        s.chunk(number, number, PARTS)
    assert s.permits == 99
    s.receive()
    assert s.permits == 100


def test_it_is_decompressed_as_a_whole() -> None:
    s = Chunked()
    data = bytes(Random(1).choices(b"ab", k=10_000))
    packed = zlib.compress(data)
    parts = [packed[:500], packed[500:1000], packed[1000:]]
    for number in range(3):
        s.chunk(number, number, parts, compression=proto.ZLIB, uncompressed_size=len(data))
    assert s.receive().data == data


def test_what_cannot_be_decompressed_is_told_of_every_chunk() -> None:
    s = Chunked()
    for number in range(3):
        s.chunk(number, number, PARTS, compression=proto.ZLIB, uncompressed_size=7)
    acks = s.expect("ACK", "ACK", "ACK")
    assert [(ack.validation_error, ack.message_ids[0][1]) for ack in acks] == [
        (proto.CommandAck.ValidationError.DecompressionError, entry) for entry in range(3)
    ]
    assert s.permits == 1000


def test_chunks_of_two_producers_do_not_mix() -> None:
    s = Chunked()
    ones, twos = [b"11", b"11"], [b"22", b"22"]
    s.chunk(0, 0, ones, "same", producer_name="one")
    s.chunk(1, 0, twos, "same", producer_name="other")
    s.chunk(2, 1, ones, "same", producer_name="one")
    s.chunk(3, 1, twos, "same", producer_name="other")
    assert [message.data for message in s.take()] == [b"1111", b"2222"]


def test_a_producer_that_sent_everything_again() -> None:
    """A reconnect between the chunks: what came of the first attempt is acknowledged with the message."""
    s = Chunked()
    s.chunk(0, 0, PARTS)
    s.chunk(1, 1, PARTS)
    for number in range(3):
        s.chunk(2 + number, number, PARTS)
    message = s.receive()
    assert message.data == b"abcdefg"
    s.acknowledge(message)
    assert sorted(s.acknowledged()) == [(1, entry) for entry in range(5)]
    assert s.counters.chunk_duplicates == 2


def test_a_producer_that_sent_one_chunk_again() -> None:
    s = Chunked()
    s.chunk(0, 0, PARTS)
    s.chunk(1, 1, PARTS)
    s.chunk(2, 1, PARTS)
    assert s.acknowledged() == [(1, 2)]
    s.chunk(1, 1, PARTS)  # the same entry: it is part of the message
    assert s.acknowledged() == []
    s.chunk(3, 2, PARTS)
    assert s.receive().data == b"abcdefg"
    assert s.permits == 1000
    assert s.counters.chunk_duplicates == 2


def test_the_same_entries_once_more_begin_anew_and_acknowledge_nothing() -> None:
    s = Chunked(subscription_type=SHARED)
    s.chunk(0, 0, PARTS)
    s.chunk(1, 1, PARTS)
    s.redeliver()
    for number in range(3):
        s.chunk(number, number, PARTS)
    assert s.receive().data == b"abcdefg"
    assert s.acknowledged() == []


def test_chunks_of_nothing_in_front_of_what_is_redelivered_are_acknowledged_with_it() -> None:
    """A producer began its ids anew; what is left of its earlier message was redelivered and will not be once
    more."""
    s = Chunked(subscription_type=SHARED)
    for _ in range(2):
        for entry, number in (6, 1), (7, 2):
            s.chunk(entry, number, [b"an", b"earlier", b"one"])
        s.chunk(15, 0, PARTS)
        s.redeliver()
    for entry, number in (6, 1), (7, 2):
        s.chunk(entry, number, [b"an", b"earlier", b"one"])
    for number in range(3):
        s.chunk(15 + number, number, PARTS)
    assert s.receive().data == b"abcdefg"
    assert sorted(s.acknowledged()) == [(1, 6), (1, 7)]


def test_a_chunk_without_those_before_it_waits_for_its_time_and_is_acknowledged_then() -> None:
    """A subscription that began in the middle of a message would else have a backlog for ever."""
    s = Chunked(incomplete_chunked_message_timeout=10.0)
    s.chunk(5, 1, PARTS)
    s.chunk(6, 2, PARTS)
    assert s.acknowledged() == []
    s.pass_time(9 * SECOND)
    assert s.acknowledged() == []
    s.pass_time(SECOND)
    assert s.acknowledged() == [(1, 5), (1, 6)]
    assert (s.counters.chunk_orphans, s.counters.chunks_expired) == (2, 2)
    assert s.counters.last_orphan == s.counters.last_chunk == (1, 6)
    assert s.permits == 1000


def test_the_first_chunk_makes_it_whole_again() -> None:
    s = Chunked(incomplete_chunked_message_timeout=10.0)
    s.chunk(5, 1, PARTS)
    for number in range(3):
        s.chunk(4 + number, number, PARTS)
    assert s.receive().data == b"abcdefg"
    s.pass_time(20 * SECOND)
    assert s.acknowledged() == []


def test_a_reconnect_begins_anew_and_nothing_is_acknowledged_that_may_be_with_another_consumer() -> None:
    s = Chunked(subscription_type=SHARED, incomplete_chunked_message_timeout=2.0)
    s.chunk(0, 0, PARTS)
    s.chunk(1, 1, PARTS)
    s.reconnect()
    s.frames()
    s.pass_time(10 * SECOND)
    assert s.acknowledged() == []
    s.chunk(2, 2, PARTS)
    assert s.receive() is None


def test_without_a_durable_cursor_the_chunks_before_the_last_message_stay() -> None:
    s = Chunked(durable=False)
    s.chunk(0, 0, PARTS)
    s.message(1, b"between")
    assert s.receive().data == b"between"
    s.reconnect()
    s.chunk(2, 1, PARTS)
    s.chunk(3, 2, PARTS)
    assert s.receive().data == b"abcdefg"


def test_without_a_durable_cursor_the_chunk_in_front_of_what_waits_stays() -> None:
    s = Chunked(durable=False)
    s.chunk(0, 0, PARTS)
    s.message(1, b"between")
    start = s.reconnect().start_message_id
    assert (start.ledgerId, start.entryId) == (1, 0)
    s.message(1, b"between")
    s.chunk(2, 1, PARTS)
    s.chunk(3, 2, PARTS)
    assert [message.data for message in s.take()] == [b"between", b"abcdefg"]


@pytest.mark.parametrize("acknowledge", [False, True])
def test_the_oldest_goes_when_too_many_are_incomplete(acknowledge: bool) -> None:
    s = Chunked(max_pending_chunked_messages=2, acknowledge_dropped_chunks=acknowledge)
    for entry, uuid in enumerate("ABC"):
        s.chunk(entry, 0, PARTS, uuid)
    assert s.acknowledged() == ([(1, 0)] if acknowledge else [])
    assert s.counters.chunks_dropped == 1
    for entry, uuid in enumerate("BC"):
        s.chunk(10 + entry, 1, PARTS, uuid)
        s.chunk(20 + entry, 2, PARTS, uuid)
    assert [message.data for message in s.take()] == [b"abcdefg"] * 2


def test_a_message_whose_first_chunk_is_redelivered_takes_no_other_place() -> None:
    """No message has to go for it, since it is one of the two that may be incomplete."""
    s = Chunked(max_pending_chunked_messages=2, acknowledge_dropped_chunks=True)
    s.chunk(0, 0, PARTS, "A")
    s.chunk(1, 0, PARTS, "B")
    for number in range(3):
        s.chunk(10 + number, number, PARTS, "B")
    for number in (1, 2):
        s.chunk(20 + number, number, PARTS, "A")
    assert [message.message_id.first_chunk for message in s.take()] == [(1, 10), (1, 0)]
    assert s.acknowledged() == [(1, 1)]
    assert s.counters.chunks_dropped == 0


def test_chunks_from_before_a_seek_make_no_message_with_those_after_it() -> None:
    s = Chunked()
    s.chunk(0, 0, PARTS)
    s.client.seek(s.now, s.consumer, 1_700_000_000_000)
    (seek,) = s.expect("SEEK")
    s.say("SUCCESS", proto.CommandSuccess(request_id=seek.request_id))
    s.chunk(1, 1, PARTS)
    s.chunk(2, 2, PARTS)
    assert s.receive() is None
    assert s.counters.chunk_orphans == 2


def test_when_no_message_is_incomplete_no_time_runs_for_one() -> None:
    s = Chunked(incomplete_chunked_message_timeout=10.0)
    idle = s.client.next_deadline()
    s.chunk(0, 0, PARTS)
    assert s.client.next_deadline() == s.now + 10 * SECOND
    for number in (1, 2):
        s.chunk(number, number, PARTS)
    assert s.client.next_deadline() == idle


@pytest.mark.parametrize("acknowledge", [False, True])
def test_the_rest_of_what_was_dropped_drops_nothing_else(acknowledge: bool) -> None:
    s = Chunked(max_pending_chunked_messages=2, acknowledge_dropped_chunks=acknowledge)
    for number in range(3):
        for entry, uuid in enumerate("ABC"):
            s.chunk(10 * number + entry, number, PARTS, uuid)
    assert [message.data for message in s.take()] == [b"abcdefg"] * 2
    assert s.counters.chunks_dropped == 3
    assert s.acknowledged() == ([(1, 0), (1, 10), (1, 20)] if acknowledge else [])


def test_one_that_is_broken_goes_before_an_older_one_that_is_not() -> None:
    s = Chunked(max_pending_chunked_messages=2)
    s.chunk(0, 0, PARTS, "A")
    s.chunk(1, 2, PARTS, "B")
    s.chunk(2, 0, PARTS, "C")
    for entry, uuid in enumerate("AC"):
        s.chunk(10 + entry, 1, PARTS, uuid)
        s.chunk(20 + entry, 2, PARTS, uuid)
    assert [message.data for message in s.take()] == [b"abcdefg"] * 2


@pytest.mark.parametrize(
    "lie",
    [
        {"total_chunk_msg_size": 8},
        {"total_chunk_msg_size": 3},
        {"num_chunks_from_msg": 4},
        {"chunk_id": 5},
        {"num_chunks_from_msg": 2**31 - 1, "chunk_id": 2**31 - 2},
        {"num_chunks_from_msg": 2, "chunk_id": -1},
    ],
)
def test_what_does_not_fit_together_is_no_message(lie: dict[str, Any]) -> None:
    s = Chunked(incomplete_chunked_message_timeout=1.0)
    s.chunk(0, 0, PARTS)
    s.chunk(1, 1, PARTS, **lie)
    s.chunk(2, 2, PARTS)
    assert s.receive() is None
    s.pass_time(2 * SECOND)
    assert set(s.acknowledged()) <= {(1, 0), (1, 1), (1, 2)}
    assert s.permits == 1000
    s.message(3)
    assert s.receive() is not None


def test_a_message_larger_than_the_limit_is_left_to_others() -> None:
    s = Chunked(max_chunked_message_size=1024)
    s.chunk(0, 0, PARTS, total_chunk_msg_size=1025)
    s.chunk(1, 1, PARTS, total_chunk_msg_size=2**31 - 1)
    s.pass_time(20 * SECOND)
    assert s.acknowledged() == []
    assert s.counters.chunks_oversized == 2
    assert s.permits == 1000


def test_beginning_at_it_is_beginning_at_its_first_chunk() -> None:
    start = MessageId(1, 12, first_chunk=(1, 10))
    s = ConsumerScript(durable=False, start_message_id=start, start_message_id_inclusive=True)
    subscribe = s.accept()
    assert (subscribe.start_message_id.ledgerId, subscribe.start_message_id.entryId) == (1, 10)
    after = Chunked(durable=False, start_message_id=start)
    for number in range(3):
        after.chunk(10 + number, number, PARTS)
    after.message(13, b"next")
    assert [message.data for message in after.take()] == [b"next"]


@pytest.mark.parametrize(("delivered", "begin"), [(0, 9), (1, 9), (2, 9), (3, 9), (4, 14), (5, 15)])
def test_after_a_reconnect_it_is_redelivered_and_what_lay_between_its_chunks_does_not(
    delivered: int, begin: int
) -> None:
    """Without a durable cursor; rule CONS-16."""
    s = Chunked(durable=False)
    deliveries: list[tuple[int, Callable[[int], None]]] = [
        (10, lambda entry: s.chunk(entry, 0, PARTS)),
        (11, s.message),
        (12, lambda entry: s.batch(entry, 2)),
        (13, lambda entry: s.chunk(entry, 1, PARTS)),
        (14, lambda entry: s.chunk(entry, 2, PARTS)),
        (15, s.message),
    ]
    for entry, deliver in deliveries:
        deliver(entry)
    messages = s.take(delivered)
    start = s.reconnect().start_message_id
    assert (start.ledgerId, start.entryId, start.batch_index) == (1, begin, -1)
    for entry, deliver in deliveries:
        if entry >= begin:
            deliver(entry)
    messages += s.take()
    assert [message.data for message in messages] == [b"m", b"12.0", b"12.1", b"abcdefg", b"m"]
    assert s.counters.chunk_orphans == 0


def test_a_consumer_that_goes_back_to_an_earlier_copy_has_not_begun_the_later_one() -> None:
    """A producer that lost its connection sent the message again. The first chunk of the second copy had
    arrived when the reader went back to the first copy. The chunk is redelivered, and never acknowledged."""
    s = Chunked(durable=False)
    for entry, number in (10, 0), (11, 1), (12, 2), (13, 0):
        s.chunk(entry, number, PARTS)
    start = s.reconnect().start_message_id
    assert (start.ledgerId, start.entryId) == (1, 9)
    s.frames()
    for entry, number in (10, 0), (11, 1), (12, 2), (13, 0), (14, 1), (15, 2):
        s.chunk(entry, number, PARTS)
    assert s.acknowledged() == []
    assert [message.data for message in s.take()] == [b"abcdefg"] * 2


@settings(max_examples=50)
@given(
    cuts=st.lists(st.lists(st.integers(1, 60), max_size=5, unique=True), min_size=1, max_size=5),
    seed=st.integers(0, 2**16),
)
def test_however_chunks_are_mixed_every_message_comes_out_whole(cuts: list[list[int]], seed: int) -> None:
    random = Random(seed)
    s = Chunked(max_pending_chunked_messages=5)
    waiting = []
    for message, places in enumerate(cuts):
        data = bytes(random.choices(range(256), k=64))
        edges = [0, *sorted(places), 64]
        waiting.append((f"p-{message}", data, [data[a:b] for a, b in pairwise(edges)], 0))
    entry = 0
    expected = []
    while waiting:
        index = random.randrange(len(waiting))
        uuid, data, parts, number = waiting[index]
        s.chunk(entry, number, parts, uuid)
        entry += 1
        if number + 1 == len(parts):
            expected.append(data)
            del waiting[index]
        else:
            waiting[index] = (uuid, data, parts, number + 1)
    messages = s.take()
    assert [message.data for message in messages] == expected
    for each in messages:
        s.acknowledge(each)
    assert sorted(s.acknowledged()) == [(1, number) for number in range(entry)]
