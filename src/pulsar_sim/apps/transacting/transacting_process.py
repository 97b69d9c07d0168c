"""`TransactingProcess`: a client process whose client has transactions."""

from dataclasses import replace
from typing import TYPE_CHECKING

from ...engine.network import Wire
from ...engine.nodes.client_node import ClientNode
from ...engine.transactions_plan import TransactionsPlan
from ..client_process import ClientProcess

if TYPE_CHECKING:
    from ...engine.surroundings import Surroundings


def is_transacting(wire: Wire) -> bool:
    """True for a wire of the client that has transactions."""
    return bool(wire.client.config.transactions)  # type: ignore[attr-defined]


class TransactingProcess(ClientProcess):
    """The process of the application with transactions."""

    def __init__(self, world: "Surroundings", index: int, plan: TransactionsPlan) -> None:
        self.plan = plan
        super().__init__(world, index)

    def _make_node(self, name: str) -> ClientNode:
        return ClientNode(self.world, name, replace(self.world.client_config, transactions=True), self)
