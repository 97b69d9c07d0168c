"""`TransactionCoordinators`: the transaction coordinators of a cluster, as far as the client has asked them.

They are the partitions of one system topic. New transactions go to each in turn. A question to a coordinator
is repeated until the operation timeout, with a new lookup where the coordinator has moved (GAP-40).
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from ...model.errors import NotSupported, PulsarError
from ..connecting.services import Services
from ..lookup.retried_lookup import RetriedLookup
from .coordinator import ASSIGN_TOPIC, Coordinator
from .coordinator_question import CoordinatorQuestion

MAX_KNOWN = 1_000
"""Coordinators that a client knows the way to. Ids of transactions come from outside, and may be wrong."""


class TransactionCoordinators:
    """The coordinators of one client's cluster."""

    __slots__ = ("_count", "_known", "_next", "_services")

    def __init__(self, services: Services) -> None:
        self._services = services
        self._count = 0
        """The number of coordinators that the cluster has; 0 before `search` has found it."""
        self._known: dict[int, Coordinator] = {}
        """The coordinators that were asked, oldest first."""
        self._next = 0

    def next(self) -> Coordinator | None:
        """Return the coordinator of the next new transaction, or None before `search` has found them."""
        if not self._count:
            return None
        self._next = (self._next + 1) % self._count
        return self.numbered(self._next)

    def search(
        self, handle: int, found: Callable[[], None], failed: Callable[[PulsarError], None]
    ) -> RetriedLookup:
        """Return the lookup of the coordinators; the caller asks it. `failed` gets `NotSupported` for a
        cluster without transactions.

        `handle`: the request that waits.
        """

        def known(count: int) -> None:
            if not count:
                failed(NotSupported("the cluster has no transactions (transactionCoordinatorEnabled)"))
                return
            if not self._count:
                self._count = count
                self._next = self._services.context.rng.below(count)
            found()

        ask = partial(self._services.lookup.partitions, ASSIGN_TOPIC)
        return RetriedLookup(self._services, handle, "transaction coordinators", ask, known, failed)

    def numbered(self, number: int) -> Coordinator:
        """Return the coordinator of an id. It may be one that the cluster lacks: no broker has it then."""
        coordinator = self._known.get(number)
        if coordinator is None:
            if len(self._known) == MAX_KNOWN:
                del self._known[next(iter(self._known))]
            coordinator = self._known[number] = Coordinator(self._services, number)
        return coordinator

    def forget(self) -> None:
        """The client uses another cluster, which has coordinators of its own."""
        self._count = 0
        self._known = {}

    def question(
        self,
        coordinator: Coordinator,
        handle: int,
        encode: Callable[[int], bytes],
        reply: int,
        known: Callable[[Any], None],
        failed: Callable[[PulsarError], None],
        answers: tuple[type[PulsarError], ...] | None = None,
    ) -> RetriedLookup:
        """Return a question that is repeated until the coordinator answers or refuses; the caller asks it.

        `handle`: the request or transaction that waits. `answers`: see `RetriedLookup`.
        """
        return RetriedLookup(
            self._services,
            handle,
            f"answers of transaction coordinator {coordinator.number}",
            partial(CoordinatorQuestion, coordinator, encode, reply),
            known,
            failed,
            answers,
        )
