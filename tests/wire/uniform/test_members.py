"""Members of a batch at equal distances are compared column by column, and cut in one go."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_sansio.wire.uniform.members import count_uniform, cut_pieces

HEADER = 3
"""A constant byte, and a varint of two bytes."""


def members(*varints: bytes, first: bytes = b"H") -> bytes:
    return b"".join(first + varint + b"payload" for varint in varints)


def count(data: bytes, most: int, number: int = 2) -> int:
    return count_uniform(data, 0, 10, most, range(HEADER - number), HEADER, number)


GOOD = b"\x80\x01"


def test_members_with_equal_bytes_and_varints_of_one_length_are_alike() -> None:
    assert count(members(b"\x80\x01", b"\xff\x7f", b"\x81\x02"), 3) == 3


@pytest.mark.parametrize("wrong", [b"\x00\x01", b"\x80\x80", b"\x7f\x7f", b"\xff\xff"])
@pytest.mark.parametrize("at", [1, 5, 40])
def test_a_varint_of_another_length_ends_them(wrong: bytes, at: int) -> None:
    assert count(members(*[GOOD] * at, wrong, *[GOOD] * 9), at + 10) == at


@pytest.mark.parametrize("at", [1, 5, 40])
def test_another_constant_byte_ends_them(at: int) -> None:
    data = members(*[GOOD] * at) + members(GOOD, first=b"h") + members(*[GOOD] * 9)
    assert count(data, at + 10) == at


def test_the_first_difference_of_several_counts() -> None:
    data = bytearray(members(*[GOOD] * 10))
    data[70] ^= 1
    data[32] = 0x80
    assert count(bytes(data), 10) == 3


def test_without_a_varint_only_the_constant_bytes_are_compared() -> None:
    assert count_uniform(members(b"ab", b"cd", b"ef"), 0, 10, 3, [0], HEADER, 0) == 3


def test_no_more_are_counted_than_were_asked_for() -> None:
    assert count(members(*[GOOD] * 9), 4) == 4


@given(st.integers(0, 3), st.integers(0, 5), st.integers(0, 3), st.integers(0, 150), st.integers(0, 4))
def test_cutting_is_slicing_each_member(skipped: int, size: int, behind: int, many: int, begin: int) -> None:
    stride = skipped + size + behind
    if not stride:
        return
    data = bytes(n % 251 for n in range(begin + stride * many + 7))
    starts = [begin + n * stride + skipped for n in range(many)]
    assert cut_pieces(data, begin, skipped, size, stride, many) == [data[at : at + size] for at in starts]
