"""`TransactionalAcks`: the acknowledgements of a consumer that take effect with a transaction (rule TXN-01).

They are collected, and sent before the transaction is committed or aborted, or when there are `GROUP_SIZE` of
them. Every ACK in a transaction is answered; the transaction waits for the answers, and fails with a refusal
such as `TransactionConflict`. An ACK that is lost with its connection is not sent again, because the broker
may have it: it would refuse the second one. The transaction fails then.

With `exactly_once` each entry has an ACK of its own (TXN-05). A Pulsar broker that refuses an ACK in a
transaction forgets that the consumer has its entries (seen with Pulsar 4.0.7). It delivers those that are not
acknowledged only when all consumers have left.

While the transaction is open, a broker without the ACK may deliver the messages again, which are duplicates.
After a commit they count as acknowledged. After an abort the broker delivers those of Shared and Key_Shared
subscriptions again by itself, as far as it has them, and the consumer asks for the others. On other
subscriptions the consumer asks for everything that is not acknowledged, so that the order is right.
"""

from functools import partial

from ...model.errors import ClosedError, ConnectionLost, PulsarError, broker_error
from ...model.message_id import EntryPosition
from ...wire import CUMULATIVE, INDIVIDUAL, encode_ack, encode_varint, proto
from ..connecting.connection import Connection
from ..delivery.consumer_services import ConsumerServices
from ..transactions.transaction import Transaction
from .ack_grouping import AckGrouping
from .ack_tracker import AckTracker
from .redelivery import Redelivery
from .taken_messages import AckId, AcknowledgedMessages, reach

GROUP_SIZE = 1000
"""Entries in one ACK."""


Parts = list[tuple[EntryPosition, tuple[int, int]]]
"""Positions with the bits of acknowledged messages and the number of messages."""

Frame = tuple[int, list[AckId], dict[int, bytes], Parts]
"""The type of an ACK, its ids, the fields beside them, and the part of `CollectedAcks.entries` in it."""


def _batch_size(size: int) -> bytes:
    """Return a field of an id in a batch. Without it a Pulsar broker sees no conflict of acknowledgements."""
    return b"\x30" + encode_varint(size)


class CollectedAcks:
    """Acknowledgements of one transaction that are not sent yet. Positions have the bits of acknowledged
    messages and the number of messages."""

    __slots__ = ("cumulative", "entries", "size", "wanted")

    def __init__(self) -> None:
        self.entries: dict[EntryPosition, tuple[int, int]] = {}
        self.cumulative: AckId | None = None
        self.size = 1
        """The number of messages in the entry of `cumulative`."""
        self.wanted = False
        """True when they have to be sent, as soon as that is possible: an operation of the transaction, for
        which its end and its flushes wait."""

    def take_through(self, id_: AckId, size: int) -> None:
        """Acknowledge up to an entry of `size` messages, unless that reaches less far than before."""
        if self.cumulative is None or reach(id_) > reach(self.cumulative):
            self.cumulative, self.size = id_, size

    def frames(self, group_size: int) -> list[Frame]:
        """Return the ACKs, with at most `group_size` entries each."""
        frames: list[Frame] = []
        if self.cumulative is not None:
            in_part = self.cumulative[2] is not None
            frames.append((CUMULATIVE, [self.cumulative], {0: _batch_size(self.size)} if in_part else {}, []))
        entries = sorted(self.entries.items())
        for start in range(0, len(entries), group_size):
            parts = entries[start : start + group_size]
            ids: list[AckId] = [
                (*position, ((1 << size) - 1) & ~bits or None) for position, (bits, size) in parts
            ]
            sizes = {
                number: _batch_size(size)
                for number, (_, (_bits, size)) in enumerate(parts)
                if ids[number][2] is not None
            }
            frames.append((INDIVIDUAL, ids, sizes, parts))
        return frames


class TransactionalAcks:
    """The acknowledgements of one consumer in open transactions."""

    __slots__ = (
        "_ack_grouping",
        "_acknowledged",
        "_collected",
        "_connection",
        "_redelivery",
        "_services",
        "_tracker",
        "_unanswered",
    )

    def __init__(
        self,
        services: ConsumerServices,
        tracker: AckTracker,
        ack_grouping: AckGrouping,
        redelivery: Redelivery,
    ) -> None:
        self._services = services
        self._ack_grouping = ack_grouping
        self._tracker = tracker
        self._redelivery = redelivery
        self._connection: Connection | None = None
        self._collected: dict[Transaction, CollectedAcks] = {}
        self._acknowledged: dict[Transaction, AcknowledgedMessages] = {}
        """Transaction -> the messages that count as acknowledged once it is committed."""
        self._unanswered: dict[int, Transaction] = {}
        """Request id of an ACK -> its transaction."""

    # --- commands -------------------------------------------------------------------------------------

    def acknowledge(self, transaction: Transaction, position: EntryPosition, bits: int, size: int) -> None:
        """Acknowledge messages of one entry; `bits` of an entry of `size` messages."""
        collected = self._collect(transaction)
        before = collected.entries.get(position, (0, size))[0]
        collected.entries[position] = before | bits, size
        tracker = self._tracker
        tracker.taken.take(self._acknowledged[transaction], position, bits)
        if tracker.is_duplicate(position):
            self._redelivery.acknowledged(position)
        if len(collected.entries) >= GROUP_SIZE:
            self.flush(transaction)

    def acknowledge_cumulative(self, transaction: Transaction, id_: AckId, size: int) -> None:
        """Acknowledge up to this entry, which has `size` messages; the bits of `id_` are messages of it that
        stay unacknowledged."""
        self._collect(transaction).take_through(id_, size)
        self._tracker.taken.take_through(self._acknowledged[transaction], id_)
        ledger_id, entry_id, left = id_
        self._redelivery.acknowledged_through((ledger_id, entry_id - (left is not None)))

    def flush(self, transaction: Transaction) -> None:
        """Send what is collected, as soon as that is possible."""
        collected = self._collected.get(transaction)
        if collected is None:
            return
        if not collected.wanted:
            collected.wanted = True
            transaction.began()
        self._send(transaction)

    def _collect(self, transaction: Transaction) -> CollectedAcks:
        collected = self._collected.get(transaction)
        if collected is not None:
            return collected
        collected = self._collected[transaction] = CollectedAcks()
        if transaction not in self._acknowledged:
            messages = self._acknowledged[transaction] = AcknowledgedMessages()
            transaction.before_abort(partial(self._abort_asked, transaction, messages))
            transaction.before_end(partial(self.flush, transaction))
            transaction.at_end(partial(self._ended, transaction))
        topic, subscription = str(self._services.topic), self._services.spec.subscription
        if not transaction.has_subscription(topic, subscription):
            transaction.join_subscription(topic, subscription, partial(self._joined, transaction))
        return collected

    def _joined(self, transaction: Transaction, error: PulsarError | None) -> None:
        if error is None:
            self._send(transaction)
        elif (collected := self._collected.pop(transaction, None)) is not None:
            transaction.over(error, int(collected.wanted))

    def _send(self, transaction: Transaction) -> None:
        connection = self._connection
        collected = self._collected.get(transaction)
        topic, subscription = str(self._services.topic), self._services.spec.subscription
        if collected is None or not collected.wanted or connection is None:
            return
        if not transaction.has_subscription(topic, subscription):
            return
        del self._collected[transaction]
        self._ack_grouping.flush()  # The application acknowledged these before, outside of the transaction.
        most, least = transaction.id
        requests = self._services.client.requests
        for kind, ids, sizes, parts in collected.frames(1 if transaction.exactly_once else GROUP_SIZE):
            transaction.began()
            request = requests.send(
                connection,
                lambda request_id, kind=kind, ids=ids, sizes=sizes: encode_ack(  # type: ignore[misc]
                    self._services.wire_id, kind, ids, None, request_id, least, most, position_rest=sizes
                ),
                partial(self._answered, transaction, parts),
                partial(self._not_answered, transaction),
                reply=proto.BaseCommand.ACK_RESPONSE,
            )
            self._unanswered[request] = transaction
        transaction.over(None)

    def _answered(self, transaction: Transaction, parts: Parts, answer: proto.CommandAckResponse) -> None:
        self._unanswered.pop(answer.request_id, None)
        if answer.HasField("error"):
            transaction.over(broker_error(answer.error, answer.message))
            return
        messages = self._acknowledged.get(transaction)
        if messages is not None:
            for position, (bits, _) in parts:
                messages.confirm(position, bits)
        transaction.over(None)

    def _not_answered(self, transaction: Transaction, cause: PulsarError) -> None:
        if (connection := self._connection) is not None:
            self._unanswered = {
                request: each for request, each in self._unanswered.items() if request in connection.pending
            }
        error = ConnectionLost(f"acknowledgements in transaction {transaction.id} may be lost: {cause}")
        error.__cause__ = cause
        transaction.over(error)

    # --- the end of a transaction ---------------------------------------------------------------------

    def _abort_asked(self, transaction: Transaction, messages: AcknowledgedMessages) -> None:
        """Send nothing more. The broker may deliver the messages again before the answer to the abort
        comes."""
        self._tracker.taken.remove(messages)
        collected = self._collected.pop(transaction, None)
        if collected is not None and collected.wanted:
            transaction.over(None)

    def _ended(self, transaction: Transaction, committed: bool) -> None:
        self._collected.pop(transaction, None)
        messages = self._acknowledged.pop(transaction, None)
        if messages is None:
            return  # The consumer was closed before.
        self._tracker.taken.forget(messages)
        if committed:
            waits = False
            if messages.cumulative is not None:
                waits = self._tracker.committed_through(messages.cumulative)
            for position, bits in messages.entries.items():
                waits |= self._tracker.committed(position, bits)
                self._redelivery.settled(position)
            if waits:
                self._ack_grouping.something_waits()
        elif self._services.spec.subscription_type.cumulative:
            self._redelivery.aborted_in_order()
        elif messages.unconfirmed:
            self._redelivery.aborted(messages.unconfirmed)

    # --- attachment -----------------------------------------------------------------------------------

    def attach(self, connection: Connection) -> None:
        self._connection = connection
        for transaction in list(self._collected):
            self._send(transaction)

    def detach(self, cause: PulsarError) -> None:
        """ACKs without an answer may be lost, so their transactions fail."""
        connection, self._connection = self._connection, None
        if connection is None:
            return
        unanswered, self._unanswered = self._unanswered, {}
        for request, transaction in unanswered.items():
            if request in connection.pending:
                self._services.client.requests.cancel(connection, request)
                self._not_answered(transaction, cause)

    def fail(self, error: PulsarError) -> None:
        """Fail what is collected: the subscription was moved, for example."""
        self._tracker.taken.clear()
        collected, self._collected = self._collected, {}
        for transaction, each in collected.items():
            transaction.over(error, int(each.wanted))

    def close(self) -> None:
        """Fail what is collected, and forget the transactions: the consumer has ended."""
        self._acknowledged.clear()
        self.fail(ClosedError("the consumer was closed"))
