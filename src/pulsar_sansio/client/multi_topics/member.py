"""`Member`: the consumer of one plain topic, or of one partition, within a consumer of several topics.

`Member` takes the outputs of that `Consumer` in place of the application. It passes on to the group what
concerns the whole. It records whether the consumer was ever subscribed, is now, and has reached the end of
its topic.
"""

from typing import TYPE_CHECKING, Protocol

from ...model.config import ConsumerSpec
from ...model.errors import PulsarError
from ...model.message import Source, ValueDecoder
from ...model.topic_name import TopicName
from ..connecting.services import Services
from ..consuming.consumer import Consumer
from ..consuming.reader import machine_for
from ..counters import ArrivalCounters
from ..outputs import (
    ActiveChanged,
    Attached,
    Closed,
    ConsumerFailed,
    ConsumerReady,
    Deliverable,
    Detached,
    EndOfTopic,
    Output,
    RequestDone,
    RequestFailed,
)

if TYPE_CHECKING:
    from .topic import MemberTopic


class Group(Protocol):
    """The consumer of several topics, as its members see it."""

    handle: int
    counters: ArrivalCounters

    def on_member_deliverable(self, member: "Member") -> None: ...
    def on_member_ready(self, member: "Member") -> None: ...
    def on_member_detached(self, member: "Member", cause: PulsarError) -> None: ...
    def on_member_attached(self, member: "Member") -> None: ...
    def on_member_end_of_topic(self, member: "Member") -> None: ...
    def on_member_answered(self, member: "Member", outcome: RequestDone | RequestFailed) -> None: ...
    def on_member_ended(self, member: "Member", error: PulsarError | None) -> None: ...


class MemberSource(Source):
    """The topic that a member's messages come from, and the group that received them.

    A `MemberSource` is equal to any `Source` of its topic.
    """

    group: Group
    member: "Member"

    def decoding(self, decoder: ValueDecoder) -> "MemberSource":
        source = MemberSource(*self)
        source.group, source.member, source.decoder = self.group, self.member, decoder
        return source


class Member:
    """The `ConsumerListener` of one consumer in a group. `topic`: the consumer's topic, or the partitioned
    topic of which it is a partition."""

    __slots__ = (
        "_context",
        "_group",
        "closing",
        "consumer",
        "create_topic",
        "detached",
        "end_of_topic",
        "name",
        "ready",
        "source",
        "topic",
    )

    def __init__(
        self,
        services: Services,
        group: Group,
        topic: "MemberTopic",
        spec: ConsumerSpec,
        wire_id: int | None,
        *,
        create_topic: bool,
    ) -> None:
        """`spec`: of this one consumer. `wire_id`: an id that no broker has seen yet; None for a new one."""
        self._context = services.context
        self._group = group
        self.topic = topic
        self.create_topic = create_topic
        if wire_id is None:
            wire_id = services.next_consumer_id()
        assert isinstance(spec.topic, str)
        name = TopicName.parse(spec.topic)
        self.name = str(name)
        self.source = MemberSource(self.name, name.partition)
        self.source.group, self.source.member = group, self
        self.consumer: Consumer = machine_for(spec)(
            services,
            group.handle,
            wire_id,
            spec,
            self,
        )
        self.ready = False
        """The consumer was subscribed once."""
        self.detached: PulsarError | None = None
        """The reason why the consumer lost its subscription; None while it is subscribed."""
        self.end_of_topic = False
        self.closing = False
        """The group closes this member, and goes on without it."""

    @property
    def counters(self) -> ArrivalCounters:
        """See `ConsumerListener`: the counters of the whole group."""
        return self._group.counters

    def close(self) -> None:
        """Close the consumer; the other members go on."""
        self.closing = True
        self.consumer.close()

    def on_output(self, output: Output) -> None:
        """See `ConsumerListener`."""
        group = self._group
        match output:
            case Deliverable():
                group.on_member_deliverable(self)
            case RequestDone() | RequestFailed():
                group.on_member_answered(self, output)
            case ConsumerReady():
                self.ready = True
                group.on_member_ready(self)
            case Detached(_, cause):
                self.detached = cause
                self.end_of_topic = False  # the broker reports the end again after a reconnect
                group.on_member_detached(self, cause)
            case Attached():
                self.detached = None
                group.on_member_attached(self)
            case EndOfTopic():
                self.end_of_topic = True
                group.on_member_end_of_topic(self)
            case ActiveChanged(handle, active):
                self._context.emit(ActiveChanged(handle, active, self.name))
            case ConsumerFailed(_, error) | Closed(_, error):
                group.on_member_ended(self, error)
            case _:  # the application takes the others as they are
                self._context.emit(output)

    def ended(self, handle: int, error: PulsarError | None) -> None:
        """See `ConsumerListener`. An output has told the group already."""

    def __repr__(self) -> str:
        return f"<Member {self.name}>"
