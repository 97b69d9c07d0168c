"""`Acknowledgements`: at each event of the consumer's life its parts change together."""

from collections.abc import Callable
from typing import Any

import pytest

from pulsar_sansio.client.acknowledging.acknowledgements import Acknowledgements
from pulsar_sansio.client.outputs import RequestDone, RequestFailed
from pulsar_sansio.model.config import SubscriptionType
from pulsar_sansio.model.errors import ClosedError, TimedOut
from tests.client.broker_script import SECOND, ConsumerScript

LATER = 3600.0


def started(**spec: Any) -> ConsumerScript:
    spec = {"acknowledgement_group_time": LATER, "negative_acknowledgement_delay": 1.0, **spec}
    script = ConsumerScript(subscription_type=SubscriptionType.SHARED, **spec)
    script.accept()
    script.frames()
    script.outputs()
    return script


def parts(script: ConsumerScript) -> Acknowledgements:
    return script.machine._acknowledgements


def nothing(s: ConsumerScript) -> None:
    pass


def lose_and_return(s: ConsumerScript) -> None:
    s.reconnect()


def seek(s: ConsumerScript) -> None:
    parts(s).drop()


def seek_without_answer(s: ConsumerScript) -> None:
    parts(s).drop_after(TimedOut("the seek"))


def leave_cluster(s: ConsumerScript) -> None:
    parts(s).leave_cluster()


EVENTS: list[tuple[Callable[[ConsumerScript], None], list[str], list[str]]] = [
    (nothing, [], ["ACK", "REDELIVER_UNACKNOWLEDGED_MESSAGES"]),
    (lose_and_return, ["ACK", "FLOW"], []),
    (seek, [], []),
    (seek_without_answer, [], ["REDELIVER_UNACKNOWLEDGED_MESSAGES"]),
    (leave_cluster, [], ["REDELIVER_UNACKNOWLEDGED_MESSAGES"]),
]


@pytest.mark.parametrize(
    ("event", "at_once", "when_due"), EVENTS, ids=lambda value: getattr(value, "__name__", "")
)
def test_an_event_keeps_or_drops_what_waits(
    event: Callable[[ConsumerScript], None], at_once: list[str], when_due: list[str]
) -> None:
    """One message waits to be acknowledged, another to be redelivered. Rules ACK-16 and SEEK-06."""
    s = started(acknowledgement_group_time=3.0)
    for entry in range(2):
        s.message(entry)
    first, second = s.take()
    s.acknowledge(first)
    s.negative_acknowledge(second)
    event(s)
    s.expect(*at_once)
    s.pass_time(5 * SECOND)
    s.expect(*when_due)


def test_in_another_cluster_earlier_messages_are_not_acknowledged() -> None:
    """The application may still acknowledge them; their positions name other messages there."""
    s = started()
    s.message(0)
    s.batch(1, 2)
    messages = s.take()
    parts(s).leave_cluster()
    s.acknowledge(messages)
    s.acknowledge(messages[0])
    s.flush()
    s.expect()


def test_after_a_seek_earlier_messages_can_be_acknowledged() -> None:
    """The broker redelivers them, and their positions name the messages that the application has."""
    s = started()
    s.message(0)
    s.batch(1, 2)
    messages = s.take()
    parts(s).drop()
    s.acknowledge(messages)
    s.flush()
    (ack,) = s.expect("ACK")
    assert ack.message_ids == [(1, 0, None), (1, 1, None)]


def test_a_flush_learns_that_a_seek_may_have_lost_its_acknowledgements() -> None:
    s = started()
    s.message(0)
    s.acknowledge(s.take())
    request = s.flush()
    s.expect("ACK")
    s.outputs()
    error = TimedOut("the seek")
    parts(s).drop_after(error)
    assert s.outputs() == [RequestFailed(request, error)]


def test_a_flush_is_done_when_a_seek_has_moved_the_subscription() -> None:
    s = started()
    s.message(0)
    s.acknowledge(s.take())
    request = s.flush()
    s.expect("ACK")
    s.outputs()
    parts(s).drop()
    assert s.outputs() == [RequestDone(request, None)]


def test_entries_that_no_consumer_can_use_join_those_of_the_application() -> None:
    s = started(acknowledgement_group_time=0.1)
    for entry in range(3):
        s.message(entry)
    s.acknowledge(s.receive())
    parts(s).acknowledge_entries([(1, 2), (1, 1)])
    s.pass_time(SECOND)
    (ack,) = s.expect("ACK")
    assert ack.message_ids == [(1, 0, None), (1, 1, None), (1, 2, None)]


@pytest.mark.parametrize("places", [[(1, 7), (1, 7)], [(1, 7)]])
def test_an_entry_is_acknowledged_once(places: list[tuple[int, int]]) -> None:
    s = started(acknowledgement_group_time=0.1)
    s.message(7)
    parts(s).acknowledge_entries(places)
    s.pass_time(SECOND)
    (ack,) = s.expect("ACK")
    assert ack.message_ids == [(1, 7, None)]


def test_no_entry_starts_no_timer() -> None:
    s = started(acknowledgement_group_time=0.1)
    due = s.client.next_deadline()
    parts(s).acknowledge_entries([])
    assert s.client.next_deadline() == due


def test_messages_are_counted_while_their_acknowledgement_waits_and_once_it_is_sent() -> None:
    s = started()
    s.message(0)
    s.batch(1, 3)
    messages = s.take()
    assert parts(s).count == 0
    s.acknowledge(messages[0])
    assert parts(s).count == 1
    s.acknowledge(messages[1:])
    assert parts(s).count == 4
    s.flush()
    s.expect("ACK")
    assert parts(s).count == 4


def test_an_ack_sent_again_is_counted_again() -> None:
    s = started(acknowledgement_group_time=0.0, acknowledgement_receipts=True)
    s.message(0)
    s.acknowledge(s.take())
    s.expect("ACK")
    s.reconnect()
    s.expect("ACK", "FLOW")
    assert parts(s).count == 2


def test_once_closed_each_command_is_refused_and_no_redelivery_is_requested() -> None:
    s = started()
    s.message(0)
    (message,) = s.take()
    s.negative_acknowledge(message)
    acknowledgements = parts(s)
    acknowledgements.close()
    for command in (acknowledgements.commands.acknowledge, acknowledgements.commands.negative_acknowledge):
        with pytest.raises(ClosedError, match="is closed"):
            command(message)
    s.pass_time(5 * SECOND)
    s.expect()
