"""`Rng`: the only randomness in the core, drawn from one seed.

This module owns the one import of `random`, and uses `Random(seed)` and `getrandbits` alone. These two give
the same numbers on every version of Python; `random()`, `choice()` and similar methods do not promise that.
The module knows nothing of the numbers' use.
"""

from random import Random

__all__ = ["Random", "Rng"]


class Rng:
    """A stream of numbers that is the same for the same seed, in every process."""

    __slots__ = ("getrandbits",)

    def __init__(self, seed: int) -> None:
        self.getrandbits = Random(seed).getrandbits

    def below(self, limit: int) -> int:
        """A whole number from 0 to `limit - 1`, each as likely as the others; `limit` is at least 1."""
        bits = limit.bit_length()
        while (number := self.getrandbits(bits)) >= limit:
            pass
        return number

    def around(self, value: int, percent: int) -> int:
        """`value`, at most `percent` per cent less or more."""
        spread = value * percent // 100
        return value - spread + self.below(2 * spread + 1)

    def letters(self, count: int) -> str:
        """`count` lower-case letters and digits, for names that need only differ from each other."""
        alphabet = "abcdefghijklmnopqrstuvwxyz0123456789"
        return "".join(alphabet[self.below(36)] for _ in range(count))
