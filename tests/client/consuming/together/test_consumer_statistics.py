"""A consumer's counters, while messages are delivered, dropped and redelivered."""

from typing import Any

import pytest

from pulsar_sansio.client.statistics import ConsumerStatistics
from pulsar_sansio.model.errors import ClosedError
from pulsar_sansio.wire import proto
from tests.client.broker_script import SECOND, ConsumerScript


def started(**spec: Any) -> ConsumerScript:
    script = ConsumerScript(**spec)
    script.accept()
    script.frames()
    return script


def counted(s: ConsumerScript) -> ConsumerStatistics:
    return s.client.consumer_statistics(s.consumer)


@pytest.mark.parametrize("received", range(8))
def test_every_message_that_is_delivered_counts_once(received: int) -> None:
    """Rule STATS-03."""
    s = started()
    s.batch(0, 4)
    s.message(1)
    s.message(2)
    s.batch(3, 1)
    for _ in range(received):
        s.receive()
    assert (counted(s).messages_received, counted(s).available) == (min(received, 7), max(7 - received, 0))


@pytest.mark.parametrize(("limit", "then"), [(1, 3), (2, 2), (3, 1), (4, 0), (5, 0), (9, 0)])
def test_those_taken_together_count_too(limit: int, then: int) -> None:
    s = started()
    s.batch(0, 4)
    s.message(1)
    taken = len(s.take(limit))
    for _ in range(then):
        s.receive()
    assert counted(s).messages_received == taken + then


def test_what_is_dropped_before_it_was_delivered_does_not_count() -> None:
    s = started(receiver_queue_size=6)
    s.batch(0, 4)
    s.batch(1, 2)
    s.receive()
    s.reconnect()
    assert (counted(s).messages_received, counted(s).available) == (1, 0)
    s.batch(0, 4)
    assert len(s.take()) == 4
    assert counted(s).messages_received == 5


def test_bytes_are_those_of_the_payloads_that_arrived() -> None:
    s = started()
    s.message(0, b"12345")
    s.message(1, b"678")
    assert counted(s).bytes_received == 8


def test_ids_in_acknowledgements_count_when_they_are_sent_and_when_they_are_refused() -> None:
    s = started(acknowledgement_receipts=True)
    s.batch(0, 4)
    s.message(1)
    for message in s.take():
        s.acknowledge(message)
    assert counted(s).acknowledgements_sent == 0
    s.pass_time(SECOND)
    (ack,) = [each for name, each in s.frames() if name == "ACK"]
    assert (counted(s).acknowledgements_sent, counted(s).acknowledgements_failed) == (2, 0)
    refused = proto.CommandAckResponse(
        consumer_id=0, request_id=ack.request_id, error=proto.ServerError.UnknownError, message="no"
    )
    s.say("ACK_RESPONSE", refused)
    assert (counted(s).acknowledgements_sent, counted(s).acknowledgements_failed) == (2, 2)


def test_they_are_remembered_after_the_end() -> None:
    s = started()
    s.message(0)
    s.receive()
    s.close()
    ((_, close),) = [each for each in s.frames() if each[0] == "CLOSE_CONSUMER"]
    s.say("SUCCESS", proto.CommandSuccess(request_id=close.request_id))
    assert counted(s).messages_received == 1
    with pytest.raises(ClosedError):
        s.client.producer_statistics(s.consumer)


def test_those_of_several_consumers_add_up() -> None:
    assert ConsumerStatistics(1, 2, 3, 4, 5) + ConsumerStatistics(10, 20, 30, 40, 50) == ConsumerStatistics(
        11, 22, 33, 44, 55
    )
