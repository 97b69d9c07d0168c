"""An application that sends its quota of messages.

Owns the behaviour of one user of producers. The application drives one producer after another through the
public commands of a `Client`, records commands and outputs in the reference model, and begins again when its
producer is closed, refused or lost. It never looks inside a machine.
"""

from math import inf
from typing import TYPE_CHECKING, Any

from pulsar_sansio.client.outputs import (
    Attached,
    Closed,
    Detached,
    InterceptorFailed,
    Output,
    ProducerFailed,
    ProducerReady,
    Receipts,
    RequestDone,
    RequestFailed,
    SendFailed,
    Writable,
)
from pulsar_sansio.model.config import ProducerSpec, RoutingMode
from pulsar_sansio.model.errors import (
    ClosedError,
    NotAllowed,
    ProducerFenced,
    ProducerQueueIsFull,
    PulsarError,
    TimedOut,
    TopicTerminated,
)
from pulsar_sansio.model.interceptors import ProducerInterceptor
from pulsar_sansio.model.schema import Schema

from ..engine.clock import SECOND
from ..engine.failures import ViolationError
from ..engine.profile import ProducerPlan
from ..model.partitioned_topics import PartitionedTopic, by_size
from ..model.records.producer_record import ProducerRecord
from ..model.records.topic_record import TopicRecord
from ..model.schemas.topic_schemas import ADOPTING
from .client_process import HURRY, REOPEN_DELAY, ClientProcess, was_misled
from .interceptor_probes import ProbeFailure, RaisingInterceptor, WatchingInterceptor, interceptors
from .key_readers import encrypting
from .workload import written

if TYPE_CHECKING:
    from ..engine.surroundings import Surroundings


MOST_CLOSES = 3
"""Closes that one application decides on by itself: each costs much work before the next message is sent."""


class ProducerApp:
    """Sends its quota of messages, through as many producers as the application opens."""

    def __init__(self, world: "Surroundings", index: int, plan: ProducerPlan) -> None:
        self.world = world
        self.index = index
        self.plan = plan
        self.host: ClientProcess = world.hosts[plan.client]
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
        """Virtual time of the last attachment or detachment."""
        self.number_healed: float = inf
        """The number of the first message sent after healing that waits for nothing begun before."""
        self._timed_out_at = -1
        """Virtual time at which a message from before healing timed out, and with it all sent since
        (PROD-47)."""
        self.full = False
        self.ended = False
        """The topic has ended: nothing more can be sent."""
        self._closes_left = MOST_CLOSES
        self._unsure = False
        """A message was not confirmed: the next producer sends it again, and this one sends nothing more."""
        self._partitions = 0
        """The number of partitions that the producer knows."""
        self.left_for_good = False
        """The application has sent everything and leaves a topic that other producers contend for."""
        self._generation = 0
        self._interceptors: tuple[ProducerInterceptor, ...] = ()
        self._interruptions = 0
        """The number of reports of a raising interceptor that the application has got."""

    @property
    def done(self) -> bool:
        """True when every message is sent and has an outcome."""
        record = self.record
        return (
            not self.left
            and not self._unsure
            and (record is None or (not record.pending and not record.flushes))
        )

    @property
    def knows_all_partitions(self) -> bool:
        """True when an open producer knows the final number of partitions and, unless it is lazy, has opened
        those that have not ended."""
        topic = self.topic
        if isinstance(topic, TopicRecord):
            return True
        statistics = self.host.node.client.partition_statistics(self.handle)
        topics = self.world.model.topics
        return len(statistics) == topic.count and (
            self.plan.lazy or all(each.connected or topics[each.topic].ended for each in statistics)
        )

    def _check_partitions(self) -> None:
        """PART-12: a producer never knows of fewer partitions than before."""
        count = len(self.host.node.client.partition_statistics(self.handle))
        if count < self._partitions:
            raise ViolationError(
                "PART-12", f"{self.handle} has {count} partitions, it had {self._partitions}"
            )
        self._partitions = count

    @property
    def topic(self) -> TopicRecord | PartitionedTopic:
        world, plan = self.world, self.plan
        if plan.appearing is not None:
            return world.model.topics[world.topics.appearing(plan.appearing)]
        if plan.partitioned is None:
            return world.model.topics[world.topics.names[plan.topic]]
        return world.model.partitioned[world.topics.partitioned[plan.partitioned]]

    def start(self) -> None:
        appearing = self.plan.appearing
        if appearing is not None and self.world.topics.appearing(appearing) not in self.world.model.topics:
            return  # the application begins when the topic exists
        self.world.clock.after(self.stream.below(self.plan.pause), self.open)

    def open(self) -> None:
        if self.state != "idle" or self.ended or self.world.closing or self.host.closing is not None:
            return
        if self.left_for_good:
            return
        world, plan = self.world, self.plan
        self.incarnation += 1
        tag = f"p{self.index}.{self.incarnation}"
        self._interceptors = interceptors(plan.interceptors, tag, world.streams.stream(f"interceptors {tag}"))
        self._interruptions = 0
        spec = ProducerSpec(
            topic=self.topic.name,
            name=f"producer-{self.index}" if plan.named else None,
            send_timeout=plan.send_timeout,
            max_pending_messages=plan.window,
            batching=plan.batching,
            compression=plan.compression,
            properties={"tag": tag},
            chunking=bool(plan.chunk_size),
            chunk_max_message_size=plan.chunk_size or None,
            access_mode=plan.access,
            routing=by_size if plan.routing == "by_size" else RoutingMode(plan.routing),
            hashing=plan.hashing,
            lazy_start=plan.lazy,
            max_pending_messages_across_partitions=plan.across,
            partitions_update_interval=plan.update_interval,
            initial_sequence_id=plan.initial,
            interceptors=self._interceptors,
            schema=self._schema(tag),
            **encrypting(world, tag, self.stream, several=plan.partitioned is not None),
        )
        topic = self.topic
        self.record = world.model.producers[tag] = ProducerRecord(
            tag, topic, spec, contested=plan.contested, explicit=plan.explicit
        )
        if world.model.schemas is not None and spec.schema is not None:
            self.record.definition = world.model.schemas.definition_of(spec.schema.info)
        self.state = "opening"
        self._partitions = 0
        self.attached = False
        self.full = False
        node = self.host.node
        self.handle = node.client.open_producer(world.clock.now, spec)
        self.host.routes[self.handle] = self
        world.trace.add(world.clock.now, node.name, f"open_producer {tag} is {self.handle}")
        node.pump()
        world.fault_schedule.opened(self)
        self._generation += 1
        self._later(self._generation)

    def _schema(self, tag: str) -> Schema[Any] | None:
        """Choose the schema of the next producer; None is bytes."""
        world = self.world
        if world.model.schemas is None:
            return None
        return world.model.schemas.for_producer(world.streams.stream(f"schema of {tag}"), world.rash)

    @property
    def _waits_for_definition(self) -> bool:
        """True while a producer that adopts the definition of its topic may not have it."""
        record = self.record
        adopts = record is not None and record.spec.schema is ADOPTING
        return adopts and self.state != "open"

    def _later(self, generation: int) -> None:
        pause = 1 + self.stream.below(self.plan.pause)
        self.world.clock.after(min(pause, HURRY) if self.world.healed else pause, self._step, generation)

    def _step(self, generation: int) -> None:
        """Do one step, and schedule the next."""
        if generation != self._generation or self.state not in ("open", "opening") or self.world.closing:
            return
        plan, stream = self.plan, self.stream
        if self.state == "open" and self.plan.partitioned is not None:
            self._check_partitions()
        may_send = self.left and not self.full and not self._unsure and not self._waits_for_definition
        if may_send and (self.state == "open" or stream.chance(300)):
            self._send(1 + stream.below(plan.burst))
        if self.state == "open" and stream.chance(plan.flush_permille):
            self.flush()
        rash = self.world.rash and self._closes_left
        if self.state == "open" and rash and stream.chance(plan.close_permille):
            self._closes_left -= 1
            self.close_and_reopen()
        if self.plan.contested and self.state == "open" and self.done:
            self.left_for_good = self.close_and_reopen()
        if self.state == "open" and not self.full and (self.left or self.plan.contested):
            self._later(generation)

    def _send(self, count: int) -> None:
        count = min(count, self.left)
        node, now, model = self.host.node, self.world.clock.now, self.world.model
        record = self.record
        assert record is not None
        if self.world.profile.memory_limit is not None and self.stream.chance(300):
            self._check_memory()
        publish_time = self.world.wall_time()
        batch = [
            written(self.stream, self.plan, record, self.number + offset, publish_time, model.schemas)
            for offset in range(count)
        ]
        for sent, _ in batch:
            if self.plan.explicit:
                model.same.setdefault((self.index, sent.number), []).append(sent)
            model.announce(sent)
        accepted = 0
        ended = False
        if self.world.healed and not self._waits_for_what_was():
            self.number_healed = min(self.number_healed, self.number)
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
            self.full = ended = True  # an output reports the end
        limited = self.world.profile.memory_limit is not None
        if self.full and not ended and not limited and len(record.pending) < record.least_window:
            raise ViolationError(
                "INV-P7",
                f"{record.tag} is full with {len(record.pending)} of {record.least_window} messages pending",
            )
        for sent, _ in batch[accepted:]:
            model.withdraw(sent)
        self.number += accepted
        self.left -= accepted
        self.world.trace.add(now, node.name, f"send {record.tag} {accepted} of {count}")
        node.pump()

    def _waits_for_what_was(self) -> bool:
        """True while writes begun, wires blocked, or schemas being registered before healing are
        outstanding."""
        now, schemas, record = self.world.clock.now, self.world.model.schemas, self.record
        if schemas is not None and record is not None and schemas.registrations.may_wait(record.topic.name):
            return True
        return any(node.catches_up for node in self.world.brokers) or any(
            max(wire.to_broker.blocked_until, wire.to_client.blocked_until) > now
            for wire in self.host.node.wires.values()
        )

    def _check_memory(self) -> None:
        """INV-P7: the payloads of pending messages count towards the memory limit, whichever producer sent
        them."""
        held = self.host.node.client.memory_held
        apps = [app for app in self.world.apps.producers if app.host is self.host and app.record is not None]
        pending = sum(
            len(sent.payload or b"")
            for app in apps
            if app.record is not None
            for sent in app.record.pending.values()
        )
        copy_topics = (
            self.world.model.copy_topics
        )  # copies that consumers send count too, and no output reports how many
        if held < pending or (held > pending + self.host.abandoned_bytes and not copy_topics):
            raise ViolationError(
                "INV-P7", f"{self.host.node.name} counts {held} bytes, {pending} are pending"
            )

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
            self.host.ask_to_close(self)
        except ClosedError:
            return False
        self._is_closed()
        node.pump()
        return True

    def _begin_again(self) -> None:
        self.close_and_reopen()

    def _is_closed(self) -> None:
        """INV-P10: after a close the client accepts no message."""
        try:
            self.host.node.client.send(self.world.clock.now, self.handle, b"late", 0)
        except ClosedError:
            return
        raise ViolationError("INV-P10", f"{self.handle} is being closed and takes a message")

    def abandon_and_reopen(self) -> bool:
        """Abandon the producer, in whatever state it is."""
        if self.state == "idle" or self.host.closing is not None:
            return False
        node = self.host.node
        self.world.trace.add(self.world.clock.now, node.name, f"abandon {self.handle}")
        self.host.routes[self.handle] = self.world
        node.client.abandon(self.world.clock.now, self.handle)
        if self.record is not None:
            pending = self.record.pending.values()
            self.host.abandoned_bytes += sum(len(sent.payload or b"") for sent in pending)
        self._forget("abandoned")
        node.pump()
        self._reopen_later()
        return True

    def retire(self) -> None:
        """Stop sending, because the topic will be deleted."""
        self.left = 0
        self.left_for_good = True
        self.abandon_and_reopen()

    def send_all_again(self) -> None:
        """Send the whole quota again, because the topic exists again."""
        self.left = self.plan.messages
        self.left_for_good = False
        self.start()

    def lose(self) -> None:
        """The client process is lost, with everything that was pending."""
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
            self._send_again()
        self.state = "idle"
        self._generation += 1

    def _send_again(self) -> None:
        """An application that chooses sequence ids goes back to its first message that is not known to be
        stored."""
        record = self.record
        self._unsure = False
        if not self.plan.explicit or self.ended or record is None:
            return
        for sent in record.sent:
            if sent.outcome not in ("confirmed", "refused"):
                self.left += self.number - sent.number
                self.number = sent.number
                return

    def _reopen_later(self) -> None:
        self.state = "idle"
        if not self.ended:
            self.world.clock.after(REOPEN_DELAY + self.stream.below(SECOND), self.open)

    def on_output(self, output: Output) -> None:
        record, model = self.record, self.world.model
        assert record is not None
        kind = type(output)
        for interceptor in self._watching:
            self._check_interceptor(interceptor, output)
        if kind is Receipts:
            model.receipts(record, output.first, output.message_ids)  # type: ignore[union-attr]
        elif kind is SendFailed:
            assert isinstance(output, SendFailed)
            self._check_excuse(output)
            model.send_failed(record, output.first, output.count, output.error)
            if self.plan.explicit and not self._unsure and not isinstance(output.error, NotAllowed):
                self._unsure = True
                self.world.clock.after(0, self._begin_again)
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
        elif isinstance(output, ProducerFailed):
            self._check_topic_ended(output.error)
            self._gone(ready=False)
        elif isinstance(output, Closed):
            self._check_topic_ended(output.error)
            fenced = isinstance(output.error, ProducerFenced) and record.contested
            misled = was_misled(self.world, output.error)
            if output.error is not None and not (self.ended or fenced or misled):
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
        elif isinstance(output, InterceptorFailed):
            self._interrupted(output.error)
        else:
            raise ViolationError("INV-N2", f"{record.tag} is told {kind.__name__}")

    @property
    def _watching(self) -> list[WatchingInterceptor]:
        return [each for each in self._interceptors if isinstance(each, WatchingInterceptor)]

    def _check_interceptor(self, interceptor: WatchingInterceptor, output: Output) -> None:
        """INTC-01: the interceptor gets an outcome before the application does."""
        assert self.record is not None
        pending = self.record.pending
        if isinstance(output, Receipts):
            for ticket, message_id in enumerate(output.message_ids, output.first):
                if ticket in pending:
                    interceptor.check(pending[ticket], message_id)
        elif isinstance(output, SendFailed):
            for ticket in range(output.first, output.first + output.count):
                if ticket in pending:
                    interceptor.check(pending[ticket], output.error)
        elif isinstance(output, (Closed, ProducerFailed)):
            interceptor.check_end()

    def _interrupted(self, error: Exception) -> None:
        """An interceptor has raised: only the raising one may."""
        if not isinstance(error, ProbeFailure):
            raise error
        self._interruptions += 1
        raised = sum(each.raised for each in self._interceptors if isinstance(each, RaisingInterceptor))
        if self._interruptions > raised:
            raise ViolationError("INTC-01", f"{self._interruptions} news of {raised} interruptions")

    def _check_topic_ended(self, error: PulsarError | None) -> None:
        """End the work when the topic has ended."""
        if isinstance(error, TopicTerminated):
            assert self.record is not None
            if not self.record.topic.ended:
                raise ViolationError(
                    "BROKER-43", f"{self.record.tag} is told {error}, and no administrator ended it"
                )
            self.ended = True
            self.left = 0

    def _check_excuse(self, failed: SendFailed) -> None:
        """INV-P1: after healing no message times out while its producer is attached to a sound wire. The
        exception is a send timeout shorter than two writes, each of one and a half times the average
        duration: the message's own and the one before."""
        record = self.record
        assert record is not None
        sent = record.pending.get(failed.first)
        if isinstance(failed.error, ClosedError) and self.state == "open" and self.host.closing is None:
            raise ViolationError("INV-P1", f"{sent} fails because of a close without a request")
        if (
            sent is not None
            and not self.plan.lazy
            and isinstance(failed.error, TimedOut)
            and self.attached
            and sent.sent_at > self.attached_at
            and sent.number >= self.number_healed
            and self.plan.send_timeout * SECOND > 3 * self.world.profile.store_delay
            and not any(wire.to_broker.lost or wire.to_client.lost for wire in self.host.node.wires.values())
        ):
            if self.world.clock.now != self._timed_out_at:
                raise ViolationError("INV-P1", f"{sent} timed out in good weather")
        elif isinstance(failed.error, TimedOut):
            self._timed_out_at = self.world.clock.now

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
        self._send_again()
        self.host.routes.pop(self.handle, None)
        self._generation += 1
        self._reopen_later()
