"""`Link`: the protocol core driven by blocking calls, in whatever process it is used: a Spark worker, the
driver.

There is no thread and no event loop. The caller calls, and the link serves the sockets until the answer is
there or a deadline has passed. Between two calls it reads nothing, so TCP holds up a broker that sends faster
than its data is used. A `Link` belongs to one process and one thread: `open_link` keeps one for each
service URL and process. It makes a new one where the old one was idle for too long for its connections to be
alive still.

It owns sockets and the clock. What is asked through it, and what messages become, is decided elsewhere.
"""

import os
import selectors
import socket
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, TypeVar

from pulsar_sansio import (
    EARLIEST,
    LATEST,
    Address,
    Client,
    ClientConfig,
    ConsumerSpec,
    CredentialsFailed,
    CryptoError,
    InitialPosition,
    InvalidConfiguration,
    LastPosition,
    MessageId,
    PulsarError,
    Secret,
    ServiceUrl,
    SubscriptionType,
    TlsError,
    TopicName,
    TopicsPattern,
)
from pulsar_sansio import client_outputs as outputs
from pulsar_sansio.schemas import SchemaInfo
from pulsar_security import KeyFiles, ReloadedContext, TlsFailure, TlsSocket, Wanted

from .errors import LinkTimeout
from .reading.offsets import NOTHING, Position
from .security.access import Access
from .subscribed import Hold, Reading

T = TypeVar("T")

Answer = outputs.RequestDone | outputs.RequestFailed

NO_ACCESS = Access()
"""The defaults of TLS, and no credentials."""

READ_SIZE = 1 << 20
"""Bytes taken from a socket at once."""

MAX_IDLE = 20.0
"""Seconds. A link that was not served for longer is not used again: it has not answered the broker's probes,
and finding out whether the broker minds takes longer than connecting anew."""


class Link:
    """One client and its sockets.

    `access`: TLS and credentials. `client_config`: options of `ClientConfig`. Raises `InvalidServiceUrl`, and
    `InvalidConfiguration`, also for a file of TLS that cannot be used.
    """

    def __init__(self, service_url: str, access: Access = NO_ACCESS, **client_config: Any) -> None:
        client_config.setdefault("create_topics", False)
        config = ClientConfig(service_url, **access.client_config(), **client_config)
        self._access = access
        encrypts = ServiceUrl.parse(service_url).tls
        self._context = ReloadedContext(access.tls_config()) if encrypts else None
        self.service_url = service_url
        self.closed = False
        self.served = time.monotonic()
        """The monotonic time, in seconds, at which the link was served last."""
        self._connect_timeout = config.connect_timeout
        self.client = Client(
            time.monotonic_ns(),
            config,
            seed=int.from_bytes(os.urandom(8), "big"),
            wall_time=wall_time(),
            entropy=os.urandom,
        )
        self._selector = selectors.DefaultSelector()
        self._sockets: dict[int, socket.socket | TlsSocket] = {}
        self._buffer = memoryview(bytearray(READ_SIZE if encrypts else 0))
        """The place that a `TlsSocket` reads to."""
        self._more: set[int] = set()
        """Links whose `TlsSocket` has bytes that the selector does not see."""
        self._shown: dict[int, Secret] = {}
        """The last credentials of each link."""
        self._unwritten: dict[int, deque[memoryview]] = {}
        self._listeners: dict[int, Callable[[outputs.Output], None]] = {}
        """The listeners, by the id of the producer or consumer that each listens to."""
        self._answers: dict[int, Answer] = {}

    # --- serving ---------------------------------------------------------------------------------

    def listen(self, identifier: int, listener: Callable[[outputs.Output], None] | None) -> None:
        """Give the outputs of this producer or consumer to `listener` from now on; None removes it."""
        if listener is None:
            self._listeners.pop(identifier, None)
        else:
            self._listeners[identifier] = listener

    def wait(self, condition: Callable[[], T | None], timeout: float, what: str) -> T:
        """Serve the sockets until `condition()` gives something, and give that. Raises `LinkTimeout` after
        `timeout` seconds, with `what` was waited for."""
        deadline = time.monotonic_ns() + int(timeout * 1e9)
        while True:
            self._drain()
            result = condition()
            if result is not None:
                self.served = time.monotonic()
                return result
            now = time.monotonic_ns()
            if now >= deadline:
                raise LinkTimeout(f"{what}: not within {timeout:g} s ({self.service_url})")
            self._serve(now, deadline)

    def serve(self, timeout: float = 0.0) -> None:
        """Serve the sockets once, waiting for something to happen for at most `timeout` seconds."""
        self._drain()
        now = time.monotonic_ns()
        self._serve(now, now + int(timeout * 1e9))
        self._drain()
        self.served = time.monotonic()

    def call(self, start: Callable[[int], int], timeout: float, what: str) -> Any:
        """Ask the machine for something: `start(now)` gives the id of a request. Gives its result, or raises
        its error, and `LinkTimeout`."""
        request = start(time.monotonic_ns())
        answer: Any
        try:
            answer = self.wait(partial(self._answer, request), timeout, what)
        except LinkTimeout:
            self.client.abandon(time.monotonic_ns(), request)
            raise
        if isinstance(answer, outputs.RequestFailed):
            raise answer.error
        return answer.result

    def _answer(self, request: int) -> Answer | None:
        return self._answers.pop(request, None)

    def _serve(self, now: int, until: int) -> None:
        """Wait until a socket has something, the machine wants to be called, or it is `until`."""
        due = self.client.next_deadline()
        until = until if due is None else min(until, due)
        more = list(self._more)
        for key, events in self._selector.select(0 if more else max(0, until - now) / 1e9):
            if events & selectors.EVENT_WRITE:
                self._write(key.data)
            if events & selectors.EVENT_READ:
                self._read(key.data)
        for link in more:
            self._read(link)
        self.client.handle_deadline(time.monotonic_ns())

    def _drain(self) -> None:
        """Do what the machine says."""
        client = self.client
        while (output := client.next_output()) is not None:
            match output:
                case outputs.Transmit(link):
                    self._transmit(link)
                case outputs.Connect():
                    self._connect(output)
                case outputs.CredentialsWanted():
                    self._bring_credentials(output)
                case outputs.EncryptionKeyWanted():
                    self._bring_encryption_key(output)
                case outputs.Disconnect(link, _, credentials_refused):
                    if credentials_refused:
                        self._discard_credentials(link)
                    self._transmit(link)
                    self._forget(link)
                case outputs.RequestDone() | outputs.RequestFailed():
                    self._answers[output.request] = output
                case outputs.Detached(identifier) | outputs.Attached(identifier) | outputs.Closed(identifier):
                    self._call_listener(identifier, output)
                case _:  # a producer's or a consumer's own
                    owner: int = getattr(output, "consumer", -1)
                    self._call_listener(getattr(output, "producer", owner), output)

    def _call_listener(self, identifier: int, output: outputs.Output) -> None:
        listener = self._listeners.get(identifier)
        if listener is not None:
            listener(output)

    def _connect(self, wanted: outputs.Connect) -> None:
        link = wanted.link
        try:
            sock = self._open_socket(wanted)
        except TlsFailure as failure:
            self.client.disconnected(time.monotonic_ns(), link, failure.error)
            return
        except (OSError, UnicodeError) as error:  # the latter of a host that is no name of the DNS
            self.client.disconnected(time.monotonic_ns(), link, str(error))
            return
        self._sockets[link] = sock
        self._selector.register(sock, selectors.EVENT_READ, link)
        self.client.connected(time.monotonic_ns(), link)

    def _open_socket(self, wanted: outputs.Connect) -> socket.socket | TlsSocket:
        """Connect, and make the TLS handshake where there is to be one. Raises `OSError`, `TlsFailure`."""
        deadline = time.monotonic() + self._connect_timeout
        sock = connected(wanted.address, deadline)
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if wanted.tls_name is None:
            return sock
        assert self._context is not None
        try:
            context = self._context.current()
        except InvalidConfiguration as error:
            sock.close()
            raise TlsFailure(TlsError(str(error))) from error
        encrypted = TlsSocket(sock, context, str(wanted.address), wanted.tls_name)
        try:
            _shake_hands(encrypted, deadline)
        except BaseException:
            encrypted.close()
            raise
        return encrypted

    def _bring_credentials(self, wanted: outputs.CredentialsWanted) -> None:
        if wanted.challenge is None:
            self._discard_credentials(wanted.link)  # a broker that asks once more wants others
        try:
            if wanted.challenge is not None:
                raise CredentialsFailed(f"{wanted.method!r} has one step, and the broker asks for another")
            found = self._access.credentials()
        except CredentialsFailed as error:
            self.client.refuse_credentials(time.monotonic_ns(), wanted.link, error)
        else:
            self._shown[wanted.link] = found
            self.client.provide_credentials(time.monotonic_ns(), wanted.link, found)

    def _bring_encryption_key(self, wanted: outputs.EncryptionKeyWanted) -> None:
        assert isinstance(wanted.reader, KeyFiles)
        try:
            found = wanted.reader.read(wanted.key)
        except CryptoError as error:
            self.client.refuse_encryption_key(time.monotonic_ns(), wanted.request, error)
        else:
            self.client.provide_encryption_key(time.monotonic_ns(), wanted.request, found)

    def _discard_credentials(self, link: int) -> None:
        """The broker takes the last credentials of a link no more, if it had any."""
        shown = self._shown.pop(link, None)
        if shown is not None:
            self._access.discard(shown)

    def _read(self, link: int) -> None:
        sock = self._sockets.get(link)
        if sock is None:
            return
        try:
            data = self._read_encrypted(link, sock) if isinstance(sock, TlsSocket) else sock.recv(READ_SIZE)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._forget(link)
            reason = error.error if isinstance(error, TlsFailure) else str(error)
            self.client.disconnected(time.monotonic_ns(), link, reason)
            return
        if data:
            self.client.receive_data(time.monotonic_ns(), link, data)
        else:
            self.client.receive_eof(time.monotonic_ns(), link)

    def _read_encrypted(self, link: int, sock: TlsSocket) -> bytes:
        self._more.discard(link)
        size = sock.recv_into(self._buffer)
        if sock.has_more:
            self._more.add(link)
        return bytes(self._buffer[:size])

    def _transmit(self, link: int) -> None:
        chunks = self.client.data_to_send(link)
        if not chunks or link not in self._sockets:
            return
        waiting = self._unwritten.get(link)
        if waiting is None:
            self._unwritten[link] = waiting = deque()
        waiting.extend(memoryview(chunk) for chunk in chunks if chunk)
        self._write(link)

    def _write(self, link: int) -> None:
        """Write as much as the socket takes now; the rest follows when it takes more."""
        sock = self._sockets.get(link)
        waiting = self._unwritten.get(link)
        if sock is None or waiting is None:
            return
        try:
            while waiting:
                some = [waiting[position] for position in range(min(len(waiting), 64))]
                written = sock.sendmsg(some)
                while waiting and written >= len(waiting[0]):
                    written -= len(waiting.popleft())
                if written:
                    waiting[0] = waiting[0][written:]
        except (BlockingIOError, InterruptedError):
            self._selector.modify(sock, selectors.EVENT_READ | selectors.EVENT_WRITE, link)
            return
        except OSError:
            pass  # the next read meets it too, and reports it
        del self._unwritten[link]
        self._selector.modify(sock, selectors.EVENT_READ, link)

    def _forget(self, link: int) -> None:
        self._shown.pop(link, None)
        self._unwritten.pop(link, None)
        self._more.discard(link)
        sock = self._sockets.pop(link, None)
        if sock is not None:
            self._selector.unregister(sock)
            sock.close()

    # --- ends ------------------------------------------------------------------------------------

    def close(self, timeout: float = 5.0) -> None:
        """Close everything in good order, for at most `timeout` seconds; then without. Twice is harmless."""
        if self.closed:
            return
        self.closed = True
        with suppress(PulsarError, LinkTimeout):  # the sockets go all the same, and the broker notices
            self.call(self.client.close, timeout, "closing the client")
        self.drop()

    def drop(self) -> None:
        """Close the sockets, say nothing. In a process that was forked this leaves the parent's alone."""
        self.closed = True
        self._selector.close()
        for sock in self._sockets.values():
            sock.close()
        self._sockets.clear()
        self._unwritten.clear()
        self._more.clear()

    # --- topics ----------------------------------------------------------------------------------

    def partitions(self, topic: str, timeout: float = 30.0) -> int:
        """Return the topic's number of partitions, 0 where it is not partitioned.

        Raises `TopicNotFound` where the broker says so: not all brokers do."""
        result: int = self.call(
            lambda now: self.client.partitions(now, topic), timeout, f"the partitions of {topic}"
        )
        return result

    def topics(self, namespace: str, pattern: str | None = None, timeout: float = 30.0) -> list[str]:
        """Full names of the persistent topics of a namespace (`tenant/namespace`), sorted; partitioned ones
        by their own name. `pattern`: only those whose names match in full; see `TopicsPattern`."""
        names: list[str] = self.call(
            lambda now: self.client.topics(now, namespace), timeout, f"the topics of {namespace}"
        )
        if pattern is None:
            return names
        matching = TopicsPattern(pattern)
        return [name for name in names if matching.matches(TopicName.parse(name))]

    def definition(
        self, topic_partition: str, version: bytes | None, timeout: float = 30.0
    ) -> SchemaInfo | None:
        """Return a definition of the topic's schema: of that version, or the latest; None where there is no
        such."""
        found: SchemaInfo | None = self.call(
            lambda now: self.client.definition(now, topic_partition, version),
            timeout,
            f"the schema of {topic_partition}",
        )
        return found

    # --- positions -------------------------------------------------------------------------------

    def first_position(self, topic_partition: str, timeout: float = 30.0, **options: Any) -> Position:
        """The place before the first entry that is still there: what was stored before is gone, or never was.
        `NOTHING` where the broker does not say. `options`: of the reader that is asked."""
        with self.reading(topic_partition, EARLIEST, paused=True, timeout=timeout, **options) as reader:
            return reader.where(timeout).mark_delete or NOTHING

    def position_at(
        self, topic_partition: str, publish_time: int, timeout: float = 30.0, **options: Any
    ) -> Position:
        """The place before the first message published at that time (milliseconds since 1970) or later. The
        broker takes publish times for growing; where clocks of producers differ it is near that place."""
        with self.reading(topic_partition, publish_time, paused=True, timeout=timeout, **options) as reader:
            place = self.client.checkpoint(reader.handle)[topic_partition]
        return place[:2] if place not in (EARLIEST, LATEST) else NOTHING

    # --- consumers -------------------------------------------------------------------------------

    @contextmanager
    def reading(
        self, topic_partition: str, start: "MessageId | int", *, timeout: float = 30.0, **options: Any
    ) -> "Iterator[Reading]":
        """A reader while the block lasts; see `Reading`."""
        reader = Reading(self, topic_partition, start, **options)
        try:
            reader.ready(timeout)
            yield reader
        finally:
            reader.close()

    def hold(
        self,
        topic_partition: str,
        subscription: str,
        *,
        initial: InitialPosition = InitialPosition.EARLIEST,
        timeout: float = 60.0,
    ) -> "Hold":
        """Hold a durable, exclusive subscription without getting anything of it. `initial`: where it begins
        if there is none yet. Raises `ConsumerBusy` where another has it, after `timeout` seconds at most, and
        `TopicNotFound`."""
        spec = ConsumerSpec(
            topic_partition,
            subscription,
            SubscriptionType.EXCLUSIVE,
            initial_position=initial,
            start_paused=True,
            receiver_queue_size=1,
            acknowledgement_group_time=0.0,
            acknowledgement_receipts=True,
        )
        held = Hold(self, topic_partition, self.client.subscribe(time.monotonic_ns(), spec))
        held.ready(timeout)
        return held


def connected(address: Address, deadline: float) -> socket.socket:
    """Return a socket to the first address of the host that answers until the deadline (`time.monotonic()`).

    Each address gets an equal share of the time that is left. The resolver has a time of its own. Raises
    `OSError`.
    """
    found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    problem = OSError(f"no address of {address.host!r}")
    for position, (*_, target) in enumerate(found):
        share = (deadline - time.monotonic()) / (len(found) - position)
        try:
            return socket.create_connection((str(target[0]), target[1]), timeout=max(0.001, share))
        except OSError as error:
            problem = error
    raise problem


def _shake_hands(encrypted: TlsSocket, deadline: float) -> None:
    """Raises `TlsFailure`, and `TimeoutError` at the deadline (`time.monotonic()`)."""
    events = {Wanted.READABLE: selectors.EVENT_READ, Wanted.WRITABLE: selectors.EVENT_WRITE}
    with selectors.DefaultSelector() as selector:
        while (wanted := encrypted.shake_hands()) is not None:
            selector.register(encrypted, events[wanted])
            ready = selector.select(max(0.0, deadline - time.monotonic()))
            selector.unregister(encrypted)
            if not ready:
                raise TimeoutError("no TLS handshake within the connection timeout")


def last_of(answer: LastPosition) -> Position:
    """The position of the topic's last entry."""
    last = answer.last
    return last[:2] if last.entry_id >= 0 else NOTHING


def wall_time() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


# --- one for each process --------------------------------------------------------------------------

_links: dict[tuple[int, str, Access, tuple[tuple[str, Any], ...]], Link] = {}
"""By process, URL, access and configuration. A fork has the sockets of its parent, and must not use them."""


def open_link(service_url: str, access: Access = NO_ACCESS, **client_config: Any) -> Link:
    """The link of this process to that URL, with that access and configuration.

    It is the one used before where it was served within the last `MAX_IDLE` seconds, else a new one. It stays
    open.
    """
    key = (os.getpid(), service_url, access, tuple(sorted(client_config.items())))
    link = _links.get(key)
    if link is not None and not link.closed and time.monotonic() - link.served <= MAX_IDLE:
        link.serve()
        return link
    if link is not None:
        link.drop()
    for stale in [each for each in _links if each[0] != key[0]]:
        _links.pop(stale).drop()  # of the process that this one was forked from
    _links[key] = link = Link(service_url, access, **client_config)
    return link
