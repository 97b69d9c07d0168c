"""Turns of the consumers of a Shared subscription: those available, by level, in the order of arrival."""

from pulsar_sansio.broker.dispatching.turns import Turns
from tests.broker.test_scale import consumer


def test_turns_go_round_among_those_with_room_of_the_best_level() -> None:
    turns = Turns()
    first, second, third, spare = consumer("1"), consumer("2"), consumer("3"), consumer("4", priority=1)
    everyone = (first, second, third, spare)
    for each in everyone:
        turns.add(each)
    assert turns.next() is None
    assert not turns.any_available()
    for each in everyone:
        each.permits = 1
        turns.wake(each)
    assert turns.any_available()
    assert [turns.next() for _ in range(4)] == [first, second, third, first]
    second.permits = 0
    assert [turns.next() for _ in range(2)] == [third, first]
    second.permits = 1
    assert [turns.next() for _ in range(2)] == [third, first], "asleep until it is woken"
    turns.wake(second)
    assert turns.next() is second
    for each in (first, second, third):
        each.permits = 0
    assert [turns.next() for _ in range(2)] == [spare, spare]
    turns.remove(spare)
    assert turns.next() is None


def test_a_newcomer_waits_for_its_turn_and_a_leaver_takes_none() -> None:
    """Seen with a Java broker: a consumer that comes does not send the turn back to the first one."""
    turns = Turns()
    first, second, newcomer = consumer("1"), consumer("2"), consumer("3")
    for each in (first, second, newcomer):
        each.permits = 1
    turns.add(first)
    turns.add(second)
    assert [turns.next(), turns.next()] == [first, second]
    turns.add(newcomer)
    assert turns.next() is newcomer
    assert turns.next() is first
    turns.remove(first)
    assert turns.next() is second


def test_a_level_without_consumers_is_forgotten() -> None:
    """Clients choose the levels."""
    turns = Turns()
    for priority in range(100):
        each = consumer("1", priority=priority)
        each.permits = 1
        turns.add(each)
        assert turns.next() is each
        turns.remove(each)
    assert not turns._next
    assert not turns._levels
