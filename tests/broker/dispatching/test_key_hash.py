"""Keys, slots and their consumers, by known figures."""

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_sansio.broker.dispatching.key_hash import (
    SLOTS,
    AutoSplit,
    Sticky,
    murmur3_32,
    murmur3_32_all,
    slot_of,
    sticky_key,
)
from pulsar_sansio.model.errors import ConsumerAssignError
from pulsar_sansio.wire import MessageMetadata


@pytest.mark.parametrize(
    ("text", "raw"),
    [
        ("", 0x00000000),
        ("a", 0x3C2569B2),
        ("key-1", 0x98B115A0),
        ("hello", 0x248BFA47),
        ("pulsar", 0x80547BBB),
        ("你好", 0x141BAA24),
        ("😀", 0xBEB42EFA),
    ],
)
def test_murmur(text: str, raw: int) -> None:
    assert murmur3_32(text.encode()) == raw


@given(st.binary(max_size=9), st.lists(st.binary(max_size=9), max_size=4))
def test_murmur_of_many_with_the_same_beginning(front: bytes, backs: list[bytes]) -> None:
    assert list(murmur3_32_all(front, backs)) == [murmur3_32(front + back) for back in backs]


def test_slots() -> None:
    assert slot_of(b"key-1") == 5536
    assert slot_of(b"hello") == 64071
    assert slot_of(b"NONE_KEY") == 48803
    assert slot_of(b"") == 1, "0 is no slot"


def metadata(**fields: Any) -> MessageMetadata:
    return MessageMetadata("p", 5, 0, **fields)


def test_which_key_decides() -> None:
    assert sticky_key(metadata(ordering_key=b"o", partition_key="k")) == b"o"
    assert sticky_key(metadata(partition_key="k")) == b"k"
    assert sticky_key(metadata(partition_key="a2V5", partition_key_b64_encoded=True)) == b"key"
    assert sticky_key(metadata(partition_key="abc", partition_key_b64_encoded=True)) == b"abc"
    assert sticky_key(metadata(null_partition_key=True)) == b"p-5"
    assert sticky_key(metadata()) == b"p-5"


class Name:
    """A consumer with the attributes that a selector reads."""

    def __init__(self, name: str, ranges: list[tuple[int, int]] | None = None) -> None:
        self.name = name
        self.sticky_ranges = ranges or []

    def __repr__(self) -> str:
        return self.name


def test_a_newcomer_gets_the_lower_half_of_the_widest_range() -> None:
    split: Any = AutoSplit()
    a, b, c = Name("a"), Name("b"), Name("c")
    assert split.owner(5) is None
    split.add(a)
    assert split.ranges(a) == [(0, 65535)]
    split.add(b)
    assert (split.ranges(b), split.ranges(a)) == ([(0, 32768)], [(32769, 65535)])
    split.add(c)
    assert split.ranges(c) == [(0, 16384)], "of equally wide ones the lowest"
    split.remove(c)
    assert split.ranges(b) == [(0, 32768)]
    split.remove(a)
    assert split.ranges(b) == [(0, 65535)], "the highest bound stays, its lower neighbour takes it"
    split.remove(b)
    assert split.owner(5) is None


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5)), max_size=40))
def test_every_slot_has_exactly_one_owner(steps: list[tuple[bool, int]]) -> None:
    split: Any = AutoSplit()
    names = [Name(str(place)) for place in range(6)]
    present: list[Name] = []
    for coming, place in steps:
        if coming and names[place] not in present:
            split.add(names[place])
            present.append(names[place])
        elif not coming and names[place] in present:
            split.remove(names[place])
            present.remove(names[place])
    if present:
        ranges = sorted((each, name.name) for name in present for each in split.ranges(name))
        assert ranges[0][0][0] == 0
        assert ranges[-1][0][1] == SLOTS - 1
        assert all(one[0][1] + 1 == two[0][0] for one, two in itertools.pairwise(ranges))
        for (start, end), name in ranges:
            assert split.owner(max(start, 1)).name == name
            assert split.owner(end).name == name


def test_sticky_ranges() -> None:
    sticky: Any = Sticky()
    a = Name("a", [(0, 100), (200, 300)])
    sticky.check(a.sticky_ranges)
    sticky.add(a)
    assert sticky.owner(100) is a
    assert sticky.owner(150) is None
    assert sticky.ranges(a) == [(0, 100), (200, 300)]
    sticky.remove(a)
    assert sticky.owner(100) is None


@pytest.mark.parametrize("ranges", [[], [(5, 4)], [(-1, 4)], [(0, 65536)], [(0, 9), (9, 20)], [(50, 60)]])
def test_wrong_sticky_ranges(ranges: list[tuple[int, int]]) -> None:
    sticky: Any = Sticky()
    sticky.add(Name("a", [(55, 70)]))
    with pytest.raises(ConsumerAssignError):
        sticky.check(ranges)
