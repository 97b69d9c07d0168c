"""The cost of an event does not grow with unrelated links, requests or producers.

The tests count operations, not time. Each case is run with some links, requests or producers, and with four
times as many.
"""

from collections.abc import Callable
from functools import partial

from pulsar_sansio.client.memory import MemoryLimit
from pulsar_sansio.model.config import ProducerSpec
from pulsar_sansio.model.errors import PulsarError
from pulsar_sansio.model.service_url import Address
from tests.client.script import Script
from tests.operations import each, operations

FEW = 30

SAME = 1.5
"""A cost that stays, with room for chance."""

FOUR_TIMES = 5.0
"""A cost that grows with the number, with room for the logarithms."""


def growth(case: Callable[[int], Callable[[], object]]) -> float:
    """Return how much more four times as many cost. `case` prepares a run and returns what is to be
    counted."""
    few, many = (operations(case(count)) for count in (FEW, 4 * FEW))
    return many / few


def wish(script: Script, count: int) -> list[PulsarError]:
    """Ask for links to so many brokers; return the list of their failures."""
    failed: list[PulsarError] = []
    script.client._context.now = script.now
    for number in range(count):
        address = Address(f"broker{number}", 6650)
        script.client._services.pool.get(address, address, lambda _: None, failed.append)
    script.drain()
    return failed


def test_links_whose_handshakes_time_out_together_cost_once_each() -> None:
    def case(count: int) -> Callable[[], object]:
        script = Script()
        failed = wish(script, count)

        def time_out() -> None:
            script.client.handle_deadline(script.now + 60_000_000_000)
            assert len(failed) == count

        return time_out

    assert growth(case) < FOUR_TIMES


def test_a_request_that_is_given_up_costs_no_look_at_other_producers() -> None:
    def case(count: int) -> Callable[[], object]:
        script = Script()
        specs = [ProducerSpec(f"t{number}") for number in range(count)]
        handles = [script.client.open_producer(script.now, spec) for spec in specs]
        request = script.client.flush(script.now, handles[0])
        return lambda: script.client.abandon(script.now, request, handles[0])

    assert growth(case) < SAME


def test_room_in_memory_costs_no_look_at_those_that_know_of_it() -> None:
    """The producers were told of room and do not come, because their tasks were cancelled."""

    def case(count: int) -> Callable[[], object]:
        limit = MemoryLimit(1000)
        told: list[int] = []
        assert limit.take(0, 1000, told.clear)
        for handle in range(1, count + 1):
            assert not limit.take(handle, 1, partial(told.append, handle))
        limit.release(count)
        assert told == list(range(1, count + 1))
        limit.wait(count + 1, 2000, told.clear)
        return each(limit.release, [1] * 20)

    assert growth(case) < SAME


def test_a_handle_that_returns_keeps_its_place_and_a_closed_one_has_none() -> None:
    told: list[str] = []
    limit = MemoryLimit(10)
    assert limit.take(0, 10, told.clear)
    tell = {handle: partial(told.append, str(handle)) for handle in (1, 2, 3)}
    for handle, size in ((1, 5), (2, 5), (3, 1)):
        assert not limit.take(handle, size, tell[handle])
    limit.release(5)
    assert told == ["1"]
    assert not limit.take(1, 6, tell[1]), "more than before: it waits again, in its place"
    limit.release(1)
    assert told == ["1", "1"]
    limit.detach(2)
    for _ in range(1000):  # stale entries of the heap are not kept
        limit.wait(4, 9, tell[3])
        limit.detach(4)
    assert len(limit._to_notify) < 300
    assert limit.take(1, 6, tell[1])
    limit.release(1)
    assert told == ["1", "1", "3"]
    assert limit.take(3, 1, tell[3])
    assert not limit.blocked
