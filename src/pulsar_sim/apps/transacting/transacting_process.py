"""`TransactingProcess`: a client process whose client has transactions."""

from dataclasses import replace
from typing import TYPE_CHECKING

from pulsar_sansio.client.outputs import Disconnect

from ...engine.network import Wire
from ...engine.nodes.client_node import ClientNode
from ...engine.transactions_plan import TransactionsPlan
from ..client_process import ClientProcess

if TYPE_CHECKING:
    from ...engine.surroundings import Surroundings


def is_transacting(wire: Wire) -> bool:
    """True for a wire of the client that has transactions."""
    return bool(wire.client.config.transactions)  # type: ignore[attr-defined]


class TransactingNode(ClientNode):
    """The client machine. `has_lost`: it has lost a link, or ended one."""

    has_lost = False

    def link_lost(self, link: int, reason: str) -> None:
        self.has_lost = True
        super().link_lost(link, reason)

    def _disconnect(self, output: Disconnect) -> None:
        self.has_lost = True
        super()._disconnect(output)


class TransactingProcess(ClientProcess):
    """The process of the application with transactions."""

    def __init__(self, world: "Surroundings", index: int, plan: TransactionsPlan) -> None:
        self.plan = plan
        super().__init__(world, index)

    @property
    def is_calm(self) -> bool:
        """True when nothing disturbs the client."""
        node = self.node
        assert isinstance(node, TransactingNode)
        lost = any(wire.to_broker.lost or wire.to_client.lost for wire in node.wires.values())
        return not (self.world.profile.faults or self.plan.close_permille or node.has_lost or lost)

    def _make_node(self, name: str) -> ClientNode:
        return TransactingNode(self.world, name, replace(self.world.client_config, transactions=True), self)
