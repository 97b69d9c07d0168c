"""An application that receives and acknowledges messages as its plan says.

Owns the behaviour of one user of consumers. The application drives one consumer after another through the
public commands of a `Client`, records commands and outputs in the reference model, and begins again when its
consumer is closed, refused or lost. It never looks inside a machine.
"""

from itertools import groupby
from typing import TYPE_CHECKING

from pulsar_sansio.client.outputs import (
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
    Undecryptable,
)
from pulsar_sansio.model.config import (
    ConsumerSpec,
    DeadLetterPolicy,
    InitialPosition,
    KeySharedPolicy,
    RedeliveryBackoff,
    SubscriptionType,
    TopicsPattern,
)
from pulsar_sansio.model.encryption import ConsumerCryptoFailureAction
from pulsar_sansio.model.errors import ClosedError

from ..engine.clock import MILLISECOND, SECOND
from ..engine.failures import ViolationError
from ..engine.profile import GROWN, ConsumerPlan
from ..model.key_ranges import HASHES
from ..model.multi_topics_subscriptions import GroupRecord
from ..model.records.consumer_record import ConsumerRecord
from .ack_behaviour import AckBehaviour
from .client_process import HURRY, REOPEN_DELAY, was_misled
from .key_readers import decrypting_perhaps, encrypting_letters

if TYPE_CHECKING:
    from ..engine.surroundings import Surroundings


GROWING = RedeliveryBackoff(0.1, GROWN, 3.0)
"""The redelivery delay, where it grows with every delivery."""

ASKED_FOR = 4 * SECOND
"""Nanoseconds after which every kind of consumer has asked again for a message whose dead-letter or retry
copy failed."""

MOST_CLOSES = 3
"""Closes that one application decides on by itself, and redeliveries of everything; further ones show nothing
new."""


def dead_letters(subscription: int) -> str:
    """Return the dead-letter topic of a subscription."""
    return f"persistent://public/default/dead-{subscription}"


class ConsumerApp(AckBehaviour):
    """Takes messages and acknowledges them as its plan says, through as many consumers as the application
    opens."""

    several = False
    """True for an application with consumers of several topics or partitions."""

    def __init__(self, world: "Surroundings", index: int, plan: ConsumerPlan) -> None:
        super().__init__(world, index, plan)
        self.reached_end = False
        """The client has reported that the topic has ended and everything is acknowledged."""
        self.asks_until = 0
        """Virtual time until which a message whose copy failed may still be asked for."""
        self.taken = 0
        """Messages taken since the consumer was opened."""
        self._opened_rashly = True
        """The consumer was opened before healing: its key reader may have had no key."""
        self._paused_until = 0
        self._scheduled = False
        self._stepping = False
        """True while the application takes messages; at the end of that step it looks for more by itself."""
        self._turn = 0
        self._closes_left = MOST_CLOSES
        self._redeliveries_left = MOST_CLOSES

    def start(self) -> None:
        self.world.clock.after(self.stream.below(self.plan.pause), self.open)

    def open(self) -> None:
        if self.state != "idle" or self.world.closing or self.host.closing is not None:
            return
        world = self.world
        self.incarnation += 1
        self._opened_rashly = world.rash
        record = self.record = self._new_record()
        spec = record.spec
        node = self.host.node
        record.halted = spec.start_paused
        if spec.auto_scaled_receiver_queue_size:  # no frame shows that the queue has grown
            world.rules.excuse(node.name, "INV-C6")
        self.state = "opening"
        self.reached_end = False
        self.kept.clear()
        self._acknowledged = []
        self.handle = node.client.subscribe(world.clock.now, spec)
        self.taken = 0
        self.host.routes[self.handle] = self
        world.client_watch.handles[record.name] = self.handle
        world.trace.add(world.clock.now, node.name, f"subscribe {record.name} is {self.handle}")
        node.pump()
        world.fault_schedule.opened(self)

    def _new_record(self) -> ConsumerRecord | GroupRecord:
        """Make the record of the next consumer."""
        world, plan = self.world, self.plan
        name = f"c{self.index}.{self.incarnation}"
        topic = world.model.topics[world.topics.names[plan.topic]]
        subscription = topic.subscriptions[f"sub-{plan.subscription}"]
        kind = world.profile.subscriptions[plan.subscription].kind
        spec = self._spec(topic.name, subscription.name, kind, name)
        record = world.model.consumers[name] = ConsumerRecord(name, subscription, spec)
        return record

    def _spec(
        self,
        topic: str | tuple[str, ...] | TopicsPattern,
        subscription: str,
        kind: SubscriptionType,
        name: str,
    ) -> ConsumerSpec:
        """Return the spec of a consumer as the plan says."""
        world, plan = self.world, self.plan
        return ConsumerSpec(
            topic=topic,
            subscription=subscription,
            subscription_type=kind,
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
                DeadLetterPolicy(
                    plan.dead_letters,
                    topic=dead_letters(plan.subscription),
                    **encrypting_letters(world, name),
                )
                if plan.dead_letters
                else None
            ),
            acknowledgement_timeout=plan.timeout,
            acknowledgement_timeout_tick=plan.tick,
            acknowledgement_timeout_backoff=GROWING if plan.growing and plan.timeout else None,
            negative_acknowledgement_backoff=GROWING if plan.growing else None,
            key_shared=self._keys() if plan.ranges else None,
            schema=world.reader_schema(name),
            **decrypting_perhaps(world, name, self.index, self.stream, several=self.several),
        )

    def _keys(self) -> KeySharedPolicy:
        """Return the consumer's own key ranges or, when it is greedy, the whole hash range."""
        plan = self.plan
        if self.world.rash and self.stream.chance(plan.greedy_permille):
            return KeySharedPolicy(((0, HASHES - 1),))
        return KeySharedPolicy(tuple((first, last) for first, last in plan.ranges))

    def wake(self) -> None:
        """Resume work on what is available, paused or not."""
        if self.state == "open":
            if self._has_to_begin_again():
                self.close_and_reopen()
                return
            self.resume(self.incarnation)
            self._paused_until = 0
            self._scheduled = False
            self._later()

    def _has_to_begin_again(self) -> bool:
        """True when the consumer is wrong after healing."""
        return self._has_keys_of_others() or self._withholds_for_good()

    def _withholds_for_good(self) -> bool:
        """True when the consumer may have withheld a message that it never asks for, and when it has no key
        reader."""
        record = self.record
        if self.world.profile.encryption is None or record is None or not self._opened_rashly:
            return False
        spec = record.spec
        fails = spec.crypto_failure_action is ConsumerCryptoFailureAction.FAIL
        return spec.crypto_key_reader is None or (fails and not spec.acknowledgement_timeout)

    def _has_keys_of_others(self) -> bool:
        """True when a consumer has other key ranges than its own, which is wrong after healing."""
        record = self.record
        return bool(self.plan.ranges) and record is not None and record.spec.key_shared != self._keys()

    def pause(self, duration: int) -> None:
        self._paused_until = self.world.clock.now + duration

    def halt(self) -> bool:
        """Pause the consumer: it grants no more permits for a while."""
        record = self.record
        if self.state != "open" or self.host.closing is not None or record is None or record.halted:
            return False
        self.host.node.pump()  # permits granted earlier are seen first
        self.world.trace.add(self.world.clock.now, self.host.node.name, f"pause {self.handle}")
        record.halted = True
        self.host.node.client.pause(self.world.clock.now, self.handle)
        self._resume_later()
        return True

    def _resume_later(self) -> None:
        pause = self.stream.spread(10 * MILLISECOND, 3 * SECOND)
        self.world.clock.after(pause, self.resume, self.incarnation)

    def resume(self, incarnation: int) -> None:
        """Resume the consumer."""
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
        """Take what is available, and decide about these messages and the kept ones."""
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
        self._stepping = True
        if plan.take == 1:
            message = node.client.receive(now, self.handle)
            messages = [] if message is None else [message]
        else:
            messages = list(node.client.take(now, self.handle, plan.take))
        self.taken += len(messages)
        assert self.record is not None
        self.record.wanting = not messages
        # With a queue of size 0 the application must look for the next message, or none arrives.
        looks_again = messages and not plan.queue
        if messages:
            world.trace.add(now, node.name, f"take {self.handle} {len(messages)}")
        for undecrypted, several in groupby(messages, lambda message: message.entry.undecrypted):
            if undecrypted:
                self._acknowledge_undecrypted(several)
            elif world.rash and world.fault_schedule.refuses():
                self._refuse(list(several))
            else:
                self._decide(list(several))
        if not world.rash:
            self._finish_kept()
        else:
            if self._redeliveries_left and stream.chance(plan.redeliver_permille):
                self._redeliveries_left -= 1
                self.redeliver()
            if self.kept and stream.chance(300):
                self._finish_kept()
            if self.state == "open" and self._closes_left and stream.chance(plan.close_permille):
                self._closes_left -= 1
                self.close_and_reopen()
            if plan.halt_permille and stream.chance(plan.halt_permille):
                self.halt()
        if self.state == "open" and stream.chance(plan.confirm_permille):
            self.confirm()
        node.pump()
        self._stepping = False
        if self.state == "open" and (self.kept or looks_again or node.client.available(self.handle)):
            self._later()

    def close_and_reopen(self) -> bool:
        if self.state != "open" or self.host.closing is not None:
            return False
        self.state = "closing"
        node = self.host.node
        self.host.ask_to_close(self)
        self._is_closed()
        node.pump()
        return True

    def _is_closed(self) -> None:
        """INV-C14: after a close the client delivers nothing."""
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
        """The client process is lost."""
        self._forget()

    def _forget(self) -> None:
        if self.record is not None:
            self.record.closed = True
        for request in [*self.confirmations, *self._reconsuming]:
            self.host.routes[request] = self.world
        self.confirmations.clear()
        self._reconsuming.clear()
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
            if not self._stepping:
                self._later()
        elif kind is ConsumerReady:
            if self.state != "opening":
                raise ViolationError("INV-N1", f"{record.name} is ready in state {self.state}")
            self.state = "open"
            self.attached = True
            if not self.world.rash and self._has_to_begin_again():
                self.close_and_reopen()
                return
            if record.halted:
                self._resume_later()
            self._later()
        elif kind is ConsumerFailed:
            if self.state != "opening":
                raise ViolationError("INV-N1", f"{record.name} fails in state {self.state}")
            self._gone()
        elif isinstance(output, Closed):
            if self.state == "opening":
                raise ViolationError("INV-N1", f"{record.name} is closed and was never ready")
            if output.error is not None and not was_misled(self.world, output.error):
                raise ViolationError("INV-N9", f"{record.name} ends by itself: {output.error}")
            if "acknowledgement_refused" not in self.world.faults:
                self._check_acknowledged(
                    [each for each in self._on_this_connection if each[0].close_answered]
                )
            self._gone()
        elif kind is Detached:
            self.attached = False
            self._on_this_connection.clear()
            self._rewind(1)
        elif kind is Attached:
            self.attached = True
            self._rewind(0)
        elif isinstance(output, ActiveChanged):
            self._active_changed(output)
        elif isinstance(output, (RequestDone, RequestFailed)):
            if kind is RequestDone:
                self._check_reconsumed(output.request)
            self._reconsuming.pop(output.request, None)
            confirmed = self.confirmations.pop(output.request, None)
            # Without receipts, nothing is known of acknowledgements sent over a connection lost since.
            if kind is RequestDone and confirmed and self.plan.receipts and self.world.cluster.confirms:
                self._check_acknowledged(confirmed)
        elif kind is EndOfTopic:
            self._check_end()
        elif isinstance(output, LetterFailed):  # the client asks for the message and copies it again
            self.asks_until = self.world.clock.now + ASKED_FOR
            for each in self.records:
                each.uncopied.update(each.subscription.topic.chunks_of(output.message_id[:2]))
        else:
            self._on_other_output(output)

    def _on_other_output(self, output: Output) -> None:
        """Take an output that consumers of one topic must not get, or of an entry that was withheld."""
        assert self.record is not None
        if isinstance(output, Undecryptable):
            self._check_undecryptable(output)
            return
        raise ViolationError("INV-N2", f"{self.record.name} is told {type(output).__name__}")

    def _check_undecryptable(self, output: Undecryptable) -> None:
        """INV-E3: the entry could not be decrypted, and goes the way that the application chose."""
        record = self.record
        assert record is not None
        discards = record.spec.crypto_failure_action is ConsumerCryptoFailureAction.DISCARD
        position = output.message_id[:2]
        may_skip = any(each.withheld.may_skip(position) for each in self.records)
        if output.discarded is not discards or not may_skip:
            raise ViolationError("INV-E3", f"{record.name}: {position} is undecryptable: {output.error}")

    def _rewind(self, steps_back: int) -> None:
        """The consumer has lost its connection, or is attached again."""
        for record in self.records:
            record.rewinds += steps_back
            record.redelivery_timing.clear()

    def _active_changed(self, output: ActiveChanged) -> None:
        for record in self.records:
            record.rewinds += 1

    def _check_end(self) -> None:
        """BROKER-43: the topic has ended, and the subscription has acknowledged all of it."""
        record = self.record
        assert isinstance(record, ConsumerRecord)
        topic = record.subscription.topic
        if not topic.ended:
            raise ViolationError(
                "BROKER-43", f"{record.name} is told of the end of {topic.name}, which has not ended"
            )
        if topic.name in self.world.administrator.ends and not record.subscription.everything_acknowledged():
            raise ViolationError("BROKER-43", f"{record.name} is at the end of {topic.name} too early")
        self.reached_end = True

    def _gone(self) -> None:
        record = self.record
        assert record is not None
        record.closed = True
        self.host.routes.pop(self.handle, None)
        self.kept.clear()
        self._on_this_connection.clear()
        self._reopen_later()
