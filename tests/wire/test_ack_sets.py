"""Acknowledgement sets: ints inside, signed words on the wire."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_sansio.wire import bits_from_words, words_from_bits


@given(st.integers(0, 2**300 - 1))
def test_bits_become_words_and_come_back(bits: int) -> None:
    words = words_from_bits(bits)
    assert bits_from_words(words) == bits
    assert int.from_bytes(struct.pack(f"<{len(words)}q", *words), "little") == bits
    assert not words or words[-1] != 0


@given(st.lists(st.integers(-(2**63), 2**64 - 1), max_size=5))
def test_any_words_are_a_set(words: list[int]) -> None:
    bits = bits_from_words(words)
    for index in range(64 * len(words)):
        assert bits >> index & 1 == words[index // 64] % 2**64 >> index % 64 & 1


@pytest.mark.parametrize("words", [[0], [5, 0], [5, 0, 0]])
def test_zero_words_at_the_end_mean_nothing(words: list[int]) -> None:
    assert words_from_bits(bits_from_words(words)) == [word for word in words if word]
