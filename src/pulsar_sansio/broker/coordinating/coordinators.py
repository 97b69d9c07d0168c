"""`Coordinators`: the transaction coordinators of a broker (rule GAP-40).

A coordinator numbers transactions, knows the topics and subscriptions that take part in each, and commits or
aborts it in all of them. A transaction that is open for longer than its timeout is aborted.

This broker is the only one of its cluster, and its store takes records in batches. One batch has the markers,
the cursors and the end of a transaction, so a restart finds a transaction open everywhere or nowhere, and no
transaction is ever seen half committed.
"""

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from ...model.errors import (
    InvalidTransactionStatus,
    TooManyRequests,
    TransactionCoordinatorNotFound,
    TransactionNotFound,
)
from ...model.topic_name import TopicName
from ...model.transaction_id import TransactionId
from ..records import TransactionEnded, TransactionJoined, TransactionOpened
from ..topics.topic import Topic
from .open_transaction import OpenTransaction

if TYPE_CHECKING:
    from ..security.authorization import Authorization
    from ..services import BrokerServices
    from ..storage.store import StoredState
    from ..topics.registry import TopicRegistry

ASSIGN_TOPIC = "persistent://pulsar/system/transaction_coordinator_assign"
"""The name whose partitions stand for the coordinators. No such topic exists; clients look it up."""

MAX_PARTICIPANTS = 100_000
"""The number of topics and subscriptions of one transaction."""

MAX_PARTICIPANTS_OF_ALL = 1_000_000
"""The number of topics and subscriptions of all open transactions together."""


class Coordinators:
    """`count`: the number of coordinators; 0 for a broker without transactions."""

    def __init__(
        self,
        services: "BrokerServices",
        topics: "TopicRegistry",
        authorization: "Authorization",
        count: int,
        state: "StoredState",
    ) -> None:
        self._services = services
        self._context = services.context
        self._journal = services.journal
        self._topics = topics
        self._authorization = authorization
        self.count = count
        self.recovered_at = services.wall_time
        """The wall time in ms at which the broker read what the coordinators had stored."""
        self._numbers = {number: state.next_transactions.get(number, 0) for number in range(count)}
        self.open: dict[TransactionId, OpenTransaction] = {}
        self._participants = 0
        """The number of topics and subscriptions in open transactions."""
        for stored in state.transactions.values():
            opened = stored.opened
            id_ = TransactionId(opened.coordinator, opened.number)
            transaction = self._add(id_, opened.owner, opened.timeout, opened.opened_at)
            for joined in stored.joined:
                transaction.topics.update(dict.fromkeys(joined.topics))
                transaction.subscriptions.update(dict.fromkeys(joined.subscriptions))
                self._participants += len(joined.topics) + len(joined.subscriptions)

    def partitions_of(self, topic: TopicName) -> int | None:
        """Return the number of coordinators for the name that stands for them; None for any other topic."""
        return self.count if str(topic) == ASSIGN_TOPIC else None

    def is_coordinator(self, topic: TopicName) -> bool:
        """True for a name that stands for a coordinator of this broker."""
        return topic.partition in range(self.count) and str(topic.base) == ASSIGN_TOPIC

    def check_coordinator(self, coordinator: int) -> None:
        """Raise `TransactionCoordinatorNotFound` where the broker has no such coordinator."""
        if coordinator not in range(self.count):
            raise TransactionCoordinatorNotFound(f"Coordinator {coordinator} is not on this broker")

    def last_number(self, coordinator: int) -> int:
        """Return the number of the transaction that a coordinator opened last; -1 where it opened none."""
        return self._numbers[coordinator] - 1

    # --- commands -------------------------------------------------------------------------------------

    def begin(self, coordinator: int, timeout: int, owner: str) -> TransactionId:
        """Open a transaction of `timeout` milliseconds.

        Raises `TransactionCoordinatorNotFound`, and `TooManyRequests` where too many are open.
        """
        self.check_coordinator(coordinator)
        limit = self._services.config.max_transactions
        if len(self.open) >= limit:
            raise TooManyRequests(f"{limit} transactions are open, more are not allowed")
        id_ = TransactionId(coordinator, self._numbers[coordinator])
        self._numbers[coordinator] += 1
        transaction = self._add(id_, owner, timeout, self._services.wall_time)
        self._journal.records.append(TransactionOpened(*id_, owner, timeout, transaction.opened_at))
        return id_

    def join(
        self,
        id_: TransactionId,
        roles: tuple[str, ...],
        topics: Iterable[str] = (),
        subscriptions: Iterable[tuple[str, str]] = (),
    ) -> None:
        """Let topics and subscriptions take part in a transaction. Raises the refusal."""
        transaction = self._find(id_, roles)
        new_topics = tuple(each for each in dict.fromkeys(topics) if each not in transaction.topics)
        known = transaction.subscriptions
        new_subscriptions = tuple(each for each in dict.fromkeys(subscriptions) if each not in known)
        present = len(transaction.topics) + len(known)
        if present + len(new_topics) + len(new_subscriptions) > MAX_PARTICIPANTS:
            raise TooManyRequests(f"More than {MAX_PARTICIPANTS} topics and subscriptions in a transaction")
        if self._participants + len(new_topics) + len(new_subscriptions) > MAX_PARTICIPANTS_OF_ALL:
            raise TooManyRequests(
                f"More than {MAX_PARTICIPANTS_OF_ALL} topics and subscriptions in open transactions"
            )
        if new_topics or new_subscriptions:
            self._participants += len(new_topics) + len(new_subscriptions)
            transaction.topics.update(dict.fromkeys(new_topics))
            known.update(dict.fromkeys(new_subscriptions))
            self._journal.records.append(TransactionJoined(*id_, new_topics, new_subscriptions))

    def end(self, id_: TransactionId, roles: tuple[str, ...], commits: bool) -> None:
        """Commit or abort a transaction. Raises the refusal."""
        self._end(self._find(id_, roles), commits)

    def abort(self, id_: TransactionId) -> None:
        """Abort an open transaction, whosever it is, for an administrator."""
        self._end(self.open[id_], commits=False)

    def check_topic(self, id_: TransactionId, topic: str) -> None:
        """Raise the refusal of a message of that transaction in `topic`."""
        if topic not in self._find_open(id_).topics:
            raise InvalidTransactionStatus(f"Topic {topic} is not in transaction {id_}")

    def check_subscription(self, id_: TransactionId, topic: str, subscription: str) -> None:
        """Raise the refusal of an acknowledgement in that transaction."""
        if (topic, subscription) not in self._find_open(id_).subscriptions:
            raise InvalidTransactionStatus(
                f"Subscription {subscription} of topic {topic} is not in transaction {id_}"
            )

    # --- inside ---------------------------------------------------------------------------------------

    def _add(self, id_: TransactionId, owner: str, timeout: int, opened_at: int) -> OpenTransaction:
        expiry = self._context.deadlines.slot(partial(self._expired, id_))
        transaction = OpenTransaction(id_, owner, timeout, opened_at, expiry)
        left = opened_at + timeout - self._services.wall_time
        left = max(0, min(left, timeout))  # the wall clock may have been set back before a restart
        expiry.set(self._context.now + left * 1_000_000)
        self.open[id_] = transaction
        return transaction

    def _find_open(self, id_: TransactionId) -> OpenTransaction:
        transaction = self.open.get(id_)
        if transaction is None:
            raise TransactionNotFound(f"Transaction {id_} is not open")
        return transaction

    def _find(self, id_: TransactionId, roles: tuple[str, ...]) -> OpenTransaction:
        """Return an open transaction of one of these roles."""
        self.check_coordinator(id_.coordinator)
        transaction = self._find_open(id_)
        if transaction.owner not in roles and not self._authorization.is_superuser(roles):
            raise TransactionNotFound(f"Transaction {id_} is not open")
        return transaction

    def _expired(self, id_: TransactionId) -> None:
        self._end(self.open[id_], commits=False)

    def _end(self, transaction: OpenTransaction, commits: bool) -> None:
        """Write markers and acknowledgements of all participants that are still there, in one batch."""
        del self.open[transaction.id]
        self._participants -= len(transaction.topics) + len(transaction.subscriptions)
        transaction.expiry.clear()
        served = self._topics.by_name
        for name in transaction.topics:
            topic = served.get(name)
            if isinstance(topic, Topic):
                topic.end_transaction(transaction.id, commits)
        for name, subscription in transaction.subscriptions:
            topic = served.get(name)
            if isinstance(topic, Topic) and subscription in topic.subscriptions:
                topic.subscriptions[subscription].pending_ack_handle.end(transaction.id, commits)
        self._journal.records.append(TransactionEnded(*transaction.id))
