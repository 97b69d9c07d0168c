"""Any bytes of a peer: no exception, other links unharmed, memory bounded."""

import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsar_sansio.broker import BrokerConfig
from pulsar_sansio.wire import (
    Ack,
    Flow,
    MessageMetadata,
    Send,
    encode_command,
    encode_message_metadata,
    pack_payload,
    proto,
)
from tests.broker.peer import SubType, Type, World

numbers = st.one_of(st.integers(0, 3), st.sampled_from([2**31 - 1, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1]))
small_numbers = st.one_of(st.integers(0, 3), st.just(2**31 - 1))
texts = st.one_of(
    st.sampled_from(
        ["t", "persistent://public/default/t", "non-persistent://public/default/n", "a/b", "", "s"]
    ),
    st.text(max_size=5),
)


def _fields(descriptor: Any, depth: int = 0) -> st.SearchStrategy[dict[str, Any]]:
    """Any message of a descriptor: required fields always, optional ones sometimes."""
    required: dict[str, st.SearchStrategy[Any]] = {}
    optional: dict[str, st.SearchStrategy[Any]] = {}
    for field in descriptor.fields:
        value = _value(field, depth)
        if value is None:
            continue
        if field.is_repeated:
            value = st.lists(value, max_size=2)
        (required if field.is_required else optional)[field.name] = value
    return st.fixed_dictionaries(required, optional=optional)


def _value(field: Any, depth: int) -> st.SearchStrategy[Any] | None:
    if field.message_type is not None:
        return _fields(field.message_type, depth + 1) if depth < 3 else None
    if field.enum_type is not None:
        return st.sampled_from([value.number for value in field.enum_type.values])
    return {
        field.TYPE_STRING: texts,
        field.TYPE_BYTES: st.binary(max_size=5),
        field.TYPE_BOOL: st.booleans(),
        field.TYPE_DOUBLE: st.floats(),
        field.TYPE_INT32: small_numbers,
        field.TYPE_UINT32: small_numbers,
    }.get(field.type, st.integers(0, 2**63 - 1) if field.type == field.TYPE_INT64 else numbers)


def _cold(number: int) -> st.SearchStrategy[bytes]:
    field = proto.BaseCommand.DESCRIPTOR.fields_by_number[number]
    assert field.message_type is not None
    kind = getattr(proto, field.message_type.name)
    return _fields(field.message_type).map(lambda fields: encode_command(number, kind(**fields)))


METADATA = encode_message_metadata(MessageMetadata("p", 0, 0))
PAYLOAD = b"".join(pack_payload(METADATA, b"x"))
BATCH = encode_message_metadata(
    MessageMetadata("p", 0, 0, num_messages_in_batch=9, uncompressed_size=2**32 - 1)
)
payloads = st.one_of(
    st.just(PAYLOAD), st.binary(max_size=30), st.just(b"".join(pack_payload(BATCH, b"x"))), st.just(METADATA)
)
bits = st.none() | st.integers(0, 2**70)
signed = st.sampled_from([-1, 0, 1, 5, 2**63 - 1, -(2**63)])
positions = st.lists(st.tuples(signed, signed, bits), max_size=3)
hot = st.one_of(
    st.tuples(small_numbers, numbers, small_numbers, st.none() | numbers, payloads).map(
        lambda fields: Send(*fields[:4], payload=fields[4]).encode()
    ),
    st.tuples(small_numbers, small_numbers).map(lambda fields: Flow(*fields).encode()),
    st.tuples(small_numbers, st.integers(0, 1), positions).map(lambda fields: Ack(*fields).encode()),
)
commands = [
    number for number in proto.BaseCommand.DESCRIPTOR.fields_by_number if number not in (1, 6, 7, 9, 10, 11)
]
frames = st.one_of(hot, hot, st.sampled_from(commands).flatmap(_cold), st.binary(max_size=20))


@given(st.lists(frames, max_size=8), st.sampled_from([1, 7, 1000]))
@settings(max_examples=60)
def test_any_commands_in_any_order(script: list[bytes], cut: int) -> None:
    world = World(BrokerConfig(max_unsent_bytes=100_000))
    innocent = world.connect()
    innocent.producer("persistent://public/default/mine")
    innocent.subscribe(SubType.Shared, topic="persistent://public/default/mine")
    hostile = world.connect()
    hostile.producer("t", producer_id=0)
    hostile.subscribe(SubType.Shared, 1, "t")
    for frame in script:
        for place in range(0, len(frame), cut):
            if hostile.closed is None:
                hostile.feed(frame[place : place + cut])
        world.advance(0.3)
    innocent.inbox.clear()
    innocent.publish(b"still here")
    assert [number for number, _ in innocent.inbox] == [Type.SEND_RECEIPT, Type.MESSAGE]
    world.advance(100)
    if hostile.closed is None:
        hostile.drop()
    world.start()


@given(st.binary(max_size=200))
@settings(max_examples=100)
def test_any_bytes_before_and_after_the_handshake(data: bytes) -> None:
    world = World()
    world.raw().feed(data)
    world.connect().feed(data)


@pytest.mark.unwatched(why="memory is measured, and the checker remembers more than a machine")
def test_a_peer_cannot_make_us_hold_more_than_a_frame_and_its_acknowledgements() -> None:
    """A frame that is announced and never sent, endless permits, endless bit sets."""
    world = World(BrokerConfig(max_message_size=100_000))
    peer = world.connect()
    peer.producer()
    peer.subscribe(SubType.Shared)
    peer.publish_batch([b"x"] * 10)
    tracemalloc.start()
    try:
        peer.ack((0, 0, 2**100_000 - 2))
        for _ in range(2000):
            peer.flow(1)
            peer.ack((0, 0, 2**64 - 2), (5, 5, None))
        peer.feed(b"\0\1\0\0\0\0\0\x20" + b"x" * 60_000)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 400_000
