"""Batches: the fast paths through them against protobuf reading member by member."""

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsar_sansio.model.errors import FrameError, InvalidMessage
from pulsar_sansio.wire import (
    SingleMessageMetadata,
    encode_batch_payloads,
    encode_keyed,
    encode_single,
    encode_unordered,
    proto,
    single_prefix,
    split_batch,
)
from pulsar_sansio.wire.messages.batch import encode_batch_parts
from tests.wire import oracle
from tests.wire.messages.test_metadata import check


def read_batch(data: bytes, count: int) -> list[tuple[Any, bytes]] | None:
    """Read a batch with protobuf, member by member; return None when it is malformed."""
    members = []
    position = 0
    for _ in range(count):
        if position + 4 > len(data):
            return None
        header = position + 4
        header_end = header + int.from_bytes(data[position:header], "big")
        if header_end > len(data):
            return None
        single = oracle.read(proto.SingleMessageMetadata, data[header:header_end])
        if single is None or single.payload_size < 0:
            return None
        position = header_end + single.payload_size
        if position > len(data):
            return None
        members.append((single, data[header_end:position]))
    return members if position == len(data) else None


def check_batch(data: bytes, count: int) -> None:
    """`split_batch` gives what protobuf gives, or refuses what it refuses."""
    members = read_batch(data, count)
    if members is None:
        with pytest.raises(FrameError):
            split_batch(data, count)
        return
    batch = split_batch(data, count)
    assert len(batch) == count
    assert batch.payloads == [payload for _, payload in members]
    plain = True
    for index, (single, _) in enumerate(members):
        check(batch.single(index), single)
        names = {field.name for field, _ in single.ListFields()}
        plain &= names <= {"payload_size", "sequence_id"}
    singles = [batch.single(index) for index in range(count)]
    assert batch.keys() == [single.partition_key for single in singles]
    # Plain may be denied without need, never claimed without right.
    assert plain or not batch.plain


def member(header: Any, payload: bytes) -> bytes:
    header.payload_size = len(payload)
    data: bytes = header.SerializeToString()
    return len(data).to_bytes(4, "big") + data + payload


def arbitrary_batch(random: Random) -> tuple[bytes, int]:
    """Stretches of uniform members, of members that differ in size or id, and of anything at all."""
    parts = []
    sequence_id = random.choice([0, 100, 127, 16380, 2**21 - 20, 2**28 - 20, 2**35, 2**63])
    for _ in range(random.randrange(1, 5)):
        kind = random.choice(["uniform", "sizes", "ids", "keys", "keyed", "any", "other order"])
        size = random.choice([0, 1, 5, 126, 127, 128, 300, 16383, 16384])
        for _ in range(random.choice([1, 2, 3, 20, 40, 70])):
            header = proto.SingleMessageMetadata()
            if kind == "sizes":
                size = random.choice([size, random.randrange(300)])
            if kind == "keys":
                header.partition_key = random.choice(["", "k", "key-1"])
                header.partition_key_b64_encoded = False
            if kind == "keyed":
                header.partition_key = random.choice(["", "k", "ключ", "k" * 127, "k" * 128, f"{size}"])
            if kind == "ids":
                sequence_id = random.choice([0, 1, sequence_id, random.randrange(2**64)])
            if kind != "any" or random.random() < 0.7:
                header.sequence_id = sequence_id % 2**64
            sequence_id += random.choice([1, 1, 1, 1, 0, 3])
            if kind == "any":
                size = random.randrange(9)
                if random.random() < 0.5:
                    parts.append(strange_member(random))
                    continue
            data = member(header, random.randbytes(size))
            if kind == "other order":
                data = in_other_order(header, data)
            parts.append(data)
    return b"".join(parts), len(parts)


def strange_member(random: Random) -> bytes:
    """A member whose header has any fields in any order, several times, and unknown ones."""
    size = random.randrange(9)
    written = oracle._written(random, proto.SingleMessageMetadata)
    # The last payload_size counts, so it is the true one.
    data = written.data + b"\x18" + bytes([size])
    return len(data).to_bytes(4, "big") + data + random.randbytes(size)


def in_other_order(header: Any, data: bytes) -> bytes:
    """The same member with the fields of its header turned round."""
    size = int.from_bytes(data[:4], "big")
    fields = b"".join(field for _, field in reversed(oracle.pieces(data[4 : 4 + size])))
    return data[:4] + fields + data[4 + size :]


# --- taking apart ----------------------------------------------------------------------------------


@settings(max_examples=40)
@given(st.integers(0, 2**64 - 1))
def test_any_batch_splits_as_protobuf_reads_it(seed: int) -> None:
    data, count = arbitrary_batch(Random(seed))
    check_batch(data, count)


@settings(max_examples=40)
@given(st.integers(0, 2**64 - 1))
def test_a_damaged_batch_is_refused_exactly_when_protobuf_refuses_it(seed: int) -> None:
    random = Random(seed)
    data, count = arbitrary_batch(random)
    damaged = bytearray(data)
    # Mostly near a header: a payload can hold anything.
    for _ in range(random.randrange(1, 3)):
        position = random.choice([random.randrange(12), random.randrange(len(damaged))]) % len(damaged)
        match random.choice(["cut", "change", "insert", "drop"]):
            case "cut":
                del damaged[-random.randrange(1, 9) :]
            case "change":
                damaged[position] = random.choice([0, 0x18, 0x40, 0x80, 0xFF, random.randrange(256)])
            case "insert":
                damaged[position:position] = random.randbytes(1)
            case _:
                del damaged[position]
        if not damaged:
            break
    check_batch(bytes(damaged), count + random.choice([0, 0, 0, -1, 1]))


@pytest.mark.parametrize("first", [0, 100, 16_300, 2**21 - 500, 2**28 - 500, 2**35 - 500])
@pytest.mark.parametrize("size", [0, 1, 100, 127, 128, 1024])
def test_a_long_regular_batch_over_the_edge_where_ids_get_longer(first: int, size: int) -> None:
    payloads = [bytes([index % 251]) * size for index in range(1000)]
    data = encode_batch_payloads(payloads, first)
    batch = split_batch(data, 1000)
    assert batch.payloads == payloads
    assert batch.plain
    for index in (0, 1, 27, 28, 500, 998, 999):
        assert batch.single(index) == SingleMessageMetadata(size, sequence_id=first + index)


def test_a_batch_of_one_and_members_without_ids() -> None:
    data = encode_single(SingleMessageMetadata(), b"one")
    assert split_batch(data, 1).payloads == [b"one"]
    batch = split_batch(data * 100, 100)
    assert batch.payloads == [b"one"] * 100
    assert batch.single(99).sequence_id is None
    assert batch.plain


@pytest.mark.parametrize(
    "special",
    [
        {"partition_key": "k"},
        {"properties": [("a", "b")]},
        {"null_value": True},
        {"compacted_out": True},
        {"event_time": 1},
        {"ordering_key": b"o"},
    ],
)
@pytest.mark.parametrize("place", [0, 1, 57, 99])
def test_one_special_member_makes_a_batch_not_plain(special: dict[str, Any], place: int) -> None:
    members = [
        encode_single(
            SingleMessageMetadata(sequence_id=500 + index, **(special if index == place else {})), b"x"
        )
        for index in range(100)
    ]
    batch = split_batch(b"".join(members), 100)
    assert not batch.plain
    found = batch.single(place)
    assert {name: getattr(found, name) for name in special} == special


def test_ids_that_get_shorter_and_longer_in_members_of_one_size() -> None:
    ids = [5, 300, 301, 302, 7, 8, 20_000, 20_001, 20_002, 20_003, 20_004, 4, 5, 6, 2**40, 2**40 + 1]
    data = b"".join(single_prefix(3, number) + b"abc" for number in ids)
    batch = split_batch(data, len(ids))
    assert [batch.single(index).sequence_id for index in range(len(ids))] == ids


def test_headers_that_look_uniform_and_are_not() -> None:
    null = SingleMessageMetadata(sequence_id=5, null_value=True)
    members = [encode_single(SingleMessageMetadata(sequence_id=2**14), b"abc"), encode_single(null, b"abc")]
    for data, count in (
        (b"".join(members), 2),
        (b"".join(members * 9), 18),
        (b"".join(members[::-1] * 9), 18),
    ):
        check_batch(data, count)
    # A size of three bytes where two would do, after members whose sizes have two.
    usual = [single_prefix(200 + index, 70_000 + index) + bytes(200 + index) for index in range(5)]
    long = b"\x00\x00\x00\x08\x18\x83\x80\x00\x40\xf5\xa2\x04abc"
    same = b"\x00\x00\x00\x07\x18\x83\x00\x40\xf5\xa2\x04abc"
    check_batch(b"".join([*usual, long, *usual, same, *usual]), 17)


def test_single_is_for_members_of_the_batch_only() -> None:
    batch = split_batch(encode_batch_payloads([b"a", b"b"], 0), 2)
    for index in (-1, 2):
        with pytest.raises(IndexError):
            batch.single(index)


def keyed(size: int, *keys: str, is_base64: bool | None = None) -> bytes:
    """As the C++ client writes them, or, saying what keys stand for, as the Java client does."""
    said = {} if is_base64 is None else {"partition_key_b64_encoded": is_base64}
    return b"".join(
        encode_single(
            SingleMessageMetadata(partition_key=key, sequence_id=7 + 100 * number, **said),
            b"%0*d" % (size, number) if size > 5 else b"v" * size,
        )
        for number, key in enumerate(keys)
    )


@pytest.mark.parametrize("is_base64", [None, False, True])
@pytest.mark.parametrize("size", [0, 1, 127, 128, 16_383, 16_384])
def test_keys(size: int, is_base64: bool | None) -> None:
    keys = [f"key-{number % 17}" for number in range(300)]
    batch = split_batch(keyed(size, *keys, is_base64=is_base64), 300)
    assert batch.payloads == [b"%0*d" % (size, n) if size > 5 else b"v" * size for n in range(300)]
    assert batch.keys() == keys
    assert batch.single(299).sequence_id == 7 + 29_900
    assert batch.single(7).partition_key_b64_encoded == bool(is_base64)
    assert not batch.plain


# --- what is refused -------------------------------------------------------------------------------

TWO = encode_batch_payloads([b"one", b"two"], 7)


@pytest.mark.parametrize(
    ("data", "count", "words"),
    [
        (TWO, 0, "cannot hold"),
        (TWO, -1, "cannot hold"),
        (TWO, 2**31 - 1, "cannot hold"),
        (b"", 1, "cannot hold"),
        (TWO, 3, "ends inside"),
        (TWO[:-1], 2, "ends inside"),
        (TWO, 1, "followed by"),
        (TWO + b"\0", 2, "followed by"),
        (b"\0\0\0\x02\x40\x01" + b"\0" * 9, 1, "payload_size"),
        (b"\0\0\0\x0b\x18" + b"\xff" * 9 + b"\x01", 1, "payload of -1"),
        (b"\0\0\0\x03\x0a\x05\x18\x01", 1, "ends inside"),
        (keyed(9, "k", "l", "m")[:-1], 3, "ends inside"),
        (keyed(9, "k", "l", "m"), 2, "followed by"),
        (b"\xff\xff\xff\xff\x18\x01", 1, "ends inside"),
        (b"\0\0\0\x0e\x18\x00\x40" + b"\xff" * 10 + b"\x01", 1, "ten bytes"),
    ],
)
def test_malformed_batches_are_refused(data: bytes, count: int, words: str) -> None:
    with pytest.raises(FrameError, match=words):
        split_batch(data, count)


UNUSUAL_FIELDS = {
    "a property behind the size": b"\x18\x03\x0a\x06\x0a\x01k\x12\x01v",
    "a value before its key": b"\x0a\x06\x12\x01v\x0a\x01k\x18\x03",
    "a length of a key that is longer than it has to be": b"\x18\x03\x0a\x07\x0a\x81\x00k\x12\x01v",
    "a size that is longer than it has to be": b"\x18\x83\x80\x00",
    "two sizes": b"\x18\x05\x18\x03",
    "a key behind the size": b"\x18\x03\x12\x01k",
    "a time that is longer than it has to be": b"\x18\x03\x28\x85\x80\x00",
    "compacted out": b"\x18\x03\x20\x01",
    "compacted out, taken back": b"\x18\x03\x20\x01\x20\x00",
    "null": b"\x18\x03\x48\x01",
    "an ordering key": b"\x18\x03\x3a\x02zz",
    "a field of later": b"\x18\x03\xf8\x07\x01",
    "four bytes of later": b"\x18\x03\x55\xff\xff\xff\xff",
    "eight bytes of later": b"\x18\x03\x51\xff\xff\xff\xff\xff\xff\xff\xff",
    "eight bytes of later in front": b"\x51\xff\xff\xff\xff\xff\xff\xff\xff\x18\x83\x80\x00",
}


@pytest.mark.parametrize("header", UNUSUAL_FIELDS.values(), ids=UNUSUAL_FIELDS)
def test_headers_that_no_client_writes_like_this(header: bytes) -> None:
    data = 2 * (len(header).to_bytes(4, "big") + header + b"\xff\xff\xff")
    check_batch(data, 2)
    batch = split_batch(data, 2)
    assert batch.compacted is (header == UNUSUAL_FIELDS["compacted out"])


def test_a_property_that_cannot_be_read_is_found_when_the_batch_is_split() -> None:
    header = b"\x0a\x03\x0a\x05k\x18\x01"
    with pytest.raises(FrameError):
        split_batch(len(header).to_bytes(4, "big") + header + b"x", 1)


@pytest.mark.parametrize("key_size", [0, 1, 5, 127, 128, 129, 200])
@pytest.mark.parametrize("value_size", [0, 1, 127, 128, 200])
def test_a_property_at_the_end_of_a_batch(key_size: int, value_size: int) -> None:
    key = b"\x0a" + oracle.varint(key_size) + bytes(key_size)
    value = b"\x12" + oracle.varint(value_size) + bytes(value_size)
    unknown = b"\x78\xff\x7f"
    for pair in (key + value, value + key, unknown + key + value):
        header = b"\x18\x00\x0a" + oracle.varint(len(pair)) + pair
        check_batch((len(header).to_bytes(4, "big") + header) * 2, 2)


# --- putting together ------------------------------------------------------------------------------


@given(oracle.messages(proto.SingleMessageMetadata), st.binary(max_size=200))
def test_encode_single_is_what_protobuf_writes(message: Any, payload: bytes) -> None:
    fields: dict[str, Any] = {field.name: value for field, value in message.ListFields()}
    fields["properties"] = [(pair.key, pair.value) for pair in message.properties]
    assert encode_single(SingleMessageMetadata(**fields), payload) == member(message, payload)


EDGES = st.sampled_from([0, 1, 127, 128, 16383, 16384, 2**21, 2**28 - 1, 2**28, 2**35, 2**63 - 1])


@settings(max_examples=25)
@given(st.lists(st.integers(0, 400), max_size=300), EDGES, st.integers(0, 300))
def test_encode_batch_payloads_is_member_by_member(sizes: list[int], edge: int, before: int) -> None:
    first = max(0, edge - before)
    payloads = [bytes(size) for size in sizes]
    expected = [
        member(proto.SingleMessageMetadata(sequence_id=first + index), payload)
        for index, payload in enumerate(payloads)
    ]
    assert encode_batch_payloads(payloads, first) == b"".join(expected)
    singly = [single_prefix(len(payload), first + index) + payload for index, payload in enumerate(payloads)]
    assert singly == expected


@pytest.mark.parametrize("sizes", [[100] * 3000, [1000] * 300, [700, 1400] * 150, [200_000] * 3, [1] * 30])
def test_a_large_batch_is_encoded_in_parts(sizes: list[int]) -> None:
    payloads = [bytes(size) for size in sizes]
    parts = encode_batch_parts(payloads, 70_000)
    assert b"".join(parts) == b"".join(
        single_prefix(size, 70_000 + index) + payload
        for index, (size, payload) in enumerate(zip(sizes, payloads, strict=True))
    )
    assert all(len(part) > 16_000 for part in parts[:-1])
    assert all(len(part) <= max(200_000, max(sizes) + 20) for part in parts)


@settings(max_examples=25)
@given(st.sampled_from([0, 1, 100, 127, 128, 700]), st.integers(20, 1100), EDGES, st.integers(0, 1100))
def test_payloads_of_one_size_are_encoded_as_any_others(
    size: int, count: int, edge: int, before: int
) -> None:
    first = max(0, edge - before)
    payloads = [bytes([index & 0xFF]) * size for index in range(count)]
    expected = [single_prefix(size, first + index) + payload for index, payload in enumerate(payloads)]
    assert encode_batch_payloads(payloads, first) == b"".join(expected)


@given(st.integers(0, 2**31 - 1), EDGES)
def test_single_prefix_is_what_protobuf_writes(payload_size: int, sequence_id: int) -> None:
    header = proto.SingleMessageMetadata(
        payload_size=payload_size, sequence_id=sequence_id
    ).SerializeToString()
    assert single_prefix(payload_size, sequence_id) == len(header).to_bytes(4, "big") + header


def test_more_different_sizes_than_are_remembered() -> None:
    payloads = [bytes(size) for size in range(5000)]
    assert split_batch(encode_batch_payloads(payloads, 0), 5000).payloads == payloads


def test_text_without_a_utf8_form_is_the_callers_mistake() -> None:
    with pytest.raises(InvalidMessage):
        encode_single(SingleMessageMetadata(partition_key="\ud800"), b"")


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)


@given(
    TEXT,
    st.booleans(),
    st.integers(0, 2**63 - 1),
    st.integers(0, 2**63 - 1),
    st.binary(max_size=300),
)
def test_a_member_with_a_key_is_what_the_general_way_makes_of_it(
    key: str, is_base64: bool, event_time: int, sequence_id: int, payload: bytes
) -> None:
    single = SingleMessageMetadata(
        partition_key=key, partition_key_b64_encoded=is_base64, sequence_id=sequence_id
    )
    if event_time:
        single.event_time = event_time
    assert encode_keyed(key, is_base64, event_time, sequence_id, payload) == encode_single(single, payload)


@given(
    st.lists(st.tuples(TEXT, TEXT), max_size=3),
    st.none() | TEXT,
    st.booleans(),
    st.integers(0, 2**63 - 1),
    st.integers(0, 2**63 - 1),
    st.none() | st.binary(max_size=300),
)
def test_a_member_with_properties_is_what_the_general_way_makes_of_it(
    properties: list[tuple[str, str]],
    key: str | None,
    is_base64: bool,
    event_time: int,
    sequence_id: int,
    payload: bytes | None,
) -> None:
    message = proto.SingleMessageMetadata(payload_size=len(payload or b""), sequence_id=sequence_id)
    for name, value in properties:
        message.properties.add(key=name, value=value)
    if key is not None:
        message.partition_key = key
        message.partition_key_b64_encoded = is_base64
    if event_time:
        message.event_time = event_time
    if payload is None:
        message.null_value = True
    header = message.SerializeToString()
    expected = len(header).to_bytes(4, "big") + header + (payload or b"")
    assert encode_unordered(properties, key, is_base64, event_time, sequence_id, payload) == expected


def test_a_key_without_a_form_in_utf_8_is_refused_by_the_short_way_too() -> None:
    with pytest.raises(InvalidMessage, match="UTF-8"):
        encode_keyed("\ud800", False, 0, 0, b"")
