"""The network of a world: byte streams between clients and brokers, and their faults.

Owns latency, the cutting and merging of segments, connecting, clean ends, resets and half-open links. A wire
is two pipes; a pipe keeps its bytes in order and loses them only with the rest of the wire. It parses frames
only to show the monitors which were written and which have arrived.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from pulsar_sansio.model.errors import FrameError
from pulsar_sansio.wire import FrameDecoder, max_frame_size

from .clock import MICROSECOND, MILLISECOND, SECOND, Clock
from .randomness import Stream
from .trace import Trace

FRAME_LIMIT = max_frame_size(64 * 1024 * 1024)
"""The frame limit of the monitors, in bytes; the machines have limits of their own."""


GARBAGE = -1
"""Stands in place of a command type for bytes that are no frame. Frames behind them are ignored."""


class NetworkEndpoint(Protocol):
    """The interface of a node to the network. A link is the node's own name of its end of a wire."""

    name: str

    def link_connected(self, link: int, wire: "Wire") -> None: ...
    def link_data(self, link: int, data: bytes, frames: list[tuple[int, int, Any]]) -> None: ...
    def link_eof(self, link: int) -> None: ...
    def link_lost(self, link: int, reason: str) -> None: ...


class Listener(NetworkEndpoint, Protocol):
    """A broker's interface: it may accept a wire."""

    def accept(self, wire: "Wire") -> bool: ...


class Monitor(Protocol):
    """Sees every frame when it is written. Arrived frames are passed with the bytes that complete them: the
    number of bytes behind the frame, its command type, its command.

    The monitor returns the bytes to write instead (b"" drops the frame), or None to let the frame pass.
    """

    def __call__(self, wire: "Wire", to_broker: bool, kind: int, command: Any) -> bytes | None: ...


class Conditions:
    """The conditions for new bytes and new connections. Faults change them; `heal` resets them."""

    __slots__ = ("connect_fates", "cut_permille", "jitter", "latency", "refused", "silent", "tiny_until")

    def __init__(self, latency: int, jitter: int, cut_permille: int) -> None:
        self.latency = latency
        self.jitter = jitter
        self.cut_permille = cut_permille
        self.tiny_until = 0
        """Virtual time until which segments have one to seven bytes."""
        self.refused: dict[str, int] = {}
        """Listener names, each with the time until which connections are refused."""
        self.silent: dict[str, int] = {}
        """Listener names, each with the time until which connections hang without an answer."""
        self.connect_fates: deque[str] = deque()
        """The fate of the next connections: "reset" (accepted and cut at once) or "hang"."""

    def heal(self) -> None:
        self.tiny_until = 0
        self.refused.clear()
        self.silent.clear()
        self.connect_fates.clear()
        self.latency = min(self.latency, 20 * MILLISECOND)
        self.jitter = min(self.jitter, 5 * MILLISECOND)


class Pipe:
    """One direction of a wire: bytes arrive in order, in other portions, later."""

    __slots__ = (
        "_decoded",
        "_decoder",
        "_injected",
        "_marks",
        "_partial",
        "_scheduled",
        "arrived",
        "blocked_until",
        "last_due",
        "lost",
        "queue",
        "to_broker",
        "wire",
        "written",
    )

    def __init__(self, wire: "Wire", to_broker: bool) -> None:
        self.wire = wire
        self.to_broker = to_broker
        self.queue: deque[tuple[int, bytes | None]] = deque()
        """Pairs (due, bytes); None is the end of the stream."""
        self.last_due = 0
        self.blocked_until = 0
        self.lost = False
        """From now on bytes are lost."""
        self.written = 0
        self.arrived = 0
        self._partial = b""
        self._decoder = FrameDecoder()
        self._decoded = True
        self._marks: deque[tuple[int, int, Any]] = deque()
        self._injected: list[tuple[bytes, int, Any]] | None = None
        """Frames to insert before the frame that the monitor is looking at."""
        self._scheduled = False

    # --- the sender's end ---

    def write(self, data: bytes) -> None:
        """Queue bytes. Pass each frame to the monitor, which may replace or drop it."""
        if self._decoded:
            data = self._monitor(data)
        if data:
            self.written += len(data)
            self._put(data)

    def inject(self, data: bytes, kind: int, command: Any) -> None:
        """Insert a frame that the sender's machine did not write; when the monitor calls, before the current
        frame."""
        if self._injected is not None:
            self._injected.append((data, kind, command))
            return
        self.written += len(data)
        self._marks.append((self.written, kind, command))
        self._put(data)

    def end(self) -> None:
        """The sender has closed: the end follows the queued bytes."""
        self._put(None)

    def stop_decoding(self) -> None:
        """Pass all bytes as they are, unseen by the monitor."""
        self._decoded = False

    def _monitor(self, data: bytes) -> bytes:
        if self._partial:
            data = self._partial + data
            self._partial = b""
        position = 0
        kept: list[bytes] = []
        untouched = 0
        written = self.wire.network.monitor
        offset = self.written
        while position < len(data):
            try:
                found = self._decoder.decode(data, position, FRAME_LIMIT)
            except FrameError:
                self._decoded = False
                self.wire.network.garbage(self)
                break
            if found is None:
                self._partial = data[position:]
                data = data[:position]
                break
            kind, command, end = found
            injected: list[tuple[bytes, int, Any]] = []
            self._injected = injected
            instead = written(self.wire, self.to_broker, kind, command)
            self._injected = None
            if injected or instead is not None:
                kept.append(data[untouched:position])
                untouched = position
            for frame, its_kind, its_command in injected:
                kept.append(frame)
                offset += len(frame)
                self._marks.append((offset + position, its_kind, its_command))
            if instead is None:
                self._marks.append((offset + end, kind, command))
            else:
                kept.append(instead)
                untouched = end
                offset += len(instead) - (end - position)
            position = end
        if kept:
            kept.append(data[untouched:])
            data = b"".join(kept)
        return data

    def _put(self, data: bytes | None) -> None:
        """Deliver bytes behind those in flight, after the latency, or lose them."""
        if self.lost:
            return
        network = self.wire.network
        conditions = network.conditions
        due = network.clock.now + conditions.latency
        if conditions.jitter:
            due += network.stream.below(conditions.jitter)
        if due < self.last_due:
            due = self.last_due
        if due < self.blocked_until:
            due = self.blocked_until
        self.last_due = due
        queue = self.queue
        queue.append((due, data))
        if not self._scheduled:
            self._scheduled = True
            network.clock.at(queue[0][0], self._deliver)

    def is_due(self, kind: int) -> bool:
        """True when a frame of that kind is in flight, or has arrived in part."""
        return any(each == kind for _, each, _ in self._marks)

    # --- the receiver's end ---

    def block(self, until: int) -> None:
        """Hold back all bytes until then."""
        self.blocked_until = max(self.blocked_until, until)

    def hold_no_longer_than(self, until: int) -> None:
        """Deliver held-back bytes, and those written meanwhile, no later than `until`."""
        if self.blocked_until <= until:
            return
        self.blocked_until = until
        self.last_due = min(self.last_due, until)
        if self.queue:
            self.queue = deque((min(due, until), data) for due, data in self.queue)
            self._scheduled = True
            self.wire.network.clock.at(self.queue[0][0], self._deliver)

    def truncate(self, keep: int) -> None:
        """Deliver only the first `keep` bytes in flight, and lose all that are written from now on."""
        kept: deque[tuple[int, bytes | None]] = deque()
        for due, data in self.queue:
            if keep and data:
                kept.append((due, data[:keep]))
                keep -= min(keep, len(data))
        self.queue = kept
        self.lost = True

    def drop(self) -> None:
        """Lose all bytes in flight, and all written from now on."""
        self.lost = True
        self.queue.clear()

    def _deliver(self) -> None:
        self._scheduled = False
        queue = self.queue
        if not queue:
            return
        network = self.wire.network
        now = network.clock.now
        if now < self.blocked_until:
            self._scheduled = True
            network.clock.at(self.blocked_until, self._deliver)
            return
        parts: list[bytes] = []
        end = False
        while queue and queue[0][0] <= now:
            data = queue.popleft()[1]
            if data is None:
                end = True
                break
            parts.append(data)
        data = parts[0] if len(parts) == 1 else b"".join(parts)
        conditions = network.conditions
        if len(data) > 1:
            if now < conditions.tiny_until:
                at = min(len(data), network.stream.between(1, max(7, len(data) // 10)))
            elif network.stream.chance(conditions.cut_permille):
                at = network.stream.between(1, len(data) - 1)
            else:
                at = len(data)
            if at < len(data):
                if end:
                    queue.appendleft((now, None))
                    end = False
                queue.appendleft((now + network.stream.between(1, 50) * MICROSECOND, data[at:]))
                data = data[:at]
        if queue:
            self._scheduled = True
            network.clock.at(queue[0][0], self._deliver)
        if data:
            self._hand_over(data)
        if end:
            self.wire.deliver_end(self.to_broker)

    def _hand_over(self, data: bytes) -> None:
        self.arrived = arrived = self.arrived + len(data)
        marks = self._marks
        wire = self.wire
        node: NetworkEndpoint
        if self.to_broker:
            node, link, is_open = wire.broker, wire.broker_link, wire.broker_open
        else:
            node, link, is_open = wire.client, wire.client_link, wire.client_open
        if not is_open:
            wire.write_to_closed(self.to_broker)
            return
        frames = []
        while marks and marks[0][0] <= arrived:
            end, kind, command = marks.popleft()
            frames.append((arrived - end, kind, command))
        network = wire.network
        network.trace.add_bytes(network.clock.now, node.name, f"wire {wire.number} data", data)
        node.link_data(link, data, frames)


class Wire:
    """One connection: two pipes, two ends."""

    __slots__ = (
        "broker",
        "broker_link",
        "broker_open",
        "client",
        "client_link",
        "client_open",
        "ended",
        "network",
        "number",
        "to_broker",
        "to_client",
    )

    def __init__(
        self, network: "Network", number: int, client: NetworkEndpoint, link: int, broker: Listener
    ) -> None:
        self.network = network
        self.number = number
        self.client = client
        self.client_link = link
        self.broker = broker
        self.broker_link = number
        self.client_open = True
        self.broker_open = True
        self.ended = False
        self.to_broker = Pipe(self, True)
        self.to_client = Pipe(self, False)

    def carries_no_frames(self) -> None:
        """The bytes of both directions are HTTP: no monitor sees them."""
        self.to_broker.stop_decoding()
        self.to_client.stop_decoding()

    def deliver_end(self, to_broker: bool) -> None:
        node: NetworkEndpoint = self.broker if to_broker else self.client
        if self.broker_open if to_broker else self.client_open:
            self.network.trace.add(self.network.clock.now, node.name, f"wire {self.number} end")
            node.link_eof(self.broker_link if to_broker else self.client_link)

    def closed_by(self, client_side: bool, abort: bool = False) -> None:
        """A machine has closed its end; its last bytes are in the pipe already. `abort`: its process died."""
        if client_side:
            self.client_open = False
            outgoing, incoming = self.to_broker, self.to_client
        else:
            self.broker_open = False
            outgoing, incoming = self.to_client, self.to_broker
        incoming.queue.clear()
        if abort:
            outgoing.drop()
            if self.broker_open or self.client_open:
                self._lose_later(not client_side, "connection reset by peer")
        else:
            outgoing.end()
        self._forget_when_closed()

    def write_to_closed(self, to_broker: bool) -> None:
        """Bytes reached a closed end: the sender may get a reset."""
        if not self.ended and not self.to_broker.lost and self.network.stream.chance(500):
            self.ended = True
            self._lose_later(to_broker, "connection reset by peer")

    def reset(self, reason: str = "connection reset") -> None:
        """Reset the wire: each end is told at its own time, and bytes in flight are lost."""
        self.to_broker.drop()
        self.to_client.drop()
        self.ended = True
        for client_side in (True, False):
            self._lose_later(client_side, reason)

    def half_open(self, to_broker: bool, to_client: bool) -> None:
        """Lose the bytes in the directions named, and tell neither end."""
        if to_broker:
            self.to_broker.drop()
        if to_client:
            self.to_client.drop()

    def broker_vanished(self) -> None:
        """The broker's host is gone, and the client is not told."""
        self.half_open(to_broker=True, to_client=True)
        self.broker_open = False
        self._forget_when_closed()

    def clean_end(self) -> None:
        """Let a middlebox close both directions in good order."""
        for pipe in (self.to_broker, self.to_client):
            pipe.end()
            pipe.lost = True

    def _lose_later(self, client_side: bool, reason: str) -> None:
        network = self.network
        delay = network.conditions.latency * network.stream.below(3) + network.stream.below(MILLISECOND)
        network.clock.after(delay, self._lose, client_side, reason)

    def _lose(self, client_side: bool, reason: str) -> None:
        if not (self.client_open if client_side else self.broker_open):
            return
        node: NetworkEndpoint = self.client if client_side else self.broker
        self.network.trace.add(self.network.clock.now, node.name, f"wire {self.number} lost: {reason}")
        if client_side:
            self.client_open = False
            self.to_client.queue.clear()
        else:
            self.broker_open = False
            self.to_broker.queue.clear()
        self._forget_when_closed()
        node.link_lost(self.client_link if client_side else self.broker_link, reason)

    def _forget_when_closed(self) -> None:
        if not self.client_open and not self.broker_open:
            self.network.wires.pop(self.number, None)


class Attempt:
    """A connection being opened."""

    __slots__ = ("cancelled", "client", "link")

    def __init__(self, client: NetworkEndpoint, link: int) -> None:
        self.client = client
        self.link = link
        self.cancelled = False


class Network:
    """All wires. Listeners are found by host name."""

    def __init__(
        self,
        clock: Clock,
        stream: Stream,
        trace: Trace,
        conditions: Conditions,
        monitor: Monitor,
        garbage: Callable[[Pipe], None],
    ) -> None:
        self.clock = clock
        self.stream = stream
        self.trace = trace
        self.conditions = conditions
        self.monitor = monitor
        self.garbage = garbage
        """Called when a machine writes bytes that are no frame."""
        self.listeners: dict[str, Listener] = {}
        self.wires: dict[int, Wire] = {}
        """Wires by number, in order of opening."""
        self.make_wire: Callable[[Network, int, NetworkEndpoint, int, Listener], Wire] = Wire
        """Makes each new wire; sweeps replace it to end wires at a chosen byte."""
        self._count = 0

    def connect(self, client: NetworkEndpoint, link: int, host: str) -> Attempt:
        attempt = Attempt(client, link)
        conditions = self.conditions
        delay = 2 * conditions.latency + (self.stream.below(conditions.jitter) if conditions.jitter else 0)
        self.clock.after(delay, self._connected, attempt, host)
        return attempt

    def _connected(self, attempt: Attempt, host: str) -> None:
        if attempt.cancelled:
            return
        now = self.clock.now
        conditions = self.conditions
        listener = self.listeners.get(host)
        if conditions.silent.get(host, 0) > now:
            return
        if listener is None or conditions.refused.get(host, 0) > now:
            self._refuse(attempt)
            return
        fate = conditions.connect_fates.popleft() if conditions.connect_fates else ""
        if fate == "hang":
            return
        self._count += 1
        wire = self.make_wire(self, self._count, attempt.client, attempt.link, listener)
        self.wires[wire.number] = wire
        if not listener.accept(wire):
            del self.wires[wire.number]
            self._refuse(attempt)
            return
        self.trace.add(now, attempt.client.name, f"wire {wire.number} open to {host}")
        attempt.client.link_connected(attempt.link, wire)
        if fate == "reset":
            wire.reset()

    def _refuse(self, attempt: Attempt) -> None:
        self.trace.add(self.clock.now, attempt.client.name, f"link {attempt.link} refused")
        attempt.client.link_lost(attempt.link, "connection refused")

    def heal(self) -> None:
        """End all conditions caused by faults. A wire that loses bytes goes on losing them: the machines must
        detect that."""
        self.conditions.heal()
        for wire in list(self.wires.values()):
            for pipe in (wire.to_broker, wire.to_client):
                pipe.hold_no_longer_than(self.clock.now + SECOND)
