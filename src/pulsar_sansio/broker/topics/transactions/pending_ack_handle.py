"""`PendingAckHandle`: takes and ends the acknowledgements of transactions on one subscription.

It checks them against the subscription's cursor, keeps them in `PendingAcks`, and records them in the
journal. At the end of a transaction it carries them out, or has the dispatcher deliver the messages again.
"""

from typing import TYPE_CHECKING

from ....model.errors import NotAllowed, TransactionConflict
from ....model.transaction_id import TransactionId
from ...dispatching.consumer import Consumer, SubType
from ...records import AcknowledgedInTransaction, PendingAcksEnded
from .pending_acks import PendingAcks, TransactionAcks

if TYPE_CHECKING:
    from ..subscription import Subscription


class PendingAckHandle:
    """The acknowledgements in transactions of one subscription, which dispatches by `pending`."""

    __slots__ = ("_pending", "_subscription")

    def __init__(self, subscription: "Subscription", pending: PendingAcks) -> None:
        self._subscription = subscription
        self._pending = pending

    def acknowledge(
        self, consumer: Consumer, ids: list[tuple[int, int, int | None]], transaction: TransactionId
    ) -> None:
        """Acknowledge individually at the end of the transaction. Ids of absent entries change nothing.

        Raises `TransactionConflict`, having changed nothing, where one of the messages is acknowledged.
        """
        subscription, pending = self._subscription, self._pending
        cursor, log = subscription.cursor, subscription.topic.log
        messages: dict[int, int] = {}
        for ledger_id, entry_id, ack_set in ids:
            offset = log.exact(ledger_id, entry_id)
            if offset is None or offset >= log.durable_end:
                continue
            everything = (1 << log.peek(offset).messages) - 1
            bits = everything if ack_set is None else everything & ~ack_set
            if cursor.acknowledged(offset) or bits & ~cursor.partly.get(offset, everything):
                raise TransactionConflict(f"Message {ledger_id}:{entry_id} is acknowledged already")
            if bits:
                messages[offset] = messages.get(offset, 0) | bits
        if not messages:
            return
        pending.check(messages)
        pending.acknowledge(transaction, messages)
        self._record(transaction, tuple(messages.items()), None)
        consumer.acknowledged_at = subscription.context.now
        dispatcher = subscription.dispatcher
        assert dispatcher is not None
        for offset, bits in messages.items():
            before = cursor.partly.get(offset, (1 << log.peek(offset).messages) - 1)
            left = before & ~pending.taken[offset]
            dispatcher.acknowledged_in_transaction(consumer, offset, (before & bits).bit_count(), left == 0)
        dispatcher.acknowledgements_done()

    def acknowledge_cumulative(
        self, ledger_id: int, entry_id: int, ack_set: int | None, transaction: TransactionId
    ) -> None:
        """Acknowledge up to the entry at the end of the transaction.

        Raises `NotAllowed` on Shared and Key_Shared, and `TransactionConflict` where the message is
        acknowledged already or another transaction acknowledges cumulatively.
        """
        subscription, pending = self._subscription, self._pending
        if subscription.kind in (SubType.Shared, SubType.Key_Shared):
            raise NotAllowed("Cumulative acknowledgement needs an Exclusive or Failover subscription")
        log = subscription.topic.log
        offset = log.exact(ledger_id, entry_id)
        if offset is None or offset >= log.durable_end:
            return
        if subscription.cursor.acknowledged(offset):
            raise TransactionConflict(f"Message {ledger_id}:{entry_id} is acknowledged already")
        pending.check_cumulative(transaction, offset)
        if ack_set is not None:
            ack_set &= (1 << log.peek(offset).messages) - 1
        if pending.has_acknowledged_up_to(transaction, offset, ack_set):
            return
        remaining = pending.acknowledge_cumulative(transaction, offset, ack_set)
        self._record(transaction, (), (offset, remaining))

    def _record(
        self,
        transaction: TransactionId,
        individual: tuple[tuple[int, int], ...],
        cumulative: tuple[int, int | None] | None,
    ) -> None:
        subscription = self._subscription
        if subscription.durable:
            topic, name = subscription.topic, subscription.name
            topic.journal.records.append(
                AcknowledgedInTransaction(topic.name, name, transaction, individual, cumulative)
            )

    def end(self, transaction: TransactionId, commits: bool) -> None:
        """Carry out the transaction's acknowledgements, or deliver their messages again.

        Messages that were acknowledged cumulatively stay with their consumer, as with a Java broker. The
        consumer may ask for them again.
        """
        acks = self._pending.end(transaction)
        if acks is None:
            return
        subscription = self._subscription
        topic, dispatcher = subscription.topic, subscription.dispatcher
        records = topic.journal.records
        if subscription.durable:
            records.append(PendingAcksEnded(topic.name, subscription.name, transaction))
        # A seek before the first ledger makes entries of removed ledgers count as unacknowledged.
        first = topic.log.first
        acks.individual = {each: bits for each, bits in acks.individual.items() if each >= first}
        if commits:
            self._commit(acks)
            if subscription.durable:
                records.append(subscription.cursor_record())
        elif dispatcher is not None and acks.individual:
            dispatcher.returned(list(acks.individual))

    def _commit(self, acks: TransactionAcks) -> None:
        subscription = self._subscription
        cursor, log, dispatcher = subscription.cursor, subscription.topic.log, subscription.dispatcher
        before = cursor.mark_delete
        if acks.cumulative is not None:
            offset, remaining = acks.cumulative
            cursor.acknowledge_up_to(offset if remaining is None else offset - 1)
            if remaining is not None and offset >= log.first:
                cursor.acknowledge_partly(offset, remaining, log.peek(offset).messages)
        for offset, bits in acks.individual.items():
            if cursor.acknowledged(offset):
                continue
            cursor.acknowledge_partly(offset, ~bits, log.peek(offset).messages)
            if dispatcher is not None and cursor.acknowledged(offset):
                dispatcher.acknowledged(None, offset, 0, True)
        subscription.moved(before)
        if dispatcher is not None:
            dispatcher.acknowledgements_done()
