"""The flow ledger."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_sansio.client.delivery.permits import (
    MAX_BYTES_BEYOND_GRANT,
    MAX_ENTRIES_BEYOND_GRANT,
    Permits,
    PermitsExceeded,
)


def attached(queue_size: int) -> tuple[Permits, list[int]]:
    permits = Permits(queue_size)
    granted: list[int] = []
    permits.attach(granted.append)
    return permits, granted


@pytest.mark.parametrize("queue_size", [1, 2, 3, 10, 1000])
def test_the_first_grant_is_the_whole_queue(queue_size: int) -> None:
    """Rules FLOW-01 and FLOW-02."""
    assert attached(queue_size)[1] == [queue_size]  # FLOW-02


def test_half_a_queue_makes_a_grant() -> None:
    """Rule FLOW-04."""
    permits, granted = attached(10)
    for _ in range(12):
        permits.charge(1, 1)
        permits.give_back(1)
    assert granted == [10, 5, 5]  # FLOW-04
    assert permits.unreported == 2


@pytest.mark.parametrize("queue_size", [1, 2, 3])
def test_the_threshold_is_at_least_one(queue_size: int) -> None:
    """Rules FLOW-05 and FLOW-08."""
    permits, granted = attached(queue_size)
    permits.give_back(0)
    assert granted == [queue_size]  # FLOW-05, FLOW-08: never a FLOW of 0
    permits.charge(1, 1)
    permits.give_back(1)
    assert granted == [queue_size, 1]


def test_a_grant_is_all_that_came_back_not_just_half() -> None:
    permits, granted = attached(10)
    permits.charge(50, 1)
    permits.give_back(50)
    assert granted == [10, 50]


def test_nothing_is_granted_while_detached_and_a_new_attachment_starts_anew() -> None:
    """Rules FLOW-09 and FLOW-12."""
    permits, granted = attached(10)
    permits.charge(4, 1)
    permits.give_back(4)
    permits.detach()
    permits.give_back(100)  # FLOW-12
    permits.attach(granted.append)
    assert granted == [10, 10]  # FLOW-09
    assert (permits.at_broker, permits.unreported) == (10, 0)


def test_one_batch_may_be_larger_than_the_rest_of_the_grant() -> None:
    permits, _ = attached(10)
    permits.charge(1000, 100_000)  # FLOW-14
    assert permits.at_broker == -990


def test_a_broker_may_read_ahead_but_not_without_end() -> None:
    permits, _ = attached(1)
    permits.charge(1, 10)
    for _ in range(MAX_ENTRIES_BEYOND_GRANT):
        permits.charge(1, 10)
    with pytest.raises(PermitsExceeded, match="1001 entries"):
        permits.charge(1, 10)


def test_nor_with_large_entries() -> None:
    permits, _ = attached(1)
    permits.charge(1, 10)
    permits.charge(1, MAX_BYTES_BEYOND_GRANT)
    with pytest.raises(PermitsExceeded, match="2 entries"):
        permits.charge(1, 1)


def test_what_was_beyond_is_forgotten_when_it_has_permits_again() -> None:
    permits, _ = attached(1)
    for _ in range(3):
        for _ in range(MAX_ENTRIES_BEYOND_GRANT + 1):
            permits.charge(1, 10)
        permits.give_back(MAX_ENTRIES_BEYOND_GRANT + 1)


@given(
    st.integers(1, 50),
    st.lists(st.tuples(st.sampled_from(["charge", "release", "reattach"]), st.integers(0, 20)), max_size=60),
)
def test_permits_are_conserved(queue_size: int, steps: list[tuple[str, int]]) -> None:
    """INV-C6: at the broker + in the queue + not yet reported = the queue's size."""
    permits, granted = attached(queue_size)
    queued = charged = 0
    for step, count in steps:
        if step == "charge":
            permits.charge(count, 1)
            queued += count
            charged += count
        elif step == "release":
            count = min(count, queued)
            queued -= count
            permits.give_back(count)
        else:
            permits.detach()
            queued = charged = 0
            granted.clear()
            permits.attach(granted.append)
        assert permits.at_broker == sum(granted) - charged
        assert permits.at_broker + queued + permits.unreported == queue_size
        assert 0 <= permits.unreported < permits.threshold
        assert all(count > 0 for count in granted)


def test_paused_nothing_is_granted_and_resumed_everything_is() -> None:
    """Rules FLOW-06 and FLOW-07."""
    permits, granted = attached(10)
    permits.pause()
    permits.charge(10, 1)
    permits.give_back(10)
    assert granted == [10]  # FLOW-06
    assert permits.until_report == 1
    permits.resume()
    assert granted == [10, 10]  # FLOW-07


def test_resumed_below_half_a_queue_nothing_is_granted_yet() -> None:
    permits, granted = attached(10)
    permits.pause()
    permits.charge(4, 1)
    permits.give_back(4)
    permits.resume()
    permits.resume()
    assert granted == [10]
    permits.charge(1, 1)
    permits.give_back(1)
    assert granted == [10, 5]


def test_who_reconnects_while_paused_is_granted_the_queue_when_resumed() -> None:
    """Rule FLOW-10."""
    permits, granted = attached(10)
    permits.pause()
    permits.detach()
    permits.attach(granted.append)
    assert granted == [10]  # FLOW-10
    permits.resume()
    assert granted == [10, 10]


def test_what_came_beyond_a_grant_is_forgotten_with_the_next_one() -> None:
    """FLOW-14: large messages one after the other are no attack."""
    permits, granted = attached(1)
    permits.charge(1, 1)
    for _ in range(3):
        permits.charge(1, MAX_BYTES_BEYOND_GRANT)
        permits.give_back(2)
        permits.charge(1, 1)
    assert granted == [1, 2, 2, 2]
