"""A receiver queue of size 0: the broker is asked on demand only."""

from typing import Any

from pulsar_sansio.client.outputs import Deliverable
from pulsar_sansio.model.config import SubscriptionType
from tests.client.broker_script import SECOND, ConsumerScript


def started(**spec: Any) -> ConsumerScript:
    script = ConsumerScript(receiver_queue_size=0, subscription_type=SubscriptionType.SHARED, **spec)
    script.accept()
    script.outputs()
    return script


def granted(s: ConsumerScript) -> list[int]:
    return [command.message_permits for name, command in s.frames() if name == "FLOW"]


def test_nothing_is_asked_for_before_somebody_wants_it() -> None:
    """Rule FLOW-03. Rule FLOW-13."""
    s = started()
    assert granted(s) == []
    for entry in range(3):
        assert s.receive() is None
        assert granted(s) == [1]  # seen: java-zero-queue
        s.message(entry)
        assert s.outputs() == [Deliverable(s.consumer)]
        assert s.receive().message_id.entry_id == entry
        assert granted(s) == []


def test_a_wish_is_one_however_often_it_is_said() -> None:
    s = started()
    for _ in range(3):
        assert s.receive() is None
        assert not s.take()
    assert granted(s) == [1]


def test_what_was_wanted_and_is_not_any_more_waits() -> None:
    s = started()
    s.receive()
    s.message(0)
    assert granted(s) == [1]
    assert [message.message_id.entry_id for message in s.take()] == [0]
    assert granted(s) == []


def test_a_batch_comes_as_a_whole_and_the_next_wish_pays_for_it() -> None:
    """CONS-37: where the Java client closes the consumer. Rule GAP-13."""
    s = started()
    s.receive()
    s.batch(0, 3)
    assert granted(s) == [1]
    assert [s.receive().data for _ in range(3)] == [b"0.0", b"0.1", b"0.2"]
    assert granted(s) == []
    assert s.receive() is None
    assert granted(s) == [3]  # from 1 - 3 back to 1
    s.message(1)
    assert s.receive().data == b"m"


def test_what_cannot_be_delivered_does_not_use_up_the_wish() -> None:
    s = started()
    s.receive()
    s.message(0)
    s.acknowledge(message := s.receive())
    s.receive()
    assert granted(s) == [1, 1]
    s.message(0)  # it was acknowledged already
    assert granted(s) == [1]
    s.deliver(1, b"\x0e\x01broken")
    assert [name for name, _ in s.frames()] == ["ACK", "FLOW"]
    s.message(2)
    assert s.receive().message_id.entry_id == 2
    assert message.message_id.entry_id == 0
    assert granted(s) == []


def test_a_receive_that_waits_across_a_reconnect_is_not_forgotten() -> None:
    s = started()
    s.receive()
    granted(s)
    s.reconnect()
    assert granted(s) == [1]
    s.message(0)
    s.reconnect()  # the message has arrived, so no demand is left; a new demand makes the broker redeliver it
    assert granted(s) == []
    assert s.receive() is None
    assert granted(s) == [1]


def test_paused_nothing_is_asked_for() -> None:
    s = started(start_paused=True)
    s.receive()
    assert granted(s) == []
    s.client.resume(s.now, s.consumer)
    assert granted(s) == [1]
    s.client.pause(s.now, s.consumer)
    s.message(0)
    assert s.receive() is not None
    assert s.receive() is None
    assert granted(s) == []


def test_the_queue_asks_for_each_receive_that_waits() -> None:
    s = started()
    queue = s.client.receiver(s.consumer)
    queue.want()
    assert granted(s) == [1]
    s.batch(0, 2)
    queue.want()
    assert granted(s) == []


def test_what_is_not_acknowledged_in_time_is_redelivered() -> None:
    s = started(acknowledgement_timeout=1.0)
    s.receive()
    s.message(0)
    assert s.receive() is not None
    granted(s)
    s.pass_time(3 * SECOND)
    assert "REDELIVER_UNACKNOWLEDGED_MESSAGES" in [name for name, _ in s.frames()]
    assert s.receive() is None
    assert granted(s) == [1]
