"""`MultiTopicsConsumer`: one consumer over several topics, over the partitions of one, or both (rules MULTI-01 to
MULTI-35).

It holds a `Consumer` for each plain topic and each partition, and is to the application what one of them is
alone: one handle, one queue, one beginning and one end. Everything about one topic is that consumer's. Here
is when the whole is open, and what the failure of one means. How topics become partitions, now and as time
goes on, is in `topics_partitions`, how those of a pattern join and leave in `topics_changes`, and how a
request to all becomes one answer in `topics_commands`.

    opening ──► ready ◄─► unsubscribing ──► closing ──► over
       │          └───────────┬───────────────────────────▲
       └──────► failing ──────┴───────────────────────────┘

Opening asks how many partitions each topic has, and opens all at once. When one cannot be opened the others
are closed, each when the broker has answered for it or the operation timeout is over, and then the whole has
failed: who tries again finds the places free. Once it is ready, a topic that ends for good (deleted, and not
to be made again) leaves alone: `TopicLeft` says so. When the last has left, the whole is closed with its
error.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum, auto

from ...core.transitions import Transitions
from ...model.config import ConsumerSpec, TopicsPattern, nanoseconds_of
from ...model.config.topics import names_of
from ...model.errors import (
    ClosedError,
    ConnectionLost,
    InvalidConfiguration,
    PulsarError,
    TopicNotFound,
)
from ...model.message import Message
from ...model.processing import AckHandler
from ...model.topic_name import TopicName
from ..connecting.services import ClientContext, Services
from ..consuming.consumer import NAME_LENGTH, called
from ..counters import ArrivalCounters
from ..delivery.batch_receive import BatchReceive, MergedBatchReceive
from ..delivery.merged_queue import MergedQueue
from ..delivery.received_entries import Messages
from ..outputs import (
    Attached,
    Closed,
    ConsumerFailed,
    ConsumerReady,
    Deliverable,
    Detached,
    EndOfTopic,
    RequestDone,
    RequestFailed,
    TopicJoined,
    TopicLeft,
)
from ..statistics import ConsumerStatistics
from .ack_commands import MultiTopicsAckCommands
from .commands import MultiTopicsCommands
from .gathered_requests import GatheredRequests, nothing
from .member import Member
from .partition_growth import Known, not_for_several
from .pattern import PatternTopics
from .pattern_changes import PatternChanges
from .topic import MemberTopic


@dataclass(slots=True)
class Opening:
    pass


@dataclass(slots=True)
class Ready:
    pass


@dataclass(slots=True)
class Failing:
    """One topic could not be opened; the others are being closed."""

    error: PulsarError


@dataclass(slots=True)
class Unsubscribing:
    """All have been asked to; none has refused yet. `unopened`: topics that could not be opened, or grow,
    since then."""

    request: int
    unopened: dict[MemberTopic, None] = field(default_factory=dict)


@dataclass(slots=True)
class Closing:
    """The user's close; `was_ready` before it."""

    was_ready: bool


@dataclass(slots=True)
class Over:
    pass


State = Opening | Ready | Failing | Unsubscribing | Closing | Over


class Input(Enum):
    """What can happen to a consumer of several topics."""

    ALL_READY = auto()
    MEMBER_FAILED = auto()
    UNSUBSCRIBE = auto()
    REFUSED = auto()
    CLOSE = auto()
    ALL_GONE = auto()


TRANSITIONS = Transitions(
    "consumer of several topics",
    {
        (Opening, Input.ALL_READY): Ready,
        (Opening, Input.MEMBER_FAILED): Failing,
        (Opening, Input.CLOSE): Closing,
        (Ready, Input.UNSUBSCRIBE): Unsubscribing,
        (Ready, Input.CLOSE): Closing,
        (Ready, Input.ALL_GONE): Over,
        (Unsubscribing, Input.REFUSED): Ready,
        (Unsubscribing, Input.CLOSE): Closing,
        (Unsubscribing, Input.ALL_GONE): Over,
        (Failing, Input.ALL_GONE): Over,
        (Closing, Input.ALL_GONE): Over,
    },
)


class MultiTopicsConsumer(MultiTopicsCommands, PatternChanges):
    """Methods are called by the root with `context.now` set. `known`: where there is one topic, and its
    partitions are known."""

    def __init__(
        self,
        context: ClientContext,
        services: Services,
        handle: int,
        spec: ConsumerSpec,
        known: Known | None = None,
    ) -> None:
        self.handle = handle
        self.spec = spec
        self.state: State = Opening()
        self.counters = ArrivalCounters()
        """Of all topics together."""
        policy = spec.batch_receive
        self._collecting = None if policy is None else BatchReceive(context, policy, context.emit)
        self.queue = MergedQueue() if self._collecting is None else MergedBatchReceive(self._collecting)
        self._context = context
        self._services = services
        self._known = known
        name = spec.consumer_name or (known.name if known else context.rng.letters(NAME_LENGTH))
        self._member_spec = replace(spec, topic=_PLACEHOLDER, consumer_name=name)
        self._topics: dict[TopicName, MemberTopic] = {}
        self._members: dict[str, Member] = {}
        """Those that are subscribed, or will be again, by the names of their topics."""
        self._alive: dict[Member, None] = {}
        """All that have not ended."""
        self._detached = 0
        self._judge: AckHandler | None = None
        self._former = ConsumerStatistics()
        """Of those that have ended."""
        self._requests = GatheredRequests()
        self._unwanted: int | None = None
        """The unsubscription whose outcome nobody wants to know."""
        self.topics = names_of(spec.topic)
        """What was asked for by name."""
        self._pattern: PatternTopics | None = None
        if isinstance(spec.topic, TopicsPattern):
            self._pattern = PatternTopics(
                context, services, handle, spec.topic, self._topics_are, self._topics_not_known
            )
        interval = spec.partitions_update_interval
        self._interval = 0 if interval is None else nanoseconds_of(interval)
        self._update = context.deadlines.slot(self._ask_for_partitions)
        self.verdicts = MultiTopicsAckCommands(
            self._members, self.check_open, self._is_one, self.topics[0] if known else None
        )
        self.receive: Callable[[], Message | None] = self.queue.receive
        self.take: Callable[[int], Messages] = self.queue.take
        self.acknowledge = self.verdicts.acknowledge
        self.acknowledge_cumulative = self.verdicts.acknowledge_cumulative
        self.negative_acknowledge = self.verdicts.negative_acknowledge

    def start(self) -> None:
        """Begin; once."""
        if self._interval:
            self._update.set(self._context.now + self._interval)
        if self._pattern is not None:
            self._pattern.start()
        known, self._known = self._known, None
        for name in self.topics:
            topic = self._topics[name] = MemberTopic(name)
            if known is None:
                self._find_partitions(topic)
            elif (wrong := not_for_several(self.spec)) is not None:
                text = f"{wrong}, because {name} has {known.partitions} partitions"
                self._move(Input.MEMBER_FAILED, Failing(InvalidConfiguration(text)))
                self._close_all()
            else:
                self._open_partitions(topic, known.partitions, known.wire_id, known.give_up_at)

    # --- what the application asks for: see also `MultiTopicsCommands` ---

    def unsubscribe(self, request: int, force: bool) -> None:
        """See `Consumer`; in all topics at once (MULTI-29). Where some refuse, those go on, and it may be
        asked for again."""
        self.check_open()
        if not isinstance(self.state, Ready) or self._detached:
            why = "unsubscribe needs all topics to be connected, and some are not at the moment"
            self._context.emit(RequestFailed(request, ConnectionLost(why)))
            return
        self._move(Input.UNSUBSCRIBE, Unsubscribing(request))
        for topic in self._topics.values():
            topic.stop_asking()  # whoever joined now would stay behind
        members = list(self._members.values())

        def ask() -> None:
            for member in members:
                member.consumer.unsubscribe(request, force)

        self._requests.ask(request, [member.name for member in members], ask, nothing, self._unsubscribed)

    def _unsubscribed(self, outcome: RequestDone | RequestFailed) -> None:
        """All have answered."""
        if isinstance(self.state, Unsubscribing):
            if isinstance(outcome, RequestDone) and self._alive:
                # One that its broker has sent away meanwhile is still being closed; who waits is told first.
                self._move(Input.CLOSE, Closing(True))
                self._close_all()
            elif isinstance(outcome, RequestDone):
                self._stop()
                self._over(None)
            else:
                unopened = self.state.unopened
                self._move(Input.REFUSED, Ready())
                for topic in unopened:
                    self._not_opened(topic)
                self._end_if_all_have()
                if self._pattern is not None:
                    self._pattern.look_again()  # what came and went meanwhile was not heard
        if outcome.request != self._unwanted:
            self._context.emit(outcome)

    def forget_request(self, request: int) -> None:
        """Nobody wants the outcome any more; it happens all the same."""
        if isinstance(self.state, Unsubscribing) and self.state.request == request:
            self._unwanted = request
            return
        if self._collecting is not None:
            self._collecting.forget(request)
        self._requests.forget(request)
        for member in self._alive:
            member.consumer.forget_request(request)

    def close(self) -> None:
        """See `Consumer.close`; all topics at once (MULTI-31). Where it is failing nobody waits any more for
        what the broker was asked for."""
        if isinstance(self.state, Failing):
            for member in list(self._alive):
                member.consumer.attachment.close()
        elif isinstance(self.state, Opening | Ready | Unsubscribing):
            self._move(Input.CLOSE, Closing(not isinstance(self.state, Opening)))
            self._close_all()

    @property
    def is_closing(self) -> bool:
        """See `Consumer`."""
        return not isinstance(self.state, Opening | Ready | Unsubscribing)

    def check_open(self) -> None:
        """Raise `ClosedError` once it is closing."""
        if self.is_closing:
            error = ClosedError(f"the {called(self.spec, self._describe())} is closed")
            if isinstance(self.state, Failing):
                error.__cause__ = self.state.error
            raise error

    def _describe(self) -> str:
        if isinstance(self.spec.topic, TopicsPattern):
            return str(self.spec.topic)
        names = list(map(str, self.topics[:3]))
        more = len(self.topics) - len(names)
        return ", ".join(names) + (f" and {more} more" if more else "")

    def _is_one(self, name: TopicName) -> bool:
        if self._pattern is not None:
            return self._pattern.is_one(name)
        return any(
            topic.has(name) for topic in (self._topics.get(name), self._topics.get(name.base)) if topic
        )

    # --- opening ---

    @property
    def _opening(self) -> bool:
        return isinstance(self.state, Opening)

    @property
    def _ready(self) -> bool:
        return isinstance(self.state, Ready)

    def _topics_not_known(self, error: PulsarError) -> None:
        self._move(Input.MEMBER_FAILED, Failing(error))
        self._close_all()

    def _new_member(
        self, topic: MemberTopic, name: TopicName, spec: ConsumerSpec, wire_id: int | None
    ) -> Member:
        member = Member(
            self._context,
            self._services,
            self,
            topic,
            replace(spec, topic=str(name)),
            wire_id,
            create_topic=self._pattern is None,
        )
        if self._judge is not None:
            member.consumer.set_ack_handler(self._judge)
        self._alive[member] = None
        self._members[member.name] = member
        topic.members[member] = None
        return member

    def on_member_ready(self, member: Member) -> None:
        topic = member.topic
        topic.missing.discard(member)
        if topic.missing:
            return
        if topic.partitions is None:
            topic.partitions = 0
        joined = topic.growth if topic.opened else list(topic.members)
        topic.opened = True
        topic.growth = []
        if self._collecting is not None:
            for each in joined:
                each.consumer.count_for(self._collecting)
        if isinstance(self.state, Opening):
            self._ready_if_all_are()
            return
        if isinstance(self.state, Ready | Unsubscribing):
            for each in joined:
                self._context.emit(TopicJoined(self.handle, each.name))
        for each in joined:
            if each.consumer.queue.available:
                self.on_member_deliverable(each)

    def _ready_if_all_are(self) -> None:
        """The application hears of messages only now."""
        if not all(topic.opened for topic in self._topics.values()):
            return
        self._move(Input.ALL_READY, Ready())
        self._context.emit(ConsumerReady(self.handle, self._describe()))
        if self._detached:
            cause = next(each.detached for each in self._alive if each.detached is not None)
            self._context.emit(Detached(self.handle, cause))
        if self.queue.available:
            self.queue.announced = True
            self._context.emit(Deliverable(self.handle))
        self._end_if_all_have()
        if self._pattern is not None:
            self._pattern.watch()

    # --- while it is open ---

    def on_member_deliverable(self, member: Member) -> None:
        """Where it joins with others, its messages wait until all of them have: if one fails, all leave,
        and begin anew another time."""
        if not self._opening and member.topic.is_joining(member):
            return
        was_empty = self.queue.add(member.consumer.queue)
        if was_empty and isinstance(self.state, Ready | Unsubscribing):
            self.queue.announced = True
            self._context.emit(Deliverable(self.handle))

    def on_member_answered(self, member: Member, outcome: RequestDone | RequestFailed) -> None:
        self._requests.answered(member.name, outcome)

    def on_member_detached(self, member: Member, cause: PulsarError) -> None:
        """The whole is attached when all are."""
        if self._collecting is not None:
            self._collecting.over = False
        self._detached += 1
        if self._detached == 1 and isinstance(self.state, Ready):
            self._context.emit(Detached(self.handle, cause))

    def on_member_attached(self, member: Member) -> None:
        self._detached -= 1
        if not self._detached and isinstance(self.state, Ready):
            self._context.emit(Attached(self.handle))

    def on_member_end_of_topic(self, member: Member) -> None:
        """The end of all is the end (CONS-42)."""
        self._end_if_all_have()

    def _end_if_all_have(self) -> None:
        """Told only while it is ready: when it ends, those that are left are not all."""
        if not isinstance(self.state, Ready) or self._pattern is not None:
            return
        members = self._members.values()
        if members and all(each.end_of_topic for each in members):
            self._context.emit(EndOfTopic(self.handle))
            if self._collecting is not None:
                self._collecting.end_of_topic()

    def _ask_for_partitions(self) -> None:
        """Again and again until it closes (rules MULTI-06, PART-07 to PART-09)."""
        self._update.set(self._context.now + self._interval)
        if isinstance(self.state, Ready):
            self._look_for_growth()

    # --- ends ---

    def on_member_ended(self, member: Member, error: PulsarError | None) -> None:
        """One is gone for good: what that means depends on where the whole is."""
        topic = member.topic
        self._forget(member)
        match self.state:
            case Opening() | Ready() if member.leaving:
                pass
            case Opening() if self._pattern is not None and isinstance(error, TopicNotFound):
                self._leave(topic)  # it was gone before it could be subscribed
                self._ready_if_all_are()
            case Opening():
                assert error is not None
                self._move(Input.MEMBER_FAILED, Failing(error))
                self._close_all()
            case Ready() if topic.is_joining(member):
                self._not_opened(topic)
            case Ready():
                self._lost(member, error)
            case Unsubscribing(_, unopened):  # its answer follows
                if topic.is_joining(member):
                    unopened[topic] = None
            case _:
                self._finish_if_empty()

    def _not_opened(self, topic: MemberTopic) -> None:
        """One of those that come together has ended."""
        if topic.opened:
            self._growth_failed(topic)
        else:
            self._leave_for_now(topic)

    def _forget(self, member: Member) -> None:
        self._alive.pop(member, None)
        self._former += member.consumer.statistics()
        member.topic.members.pop(member, None)
        self._strike(member)
        if member.detached is not None:
            self._detached -= 1
            some = self._alive or self._pattern is not None
            if not self._detached and some and isinstance(self.state, Ready):
                self._context.emit(Attached(self.handle))

    def _strike(self, member: Member) -> None:
        """It is none of those that are subscribed."""
        if self._members.get(member.name) is member:
            del self._members[member.name]
        self.queue.remove(member.consumer.queue)

    def _lost(self, member: Member, error: PulsarError | None) -> None:
        if self._pattern is not None and not member.topic.members:
            self._topics.pop(member.topic.name, None)
            member.topic.stop_asking()
            self._pattern.look_again()
        if self._alive or self._pattern is not None:
            self._context.emit(TopicLeft(self.handle, member.name, error))
            self._end_if_all_have()  # it may have been the one that all waited for
            return
        self._stop()
        self._over(error)

    def _close_all(self) -> None:
        self._stop()
        failing = isinstance(self.state, Failing)
        for member in list(self._alive):
            member.consumer.close(failing)
        self._finish_if_empty()

    def _stop(self) -> None:
        """No message is handed out any more, and nothing new begins."""
        self.queue.close(f"the {called(self.spec, self._describe())} is closed")
        self._update.clear()
        if self._pattern is not None:
            self._pattern.close()
        for topic in self._topics.values():
            topic.stop_asking()

    def _finish_if_empty(self) -> None:
        if not self._alive and not isinstance(self.state, Over):
            self._over(None)

    def _over(self, error: PulsarError | None) -> None:
        """The one end of the whole."""
        state = self.state
        self._move(Input.ALL_GONE, Over())
        if self._collecting is not None:
            self._collecting.end(
                error or ClosedError(f"the {called(self.spec, self._describe())} was closed")
            )
        match state:
            case Failing(failure):
                error = failure
                self._context.emit(ConsumerFailed(self.handle, failure))
            case Closing(was_ready=False):
                closed = ClosedError(f"the {called(self.spec, self._describe())} was closed")
                self._context.emit(ConsumerFailed(self.handle, closed))
            case _:
                self._context.emit(Closed(self.handle, error))
        self._services.ended(self.handle, error)

    def _move(self, event: Input, following: State) -> None:
        TRANSITIONS.check(self.state, event, following)
        self.state = following


_PLACEHOLDER = "persistent://public/default/member"
"""A topic's name for a spec that is not any topic's yet."""
