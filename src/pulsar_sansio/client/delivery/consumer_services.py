"""`ConsumerServices`: what all parts of one consumer of one topic share.

`Consumer` makes the record before it makes its parts. A part keeps what it uses for every message as
attributes of its own.
"""

from collections.abc import Callable
from dataclasses import dataclass

from ...model.config import ConsumerSpec
from ...model.message import Source
from ...model.topic_name import TopicName
from ..connecting.services import ClientContext, Services
from ..counters import ArrivalCounters
from ..outputs import Output
from .explaining import called


@dataclass(frozen=True, slots=True, eq=False)
class ConsumerServices:
    """The consumer's names, its counters, its way out, and the services of the client."""

    client: Services
    handle: int
    wire_id: int
    spec: ConsumerSpec
    topic: TopicName
    name: str
    """The consumer's name, given by the application or generated."""
    source: Source
    """The source of all its messages."""
    counters: ArrivalCounters
    emit: Callable[[Output], None]

    @property
    def context(self) -> ClientContext:
        return self.client.context

    @property
    def described(self) -> str:
        """A description of the consumer or reader, for texts."""
        return called(self.spec, self.source.topic)

    @property
    def position_is_kept(self) -> bool:
        """True when the broker keeps the position, or the topic keeps none."""
        return self.spec.durable or not self.topic.persistent
