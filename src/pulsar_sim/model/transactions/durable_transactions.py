"""`DurableTransactions`: what the store of a cluster holds of transactions, as plain values."""

from typing import NamedTuple

from pulsar_sansio.model.transaction_id import TransactionId

from ..records.message_position import Position


class LogEntry(NamedTuple):
    """One entry of a topic. `commits`: None for messages; a marker commits or aborts its transaction."""

    position: Position
    data: bytes
    transaction: TransactionId | None
    commits: bool | None


class DurableTransactions(NamedTuple):
    """`open`: the transactions without an end. `holds_acks`: a subscription holds acknowledgements of one."""

    open: set[TransactionId]
    holds_acks: bool
    logs: dict[str, list[LogEntry]]
    """Topic -> its entries, markers included."""

    @property
    def is_settled(self) -> bool:
        """True when nothing of an open transaction is left."""
        return not self.open and not self.holds_acks
