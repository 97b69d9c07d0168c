"""Visitors: who subscribes for a while and leaves nothing behind.

Owns two kinds of users. One makes a durable subscription, looks at what comes, and removes it again
(UNSUBSCRIBE), over and over. The other reads without a durable subscription: nothing is acknowledged for it,
so the client itself has to remember where to go on after a connection is lost, and no message may come twice
or be left out in the life of one consumer.
"""

from typing import TYPE_CHECKING

from pulsar_sansio.client.outputs import Deliverable, EndOfTopic, Output, RequestDone, RequestFailed
from pulsar_sansio.model.config import ConsumerSpec, InitialPosition, SubscriptionType
from pulsar_sansio.model.errors import ClosedError

from ..engine.clock import MILLISECOND
from ..engine.failures import ViolationError
from ..engine.profile import VisitorPlan
from ..model.records import BEFORE_ALL
from ..model.single_topic_position import TransientSubscription
from .client_process import REOPEN_DELAY
from .transient_app import TransientTopicApp

if TYPE_CHECKING:
    from ..world.world import World


MOST_VISITS = 3
"""Of one visitor while there are faults: each reads the log from its beginning."""


class TransientSubscriber(TransientTopicApp):
    """One visitor, through as many consumers as it takes."""

    def __init__(self, world: "World", index: int, plan: VisitorPlan) -> None:
        super().__init__(world, "visitor", index, plan.client)
        self.plan = plan
        topic = world.model.topics[world.topics[plan.topic]]
        self.subscription = TransientSubscription(topic, f"visit-{index}", plan.durable)
        topic.subscriptions[self.subscription.name] = self.subscription
        self._waiting: int | None = None
        """The request that ends the visit."""
        self._refused = False
        """UNSUBSCRIBE failed."""
        self._leaves_something = False
        """There may be a durable subscription."""

    @property
    def done(self) -> bool:
        """In good weather: who makes a subscription has removed it for the last time, who reads has read
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

    # --- a visit --------------------------------------------------------------------------------------------

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
        )
        self._register(name, self.subscription, spec)
        self._opened(self.host.node.client.subscribe(world.clock.now, spec))

    def leave(self, incarnation: int) -> None:
        """End the visit: by UNSUBSCRIBE, or without it where closing is enough."""
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
        # A broker that answered too late has removed the subscription, and the consumer with it: who was
        # refused begins again with a new one.
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
        """Nanoseconds until the next visit: who was here often comes less often."""
        return REOPEN_DELAY + 4 * REOPEN_DELAY * self.incarnation + self.stream.below(self.plan.stay)

    def wake(self) -> None:
        """The weather is good: go soon, or come for the last time."""
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

    # --- news -----------------------------------------------------------------------------------------------

    def _is_ready(self) -> None:
        self._leave_later()

    def _has_ended(self) -> None:
        if self.incarnation < MOST_VISITS or self.world.healed:
            self.world.clock.after(self._away(), self.open)

    def _is_detached(self) -> None:
        if self.plan.durable:
            assert self.record is not None
            self.record.rewinds += 1  # nothing is acknowledged: all of it comes again

    def _answered(self, output: RequestDone) -> None:
        self._leaves_something = self.plan.durable and self._refused

    def _not_answered(self, output: RequestFailed) -> None:
        self._waiting = None
        self._refused = True
        self._leave_later()

    def _hears(self, output: Output) -> bool:
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
            raise ViolationError("BROKER-43", f"{topic.name} is said to be at its end, and nobody ended it")
