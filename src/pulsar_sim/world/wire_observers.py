"""Both ends of every wire, watched twice: by the reference model's watches and by the checker of rules.

Owns the order of the two, and the name of the process at each end.
"""

from typing import TYPE_CHECKING, Any

from pulsar_sansio.model.config import ClientConfig
from pulsar_sansio.wire import proto

from ..apps.roaming.roaming_watch import is_roaming
from ..apps.transacting.transacting_process import is_transacting
from ..checks.broker_frames import BrokerWatch
from ..checks.broker_schemas import BrokerSchemaWatch
from ..checks.client_frames import ClientWatch
from ..checks.credentials import CredentialWatch
from ..checks.encrypted_frames import EncryptionWatch
from ..checks.renewals import RenewalWatch
from ..checks.transaction_frames import TransactingBrokerWatch, TransactingClientWatch
from ..engine.clock import SECOND
from ..engine.failures import ViolationError
from ..engine.network import Wire
from ..engine.nodes.broker_node import BrokerNode

if TYPE_CHECKING:
    from .world import World

T = proto.BaseCommand

OF_HANDLES = frozenset(
    (
        T.PRODUCER,
        T.SEND,
        T.SEND_RECEIPT,
        T.SEND_ERROR,
        T.CLOSE_PRODUCER,
        T.SUBSCRIBE,
        T.FLOW,
        T.MESSAGE,
        T.ACK,
        T.REDELIVER_UNACKNOWLEDGED_MESSAGES,
        T.CLOSE_CONSUMER,
    )
)
"""Commands of a producer or consumer. Those of a roaming client belong to its own account, with two logs; so
do those of a client with transactions, whose topics belong to no other client."""


QUESTIONS = frozenset((T.LOOKUP, T.PARTITIONED_METADATA, T.GET_TOPICS_OF_NAMESPACE))
"""Commands that requests over HTTP replace."""


class ClientWireObserver(ClientWatch):
    """Passes frames that arrive at clients to the checker of rules too."""

    def __init__(self, world: "World") -> None:
        super().__init__(
            world.model,
            CredentialWatch(world.allowed_hosts),
            EncryptionWatch(world.profile.encryption),
        )
        self._rules = world.rules.clients
        self._roaming = world.roaming
        self._asks_over_http = world.profile.web is not None
        account = world.transactions
        self._transactions = None if account is None else TransactingClientWatch(account)

    def wrote(self, wire: Wire, kind: int, command: Any) -> None:
        """INV-N16: a client that asks over HTTP asks brokers only about topics that have migrated."""
        if self._roaming is not None and is_roaming(wire):
            self._roaming.wrote(wire, kind, wire.network.clock.now)
            if kind in OF_HANDLES:
                return
        if self._transactions is not None and is_transacting(wire):
            self._transactions.wrote(wire, kind, command)
            if kind in OF_HANDLES:
                return
        if self._asks_over_http and kind in QUESTIONS and not _is_of_migrations(wire):
            raise ViolationError("INV-N16", f"{wire.client.name} asks {wire.broker.name} by command {kind}")
        super().wrote(wire, kind, command)

    def got(self, wire: Wire, kind: int, command: Any) -> None:
        if self._roaming is not None and kind == T.CONNECTED and is_roaming(wire):
            self._roaming.got_connected(wire, wire.network.clock.now)
        self._rules.received(wire, kind, command)
        if self._transactions is not None and is_transacting(wire):
            self._transactions.got(wire, kind, command)
        super().got(wire, kind, command)

    def ends_link(self, wire: Wire, reason: str, config: ClientConfig) -> None:
        """A client with a failover may end working links: those of probes, and all when it changes."""
        now = wire.network.clock.now
        if self._roaming is None or not is_roaming(wire) or not self._roaming.excuses_end(wire, now):
            super().ends_link(wire, reason, config)

    def forget(self, wire: Wire) -> None:
        self._rules.wire_closed(wire)
        super().forget(wire)


class BrokerWireObserver(BrokerWatch):
    """Passes frames that arrive at brokers to the checker of rules too."""

    def __init__(self, world: "World") -> None:
        super().__init__(world.model, world.profile.broker.batch_index_acknowledgement)
        self._rules = world.rules.brokers
        self._roams = world.roaming is not None
        plan = world.profile.credentials
        interval = 0 if plan is None else round(plan.refresh_interval * SECOND)
        self._renewals = RenewalWatch(interval)
        self._schemas = BrokerSchemaWatch(world.model)
        self._transactions: TransactingBrokerWatch | None = None
        if world.transactions is not None:
            batch_index = world.profile.broker.batch_index_acknowledgement
            self._transactions = TransactingBrokerWatch(
                world.transactions, batch_index, world.durable_transactions
            )

    def wrote(self, wire: Wire, kind: int, command: Any) -> None:
        self._renewals.wrote(wire, kind, command)
        self._schemas.wrote(wire, kind, command)
        if self._transactions is not None and is_transacting(wire):
            self._transactions.wrote(wire, kind, command)
            if kind in OF_HANDLES or kind == T.ACK_RESPONSE:
                return
        if not (self._roams and kind in OF_HANDLES and is_roaming(wire)):
            super().wrote(wire, kind, command)

    def got(self, wire: Wire, kind: int, command: Any) -> None:
        self._rules.received(wire, kind, command)
        self._renewals.got(wire, kind)
        self._schemas.got(wire, kind, command)
        if self._transactions is not None and is_transacting(wire):
            self._transactions.got(wire, kind, command)
            if kind in OF_HANDLES:
                return
        if not (self._roams and kind in OF_HANDLES and is_roaming(wire)):
            super().got(wire, kind, command)

    def died(self, broker: str, wires: list[Wire], topics: list[tuple[bool, str]]) -> None:
        self._schemas.died(topic for _, topic in topics)
        super().died(broker, wires, topics)

    def wire_closing(self, wire: Wire, reason: str) -> None:
        self._renewals.closes(wire, reason)
        super().wire_closing(wire, reason)

    def wire_closed(self, wire: Wire) -> None:
        self._rules.wire_closed(wire)
        self._renewals.forget(wire)
        self._schemas.forget(wire)
        super().wire_closed(wire)


def _is_of_migrations(wire: Wire) -> bool:
    """True when the wire leads to the cluster that topics migrate to."""
    return isinstance(wire.broker, BrokerNode) and wire.broker.cluster.far


def client_process(wire: Wire) -> str:
    return wire.client.name


def broker_process(wire: Wire) -> str:
    """Return the name of the client process at the far end, as the broker process sees it: what the checker
    remembers of it ends with either process."""
    broker = wire.broker
    assert isinstance(broker, BrokerNode)
    return f"{broker.name}.{broker.incarnation} with {wire.client.name}"
