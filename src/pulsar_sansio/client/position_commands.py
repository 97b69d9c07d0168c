"""`PositionCommands`: the commands of `Client` about where in its topic a consumer is."""

from typing import TYPE_CHECKING

from .seeking import SeekTarget
from .services import ClientContext

if TYPE_CHECKING:
    from .consumer import Consumer


class PositionCommands:
    """What is between here and the machines is `Client`'s."""

    _context: ClientContext

    def _consumer(self, now: int, consumer: int) -> "Consumer":
        raise NotImplementedError

    def seek(self, now: int, consumer: int, target: SeekTarget, inclusive: bool = False) -> int:
        """Move the subscription, and all consumers of it, to another place (rules SEEK-01 to SEEK-06).

        `target`: a message or its id, `EARLIEST`, `LATEST`, milliseconds since 1970 (the first message
        published then or later comes next), or a function that is given the full name of the topic and says
        one of these. After a message, unless `inclusive`, the one behind it comes next.

        `RequestDone` follows when it is done: nothing that was there before is handed out from then on, and
        acknowledgements that were not sent are dropped. While there is no connection it waits for one.
        `RequestFailed` where the broker refuses, or nothing came of it within the operation timeout. Seeks
        asked for meanwhile are done one after the other. Raises `LocalProtocolError` for what is no place in
        this topic, or where the topic is not persistent.
        """
        machine = self._consumer(now, consumer)
        place = machine.check_seek(target)
        request = self._context.new_id()
        machine.seek(request, place, inclusive)
        return request

    def last_message_id(self, now: int, consumer: int) -> int:
        """Ask which message of the topic is the last one: its `MessageId` is the `result` of `RequestDone`,
        with ledger and entry -1 where there is none. Raises `LocalProtocolError` for a topic that is not
        persistent."""
        machine = self._consumer(now, consumer)
        machine.check_last_message()
        request = self._context.new_id()
        machine.last_message_id(request)
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
