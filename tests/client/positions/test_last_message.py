"""Asking which message of a topic is the last one: a question is on its way once, and answered once."""

from types import SimpleNamespace
from typing import Any

from pulsar_sansio.client.positions.last_message import LastMessage, LastPosition
from pulsar_sansio.core.context import Context
from pulsar_sansio.wire import proto


class Requests:
    """Those that were sent, with what is to be done when they are answered."""

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
