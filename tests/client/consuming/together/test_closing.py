"""Unsubscribing and closing a consumer."""

import pytest

from pulsar_sansio.client.outputs import (
    Closed,
    ConsumerFailed,
    Disconnect,
    RequestDone,
)
from pulsar_sansio.model.errors import (
    ClosedError,
)
from pulsar_sansio.wire import proto
from tests.client.broker_script import SECOND, ConsumerScript
from tests.client.consuming.consumer_script import SHARED, refuse, started


class TestClosing:
    def test_tells_the_broker_and_waits(self) -> None:
        """Rule WIRE-16."""
        s = started()
        s.message(0)
        s.outputs()
        request = s.close()
        (close,) = s.expect("CLOSE_CONSUMER")  # and never UNSUBSCRIBE: BUG, it took the backlog with it
        assert s.outputs() == []
        s.say("SUCCESS", proto.CommandSuccess(request_id=close.request_id))
        assert s.outputs() == [Closed(s.consumer, None), RequestDone(request, None)]

    @pytest.mark.parametrize("how", ["refused", "lost", "timeout"])
    def test_any_answer_will_do(self, how: str) -> None:
        s = started()
        request = s.close()
        (close,) = s.expect("CLOSE_CONSUMER")
        if how == "refused":
            refuse(s, close.request_id, 0)
        elif how == "lost":
            s.lose()
        else:
            s.pass_time(31 * SECOND)
        outputs = [output for output in s.outputs() if not isinstance(output, Disconnect)]
        assert outputs == [Closed(s.consumer, None), RequestDone(request, None)]  # CONS-51

    def test_while_detached(self) -> None:
        s = started()
        s.lose()
        s.outputs()
        request = s.close()
        assert s.outputs() == [Closed(s.consumer, None), RequestDone(request, None)]  # CONS-50
        assert s.client.next_deadline() is None

    def test_before_it_was_ready(self) -> None:
        s = ConsumerScript()
        request = s.close()
        _, close = s.expect("SUBSCRIBE", "CLOSE_CONSUMER")
        s.say("SUCCESS", proto.CommandSuccess(request_id=close.request_id))
        failed, done = s.outputs()
        assert isinstance(failed, ConsumerFailed)
        assert isinstance(failed.error, ClosedError)
        assert done == RequestDone(request, None)

    def test_everything_raises_from_then_on(self) -> None:
        """Rules CONS-52 and ACK-03."""
        s = started()
        s.batch(0, 3)
        first, second, third = s.take()
        s.message(1)
        s.close()
        calls = (
            lambda: s.receive(),
            lambda: s.take(),
            lambda: s.acknowledge(first),
            lambda: s.acknowledge(second.message_id),
            lambda: s.acknowledge([third]),
            lambda: s.acknowledge_cumulative(first),
            lambda: s.negative_acknowledge(first),
            lambda: s.redeliver(),
            lambda: s.flush(),
            lambda: s.client.unsubscribe(s.now, s.consumer),
        )
        for call in calls:
            with pytest.raises(ClosedError):
                call()
        (close,) = s.expect("CLOSE_CONSUMER")
        s.say("SUCCESS", proto.CommandSuccess(request_id=close.request_id))
        for call in calls:
            with pytest.raises(ClosedError):
                call()

    def test_twice(self) -> None:
        """Rules CONS-49 and CONS-50."""
        s = started()
        first, second = s.close(), s.close()
        (close,) = s.expect("CLOSE_CONSUMER")
        s.say("SUCCESS", proto.CommandSuccess(request_id=close.request_id))
        assert s.outputs() == [Closed(s.consumer, None), RequestDone(first, None), RequestDone(second, None)]

    def test_leaves_nothing_due(self) -> None:
        s = started(subscription_type=SHARED)
        for entry in range(4):
            s.message(entry)
        messages = s.take()
        s.acknowledge(messages[0])
        s.negative_acknowledge(messages[1])
        s.close()
        s.lose()
        assert s.client.next_deadline() is None  # CONS-47, CONS-50
