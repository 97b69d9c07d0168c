"""`SecondaryCluster`: the cluster to which a roaming client changes while the primary one is away."""

from dataclasses import replace

from ..randomness import Stream
from .broker_node import BrokerNode
from .cluster import ROAMING_TOPIC, address
from .far_cluster import FarCluster

SECONDARY_BROKER = "secondary-0"


class SecondaryCluster(FarCluster):
    """One broker with a store of its own, and the topic of the roaming client."""

    def _own_stream(self) -> Stream:
        return self.world.streams.stream("secondary cluster")

    def _make_nodes(self) -> list[BrokerNode]:
        config = replace(
            self.world.profile.broker,
            service_url=address(SECONDARY_BROKER),
            service_url_tls=None,
            cluster="secondary",
        )
        return [BrokerNode(self, SECONDARY_BROKER, config)]

    def _own_topics(self) -> list[str]:
        return [ROAMING_TOPIC]
