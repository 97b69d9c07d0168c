"""Applications that seek in several topics at once and leave no subscription behind.

Owns what these applications do and which answers they may get. They seek to the ends, to times, to a message
of one topic, and to a position per topic; several seeks may be in progress. They ask whether more messages
are available and for the last messages, remove their subscription and begin again. Some are readers, whose
position only the client knows.

After a seek no topic delivers a message from before it, whichever topic was there first (INV-C7), not even
out of the merged queue; every request ends in time (INV-C15).
"""

from typing import TYPE_CHECKING

from pulsar_sansio.client.outputs import (
    ActiveChanged,
    Deliverable,
    EndOfTopic,
    Output,
    RequestDone,
    RequestFailed,
    TopicJoined,
    TopicLeft,
)
from pulsar_sansio.client.positions.seeking import Target
from pulsar_sansio.model.config import (
    ConsumerSpec,
    InitialPosition,
    ReaderSpec,
    SubscriptionType,
    TopicsPattern,
)
from pulsar_sansio.model.errors import ClosedError
from pulsar_sansio.model.message import Message
from pulsar_sansio.model.message_id import EARLIEST, LATEST, MessageId, TopicMessageId

from ...engine.clock import MILLISECOND
from ...engine.failures import ViolationError
from ...engine.profile import MultiTopicsSeekerPlan
from ...model.multi_topics_subscriptions import GroupRecord, asked_for
from ...model.positions.expected_position import START, Base, after
from ...model.positions.multi_topics_position import MultiTopicsSoughtSubscription
from ...model.records.message_position import MessagePosition
from ..key_readers import decrypting
from .seeking_app import MEMORY, Seeker, message_position_of

if TYPE_CHECKING:
    from ...engine.surroundings import Surroundings

LOOK_AGAIN = 200 * MILLISECOND
"""Nanoseconds between two looks at whether all topics are there, for an application that is otherwise
done."""

MOST_SEEKS = 4
"""Seeks of one application: each may redeliver all topics."""


class MultiTopicsSeeker(Seeker[GroupRecord, MultiTopicsSeekerPlan]):
    """One application that seeks in several topics, through as many consumers as it opens."""

    def __init__(self, world: "Surroundings", index: int, plan: MultiTopicsSeekerPlan) -> None:
        super().__init__(world, "tourist", index, plan, MOST_SEEKS)
        self.topics = world.topics.of_groups[len(world.profile.groups) + index]
        self._seen: list[tuple[str, MessageId]] = []
        """Messages received, as targets of seeks."""
        self._seeks: dict[int, dict[str, Base]] = {}
        """Seek requests, each with its base by topic."""
        self._asked: dict[int, dict[str, MessagePosition]] = {}
        """Requests whether more is available, each with the known end by topic."""
        self._last_asked: dict[int, dict[str, MessagePosition]] = {}
        self._leaving: int | None = None
        """The request that removes the subscription."""
        self._to_leave: list[str] = []
        """Topics that the subscription is being removed from."""
        self._unsure: set[str] = set()
        """Topics in which a seek or a removal has failed since the last completed seek."""

    def _subscription_of(self, name: str) -> MultiTopicsSoughtSubscription:
        subscription = self.world.model.topics[name].subscriptions[self.topics.name]
        assert isinstance(subscription, MultiTopicsSoughtSubscription)
        return subscription

    @property
    def _all_topics(self) -> list[str]:
        return self.world.topics_of(self.topics)

    @property
    def done(self) -> bool:
        """True when, after healing, the application is subscribed to all topics, has sought once more and has
        read everything from there."""
        if not self._made_last_seek or self._waiting or self.state != "open" or not self.attached:
            return False
        if self._leaving is not None or self.host.node.client.available(self.handle):
            return False
        if self._subscribed() != sorted(self._all_topics):
            return False
        topics = [self._subscription_of(name) for name in self._all_topics]
        return not any(topic.where.has_more(topic.where.end) for topic in topics)

    def _subscribed(self) -> list[str]:
        """INV-C16: the consumer subscribes only to topics that are meant, and to none twice."""
        found = self.host.node.client.subscribed_topics(self.handle)
        if len(set(found)) < len(found) or not all(self.topics.means(name) for name in found):
            raise ViolationError("INV-C16", f"{self.topics.name} is subscribed to {found}")
        return found

    # --- one consumer ---------------------------------------------------------------------------------------

    def open(self) -> None:
        world, plan = self.world, self.plan
        if not self._may_open():
            return
        self._leaving = None
        self.incarnation += 1
        name = f"tour{self.index}.{self.incarnation}"
        topic = asked_for(plan.group, self.topics)
        if plan.reads:
            assert not isinstance(topic, TopicsPattern)
            self._read(name, topic)
            return
        spec = ConsumerSpec(
            topic=topic,
            subscription=self.topics.name,
            subscription_type=SubscriptionType.EXCLUSIVE,
            consumer_name=name,
            receiver_queue_size=plan.queue,
            initial_position=InitialPosition.EARLIEST,
            partitions_update_interval=plan.group.update_interval,
            max_total_receiver_queue_size=plan.group.total_queue,
            max_pending_chunked_messages=1000,
            incomplete_chunked_message_timeout=world.profile.chunk_patience,
            schema=world.reader_schema(name),
            **decrypting(world, name, several=True),
        )
        self.record = world.model.groups[name] = GroupRecord(name, self.topics, spec)
        self._opened(self.host.node.client.subscribe(world.clock.now, spec))

    def _read(self, name: str, topic: str | tuple[str, ...]) -> None:
        """Open a reader at the beginning of all topics, without a durable subscription."""
        first = self.world.topics.of_groups[len(self.world.profile.groups) + self.index]
        self.topics = first.named(f"{first.name}.{self.incarnation}")
        self.expect_partitions()
        reading = ReaderSpec(
            topic,
            start=EARLIEST,
            name=name,
            subscription=self.topics.name,
            receiver_queue_size=self.plan.queue,
            partitions_update_interval=self.plan.group.update_interval,
            schema=self.world.reader_schema(name),
            **decrypting(self.world, name, several=True),
        )
        spec = reading.reading("unused")
        self.record = self.world.model.groups[name] = GroupRecord(name, self.topics, spec)
        self._opened(self.host.node.client.open_reader(self.world.clock.now, reading))

    def expect_partitions(self) -> None:
        """A reader begins at the beginning of each topic, and of each partition that is added later."""
        if not self.plan.reads:
            return
        for each in self._all_topics:
            record = self.world.model.topics[each]
            if self.topics.name not in record.subscriptions:
                for_seekers = record.subscriptions[self.topics.name] = MultiTopicsSoughtSubscription(
                    record, self.topics.name
                )
                for_seekers.reads = True

    # --- steps ----------------------------------------------------------------------------------------------

    def _take(self) -> list[Message] | None:
        try:
            return super()._take()
        except ClosedError:  # the client has not reported the end yet
            return None

    def _act_at_random(self) -> None:
        if self._leaving is None:
            super()._act_at_random()

    def _end_at_random(self) -> None:
        if self.stream.chance(self.plan.leave_permille):
            self.leave()
        else:
            super()._end_at_random()

    def _rest(self) -> None:
        if not self.world.rash and not self._made_last_seek:
            self.world.clock.after(LOOK_AGAIN, self._step, self._turn)

    def _took(self, messages: list[Message]) -> None:
        record, model = self.record, self.world.model
        assert record is not None
        wall_time = self.world.wall_time()
        self.world.trace.add(self.world.clock.now, self.host.node.name, f"take {self.handle} {len(messages)}")
        for message in messages:
            model.deliver(record.of(message.topic), message, self.world.clock.now, wall_time)
            if len(self._seen) < MEMORY:
                self._seen.append((message.topic, message.message_id))

    def _finish(self) -> None:
        """Seek to the beginning of everything once more, and read on from there."""
        if self._made_last_seek or self._waiting or self._leaving is not None or not self.attached:
            return
        if self._subscribed() == sorted(self._all_topics):
            self._made_last_seek = True
            self._seek_everywhere(EARLIEST)
            self.ask()

    # --- seeking --------------------------------------------------------------------------------------------

    def _seek_somewhere(self) -> None:
        choice = self.stream.below(10)
        if choice < 3:
            self._seek_everywhere(EARLIEST if self.stream.chance(500) else LATEST)
        elif choice < 5 and self.plan.times:
            self._seek_everywhere(self.world.wall_time() - self.stream.below(5000))
        elif choice < 8 and self._seen:
            self._seek_one()
        else:
            self._seek_each()

    def _base(self, name: str, target: Target, inclusive: bool = False) -> Base:
        """Return the base that a target means in a topic."""
        where, now = self._subscription_of(name).where, self.world.clock.now
        if target == EARLIEST:
            return START
        if target == LATEST:
            return Base(where.end, since=now)
        if isinstance(target, MessageId):
            message_position = message_position_of(target)
            return Base(message_position if inclusive else after(message_position))
        return Base(START.message_position, time=target, known=where.end)

    def _seek_everywhere(self, target: Target) -> None:
        """Seek all topics to one target."""
        client = self.host.node.client
        request = client.seek(self.world.clock.now, self.handle, target, target == EARLIEST)
        self._sought(request, {name: self._base(name, target) for name in self._all_topics}, str(target))

    def _seek_one(self) -> None:
        """Seek one topic to a message; the others keep their position."""
        name, message_id = self.stream.choice(self._seen)
        if name not in self._subscribed():
            return
        inclusive = self.stream.chance(500)
        client = self.host.node.client
        target = TopicMessageId(name, message_id)
        request = client.seek(self.world.clock.now, self.handle, target, inclusive)
        self._sought(request, {name: self._base(name, message_id, inclusive)}, str(target))

    def _seek_each(self) -> None:
        """Seek each topic to a target of its own, chosen by a function."""
        targets: dict[str, Target] = {}

        def choose(name: str) -> Target:
            targets[name] = EARLIEST if self.stream.chance(500) else LATEST
            return targets[name]

        request = self.host.node.client.seek(self.world.clock.now, self.handle, choose)
        if not set(self._subscribed()) <= targets.keys():
            raise ViolationError("INV-C16", f"a seek of {self.topics.name} asks for {sorted(targets)} only")
        bases = {name: self._base(name, target) for name, target in targets.items()}
        self._sought(request, bases, "each")

    def _sought(self, request: int, bases: dict[str, Base], text: str) -> None:
        assert self.record is not None
        self._left = max(0, self._left - 1)
        if self._seeks:  # one topic's seek may time out and the next be sent before the whole is answered
            self.world.rules.excuse(self.host.node.name, "SEEK-01")
        self._seeks[request] = bases
        joined = self._subscribed()
        for name, base in bases.items():
            self._subscription_of(name).is_sought(request, base, name in joined)
        for _ in [request, *self._asked, *self._last_asked]:  # requests without an answer are repeated
            self.record.asks()
        self._expect(request, f"seek {self.handle} {text}: {request}")

    def ask(self) -> None:
        """Ask whether any topic has more messages, or for the last message of each."""
        client, now = self.host.node.client, self.world.clock.now
        assert self.record is not None
        self.record.asks()
        known = {name: self._subscription_of(name).where.end for name in self._subscribed()}
        if self.stream.chance(600):
            request = client.has_message_available(now, self.handle)
            self._asked[request] = known
        else:
            request = client.last_message_id(now, self.handle)
            self._last_asked[request] = known
        self._expect(request, f"ask {self.handle}: {request}")

    def _awaits(self, request: int) -> bool:
        return super()._awaits(request) or request == self._leaving

    def leave(self) -> None:
        """Remove the subscription in all topics."""
        self._to_leave = self._subscribed()
        self._leaving = self.host.node.client.unsubscribe(self.world.clock.now, self.handle)
        for name in self.world.topics.names:
            if self.topics.means(name):
                self._subscription_of(name).may_be_gone()
        self._expect(self._leaving, f"unsubscribe {self.handle}: {self._leaving}")

    def lose(self) -> None:
        super().lose()
        for request in self._waiting:
            self.host.routes[request] = self.world
        for request, bases in self._seeks.items():
            for name in bases:
                self._subscription_of(name).not_done(request)
        self._unsure.update(name for bases in self._seeks.values() for name in bases)
        self._forget_waiting()

    # --- outputs ----------------------------------------------------------------------------------------

    def _is_ready(self) -> None:
        self._later()

    def _on_other_output(self, output: Output) -> bool:
        if isinstance(output, Deliverable):
            self._later()
        elif isinstance(output, TopicLeft):
            self._topic_left(output)
        elif isinstance(output, TopicJoined):
            if self.world.healed:
                self._later()
        else:
            return isinstance(output, (EndOfTopic, ActiveChanged))
        return True

    def _topic_left(self, output: TopicLeft) -> None:
        assert self.record is not None
        if output.topic not in self.world.administrator.ever_vanished:
            raise ViolationError("INV-C16", f"{self.topics.name}: {output.topic} leaves, and exists")
        self.record.leaves(output.topic)

    def _answered(self, output: RequestDone) -> None:
        request = output.request
        bases = self._seeks.pop(request, None)
        if bases is not None:
            now = self.world.clock.now
            for name, base in bases.items():
                self._subscription_of(name).done(request, base, now)
            self._unsure.difference_update(bases)
            self._later()
        elif request in self._asked:
            self._on_more_answer(self._asked.pop(request), output.result)
        elif request in self._last_asked:
            self._on_last_answer(self._last_asked.pop(request), output.result)
        elif request == self._leaving:
            self._leaving = None
            self._check_removed()
            for name in self._to_leave:  # in topics that were not subscribed, the subscription may remain
                self._subscription_of(name).begins_anew()

    def _check_removed(self) -> None:
        """MULTI-29: when the client reports that the subscription is removed, it was removed in all
        topics."""
        assert self.record is not None
        gone = self.world.administrator.ever_vanished
        kept = [name for name in self._to_leave if name not in gone and not self.record.of(name).removed]
        if kept:
            raise ViolationError("INV-C16", f"{self.topics.name} is removed, without a request in {kept}")

    def _on_more_answer(self, known: dict[str, MessagePosition], result: bool) -> None:
        if self._seeks or self._unsure or result:
            return
        gone = self.world.administrator.ever_vanished
        more = [
            name
            for name, end in known.items()
            if name not in gone and self._subscription_of(name).where.has_more(end)
        ]
        if more:
            raise ViolationError("INV-C15", f"{self.topics.name} is told of nothing more, and {more} have")

    def _on_last_answer(self, known: dict[str, MessagePosition], result: list[TopicMessageId]) -> None:
        """The answer names every topic, and no message before the end known when the request was made."""
        found = {each.topic: message_position_of(each.message_id) for each in result}
        gone = self.world.administrator.ever_vanished
        for name, end in known.items():
            if name in gone:
                continue
            last = found.get(name)
            if last is None or (last[0], last[1] + 1) < end[:2]:
                raise ViolationError("INV-C15", f"{name}: {last} is the last message, not {end}")

    def _not_answered(self, output: RequestFailed) -> None:
        """A failed seek may have been done in any topic; a failed removal may have removed the subscription
        in any topic."""
        request = output.request
        bases = self._seeks.pop(request, None)
        if bases is not None:
            for name in bases:
                self._subscription_of(name).not_done(request)
            assert self.record is not None
            for _ in [
                *self._asked,
                *self._last_asked,
            ]:  # each is repeated in topics where the seek was done after all
                self.record.asks()
            self._unsure.update(bases)
            if self.world.healed:
                self._made_last_seek = False
                self._later()
        if request == self._leaving:
            self._leaving = None
            self._unsure.update(name for name in self.world.topics.names if self.topics.means(name))
            self.close_and_reopen()  # topics that were removed are not subscribed again
        self._asked.pop(request, None)
        self._last_asked.pop(request, None)
