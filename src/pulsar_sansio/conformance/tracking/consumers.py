"""Change the state for SUBSCRIBE, FLOW, deliveries and acknowledgements."""

from typing import Any

from ...wire import CUMULATIVE
from .. import commands as c
from ..memory import ConsumerMemory, Position
from ..questions import answered, ask, cancel
from ..state.consumer import ObservedConsumer
from ..state.delivery import Delivery
from ..state.request import ObservedRequest
from ..state.state import State, Step, is_open
from .transactions import acknowledges

# --- opening and closing ---------------------------------------------------------------------------


def _subscribe(state: State, command: Any) -> None:
    request = ask(state, c.SUBSCRIBE, command)
    consumer_id = command.consumer_id
    if is_open(state.consumers.get(consumer_id)):
        request.again = True
        return
    memories = state.memory.consumers
    memory = memories.get(consumer_id)
    if memory is None or (memory.topic, memory.subscription) != (command.topic, command.subscription):
        memory = memories[consumer_id] = ConsumerMemory(
            command.topic, command.subscription, command.consumer_name
        )
    if command.HasField("consumer_epoch"):
        memory.epoch = max(memory.epoch, command.consumer_epoch)
    before: ObservedConsumer | None = memory.registration
    if before is not None:
        for position, delivery in before.delivered.items():
            memory.earlier[position] = delivery.count
        for position, delivery in before.acknowledged.items():
            memory.earlier[position] = delivery.count
        if before.delivered.overflowed or before.acknowledged.overflowed:
            memory.earlier.overflowed = True
    consumer = ObservedConsumer(consumer_id, command, memory, state.frame)
    memory.registration = consumer
    before = state.consumers.get(consumer_id)
    if before is not None and before.closing >= 0:
        before.previous = None
        consumer.previous = before
    state.consumers[consumer_id] = consumer
    state.gone_consumers.pop(consumer_id, None)


def opened_consumer(state: State, request: ObservedRequest) -> None:
    """SUCCESS of a SUBSCRIBE."""
    consumer = state.consumers.get(request.command.consumer_id)
    if consumer is not None and consumer.frame == request.frame:
        consumer.open_since = state.frame
        consumer.previous = None


def closed_consumer(state: State, request: ObservedRequest) -> None:
    """SUCCESS of a CLOSE_CONSUMER or an UNSUBSCRIBE."""
    consumer_id = request.command.consumer_id
    consumer = state.consumers.get(consumer_id)
    if consumer is not None and consumer.closing >= 0:
        cancel(state, consumer.frame)
        del state.consumers[consumer_id]
        # One that showed no sign of having been opened may be tried again by a client that gave up waiting.
        if consumer.granted and state.memory.consumers.get(consumer_id) is consumer.memory:
            del state.memory.consumers[consumer_id]
        state.gone_consumers[consumer_id] = "closed" if request.kind == c.CLOSE_CONSUMER else "unsubscribed"
    elif consumer is not None:
        consumer.previous = None


def refused_consumer(state: State, request: ObservedRequest) -> None:
    """ERROR of a SUBSCRIBE, a CLOSE_CONSUMER or an UNSUBSCRIBE."""
    consumer_id = request.command.consumer_id
    consumer = state.consumers.get(consumer_id)
    if consumer is None:
        return
    if request.kind != c.SUBSCRIBE:
        consumer.closing = -1
    elif consumer.frame == request.frame:
        del state.consumers[consumer_id]
        if consumer.previous is not None:
            state.consumers[consumer_id] = consumer.previous
        else:
            state.gone_consumers[consumer_id] = "refused"


def _unsubscribe(state: State, unsubscribe: Any) -> None:
    ask(state, c.UNSUBSCRIBE, unsubscribe)
    if state.consumer is not None:
        state.consumer.closing = state.frame
        state.consumer.unsubscribing = True


def _seek(state: State, seek: Any) -> None:
    ask(state, c.SEEK, seek)
    if state.consumer is not None:
        state.consumer.seeking = state.frame
        state.consumer.ended = False


def sought(state: State, request: ObservedRequest) -> None:
    """Either answer of a SEEK."""
    consumer = state.consumers.get(request.command.consumer_id)
    if consumer is not None and consumer.seeking == request.frame:
        consumer.seeking = -1


# --- delivering ------------------------------------------------------------------------------------


def _flow(state: State, flow: Any) -> None:
    consumer = state.consumer
    if consumer is not None:
        if not consumer.granted:
            consumer.granted = True
            consumer.first_grant = flow.message_permits
        consumer.permits += flow.message_permits
        if consumer.open_since > state.read_by_client:
            state.read_by_client = consumer.open_since


def cost(state: State, message: Any) -> int:
    """Permits an entry uses up: its messages, those already acknowledged excepted (GAP-42)."""
    count = state.entry.count
    if message.ack_set is None or state.entry.metadata is None:
        return count
    bits: int = message.ack_set
    return (bits & (1 << count) - 1).bit_count()


def may_be_redelivered(consumer: ObservedConsumer, position: Position, delivery: Delivery) -> bool:
    """Tell whether the client has asked for the entry more often than the broker has redelivered it."""
    return position in consumer.redelivery.entries or delivery.redeliveries_used < consumer.redelivery.all


def _message(state: State, message: Any) -> None:
    consumer = state.consumer
    if consumer is None:
        return
    entry = state.entry
    consumer.permits -= cost(state, message)
    if entry.metadata is None or (message.ack_set is not None and message.ack_set >> entry.count):
        consumer.first_grant = 0  # the checker cannot know what it cost
    position = state.position
    epoch = message.consumer_epoch
    if epoch is not None and epoch > consumer.epoch:
        consumer.epoch = epoch
    if consumer.single_active and position <= consumer.last and consumer.redelivery.rewinds:
        consumer.redelivery.rewinds -= 1
    consumer.last = position
    if position > consumer.memory.highest:
        consumer.memory.highest = position
    if not consumer.persistent:
        return
    unread = consumer.redelivery.unread
    while unread and unread[0] <= state.read_by_broker:
        unread.popleft()
    used = consumer.redelivery.all - len(unread)
    before = consumer.delivered.pop(position, None)
    again = True
    if before is not None:
        used = before.redeliveries_used
        asked = consumer.redelivery.entries.pop(position, 0)
        if asked > 1:
            consumer.redelivery.entries[position] = asked - 1
        elif not asked:
            used += 1
    else:
        done = consumer.acknowledged.pop(position, None)
        again = done is not None or message.redelivery_count > 0
        again = again or position in consumer.memory.earlier
    count = entry.count if entry.batch else 0
    consumer.delivered[position] = Delivery(state.frame, count, message.redelivery_count, used, again)
    digests = state.memory.topics.digests
    key = (consumer.topic, *position)
    if key not in digests and not consumer.compacted:
        digests[key] = entry.digest


def _active_change(state: State, change: Any) -> None:
    if state.consumer is not None:
        state.consumer.active = change.is_active
        # The news that it is no longer active may have arrived together with this one.
        if change.is_active:
            state.consumer.redelivery.activations.append(state.frame)
        state.consumer.redelivery.rewinds += 1


def _end_of_topic(state: State, end: Any) -> None:
    if state.consumer is not None:
        state.consumer.ended = True


# --- acknowledging ---------------------------------------------------------------------------------


def newest_delivery(consumer: ObservedConsumer, ack: Any) -> int:
    """The latest frame that brought one of the acknowledged entries; -1 when that is not known."""
    frame = -1
    for ledger_id, entry_id, _ in ack.message_ids:
        delivery = consumer.delivered.get((ledger_id, entry_id))
        if delivery is not None and delivery.frame > frame:
            frame = delivery.frame
    return frame


def _ack(state: State, ack: Any) -> None:
    request = ask(state, c.ACK, ack) if ack.request_id is not None else None
    consumer = state.consumer
    if consumer is None or not ack.message_ids:
        return
    if consumer.single_active or state.keepalive.of_broker:
        state.read_by_client = max(state.read_by_client, newest_delivery(consumer, ack))
    if ack.txnid_most_bits is not None:
        memory = consumer.memory
        state.memory.topics.transactional[memory.topic, memory.subscription] = None
        acknowledges(state, ack, request)
        return
    if ack.ack_type == CUMULATIVE:
        ledger_id, entry_id, ack_set = ack.message_ids[0]
        # With a set only the entries before this one are acknowledged for certain.
        up_to = (ledger_id, entry_id if ack_set is None else entry_id - 1)
        _acknowledge_up_to(consumer, up_to)
        if request is not None:
            request.up_to = up_to
        return
    for ledger_id, entry_id, ack_set in ack.message_ids:
        if ack_set is None:
            position = (ledger_id, entry_id)
            delivery = consumer.delivered.pop(position, None)
            if delivery is not None:
                consumer.acknowledged[position] = delivery
            if request is not None:
                request.acknowledged.append(position)


def _acknowledge_up_to(consumer: ObservedConsumer, up_to: Position) -> None:
    """Entries lie in ascending order, a rewind having put the later ones behind again."""
    done = []
    for position in consumer.delivered:
        if position > up_to:
            break
        done.append(position)
    for position in done:
        consumer.acknowledged[position] = consumer.delivered.pop(position)


def acknowledged(state: State, answer: Any) -> None:
    """ACK_RESPONSE."""
    request = answered(state, answer)
    if request is None or request.kind != c.ACK or answer.HasField("error"):
        return
    if request.transaction is not None:
        request.transaction.unconfirmed.pop(request, None)
    consumer = state.consumers.get(request.command.consumer_id)
    if consumer is not None and consumer.open_since <= request.frame:
        for position in request.acknowledged:
            consumer.confirmed[position] = None
        if request.up_to is not None:
            consumer.confirmed_up_to = max(consumer.confirmed_up_to, request.up_to)


def signed(number: int) -> int:
    """A ledger or entry as the number it stands for: 2^64-1 is -1."""
    return number - (1 << 64) if number >> 63 else number


def _redeliver(state: State, redeliver: Any) -> None:
    consumer = state.consumer
    if consumer is None:
        return
    consumer.redelivery.rewinds += 1
    activations = consumer.redelivery.activations
    if redeliver.HasField("consumer_epoch"):
        consumer.has_epoch = True
        if redeliver.consumer_epoch > consumer.memory.epoch:
            consumer.memory.epoch = redeliver.consumer_epoch
            while activations and activations[0] <= state.read_by_client:
                activations.popleft()
        elif activations:
            activations.popleft()
    if not redeliver.message_ids:
        consumer.redelivery.all += 1
        consumer.redelivery.unread.append(state.frame)
    for each in redeliver.message_ids:
        position = (signed(each.ledgerId), signed(each.entryId))
        consumer.redelivery.entries[position] = consumer.redelivery.entries.get(position, 0) + 1


STEPS: dict[int, Step] = {
    c.SUBSCRIBE: _subscribe,
    c.UNSUBSCRIBE: _unsubscribe,
    c.SEEK: _seek,
    c.FLOW: _flow,
    c.MESSAGE: _message,
    c.ACTIVE_CONSUMER_CHANGE: _active_change,
    c.REACHED_END_OF_TOPIC: _end_of_topic,
    c.ACK: _ack,
    c.REDELIVER: _redeliver,
}
