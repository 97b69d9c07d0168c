"""`LastMessage`: asks the broker for the last message of the topic (GET_LAST_MESSAGE_ID).

A question waits until the consumer is attached and no seek is under way. It is asked again when its answer is
lost, and fails after the operation timeout at the latest. A refusal is final, so that repeating a question
never loops. This module knows nothing of the use of the answers.
"""

from bisect import insort
from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple

from ...model.errors import ConnectionLost, PulsarError, TimedOut, UnsupportedVersion
from ...model.message_id import MessageId
from ...wire import encode_command, proto
from ...wire.fields import signed_64
from ..connecting.connection import Connection
from ..connecting.services import Services
from .seeking import SEEK_VERSION

_GET = proto.BaseCommand.GET_LAST_MESSAGE_ID
_RESPONSE = proto.BaseCommand.GET_LAST_MESSAGE_ID_RESPONSE


class LastPosition(NamedTuple):
    """The answer of the broker to GET_LAST_MESSAGE_ID."""

    last: MessageId
    """The entry id is -1 when the topic is empty. In a batch this is the last message."""
    mark_delete: tuple[int, int] | None
    """Ledger and entry id up to which the subscription has acknowledged; None when the broker does not
    tell."""


@dataclass(slots=True, eq=False)
class Question:
    answered: Callable[[LastPosition], None]
    failed: Callable[[PulsarError], None]
    deadline: int
    asked: tuple[Connection, int] | None = None
    """The connection and the request id, while the question is under way."""


class LastMessage:
    """The questions of one consumer."""

    __slots__ = ("_connection", "_context", "_open", "_partition", "_services", "_slot", "_wire_id")

    def __init__(self, services: Services, wire_id: int, partition: int) -> None:
        self._context = services.context
        self._services = services
        self._wire_id = wire_id
        self._partition = partition
        self._slot = services.context.deadlines.slot(self._timed_out)
        self._open: list[Question] = []
        """Open questions in the order of their deadlines."""
        self._connection: Connection | None = None
        """The connection, while attached and no seek is under way."""

    def ask(
        self,
        answered: Callable[[LastPosition], None],
        failed: Callable[[PulsarError], None],
        deadline: int | None = None,
    ) -> Question:
        """Ask; exactly one of the two callbacks is called, once. `deadline`: the first deadline of a question
        that is asked anew."""
        if deadline is None:
            deadline = self._context.now + self._services.durations.operation_timeout
        question = Question(answered, failed, deadline)
        insort(self._open, question, key=attrgetter("deadline"))
        if self._slot.when != self._open[0].deadline:
            self._slot.set(self._open[0].deadline)
        if self._connection is not None:
            self._send(self._connection, question)
        return question

    def withdraw(self, question: Question) -> None:
        """Cancel the question."""
        self._cancel(question)
        self._over(question)

    def attach(self, connection: Connection) -> None:
        """Send the open questions that are not under way."""
        self._connection = connection
        for question in list(self._open):
            if question.asked is None:
                self._send(connection, question)

    def detach(self) -> None:
        """Ask again all questions under way: answers that arrive from now on may be outdated."""
        self._connection = None
        for question in self._open:
            self._cancel(question)

    def end(self, error: PulsarError) -> None:
        """Fail all questions: the consumer has ended."""
        self.detach()
        while self._open:
            self._over(self._open[0]).failed(error)

    def _send(self, connection: Connection, question: Question) -> None:
        version = connection.protocol_version
        if version < SEEK_VERSION:
            error = UnsupportedVersion(f"the last message: the broker speaks protocol {version}")
            self._over(question).failed(error)
            return

        def answered(reply: proto.CommandGetLastMessageIdResponse) -> None:
            self._over(question).answered(self._read(reply))

        def failed(error: PulsarError) -> None:
            question.asked = None
            if not isinstance(error, ConnectionLost):
                self._over(question).failed(error)

        command = proto.CommandGetLastMessageId(consumer_id=self._wire_id)

        def encode(request_id: int) -> bytes:
            command.request_id = request_id
            return encode_command(_GET, command)

        request_id = self._services.requests.send(connection, encode, answered, failed, reply=_RESPONSE)
        question.asked = connection, request_id

    def _read(self, reply: Any) -> LastPosition:
        last = reply.last_message_id
        index = max(last.batch_index, -1)
        mark_delete = None
        if reply.HasField("consumer_mark_delete_position"):
            position = reply.consumer_mark_delete_position
            mark_delete = signed_64(position.ledgerId), signed_64(position.entryId)
        ledger_id, entry_id = signed_64(last.ledgerId), signed_64(last.entryId)
        return LastPosition(
            MessageId(ledger_id, entry_id, self._partition, index, index + 1),
            mark_delete,
        )

    def _cancel(self, question: Question) -> None:
        if question.asked is not None:
            self._services.requests.cancel(*question.asked)
            question.asked = None

    def _over(self, question: Question) -> Question:
        self._open.remove(question)
        if not self._open:
            self._slot.clear()
        elif self._slot.when is not None:
            self._slot.set(self._open[0].deadline)
        return question

    def _timed_out(self) -> None:
        seconds = self._services.config.operation_timeout
        while self._open and self._open[0].deadline <= self._context.now:
            question = self._open[0]
            self._cancel(question)
            self._over(question).failed(TimedOut(f"the last message was not known within {seconds:g} s"))
        if self._open:
            self._slot.set(self._open[0].deadline)
