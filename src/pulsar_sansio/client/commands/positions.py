"""`PositionCommands`: the commands of `Client` about the position of a consumer in its topic, and readers."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...model.config import ConsumerSpec, ReaderSpec
from ...model.errors import InvalidConfiguration
from ...model.message_id import MessageId
from ..connecting.services import ClientContext
from ..positions.seeking import SeekTarget
from .open_handles import OpenHandles

if TYPE_CHECKING:
    from ...model.message_id import TopicMessageId
    from ..multi_topics.open_consumer import AnyConsumer


class PositionCommands:
    """`subscribe` opens the consumer of a reader."""

    __slots__ = ("_context", "_handles", "_subscribe")

    def __init__(
        self, context: ClientContext, handles: OpenHandles, subscribe: Callable[[int, ConsumerSpec], int]
    ) -> None:
        self._context = context
        self._handles = handles
        self._subscribe = subscribe

    def open_reader(self, now: int, spec: ReaderSpec) -> int:
        """Return the handle of a new reader; `ConsumerReady` or `ConsumerFailed` follows.

        A reader is a consumer that acknowledges by itself; all other commands to consumers are for readers
        too. Raises `ClosedError` when the client is closed.
        """
        if not isinstance(spec, ReaderSpec):
            raise InvalidConfiguration(f"open_reader takes a ReaderSpec, not {type(spec).__name__}")
        made_up = f"{self._context.rng.getrandbits(40):010x}"
        return self._subscribe(now, spec.reading(made_up))

    def checkpoint(self, consumer: int) -> dict[str, MessageId]:
        """Return the position of a consumer or reader in each topic, by the topic's full name.

        The position is the last delivered message, or the start position where no message was delivered. A
        reader that starts there continues with the next message; see `encode_checkpoint`.
        """
        return self._handles.consumer(consumer).checkpoint()

    def seek(
        self, now: int, consumer: int, target: "SeekTarget | TopicMessageId", inclusive: bool = False
    ) -> int:
        """Move the subscription, and all its consumers, to another position (rules SEEK-01, SEEK-03,
        SEEK-05).

        `target` is one of:

        * a message or its id: the message behind it is delivered next, or the message itself if `inclusive`;
        * `EARLIEST` or `LATEST`;
        * milliseconds since 1970: the first message published then or later is delivered next;
        * a function that is given the full name of the topic and returns one of these.

        A consumer of several topics moves in one topic for a message or a `TopicMessageId`, and in all topics
        for every other target (MULTI-26).

        `RequestDone` follows when the subscription has moved. From then on no earlier message is delivered,
        and acknowledgements that were not sent are dropped. A seek without a connection waits for one. Seeks
        of one consumer happen one after the other. `RequestFailed` follows when the broker refuses, or the
        operation timeout expires. Raises `LocalProtocolError` for a target that is no position in this topic,
        or when the topic is not persistent.
        """
        machine = self._consumer(now, consumer)
        begin = machine.prepare_seek(target, inclusive)
        request = self._context.new_id()
        begin(request)
        return request

    def last_message_id(self, now: int, consumer: int) -> int:
        """Ask for the last message of the topic: its `MessageId` is the `result` of `RequestDone`.

        Ledger and entry are -1 when the topic is empty. The result for several topics is a list of
        `TopicMessageId`. Raises `LocalProtocolError` for a topic that is not persistent.
        """
        machine = self._consumer(now, consumer)
        machine.check_last_message()
        request = self._context.new_id()
        machine.last_message_id(request)
        return request

    def last_position(self, now: int, consumer: int) -> int:
        """Ask for the end of the topic and the position of the subscription.

        The `result` of `RequestDone` is a `LastPosition`; for several topics a dict of them, by the topics'
        names. Raises `LocalProtocolError` for a topic that is not persistent.
        """
        machine = self._consumer(now, consumer)
        machine.check_last_message()
        request = self._context.new_id()
        machine.last_position(request)
        return request

    def has_message_available(self, now: int, consumer: int) -> int:
        """Ask whether the topic has a message after the delivered ones: the `result` of `RequestDone` is
        True or False. Messages that wait for redelivery do not count. Raises `LocalProtocolError` for a topic
        that is not persistent."""
        machine = self._consumer(now, consumer)
        machine.check_last_message()
        request = self._context.new_id()
        machine.has_message_available(request)
        return request

    def _consumer(self, now: int, handle: int) -> "AnyConsumer":
        machine = self._handles.consumer(handle)
        self._context.now = now
        return machine
