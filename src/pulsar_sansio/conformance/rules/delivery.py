"""Rules about FLOW and MESSAGE: permits, order, repetition, epochs, and what is delivered."""

from typing import Any

from .. import commands as c
from ..findings import Finding
from ..registry import rule
from ..state.consumer import ObservedConsumer
from ..state.state import State
from ..tracking.consumers import may_be_redelivered
from ..traits import ACK_SET, AGAIN, EPOCH, MARKER, REDELIVERED, UNSETTLED

# --- permits ---------------------------------------------------------------------------------------


@rule("FLOW-08", c.FLOW)
def flow_grants_something(state: State, flow: Any) -> Finding:
    """FLOW with 0 permits is never sent."""
    return None if flow.message_permits > 0 else "FLOW with 0 permits"


@rule("INV-C6", c.FLOW)
def permits_stay_within_the_queue(state: State, flow: Any) -> Finding:
    """Permits outstanding are never above the first grant, which is the queue size.

    Only messages that came give permits back. A first grant of 1 may be that of a waiting receive at queue
    size 0, where there is one permit for each; it says nothing.
    """
    consumer = state.consumer
    if consumer is None or consumer.first_grant <= 1:
        return None
    outstanding = consumer.permits + flow.message_permits
    if outstanding <= consumer.first_grant:
        return None
    return f"{outstanding} permits outstanding, the first grant was {consumer.first_grant}"


@rule("BROKER-30", c.MESSAGE, traits=UNSETTLED)
def dispatch_begins_with_a_grant(state: State, message: Any) -> Finding:
    """Dispatch begins with the first grant."""
    consumer = state.consumer
    if consumer is None or consumer.granted or consumer.open_since < 0:
        return None
    return f"consumer {message.consumer_id} has granted nothing"


@rule("GAP-27", c.MESSAGE)
def permits_are_kept(state: State, message: Any) -> Finding:
    """An entry is sent only while permits are above 0; its messages may then take them below 0."""
    consumer = state.consumer
    if consumer is None or consumer.permits > 0 or not consumer.granted:
        return None
    return f"consumer {message.consumer_id} has {consumer.permits} permits"


# --- which consumer gets messages -----------------------------------------------------------------


@rule("CHECK-66", c.MESSAGE, traits=UNSETTLED)
def messages_have_a_consumer(state: State, message: Any) -> Finding:
    """MESSAGE names a consumer whose SUBSCRIBE has succeeded."""
    consumer = state.consumer
    if consumer is not None:
        return None if consumer.open_since >= 0 else f"consumer {message.consumer_id} is not subscribed yet"
    if (
        state.gone_consumers.get(message.consumer_id) in ("closed", "unsubscribed")
        or state.consumers.overflowed
    ):
        return None
    return f"consumer {message.consumer_id} is not subscribed"


@rule("INV-C14", c.MESSAGE, traits=UNSETTLED)
def nothing_after_the_close(state: State, message: Any) -> Finding:
    """Nothing is delivered after close or unsubscribe, whichever side closed."""
    consumer = state.consumer
    if consumer is not None:
        if consumer.closed_by_broker < 0:
            return None
        return f"the broker closed consumer {message.consumer_id} in frame {consumer.closed_by_broker}"
    how = state.gone_consumers.get(message.consumer_id)
    return f"consumer {message.consumer_id} is {how}" if how in ("closed", "unsubscribed") else None


@rule("SUBT-03", c.MESSAGE, traits=UNSETTLED)
def only_the_active_one(state: State, message: Any) -> Finding:
    """The broker delivers the messages of a Failover subscription to the active consumer only."""
    if state.consumer is None or state.consumer.active is not False:
        return None
    return f"consumer {message.consumer_id} is not the active one"


@rule("BROKER-43", c.MESSAGE, traits=UNSETTLED)
def nothing_after_the_end(state: State, message: Any) -> Finding:
    """The end of a topic is told when everything is acknowledged: nothing is delivered after it."""
    consumer = state.consumer
    if consumer is None or not consumer.ended or _may_be_aborted(state, consumer):
        return None
    return f"{message.ledger_id}:{message.entry_id} after REACHED_END_OF_TOPIC"


def _may_be_aborted(state: State, consumer: ObservedConsumer) -> bool:
    """Tell whether the abort of a transaction may redeliver messages of the subscription."""
    transactional = state.memory.topics.transactional
    return transactional.overflowed or (consumer.topic, consumer.memory.subscription) in transactional


# --- position --------------------------------------------------------------------------------------


@rule("WIRE-11", c.MESSAGE)
def partitions_are_named(state: State, message: Any) -> Finding:
    """MESSAGE carries ledger, entry and the partition's index, which is that of the topic, -1 for none."""
    consumer = state.consumer
    if consumer is None or message.partition == consumer.partition:
        return None
    return f"the partition is {message.partition}, the topic is {consumer.topic}"


@rule("MSG-01", c.MESSAGE)
def entries_not_members(state: State, message: Any) -> Finding:
    """A broker names entries, from 0:0 on, and without the batch index, which the client adds."""
    if message.ledger_id < 0 or message.entry_id < 0:
        return f"the position is {message.ledger_id}:{message.entry_id}"
    return None if message.batch_index == -1 else f"batch_index is {message.batch_index}"


@rule("INV-C3", c.MESSAGE)
def positions_ascend(state: State, message: Any) -> Finding:
    """On Exclusive and Failover positions ascend; a step back follows a redelivery, a seek or a failover."""
    consumer = state.consumer
    if (
        consumer is None
        or not consumer.single_active
        or consumer.redelivery.rewinds
        or not consumer.persistent
    ):
        return None
    if state.position > consumer.last or _may_be_aborted(state, consumer):
        return None
    last = consumer.last
    return f"{message.ledger_id}:{message.entry_id} after {last[0]}:{last[1]}"


# --- repetition ------------------------------------------------------------------------------------


@rule("BROKER-31", c.MESSAGE, traits=REDELIVERED)
def only_shared_types_count(state: State, message: Any) -> Finding:
    """Redeliveries are counted on Shared and Key_Shared only."""
    if not message.redelivery_count or state.consumer is None or not state.consumer.single_active:
        return None
    return f"redelivery_count {message.redelivery_count} on an exclusive or failover subscription"


@rule("CHECK-67", c.MESSAGE, traits=AGAIN)
def nothing_is_redelivered_unasked(state: State, message: Any) -> Finding:
    """On Shared and Key_Shared an entry is redelivered to the same consumer only when that asked for it."""
    consumer = state.consumer
    if consumer is None or consumer.single_active:
        return None
    before = state.before
    if before is None or may_be_redelivered(consumer, state.position, before):
        return None
    if _may_be_aborted(state, consumer):
        return None
    return f"{message.ledger_id}:{message.entry_id} came in frame {before.frame}, nothing asked for it again"


@rule("NACK-03", c.MESSAGE, traits=AGAIN)
def counts_grow(state: State, message: Any) -> Finding:
    """An entry redelivered on Shared and Key_Shared has a greater redelivery count than before."""
    consumer = state.consumer
    if consumer is None or consumer.single_active:
        return None
    before = state.before
    if before is None or message.redelivery_count > before.redelivery_count:
        return None
    return f"redelivery_count {message.redelivery_count} after {before.redelivery_count}"


@rule("INV-C5", c.MESSAGE)
def confirmed_entries_stay_away(state: State, message: Any) -> Finding:
    """No entry is redelivered after a confirmed acknowledgement."""
    consumer = state.consumer
    if consumer is None:
        return None
    if state.position not in consumer.confirmed and state.position > consumer.confirmed_up_to:
        return None
    return f"{message.ledger_id}:{message.entry_id} is acknowledged, and that was confirmed"


# --- epochs ----------------------------------------------------------------------------------------


@rule("CHECK-68", c.MESSAGE, traits=EPOCH)
def epochs_are_for_who_has_them(state: State, message: Any) -> Finding:
    """MESSAGE has an epoch on Exclusive and Failover alone, for clients that have one, never above it."""
    consumer = state.consumer
    epoch = message.consumer_epoch
    if epoch is None or consumer is None:
        return None
    if not consumer.single_active:
        return f"consumer epoch {epoch} on a shared subscription"
    if not consumer.has_epoch:
        return f"consumer epoch {epoch}, the client has sent none"
    return (
        None
        if epoch <= consumer.memory.epoch
        else f"consumer epoch {epoch}, the client's is {consumer.memory.epoch}"
    )


@rule("CHECK-69", c.MESSAGE, traits=EPOCH)
def epochs_do_not_go_back(state: State, message: Any) -> Finding:
    """Once an entry came for an epoch, none comes for an older one."""
    consumer = state.consumer
    epoch = message.consumer_epoch
    if epoch is None or consumer is None or epoch >= consumer.epoch:
        return None
    return f"consumer epoch {epoch} after {consumer.epoch}"


# --- contents --------------------------------------------------------------------------------------


@rule("CHECK-70", c.MESSAGE, traits=ACK_SET)
def sets_fit_their_batch(state: State, message: Any) -> Finding:
    """The set of a MESSAGE names messages of its batch, at least one."""
    if message.ack_set is None or state.entry.metadata is None:
        return None
    if not state.entry.batch:
        return "an ack_set on an entry that is no batch"
    if not message.ack_set:
        return "an ack_set with nothing to deliver"
    if message.ack_set >> state.entry.count:
        return (
            f"an ack_set of {message.ack_set.bit_length()} bits, the batch has {state.entry.count} messages"
        )
    return None


@rule("CHECK-71", c.MESSAGE, traits=MARKER)
def markers_stay_inside(state: State, message: Any) -> Finding:
    """Markers are never delivered."""
    metadata = state.entry.metadata
    if metadata is None or metadata.marker_type is None:
        return None
    return f"a marker of type {metadata.marker_type}"


@rule("INV-C2", c.MESSAGE)
def delivered_as_stored(state: State, message: Any) -> Finding:
    """The broker delivers an entry byte for byte as it was published; compacted entries excepted.

    The broker may have added or removed checksum and broker entry metadata.
    """
    consumer = state.consumer
    if consumer is None or not consumer.persistent or consumer.compacted:
        return None
    stored = state.memory.topics.digests.get((consumer.topic, message.ledger_id, message.entry_id))
    if stored is None or stored == state.entry.digest:
        return None
    return f"{message.ledger_id}:{message.entry_id} has other bytes than before"
