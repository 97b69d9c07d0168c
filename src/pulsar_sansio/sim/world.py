"""A world: one seed brought to life, from boot to the last check.

Owns the phases. *Run*: applications work while faults happen. *Heal*: no new faults, good weather. *Drain*:
all that was sent settles, all that is stored is acknowledged, within a bound of virtual time. *Close*: every
client is closed and must be quiet. *Check*: a fresh reader reads every log from the beginning, and the
finished history is held against the reference model. Everything runs in one thread, in the order of one
heap.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from traceback import format_exc
from typing import Any

from ..client.outputs import (
    ConsumerFailed,
    ConsumerReady,
    Deliverable,
    Detached,
    Output,
    RequestDone,
    RequestFailed,
)
from ..model.config import ClientConfig, ConsumerSpec, InitialPosition, SubscriptionType
from .checker import Side
from .clock import MILLISECOND, SECOND, Clock
from .faults import Injector, Weather
from .mischief import Mischief
from .model import AUDIT, ConsumerRecord, Place, ReferenceModel, SubscriptionRecord, TopicRecord
from .network import Conditions, Network, Pipe, Wire
from .nodes import BrokerNode, ClientNode, LivelockError
from .profile import Profile, draw
from .rule_watch import RuleWatch
from .streams import Stream, Streams
from .trace import Trace
from .transcript import describe
from .violations import LivenessError, Outcome, ViolationError
from .watch_broker import BrokerWatch
from .watch_client import ClientWatch, held_back
from .workload import ConsumerApp, Host, ProducerApp

WALL_CLOCK_AT_START = 1_700_000_000_000
"""Milliseconds since 1970."""

POLL = 50 * MILLISECOND
"""How often the end of a phase is looked for."""

EVENT_LIMIT = 2_000_000
"""More events than any seed needs; beyond it something runs in circles."""


@dataclass(slots=True)
class SeedReport:
    """What became of one seed."""

    seed: int
    outcome: Outcome = Outcome.PASSED
    rule: str = ""
    text: str = ""
    phase: str = ""
    messages: int = 0
    """Delivered and acknowledged."""
    sent: int = 0
    virtual_ns: int = 0
    events: int = 0
    faults: dict[str, int] = field(default_factory=dict)
    trace_hash: str = ""
    transcript: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        if self.outcome is Outcome.PASSED:
            return f"seed {self.seed} passed"
        return f"seed {self.seed} failed in phase {self.phase}: {self.rule}: {self.text}"


class _ClientEnds(ClientWatch):
    """What arrives at clients goes to the checker of rules, too."""

    def __init__(self, world: "World") -> None:
        super().__init__(world.model)
        self._rules = world.rules

    def got(self, wire: Wire, kind: int, command: Any) -> None:
        self._rules.seen(Side.CLIENT, wire.client.name, wire, Side.BROKER, kind, command)
        super().got(wire, kind, command)

    def forget(self, wire: Wire) -> None:
        self._rules.wire_closed(Side.CLIENT, wire.client.name, wire)
        super().forget(wire)


class _BrokerEnds(BrokerWatch):
    """What arrives at brokers goes to the checker of rules, too."""

    def __init__(self, world: "World") -> None:
        super().__init__(world.model, world.profile.broker.batch_index_acknowledgement)
        self._rules = world.rules

    def got(self, wire: Wire, kind: int, command: Any) -> None:
        self._rules.seen(Side.BROKER, _process(wire), wire, Side.CLIENT, kind, command)
        super().got(wire, kind, command)

    def wire_closed(self, wire: Wire) -> None:
        self._rules.wire_closed(Side.BROKER, _process(wire), wire)
        super().wire_closed(wire)


def _process(wire: Wire) -> str:
    """The client process at the far end, as the broker process sees it: what is remembered of it ends with
    either of the two."""
    broker = wire.broker
    assert isinstance(broker, BrokerNode)
    return f"{broker.name}.{broker.incarnation} with {wire.client.name}"


class World:
    """One run. `run()` may be called once."""

    def __init__(self, seed: int, profile: Profile | None = None, keep_trace: bool = False) -> None:
        self.seed = seed
        self.streams = Streams(seed)
        self.profile = profile if profile is not None else draw(self.streams)
        self.clock = Clock(self.streams.stream("epoch").between(10**15, 10**17))
        self.trace = Trace(keep_trace)
        self.faults: dict[str, int] = {}
        self.model = ReferenceModel()
        self.rules = RuleWatch()
        self.client_watch = _ClientEnds(self)
        self.broker_watch = _BrokerEnds(self)
        self.weather = Weather(self, self.streams.stream("weather"), self.profile.store_delay)
        self.mischief = Mischief(self, self.streams.stream("mischief"))
        conditions = Conditions(self.profile.latency, self.profile.jitter, self.profile.cut_permille)
        network_stream = self.streams.stream("network")
        self.network = Network(self.clock, network_stream, self.trace, conditions, self._wrote, self._garbage)
        injector_stream = self.streams.stream("faults")
        self.injector = Injector(self, injector_stream, self.profile.faults, self.profile.fault_gap)
        self.phase = "boot"
        self.rash = True
        """Applications do what they like; later they only finish their work."""
        self.healed = False
        self.reset_due = False
        """One reset is still to come."""
        self.closing = False
        self.client_config = ClientConfig(
            service_url="pulsar://broker-0:6650",
            operation_timeout=self.profile.operation_timeout,
            keepalive_interval=self.profile.keepalive,
            connect_timeout=self.profile.operation_timeout,
            connections_per_broker=self.profile.connections_per_broker,
            initial_backoff=0.1,
            max_backoff=self.profile.max_backoff,
        )
        self.topics = [f"persistent://public/default/t{index}" for index in range(self.profile.topics)]
        for name in self.topics:
            self.model.topics[name] = TopicRecord(name, self.profile.deduplication)
        for index, plan in enumerate(self.profile.subscriptions):
            topic = self.model.topics[self.topics[plan.topic]]
            topic.subscriptions[f"sub-{index}"] = SubscriptionRecord(topic, f"sub-{index}", plan.kind)
        for topic in self.model.topics.values():
            topic.subscriptions[AUDIT] = SubscriptionRecord(topic, AUDIT, SubscriptionType.EXCLUSIVE)
        self.brokers = [BrokerNode(self, "broker-0", self.profile.broker)]
        self.hosts: list[Host] = []
        self.producers: list[ProducerApp] = []
        self.consumers: list[ConsumerApp] = []

    # --- what the parts use ---

    @property
    def apps(self) -> "list[ProducerApp | ConsumerApp]":
        return [*self.producers, *self.consumers]

    def wall_time(self) -> int:
        """Milliseconds since 1970, as the machines' hosts believe."""
        return WALL_CLOCK_AT_START + self.clock.elapsed // MILLISECOND + self.weather.wall_offset

    def count_fault(self, name: str) -> None:
        self.faults[name] = self.faults.get(name, 0) + 1

    def any_broker(self, stream: Stream) -> BrokerNode:
        return stream.choice(self.brokers)

    def on_output(self, output: Output) -> None:
        """News that no application waits for any more."""

    def _wrote(self, wire: Wire, to_broker: bool, kind: int, command: Any) -> bytes | None:
        if self.trace.keep:
            sender = wire.client if to_broker else wire.broker
            self.trace.note(self.clock.now, sender.name, f"wire {wire.number} <- {describe(kind, command)}")
        if to_broker:
            self.rules.seen(Side.CLIENT, wire.client.name, wire, Side.CLIENT, kind, command)
            self.client_watch.wrote(wire, kind, command)
            return self.mischief.to_broker(wire, kind, command) if self.mischief.active else None
        self.rules.seen(Side.BROKER, _process(wire), wire, Side.BROKER, kind, command)
        self.broker_watch.wrote(wire, kind, command)
        return self.mischief.to_client(wire, kind, command) if self.mischief.active else None

    def _garbage(self, pipe: Pipe) -> None:
        who = pipe.wire.client.name if pipe.to_broker else pipe.wire.broker.name
        raise ViolationError("INV-N12", f"{who} writes what is no frame")

    # --- what faults do ---

    def kill_broker(self, broker: BrokerNode, keep: bool, silently: bool, down_time: int) -> bool:
        if broker.broker is None or self.healed:
            return False
        broker.kill(keep, silently)
        self.clock.after(down_time, self._boot, broker)
        return True

    def kill_broker_while_writing(self, broker: BrokerNode, keep: bool, down_time: int) -> bool:
        if broker.broker is None or broker.doomed is not None:
            return False
        broker.doomed = (keep, down_time)
        return True

    def kill_later(self, broker: BrokerNode, keep: bool, down_time: int) -> None:
        self.kill_broker(broker, keep, False, down_time)

    def _boot(self, broker: BrokerNode) -> None:
        if broker.broker is None:
            broker.boot()

    def unload(self, topic: str) -> bool:
        broker = self.brokers[0]
        if broker.broker is None or broker.frozen_until or self.closing:
            return False
        self.trace.add(self.clock.now, broker.name, f"unload {topic}")
        broker.command(broker.broker.unload, topic)
        return True

    def unload_later(self, topic: str) -> None:
        self.unload(topic)

    def close_client(self, index: int) -> bool:
        host = self.hosts[index]
        if host.closing is not None or self.healed:
            return False
        self._close_host(host)
        return True

    def _close_host(self, host: Host) -> None:
        node = host.node
        request = node.client.close(self.clock.now, None)
        host.closing = request
        host.routes[request] = _Closing(self, host)
        self.trace.add(self.clock.now, node.name, "close")
        node.pump()

    def client_closed(self, host: Host) -> None:
        """The client says that it is closed: it must be quiet now, and say so to everybody (INV-N11)."""
        node = host.node
        for app in self.apps:
            if app.host is host and app.state != "idle":
                raise ViolationError(
                    "INV-N11", f"{node.name} is closed; {app.state} {app.handle} was told nothing"
                )
        for key, receiver in host.routes.items():
            if isinstance(receiver, (ProducerApp, ConsumerApp)):
                raise ViolationError("INV-N11", f"{node.name} is closed; {key} was never answered")
        self.clock.after(0, self._check_quiet, node)
        if not self.closing:
            self.clock.after(10 * MILLISECOND, self._restart_host, host)

    def _check_quiet(self, node: ClientNode) -> None:
        if node.wires or node.attempts:
            raise ViolationError("INV-N11", f"{node.name} is closed and has open links")
        if node.client.next_output() is not None or node.client.next_deadline() is not None:
            raise ViolationError("INV-N11", f"{node.name} is closed and not quiet")

    def crash_client(self, index: int) -> bool:
        host = self.hosts[index]
        if host.closing is not None or self.healed:
            return False
        self.trace.add(self.clock.now, host.node.name, "crash")
        host.node.crash()
        host.closing = -1
        for app in self.apps:
            if app.host is host:
                app.lose()
        self.clock.after(100 * MILLISECOND, self._restart_host, host)
        return True

    def _restart_host(self, host: Host) -> None:
        host.boot()
        for app in self.apps:
            if app.host is host:
                app.start()

    # --- the phases ---

    def run(self) -> SeedReport:
        report = SeedReport(self.seed)
        try:
            self._run()
        except ViolationError as violation:
            report.outcome, report.rule, report.text = violation.outcome, violation.rule, violation.text
        except LivelockError as error:
            report.outcome, report.rule, report.text = Outcome.LIVENESS, "INV-N6", str(error)
        except Exception:
            report.outcome, report.rule, report.text = Outcome.EXCEPTION, "exception", format_exc()
        report.phase = self.phase
        report.messages = min(self.model.delivered, self.model.acknowledged)
        report.sent = self.model.confirmed
        report.virtual_ns = self.clock.elapsed
        report.events = self.clock.events
        report.faults = dict(sorted(self.faults.items()))
        self.trace.add(self.clock.now, "world", f"{report.outcome.name} {report.rule}")
        report.trace_hash = self.trace.hexdigest()
        report.transcript = self.trace.lines
        return report

    def _run(self) -> None:
        self._set_phase("boot")
        for broker in self.brokers:
            broker.boot()
        auditor = Auditor(self, "auditor.1")
        self._until(auditor.ready, 60 * SECOND, "the topics cannot be created")
        auditor.close()
        self._until(auditor.closed, 60 * SECOND, "the first client does not close")

        self._set_phase("run")
        profile = self.profile
        self.weather.timers_late_permille = profile.timers_late_permille
        self.weather.timers_early_permille = profile.timers_early_permille
        self.weather.stale_permille = profile.stale_permille
        self.hosts = [Host(self, index) for index in range(profile.clients)]
        self.producers = [ProducerApp(self, index, plan) for index, plan in enumerate(profile.producers)]
        self.consumers = [ConsumerApp(self, index, plan) for index, plan in enumerate(profile.consumers)]
        for app in self.apps:
            app.start()
        self.injector.start()
        end = self.clock.now + profile.run_time
        self._until(
            lambda: self.clock.now >= end or (not profile.lingers and self._all_sent()),
            profile.run_time + POLL,
            "the clock stands still",
        )

        self._set_phase("heal")
        self._heal()
        self._set_phase("drain")
        self._until(self._drained, profile.patience, self._what_is_left)
        self._until(self._still, 10 * SECOND, "frames are under way for ever")
        self._check_permits()
        self._check_attachments()

        self._set_phase("close")
        self.closing = True
        self._until(
            self._all_closed, round((2 * profile.operation_timeout + 5) * SECOND), "a client does not close"
        )

        self._set_phase("check")
        self._audit()
        self._until(
            self._broker_is_alone,
            round((3 * profile.broker.keepalive_interval + 5) * SECOND),
            "the broker holds on to links, producers or consumers",
        )

    def _set_phase(self, phase: str) -> None:
        self.phase = phase
        self.trace.add(self.clock.now, "world", f"phase {phase}")

    def _until(self, condition: Callable[[], bool], limit: int, what: "str | Callable[[], str]") -> None:
        """Run until the condition holds; a liveness failure when it does not within `limit` ns."""
        clock = self.clock
        end = clock.now + limit
        poll = clock.now
        while True:
            when = clock.next_time()
            if when is None or when > poll:
                clock.now = max(clock.now, poll)
                self.model.check_timeouts(clock.now, self._timeout_slack())
                if condition():
                    return
                if clock.now >= end:
                    raise LivenessError("INV-N5", what if isinstance(what, str) else what())
                poll = min(end, poll + POLL)
            else:
                clock.step()
                if clock.events > EVENT_LIMIT:
                    raise LivenessError("INV-N6", f"more than {EVENT_LIMIT} events")

    def _timeout_slack(self) -> int:
        """How late a timer may be, and how long a message may wait in an open batch before its time
        counts."""
        return 2 * SECOND

    def _all_sent(self) -> bool:
        return all(app.done for app in self.producers)

    def _heal(self) -> None:
        self.injector.stop()
        self.mischief.heal()
        self.network.heal()
        self.weather.heal()
        self.rash = False
        self.healed = True
        for broker in self.brokers:
            broker.doomed = None
            if broker.broker is None:
                broker.boot()
            elif broker.frozen_until:
                self.clock.after(0, broker.thaw)
        for app in self.consumers:
            app.wake()
        if "acknowledgement_refused" in self.faults:
            self.clock.after(3 * SECOND, self._ask_again)
        if self.profile.last_reset:
            self.reset_due = True
            self.clock.after(self.profile.last_reset, self._last_reset)

    def _last_reset(self) -> None:
        self.reset_due = False
        self.count_fault("last_reset")
        self.trace.add(self.clock.now, "fault", "last_reset")
        for wire in list(self.network.wires.values()):
            wire.reset()

    def _ask_again(self) -> None:
        """Who uses receipts and does not ask for them finds out in its own way: it has everything delivered
        again."""
        for app in self.consumers:
            app.redeliver()

    def _drained(self) -> bool:
        if self.reset_due or not self._all_sent():
            return False
        for topic in self.model.topics.values():
            for subscription in topic.subscriptions.values():
                if subscription.name != AUDIT and not subscription.everything_acknowledged():
                    return False
        broker = self.brokers[0].broker
        assert broker is not None
        for name, topic in self.model.topics.items():
            found = broker.stats(name)["subscriptions"]
            for subscription in topic.subscriptions.values():
                if (
                    subscription.name in found
                    and subscription.name != AUDIT
                    and found[subscription.name]["backlog"]
                ):
                    return False
        return self._all_attached()

    def _all_attached(self) -> bool:
        """INV-N5; of several consumers of an exclusive subscription one. What they asked for is answered."""
        for app in self.producers:
            if app.state != "open" or not app.attached:
                return False
        exclusive: dict[str, bool] = {}
        for consumer in self.consumers:
            record = consumer.record
            attached = consumer.state == "open" and consumer.attached
            if record is None or (attached and consumer.confirmations):
                return False
            if record.subscription.kind is SubscriptionType.EXCLUSIVE:
                name = record.subscription.name
                exclusive[name] = exclusive.get(name, False) or attached
            elif not attached:
                return False
        return all(exclusive.values())

    def _what_is_left(self) -> str:
        left = []
        for app in self.producers:
            if not app.done and app.record is not None:
                left.append(
                    f"producer {app.record.tag} is {app.state}, {app.left} not "
                    f"sent, {len(app.record.pending)} pending, "
                    f"{len(app.record.flushes)} flushes"
                )
        for topic in self.model.topics.values():
            for subscription in topic.subscriptions.values():
                missing = subscription.missing()
                if missing and subscription.name != AUDIT:
                    left.append(
                        f"{subscription.name} of {topic.name}: {len(missing)} "
                        f"not acknowledged, first {missing[0]}"
                    )
        if not left:
            broker = self.brokers[0].broker
            assert broker is not None
            left = [
                f"{name}/{subscription}: backlog {found['backlog']} at the broker"
                for name in self.model.topics
                for subscription, found in broker.stats(name)["subscriptions"].items()
                if subscription != AUDIT and found["backlog"]
            ]
        left += [f"{app.handle} is {app.state} and not attached" for app in self.apps if not app.attached]
        return "not done in time: " + ("; ".join(left) or "acknowledgements are not confirmed")

    def _still(self) -> bool:
        return not any(
            pipe.queue for wire in self.network.wires.values() for pipe in (wire.to_broker, wire.to_client)
        )

    def _check_permits(self) -> None:
        """INV-C6 at rest: three accounts of every consumer's permits agree, and few are held back."""
        for wire in self.network.wires.values():
            client_end = self.client_watch.ends.get(wire.number)
            broker_end = self.broker_watch.ends.get(wire.number)
            sound = (
                wire.client_open and wire.broker_open and not wire.to_broker.lost and not wire.to_client.lost
            )
            if client_end is None or broker_end is None or not sound:
                continue
            for consumer_id, consumer in client_end.consumers.items():
                seat = broker_end.consumers.get(consumer_id)
                if not consumer.ready or consumer.closed or consumer.record.closed or seat is None:
                    continue
                name = consumer.record.name
                if seat.permits != consumer.granted - consumer.arrived:
                    raise ViolationError(
                        "INV-C6",
                        f"{name}: granted {consumer.granted}, arrived "
                        f"{consumer.arrived}, the broker has "
                        f"{seat.permits} left",
                    )
                node = wire.client
                assert isinstance(node, ClientNode)
                held = held_back(consumer, node.client.available(consumer.handle))
                if not 0 <= held < max(1, consumer.queue // 2):
                    raise ViolationError(
                        "INV-C6", f"{name}: {held} permits of {consumer.queue} are held back at rest"
                    )

    def _check_attachments(self) -> None:
        """INV-N4: the broker has nobody on a sound wire whom no application has."""
        tags = {app.record.tag for app in self.producers if app.record is not None}
        names = {app.record.name for app in self.consumers if app.record is not None}
        sound = {
            f"{wire.client.name}:{wire.number}"
            for wire in self.network.wires.values()
            if wire.client_open and wire.broker_open and not wire.to_broker.lost and not wire.to_client.lost
        }
        broker = self.brokers[0].broker
        assert broker is not None
        for topic in self.model.topics:
            stats = broker.stats(topic)
            for producer in stats["publishers"]:
                if producer["address"] in sound and producer["metadata"].get("tag") not in tags:
                    raise ViolationError(
                        "INV-N4", f"{topic}: producer {producer['metadata']} belongs to nobody"
                    )
            for subscription in stats["subscriptions"].values():
                for consumer in subscription["consumers"]:
                    if consumer["address"] in sound and consumer["consumerName"] not in names:
                        raise ViolationError(
                            "INV-N4", f"{topic}: consumer {consumer['consumerName']} belongs to nobody"
                        )

    def _all_closed(self) -> bool:
        """Closes those that are open, too: one may have been on its way back from an earlier close."""
        for host in self.hosts:
            if host.closing is None:
                self._close_host(host)
        return all(host.closing == CLOSED for host in self.hosts)

    def _audit(self) -> None:
        auditor = Auditor(self, "auditor.2")
        known = {name: len(topic.log) for name, topic in self.model.topics.items()}
        try:
            self._until(auditor.complete, 60 * SECOND, f"the logs cannot be read: {known}")
        finally:
            if auditor.is_ready:
                for name, topic in self.model.topics.items():
                    self.model.check_log(topic, auditor.found[name])
        auditor.close()
        self._until(auditor.closed, 60 * SECOND, "the last client does not close")
        self._check_quiet(auditor.node)

    def _broker_is_alone(self) -> bool:
        if self.network.wires:
            return False
        for node in self.brokers:
            broker = node.broker
            assert broker is not None
            for name in self.model.topics:
                stats = broker.stats(name)
                if stats["publishers"] or any(each["consumers"] for each in stats["subscriptions"].values()):
                    return False
        return True


CLOSED = -2
"""In place of a request: the whole client is closed."""


class _Closing:
    """Waits for a whole client to be closed."""

    def __init__(self, world: World, host: Host) -> None:
        self._world = world
        self._host = host

    def on_output(self, output: Output) -> None:
        if not isinstance(output, RequestDone):
            raise ViolationError(
                "INV-N11", f"{self._host.node.name}: closing ends with {type(output).__name__}"
            )
        self._host.closing = CLOSED
        self._world.client_closed(self._host)


class Auditor:
    """A client of the simulator's own: keeps every log from being trimmed, and reads it at the end."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.found: dict[str, list[Place]] = {topic: [] for topic in world.topics}
        self._topics: dict[int, str] = {}
        self._waiting = len(world.topics)
        self._closing: int | None = None
        self._closed = False
        self._last_news = world.clock.now
        self.node = ClientNode(world, name, world.client_config, self)
        for topic in world.topics:
            consumer_name = f"{name}.{topic.rpartition('/')[2]}"
            spec = ConsumerSpec(
                topic=topic,
                subscription=AUDIT,
                consumer_name=consumer_name,
                initial_position=InitialPosition.EARLIEST,
            )
            subscription = world.model.topics[topic].subscriptions[AUDIT]
            world.model.consumers[consumer_name] = ConsumerRecord(consumer_name, subscription, spec)
            handle = self.node.client.subscribe(world.clock.now, spec)
            world.client_watch.handles[consumer_name] = handle
            self._topics[handle] = topic
        self.node.pump()

    @property
    def is_ready(self) -> bool:
        return not self._waiting

    def ready(self) -> bool:
        return not self._waiting

    def complete(self) -> bool:
        """Every entry that is known was read, and nothing more came for a while."""
        if self._waiting or self.world.clock.now < self._last_news + 2 * SECOND:
            return False
        topics = self.world.model.topics
        return all(len(found) >= topics[name].messages for name, found in self.found.items())

    def close(self) -> None:
        self._closing = self.node.client.close(self.world.clock.now, None)
        self.node.pump()

    def closed(self) -> bool:
        return self._closed

    def on_output(self, output: Output) -> None:
        if isinstance(output, ConsumerReady):
            self._waiting -= 1
        elif isinstance(output, Deliverable):
            client, now = self.node.client, self.world.clock.now
            while messages := client.take(now, output.consumer, 1000):
                self._last_news = now
                found = self.found[self._topics[output.consumer]]
                for message in messages:
                    ledger, entry, _, index, _ = message.message_id
                    found.append((ledger, entry, max(index, 0)))
        elif isinstance(output, Detached):
            raise ViolationError("INV-N7", f"{self.node.name} lost a sound connection: {output.cause}")
        elif isinstance(output, (ConsumerFailed, RequestFailed)):
            raise ViolationError("INV-N5", f"{self.node.name}: {output.error}")
        elif isinstance(output, RequestDone) and output.request == self._closing:
            self._closed = True
