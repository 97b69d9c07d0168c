"""Seeks: when they are done, and what is delivered before, during and after."""

from typing import Any

import pytest

from pulsar_sansio.client.outputs import (
    Attached,
    Closed,
    Deliverable,
    Detached,
    RequestDone,
    RequestFailed,
)
from pulsar_sansio.model.errors import (
    BrokerError,
    ClosedError,
    LocalProtocolError,
    MetadataError,
    TimedOut,
    UnsupportedVersion,
)
from pulsar_sansio.model.message_id import EARLIEST, LATEST, MessageId
from pulsar_sansio.wire import proto
from tests.client.broker_script import SECOND, ConsumerScript
from tests.client.positions.seeking_script import data, seek, sought, sought_and_back, started, success

TOPIC = "persistent://public/default/t"


def refuse(s: ConsumerScript, request_id: int, code: Any, message: str = "no") -> None:
    s.say("ERROR", proto.CommandError(request_id=request_id, error=code, message=message))


class TestTheCommand:
    def test_a_message_by_its_place(self) -> None:
        """Seen: java-seek."""
        s = started()
        seek(s, MessageId(47, 2))
        command = sought(s)
        assert (command.message_id.ledgerId, command.message_id.entryId) == (47, 2)
        assert not command.message_id.ack_set
        assert not command.HasField("message_publish_time")

    @pytest.mark.parametrize(
        ("target", "number"), [(EARLIEST, 2**64 - 1), (LATEST, 2**63 - 1)], ids=["earliest", "latest"]
    )
    def test_the_ends_of_the_topic(self, target: MessageId, number: int) -> None:
        """Rule SEEK-03."""
        s = started()
        seek(s, target)
        id_ = sought(s).message_id
        assert (id_.ledgerId, id_.entryId) == (number, number)

    def test_a_publish_time(self) -> None:
        s = started()
        seek(s, 1_795_260_015_107)
        command = sought(s)
        assert command.message_publish_time == 1_795_260_015_107
        assert not command.HasField("message_id")

    def test_in_a_batch_the_messages_from_there_on_are_asked_for(self) -> None:
        """Rule SEEK-02."""
        s = started()
        seek(s, MessageId(1, 2, -1, 4, 10))
        assert list(sought(s).message_id.ack_set) == [1008]

    def test_a_message_in_chunks_by_its_first_one(self) -> None:
        s = started()
        seek(s, MessageId(1, 12, first_chunk=(1, 10)))
        assert sought(s).message_id.entryId == 10

    def test_by_a_function_of_the_topic(self) -> None:
        """Rule SEEK-04."""
        s = started()
        seek(s, lambda topic: {TOPIC: MessageId(1, 7)}[topic])
        assert sought(s).message_id.entryId == 7

    def test_by_a_message(self) -> None:
        s = started()
        s.message(3)
        seek(s, s.receive())
        assert sought(s).message_id.entryId == 3

    def test_an_old_broker_does_not_know_it(self) -> None:
        s = ConsumerScript(protocol_version=11)
        s.accept()
        s.outputs()
        request = seek(s, EARLIEST)
        (failed,) = s.outputs()
        assert isinstance(failed, RequestFailed)
        assert failed.request == request
        assert isinstance(failed.error, UnsupportedVersion)
        s.message(1)
        assert data(s.take()) == [b"m"]


class TestMistakes:
    @pytest.mark.parametrize(
        "target", [MessageId(1, 2, 5), "yesterday", 1.5, True, -1, None, lambda topic: "there"]
    )
    def test_no_place_in_this_topic(self, target: Any) -> None:
        s = started()
        s.message(1)
        with pytest.raises(LocalProtocolError, match="seek"):
            seek(s, target)
        assert s.frames() == []
        assert data(s.take()) == [b"m"]

    def test_a_message_of_another_topic(self) -> None:
        other = started(topic="other")
        other.message(1)
        s = started()
        with pytest.raises(LocalProtocolError, match="other"):
            seek(s, other.receive())
        assert s.frames() == []

    def test_a_topic_without_memory(self) -> None:
        s = started(topic="non-persistent://public/default/t")
        with pytest.raises(LocalProtocolError, match="not persistent"):
            seek(s, EARLIEST)

    def test_a_closed_consumer(self) -> None:
        s = started()
        s.close()
        with pytest.raises(ClosedError):
            seek(s, EARLIEST)


class TestDone:
    def test_when_the_consumer_is_back(self) -> None:
        s = started()
        for entry in range(3):
            s.message(entry, b"%d" % entry)
        assert s.receive().data == b"0"
        s.outputs()
        request = seek(s, EARLIEST)
        command = sought(s)
        s.close_by_broker()
        assert [type(output) for output in s.outputs()] == [Detached]
        success(s, command.request_id)
        assert s.receive() is None  # nothing from before
        assert s.outputs() == []
        s.pass_time(SECOND)
        s.accept()
        assert s.outputs() == [RequestDone(request, None), Attached(s.consumer)]
        (flow,) = s.expect("FLOW")
        assert flow.message_permits == 1000
        s.message(0, b"0")
        assert data(s.take()) == [b"0"]

    def test_when_the_answer_to_subscribe_is_the_slower_one(self) -> None:
        """The order may be the other one: the answer to SEEK comes when SUBSCRIBE is on its way."""
        s = started()
        request = seek(s, EARLIEST)
        command = sought(s)
        s.close_by_broker()
        s.pass_time(SECOND)
        (subscribe,) = s.expect("SUBSCRIBE")
        success(s, command.request_id)
        s.outputs()
        success(s, subscribe.request_id)
        assert RequestDone(request, None) in s.outputs()
        s.expect("FLOW")

    def test_nor_an_answer_that_subscribe_did_not_know_of_where_the_broker_may_have_forgotten(self) -> None:
        """The topic was unloaded meanwhile, and SUBSCRIBE has made another subscription at the old place."""
        s = started(durable=False, start_message_id=EARLIEST)
        request = seek(s, MessageId(1, 5), inclusive=True)
        first = sought(s)
        s.close_by_broker()
        s.pass_time(SECOND)
        (subscribe,) = s.expect("SUBSCRIBE")
        assert subscribe.start_message_id.entryId == 2**64 - 1
        success(s, first.request_id)
        success(s, subscribe.request_id)
        again = sought(s)  # and no permits before it
        assert again.message_id.entryId == 5
        assert RequestDone(request, None) not in s.outputs()
        s.close_by_broker()
        success(s, again.request_id)
        s.pass_time(SECOND)
        assert s.accept().start_message_id.entryId == 5
        assert RequestDone(request, None) in s.outputs()

    def test_an_answer_that_comes_after_the_next_attachment_does_not_count(self) -> None:
        """Messages delivered since then may precede or follow the seek: the SEEK is sent again."""
        s = started()
        request = seek(s, MessageId(1, 0), inclusive=True)
        first = sought(s)
        s.close_by_broker()
        s.pass_time(SECOND)
        s.accept()
        again = sought(s)  # and no permits before it
        s.outputs()
        success(s, first.request_id)
        assert s.outputs() == []
        s.close_by_broker()
        success(s, again.request_id)
        s.pass_time(SECOND)
        s.accept()
        assert RequestDone(request, None) in s.outputs()
        s.expect("FLOW")

    def test_a_broker_that_leaves_the_consumer_open(self) -> None:
        s = started(receiver_queue_size=10)
        s.message(5)
        request = seek(s, EARLIEST)
        s.outputs()
        success(s, sought(s).request_id)
        assert s.outputs() == [RequestDone(request, None)]
        assert s.receive() is None
        s.message(0)
        assert data(s.take()) == [b"m"]

    def test_what_comes_before_the_answer_is_from_before(self) -> None:
        s = started()
        seek(s, EARLIEST)
        command = sought(s)
        s.message(9)
        s.close_by_broker()
        success(s, command.request_id)
        assert s.take() == []

    def test_and_what_comes_before_it_has_subscribed_again(self) -> None:
        """A real broker under load goes on sending for a while after its CLOSE_CONSUMER."""
        s = started()
        seek(s, EARLIEST)
        command = sought(s)
        s.close_by_broker()
        s.message(8)
        success(s, command.request_id)
        s.pass_time(SECOND)
        s.message(9)
        s.accept()
        assert s.take() == []
        s.expect("FLOW")
        s.message(0, b"0")
        assert data(s.take()) == [b"0"]

    def test_waiting_messages_are_taken_back_from_an_iteration(self) -> None:
        s = started()
        for entry in range(5):
            s.message(entry, b"%d" % entry)
        s.receive()
        ready = s.client.receiver(s.consumer).ready
        seek(s, EARLIEST)
        command = sought(s)
        s.close_by_broker()
        success(s, command.request_id)
        assert next(ready, None) is None

    def test_several_are_done_one_after_the_other(self) -> None:
        s = started()
        first, second = seek(s, EARLIEST), seek(s, MessageId(1, 5))
        sought_and_back(s)
        assert RequestDone(first, None) in s.outputs()
        command = sought(s)  # no permits in between
        assert command.message_id.entryId == 5
        s.close_by_broker()
        success(s, command.request_id)
        s.pass_time(SECOND)
        s.accept()
        assert RequestDone(second, None) in s.outputs()
        s.expect("FLOW")


class TestElsewhere:
    """The subscription of an answered seek was moved once more, and the client does not know."""

    def test_by_a_seek_that_was_never_answered(self) -> None:
        """A seek to before an entry that the first seek skipped wants all of it (SEEK-01)."""
        s = started()
        seek(s, MessageId(1, 1))
        sought_and_back(s)
        s.frames()
        s.outputs()
        request = seek(s, EARLIEST)
        sought(s)
        s.close_by_broker()
        s.answers_lookups = False
        s.pass_time(30 * SECOND)
        assert [each.request for each in s.outputs() if isinstance(each, RequestFailed)] == [request]
        s.answers_lookups = True
        s.pass_time(60 * SECOND)
        s.accept()
        for entry in range(3):
            s.message(entry, b"%d" % entry)
        assert data(s.take()) == [b"0", b"1", b"2"]

    def test_by_another_client(self) -> None:
        """An administrator's reset, say: neither dropped nor acknowledged."""
        s = started()
        seek(s, MessageId(1, 1))
        sought_and_back(s)
        for entry in range(2):
            s.batch(entry, 2)
        assert data(s.take()) == [b"0.0", b"0.1", b"1.0", b"1.1"]
        s.pass_time(SECOND)
        assert "ACK" not in [name for name, _ in s.frames()]

    def test_before_the_chunks_of_a_message(self) -> None:
        """Where it is a message in chunks that it went behind, its first one counts: what lies between it and
        the last one is from before."""
        s = started()
        seek(s, MessageId(1, 5, first_chunk=(1, 3)))
        sought_and_back(s)
        s.message(3, b"3")
        assert s.take() == []
        s.message(2, b"2")
        s.message(4, b"4")
        s.message(5, b"5")
        assert data(s.take()) == [b"2", b"4", b"5"]


class TestWithoutAConnection:
    def test_it_waits_for_one(self) -> None:
        s = started()
        s.message(1)
        s.lose()
        request = seek(s, EARLIEST)
        assert s.frames() == []
        s.pass_time(SECOND)
        s.accept()
        s.outputs()
        sought_and_back(s)
        assert RequestDone(request, None) in s.outputs()
        s.expect("FLOW")

    def test_before_it_was_ever_attached(self) -> None:
        s = ConsumerScript()
        request = seek(s, EARLIEST)
        s.accept()
        sought_and_back(s)
        assert RequestDone(request, None) in s.outputs()

    def test_a_lost_connection_is_a_lost_seek(self) -> None:
        s = started()
        request = seek(s, EARLIEST)
        sought(s)
        s.lose()
        s.pass_time(SECOND)
        s.accept()
        s.outputs()
        sought_and_back(s)
        assert RequestDone(request, None) in s.outputs()

    def test_of_a_durable_subscription_the_answer_outlives_the_connection(self) -> None:
        s = started()
        request = seek(s, EARLIEST)
        command = sought(s)
        s.close_by_broker()
        success(s, command.request_id)
        s.lose()
        s.pass_time(SECOND)
        s.accept()
        s.expect("FLOW")
        assert RequestDone(request, None) in s.outputs()

    def test_of_another_one_it_does_not(self) -> None:
        s = started(durable=False, start_message_id=EARLIEST)
        request = seek(s, 1_000)
        command = sought(s)
        s.close_by_broker()
        success(s, command.request_id)
        s.lose()
        s.pass_time(SECOND)
        s.accept()
        s.outputs()
        assert sought(s).message_publish_time == 1_000
        assert RequestDone(request, None) not in s.outputs()


class TestNotDone:
    def test_however_many_that_an_old_broker_does_not_know(self) -> None:
        s = ConsumerScript(protocol_version=11)
        requests = [s.client.seek(s.now, s.consumer, EARLIEST) for _ in range(2000)]
        s.accept()
        failed = [each for each in s.outputs() if isinstance(each, RequestFailed)]
        assert [each.request for each in failed] == requests

    def test_refused(self) -> None:
        s = started()
        s.message(1)
        request = seek(s, EARLIEST)
        refuse(s, sought(s).request_id, proto.MetadataError)
        (failed,) = [each for each in s.outputs() if not isinstance(each, Deliverable)]
        assert isinstance(failed, RequestFailed)
        assert failed.request == request
        assert isinstance(failed.error, MetadataError)
        assert data(s.take()) == [b"m"]  # as if nothing had been asked

    def test_refused_where_permits_waited_for_it(self) -> None:
        s = started()
        s.lose()
        seek(s, EARLIEST)
        s.pass_time(SECOND)
        s.accept()
        refuse(s, sought(s).request_id, proto.NotAllowedError)
        s.expect("FLOW")

    def test_closed_by_the_broker_for_another_reason(self) -> None:
        """The topic was unloaded: there is no such consumer when the SEEK arrives, and there will be."""
        s = started()
        request = seek(s, EARLIEST)
        command = sought(s)
        s.close_by_broker()
        refuse(s, command.request_id, proto.MetadataError, "Consumer not found")
        assert not [each for each in s.outputs() if isinstance(each, RequestFailed)]
        s.pass_time(SECOND)
        s.accept()
        s.outputs()
        sought_and_back(s)
        assert RequestDone(request, None) in s.outputs()

    def test_in_time(self) -> None:
        s = started()
        request = seek(s, EARLIEST)
        s.lose()
        s.answers_lookups = False
        s.pass_time(29 * SECOND)
        assert not [each for each in s.outputs() if isinstance(each, RequestFailed)]
        s.pass_time(SECOND)
        (failed,) = [each for each in s.outputs() if isinstance(each, RequestFailed)]
        assert failed.request == request
        assert isinstance(failed.error, TimedOut)

    def test_refused_for_a_while(self) -> None:
        """Each time the consumer has come back, until it is too late."""
        s = started()
        seek(s, EARLIEST)
        attempts = 0
        while not (failures := [each for each in s.outputs() if isinstance(each, RequestFailed)]):
            for name, command in s.frames():
                if name == "SEEK":
                    attempts += 1
                    s.close_by_broker()
                    refuse(s, command.request_id, proto.UnknownError, "Failed to fence subscription")
                elif name == "SUBSCRIBE":
                    success(s, command.request_id)
            s.pass_time(SECOND // 10)
        (failed,) = failures
        assert isinstance(failed.error, TimedOut | BrokerError)
        assert 3 < attempts <= 301

    def test_closed_meanwhile(self) -> None:
        s = started()
        first, second = seek(s, EARLIEST), seek(s, LATEST)
        sought(s)
        s.close()
        (command,) = s.expect("CLOSE_CONSUMER")
        success(s, command.request_id)
        outputs = s.outputs()
        failed = [each for each in outputs if isinstance(each, RequestFailed)]
        assert {each.request for each in failed} == {first, second}
        assert all(isinstance(each.error, ClosedError) for each in failed)
        assert [each for each in outputs if isinstance(each, Closed)]

    def test_a_cancelled_request_is_not_answered(self) -> None:
        s = started()
        s.client.abandon(s.now, seek(s, EARLIEST))
        sought_and_back(s)
        assert not [each for each in s.outputs() if isinstance(each, RequestDone)]

    def test_what_waits_is_not_sent_when_it_is_closed(self) -> None:
        """Nothing follows CLOSE_CONSUMER, whatever becomes of the SEEK before it."""
        s = started()
        first, second = seek(s, EARLIEST), seek(s, LATEST)
        command = sought(s)
        s.client.close(s.now, s.consumer)
        s.pump()
        (close,) = [each for name, each in s.frames() if name == "CLOSE_CONSUMER"]
        failed = [each.request for each in s.outputs() if isinstance(each, RequestFailed)]
        assert failed == [second], "however long the broker takes to say that it is closed"
        refuse(s, command.request_id, proto.UnknownError)
        assert [name for name, _ in s.frames()] == []
        success(s, close.request_id)
        failed = [each.request for each in s.outputs() if isinstance(each, RequestFailed)]
        assert failed == [first]


def test_a_function_that_fails_is_the_callers_mistake() -> None:
    s = started()

    def where(topic: str) -> MessageId:
        raise KeyError(topic)

    with pytest.raises(LocalProtocolError, match=f"the function for {TOPIC} failed") as caught:
        seek(s, where)
    assert isinstance(caught.value.__cause__, KeyError)
    s.expect()


def test_ids_that_no_broker_gives() -> None:
    s = started()
    for wrong in (MessageId("1", 2), MessageId(1, 2**70), lambda _: MessageId(None, 2)):  # type: ignore[arg-type]
        with pytest.raises(LocalProtocolError, match="seek: a message, its id"):
            seek(s, wrong)
    s.expect()
