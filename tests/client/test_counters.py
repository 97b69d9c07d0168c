"""`ArrivalCounters` keep the range of entries from which a message was withheld."""

from pulsar_sansio.client.counters import ArrivalCounters


def test_the_range_of_unreadable_entries_grows_at_both_ends() -> None:
    counters = ArrivalCounters()
    assert counters.unreadable is None
    counters.note_unreadable((2, 5))
    assert counters.unreadable == ((2, 5), (2, 5))
    counters.note_unreadable((1, 9))
    counters.note_unreadable((2, 3))
    assert counters.unreadable == ((1, 9), (2, 5))
    counters.note_unreadable((3, 0))
    assert counters.unreadable == ((1, 9), (3, 0))


def test_only_numbers_are_compared() -> None:
    """Positions say where, and two consumers with equal counts are equal."""
    one, other = ArrivalCounters(discarded=1), ArrivalCounters(discarded=1)
    one.note_unreadable((1, 1))
    one.last_orphan = one.last_chunk = (1, 2)
    assert one == other
    other.duplicates += 1
    assert one != other
