"""The contents of a workload's messages: sizes, keys, properties, empty and null payloads, delays.

Owns the draw of one message, both as the reference model records it and as the client takes it.
"""

from pulsar_sansio.model.config import OutgoingMessage

from ..engine.profile import ProducerPlan
from ..engine.randomness import Stream
from ..model.records.producer_record import ProducerRecord
from ..model.records.sent import Sent
from ..model.schemas.definition import Definition
from ..model.schemas.topic_schemas import TopicSchemas
from ..model.schemas.written_value import WrittenValue
from .interceptor_probes import MARK

LONGEST_DELAY = 3000
"""Milliseconds until a delayed message is to be delivered, at most."""


def written(
    stream: Stream,
    plan: ProducerPlan,
    record: ProducerRecord,
    number: int,
    wall_time: int,
    schemas: TopicSchemas | None = None,
) -> tuple[Sent, bytes | OutgoingMessage]:
    """Make message `number` of a producer. `wall_time`: milliseconds since 1970. `schemas`: those of the
    world, where messages have values."""
    key: str | bytes | None
    if schemas is None or record.definition is None:
        sent, message = _contents(stream, plan, record, number)
        key = sent.key
    else:
        sent, message = _value(stream, plan, record, number, schemas, record.definition)
        key = message.key
        if message.has_base64_key:
            key = (sent.dispatch_key or "").encode()
    given = sent.properties
    if "changes" in plan.interceptors:
        sent.properties = {**given, MARK: "yes"}
    if plan.delayed_permille and stream.chance(plan.delayed_permille):
        sent.deliver_at = wall_time + stream.below(LONGEST_DELAY)
    if plan.explicit or sent.deliver_at is not None:
        message = OutgoingMessage(
            sent.payload,
            key=key,
            properties=given,
            event_time=sent.event_time,
            schema=None if isinstance(message, bytes) else message.schema,
            sequence_id=number if plan.explicit else None,
            deliver_at=sent.deliver_at,
        )
    return sent, message


def _contents(
    stream: Stream, plan: ProducerPlan, record: ProducerRecord, number: int
) -> tuple[Sent, bytes | OutgoingMessage]:
    name = f"{record.tag}/{number}"
    if not stream.chance(plan.rich_permille):
        size = stream.below(plan.largest)
        payload = name.encode() + b"." * size
        if plan.chunk_size:  # a chunked message is known by its property
            properties = {"n": name}
            return (
                Sent(record, number, payload, None, properties, 0),
                OutgoingMessage(payload, properties=properties),
            )
        return Sent(record, number, payload, None, {}, 0), payload
    choice = stream.below(6)
    contents: bytes | None = name.encode()
    properties = {"n": name}
    if choice == 0:
        contents = b""
    elif choice == 1:
        contents = None
    elif choice == 2:
        properties = {}
    key = f"key-{stream.below(8)}" if stream.chance(700) else None
    event_time = stream.below(2**40) if stream.chance(300) else 0
    message = OutgoingMessage(contents, key=key, properties=properties, event_time=event_time)
    return Sent(record, number, contents, key, properties, event_time), message


def _value(
    stream: Stream,
    plan: ProducerPlan,
    record: ProducerRecord,
    number: int,
    schemas: TopicSchemas,
    definition: Definition,
) -> tuple[Sent, OutgoingMessage]:
    """Make a message with a value of a definition, or a null value."""
    name = f"{record.tag}/{number}"
    own = definition
    if not plan.explicit:
        definition = schemas.for_message(own, number)
    rich = stream.chance(plan.rich_permille)
    properties = {"n": name} if rich or plan.chunk_size else {}
    is_null = rich and not plan.chunk_size and stream.chance(200)
    text = name if rich else name + "." * stream.below(plan.largest)
    keyed = schemas.plan.kind == "pairs" or (rich and stream.chance(700))
    key = f"key-{stream.below(8)}" if keyed else None
    event_time = stream.below(2**40) if rich and stream.chance(300) else 0
    value = schemas.value(definition, number, text)
    message = OutgoingMessage(
        None if is_null else schemas.payload(definition, value, key),
        key=key.encode() if key is not None and schemas.plan.kind == "pairs" else key,
        properties=properties,
        event_time=event_time,
        schema=None if definition is own else schemas.schemas[definition],
    )
    sent = Sent(record, number, message.payload, message.key, properties, event_time)
    sent.has_base64_key = message.has_base64_key
    sent.written = WrittenValue(definition, value)
    return sent, message
