"""The other cluster, to which topics of a world may be migrated."""

from dataclasses import replace

from pulsar_sansio.broker.storage.store import StoredState

from ..profile import FAR_LEDGERS
from ..randomness import Stream
from .broker_node import BrokerNode
from .cluster import Cluster, address

FAR_BROKER = "far-0"


class FarCluster(Cluster):
    """The cluster that topics migrate to: one broker with a store of its own."""

    far = True

    def _own_stream(self) -> Stream:
        return self.world.streams.stream("far cluster")

    def _make_nodes(self) -> list[BrokerNode]:
        config = replace(
            self.world.profile.broker,
            service_url=address(FAR_BROKER),
            service_url_tls=self.tls_address(FAR_BROKER),
            cluster="far",
        )
        return [BrokerNode(self, FAR_BROKER, config)]

    def _own_topics(self) -> list[str]:
        world = self.world
        return [
            world.topics.names[index] for index in sorted({plan.topic for plan in world.profile.migrations})
        ]

    def boot(self) -> None:
        for node in self.nodes:
            self._boot(node)

    def load(self, node: BrokerNode) -> StoredState:
        state = super().load(node)
        state.next_ledger_id = max(state.next_ledger_id, FAR_LEDGERS)
        return state
