"""Checkpoints as bytes and back; bytes that are no checkpoint are refused, whatever they are."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_sansio.model.checkpoint import decode_checkpoint, encode_checkpoint
from pulsar_sansio.model.errors import InvalidConfiguration
from pulsar_sansio.model.message_id import MessageId

TOPIC = "persistent://public/default/t"
numbers = st.integers(-1, 2**63 - 1)


@given(
    st.dictionaries(
        st.sampled_from([TOPIC, f"{TOPIC}-partition-0", "non-persistent://a/b/ü"]),
        st.builds(MessageId, numbers, numbers, numbers, numbers, numbers),
    )
)
def test_positions_come_back(positions: dict[str, MessageId]) -> None:
    assert decode_checkpoint(encode_checkpoint(positions)) == positions


def test_the_order_of_topics_makes_no_difference() -> None:
    one, other = MessageId(1, 2), MessageId(3, 4)
    assert encode_checkpoint({"a": one, "b": other}) == encode_checkpoint({"b": other, "a": one})


def test_short_names_become_full_ones() -> None:
    found = decode_checkpoint(b'{"version": 1, "positions": {"t": [1, 2, -1, -1, 0]}}')
    assert found == {TOPIC: MessageId(1, 2, -1, -1, 0)}


def test_another_version_is_named() -> None:
    with pytest.raises(InvalidConfiguration, match="of version 2, known is 1"):
        decode_checkpoint(b'{"version": 2, "positions": {}}')


@pytest.mark.parametrize(
    "fields", [[1, 2, 3, 4], [1] * 6, [1, 2, 3, 4, True], [1, 2, 3, 4, 2**63], [1, 2, 3, 4, -2], "12345", {}]
)
def test_an_id_has_five_numbers_of_64_bits(fields: Any) -> None:
    with pytest.raises(InvalidConfiguration, match="bytes that a reader gave"):
        decode_checkpoint(json.dumps({"version": 1, "positions": {TOPIC: fields}}).encode())


NO_CHECKPOINTS = [b"", b"\xff", b"[]", b"7", b"{}", b'{"version": 1}', b'{"version": 1, "positions": []}']


@pytest.mark.parametrize("data", [*NO_CHECKPOINTS, b"[" * 9_999])
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(InvalidConfiguration, match="bytes that a reader gave"):
        decode_checkpoint(data)
