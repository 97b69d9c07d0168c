"""Readers: a trio receive channel of messages that manages its position itself.

A reader is a consumer without acknowledgement, so it has no methods for it. The application chooses its
start, can seek, and can take a checkpoint: bytes at which another reader can start.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Any, Generic, TypeAlias

import trio

from pulsar_sansio import (
    EARLIEST,
    LATEST,
    InvalidConfiguration,
    LocalProtocolError,
    Message,
    MessageId,
    Messages,
    ReaderSpec,
    TopicMessageId,
    decode_checkpoint,
    encode_checkpoint,
    unknown_names,
)

from .. import official_names
from ..client.position import Place, Position, core_place
from ..values import T
from .consumer import Consumer, ConsumerStatistics
from .running import Handler, Outcomes

ASKING_INTERVAL = 1.0
"""Seconds between two questions whether there is more, where nothing comes."""

Start: TypeAlias = Place | timedelta | bytes | Mapping[str, MessageId]
"""The start of a reader. It is one of:

* a `Place`;
* an age, in whole seconds by the broker's clock;
* a checkpoint of a reader, `Reader.checkpoint()`;
* for each topic, by its full name, the message behind which the reader begins.
"""


def start_options(start: Start) -> dict[str, Any]:
    """The start as options of a `ReaderSpec`. Raises `LocalProtocolError` for a value that is no start."""
    if isinstance(start, timedelta):
        return {"start_rollback": start.total_seconds()}
    if isinstance(start, bytes):
        return {"start": decode_checkpoint(start)}
    if isinstance(start, Mapping):
        return {"start": start}
    if start is None:
        raise InvalidConfiguration(
            "start: 'earliest', 'latest', a message or its id, a datetime, a timedelta (so long ago) or a "
            "checkpoint, not None"
        )
    place = core_place(start)
    if isinstance(place, TopicMessageId):
        return {"start": {place.topic: place.message_id}}
    if callable(place):
        raise LocalProtocolError("start: a place, not a function")
    return {"start": place.message_id if isinstance(place, Message) else place}


class ReadingConsumer(Consumer[T]):
    """The consumer inside a reader."""

    _kind = "reader"

    @classmethod
    def of(cls, driver: Any, handle: int, spec: ReaderSpec) -> "ReadingConsumer[Any]":
        return cls(driver, handle, spec.reading("…"))

    async def read_all(self, handler: Handler, stop: trio.Event | None) -> None:
        """See `Reader.run`."""
        await self._handle_all(handler, Outcomes(_pass_over, _raise, _pass_over), 1, stop)

    async def flush(self) -> None:
        """There is nothing that the broker has to confirm."""
        await trio.lowlevel.checkpoint()


def _pass_over(_: object) -> None:
    """There is nothing to acknowledge."""


async def _raise(_: Message[Any], error: Exception) -> None:
    raise error


@unknown_names(official_names.READER)
class Reader(trio.abc.ReceiveChannel[Message[T]], Generic[T]):
    """Made by `client.create_reader`. Use it from any task of the same `trio.run`.

    `T`: the type of `Message.value`: bytes, or the values of its schema.
    """

    def __init__(self, consumer: ReadingConsumer[T], *, in_part: bool = False) -> None:
        """`in_part`: it reads part of the keys."""
        self._consumer = consumer
        self._in_part = in_part

    # --- reading ----------------------------------------------------------------------------------------

    async def receive(self, timeout_millis: None = None) -> Message[T]:
        """The next message, waiting for one where none has arrived. Raises `trio.EndOfChannel` when the topic
        is terminated and everything in it was read, `ResourceClosed` or `ResourceBroken` when the reader is,
        and `WrongArguments` for a timeout: see `Consumer.receive`.
        """
        if timeout_millis is not None:
            raise official_names.no_timeout(timeout_millis)
        return await self._consumer.receive()

    def __aiter__(self) -> Any:
        return self._consumer

    def receive_nowait(self) -> Message[T]:
        """The next message; raises `trio.WouldBlock` where none has arrived, and what `receive` raises."""
        return self._consumer.receive_nowait()

    async def receive_many(self, limit: int = 1000) -> Messages[T]:
        """1 to `limit` messages: all that have arrived, waiting where none has. The fast way."""
        return await self._consumer.receive_many(limit)

    async def until_latest(self) -> AsyncGenerator[Message[T], None]:
        """All messages up to the one that is the topic's last when this begins, and then the end.

        Messages that come later are left for the next call; of several topics and partitions some may be
        among the others. Raises what `receive` and `last_message_ids` raise, and `LocalProtocolError` for a
        reader of part of the keys, whose last message is unknown.
        """
        if self._in_part:
            raise LocalProtocolError("until_latest: with key_hash_ranges the last message is unknown")
        ids = await self.last_message_ids()
        positions = self.positions()
        last = {
            topic: message_id
            for topic, message_id in ids
            if message_id.entry_id >= 0
            and (message_id > positions.get(topic, EARLIEST) or positions[topic] == LATEST)
        }
        while last and await self.has_message_available():
            try:
                message = await self._receive_soon()
            except trio.EndOfChannel:
                return
            if message is None:
                continue
            yield message
            if message.topic in last and message.message_id >= last[message.topic]:
                del last[message.topic]

    async def _receive_soon(self) -> Message[T] | None:
        """Receive a message, or return None after `ASKING_INTERVAL`: the remaining entries may be
        unreadable or compacted away, which the broker does not report."""
        with trio.move_on_after(ASKING_INTERVAL):
            return await self.receive()
        return None

    async def run(
        self, handler: Callable[[Message[T]], Awaitable[object]], *, stop: trio.Event | None = None
    ) -> None:
        """Call `await handler(message)` for every message, one after the other; until the topic ends, or the
        reader is drained.

        `stop`: when this event is set, the reader is drained: see `drain`. An exception of the handler ends
        `run`, which raises it unchanged. A reader acknowledges nothing, so the broker would not redeliver a
        message that was passed over. The position is then behind that message;
        `seek(message, inclusive=True)` goes back to it. `run` notices cancellation before each handler, also
        if handlers never wait.

        Meanwhile `receive` and its likes are refused, as is `run` while a task receives:
        `InvalidConfiguration`. Raises what `receive` raises.
        """
        await self._consumer.read_all(handler, stop)

    async def drain(self) -> None:
        """Take nothing new, and wait until the handler of `run` that has begun is finished.

        From now on `receive` raises `trio.EndOfChannel`, and `async for`, `until_latest` and `run` end. That
        cannot be taken back. `checkpoint` is behind the last message that was received: a reader that starts
        there goes on with the next one. Raises as `Consumer.drain`.
        """
        await self._consumer.drain()

    # --- positions --------------------------------------------------------------------------------------

    async def seek(self, target: Position, *, inclusive: bool = False) -> None:
        """Go to another place in the topic: see `Consumer.seek`."""
        await self._consumer.seek(target, inclusive=inclusive)

    async def last_message_id(self) -> MessageId:
        """The id of the topic's last message; ledger and entry are -1 where there is none. Raises
        `LocalProtocolError` where there are several topics or partitions: see `last_message_ids`."""
        return await self._consumer.last_message_id()

    async def last_message_ids(self) -> list[TopicMessageId]:
        """Return the last message id of each topic and partition there is, by their names."""
        return await self._consumer.last_message_ids()

    async def has_message_available(self) -> bool:
        """Tell whether another message follows those received; if so, `receive` will not wait for long."""
        return await self._consumer.has_message_available()

    def checkpoint(self) -> bytes:
        """Return the position as bytes to store: a reader with this `start` continues at the next message."""
        return encode_checkpoint(self.positions())

    def positions(self) -> dict[str, MessageId]:
        """Return the position by full topic name: the id of the message before the next one."""
        return self._consumer.positions()

    # --- the end ----------------------------------------------------------------------------------------

    async def aclose(self) -> None:
        """Close it; silent when it is closed already."""
        await self._consumer.aclose()

    # --- facts about it ---------------------------------------------------------------------------------

    @property
    def topic(self) -> str:
        """The full name of the topic."""
        return self._consumer.topic

    @property
    def connected(self) -> bool:
        """True while the reader is attached to a broker. A detached reader reconnects by itself."""
        return self._consumer.connected

    def explain(self) -> str:
        """Say why nothing moves, if nothing does: see `Consumer.explain`."""
        return self._consumer.explain()

    def statistics(self) -> ConsumerStatistics:
        """The statistics of this reader, with the fields of a consumer's."""
        return self._consumer.statistics()

    def __repr__(self) -> str:
        return f"<Reader of {self.topic}, {self._consumer._state}>"
