"""`TransactionAccount`: the messages, acknowledgements and transactions of one application.

Owns what the application and the logs show. No consumer receives a message of a transaction that is open or
aborted (INV-T4). Every subscription receives all messages of a committed one, in order (INV-T5). A message
that an aborted transaction acknowledged is received again (INV-T6). The outcome that the client reports is
that of the coordinator (INV-T7). At rest nothing is left of a transaction (INV-T8).
`checks/transaction_frames.py` owns what frames show.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from pulsar_sansio.model.config import HashingScheme
from pulsar_sansio.model.errors import (
    PulsarError,
    TransactionConflict,
    TransactionNotOpen,
    TransactionOutcomeUnknown,
    TransactionTimedOut,
)
from pulsar_sansio.model.transaction_id import TransactionId

from ...engine.failures import ViolationError
from ..partitioned_topics import hash_of
from ..records.message_position import MessagePosition
from .durable_transactions import DurableTransactions, LogEntry
from .letter_account import LetterAccount
from .subscription_account import SubscriptionAccount
from .transaction_record import SentMessage, TransactionOutcome, TransactionRecord

_PAYLOAD = re.compile(rb"<<(\d+)>>")


class TransactionAccount:
    """The account of one application, over all its processes.

    `topics`: with partitions in place of partitioned topics. `by_key`: its batches are by key, so only
    messages of one key are stored in order. `partitioned`: the partitions of partitioned topics.
    """

    def __init__(
        self,
        topics: Sequence[str],
        by_key: bool = False,
        partitioned: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.topics = topics
        self._partitioned = partitioned or {}
        self.wrong_counts: list[int] = []
        """Wrong numbers of partitions that a broker has answered."""
        self.messages: list[SentMessage] = []
        self.transactions: dict[TransactionId, TransactionRecord] = {}
        self.subscriptions: dict[str, SubscriptionAccount] = {}
        self.positions: dict[str, dict[MessagePosition, SentMessage]] = {topic: {} for topic in topics}
        """Topic -> the messages whose places receipts or deliveries have named."""
        self.by_key = by_key
        self.clocks_jump = False
        """A wall clock was set: a broker that restarts may find a timeout over."""

    # --- messages -----------------------------------------------------------------------------------------

    def sends(
        self,
        topic: str,
        producer: int,
        key: str | None,
        transaction: TransactionRecord | None,
        chunks: int = 1,
        chunk_size: int = 0,
    ) -> SentMessage:
        """Return the next message. `chunks`: into how many of `chunk_size` bytes the client divides it; the
        payload has its number in each."""
        number = len(self.messages)
        name = b"<<%d>>" % number
        payload = name.ljust(chunk_size, b".") * (chunks - 1) + name
        message = SentMessage(payload, number, topic, producer, key, transaction, chunk_size)
        self.messages.append(message)
        if transaction is not None:
            transaction.messages.append(message)
        return message

    def subscription_of(self, topic: str, name: str) -> SubscriptionAccount:
        """Return the account of a consumer's subscription to a topic or partition."""
        accounts = self.subscriptions.values()
        return next(each for each in accounts if (each.topic, each.subscription) == (topic, name))

    def letters_in(self, topic: str) -> LetterAccount | None:
        """Return the account of the dead letters in a topic, if it has any."""
        found = [each.letters for each in self.subscriptions.values() if each.letters is not None]
        return next((letters for letters in found if letters.topic == topic), None)

    def withdraw(self, message: SentMessage) -> None:
        """The client did not accept the message."""
        message.outcome = "failed"
        if message.transaction is not None:
            message.transaction.messages.remove(message)

    def found_in(self, data: bytes) -> list[SentMessage]:
        """Return the messages of an entry. Raises `ViolationError` for a message that was never sent."""
        numbers = list(dict.fromkeys(int(each) for each in _PAYLOAD.findall(data)))
        for number in numbers:
            if number >= len(self.messages):
                raise ViolationError("INV-C2", f"message {number} was never sent")
        return [self.messages[number] for number in numbers]

    def is_at(self, message: SentMessage, topic: str, position: MessagePosition) -> None:
        """INV-C2: a receipt, a delivery or the log names the place of a message. INV-ROUTE: the partition is
        that of its key."""
        partitions = self._partitioned.get(message.topic)
        if partitions is not None:
            assert message.key is not None
            hashed = hash_of(HashingScheme.JAVA_STRING, message.key)
            counts = (len(partitions), *self.wrong_counts)
            if topic not in {f"{message.topic}-partition-{hashed % count}" for count in counts}:
                raise ViolationError("INV-ROUTE", f"{message} of {message.key} is at {position} of {topic}")
            message.topic = topic
        known = self.positions[topic].setdefault(position, message)
        if known is not message or message.topic != topic:
            raise ViolationError("INV-C2", f"{message} and {known} are both at {position} of {topic}")

    def message_at(self, subscription: SubscriptionAccount, position: MessagePosition) -> SentMessage:
        return self.positions[subscription.topic][position]

    def size_of(self, topic: str, ledger_id: int, entry_id: int) -> int:
        """Return the number of messages of an entry that are known."""
        places = self.positions[topic]
        index = 0
        while (ledger_id, entry_id, index) in places:
            index += 1
        return index

    def confirms(self, message: SentMessage, position: MessagePosition | None, partition: int = -1) -> None:
        """`position` is None for a message that the broker calls a duplicate. `partition`: its number; -1 for
        a topic that is not partitioned."""
        message.outcome = "confirmed"
        if position is not None:
            message.position = position
            partitions = self._partitioned.get(message.topic)
            topic = message.topic if partitions is None else partitions[partition]
            self.is_at(message, topic, position)

    def receives(self, subscription: SubscriptionAccount, position: MessagePosition, data: bytes) -> None:
        """INV-T4: the application takes a message, which is of no open or aborted transaction."""
        (message,) = self.found_in(data)
        if data != message.payload:
            raise ViolationError("INV-C2", f"{message} is received as {data!r}")
        self.is_at(message, subscription.topic, position)
        transaction = message.transaction
        if transaction is not None and transaction.outcome in (
            TransactionOutcome.OPEN,
            TransactionOutcome.ABORTING,
            TransactionOutcome.ABORTED,
        ):
            raise ViolationError(
                "INV-T4", f"{subscription.name}: {message} is received and {transaction.outcome.name}"
            )
        subscription.receives(position, message)

    # --- transactions -------------------------------------------------------------------------------------

    def opened(
        self, id_: TransactionId, asked_at: int, timeout: int, exactly_once: bool = False
    ) -> TransactionRecord:
        if id_ in self.transactions:
            raise ViolationError("INV-T7", f"{self.transactions[id_]} is opened twice")
        record = self.transactions[id_] = TransactionRecord(id_, asked_at, timeout, exactly_once)
        return record

    def flushed(self, transaction: TransactionRecord, messages: Sequence[SentMessage]) -> None:
        """INV-T1: the client reports that these messages and all acknowledgements are confirmed."""
        if transaction.unconfirmed or transaction.unanswered_acks:
            raise ViolationError("INV-T1", f"{transaction} is flushed, and not all of it has an answer")
        for message in messages:
            if (message.number, 0) not in transaction.written:
                raise ViolationError("INV-T1", f"{transaction} is flushed, and {message} was not sent")

    def check_over(self, transaction: TransactionRecord, durable: DurableTransactions) -> None:
        """INV-T7: the transaction is over at its coordinator, as `exactly_once` says."""
        if transaction.id in durable.open:
            raise ViolationError("INV-T7", f"the end of {transaction} is reported, and it is open")

    def is_due(self, transaction: TransactionRecord, now: int) -> bool:
        """True when the timeout may be over."""
        return transaction.is_over(now) or self.clocks_jump

    def done(self, transaction: TransactionRecord) -> None:
        """INV-T1, INV-T7: the client reports that the end is done."""
        if transaction.outcome is TransactionOutcome.ABORTING:
            transaction.outcome = TransactionOutcome.ABORTED
            return
        for message in transaction.messages:
            if message.outcome != "confirmed":
                raise ViolationError("INV-T1", f"{message} is {message.outcome}, and its commit is done")
        if transaction.answered is not True:
            raise ViolationError("INV-T7", f"{transaction} is committed, and no broker says so")
        transaction.outcome = TransactionOutcome.COMMITTED

    def failed(self, transaction: TransactionRecord, error: PulsarError, now: int, calm: bool) -> None:
        """INV-T7: the client reports that the end has failed, for a reason that exists. `calm`: nothing
        disturbs the world."""
        name = f"{transaction}: {type(error).__name__}: {error}"
        if isinstance(error, TransactionOutcomeUnknown):
            asked = transaction.outcome is TransactionOutcome.COMMITTING and transaction.ended_with is True
            if not asked or calm:
                raise ViolationError("INV-T7", f"{name}, and its commit is not lost")
            transaction.outcome = TransactionOutcome.UNKNOWN
            return
        if isinstance(error, TransactionTimedOut) and not self.is_due(transaction, now):
            raise ViolationError("INV-T7", f"{name}, before its time")
        if isinstance(error, TransactionConflict) and not self._is_contended(transaction):
            raise ViolationError("INV-T7", f"{name}, and no other acknowledges its messages")
        if calm:
            self.check_cause(transaction, error, now)
        transaction.outcome = TransactionOutcome.ABORTED

    def check_cause(self, transaction: TransactionRecord, error: PulsarError, now: int) -> None:
        """INV-T7: where nothing disturbs the world, a transaction fails by a conflict or its timeout only."""
        reasons = (TransactionTimedOut, TransactionConflict, TransactionNotOpen)
        if not isinstance(error, reasons) and not self.is_due(transaction, now):
            name = f"{transaction}: {type(error).__name__}: {error}"
            raise ViolationError("INV-T7", f"{name} without a cause")

    def not_open(self, transaction: TransactionRecord, now: int) -> None:
        """INV-T7: the client takes no command for the transaction any more, because its time is over."""
        if not self.is_due(transaction, now):
            raise ViolationError("INV-T7", f"{transaction} is not open any more, before its time")
        transaction.outcome = TransactionOutcome.ABORTED

    def lose(self, transaction: TransactionRecord) -> None:
        """The process is lost, or its client is closed."""
        if transaction.outcome is TransactionOutcome.COMMITTING:
            transaction.outcome = TransactionOutcome.UNKNOWN
        elif transaction.outcome in (TransactionOutcome.OPEN, TransactionOutcome.ABORTING):
            transaction.outcome = TransactionOutcome.ABORTED

    def _is_contended(self, transaction: TransactionRecord) -> bool:
        subscriptions = [self.subscriptions[name] for name in transaction.acks]
        return transaction.repeats or any(each.is_contended(transaction) for each in subscriptions)

    # --- at rest ------------------------------------------------------------------------------------------

    def check_rest(self, durable: DurableTransactions) -> None:
        """Check all at rest: the logs hold what was confirmed (INV-T5), and each subscription has received
        what is committed."""
        if not durable.is_settled:
            raise ViolationError("INV-T8", f"the store keeps transactions {sorted(durable.open)}")
        logs = durable.logs
        ends = self._ends(logs.values())
        for transaction in self.transactions.values():
            self._check_outcome(transaction, ends.get(transaction.id))
        for topic, log in logs.items():
            self._check_log(topic, log, ends)
        for subscription in self.subscriptions.values():
            if subscription.looped:
                subscription.check_handled(self.transactions.values())
            if lost := subscription.lost():
                raise ViolationError(
                    "INV-T6", f"{subscription.name}: {lost[0]} is not received again after an abort"
                )

    def check_letters(self, topic: str, entries: Iterable[bytes]) -> None:
        """Check a dead-letter topic at rest, by its entries."""
        letters = self.letters_in(topic)
        assert letters is not None
        letters.check_rest(message for data in entries for message in self.found_in(data))

    def _ends(self, logs: Iterable[list[LogEntry]]) -> dict[TransactionId, bool]:
        """Return how each transaction with messages has ended. INV-T4: everywhere in one way."""
        ends: dict[TransactionId, bool] = {}
        for log in logs:
            for entry in log:
                if entry.commits is not None and entry.transaction is not None:
                    id_ = entry.transaction
                    if ends.setdefault(id_, entry.commits) is not entry.commits:
                        raise ViolationError("INV-T4", f"transaction {id_} is committed here, aborted there")
        return ends

    def _check_outcome(self, transaction: TransactionRecord, committed: bool | None) -> None:
        """INV-T7: the coordinator has ended the transaction as the client said."""
        if committed is None:
            return
        outcome = TransactionOutcome.COMMITTED if committed else TransactionOutcome.ABORTED
        if transaction.outcome is TransactionOutcome.UNKNOWN:
            transaction.outcome = outcome
        if transaction.outcome is not outcome:
            raise ViolationError("INV-T7", f"{transaction} is {transaction.outcome.name} and {outcome.name}")

    def _check_log(self, topic: str, log: list[LogEntry], ends: dict[TransactionId, bool]) -> None:
        visible: set[MessagePosition] = set()
        newest: dict[tuple[int, str | None], int] = {}
        seen: set[tuple[int, int]] = set()
        for entry in log:
            if entry.commits is not None:
                continue
            id_ = entry.transaction
            if id_ is not None and id_ not in ends:
                raise ViolationError("INV-T8", f"{topic}: an entry of transaction {id_} without an end")
            for index, message in enumerate(self.found_in(entry.data)):
                position = (*entry.position, index)
                self.is_at(message, topic, position)
                if id_ != (None if message.transaction is None else message.transaction.id):
                    raise ViolationError("INV-T4", f"{message} is stored in transaction {id_}")
                line = message.producer, message.key if self.by_key else None
                chunk = message.chunk_of(entry.data)
                if (message.number, chunk) not in seen and message.number < newest.get(line, -1):
                    raise ViolationError("INV-T5", f"{message} at {position} is behind a later message")
                if (message.number, chunk) in seen and message.is_sent_once:
                    raise ViolationError("INV-T5", f"{message} is stored twice, once at {position}")
                seen.add((message.number, chunk))
                newest[line] = max(message.number, newest.get(line, -1))
                if (id_ is None or ends[id_]) and chunk == message.chunks - 1:
                    visible.add(position)
        for message in self.messages:
            parts = {(message.number, chunk) for chunk in range(message.chunks)}
            if message.topic == topic and message.outcome == "confirmed" and not seen >= parts:
                raise ViolationError("INV-T5", f"{message} is confirmed, and {topic} does not hold it")
        for subscription in self.subscriptions.values():
            if subscription.topic == topic:
                received = set(subscription.received)
                missing = [
                    each
                    for each in sorted(visible - received)
                    if not self._is_copy(subscription, each)
                    and not subscription.is_letter(self.positions[topic][each])
                ]
                if missing:
                    raise ViolationError("INV-T5", f"{subscription.name} never received {missing[0]}")
                if hidden := sorted(received - visible):
                    raise ViolationError("INV-T4", f"{subscription.name} received {hidden[0]}")

    def _is_copy(self, subscription: SubscriptionAccount, position: MessagePosition) -> bool:
        """True for the last chunk of a message that was received with another copy of that chunk."""
        message = self.positions[subscription.topic][position]
        return message.chunks > 1 and message in subscription.received.values()
