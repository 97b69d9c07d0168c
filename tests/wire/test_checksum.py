"""CRC-32C against a computation bit by bit."""

from hypothesis import given
from hypothesis import strategies as st

from pulsar_sansio.wire import crc32c


def bit_by_bit(data: bytes) -> int:
    crc = 0xFFFF_FFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F6_3B78 if crc & 1 else 0)
    return crc ^ 0xFFFF_FFFF


@given(st.binary(max_size=60))
def test_crc32c(data: bytes) -> None:
    assert crc32c(data) == bit_by_bit(data)


@given(st.binary(max_size=60), st.integers(0, 60))
def test_going_on_from_what_came_before(data: bytes, cut: int) -> None:
    assert crc32c(data[cut:], crc32c(data[:cut])) == crc32c(data)
    assert crc32c(memoryview(data)[cut:]) == crc32c(data[cut:])
