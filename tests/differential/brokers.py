"""The brokers of a conversation: our machine under a virtual clock, or any broker by sockets.

Both know the same: open, write and break connections, settle until the broker is quiet, and administer.
"""

import selectors
import socket
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol
from urllib.parse import urlsplit

from pulsar_sansio import LocalProtocolError
from pulsar_sansio.broker import BrokerConfig
from pulsar_sansio.wire import FrameDecoder, encode_ping, encode_pong, max_frame_size, proto
from tests.broker.peer import Peer, World
from tests.real_pulsar import Admin
from tests.real_pulsar.admin import AdminError, topic_path

Type = proto.BaseCommand.Type

Inbox = deque[tuple[int, Any]]

ANSWER_TIMEOUT = 8.0
"""Seconds to wait for the answer to a request that the broker does not answer."""

PATIENCE = 1.0
"""Seconds to wait for frames that are expected."""

QUIET = 0.06
"""Seconds without a frame after which a broker behind a socket is quiet."""

CALM = 0.25
"""Seconds of the virtual clock after which our machine is quiet."""

LIMIT = max_frame_size()


class Broker(Protocol):
    """A broker as the player needs it."""

    inboxes: dict[int, Inbox]
    """Connection -> the frames that arrived and that the player has not taken."""

    @property
    def closed(self) -> set[int]:
        """Connections that the broker has ended."""
        ...

    def open(self, connection: int) -> None: ...
    def write(self, connection: int, data: bytes) -> None: ...
    def drop(self, connection: int) -> None: ...
    def settle(self, is_answered: Callable[[], bool], expected: int) -> None:
        """Wait until the broker has answered, and is quiet; longer for the number of frames expected."""
        ...

    def pause(self, seconds: float) -> None: ...
    def wall_time(self) -> int:
        """Return milliseconds since 1970."""
        ...

    def administer(self, verb: str, *arguments: Any) -> bool:
        """Return False where the broker refuses."""
        ...

    def close(self) -> None: ...


class MachineBroker:
    """Our broker without an adapter. It is configured as the real standalone of `tests/real_pulsar` is."""

    def __init__(self, namespace: str) -> None:
        config = BrokerConfig(
            proxy_through_service_url=True, key_shared_consistent_hashing=True, delayed_delivery_tick=0.1
        )
        self._world = World(config)
        self._world.broker.administration.create_namespace(0, namespace)
        self._world.pump()
        self._peers: dict[int, Peer] = {}
        self.inboxes: dict[int, Inbox] = {}

    @property
    def closed(self) -> set[int]:
        return {connection for connection, peer in self._peers.items() if peer.closed is not None}

    def open(self, connection: int) -> None:
        self._peers[connection] = self._world.raw()
        self.inboxes[connection] = self._peers[connection].inbox

    def write(self, connection: int, data: bytes) -> None:
        self._peers[connection].feed(data)

    def drop(self, connection: int) -> None:
        self._peers.pop(connection).drop()

    def settle(self, is_answered: Callable[[], bool], expected: int) -> None:
        self._advance(CALM)
        if not is_answered():
            self._advance(ANSWER_TIMEOUT)

    def _advance(self, seconds: float) -> None:
        self._world.advance(seconds)
        for peer in self._peers.values():
            for ping in [frame for frame in peer.inbox if frame[0] == Type.PING]:
                peer.inbox.remove(ping)
                peer.feed(encode_pong())

    def pause(self, seconds: float) -> None:
        self._advance(seconds)

    def wall_time(self) -> int:
        return self._world.broker.wall_time

    def administer(self, verb: str, *arguments: Any) -> bool:
        try:
            getattr(self, f"_{verb}")(*arguments)
        except LocalProtocolError:
            return False
        finally:
            self._world.pump()
        return True

    def _create_topic(self, topic: str) -> None:
        self._world.broker.topic_administration.create_topic(self._world.now, topic)

    def _create_partitioned_topic(self, topic: str, partitions: int) -> None:
        self._world.broker.topic_administration.create_partitioned_topic(self._world.now, topic, partitions)

    def _update_partitions(self, topic: str, partitions: int) -> None:
        self._world.broker.topic_administration.update_partitions(self._world.now, topic, partitions)

    def _unload(self, topic: str) -> None:
        self._world.broker.topic_administration.unload(self._world.now, topic)

    def _terminate(self, topic: str) -> None:
        self._world.broker.topic_administration.terminate(self._world.now, topic)

    def _delete_topic(self, topic: str, force: bool) -> None:
        self._world.broker.topic_administration.delete_topic(self._world.now, topic, force)

    def _compact(self, topic: str) -> None:
        self._world.broker.topic_administration.compact(self._world.now, topic)

    def _deduplicate(self, namespace: str) -> None:
        self._world.broker.administration.set_policy(self._world.now, namespace, "deduplication", True)

    def close(self) -> None:
        pass


class SocketBroker:
    """A broker that listens at `url`, administered over HTTP by `admin`."""

    def __init__(self, url: str, admin: Admin, namespace: str, quiet: float = QUIET) -> None:
        address = urlsplit(url)
        assert address.hostname is not None
        assert address.port is not None
        self._address = (address.hostname, address.port)
        self._admin = admin
        self._quiet = quiet
        self._sockets: dict[int, socket.socket] = {}
        self._bytes: dict[int, bytes] = {}
        self._selector = selectors.DefaultSelector()
        self._connected: set[int] = set()
        """Connections with an answer to CONNECT."""
        self._pings: set[int] = set()
        """Connections whose PONG has to come."""
        self.inboxes: dict[int, Inbox] = {}
        self.closed: set[int] = set()
        admin.create_namespace(namespace)

    def open(self, connection: int) -> None:
        opened = socket.create_connection(self._address)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._sockets[connection] = opened
        self._bytes[connection] = b""
        self.inboxes[connection] = deque()
        self.closed.discard(connection)
        self._selector.register(opened, selectors.EVENT_READ, connection)

    def write(self, connection: int, data: bytes) -> None:
        try:
            self._sockets[connection].sendall(data)
        except OSError:
            self._end(connection)

    def drop(self, connection: int) -> None:
        self._selector.unregister(self._sockets[connection])
        self._sockets.pop(connection).close()
        self._connected.discard(connection)

    def _end(self, connection: int) -> None:
        self.drop(connection)
        self.closed.add(connection)

    def settle(self, is_answered: Callable[[], bool], expected: int) -> None:
        now = time.monotonic()
        end, late = now + ANSWER_TIMEOUT, now + PATIENCE
        while time.monotonic() < end and not is_answered():
            self._read(0.01)
        self._fence(end)
        while time.monotonic() < late and sum(map(len, self.inboxes.values())) < expected:
            self._read(0.01)
        last = time.monotonic()
        while time.monotonic() < last + self._quiet:
            if self._read(self._quiet / 4):
                last = time.monotonic()

    def _fence(self, end: float) -> None:
        """Wait for PONG on each connection that is through its handshake."""
        self._pings = self._connected & self._sockets.keys()
        for connection in [*self._pings]:
            self.write(connection, encode_ping())
        while self._pings & self._sockets.keys() and time.monotonic() < end:
            self._read(0.01)

    def _read(self, seconds: float) -> bool:
        """Return True when a frame has come."""
        found = False
        for key, _ in self._selector.select(seconds):
            connection = key.data
            try:
                data = self._sockets[connection].recv(1 << 20)
            except OSError:
                data = b""
            if not data:
                self._end(connection)
                found = True
                continue
            found |= self._take(connection, self._bytes[connection] + data)
        return found

    def _take(self, connection: int, data: bytes) -> bool:
        position = 0
        found = False
        while (frame := FrameDecoder().decode(data, position, LIMIT)) is not None:
            number, command, position = frame
            if number == Type.PING:
                self.write(connection, encode_pong())
            elif number == Type.PONG and connection in self._pings:
                self._pings.discard(connection)
            else:
                if number == Type.CONNECTED:
                    self._connected.add(connection)
                self.inboxes[connection].append((number, command))
                found = True
        self._bytes[connection] = data[position:]
        return found

    def pause(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._read(0.02)

    def wall_time(self) -> int:
        return time.time_ns() // 1_000_000

    def administer(self, verb: str, *arguments: Any) -> bool:
        own = getattr(self, f"_{verb}", None)
        try:
            (own if own is not None else getattr(self._admin, verb))(*arguments)
        except AdminError:
            return False
        return True

    def _unload(self, topic: str) -> None:
        """Unload a topic once each cursor is stored: a real broker confirms acknowledgements before that."""
        end = time.monotonic() + ANSWER_TIMEOUT
        while "SwitchingLedger" in self._admin.cursor_states(topic) and time.monotonic() < end:
            self._read(0.02)
        self._admin.unload(topic)

    def _delete_topic(self, topic: str, force: bool) -> None:
        self._admin.delete_topic(topic, force=force)

    def _compact(self, topic: str) -> None:
        """Compact, and wait until it is done."""
        path = f"{topic_path(topic)}/compaction"
        self._admin.request("PUT", path)
        end = time.monotonic() + 4 * ANSWER_TIMEOUT
        while self._admin.request("GET", path)["status"] != "SUCCESS" and time.monotonic() < end:
            self._read(0.05)

    def _deduplicate(self, namespace: str) -> None:
        self._admin.set_namespace_policy(namespace, "deduplication", True)

    def close(self) -> None:
        for connection in [*self._sockets]:
            self.drop(connection)
        self._selector.close()
