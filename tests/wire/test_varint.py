"""Varints against the definition."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_sansio.model.errors import FrameError
from pulsar_sansio.wire import encode_varint
from pulsar_sansio.wire.varint import read_varint
from tests.wire import oracle

EDGES = [0, 1, 127, 128, 16383, 16384, 2**21, 2**28 - 1, 2**28, 2**42, 2**56, 2**63 - 1, 2**63, 2**64 - 1]
NUMBERS = st.sampled_from(EDGES) | st.integers(0, 2**64 - 1)


@given(NUMBERS)
def test_numbers_come_back(value: int) -> None:
    data = encode_varint(value)
    assert data == oracle.varint(value)
    assert read_varint(b"x" + data + b"y", 1) == (value, 1 + len(data))


@given(st.sampled_from([-1, -128, -(2**31), -(2**63)]) | st.integers(-(2**63), -1))
def test_negative_numbers_take_ten_bytes(value: int) -> None:
    data = encode_varint(value)
    assert data == oracle.varint(value)
    assert len(data) == 10
    assert read_varint(data, 0) == (value + 2**64, 10)


@pytest.mark.parametrize("value", [2**64, -(2**63) - 1, 2**100])
def test_numbers_of_more_than_64_bits_are_refused(value: int) -> None:
    with pytest.raises(OverflowError):
        encode_varint(value)


def test_bits_beyond_64_are_dropped() -> None:
    assert read_varint(b"\xff" * 9 + b"\x7f", 0) == (2**64 - 1, 10)


def test_longer_than_needed_is_read() -> None:
    assert read_varint(b"\x85\x80\x00", 0) == (5, 3)


def test_more_than_ten_bytes_are_refused() -> None:
    with pytest.raises(FrameError, match="ten bytes"):
        read_varint(b"\x80" * 10 + b"\x01", 0)


@pytest.mark.parametrize("data", [b"", b"\x80", b"\xff" * 9])
def test_an_end_inside_is_an_index_error(data: bytes) -> None:
    with pytest.raises(IndexError):
        read_varint(data, 0)
