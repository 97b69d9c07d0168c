"""Change the state for each frame, after the rules have seen the frame.

`PREPARE` finds the producer, consumer, request and entry of a frame for all rules at once. It gives the
traits that set the frame apart (`traits`). `TRACK` changes the state. Both are tables by command number.
"""

from collections.abc import Callable
from typing import Any

from .. import commands as c
from ..findings import Side
from ..questions import ask
from ..state.producer import ObservedProducer
from ..state.state import State, Step
from ..traits import (
    ACK_SET,
    AGAIN,
    CHUNK,
    DISCARD,
    EPOCH,
    MARKER,
    REDELIVERED,
    TRANSACTION,
    UNSETTLED,
)
from . import consumers as track_consumers
from . import producers as track_producers
from . import requests as track_requests
from . import transactions as track_transactions
from .producers import find_sent

# --- before the rules ------------------------------------------------------------------------------


def _prepare_send(state: State, send: Any) -> int:
    producer = state.producer = state.producers.get(send.producer_id)
    entry = state.entry = state.memory.topics.entries[send.payload]
    traits = entry.traits
    if producer is None:
        traits |= UNSETTLED
    else:
        producer.match = -1
        if producer.resent < len(producer.resend):
            _match_resend(producer, send, state)
            if producer.match >= 0:
                traits |= AGAIN
        if (
            producer.open_since < 0
            or producer.closing >= 0
            or producer.closed_by_broker >= 0
            or producer.waiting
        ):
            traits |= UNSETTLED
    if send.marker:
        traits |= MARKER
    if send.is_chunk:
        traits |= CHUNK
    if send.txnid_most_bits is not None or send.txnid_least_bits is not None:
        traits |= TRANSACTION
    return traits


def _match_resend(producer: ObservedProducer, send: Any, state: State) -> None:
    metadata = state.entry.metadata
    chunk = -1 if metadata is None or metadata.chunk_id is None else metadata.chunk_id
    key = (send.sequence_id, chunk)
    for index in range(producer.resent, len(producer.resend)):
        if producer.resend[index].key == key:
            producer.match = index
            return


def _prepare_message(state: State, message: Any) -> int:
    consumer = state.consumers.get(message.consumer_id)
    if consumer is not None and consumer.previous is not None:
        consumer = consumer.previous
    state.consumer = consumer
    entry = state.entry = state.memory.topics.entries[message.payload]
    position = state.position = (message.ledger_id, message.entry_id)
    traits = entry.traits
    if consumer is None:
        traits |= UNSETTLED
    else:
        state.before = consumer.delivered.get(position)
        if state.before is not None:
            traits |= AGAIN
        if (
            consumer.open_since < 0
            or consumer.closed_by_broker >= 0
            or consumer.ended
            or consumer.active is False
            or not consumer.granted
        ):
            traits |= UNSETTLED
    if message.ack_set is not None:
        traits |= ACK_SET
    if message.consumer_epoch is not None:
        traits |= EPOCH
    if message.redelivery_count:
        traits |= REDELIVERED
    return traits


def _prepare_of_producer(state: State, command: Any) -> int:
    state.producer = state.producers.get(command.producer_id)
    return 0


def _prepare_receipt(state: State, receipt: Any) -> int:
    _prepare_send_error(state, receipt)
    producer = state.producer
    state.sent_at = -1 if producer is None else find_sent(producer, receipt.sequence_id)
    return 0


def _prepare_send_error(state: State, answer: Any) -> int:
    producer = state.producers.get(answer.producer_id)
    if producer is not None and producer.previous is not None:
        producer = producer.previous
    state.producer = producer
    return 0


def _prepare_of_consumer(state: State, command: Any) -> int:
    consumer = state.consumer = state.consumers.get(command.consumer_id)
    if consumer is None or consumer.open_since < 0 or consumer.closing >= 0 or consumer.closed_by_broker >= 0:
        return UNSETTLED
    return 0


def _prepare_ack(state: State, ack: Any) -> int:
    traits = _prepare_of_consumer(state, ack)
    if ack.validation_error is not None:
        traits |= DISCARD
    if ack.txnid_most_bits is not None or ack.txnid_least_bits is not None:
        traits |= TRANSACTION
    for _, _, ack_set in ack.message_ids:
        if ack_set is not None:
            return traits | ACK_SET
    return traits


def _prepare_answer(state: State, answer: Any) -> int:
    request = state.request = state.general.get(answer.request_id)
    return UNSETTLED if request is None else 0


def _prepare_lookup_answer(state: State, answer: Any) -> int:
    request = state.request = state.lookups.get(answer.request_id)
    return UNSETTLED if request is None else 0


def _prepare_error(state: State, error: Any) -> int:
    return _prepare_answer(state, error) and _prepare_lookup_answer(state, error)


PREPARE: dict[int, Callable[[State, Any], int]] = {
    c.SEND: _prepare_send,
    c.MESSAGE: _prepare_message,
    c.ERROR: _prepare_error,
    c.SEND_RECEIPT: _prepare_receipt,
    c.SEND_ERROR: _prepare_send_error,
    c.ACK: _prepare_ack,
    **dict.fromkeys((c.PRODUCER, c.CLOSE_PRODUCER), _prepare_of_producer),
    **dict.fromkeys(
        (
            c.SUBSCRIBE, c.FLOW, c.UNSUBSCRIBE, c.SEEK, c.REDELIVER, c.CONSUMER_STATS,
            c.GET_LAST_MESSAGE_ID, c.CLOSE_CONSUMER, c.ACTIVE_CONSUMER_CHANGE, c.REACHED_END_OF_TOPIC,
        ),
        _prepare_of_consumer,
    ),
    **dict.fromkeys(c.ANSWER_KINDS - c.LOOKUP_ANSWERS - {c.ERROR}, _prepare_answer),
    **dict.fromkeys(c.LOOKUP_ANSWERS, _prepare_lookup_answer),
}  # fmt: skip

# --- after the rules -------------------------------------------------------------------------------


def _close_producer(state: State, close: Any) -> None:
    if state.side is Side.CLIENT:
        ask(state, c.CLOSE_PRODUCER, close)
        if state.producer is not None:
            state.producer.closing = state.frame
    elif state.producer is not None:
        state.producer.closed_by_broker = state.frame


def _close_consumer(state: State, close: Any) -> None:
    if state.side is Side.CLIENT:
        ask(state, c.CLOSE_CONSUMER, close)
        if state.consumer is not None:
            state.consumer.closing = state.frame
            state.consumer.unsubscribing = False
    elif state.consumer is not None:
        state.consumer.closed_by_broker = state.frame


TRACK: dict[int, Step] = {
    **track_requests.STEPS,
    **track_transactions.STEPS,
    **track_producers.STEPS,
    **track_consumers.STEPS,
    c.CLOSE_PRODUCER: _close_producer,
    c.CLOSE_CONSUMER: _close_consumer,
}
