"""Acknowledgement sets: which messages of a batch are still to be delivered (rule ACK-09 and encodings).

Inside, a set is a plain int: bit i stands for message i. On the wire it is a list of signed 64-bit
words, the lowest first, with zero words dropped at the end.
"""

from collections.abc import Sequence

_WORD = 64
_MASK = (1 << _WORD) - 1


def words_from_bits(bits: int) -> list[int]:
    """The words of a set. `bits` is not negative; 0 gives no words, which means "nothing is left"."""
    words = []
    while bits:
        word = bits & _MASK
        words.append(word - (1 << _WORD) if word >> _WORD - 1 else word)
        bits >>= _WORD
    return words


def bits_from_words(words: Sequence[int]) -> int:
    """The set behind words, signed or unsigned; whatever lies beyond the last word is 0."""
    bits = 0
    for word in reversed(words):
        bits = bits << _WORD | word & _MASK
    return bits
