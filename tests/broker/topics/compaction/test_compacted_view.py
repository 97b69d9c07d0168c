"""`CompactedView`: kept entries are found by id, by offset and by publish time."""

from typing import Any

import pytest

from pulsar_sansio.broker.records import EntryAdded, TopicCompacted
from pulsar_sansio.broker.topics.compaction.compacted_view import CompactedView
from pulsar_sansio.broker.topics.messages import without
from pulsar_sansio.wire import (
    MessageMetadata,
    SingleMessageMetadata,
    encode_message_metadata,
    encode_single,
    pack_payload,
)

TOPIC = "persistent://public/default/t"


def entry(
    ledger_id: int, entry_id: int, publish_time: int, payload: bytes = b"x", **fields: Any
) -> EntryAdded:
    metadata = encode_message_metadata(MessageMetadata("p", 0, publish_time, **fields))
    data = b"".join(pack_payload(metadata, payload))
    return EntryAdded(TOPIC, ledger_id, entry_id, 1, publish_time, data)


def batch_of(count: int) -> bytes:
    return b"".join(
        encode_single(SingleMessageMetadata(0, partition_key=f"k{n}"), b"x") for n in range(count)
    )


def view(horizon: int, *entries: tuple[int, EntryAdded]) -> CompactedView:
    offsets = tuple(offset for offset, _ in entries)
    return CompactedView(TopicCompacted(TOPIC, 9, horizon, offsets, tuple(each for _, each in entries)))


KEPT = view(20, (3, entry(1, 3, 100)), (7, entry(1, 7, 90)), (12, entry(2, 2, 300)))


@pytest.mark.parametrize(
    ("position", "offset"),
    [((0, 9), 3), ((1, 3), 3), ((1, 4), 7), ((1, 8), 12), ((2, 2), 12), ((2, 3), None)],
)
def test_an_id_leads_to_its_entry_or_the_next_one(position: tuple[int, int], offset: int | None) -> None:
    assert KEPT.offset(*position) == offset


@pytest.mark.parametrize(("time", "offset"), [(0, 3), (100, 3), (101, 12), (300, 12), (301, None)])
def test_a_time_leads_to_the_first_entry_published_then_or_later(time: int, offset: int | None) -> None:
    assert KEPT.find_publish_time(time) == offset


def test_its_first_offset_and_size() -> None:
    assert KEPT.first == 3
    assert KEPT.size == sum(len(each.data) for each in KEPT.entries)
    assert (view(20).first, view(20).size) == (21, 0)


def test_the_last_position_is_that_of_the_last_message() -> None:
    assert KEPT.last_position == (2, 2, -1)
    assert view(20).last_position == (-1, -1, -1)


def test_a_message_without_its_last_chunk_is_not_the_last_one() -> None:
    chunk: dict[str, Any] = {"uuid": "u", "num_chunks_from_msg": 2}
    whole, first = entry(1, 1, 5, chunk_id=1, **chunk), entry(1, 2, 6, chunk_id=0, **chunk)
    assert view(5, (1, whole), (2, first)).last_position == (1, 1, -1)
    assert view(5, (2, first)).last_position == (-1, -1, -1)


def test_of_a_batch_the_last_kept_message_counts() -> None:
    whole = entry(1, 1, 5, batch_of(4), num_messages_in_batch=4)
    assert view(5, (1, whole)).last_position == (1, 1, 3)
    part = EntryAdded(TOPIC, 1, 1, 4, 5, without(whole.data, [0, 2]))
    assert view(5, (1, part)).last_position == (1, 1, 2)


def test_a_batch_that_cannot_be_read_has_as_many_messages_as_it_says() -> None:
    corrupt = entry(1, 1, 5, b"no batch", num_messages_in_batch=4)
    unknown = entry(1, 1, 5, b"no data", num_messages_in_batch=4, compression=1, uncompressed_size=9)
    for each in (corrupt, unknown):
        assert view(5, (1, each)).last_position == (1, 1, 3)
