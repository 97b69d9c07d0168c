"""A broker process: one broker machine, driven exactly as an adapter drives it.

Owns draining outputs, reading when the machine wants to read, and writing to the cluster's store. Owns the
life of a process too: it can be killed and restarted, frozen, and out of date about the topics that it
serves. It decides nothing about the protocol.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from pulsar_sansio.broker.broker import Broker
from pulsar_sansio.broker.config import BrokerConfig
from pulsar_sansio.broker.outputs import Disconnect as BrokerDisconnect
from pulsar_sansio.broker.outputs import Output as BrokerOutput
from pulsar_sansio.broker.outputs import Persist, Released, ResumeReading
from pulsar_sansio.broker.outputs import Transmit as BrokerTransmit
from pulsar_sansio.broker.owner import OtherBroker
from pulsar_sansio.broker.records import OF_ITS_OWNER, Record
from pulsar_sansio.broker.services import LedgerIds
from pulsar_sansio.broker.serving.connection import Connection

from ..clock import MILLISECOND
from ..leftovers.audit import BROKER_LINK_ENDED
from ..leftovers.inputs import check_moment, check_recorded
from ..network import GARBAGE, Wire
from .client_node import Timer

if TYPE_CHECKING:
    from .cluster import Cluster


class ClusterLedgerIds(LedgerIds):
    """A broker that takes its ledger ids from the cluster, which all brokers share."""

    def __init__(self, cluster: "Cluster", first: int) -> None:
        super().__init__(first)
        self._cluster = cluster

    def take(self) -> int:
        self._next = self._cluster.new_ledger(self._next)
        return super().take()


class BrokerNode:
    """One broker process after another. The cluster's store outlives each process.

    `slowness`: nanoseconds that received bytes wait, at most, before the broker reads them.
    """

    def __init__(self, cluster: "Cluster", name: str, config: BrokerConfig, slowness: int = 0) -> None:
        self.cluster = cluster
        self.world = world = cluster.world
        self.name = name
        self.config = config if world.issuer is None else world.issuer.configured(config, self)
        self.slowness = slowness
        self._slow = world.streams.stream(f"slowness of {name}") if slowness else None
        self.stale: dict[str, OtherBroker | None] = {}
        """Topics that another broker serves already without this broker's knowledge, each with the
        redirection for its clients."""
        self.broker: Broker | None = None
        self.wires: dict[int, Wire] = {}
        self.incarnation = 0
        self.frozen_until = 0
        self._writing: tuple[int, Sequence[Record]] | None = None
        self._began_healed = False
        """The write in progress began after healing."""
        self._frozen: list[Callable[[], None]] = []
        self._unread: dict[int, list[tuple[bytes, list[tuple[int, int, Any]]]]] = {}
        """Bytes received while the broker did not read, by link."""
        self._connections: dict[int, Connection] = {}
        """The broker's connections, by link, until the link has ended."""
        self.kill_pending: tuple[bool, int] | None = None
        """Set when the process is to be killed during the next write: whether the write is kept, and the down
        time in nanoseconds."""
        self._timer: Timer | None = None
        world.network.listeners[name] = self

    @property
    def up(self) -> bool:
        """True when the process runs and is not frozen."""
        return self.broker is not None and not self.frozen_until

    @property
    def is_writing(self) -> bool:
        """True while a write is in progress."""
        return self._writing is not None

    @property
    def is_done(self) -> bool:
        """True when the broker has read everything and its writes are durable."""
        return not self._unread and not self.is_writing

    @property
    def catches_up(self) -> bool:
        """True while a write begun before healing is in progress: everything received since waits for it."""
        return self.is_writing and not self._began_healed

    def boot(self) -> None:
        """Start a new process over what the store holds."""
        world = self.world
        self.incarnation += 1
        seed = world.streams.seed_of(f"machine {self.name} {self.incarnation}")
        now = world.clock.now
        cluster = self.cluster
        self.broker = Broker(
            now,
            self.config,
            cluster.load(self),
            seed=seed,
            wall_time=world.wall_time(),
            owner=partial(cluster.who_serves, self) if cluster.several else None,
            ledger_ids=partial(ClusterLedgerIds, cluster) if cluster.several else LedgerIds,
            reader=cluster.reader,
        )
        self._timer = Timer(world, self.name, self.broker.next_deadline, self.wake)
        for name in cluster.names():
            self.broker.ownership.topic_made(now, name)
        world.trace.add(now, self.name, f"boots {self.incarnation}")
        self.pump()
        world.administrator.booted(self)

    def kill(self, keep_unsynced: bool, silently: bool) -> None:
        """Kill the process between two instructions. The write in progress is kept or lost as a whole.

        `silently`: the host dies too, and no peer is told.
        """
        world = self.world
        world.trace.add(world.clock.now, self.name, f"killed keep={keep_unsynced} silent={silently}")
        cluster = self.cluster
        cluster.forget_moves(self)
        world.broker_watch.died(
            self.name,
            list(self.wires.values()),
            [(cluster.far, topic) for topic, name in cluster.owners.items() if name == self.name],
        )
        self._learn()
        if self._writing is not None:
            world.count_fault("store_kept_unreported" if keep_unsynced else "store_lost_unsynced")
            if keep_unsynced:
                cluster.write(self, self._writing[1])
            self._writing = None
        self.broker = None
        self.frozen_until = 0
        self._frozen.clear()
        self._unread.clear()
        self._connections.clear()
        if self._timer is not None:
            self._timer.cancel()
        wires = list(self.wires.values())
        self.wires.clear()
        for wire in wires:
            if silently:
                wire.broker_vanished()
            else:
                wire.closed_by(client_side=False, abort=True)

    def freeze(self, until: int) -> None:
        """Stop the process; when it resumes, it finds everything received meanwhile."""
        if not self.frozen_until:
            self.world.clock.at(until, self._thaw, self.incarnation)
            self.frozen_until = until

    def _thaw(self, incarnation: int) -> None:
        if self.incarnation == incarnation:
            self.thaw()

    def thaw(self) -> None:
        """Resume the process."""
        if self.broker is None or not self.frozen_until:
            return
        self.frozen_until = 0
        waiting, self._frozen = self._frozen, []
        for action in waiting:
            if self.broker is not None:
                action()
        for link in list(self._unread):
            self._read_on(link)

    def expire_credentials(self, link: int) -> bool:
        """Let the credentials of a connected client expire now. Returns False where there are none."""
        connection = self.broker.links.get(link) if self.up and self.broker is not None else None
        authentication = None if connection is None else connection.authentication
        if authentication is None or authentication._identity is None or authentication._then is not None:
            return False
        assert self.broker is not None
        wall_time = self.broker.services.wall_time_of(self.world.clock.now)
        authentication._watch(replace(authentication._identity, expires_at_ms=wall_time))
        self.wake()
        return True

    def command(self, command: Callable[..., Any], *arguments: Any) -> Any:
        """Run an administrator's command."""
        result = command(self.world.clock.now, *arguments)
        self.pump()
        return result

    def pump(self) -> None:
        broker = self.broker
        assert broker is not None
        assert self._timer is not None
        check_moment(self.name, broker.context, self.world.clock.now)
        while outputs := self._outputs(broker):
            for output in outputs:
                self._obey(output)
        check_recorded(self.name, broker, self._writing is not None)
        self._timer.arm()

    def _outputs(self, broker: Broker) -> list[BrokerOutput]:
        """Drain the outputs. Report closing wires to the watch first: the broker announces the end of a wire
        before its last bytes, but may have asked earlier to transmit them."""
        outputs = []
        while (output := broker.next_output()) is not None:
            if type(output) is BrokerDisconnect and output.link in self.wires:
                self.world.broker_watch.wire_closing(self.wires[output.link], output.reason)
            outputs.append(output)
        return outputs

    def _obey(self, output: BrokerOutput) -> None:
        kind = type(output)
        if kind is BrokerTransmit:
            self._transmit(output.link)  # type: ignore[union-attr]
        elif kind is Persist:
            self._persist(output)  # type: ignore[arg-type]
        elif kind is ResumeReading:
            self.world.clock.after(0, self._read_on, output.link)  # type: ignore[union-attr]
        elif kind is Released:
            self.world.clock.after(0, self._released, self.incarnation, output.topic)  # type: ignore[union-attr]
        else:
            assert kind is BrokerDisconnect
            self._disconnect(output.link)  # type: ignore[union-attr]

    # --- one broker of several ---

    def _released(self, incarnation: int, topic: str) -> None:
        if self.incarnation != incarnation or self.broker is None:
            return
        if self.frozen_until:
            self._frozen.append(lambda: self._released(incarnation, topic))
        else:
            self.cluster.released(self, topic)

    def topic_changed(self, topic: str, there: bool) -> None:
        """Any broker has created or deleted a topic."""
        self._soon(lambda: self._change_topic(topic, there))

    def _change_topic(self, topic: str, there: bool) -> None:
        if self.broker is not None:
            self.command(
                self.broker.ownership.topic_made if there else self.broker.ownership.topic_gone, topic
            )

    def purge(self, topic: str) -> None:
        """Drop records from the write in progress when another broker serves their topic."""
        if self._writing is not None:
            write, records = self._writing
            self._writing = (
                write,
                [each for each in records if not (isinstance(each, OF_ITS_OWNER) and each.topic == topic)],
            )

    def _learn(self) -> dict[str, OtherBroker | None]:
        """Give up all topics that another broker serves, and return them."""
        stale, self.stale = self.stale, {}
        for topic in stale:
            if not any(topic in node.stale for node in self.world.brokers):
                self.world.model.topics[topic].served_twice = False
        return stale

    def learn_owners(self) -> None:
        """Find out which topics other brokers serve."""
        if self.broker is None or not self.stale:
            return
        if self.frozen_until:
            self._frozen.append(self.learn_owners)
            return
        for topic, moved_to in self._learn().items():
            self.purge(topic)
            if topic in self.broker.topics.by_name:
                self.world.trace.add(self.world.clock.now, self.name, f"loses {topic}")
            self.broker.ownership.lose(self.world.clock.now, topic, moved_to)
            self.world.broker_watch.learned(self.name, topic)
        self.pump()

    # --- inputs from the network ---

    def accept(self, wire: Wire) -> bool:
        if self.broker is None:
            return False
        self.wires[wire.number] = wire
        self._soon(lambda: self._accept(wire))
        return True

    def _accept(self, wire: Wire) -> None:
        if wire.broker_open and self.broker is not None:
            self.broker.accepted(self.world.clock.now, wire.number, f"{wire.client.name}:{wire.number}")
            self._connections[wire.number] = self.broker.links[wire.number]
            self.pump()

    def link_connected(self, link: int, wire: Wire) -> None:
        raise AssertionError("a broker does not connect")

    def link_data(self, link: int, data: bytes, frames: list[tuple[int, int, Any]]) -> None:
        if self.broker is None:
            return
        if self._slow is not None and link not in self._unread:
            self._unread[link] = []
            self.world.clock.after(self._slow.below(self.slowness), self._read_on, link)
        if self.frozen_until or link in self._unread or not self.broker.wants_read(link):
            self._unread.setdefault(link, []).append((data, frames))
        else:
            self._input(link, data, frames)

    def _input(self, link: int, data: bytes, frames: list[tuple[int, int, Any]]) -> None:
        wire = self.wires.get(link)
        broker = self.broker
        if wire is None or broker is None:
            return
        watch = self.world.broker_watch
        connection = broker.links[link]
        broker.receive_data(self.world.clock.now, link, data)
        for behind, kind, command in frames:
            if behind >= connection.unread and kind != GARBAGE:
                watch.got(wire, kind, command)
        self.pump()
        watch.settled()

    def _read_on(self, link: int) -> None:
        """Pass waiting bytes to the broker while it wants to read."""
        while (waiting := self._unread.get(link)) and self.broker is not None:
            if not self.broker.wants_read(link):
                return
            data, frames = waiting.pop(0)
            if not waiting:
                del self._unread[link]
            self._input(link, data, frames)

    def link_eof(self, link: int) -> None:
        self._soon(lambda: self._eof(link))

    def _eof(self, link: int) -> None:
        if self.broker is None or link not in self.wires:
            return
        if link in self._unread:
            self.world.clock.after(MILLISECOND, self._eof, link)
            return
        self.broker.receive_eof(self.world.clock.now, link)
        self.pump()

    def link_lost(self, link: int, reason: str) -> None:
        self._soon(lambda: self._lost(link, reason))

    def _lost(self, link: int, reason: str) -> None:
        wire = self.wires.pop(link, None)
        self._unread.pop(link, None)
        if wire is None or self.broker is None:
            return
        self.world.broker_watch.wire_closed(wire)
        self.broker.disconnected(self.world.clock.now, link, reason)
        self.pump()
        self._check_left(link)

    def _soon(self, action: Callable[[], None]) -> None:
        if self.broker is None:
            return
        if self.frozen_until:
            self._frozen.append(action)
        else:
            action()

    # --- outputs ---

    def _transmit(self, link: int) -> None:
        assert self.broker is not None
        wire = self.wires.get(link)
        chunks = self.broker.data_to_send(link)
        if wire is not None and chunks:
            wire.to_client.write(chunks[0] if len(chunks) == 1 else b"".join(chunks))

    def _disconnect(self, link: int) -> None:
        wire = self.wires.get(link)
        if wire is not None:
            self._transmit(link)
            del self.wires[link]
            self._unread.pop(link, None)
            self.world.trace.add(self.world.clock.now, self.name, f"wire {wire.number} closed")
            self.world.broker_watch.wire_closed(wire)
            wire.closed_by(client_side=False)
            self._check_left(link)

    def _check_left(self, link: int) -> None:
        """INV-L1: nothing is left of a connection that has ended."""
        connection = self._connections.pop(link, None)
        if connection is not None:
            BROKER_LINK_ENDED.check(f"{self.name}: link {link}", connection)

    def _persist(self, output: Persist) -> None:
        assert self._writing is None, "one Persist at a time"
        self._writing = (output.write, output.records)
        world = self.world
        self._began_healed = world.healed
        delay = world.timing.store_delay()
        world.clock.after(delay, self._synced, self.incarnation, output.write)
        if self.kill_pending is not None:
            keep, down_time = self.kill_pending
            self.kill_pending = None
            world.clock.after(delay // 2, self.cluster.kill_later, self, keep, down_time)

    def _synced(self, incarnation: int, write: int) -> None:
        if incarnation != self.incarnation or self.broker is None:
            return
        if self.frozen_until:
            self._frozen.append(lambda: self._synced(incarnation, write))
            return
        assert self._writing is not None
        assert self._writing[0] == write
        for topic in sorted(self.cluster.write(self, self._writing[1])):
            self.stale.setdefault(topic, None)
        self.learn_owners()
        self._writing = None
        world = self.world
        world.trace.add(world.clock.now, self.name, f"persisted {write}")
        self.broker.persisted(world.clock.now, write)
        self.pump()

    def wake(self) -> None:
        """Call the broker at its deadline; a spurious call is allowed."""
        if self.broker is None:
            return
        if self.frozen_until:
            self._frozen.append(self.wake)
            return
        self.broker.handle_deadline(self.world.clock.now)
        self.pump()
