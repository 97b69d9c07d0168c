"""What each frame changes in the state, after the rules have seen it.

`PREPARE` finds what a frame is about (its producer, consumer, request, entry) for all rules at once; `TRACK`
moves the state on. Both are tables by command number.
"""

from typing import Any

from . import commands as c
from . import track_consumers, track_producers, track_requests
from .findings import Side
from .questions import ask
from .state import Producer, State, Step

# --- before the rules ------------------------------------------------------------------------------


def _prepare_send(state: State, send: Any) -> None:
    producer = state.producer = state.producers.get(send.producer_id)
    state.entry = state.memory.topics.entries[send.payload]
    if producer is not None:
        producer.match = -1
        if producer.resent < len(producer.resend):
            _match_resend(producer, send, state)


def _match_resend(producer: Producer, send: Any, state: State) -> None:
    metadata = state.entry.metadata
    chunk = -1 if metadata is None or metadata.chunk_id is None else metadata.chunk_id
    key = (send.sequence_id, chunk)
    for index in range(producer.resent, len(producer.resend)):
        if producer.resend[index].key == key:
            producer.match = index
            return


def _prepare_message(state: State, message: Any) -> None:
    consumer = state.consumers.get(message.consumer_id)
    if consumer is not None and consumer.previous is not None:
        consumer = consumer.previous
    state.consumer = consumer
    state.entry = state.memory.topics.entries[message.payload]


def _prepare_of_producer(state: State, command: Any) -> None:
    state.producer = state.producers.get(command.producer_id)


def _prepare_receipt(state: State, answer: Any) -> None:
    producer = state.producers.get(answer.producer_id)
    if producer is not None and producer.previous is not None:
        producer = producer.previous
    state.producer = producer


def _prepare_of_consumer(state: State, command: Any) -> None:
    state.consumer = state.consumers.get(command.consumer_id)


def _prepare_answer(state: State, answer: Any) -> None:
    state.request = state.general.get(answer.request_id)


def _prepare_lookup_answer(state: State, answer: Any) -> None:
    state.request = state.lookups.get(answer.request_id)


def _prepare_error(state: State, error: Any) -> None:
    request = state.general.get(error.request_id)
    state.request = request if request is not None else state.lookups.get(error.request_id)


PREPARE: dict[int, Step] = {
    c.SEND: _prepare_send,
    c.MESSAGE: _prepare_message,
    c.ERROR: _prepare_error,
    c.SEND_RECEIPT: _prepare_receipt,
    c.SEND_ERROR: _prepare_receipt,
    **dict.fromkeys((c.PRODUCER, c.CLOSE_PRODUCER), _prepare_of_producer),
    **dict.fromkeys(
        (
            c.SUBSCRIBE, c.ACK, c.FLOW, c.UNSUBSCRIBE, c.SEEK, c.REDELIVER, c.CONSUMER_STATS,
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
    **track_producers.STEPS,
    **track_consumers.STEPS,
    c.CLOSE_PRODUCER: _close_producer,
    c.CLOSE_CONSUMER: _close_consumer,
}
