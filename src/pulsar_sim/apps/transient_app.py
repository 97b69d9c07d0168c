"""Transient applications: each uses a topic for a while and leaves no subscription behind.

Owns what these applications have in common: one handle after another, each opened, attached, detached and
closed, and which output may come at which moment. A subclass owns what is done with the handle, and which
outputs are due.
"""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from pulsar_sansio.client.outputs import (
    Attached,
    Closed,
    ConsumerFailed,
    ConsumerReady,
    Deliverable,
    Detached,
    Output,
    RequestDone,
    RequestFailed,
    TableViewFailed,
    TableViewReady,
)
from pulsar_sansio.model.config import ConsumerSpec
from pulsar_sansio.model.errors import ClosedError

from ..engine.clock import SECOND
from ..engine.failures import ViolationError
from ..model.records.consumer_record import ConsumerRecord
from ..model.records.subscription_record import SubscriptionRecord
from .client_process import HURRY, REOPEN_DELAY, ClientProcess, was_misled

if TYPE_CHECKING:
    from ..engine.surroundings import Surroundings


MOST_OPENINGS = 3
"""Openings of one stepping application while there are faults."""


class Registered(Protocol):
    """The record of one handle."""

    name: str
    closed: bool


RecordT = TypeVar("RecordT", bound=Registered)


class TransientApp(ABC, Generic[RecordT]):
    """One transient application, through as many handles as it opens."""

    def __init__(self, world: "Surroundings", kind: str, index: int, client: int) -> None:
        self.world = world
        self.index = index
        self.host: ClientProcess = world.hosts[client]
        self.stream = world.streams.stream(f"{kind} {index}")
        self.incarnation = 0
        self.handle = 0
        self.state = "idle"
        """"idle", "opening", "open" or "closing"."""
        self.attached = False
        self.record: RecordT | None = None

    @property
    @abstractmethod
    def done(self) -> bool:
        """True when, after healing, no work is left."""

    @abstractmethod
    def start(self) -> None:
        """Begin, in a client that runs."""

    @abstractmethod
    def open(self) -> None: ...

    @abstractmethod
    def wake(self) -> None:
        """The faults are over: finish soon."""

    def expect_partitions(self) -> None:
        """Do nothing: a partitioned topic has more partitions."""

    # --- one handle -----------------------------------------------------------------------------------------

    def _may_open(self) -> bool:
        return self.state == "idle" and not self.world.closing and self.host.closing is None

    def _opened(self, handle: int) -> None:
        """The handle of the registered record is being opened."""
        world = self.world
        assert self.record is not None
        name = self.record.name
        self.handle = handle
        self.state = "opening"
        self.host.routes[handle] = self
        world.client_watch.handles[name] = handle
        world.trace.add(world.clock.now, self.host.node.name, f"subscribe {name} is {handle}")
        self.host.node.pump()

    def close_and_reopen(self) -> bool:
        if self.state != "open" or self.host.closing is not None:
            return False
        self.state = "closing"
        node = self.host.node
        self.host.ask_to_close(self)
        try:
            messages = node.client.take(self.world.clock.now, self.handle, 1)
        except ClosedError:
            node.pump()
            return True
        raise ViolationError("INV-C14", f"{self.handle} is being closed and gives {messages}")

    def lose(self) -> None:
        """The process or the handle is lost."""
        if self.record is not None:
            self.record.closed = True
        self.state = "idle"
        self.attached = False

    # --- outputs ----------------------------------------------------------------------------------------

    def on_output(self, output: Output) -> None:
        record = self.record
        assert record is not None
        if isinstance(output, (ConsumerReady, TableViewReady)):
            if self.state != "opening":
                raise ViolationError("INV-N1", f"{record.name} is ready in state {self.state}")
            self.state = "open"
            self.attached = True
            self._is_ready()
        elif isinstance(output, (Closed, ConsumerFailed, TableViewFailed)):
            ended = isinstance(output, Closed) and output.error is not None
            if ended and not was_misled(self.world, output.error):
                raise ViolationError("INV-N9", f"{record.name} ends by itself: {output.error}")
            self.host.routes.pop(self.handle, None)
            self._check_all_answered()
            self.lose()
            self._has_ended()
        elif isinstance(output, Detached):
            self.attached = False
            self._is_detached()
        elif isinstance(output, Attached):
            self.attached = True
            self._is_attached_again()
        elif isinstance(output, RequestDone):
            self._answered(output)
        elif isinstance(output, RequestFailed):
            self._not_answered(output)
        elif not self._on_other_output(output):
            raise ViolationError("INV-N2", f"{record.name} is told {type(output).__name__}")

    @abstractmethod
    def _is_ready(self) -> None: ...

    def _check_all_answered(self) -> None:
        """INV-C14: each request is answered before the end."""

    @abstractmethod
    def _has_ended(self) -> None: ...

    def _is_detached(self) -> None:
        """The connection is lost."""

    def _is_attached_again(self) -> None:
        """The handle is attached again."""

    @abstractmethod
    def _answered(self, output: RequestDone) -> None: ...

    @abstractmethod
    def _not_answered(self, output: RequestFailed) -> None: ...

    @abstractmethod
    def _on_other_output(self, output: Output) -> bool:
        """Take any other output; False when the application must not get it."""


class SteppingApp(TransientApp[RecordT]):
    """A transient application that does one step after another; `pause`: nanoseconds between steps, at
    most."""

    def __init__(self, world: "Surroundings", kind: str, index: int, client: int, pause: int) -> None:
        super().__init__(world, kind, index, client)
        self._pause = pause
        self._turn = 0

    def start(self) -> None:
        self.world.clock.after(self.stream.below(self._pause), self.open)

    def wake(self) -> None:
        if self.state == "idle":
            self.world.clock.after(REOPEN_DELAY, self.open)
        self._later()

    def _later(self) -> None:
        pause = 1 + self.stream.below(self._pause)
        if self.world.healed:
            pause = min(pause, HURRY)
        self._turn += 1
        self.world.clock.after(pause, self._step, self._turn)

    def _may_step(self, turn: int) -> bool:
        """True when the step is still the current one and the handle is open."""
        return turn == self._turn and self.state == "open" and self.host.closing is None

    @abstractmethod
    def _step(self, turn: int) -> None: ...

    def _has_ended(self) -> None:
        if self.incarnation < MOST_OPENINGS or self.world.healed:
            self.world.clock.after(REOPEN_DELAY + self.stream.below(SECOND), self.open)


class ReceivingApp(SteppingApp[RecordT]):
    """A stepping application that only receives: its consumer asks the broker nothing but its close."""

    def _is_ready(self) -> None:
        self._later()

    def _is_attached_again(self) -> None:
        self._later()

    def _answered(self, output: RequestDone) -> None:
        """Do nothing: the end of the consumer is the answer to its close."""

    def _not_answered(self, output: RequestFailed) -> None:
        """Do nothing: the end of the consumer is the answer to its close."""

    def _on_other_output(self, output: Output) -> bool:
        if isinstance(output, Deliverable) and self.world.healed:
            self._later()
        return isinstance(output, Deliverable)


class TransientTopicApp(TransientApp[ConsumerRecord]):
    """A transient application of one topic."""

    def _register(self, name: str, subscription: SubscriptionRecord, spec: ConsumerSpec) -> ConsumerRecord:
        """Register the record of a consumer before it subscribes."""
        self.record = self.world.model.consumers[name] = ConsumerRecord(name, subscription, spec)
        return self.record
