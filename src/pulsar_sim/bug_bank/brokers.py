"""Bugs of brokers: durability, receipts, deduplication, permits, dispatch, cursors, unloading, lookups.

Most are bugs of this project: the simulated broker is as young as the client, and its answers define the
truth.
"""

from typing import Any

from pulsar_sansio.broker.dispatching.consumer import Consumer
from pulsar_sansio.broker.dispatching.key_shared import KeyShared
from pulsar_sansio.broker.dispatching.shared import Shared
from pulsar_sansio.broker.dispatching.single_active import SingleActive
from pulsar_sansio.broker.serving import publishing
from pulsar_sansio.broker.serving.connection import Connection
from pulsar_sansio.broker.storage.cursor import Cursor
from pulsar_sansio.broker.storage.journal import Journal
from pulsar_sansio.broker.topics.producing.deduplication import Deduplication
from pulsar_sansio.broker.topics.producing.producers import Producers
from pulsar_sansio.broker.topics.subscription import Subscription
from pulsar_sansio.broker.topics.topic import Topic

from .planted_bug import Patches, bug, nothing
from .preconditions import general as needs

# --- durability ------------------------------------------------------------------------------------------


@bug("own", caught_by=("CHECK-36", "INV-P2", "INV-P9", "INV-C2", "INV-N5"), needs=[needs.kills])
def receipts_before_messages_are_durable(patches: Patches) -> None:
    """The broker confirms a message when it passes it to the store, before the message is durable."""

    def settle(original: Any, self: Any) -> None:
        original(self)
        publishes, self._waiting_publishes = self._waiting_publishes, {}
        for topic, count in publishes.items():
            topic.entries_durable(count)

    patches.around(Journal, "settle", settle)


@bug("own", caught_by=("INV-C5",), needs=[needs.kills, needs.receipts])
def acknowledgements_confirmed_before_they_are_durable(patches: Patches) -> None:
    """The broker confirms an acknowledgement before it has written the cursor."""

    def confirm_cursors(_self: Any, effect: Any) -> None:
        effect()

    def is_cursor_durable(_self: Any, _subscription: Any) -> bool:
        return True

    patches.replace(Journal, "confirm_cursors", confirm_cursors)
    patches.replace(Journal, "is_cursor_durable", is_cursor_durable)


@bug("own", caught_by=("INV-C5",), needs=[needs.kills, needs.receipts, needs.shared])
def only_the_mark_delete_position_survives(patches: Patches) -> None:
    """Acknowledgements above a cursor's mark-delete position do not survive a restart of the broker."""

    def restore(original: Any, self: Any, saved: Any, pending_acks: Any) -> None:
        bare = type(saved)(saved.topic, saved.subscription, saved.mark_delete, (), (), saved.properties)
        original(self, bare, pending_acks)

    patches.around(Topic, "_restore", restore)


@bug("BUG-029", caught_by=("INV-C5",), needs=[needs.kills, needs.index_acknowledgement_of_batches])
def parts_of_batches_do_not_survive(patches: Patches) -> None:
    """Acknowledgements of single messages of a batch do not survive a restart of the broker."""

    def restore(original: Any, self: Any, saved: Any, pending_acks: Any) -> None:
        bare = type(saved)(
            saved.topic, saved.subscription, saved.mark_delete, saved.acknowledged, (), saved.properties
        )
        original(self, bare, pending_acks)

    patches.around(Topic, "_restore", restore)


# --- publishing ------------------------------------------------------------------------------------------


@bug("own", caught_by=("BROKER-41",))
def receipts_out_of_order(patches: Patches) -> None:
    """When two receipts are due together, the broker writes the second one first."""
    held: dict[Connection, tuple[Any, ...]] = {}

    def confirm_send(original: Any, self: Any, *receipt: Any) -> None:
        before = held.pop(self, None)
        if before is None and receipt[1] % 10 == 5 and receipt[0].pending > 1:
            held[self] = receipt
            return
        original(self, *receipt)
        if before is not None:
            original(self, *before)

    patches.around(Connection, "confirm_send", confirm_send)


@bug("own", caught_by=("BROKER-40", "INV-P4"), needs=[needs.deduplication, needs.reconnects])
def the_last_duplicate_is_stored(patches: Patches) -> None:
    """Deduplication takes a duplicate of the last stored message for a new one."""

    def is_duplicate(original: Any, self: Any, name: str, sequence_id: int, highest: int) -> bool:
        if self.persisted.get(name) == highest:
            return False
        return bool(original(self, name, sequence_id, highest))

    patches.around(Deduplication, "is_duplicate", is_duplicate)


@bug("own", caught_by=("INV-P2", "INV-P9"), needs=[needs.deduplication])
def new_messages_taken_for_duplicates(patches: Patches) -> None:
    """Deduplication takes a new message for a stored one, and confirms it without storing it."""

    def is_duplicate(original: Any, self: Any, name: str, sequence_id: int, highest: int) -> bool:
        found = original(self, name, sequence_id, highest)
        return bool(found or sequence_id % 40 == 39)

    patches.around(Deduplication, "is_duplicate", is_duplicate)


@bug("own", caught_by=("BROKER-40", "INV-P4"), needs=[needs.deduplication, needs.kills])
def deduplication_forgets_with_a_restart(patches: Patches) -> None:
    """The broker does not write the state of deduplication. Messages resent after a restart are stored
    twice."""

    def take_sequence_records(self: Any) -> list[Any]:
        self._sequences_moved.clear()
        return []

    patches.replace(Topic, "take_sequence_records", take_sequence_records)


@bug("own", caught_by=("INV-P9", "INV-P2"))
def receipts_without_a_position(patches: Patches) -> None:
    """Now and then the receipt of a stored message says that it was a duplicate."""

    def confirm_send(original: Any, self: Any, producer: Any, sequence_id: int, *rest: Any) -> None:
        highest, ledger_id, entry_id = rest
        if sequence_id % 50 == 7:
            ledger_id = entry_id = publishing.DROPPED
        original(self, producer, sequence_id, highest, ledger_id, entry_id)

    patches.around(Connection, "confirm_send", confirm_send)


@bug("BUG-096", caught_by=("INV-N5", "INV-N4"), needs=[needs.named, needs.producers_close])
def producer_name_taken_for_ever(patches: Patches) -> None:
    """A producer that is gone keeps its name, so that no other producer can take it."""

    def leave(original: Any, self: Any, producer: Any) -> None:
        original(self, producer)
        if producer.name_given:
            self.by_name[producer.name] = producer

    patches.around(Producers, "detach", leave)


# --- permits and dispatch --------------------------------------------------------------------------------


@bug("own", caught_by=("GAP-27", "INV-C6"), needs=[needs.small_queues])
def permits_ignored(patches: Patches) -> None:
    """The broker dispatches messages to a consumer without regard to its permits."""

    def available(self: Any) -> bool:
        return not self.blocked and self.flowed and self.connection.writable

    patches.replace(Consumer, "available", property(available))


@bug("own", caught_by=("GAP-27", "INV-C6"), needs=[needs.batches, needs.small_queues])
def a_batch_costs_one_permit(patches: Patches) -> None:
    """A batch costs one permit, however many messages it has."""

    def deliver(original: Any, self: Any, entry: Any, messages: int, *rest: Any) -> None:
        original(self, entry, messages, *rest)
        self.permits += messages - 1

    patches.around(Consumer, "deliver", deliver)


@bug("own", caught_by=("INV-N5", "INV-P2"))
def new_permits_dispatch_nothing(patches: Patches) -> None:
    """New permits do not resume the dispatch, not even for the reader that checks the log."""

    class Asleep:
        dispatch = wake = nothing

    def grant(original: Any, self: Any, consumer: Any, permits: int) -> None:
        dispatcher, self.dispatcher = self.dispatcher, Asleep()
        original(self, consumer, permits)
        self.dispatcher = dispatcher

    patches.around(Subscription, "grant", grant)


@bug("own", caught_by=("INV-N5",), needs=[needs.shared_by_several, needs.detaches])
def entries_of_a_lost_consumer_are_not_redelivered(patches: Patches) -> None:
    """The broker does not redeliver the unacknowledged messages of a consumer that left."""

    def remove(original: Any, self: Any, consumer: Any) -> None:
        consumer.pending.clear()
        original(self, consumer)

    patches.around(Shared, "remove", remove)


@bug("own", caught_by=("SUBT-06", "CHECK-67", "NACK-03"), needs=[needs.round_robin])
def dispatched_while_another_consumer_has_it(patches: Patches) -> None:
    """A redelivery includes an entry that its consumer keeps, so that two consumers have it."""

    def redeliver(original: Any, self: Any, consumer: Any, offsets: Any, epoch: Any) -> None:
        if type(self) is Shared:  # KeyShared redelivers it to the same consumer
            for offset in list(consumer.pending)[:1]:
                if offset not in (offsets or [offset]):
                    self._replay_later(offset)
        original(self, consumer, offsets, epoch)

    patches.around(Shared, "redeliver", redeliver)


@bug("BUG-033", caught_by=("INV-C12",), needs=[needs.key_shared, needs.keys])
def keys_follow_the_permits(patches: Patches) -> None:
    """The broker sends a key to any consumer with permits, although another consumer still has messages of
    it."""

    def target(self: Any, slot: int) -> Any:
        return next((each for each in self.consumers if each.available), None)

    patches.replace(KeyShared, "_target", target)


@bug("BUG-033", caught_by=("INV-C12",), needs=[needs.key_shared, needs.keys])
def keys_move_at_once(patches: Patches) -> None:
    """When consumers join or leave, keys move although their dispatched messages are not yet acknowledged."""

    def target(self: Any, slot: int) -> Any:
        owner = self.selector.owner(slot)
        return owner if owner is not None and owner.available else None

    patches.replace(KeyShared, "_target", target)


@bug("own", caught_by=("INV-N5", "INV-C3", "INV-C1"), needs=[needs.in_order, needs.detaches])
def returning_consumers_begin_at_the_end(patches: Patches) -> None:
    """The broker serves a returning consumer from the end of the topic, not from its first unacknowledged
    message."""

    def rewind(self: Any) -> None:
        self.read = self.subscription.topic.log.durable_end

    patches.replace(SingleActive, "rewind", rewind)


@bug("own", caught_by=("INV-C5",))
def acknowledged_entries_delivered_again(patches: Patches) -> None:
    """Now and then the broker treats an acknowledged entry as unacknowledged."""

    def next_unacknowledged(original: Any, self: Any, offset: int) -> int:
        return int(original(self, offset) if offset % 7 else offset)

    patches.around(Cursor, "next_unacknowledged", next_unacknowledged)


@bug("own", caught_by=("INV-C3",), needs=[needs.failover])
def two_consumers_are_active(patches: Patches) -> None:
    """A new consumer of a Failover subscription is active at once, and the previous one stays active."""

    def add(original: Any, self: Any, consumer: Any) -> None:
        original(self, consumer)
        if self.failover:
            self._change.clear()
            self.active = consumer

    patches.around(SingleActive, "add", add)


@bug("own", caught_by=("SUBT-06",), needs=[needs.unloads, needs.shared_by_several])
def an_unload_dispatches(patches: Patches) -> None:
    """While the broker disconnects consumers one by one, it redelivers the messages of the first to the
    next."""

    def disconnect_all(original: Any, self: Any, *moved_to: Any) -> None:
        fenced, self.fenced = self.fenced, False
        original(self, *moved_to)
        self.fenced = fenced

    patches.around(Subscription, "disconnect_all", disconnect_all)


# --- acknowledgements ------------------------------------------------------------------------------------


@bug("own", caught_by=("INV-N5", "INV-C1", "INV-C3"), needs=[needs.kept])
def one_acknowledgement_takes_all_before_it(patches: Patches) -> None:
    """An individual acknowledgement also acknowledges all messages before it."""

    def acknowledge(self: Any, offset: int) -> bool:
        return bool(self.acknowledge_up_to(offset))

    patches.replace(Cursor, "acknowledge", acknowledge)


@bug("own", caught_by=("INV-C5", "INV-N5", "INV-C1"), needs=[needs.index_acknowledgement_of_batches])
def a_set_read_upside_down(patches: Patches) -> None:
    """The broker reads the set in an acknowledgement as the acknowledged messages; it holds the remaining
    ones."""

    def acknowledge_partly(original: Any, self: Any, offset: int, remaining: int, messages: int) -> int:
        return int(original(self, offset, ~remaining, messages))

    patches.around(Cursor, "acknowledge_partly", acknowledge_partly)


@bug("own", caught_by=("INV-N5",), needs=[needs.blocking])
def blocked_for_ever(patches: Patches) -> None:
    """A consumer with too many unacknowledged messages stays blocked after it acknowledges them."""

    def settle(self: Any, holder: Any, messages: int) -> None:
        holder.unacked -= messages
        self.outstanding -= messages

    patches.replace(Shared, "_count_acknowledged", settle)


@bug("own", caught_by=("INV-N5",), needs=[needs.blocking_all])
def all_blocked_for_ever(patches: Patches) -> None:
    """A subscription with too many unacknowledged messages stays blocked after they are acknowledged."""

    def check_limit(self: Any) -> None:
        self._unblocked = self._unblocked and not self.blocked

    patches.replace(Shared, "_check_subscription_limit", check_limit)
