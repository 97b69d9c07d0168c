"""Sockets in memory over the simulator's network.

A `MemorySocket` behaves as the non-blocking sockets that `pulsar_trio.link` owns: short reads and writes, a
send buffer that fills up, ends, resets, spurious readiness. The bytes travel on the simulator's wires, with
its latency, segments, cuts and half-open links; its clock is driven by trio's.
"""

import errno
import socket
from collections.abc import Callable, Sequence
from math import inf
from typing import Any

import trio

from pulsar_sansio import Address
from pulsar_sim.engine.clock import Action, Clock
from pulsar_sim.engine.network import Conditions, Listener, Network, NetworkEndpoint, Pipe, Wire
from pulsar_sim.engine.randomness import Stream
from pulsar_sim.engine.trace import Trace

TOLERANCE = 1_000
"""Nanoseconds by which a moment may come early: trio's clock is a float."""


class TrioClock(Clock):
    """The simulator's clock, as far as trio's has come."""

    def __init__(self) -> None:
        super().__init__(0)
        self._scope = trio.CancelScope()

    def sync(self) -> int:
        """Note that time has passed; gives the nanoseconds."""
        self.now = max(self.now, int(trio.current_time() * 1_000_000_000))
        return self.now

    def at(self, when: int, action: Action, *arguments: Any) -> None:
        super().at(when, action, *arguments)
        self._scope.deadline = min(self._scope.deadline, when / 1_000_000_000)

    def after(self, delay: int, action: Action, *arguments: Any) -> None:
        self.at(self.now + delay, action, *arguments)

    async def run(self) -> None:
        """Do what is due, for ever."""
        while True:
            due = self.next_time()
            if due is not None and due <= self.sync() + TOLERANCE:
                self.step()
                continue
            with trio.CancelScope(deadline=inf if due is None else due / 1_000_000_000) as self._scope:
                await trio.sleep_forever()


class _SocketPipe(Pipe):
    """Carries whatever it is given; frames are watched at the machines."""

    __slots__ = ()

    def write(self, data: bytes) -> None:
        self.written += len(data)
        self._put(data)


class _SocketWire(Wire):
    __slots__ = ()

    def __init__(
        self, network: Network, number: int, client: NetworkEndpoint, link: int, broker: Listener
    ) -> None:
        super().__init__(network, number, client, link, broker)
        self.to_broker = _SocketPipe(self, True)
        self.to_client = _SocketPipe(self, False)


class MemorySocket:
    """One end of a wire. `capacity`: bytes that may be under way or unread before it takes no more."""

    def __init__(self, net: "Net", client_side: bool, name: str) -> None:
        self.name = name
        self.wire: Wire | None = None
        self.peer: MemorySocket | None = None
        self.opened = trio.Event()
        self._net = net
        self.client_side = client_side
        self._capacity = net.stream.spread(max(64, net.capacity // 16), net.capacity)
        self._inbox = bytearray()
        self._sent = 0
        self._read = 0
        self._eof = False
        self._error = ""
        self.closed = False
        self.mute = False
        """Nothing can be sent any more, as where a firewall forbids it; reading goes on."""
        self.ended_at: float | None = None
        """The time at which its reader could first find out that the peer or the connection has gone."""
        self._readers = trio.lowlevel.ParkingLot()
        self._writers = trio.lowlevel.ParkingLot()

    @property
    def carried(self) -> tuple[int, int]:
        """Bytes that were sent, and bytes that were read."""
        return self._sent, self._read

    # --- as a socket ------------------------------------------------------------------------------------

    def recv_into(self, buffer: memoryview) -> int:
        self._check_open()
        if self._inbox:
            size = min(len(self._inbox), len(buffer))
            if self._net.stream.chance(self._net.short_permille):
                size = self._net.stream.between(1, size)
            buffer[:size] = self._inbox[:size]
            del self._inbox[:size]
            self._read += size
            if self.peer is not None:
                self.peer._writers.unpark_all()
            return size
        if self._error:
            raise ConnectionResetError(errno.ECONNRESET, self._error)
        if self._eof:
            return 0
        raise BlockingIOError

    def send(self, data: bytes | memoryview) -> int:
        self._check_open()
        if self._error or self.mute:
            self._note_end()
            if self.mute:
                raise PermissionError(errno.EPERM, "sending is forbidden")
            raise ConnectionResetError(errno.ECONNRESET, self._error)
        size = min(len(data), self._room())
        if data and not size:
            raise BlockingIOError
        if size > 1 and self._net.stream.chance(self._net.short_permille):
            size = self._net.stream.between(1, size)
        self._net.clock.sync()
        self._outgoing().write(bytes(data[:size]))
        self._sent += size
        return size

    def sendmsg(self, chunks: Sequence[bytes | memoryview]) -> int:
        return self.send(b"".join(chunks))

    def shutdown(self, how: int) -> None:
        assert how == socket.SHUT_WR
        self._check_open()
        if self._error:
            raise OSError(errno.ENOTCONN, "not connected")
        self._net.clock.sync()
        self._outgoing().end()

    def close(self) -> None:
        """With bytes unread it is a reset, as with the real ones."""
        if not self.closed:
            self.closed = True
            self._net.open.remove(self)
            if self.wire is not None and not self._error:
                self._net.clock.sync()
                self.wire.closed_by(self.client_side, abort=bool(self._inbox))

    async def wait_readable(self) -> None:
        if self._inbox or self._eof or self._error or self._net.spurious():
            await trio.lowlevel.checkpoint()
        else:
            await self._readers.park()

    async def wait_writable(self) -> None:
        if self._room() or self._error or self._net.spurious():
            await trio.lowlevel.checkpoint()
        else:
            await self._writers.park()

    def _note_end(self) -> None:
        """A client always reads. A broker does not while it is behind, so it finds out when it writes."""
        if self.ended_at is None:
            self.ended_at = trio.current_time()

    def _check_open(self) -> None:
        if self.closed:
            raise OSError(errno.EBADF, "the socket is closed")

    def _room(self) -> int:
        unread = self._sent - (self.peer._read if self.peer is not None else 0)
        return max(0, self._capacity - unread)

    def _outgoing(self) -> Pipe:
        assert self.wire is not None
        return self.wire.to_broker if self.client_side else self.wire.to_client

    # --- as the end of a wire -------------------------------------------------------------------------

    def link_connected(self, link: int, wire: Wire) -> None:
        self.wire = wire
        self.opened.set()

    def link_data(self, link: int, data: bytes, frames: list[tuple[int, int, Any]]) -> None:
        self._inbox += data
        self._readers.unpark_all()

    def link_eof(self, link: int) -> None:
        self._eof = True
        if self.client_side:
            self._note_end()
        self._readers.unpark_all()

    def link_lost(self, link: int, reason: str) -> None:
        self._error = reason
        if self.client_side:
            self._note_end()
        self.opened.set()
        self._readers.unpark_all()
        self._writers.unpark_all()


class MemoryListener:
    """The broker's host name. `take` gets accepted sockets; without it connections are refused."""

    def __init__(self, net: "Net", name: str) -> None:
        self.name = name
        self.take: Callable[[MemorySocket, str], None] | None = None
        self._net = net
        self._sockets: dict[int, MemorySocket] = {}

    def accept(self, wire: Wire) -> bool:
        if self.take is None:
            return False
        client = wire.client
        assert isinstance(client, MemorySocket)
        sock = self._net.socket(False, f"wire {wire.number} of {client.name}")
        sock.wire = wire
        sock.peer, client.peer = client, sock
        self._sockets[wire.number] = sock
        self.take(sock, f"{client.name}/{wire.number}")
        return True

    def link_connected(self, link: int, wire: Wire) -> None:
        raise AssertionError("a broker does not connect")

    def link_data(self, link: int, data: bytes, frames: list[tuple[int, int, Any]]) -> None:
        self._sockets[link].link_data(link, data, frames)

    def link_eof(self, link: int) -> None:
        self._sockets[link].link_eof(link)

    def link_lost(self, link: int, reason: str) -> None:
        self._sockets[link].link_lost(link, reason)


class Net:
    """The network of a run, and its sockets."""

    def __init__(self, stream: Stream, trace: Trace, conditions: Conditions, capacity: int) -> None:
        self.clock = TrioClock()
        self.stream = stream
        self.capacity = capacity
        self.short_permille = stream.choice([0, 50, 500])
        """The share of calls, in thousandths, in which the system takes or gives less than it could."""
        self.spurious_permille = stream.choice([0, 20])
        self.open: list[MemorySocket] = []
        self.network = Network(self.clock, stream, trace, conditions, _no_monitor, _no_garbage)
        self.network.make_wire = _SocketWire

    def spurious(self) -> bool:
        return self.stream.chance(self.spurious_permille)

    def socket(self, client_side: bool, name: str) -> MemorySocket:
        made = MemorySocket(self, client_side, name)
        self.open.append(made)
        return made

    async def connect(self, name: str, address: Address, timeout: float) -> MemorySocket:
        """Connect as `pulsar_trio.transport.connecting.connect` does."""
        sock = self.socket(True, name)
        self.clock.sync()
        attempt = self.network.connect(sock, 0, address.host)
        try:
            with trio.move_on_after(timeout):
                await sock.opened.wait()
                if sock.wire is not None:
                    return sock
        except BaseException:
            attempt.cancelled = True
            sock.close()
            raise
        attempt.cancelled = True
        sock.close()
        raise OSError(f"cannot connect to {address}: {sock._error or 'no answer'}")


def _no_monitor(wire: Wire, to_broker: bool, kind: int, command: Any) -> bytes | None:
    return None


def _no_garbage(pipe: Pipe) -> None:
    raise AssertionError("these pipes look at nothing")
