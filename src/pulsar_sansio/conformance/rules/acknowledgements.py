"""Rules about ACK and REDELIVER."""

from typing import Any

from ...wire import CUMULATIVE, INDIVIDUAL
from .. import commands as c
from ..findings import Finding
from ..memory import Position
from ..registry import rule
from ..state.consumer import ObservedConsumer
from ..state.state import State
from ..tracking.consumers import signed
from ..traits import ACK_SET, DISCARD

MAX_REDELIVER_IDS = 1000

# --- the form of an ACK ----------------------------------------------------------------------------


@rule("WIRE-12", c.ACK)
def acknowledgements_have_ids(state: State, ack: Any) -> Finding:
    """ACK carries ids: at least one, exactly one when it is cumulative."""
    count = len(ack.message_ids)
    if count == 1 or (count and ack.ack_type == INDIVIDUAL):
        return None
    return f"{'a cumulative' if ack.ack_type == CUMULATIVE else 'an individual'} ACK with {count} ids"


@rule("ACK-02", c.ACK)
def cumulative_is_for_single_consumers(state: State, ack: Any) -> Finding:
    """Cumulative acknowledgement is for Exclusive and Failover."""
    consumer = state.consumer
    if consumer is None or ack.ack_type != CUMULATIVE or consumer.single_active:
        return None
    return "a cumulative ACK on a shared subscription"


@rule("CONS-29", c.ACK, traits=DISCARD)
def discarding_is_individual(state: State, ack: Any) -> Finding:
    """Discarding an entry is an individual ACK with the validation error, of the whole entry."""
    if ack.validation_error is None:
        return None
    if ack.ack_type == CUMULATIVE:
        return "a cumulative ACK with a validation error"
    return (
        "a validation error with an ack_set" if any(each[2] is not None for each in ack.message_ids) else None
    )


@rule("ACK-13", c.ACK)
def non_persistent_is_not_acknowledged(state: State, ack: Any) -> Finding:
    """On non-persistent topics acknowledgements are not sent."""
    consumer = state.consumer
    return None if consumer is None or consumer.persistent else f"an ACK for {consumer.topic}"


# --- what is acknowledged --------------------------------------------------------------------------


@rule("INV-C4", c.ACK)
def only_what_was_delivered(state: State, ack: Any) -> Finding:
    """Only what was delivered is acknowledged: to this consumer, now or in an earlier registration.

    A cumulative one may name an entry before the first: the one before a batch that was begun, or entry -1.
    """
    consumer = state.consumer
    if consumer is None or not consumer.persistent:
        return None
    if ack.ack_type == CUMULATIVE:
        for ledger_id, entry_id, _ in ack.message_ids:
            if (ledger_id, entry_id) > consumer.memory.highest:
                highest = consumer.memory.highest
                return f"up to {ledger_id}:{entry_id}, delivered was up to {highest[0]}:{highest[1]}"
        return None
    delivered = consumer.delivered
    for ledger_id, entry_id, _ in ack.message_ids:
        position = (ledger_id, entry_id)
        if position not in delivered and not consumer.known(position):
            return f"{ledger_id}:{entry_id} was never delivered"
    return None


def _batch_size(consumer: ObservedConsumer, position: Position) -> int | None:
    """Messages of the batch, 0 for an entry that is none, None where that is not known."""
    delivery = consumer.delivered.get(position)
    if delivery is not None:
        return delivery.count
    delivery = consumer.acknowledged.get(position)
    return consumer.memory.earlier.get(position) if delivery is None else delivery.count


@rule("CHECK-72", c.ACK, traits=ACK_SET)
def sets_fit_their_batch(state: State, ack: Any) -> Finding:
    """An ack_set belongs to a batch and has no bit beyond it."""
    consumer = state.consumer
    if consumer is None:
        return None
    for ledger_id, entry_id, bits in ack.message_ids:
        if bits is not None:
            size = _batch_size(consumer, (ledger_id, entry_id))
            if size == 0:
                return f"an ack_set for {ledger_id}:{entry_id}, which is no batch"
            if size is not None and bits >> size:
                return f"an ack_set of {bits.bit_length()} bits for a batch of {size}"
    return None


@rule("CHECK-73", c.ACK, traits=ACK_SET)
def sets_acknowledge_something(state: State, ack: Any) -> Finding:
    """An ack_set acknowledges at least one message: some bit of the batch is clear."""
    consumer = state.consumer
    if consumer is None:
        return None
    for ledger_id, entry_id, bits in ack.message_ids:
        if bits is not None:
            size = _batch_size(consumer, (ledger_id, entry_id))
            if size and bits == (1 << size) - 1:
                return f"the ack_set for {ledger_id}:{entry_id} leaves all of {size} messages open"
    return None


# --- REDELIVER -------------------------------------------------------------------------------------


@rule("REDEL-05", c.REDELIVER)
def redelivery_is_bounded(state: State, redeliver: Any) -> Finding:
    """At most 1 000 ids are asked for in one command, and they name entries."""
    count = len(redeliver.message_ids)
    if count > MAX_REDELIVER_IDS:
        return f"{count} ids"
    for each in redeliver.message_ids:
        if each.batch_index != -1:
            return f"{each.ledgerId}:{each.entryId} has the batch index {each.batch_index}"
    return None


@rule("REDEL-02", c.REDELIVER)
def exclusive_consumers_ask_for_everything(state: State, redeliver: Any) -> Finding:
    """On Exclusive and Failover everything is asked for, without ids."""
    consumer = state.consumer
    if consumer is None or not consumer.single_active or not redeliver.message_ids:
        return None
    return f"{len(redeliver.message_ids)} ids on an exclusive or failover subscription"


@rule("INV-C9", c.REDELIVER)
def only_what_is_open_is_asked_for(state: State, redeliver: Any) -> Finding:
    """Asked for is only what was delivered to this consumer and is not acknowledged.

    Of an entry that came more than once an application may hold several copies, and give each another fate.
    """
    consumer = state.consumer
    if consumer is None or not consumer.persistent:
        return None
    for each in redeliver.message_ids:
        position = (signed(each.ledgerId), signed(each.entryId))
        if position in consumer.delivered:
            continue
        acknowledged = consumer.acknowledged.get(position)
        if acknowledged is not None and not acknowledged.again:
            return f"{position[0]}:{position[1]} is acknowledged"
        if not consumer.known(position):
            return f"{position[0]}:{position[1]} was never delivered"
    return None
