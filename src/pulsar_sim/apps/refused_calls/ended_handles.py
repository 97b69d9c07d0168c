"""Handles that have ended: every command raises `ClosedError` with the cause, and the last counts are kept.

Owns the commands that are tried (INV-N17). Drivers keep the fast paths of a handle, so they are kept here
from the moment at which it is ready, and used after its end.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pulsar_sansio.client.client import Client
from pulsar_sansio.model.errors import ClosedError, LocalProtocolError, PulsarError
from pulsar_sansio.model.message import Message
from pulsar_sansio.model.message_id import EARLIEST, MessageId

from ...engine.failures import ViolationError
from .refusals import Call, check_refusals

if TYPE_CHECKING:
    from ...engine.nodes.client_node import ClientNode

SOME_ID = MessageId(1, 1)

SOME_MESSAGE: Any = SOME_ID
"""Stands for a message: the end of a handle is found first."""


def _no_block(message: Message[Any]) -> Any:
    """Make no block for `message`."""


PRODUCER: dict[str, Call] = {
    "send": lambda client, now, handle: client.send(now, handle, b"late", 0),
    "send_many": lambda client, now, handle: client.send_many(now, handle, [b"late"], 0),
    "push": lambda client, now, handle: client.push(now, handle),
    "flush": lambda client, now, handle: client.flush(now, handle),
    "appender": lambda client, now, handle: client.appender(handle),
    "encoder": lambda client, now, handle: client.encoder(handle),
    "last_sequence_id": lambda client, now, handle: client.last_sequence_id(handle),
    "partition_statistics": lambda client, now, handle: client.partition_statistics(handle),
}
"""The commands to a producer."""

CONSUMER: dict[str, Call] = {
    "receive": lambda client, now, handle: client.receive(now, handle),
    "receiver": lambda client, now, handle: client.receiver(handle),
    "take": lambda client, now, handle: client.take(now, handle, 1),
    "batch_receive": lambda client, now, handle: client.batch_receive(now, handle),
    "available": lambda client, now, handle: client.available(handle),
    "subscribed_topics": lambda client, now, handle: client.subscribed_topics(handle),
    "arrival_counters": lambda client, now, handle: client.arrival_counters(handle),
    "acknowledge": lambda client, now, handle: client.acknowledge(now, handle, SOME_ID),
    "acknowledge several": lambda client, now, handle: client.acknowledge(now, handle, [SOME_ID]),
    "acknowledge nothing": lambda client, now, handle: client.acknowledge(now, handle, []),
    "refuse nothing": lambda client, now, handle: client.negative_acknowledge(now, handle, []),
    "acknowledge_cumulative": lambda client, now, handle: client.acknowledge_cumulative(now, handle, SOME_ID),
    "acknowledger": lambda client, now, handle: client.acknowledger(handle),
    "set_processing": lambda client, now, handle: client.set_processing(handle, _no_block),
    "negative_acknowledge": lambda client, now, handle: client.negative_acknowledge(now, handle, SOME_ID),
    "redeliver_unacknowledged": lambda client, now, handle: client.redeliver_unacknowledged(now, handle),
    "reconsume_later": lambda client, now, handle: client.reconsume_later(now, handle, SOME_MESSAGE, 1.0, 0),
    "dead_letter": lambda client, now, handle: client.dead_letter(now, handle, SOME_MESSAGE, 0),
    "flush_acknowledgements": lambda client, now, handle: client.flush_acknowledgements(now, handle),
    "pause": lambda client, now, handle: client.pause(now, handle),
    "resume": lambda client, now, handle: client.resume(now, handle),
    "unsubscribe": lambda client, now, handle: client.unsubscribe(now, handle),
    "checkpoint": lambda client, now, handle: client.checkpoint(handle),
    "seek": lambda client, now, handle: client.seek(now, handle, EARLIEST),
    "last_message_id": lambda client, now, handle: client.last_message_id(now, handle),
    "last_position": lambda client, now, handle: client.last_position(now, handle),
    "has_message_available": lambda client, now, handle: client.has_message_available(now, handle),
}
"""The commands to a consumer or reader."""

TABLE_VIEW: dict[str, Call] = {
    "table": lambda client, now, handle: client.table(handle),
    "refresh": lambda client, now, handle: client.refresh(now, handle),
}
"""The commands to a table view."""


class FastPaths:
    """The callables that a driver keeps of one producer or consumer."""

    __slots__ = ("_acknowledge", "_append", "_last", "_last_sequence_id", "_queue")

    def __init__(self, client: Client, handle: int) -> None:
        """Take them from an open handle."""
        self._append: Callable[[Any], int] | None = None
        self._last_sequence_id: Callable[[], int] | None = None
        self._queue: Any = None
        self._acknowledge: Callable[[Any], bool] | None = None
        try:
            self._append = client.appender(handle)
            self._last_sequence_id = client.last_sequence_id(handle)
        except LocalProtocolError:
            self._queue = client.receiver(handle)
            self._acknowledge = client.acknowledger(handle)

    def check_ended(self, name: str, client: Client, now: int, handle: int) -> None:
        """INV-N17: nothing can be sent, received or acknowledged by them any more."""
        if self._append is not None and self._last_sequence_id is not None:
            taken, last = self._append(b"late"), self._last_sequence_id()
            if taken != -1 or last < -1:
                raise ViolationError("INV-N17", f"{name} has ended and takes a message: {taken}, {last}")
            return
        queue, acknowledge = self._queue, self._acknowledge
        assert acknowledge is not None
        calls: dict[str, Call] = {
            "receive of the queue": lambda client, now, handle: queue.receive(),
            "a kept acknowledger": lambda client, now, handle: acknowledge(SOME_ID),
        }
        check_refusals(name, client, now, handle, calls, ClosedError)
        left = next(queue.ready, None)
        if left is not None:
            raise ViolationError("INV-N17", f"{name} has ended and gives {left}")


def check_ended_handle(
    node: "ClientNode", handle: int, paths: FastPaths | None, cause: PulsarError | None
) -> None:
    """INV-N17: a producer, consumer or table view has ended because of `cause`. A table view may report its
    end while its consumer is still being closed."""
    client, now = node.client, node.world.clock.now
    if client.machine(handle) is not None:
        check_closing_handle(node, handle)
        return
    name = f"{node.name}: {handle}"
    if isinstance(cause, ClosedError):
        cause = None  # the application closed a handle that was not ready
    check_refusals(name, client, now, handle, {**PRODUCER, **CONSUMER, **TABLE_VIEW}, ClosedError, cause)
    if paths is not None:
        paths.check_ended(name, client, now, handle)
    kept = [_counts(each, client, now, handle) for each in COUNTS.items()]
    if kept.count(None) != 1:
        raise ViolationError("INV-N17", f"{name} has ended, and its last counts are {kept}")
    said = client.explain(now, handle)
    if not said.startswith(f"{handle}: closed") or (cause is not None and str(cause)[:20] not in said):
        raise ViolationError("INV-N17", f"{name} has ended, and is explained as {said!r}")
    outputs = len(client.outputs)
    client.abandon(now, handle)
    if len(client.outputs) != outputs:
        raise ViolationError("INV-N17", f"{name} has ended, and abandoning it has a result")


_STILL_ANSWERED = {
    "send",  # the applications try it
    "appender",
    "encoder",
    "last_sequence_id",
    "partition_statistics",
    "receiver",
    "available",
    "subscribed_topics",
    "arrival_counters",
    "acknowledger",
    "acknowledge_cumulative",  # which may be refused for another reason
    "set_processing",
}
"""Commands that do not fail while a handle is being closed."""


def check_closing_handle(node: "ClientNode", handle: int) -> None:
    """INV-N17: the application has closed the handle; perhaps its end was not reported yet."""
    client = node.client
    machine = client.machine(handle)
    if machine is None:
        return
    calls = PRODUCER if hasattr(machine, "append") else CONSUMER
    refused = {name: call for name, call in calls.items() if name not in _STILL_ANSWERED}
    name = f"{node.name}: {handle} is being closed"
    check_refusals(name, client, node.world.clock.now, handle, refused, ClosedError)


COUNTS: dict[str, Call] = {
    "producer_statistics": lambda client, now, handle: client.producer_statistics(handle),
    "consumer_statistics": lambda client, now, handle: client.consumer_statistics(handle),
}
"""The counts of a handle, which are kept."""


def _counts(each: tuple[str, Call], client: Client, now: int, handle: int) -> object:
    try:
        return each[1](client, now, handle)
    except ClosedError:
        return None
