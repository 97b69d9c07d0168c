"""Traits: each is a bit of its own, so that they can be put together."""

import itertools

from pulsar_sansio.conformance import traits

NAMED = {
    name: value
    for name, value in vars(traits).items()
    if name.isupper() and isinstance(value, int) and name != "ALL_TRAITS"
}


def test_no_two_traits_share_a_bit() -> None:
    assert len(NAMED) > 1
    for (first, one), (second, other) in itertools.combinations(NAMED.items(), 2):
        assert one & other == 0, f"{first} and {second}"
    assert all(value.bit_count() == 1 for value in NAMED.values())


def test_a_frame_of_an_unknown_kind_has_all_of_them() -> None:
    assert all(traits.ALL_TRAITS & value for value in NAMED.values())
