"""The client processes of a world, and the routing of outputs to their applications.

Owns a process's life: the process starts, is closed in good order or lost, and starts again with its
applications. After a client reports that it is closed, it must be quiet, and each of its applications must
have been told.
"""

from typing import TYPE_CHECKING, Any, Protocol

from pulsar_sansio.client.outputs import (
    ActiveChanged,
    Closed,
    ConsumerFailed,
    ConsumerReady,
    Deliverable,
    Detached,
    EndOfTopic,
    InterceptorFailed,
    LetterFailed,
    Output,
    ProducerFailed,
    ProducerReady,
    Receipts,
    RequestDone,
    RequestFailed,
    SendFailed,
    TableChanged,
    TableViewFailed,
    TableViewReady,
    TopicJoined,
    TopicLeft,
    Undecryptable,
    Writable,
)
from pulsar_sansio.model.errors import BrokerAddressRefused, PulsarError

from ..engine.clock import MILLISECOND, SECOND
from ..engine.failures import ViolationError
from ..engine.leftovers.audit import CLOSED as NOTHING_LEFT
from ..engine.nodes.client_node import Application, ClientNode
from ..faults.catalogue import MISLEADING_FAULTS
from .refused_calls.closed_clients import check_closed_client
from .refused_calls.ended_handles import FastPaths, check_closing_handle, check_ended_handle

if TYPE_CHECKING:
    from ..engine.surroundings import Surroundings

READY = frozenset({ProducerReady, ConsumerReady, TableViewReady})

ENDS = frozenset({Closed, ProducerFailed, ConsumerFailed, TableViewFailed})

REOPEN_DELAY = 50 * MILLISECOND

HURRY = 5 * MILLISECOND
"""The longest pause of an application between two steps once the faults are over."""

CLOSING_SLACK = 5 * SECOND
"""Nanoseconds by which a close may exceed the operation timeout."""

CLOSED = -2
"""Stands in place of a request when the whole client is closed."""

LOST = -1
"""Stands in place of a request when the process is lost."""


class User(Application, Protocol):
    """An application, as its client process sees it."""

    handle: int

    @property
    def state(self) -> str: ...
    @property
    def host(self) -> "ClientProcess": ...
    def start(self) -> None: ...
    def lose(self) -> None: ...


class ClientProcess:
    """One client process: it routes outputs to its applications."""

    def __init__(self, world: "Surroundings", index: int) -> None:
        self.world = world
        self.index = index
        self.incarnation = 0
        self.routes: dict[int, Application] = {}
        """Handles and requests, each with the application that takes its outputs."""
        self.closing: int | None = None
        """The request that closes the whole client."""
        self.abandoned_bytes = 0
        """Payload bytes that were pending when their producers were abandoned. They count while the broker
        may still confirm them, and no output reports when that is over."""
        self.node: ClientNode
        self.boot()

    def boot(self) -> None:
        self.incarnation += 1
        self.routes.clear()
        self.closing = None
        self.abandoned_bytes = 0
        self._fast_paths: dict[int, FastPaths] = {}
        self.node = self._make_node(f"client-{self.index}.{self.incarnation}")

    def _make_node(self, name: str) -> ClientNode:
        return ClientNode(self.world, name, self.world.client_config, self)

    @property
    def apps(self) -> "list[User]":
        return [app for app in self.world.apps.users if app.host is self]

    def on_output(self, output: Output) -> None:
        kind = type(output)
        if kind is RequestDone or kind is RequestFailed:
            key = output.request  # type: ignore[union-attr]
            receiver = self.routes.pop(key, None)
            if receiver is None:
                raise ViolationError(
                    "INV-N1", f"{self.node.name}: request {key} is answered without an outstanding request"
                )
        else:
            key = _subject(output)
            receiver = self.routes.get(key)
        self.world.trace.add(self.world.clock.now, self.node.name, f"{kind.__name__} {key}")
        error = getattr(output, "error", None)
        if error is not None:
            self._check_error(output, error)
        if kind is Detached:
            self.node.check_detached(key)
        elif kind in READY:
            self._fast_paths[key] = FastPaths(self.node.client, key)
        elif kind in ENDS:
            paths = self._fast_paths.pop(key, None)
            check_ended_handle(self.node, key, paths, output.error)  # type: ignore[union-attr, arg-type]
        if receiver is not None:
            receiver.on_output(output)

    def _check_error(self, output: Output, error: Exception) -> None:
        """INV-N18, INV-X1: an error has a text, which shows no credentials."""
        if isinstance(error, PulsarError) and not str(error):
            raise ViolationError("INV-N18", f"{self.node.name}: the error of {output} has no text")
        if self.world.issuer is not None:
            self.node.check_secrets(output)

    # --- closing, crashing and restarting ---

    def ask_to_close(self, app: "User") -> None:
        """Close the application's handle; the application takes the answer. Raises what the client raises.
        INV-N11: the close ends in time, whatever the broker does."""
        request = self.node.client.close(self.world.clock.now, app.handle)
        self.routes[request] = app
        self.world.trace.add(self.world.clock.now, self.node.name, f"close {app.handle}")
        check_closing_handle(self.node, app.handle)
        limit = round(self.world.profile.operation_timeout * SECOND) + CLOSING_SLACK
        self.world.clock.after(limit, self._check_ended, app, app.handle, self.incarnation)

    def _check_ended(self, app: "User", handle: int, incarnation: int) -> None:
        if app.state == "closing" and app.handle == handle and self.incarnation == incarnation:
            raise ViolationError("INV-N11", f"{self.node.name}: the close of {handle} takes too long")

    def close(self) -> None:
        """Close the whole client."""
        node = self.node
        request = node.client.close(self.world.clock.now, None)
        self.closing = request
        self.routes[request] = _Closing(self)
        self.world.trace.add(self.world.clock.now, node.name, "close")
        node.pump()

    def closed(self) -> None:
        """The client reports that it is closed: it must be quiet, and each application must have been told
        (INV-N11)."""
        self.closing = CLOSED
        node = self.node
        for app in self.apps:
            if app.state != "idle":
                raise ViolationError(
                    "INV-N11", f"{node.name} is closed; {app.state} {app.handle} was told nothing"
                )
        for key, receiver in self.routes.items():
            if receiver in self.apps:
                raise ViolationError("INV-N11", f"{node.name} is closed; {key} was never answered")
        self.world.clock.after(0, check_quiet, node)
        if not self.world.closing:
            self.world.clock.after(10 * MILLISECOND, self.restart)

    def crash(self) -> None:
        """Let the process die."""
        self.world.trace.add(self.world.clock.now, self.node.name, "crash")
        self.node.crash()
        self.closing = LOST
        for app in self.apps:
            app.lose()
        self.world.clock.after(100 * MILLISECOND, self.restart)

    def restart(self) -> None:
        self.boot()
        for app in self.apps:
            app.start()


def was_misled(world: "Surroundings", error: PulsarError | None) -> bool:
    """True when a producer or consumer ends because a broker named a host that is not allowed (INV-X2)."""
    return isinstance(error, BrokerAddressRefused) and any(name in world.faults for name in MISLEADING_FAULTS)


class _Closing:
    """The application that takes the answer to the close of a whole client."""

    def __init__(self, host: ClientProcess) -> None:
        self._host = host

    def on_output(self, output: Output) -> None:
        if not isinstance(output, RequestDone):
            raise ViolationError(
                "INV-N11", f"{self._host.node.name}: closing ends with {type(output).__name__}"
            )
        self._host.closed()


def check_quiet(node: ClientNode) -> None:
    """INV-N11: a closed client has no link, no output and no deadline."""
    if node.wires or node.attempts:
        raise ViolationError("INV-N11", f"{node.name} is closed and has open links")
    if node.client.next_output() is not None or node.client.next_deadline() is not None:
        raise ViolationError("INV-N11", f"{node.name} is closed and not quiet")
    NOTHING_LEFT.check(node.name, node.client)
    check_closed_client(node)


def _subject(output: Any) -> int:
    kind = type(output)
    if kind in (ProducerReady, ProducerFailed, Receipts, SendFailed, Writable, InterceptorFailed):
        subject: int = output.producer
    elif kind in (
        ConsumerReady,
        ConsumerFailed,
        Deliverable,
        ActiveChanged,
        EndOfTopic,
        Undecryptable,
        LetterFailed,
        TopicJoined,
        TopicLeft,
    ):
        subject = output.consumer
    elif kind in (TableViewReady, TableViewFailed, TableChanged):
        subject = output.view
    else:
        subject = output.id
    return subject
