"""`TransactionAdministration`: show the transactions of coordinators, topics and subscriptions; abort one.

The answers have the names and states of a Java broker. This broker stores transactions with topics and
subscriptions. So it takes no snapshots and recovers nothing after a topic is loaded, and coordinators tell
topics no low water marks.
"""

from typing import Any

from ...model.topic_name import TopicName
from ...model.transaction_id import TransactionId
from ...wire import MetadataDecoder
from ..admin_errors import NotFound
from ..coordinating.coordinators import Coordinators
from ..coordinating.open_transaction import OpenTransaction
from ..storage.entry import entry_metadata
from ..topics.subscription import Subscription
from ..topics.topic import Topic
from .inspection import position_text
from .parts import Parts


class TransactionAdministration:
    """Commands that name a transaction, or what takes part in transactions."""

    def __init__(self, parts: Parts, coordinators: Coordinators) -> None:
        self._parts = parts
        self._context = parts.services.context
        self._coordinators = coordinators
        self._settle = parts.settle

    # --- coordinators ---------------------------------------------------------------------------------

    def coordinators(self) -> list[dict[str, Any]]:
        """Return the id and the broker of each coordinator; none where transactions are disabled."""
        url = self._parts.services.config.service_url
        return [{"id": number, "brokerServiceUrl": url} for number in range(self._coordinators.count)]

    def coordinator_stats(self, coordinator: int) -> dict[str, Any]:
        """Return the stats of one coordinator. Raises `NotFound`.

        `lowWaterMark`: all transactions up to this number have ended. As in a Java broker, it is 0 while no
        transaction is open.
        """
        self._check_coordinator(coordinator)
        found = self._coordinators
        numbers = [id_.number for id_ in found.open if id_.coordinator == coordinator]
        return {
            "state": "Ready",
            "leastSigBits": found.last_number(coordinator),
            "lowWaterMark": min(numbers) - 1 if numbers else 0,
            "ongoingTxnSize": len(numbers),
            "recoverStartTime": found.recovered_at,
            "recoverEndTime": found.recovered_at,
        }

    def _check_coordinator(self, coordinator: int) -> None:
        if coordinator not in range(self._coordinators.count):
            raise NotFound(f"Transaction coordinator with id {coordinator} not found!")

    # --- transactions ---------------------------------------------------------------------------------

    def transaction_metadata(self, id_: TransactionId) -> dict[str, Any]:
        """Return the state of an open transaction and what takes part in it. Raises `NotFound`."""
        return self._metadata(self._find(id_))

    def slow_transactions(self, timeout: int, coordinator: int | None = None) -> dict[str, Any]:
        """Return id -> metadata of the open transactions whose own timeout is longer than `timeout` (ms).

        `coordinator`: the one whose transactions are wanted; None is all. Raises `NotFound`.
        """
        if coordinator is not None:
            self._check_coordinator(coordinator)
        return {
            str(each.id): self._metadata(each)
            for each in self._coordinators.open.values()
            if each.timeout > timeout and coordinator in (None, each.id.coordinator)
        }

    def abort_transaction(self, now: int, id_: TransactionId) -> None:
        """Abort an open transaction, whosever it is. Raises `NotFound`."""
        self._context.now = now
        self._find(id_)
        self._coordinators.abort(id_)
        self._settle()

    def _find(self, id_: TransactionId) -> OpenTransaction:
        self._check_coordinator(id_.coordinator)
        transaction = self._coordinators.open.get(id_)
        if transaction is None:
            raise NotFound(f"The transaction with this txdID `{id_}`not found ")
        return transaction

    def _metadata(self, transaction: OpenTransaction) -> dict[str, Any]:
        id_ = transaction.id
        acknowledged: dict[str, dict[str, Any]] = {}
        for topic, subscription in transaction.subscriptions:
            found = self._served(topic)
            known = None if found is None else found.subscriptions.get(subscription)
            acknowledged.setdefault(topic, {})[subscription] = {} if known is None else _in_acks(known, id_)
        shown: dict[str, Any] = {
            "txnId": str(id_),
            "status": "OPEN",
            "openTimestamp": transaction.opened_at,
            "timeoutAt": transaction.timeout,
            "producedPartitions": {
                topic: _in_buffer(self._served(topic), id_) for topic in transaction.topics
            },
            "ackedPartitions": acknowledged,
        }
        if transaction.owner:
            shown["owner"] = transaction.owner
        return shown

    def _served(self, topic: str) -> Topic | None:
        found = self._parts.topics.by_name.get(topic)
        return found if isinstance(found, Topic) else None

    # --- topics and subscriptions ---------------------------------------------------------------------

    def transaction_buffer_stats(self, topic: str) -> dict[str, Any]:
        """Return the stats of the transactions in a topic.

        Raises `NotFound`, also for a partitioned topic.
        """
        found = self._topic(topic)
        transactions = found.transactions
        return {
            "state": "Ready" if transactions.in_use else "NoSnapshot",
            "maxReadPosition": position_text(found, transactions.read_end - 1),
            "lastSnapshotTimestamps": 0,
            "ongoingTxnSize": transactions.ongoing,
            "recoverStartTime": found.loaded_at,
            "recoverEndTime": found.loaded_at,
            "totalAbortedTransactions": transactions.stored_aborts,
            "snapshotType": "Single",
        }

    def transaction_in_buffer_stats(self, topic: str, id_: TransactionId) -> dict[str, Any]:
        """Return where the entries of a transaction begin in a topic, or whether it was aborted there.

        Raises `NotFound`, also for a partitioned topic.
        """
        found = self._topic(topic)
        shown = _in_buffer(found, id_)
        return shown if "startPosition" in shown else {"aborted": found.transactions.has_aborted(id_)}

    def pending_ack_stats(self, topic: str, subscription: str) -> dict[str, Any]:
        """Return the stats of the acknowledgements in open transactions. Raises `NotFound`.

        `ongoingTxnSize` counts transactions that acknowledge individually, as in a Java broker.
        """
        found = self._subscription(topic, subscription)
        pending = found.pending_acks
        loaded_at = found.topic.loaded_at if pending.in_use else 0
        return {
            "state": "Ready" if pending.in_use else "None",
            "ongoingTxnSize": sum(bool(each.individual) for each in pending.by_transaction.values()),
            "recoverStartTime": loaded_at,
            "recoverEndTime": loaded_at,
        }

    def transaction_in_pending_ack_stats(
        self, topic: str, subscription: str, id_: TransactionId
    ) -> dict[str, Any]:
        """Return the position up to which a transaction acknowledges cumulatively. Raises `NotFound`."""
        return _in_acks(self._subscription(topic, subscription), id_)

    def position_in_pending_acks(
        self, topic: str, subscription: str, ledger_id: int, entry_id: int, batch_index: int | None = None
    ) -> str:
        """Return the state of a message by the Java broker's name.

        That is `PendingAckNotReady` before any transaction acknowledges, `MarkDelete`, `PendingAck`,
        `NotInPendingAck`, or `InvalidPosition` for a batch index that the entry lacks. Raises `NotFound`.
        """
        found = self._subscription(topic, subscription)
        pending, log = found.pending_acks, found.topic.log
        if not pending.in_use:
            return "PendingAckNotReady"
        if (ledger_id, entry_id) <= log.position(found.cursor.mark_delete):
            return "MarkDelete"
        offset = log.exact(ledger_id, entry_id)
        if offset is None or offset not in pending.taken:
            return "NotInPendingAck"
        if batch_index is None:
            return "PendingAck"
        count = entry_metadata(log.peek(offset).data, MetadataDecoder()).num_messages_in_batch
        if batch_index not in range(count or 0):
            return "InvalidPosition"
        return "PendingAck" if pending.taken[offset] >> batch_index & 1 else "NotInPendingAck"

    def _topic(self, topic: str) -> Topic:
        name = str(TopicName.parse(topic))
        found = self._served(name)
        if found is None:
            raise NotFound(f"Topic not found {name}")
        return found

    def _subscription(self, topic: str, subscription: str) -> Subscription:
        found = self._topic(topic).subscriptions.get(subscription)
        if found is None:
            raise NotFound(f"Subscription {subscription} not found for topic {topic}")
        return found


def _in_buffer(topic: Topic | None, id_: TransactionId) -> dict[str, Any]:
    """Return where the entries of an open transaction begin, if it has any in the topic."""
    first = None if topic is None else topic.transactions.first_of(id_)
    if topic is None or first is None:
        return {"aborted": False}
    return {"startPosition": position_text(topic, first), "aborted": False}


def _in_acks(subscription: Subscription, id_: TransactionId) -> dict[str, Any]:
    """Return the cumulative acknowledgement of a transaction; of a part of a batch, with its last index."""
    acks = subscription.pending_acks.by_transaction.get(id_)
    if acks is None or acks.cumulative is None:
        return {}
    offset, remaining = acks.cumulative
    position = position_text(subscription.topic, offset)
    if remaining:
        position += f":{(remaining & -remaining).bit_length() - 2}"
    return {"cumulativeAckPosition": position}
