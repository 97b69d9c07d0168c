"""`SubscriptionAccount`: what the application received from one subscription, and acknowledged there."""

from collections import Counter
from collections.abc import Iterable

from pulsar_sansio.model.config import SubscriptionType

from ...engine.failures import ViolationError
from ..records.message_position import BEFORE_ALL, MessagePosition
from .letter_account import LetterAccount
from .transaction_record import SentMessage, TransactionOutcome, TransactionRecord


class SubscriptionAccount:
    """One subscription of one topic or partition, over all consumers. `name` is unique; `subscription` is the
    name that consumers use, and is of several partitions. `letters`: the dead letters of that subscription,
    if it has any. `looped`: loops handle its messages, one output for each."""

    def __init__(
        self,
        name: str,
        topic: str,
        kind: SubscriptionType,
        subscription: str | None = None,
        letters: LetterAccount | None = None,
        looped: bool = False,
    ) -> None:
        self.name = name
        self.subscription = name if subscription is None else subscription
        self.topic = topic
        self.kind = kind
        self.letters = letters
        self.looped = looped
        self.received: dict[MessagePosition, SentMessage] = {}
        self.plain: set[MessagePosition] = set()
        """Messages that were acknowledged outside of transactions."""
        self.acked_in: dict[MessagePosition, list[TransactionRecord]] = {}
        """Message -> the transactions that acknowledged it."""
        self._missed: set[MessagePosition] = set()
        """Messages that were acknowledged in a transaction and not received since."""
        self.committed: set[MessagePosition] = set()
        """Messages that were acknowledged in transactions whose commits the broker has confirmed."""
        self.pending: dict[MessagePosition, TransactionRecord] = {}
        """Messages of which the broker has confirmed an acknowledgement in an open transaction."""
        self._newest: dict[str | None, MessagePosition] = {}
        """The last message received for the first time; of each key on Key_Shared."""

    def receives(self, position: MessagePosition, message: SentMessage) -> None:
        """INV-T5: messages come for the first time in the order of the topic, or of each key."""
        self._missed.difference_update(self.copies(position, message))
        if position in self.received:
            return
        self.received[position] = message
        if self.kind is SubscriptionType.SHARED:
            return
        key = message.key if self.kind is SubscriptionType.KEY_SHARED else None
        newest = self._newest.get(key, BEFORE_ALL)
        if position < newest:
            raise ViolationError("INV-T5", f"{self.name}: {message} at {position} is received after {newest}")
        self._newest[key] = position

    def copies(self, position: MessagePosition, message: SentMessage | None) -> list[MessagePosition]:
        """Return the positions at which the message was received, and this one. Several are those of last
        chunks: a message in chunks is received once, with any of them."""
        if message is None or message.chunks == 1:
            return [position]
        return [position, *(each for each, other in self.received.items() if other is message)]

    def acked_with(self, position: MessagePosition, message: SentMessage | None) -> list[TransactionRecord]:
        """Return the transactions that acknowledged the message that has this entry, perhaps in a chunk."""
        positions = self.copies(position, message)
        found = [each for position in positions for each in self.acked_in.get(position, ())]
        return list(dict.fromkeys(found))

    def is_of_acked_copy(self, position: MessagePosition, acked_in: Iterable[TransactionRecord]) -> bool:
        """True for a chunk of a copy of its message that was acknowledged in one of these transactions: the
        chunk was taken last, or an ACK of one had it."""
        sent = any(position in each.sent_acks.get(self.name, ()) for each in acked_in)
        return sent or position in self.received

    def acknowledges(self, position: MessagePosition, transaction: TransactionRecord) -> None:
        acks = transaction.acks.setdefault(self.name, set())
        transaction.repeats = transaction.repeats or position in acks
        acks.add(position)
        acked_in = self.acked_in.setdefault(position, [])
        if transaction not in acked_in:
            acked_in.append(transaction)
        self._missed.add(position)

    def is_contended(self, transaction: TransactionRecord) -> bool:
        """True when the broker may refuse acknowledgements of the transaction because of others."""
        acked = transaction.acks.get(self.name, set())
        if any(len(self.acked_with(position, self.received.get(position))) > 1 for position in acked):
            return True
        entries = {position[:2] for position in acked}  # a batch is acknowledged with what was before
        if any(position[:2] in entries for position in self.plain):
            return True
        if self.letters is not None:
            received = self.received.items()
            if any(each in self.letters.due for position, each in received if position[:2] in entries):
                return True
        if self.name not in transaction.cumulative:
            return False
        others = {id(each) for acked_in in self.acked_in.values() for each in acked_in if each.cumulative}
        return len(others) > 1

    def check_handled(self, transactions: Iterable[TransactionRecord]) -> None:
        """TXN-02 at rest: one committed transaction has handled each message; none a dead letter perhaps."""
        handled: Counter[MessagePosition] = Counter()
        for transaction in transactions:
            if transaction.outcome is TransactionOutcome.COMMITTED:
                handled.update(position for name, position in transaction.handled if name == self.name)
        for position, message in self.received.items():
            times = handled[position]
            if times == 0 and (self.is_letter(message) or self._may_be_committed(position, message)):
                continue
            if times != 1:
                raise ViolationError(
                    "TXN-02", f"{self.name}: {message} at {position} is handled {times} times"
                )

    def _may_be_committed(self, position: MessagePosition, message: SentMessage) -> bool:
        """True for a message of a transaction whose end no log tells, because it sent nothing."""
        acked = self.acked_with(position, message)
        return message.is_output and any(each.outcome is TransactionOutcome.UNKNOWN for each in acked)

    def is_letter(self, message: SentMessage) -> bool:
        """True when a copy of the message is stored: the message may be acknowledged."""
        return self.letters is not None and message in self.letters.stored

    def lost(self) -> list[MessagePosition]:
        """Return the messages that only aborted transactions acknowledged, if none came since."""
        return [
            position
            for position in sorted(self._missed)
            if position not in self.plain
            and not self.is_letter(self.received[position])
            and all(each.outcome is TransactionOutcome.ABORTED for each in self.acked_in[position])
        ]
