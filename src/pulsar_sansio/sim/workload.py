"""Applications: what people do with a client, the sensible and the rash.

Owns the behaviour of the users of a world. Each application drives one producer or consumer after another
through the public commands of a `Client`, tells the reference model what it asked for and what it was told,
and begins again when its object is closed, refused or lost. It never looks inside a machine.
"""

from typing import TYPE_CHECKING, Any

from ..client.outputs import (
    ActiveChanged,
    Attached,
    Closed,
    ConsumerFailed,
    ConsumerReady,
    Deliverable,
    Detached,
    EndOfTopic,
    Output,
    ProducerFailed,
    ProducerReady,
    Receipts,
    RequestDone,
    RequestFailed,
    SendFailed,
    Writable,
)
from ..model.config import ConsumerSpec, InitialPosition, OutgoingMessage, ProducerSpec
from ..model.errors import ClosedError, ProducerQueueIsFull, TimedOut
from ..model.message import Message
from .clock import MILLISECOND, SECOND
from .model import ConsumerRecord, Place, ProducerRecord, Sent
from .nodes import Application, ClientNode
from .profile import ConsumerPlan, ProducerPlan
from .violations import ViolationError

if TYPE_CHECKING:
    from .world import World

REOPEN_DELAY = 50 * MILLISECOND

HURRY = 5 * MILLISECOND
"""The longest an application waits between two steps once the faults are over."""


class Host:
    """The applications of one client process: gives each its news."""

    def __init__(self, world: "World", index: int) -> None:
        self.world = world
        self.index = index
        self.incarnation = 0
        self.routes: dict[int, Application] = {}
        """Handles and requests -> who gets their news."""
        self.closing: int | None = None
        """The request that closes the whole client."""
        self.node: ClientNode
        self.boot()

    def boot(self) -> None:
        self.incarnation += 1
        self.routes.clear()
        self.closing = None
        self.node = ClientNode(
            self.world, f"client-{self.index}.{self.incarnation}", self.world.client_config, self
        )

    def on_output(self, output: Output) -> None:
        kind = type(output)
        if kind is RequestDone or kind is RequestFailed:
            key = output.request  # type: ignore[union-attr]
            receiver = self.routes.pop(key, None)
            if receiver is None:
                raise ViolationError(
                    "INV-N1", f"{self.node.name}: request {key} is answered, nobody asked (any more)"
                )
        else:
            key = _subject(output)
            receiver = self.routes.get(key)
        self.world.trace.add(self.world.clock.now, self.node.name, f"{kind.__name__} {key}")
        if receiver is not None:
            receiver.on_output(output)


def _subject(output: Any) -> int:
    kind = type(output)
    if kind in (ProducerReady, ProducerFailed, Receipts, SendFailed, Writable):
        subject: int = output.producer
    elif kind in (ConsumerReady, ConsumerFailed, Deliverable, ActiveChanged, EndOfTopic):
        subject = output.consumer
    else:
        subject = output.id
    return subject


class ProducerApp:
    """Sends its quota of messages, through as many producers as it takes."""

    def __init__(self, world: "World", index: int, plan: ProducerPlan) -> None:
        self.world = world
        self.index = index
        self.plan = plan
        self.stream = world.streams.stream(f"producer {index}")
        self.left = plan.messages
        self.number = 0
        self.incarnation = 0
        self.record: ProducerRecord | None = None
        self.handle = 0
        self.state = "idle"
        """"idle", "opening", "open" or "closing"."""
        self.attached = False
        self.attached_at = 0
        """When it was attached or detached for the last time."""
        self.number_healed = plan.messages
        """The first message that was sent in good weather."""
        self.full = False
        self._generation = 0

    @property
    def host(self) -> Host:
        return self.world.hosts[self.plan.client]

    @property
    def done(self) -> bool:
        """Everything is sent and settled."""
        record = self.record
        return not self.left and (record is None or (not record.pending and not record.flushes))

    def start(self) -> None:
        self.world.clock.after(self.stream.below(self.plan.pause), self.open)

    def open(self) -> None:
        if self.state != "idle" or self.world.closing or self.host.closing is not None:
            return
        world, plan = self.world, self.plan
        self.incarnation += 1
        tag = f"p{self.index}.{self.incarnation}"
        spec = ProducerSpec(
            topic=world.topics[plan.topic],
            name=f"producer-{self.index}" if plan.named else None,
            send_timeout=plan.send_timeout,
            max_pending_messages=plan.window,
            batching=plan.batching,
            compression=plan.compression,
            properties={"tag": tag},
        )
        topic = world.model.topics[world.topics[plan.topic]]
        self.record = world.model.producers[tag] = ProducerRecord(tag, topic, spec)
        self.state = "opening"
        self.full = False
        node = self.host.node
        self.handle = node.client.open_producer(world.clock.now, spec)
        self.host.routes[self.handle] = self
        world.trace.add(world.clock.now, node.name, f"open_producer {tag} is {self.handle}")
        node.pump()
        world.injector.opened(self)
        self._generation += 1
        self._later(self._generation)

    def _later(self, generation: int) -> None:
        pause = 1 + self.stream.below(self.plan.pause)
        self.world.clock.after(min(pause, HURRY) if self.world.healed else pause, self._step, generation)

    def _step(self, generation: int) -> None:
        """One thing an application does; then wait."""
        if generation != self._generation or self.state not in ("open", "opening") or self.world.closing:
            return
        plan, stream = self.plan, self.stream
        if self.left and not self.full and (self.state == "open" or stream.chance(300)):
            self._send(1 + stream.below(plan.burst))
        if self.state == "open" and stream.chance(plan.flush_permille):
            self.flush()
        if self.state == "open" and self.world.rash and stream.chance(plan.close_permille):
            self.close_and_reopen()
        if self.state == "open" and self.left and not self.full:
            self._later(generation)

    def _send(self, count: int) -> None:
        count = min(count, self.left)
        node, now, model = self.host.node, self.world.clock.now, self.world.model
        record, plan = self.record, self.plan
        assert record is not None
        batch = [self._message(record, self.number + offset) for offset in range(count)]
        for sent, _ in batch:
            model.announce(sent)
        accepted = 0
        ended = False
        if self.world.healed:
            self.number_healed = min(self.number_healed, self.number)
        publish_time = self.world.wall_time()
        try:
            if count > 1 and self.stream.chance(500):
                tickets = node.client.send_many(
                    now, self.handle, [message for _, message in batch], publish_time
                )
                for ticket in tickets:
                    model.submit(batch[accepted][0], ticket, now)
                    accepted += 1
                if accepted < count:
                    self.full = True
            else:
                for sent, message in batch:
                    ticket = node.client.send(now, self.handle, message, publish_time)
                    model.submit(sent, ticket, now)
                    accepted += 1
        except ProducerQueueIsFull:
            self.full = True
        except ClosedError:
            self.full = ended = True  # its news is on the way
        if self.full and not ended and len(record.pending) < plan.window:
            raise ViolationError(
                "INV-P7", f"{record.tag} is full with {len(record.pending)} of {plan.window} messages pending"
            )
        for sent, _ in batch[accepted:]:
            model.withdraw(sent)
        self.number += accepted
        self.left -= accepted
        self.world.trace.add(now, node.name, f"send {record.tag} {accepted} of {count}")
        node.pump()

    def _message(self, record: ProducerRecord, number: int) -> tuple[Sent, bytes | OutgoingMessage]:
        stream = self.stream
        name = f"{record.tag}/{number}"
        if not stream.chance(self.plan.rich_permille):
            size = stream.below(self.plan.largest)
            payload = name.encode() + b"." * size
            return Sent(record, number, payload, None, {}, 0), payload
        choice = stream.below(6)
        contents: bytes | None = name.encode()
        properties = {"n": name}
        if choice == 0:
            contents = b""
        elif choice == 1:
            contents = None
        elif choice == 2:
            properties = {}
        key = f"key-{stream.below(8)}" if stream.chance(700) else None
        event_time = stream.below(2**40) if stream.chance(300) else 0
        message = OutgoingMessage(contents, key=key, properties=properties, event_time=event_time)
        return Sent(record, number, contents, key, properties, event_time), message

    def flush(self) -> None:
        record = self.record
        assert record is not None
        node = self.host.node
        pending = list(record.pending)
        try:
            request = node.client.flush(self.world.clock.now, self.handle)
        except ClosedError:
            return
        record.flushes[request] = pending
        self.host.routes[request] = self
        node.pump()

    def close_and_reopen(self) -> bool:
        if self.state != "open" or self.host.closing is not None:
            return False
        self.state = "closing"
        node = self.host.node
        try:
            request = node.client.close(self.world.clock.now, self.handle)
        except ClosedError:
            return False
        self.host.routes[request] = self
        self.world.trace.add(self.world.clock.now, node.name, f"close {self.handle}")
        self._is_closed()
        node.pump()
        return True

    def _is_closed(self) -> None:
        """INV-P10: from the close on, nothing is taken."""
        try:
            self.host.node.client.send(self.world.clock.now, self.handle, b"late", 0)
        except ClosedError:
            return
        raise ViolationError("INV-P10", f"{self.handle} is being closed and takes a message")

    def abandon_and_reopen(self) -> bool:
        """Nobody is interested any more, in whatever state it is."""
        if self.state == "idle" or self.host.closing is not None:
            return False
        node = self.host.node
        self.world.trace.add(self.world.clock.now, node.name, f"abandon {self.handle}")
        self.host.routes[self.handle] = self.world
        node.client.abandon(self.world.clock.now, self.handle)
        self._forget("abandoned")
        node.pump()
        self._reopen_later()
        return True

    def lose(self) -> None:
        """The process is gone, and everything that was pending with it."""
        self._forget("lost")

    def _forget(self, outcome: str) -> None:
        record = self.record
        if record is not None:
            record.closed = True
            for sent in record.pending.values():
                sent.outcome = outcome
            record.pending.clear()
            for request in record.flushes:
                self.host.routes[request] = self.world
            record.flushes.clear()
        self.state = "idle"
        self._generation += 1

    def _reopen_later(self) -> None:
        self.state = "idle"
        self.world.clock.after(REOPEN_DELAY + self.stream.below(SECOND), self.open)

    def on_output(self, output: Output) -> None:
        record, model = self.record, self.world.model
        assert record is not None
        kind = type(output)
        if kind is Receipts:
            model.receipts(record, output.first, output.message_ids)  # type: ignore[union-attr]
        elif kind is SendFailed:
            assert isinstance(output, SendFailed)
            self._check_excuse(output)
            model.send_failed(record, output.first, output.count, output.error)
        elif kind is Writable:
            if not self.full:
                raise ViolationError("INV-P7", f"{record.tag} is writable again, and was not full")
            self.full = False
            self._later(self._generation)
        elif kind is ProducerReady:
            if self.state != "opening":
                raise ViolationError("INV-N1", f"{record.tag} is ready in state {self.state}")
            self.state = "open"
            self.attached = True
            record.ready_at = self.attached_at = self.world.clock.now
            self._generation += 1
            self._later(self._generation)
        elif kind is ProducerFailed:
            self._gone(ready=False)
        elif isinstance(output, Closed):
            if output.error is not None:
                raise ViolationError("INV-N9", f"{record.tag} ends by itself: {output.error}")
            self._gone(ready=True)
        elif isinstance(output, (RequestDone, RequestFailed)):
            if output.request in record.flushes:
                if kind is RequestDone:
                    model.flushed(record, output.request)
                else:
                    del record.flushes[output.request]
        elif kind is Detached or kind is Attached:
            self.attached = kind is Attached
            self.attached_at = self.world.clock.now
        else:
            raise ViolationError("INV-N2", f"{record.tag} is told {kind.__name__}")

    def _check_excuse(self, failed: SendFailed) -> None:
        """INV-P1: once everything is healed, a message does not time out while its producer is attached to a
        sound wire from before it is sent until after it should be confirmed."""
        record = self.record
        assert record is not None
        sent = record.pending.get(failed.first)
        if (
            sent is not None
            and isinstance(failed.error, TimedOut)
            and self.attached
            and sent.sent_at > self.attached_at
            and sent.number >= self.number_healed
            and not any(wire.to_broker.lost or wire.to_client.lost for wire in self.host.node.wires.values())
        ):
            raise ViolationError("INV-P1", f"{sent} timed out in good weather")

    def _gone(self, ready: bool) -> None:
        record = self.record
        assert record is not None
        if ready != (self.state != "opening"):
            raise ViolationError("INV-N1", f"{record.tag} ends in state {self.state}")
        if record.pending:
            raise ViolationError(
                "INV-P1", f"{record.tag} is gone and {len(record.pending)} messages are pending"
            )
        record.closed = True
        self.host.routes.pop(self.handle, None)
        self._generation += 1
        self._reopen_later()


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
        )
        self.record = world.model.consumers[name] = ConsumerRecord(name, subscription, spec)
        self.state = "opening"
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
            self._paused_until = 0
            self._scheduled = False
            self._later()

    def pause(self, duration: int) -> None:
        self._paused_until = self.world.clock.now + duration

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
            messages = node.client.take(now, self.handle, plan.take)
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
        if self.state == "open" and stream.chance(plan.confirm_permille):
            self.confirm()
        node.pump()
        if self.state == "open" and (self.kept or node.client.available(self.handle)):
            self._later()

    def _decide(self, messages: list[Message]) -> None:
        plan, stream, model = self.plan, self.stream, self.world.model
        record = self.record
        assert record is not None
        client, now = self.host.node.client, self.world.clock.now
        cumulative = record.subscription.kind.cumulative
        rash = self.world.rash
        places = [model.deliver(record, message) for message in messages]
        for place, message in zip(places, messages, strict=True):
            self.kept.pop(place, None)
            if rash and stream.chance(plan.nack_permille):
                model.negative_acknowledge(record, place)
                client.negative_acknowledge(
                    now, self.handle, message if stream.chance(500) else message.message_id
                )
                self.host.node.pump()  # what is asked for because of it is seen before the next verdict
                if stream.chance(200):
                    self.kept[place] = message  # to be acknowledged after all
            elif rash and stream.chance(plan.keep_permille):
                self.kept[place] = message
            elif cumulative and stream.chance(plan.cumulative_permille):
                self._acknowledge_cumulative(place, message)
            elif stream.chance(800):
                self._acknowledge(place)
                client.acknowledge(now, self.handle, message)
            else:
                self._acknowledge(place)
                client.acknowledge(now, self.handle, message.message_id)

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
        for place in self.kept:
            self.world.model.negative_acknowledge(record, place)
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
        elif kind is Attached:
            self.attached = True
        elif kind is ActiveChanged:
            record.rewinds += 1
        elif isinstance(output, (RequestDone, RequestFailed)):
            places = self.confirmations.pop(output.request, None)
            # Without receipts nothing is known of what was sent over a connection that was lost since.
            if kind is RequestDone and places and self.plan.receipts:
                self.world.broker_watch.check_acknowledged(record, places)
        elif kind is not EndOfTopic:
            raise ViolationError("INV-N2", f"{record.name} is told {kind.__name__}")

    def _gone(self) -> None:
        record = self.record
        assert record is not None
        record.closed = True
        self.host.routes.pop(self.handle, None)
        self.kept.clear()
        self._on_this_connection.clear()
        self._reopen_later()
