"""`MultiTopicsCommands`: requests to a consumer of several topics that every member answers."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from ...core.callbacks import ignore
from ...model.errors import ClosedError
from ...model.message_id import TopicMessageId
from ..connecting.services import Services
from ..consuming.consumer import Consumer
from ..delivery.batch_receive import BatchReceive
from ..joint.gathered_requests import GatheredRequests
from ..letter_topics.letter_topics import CopyRequest
from ..outputs import RequestFailed
from ..positions.seeking import SeekTarget
from .ack_commands import MultiTopicsAckCommands
from .members import Members
from .positions import anything, last_ids, seek_positions


class MultiTopicsCommands:
    """Asks all members under the request id of the application, and puts the answers together. All commands
    raise `ClosedError` when `check_open` does."""

    __slots__ = (
        "_ack_commands",
        "_batch_receive",
        "_check_open",
        "_context",
        "_members",
        "_requests",
        "_services",
    )

    def __init__(
        self,
        services: Services,
        members: Members,
        requests: GatheredRequests,
        ack_commands: MultiTopicsAckCommands,
        batch_receive: BatchReceive | None,
        check_open: Callable[[], None],
    ) -> None:
        self._context = services.context
        self._services = services
        self._members = members
        self._requests = requests
        self._ack_commands = ack_commands
        self._batch_receive = batch_receive
        self._check_open = check_open

    def flush_acknowledgements(self, request: int) -> None:
        """`RequestDone` when the acknowledgements of all topics are confirmed."""
        self._ask_all(request, lambda consumer: consumer.flush_acknowledgements(request))

    def reconsume_later(self, request: int, what: CopyRequest) -> None:
        """See `Consumer`. A cumulative request acknowledges in the message's topic or partition only
        (ACK-25)."""
        for consumer, _ in self._ack_commands.spread_one(what.message):
            ask = partial(consumer.reconsume_later, request, what)
            self._requests.ask(request, [str(consumer.topic)], ask, self._context.emit)
            return
        gone = ClosedError(f"the consumer is not subscribed to {what.message.topic} any more")
        self._context.emit(RequestFailed(request, gone))

    def prepare_seek(self, target: SeekTarget | TopicMessageId, inclusive: bool) -> Callable[[int], None]:
        """Check the target of a seek as `seek_positions` does, and return what begins the seek when it is
        called with the request's id."""
        self._check_open()
        members = self._members.by_topic
        positions = seek_positions(members.values(), self._ack_commands, target)

        def begin(request: int) -> None:
            def ask() -> None:
                if self._batch_receive is not None:
                    self._batch_receive.over = False
                for name, (consumer, position) in positions.items():
                    members[name].end_of_topic = False
                    consumer.seek(request, position, inclusive)
                    self._requests.moved(name)

            self._requests.ask(request, list(positions), ask, self._context.emit)

        return begin

    def check_last_message(self) -> None:
        """Raise `LocalProtocolError` when one of the topics has no last message."""
        self._check_open()
        self._members.check_last_message()

    def last_message_id(self, request: int) -> None:
        """`RequestDone` with a list of `TopicMessageId`, by the names of the topics."""
        self._ask_all(request, lambda consumer: consumer.last_message_id(request), last_ids)

    def last_position(self, request: int) -> None:
        """`RequestDone` with a `LastPosition` for each topic, by their names."""
        self._ask_positions(request, lambda consumer: consumer.last_position, dict)

    def has_message_available(self, request: int) -> None:
        """`RequestDone` with True when any topic has a message after the delivered ones."""
        self._ask_positions(request, lambda consumer: consumer.has_message_available, anything)

    def _ask_positions(
        self,
        request: int,
        question: Callable[[Consumer], Callable[[int, int], None]],
        together: Callable[[Mapping[str, Any]], Any],
    ) -> None:
        """Ask for the position of every member. A member that is moved before all have answered is asked
        again within the operation timeout of the request (CONN-12)."""
        deadline = self._context.now + self._services.durations.operation_timeout
        self._ask_all(
            request, lambda consumer: question(consumer)(request, deadline), together, about_position=True
        )

    def _ask_all(
        self,
        request: int,
        question: Callable[[Consumer], None],
        together: Callable[[Mapping[str, Any]], Any] = ignore,
        about_position: bool = False,
    ) -> None:
        """Ask every member. The application is given what `together` makes of the results by topic, or the
        first error.

        `question` raises before it has changed anything, or not at all. `about_position`: an answer holds
        only until the member is moved.
        """
        self._check_open()
        members = self._members.by_topic
        names = list(members)

        def ask_one(name: str) -> None:
            question(members[name].consumer)

        def ask() -> None:
            for name in names:
                ask_one(name)

        again = ask_one if about_position else None
        self._requests.ask(request, names, ask, self._context.emit, together, again)
