"""A world: the run of one seed, from boot to the last check.

Owns the phases. *Run*: applications work while faults happen. *Heal*: no new faults. *Drain*: every message
sent gets an outcome, and every stored one is acknowledged, within a bound of virtual time. *Close*: every
client is closed and must be quiet. *Check*: a fresh reader reads every log from the beginning, and the
reference model checks the finished history. Everything runs in one thread, in the order of one heap.
"""

import gc
from collections.abc import Callable
from dataclasses import dataclass, field
from traceback import format_exc
from typing import Any

from pulsar_sansio.broker.broker import Broker
from pulsar_sansio.client.outputs import Output
from pulsar_sansio.model.config import ClientConfig
from pulsar_sansio.model.schema import Schema

from ..apps.client_process import CLOSED, ClientProcess, check_quiet
from ..apps.nonpersistent_app import nonpersistent_topic
from ..apps.roaming.controlled_watch import ControlledWatch
from ..apps.roaming.roaming_process import RoamingProcess
from ..apps.roaming.roaming_watch import RoamingWatch, is_roaming
from ..apps.transacting.transacting_process import TransactingProcess, is_transacting
from ..checks.conformance import RuleWatch
from ..checks.quiescence import (
    all_roamed,
    all_sent,
    all_transacted,
    brokers_are_deserted,
    check_attachments,
    check_closes,
    check_leftovers,
    check_memory,
    check_no_clients,
    check_permits,
    describe_rest,
    drained,
)
from ..checks.statistics import check_tallies
from ..conversations.client_conversations import hold_client_conversations
from ..engine.clock import MILLISECOND, SECOND, Clock
from ..engine.failures import LivenessError, Outcome, ViolationError
from ..engine.network import Conditions, Network, Pipe, Wire
from ..engine.nodes.broker_node import BrokerNode
from ..engine.nodes.client_node import SNI_PROXY, LivelockError
from ..engine.nodes.cluster import Cluster, address
from ..engine.nodes.far_cluster import FAR_BROKER, FarCluster
from ..engine.nodes.secondary_cluster import SECONDARY_BROKER, SecondaryCluster
from ..engine.profile import Profile
from ..engine.randomness import Streams
from ..engine.security.issuer import METHOD, Issuer
from ..engine.trace import Trace
from ..engine.transcript import describe
from ..engine.web.control_service import ControlService
from ..engine.web.web_answers import WEB_PORT
from ..faults.broker_misbehaviour import BrokerMisbehaviour
from ..faults.timing import Timing
from ..generate import draw
from ..model.multi_topics_subscriptions import GroupTopics
from ..model.reference_model import ReferenceModel
from ..model.schemas.questions import Questions
from ..model.schemas.registrations import Registrations
from ..model.schemas.topic_schemas import TopicSchemas
from ..model.transactions.durable_transactions import DurableTransactions
from ..model.transactions.transaction_account import TransactionAccount
from .administrator import Administrator
from .applications import Applications
from .auditor import Auditor
from .fault_schedule import FaultSchedule
from .last_round import make_last_round
from .stored_transactions import read_transactions
from .topics import WorldTopics
from .transacting import account_of, check_transactions
from .wire_observers import OF_HANDLES, BrokerWireObserver, ClientWireObserver, broker_process, client_process

WALL_CLOCK_AT_START = 1_700_000_000_000
"""Milliseconds since 1970."""

POLL = 50 * MILLISECOND
"""Nanoseconds between two looks at whether a phase has ended."""

AUDITED_PERMILLE = 400
"""Worlds, per thousand, that audit ended and detached machines during the run; at rest and at the end all
do."""

EVENT_LIMIT = 2_000_000
"""More events than any seed needs; a world that exceeds it is in a loop."""


@dataclass(slots=True)
class SeedReport:
    """The result of one seed."""

    seed: int
    outcome: Outcome = Outcome.PASSED
    rule: str = ""
    text: str = ""
    phase: str = ""
    messages: int = 0
    """Messages delivered and acknowledged."""
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


class World:
    """The run of one seed. `run()` may be called once."""

    def __init__(self, seed: int, profile: Profile | None = None, keep_trace: bool = False) -> None:
        self.seed = seed
        self.streams = Streams(seed)
        self.profile = profile if profile is not None else draw(self.streams)
        self.clock = Clock(self.streams.stream("epoch").between(10**15, 10**17))
        self.trace = Trace(keep_trace)
        self.faults: dict[str, int] = {}
        self.model = ReferenceModel()
        plan = self.profile.credentials
        self.issuer: Issuer | None = None if plan is None else Issuer(self, plan)
        self.rules: RuleWatch = RuleWatch(client_process, broker_process)
        self.roaming: RoamingWatch | None = self._roaming_watch()
        self.transactions: TransactionAccount | None = account_of(self.profile.transactions)
        self.client_watch: ClientWireObserver = ClientWireObserver(self)
        self.broker_watch = BrokerWireObserver(self)
        self.timing = Timing(self, self.streams.stream("weather"), self.profile.store_delay)
        self.misbehaviour = BrokerMisbehaviour(self, self.streams.stream("mischief"))
        conditions = Conditions(self.profile.latency, self.profile.jitter, self.profile.cut_permille)
        network_stream = self.streams.stream("network")
        self.network = Network(self.clock, network_stream, self.trace, conditions, self._wrote, self._garbage)
        fault_stream = self.streams.stream("faults")
        self.fault_schedule = FaultSchedule(self, fault_stream, self.profile.faults, self.profile.fault_gap)
        self.phase = "boot"
        self.rash = True
        """Applications still act at random; later they only finish their work."""
        self.healed = False
        self.audits_ends = self.streams.stream("audit").chance(AUDITED_PERMILLE)
        """Machines are audited when they end or are detached; that takes time."""
        self.reset_due = False
        """One reset is still to come."""
        self.closing = False
        self.applications_began = 0
        """Virtual nanoseconds from the start of the world until that of the applications."""
        self.client_config: ClientConfig = self._client_config()
        if self.profile.schemas is not None:
            timeout = round(self.profile.operation_timeout * SECOND)
            questions, registrations = Questions(timeout, self.clock), Registrations(timeout, self.clock)
            self.model.schemas = TopicSchemas(self.profile.schemas, questions, registrations)
        self.topics: WorldTopics = WorldTopics(self.profile, self.model)
        self.cluster = Cluster(self)
        for index in range(len(self.profile.nonpersistent_apps)):
            self.cluster.own(nonpersistent_topic(index))
        self.clusters: list[Cluster] = [self.cluster]
        if self.profile.migrations:
            self.clusters.append(FarCluster(self))
        if self.profile.failover is not None:
            self.clusters.append(SecondaryCluster(self))
        self.hosts: list[ClientProcess] = []
        self.apps = Applications()
        self.administrator = Administrator(self)

    def durable_transactions(self) -> DurableTransactions:
        """Return what the store holds of transactions."""
        topics = () if self.transactions is None else self.transactions.topics
        return read_transactions(self.cluster.store.load(), topics)

    def topics_of(self, group: GroupTopics) -> list[str]:
        """Return the topics and partitions of a group that exist now."""
        gone = self.administrator.vanished
        return [name for name in self.topics.names if group.means(name) and name not in gone]

    # --- used by the parts of a world ---

    def reader_schema(self, name: str) -> Schema[Any] | None:
        """Choose the schema of a consumer of that name; None is bytes."""
        if self.model.schemas is None:
            return None
        return self.model.schemas.for_consumer(self.streams.stream(f"schema of {name}"), self.rash)

    @property
    def brokers(self) -> list[BrokerNode]:
        return [node for cluster in self.clusters for node in cluster.nodes]

    def holding(self, topic: str) -> list[Broker]:
        """Return the brokers that own a topic: at most one of each cluster, in the order of the clusters."""
        serving = [cluster.serving(topic) for cluster in self.clusters if topic in cluster.owners]
        return [broker for broker in serving if broker is not None]

    def _roaming_watch(self) -> RoamingWatch | None:
        """Return the watch of the client that changes between clusters, if there is one."""
        plan = self.profile.failover
        if plan is None:
            return None
        if plan.control is not None:
            return ControlledWatch(plan, SECONDARY_BROKER)
        return RoamingWatch(plan, self.profile.named_hosts, SECONDARY_BROKER)

    def _start_control_service(self) -> None:
        """Start the web service that names a cluster, if the world has one."""
        plan = self.profile.failover
        if plan is not None and plan.control is not None:
            watch = self.roaming
            assert isinstance(watch, ControlledWatch)
            urls = self._service_url(), address(SECONDARY_BROKER)
            ControlService(self, plan.control, urls, watch.tells, lambda: watch.home).start()

    def _client_config(self) -> ClientConfig:
        """Return the configuration of all clients."""
        profile = self.profile
        plan = profile.credentials
        return ClientConfig(
            service_url=self._service_url(),
            operation_timeout=profile.operation_timeout,
            keepalive_interval=profile.keepalive,
            connect_timeout=profile.operation_timeout,
            connections_per_broker=profile.connections_per_broker,
            initial_backoff=0.1,
            max_backoff=profile.max_backoff,
            memory_limit=profile.memory_limit,
            create_topics=profile.create_topics,
            max_rejected_requests=profile.max_rejected_requests,
            authentication_method=None if self.issuer is None else METHOD,
            broker_hosts=self.allowed_hosts,
            sni_proxy=f"pulsar+ssl://{SNI_PROXY}:4443" if plan is not None and plan.sni_proxy else None,
        )

    @property
    def allowed_hosts(self) -> tuple[str, ...] | None:
        """The hosts that clients with credentials may connect to; None is every host."""
        if self.issuer is None:
            return None
        return (*(f"broker-{index}" for index in range(self._broker_count)), FAR_BROKER)

    @property
    def _broker_count(self) -> int:
        return max(1, len(self.profile.brokers))

    def _service_url(self) -> str:
        """Return the address of one broker, or of all."""
        count = self.profile.named_hosts
        if self.profile.web is not None:
            return "http://" + ",".join(f"broker-{index}:{WEB_PORT}" for index in range(count))
        plan = self.profile.credentials
        scheme = "pulsar+ssl" if plan is not None and plan.tls else "pulsar"
        return f"{scheme}://" + ",".join(f"broker-{index}:6650" for index in range(count))

    def wall_time(self) -> int:
        """Return milliseconds since 1970, as the machines' hosts believe."""
        return WALL_CLOCK_AT_START + self.clock.elapsed // MILLISECOND + self.timing.wall_offset

    def count_fault(self, name: str) -> None:
        self.faults[name] = self.faults.get(name, 0) + 1

    def on_output(self, output: Output) -> None:
        """Ignore an output that no application waits for any more."""

    def _wrote(self, wire: Wire, to_broker: bool, kind: int, command: Any) -> bytes | None:
        if self.trace.keep:
            sender = wire.client if to_broker else wire.broker
            self.trace.note(self.clock.now, sender.name, f"wire {wire.number} <- {describe(kind, command)}")
        if to_broker:
            self.rules.clients.wrote(wire, kind, command)
            self.client_watch.wrote(wire, kind, command)
            misbehaves = self._misbehaves(wire, kind)
            return self.misbehaviour.to_broker(wire, kind, command) if misbehaves else None
        self.rules.brokers.wrote(wire, kind, command)
        self.broker_watch.wrote(wire, kind, command)
        return self.misbehaviour.to_client(wire, kind, command) if self._misbehaves(wire, kind) else None

    def _misbehaves(self, wire: Wire, kind: int) -> bool:
        """True when the frame may be changed. Those of a roaming client are left as they are. So are those of
        producers and consumers of a client with transactions."""
        if not self.misbehaviour.active or is_roaming(wire):
            return False
        return self.transactions is None or kind not in OF_HANDLES or not is_transacting(wire)

    def _garbage(self, pipe: Pipe) -> None:
        writer = pipe.wire.client.name if pipe.to_broker else pipe.wire.broker.name
        raise ViolationError("INV-N12", f"{writer} writes bytes that are no frame")

    # --- what faults do ---

    def unload(self, topic: str) -> bool:
        """Unload the topic in every cluster."""
        unloaded = [cluster.unload(topic) for cluster in self.clusters if topic in cluster.owners]
        return any(unloaded)

    def unload_later(self, topic: str) -> None:
        self.unload(topic)

    def close_client(self, index: int) -> bool:
        host = self.hosts[index]
        if host.closing is not None or self.healed:
            return False
        host.close()
        return True

    def crash_client(self, index: int) -> bool:
        host = self.hosts[index]
        if host.closing is not None or self.healed:
            return False
        host.crash()
        return True

    # --- the phases ---

    def run(self) -> SeedReport:
        # Objects of a world live until its end: garbage collection in between finds little, and takes up to a
        # tenth of the time.
        collecting = gc.isenabled()
        gc.disable()
        try:
            return self._report()
        finally:
            if collecting:
                gc.enable()

    def _report(self) -> SeedReport:
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
        for cluster in self.clusters:
            cluster.boot()
        keepers = [cluster for cluster in self.clusters if type(cluster) is not FarCluster]
        if self.administrator.schemas is not None:
            self.administrator.schemas.register_first()
        for cluster in keepers:
            cluster.keep_logs()
        self._until(
            lambda: all(each.keeps_logs for each in keepers), 60 * SECOND, "the topics cannot be created"
        )

        self._set_phase("run")
        profile = self.profile
        self.timing.timers_late_permille = profile.timers_late_permille
        self.timing.timers_early_permille = profile.timers_early_permille
        self.timing.stale_permille = profile.stale_permille
        self.hosts = [ClientProcess(self, index) for index in range(profile.clients)]
        self._start_control_service()
        if profile.failover is not None and self.roaming is not None:
            self.hosts.append(RoamingProcess(self, profile.clients, profile.failover, self.roaming))
        if profile.transactions is not None:
            self.hosts.append(TransactingProcess(self, profile.clients, profile.transactions))
        self.applications_began = self.clock.elapsed
        self.apps.start(self)
        self.administrator.start()
        self.fault_schedule.start()
        end = self.clock.now + profile.run_time
        self._until(
            lambda: self.clock.now >= end or self._is_worked_off,
            profile.run_time + POLL,
            "the clock stands still",
            timed=True,
        )

        self._set_phase("heal")
        self._heal()
        self._set_phase("drain")
        self._until(lambda: drained(self), profile.patience, lambda: describe_rest(self))
        check_permits(self)
        check_attachments(self)
        check_memory(self)
        check_tallies(self)
        check_transactions(self)
        if self.roaming is not None:
            self.apps.roaming[0].check_rest(self.cluster, self.clusters[-1])
        check_closes(self)
        check_leftovers(self)

        self._set_phase("close")
        self.closing = True
        self._until(
            self._all_closed, round((2 * profile.operation_timeout + 5) * SECOND), "a client does not close"
        )

        self._set_phase("check")
        self._audit()
        self._until(
            lambda: brokers_are_deserted(self),
            round((3 * profile.broker.keepalive_interval + 5) * SECOND),
            "the broker holds on to links, producers or consumers",
        )
        check_no_clients(self)
        make_last_round(self)
        hold_client_conversations(self.streams, self.clock.now)

    @property
    def _is_worked_off(self) -> bool:
        """True when the applications have done what they do while there are faults."""
        done = all_sent(self) and all_roamed(self) and all_transacted(self)
        return done and not self.profile.lingers

    def _set_phase(self, phase: str) -> None:
        self.phase = phase
        self.trace.add(self.clock.now, "world", f"phase {phase}")

    def _until(
        self, condition: Callable[[], bool], limit: int, what: "str | Callable[[], str]", timed: bool = False
    ) -> None:
        """Run until the condition holds. Raises a liveness failure when it does not hold within `limit` ns.

        `timed`: the condition may come to hold by time alone, without any event.
        """
        clock = self.clock
        end = clock.now + limit
        poll = clock.now
        events = -1
        while True:
            clock.run_until(poll, EVENT_LIMIT)
            if clock.events > EVENT_LIMIT:
                raise LivenessError("INV-N6", f"more than {EVENT_LIMIT} events")
            self.model.check_timeouts(clock.now, self._timeout_slack())
            self.client_watch.check_late(clock.now)
            if (timed or clock.events != events) and condition():
                return
            events = clock.events
            if clock.now >= end:
                raise LivenessError("INV-N5", what if isinstance(what, str) else what())
            poll = min(end, poll + POLL)

    def _timeout_slack(self) -> int:
        """Return the nanoseconds that a timer may be late, and that a message may wait in an open batch
        before its timeout starts."""
        return 2 * SECOND

    def _heal(self) -> None:
        self.fault_schedule.stop()
        self.misbehaviour.heal()
        self.network.heal()
        self.timing.heal()
        self.rash = False
        self.healed = True
        for cluster in self.clusters:
            cluster.heal()
        if self.roaming is not None:
            self.roaming.outages.heal()
        for consumer in self.apps.receivers:
            consumer.wake()
        for app in self.apps.transient:
            app.wake()
        for transactor in self.apps.transactors:
            transactor.wake()
        self.administrator.heal()
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
        """Ask for redelivery of everything: an application whose acknowledgement was refused and that did not
        wait for receipts finds out this way."""
        for app in self.apps.receivers:
            app.redeliver()

    def _all_closed(self) -> bool:
        """Close open clients too: one may have restarted after an earlier close."""
        for host in self.hosts:
            if host.closing is None:
                host.close()
        return all(host.closing == CLOSED for host in self.hosts)

    def _audit(self) -> None:
        auditor = Auditor(self, "auditor")
        known = {name: len(topic.log) for name, topic in self.model.topics.items()}
        try:
            self._until(auditor.complete, 60 * SECOND, f"the logs cannot be read: {known}", timed=True)
        finally:
            if auditor.is_ready:
                for name, topic in self.model.topics.items():
                    self.model.check_log(topic, auditor.found[name])
                    self.administrator.check(name, auditor.found[name])
        auditor.close()
        self._until(auditor.closed, 60 * SECOND, "the last client does not close")
        check_quiet(auditor.node)
