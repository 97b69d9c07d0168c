"""Change the state for PRODUCER, SEND and their answers."""

from typing import Any

from .. import commands as c
from ..entries import ObservedEntry
from ..memory import ProducerMemory, UnansweredSend
from ..questions import answered, ask, cancel
from ..state.producer import ObservedProducer
from ..state.request import ObservedRequest
from ..state.state import State, Step, is_open
from .transactions import transaction_of

# --- opening and closing ---------------------------------------------------------------------------


def _producer(state: State, command: Any) -> None:
    request = ask(state, c.PRODUCER, command)
    if command.producer_access_mode == c.EXCLUSIVE_WITH_FENCING:
        state.memory.topics.fenced[command.topic] = None
    producer_id = command.producer_id
    if is_open(state.producers.get(producer_id)):
        request.again = True
        return
    memories = state.memory.producers
    memory = memories.get(producer_id)
    if memory is None or memory.topic != command.topic:
        memory = memories[producer_id] = ProducerMemory(command.topic)
    memory.epoch = command.epoch
    if command.producer_name:
        memory.name = command.producer_name
    before: ObservedProducer | None = memory.registration
    producer = ObservedProducer(producer_id, command, memory, state.frame)
    if before is not None:
        producer.resend = list(before.pending)
        if not before.abandoned:
            producer.resend += before.resend[before.resent :]
    memory.registration = producer
    before = state.producers.get(producer_id)
    if before is not None and (before.closing >= 0 or before.closed_by_broker >= 0):
        before.previous = None
        producer.previous = before
    state.producers[producer_id] = producer
    state.gone_producers.pop(producer_id, None)


def _producer_success(state: State, success: Any) -> None:
    request = state.request
    if request is None or request.kind != c.PRODUCER:
        return
    producer = state.producers.get(request.command.producer_id)
    if producer is not None and producer.frame == request.frame:
        memory = producer.memory
        producer.name = success.producer_name
        producer.stored_up_to = success.last_sequence_id
        if not request.command.producer_name:
            if len(memory.fresh_names) < 64:
                memory.fresh_names.add(success.producer_name)
            memory.name = success.producer_name
        if success.HasField("topic_epoch") and len(memory.topic_epochs) < 1024:
            memory.topic_epochs.add(success.topic_epoch)
        learn_schema(state, producer.topic, success.schema_version)
        producer.waiting = not success.producer_ready
        if success.producer_ready:
            producer.open_since = state.frame
            producer.previous = None
    if success.producer_ready:
        answered(state, success)
    else:
        request.waiting = True


def closed_producer(state: State, request: ObservedRequest) -> None:
    """SUCCESS of a CLOSE_PRODUCER."""
    producer_id = request.command.producer_id
    producer = state.producers.get(producer_id)
    if producer is not None and producer.closing >= 0:
        cancel(state, producer.frame)
        del state.producers[producer_id]
        # One that showed no sign of having been opened may be tried again by a client that gave up waiting.
        used = producer.last_sequence is not None
        if used and state.memory.producers.get(producer_id) is producer.memory:
            del state.memory.producers[producer_id]
        state.gone_producers[producer_id] = "closed"
    elif producer is not None and producer.previous is not None:
        producer.previous = None


def refused_producer(state: State, request: ObservedRequest) -> None:
    """ERROR of a PRODUCER or a CLOSE_PRODUCER."""
    producer_id = request.command.producer_id
    producer = state.producers.get(producer_id)
    if producer is None:
        return
    if request.kind == c.CLOSE_PRODUCER:
        producer.closing = -1
    elif producer.frame == request.frame:
        del state.producers[producer_id]
        if producer.previous is not None:
            state.producers[producer_id] = producer.previous
        else:
            state.gone_producers[producer_id] = "refused"


def learn_schema(state: State, topic: str, version: bytes) -> None:
    if version:
        versions = state.memory.topics.schema_versions
        known = versions.get(topic)
        if known is None:
            known = versions[topic] = set()
        if len(known) < 256:
            known.add(version)


# --- sending ---------------------------------------------------------------------------------------


def _send(state: State, send: Any) -> None:
    producer = state.producer
    if producer is None:
        return
    entry = state.entry
    metadata = entry.metadata
    memory = producer.memory
    chunk = -1
    if producer.open_since >= 0:
        memory.name_proved = True
        if producer.open_since > state.read_by_client:
            state.read_by_client = producer.open_since
    if metadata is not None:
        if metadata.chunk_id is not None:
            chunk = metadata.chunk_id
            _track_chunk(memory, entry, chunk)
            if memory.refused.get(send.sequence_id) == chunk:
                del memory.refused[send.sequence_id]
        if metadata.encryption_keys:
            param = metadata.encryption_param or b""
            for key in metadata.encryption_keys:
                memory.nonces[key.value, param] = entry.digest
    sequence_id = send.sequence_id
    highest = send.highest_sequence_id
    last = producer.last_sequence
    not_above = last is not None and sequence_id <= last and chunk <= 0
    if last is None or sequence_id > last:
        producer.last_sequence = sequence_id if highest is None or highest < sequence_id else highest
    transaction = transaction_of(state, send)
    sent = UnansweredSend(sequence_id, highest, chunk, entry.digest, state.frame, not_above, transaction)
    producer.pending.append(sent)
    if transaction is not None:
        what = f"message {sequence_id} of producer {producer.producer_id}"
        transaction.unconfirmed[producer.producer_id, *sent.key] = what
    if producer.match >= 0:
        producer.resent = producer.match + 1
    elif producer.resent < len(producer.resend) and sequence_id > producer.resend[-1].sequence_id:
        producer.abandoned = True


def _track_chunk(memory: ProducerMemory, entry: ObservedEntry, chunk: int) -> None:
    metadata = entry.metadata
    assert metadata is not None
    uuid = metadata.uuid or ""
    before = memory.chunk
    if before is not None and before[0] == uuid and chunk <= before[1]:
        return  # sent again
    if chunk == 0:
        memory.chunk_bytes = len(entry.payload)
        memory.chunk_version = metadata.schema_version or b""
    elif before is None or before[0] != uuid or memory.chunk_bytes < 0:
        memory.chunk_bytes = -1
    else:
        memory.chunk_bytes += len(entry.payload)
    memory.chunk = (uuid, chunk, metadata.num_chunks_from_msg or 0, metadata.total_chunk_msg_size or 0)


def _receipt(state: State, receipt: Any) -> None:
    producer = state.producer
    if producer is None:
        return
    if state.sent_at >= 0:
        sent = producer.pending[state.sent_at]
        if sent.transaction is not None:
            sent.transaction.unconfirmed.pop((producer.producer_id, *sent.key), None)
    ledger_id, entry_id = receipt.ledger_id, receipt.entry_id
    if ledger_id is not None and ledger_id >= 0 and (ledger_id, entry_id) <= producer.last_id:
        return  # said twice: it is none of the next chunk, which has the same sequence id
    if state.sent_at < 0:
        return
    del producer.pending[state.sent_at]
    state.read_by_broker = max(state.read_by_broker, sent.frame)
    if ledger_id is not None and ledger_id >= 0 and entry_id >= 0 and producer.persistent:
        producer.last_id = (ledger_id, entry_id)
        if sent.chunk < 0:  # which of the chunks it is for is not known when a receipt was lost (BROKER-40)
            confirmed = max(sent.sequence_id, sent.highest_sequence_id or 0)
            producer.memory.confirmed = max(producer.memory.confirmed, confirmed)
            state.memory.topics.digests[producer.topic, ledger_id, entry_id] = sent.digest


def find_sent(producer: ObservedProducer, sequence_id: int) -> int:
    """The index in the queue of the answer's SEND; -1 when it is not there."""
    for index, sent in enumerate(producer.pending):
        if sent.sequence_id == sequence_id:
            return index
    return -1


def find_refused(producer: ObservedProducer, sequence_id: int) -> int:
    """Return the index in the queue of the refused SEND; -1 when it is not there. SEND_ERROR names the
    highest id of a batch."""
    for index, sent in enumerate(producer.pending):
        if max(sent.sequence_id, sent.highest_sequence_id or 0) == sequence_id:
            return index
    return -1


def _send_error(state: State, error: Any) -> None:
    producer = state.producer
    if producer is None:
        return
    index = find_refused(producer, error.sequence_id)
    if index >= 0:
        sent = producer.pending[index]
        state.read_by_broker = max(state.read_by_broker, sent.frame)
        memory = producer.memory
        if sent.chunk >= 0:
            first = memory.refused.get(sent.sequence_id, sent.chunk)
            memory.refused[sent.sequence_id] = min(first, sent.chunk)
        del producer.pending[index]
    # The client may now send its whole queue again on this connection (PROD-44).
    producer.last_sequence = None


STEPS: dict[int, Step] = {
    c.PRODUCER: _producer,
    c.PRODUCER_SUCCESS: _producer_success,
    c.SEND: _send,
    c.SEND_RECEIPT: _receipt,
    c.SEND_ERROR: _send_error,
}
