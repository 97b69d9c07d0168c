"""Close and cancel at every step: one small run, repeated and disturbed once each time.

`world` draws the moment of a close or a cancellation. A sweep takes step 1, 2, 3 … of all tasks together,
until the run is over. The disturbed application begins anew, and everything has to come to the same end as
ever. Each message is settled once and none is lost. No task is left waiting, and no task and no socket is
left behind.

    python -m tests.triosim --sweep [--kind "close client"] [--seed 0] [--every 1] [--step K --trace]
"""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

import trio

from pulsar_sansio import BrokerConfig, ClosedError, SubscriptionType
from pulsar_sim.engine.clock import MILLISECOND
from tests.triosim.apps.actors import Consuming, Producing
from tests.triosim.profile import URL, Profile, Subscription
from tests.triosim.world import Report, World

SMALL = Profile(
    clients=1,
    producers=1,
    messages=4,
    largest=0,
    topics=("t0",),
    subscriptions=(Subscription("t0", "s0", SubscriptionType.SHARED, 1),),
    broker=BrokerConfig(service_url=URL, keepalive_interval=3.0, failover_delay=0.05),
    latency=MILLISECOND,
    jitter=0,
    cut_permille=0,
    capacity=4096,
    cancel_permille=0,
    session_permille=0,
    fault_gap=0,
    slow_permille=0,
)
"""One client with one producer and one consumer, and good weather. What they do is drawn from the seed."""


class Disturbed(World):
    """A run in which `kind` happens after `step` steps; with None nothing does."""

    def __init__(self, seed: int, kind: str, step: int | None, keep: bool = False) -> None:
        super().__init__(seed, keep, SMALL)
        self.kind = kind
        self.step = step
        self.hit = False
        """True once the run has found a target to close or cancel."""
        self.length = 0
        """Steps from the first application's beginning to the last one's end."""
        self._moment = trio.Event()

    async def _client(self, index: int, group: list[Producing | Consuming]) -> None:
        began = self.canceller.steps
        if self.step is not None:
            self.canceller.after_steps(self.step, self._moment_has_come)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._closer)
            try:
                await super()._client(index, group)
            finally:
                self.length = self.canceller.steps - began
                nursery.cancel_scope.cancel()

    def _moment_has_come(self) -> None:
        self.note("sweep", self.kind)
        if self.kind in CANCELLATIONS:
            for scope in CANCELLATIONS[self.kind](self):
                self.hit = True
                scope.cancel()
        else:
            self._moment.set()

    async def _closer(self) -> None:
        """Closing waits, so it needs a task: this one is woken."""
        await self._moment.wait()
        for close in list(CLOSINGS[self.kind](self)):
            self.hit = True
            with suppress(ClosedError):
                await close()


def _cancel_client(world: World) -> Iterator[trio.CancelScope]:
    return (scope for _, scope in world.clients)


def _cancel_producer(world: World) -> Iterator[trio.CancelScope]:
    return (scope for each, scope in world.sessions.items() if isinstance(each, Producing))


def _cancel_consumer(world: World) -> Iterator[trio.CancelScope]:
    return (scope for each, scope in world.sessions.items() if isinstance(each, Consuming))


def _cancel_calls(world: World) -> Iterator[trio.CancelScope]:
    return iter(world.calls.values())


def _close_client(world: World) -> Iterator[Callable[[], Awaitable[None]]]:
    return (client.aclose for client, _ in world.clients)


def _close_producer(world: World) -> Iterator[Callable[[], Awaitable[None]]]:
    return (book.producer.aclose for book in world.books.producers)


def _close_consumer(world: World) -> Iterator[Callable[[], Awaitable[None]]]:
    return (book.consumer.aclose for book in world.books.consumers)


CANCELLATIONS: dict[str, Callable[[World], Iterator[trio.CancelScope]]] = {
    "cancel client": _cancel_client,
    "cancel producer": _cancel_producer,
    "cancel consumer": _cancel_consumer,
    "cancel calls": _cancel_calls,
}

CLOSINGS: dict[str, Callable[[World], Iterator[Callable[[], Awaitable[None]]]]] = {
    "close client": _close_client,
    "close producer": _close_producer,
    "close consumer": _close_consumer,
}

KINDS = (*CLOSINGS, *CANCELLATIONS)


@dataclass(slots=True)
class Swept:
    """The results of a sweep."""

    steps: int = 0
    """The steps of the undisturbed run."""
    runs: int = 0
    hits: int = 0
    """Runs in which there was a target to close or cancel."""
    failures: tuple[str, ...] = ()


def run_at(seed: int, kind: str, step: int | None, keep: bool = False) -> tuple[Report, Disturbed]:
    world = Disturbed(seed, kind, step, keep)
    return world.run(), world


def sweep(seed: int, kind: str, every: int = 1, first: int = 1) -> Swept:
    """At the steps first, first + every … to the last one."""
    report, undisturbed = run_at(seed, kind, None)
    assert not report.failure, f"undisturbed: {report.failure}"
    swept = Swept(undisturbed.length)
    for step in range(first, swept.steps + 1, every):
        report, world = run_at(seed, kind, step)
        swept.runs += 1
        swept.hits += world.hit
        if report.failure:
            swept.failures += (f"--seed {seed} --kind {kind!r} --step {step}: {report.failure}",)
    return swept
