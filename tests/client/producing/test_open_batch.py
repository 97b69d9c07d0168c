"""Open batches: the messages that share an entry, and the time of sending."""

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsar_sansio.client.outputs import Disconnect, Receipts, SendFailed
from pulsar_sansio.client.producing.producer import Producer
from pulsar_sansio.client.producing.send_encoder import encode_member
from pulsar_sansio.model.config import (
    BatchingPolicy,
    CompressionType,
    OutgoingMessage,
    ProducerSpec,
)
from pulsar_sansio.model.errors import MessageTooLarge
from pulsar_sansio.model.message_id import MessageId
from pulsar_sansio.wire import decompress, encode_batch_payloads, split_batch, unpack_payload
from tests.client.producing.sender import Sender, receipts, tickets
from tests.client.script import WALL, Script, frame_receipt

SPEC = ProducerSpec(topic="demo", batching=BatchingPolicy(max_messages=3, max_bytes=100, max_delay=0.001))


def members(send: Any, codec: CompressionType = CompressionType.NONE) -> list[tuple[int | None, bytes]]:
    """Return the sequence id and payload of each message of a SEND."""
    unpacked = unpack_payload(send.payload)
    metadata = unpacked.metadata
    payload = unpacked.payload
    if metadata.compression:
        payload = decompress(metadata.compression, payload, metadata.uncompressed_size, 10**8)
    count = metadata.num_messages_in_batch
    if count is None:
        return [(metadata.sequence_id, payload)]
    assert count == send.num_messages
    batch = split_batch(payload, count)
    return [(batch.single(index).sequence_id, batch.payloads[index]) for index in range(count)]


def test_a_batch_is_sent_when_it_is_full_with_the_fields_java_sends() -> None:
    """java-produce-batch; rule BATCH-05. Rules MSG-09 and PROD-08."""
    sender = Sender(spec=SPEC)
    for payload in (b"a", b"b"):
        sender.send(payload)
    assert sender.sent() == []
    sender.send(b"c")
    (send,) = sender.sent()
    assert (send.sequence_id, send.num_messages, send.highest_sequence_id) == (0, 3, 2)
    unpacked = unpack_payload(send.payload)
    assert unpacked.metadata.__dict__ == {
        "producer_name": "p-1",
        "sequence_id": 0,
        "publish_time": WALL,
        "num_messages_in_batch": 3,
        "highest_sequence_id": 2,
    }
    assert unpacked.payload == b"\0\0\0\x04\x18\x01@\x00a\0\0\0\x04\x18\x01@\x01b\0\0\0\x04\x18\x01@\x02c"
    sender.script.feed(sender.link, frame_receipt(0, 7, 5, 2))
    assert receipts(*sender.script.said()) == [(0, [MessageId(7, 5, -1, index, 3) for index in range(3)])]


def test_a_batch_with_keys_and_properties_is_byte_for_byte_what_java_makes() -> None:
    """The payload of java-produce-batch, first entry."""
    sender = Sender(spec=ProducerSpec(topic="demo", batching=BatchingPolicy(max_messages=5)))
    for number in range(5):
        key = f"k{number % 3}"
        sender.send(OutgoingMessage(b"m%d" % number, key=key, properties={"n": str(number)}))
    (send,) = sender.sent()
    unpacked = unpack_payload(send.payload)
    assert unpacked.metadata.partition_key == "k0"
    assert unpacked.metadata.has("partition_key_b64_encoded")
    assert unpacked.payload == b"".join(
        b"\0\0\0\x12\n\x06\n\x01n\x12\x01%d\x12\x02k%d\x18\x020\x00@%cm%d" % (n, n % 3, n, n)
        for n in range(5)
    )


@given(st.lists(st.sampled_from([b"", b"abc", bytes(60), OutgoingMessage(b"k", key="k")]), max_size=12))
def test_the_appender_takes_what_joins_a_batch_and_leaves_everything_else_to_send(
    messages: list[Any],
) -> None:
    usual, quick = Sender(spec=SPEC), Sender(spec=SPEC)
    append = quick.script.client.appender(quick.handle)
    for message in messages:
        expected = usual.send(message)
        deadline = quick.script.client.next_deadline()
        ticket = append(message)
        assert not quick.script.client.has_output
        assert quick.script.client.next_deadline() == deadline
        assert (ticket if ticket >= 0 else quick.send(message)) == expected
        assert quick.sent() == usual.sent()


def test_the_appender_takes_what_neither_begins_nor_fills_a_batch() -> None:
    sender = Sender(spec=SPEC)
    client = sender.script.client
    append = client.appender(sender.handle)
    assert append(b"begins") == -1
    sender.send(b"begins")
    assert append(OutgoingMessage(b"said about", key="k")) == -1
    assert append(b"joins") == 1
    assert append(b"fills") == -1
    client.close(sender.script.now, sender.handle)
    assert append(b"late") == -1


def test_the_appender_takes_messages_with_keys_among_their_kind() -> None:
    sender = Sender(spec=ProducerSpec(topic="demo", batching=BatchingPolicy(max_messages=5, max_bytes=100)))
    append = sender.script.client.appender(sender.handle)
    assert append(OutgoingMessage(b"begins", key="k")) == -1
    sender.send(OutgoingMessage(b"begins", key="k"))
    assert append(OutgoingMessage(b"joins", key="k", properties={"a": "b"})) == 1
    assert append(OutgoingMessage(None, key="k")) == 2
    for for_send in (
        OutgoingMessage(b"", sequence_id=9),
        OutgoingMessage(b"", deliver_at=WALL),
        OutgoingMessage(b"", key="\ud800"),
        OutgoingMessage(bytes(90)),
    ):
        assert append(for_send) == -1
    assert append(b"bare") == 3
    assert append(OutgoingMessage(b"behind a bare one", key="k")) == -1
    assert sender.sent() == []
    sender.script.client.push(sender.script.now, sender.handle)
    (send,) = sender.sent()
    assert [payload for _, payload in members(send)] == [b"begins", b"joins", b"", b"bare"]


@given(
    st.lists(
        st.builds(
            OutgoingMessage,
            st.sampled_from([None, b"", b"abc", bytes(30), bytes(99), bytes(101)]),
            key=st.sampled_from([None, "k", "k" * 60]),
            properties=st.sampled_from([None, {"a": "b" * 50}]),
            sequence_id=st.sampled_from([None, None, None, 4]),
        )
        | st.sampled_from([b"bare", bytes(50)]),
        max_size=12,
    )
)
@settings(max_examples=40)
@pytest.mark.breaks("INV-P6", why="sequence ids of the application, in any order")
def test_the_short_way_into_a_batch_makes_the_frames_of_the_long_one(messages: list[Any]) -> None:
    short, long = (
        Sender(spec=ProducerSpec(topic="demo", batching=BatchingPolicy(max_messages=4, max_bytes=100)))
        for _ in range(2)
    )
    machine = long.script.client._handles.producers[long.handle]
    assert isinstance(machine, Producer)
    for message in messages:
        assert short.send(message) == machine.admission._send(message, WALL)
        assert short.sent() == long.sent()
    for sender in (short, long):
        sender.script.client.push(sender.script.now, sender.handle)
    assert short.sent() == long.sent()


def test_a_batch_is_sent_when_its_first_message_has_waited_long_enough() -> None:
    """Rules BATCH-08, BATCH-09, TIMER-06 and GAP-08."""
    sender = Sender(spec=SPEC)
    sender.send(b"a")
    sender.script.advance(0.0005)
    sender.send(b"b")
    sender.script.advance(0.0004)
    assert sender.sent() == []
    sender.script.advance(0.0001)
    (send,) = sender.sent()
    assert members(send) == [(0, b"a"), (1, b"b")]
    deadline = sender.script.client.next_deadline()
    assert deadline is not None
    assert deadline > sender.script.now + 10**9  # no timer for a batch that is gone


def test_with_no_delay_a_batch_is_due_at_once() -> None:
    sender = Sender(spec=SPEC, batching=BatchingPolicy(max_delay=0.0))
    sender.send(b"a")
    sender.send(b"b")
    assert sender.script.client.next_deadline() == sender.script.now
    sender.script.advance(0)
    assert members(sender.sent()[0]) == [(0, b"a"), (1, b"b")]


def test_bytes_close_a_batch_and_a_message_without_room_opens_the_next() -> None:
    """Rules BATCH-03, BATCH-04, BATCH-05: payload bytes count. Rule GAP-07."""
    sender = Sender(spec=SPEC)
    sender.send(bytes(60))
    sender.send(bytes(41))  # 101 would be too many
    (send,) = sender.sent()
    assert len(members(send)) == 1
    sender.send(bytes(59))  # exactly 100
    (send,) = sender.sent()
    assert [len(payload) for _, payload in members(send)] == [41, 59]


def test_a_message_larger_than_the_batch_goes_by_itself_in_order() -> None:
    sender = Sender(spec=SPEC)
    sender.send(b"a")
    sender.send(bytes(5000))
    first, second = sender.sent()
    assert members(first) == [(0, b"a")]
    assert members(second) == [(1, bytes(5000))]


def test_a_batch_of_one_is_an_ordinary_message() -> None:
    """As in Java, a batch of one message is sent alone, with all its metadata."""
    sender = Sender(spec=SPEC)
    sender.send(OutgoingMessage(b"x", key="k", event_time=5))
    sender.script.client.push(sender.script.now, sender.handle)
    (send,) = sender.sent()
    assert (send.num_messages, send.highest_sequence_id) == (1, None)
    metadata = unpack_payload(send.payload).metadata
    assert metadata.num_messages_in_batch is None
    assert (metadata.partition_key, metadata.event_time) == ("k", 5)
    sender.script.feed(sender.link, frame_receipt(0, 7, 5))
    assert receipts(*sender.script.said()) == [(0, [MessageId(7, 5)])]


def test_a_delayed_message_is_never_batched_and_keeps_its_place() -> None:
    sender = Sender(spec=SPEC)
    sender.send(b"a")
    sender.send(b"b")
    sender.send(OutgoingMessage(b"later", deliver_at=WALL + 5))
    sender.send(b"c")
    sender.script.client.push(sender.script.now, sender.handle)
    assert [members(send) for send in sender.sent()] == [[(0, b"a"), (1, b"b")], [(2, b"later")], [(3, b"c")]]


def test_bare_payloads_and_messages_mix() -> None:
    sender = Sender(spec=SPEC, batching=BatchingPolicy(max_messages=6))
    sender.send(b"a")
    sender.send(OutgoingMessage(b"b", properties={"x": "y"}, event_time=9, ordering_key=b"o"))
    sender.send(b"c")
    sender.send(b"d")
    sender.send(OutgoingMessage(None, key="k"))
    sender.send(b"f")
    (send,) = sender.sent()
    assert members(send) == [(0, b"a"), (1, b"b"), (2, b"c"), (3, b"d"), (4, b""), (5, b"f")]
    batch = split_batch(unpack_payload(send.payload).payload, 6)
    assert batch.single(1).properties == [("x", "y")]
    assert (batch.single(1).event_time, batch.single(1).ordering_key) == (9, b"o")
    assert batch.single(4).null_value
    assert not batch.single(5).null_value


def test_what_a_batch_has_once_comes_from_its_first_message() -> None:
    """Rules BATCH-01 and BATCH-11."""
    sender = Sender(spec=SPEC)
    sender.send(OutgoingMessage(b"a", ordering_key=b"o", replicate_to=("east",), key="k"))
    sender.send(OutgoingMessage(b"b", ordering_key=b"p", replicate_to=("west",), key="l"))
    sender.send(b"c")
    metadata = unpack_payload(sender.sent()[0].payload).metadata
    assert (metadata.ordering_key, list(metadata.replicate_to), metadata.partition_key) == (
        b"o",
        ["east"],
        "k",
    )


def test_ids_of_ones_own_increase_within_a_batch() -> None:
    """WIRE-07: a batch names its lowest and highest id; ids that go back begin a new one."""
    sender = Sender(spec=SPEC, batching=BatchingPolicy(max_messages=10))
    for sequence_id in (100, 101, 101, None, None, 7):
        sender.send(b"x" if sequence_id is None else OutgoingMessage(b"x", sequence_id=sequence_id))
    sender.script.client.push(sender.script.now, sender.handle)
    assert [[number for number, _ in members(send)] for send in sender.sent()] == [
        [100, 101],
        [101],
        [0, 1, 7],
    ]


def test_a_full_window_sends_the_batch_because_nothing_more_can_join() -> None:
    sender = Sender(spec=SPEC, max_pending_messages=2)
    sender.send(b"a")
    sender.send(b"b")
    assert members(sender.sent()[0]) == [(0, b"a"), (1, b"b")]


def test_a_batch_larger_than_the_broker_accepts_is_never_made() -> None:
    script = Script()
    sender = Sender(script, batching=BatchingPolicy(max_messages=100_000, max_bytes=64 * 1024 * 1024))
    sender.reattach(max_message_size=2000)
    script.client.send_many(script.now, sender.handle, [b"12345"] * 500, WALL)
    for number in range(100):
        sender.send(OutgoingMessage(b"", properties={"name": "x" * number}))
    script.client.push(script.now, sender.handle)
    sends = sender.sent()
    assert sum(send.num_messages for send in sends) == 600
    assert max(len(unpack_payload(send.payload).payload) for send in sends) <= 2000
    with pytest.raises(MessageTooLarge):
        sender.send(OutgoingMessage(b"", properties={"name": "x" * 2000}))


def test_properties_of_both_messages_count_for_what_the_broker_accepts() -> None:
    """BATCH-13: each message fits alone, but both together do not."""
    script = Script()
    sender = Sender(script, batching=BatchingPolicy(max_messages=3, max_delay=60.0))
    sender.reattach(max_message_size=2000)
    for _ in range(2):
        sender.send(OutgoingMessage(b"", properties={"name": "x" * 1200}))
    script.client.push(script.now, sender.handle)
    assert [send.num_messages for send in sender.sent()] == [1, 1]


def test_a_payload_that_this_broker_does_not_accept_is_not_taken_into_a_batch() -> None:
    script = Script()
    sender = Sender(script, batching=BatchingPolicy(max_delay=60.0))
    sender.reattach(max_message_size=2000)
    sender.send(bytes(2000))
    with pytest.raises(MessageTooLarge):
        sender.send(bytes(2001))


def test_a_message_may_take_a_whole_entry_with_its_properties() -> None:
    """BATCH-13: the encoded size as a member of a batch counts."""
    script = Script()
    sender = Sender(script, batching=BatchingPolicy(max_delay=60.0))
    sender.reattach(max_message_size=2000)

    def message(size: int) -> OutgoingMessage:
        return OutgoingMessage(b"", properties={"name": "x" * size})

    most = next(size for size in range(2000, 0, -1) if len(encode_member(message(size), 0)) == 2000)
    sender.send(message(most))
    with pytest.raises(MessageTooLarge):
        sender.send(message(most + 1))


def test_half_of_an_entry_is_left_for_payloads_however_many_messages_may_join() -> None:
    """BATCH-13: the metadata of the members take at most the other half."""
    script = Script()
    sender = Sender(script, batching=BatchingPolicy(max_messages=100_000, max_delay=60.0))
    sender.reattach(max_message_size=2000)
    for _ in range(3):
        sender.send(bytes(300))
    script.client.push(script.now, sender.handle)
    assert [send.num_messages for send in sender.sent()] == [3]


def test_a_smaller_limit_after_a_reconnect_counts_for_the_next_batch() -> None:
    sender = Sender(spec=SPEC, batching=BatchingPolicy(max_delay=60.0))
    sender.send(b"before")
    sender.send(b"before too")
    sender.reattach(max_message_size=1024)
    assert members(sender.sent()[0]) == [(0, b"before"), (1, b"before too")]
    for _ in range(3):
        sender.send(bytes(600))
    sender.script.client.push(sender.script.now, sender.handle)
    assert [len(members(send)) for send in sender.sent()] == [1, 1, 1]


@pytest.mark.parametrize("codec", list(CompressionType)[1:])
def test_the_whole_batch_is_compressed_once(codec: CompressionType) -> None:
    """Rule BATCH-06; java-codec-*: even a small batch."""
    sender = Sender(spec=SPEC, compression=codec, batching=BatchingPolicy(max_messages=4))
    for _ in range(4):
        sender.send(b"abcabcabc" * 10)
    (send,) = sender.sent()
    metadata = unpack_payload(send.payload).metadata
    assert metadata.compression == codec
    assert metadata.uncompressed_size == len(encode_batch_payloads([b"abcabcabc" * 10] * 4, 0))
    assert [payload for _, payload in members(send)] == [b"abcabcabc" * 10] * 4


def test_when_a_batch_cannot_be_sealed_its_messages_fail_and_it_is_gone() -> None:
    """Rule BATCH-07 (section 41.4): the key of the first message does not fit a second time."""
    sender = Sender(spec=SPEC, batching=BatchingPolicy(max_bytes=10_000_000, max_messages=3))
    script = sender.script
    sender.send(OutgoingMessage(bytes(2_500_000), key="k" * 20_000))
    sender.send(bytes(2_720_000))
    script.client.push(script.now, sender.handle)
    failed = script.expect_one(SendFailed)
    assert (failed.first, failed.count) == (0, 2)
    assert isinstance(failed.error, MessageTooLarge)
    assert sender.sent() == []
    sender.send(b"next")
    script.client.push(script.now, sender.handle)
    assert members(sender.sent()[0]) == [(2, b"next")]


@pytest.mark.parametrize("highest", [None, 0, 2, 2**64 - 1])
def test_receipts_that_complete_a_batch(highest: int | None) -> None:
    """PROD-43: brokers send the highest id, no id, 0 or 2^64-1."""
    sender = Sender(spec=SPEC)
    for _ in range(3):
        sender.send(b"x")
    sender.script.feed(sender.link, frame_receipt(0, 7, 5, highest))
    (output,) = sender.script.said()
    assert isinstance(output, Receipts)
    assert len(output.message_ids) == 3


def test_a_receipt_for_a_part_of_a_batch_closes_the_link() -> None:
    sender = Sender(spec=SPEC)
    for _ in range(3):
        sender.send(b"x")
    sender.script.feed(sender.link, frame_receipt(0, 7, 5, 1))
    gone = sender.script.said()[0]
    assert isinstance(gone, Disconnect)
    assert "up to 1, it ends at 2" in gone.reason


def test_a_batch_goes_again_byte_for_byte() -> None:
    sender = Sender(spec=SPEC)
    for _ in range(3):
        sender.send(b"x")
    before = sender.sent()
    sender.reattach()
    assert sender.sent() == before


def test_publish_time_is_that_of_the_first_message() -> None:
    sender = Sender(spec=SPEC)
    for step in range(3):
        sender.send(b"x", WALL + step)
    assert unpack_payload(sender.sent()[0].payload).metadata.publish_time == WALL


MESSAGES = st.lists(
    st.binary(max_size=30)
    | st.builds(
        OutgoingMessage,
        st.none() | st.binary(max_size=30),
        key=st.none() | st.text("ab", max_size=3),
        properties=st.none()
        | st.dictionaries(st.text("p", max_size=2), st.text("v", max_size=8), max_size=2),
        deliver_at=st.none() | st.none() | st.just(WALL + 9),
        sequence_id=st.none() | st.none() | st.integers(0, 40),
    ),
    max_size=40,
)


@settings(max_examples=120)
@given(
    MESSAGES,
    st.integers(1, 7),
    st.integers(1, 90),
    st.integers(1, 50),
    st.sampled_from([CompressionType.NONE, CompressionType.ZSTD]),
    st.integers(0, 2**32),
)
@pytest.mark.breaks("INV-P6", why="sequence ids of the application, in any order")
def test_however_they_are_batched_every_message_is_sent_once_in_order(
    messages: list[bytes | OutgoingMessage],
    max_messages: int,
    max_bytes: int,
    window: int,
    codec: CompressionType,
    seed: int,
) -> None:
    """One by one, several at once, with pauses and pushes: order, payloads and ids are as if unbatched."""
    random = Random(seed)
    policy = BatchingPolicy(max_messages=max_messages, max_bytes=max_bytes)
    sender = Sender(spec=SPEC, batching=policy, compression=codec, max_pending_messages=window)
    script, client = sender.script, sender.script.client
    sends: list[Any] = []
    position = 0
    while position < len(messages):
        choice = random.randrange(5)
        if choice == 0:
            script.advance(0.002)
        elif choice == 1:
            client.push(script.now, sender.handle)
        else:
            piece = messages[position : position + random.randrange(1, 9)]
            taken = client.send_many(script.now, sender.handle, piece, WALL)
            assert taken.start == position
            position = taken.stop
            if len(taken) < len(piece):
                client.push(script.now, sender.handle)
        for send in sender.sent():
            sends.append(send)
            script.feed(sender.link, frame_receipt(send.sequence_id, 1, len(sends), send.highest_sequence_id))
    client.push(script.now, sender.handle)
    for send in sender.sent():
        sends.append(send)
        script.feed(sender.link, frame_receipt(send.sequence_id, 1, len(sends), send.highest_sequence_id))

    expected = []
    counter = 0
    for message in messages:
        explicit = None if isinstance(message, bytes) else message.sequence_id
        payload = message if isinstance(message, bytes) else message.payload or b""
        expected.append((counter if explicit is None else explicit, payload))
        counter += explicit is None
    assert [member for send in sends for member in members(send)] == expected
    settled = [ticket for output in script.history for ticket in tickets(output)]
    assert settled == list(range(len(messages)))
    assert all(send.num_messages <= max_messages for send in sends)


def test_send_many_fills_batches_by_count_and_by_bytes() -> None:
    script = Script()
    sender = Sender(script, batching=BatchingPolicy(max_messages=1000, max_bytes=50_000))
    payloads = [bytes(n % 200) for n in range(3000)]
    assert script.client.send_many(script.now, sender.handle, payloads, WALL) == range(3000)
    script.client.push(script.now, sender.handle)
    sends = sender.sent()
    assert [payload for send in sends for _, payload in members(send)] == payloads
    sizes = [sum(len(payload) for _, payload in members(send)) for send in sends]
    assert all(49_000 < size <= 50_000 for size in sizes[:-1])
    assert script.commands(sender.link) == []
