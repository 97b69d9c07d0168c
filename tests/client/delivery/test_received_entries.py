"""`Messages`: several delivered together, made when they are looked at."""

import pickle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsar_sansio.client.delivery.received_entries import Messages, ReceivedBatch
from pulsar_sansio.model.config import SubscriptionType
from pulsar_sansio.model.errors import LocalProtocolError
from pulsar_sansio.model.message import Entry, Message, Source
from pulsar_sansio.wire import MessageCommand, MessageMetadata
from tests.client.broker_script import SECOND, ConsumerScript, entry_bytes

SOURCE = Source("persistent://public/default/t", -1)


class Started(ConsumerScript):
    def encoded(self, number: int, payload: bytes) -> bytes:
        """A MESSAGE frame; several in one read may take the way of plain entries."""
        return MessageCommand(0, 1, number, payload=entry_bytes(payload, sequence_id=number)).encode()


def started(**spec: Any) -> Started:
    script = Started(**spec)
    script.accept()
    script.frames()
    script.outputs()
    return script


def entry(number: int, size: int = 0) -> Entry:
    return Entry(SOURCE, (1, number), MessageMetadata("p", 0, 0), 0, None, None, size)


def mixed() -> Messages:
    """Two of a batch of three, and one by itself."""
    return Messages([ReceivedBatch(entry(0, 3), [b"a", b"c"], [0, 2]), [Message.of(b"d", entry(1), -1)]])


def test_it_is_a_sequence() -> None:
    messages = mixed()
    assert len(messages) == 3
    assert [message.data for message in messages] == [b"a", b"c", b"d"]
    assert [message.data for message in messages] == [b"a", b"c", b"d"]  # and once more
    assert [messages[i].data for i in range(-3, 3)] == [b"a", b"c", b"d"] * 2
    assert [message.batch_index for message in messages] == [0, 2, -1]
    assert messages[1].batch_index == 2
    assert [message.data for message in messages[1:]] == [b"c", b"d"]
    assert messages[2].entry.position == (1, 1)
    for index in (3, -4):
        with pytest.raises(IndexError, match=f"message {index} of 3"):
            messages[index]
    assert repr(messages) == "<3 messages>"


def test_none_of_them_is_false() -> None:
    assert not Messages([])
    assert list(Messages([])) == []


def test_plain_entries_keep_their_places() -> None:
    s = started()
    data = b"".join(s.encoded(number, f"{number}".encode()) for number in range(5))
    s.bytes(data)
    messages = s.take_together()
    assert [(m.message_id.entry_id, m.data) for m in messages] == [(n, b"%d" % n) for n in range(5)]
    assert messages[3].message_id.entry_id == 3


def test_out_of_a_pickle_it_is_a_list() -> None:
    s = started()
    s.batch(0, 2)
    again = pickle.loads(pickle.dumps(s.take_together()))
    assert type(again) is list
    assert [message.data for message in again] == [b"0.0", b"0.1"]


def test_messages_of_another_topic_are_acknowledged_by_no_consumer() -> None:
    s, other = started(), started(topic="other")
    other.batch(0, 2)
    other.message(1)
    for _ in range(2):
        with pytest.raises(LocalProtocolError, match=r"is from .*other"):
            s.acknowledge(other.take_together(2))
    s.close()
    s.expect("CLOSE_CONSUMER")


@settings(max_examples=60)
@given(
    sizes=st.lists(st.integers(0, 6), min_size=1, max_size=8),
    limits=st.lists(st.integers(1, 12), min_size=1, max_size=6),
    bits=st.integers(1, 63),
    kind=st.sampled_from([SubscriptionType.EXCLUSIVE, SubscriptionType.SHARED]),
    index_acknowledgement=st.booleans(),
)
def test_all_at_once_is_the_same_as_one_after_the_other(
    sizes: list[int], limits: list[int], bits: int, kind: SubscriptionType, index_acknowledgement: bool
) -> None:
    """The broker gets equal permits for all shapes of items and all limits of `take`. Rule ACK-22."""
    told = []
    for together in (True, False):
        s = started(subscription_type=kind, batch_index_acknowledgement=index_acknowledgement)
        for number, size in enumerate(sizes):
            if size:
                open_bits = bits & (1 << size) - 1
                s.batch(number, size, ack_set=open_bits or None)
            else:
                s.bytes(s.encoded(number, b"m"))
        for limit in limits:
            messages = s.take_together(limit)
            for each in [messages] if together else messages:
                s.acknowledge(each)
        s.pass_time(SECOND)
        acks = [command for name, command in s.frames() if name == "ACK"]
        told.append([(ack.ack_type, sorted(ack.message_ids)) for ack in acks])
    assert told[0] == told[1]
