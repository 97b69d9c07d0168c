"""Applications that seek in one topic, as readers or through a durable subscription of their own.

Owns what these applications do and which answers they may get. They seek to messages already received, to
times and to the ends. After a seek no message from before it arrives, the first message is the one sought,
and none is left out after it (INV-C7). Seeks and requests end in time. An answer "nothing more" means that
everything was received; an answer "more" is followed by a message (INV-C15).
"""

from typing import TYPE_CHECKING

from pulsar_sansio.client.outputs import Deliverable, EndOfTopic, Output, RequestDone, RequestFailed
from pulsar_sansio.model.config import ConsumerSpec, InitialPosition, ReaderSpec, SubscriptionType
from pulsar_sansio.model.message import Message
from pulsar_sansio.model.message_id import EARLIEST, LATEST, MessageId

from ...engine.failures import ViolationError
from ...engine.profile import SingleTopicSeekerPlan
from ...model.positions.expected_position import START, Base, ExpectedPosition, after, whole
from ...model.positions.single_topic_position import SoughtSubscription
from ...model.records.consumer_record import ConsumerRecord
from ...model.records.message_position import BEFORE_ALL, MessagePosition
from ..key_readers import decrypting
from ..transient_app import TransientTopicApp
from .seeking_app import MEMORY, Seeker, message_position_of

if TYPE_CHECKING:
    from ...engine.surroundings import Surroundings

MOST_SEEKS = 6
"""Seeks of one application: each may redeliver the whole topic."""


class SingleTopicSeeker(TransientTopicApp, Seeker[ConsumerRecord, SingleTopicSeekerPlan]):
    """One application that seeks in a topic, through as many consumers as it opens."""

    def __init__(self, world: "Surroundings", index: int, plan: SingleTopicSeekerPlan) -> None:
        super().__init__(world, "roamer", index, plan, MOST_SEEKS)
        self.topic = world.model.topics[world.topics.names[plan.topic]]
        self.subscription = self._new_subscription()
        self._seen: list[MessageId] = []
        """Messages received, as targets of seeks."""
        self._seeks: dict[int, tuple[Base, bool]] = {}
        """Seek requests, each with its base and whether the target is the end of the topic, in the order of
        the requests."""
        self._failed: list[Base] = []
        """Positions that the subscription may have moved to, or may still move to, since the last completed
        seek."""
        self._asked: dict[int, MessagePosition] = {}
        self._last_asked: dict[int, MessagePosition] = {}
        self._promised: MessagePosition | None = None
        """The client has answered that a message follows this position."""
        self._last_seek_at = -1
        """Virtual time of the last completed seek, which reattaches the consumer at that moment."""

    @property
    def where(self) -> ExpectedPosition:
        return self.subscription.where

    @property
    def done(self) -> bool:
        """True when, after healing, the application has sought once more and read everything from there
        on."""
        record = self.record
        if not self._made_last_seek or self._waiting or record is None:
            return False
        # A chunk of a message that is never completed counts as more: the client cannot know yet.
        order = self.topic.order
        end = (*order[-1], len(self.topic.log[order[-1]].messages)) if order else BEFORE_ALL
        promised, gone = self._promised, self.topic.gone
        if promised is not None and end <= promised and (gone < 0 or promised[0] > gone):
            raise ViolationError("INV-C15", f"{record.name} was told of a message from {promised} on")
        return self.state == "open" and self.attached and not self.where.has_more(self.where.end)

    def _new_subscription(self) -> SoughtSubscription:
        name = f"roam-{self.index}" if self.plan.durable else f"roam-{self.index}.{self.incarnation}"
        subscription = SoughtSubscription(self.topic, name, self.plan.compacted)
        self.topic.subscriptions[name] = subscription
        return subscription

    # --- one consumer ---------------------------------------------------------------------------------------

    def open(self) -> None:
        world, plan = self.world, self.plan
        if not self._may_open():
            return
        self.incarnation += 1
        name = f"r{self.index}.{self.incarnation}"
        client = self.host.node.client
        if plan.durable:
            spec = ConsumerSpec(
                topic=self.topic.name,
                subscription=self.subscription.name,
                subscription_type=SubscriptionType.EXCLUSIVE,
                consumer_name=name,
                receiver_queue_size=plan.queue,
                initial_position=InitialPosition.EARLIEST,
                acknowledgement_group_time=plan.group_time,
                read_compacted=plan.compacted,
                schema=world.reader_schema(name),
                **decrypting(world, name),
            )
            self._register(name, self.subscription, spec)
            handle = client.subscribe(world.clock.now, spec)
        else:
            self.subscription = self._new_subscription()
            reading = self._reading(name)
            record = self._register(name, self.subscription, reading.reading("unused"))
            record.questions = int(
                isinstance(reading.start, int)
            )  # the reader seeks, and asks for the resulting position
            handle = client.open_reader(world.clock.now, reading)
        self._opened(handle)

    def _reading(self, name: str) -> ReaderSpec:
        """Return the spec of a reader that begins at either end, at a message, or at a time."""
        base, target, inclusive = self._somewhere()
        self.where.moved(base)
        self.subscription.sought = False
        return ReaderSpec(
            self.topic.name,
            start=target,
            start_inclusive=inclusive and isinstance(target, MessageId) and target != LATEST,
            name=name,
            subscription=self.subscription.name,
            read_compacted=self.plan.compacted,
            receiver_queue_size=self.plan.queue,
            schema=self.world.reader_schema(name),
            **decrypting(self.world, name),
        )

    def _somewhere(self) -> tuple[Base, MessageId | int, bool]:
        """Choose a target: its base, the target for the client, and whether the message there is included."""
        stream, where = self.stream, self.where
        choice = stream.below(10)
        if choice < 2:
            return START, EARLIEST, stream.chance(500)
        if choice < 4 or (choice >= 8 and not self.plan.times) or not self._seen:
            return Base(where.end, since=self.world.clock.now), LATEST, False
        message_id = stream.choice(self._seen)
        message_position = message_position_of(message_id)
        if choice < 8:
            inclusive = stream.chance(500)
            return Base(message_position if inclusive else after(message_position)), message_id, inclusive
        time = where.published(message_position[:2]) + stream.between(-1, 1) * stream.below(1000)
        return Base(BEFORE_ALL, time=time, known=where.end), time, False

    # --- steps ----------------------------------------------------------------------------------------------

    def _took(self, messages: list[Message]) -> None:
        record, model = self.record, self.world.model
        assert record is not None
        wall_time = self.world.wall_time()
        self.world.trace.add(self.world.clock.now, self.host.node.name, f"take {self.handle} {len(messages)}")
        for message in messages:
            model.deliver(record, message, self.world.clock.now, wall_time)
            if len(self._seen) < MEMORY:
                self._seen.append(message.message_id)
            elif self.stream.chance(100):
                self._seen[self.stream.below(MEMORY)] = message.message_id
        if self.plan.durable and not self._seeks and self.stream.chance(self.plan.acknowledge_permille):
            last = self.stream.choice(messages)
            message_position = message_position_of(last.message_id)
            self.where.may_be_at(Base(after(message_position)))
            self.where.may_be_at(Base(whole(message_position)))
            self.host.node.client.acknowledge_cumulative(self.world.clock.now, self.handle, last)

    def _finish(self) -> None:
        """Seek once more, and read everything from there on."""
        if not self._made_last_seek and not self._seeks and self.attached:
            self._made_last_seek = True
            if self._seen and self.stream.chance(500):
                message_id = self.stream.choice(self._seen)
                self.seek(Base(after(message_position_of(message_id))), message_id, False)
            else:
                self.seek(START, EARLIEST, True)
            self.ask()

    def _seek_somewhere(self) -> None:
        self.seek(*self._somewhere())

    def seek(self, base: Base, target: MessageId | int, inclusive: bool) -> None:
        world, client = self.world, self.host.node.client
        self._left = max(0, self._left - 1)
        request = client.seek(world.clock.now, self.handle, target, inclusive)
        assert self.record is not None
        self.record.questions += 1
        self._seeks[request] = base, target == LATEST
        self._expect(request, f"seek {self.handle} {target}: {request}")

    def ask(self) -> None:
        """Ask whether more is available, or for the last message."""
        client, now = self.host.node.client, self.world.clock.now
        assert self.record is not None
        self.record.questions += 1
        if self.stream.chance(600):
            request = client.has_message_available(now, self.handle)
            self._asked[request] = self.where.end
        else:
            request = client.last_message_id(now, self.handle)
            self._last_asked[request] = self.where.end
        self._expect(request)

    def lose(self) -> None:
        super().lose()
        for base, to_end in self._seeks.values():
            self._failed.append(Base(base.message_position, since=2**63) if to_end else base)
        for request in self._waiting:
            self.host.routes[request] = self.world
        self._forget_waiting()
        self._rewind()

    # --- outputs ----------------------------------------------------------------------------------------

    def _is_ready(self) -> None:
        self._rewind()
        self._later()

    def _is_attached_again(self) -> None:
        self._rewind()
        super()._is_attached_again()

    def _on_other_output(self, output: Output) -> bool:
        if isinstance(output, Deliverable):
            self._later()
        return isinstance(output, (Deliverable, EndOfTopic))

    def _rewind(self) -> None:
        """A durable subscription resumes at its cursor. A reader goes on behind its last message; when it
        began at the end of the topic, that end is unknown until a message has arrived."""
        if self.plan.durable:
            self.subscription.may_be_out_of_date()
            for base in self._failed:
                self.where.may_be_at(base)
            if self.world.clock.now != self._last_seek_at:
                self.where.may_be_as_kept()
            self.where.back()
        elif self.where.last is None:
            now = self.world.clock.now
            self.where.bases = [
                base if base.since is None else Base(base.message_position, since=now)
                for base in self.where.bases
            ]

    def _answered(self, output: RequestDone) -> None:
        request = output.request
        if request in self._seeks:
            if request != next(iter(self._seeks)):
                raise ViolationError(
                    "INV-C7", f"seek {request} of {self.handle} is done before those before it"
                )
            base, to_end = self._seeks.pop(request)
            if to_end:
                base = Base(base.message_position, since=self.world.clock.now)
            self._failed.clear()
            self.where.moved(base)
            self.subscription.sought = True
            self._last_seek_at = self.world.clock.now
            if self.stream.chance(self.plan.ask_permille):
                self.ask()
            self._later()
        elif request in self._asked:
            self._on_more_answer(self._asked.pop(request), output.result)
        elif request in self._last_asked:
            self._on_last_answer(self._last_asked.pop(request), output.result)

    def _on_more_answer(self, known: MessagePosition, result: bool) -> None:
        record = self.record
        assert record is not None
        if self._seeks:
            return
        if not result and not self._failed and self.where.has_more(known):
            raise ViolationError("INV-C15", f"{record.name} got the answer that nothing more is available")
        if result and not self._failed:
            self._promised = max(self._promised or BEFORE_ALL, self.where.least)

    def _on_last_answer(self, known: MessagePosition, result: MessageId) -> None:
        """The last message is not before the end known when the request was made."""
        record = self.record
        assert record is not None
        if self.where.lacks((result.ledger_id, result.entry_id + 1, -1), known):
            raise ViolationError("INV-C15", f"{record.name}: {result} is the last message, not {known}")

    def _not_answered(self, output: RequestFailed) -> None:
        """A failed seek may or may not have been done."""
        failed = self._seeks.pop(output.request, None)
        if failed is not None:
            assert self.record is not None
            self.record.questions += len(self._asked) + len(self._last_asked)
            base, to_end = failed
            self._failed.append(Base(base.message_position, since=2**63) if to_end else base)
            self.where.unanswered(self._failed[-1])
            if self.world.healed:
                self._made_last_seek = False
                self._later()
        self._asked.pop(output.request, None)
        self._last_asked.pop(output.request, None)
