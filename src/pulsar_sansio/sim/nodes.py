"""Nodes: one machine each, driven exactly as an adapter would drive it.

Owns draining outputs, waking at deadlines (on time, late, or once too often), and what a process is: a
broker node can be killed and started again over its store. It decides nothing about the protocol; what an
application does with the news is the application's business.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ..broker.broker import Broker
from ..broker.config import BrokerConfig
from ..broker.outputs import Disconnect as BrokerDisconnect
from ..broker.outputs import Output as BrokerOutput
from ..broker.outputs import Persist, ResumeReading
from ..broker.outputs import Transmit as BrokerTransmit
from ..broker.store import MemoryStore
from ..client.client import Client
from ..client.outputs import Connect, Disconnect, Output, Transmit
from ..model.config import ClientConfig
from .clock import MILLISECOND, SECOND
from .network import Attempt, Wire
from .violations import ViolationError

if TYPE_CHECKING:
    from .world import World

MAX_WAKES_AT_ONCE = 1000
"""A machine that asks to be woken more often than this without time passing is in a loop."""


MAX_ATTEMPTS = 100
"""Connections one client may try to open within a second; its backoff begins at a tenth of a second."""


class Application(Protocol):
    """Who gets the news of a client."""

    def on_output(self, output: Output) -> None: ...


class LivelockError(AssertionError):
    """A machine asks to be woken again and again at one instant."""


class Timer:
    """Wakes a machine at its deadline. Late and spurious wake-ups are the environment's right."""

    __slots__ = ("_armed", "_deadline", "_fire", "_last", "_repeats", "_world", "name")

    def __init__(
        self, world: "World", name: str, deadline: Callable[[], int | None], fire: Callable[[], None]
    ) -> None:
        self._world = world
        self.name = name
        self._deadline = deadline
        self._fire = fire
        self._armed: int | None = None
        self._repeats = 0
        self._last = -1

    def arm(self) -> None:
        """To be called after every input."""
        deadline = self._deadline()
        if deadline is not None and (self._armed is None or deadline < self._armed):
            self._armed = deadline
            clock = self._world.clock
            when = self._world.weather.wakes_at(self.name, max(deadline, clock.now))
            clock.at(when, self.wake, deadline)

    def cancel(self) -> None:
        self._armed = None

    def wake(self, deadline: int) -> None:
        """The moment came for which the machine was to be woken."""
        if self._armed != deadline:
            return
        self._armed = None
        world = self._world
        now = world.clock.now
        actual = self._deadline()
        if (actual is None or actual > now) and not world.weather.wakes_for_nothing(self.name):
            self.arm()
            return
        self._repeats = self._repeats + 1 if now == self._last else 0
        self._last = now
        if self._repeats > MAX_WAKES_AT_ONCE:
            raise LivelockError(f"{self.name} asks to be woken for ever at one instant")
        world.trace.add(now, self.name, "wake")
        self._fire()


class ClientNode:
    """One client process: a `Client` and the ends of its wires."""

    def __init__(self, world: "World", name: str, config: ClientConfig, application: Application) -> None:
        self.world = world
        self.name = name
        self.config = config
        self.application = application
        self.client = Client(world.clock.now, config, seed=world.streams.seed_of(f"machine {name}"))
        self.wires: dict[int, Wire] = {}
        self.attempts: dict[int, Attempt] = {}
        self.alive = True
        self._recent_attempts: deque[int] = deque()
        self._timer = Timer(world, name, self.client.next_deadline, self.wake)
        self._pumping = False

    def pump(self) -> None:
        """Drain the outputs. Commands given meanwhile by the application are drained by the same loop."""
        if self._pumping:
            return
        self._pumping = True
        client = self.client
        while (output := client.next_output()) is not None:
            kind = type(output)
            if kind is Transmit:
                self._transmit(output.link)  # type: ignore[union-attr]
            elif kind is Connect:
                self._connect(output)  # type: ignore[arg-type]
            elif kind is Disconnect:
                self._disconnect(output)  # type: ignore[arg-type]
            else:
                self.application.on_output(output)
        self._pumping = False
        self._timer.arm()

    def crash(self) -> None:
        """The process dies; nothing is told to anybody but the peers' kernels."""
        self.alive = False
        self._timer.cancel()
        for attempt in self.attempts.values():
            attempt.cancelled = True
        self.attempts.clear()
        for wire in list(self.wires.values()):
            wire.closed_by(client_side=True, abort=True)
        self.wires.clear()

    # --- the network's side ---

    def link_connected(self, link: int, wire: Wire) -> None:
        self.attempts.pop(link, None)
        self.wires[link] = wire
        self.client.connected(self.world.clock.now, link)
        self.pump()

    def link_data(self, link: int, data: bytes, frames: list[tuple[int, Any]]) -> None:
        wire = self.wires.get(link)
        if wire is None:
            return
        watch = self.world.client_watch
        for kind, command in frames:
            watch.got(wire, kind, command)
        self.client.receive_data(self.world.clock.now, link, data)
        self.pump()
        watch.settled(wire)

    def link_eof(self, link: int) -> None:
        wire = self.wires.get(link)
        if wire is not None:
            self.world.client_watch.end(wire).over = True
        self.client.receive_eof(self.world.clock.now, link)
        self.pump()

    def link_lost(self, link: int, reason: str) -> None:
        self.attempts.pop(link, None)
        wire = self.wires.pop(link, None)
        if wire is not None:
            self.world.client_watch.forget(wire)
        if self.alive:
            self.client.disconnected(self.world.clock.now, link, reason)
            self.pump()

    # --- outputs ---

    def _connect(self, output: Connect) -> None:
        self._count_attempt()
        self.attempts[output.link] = self.world.network.connect(self, output.link, output.address.host)

    def _count_attempt(self) -> None:
        """INV-N6: an outage is no reason for a storm."""
        now = self.world.clock.now
        recent = self._recent_attempts
        recent.append(now)
        while recent[0] < now - SECOND:
            recent.popleft()
        if len(recent) > MAX_ATTEMPTS:
            raise ViolationError("INV-N6", f"{self.name} opens {len(recent)} connections within a second")

    def _transmit(self, link: int) -> None:
        wire = self.wires.get(link)
        chunks = self.client.data_to_send(link)
        if wire is not None and chunks:
            wire.to_broker.write(chunks[0] if len(chunks) == 1 else b"".join(chunks))

    def _disconnect(self, output: Disconnect) -> None:
        link = output.link
        attempt = self.attempts.pop(link, None)
        if attempt is not None:
            attempt.cancelled = True
        wire = self.wires.get(link)
        if wire is not None:
            self._transmit(link)
            del self.wires[link]
            self.world.trace.add(self.world.clock.now, self.name, f"wire {wire.number} closed")
            self.world.client_watch.ends_link(wire, output.reason, self.config)
            self.world.client_watch.forget(wire)
            wire.closed_by(client_side=True)
            weather = self.world.weather
            if weather.stale_permille and weather.stream.chance(weather.stale_permille):
                self.world.count_fault("stale_input")
                self.client.receive_data(self.world.clock.now, link, b"\0\0\0\1stale")
                self.client.disconnected(self.world.clock.now, link, "stale")

    def wake(self) -> None:
        """Let the machine look at the time; it may have nothing to do."""
        self.client.handle_deadline(self.world.clock.now)
        self.pump()


class BrokerNode:
    """One broker process after another, over one store that survives them."""

    def __init__(self, world: "World", name: str, config: BrokerConfig) -> None:
        self.world = world
        self.name = name
        self.config = config
        self.store = MemoryStore()
        self.broker: Broker | None = None
        self.wires: dict[int, Wire] = {}
        self.incarnation = 0
        self.frozen_until = 0
        self._writing: tuple[int, Sequence[Any]] | None = None
        self._frozen: list[Callable[[], None]] = []
        self._unread: dict[int, list[tuple[bytes, list[tuple[int, Any]]]]] = {}
        """By link: bytes that came while the broker did not read."""
        self.doomed: tuple[bool, int] | None = None
        """To be killed during the next write: whether the write is kept, and for how long it stays down."""
        self._timer: Timer | None = None
        world.network.listeners[name] = self

    def boot(self) -> None:
        """Start a new process over what the store holds."""
        world = self.world
        self.incarnation += 1
        seed = world.streams.seed_of(f"machine {self.name} {self.incarnation}")
        now = world.clock.now
        self.broker = Broker(now, self.config, self.store.load(), seed=seed, wall_time=world.wall_time())
        self._timer = Timer(world, self.name, self.broker.next_deadline, self.wake)
        world.trace.add(now, self.name, f"boots {self.incarnation}")
        self.pump()

    def kill(self, keep_unsynced: bool, silently: bool) -> None:
        """The process dies between two instructions. What was being written is kept or lost as a whole.

        `silently`: the machine dies with it, and no peer is told.
        """
        world = self.world
        world.trace.add(world.clock.now, self.name, f"killed keep={keep_unsynced} silent={silently}")
        world.broker_watch.died(list(self.wires.values()))
        if self._writing is not None:
            world.count_fault("store_kept_unreported" if keep_unsynced else "store_lost_unsynced")
            if keep_unsynced:
                self.store.write(self._writing[1])
            self._writing = None
        self.broker = None
        self.frozen_until = 0
        self._frozen.clear()
        self._unread.clear()
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
        """Stop the process; it finds everything that came meanwhile when it goes on."""
        if not self.frozen_until:
            self.world.clock.at(until, self._thaw, self.incarnation)
            self.frozen_until = until

    def _thaw(self, incarnation: int) -> None:
        if self.incarnation == incarnation:
            self.thaw()

    def thaw(self) -> None:
        """Let the process go on."""
        if self.broker is None or not self.frozen_until:
            return
        self.frozen_until = 0
        waiting, self._frozen = self._frozen, []
        for action in waiting:
            if self.broker is not None:
                action()
        for link in list(self._unread):
            self._read_on(link)

    def command(self, command: Callable[..., Any], *arguments: Any) -> Any:
        """An administrator's command."""
        result = command(self.world.clock.now, *arguments)
        self.pump()
        return result

    def pump(self) -> None:
        broker = self.broker
        assert broker is not None
        assert self._timer is not None
        while outputs := self._outputs(broker):
            for output in outputs:
                self._obey(output)
        self._timer.arm()

    def _outputs(self, broker: Broker) -> list[BrokerOutput]:
        """All there are. Which wires end is known to the watch before any of them is obeyed: the broker
        speaks of the end first, but may have asked earlier to write what it says because of it."""
        outputs = []
        while (output := broker.next_output()) is not None:
            if type(output) is BrokerDisconnect and output.link in self.wires:
                self.world.broker_watch.wire_closing(self.wires[output.link])
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
        else:
            assert kind is BrokerDisconnect
            self._disconnect(output.link)  # type: ignore[union-attr]

    # --- the network's side ---

    def accept(self, wire: Wire) -> bool:
        if self.broker is None:
            return False
        self.wires[wire.number] = wire
        self._soon(lambda: self._accept(wire))
        return True

    def _accept(self, wire: Wire) -> None:
        if wire.broker_open and self.broker is not None:
            self.broker.accepted(self.world.clock.now, wire.number, f"{wire.client.name}:{wire.number}")
            self.pump()

    def link_connected(self, link: int, wire: Wire) -> None:
        raise AssertionError("a broker does not connect")

    def link_data(self, link: int, data: bytes, frames: list[tuple[int, Any]]) -> None:
        if self.broker is None:
            return
        if self.frozen_until or link in self._unread or not self.broker.wants_read(link):
            self._unread.setdefault(link, []).append((data, frames))
        else:
            self._input(link, data, frames)

    def _input(self, link: int, data: bytes, frames: list[tuple[int, Any]]) -> None:
        wire = self.wires.get(link)
        broker = self.broker
        if wire is None or broker is None:
            return
        watch = self.world.broker_watch
        for kind, command in frames:
            watch.got(wire, kind, command)
        broker.receive_data(self.world.clock.now, link, data)
        self.pump()
        watch.settled()

    def _read_on(self, link: int) -> None:
        """Hand over what waited, as long as the broker wants it."""
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

    def _persist(self, output: Persist) -> None:
        assert self._writing is None, "one Persist at a time"
        self._writing = (output.write, output.records)
        world = self.world
        delay = world.weather.store_delay()
        world.clock.after(delay, self._synced, self.incarnation, output.write)
        if self.doomed is not None:
            keep, down_time = self.doomed
            self.doomed = None
            world.clock.after(delay // 2, world.cluster.kill_later, self, keep, down_time)

    def _synced(self, incarnation: int, write: int) -> None:
        if incarnation != self.incarnation or self.broker is None:
            return
        if self.frozen_until:
            self._frozen.append(lambda: self._synced(incarnation, write))
            return
        assert self._writing is not None
        assert self._writing[0] == write
        self.store.write(self._writing[1])
        self._writing = None
        world = self.world
        world.trace.add(world.clock.now, self.name, f"persisted {write}")
        self.broker.persisted(world.clock.now, write)
        self.pump()

    def wake(self) -> None:
        """Let the machine look at the time; it may have nothing to do."""
        if self.broker is None:
            return
        if self.frozen_until:
            self._frozen.append(self.wake)
            return
        self.broker.handle_deadline(self.world.clock.now)
        self.pump()
