"""Received messages: what they say of themselves, and that they are plain values."""

import pickle
from datetime import UTC, datetime
from typing import Any

import pytest

from pulsar_sansio.model.message import BrokerStampedEntry, Entry, Message, Source
from pulsar_sansio.model.message_id import MessageId
from pulsar_sansio.wire import MessageMetadata, SingleMessageMetadata, encode_single, split_batch

SOURCE = Source("persistent://public/default/t-partition-2", 2)
PLACE = (7, 3)


def single(payload: bytes = b"hello", redelivery_count: int = 0, **fields: Any) -> Message:
    header = MessageMetadata("p-1", 5, 1_700_000_000_000, **fields)
    return Message.of(payload, Entry(SOURCE, PLACE, header, redelivery_count, None), -1)


def batched(*members: tuple[bytes, dict[str, Any]]) -> list[Message]:
    header = MessageMetadata("p-1", 100, 1_700_000_000_000, num_messages_in_batch=len(members))
    payload = b"".join(encode_single(SingleMessageMetadata(**fields), data) for data, fields in members)
    batch = split_batch(payload, len(members))
    entry = Entry(SOURCE, PLACE, header, 4, None, batch, len(members))
    return [Message.of(data, entry, index) for index, data in enumerate(batch.payloads)]


class TestSingle:
    def test_says_everything_its_header_says(self) -> None:
        message = single(
            partition_key="k",
            properties=[("a", "1"), ("b", "2"), ("a", "3")],
            event_time=99,
            ordering_key=b"\x00\xff",
            redelivery_count=2,
        )
        assert message.data == message.value == b"hello"
        assert message.message_id == MessageId(7, 3, 2)
        assert message.message_id.batch_size == 0
        assert message.key == "k"
        assert message.key_bytes == b"k"
        assert not message.has_base64_key
        assert message.ordering_key == b"\x00\xff"
        assert message.properties == {"a": "3", "b": "2"}  # of two with one name the last counts
        assert message.event_time == 99
        assert message.publish_time == 1_700_000_000_000
        assert message.sequence_id == 5
        assert message.producer_name == "p-1"
        assert message.topic == "persistent://public/default/t-partition-2"
        assert message.redelivery_count == 2

    def test_what_is_not_there_has_a_plain_default(self) -> None:
        message = single()
        assert message.key is None
        assert message.key_bytes is None
        assert message.ordering_key is None
        assert message.properties == {}
        assert message.event_time == 0

    def test_an_empty_string_is_a_key(self) -> None:
        assert single(partition_key="").key == ""
        assert single(partition_key="").key_bytes == b""

    def test_a_key_of_bytes_travels_as_base64(self) -> None:
        message = single(partition_key="AP8=", partition_key_b64_encoded=True)
        assert message.has_base64_key
        assert message.key == "AP8="
        assert message.key_bytes == b"\x00\xff"

    def test_base64_that_is_none_is_a_value_error(self) -> None:
        with pytest.raises(ValueError, match="padding"):
            _ = single(partition_key="AP8", partition_key_b64_encoded=True).key_bytes

    @pytest.mark.parametrize(("null_value", "value"), [(True, None), (False, b"")])
    def test_a_null_value_is_not_an_empty_one(self, null_value: bool, value: bytes | None) -> None:
        message = single(b"", null_value=null_value)
        assert message.value == value
        assert message.data == b""


class TestBatched:
    def test_has_its_own_header_and_the_entry_s_facts(self) -> None:
        first, second = batched(
            (b"one", {"partition_key": "k1", "sequence_id": 100, "event_time": 5}),
            (b"two", {"properties": [("a", "b")], "sequence_id": 107}),
        )
        assert (first.key, first.event_time, first.properties, first.sequence_id) == ("k1", 5, {}, 100)
        # Nothing is inherited from the neighbour or from the batch (MSG-07).
        assert (second.key, second.event_time, second.properties) == (None, 0, {"a": "b"})
        assert second.sequence_id == 107
        assert second.message_id == MessageId(7, 3, 2, 1)
        assert second.message_id.batch_size == 2
        assert second.producer_name == "p-1"
        assert second.redelivery_count == 4

    def test_without_sequence_ids_they_count_from_the_batch_s(self) -> None:
        messages = batched((b"one", {}), (b"two", {}))
        assert [message.sequence_id for message in messages] == [100, 101]

    def test_a_batch_of_one_is_a_batch(self) -> None:
        """Rule MSG-10."""
        (only,) = batched((b"one", {"sequence_id": 100}))
        assert only.message_id == MessageId(7, 3, 2, 0)

    def test_a_null_value_in_a_batch(self) -> None:
        null, empty = batched((b"", {"null_value": True}), (b"", {}))
        assert null.value is None
        assert empty.value == b""


def stamped(message: Message, broker_publish_time: int | None, last_index: int | None) -> Message:
    """The message as though the broker had put its metadata in front of the entry."""
    old = message.entry
    entry = BrokerStampedEntry(
        old.source, old.position, old.header, old.redelivery_count, old.acknowledgement, old.batch, old.size
    )
    entry.stamp(broker_publish_time, last_index)
    return Message.of(message.data, entry, message.batch_index)


class TestBrokerStamp:
    def test_a_message_by_itself_has_the_index_of_its_entry(self) -> None:
        message = stamped(single(b"x"), 1000, 7)
        assert (message.index, message.broker_publish_time) == (7, 1000)
        assert message.broker_publish_datetime == datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)

    def test_in_a_batch_the_entry_has_the_index_of_its_last_message(self) -> None:
        messages = batched((b"one", {}), (b"two", {}), (b"three", {}))
        assert [stamped(message, 1000, 7).index for message in messages] == [5, 6, 7]

    def test_each_may_be_missing(self) -> None:
        assert stamped(single(b"x"), None, 0).broker_publish_datetime is None
        assert stamped(single(b"x"), None, 0).index == 0
        assert stamped(single(b"x"), 0, None).index is None
        assert stamped(single(b"x"), 0, None).broker_publish_time == 0
        assert (single(b"x").index, single(b"x").broker_publish_time) == (None, None)


class TestPlainness:
    @pytest.mark.parametrize(
        "message",
        [
            single(partition_key="k", properties=[("a", "1")], event_time=3, redelivery_count=1),
            single(b"", null_value=True),
            single(partition_key="AP8=", partition_key_b64_encoded=True, ordering_key=b"o"),
            batched((b"one", {"sequence_id": 100}), (b"two", {"partition_key": "k2"}))[1],
            stamped(single(), 1000, 7),
            stamped(batched((b"one", {}), (b"two", {}))[0], 1000, 7),
        ],
        ids=["everything", "null", "bytes key", "in a batch", "stamped", "stamped in a batch"],
    )
    def test_a_pickle_has_the_same_values(self, message: Message) -> None:
        again = pickle.loads(pickle.dumps(message))
        for name in dir(Message):
            if isinstance(getattr(Message, name), property) and name != "header":
                assert getattr(again, name) == getattr(message, name), name
        assert again.data == message.data
        assert again.message_id.batch_size == message.message_id.batch_size
        assert pickle.dumps(again) == pickle.dumps(message)

    def test_a_pickle_leaves_the_rest_of_the_batch_behind(self) -> None:
        messages = batched(*[(bytes(1000), {}) for _ in range(50)])
        assert len(pickle.dumps(messages[0])) < 2000

    def test_repr_names_the_message_and_not_its_content(self) -> None:
        text = repr(single(b"secret", partition_key="private"))
        assert text == "<Message 7:3:2 of persistent://public/default/t-partition-2, 6 bytes>"
