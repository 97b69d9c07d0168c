"""`KeySharedPolicy`: the keys that a consumer of a Key_Shared subscription asks for (rule SUBT-08)."""

from dataclasses import dataclass
from itertools import pairwise

from ..errors import InvalidConfiguration
from .checks import instance

HASH_RANGE = 65_536
"""Number of hashes: a range lies between 0 and one less."""

MAX_RANGES = 10_000
"""Ranges of one consumer: with room to spare they fit into one SUBSCRIBE."""


@dataclass(frozen=True, slots=True)
class KeySharedPolicy:
    """The division of a Key_Shared subscription's keys; all its consumers need the same kind.

    `ranges`: None lets the broker divide the hashes of keys among the present consumers. Otherwise the
    hashes that this consumer takes, as pairs of first and last, both included, from 0 to 65535. They may not
    overlap each other (`InvalidConfiguration`) or the ranges of another consumer (the broker refuses with
    `ConsumerAssignError`). Messages whose hash no consumer has taken wait.
    `allow_out_of_order`: when keys move to another consumer, the broker delivers their messages at once. It
    does not wait until the former consumer's messages of these keys are acknowledged.
    """

    ranges: tuple[tuple[int, int], ...] | None = None
    allow_out_of_order: bool = False

    def __post_init__(self) -> None:
        instance("key_shared.allow_out_of_order", self.allow_out_of_order, bool, "True or False")
        if self.ranges is not None:
            check_ranges("key_shared.ranges", self.ranges)


def check_ranges(name: str, ranges: object) -> None:
    """Raise `InvalidConfiguration` for anything but pairs that do not overlap."""
    if not isinstance(ranges, tuple) or not 1 <= len(ranges) <= MAX_RANGES:
        raise InvalidConfiguration(
            f"{name}: a tuple of 1 to {MAX_RANGES} pairs (first, last), or None, not {ranges!r:.200}"
        )
    for each in ranges:
        if not _is_range(each):
            raise InvalidConfiguration(
                f"{name}: pairs of whole numbers, 0 <= first <= last < {HASH_RANGE}, not {each!r:.200}"
            )
    for one, other in pairwise(sorted(ranges)):
        if other[0] <= one[1]:
            raise InvalidConfiguration(f"{name}: {one} and {other} overlap")


def _is_range(given: object) -> bool:
    return (
        isinstance(given, tuple)
        and len(given) == 2
        and all(type(bound) is int for bound in given)
        and 0 <= given[0] <= given[1] < HASH_RANGE
    )
