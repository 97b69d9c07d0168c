"""`PositionCommands`: the commands of `Client` about where in its topic a consumer is, and readers."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from ...model.config import ConsumerSpec, ReaderSpec
from ...model.errors import InvalidConfiguration
from ...model.message_id import MessageId
from ..connecting.services import ClientContext
from ..consuming.seeking import SeekTarget

if TYPE_CHECKING:
    from ...model.message_id import TopicMessageId
    from ..multi_topics.open_consumer import AnyConsumer


class PositionCommands(ABC):
    """What is between here and the machines is `Client`'s."""

    _context: ClientContext

    @abstractmethod
    def _consumer(self, now: int, consumer: int) -> "AnyConsumer": ...

    @abstractmethod
    def subscribe(self, now: int, spec: ConsumerSpec) -> int: ...

    def open_reader(self, now: int, spec: ReaderSpec) -> int:
        """Returns the handle of a consumer that reads; `ConsumerReady` or `ConsumerFailed` follows. All there
        is to know of consumers holds for it, but that it acknowledges by itself. Raises `ClosedError` when
        the client is closed."""
        if not isinstance(spec, ReaderSpec):
            raise InvalidConfiguration(f"open_reader takes a ReaderSpec, not {type(spec).__name__}")
        made_up = f"{self._context.rng.getrandbits(40):010x}"
        return self.subscribe(now, spec.reading(made_up))

    def checkpoint(self, consumer: int) -> dict[str, MessageId]:
        """How far a consumer or reader has got: of each topic, by its full name, the last message that was
        handed out, or the place behind which it begins. A reader that starts there goes on with the next
        message; see `encode_checkpoint`."""
        return self._consumer(self._context.now, consumer).checkpoint()

    def seek(
        self, now: int, consumer: int, target: "SeekTarget | TopicMessageId", inclusive: bool = False
    ) -> int:
        """Move the subscription, and all consumers of it, to another place (rules SEEK-01 to SEEK-06).

        `target`: a message or its id, `EARLIEST`, `LATEST`, milliseconds since 1970 (the first message
        published then or later comes next), or a function that is given the full name of the topic and says
        one of these. After a message, unless `inclusive`, the one behind it comes next. Of several topics a
        message, or an id that says its topic, moves that one alone, everything else all of them (MULTI-26).

        `RequestDone` follows when it is done: nothing that was there before is handed out from then on, and
        acknowledgements that were not sent are dropped. While there is no connection it waits for one.
        `RequestFailed` where the broker refuses, or nothing came of it within the operation timeout. Seeks
        asked for meanwhile are done one after the other. Raises `LocalProtocolError` for what is no place in
        this topic, or where the topic is not persistent.
        """
        machine = self._consumer(now, consumer)
        begin = machine.prepare_seek(target, inclusive)
        request = self._context.new_id()
        begin(request)
        return request

    def last_message_id(self, now: int, consumer: int) -> int:
        """Ask which message of the topic is the last one: its `MessageId` is the `result` of `RequestDone`,
        with ledger and entry -1 where there is none; of several topics a list of `TopicMessageId`. Raises
        `LocalProtocolError` for a topic that is not persistent."""
        machine = self._consumer(now, consumer)
        machine.check_last_message()
        request = self._context.new_id()
        machine.last_message_id(request)
        return request

    def last_position(self, now: int, consumer: int) -> int:
        """Ask where the topic ends and how far the subscription is: the `result` of `RequestDone` is a
        `LastPosition`; of several topics a dict of them, by the topics' names. Raises `LocalProtocolError`
        for a topic that is not persistent."""
        machine = self._consumer(now, consumer)
        machine.check_last_message()
        request = self._context.new_id()
        machine.last_position(request)
        return request

    def has_message_available(self, now: int, consumer: int) -> int:
        """Ask whether there is a message after those that were handed out: the `result` of `RequestDone` is
        True or False. What was given back to be redelivered does not count. Raises `LocalProtocolError` for
        a topic that is not persistent."""
        machine = self._consumer(now, consumer)
        machine.check_last_message()
        request = self._context.new_id()
        machine.has_message_available(request)
        return request
