"""`ControlledWatch`: the changes of a client to which a web service names the cluster to use.

Owns INV-F5: the client changes at once to the cluster that an answer of the service names, and only then.
Answers without a usable name change nothing. `RoamingWatch` owns where the client writes, and where it is at
rest.
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
        self._answers: dict[int, tuple[str, int]] = {}
        """By wire: the service URL in an answer under way, and how many of its bytes are not read."""
        self._unsound: dict[int, None] = {}
        """Wires on which a fault has put bytes of its own in front of an answer."""
        self._named: str | None = None
        """The service URL in the answer that the client has just read."""

    def tells(self, wire: int, url: str, size: int) -> None:
        """The service answers over a wire by `size` bytes that name a service URL."""
        self._answers[wire] = url, size

    def begins(self, now: int) -> None:
        self._answers.clear()
        super().begins(now)

    def reads(self, wire: int, size: int, garbage: bool) -> None:
        """The client is about to read bytes of a wire, perhaps the last ones of an answer. `garbage`: a fault
        has put some of them there."""
        if garbage:
            self._unsound[wire] = None
        if wire in self._answers and wire not in self._unsound:
            url, left = self._answers.pop(wire)
            if left > size:
                self._answers[wire] = url, left - size
            else:
                self._named = url

    def has_read(self, *, sound: bool) -> None:
        """INV-F5: the client has read the bytes, and uses the cluster that an answer named.

        `sound`: no fault has put bytes of its own behind the answer.
        """
        named, self._named = self._named, None
        if sound and named is not None and self._cluster_named(named) != self.used:
            raise ViolationError("INV-F5", f"the service named {named}, and the client does not change")

    def excuses_end(self, wire: "Wire", now: int) -> bool:
        """True when the client may end a working link, because it changes to another cluster."""
        return self.changes > 0 and self._switched_at == now

    def switched(self, url: str, now: int) -> None:
        """INV-F5: the client changes to another cluster, and may do so."""
        if self._named is None or ServiceUrl.parse(self._named) != ServiceUrl.parse(url):
            raise ViolationError(
                "INV-F5", f"the client changes to {url}, and the service named {self._named}"
            )
        cluster = self._cluster_named(url)
        if cluster == self.used:
            raise ViolationError("INV-F5", f"the client changes to {url}, which it uses already")
        self._changes_to(cluster, now)

    def _cluster_named(self, url: str) -> int | None:
        return self.cluster_of(ServiceUrl.parse(url).addresses[0].host)
