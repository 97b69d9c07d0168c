"""The adapter limits how many records it writes when the same thing goes wrong again and again."""

from pulsar_trio.rate_limit import INTERVAL, MOST, RateLimit


def test_one_reason_is_written_once_in_an_interval() -> None:
    limit = RateLimit()
    assert limit.admit("a", 0.0) == 0
    assert [limit.admit("a", moment) for moment in (0.0, 1.0, INTERVAL - 0.001)] == [None] * 3
    assert limit.admit("a", INTERVAL) == 3
    assert limit.admit("a", INTERVAL) is None
    assert limit.admit("a", 3 * INTERVAL) == 1


def test_other_reasons_are_not_held_up() -> None:
    limit = RateLimit()
    assert limit.admit("a", 0.0) == 0
    assert limit.admit("b", 0.0) == 0
    assert limit.admit("a", 1.0) is None
    assert limit.admit("c", 2.0) == 1


def test_many_reasons_are_limited_together() -> None:
    limit = RateLimit()
    written = [limit.admit(f"{number}", 0.0) for number in range(MOST + 500)]
    assert written == [0] * MOST + [None] * 500
    assert limit.admit("new", INTERVAL - 0.1) is None
    assert limit.admit("new", INTERVAL) == 501


def test_memory_is_bounded() -> None:
    limit = RateLimit()
    for number in range(10_000):
        limit.admit(f"{number}", number * 0.01)
    assert len(limit._written) <= MOST


def test_a_steady_stream_of_one_reason_makes_a_record_for_each_interval() -> None:
    limit = RateLimit()
    written = [limit.admit("a", moment / 10) for moment in range(round(100 * INTERVAL))]
    assert [each for each in written if each is not None] == [0] + [round(INTERVAL * 10) - 1] * 9
