"""Readers: where they begin, what they acknowledge, how far they are."""

import tracemalloc
from typing import Any

import pytest

from pulsar_sansio.client.delivery.received_entries import Messages, ReceivedBatch
from pulsar_sansio.client.outputs import ConsumerFailed, ConsumerReady, RequestDone, RequestFailed
from pulsar_sansio.client.positions.last_message import LastPosition
from pulsar_sansio.model.checkpoint import decode_checkpoint, encode_checkpoint
from pulsar_sansio.model.config import CompressionType, ReaderSpec
from pulsar_sansio.model.errors import (
    DecompressionFailed,
    InvalidConfiguration,
    LocalProtocolError,
    MetadataError,
    TimedOut,
)
from pulsar_sansio.model.message_id import EARLIEST, LATEST, MessageId
from pulsar_sansio.wire import RawBatch, compress, encode_batch_payloads, proto
from tests.client.broker_script import MILLISECOND, SECOND, ConsumerScript, Script, entry_bytes

TOPIC = "persistent://public/default/t"


class ReaderScript(ConsumerScript):
    """A client with one reader, and its broker."""

    def __init__(self, start: Any = None, **spec: Any) -> None:
        Script.__init__(self)
        self.consumer = self.client.open_reader(self.now, ReaderSpec("t", start, **spec))
        self.pump()

    def acknowledged(self) -> list[tuple[int, tuple[int, int, int | None]]]:
        """Kind and id of the ACKs since the last look."""
        return [(ack.ack_type, ack.message_ids[0]) for name, ack in self.frames() if name == "ACK"]

    def finish_seek(self) -> None:
        """The broker does as it is asked to by the only SEEK there is."""
        (seek,) = [command for name, command in self.frames() if name == "SEEK"]
        self.close_by_broker()
        self.say("SUCCESS", proto.CommandSuccess(request_id=seek.request_id))
        self.pass_time(SECOND)
        self.accept()


def reading(start: Any = EARLIEST, **spec: Any) -> ReaderScript:
    s = ReaderScript(start, **spec)
    s.accept()
    s.frames()
    s.outputs()
    return s


class TestSubscribe:
    def test_as_the_java_client_does(self) -> None:
        """Seen: java-reader. Rules READER-02 and GAP-16. Rule READER-01."""
        s = ReaderScript(EARLIEST)
        subscribe = s.accept()
        assert subscribe.subscription.startswith("reader-")
        assert len(subscribe.subscription) == len("reader-7b403b22f9")
        assert not subscribe.durable
        assert subscribe.subType == proto.CommandSubscribe.Exclusive
        assert subscribe.start_message_id.entryId == 2**64 - 1
        assert subscribe.start_message_id.batch_index == -1
        assert not subscribe.read_compacted
        assert s.outputs() == [ConsumerReady(s.consumer, TOPIC)]

    def test_names(self) -> None:
        """Rule GAP-16."""
        prefixed = ReaderScript(EARLIEST, subscription_prefix="audit", name="me").accept()
        assert prefixed.subscription.startswith("audit-")
        assert prefixed.consumer_name == "me"
        assert ReaderScript(EARLIEST, subscription="mine").accept().subscription == "mine"

    def test_compacted(self) -> None:
        """Seen: java-table-view."""
        assert ReaderScript(EARLIEST, read_compacted=True).accept().read_compacted

    def test_inside_a_batch(self) -> None:
        """Seen: java-reader-inclusive."""
        s = ReaderScript(MessageId(50, 0, -1, 1, 3), start_inclusive=True)
        start = s.accept().start_message_id
        assert (start.ledgerId, start.entryId, start.batch_index) == (50, 0, 1)
        s.batch(0, 3, ledger=50)
        assert [message.data for message in s.take()] == [b"0.1", b"0.2"]

    def test_so_long_ago(self) -> None:
        """Rule CFG-302."""
        s = ReaderScript(start_rollback=3600)
        assert s.accept().start_message_rollback_duration_sec == 3600

    def test_at_a_time(self) -> None:
        s = ReaderScript(1_000)
        s.accept()
        (seek,) = [command for name, command in s.frames() if name in ("SEEK", "FLOW")]
        assert seek.message_publish_time == 1_000

    def test_at_a_time_to_which_the_broker_does_not_go(self) -> None:
        """The reader does not read from somewhere else then, and reports the messages that wait."""
        s = ReaderScript(1_000)
        s.accept()
        (seek,) = [command for name, command in s.frames() if name == "SEEK"]
        request = s.client.seek(s.now, s.consumer, EARLIEST)
        refusal = proto.CommandError(request_id=seek.request_id, error=proto.MetadataError, message="no")
        s.say("ERROR", refusal)
        failed, over = s.outputs()
        assert isinstance(failed, RequestFailed)
        assert failed.request == request
        assert isinstance(over, ConsumerFailed)
        assert isinstance(over.error, MetadataError)
        assert [name for name, _ in s.frames()] == ["CLOSE_CONSUMER"]

    def test_at_a_time_whichever_connection_it_is(self) -> None:
        s = ReaderScript(1_000)
        s.accept()
        s.frames()
        s.pass_time(10 * SECOND)
        s.lose()
        s.pass_time(15 * SECOND)
        s.accept()
        (seek,) = [command for name, command in s.frames() if name in ("SEEK", "FLOW")]
        assert seek.message_publish_time == 1_000

    def test_at_a_time_to_which_the_broker_does_not_go_for_now(self) -> None:
        """A reader that was ready comes back, and asks again."""
        s = ReaderScript(1_000)
        s.accept()
        for refused in (False, True, False):
            (seek,) = [command for name, command in s.frames() if name in ("SEEK", "FLOW")]
            assert seek.message_publish_time == 1_000
            if refused:
                refusal = proto.CommandError(
                    request_id=seek.request_id, error=proto.PersistenceError, message="try again"
                )
                s.say("ERROR", refusal)
                assert [name for name, _ in s.frames()] == ["CLOSE_CONSUMER"]
            else:
                s.close_by_broker()
                s.say("SUCCESS", proto.CommandSuccess(request_id=seek.request_id))
                s.pass_time(SECOND)
                s.accept()
                s.frames()
                s.lose()
            s.pass_time(SECOND)
            s.accept()
        assert not [each for each in s.outputs() if isinstance(each, ConsumerFailed)]

    def test_at_a_time_and_no_broker_lives_long_enough(self) -> None:
        """The reader was attached again and again, never where it was to be: that is not ready (PROD-07)."""
        s = ReaderScript(1_000)
        while not (outputs := [each for each in s.outputs() if isinstance(each, ConsumerFailed)]):
            assert s.now < 40 * SECOND
            for name, command in s.frames():
                if name == "SUBSCRIBE":
                    s.say("SUCCESS", proto.CommandSuccess(request_id=command.request_id))
                    s.lose()
            s.pass_time(SECOND)
        (failed,) = outputs
        assert isinstance(failed.error, TimedOut)
        assert "was not ready within 30 s" in str(failed.error)

    def test_once_it_was_there_it_comes_back_for_ever(self) -> None:
        s = ReaderScript(1_000)
        s.accept()
        s.finish_seek()
        assert [type(each) for each in s.outputs()] == [ConsumerReady]
        s.lose()
        s.pass_time(100 * SECOND)
        assert [type(each) for each in s.outputs() if isinstance(each, ConsumerFailed)] == []
        s.accept()

    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"start": EARLIEST, "start_rollback": 1.0},
            {"start": True},
            {"start": "earliest"},
            {"start": -1},
            {"start": {"t": 5}},
            {"start": 5, "start_inclusive": True},
            {"start": EARLIEST, "receiver_queue_size": -1},
            {"start": EARLIEST, "subscription_prefix": None},
            {"start": EARLIEST, "subscription": []},
            {"start": EARLIEST, "subscription": ""},
            {"start_rollback": -1.0},
            {"start": EARLIEST, "key_hash_ranges": ()},
            {"start": EARLIEST, "key_hash_ranges": ((5, 4),)},
            {"start": EARLIEST, "key_hash_ranges": ((0, 5), (5, 6))},
            {"start": EARLIEST, "key_hash_ranges": ((0, 65_536),)},
            {"start": EARLIEST, "key_hash_ranges": [(0, 5)]},
        ],
    )
    def test_mistakes(self, options: dict[str, Any]) -> None:
        with pytest.raises(InvalidConfiguration):
            ReaderSpec("t", **options)

    def test_what_is_no_spec(self) -> None:
        with pytest.raises(InvalidConfiguration, match="ReaderSpec"):
            reading().client.open_reader(0, "t")  # type: ignore[arg-type]


def test_of_part_of_the_keys() -> None:
    """As the Java client does: exclusive, with the ranges of a Key_Shared subscription."""
    for s in (
        ReaderScript(EARLIEST, key_hash_ranges=((0, 100), (200, 65_535))),
        ReaderScript(EARLIEST),
    ):
        subscribe = s.accept()
        assert subscribe.subType == proto.CommandSubscribe.Exclusive
        ranges = [(each.start, each.end) for each in subscribe.keySharedMeta.hashRanges]
        assert subscribe.HasField("keySharedMeta") is bool(ranges)
        assert ranges in ([(0, 100), (200, 65_535)], [])
        if ranges:
            assert subscribe.keySharedMeta.keySharedMode == proto.STICKY
    assert ranges == []


class TestAcknowledging:
    def test_what_was_read_now_and_then(self) -> None:
        """Rule READER-06."""
        s = reading()
        for entry in range(4):
            s.message(entry)
        s.receive()
        s.receive()
        assert s.acknowledged() == []
        s.pass_time(100 * MILLISECOND)
        assert s.acknowledged() == [(1, (1, 1, None))]
        s.pass_time(SECOND)
        assert s.acknowledged() == []
        s.take()
        s.pass_time(100 * MILLISECOND)
        assert s.acknowledged() == [(1, (1, 3, None))]
        before = s.client.next_deadline()
        s.pass_time(SECOND)
        assert s.client.next_deadline() == before  # no timer where there is nothing to read

    def test_of_a_batch_that_is_not_read_to_its_end_what_is_before(self) -> None:
        """In the first entry of a ledger that is entry -1. Seen: java-reader."""
        s = reading()
        s.batch(0, 3)
        s.receive()
        s.close()
        assert s.acknowledged() == [(1, (1, -1, None))]

    def test_before_it_closes(self) -> None:
        s = reading()
        s.batch(0, 3)
        assert len(s.take()) == 3
        s.close()
        names = [name for name, _ in s.frames()]
        assert names == ["ACK", "CLOSE_CONSUMER"]

    def test_nothing_of_before_a_seek(self) -> None:
        s = reading()
        s.message(0)
        s.receive()
        s.client.seek(s.now, s.consumer, EARLIEST)
        s.finish_seek()
        s.pass_time(SECOND)
        assert s.acknowledged() == []
        s.message(0)
        s.receive()
        s.pass_time(SECOND)
        assert s.acknowledged() == [(1, (1, 0, None))]


class TestReconnect:
    def test_what_was_read_is_not_read_again(self) -> None:
        """Rule READER-03."""
        s = reading()
        s.batch(0, 4)
        assert [s.receive().data for _ in range(2)] == [b"0.0", b"0.1"]
        start = s.reconnect().start_message_id
        assert (start.entryId, start.batch_index) == (0, 1)
        s.batch(0, 4)
        assert [message.data for message in s.take()] == [b"0.2", b"0.3"]

    def test_where_all_was_read(self) -> None:
        """The fault of a reader whose start is inclusive: the last message again with every connection."""
        s = reading(MessageId(1, 5), start_inclusive=True)
        s.message(5)
        assert len(s.take()) == 1
        for _ in range(3):
            s.reconnect()
            s.message(5)
            assert s.take() == []


class TestCheckpoints:
    def test_how_far_it_is(self) -> None:
        s = reading()
        assert s.client.checkpoint(s.consumer) == {TOPIC: EARLIEST}
        s.batch(0, 4)
        s.message(1)
        expected = [MessageId(1, 0, -1, index) for index in range(4)] + [MessageId(1, 1)]
        for each in expected:
            s.receive()
            assert s.client.checkpoint(s.consumer) == {TOPIC: each}

    @pytest.mark.parametrize(
        ("start", "inclusive", "expected"),
        [
            (EARLIEST, True, EARLIEST),
            (LATEST, False, LATEST),
            (MessageId(1, 5), False, MessageId(1, 5)),
            (MessageId(1, 5), True, MessageId(1, 4)),
            (MessageId(1, 5, -1, 3, 4), True, MessageId(1, 5, -1, 2)),
            (MessageId(1, 5, -1, 0, 4), True, MessageId(1, 4)),
            (MessageId(1, 5, first_chunk=(1, 3)), True, MessageId(1, 2)),
        ],
    )
    def test_before_anything_was_read(self, start: MessageId, inclusive: bool, expected: MessageId) -> None:
        s = reading(start, start_inclusive=inclusive)
        assert s.client.checkpoint(s.consumer) == {TOPIC: expected}

    @pytest.mark.parametrize("read", range(7))
    def test_another_reader_goes_on_there(self, read: int) -> None:
        """A checkpoint behind a batch works too: it names a whole entry. Rule MSG-03."""
        s = reading()

        def deliver(script: ReaderScript, first: int) -> None:
            for entry in range(first, 3):
                script.batch(entry, 2)

        deliver(s, 0)
        messages = [s.receive().data for _ in range(read)]
        data = encode_checkpoint(s.client.checkpoint(s.consumer))
        other = ReaderScript(decode_checkpoint(data))
        start = other.accept().start_message_id
        deliver(other, 0 if start.entryId == 2**64 - 1 else start.entryId)
        messages += [message.data for message in other.take()]
        assert messages == [b"0.0", b"0.1", b"1.0", b"1.1", b"2.0", b"2.1"]

    def test_an_entry_that_is_done_with(self) -> None:
        other = ReaderScript({TOPIC: MessageId(1, 4)})
        other.accept()
        other.batch(4, 3)
        other.message(5, b"5")
        assert [message.data for message in other.take()] == [b"5"]

    def test_topics_that_are_not_in_it(self) -> None:
        start = ReaderScript({"persistent://public/default/other": MessageId(1, 4)}).accept().start_message_id
        assert start.entryId == 2**64 - 1

    def test_the_end_of_the_topic(self) -> None:
        assert ReaderScript({TOPIC: LATEST}).accept().start_message_id.entryId == 2**63 - 1

    @pytest.mark.parametrize(
        "data",
        [
            b"",
            b"{}",
            b"[1]",
            b"\xff",
            b'{"version":2,"positions":{}}',
            b'{"version":1,"positions":[]}',
            b'{"version":1,"positions":{"t":[1,2]}}',
            b'{"version":1,"positions":{"t":[1,2,3,4,"5"]}}',
            b'{"version":1,"positions":{"t":[1,-2,3,4,5]}}',
            b'{"version":1,"positions":{"a/b":[1,2,3,4,5]}}',
            b"[" * 100_000,
        ],
    )
    def test_bytes_that_are_none(self, data: bytes) -> None:
        with pytest.raises(InvalidConfiguration):
            decode_checkpoint(data)


def test_whether_there_is_more() -> None:
    s = reading(MessageId(1, 5))
    s.answers_positions = False
    request = s.client.has_message_available(s.now, s.consumer)
    (question,) = s.expect("GET_LAST_MESSAGE_ID")
    response = proto.CommandGetLastMessageIdResponse(request_id=question.request_id)
    response.last_message_id.ledgerId, response.last_message_id.entryId = 1, 5
    s.say("GET_LAST_MESSAGE_ID_RESPONSE", response)
    assert s.outputs() == [RequestDone(request, False)]


class TestRawBatches:
    """A reader delivers batches in one piece."""

    def test_a_batch_as_it_came(self) -> None:
        s = reading(raw_batches=True)
        s.batch(0, 3)
        s.message(1, b"single")
        batch, single = s.take_together().items
        assert isinstance(batch, ReceivedBatch)
        assert isinstance(batch.entry.batch, RawBatch)
        assert (batch.entry.position, batch.entry.batch.size) == ((1, 0), 3)
        assert [message.data for message in Messages([batch])] == [b"0.0", b"0.1", b"0.2"]
        assert [message.data for message in Messages([single])] == [b"single"]

    def test_one_by_one_all_the_same(self) -> None:
        s = reading(raw_batches=True)
        s.batch(0, 3)
        first = s.receive()
        assert (first.data, first.sequence_id, first.message_id) == (b"0.0", 0, MessageId(1, 0, -1, 0))
        assert [message.data for message in s.take()] == [b"0.1", b"0.2"]

    def test_what_is_wanted_in_part_is_divided(self) -> None:
        s = reading(MessageId(1, 0, -1, 0, 3), raw_batches=True)
        s.batch(0, 3)
        s.batch(1, 3, ack_set=0b100)
        s.batch(2, 3)
        data = [[message.data for message in Messages([item])] for item in s.take_together().items]
        assert data == [[b"0.1", b"0.2"], [b"1.2"], [b"2.0", b"2.1", b"2.2"]]

    def test_more_messages_than_can_be_in_it(self) -> None:
        s = reading(raw_batches=True)
        s.deliver(0, entry_bytes(b"short", num_messages_in_batch=3))
        assert s.take() == []
        s.deliver(4, entry_bytes(b"short", num_messages_in_batch=3))
        s.deliver(2, entry_bytes(b"short", num_messages_in_batch=3))
        counters = s.client.arrival_counters(s.consumer)
        assert (counters.discarded, counters.unreadable) == (9, ((1, 0), (1, 4)))

    def test_a_place_after_the_topic_is_reopened(self) -> None:
        s = reading(raw_batches=True)
        s.batch(0, 3)
        s.batch(1, 3)
        s.take(3)
        assert s.reconnect().start_message_id.entryId == 0


ZEROS = bytes(1_000_000)


def inflating(plain: bytes, stored: bytes | None = None, **fields: Any) -> bytes:
    stored = compress(CompressionType.ZSTD, plain) if stored is None else stored
    return entry_bytes(stored, compression=CompressionType.ZSTD, uncompressed_size=len(plain), **fields)


class TestCompressedRawBatches:
    """A payload that inflates to many times its size stays compressed until the application looks at it."""

    def test_what_waits_takes_the_memory_that_it_took_on_the_wire(self) -> None:
        s = reading(raw_batches=True)
        batch = encode_batch_payloads([ZEROS, ZEROS], 0)
        packed = compress(CompressionType.ZSTD, ZEROS)
        chunks = {"uuid": "u", "num_chunks_from_msg": 2, "total_chunk_msg_size": len(packed)}
        packed_batch = compress(CompressionType.ZSTD, batch)
        tracemalloc.start()
        try:
            for entry in range(0, 40, 4):
                s.deliver(entry, inflating(batch, packed_batch, num_messages_in_batch=2))
                s.deliver(entry + 1, inflating(ZEROS, packed))
                s.deliver(entry + 2, inflating(ZEROS, packed[:9], chunk_id=0, **chunks))
                s.deliver(entry + 3, inflating(ZEROS, packed[9:], chunk_id=1, **chunks))
            messages = s.take_together()
            assert tracemalloc.get_traced_memory()[1] < 1_000_000
        finally:
            tracemalloc.stop()
        assert [len(message.data) for message in messages] == [len(ZEROS)] * 40
        positions = [(1, 0, 0), (1, 0, 1), (1, 1, -1), (1, 3, -1)]
        assert [(*message.message_id[:2], message.batch_index) for message in messages[:4]] == positions
        assert messages[3].message_id.first_chunk == (1, 2)

    def test_one_by_one_all_the_same(self) -> None:
        s = reading(raw_batches=True)
        s.deliver(0, inflating(ZEROS))
        s.deliver(1, inflating(encode_batch_payloads([ZEROS, b"b"], 0), num_messages_in_batch=2))
        assert [s.receive().data for _ in range(3)] == [ZEROS, ZEROS, b"b"]
        assert s.reconnect().start_message_id.entryId == 1

    def test_a_place_before_the_chunks_of_what_waits(self) -> None:
        s = reading(raw_batches=True)
        packed = compress(CompressionType.ZSTD, ZEROS)
        chunks = {"uuid": "u", "num_chunks_from_msg": 2, "total_chunk_msg_size": len(packed)}
        s.deliver(3, inflating(ZEROS, packed[:9], chunk_id=0, **chunks))
        s.message(4)
        s.deliver(5, inflating(ZEROS, packed[9:], chunk_id=1, **chunks))
        assert s.receive().message_id[:2] == (1, 4)
        assert s.reconnect().start_message_id.entryId == 2

    def test_what_cannot_be_decompressed_is_found_out_when_it_is_read(self) -> None:
        s = reading(raw_batches=True)
        s.deliver(0, inflating(ZEROS, b"garbage"))
        s.deliver(1, inflating(ZEROS, b"garbage", num_messages_in_batch=2))
        for item in s.take_together().items:
            with pytest.raises(DecompressionFailed):
                list(Messages([item]))
        assert s.client.arrival_counters(s.consumer).discarded == 0

    def test_what_promises_too_much_is_discarded(self) -> None:
        s = reading(raw_batches=True)
        s.deliver(0, inflating(bytes(6_000_000)))
        assert s.take() == []
        assert s.client.arrival_counters(s.consumer).discarded == 1


class TestLastPosition:
    def test_where_the_topic_ends_and_how_far_it_is(self) -> None:
        s = reading()
        s.answers_positions = False
        request = s.client.last_position(s.now, s.consumer)
        s.pump()
        (command,) = s.expect("GET_LAST_MESSAGE_ID")
        response = proto.CommandGetLastMessageIdResponse(request_id=command.request_id)
        response.last_message_id.ledgerId, response.last_message_id.entryId = 5, 7
        response.consumer_mark_delete_position.ledgerId = 5
        response.consumer_mark_delete_position.entryId = 2**64 - 1
        s.say("GET_LAST_MESSAGE_ID_RESPONSE", response)
        assert s.outputs() == [RequestDone(request, LastPosition(MessageId(5, 7), (5, -1)))]

    def test_a_topic_without_memory_has_none(self) -> None:
        s = ReaderScript(EARLIEST)
        other = s.client.open_reader(s.now, ReaderSpec("non-persistent://public/default/t", EARLIEST))
        with pytest.raises(LocalProtocolError):
            s.client.last_position(s.now, other)


class TestCreation:
    def test_subscribing_may_not_create_the_topic(self) -> None:
        s = Script(create_topics=False)
        s.client.open_reader(s.now, ReaderSpec("t", EARLIEST))
        s.pump()
        (subscribe,) = s.expect("SUBSCRIBE")
        assert not subscribe.force_topic_creation
        assert ReaderScript(EARLIEST).accept().force_topic_creation
