"""Applications that subscribe for a while and leave no subscription behind.

Owns two kinds of applications. One creates a durable subscription, receives, and removes the subscription
(UNSUBSCRIBE), over and over. The other reads without a durable subscription: the broker keeps no cursor, so
the client must remember its position after a connection is lost. No message may arrive twice, or be left out,
in the life of one consumer.
"""

from typing import TYPE_CHECKING

from pulsar_sansio.client.outputs import Deliverable, EndOfTopic, Output, RequestDone, RequestFailed
from pulsar_sansio.model.config import ConsumerSpec, InitialPosition, SubscriptionType
from pulsar_sansio.model.errors import ClosedError

from ..engine.clock import MILLISECOND
from ..engine.failures import ViolationError
from ..engine.profile import TransientSubscriberPlan
from ..model.positions.single_topic_position import TransientSubscription
from ..model.records.message_position import BEFORE_ALL
from .client_process import REOPEN_DELAY
from .key_readers import decrypting
from .transient_app import TransientTopicApp

if TYPE_CHECKING:
    from ..engine.surroundings import Surroundings


MOST_VISITS = 3
"""Subscriptions of one application while there are faults: each reads the log from its beginning."""


class TransientSubscriber(TransientTopicApp):
    """One transient subscriber, through as many consumers as it opens."""

    def __init__(self, world: "Surroundings", index: int, plan: TransientSubscriberPlan) -> None:
        super().__init__(world, "visitor", index, plan.client)
        self.plan = plan
        topic = world.model.topics[world.topics.names[plan.topic]]
        self.subscription = TransientSubscription(topic, f"visit-{index}", plan.durable)
        topic.subscriptions[self.subscription.name] = self.subscription
        self._waiting: int | None = None
        """The request that removes the subscription or closes the consumer."""
        self._refused = False
        """UNSUBSCRIBE failed."""
        self._leaves_something = False
        """A durable subscription may exist."""

    @property
    def done(self) -> bool:
        """True when, after healing, a durable subscription is removed for the last time, or a reader has read
        everything."""
        if self.plan.durable:
            return self.state == "idle" and not self._leaves_something
        last = self.subscription.topic.last_message
        record = self.record
        return (
            self.state == "open"
            and self.attached
            and record is not None
            and record.floor[:2] >= (last or BEFORE_ALL[:2])
        )

    # --- one subscription -------------------------------------------------------------------------------

    def start(self) -> None:
        self.world.clock.after(self.stream.below(self.plan.stay), self.open)

    def open(self) -> None:
        world, plan = self.world, self.plan
        if not self._may_open():
            return
        if world.healed and plan.durable and not self._leaves_something:
            return
        self._leaves_something = plan.durable
        self._refused = False
        self.incarnation += 1
        name = f"v{self.index}.{self.incarnation}"
        spec = ConsumerSpec(
            topic=self.subscription.topic.name,
            subscription=self.subscription.name,
            subscription_type=SubscriptionType.EXCLUSIVE,
            consumer_name=name,
            receiver_queue_size=plan.queue,
            initial_position=InitialPosition.EARLIEST,
            durable=plan.durable,
            max_pending_chunked_messages=1000,
            incomplete_chunked_message_timeout=world.profile.chunk_patience,
            schema=world.reader_schema(name),
            **decrypting(world, name),
        )
        self._register(name, self.subscription, spec)
        self._opened(self.host.node.client.subscribe(world.clock.now, spec))

    def leave(self, incarnation: int) -> None:
        """Leave: by UNSUBSCRIBE, or by a close where that is enough."""
        world = self.world
        if self.state != "open" or incarnation != self.incarnation or self.host.closing is not None:
            return
        if (
            self._waiting is not None
            or world.closing
            or (world.healed and not self.plan.durable and not self._refused)
        ):
            return
        client, now = self.host.node.client, world.clock.now
        # A broker that answered too late has removed the subscription, and the consumer with it: after a
        # refusal the application opens a new consumer.
        unsubscribe = not self._refused and (self.plan.durable or self.stream.chance(500))
        try:
            if unsubscribe:
                self._waiting = client.unsubscribe(now, self.handle)
            else:
                self._waiting = client.close(now, self.handle)
                self.state = "closing"
        except ClosedError:
            return
        self.host.routes[self._waiting] = self
        what = "unsubscribe" if unsubscribe else "close"
        world.trace.add(now, self.host.node.name, f"{what} {self.handle}")
        self.host.node.pump()

    def _leave_later(self) -> None:
        stay = self.stream.below(self.plan.stay)
        if self.world.healed:
            stay = min(stay, 100 * MILLISECOND)
        self.world.clock.after(1 + stay, self.leave, self.incarnation)

    def _away(self) -> int:
        """Nanoseconds until the next subscription; they grow with the number of earlier ones."""
        return REOPEN_DELAY + 4 * REOPEN_DELAY * self.incarnation + self.stream.below(self.plan.stay)

    def wake(self) -> None:
        """The faults are over: leave soon, or subscribe for the last time."""
        if self.state == "idle":
            self.world.clock.after(self._away(), self.open)
        self._leave_later()

    def lose(self) -> None:
        super().lose()
        self._waiting = None

    def _take(self) -> None:
        client, record = self.host.node.client, self.record
        assert record is not None
        try:
            while (message := client.receive(self.world.clock.now, self.handle)) is not None:
                self.world.model.deliver(record, message, self.world.clock.now, self.world.wall_time())
        except ClosedError:
            return

    # --- outputs ----------------------------------------------------------------------------------------

    def _is_ready(self) -> None:
        self._leave_later()

    def _has_ended(self) -> None:
        if self.incarnation < MOST_VISITS or self.world.healed:
            self.world.clock.after(self._away(), self.open)

    def _is_detached(self) -> None:
        if self.plan.durable:
            assert self.record is not None
            self.record.rewinds += 1  # nothing is acknowledged: everything is redelivered

    def _answered(self, output: RequestDone) -> None:
        self._leaves_something = self.plan.durable and self._refused

    def _not_answered(self, output: RequestFailed) -> None:
        self._waiting = None
        self._refused = True
        self._leave_later()

    def _on_other_output(self, output: Output) -> bool:
        if isinstance(output, Deliverable):
            self._take()
        elif isinstance(output, EndOfTopic):
            self._check_end()
        else:
            return False
        return True

    def _check_end(self) -> None:
        topic = self.subscription.topic
        if not self.world.administrator.has_ended(topic.name):
            raise ViolationError(
                "BROKER-43", f"{topic.name} is reported to have ended, and was not terminated"
            )
