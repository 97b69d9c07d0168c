"""Reads from a store what it holds of transactions, for the model, which knows nothing of stores."""

from collections.abc import Sequence

from pulsar_sansio.broker.storage.store import StoredState, StoredTopic
from pulsar_sansio.model.transaction_id import TransactionId

from ..model.transactions.durable_transactions import DurableTransactions, LogEntry


def read_transactions(stored: StoredState, topics: Sequence[str]) -> DurableTransactions:
    """Return the open transactions, and the logs of these topics."""
    found = {topic: stored.topics.get(topic, StoredTopic()) for topic in topics}
    return DurableTransactions(
        {TransactionId(*each) for each in stored.transactions},
        any(topic.pending_acks for topic in found.values()),
        {name: _log_of(topic) for name, topic in found.items()},
    )


def _log_of(topic: StoredTopic) -> list[LogEntry]:
    return [
        LogEntry(
            (entry.ledger_id, entry.entry_id),
            entry.data,
            None if entry.transaction is None else TransactionId(*entry.transaction),
            entry.commits,
        )
        for ledger in topic.ledgers.values()
        for entry in ledger.entries
    ]
