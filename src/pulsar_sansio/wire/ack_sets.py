"""Acknowledgement sets: which messages of a batch are still to be delivered (rule ACK-04).

Inside, a set is a plain int: bit i stands for message i. On the wire it is a list of signed 64-bit
words, the lowest first, with zero words dropped at the end.
"""

import struct
from collections.abc import Sequence

_WORD_SIZE = 8
_MASK = (1 << 64) - 1


def words_from_bits(bits: int) -> list[int]:
    """The words of a set. `bits` is not negative; 0 gives no words, which means "nothing is left"."""
    if bits >> 63 == 0:
        return [bits] if bits else []
    count = (bits.bit_length() + 63) // 64
    return list(struct.unpack(f"<{count}q", bits.to_bytes(count * _WORD_SIZE, "little")))


def bits_from_words(words: Sequence[int]) -> int:
    """The set behind words, signed or unsigned; whatever lies beyond the last word is 0."""
    if len(words) == 1:
        return words[0] & _MASK
    return int.from_bytes(b"".join((word & _MASK).to_bytes(_WORD_SIZE, "little") for word in words), "little")
