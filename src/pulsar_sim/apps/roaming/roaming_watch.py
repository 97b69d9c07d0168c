"""`RoamingWatch`: the links of a client that changes between two clusters by probes, and its changes.

Owns INV-F1, INV-F2, INV-F3 and INV-F6. A client leaves a cluster only after its attempts have failed for the
delay, and comes back only after probes of the primary have succeeded for theirs (F1). It does leave a cluster
that is away while the other one is there, where nothing else disturbs it (F2). After a change it writes
nothing but probes to the former cluster, and keeps no link to it (F3). It goes to a cluster at the moment
when a probe of that one succeeds (F6). At rest it is in the primary cluster (INV-N5).
`model/roaming_account.py` owns the messages (INV-F4).
"""

from pulsar_sansio.model.service_url import ServiceUrl
from pulsar_sansio.wire import proto

from ...engine.clock import SECOND
from ...engine.failures import LivenessError, ViolationError
from ...engine.network import Wire
from ...engine.profile import PRIMARY, SECONDARY, FailoverPlan, OutagePlan
from ...engine.web.control_service import HOST as CONTROL_HOST
from ...engine.web.web_answers import web_name

T = proto.BaseCommand

OF_PROBES = frozenset((T.CONNECT, T.PING, T.PONG))
"""The commands that a client writes to a cluster that it does not use."""


def is_roaming(wire: Wire) -> bool:
    """True for a wire of the client that changes between clusters."""
    return wire.client.config.failover is not None  # type: ignore[attr-defined]


class Outages:
    """The outages that the roaming client is in, at most one of each cluster."""

    def __init__(self) -> None:
        self._current: list[OutagePlan | None] = [None, None]

    def of(self, cluster: int | None) -> OutagePlan | None:
        """Return the outage of a cluster; None for a cluster that is there, and for another host."""
        return None if cluster is None else self._current[cluster]

    def begins(self, outage: OutagePlan) -> None:
        self._current[outage.cluster] = outage

    def ends(self, outage: OutagePlan) -> None:
        if self._current[outage.cluster] is outage:
            self._current[outage.cluster] = None

    def heal(self) -> None:
        self._current = [None, None]


class _Link:
    """One link, from the attempt to its end."""

    def __init__(self, cluster: int | None) -> None:
        self.cluster = cluster
        """The cluster of the host; None for a web service that belongs to no cluster."""
        self.connected_at: int | None = None
        """The moment when CONNECTED arrived."""


class RoamingWatch:
    """The roaming client of a world. `hosts`: the hosts that the service URL of the primary cluster names.
    `secondary`: the broker of the other cluster."""

    def __init__(self, plan: FailoverPlan, hosts: int, secondary: str) -> None:
        self.plan = plan
        self._hosts = hosts
        self._secondary = secondary
        self.outages = Outages()
        self.used = PRIMARY
        """The cluster that the client uses."""
        self.home = PRIMARY
        """The cluster in which the client has to be at rest, after every fault is over."""
        self.changes = 0
        self._switched_at = 0
        self._left: list[int] = []
        """The links to the former cluster at the last change."""
        self._links: dict[int, _Link] = {}
        self._failing_since: list[int | None] = [None, None]
        """By cluster: the first failed attempt since the last successful probe."""
        self._failed_hosts = 0
        """Failed attempts at the primary cluster since the last successful probe: a probe tries each host."""
        self._good_since: int | None = None
        """The first successful probe of the primary cluster since the last failed one."""

    def cluster_of(self, host: str) -> int | None:
        """Return the cluster of a host; None for the web service that names clusters."""
        if host in (CONTROL_HOST, web_name(CONTROL_HOST)):
            return None
        return SECONDARY if host in (self._secondary, web_name(self._secondary)) else PRIMARY

    def begins(self, now: int) -> None:
        """A new process begins, in the primary cluster."""
        self._links.clear()
        self._uses(PRIMARY, now)

    # --- links ----------------------------------------------------------------------------------------------

    def connects(self, link: int, host: str) -> None:
        self._links[link] = _Link(self.cluster_of(host))

    def got_connected(self, wire: Wire, now: int) -> None:
        if (link := self._links.get(wire.client_link)) is not None:
            link.connected_at = now

    def excuses_end(self, wire: Wire, now: int) -> bool:
        """True when the client may end a working link: it handles CONNECTED, with which a probe ends, or it
        changes to another cluster."""
        link = self._links.get(wire.client_link)
        is_probe = link is not None and link.connected_at == now
        return is_probe or (self.changes > 0 and self._switched_at == now)

    def link_ends(self, number: int, now: int) -> None:
        """A link was lost, or the client ends it."""
        link = self._links.pop(number, None)
        if link is None or link.cluster is None:
            return
        if link.connected_at == now:
            self._failing_since[link.cluster] = None
            if link.cluster == PRIMARY:
                self._failed_hosts = 0
                self._good_since = now if self._good_since is None else self._good_since
        elif link.connected_at is None:
            if self._failing_since[link.cluster] is None:
                self._failing_since[link.cluster] = now
            if link.cluster == PRIMARY:
                self._failed_hosts += 1
                if self._failed_hosts >= self._hosts:
                    self._good_since = None

    def wrote(self, wire: Wire, kind: int, now: int) -> None:
        """INV-F3: after a change only probes go to the former cluster."""
        if (
            self.cluster_of(wire.broker.name) != self.used
            and kind not in OF_PROBES
            and now > self._switched_at
        ):
            raise ViolationError(
                "INV-F3", f"{wire.client.name} writes command {kind} to {wire.broker.name}, which it has left"
            )

    # --- changes --------------------------------------------------------------------------------------------

    def switched(self, url: str, now: int) -> None:
        """INV-F1, INV-F6: the client changes to another cluster, and may do so."""
        former, target = self.used, self.cluster_of(ServiceUrl.parse(url).addresses[0].host)
        failing, good = self._failing_since[former], self._good_since
        failed = failing is not None and now - failing >= round(self.plan.failover_delay * SECOND)
        is_back = (
            target == PRIMARY
            and good is not None
            and now - good >= round(self.plan.switch_back_delay * SECOND)
        )
        if target == former or not (failed or is_back):
            raise ViolationError("INV-F1", f"the client changes to {url}: failing {failing}, good {good}")
        if not any(each.cluster == target and each.connected_at == now for each in self._links.values()):
            raise ViolationError(
                "INV-F6", f"the client changes to {url}, of which no probe has just succeeded"
            )
        self._changes_to(target, now)

    def _changes_to(self, cluster: int | None, now: int) -> None:
        assert cluster is not None
        self.changes += 1
        self._left = [number for number, link in self._links.items() if link.cluster == self.used]
        self._uses(cluster, now)

    def check_left_links(self) -> None:
        """INV-F3: a change has ended every link to the former cluster."""
        for number in self._left:
            if number in self._links:
                raise ViolationError("INV-F3", f"link {number} outlives the change to another cluster")

    def check_rest(self, now: int) -> None:
        """INV-F3 at rest: no link leads to the other cluster, except one for a probe."""
        for number, link in self._links.items():
            lost = link.connected_at is not None and link.connected_at < now
            if link.cluster not in (None, self.used) and lost:
                raise ViolationError("INV-F3", f"link {number} leads to a cluster that is not in use")

    def _uses(self, cluster: int, now: int) -> None:
        self.used, self._switched_at = cluster, now
        self._failing_since = [None, None]
        self._good_since = None
        self._failed_hosts = 0

    def check_left(self, outage: OutagePlan, calm: bool) -> None:
        """INV-F2: the outage has lasted for `longest_stay`, so the client has left the cluster.

        `calm`: no fault disturbs the other cluster, which is there.
        """
        if calm and self.outages.of(outage.cluster) is outage and self.used == outage.cluster:
            raise LivenessError("INV-F2", "the client stays in a cluster that is away")

    @property
    def is_home(self) -> bool:
        """INV-N5: the client uses the cluster that it has to use after every fault is over."""
        return self.used == self.home
