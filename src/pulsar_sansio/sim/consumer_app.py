"""An application that receives, and acknowledges in its own manner, the sensible and the rash way.

Owns the behaviour of one user of consumers. It drives one consumer after another through the public commands
of a `Client`, tells the reference model what it asked for and what it was told, and begins again when its
consumer is closed, refused or lost. It never looks inside a machine.
"""

from typing import TYPE_CHECKING

from ..client.outputs import (
    ActiveChanged,
    Attached,
    Closed,
    ConsumerFailed,
    ConsumerReady,
    Deliverable,
    Detached,
    EndOfTopic,
    LetterFailed,
    Output,
    RequestDone,
    RequestFailed,
)
from ..model.config import ConsumerSpec, DeadLetterPolicy, InitialPosition, RedeliveryBackoff
from ..model.errors import ClosedError
from ..model.message import Message
from .clock import MILLISECOND, SECOND
from .hosts import HURRY, REOPEN_DELAY, Host
from .profile import GROWN, ConsumerPlan
from .records import ConsumerRecord, Place
from .violations import ViolationError

if TYPE_CHECKING:
    from .world import World


GROWING = RedeliveryBackoff(0.1, GROWN, 3.0)
"""How long a message waits to be delivered again where that grows with every time."""

MOST_REFUSALS = 30
"""Of one application. Who refuses a third of all messages for ever sees large batches again and again, which
shows nothing that the first times did not."""


def dead_letters(subscription: int) -> str:
    """The topic of a subscription's dead letters."""
    return f"persistent://public/default/dead-{subscription}"


class ConsumerApp:
    """Takes messages and acknowledges them in its own manner, through as many consumers as it takes."""

    def __init__(self, world: "World", index: int, plan: ConsumerPlan) -> None:
        self.world = world
        self.index = index
        self.plan = plan
        self.stream = world.streams.stream(f"consumer {index}")
        self.incarnation = 0
        self.record: ConsumerRecord | None = None
        self.handle = 0
        self.state = "idle"
        self.attached = False
        self.told_end = False
        """That the topic has ended and everything is acknowledged."""
        self.kept: dict[Place, Message] = {}
        """Taken, neither acknowledged nor refused yet."""
        self.confirmations: dict[int, list[Place]] = {}
        """Requests to confirm, and what was acknowledged since the one before."""
        self._acknowledged: list[Place] = []
        """By this consumer, not yet named in a request to confirm."""
        self._on_this_connection: list[Place] = []
        """Acknowledged since it was attached."""
        self._paused_until = 0
        self._scheduled = False
        self._turn = 0
        self._refusals_left = MOST_REFUSALS

    @property
    def host(self) -> Host:
        return self.world.hosts[self.plan.client]

    def start(self) -> None:
        self.world.clock.after(self.stream.below(self.plan.pause), self.open)

    def open(self) -> None:
        if self.state != "idle" or self.world.closing or self.host.closing is not None:
            return
        world, plan = self.world, self.plan
        self.incarnation += 1
        name = f"c{self.index}.{self.incarnation}"
        subscription_plan = world.profile.subscriptions[plan.subscription]
        topic = world.model.topics[world.topics[plan.topic]]
        subscription = topic.subscriptions[f"sub-{plan.subscription}"]
        spec = ConsumerSpec(
            topic=topic.name,
            subscription=subscription.name,
            subscription_type=subscription_plan.kind,
            consumer_name=name,
            receiver_queue_size=plan.queue,
            acknowledgement_group_time=plan.group_time,
            acknowledgement_group_size=plan.group_size,
            acknowledgement_receipts=plan.receipts,
            batch_index_acknowledgement=plan.batch_index,
            negative_acknowledgement_delay=plan.nack_delay,
            initial_position=InitialPosition.EARLIEST,
            priority_level=plan.priority,
            max_pending_chunked_messages=1000,
            incomplete_chunked_message_timeout=world.profile.chunk_patience,
            auto_scaled_receiver_queue_size=plan.scaled and plan.queue > 0,
            start_paused=plan.starts_halted and world.rash,
            dead_letter=(
                DeadLetterPolicy(plan.dead_letters, topic=dead_letters(plan.subscription))
                if plan.dead_letters
                else None
            ),
            acknowledgement_timeout=plan.timeout,
            acknowledgement_timeout_tick=plan.tick,
            acknowledgement_timeout_backoff=GROWING if plan.growing and plan.timeout else None,
            negative_acknowledgement_backoff=GROWING if plan.growing else None,
        )
        self.record = world.model.consumers[name] = ConsumerRecord(name, subscription, spec)
        self.record.halted = spec.start_paused
        if spec.auto_scaled_receiver_queue_size:  # that its queue has grown no frame says
            world.rules.excused.add("INV-C6")
        self.state = "opening"
        self.told_end = False
        self.kept.clear()
        self._acknowledged = []
        node = self.host.node
        self.handle = node.client.subscribe(world.clock.now, spec)
        self.host.routes[self.handle] = self
        world.client_watch.handles[name] = self.handle
        world.trace.add(world.clock.now, node.name, f"subscribe {name} is {self.handle}")
        node.pump()
        world.injector.opened(self)

    def wake(self) -> None:
        """Look after what there is, paused or not."""
        if self.state == "open":
            self.go_on(self.incarnation)
            self._paused_until = 0
            self._scheduled = False
            self._later()

    def pause(self, duration: int) -> None:
        self._paused_until = self.world.clock.now + duration

    def halt(self) -> bool:
        """Ask for nothing more, for a while."""
        record = self.record
        if self.state != "open" or self.host.closing is not None or record is None or record.halted:
            return False
        self.host.node.pump()  # what was granted before is seen before
        self.world.trace.add(self.world.clock.now, self.host.node.name, f"pause {self.handle}")
        record.halted = True
        self.host.node.client.pause(self.world.clock.now, self.handle)
        self._go_on_later()
        return True

    def _go_on_later(self) -> None:
        pause = self.stream.spread(10 * MILLISECOND, 3 * SECOND)
        self.world.clock.after(pause, self.go_on, self.incarnation)

    def go_on(self, incarnation: int) -> None:
        """Ask for more again."""
        record, node = self.record, self.host.node
        if record is None or not record.halted or incarnation != self.incarnation or self.state != "open":
            return
        if self.host.closing is not None:
            return
        self.world.trace.add(self.world.clock.now, node.name, f"resume {self.handle}")
        record.halted = False
        node.client.resume(self.world.clock.now, self.handle)
        node.pump()

    def _later(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            pause = 1 + self.stream.below(self.plan.pause)
            if self.world.healed:
                pause = min(pause, HURRY)
            now = self.world.clock.now
            self._turn += 1
            self.world.clock.at(max(now + pause, self._paused_until), self._step, self._turn)

    def _step(self, turn: int) -> None:
        """Take what there is, decide about it, and about what was kept."""
        if turn != self._turn:
            return
        self._scheduled = False
        if self.state != "open" or self.host.closing is not None:
            return
        world, plan, stream = self.world, self.plan, self.stream
        if world.clock.now < self._paused_until and not world.healed:
            self._later()
            return
        node, now = self.host.node, world.clock.now
        if plan.take == 1:
            message = node.client.receive(now, self.handle)
            messages = [] if message is None else [message]
        else:
            messages = list(node.client.take(now, self.handle, plan.take))
        assert self.record is not None
        self.record.wanting = not messages
        if messages:
            world.trace.add(now, node.name, f"take {self.handle} {len(messages)}")
            self._decide(messages)
        if not world.rash:
            self._finish_kept()
        else:
            if stream.chance(plan.redeliver_permille):
                self.redeliver()
            if self.kept and stream.chance(300):
                self._finish_kept()
            if self.state == "open" and stream.chance(plan.close_permille):
                self.close_and_reopen()
            if plan.halt_permille and stream.chance(plan.halt_permille):
                self.halt()
        if self.state == "open" and stream.chance(plan.confirm_permille):
            self.confirm()
        node.pump()
        # Who prefetches nothing has to look for the next message, or it will not come.
        looks_again = messages and not plan.queue
        if self.state == "open" and (self.kept or looks_again or node.client.available(self.handle)):
            self._later()

    def _decide(self, messages: list[Message]) -> None:
        plan, stream, model = self.plan, self.stream, self.world.model
        record = self.record
        assert record is not None
        client, now = self.host.node.client, self.world.clock.now
        cumulative = record.subscription.kind.cumulative
        rash = self.world.rash
        wall_time = self.world.wall_time()
        places = [model.deliver(record, message, wall_time) for message in messages]
        if plan.timeout:
            self._note(places, messages)
        for place, message in zip(places, messages, strict=True):
            self.kept.pop(place, None)
            if rash and self._refusals_left and stream.chance(plan.nack_permille):
                self._refusals_left -= 1
                by_message = stream.chance(500)
                model.negative_acknowledge(record, place, message.redelivery_count if by_message else 0, now)
                client.negative_acknowledge(now, self.handle, message if by_message else message.message_id)
                self.host.node.pump()  # what is asked for because of it is seen before the next verdict
                if stream.chance(200):
                    self.kept[place] = message  # to be acknowledged after all
            elif rash and stream.chance(plan.keep_permille):
                self.kept[place] = message
            elif (
                rash and plan.forget_permille and self._refusals_left and stream.chance(plan.forget_permille)
            ):
                self._refusals_left -= 1
            elif cumulative and stream.chance(plan.cumulative_permille):
                self._acknowledge_cumulative(place, message)
            elif stream.chance(800):
                self._acknowledge(place)
                client.acknowledge(now, self.handle, message)
            else:
                self._acknowledge(place)
                client.acknowledge(now, self.handle, message.message_id)

    def _note(self, places: list[Place], messages: list[Message]) -> None:
        """From now on there is a time within which these have to be judged."""
        record = self.record
        assert record is not None
        topic = record.subscription.topic
        for place, message in zip(places, messages, strict=True):
            position = place[:2]
            size = len(topic.log[position].messages)
            count, now = message.redelivery_count, self.world.clock.now
            record.unjudged.handed_out(topic.chunks_of(position), size, place[2], count, now)

    def _acknowledge(self, place: Place) -> None:
        assert self.record is not None
        self.world.model.acknowledge(self.record, place)
        self._acknowledged.append(place)
        if self.attached:
            self._on_this_connection.append(place)

    def _acknowledge_cumulative(self, place: Place, message: Message) -> None:
        record = self.record
        assert record is not None
        self.world.model.acknowledge_cumulative(record, place)
        self._acknowledged.append(place)
        for kept in [each for each in self.kept if each <= place]:
            del self.kept[kept]
        self.host.node.client.acknowledge_cumulative(self.world.clock.now, self.handle, message)

    def _finish_kept(self) -> None:
        """Acknowledge what was kept, in any order."""
        record = self.record
        assert record is not None
        if not self.kept:
            return
        kept = list(self.kept.items())
        self.kept.clear()
        self.stream.shuffle(kept)
        for place, _ in kept:
            self._acknowledge(place)
        self.host.node.client.acknowledge(self.world.clock.now, self.handle, [message for _, message in kept])

    def confirm(self) -> bool:
        """Ask to be told when the acknowledgements so far are sent and, with receipts, confirmed."""
        if self.state != "open" or self.host.closing is not None:
            return False
        node = self.host.node
        request = node.client.flush_acknowledgements(self.world.clock.now, self.handle)
        self.confirmations[request] = self._acknowledged
        self._acknowledged = []
        self.host.routes[request] = self
        node.pump()
        return True

    def redeliver(self) -> bool:
        if self.state != "open" or self.host.closing is not None:
            return False
        record = self.record
        assert record is not None
        record.rewinds += 1
        record.redeliver_all += 1
        record.requests_to_rewind += 1
        if record.subscription.keys is not None:
            record.subscription.keys.asked_for_everything()
        node = self.host.node
        self.world.trace.add(self.world.clock.now, node.name, f"redeliver {self.handle}")
        node.client.redeliver_unacknowledged(self.world.clock.now, self.handle)
        node.pump()
        return True

    def nack_everything(self) -> bool:
        """Refuse all that was kept."""
        if self.state != "open" or self.host.closing is not None or not self.kept:
            return False
        record = self.record
        assert record is not None
        node = self.host.node
        for place, message in self.kept.items():
            now = self.world.clock.now
            self.world.model.negative_acknowledge(record, place, message.redelivery_count, now)
        messages = list(self.kept.values())
        self.kept.clear()
        node.client.negative_acknowledge(self.world.clock.now, self.handle, messages)
        node.pump()
        return True

    def close_and_reopen(self) -> bool:
        if self.state != "open" or self.host.closing is not None:
            return False
        self.state = "closing"
        node = self.host.node
        request = node.client.close(self.world.clock.now, self.handle)
        self.host.routes[request] = self
        self.world.trace.add(self.world.clock.now, node.name, f"close {self.handle}")
        self.host.expect_end(self)
        self._is_closed()
        node.pump()
        return True

    def _is_closed(self) -> None:
        """INV-C14: from the close on, nothing is handed out."""
        try:
            messages = self.host.node.client.take(self.world.clock.now, self.handle, 1)
        except ClosedError:
            return
        raise ViolationError("INV-C14", f"{self.handle} is being closed and gives {messages}")

    def abandon_and_reopen(self) -> bool:
        if self.state == "idle" or self.host.closing is not None:
            return False
        node = self.host.node
        self.world.trace.add(self.world.clock.now, node.name, f"abandon {self.handle}")
        self.host.routes[self.handle] = self.world
        node.client.abandon(self.world.clock.now, self.handle)
        self._forget()
        node.pump()
        self._reopen_later()
        return True

    def lose(self) -> None:
        """The process is gone."""
        self._forget()

    def _forget(self) -> None:
        if self.record is not None:
            self.record.closed = True
        for request in self.confirmations:
            self.host.routes[request] = self.world
        self.confirmations.clear()
        self.kept.clear()
        self._on_this_connection.clear()
        self.state = "idle"

    def _reopen_later(self) -> None:
        self.state = "idle"
        self.world.clock.after(REOPEN_DELAY + self.stream.below(SECOND), self.open)

    def on_output(self, output: Output) -> None:
        record = self.record
        assert record is not None
        kind = type(output)
        if kind is Deliverable:
            self._later()
        elif kind is ConsumerReady:
            if self.state != "opening":
                raise ViolationError("INV-N1", f"{record.name} is ready in state {self.state}")
            self.state = "open"
            self.attached = True
            if record.halted:
                self._go_on_later()
            self._later()
        elif kind is ConsumerFailed:
            if self.state != "opening":
                raise ViolationError("INV-N1", f"{record.name} fails in state {self.state}")
            self._gone()
        elif isinstance(output, Closed):
            if self.state == "opening":
                raise ViolationError("INV-N1", f"{record.name} is closed and was never ready")
            if output.error is not None:
                raise ViolationError("INV-N9", f"{record.name} ends by itself: {output.error}")
            if record.farewell and "acknowledgement_refused" not in self.world.faults:
                self.world.broker_watch.check_acknowledged(record, self._on_this_connection)
            self._gone()
        elif kind is Detached:
            self.attached = False
            self._on_this_connection.clear()
            record.rewinds += 1
            record.unjudged.clear()
        elif kind is Attached:
            self.attached = True
            record.unjudged.clear()
        elif kind is ActiveChanged:
            record.rewinds += 1
        elif isinstance(output, (RequestDone, RequestFailed)):
            places = self.confirmations.pop(output.request, None)
            # Without receipts nothing is known of what was sent over a connection that was lost since.
            if kind is RequestDone and places and self.plan.receipts and self.world.cluster.confirms:
                self.world.broker_watch.check_acknowledged(record, places)
        elif kind is EndOfTopic:
            self._check_end()
        elif isinstance(output, LetterFailed):  # it is asked for, and tried anew
            record.uncopied.add(output.message_id[:2])
        else:
            raise ViolationError("INV-N2", f"{record.name} is told {kind.__name__}")

    def _check_end(self) -> None:
        """BROKER-43: the topic has ended, and the subscription has acknowledged all of it."""
        record = self.record
        assert record is not None
        topic = record.subscription.topic
        if not topic.ended:
            raise ViolationError(
                "BROKER-43", f"{record.name} is told of the end of {topic.name}, which goes on"
            )
        if topic.name in self.world.administrator.ends and not record.subscription.everything_acknowledged():
            raise ViolationError("BROKER-43", f"{record.name} is at the end of {topic.name} too early")
        self.told_end = True

    def _gone(self) -> None:
        record = self.record
        assert record is not None
        record.closed = True
        self.host.routes.pop(self.handle, None)
        self.kept.clear()
        self._on_this_connection.clear()
        self._reopen_later()
