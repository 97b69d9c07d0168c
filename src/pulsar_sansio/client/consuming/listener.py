"""`ConsumerListener`: the receiver of a consumer's outputs.

It is the application, for a consumer by itself, or the member that a consumer is in a consumer of several
topics.
"""

from typing import Protocol

from ...model.errors import PulsarError
from ...model.message import Source
from ...model.topic_name import TopicName
from ..connecting.services import Services
from ..counters import ArrivalCounters
from ..outputs import Output


class ConsumerListener(Protocol):
    """Receives a consumer's outputs, and says what the consumer shares with others."""

    @property
    def source(self) -> Source:
        """The source of the consumer's messages."""
        ...

    @property
    def counters(self) -> ArrivalCounters:
        """Counters that other consumers may share."""
        ...

    @property
    def create_topic(self) -> bool:
        """True when subscribing may create a missing topic (BROKER-07)."""
        ...

    def on_output(self, output: Output) -> None: ...

    def ended(self, handle: int, error: PulsarError | None) -> None:
        """The consumer has ended for good; `on_output` has received its last output."""
        ...


class ApplicationListener:
    """The application of a consumer by itself, as its `ConsumerListener`."""

    __slots__ = ("counters", "ended", "on_output", "source")

    create_topic = True

    def __init__(self, services: Services, topic: TopicName) -> None:
        self.source = Source(str(topic), topic.partition)
        self.counters = ArrivalCounters()
        self.on_output = services.context.emit
        self.ended = services.ended
