"""`ControlledWatch`: the changes of a client to which a web service names the cluster to use.

Owns INV-F5: the client changes only to the cluster that the last answer of the service named, and answers
without a usable name change nothing. What it writes where, and where it is at rest, is as for other clients
that change between clusters.
"""

from typing import TYPE_CHECKING

from pulsar_sansio.model.service_url import ServiceUrl

from ...engine.failures import ViolationError
from .roaming_watch import RoamingWatch

if TYPE_CHECKING:
    from ...engine.network import Wire
    from ...engine.profile import FailoverPlan


class ControlledWatch(RoamingWatch):
    """The client of a world with a `ControlledFailover`."""

    def __init__(self, plan: "FailoverPlan", secondary: str) -> None:
        super().__init__(plan, 1, secondary)
        self._named: str | None = None
        """The service URL of the last answer; None where it named none, and after the change to it."""

    def tells(self, url: str | None) -> None:
        """The service answers."""
        self._named = url

    def begins(self, now: int) -> None:
        self._named = None
        super().begins(now)

    def excuses_end(self, wire: "Wire", now: int) -> bool:
        """True when the client may end a working link, because it changes to another cluster."""
        return self.changes > 0 and self._switched_at == now

    def switched(self, url: str, now: int) -> None:
        """INV-F5: the client changes to another cluster, and may do so."""
        named, self._named = self._named, None
        target = ServiceUrl.parse(url)
        if named is None or ServiceUrl.parse(named) != target:
            raise ViolationError("INV-F5", f"the client changes to {url}, and the service named {named}")
        cluster = self._cluster_of(target.addresses[0].host)
        if cluster == self.used:
            raise ViolationError("INV-F5", f"the client changes to {url}, which it uses already")
        self.changes += 1
        self._uses(cluster, now)
