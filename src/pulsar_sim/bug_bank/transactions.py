"""Bugs of transactions, in the client and in the broker's coordinators, topics and subscriptions."""

from collections import deque
from collections.abc import Callable
from typing import Any

from pulsar_sansio.broker.coordinating.coordinators import Coordinators
from pulsar_sansio.broker.serving import transacting
from pulsar_sansio.broker.topics.subscription import Subscription
from pulsar_sansio.broker.topics.topic import Topic
from pulsar_sansio.broker.topics.transactions.pending_ack_handle import PendingAckHandle
from pulsar_sansio.broker.topics.transactions.pending_acks import PendingAcks
from pulsar_sansio.broker.topics.transactions.transaction_buffer import TransactionBuffer
from pulsar_sansio.client.acknowledging import transactional_acks
from pulsar_sansio.client.acknowledging.ack_commands import AckCommands
from pulsar_sansio.client.acknowledging.ack_tracker import AckTracker
from pulsar_sansio.client.acknowledging.redelivery import Redelivery
from pulsar_sansio.client.acknowledging.transactional_acks import CollectedAcks, TransactionalAcks
from pulsar_sansio.client.outputs import RequestDone
from pulsar_sansio.client.producing import entry_builder, key_batches, open_batch
from pulsar_sansio.client.producing.send_window import SendWindow
from pulsar_sansio.client.transactions.transaction import Transaction
from pulsar_sansio.client.transactions.transaction_coordinators import TransactionCoordinators
from pulsar_sansio.client.transactions.transaction_states import Committing, TransactionInput
from pulsar_sansio.client.transactions.transactions import Transactions
from pulsar_sansio.model.config import OutgoingMessage
from pulsar_sansio.wire import encode_command, proto

from .planted_bug import Patches, bug, nothing
from .preconditions import transactions as needs

T = proto.BaseCommand

# --- historical -----------------------------------------------------------------------------------------


@bug("BUG-116", caught_by=("INV-T1",), needs=[needs.transactions])
def a_commit_does_not_wait_for_receipts(patches: Patches) -> None:
    """The coordinator is asked for the commit while messages and acknowledgements are under way."""

    def end_if_settled(original: Any, self: Any) -> None:
        under_way, self._open_operations = self._open_operations, 0
        original(self)
        self._open_operations = under_way

    patches.around(Transaction, "_end_if_settled", end_if_settled)


@bug("BUG-116", caught_by=("INV-T1",), needs=[needs.losses])
def a_failed_operation_does_not_abort(patches: Patches) -> None:
    """A transaction is committed although one of its messages or acknowledgements has failed."""
    patches.around(Transaction, "over", lambda original, self, error, *rest: original(self, None, *rest))


@bug("BUG-116", caught_by=("INV-T4", "INV-T7"), needs=[needs.transactions])
def a_lost_commit_counts_as_timed_out(patches: Patches) -> None:
    """When a commit is repeated, the answer that the transaction is gone is taken for its abort."""

    def not_ended(original: Any, self: Any, error: Any) -> None:
        self._asked_twice = False
        original(self, error)

    patches.around(Transaction, "_not_ended", not_ended)


@bug("BUG-116", caught_by=("INV-N5", "INV-T7"), needs=[needs.restarts])
def transactions_end_with_their_broker(patches: Patches) -> None:
    """A coordinator that starts again knows nothing of the transactions that were open."""

    def init(original: Any, self: Any, *arguments: Any) -> None:
        arguments[-1].transactions.clear()
        original(self, *arguments)

    patches.around(Coordinators, "__init__", init)


# --- the client -----------------------------------------------------------------------------------------


@bug("own", caught_by=("INV-T4", "INV-T7"), needs=[needs.transactions])
def an_unknown_outcome_counts_as_an_abort(patches: Patches) -> None:
    """A commit without an answer fails as any request, so an application would do the work again."""

    def lose(original: Any, self: Any, cause: Any) -> None:
        self._failure = self._failure or cause
        original(self, cause)

    patches.around(Transaction, "_lose", lose)


@bug("own", caught_by=("INV-T1", "INV-T7"), needs=[needs.short_timeouts])
def a_commit_that_came_too_late_counts_as_done(patches: Patches) -> None:
    """The answer that the transaction is gone is taken for its commit."""

    def not_ended(original: Any, self: Any, error: Any) -> None:
        if isinstance(self.state, Committing):
            self._end(TransactionInput.ENDED)
        else:
            original(self, error)

    patches.around(Transaction, "_not_ended", not_ended)


@bug("own", caught_by=("CHECK-97", "INV-T3"), needs=[needs.transactions])
def a_commit_without_an_answer_is_aborted(patches: Patches) -> None:
    """The second attempt of a commit asks for the abort, to be on the safe side."""

    def question(
        original: Any, self: Any, coordinator: Any, handle: int, encode: Callable[[int], bytes], *rest: Any
    ) -> Any:
        attempts = 0

        def turned(request_id: int) -> bytes:
            nonlocal attempts
            attempts += 1
            frame = encode(request_id)
            command = T.FromString(frame[8:])
            if command.type != T.END_TXN or attempts == 1:
                return frame
            command.endTxn.txn_action = proto.ABORT
            return encode_command(T.END_TXN, command.endTxn)

        return original(self, coordinator, handle, turned, *rest)

    patches.around(TransactionCoordinators, "question", question)


@bug("own", caught_by=("GAP-40",), needs=[needs.transactions])
def messages_are_sent_before_their_topic_has_joined(patches: Patches) -> None:
    """The coordinator is told of no topic."""
    patches.around(Transaction, "has_topic", lambda original, self, topic: True)


@bug("own", caught_by=("INV-T4",), needs=[needs.batches])
def a_batch_has_messages_of_several_transactions(patches: Patches) -> None:
    """Messages share a batch whatever their transactions; the first one names that of the batch."""

    def shared(original: Any, message: bytes | OutgoingMessage) -> Any:
        clusters, schema, _ = original(message)
        return clusters, schema, None

    for module in (entry_builder, key_batches, open_batch):
        patches.around(module, "shared_fields", shared)


@bug("own", caught_by=("INV-T2",), needs=[needs.transactions])
def acknowledgements_leave_their_transaction(patches: Patches) -> None:
    """An ACK does not name its transaction, and takes effect at once."""

    def encode(
        original: Any, consumer: int, kind: int, ids: Any, error: Any, request: int, *_: Any, **rest: Any
    ) -> Any:
        return original(consumer, kind, ids, error, request, **rest)

    patches.around(transactional_acks, "encode_ack", encode)


@bug("own", caught_by=("INV-T2",), needs=[needs.batches])
def one_message_in_a_transaction_acknowledges_its_batch(patches: Patches) -> None:
    """An ACK in a transaction names whole entries."""

    def frames(original: Any, self: Any, group_size: int) -> Any:
        return [
            (kind, [(*each[:2], None) for each in ids], *rest)
            for kind, ids, *rest in original(self, group_size)
        ]

    patches.around(CollectedAcks, "frames", frames)


@bug("own", caught_by=("INV-T1",), needs=[needs.transactions])
def acknowledgements_are_forgotten(patches: Patches) -> None:
    """The client drops what is collected for a transaction at its end in place of sending it."""

    def flush(original: Any, self: Any, transaction: Any) -> None:
        if self._collected.pop(transaction, None) is not None:
            transaction.over(None)

    patches.around(TransactionalAcks, "flush", flush)


@bug("own", caught_by=("INV-T2",), needs=[needs.batches, needs.plain_acks])
def what_a_broker_leaves_out_counts_as_acknowledged(patches: Patches) -> None:
    """Messages that an open transaction holds back are acknowledged with the rest of their batch."""

    def init(original: Any, self: Any, index_acknowledgement: bool, transactions: bool = False) -> None:
        original(self, index_acknowledgement)

    patches.around(AckTracker, "__init__", init)


@bug("own", caught_by=("INV-N5", "INV-T6"), needs=[needs.single_entries, needs.shared_by_two])
def refused_acknowledgements_are_not_asked_for_again(patches: Patches) -> None:
    """After an abort the consumer waits for messages of which the broker took no acknowledgement."""

    def ended(original: Any, self: Any, transaction: Any, committed: bool) -> None:
        messages = self._acknowledged.get(transaction)
        if messages is not None:
            messages.unconfirmed.clear()
        original(self, transaction, committed)

    patches.around(TransactionalAcks, "_ended", ended)


@bug("own", caught_by=("INV-N5", "INV-T6"), needs=[needs.in_order, needs.aborts])
def an_abort_asks_for_nothing(patches: Patches) -> None:
    """After an abort a consumer of an Exclusive subscription goes on with the next message."""
    patches.replace(Redelivery, "redeliver_all", nothing)


@bug("own", caught_by=("INV-L1", "INV-N11"), needs=[needs.transactions])
def a_closed_client_forgets_its_transactions(patches: Patches) -> None:
    """Requests for commits and aborts have no answer when the client is closed."""
    patches.replace(Transactions, "leave_cluster", nothing)


@bug("own", caught_by=("INV-T5",), needs=[needs.exactly_once, needs.losses])
def a_message_that_may_be_stored_is_sent_again(patches: Patches) -> None:
    """After a lost connection a producer sends the messages of all transactions again."""
    patches.replace(SendWindow, "entries_to_send_once", lambda self: [])


@bug("own", caught_by=("INV-T2",), needs=[needs.exactly_once])
def entries_share_an_acknowledgement(patches: Patches) -> None:
    """A refusal of one entry is one of all that `exactly_once` acknowledges."""
    patches.around(CollectedAcks, "frames", lambda original, self, group_size: original(self, 1000))


@bug("own", caught_by=("INV-T7",), needs=[needs.exactly_once, needs.unanswered])
def an_end_without_an_answer_is_given_up(patches: Patches) -> None:
    """With `exactly_once`, too, the client asks for an end until the operation timeout only."""

    def question(original: Any, self: Any, *arguments: Any) -> Any:
        return original(self, *arguments[:6])

    patches.around(TransactionCoordinators, "question", question)


@bug("own", caught_by=("GAP-40",), needs=[needs.partitions])
def the_first_partition_joins_for_all(patches: Patches) -> None:
    """The coordinator is told of one partition of each topic."""

    def has_topic(original: Any, self: Any, topic: str) -> bool:
        joined = {each.partition("-partition-")[0] for each in self._joined if isinstance(each, str)}
        return topic.partition("-partition-")[0] in joined

    patches.around(Transaction, "has_topic", has_topic)


@bug("own", caught_by=("GAP-40",), needs=[needs.partitions])
def the_subscription_to_one_partition_joins_for_all(patches: Patches) -> None:
    """The coordinator is told of the acknowledgements on one partition of each topic."""

    def has_subscription(original: Any, self: Any, topic: str, subscription: str) -> bool:
        joined = {each for each in self._joined if isinstance(each, tuple)}
        whole = topic.partition("-partition-")[0]
        return any(name.startswith(whole) and other == subscription for name, other in joined)

    patches.around(Transaction, "has_subscription", has_subscription)


@bug("own", caught_by=("INV-N5", "INV-T2"), needs=[needs.chunks])
def the_last_chunk_is_acknowledged_for_all(patches: Patches) -> None:
    """An ACK in a transaction names one chunk of each message."""

    def acknowledge_in(original: Any, self: Any, transaction: Any, message_id: Any) -> None:
        if message_id.batch_index < 0:
            self._transactional.acknowledge(transaction, message_id[:2], 1, 1)
        else:
            original(self, transaction, message_id)

    patches.around(AckCommands, "_acknowledge_in", acknowledge_in)


@bug("own", caught_by=("INV-T1",), needs=[needs.flushes])
def a_flush_waits_for_nothing(patches: Patches) -> None:
    """All of a transaction is said to be confirmed while messages are under way."""
    patches.replace(
        Transaction,
        "flush",
        lambda self, request: self._services.context.emit(RequestDone(request, None)),
    )


# --- the broker -----------------------------------------------------------------------------------------


@bug("own", caught_by=("INV-T4", "TXN-01"), needs=[needs.transactions])
def messages_of_open_transactions_are_delivered(patches: Patches) -> None:
    """Consumers read to the end of the topic."""
    patches.replace(TransactionBuffer, "read_end", property(lambda self: self._log.durable_end))


@bug("own", caught_by=("INV-T4", "TXN-01"), needs=[needs.aborts])
def an_abort_shows_its_messages(patches: Patches) -> None:
    """The topic writes a marker of a commit, whatever the end."""
    patches.around(
        Topic,
        "end_transaction",
        lambda original, self, transaction, commits: original(self, transaction, True),
    )


@bug("own", caught_by=("INV-N5", "INV-T6"), needs=[needs.transactions])
def a_commit_forgets_its_acknowledgements(patches: Patches) -> None:
    """The cursor is not moved, and a consumer that comes back receives the messages again."""
    patches.replace(PendingAckHandle, "_commit", nothing)


@bug("own", caught_by=("INV-T6", "TXN-02"), needs=[needs.aborts])
def an_abort_acknowledges(patches: Patches) -> None:
    """Pending acknowledgements take effect at any end."""
    patches.around(
        PendingAckHandle,
        "end",
        lambda original, self, transaction, commits: original(self, transaction, True),
    )


@bug("own", caught_by=("INV-N5", "INV-T6"), needs=[needs.transactions])
def pending_acknowledgements_are_not_kept(patches: Patches) -> None:
    """A topic that is loaded again delivers what open transactions acknowledged."""
    patches.around(PendingAcks, "__init__", lambda original, self, stored: original(self, ()))


@bug("own", caught_by=("INV-T6",), needs=[needs.transactions])
def acknowledged_messages_are_not_withheld(patches: Patches) -> None:
    """A consumer that comes back receives what an open transaction has acknowledged."""
    patches.replace(
        Subscription, "deliverable", lambda self, offset, messages: self.cursor.partly.get(offset)
    )


@bug("own", caught_by=("INV-T7",), needs=[needs.transactions])
def an_end_is_answered_before_it_is_durable(patches: Patches) -> None:
    """The answer to END_TXN leaves before the store has the markers."""

    def carry_out(
        original: Any, connection: Any, number: int, answer: Any, change: Callable[[], None]
    ) -> None:
        if number != T.END_TXN_RESPONSE:
            original(connection, number, answer, change)
        else:
            change()
            connection.send(number, answer)

    patches.around(transacting, "_carry_out", carry_out)


@bug("own", caught_by=("INV-N5", "INV-T8"), needs=[needs.several_topics])
def a_transaction_ends_in_its_first_topic(patches: Patches) -> None:
    """The coordinator forgets all topics but one."""

    def end(original: Any, self: Any, transaction: Any, commits: bool) -> None:
        transaction.topics = dict(list(transaction.topics.items())[:1])
        original(self, transaction, commits)

    patches.around(Coordinators, "_end", end)


@bug("own", caught_by=("INV-N5",), needs=[needs.losses])
def lost_transactions_are_never_over(patches: Patches) -> None:
    """A coordinator does not abort a transaction at its timeout."""
    patches.replace(Coordinators, "_expired", nothing)


@bug("own", caught_by=("INV-T7",), needs=[needs.restarts])
def numbers_of_transactions_begin_anew(patches: Patches) -> None:
    """A coordinator that starts again gives numbers a second time."""

    def init(original: Any, self: Any, *arguments: Any) -> None:
        arguments[-1].next_transactions.clear()
        original(self, *arguments)

    patches.around(Coordinators, "__init__", init)


@bug("own", caught_by=("INV-N5", "INV-T4", "INV-T5", "INV-T8", "TXN-01"), needs=[needs.several_at_once])
def one_end_ends_all(patches: Patches) -> None:
    """A marker of one transaction ends the others in the topic, too."""

    def settle(original: Any, self: Any) -> Any:
        ended = deque(self._markers)
        result = original(self)
        if ended and not self._markers:
            self._open.clear()
        return result

    patches.around(TransactionBuffer, "settle", settle)
