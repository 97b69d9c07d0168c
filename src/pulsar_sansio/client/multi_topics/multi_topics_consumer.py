"""`MultiTopicsConsumer`: one consumer over several topics, over the partitions of one, or both.

The application sees one consumer: one handle, one queue, one beginning and one end. Everything about one
topic or partition belongs to its own `Consumer`, which `Members` opens. This module decides when the whole is
open, and what the failure of one member means. `JointLife` keeps the state of the whole. `PartitionGrowth`
turns topics into partitions, now and later. `PatternChanges` lets topics of a pattern join and leave.
`MultiTopicsCommands` makes one answer of many.

Opening asks for the partitions of each topic, and opens all at once. When one cannot be opened, the others
are closed. Each closes once the broker has answered for it, or the operation timeout expires. Then the whole
has failed, and an application that tries again finds no leftover consumers. Once the whole is ready, a topic
that ends for good (deleted, and not to be created again) leaves alone, which `TopicLeft` reports. When the
last topic has ended, the whole is closed with its error.
"""

from collections.abc import Callable
from dataclasses import replace

from ...model.config import ConsumerSpec, TopicsPattern, nanoseconds_of
from ...model.config.topics import names_of
from ...model.errors import (
    ClosedError,
    ConnectionLost,
    InvalidConfiguration,
    LocalProtocolError,
    PulsarError,
    TopicNotFound,
)
from ...model.message import Message
from ...model.topic_name import TopicName
from ..connecting.services import Services
from ..consuming.consumer import NAME_LENGTH
from ..counters import ArrivalCounters
from ..delivery.batch_receive import BatchReceive, MergedBatchReceive
from ..delivery.explaining import called, subscription
from ..delivery.merged_queue import MergedQueue
from ..delivery.received_entries import Messages
from ..joint import joint_states as states
from ..joint.gathered_requests import GatheredRequests
from ..joint.joint_life import JointLife
from ..outputs import (
    ConsumerFailed,
    ConsumerReady,
    Deliverable,
    EndOfTopic,
    RequestDone,
    RequestFailed,
    TopicJoined,
    TopicLeft,
)
from .ack_commands import MultiTopicsAckCommands
from .commands import MultiTopicsCommands
from .member import Member
from .members import Members
from .partition_growth import Known, PartitionGrowth, not_for_several
from .pattern_changes import PatternChanges
from .topic import MemberTopic


class MultiTopicsConsumer:
    """The root calls the methods with `context.now` set. `known`: given for one topic whose partitions are
    known already.

    Methods that other objects carry out are bound as attributes: see `MultiTopicsAckCommands`,
    `MultiTopicsCommands`, `Members` and `MergedQueue`.
    """

    def __init__(
        self,
        services: Services,
        handle: int,
        spec: ConsumerSpec,
        known: Known | None = None,
    ) -> None:
        context = services.context
        self.handle = handle
        self.spec = spec
        self._life = JointLife(context, handle, ConsumerFailed, services.ended)
        self.counters = ArrivalCounters()
        """The counters of all topics together."""
        policy = spec.batch_receive
        self._batch_receive = None if policy is None else BatchReceive(context, policy, context.emit)
        self.queue = MergedQueue() if self._batch_receive is None else MergedBatchReceive(self._batch_receive)
        self._context = context
        self._services = services
        self._known = known
        self._requests = GatheredRequests()
        self._discarded: int | None = None
        """The unsubscription whose outcome the application does not want."""
        self._unopened: dict[MemberTopic, None] = {}
        """Topics that could not be opened, or grow, while all members unsubscribe."""
        self._names = names_of(spec.topic)
        """The topics that the application asked for by name."""
        name = spec.consumer_name or (known.name if known else context.rng.letters(NAME_LENGTH))
        pattern = spec.topic if isinstance(spec.topic, TopicsPattern) else None
        self._members = members = Members(
            services,
            self,
            replace(spec, topic=_PLACEHOLDER, consumer_name=name),
            self.queue,
            self._requests,
            None if pattern is None else services.config.max_partitions,
        )
        interval = spec.partitions_update_interval
        self._growth = PartitionGrowth(
            services,
            members,
            0 if interval is None else nanoseconds_of(interval),
            lambda: self.is_ready,
        )
        self._topics = self._growth.topics
        self._pattern = (
            None if pattern is None else PatternChanges(services, self, pattern, members, self._growth)
        )
        self._bind(self._names[0] if known else None)

    def _bind(self, only_topic: TopicName | None) -> None:
        """Bind the commands that other objects carry out. `only_topic`: see `MultiTopicsAckCommands`."""
        members = self._members
        acks = MultiTopicsAckCommands(members.by_topic, self.check_open, self._is_one, only_topic)
        commands = MultiTopicsCommands(
            self._services, members, self._requests, acks, self._batch_receive, self.check_open
        )
        self.receive: Callable[[], Message | None] = self.queue.receive
        self.take: Callable[..., Messages] = self.queue.take
        self.acknowledge = acks.acknowledge
        self.acknowledge_cumulative = acks.acknowledge_cumulative
        self.acknowledge_in = acks.acknowledge_in
        self.acknowledge_cumulative_in = acks.acknowledge_cumulative_in
        self.negative_acknowledge = acks.negative_acknowledge
        self.flush_acknowledgements = commands.flush_acknowledgements
        self.reconsume_later = commands.reconsume_later
        self.prepare_seek = commands.prepare_seek
        self.check_last_message = commands.check_last_message
        self.last_message_id = commands.last_message_id
        self.last_position = commands.last_position
        self.has_message_available = commands.has_message_available
        self.explain = members.explain
        self.statistics = members.statistics
        self.checkpoint = members.checkpoint
        self.set_processing = members.set_processing

    def start(self) -> None:
        """Begin to open the topics; the owner calls `start` once."""
        self._growth.start()
        if self._pattern is not None:
            self._pattern.topics.start()
        known, self._known = self._known, None
        for name in self._names:
            if known is None:
                self._growth.open(name)
                continue
            topic = self._topics[name] = MemberTopic(name)
            if (wrong := not_for_several(self.spec)) is not None:
                text = f"{wrong}, because {name} has {known.partitions} partitions"
                self.fail_opening(InvalidConfiguration(text))
            else:
                self._growth.open_partitions(topic, known.partitions, known.wire_id, known.give_up_at)

    # --- commands of the application ---

    @property
    def described(self) -> str:
        """The consumer in words, for texts."""
        return self._called + subscription(self._members.spec)

    @property
    def subscribed(self) -> list[str]:
        """The topics and partitions that are subscribed, or will be again after a reconnect."""
        return self._members.subscribed

    def available(self) -> int:
        """Return the number of messages that `take` would give now."""
        return self.queue.available

    def check_batch_receive(self) -> None:
        """See `Consumer`."""
        self.check_open()
        if self._batch_receive is None:
            raise LocalProtocolError(f"the consumer on {self._topics_in_words()} has no batch_receive policy")

    def batch_receive(self, request: int) -> None:
        """See `Consumer`. Messages of all topics count together."""
        assert self._batch_receive is not None
        self._batch_receive.ask(request)

    def pause(self) -> None:
        """See `Consumer`."""
        self.check_open()
        self._members.pause()

    def resume(self) -> None:
        """See `Consumer`."""
        self.check_open()
        self._members.resume()

    def redeliver_unacknowledged(self) -> None:
        """See `Consumer`."""
        self.check_open()
        self._members.redeliver_unacknowledged()

    def unsubscribe(self, request: int, force: bool) -> None:
        """Unsubscribe from all topics at once (MULTI-29). When some brokers refuse, those topics go on, and
        the application may ask again."""
        self.check_open()
        if not self._life.is_ready or self._life.attachment.detached:
            why = "unsubscribe needs all topics to be connected, and some are not at the moment"
            self._context.emit(RequestFailed(request, ConnectionLost(why)))
            return
        self._life.unsubscribe(request)
        self._growth.cancel_queries()  # a partition that joined now would stay subscribed
        members = list(self._members.by_topic.values())

        def ask() -> None:
            for member in members:
                member.consumer.unsubscribe(request, force)

        self._requests.ask(request, [member.name for member in members], ask, self._unsubscribed)

    def _unsubscribed(self, outcome: RequestDone | RequestFailed) -> None:
        """All members have answered."""
        if self._life.is_unsubscribing(outcome.request):
            if isinstance(outcome, RequestDone) and self._members.alive:
                # A member that its broker has closed meanwhile may still be closing. The application is told
                # first that the request is done.
                self._life.close()
                self._close_all()
            elif isinstance(outcome, RequestDone):
                self._stop()
                self._over(None)
            else:
                unopened, self._unopened = self._unopened, {}
                self._life.refused()
                for topic in unopened:
                    self._not_opened(topic)
                self._end_if_all_have()
                if self._pattern is not None:
                    self._pattern.topics.look_again()  # changes meanwhile were ignored
        if outcome.request != self._discarded:
            self._context.emit(outcome)

    def forget_request(self, request: int) -> None:
        """Discard the outcome of a request; the request is carried out all the same."""
        if self._life.is_unsubscribing(request):
            self._discarded = request
            return
        if self._batch_receive is not None:
            self._batch_receive.forget(request)
        self._requests.discard(request)
        for member in self._members.alive:
            member.consumer.forget_request(request)

    def close(self) -> None:
        """Close all topics at once (MULTI-31). A consumer that is failing stops waiting for the broker's
        answers."""
        if self._life.is_failing:
            for member in list(self._members.alive):
                member.consumer.attachment.close()
        elif self._life.takes_commands:
            self._life.close()
            self._close_all()

    @property
    def is_closing(self) -> bool:
        """See `Consumer`."""
        return not self._life.takes_commands

    def check_open(self) -> None:
        """Raise `ClosedError` once the consumer is closing."""
        self._life.check_open(f"the {self._called} is closed")

    @property
    def _called(self) -> str:
        return called(self.spec, self._topics_in_words())

    def _topics_in_words(self) -> str:
        if isinstance(self.spec.topic, TopicsPattern):
            return str(self.spec.topic)
        names = list(map(str, self._names[:3]))
        more = len(self._names) - len(names)
        return ", ".join(names) + (f" and {more} more" if more else "")

    def _is_one(self, name: TopicName) -> bool:
        """Tell whether a topic is one of this consumer's topics, or was one."""
        if self._pattern is not None:
            return self._pattern.topics.is_one(name)
        return any(
            topic.has(name) for topic in (self._topics.get(name), self._topics.get(name.base)) if topic
        )

    # --- opening ---

    @property
    def is_opening(self) -> bool:
        """True while some topics are not subscribed yet, and none has failed."""
        return self._life.is_opening

    @property
    def is_ready(self) -> bool:
        """True from `ConsumerReady` until the application asks for the end."""
        return self._life.is_ready

    def fail_opening(self, error: PulsarError) -> None:
        """One topic cannot be opened, or the topics of the pattern are not known: close the others."""
        self._life.fail(error)
        self._close_all()

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
        if self._batch_receive is not None:
            for each in joined:
                each.consumer.count_for(self._batch_receive)
        if self._life.is_opening:
            self.finish_opening()
            return
        if self._life.delivers:
            for each in joined:
                self._context.emit(TopicJoined(self.handle, each.name))
        for each in joined:
            if each.consumer.queue.available:
                self.on_member_deliverable(each)

    def finish_opening(self) -> None:
        """Become ready when all topics are opened. The application is told of messages only from now on."""
        if not all(topic.opened for topic in self._topics.values()):
            return
        self._life.became_ready()
        self._context.emit(ConsumerReady(self.handle, self._topics_in_words()))
        self._life.attachment.on_ready(each.detached for each in self._members.alive)
        if self.queue.available:
            self.queue.announced = True
            self._context.emit(Deliverable(self.handle))
        self._end_if_all_have()
        if self._pattern is not None:
            self._pattern.topics.watch()

    # --- while the consumer is open ---

    def on_member_deliverable(self, member: Member) -> None:
        """Offer the member's messages. Messages of a joining member wait until the members that join with it
        are ready, because all of them leave when one fails."""
        if not self.is_opening and member.topic.is_joining(member):
            return
        was_empty = self.queue.add(member.consumer.queue)
        if was_empty and self._life.delivers:
            self.queue.announced = True
            self._context.emit(Deliverable(self.handle))

    def on_member_answered(self, member: Member, outcome: RequestDone | RequestFailed) -> None:
        self._requests.answered(member.name, outcome)

    def on_member_detached(self, member: Member, cause: PulsarError) -> None:
        if self._batch_receive is not None:
            self._batch_receive.over = False
        self._life.attachment.on_detached(cause)

    def on_member_attached(self, member: Member) -> None:
        self._life.attachment.on_attached()

    def on_member_end_of_topic(self, member: Member) -> None:
        self._end_if_all_have()

    def _end_if_all_have(self) -> None:
        """Emit `EndOfTopic` when all topics have ended (CONS-42), and the consumer is ready. When it closes,
        the members that are left are not all of its members. A pattern has no end."""
        if not self._life.is_ready or self._pattern is not None:
            return
        members = self._members.by_topic.values()
        if members and all(each.end_of_topic for each in members):
            self._context.emit(EndOfTopic(self.handle))
            if self._batch_receive is not None:
                self._batch_receive.end_of_topic()

    # --- ends ---

    def on_member_ended(self, member: Member, error: PulsarError | None) -> None:
        """A member has ended for good; the state of the whole decides what that means."""
        topic = member.topic
        self._members.discard(member)
        if member.detached is not None:
            self._life.attachment.on_ended(bool(self._members.alive) or self._pattern is not None)
        match self._life.state:
            case states.Opening() | states.Ready() if member.closing:
                pass
            case states.Opening() if self._pattern is not None and isinstance(error, TopicNotFound):
                self._pattern.close_topic(topic)  # the topic was deleted before it could be subscribed
                self.finish_opening()
            case states.Opening():
                assert error is not None
                self.fail_opening(error)
            case states.Ready() if topic.is_joining(member):
                self._not_opened(topic)
            case states.Ready():
                self._lost(member, error)
            case states.Unsubscribing():  # the member's answer follows
                if topic.is_joining(member):
                    self._unopened[topic] = None
            case _:
                self._finish_if_empty()

    def _not_opened(self, topic: MemberTopic) -> None:
        """One of the members that join together has ended."""
        if topic.opened:
            self._growth.give_up(topic)
        else:
            assert self._pattern is not None, "topics that were asked for by name open with the whole"
            self._pattern.close_for_now(topic)

    def _lost(self, member: Member, error: PulsarError | None) -> None:
        if self._pattern is not None and not member.topic.members:
            self._topics.pop(member.topic.name, None)
            member.topic.cancel_query()
            self._pattern.topics.look_again()
        if self._members.alive or self._pattern is not None:
            self._context.emit(TopicLeft(self.handle, member.name, error))
            self._end_if_all_have()  # the other topics may have ended already
            return
        self._stop()
        self._over(error)

    def _close_all(self) -> None:
        self._stop()
        failing = self._life.is_failing
        for member in list(self._members.alive):
            member.consumer.close(failing)
        self._finish_if_empty()

    def _stop(self) -> None:
        """Deliver no more messages, and begin nothing new."""
        self.queue.close(f"the {self._called} is closed")
        self._growth.stop()
        if self._pattern is not None:
            self._pattern.topics.close()

    def _finish_if_empty(self) -> None:
        if not self._members.alive and not self._life.is_over:
            self._over(None)

    def _over(self, error: PulsarError | None) -> None:
        """The one end of the whole."""
        closed = f"the {self._called} was closed"
        if self._batch_receive is not None:
            self._batch_receive.end(error or ClosedError(closed))
        self._life.over(error, closed)


_PLACEHOLDER = "persistent://public/default/member"
"""A topic's name for a spec that belongs to no topic yet."""
