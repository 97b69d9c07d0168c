"""`CopyProducers`: the producers of the copies in one topic, one for each definition of the originals.

A producer registers one definition, and its entries are stamped with one version. So a copy keeps the
definition that its original was written with, and readers of the letter topic can decode it.
"""

from collections import OrderedDict
from collections.abc import Callable

from ...model.config import OutgoingMessage, ProducerSpec
from ...model.schema import SchemaInfo
from ...schemas import RegisteredSchema
from ..connecting.services import Services
from .copy_producer import CopyProducer, Settled

MAX_IDLE = 10
"""Producers beyond which one without copies under way is closed: few definitions are in use at a time."""


class CopyProducers:
    """`spec` is called with the schema of each producer that is opened; None for copies of bytes."""

    __slots__ = ("_producers", "_services", "_spec")

    def __init__(self, services: Services, spec: Callable[[RegisteredSchema | None], ProducerSpec]) -> None:
        self._services = services
        self._spec = spec
        self._producers: OrderedDict[SchemaInfo | None, CopyProducer] = OrderedDict()
        """The producers, those used last at the end."""

    def post(
        self,
        definition: SchemaInfo | None,
        write: Callable[[], OutgoingMessage],
        publish_time: int,
        settled: Settled,
    ) -> None:
        """Send a copy of a message of that definition: see `CopyProducer.post`."""
        producer = self._producers.get(definition)
        if producer is None:
            schema = None if definition is None else RegisteredSchema(definition)
            producer = CopyProducer(self._services, lambda: self._spec(schema))
            self._close_idle()
            self._producers[definition] = producer
        self._producers.move_to_end(definition)
        producer.post(write, publish_time, settled)

    def close(self) -> None:
        """Close the producers; the outcome of copies under way is not reported."""
        producers, self._producers = self._producers, OrderedDict()
        for producer in producers.values():
            producer.close()

    def _close_idle(self) -> None:
        """Make room for one more producer. One with copies under way stays: the receiver queue bounds
        those."""
        for definition, producer in list(self._producers.items()):
            if len(self._producers) < MAX_IDLE:
                return
            if producer.is_idle:
                del self._producers[definition]
                producer.close()
