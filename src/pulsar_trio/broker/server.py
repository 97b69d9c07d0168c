"""The broker behind real sockets: `open_broker` for a block of code, `serve` for a nursery.

A `BrokerDriver` is a pump around `pulsar_sansio.Broker`: it accepts connections, reads one only while
the broker wants to, and hands records to the store. It holds no topic and makes no decision.
"""

import errno
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import suppress
from functools import partial
from logging import INFO, getLogger
from time import time_ns
from typing import Any, Unpack

import trio

from pulsar_sansio import (
    Address,
    Broker,
    BrokerConfig,
    InvalidConfiguration,
    LocalProtocolError,
    MemoryStore,
    NotApplicable,
    PulsarError,
    Store,
    StoredState,
    TlsError,
)
from pulsar_sansio import broker_outputs as outputs
from pulsar_security import ReloadedContext, ServerTls, TlsFailure

from ..client.options import checked_seed
from ..errors import ResourceClosed
from ..opening import opening
from ..rate_limit import RateLimit
from ..transport.background import background
from ..transport.link import Link
from ..transport.pump import Pump
from ..transport.tls_handshake import encrypt
from .admin import AdminListener
from .admin.control import Control
from .admin.listener import https_stream
from .embedded_broker import EmbeddedBroker
from .listeners import Listeners, listening, no_host
from .options import BrokerOptions, broker_config
from .store_reader import StoreReader
from .store_writer import StoreWriter, loaded

_log = getLogger("pulsar_trio.broker")

OUT_OF_SPACE = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)

OF_ONE_CONNECTION = tuple(
    getattr(errno, name)
    for name in (
        "ECONNABORTED",
        "EPERM",
        "EPROTO",
        "ENETDOWN",
        "ENOPROTOOPT",
        "EHOSTDOWN",
        "ENONET",
        "EHOSTUNREACH",
        "EOPNOTSUPP",
        "ENETUNREACH",
    )
    if hasattr(errno, name)
)
"""Errors of `accept` that concern one connection only: it failed before it was accepted (accept(2)), or it is
forbidden. The driver goes on with the next one."""

ACCEPT_PAUSE = 0.1
"""Seconds to wait when the system has no more files or memory for a connection."""

HANDSHAKE_TIME = 10.0
"""Seconds for a client's TLS handshake."""

MAX_HANDSHAKES = 1_000
"""TLS handshakes that may be unfinished at a time; the broker closes further connections."""

WILDCARDS = ("", "0.0.0.0", "::")


class BrokerDriver(Pump):
    """Runs one broker machine on the given listening sockets. `state`: the result of `store.load()`."""

    machine: Broker

    def __init__(
        self,
        config: BrokerConfig,
        store: Store,
        state: StoredState,
        seed: int | None,
    ) -> None:
        super().__init__()
        self.writer = StoreWriter(store, lambda write: self.fact(self.machine.persisted, write))
        self._store = store
        self._config = config
        self._seed = checked_seed(seed)
        self._at_start = store.load() if isinstance(store, MemoryStore) else None
        """The state to which `reset` returns."""
        self.failed = trio.Event()
        self._changes = trio.lowlevel.ParkingLot()
        """Tasks that wait until the machine has done something."""
        self._ends = RateLimit()
        self._next_link = 1
        self._handshakes = 0
        """TLS handshakes that are not finished."""
        self.machine = self._new_machine(state)
        self.actions = {
            outputs.Transmit: self.on_transmit,
            outputs.Disconnect: self._on_disconnect,
            outputs.ResumeReading: self._on_resume_reading,
            outputs.Persist: self._on_persist,
        }

    def _new_machine(self, state: StoredState) -> Broker:
        reader = self._store.reader
        return Broker(
            self.now(),
            self._config,
            state,
            seed=self._seed,
            wall_time=time_ns() // 1_000_000,
            reader=None if reader is None else StoreReader(reader, self.crash),
        )

    def pump(self) -> None:
        """Let tasks that wait for a change look at the machine, once it is quiet."""
        super().pump()
        if self._changes:
            self._changes.unpark_all()

    async def changed(self) -> None:
        """Wait until the machine has done something. Raises its failure, or `ResourceClosed`."""
        if not self.stopped:
            await self._changes.park()
        if self.failure is not None:
            raise self.failure.with_traceback(None)
        if self.stopped:
            raise ResourceClosed("the broker is closed")

    def stop(self) -> None:
        super().stop()
        self.writer.end()
        self._changes.unpark_all()

    def snapshot(self) -> StoredState:
        """Return a copy of all that the store keeps, the latest acknowledgements included.

        Raises `NotApplicable` for a store other than `MemoryStore`.
        """
        store = self._memory_store()
        self.command(self.machine.flush)
        return store.load()

    def restore(self, state: StoredState | None) -> None:
        """Cut all connections, and start a new machine over a copy of this state; None is that of the start.

        Raises `NotApplicable` for a store other than `MemoryStore`: others cannot be rewritten.
        """
        store = self._memory_store()
        if state is None:
            assert self._at_start is not None
            state = self._at_start
        elif not isinstance(state, StoredState):
            raise InvalidConfiguration(f"snapshot: the result of snapshot(), not {state!r:.100}")
        self.command(self.machine.shutdown)
        for link in self.links.values():  # the machine does not know them before their TLS handshake
            link.abort()
        store.restore(state)
        self.machine = self._new_machine(store.load())
        self.pump()

    def _memory_store(self) -> MemoryStore:
        if not isinstance(self._store, MemoryStore):
            raise NotApplicable("reset, snapshot and restore need the broker's own store, or a MemoryStore")
        return self._store

    def begin(
        self,
        listeners: "Listeners",
        tls: ReloadedContext | None,
        names: Collection[str],
        test_control: bool = False,
    ) -> None:
        """Accept connections from these sockets, with `run` already running.

        `tls`: for those with TLS. `names`: the hosts by which HTTP clients may call this broker.
        `test_control`: serve the control for tests over HTTP.
        """
        admin = AdminListener(self, names, Control(self) if test_control else None)
        for encrypted, group in ((None, listeners.pulsar), (tls, listeners.pulsar_tls)):
            for listener in group:
                serve_one = partial(self._serve_one, partial(self._serve_pulsar, encrypted))
                self.start_task(partial(_accept, listener, serve_one), "pulsar listener")
        for encrypted, group in ((None, listeners.http), (tls, listeners.https)):
            for listener in group:
                serve_one = partial(self._serve_one, partial(self._serve_http, admin, encrypted))
                self.start_task(partial(_accept, listener, serve_one), "pulsar HTTP listener")

    def _on_disconnect(self, output: outputs.Disconnect) -> None:
        """The broker ends a connection, mostly because of what came over it: that is worth a line."""
        if _log.isEnabledFor(INFO) and output.reason != outputs.CLIENT_LEFT:
            left_out = self._ends.admit(output.reason, trio.current_time())
            if left_out is not None:
                more = f" ({left_out} records were left out before this one)" if left_out else ""
                _log.info("connection %d is closed: %s%s", output.link, output.reason, more)
        self.on_disconnect(output)

    def _serve_one(
        self,
        serve: Callable[[trio.socket.SocketType, str], None],
        accepted: trio.socket.SocketType,
        address: Any,
    ) -> None:
        """Serve one connection that was accepted. Its failure is logged, and ends only it.

        `address` is None on some systems if the connection was reset meanwhile.
        """
        try:
            serve(accepted, str(Address(address[0], address[1])) if address else "unknown")
        except Exception as error:
            accepted.close()
            self._link_failures.log(error)

    def _serve_http(
        self,
        admin: AdminListener,
        tls: ReloadedContext | None,
        accepted: trio.socket.SocketType,
        peer: str,
    ) -> None:
        stream = trio.SocketStream(accepted)
        served = stream if tls is None else https_stream(stream, tls.current())
        self.start_peer(partial(admin.serve, served), f"pulsar HTTP peer {peer}")

    def command(self, command: Callable[..., Any], *arguments: object) -> Any:
        """Give the machine an administrator's command, and do what follows from it.

        A store that does not block has it then; `flush` waits for one that does.
        Raises `LocalProtocolError` for the caller's mistake. Anything else (a store that cannot write, a bug)
        ends the broker and is raised too.
        """
        if self.failure is not None:
            raise self.failure.with_traceback(None)
        try:
            self.tick = self.now()
            result = command(self.tick, *arguments)
            self.pump()
            self.write_now()
        except LocalProtocolError:
            raise
        except Exception as error:
            raise self.crash(error) from error
        if self.failure is not None:  # met by `take`, which raises nothing
            raise self.failure.with_traceback(None)
        return result

    def _serve_pulsar(self, tls: ReloadedContext | None, accepted: trio.socket.SocketType, peer: str) -> None:
        # Without a family Python asks `getsockname`, which may fail for a connection that was reset.
        family, kind, protocol = accepted.family, accepted.type, accepted.proto
        sock = socket.socket(family, kind, protocol, fileno=accepted.detach())
        try:
            with suppress(OSError):  # of such a connection too; its link meets the reset
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._open_link(sock, peer, tls)
        except BaseException:
            sock.close()
            raise

    def _open_link(self, sock: socket.socket, peer: str, tls: ReloadedContext | None) -> None:
        number = self._next_link
        self._next_link += 1
        machine = self.machine
        link = Link(self.buffer, partial(self.take, number), partial(machine.wants_read, number))
        name = f"pulsar peer {peer}"
        if tls is not None:
            if self._handshakes >= MAX_HANDSHAKES:
                raise OSError(f"{MAX_HANDSHAKES} TLS handshakes are not finished, {peer} is refused")
            task = partial(self._run_encrypted_link, number, link, sock, tls.current(), peer)
            self._handshakes += 1
            self.start_link(number, link, task, name)
            return
        link.open(sock)
        self.start_link(number, link, partial(self.serve_link, number, link), name)
        self.fact(machine.accepted, number, peer)

    async def _run_encrypted_link(
        self, number: int, link: Link, sock: socket.socket, context: ssl.SSLContext, peer: str
    ) -> str | TlsError:
        """Serve one peer after its TLS handshake. The broker knows it from then on."""
        try:
            with trio.fail_after(HANDSHAKE_TIME):
                encrypted = await encrypt(sock, context, peer, None)
        except trio.TooSlowError:
            return f"no TLS handshake within {HANDSHAKE_TIME:g} s"
        except TlsFailure as failure:
            self._log_refused(failure.error)
            return failure.error
        except OSError as error:
            return str(error)
        finally:
            self._handshakes -= 1
        link.open(encrypted)
        self.fact(self.machine.accepted, number, peer, encrypted.common_name())
        return await self.serve_link(number, link)

    def _log_refused(self, error: TlsError) -> None:
        left_out = self._ends.admit(type(error).__name__, trio.current_time())
        if left_out is not None:
            more = f" ({left_out} records were left out before this one)" if left_out else ""
            _log.info("%s%s", error, more)

    def _on_resume_reading(self, output: outputs.ResumeReading) -> None:
        link = self.links.get(output.link)
        if link is not None:
            link.resume()

    def _tasks(self) -> dict[str, Callable[[], Awaitable[None]]]:
        tasks = super()._tasks()
        return {**tasks, "pulsar store": self.writer.run} if self.writer.blocking else tasks

    def _on_persist(self, output: outputs.Persist) -> None:
        if self.writer.blocking:
            self.writer.begin(output)
            return
        self.writer.write_now(output.records)
        self.machine.persisted(self.tick, output.write)

    async def flush(self) -> None:
        """Wait until the store has everything recorded so far. Raises `StoreFailed`, and `ResourceClosed`
        where a broker that is closed has not stored everything."""
        stored = await self.writer.flush()
        if self.failure is not None:
            raise self.failure.with_traceback(None)
        if not stored:
            raise ResourceClosed("the broker is closed")

    async def close(self) -> None:
        """End all connections in good order. The store gets what it lacks, in a cancelled scope, too."""
        self.fact(self.machine.shutdown)
        with trio.CancelScope(shield=True):
            await self.writer.flush()
        await trio.lowlevel.checkpoint()

    def _on_crash(self, failure: PulsarError) -> None:
        self.failed.set()


async def _accept(listener: trio.SocketListener, take: Callable[[trio.socket.SocketType, Any], None]) -> None:
    """Accept connections until the listener is closed; `take` gets each, and its peer's address."""
    while True:
        try:
            accepted, address = await listener.socket.accept()
        except OSError as error:
            if error.errno in OUT_OF_SPACE:
                await trio.sleep(ACCEPT_PAUSE)
            elif error.errno not in OF_ONE_CONNECTION:
                raise
            continue
        take(accepted, address)


async def serve(
    port: int = 6650,
    *,
    host: str = "127.0.0.1",
    store: Store | None = None,
    seed: int | None = None,
    http_port: int | None = None,
    tls: ServerTls | None = None,
    tls_port: int | None = None,
    https_port: int | None = None,
    advertised_host: str | None = None,
    allow_unauthenticated: bool = False,
    test_control: bool = False,
    task_status: trio.TaskStatus[EmbeddedBroker] = trio.TASK_STATUS_IGNORED,
    **options: Unpack[BrokerOptions],
) -> None:
    """Run a broker until cancelled: `broker = await nursery.start(serve)`.

    `port` 0 takes a free one. `store` keeps what must outlive the broker; without one nothing does. It is
    loaded at the start and closed at the end.
    `http_port`: where to serve Pulsar's administration over HTTP, 0 a free one, None not at all.
    `tls`: the broker's certificate; with it `tls_port` takes `pulsar+ssl://`, and `https_port` HTTPS.
    `advertised_host`: the host that lookups answer with, where that is not `host`.
    `allow_unauthenticated`: without `authentication` the broker listens on loopback addresses only, unless
    this is True: every client that reaches it may then do everything.
    `test_control`: serve the control of faults over HTTP (docs/testing.md), on loopback addresses only.
    `options` are those of `BrokerConfig`. Raises `InvalidConfiguration`; `OSError` where it cannot
    listen, or there is no such host; the errors of the store, such as `StoreError`.
    """
    running = open_broker(
        port,
        host=host,
        store=store,
        seed=seed,
        http_port=http_port,
        tls=tls,
        tls_port=tls_port,
        https_port=https_port,
        advertised_host=advertised_host,
        allow_unauthenticated=allow_unauthenticated,
        test_control=test_control,
        **options,
    )
    async with running as broker:
        task_status.started(broker)
        await broker.wait_failed()


@opening("async with open_broker() as broker:")
async def open_broker(
    port: int = 0,
    *,
    host: str = "127.0.0.1",
    store: Store | None = None,
    seed: int | None = None,
    http_port: int | None = None,
    tls: ServerTls | None = None,
    tls_port: int | None = None,
    https_port: int | None = None,
    advertised_host: str | None = None,
    allow_unauthenticated: bool = False,
    test_control: bool = False,
    **options: Unpack[BrokerOptions],
) -> AsyncIterator[EmbeddedBroker]:
    """A broker that runs while the block does; leaving the block cuts all connections.

    Arguments are those of `serve`, with a free port by default. `broker.url` is for `open_client`,
    `broker.admin_url` for Pulsar's administration tools.
    """
    if not isinstance(host, str):
        raise no_host(host)
    if advertised_host is not None and (not isinstance(advertised_host, str) or not advertised_host):
        raise InvalidConfiguration(f"advertised_host: a host's name or address, not {advertised_host!r}")
    _check_store(store)
    if test_control and http_port is None and https_port is None:
        raise InvalidConfiguration("test_control: needs http_port, over which tests control the broker")
    ports = {"port": port, "tls_port": tls_port, "http_port": http_port, "https_port": https_port}
    if tls is None and (tls_port is not None or https_port is not None):
        raise InvalidConfiguration("tls_port and https_port need tls=ServerTls(certificate=…, key=…)")
    context = None if tls is None else ReloadedContext(tls)
    async with listening(host, ports) as listeners:
        advertised = advertised_host or (socket.gethostname() if host in WILDCARDS else host)
        reached = "127.0.0.1" if host in WILDCARDS else host
        for name, url in listeners.urls(advertised).items():
            if name != "service_url":
                options.setdefault(name, url)  # type: ignore[misc]
        config = broker_config(listeners.urls(advertised)["service_url"], options)
        if test_control:
            listeners.check_loopback(host, "with test_control", "Leave test_control (--test-control) away")
        elif config.authentication is None and not allow_unauthenticated:
            listeners.check_loopback(host)
        kept = MemoryStore() if store is None else store
        async with loaded(kept) as state:
            driver = BrokerDriver(config, kept, state.pop(), seed)
            async with background(driver, driver.close):
                driver.pump()
                await driver.flush()  # its first record makes generated names unique
                driver.begin(listeners, context, _names(host, advertised, config), test_control)
                yield EmbeddedBroker(driver, listeners.urls(reached))


def _names(host: str, advertised: str, config: BrokerConfig) -> set[str]:
    """Return the hosts by which HTTP clients may call the broker."""
    names = {"localhost", host, advertised, socket.gethostname()}
    for url in (config.web_service_url, config.web_service_url_tls):
        if url is not None:
            names.add(url.partition("://")[2].rpartition(":")[0])
    return names


def _check_store(store: object) -> None:
    """A class that was not called is a common slip."""
    missing = [name for name in ("blocking", "reader", "load", "write", "close") if not hasattr(store, name)]
    if store is not None and (isinstance(store, type) or missing):
        raise InvalidConfiguration(f"store: None or a store such as MemoryStore() (see Store), not {store!r}")
