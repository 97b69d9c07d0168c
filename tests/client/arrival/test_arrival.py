"""From MESSAGE frame to queue: what is delivered, and what becomes
of the rest: told to the broker, counted, and its permits returned."""

from dataclasses import asdict
from typing import Any

import pytest

from pulsar_sansio.client.delivery.permits import MAX_ENTRIES_BEYOND_GRANT
from pulsar_sansio.client.outputs import (
    ConsumerFailed,
    Deliverable,
    Detached,
    Disconnect,
    Undecryptable,
)
from pulsar_sansio.model.config import CompressionType, SubscriptionType
from pulsar_sansio.model.errors import LocalProtocolError
from pulsar_sansio.model.message_id import MessageId
from pulsar_sansio.wire import (
    EncryptionKey,
    MessageCommand,
    SingleMessageMetadata,
    compress,
    encode_batch_payloads,
    encode_single,
    proto,
)
from tests.client.broker_script import SECOND, ConsumerScript, batch_bytes, entry_bytes

Validation = proto.CommandAck.ValidationError
QUEUE = 100


def started(**spec: Any) -> ConsumerScript:
    spec.setdefault("receiver_queue_size", QUEUE)
    spec.setdefault("acknowledgement_group_time", 3600.0)
    script = ConsumerScript(**spec)
    script.accept()
    script.frames()
    script.outputs()
    return script


def data(script: ConsumerScript) -> list[bytes]:
    return [message.data for message in script.take()]


def counted(script: ConsumerScript) -> dict[str, int]:
    counters = asdict(script.client._handles.consumers[script.consumer].counters)
    return {name: count for name, count in counters.items() if count and isinstance(count, int)}


def all_permits_are_back(script: ConsumerScript) -> bool:
    permits = script.machine.permits
    return permits.at_broker + permits.unreported == QUEUE and script.client.available(script.consumer) == 0


class TestDelivered:
    def test_an_entry_of_one_message(self) -> None:
        """Rule CRYPTO-04."""
        s = started()
        s.deliver(3, entry_bytes(b"hello", partition_key="k", sequence_id=9), redelivery_count=2)
        (message,) = s.take()
        assert message.data == b"hello"
        assert message.message_id == MessageId(1, 3)
        assert (message.key, message.sequence_id, message.redelivery_count) == ("k", 9, 2)

    def test_a_batch(self) -> None:
        """Rules CONS-32 and CONS-34."""
        s = started()
        s.batch(3, 3)
        messages = s.take()
        assert [message.data for message in messages] == [b"3.0", b"3.1", b"3.2"]
        assert [message.message_id for message in messages] == [MessageId(1, 3, -1, i) for i in range(3)]
        assert {message.message_id.batch_size for message in messages} == {3}

    def test_a_batch_of_one_is_a_batch(self) -> None:
        s = started()
        s.batch(3, 1)
        (message,) = s.take()
        assert (message.data, message.message_id) == (b"3.0", MessageId(1, 3, -1, 0))  # CONS-27

    def test_the_partition_of_an_id_is_the_topic_s(self) -> None:
        s = started(topic="t-partition-7")
        s.message(0, partition=3)
        assert s.receive().message_id.partition == 7

    @pytest.mark.parametrize("codec", [codec for codec in CompressionType if codec])
    def test_compressed(self, codec: CompressionType) -> None:
        s = started()
        plain = encode_batch_payloads([b"a" * 100, b"b" * 100], 0)
        fields = {"compression": codec, "uncompressed_size": len(plain), "num_messages_in_batch": 2}
        s.deliver(0, entry_bytes(compress(codec, plain), **fields))
        assert data(s) == [b"a" * 100, b"b" * 100]

    def test_an_empty_payload_and_a_null_value(self) -> None:
        s = started()
        s.deliver(0, entry_bytes(b"", properties=[("a", "b")]))
        s.deliver(1, entry_bytes(b"", null_value=True))
        empty, null = s.take()
        assert (empty.value, empty.properties, null.value) == (b"", {"a": "b"}, None)

    def test_without_checksum(self) -> None:
        s = started()
        s.deliver(0, entry_bytes(b"hello")[6:])
        assert data(s) == [b"hello"]


class TestAckSet:
    def test_only_what_is_set_is_delivered_and_only_that_was_charged(self) -> None:
        s = started()
        s.batch(0, 8, ack_set=0b11010101)
        messages = s.take()
        assert [message.batch_index for message in messages] == [0, 2, 4, 6, 7]
        assert [message.data for message in messages] == [b"0.0", b"0.2", b"0.4", b"0.6", b"0.7"]
        assert all_permits_are_back(s)

    def test_redelivered_many_times_it_does_not_make_permits(self) -> None:
        """BUG: half-acknowledged batches redelivered again and again made a grant of 50 grow to 100 000."""
        s = started()
        for _ in range(200):
            s.batch(0, 50, ack_set=1)
            s.take()
        assert all_permits_are_back(s)

    def test_bits_beyond_the_batch_are_nothing(self) -> None:
        s = started()
        s.batch(0, 2, ack_set=0b1110)
        assert data(s) == [b"0.1"]
        assert all_permits_are_back(s)

    def test_acknowledging_what_was_delivered_completes_the_entry(self) -> None:
        """Rule CONS-32."""
        s = started()
        s.batch(0, 4, ack_set=0b1010)
        s.acknowledge(s.take())
        s.close()
        ack, _ = s.expect("ACK", "CLOSE_CONSUMER")
        assert ack.message_ids == [(1, 0, None)]

    def test_an_empty_one_leaves_nothing_to_deliver(self) -> None:
        s = started()
        s.batch(0, 4, ack_set=0)
        assert data(s) == []
        assert all_permits_are_back(s)

    def test_an_entry_with_nothing_to_deliver_is_acknowledged(self) -> None:
        """A backlog would stay for ever: the application never gets a message of it."""
        s = started(acknowledgement_group_time=0.0)
        s.batch(0, 4, ack_set=0)
        (ack,) = s.expect("ACK")
        assert ack.message_ids == [(1, 0, None)]


class TestDiscarded:
    def expect_discarded(self, s: ConsumerScript, error: int, messages: int) -> None:
        (name, ack), *others = s.frames()
        assert name == "ACK"  # at once, not grouped (CONS-29)
        assert [name for name, _ in others] == ["FLOW"] * (messages >= QUEUE // 2)
        assert ack.message_ids == [(1, 0, None)]
        assert ack.validation_error == error
        assert data(s) == []
        assert counted(s) == {"discarded": messages}
        assert all_permits_are_back(s)
        s.message(1)
        assert data(s) == [b"m"]  # and the link goes on

    def test_a_wrong_checksum(self) -> None:
        s = started()
        stored = bytearray(entry_bytes(b"hello"))
        stored[-1] ^= 1
        s.deliver(0, bytes(stored))
        self.expect_discarded(s, Validation.ChecksumMismatch, 1)  # CONS-26

    @pytest.mark.parametrize("broker_metadata", [b"", b"\x0e\x02\x00\x00\x00\x02\x08\x05"])
    def test_damaged_batches_do_not_stall_the_flow(self, broker_metadata: bytes) -> None:
        """The broker charged what they hold."""
        s = started()
        for entry in range(5):
            stored = bytearray(broker_metadata + batch_bytes([b"x"] * QUEUE))
            stored[-1] ^= 1
            s.deliver(entry, bytes(stored))
            assert [
                getattr(command, "message_permits", None) for name, command in s.frames() if name == "FLOW"
            ] == [QUEUE]
        assert counted(s) == {"discarded": 5}
        assert all_permits_are_back(s)

    @pytest.mark.parametrize("count", [0, -1, 100_001, 2**31 - 1])
    def test_what_a_damaged_batch_cannot_hold_is_not_believed(self, count: int) -> None:
        s = started()
        stored = bytearray(entry_bytes(b"hello", num_messages_in_batch=count))
        stored[-1] ^= 1
        s.deliver(0, bytes(stored))
        self.expect_discarded(s, Validation.ChecksumMismatch, 1)

    @pytest.mark.parametrize(
        "stored", [b"", b"\x00", b"\x00\x00\x00\x05\x08", b"\x00\x00\x00\x02\x0a\x7f", b"\xff" * 20]
    )
    def test_metadata_that_cannot_be_read(self, stored: bytes) -> None:
        s = started()
        s.deliver(0, stored)
        self.expect_discarded(s, Validation.ChecksumMismatch, 1)

    def test_a_size_beyond_the_limit(self) -> None:
        s = started()
        s.deliver(0, entry_bytes(b"x", compression=CompressionType.ZLIB, uncompressed_size=2**31))
        self.expect_discarded(s, Validation.UncompressedSizeCorruption, 1)  # CONS-28

    @pytest.mark.parametrize("codec", [1, 2, 3, 4, 77])
    def test_what_cannot_be_decompressed(self, codec: int) -> None:
        s = started()
        s.deliver(
            0, entry_bytes(b"nonsense", compression=codec, uncompressed_size=50, num_messages_in_batch=4)
        )
        self.expect_discarded(s, Validation.DecompressionError, 4)

    @pytest.mark.parametrize("count", [2, 4, 0, -1, 2**31 - 1])
    def test_a_batch_that_is_none(self, count: int) -> None:
        s = started()
        payload = encode_batch_payloads([b"a", b"b", b"c"], 0)
        s.deliver(0, entry_bytes(payload, num_messages_in_batch=count))
        self.expect_discarded(s, Validation.BatchDeSerializeError, max(count, 1))

    def test_an_ack_set_for_a_batch_that_is_none(self) -> None:
        s = started()
        s.deliver(0, entry_bytes(b"short", num_messages_in_batch=2**31 - 1), ack_set=0b101)
        self.expect_discarded(s, Validation.BatchDeSerializeError, 2)


class TestDuplicates:
    def test_of_what_is_acknowledged_and_not_told_yet(self) -> None:
        """Rules CONS-24 and ACK-18."""
        s = started()
        s.message(0)
        s.batch(1, 3)
        s.acknowledge(s.take())
        s.message(0)
        s.batch(1, 3)
        assert data(s) == []
        assert counted(s) == {"duplicates": 4}
        assert all_permits_are_back(s)  # CONS-25

    def test_below_a_cumulative_acknowledgement(self) -> None:
        s = started()
        s.message(5)
        s.acknowledge_cumulative(s.receive())
        s.message(4)
        assert data(s) == []
        assert counted(s) == {"duplicates": 1}

    def test_once_told_it_is_delivered_again(self) -> None:
        """The broker has forgotten the acknowledgement, so the application has to give it again."""
        s = started(acknowledgement_group_time=0.0)
        s.message(0)
        s.acknowledge(s.receive())
        s.message(0)
        s.acknowledge(s.receive())
        s.expect("ACK", "ACK")

    def test_single_messages_of_a_batch(self) -> None:
        s = started(subscription_type=SubscriptionType.SHARED, batch_index_acknowledgement=True)
        s.batch(0, 3)
        s.acknowledge(s.take()[1])
        s.batch(0, 3)
        assert data(s) == [b"0.0", b"0.2"]
        assert counted(s) == {"duplicates": 1}
        assert all_permits_are_back(s)


class TestBeforeTheStart:
    def start(self, index: int = -1, *, inclusive: bool = False) -> ConsumerScript:
        return started(
            durable=False,
            start_message_id=MessageId(1, 5, -1, index),
            start_message_id_inclusive=inclusive,
        )

    def test_the_very_entry_is_dropped(self) -> None:
        s = self.start()
        s.message(5)
        s.message(6)
        assert [message.message_id.entry_id for message in s.take()] == [6]
        assert counted(s) == {"before_start": 1}
        assert all_permits_are_back(s)  # BUG: its permit was lost

    def test_unless_the_start_is_inclusive(self) -> None:
        s = self.start(inclusive=True)
        s.message(5)
        assert [message.message_id.entry_id for message in s.take()] == [5]

    def test_only_that_entry_is_looked_at(self) -> None:
        s = self.start()
        s.message(4)
        assert len(s.take()) == 1

    @pytest.mark.parametrize(("inclusive", "delivered"), [(False, [3, 4]), (True, [2, 3, 4])])
    def test_a_start_inside_of_a_batch(self, inclusive: bool, delivered: list[int]) -> None:
        s = self.start(2, inclusive=inclusive)
        s.batch(5, 5)
        assert [message.batch_index for message in s.take()] == delivered  # CONS-33
        assert all_permits_are_back(s)

    def test_a_start_inside_of_a_batch_with_an_ack_set(self) -> None:
        s = self.start(2)
        s.batch(5, 5, ack_set=0b01011)
        assert [message.batch_index for message in s.take()] == [3]
        assert counted(s) == {"before_start": 2}  # the one not in the set was never charged
        assert all_permits_are_back(s)

    def test_a_start_that_is_a_whole_entry_skips_nothing_of_a_batch(self) -> None:
        s = self.start()
        s.batch(5, 2)
        assert len(s.take()) == 2  # MSG-02: an id without an index is before all indexes

    def test_a_topic_without_memory_has_no_start(self) -> None:
        s = started(topic="non-persistent://a/b/c", durable=False, start_message_id=MessageId(0, 0))
        s.message(0, ledger=0)
        s.message(0, ledger=0)
        assert len(s.take()) == 2


class TestNotForTheApplication:
    def test_markers_are_acknowledged_and_ignored(self) -> None:
        s = started()
        s.deliver(0, entry_bytes(b"", marker_type=1))
        assert data(s) == []
        assert counted(s) == {"markers": 1}
        assert all_permits_are_back(s)
        s.close()
        ack, _ = s.expect("ACK", "CLOSE_CONSUMER")
        assert (ack.message_ids, ack.validation_error) == ([(1, 0, None)], None)

    def test_placeholders_of_compaction(self) -> None:
        s = started()
        members = [
            encode_single(SingleMessageMetadata(partition_key="a", compacted_out=True), b""),
            encode_single(SingleMessageMetadata(partition_key="b"), b"kept"),
            encode_single(SingleMessageMetadata(partition_key="c", null_value=True), b""),
        ]
        s.deliver(0, entry_bytes(b"".join(members), num_messages_in_batch=3))
        messages = s.take()
        assert [(message.batch_index, message.key, message.value) for message in messages] == [
            (1, "b", b"kept"),
            (2, "c", None),
        ]
        assert counted(s) == {"compacted_out": 1}
        assert all_permits_are_back(s)  # CONS-36
        s.acknowledge(messages)
        s.close()
        ack, _ = s.expect("ACK", "CLOSE_CONSUMER")
        assert ack.message_ids == [(1, 0, None)]  # no other consumer can acknowledge a placeholder

    def test_encrypted_messages_stay_unacknowledged(self) -> None:
        s = started()
        key = EncryptionKey("k", b"v")
        s.deliver(0, entry_bytes(b"secret", encryption_keys=[key], num_messages_in_batch=3))
        s.message(1)
        assert data(s) == [b"m"]
        assert counted(s) == {"undecryptable": 3}
        assert all_permits_are_back(s)  # CRYPTO-07
        s.expect()

    def test_the_first_encrypted_message_is_told_to_the_application(self) -> None:
        s = started(topic="t-partition-7")
        keys = [EncryptionKey("yours", b"v"), EncryptionKey("theirs", b"w")]
        s.deliver(4, entry_bytes(b"secret", encryption_keys=keys, num_messages_in_batch=3), ack_set=1 << 40)
        [told] = s.outputs()
        assert isinstance(told, Undecryptable)
        assert (told.consumer, told.message_id, told.discarded) == (s.consumer, MessageId(1, 4, 7), False)
        assert str(told.error) == (
            "encryption key 'yours', encryption key 'theirs': the consumer has no crypto_key_reader"
        )
        s.deliver(5, entry_bytes(b"secret", encryption_keys=keys))
        assert s.outputs() == []
        assert s.client.arrival_counters(s.consumer).undecryptable == 2

    def test_what_arrived_can_be_asked_of_an_open_consumer_only(self) -> None:
        s = started()
        with pytest.raises(LocalProtocolError, match="no consumer has the id 77"):
            s.client.arrival_counters(77)

    def test_a_message_in_one_chunk_is_an_ordinary_one(self) -> None:
        s = started()
        s.deliver(0, entry_bytes(b"all", uuid="u", num_chunks_from_msg=1, chunk_id=0))
        assert data(s) == [b"all"]


class TestTheLink:
    def test_a_broker_that_ignores_permits_loses_it(self) -> None:
        s = started(receiver_queue_size=1)
        for entry in range(MAX_ENTRIES_BEYOND_GRANT + 1):
            s.message(entry)
        assert len(s.outputs()) == 1  # Deliverable
        s.message(0)
        detached, lost = sorted(s.outputs(), key=lambda output: type(output).__name__)
        assert isinstance(detached, Detached)
        assert isinstance(lost, Disconnect)
        assert "after its permits were used up" in lost.reason

    def test_no_producer_can_take_it_away_by_what_it_writes_into_a_message(self) -> None:
        s = started(receiver_queue_size=1)
        for entry in range(5):
            s.deliver(entry, entry_bytes(b"x", uncompressed_size=2**31))
        assert len(s.take()) == 5
        assert [type(output) for output in s.outputs()] == [Deliverable]

    def test_so_does_one_that_sends_before_it_was_asked_to(self) -> None:
        s = ConsumerScript()
        s.frames()
        s.message(0)
        (lost,) = s.outputs()
        assert isinstance(lost, Disconnect)
        s.pass_time(SECOND)
        s.accept()
        assert not [output for output in s.outputs() if isinstance(output, ConsumerFailed)]

    def test_messages_for_an_unknown_consumer_are_ignored(self) -> None:
        s = started()
        s.bytes(MessageCommand(9, 1, 0, payload=entry_bytes(b"x")).encode())
        assert data(s) == []  # CONN-11
        s.close()
        s.message(0)
        s.batch(1, 3)
        assert [type(output) for output in s.outputs()] == []


def test_entries_of_one_batch_are_cut_by_their_own_header() -> None:
    s = started()
    s.deliver(0, batch_bytes([b"a" * size for size in (0, 1, 127, 128, 3000)]))
    assert [len(message.data) for message in s.take()] == [0, 1, 127, 128, 3000]
