"""`Unsubscription`: UNSUBSCRIBE, and what may happen until its answer."""

import pytest

from pulsar_sansio.client.outputs import (
    Closed,
    RequestDone,
    RequestFailed,
)
from pulsar_sansio.model.errors import (
    BrokerError,
    ClosedError,
)
from pulsar_sansio.wire import proto
from tests.client.broker_script import SECOND, ConsumerScript
from tests.client.consuming.consumer_script import refuse, started


class TestUnsubscribing:
    def unsubscribe(self, s: ConsumerScript, **options: bool) -> int:
        request = s.client.unsubscribe(s.now, s.consumer, **options)
        s.pump()
        return request

    def test_succeeds(self) -> None:
        s = started(acknowledgement_group_time=3600.0)
        s.message(0)
        s.acknowledge(s.receive())
        s.outputs()
        request = self.unsubscribe(s, force=True)
        (command,) = s.expect("UNSUBSCRIBE")  # what waited to be acknowledged is of no use to anybody
        assert command.force
        s.say("SUCCESS", proto.CommandSuccess(request_id=command.request_id))
        assert s.outputs() == [Closed(s.consumer, None), RequestDone(request, None)]  # CONS-46
        s.expect()  # no CLOSE_CONSUMER
        assert s.client.next_deadline() is not None  # the keepalive of the connection
        with pytest.raises(ClosedError):
            s.receive()

    def test_is_refused_and_the_consumer_goes_on(self) -> None:
        s = started()
        request = self.unsubscribe(s)
        (command,) = s.expect("UNSUBSCRIBE")
        refuse(s, command.request_id, 1)
        (failed,) = s.outputs()
        assert isinstance(failed, RequestFailed)
        assert failed.request == request
        assert isinstance(failed.error, BrokerError)
        s.message(0)
        assert s.receive() is not None

    def test_closed_meanwhile(self) -> None:
        s = started()
        request = self.unsubscribe(s)
        closing = s.close()
        unsubscribe, close = s.expect("UNSUBSCRIBE", "CLOSE_CONSUMER")
        s.say("SUCCESS", proto.CommandSuccess(request_id=unsubscribe.request_id))
        s.say("SUCCESS", proto.CommandSuccess(request_id=close.request_id))
        assert s.outputs() == [
            RequestDone(request, None),
            Closed(s.consumer, None),
            RequestDone(closing, None),
        ]

    def test_closed_before_it_was_answered(self) -> None:
        """Waiting requests fail before the consumer is closed; the late answer has no effect."""
        s = started()
        request = self.unsubscribe(s)
        closing = s.close()
        unsubscribe, close = s.expect("UNSUBSCRIBE", "CLOSE_CONSUMER")
        s.say("SUCCESS", proto.CommandSuccess(request_id=close.request_id))
        failed, *after = s.outputs()
        assert isinstance(failed, RequestFailed)
        assert (failed.request, type(failed.error)) == (request, ClosedError)
        assert after == [Closed(s.consumer, None), RequestDone(closing, None)]
        s.say("SUCCESS", proto.CommandSuccess(request_id=unsubscribe.request_id))
        assert s.outputs() == []

    def test_closed_by_the_broker_meanwhile(self) -> None:
        s = started()
        request = self.unsubscribe(s)
        (command,) = s.expect("UNSUBSCRIBE")
        s.close_by_broker()
        s.say("SUCCESS", proto.CommandSuccess(request_id=command.request_id))
        assert s.outputs()[1:] == [Closed(s.consumer, None), RequestDone(request, None)]
        s.pass_time(60 * SECOND)
        assert "SUBSCRIBE" not in [name for name, _ in s.frames()]

    def test_closed_by_the_broker_and_taken_in_again_meanwhile(self) -> None:
        """The broker has a consumer again; the client closes it."""
        s = started()
        request = self.unsubscribe(s)
        (command,) = s.expect("UNSUBSCRIBE")
        s.close_by_broker()
        s.pass_time(SECOND)
        s.accept()
        s.frames()
        s.outputs()
        s.say("SUCCESS", proto.CommandSuccess(request_id=command.request_id))
        (close,) = s.expect("CLOSE_CONSUMER")
        s.message(0)
        s.expect()  # and nothing is said for the consumer any more
        s.say("SUCCESS", proto.CommandSuccess(request_id=close.request_id))
        assert s.outputs() == [RequestDone(request, None), Closed(s.consumer, None)]
