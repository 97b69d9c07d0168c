"""`Member`: one consumer of a consumer of several topics: of a plain topic, or of one partition.

It listens to that `Consumer` in place of the application, passes on what concerns the whole to the group,
and remembers what the group asks about it: was it ever subscribed, is it now, has its topic ended.
"""

from typing import TYPE_CHECKING, Protocol

from ...model.config import ConsumerSpec
from ...model.errors import PulsarError
from ...model.message import Source
from ...model.topic_name import TopicName
from ..connecting.services import ClientContext, Services
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
    """Where the messages of a member come from, and to whom. Equal to any `Source` of the same topic."""

    group: Group


class Member:
    """The `Listener` of one consumer in a group. `topic`: what it was subscribed for, of which it may be a
    partition."""

    __slots__ = (
        "_context",
        "_group",
        "consumer",
        "detached",
        "end_of_topic",
        "leaving",
        "name",
        "ready",
        "source",
        "topic",
    )

    def __init__(
        self,
        context: ClientContext,
        services: Services,
        group: Group,
        topic: "MemberTopic",
        spec: ConsumerSpec,
        wire_id: int | None,
        *,
        create_topic: bool,
    ) -> None:
        """`spec` is that of this one consumer; `wire_id`: one that nobody has heard of yet."""
        self._context = context
        self._group = group
        self.topic = topic
        if wire_id is None:
            wire_id = services.next_consumer_id()
        assert isinstance(spec.topic, str)
        name = TopicName.parse(spec.topic)
        self.name = str(name)
        self.source = MemberSource(self.name, name.partition)
        self.source.group = group
        self.consumer: Consumer = machine_for(spec)(
            context,
            services,
            group.handle,
            wire_id,
            spec,
            self,
            counters=group.counters,
            create_topic=create_topic,
            source=self.source,
        )
        self.ready = False
        """It was subscribed once."""
        self.detached: PulsarError | None = None
        """Why it is not subscribed any more, while it is not."""
        self.end_of_topic = False
        self.leaving = False
        """The group closes it, and goes on without."""

    def leave(self) -> None:
        """Close it; the others go on."""
        self.leaving = True
        self.consumer.close()

    def hear(self, output: Output) -> None:
        """See `Listener`."""
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
                self.end_of_topic = False  # where it still is, the broker says so again
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
            case _:  # what needs no translation
                self._context.emit(output)

    def ended(self, handle: int, error: PulsarError | None) -> None:
        """See `Listener`: all that matters was said."""

    def __repr__(self) -> str:
        return f"<Member {self.name}>"
