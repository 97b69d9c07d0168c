"""`MemberTemplate`: where the fields of a header are, and which members have no template."""

from typing import Any

import pytest

from pulsar_sansio import member_template
from pulsar_sansio.wire import SingleMessageMetadata, encode_single
from pulsar_sansio.wire.uniform.member_template import LONGEST_HEADER


def member(payload: bytes = b"payload", **fields: Any) -> bytes:
    return encode_single(SingleMessageMetadata(**fields), payload)


def test_places_are_those_of_the_fields() -> None:
    data = member(
        properties=[("name", "value")],
        partition_key="key",
        ordering_key=b"order",
        sequence_id=300,
        event_time=7,
    )
    template = member_template(b"xy" + data + b"more", 2)
    assert template is not None
    assert template.stride == len(data)
    assert data[template.header :] == b"payload"
    assert template.key is not None
    assert template.ordering_key is not None
    assert template.sequence_id is not None
    assert template.event_time is not None
    ((name, value),) = template.properties
    places = [template.key, template.ordering_key, template.sequence_id, template.event_time, name, value]
    assert [data[start : start + size] for start, size in places] == [
        b"key",
        b"order",
        b"\xac\x02",
        b"\x07",
        b"name",
        b"value",
    ]


def fixed_bits(data: bytes, mask: bytes) -> bytes:
    return bytes(byte & bits for byte, bits in zip(data, mask, strict=False))


def test_members_are_uniform_if_their_fixed_bits_are_equal() -> None:
    first = member(partition_key="key-1", sequence_id=300)
    template = member_template(first, 0)
    assert template is not None
    for uniform in (first, member(b"PAYLOAD", partition_key="key-2", sequence_id=16_000)):
        assert fixed_bits(uniform, template.mask) == template.common
    for other in (
        member(partition_key="key-1", sequence_id=3),
        member(partition_key="key-11", sequence_id=300),
        member(b"longer than the payload", partition_key="key-1", sequence_id=300),
    ):
        assert fixed_bits(other, template.mask) != template.common


def test_flags_are_fixed() -> None:
    template = member_template(member(b"", null_value=True, partition_key_b64_encoded=True), 0)
    assert template is not None
    assert template.null_value
    assert template.key_is_base64
    assert not template.compacted_out


@pytest.mark.parametrize(
    "data",
    [
        member()[:-1],
        member()[:5],
        b"\x00\x00\x00\x02\x18",
        member(partition_key="k" * LONGEST_HEADER),
        b"\x00\x00\x00\x04\x18\x00\xa0\x06",  # a field that the schema does not have
        b"\x00\x00\x00\x06\x12\x01k\x12\x01k\x18\x00",  # two keys
        b"\x00\x00\x00\x02\x40\x01",  # no payload size
        b"\x00\x00\x00\x04\x18\x00\x12\x09",  # a key that ends behind the header
    ],
)
def test_other_members_have_no_template(data: bytes) -> None:
    assert member_template(data, 0) is None
