"""One run: a broker, clients, applications, bad weather; then good weather, and the reckoning.

Phases: run with faults, heal, drain until every subscription is done, close, read the log with a fresh
client. All of it inside a bound of virtual time, so that what hangs fails.
"""

import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any
from unittest.mock import patch

import trio

from pulsar_sansio import Address, ClosedError, MemoryStore, Message
from pulsar_sim.engine.clock import MILLISECOND
from pulsar_sim.engine.randomness import Stream, Streams
from pulsar_sim.engine.trace import Trace
from pulsar_trio import Client, Consumer, EmbeddedBroker, Producer, open_client
from pulsar_trio.broker.listeners import Listeners
from pulsar_trio.broker.server import BrokerDriver
from pulsar_trio.transport.background import background
from pulsar_trio.transport.link import LINGER
from pulsar_trio.transport.pump import Pump
from tests.triosim.apps.actors import Consuming, Producing
from tests.triosim.apps.books import Books, ProducerBook
from tests.triosim.engine import scheduler
from tests.triosim.engine.sockets import MemoryListener, MemorySocket, Net
from tests.triosim.engine.watch import CLIENT, Watch, watched_broker, watched_client
from tests.triosim.profile import HOST, URL, Profile, client_options, draw

WALL_TIME = 1_750_000_000_000_000_000
"""Nanoseconds since 1970 when virtual time begins."""

STORM = 6.0
"""Seconds of bad weather at most."""

DRAIN = 20.0
"""Seconds for everything to be produced, received and acknowledged after the weather has become good."""

BOUND = 60.0
"""Seconds for a whole run."""

LATE = 2_000
"""Nanoseconds by which a timer may be late: it is set a microsecond late, and trio's clock is a float."""

PROBE = 2.0
"""Seconds that one message may take in good weather."""


@dataclass(frozen=True, slots=True)
class Report:
    """The result of one seed. `failure` is empty when it passed."""

    seed: int
    failure: str
    trace_hash: str
    virtual_seconds: float
    steps: int
    cancelled: int
    sent: int
    confirmed: int
    received: int
    faults: int
    connections: int
    lines: tuple[str, ...]


class Failed(Exception):
    """A rule was broken; `World.failure` says which."""


class World:
    """Everything of one seed."""

    def __init__(self, seed: int, keep: bool, profile: Profile | None = None) -> None:
        self.seed = seed
        self.streams = Streams(seed)
        self.profile = profile or draw(self.streams.stream("profile"))
        self.trace = Trace(keep)
        self.failure = ""
        self.healed = False
        self.over = False
        self.faults = 0
        self.virtual_seconds = 0.0
        self.books = Books(self.profile.subscriptions, self.fail, self.wall_time)
        self.ended: list[ProducerBook] = []
        self.watch = Watch(self.fail)
        self.canceller = scheduler.Canceller(self._on_idle, self._on_busy_loop)
        self.store = MemoryStore()
        self.clients: list[tuple[Client, trio.CancelScope]] = []
        """The clients that are open, and what cancels their blocks."""
        self.sessions: dict[Producing | Consuming, trio.CancelScope] = {}
        """The scopes that cancel the block of each application's producer or consumer."""
        self.calls: dict[str, trio.CancelScope] = {}
        """The scopes that cancel the call in which a task is."""
        self._broker_driver: BrokerDriver | None = None
        """The one that runs."""
        self._scope = trio.CancelScope()

    # --- what goes wrong --------------------------------------------------------------------------------

    def fail(self, rule: str, text: str) -> None:
        """Keep the first failure, and end the run."""
        if not self.failure:
            self.failure = f"{rule}: {text}"
            self.note("world", self.failure)
            self._scope.cancel()

    def note(self, actor: str, event: str) -> None:
        self.trace.add(int(self.now() * 1_000_000), actor, event)

    def now(self) -> float:
        return trio.current_time()

    def wall_time(self) -> int:
        """Milliseconds since 1970."""
        return WALL_TIME // 1_000_000 + int(self.now() * 1000)

    def _on_idle(self) -> None:
        if not self.failure:
            self.books.check_idle()
            self._check_drivers()
            self._check_sockets()

    def _on_busy_loop(self) -> None:
        self.fail("LIVENESS", f"{scheduler.MAX_STEPS} steps of tasks, and still not done")

    def _check_drivers(self) -> None:
        """Nothing can run before time goes on: so all that the machines have said is done."""
        drivers: list[Pump] = [client._driver for client, _ in self.clients]
        if self._broker_driver is not None:
            drivers.append(self._broker_driver)
        now = int(self.now() * 1_000_000_000)
        for driver in drivers:
            if driver.stopped:
                continue
            if driver.machine.has_output or driver.unwritten:
                self.fail("QUIET", f"{driver} has not heard, or not written, what its machine has said")
            due = driver.machine.next_deadline()
            if due is not None and due + LATE < now:
                self.fail("LATE", f"{driver} should have woken its machine {now - due} ns ago")
        for client, _ in self.clients:
            machine: Any = client._driver.machine
            for handle, side in client._driver.sides.items():
                endpoint = side.endpoint
                if endpoint.connected != (handle in machine.attached):
                    self.fail("STATE", f"{endpoint} is not what its machine has said")
                if handle in machine.ended:
                    self.fail("STATE", f"{endpoint} is open, and its machine has said that it is closed")
                if isinstance(endpoint, Producer | Consumer) and not endpoint.topic:
                    endpoint.statistics()  # the log of statistics counts also what is being opened

    def _check_sockets(self) -> None:
        """A link whose connection is gone is closed, at the latest when an orderly end has had its time."""
        for sock in self.net.open:
            if sock.ended_at is not None and self.now() > sock.ended_at + LINGER + 0.01:
                self.fail("INV-N2", f"{sock.name} is gone since {sock.ended_at}, and is open still")

    # --- for the applications -------------------------------------------------------------------------

    def is_closed(self, client: Client) -> bool:
        return client._driver.closed

    @contextmanager
    def cancel_session(self, application: Producing | Consuming) -> Iterator[None]:
        permille = 0 if self.healed else self.profile.session_permille
        with self.canceller.sometimes(application.stream, permille, 60, 0.5), trio.CancelScope() as scope:
            self.sessions[application] = scope
            try:
                yield
            finally:
                del self.sessions[application]

    async def call(self, stream: Stream, name: str, call: Callable[[], Awaitable[str]]) -> bool:
        """Make a call, which may be cancelled at any of its awaits; whether it came to its end."""
        with (
            self.canceller.sometimes(stream, self.profile.cancel_permille, 2, 0.05),
            trio.CancelScope() as scope,
        ):
            self.calls[name] = scope
            try:
                did = await call()
            except BaseException as error:
                self.note(name, f"{call.__name__} {type(error).__name__}")
                raise
            finally:
                del self.calls[name]
            self.note(name, did)
            return True
        return False

    # --- the run ----------------------------------------------------------------------------------------

    def run(self) -> Report:
        try:
            with self._instead():
                scheduler.run(self.streams.seed_of("scheduler"), self._main, self.canceller)
        except Failed:
            pass
        except Exception as error:
            if self.trace.keep:
                traceback.print_exception(error)
            if not self.failure:
                self.failure = f"EXCEPTION: {_innermost(error)!r}"
        self.trace.add(0, "world", self.failure)
        return Report(
            self.seed,
            self.failure,
            self.trace.hexdigest(),
            self.virtual_seconds,
            self.canceller.steps,
            self.canceller.cancelled,
            len(self.books.sent),
            self.books.confirmed,
            self.books.received,
            self.faults,
            self.watch.connected_wire,
            tuple(self.trace.lines),
        )

    @contextmanager
    def _instead(self) -> Iterator[None]:
        """Replace what pulsar_trio takes from the system: connections, waiting for them, and the time of
        day."""
        real_readable, real_writable = trio.lowlevel.wait_readable, trio.lowlevel.wait_writable

        async def connect(address: Address, timeout: float) -> MemorySocket:
            sock = await self.net.connect(CLIENT.get(), address, timeout)
            assert sock.wire is not None
            self.watch.connected_wire = sock.wire.number
            return sock

        async def wait_readable(sock: MemorySocket | int) -> None:
            await (sock.wait_readable() if isinstance(sock, MemorySocket) else real_readable(sock))

        async def wait_writable(sock: MemorySocket | int) -> None:
            await (sock.wait_writable() if isinstance(sock, MemorySocket) else real_writable(sock))

        def time_ns() -> int:
            return WALL_TIME + int(self.now() * 1_000_000_000)

        with (
            patch("pulsar_trio.client.driver.connect", connect),
            patch("pulsar_trio.client.driver.Machine", watched_client(self.watch)),
            patch("pulsar_trio.broker.server.Broker", watched_broker(self.watch)),
            patch("pulsar_trio.client.driver.time_ns", time_ns),
            patch("pulsar_trio.transport.pump.time_ns", time_ns),
            patch("pulsar_trio.broker.server.time_ns", time_ns),
            patch("trio.lowlevel.wait_readable", wait_readable),
            patch("trio.lowlevel.wait_writable", wait_writable),
        ):
            yield

    async def _main(self) -> None:
        self.net = Net(
            self.streams.stream("network"), self.trace, self.profile.conditions(), self.profile.capacity
        )
        self.listener = MemoryListener(self.net, HOST)
        self.net.network.listeners[HOST] = self.listener
        tasks_before = trio.lowlevel.current_statistics().tasks_living
        try:
            with trio.move_on_after(BOUND) as bound, self._scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self.net.clock.run)
                    self._broker_scope = trio.CancelScope()
                    await nursery.start(self._run_broker)
                    await self._phases()
                    await self._reckon()
                    self.over = True
                    nursery.cancel_scope.cancel()
            if bound.cancelled_caught:
                self.fail("LIVENESS", f"not done after {BOUND} virtual seconds")
        finally:
            self.virtual_seconds = self.now()
        if self.failure:
            raise Failed
        if self.net.open:
            self.fail("INV-N11", f"sockets are still open: {[sock.name for sock in self.net.open]}")
        if trio.lowlevel.current_statistics().tasks_living != tasks_before:
            self.fail("INV-N11", "tasks are still running")

    async def _phases(self) -> None:
        await self._with_client("auditor", self._begin_audit)
        applications = [[] for _ in range(self.profile.clients)]  # type: list[list[Producing | Consuming]]
        for index in range(self.profile.producers):
            applications[index % len(applications)].append(Producing(self, index))
        index = 0
        for book in self.books.subscriptions:
            for _ in range(book.subscription.consumers):
                applications[index % len(applications)].append(Consuming(self, index, book))
                index += 1
        self.producing = [each for group in applications for each in group if isinstance(each, Producing)]
        async with trio.open_nursery() as nursery:
            for index, group in enumerate(applications):
                nursery.start_soon(self._client, index, group)
            await self._storm()
            self._heal()
            await self._drain()
            self.over = True
            stream = self.streams.stream("close")
            for entry in list(self.books.consumers):
                if stream.chance(500):
                    nursery.start_soon(entry.consumer.aclose)
            if stream.chance(500):
                await trio.sleep(stream.below(300) / 1000)
            nursery.cancel_scope.deadline = trio.current_time() + stream.choice([0.0, 10.0])
            for entry in list(self.books.consumers):
                nursery.start_soon(entry.consumer.aclose)

    async def _client(self, index: int, group: list[Producing | Consuming]) -> None:
        """One process: opens a client, runs applications on it, closes it; and again, if it was cancelled."""
        stream = self.streams.stream(f"client {index}")
        sessions = 0
        while not self.over:
            sessions += 1
            CLIENT.set(f"client {index}.{sessions}")
            options = client_options(stream)
            permille = 0 if self.healed else self.profile.session_permille // 2
            with self.canceller.sometimes(stream, permille, 30, 2.0), trio.CancelScope() as scope:
                async with self._open(options, scope) as client:
                    async with trio.open_nursery() as nursery:
                        for application in group:
                            nursery.start_soon(application.run, client)
                        if stream.chance(permille // 4):
                            await trio.sleep(stream.below(2000) / 1000)
                            if not self.is_closed(client):
                                await client.aclose()
                                self._quiet(client)
                finished = all(each.done.is_set() for each in group if isinstance(each, Producing))
                if finished and not any(isinstance(each, Consuming) for each in group):
                    return
            await trio.sleep(0.01)

    @asynccontextmanager
    async def _open(self, options: dict[str, Any], scope: trio.CancelScope) -> AsyncIterator[Client]:
        """Open a client; nothing of the client is left after the block, however the block ends."""
        opened: list[Client] = []
        left_in_peace = False
        try:
            async with open_client(URL, **options) as client:
                opened.append(client)
                self.clients.append((client, scope))
                yield client
            left_in_peace = True
        finally:
            for client in opened:
                self.clients.remove((client, scope))
                self._quiet(client, cancelled=not left_in_peace)

    def _quiet(self, client: Client, cancelled: bool = False) -> None:
        """After the client's block nothing of it is left. Where it was cancelled, links that have ended may
        still be known."""
        driver = client._driver
        links = () if cancelled else tuple(driver.links)
        held = links, tuple(driver.sides), tuple(driver.answers), driver._live_links
        if any(held) or not driver.stopped:
            self.fail("INV-N11", f"a closed client has links, producers and consumers, requests: {held}")
        try:
            client.update_service_url(URL)
        except ClosedError as error:
            if str(error) != "the client is closed":
                self.fail("ENDED", f"a closed client says: {error}")
        else:
            self.fail("ENDED", "a closed client takes commands")
        if not repr(client).endswith(", closed>"):
            self.fail("ENDED", f"a client is closed, and its text is {client!r}")

    # --- the broker -----------------------------------------------------------------------------------

    async def _run_broker(self, task_status: trio.TaskStatus[None]) -> None:
        """One broker after the other over the same store."""
        lives = 0
        while True:
            lives += 1
            seed = self.streams.seed_of(f"broker {lives}")
            driver = BrokerDriver(self.profile.broker, self.store, self.store.load(), seed)
            with trio.CancelScope() as self._broker_scope:
                async with background(driver, trio.lowlevel.checkpoint):
                    driver.pump()
                    driver.begin(Listeners(), None, ())
                    self._broker_driver = driver
                    self.broker = EmbeddedBroker(driver, {"service_url": f"pulsar://{HOST}:6650"})
                    self.listener.take = partial(driver._open_link, tls=None)
                    if lives == 1:
                        task_status.started()
                    try:
                        await trio.sleep_forever()
                    finally:
                        self.listener.take = None
            await trio.sleep(0.05)

    # --- weather --------------------------------------------------------------------------------------

    async def _storm(self) -> None:
        stream = self.streams.stream("faults")
        gap = self.profile.fault_gap
        end = self.now() + (STORM if gap else 1.0)
        while self.now() < end and any(application.left > 0 for application in self.producing):
            await trio.sleep(stream.spread(1, gap * 2) / 1000 if gap else 0.05)
            if gap:
                self._fault(stream)

    def _fault(self, stream: Stream) -> None:
        self.faults += 1
        network, now = self.net.network, self.net.clock.sync()
        soon = now + stream.spread(1, 1000) * MILLISECOND
        wires = list(network.wires.values())
        kinds = ["unload", "restart", "tiny", "refuse", "silent", "fate", *["wire"] * 8]
        kind = stream.weighted([(each, 1) for each in kinds])
        if kind == "wire" and wires:
            wire = stream.choice(wires)
            how = stream.choice(["reset", "half-open", "clean end", "stall", "stall", "mute"])
            kind = f"{how} of wire {wire.number}"
            if how == "reset":
                wire.reset()
            elif how == "half-open":
                wire.half_open(*stream.choice([(True, False), (False, True), (True, True)]))
            elif how == "clean end":
                wire.clean_end()
            elif how == "mute":
                client_side = stream.chance(500)
                for sock in self.net.open:
                    if sock.wire is wire and sock.client_side is client_side:
                        sock.mute = True
            else:
                stream.choice([wire.to_broker, wire.to_client]).block(soon)
        elif kind == "unload":
            topic = f"persistent://public/default/{stream.choice(self.profile.topics)}"
            if self.listener.take is not None and topic in self.broker.topics():
                self.broker.unload(topic)
        elif kind == "restart":
            self._broker_scope.cancel()
        elif kind == "tiny":
            network.conditions.tiny_until = soon
        elif kind == "refuse":
            network.conditions.refused[HOST] = soon
        elif kind == "silent":
            network.conditions.silent[HOST] = soon
        elif kind == "fate":
            network.conditions.connect_fates.append(stream.choice(["reset", "hang"]))
        self.note("weather", kind)

    def _heal(self) -> None:
        self.net.network.heal()
        self.healed = True
        self.note("weather", "good from now on")

    # --- the end ----------------------------------------------------------------------------------------

    async def _drain(self) -> None:
        """Wait until everything is produced, received and acknowledged. A message that was taken from the
        machine and given to no application shows here, because no consumer is closed any more."""
        with trio.move_on_after(DRAIN):
            for application in self.producing:
                await application.done.wait()
            while True:
                for entry in self.books.consumers:
                    if entry.hand:
                        with suppress(ClosedError):
                            entry.consumer.acknowledge(entry.hand)
                        entry.hand.clear()
                backlog = [
                    book.subscription
                    for book in self.books.subscriptions
                    if self._backlog(book.subscription.topic, book.subscription.name)
                ]
                strangers = [topic for topic in self.profile.topics if self._strangers(topic)]
                if not backlog and not strangers:
                    return
                await trio.sleep(0.1)
        if not backlog:
            self.fail("INV-N4", f"{strangers} have producers or consumers that no application has")
        waiting = [(each.index, each.left) for each in self.producing if not each.done.is_set()]
        self.fail(
            "LIVENESS",
            f"{DRAIN} s after healing: producers (index, messages left) {waiting}; subscriptions "
            f"{[(each.topic, each.name) for each in backlog] if not waiting else 'not looked at'}",
        )

    def _backlog(self, topic: str, subscription: str) -> int:
        found = self.broker.stats(f"persistent://public/default/{topic}")["subscriptions"]
        return int(found[subscription]["backlog"]) if subscription in found else 1

    def _strangers(self, topic: str) -> bool:
        """Return whether the broker has more producers and consumers on a topic than the applications
        have."""
        found = self.broker.stats(f"persistent://public/default/{topic}")
        producers = sum(book.topic == topic for book in self.books.producers)
        if len(found["publishers"]) > producers:
            return True
        for book in self.books.subscriptions:
            if book.subscription.topic == topic:
                consumers = sum(entry.subscription is book for entry in self.books.consumers)
                if len(found["subscriptions"][book.subscription.name]["consumers"]) > consumers:
                    return True
        return False

    async def _with_client(self, name: str, use: Callable[[Client], Awaitable[None]]) -> None:
        CLIENT.set(name)
        async with open_client(URL, seed=1, initial_backoff=0.01, max_backoff=0.1) as client:
            await use(client)
            await client.aclose()
            self._quiet(client)  # also inside of the block, where it was closed there
        self._quiet(client)

    async def _begin_audit(self, client: Client) -> None:
        for topic in self.profile.topics:
            async with client.subscribe(topic, "audit", "exclusive", initial_position="earliest"):
                pass
        for subscription in self.profile.subscriptions:
            async with client.subscribe(
                subscription.topic, subscription.name, subscription.kind, initial_position="earliest"
            ):
                pass

    async def _reckon(self) -> None:
        for book in self.ended:
            for sent in book.receipts:
                self.books.settled(sent)
        for topic in self.profile.topics:
            await self._with_client("auditor", partial(self._read_log, topic))

    async def _read_log(self, topic: str, client: Client) -> None:
        """The log up to a message sent now: the probe, which also shows that all is well."""
        log: list[Message] = []
        async with (
            client.subscribe(topic, "audit", "exclusive") as reader,
            client.create_producer(topic) as producer,
        ):
            with trio.move_on_after(PROBE) as probe:
                last = await producer.send(b"probe")
            if probe.cancelled_caught:
                self.fail(
                    "LIVENESS", f"a message to {topic} is not confirmed after {PROBE} s of good weather"
                )
                return
            with trio.move_on_after(DRAIN):
                while not log or log[-1].message_id != last:
                    log += await reader.receive_many()
                self.books.check_log(topic, log[:-1])
                reader.acknowledge(log)
                await reader.flush()
                if self._backlog(topic, "audit"):
                    self.fail("INV-C4", f"{topic}: what was acknowledged and flushed is not at the broker")
                return
            self.fail("LIVENESS", f"a fresh reader of {topic} does not come to its end")


def _innermost(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def run_seed(seed: int, keep: bool = False) -> Report:
    """One run. `keep`: keep the lines of the trace."""
    return World(seed, keep).run()
