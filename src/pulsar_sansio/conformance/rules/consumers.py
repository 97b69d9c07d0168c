"""Rules about opening consumers, and about which commands may name them when."""

from typing import Any

from .. import commands as c
from ..findings import Finding, Side
from ..registry import rule
from ..state.consumer import ObservedConsumer
from ..state.state import State, is_open
from ..traits import UNSETTLED

MAX_METADATA = 1024
"""Characters of a consumer's properties, keys and values together."""
HASH_RANGE = 65536

_OF_CONSUMERS = (
    c.FLOW, c.ACK, c.REDELIVER, c.SEEK, c.UNSUBSCRIBE, c.GET_LAST_MESSAGE_ID, c.CONSUMER_STATS,
)  # fmt: skip

# --- SUBSCRIBE -------------------------------------------------------------------------------------


@rule("CHECK-55", c.SUBSCRIBE)
def consumer_ids_are_free(state: State, command: Any) -> Finding:
    """A consumer is not opened under an id that is open on the connection."""
    consumer = state.consumer
    if consumer is None or not is_open(consumer):
        return None
    return f"consumer {command.consumer_id} is open since frame {consumer.open_since}"


@rule("CLIENT-13", c.SUBSCRIBE)
def subscriptions_have_a_name(state: State, command: Any) -> Finding:
    """A subscription's name is not blank."""
    return None if command.subscription.strip() else "the subscription's name is blank"


@rule("CONS-03", c.SUBSCRIBE)
def consumer_names_stay(state: State, command: Any) -> Finding:
    """A consumer's name stays the same over reconnects."""
    known = state.memory.consumers.get(command.consumer_id)
    if known is None or known.topic != command.topic or known.name == command.consumer_name:
        return None
    return f"the consumer was {known.name!r}, now it is {command.consumer_name!r}"


@rule("CONS-10", c.SUBSCRIBE)
def durable_consumers_have_no_start(state: State, command: Any) -> Finding:
    """SUBSCRIBE of a durable consumer has no start id, its cursor decides."""
    return (
        "durable, with start_message_id" if command.durable and command.HasField("start_message_id") else None
    )


@rule("SUBT-12", c.SUBSCRIBE)
def compacted_reading(state: State, command: Any) -> Finding:
    """Reading compacted needs Exclusive or Failover and a persistent topic."""
    if not command.read_compacted:
        return None
    if command.topic.startswith("non-persistent:"):
        return "read_compacted of a topic that is not persistent"
    return "read_compacted with a shared type" if command.subType in (c.SHARED, c.KEY_SHARED) else None


@rule("CFG-224", c.SUBSCRIBE)
def metadata_is_small(state: State, command: Any) -> Finding:
    """A consumer's properties have at most 1 024 characters in all."""
    size = sum(len(pair.key) + len(pair.value) for pair in command.metadata)
    return None if size <= MAX_METADATA else f"properties of {size} characters"


@rule("CHECK-56", c.SUBSCRIBE)
def sticky_ranges_are_ranges(state: State, command: Any) -> Finding:
    """Sticky hash ranges are given, lie in 0 to 65 535, begin before they end, and do not overlap."""
    meta = command.keySharedMeta
    if not command.HasField("keySharedMeta") or meta.keySharedMode != 1 or command.subType != c.KEY_SHARED:
        return None
    if not meta.hashRanges:
        return "sticky without ranges"
    last = -1
    for start, end in sorted((each.start, each.end) for each in meta.hashRanges):
        if not 0 <= start <= end < HASH_RANGE:
            return f"the range {start} to {end}"
        if start <= last:
            return f"the ranges overlap at {start}"
        last = end
    return None


@rule("INV-C8", c.SUBSCRIBE, c.REDELIVER)
def consumer_epochs_grow(state: State, command: Any) -> Finding:
    """The consumer epoch never goes back: a request to redeliver raises it, a new subscribe keeps it.

    For Shared and Key_Shared it has no meaning, and is written as 0. A Failover consumer that becomes active
    may repeat its request, which the broker ignores while the consumer is not. It may have raised the epoch
    before it reads that it is active.
    """
    if not command.HasField("consumer_epoch"):
        return None
    if state.kind == c.SUBSCRIBE:
        known = state.memory.consumers.get(command.consumer_id)
        if known is None or known.topic != command.topic or command.consumer_epoch >= known.epoch:
            return None
        return f"consumer epoch {command.consumer_epoch} after {known.epoch}"
    consumer = state.consumer
    if consumer is None or not consumer.single_active or command.consumer_epoch > consumer.memory.epoch:
        return None
    if consumer.redelivery.activations and command.consumer_epoch == consumer.memory.epoch:
        return None
    return f"consumer epoch {command.consumer_epoch} after {consumer.memory.epoch}"


# --- commands that name a consumer -----------------------------------------------------------------


def _gone(state: State, consumer_id: int) -> str:
    return state.gone_consumers.get(consumer_id, "")


@rule("CHECK-57", *_OF_CONSUMERS, traits=UNSETTLED)
def consumers_are_subscribed_first(state: State, command: Any) -> Finding:
    """FLOW, ACK and the like name a consumer whose SUBSCRIBE has succeeded."""
    consumer = state.consumer
    if consumer is None:
        if _gone(state, command.consumer_id) in ("closed", "unsubscribed") or state.consumers.overflowed:
            return None
        return f"consumer {command.consumer_id} is not subscribed"
    return None if consumer.open_since >= 0 else f"consumer {command.consumer_id} is not subscribed yet"


@rule("CHECK-58", *_OF_CONSUMERS, traits=UNSETTLED)
def nothing_after_the_close(state: State, command: Any) -> Finding:
    """Nothing names a consumer after the client's own CLOSE_CONSUMER.

    What still arrives meanwhile and cannot be read may be discarded. After UNSUBSCRIBE the consumer may go
    on: it does when the client has given up waiting for the answer."""
    consumer = state.consumer
    if consumer is not None:
        if consumer.closing < 0 or consumer.unsubscribing:
            return None
        if state.kind == c.ACK and command.validation_error is not None:
            return None
        return f"consumer {command.consumer_id} is being closed since frame {consumer.closing}"
    if _gone(state, command.consumer_id) != "closed":
        return None
    return f"consumer {command.consumer_id} is closed"


@rule("CHECK-59", *_OF_CONSUMERS, traits=UNSETTLED)
def nothing_after_the_brokers_close(state: State, command: Any) -> Finding:
    """Nothing names a consumer once the client has read the broker's CLOSE_CONSUMER."""
    consumer = state.consumer
    if consumer is None or not 0 <= consumer.closed_by_broker < state.read_by_client:
        return None
    return f"consumer {command.consumer_id} was closed by the broker in frame {consumer.closed_by_broker}"


@rule("CHECK-60", c.ACTIVE_CONSUMER_CHANGE, c.REACHED_END_OF_TOPIC, c.CLOSE_CONSUMER, side=Side.BROKER)
def news_name_a_consumer(state: State, command: Any) -> Finding:
    """A command that the broker pushes about a consumer names one that is open."""
    consumer = state.consumer
    if state.consumers.overflowed or (consumer is not None and consumer.closed_by_broker < 0):
        return None
    return f"consumer {command.consumer_id} is not open"


@rule("SUBT-05", c.ACTIVE_CONSUMER_CHANGE)
def only_failover_changes(state: State, change: Any) -> Finding:
    """Failover consumers, and no others, are told whether they are active."""
    consumer = state.consumer
    if consumer is None or consumer.type == c.FAILOVER:
        return None
    return f"consumer {change.consumer_id} is not of type Failover"


# --- closing ---------------------------------------------------------------------------------------


@rule("CHECK-61", c.CLOSE_PRODUCER, c.CLOSE_CONSUMER, side=Side.CLIENT)
def closed_things_were_opened(state: State, close: Any) -> Finding:
    """A client closes only what it has asked for on the connection."""
    if state.kind == c.CLOSE_PRODUCER:
        known = state.producer is not None or close.producer_id in state.gone_producers
        return (
            None if known or state.gone_producers.overflowed else f"producer {close.producer_id} is unknown"
        )
    known = state.consumer is not None or close.consumer_id in state.gone_consumers
    return None if known or state.gone_consumers.overflowed else f"consumer {close.consumer_id} is unknown"


@rule("CHECK-62", c.CLOSE_PRODUCER, c.CLOSE_CONSUMER, c.UNSUBSCRIBE, side=Side.CLIENT)
def closed_once(state: State, close: Any) -> Finding:
    """The client does not ask for a close again while it lasts, except after UNSUBSCRIBE.

    A client that got no answer to its UNSUBSCRIBE in time may try again.
    """
    consumer = state.consumer
    thing = state.producer if state.kind == c.CLOSE_PRODUCER else consumer
    if thing is None or thing.closing < 0:
        return None
    if state.kind != c.CLOSE_PRODUCER and consumer is not None and consumer.unsubscribing:
        return None
    return f"it is being closed since frame {thing.closing}"


@rule("CHECK-63", c.CLOSE_PRODUCER, side=Side.BROKER)
def closed_producers_were_open(state: State, close: Any) -> Finding:
    """The broker's CLOSE_PRODUCER names a producer that is open."""
    producer = state.producer
    if state.producers.overflowed or (producer is not None and producer.closed_by_broker < 0):
        return None
    return f"producer {close.producer_id} is not open"


@rule("GAP-37", c.CLOSE_PRODUCER, c.CLOSE_CONSUMER, side=Side.BROKER)
def notices_ask_for_nothing(state: State, close: Any) -> Finding:
    """The broker's close is a notice: its request id is -1."""
    return None if close.request_id == c.NONE_ID else f"the request id is {close.request_id}"


@rule("CHECK-64", c.TOPIC_MIGRATED)
def migrated_things_are_open(state: State, migrated: Any) -> Finding:
    """TOPIC_MIGRATED names something that is open, and where it has gone."""
    things: Any = state.producers if migrated.resource_type == migrated.Producer else state.consumers
    if migrated.resource_id not in things and not things.overflowed:
        return f"resource {migrated.resource_id} is not open"
    if migrated.brokerServiceUrl or migrated.brokerServiceUrlTls:
        return None
    return "neither brokerServiceUrl nor brokerServiceUrlTls"


@rule("CHECK-65", c.SUCCESS)
def receipts_precede_the_close(state: State, success: Any) -> Finding:
    """CLOSE_PRODUCER is answered after everything sent before it."""
    request = state.request
    if request is None or request.kind != c.CLOSE_PRODUCER:
        return None
    producer = state.producers.get(request.command.producer_id)
    if producer is None or producer.open_since < 0 or producer.closed_by_broker >= 0 or producer.closing < 0:
        return None
    if not producer.pending or producer.pending[0].frame > request.frame:
        return None
    return f"sequence id {producer.pending[0].sequence_id} has no answer yet"


# --- SEEK ------------------------------------------------------------------------------------------


@rule("WIRE-15", c.SEEK)
def seeks_have_a_target(state: State, seek: Any) -> Finding:
    """SEEK has a message id or a publish time."""
    if seek.HasField("message_id") or seek.HasField("message_publish_time"):
        return None
    return "SEEK without message_id and message_publish_time"


@rule("SEEK-01", c.SEEK)
def one_seek_at_a_time(state: State, seek: Any) -> Finding:
    """One seek at a time: none is outstanding for the consumer.

    A client that has sent a PING since then may have given up waiting.
    """
    consumer = state.consumer
    if consumer is None or consumer.seeking < 0 or state.keepalive.last_of_client > consumer.seeking:
        return None
    return f"the SEEK of frame {consumer.seeking} is not answered"


@rule("GAP-35", c.SUCCESS)
def seeks_close_first(state: State, success: Any) -> Finding:
    """A seek closes the consumers of the subscription before it succeeds; of a Failover one the active.

    On a topic that is not persistent a seek does nothing.
    """
    request = state.request
    if request is None or request.kind != c.SEEK:
        return None
    consumer: ObservedConsumer | None = state.consumers.get(request.command.consumer_id)
    if consumer is None or consumer.frame > request.frame or consumer.closed_by_broker > request.frame:
        return None
    if not consumer.persistent or (consumer.type == c.FAILOVER and not consumer.active):
        return None
    return None if consumer.closing >= 0 else f"consumer {consumer.consumer_id} was not closed"
