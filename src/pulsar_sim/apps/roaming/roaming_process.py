"""`RoamingProcess`: a client process with a failover, for which a whole cluster may be away."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pulsar_sansio.client.outputs import Connect, Disconnect, Output, ServiceUrlSwitched
from pulsar_sansio.model.config import AutoFailover, ControlledFailover

from ...engine.clock import MILLISECOND
from ...engine.network import GARBAGE, Attempt, Wire
from ...engine.nodes.client_node import ClientNode
from ...engine.nodes.cluster import address
from ...engine.nodes.secondary_cluster import SECONDARY_BROKER
from ...engine.profile import PROBE_TIMEOUT, FailoverPlan, OutagePlan
from ...engine.web.control_service import URL as CONTROL_URL
from ..client_process import ClientProcess
from .controlled_watch import ControlledWatch
from .roaming_watch import RoamingWatch

if TYPE_CHECKING:
    from ...engine.surroundings import Surroundings


class RoamingNode(ClientNode):
    """The client machine: the watch sees each link, and an outage takes a cluster away."""

    watch: RoamingWatch

    def cut(self, outage: OutagePlan) -> None:
        """Take a cluster away: end the links that lead there."""
        for wire in list(self.wires.values()):
            if self.watch.cluster_of(wire.broker.name) == outage.cluster:
                if outage.silent:
                    wire.half_open(to_broker=True, to_client=True)
                else:
                    wire.reset()

    def link_data(self, link: int, data: bytes, frames: list[tuple[int, int, Any]]) -> None:
        watch, wire = self.watch, self.wires.get(link)
        if wire is None or not isinstance(watch, ControlledWatch):
            super().link_data(link, data, frames)
            return
        garbage = any(kind == GARBAGE for _, kind, _ in frames)
        watch.reads(wire.number, len(data), garbage)
        super().link_data(link, data, frames)
        watch.has_read(sound=not garbage)

    def link_lost(self, link: int, reason: str) -> None:
        self.watch.link_ends(link, self.world.clock.now)
        super().link_lost(link, reason)

    def _connect(self, output: Connect) -> None:
        host = output.address.host
        self.watch.connects(output.link, host)
        outage = self.watch.outages.of(self.watch.cluster_of(host))
        if outage is None:
            super()._connect(output)
            return
        self._count_attempt()
        attempt = self.attempts[output.link] = Attempt(self, output.link)
        if not outage.silent:
            self.world.clock.after(MILLISECOND, self._refused, attempt)

    def _refused(self, attempt: Attempt) -> None:
        if not attempt.cancelled:
            self.link_lost(attempt.link, "connection refused")

    def link_connected(self, link: int, wire: Wire) -> None:
        """An attempt from before an outage ends within it."""
        outage = self.watch.outages.of(self.watch.cluster_of(wire.broker.name))
        super().link_connected(link, wire)
        if outage is not None:
            self.cut(outage)

    def _disconnect(self, output: Disconnect) -> None:
        super()._disconnect(output)
        self.watch.link_ends(output.link, self.world.clock.now)

    def _notice(self, output: Output) -> None:
        if isinstance(output, ServiceUrlSwitched):
            self.watch.switched(output.new, self.world.clock.now)
            self.world.clock.after(1, self.watch.check_left_links)
        super()._notice(output)


class RoamingProcess(ClientProcess):
    """The process. A new one begins in the primary cluster."""

    def __init__(self, world: "Surroundings", index: int, plan: FailoverPlan, watch: RoamingWatch) -> None:
        self.plan = plan
        self.watch = watch
        super().__init__(world, index)

    def _make_node(self, name: str) -> ClientNode:
        config = replace(
            self.world.client_config,
            connect_timeout=PROBE_TIMEOUT,
            failover=_failover_of(self.plan),
        )
        node = RoamingNode(self.world, name, config, self)
        node.watch = self.watch
        self.watch.begins(self.world.clock.now)
        return node


def _failover_of(plan: FailoverPlan) -> AutoFailover | ControlledFailover:
    if plan.control is not None:
        return ControlledFailover(CONTROL_URL, check_interval=plan.check_interval)
    return AutoFailover(
        (address(SECONDARY_BROKER),),
        failover_delay=plan.failover_delay,
        switch_back_delay=plan.switch_back_delay,
        check_interval=plan.check_interval,
    )
