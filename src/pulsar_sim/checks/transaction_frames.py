"""The frames of a client with transactions, at both ends of its wires.

Owns five rules of the client's end. A commit follows the receipt of every SEND and the answer to every ACK
of the transaction (INV-T1). The client acknowledges a message of a transaction in no other way (INV-T2). It
repeats END_TXN, and never changes it (INV-T3). With `exactly_once` it sends each message once (INV-T5).
A dead letter is acknowledged when its copy is stored, outside of transactions (INV-C10).

Owns three rules of the broker's end. The broker delivers no message of a transaction before its commit has
arrived (INV-T4). It delivers no message again that a committed or an open transaction acknowledged (INV-T6).
It answers an end when that is durable (INV-T7).
"""

from collections.abc import Callable
from typing import Any, TypeAlias

from pulsar_sansio.model.transaction_id import TransactionId, transaction_id
from pulsar_sansio.wire import CUMULATIVE, Ack, MessageCommand, Send, SendReceipt, proto, unpack_payload

from ..engine.failures import ViolationError
from ..engine.network import Wire
from ..model.records.message_position import MessagePosition
from ..model.transactions.durable_transactions import DurableTransactions
from ..model.transactions.letter_account import LetterAccount
from ..model.transactions.subscription_account import SubscriptionAccount
from ..model.transactions.transaction_account import TransactionAccount
from ..model.transactions.transaction_record import SentMessage, TransactionOutcome, TransactionRecord

T = proto.BaseCommand

Handler: TypeAlias = Callable[[Wire, Any], None]


class TransactingClientWatch:
    """The client's ends of the wires."""

    def __init__(self, account: TransactionAccount) -> None:
        self._account = account
        self._consumers: dict[tuple[str, int], tuple[SubscriptionAccount, str]] = {}
        """Subscriptions and names of consumers, by client process and consumer id."""
        self._sends: dict[tuple[str, int, int], TransactionRecord] = {}
        """Transactions by client process, producer id and sequence id of SENDs without a receipt."""
        self._letters: dict[tuple[str, int], LetterAccount] = {}
        """Dead-letter topics by client process and id of the producer of copies."""
        self._copies: dict[tuple[str, int, int], SentMessage] = {}
        """Messages by client process, producer id and sequence id of copies without a receipt."""
        self._written: dict[int, Handler] = {
            T.SUBSCRIBE: self._wrote_subscribe,
            T.PRODUCER: self._wrote_producer,
            T.SEND: self._wrote_send,
            T.ACK: self._wrote_ack,
            T.END_TXN: self._wrote_end,
        }
        self._arrived: dict[int, Handler] = {
            T.SEND_RECEIPT: self._got_receipt,
            T.ACK_RESPONSE: self._got_ack_response,
        }

    def wrote(self, wire: Wire, kind: int, command: Any) -> None:
        if (handler := self._written.get(kind)) is not None:
            handler(wire, command)

    def got(self, wire: Wire, kind: int, command: Any) -> None:
        if (handler := self._arrived.get(kind)) is not None:
            handler(wire, command)

    def _record_of(self, command: Any) -> TransactionRecord | None:
        id_ = transaction_id(command.txnid_most_bits, command.txnid_least_bits)
        return None if id_ is None else self._account.transactions[id_]

    # --- messages -----------------------------------------------------------------------------------------

    def _wrote_producer(self, wire: Wire, command: Any) -> None:
        letters = self._account.letters_in(command.topic)
        if letters is not None:
            self._letters[wire.client.name, command.producer_id] = letters

    def _wrote_copy(self, wire: Wire, command: Send, letters: LetterAccount) -> None:
        """INV-C10: a copy has payload and key of one message, names its topic, and is sent outside of
        transactions."""
        (message,) = self._account.found_in(command.payload)
        copy = unpack_payload(command.payload)
        origin = dict(copy.metadata.properties).get("REAL_TOPIC")
        said = origin, copy.metadata.partition_key, bytes(copy.payload)
        if said != (message.topic, message.key, message.payload):
            raise ViolationError("INV-C10", f"the copy of {message} is of {said}")
        if self._record_of(command) is not None:
            raise ViolationError("INV-C10", f"the copy of {message} is sent in a transaction")
        letters.is_copied(message)
        self._copies[wire.client.name, command.producer_id, command.sequence_id] = message

    def _wrote_send(self, wire: Wire, command: Send) -> None:
        """INV-T4: an entry has messages of one transaction, or of none, and says so. INV-T5: a message of a
        transaction with `exactly_once` is sent once."""
        letters = self._letters.get((wire.client.name, command.producer_id))
        if letters is not None:
            self._wrote_copy(wire, command, letters)
            return
        record = self._record_of(command)
        messages = self._account.found_in(command.payload)
        for message in messages:
            if message.transaction is not record:
                raise ViolationError("INV-T4", f"{message} is sent in {record}")
        if record is not None:
            written = {(message.number, message.chunk_of(command.payload)) for message in messages}
            if record.exactly_once and not written.isdisjoint(record.written):
                raise ViolationError("INV-T5", f"{messages} are sent again")
            record.written |= written
            key = (wire.client.name, command.producer_id, command.sequence_id)
            record.unconfirmed.add(key)
            self._sends[key] = record

    def _got_receipt(self, wire: Wire, command: SendReceipt) -> None:
        key = (wire.client.name, command.producer_id, command.sequence_id)
        if (copied := self._copies.pop(key, None)) is not None:
            self._letters[wire.client.name, command.producer_id].stored.add(copied)
        record = self._sends.pop(key, None)
        if record is not None:
            record.unconfirmed.discard(key)

    # --- acknowledgements ---------------------------------------------------------------------------------

    def _wrote_subscribe(self, wire: Wire, command: Any) -> None:
        subscription = self._account.subscription_of(command.topic, command.subscription)
        self._consumers[wire.client.name, command.consumer_id] = subscription, command.consumer_name

    def _wrote_ack(self, wire: Wire, command: Ack) -> None:
        subscription, name = self._consumers[wire.client.name, command.consumer_id]
        record = self._record_of(command)
        if record is not None:
            assert command.request_id is not None
            record.unanswered_acks.add((wire.number, command.request_id))
            if record.exactly_once and len(command.message_ids) > 1:
                raise ViolationError("INV-T2", f"{record} acknowledges several entries together")
            self._check_ack(subscription, name, command, record)
        elif command.ack_type == CUMULATIVE:
            raise ViolationError("INV-T2", f"{subscription.name}: a cumulative ACK outside of a transaction")
        else:
            for position in _positions(self._account, subscription, command):
                message = self._account.message_at(subscription, position)
                if not subscription.plain.isdisjoint(subscription.copies(position, message)):
                    continue
                if subscription.is_letter(message):
                    continue
                acked_in = subscription.acked_with(position, message)
                if message.chunks > 1 and not subscription.is_of_acked_copy(position, acked_in):
                    continue  # the others of these chunks have not arrived in time
                if not any(each.outcome is TransactionOutcome.COMMITTED for each in acked_in):
                    raise ViolationError(
                        "INV-T2", f"{subscription.name}: an ACK of {position} outside of its transaction"
                    )

    def _check_ack(
        self, subscription: SubscriptionAccount, name: str, command: Ack, record: TransactionRecord
    ) -> None:
        """INV-T2: an ACK in a transaction has what the application acknowledged in it, and messages of the
        same batches that it acknowledged before: without index acknowledgement the last message tells of
        them."""
        acked = record.acks.get(subscription.name, set())
        if command.ack_type == CUMULATIVE:
            ledger_id, entry_id, left = command.message_ids[0]
            size = self._account.size_of(subscription.topic, ledger_id, entry_id)
            index = size - 1 if left is None else (left & -left).bit_length() - 2
            if (ledger_id, entry_id, index) != record.cumulative.get(subscription.name, {}).get(name):
                raise ViolationError(
                    "INV-T2", f"{subscription.name}: {record} acknowledges up to {command.message_ids[0]}"
                )
            return
        positions = _positions(self._account, subscription, command)
        for position in positions:
            message = self._account.message_at(subscription, position)
            copies = subscription.copies(position, message)
            if (acked | subscription.plain).isdisjoint(copies) and not subscription.is_letter(message):
                raise ViolationError("INV-T2", f"{subscription.name}: {record} acknowledges {position}")
        record.sent_acks.setdefault(subscription.name, set()).update(positions)

    def _got_ack_response(self, wire: Wire, command: Any) -> None:
        if not command.HasField("error"):
            for record in self._account.transactions.values():
                record.unanswered_acks.discard((wire.number, command.request_id))

    # --- the end ------------------------------------------------------------------------------------------

    def _wrote_end(self, wire: Wire, command: Any) -> None:
        """INV-T1, INV-T3."""
        record = self._account.transactions[TransactionId(command.txnid_most_bits, command.txnid_least_bits)]
        commits = command.txn_action == proto.COMMIT
        if record.ended_with not in (None, commits):
            raise ViolationError("INV-T3", f"{record} is asked to commit and to abort")
        if commits and record.outcome is not TransactionOutcome.COMMITTING:
            raise ViolationError("INV-T1", f"{record} is committed, and the application did not ask for it")
        if commits and record.ended_with is None:
            self._check_operations(record)
        record.ended_with = commits

    def _check_operations(self, record: TransactionRecord) -> None:
        """INV-T1: a commit follows the outcome of every message and acknowledgement."""
        if record.unconfirmed:
            raise ViolationError("INV-T1", f"{record} is committed before the receipts {record.unconfirmed}")
        if record.unanswered_acks:
            raise ViolationError("INV-T1", f"{record} is committed, and an ACK has no answer or a refusal")
        for name, acked in record.acks.items():
            last = max(record.cumulative.get(name, {}).values(), default=None)
            sent = record.sent_acks.get(name, set())
            for position in sorted(acked - sent):
                if last is None or position > last:
                    raise ViolationError("INV-T1", f"{record} is committed without the ACK of {position}")
        for message in record.messages:
            if message.outcome == "failed":
                raise ViolationError("INV-T1", f"{record} is committed, and {message} has failed")


class TransactingBrokerWatch:
    """The broker's ends of the wires. `durable` returns what the store holds of transactions."""

    def __init__(
        self,
        account: TransactionAccount,
        batch_index: bool,
        durable: Callable[[], DurableTransactions],
    ) -> None:
        self._account = account
        self._batch_index = batch_index
        self._durable = durable
        self._consumers: dict[tuple[int, int], SubscriptionAccount] = {}
        """Subscriptions by wire and consumer id."""
        self._ends: dict[tuple[int, int], tuple[TransactionRecord, bool]] = {}
        """By wire and request id: the transaction of END_TXN, and whether it commits."""
        self._acks: dict[tuple[int, int], tuple[SubscriptionAccount, TransactionRecord, Ack]] = {}
        """ACKs in transactions without an answer, by wire and request id."""
        self._arrived: dict[int, Handler] = {
            T.SUBSCRIBE: self._got_subscribe,
            T.ACK: self._got_ack,
            T.END_TXN: self._got_end,
        }
        self._written: dict[int, Handler] = {
            T.MESSAGE: self._wrote_message,
            T.ACK_RESPONSE: self._wrote_ack_response,
            T.END_TXN_RESPONSE: self._wrote_end_response,
        }

    def got(self, wire: Wire, kind: int, command: Any) -> None:
        if (handler := self._arrived.get(kind)) is not None:
            handler(wire, command)

    def wrote(self, wire: Wire, kind: int, command: Any) -> None:
        if (handler := self._written.get(kind)) is not None:
            handler(wire, command)

    def _got_subscribe(self, wire: Wire, command: Any) -> None:
        subscription = self._account.subscription_of(command.topic, command.subscription)
        self._consumers[wire.number, command.consumer_id] = subscription

    def _got_ack(self, wire: Wire, command: Ack) -> None:
        id_ = transaction_id(command.txnid_most_bits, command.txnid_least_bits)
        if id_ is not None and command.request_id is not None:
            subscription = self._consumers[wire.number, command.consumer_id]
            record = self._account.transactions[id_]
            self._acks[wire.number, command.request_id] = subscription, record, command

    def _wrote_ack_response(self, wire: Wire, command: Any) -> None:
        """An acknowledgement that an open transaction holds: its messages are withheld."""
        known = self._acks.pop((wire.number, command.request_id), None)
        if known is None or command.HasField("error"):
            return
        subscription, record, ack = known
        if ack.ack_type != CUMULATIVE:
            for position in _positions(self._account, subscription, ack):
                subscription.pending[position] = record

    def _got_end(self, wire: Wire, command: Any) -> None:
        record = self._account.transactions[TransactionId(command.txnid_most_bits, command.txnid_least_bits)]
        commits = command.txn_action == proto.COMMIT
        record.commit_received = record.commit_received or commits
        self._ends[wire.number, command.request_id] = record, commits
        self._acks = {request: known for request, known in self._acks.items() if known[1] is not record}
        for subscription in self._account.subscriptions.values():
            for position in [each for each, by in subscription.pending.items() if by is record]:
                del subscription.pending[position]

    def _wrote_end_response(self, wire: Wire, command: Any) -> None:
        """INV-T7: an end is answered once, and when it is durable."""
        record, commits = self._ends.pop((wire.number, command.request_id))
        if command.HasField("error"):
            return
        if record.answered is not None:
            raise ViolationError("INV-T7", f"the end of {record} is answered twice")
        if record.id in self._durable().open:
            raise ViolationError("INV-T7", f"the end of {record} is answered before it is durable")
        record.answered = commits
        if commits:
            for name, positions in record.acks.items():
                self._account.subscriptions[name].committed |= positions | record.sent_acks.get(name, set())

    def _wrote_message(self, wire: Wire, command: MessageCommand) -> None:
        """INV-T4, INV-T6."""
        subscription = self._consumers[wire.number, command.consumer_id]
        now = wire.network.clock.now
        found = self._account.found_in(command.payload)
        if subscription.letters is not None:
            subscription.letters.is_delivered(found, command.redelivery_count)
        places = [(command.ledger_id, command.entry_id, index) for index in range(len(found))]
        for message, position in zip(found, places, strict=True):
            record = message.transaction
            if record is not None and not record.commit_received:
                raise ViolationError("INV-T4", f"{subscription.name}: {message} is delivered while open")
            self._account.is_at(message, subscription.topic, position)
        masked = command.ack_set
        meant = [each for each in places if masked is None or masked >> each[2] & 1]
        if not self._batch_index and not subscription.committed.issuperset(meant):
            meant = []  # the broker keeps whole entries only
        for position in meant:
            if position in subscription.committed:
                raise ViolationError("INV-T6", f"{subscription.name}: {position} is delivered again")
            holder = subscription.pending.get(position)
            if holder is not None and not self._account.is_due(holder, now):
                raise ViolationError(
                    "INV-T6",
                    f"{subscription.name}: {position} is delivered, and acknowledged in {holder}",
                )


def _positions(
    account: TransactionAccount, subscription: SubscriptionAccount, command: Ack
) -> list[MessagePosition]:
    """Return the messages that an individual ACK acknowledges."""
    found = []
    for ledger_id, entry_id, left in command.message_ids:
        size = account.size_of(subscription.topic, ledger_id, entry_id)
        found += [(ledger_id, entry_id, each) for each in range(size) if not (left or 0) >> each & 1]
    return found
