"""`Reader`: a consumer that manages its position and acknowledges by itself.

Its subscription has a generated name and is not durable. It acknowledges delivered messages cumulatively at
intervals, only to tell the broker its position: the broker may remove read messages, and shows the position
in its statistics. A timer runs while messages wait to be delivered, so that delivering costs nothing.
"""

from collections.abc import Callable
from dataclasses import replace

from ...model.config import ConsumerSpec, ReadingSpec
from ...model.errors import PulsarError
from ...model.message import Message
from ...model.message_id import EARLIEST, LATEST
from ...model.topic_name import TopicName
from ..connecting.services import Services
from ..outputs import Deliverable, Output
from .consumer import Consumer
from .listener import ConsumerListener

ACKNOWLEDGEMENT_INTERVAL = 100_000_000
"""Nanoseconds between acknowledgements; the Java client groups acknowledgements for that time."""


class Reader(Consumer):
    """One reader of one topic."""

    def __init__(
        self,
        client: Services,
        handle: int,
        wire_id: int,
        spec: ReadingSpec,
        listener: ConsumerListener | None = None,
    ) -> None:
        assert isinstance(spec.topic, str)
        start = spec.positions.get(str(TopicName.parse(spec.topic)), EARLIEST)
        if start == LATEST:
            spec = replace(spec, start_message_id=LATEST)
        super().__init__(client, handle, wire_id, spec, listener)
        if start not in (EARLIEST, LATEST) and self.topic.persistent:
            self._arrival.start.resume_after(start)
        self._say = self._emit
        self._emit = self._on_output
        self._read = client.context.deadlines.slot(self._acknowledge_what_was_read)
        self._acknowledged: tuple[tuple[int, int], int] | None = None
        """The last acknowledged message: its position, and its index in the batch."""
        if spec.start_time is not None and self.topic.persistent:
            self._positions.require(spec.start_time, False)

    def _on_output(self, output: Output) -> None:
        if type(output) is Deliverable and self._read.when is None:
            self._read.set(self._services.context.now + ACKNOWLEDGEMENT_INTERVAL)
        self._say(output)

    def _acknowledge_what_was_read(self) -> None:
        self._acknowledge_read()
        if self._queue.available:
            self._read.set(self._services.context.now + ACKNOWLEDGEMENT_INTERVAL)

    def _acknowledge_read(self) -> None:
        last = self._queue.last
        if last is None:
            return
        entry, index = last
        if (entry.position, index) != self._acknowledged:
            self._acknowledged = entry.position, index
            self.acknowledge_cumulative(Message.of(b"", entry, index))

    def on_moved(self) -> None:
        super().on_moved()
        self._acknowledged = None
        self._read.clear()

    def close(self, once_answered: bool = False) -> None:
        if not self._ack_commands.closed:
            self._acknowledge_read()
        super().close(once_answered)

    def _stop(self, error: PulsarError) -> None:
        self._read.clear()
        super()._stop(error)


def machine_for(spec: ConsumerSpec) -> Callable[..., Consumer]:
    """Return the class of the machine for a consumer of one topic."""
    return Reader if isinstance(spec, ReadingSpec) else Consumer
