"""Both ends of every wire, watched twice: by the reference model's watches and by the checker of rules.

Owns the order of the two, and the name of the process at each end.
"""

from typing import TYPE_CHECKING, Any

from ..checks.broker_frames import BrokerWatch
from ..checks.client_frames import ClientWatch
from ..checks.credentials import CredentialWatch
from ..engine.broker_node import BrokerNode
from ..engine.network import Wire

if TYPE_CHECKING:
    from .world import World


class ClientWireObserver(ClientWatch):
    """Passes frames that arrive at clients to the checker of rules too."""

    def __init__(self, world: "World") -> None:
        super().__init__(world.model, CredentialWatch(world.allowed_hosts))
        self._rules = world.rules.clients

    def got(self, wire: Wire, kind: int, command: Any) -> None:
        self._rules.received(wire, kind, command)
        super().got(wire, kind, command)

    def forget(self, wire: Wire) -> None:
        self._rules.wire_closed(wire)
        super().forget(wire)


class BrokerWireObserver(BrokerWatch):
    """Passes frames that arrive at brokers to the checker of rules too."""

    def __init__(self, world: "World") -> None:
        super().__init__(world.model, world.profile.broker.batch_index_acknowledgement)
        self._rules = world.rules.brokers

    def got(self, wire: Wire, kind: int, command: Any) -> None:
        self._rules.received(wire, kind, command)
        super().got(wire, kind, command)

    def wire_closed(self, wire: Wire) -> None:
        self._rules.wire_closed(wire)
        super().wire_closed(wire)


def client_process(wire: Wire) -> str:
    return wire.client.name


def broker_process(wire: Wire) -> str:
    """Return the name of the client process at the far end, as the broker process sees it: what the checker
    remembers of it ends with either process."""
    broker = wire.broker
    assert isinstance(broker, BrokerNode)
    return f"{broker.name}.{broker.incarnation} with {wire.client.name}"
