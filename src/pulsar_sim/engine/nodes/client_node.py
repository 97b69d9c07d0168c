"""A client process: one client machine, driven exactly as an adapter drives it.

Owns draining outputs and waking at deadlines: on time, late, or once too often. It decides nothing about the
protocol; applications decide what outputs mean.
"""

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from pulsar_sansio.client.attaching import attachment_states as states
from pulsar_sansio.client.client import Client as ClientMachine
from pulsar_sansio.client.consuming.consumer import Consumer
from pulsar_sansio.client.outputs import (
    NOTICES,
    Connect,
    CredentialsWanted,
    Disconnect,
    EncryptionKeyWanted,
    Output,
    RequestAnswered,
    RequestSent,
    Retrying,
    Transmit,
)
from pulsar_sansio.model.config import ClientConfig
from pulsar_sansio.model.errors import CertificateExpired, PulsarError
from pulsar_sansio.wire import proto

from ..clock import MILLISECOND, SECOND
from ..failures import ViolationError
from ..leftovers.audit import DETACHED, ENDED, LINK_ENDED
from ..leftovers.inputs import check_moment
from ..leftovers.outputs import check_output
from ..network import GARBAGE, Attempt, Wire
from ..security.credential_source import CredentialSource
from ..security.issuer import MARK
from ..security.key_keeper import KeyKeeper
from ..web.web_answers import WEB_PORT, web_name

if TYPE_CHECKING:
    from ..surroundings import Surroundings

MAX_WAKES_AT_ONCE = 1000
"""Wake-ups at one instant, at most: a machine that asks for more is in a loop."""


MAX_ATTEMPTS = 100
"""Connections that one client may open within a second, at most."""

SNI_PROXY = "proxy"
"""The host of the proxy that routes by the server name of TLS."""

ATTEMPTS_EACH = 8
"""Further connections per application and topic: the backoff of a producer or consumer begins at 0.1 s and
may stop at 0.2 s."""


class Application(Protocol):
    """Takes the outputs of a client."""

    def on_output(self, output: Output) -> None: ...


class LivelockError(AssertionError):
    """A machine asks for wake-ups at one instant without end."""


class Timer:
    """Wakes a machine at its deadline. Wake-ups may be late or spurious."""

    __slots__ = ("_armed", "_deadline", "_fire", "_last", "_repeats", "_world", "name")

    def __init__(
        self, world: "Surroundings", name: str, deadline: Callable[[], int | None], fire: Callable[[], None]
    ) -> None:
        self._world = world
        self.name = name
        self._deadline = deadline
        self._fire = fire
        self._armed: int | None = None
        self._repeats = 0
        self._last = -1

    def arm(self) -> None:
        """Schedule the next wake-up; call this after every input."""
        deadline = self._deadline()
        if deadline is not None and (self._armed is None or deadline < self._armed):
            self._armed = deadline
            clock = self._world.clock
            when = self._world.timing.wakes_at(max(deadline, clock.now))
            clock.at(when, self.wake, deadline)

    def cancel(self) -> None:
        self._armed = None

    def wake(self, deadline: int) -> None:
        """Wake the machine, because the scheduled moment has come."""
        if self._armed != deadline:
            return
        self._armed = None
        world = self._world
        now = world.clock.now
        actual = self._deadline()
        if (actual is None or actual > now) and not world.timing.wakes_for_nothing():
            self.arm()
            return
        self._repeats = self._repeats + 1 if now == self._last else 0
        self._last = now
        if self._repeats > MAX_WAKES_AT_ONCE:
            raise LivelockError(f"{self.name} asks to be woken for ever at one instant")
        world.trace.add(now, self.name, "wake")
        self._fire()


class RecordingClient(ClientMachine):
    """A client that records its ended producers, consumers and table views."""

    def __init__(
        self,
        now: int,
        config: ClientConfig,
        *,
        seed: int,
        wall_time: int,
        entropy: Callable[[int], bytes],
        data_key_renewal: int,
    ) -> None:
        """`data_key_renewal`: nanoseconds between two data keys of a producer; 0 leaves the client's own."""
        super().__init__(now, config, seed=seed, wall_time=wall_time, entropy=entropy)
        if data_key_renewal:
            self._services.durations.data_key_renewal = data_key_renewal
        self.has_ended: list[Any] = []
        """Producers, consumers and table views that have ended since the last check."""

    def _ended(self, handle: int, error: PulsarError | None) -> None:
        machines = [
            each.get(handle)
            for each in (self._handles.producers, self._handles.consumers, self._handles.views)
        ]
        super()._ended(handle, error)
        self.has_ended += [each for each in machines if each is not None]

    @property
    def has_messages(self) -> bool:
        """True when an open consumer has messages that the application has not taken."""
        return any(consumer.available() for consumer in self._handles.consumers.values())

    def machine(self, handle: int) -> Any:
        """Return the producer or consumer; None when it has ended."""
        return self._handles.producers.get(handle) or self._handles.consumers.get(handle)

    def connection(self, link: int) -> Any:
        """Return the connection over a link; None when it has ended."""
        return self._links.open.get(link)


class ClientNode:
    """One client process: a `RecordingClient` and its ends of the wires."""

    def __init__(
        self, world: "Surroundings", name: str, config: ClientConfig, application: Application
    ) -> None:
        self.world = world
        self.name = name
        self.config = config
        self.application = application
        plan = world.profile.encryption
        self.client = RecordingClient(
            world.clock.now,
            config,
            seed=world.streams.seed_of(f"machine {name}"),
            wall_time=world.wall_time(),
            entropy=world.streams.stream(f"entropy of {name}").entropy,
            data_key_renewal=0 if plan is None else plan.renewal,
        )
        self.client.report_requests(world.audits_ends)
        self._reported: set[tuple[int, int]] = set()
        """Requests that the client has reported, and not their answers: link and request id."""
        self._queued: set[tuple[int, int]] = set()
        """Requests whose first answer lets a producer wait for access: a second answer follows."""
        self.wires: dict[int, Wire] = {}
        self.attempts: dict[int, Attempt] = {}
        self.alive = True
        self._credentials = None if world.issuer is None else CredentialSource(self, world.issuer)
        self._keys = None if plan is None else KeyKeeper(self, plan)
        self._recent_attempts: deque[int] = deque()
        self._timer = Timer(world, name, self.client.next_deadline, self.wake)
        self._pumping = False

    @property
    def tls(self) -> bool:
        """True when the client connects by TLS."""
        issuer = self.world.issuer
        return issuer is not None and issuer.plan.tls

    @property
    def waits_for_credentials(self) -> bool:
        """True while the provider owes an answer for a link that is open."""
        return self._credentials is not None and not self._credentials.owed.isdisjoint(self.wires)

    @property
    def waits_for_keys(self) -> bool:
        """True while a key reader owes an answer."""
        return self._keys is not None and bool(self._keys.owed)

    def pump(self) -> None:
        """Drain the outputs, including those of commands that applications give meanwhile."""
        if self._pumping:
            return
        self._pumping = True
        client = self.client
        check_moment(self.name, client._context, self.world.clock.now)
        while (output := client.next_output()) is not None:
            kind = type(output)
            if kind is Transmit:
                self._transmit(output.link)  # type: ignore[union-attr]
            elif kind is Connect:
                self._connect(output)  # type: ignore[arg-type]
            elif kind is Disconnect:
                self._disconnect(output)  # type: ignore[arg-type]
            elif kind is CredentialsWanted:
                self._want_credentials(output)  # type: ignore[arg-type]
            elif kind is EncryptionKeyWanted:
                assert self._keys is not None
                self._keys.wanted(output)  # type: ignore[arg-type]
            else:
                check_output(self.name, output)
                if kind in NOTICES:
                    self._notice(output)
                else:
                    self.application.on_output(output)
        self._pumping = False
        self._timer.arm()
        if client.has_ended:
            ended, client.has_ended = client.has_ended, []
            for machine in ended if self.world.audits_ends else ():
                ENDED.check(f"{self.name}: {type(machine).__name__} {machine.handle}", machine)

    def check_detached(self, handle: int) -> None:
        """INV-L1: a consumer keeps nothing that belongs to a lost connection."""
        machine = self.client.machine(handle)
        if not self.world.audits_ends or not isinstance(machine, Consumer):
            return
        if not isinstance(machine.attachment.state, states.Attached):
            DETACHED.check(f"{self.name}: consumer {handle}", machine)

    def _notice(self, output: Output) -> None:
        """Check a notice. Notices have no effect; after each failed attempt the application asks for an
        explanation."""
        if self._credentials is not None:
            self.check_secrets(output)
        if isinstance(output, Retrying):
            if output.retry_in < 0:
                raise ViolationError("INV-N2", f"{self.name} tries again {output.retry_in} ns from now")
            self.client.explain(self.world.clock.now, output.id)
        elif isinstance(output, RequestSent | RequestAnswered):
            self._check_request(output)

    def _check_request(self, output: RequestSent | RequestAnswered) -> None:
        """INV-N1: a client that reports requests reports each answer once, and nothing unless it was told
        to."""
        key = output.link, output.request
        if not self.world.audits_ends or (key in self._reported) is isinstance(output, RequestSent):
            raise ViolationError("INV-N1", f"{self.name} reports {output}")
        if isinstance(output, RequestSent):
            self._reported.add(key)
            return
        self._reported.remove(key)
        if key in self._queued:
            self._queued.remove(key)
            self._reported.add(key)
        if (output.command in ("ERROR", "nothing")) is (output.error is None) and output.request:
            raise ViolationError("INV-N1", f"{self.name} reports {output}")

    def crash(self) -> None:
        """Kill the process; only the kernels of its peers notice."""
        self.alive = False
        self._timer.cancel()
        for attempt in self.attempts.values():
            attempt.cancelled = True
        self.attempts.clear()
        for wire in list(self.wires.values()):
            wire.closed_by(client_side=True, abort=True)
        self.wires.clear()

    # --- inputs from the network ---

    def link_connected(self, link: int, wire: Wire) -> None:
        self.attempts.pop(link, None)
        self.wires[link] = wire
        self.client.connected(self.world.clock.now, link)
        self.pump()
        self.world.client_watch.credentials.check_asked(wire)

    def link_data(self, link: int, data: bytes, frames: list[tuple[int, int, Any]]) -> None:
        wire = self.wires.get(link)
        if wire is None:
            return
        watch = self.world.client_watch
        connection = self.client.connection(link)
        self.client.receive_data(self.world.clock.now, link, data)
        for behind, kind, command in frames:
            if kind == GARBAGE:
                watch.got_garbage(wire)
            elif behind >= connection.unread:
                watch.got(wire, kind, command)
                if kind == proto.BaseCommand.PRODUCER_SUCCESS and not command.producer_ready:
                    self._queued.add((link, command.request_id))
        self.pump()
        watch.settled(wire)

    def link_eof(self, link: int) -> None:
        wire = self.wires.get(link)
        if wire is not None:
            self.world.client_watch.ends[wire.number].over = True
        self.client.receive_eof(self.world.clock.now, link)
        self.pump()

    def link_lost(self, link: int, reason: str) -> None:
        self.attempts.pop(link, None)
        wire = self.wires.pop(link, None)
        if wire is not None:
            self.world.client_watch.forget(wire)
        if self.alive:
            connection = self.client.connection(link)
            self.client.disconnected(self.world.clock.now, link, reason)
            self.pump()
            if connection is not None:
                LINK_ENDED.check(f"{self.name}: link {link}", connection)

    # --- outputs ---

    def _connect(self, output: Connect) -> None:
        self._count_attempt()
        host, tls_name = output.address.host, output.tls_name
        if host == SNI_PROXY and tls_name is not None:
            host = tls_name  # the proxy routes by the name
        self.world.client_watch.credentials.connects(self.name, host, tls_name, self.tls)
        if output.address.port == WEB_PORT:
            host = web_name(host)
        if self.tls and self._credentials is not None and self._credentials.refuses_certificate():
            attempt = self.attempts[output.link] = Attempt(self, output.link)
            self.world.clock.after(MILLISECOND, self._handshake_failed, attempt)
            return
        self.attempts[output.link] = self.world.network.connect(self, output.link, host)

    def _handshake_failed(self, attempt: Attempt) -> None:
        if attempt.cancelled:
            return
        del self.attempts[attempt.link]
        error = CertificateExpired("the certificate has expired")
        self.client.disconnected(self.world.clock.now, attempt.link, error)
        self.pump()

    def _want_credentials(self, output: CredentialsWanted) -> None:
        wire = self.wires.get(output.link)
        self.world.trace.add(self.world.clock.now, self.name, f"link {output.link} wants credentials")
        self.world.client_watch.credentials.asked(self.name, output.link, output.broker.host, wire)
        assert self._credentials is not None
        self._credentials.wanted(output)

    def check_secrets(self, output: Output) -> None:
        """INV-X1: no output shows credentials."""
        if MARK in f"{output!r} {getattr(output, 'error', '')}":
            raise ViolationError("INV-X1", f"{self.name}: {type(output).__name__} shows credentials")

    def _count_attempt(self) -> None:
        """INV-N6: an outage causes no storm of connections."""
        now = self.world.clock.now
        recent = self._recent_attempts
        recent.append(now)
        while recent[0] < now - SECOND:
            recent.popleft()
        if len(recent) > MAX_ATTEMPTS and len(recent) > ATTEMPTS_EACH * self._most_attachments():
            raise ViolationError("INV-N6", f"{self.name} opens {len(recent)} connections within a second")

    def _most_attachments(self) -> int:
        """The number of producers and consumers of one topic, and of questions, that the client may have."""
        world = self.world
        crowd = 0 if world.profile.web is None else world.profile.web.crowd
        users = [user for user in world.apps.users if user.host.node is self]
        return len(users) * len(world.topics.names) + crowd

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
            if self._credentials is not None:
                self.check_secrets(output)
            self.world.client_watch.ends_link(wire, output.reason, self.config)
            self.world.client_watch.forget(wire)
            wire.closed_by(client_side=True)
            timing = self.world.timing
            if timing.stale_permille and timing.stream.chance(timing.stale_permille):
                self.world.count_fault("stale_input")
                self.client.receive_data(self.world.clock.now, link, b"\0\0\0\1stale")
                self.client.disconnected(self.world.clock.now, link, "stale")

    def wake(self) -> None:
        """Call the client at its deadline; a spurious call is allowed."""
        self.client.handle_deadline(self.world.clock.now)
        self.pump()
