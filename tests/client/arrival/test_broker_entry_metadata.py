"""Entries with the broker's metadata in front: what their messages say of index and time."""

from typing import Any

import pytest

from pulsar_sansio.wire import pack_broker_entry_metadata, proto
from tests.client.broker_script import ConsumerScript, batch_bytes, entry_bytes


def started(**spec: Any) -> ConsumerScript:
    s = ConsumerScript(**spec)
    s.accept()
    s.frames()
    return s


def facts(s: ConsumerScript) -> list[tuple[bytes, int | None, int | None]]:
    return [(message.data, message.index, message.broker_publish_time) for message in s.take()]


def test_singles_and_batches() -> None:
    s = started()
    s.deliver(0, pack_broker_entry_metadata(1000, 0) + entry_bytes(b"a"))
    s.deliver(1, pack_broker_entry_metadata(1001, 3) + batch_bytes([b"b", b"c", b"d"]))
    s.deliver(2, entry_bytes(b"e"))
    assert facts(s) == [
        (b"a", 0, 1000),
        (b"b", 1, 1001),
        (b"c", 2, 1001),
        (b"d", 3, 1001),
        (b"e", None, None),
    ]


def test_a_batch_of_which_a_part_is_delivered() -> None:
    s = started()
    s.deliver(0, pack_broker_entry_metadata(1000, 12) + batch_bytes([b"a", b"b", b"c"]), ack_set=0b100)
    assert facts(s) == [(b"c", 12, 1000)]


@pytest.mark.parametrize(
    ("stamp", "told"),
    [
        (proto.BrokerEntryMetadata(index=5), (5, None)),
        (proto.BrokerEntryMetadata(broker_timestamp=0), (None, 0)),
        (proto.BrokerEntryMetadata(), (None, None)),
        (proto.BrokerEntryMetadata(index=2**64 - 1, broker_timestamp=2**64 - 1), (2**64 - 1, 2**64 - 1)),
    ],
)
def test_a_broker_may_say_one_of_them(stamp: Any, told: tuple[int | None, int | None]) -> None:
    s = started()
    data = stamp.SerializeToString()
    s.deliver(0, b"\x0e\x02" + len(data).to_bytes(4, "big") + data + entry_bytes(b"a"))
    assert facts(s) == [(b"a", *told)]


def test_the_block_is_what_protobuf_makes_of_it() -> None:
    for time, index in ((0, 0), (1_700_000_000_000, 127), (2**63, 2**40)):
        data = proto.BrokerEntryMetadata(broker_timestamp=time, index=index).SerializeToString()
        assert pack_broker_entry_metadata(time, index) == b"\x0e\x02" + len(data).to_bytes(4, "big") + data
