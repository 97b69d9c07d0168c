"""Rules about opening producers, and about what may be sent when."""

from typing import Any

from .. import commands as c
from ..findings import Blame, Finding, Side
from ..registry import rule
from ..state.state import State, is_open
from ..traits import AGAIN, UNSETTLED

# --- PRODUCER --------------------------------------------------------------------------------------


@rule("CHECK-23", c.PRODUCER)
def producer_ids_are_free(state: State, command: Any) -> Finding:
    """A producer is not opened under an id that is open on the connection."""
    producer = state.producer
    if producer is None or not is_open(producer):
        return None
    return f"producer {command.producer_id} is open since frame {producer.open_since}"


@rule("CLIENT-04", c.PRODUCER, c.SUBSCRIBE)
def ids_belong_to_one_thing(state: State, command: Any) -> Finding:
    """Producer and consumer ids come from counters: none ever passes to another topic or subscription."""
    if state.kind == c.PRODUCER:
        known = state.memory.producers.get(command.producer_id)
        if known is None or known.topic == command.topic:
            return None
        return f"producer {command.producer_id} was one of {known.topic}, now of {command.topic}"
    consumer = state.memory.consumers.get(command.consumer_id)
    if consumer is None or (consumer.topic, consumer.subscription) == (command.topic, command.subscription):
        return None
    return (
        f"consumer {command.consumer_id} was one of {consumer.topic} ({consumer.subscription}), "
        f"now of {command.topic} ({command.subscription})"
    )


@rule("CHECK-24", c.PRODUCER)
def epochs_grow(state: State, command: Any) -> Finding:
    """The epoch in PRODUCER grows with every attempt of the same producer."""
    known = state.memory.producers.get(command.producer_id)
    if known is None or known.epoch is None or known.topic != command.topic or command.epoch > known.epoch:
        return None
    return f"epoch {command.epoch} after {known.epoch}"


@rule("PROD-17", c.PRODUCER)
def the_brokers_name_is_kept(state: State, command: Any) -> Finding:
    """The broker's name is sent on every reconnect, marked as not given by the user."""
    known = state.memory.producers.get(command.producer_id)
    if known is None or known.topic != command.topic or not known.fresh_names:
        return None
    name = command.producer_name
    if not name:
        return f"no name, the broker had given {known.name!r}" if known.name_proved else None
    if name not in known.fresh_names:
        return f"the name is {name!r}, the broker had given {known.name!r}"
    return (
        f"the broker's name {name!r} is marked as the user's" if command.user_provided_producer_name else None
    )


@rule("CHECK-25", c.PRODUCER)
def users_names_are_there(state: State, command: Any) -> Finding:
    """user_provided_producer_name goes with a name."""
    if command.producer_name or not command.user_provided_producer_name:
        return None
    return "user_provided_producer_name without producer_name"


@rule("CHECK-26", c.PRODUCER)
def topic_epochs_are_sent_again(state: State, command: Any) -> Finding:
    """An exclusive producer sends, on every reconnect, the topic epoch that it was granted."""
    known = state.memory.producers.get(command.producer_id)
    epochs: set[int] = set() if known is None or known.topic != command.topic else known.topic_epochs
    if command.HasField("topic_epoch"):
        if command.topic_epoch in epochs or len(epochs) >= 1024:
            return None
        return f"topic_epoch {command.topic_epoch} was never granted"
    if (
        known is None
        or not epochs
        or not known.name_proved
        or command.producer_access_mode not in c.FENCING_MODES
    ):
        return None
    return f"no topic_epoch, granted was {max(epochs)}"


# --- PRODUCER_SUCCESS ------------------------------------------------------------------------------


def _asked(state: State) -> Any:
    """The PRODUCER that is answered, where the answer is about a new registration."""
    request = state.request
    if request is None or request.kind != c.PRODUCER or request.again:
        return None
    return request.command


@rule("BROKER-37", c.PRODUCER_SUCCESS)
def producers_have_a_name(state: State, success: Any) -> Finding:
    """PRODUCER_SUCCESS has a name, generated where none was given."""
    return None if success.producer_name else "producer_name is empty"


@rule("CHECK-27", c.PRODUCER_SUCCESS)
def names_asked_for_are_given(state: State, success: Any) -> Finding:
    """A producer that asked for a name gets that name."""
    asked = _asked(state)
    if asked is None or not asked.producer_name or asked.producer_name == success.producer_name:
        return None
    return f"asked for {asked.producer_name!r}, got {success.producer_name!r}"


@rule("CHECK-28", c.PRODUCER_SUCCESS)
def schema_version_is_there(state: State, success: Any) -> Finding:
    """PRODUCER_SUCCESS has a schema version, empty without schema, and a last sequence id from -1."""
    if not success.HasField("schema_version"):
        return "schema_version is missing"
    return f"last_sequence_id is {success.last_sequence_id}" if success.last_sequence_id < -1 else None


@rule("BROKER-36", c.PRODUCER_SUCCESS)
def only_waiters_wait(state: State, success: Any) -> Finding:
    """Only WaitForExclusive is answered "not ready"."""
    asked = _asked(state)
    if asked is None or success.producer_ready or asked.producer_access_mode == c.WAIT_FOR_EXCLUSIVE:
        return None
    return "producer_ready=false to a producer that does not wait"


@rule("BROKER-35", c.PRODUCER_SUCCESS)
def exclusive_access_has_an_epoch(state: State, success: Any) -> Finding:
    """Exclusive access, once granted, brings a topic epoch."""
    asked = _asked(state)
    if asked is None or not success.producer_ready or asked.producer_access_mode not in c.FENCING_MODES:
        return None
    return None if success.HasField("topic_epoch") else "exclusive access without topic_epoch"


@rule("BROKER-42", c.PRODUCER_SUCCESS)
def names_are_unique(state: State, success: Any) -> Finding:
    """Two producers of one name are never open on one topic; on one connection that shows.

    One that was fenced out is not open, and is not told."""
    asked = _asked(state)
    if asked is None or asked.topic in state.memory.topics.fenced:
        return None
    for producer in state.producers.values():
        if (
            producer.name == success.producer_name
            and producer.topic == asked.topic
            and producer.producer_id != asked.producer_id
            and producer.open_since >= 0
            and producer.closed_by_broker < 0
            and producer.closing < 0
            and producer.mode not in c.FENCING_MODES
        ):
            return f"{success.producer_name!r} is open as producer {producer.producer_id} already"
    return None


@rule("CHECK-79", c.PRODUCER_SUCCESS)
def last_ids_cover_what_was_confirmed(state: State, success: Any) -> Finding:
    """A last sequence id, where there is one, is not below what was confirmed under the name."""
    asked = _asked(state)
    known = None if asked is None else state.memory.producers.get(asked.producer_id)
    if known is None or success.last_sequence_id < 0 or success.last_sequence_id >= known.confirmed:
        return None
    if known.name != success.producer_name:
        return None
    return f"last_sequence_id is {success.last_sequence_id}, confirmed was {known.confirmed}"


# --- when SEND is allowed --------------------------------------------------------------------------


@rule("INV-P10", c.SEND, traits=UNSETTLED)
def nothing_before_success(state: State, send: Any) -> Finding:
    """Nothing is sent on a connection before its PRODUCER_SUCCESS."""
    producer = state.producer
    if producer is None:
        if state.gone_producers.get(send.producer_id) == "closed" or state.producers.overflowed:
            return None
        return f"producer {send.producer_id} is not open"
    if producer.open_since >= 0 or producer.waiting:
        return None
    return f"producer {send.producer_id} has no PRODUCER_SUCCESS yet"


@rule("CHECK-29", c.SEND, traits=UNSETTLED)
def waiters_do_not_send(state: State, send: Any) -> Finding:
    """A producer that waits for exclusive access does not send."""
    producer = state.producer
    if producer is None or not producer.waiting:
        return None
    return f"producer {send.producer_id} waits for exclusive access"


@rule("CHECK-30", c.SEND, traits=UNSETTLED)
def nothing_after_the_close(state: State, send: Any) -> Finding:
    """Nothing is sent after the client's own CLOSE_PRODUCER."""
    producer = state.producer
    if producer is None:
        gone = state.gone_producers.get(send.producer_id) == "closed"
        return f"producer {send.producer_id} is closed" if gone else None
    if producer.closing < 0:
        return None
    return f"producer {send.producer_id} is being closed since frame {producer.closing}"


@rule("CHECK-31", c.SEND, traits=UNSETTLED)
def nothing_after_the_brokers_close(state: State, send: Any) -> Finding:
    """Nothing is sent once the client has read the broker's CLOSE_PRODUCER."""
    producer = state.producer
    if producer is None or not 0 <= producer.closed_by_broker < state.read_by_client:
        return None
    return f"producer {send.producer_id} was closed by the broker in frame {producer.closed_by_broker}"


@rule("PROD-46", c.SEND, traits=AGAIN)
def pending_messages_come_first(state: State, send: Any) -> Finding:
    """After every registration all pending operations are sent again, in order, before anything new.

    A send timeout gives up everything that is pending at its moment: the first ones may be missing, or all.
    Messages of a transaction that has timed out may be missing (rule TXN-06), and then all that follow of it.
    """
    producer = state.producer
    if producer is None or producer.match < 0:
        return None
    again = producer.resend[producer.match]
    if producer.abandoned:
        if again.digest != state.entry.digest:
            return None
        return f"sequence id {send.sequence_id} is sent again after newer messages"
    if not producer.resent:
        return None
    skipped = [
        sent
        for sent in producer.resend[producer.resent : producer.match]
        if sent.chunk < 0 and (sent.transaction is None or sent.transaction is again.transaction)
    ]
    if not skipped:
        return None
    return f"sequence id {send.sequence_id} is sent again, {skipped[0].sequence_id} before it is not"


@rule("CHECK-32", c.SEND, traits=AGAIN)
def sent_again_with_the_same_bytes(state: State, send: Any) -> Finding:
    """A SEND that the producer sends again has the same bytes."""
    producer = state.producer
    if producer is None or producer.match < 0 or producer.abandoned:
        return None
    if producer.resend[producer.match].digest == state.entry.digest:
        return None
    return f"sequence id {send.sequence_id} is sent again with other bytes"


# --- answers to SEND -------------------------------------------------------------------------------


def _no_producer(state: State, producer_id: int) -> str | None:
    producer = state.producer
    if producer is not None:
        return None if producer.open_since >= 0 else f"producer {producer_id} is not open yet"
    return None if state.producers.overflowed else f"producer {producer_id} is not open"


@rule("CHECK-33", c.SEND_RECEIPT, c.SEND_ERROR)
def receipts_have_a_producer(state: State, answer: Any) -> Finding:
    """SEND_RECEIPT and SEND_ERROR name a producer that is open."""
    return _no_producer(state, answer.producer_id)


@rule("CHECK-34", c.SEND_RECEIPT)
def receipts_have_a_send(state: State, receipt: Any) -> Finding:
    """SEND_RECEIPT answers a SEND that has no answer yet, with its sequence id."""
    producer = state.producer
    if producer is None or producer.open_since < 0 or state.sent_at >= 0:
        return None
    if len(producer.pending) == producer.pending.maxlen:
        return None
    return f"no SEND with sequence id {receipt.sequence_id} waits for a receipt"


@rule("BROKER-41", c.SEND_RECEIPT)
def receipts_come_in_order(state: State, receipt: Any) -> Finding:
    """Receipts leave in the order of sending, per producer; those for dropped messages excepted."""
    producer = state.producer
    if producer is None or receipt.ledger_id is None or receipt.ledger_id < 0:
        return None
    if state.sent_at <= 0:
        return None
    return f"the receipt of {receipt.sequence_id} comes before that of {producer.pending[0].sequence_id}"


@rule("CHECK-35", c.SEND_RECEIPT)
def receipts_copy_the_highest_id(state: State, receipt: Any) -> Finding:
    """A receipt has the highest sequence id of its SEND, where that had one."""
    producer = state.producer
    if producer is None:
        return None
    if state.sent_at < 0:
        return None
    highest = producer.pending[state.sent_at].highest_sequence_id
    if highest is None or receipt.highest_sequence_id == highest:
        return None
    return f"highest_sequence_id is {receipt.highest_sequence_id}, SEND had {highest}"


@rule("CONN-08", c.SEND_RECEIPT)
def positions_are_whole(state: State, receipt: Any) -> Finding:
    """A receipt's position is ledger and entry, or -1:-1, or absent; never half of it."""
    ledger_id, entry_id = receipt.ledger_id, receipt.entry_id
    if ledger_id is None or ledger_id >= 0 <= entry_id or ledger_id == entry_id == -1:
        return None
    return f"the position is {ledger_id}:{entry_id}"


@rule("INV-P9", c.SEND_RECEIPT)
def positions_ascend(state: State, receipt: Any) -> Finding:
    """The positions that one producer gets are unique and ascend."""
    producer = state.producer
    if producer is None or not producer.persistent or receipt.ledger_id is None or receipt.ledger_id < 0:
        return None
    if (receipt.ledger_id, receipt.entry_id) > producer.last_id:
        return None
    last = producer.last_id
    return f"position {receipt.ledger_id}:{receipt.entry_id} after {last[0]}:{last[1]}"


@rule("CHECK-36", c.SEND_RECEIPT)
def positions_hold_what_was_sent(state: State, receipt: Any) -> Finding:
    """A receipt's position is not that of another message of the topic."""
    producer = state.producer
    if producer is None or receipt.ledger_id is None or receipt.ledger_id < 0 or not producer.persistent:
        return None
    stored = state.memory.topics.digests.get((producer.topic, receipt.ledger_id, receipt.entry_id))
    if state.sent_at < 0 or stored is None or stored == producer.pending[state.sent_at].digest:
        return None
    return f"position {receipt.ledger_id}:{receipt.entry_id} holds another message"


@rule("BROKER-40", c.SEND_RECEIPT)
def duplicates_are_dropped(state: State, receipt: Any) -> Finding:
    """A broker that has named a last sequence id drops what is not above it, and confirms it as -1:-1."""
    producer = state.producer
    if producer is None or receipt.ledger_id is None or receipt.ledger_id < 0:
        return None
    if receipt.sequence_id > producer.stored_up_to:
        return None
    if state.sent_at < 0 or producer.pending[state.sent_at].chunk >= 0:
        return None
    return f"sequence id {receipt.sequence_id} is stored again, the last one was {producer.stored_up_to}"


@rule("INV-P6", c.SEND_RECEIPT, blames=True)
def sequence_ids_increase(state: State, receipt: Any) -> Finding:
    """Sequence ids strictly increase on one connection; one that does not is right only for a duplicate.

    Applications may give ids of their own, and may repeat them where the broker drops duplicates: the
    broker's answer tells. The chunks of a message share their id, and after a SEND_ERROR the queue may be
    sent again."""
    producer = state.producer
    if producer is None or receipt.ledger_id is None or receipt.ledger_id < 0:
        return None
    if state.sent_at < 0 or not producer.pending[state.sent_at].not_above:
        return None
    sent = producer.pending[state.sent_at]
    text = f"sequence id {sent.sequence_id} is not above those before it, and was not a duplicate"
    return Blame(Side.CLIENT, sent.frame, text)


@rule("CHECK-37", c.SEND_ERROR)
def errors_have_a_send(state: State, error: Any) -> Finding:
    """SEND_ERROR names a SEND that has no answer yet, by the greater of its sequence ids."""
    producer = state.producer
    if producer is None or producer.open_since < 0 or len(producer.pending) == producer.pending.maxlen:
        return None
    for sent in producer.pending:
        if max(sent.sequence_id, sent.highest_sequence_id or 0) == error.sequence_id:
            return None
    return f"no SEND with sequence id {error.sequence_id} waits for an answer"
