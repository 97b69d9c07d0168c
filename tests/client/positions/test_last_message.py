"""`LastMessage`: a question is on its way once, and has one outcome within the operation timeout."""

from types import SimpleNamespace
from typing import Any

import pytest

from pulsar_sansio.client.outputs import RequestDone, RequestFailed
from pulsar_sansio.client.positions.last_message import LastMessage, LastPosition
from pulsar_sansio.core.context import Context
from pulsar_sansio.model.errors import (
    ClosedError,
    ConnectionLost,
    LocalProtocolError,
    MetadataError,
    TimedOut,
    UnsupportedVersion,
)
from pulsar_sansio.model.message_id import MessageId
from pulsar_sansio.wire import proto
from tests.client.broker_script import SECOND, ConsumerScript
from tests.client.positions.positions_script import NOTHING, answer, asked, started


class Requests:
    """The requests that were sent, with what is to be done when they are answered."""

    def __init__(self) -> None:
        self.sent: list[tuple[Any, Any]] = []
        self.cancelled: list[int] = []

    def send(self, connection: Any, encode: Any, done: Any, failed: Any, reply: int) -> int:
        self.sent.append((done, failed))
        return len(self.sent)

    def cancel(self, connection: Any, request: int) -> None:
        self.cancelled.append(request)


def test_a_question_on_its_way_is_not_asked_again_over_the_same_connection() -> None:
    """The consumer comes to rest twice on one attachment: when it is open, and when its place is known."""
    requests, answers = Requests(), list[LastPosition]()
    services: Any = SimpleNamespace(
        context=Context(0, 1),
        requests=requests,
        durations=SimpleNamespace(operation_timeout=10),
        config=SimpleNamespace(operation_timeout=10.0),
    )
    last = LastMessage(services, wire_id=0, partition=-1)
    connection: Any = SimpleNamespace(protocol_version=21)
    last.ask(answers.append, lambda error: None)
    last.attach(connection)
    last.attach(connection)
    assert len(requests.sent) == 1

    last.detach()
    assert requests.cancelled == [1]
    last.attach(connection)
    assert len(requests.sent) == 2
    reply = proto.CommandGetLastMessageIdResponse(request_id=2)
    reply.last_message_id.ledgerId = 5
    reply.last_message_id.entryId = 7
    requests.sent[1][0](reply)
    assert [answer.last[:2] for answer in answers] == [(5, 7)]


def test_when_one_is_answered_the_next_one_has_its_own_time() -> None:
    """Questions may be older than their order of asking: one that is asked anew keeps its first deadline."""
    requests, answers = Requests(), list[LastPosition]()
    context: Context[Any] = Context(0, 1)
    services: Any = SimpleNamespace(
        context=context, requests=requests, config=SimpleNamespace(operation_timeout=10.0)
    )
    last = LastMessage(services, wire_id=0, partition=-1)
    last.attach(SimpleNamespace(protocol_version=21))  # type: ignore[arg-type]
    failed: list[int] = []

    def ask(deadline: int) -> None:
        last.ask(answers.append, lambda error: failed.append(deadline), deadline)

    for deadline in (30, 10, 20):
        ask(deadline)
    answered, _ = requests.sent[1]
    answered(proto.CommandGetLastMessageIdResponse(request_id=2))
    for now in (10, 19, 20, 30):
        context.now = now
        context.deadlines.run(now)
        assert failed == [deadline for deadline in (20, 30) if deadline <= now]
    assert len(answers) == 1


class TestTheLastMessage:
    @pytest.mark.parametrize(
        ("said", "expected"),
        [
            ((153, 0, 3), MessageId(153, 0, -1, 3, 4)),  # seen: java-last-message-id
            ((49, 1, -1), MessageId(49, 1)),
            ((49, 1, -7), MessageId(49, 1)),
            (NOTHING, MessageId(-1, -1)),
        ],
    )
    def test_is_an_id(self, said: tuple[int, int, int], expected: MessageId) -> None:
        s = started()
        request = s.client.last_message_id(s.now, s.consumer)
        answer(s, asked(s), said, (153, -1))
        assert s.outputs() == [RequestDone(request, expected)]

    def test_of_a_partition(self) -> None:
        s = started(topic="t-partition-2")
        s.client.last_message_id(s.now, s.consumer)
        answer(s, asked(s), (1, 2, -1))
        (done,) = s.outputs()
        assert isinstance(done, RequestDone)
        assert done.result == MessageId(1, 2, 2)

    def test_is_asked_for_again_on_the_next_connection(self) -> None:
        s = started()
        request = s.client.last_message_id(s.now, s.consumer)
        asked(s)
        s.lose()
        s.pass_time(SECOND)
        s.accept()
        s.outputs()
        answer(s, asked(s), (1, 2, -1))
        assert s.outputs() == [RequestDone(request, MessageId(1, 2))]

    def test_a_refusal_is_final(self) -> None:
        """An application that asks in a loop does not spin."""
        s = started()
        request = s.client.last_message_id(s.now, s.consumer)
        code: Any = proto.MetadataError
        s.say("ERROR", proto.CommandError(request_id=asked(s), error=code, message="no"))
        (failed,) = s.outputs()
        assert isinstance(failed, RequestFailed)
        assert failed.request == request
        assert isinstance(failed.error, MetadataError)
        assert s.frames() == []

    def test_within_the_operation_timeout(self) -> None:
        s = started()
        s.lose()
        s.answers_lookups = False
        requests = [s.client.last_message_id(s.now, s.consumer)]
        s.pass_time(10 * SECOND)
        requests.append(s.client.last_message_id(s.now, s.consumer))
        s.pass_time(19 * SECOND)
        assert [each for each in s.outputs() if isinstance(each, RequestFailed)] == []
        for request in requests:
            s.pass_time(10 * SECOND)
            (failed,) = [each for each in s.outputs() if isinstance(each, RequestFailed)]
            assert failed.request == request
            assert isinstance(failed.error, TimedOut)

    def test_a_cancelled_request_is_not_answered(self) -> None:
        s = started()
        s.client.abandon(s.now, s.client.last_message_id(s.now, s.consumer))
        answer(s, asked(s), (1, 2, -1))
        assert s.outputs() == []

    def test_old_brokers_do_not_know(self) -> None:
        s = ConsumerScript(protocol_version=11)
        s.accept()
        s.outputs()
        s.client.last_message_id(s.now, s.consumer)
        (failed,) = s.outputs()
        assert isinstance(failed, RequestFailed)
        assert isinstance(failed.error, UnsupportedVersion)

    def test_there_is_none_without_memory(self) -> None:
        s = started(topic="non-persistent://public/default/t")
        for ask in (s.client.last_message_id, s.client.has_message_available):
            with pytest.raises(LocalProtocolError, match="not persistent"):
                ask(s.now, s.consumer)

    def test_a_closed_consumer_answers(self) -> None:
        s = started()
        request = s.client.last_message_id(s.now, s.consumer)
        late = asked(s)
        s.close()
        (close,) = s.expect("CLOSE_CONSUMER")
        s.say("SUCCESS", proto.CommandSuccess(request_id=close.request_id))
        (failed,) = [each for each in s.outputs() if isinstance(each, RequestFailed)]
        assert (failed.request, type(failed.error)) == (request, ClosedError)
        answer(s, late, (1, 2, -1))
        assert s.outputs() == [], "the answer comes too late"


class Broker:
    """Questions of one `LastMessage`, and what became of them."""

    def __init__(self) -> None:
        self.requests = Requests()
        self.context: Context[Any] = Context(0, 1)
        services: Any = SimpleNamespace(
            context=self.context,
            requests=self.requests,
            durations=SimpleNamespace(operation_timeout=10),
            config=SimpleNamespace(operation_timeout=10.0),
        )
        self.last = LastMessage(services, wire_id=0, partition=-1)
        self.outcomes: list[tuple[str, object]] = []

    def ask(self, name: str, deadline: int | None = None) -> Any:
        return self.last.ask(
            lambda answer: self.outcomes.append((name, answer)),
            lambda error: self.outcomes.append((name, type(error))),
            deadline,
        )

    def attach(self) -> None:
        self.last.attach(SimpleNamespace(protocol_version=12))  # type: ignore[arg-type]


def test_a_withdrawn_question_has_no_outcome() -> None:
    broker = Broker()
    broker.attach()
    withdrawn = broker.ask("withdrawn")
    broker.last.withdraw(withdrawn)
    assert broker.requests.cancelled == [1]
    assert broker.context.deadlines.next() is None
    waiting = broker.ask("waiting")
    broker.last.detach()
    broker.last.withdraw(waiting)
    broker.attach()
    assert len(broker.requests.sent) == 2, "it is not asked again"
    broker.last.end(ClosedError("x"))
    assert broker.outcomes == []


def test_a_lost_connection_leaves_the_question_open_until_its_deadline() -> None:
    broker = Broker()
    broker.attach()
    broker.ask("q")
    broker.requests.sent[0][1](ConnectionLost("cut"))
    assert broker.outcomes == []
    broker.attach()
    assert len(broker.requests.sent) == 2, "it is asked again"
    broker.requests.sent[1][1](MetadataError("no"))
    assert broker.outcomes == [("q", MetadataError)]


def test_a_question_is_not_sent_while_detached() -> None:
    broker = Broker()
    broker.attach()
    broker.last.detach()
    broker.ask("q")
    assert broker.requests.sent == []


def test_the_next_deadline_is_that_of_the_first_open_question() -> None:
    broker = Broker()
    broker.ask("later", 20)
    first = broker.ask("first", 10)
    assert broker.context.deadlines.next() == 10
    broker.last.withdraw(first)
    assert broker.context.deadlines.next() == 20


def test_a_question_that_timed_out_is_cancelled_and_others_keep_their_time() -> None:
    broker = Broker()
    broker.attach()
    broker.ask("late", 20)
    broker.ask("early", 10)
    broker.context.now = 10
    broker.context.deadlines.run(10)
    assert broker.outcomes == [("early", TimedOut)]
    assert broker.requests.cancelled == [2]
    assert broker.context.deadlines.next() == 20


def test_the_end_fails_each_question_once_in_the_order_of_deadlines() -> None:
    broker = Broker()
    broker.ask("second", 20)
    broker.ask("first", 10)
    broker.last.end(ClosedError("x"))
    broker.last.end(ClosedError("x"))
    assert broker.outcomes == [("first", ClosedError), ("second", ClosedError)]
    assert broker.context.deadlines.next() is None


def test_the_mark_delete_position_is_signed_and_may_be_absent() -> None:
    """A subscription that has acknowledged nothing of a ledger has entry id -1 there."""
    broker = Broker()
    broker.attach()
    for index in range(2):
        broker.ask("q")
        reply = proto.CommandGetLastMessageIdResponse(request_id=index + 1)
        reply.last_message_id.ledgerId = 5
        reply.last_message_id.entryId = 7
        if index:
            reply.consumer_mark_delete_position.ledgerId = 5
            reply.consumer_mark_delete_position.entryId = 2**64 - 1
        broker.requests.sent[index][0](reply)
    answers = [answer for _, answer in broker.outcomes if isinstance(answer, LastPosition)]
    assert [answer.mark_delete for answer in answers] == [None, (5, -1)]
