"""Producing over HTTP (`POST /topics/…`): one answer with the result of each message."""

import json
from typing import Any

from pulsar_sansio import (
    InvalidConfiguration,
    LimitReached,
    LocalProtocolError,
    NewMessage,
    NotApplicable,
    NotFound,
    TopicName,
)

from ..messages import Answer, Refused, Request, answering, json_answer, path_number, properties, whole_number
from ..routes import AdministeredBroker, Route, both_domains

_PATH = "/topics/{domain}/{tenant}/{namespace}/{topic}"

FAILED = "Fail to publish message: "

PRODUCER = "Rest Producer"
"""The name of producers of messages that name none, as in a Java broker."""

NOT_STORED = 2
"""The `errorCode` of a message that the topic refused, as a Java broker has it."""

TEXTS = {"STRING": "STRING", "BYTES": "NONE", "NONE": "NONE"}
"""Types whose payload is the text as it is -> their names in the registry."""

UTF_8 = '{"type":"STRING","properties":{"__charset":"UTF-8"}}'
"""The schema of texts, as Java's clients register it."""

INTEGERS = {"INT8": 1, "INT16": 2, "INT32": 4, "INT64": 8}
"""Types whose payload is a whole number, and its bytes."""


def produce(broker: AdministeredBroker, request: Request) -> Answer:
    """Publish each message to the next partition in turn, whatever its key, as a Java broker does."""
    topic = request.topic
    with answering((NotFound, 404, f"{FAILED}Topic {topic} not found")):
        partitions = broker.machine.topic_administration.topic_partitions(topic)
    name = TopicName.parse(topic)
    names = [str(name.partition_name(index)) for index in range(partitions)] or [topic]
    return _publish(broker, request, names)


def produce_to_partition(broker: AdministeredBroker, request: Request) -> Answer:
    topic, partition = request.topic, path_number(request.text("partition"))
    with answering((NotFound, 404, f"{FAILED}Topic {topic} not found")):
        partitions = broker.machine.topic_administration.topic_partitions(topic)
    if partition >= partitions:
        raise Refused(404, f"{FAILED}Topic {topic} has no partition {partition}")
    return _publish(broker, request, [str(TopicName.parse(topic).partition_name(partition))])


def _publish(broker: AdministeredBroker, request: Request, topics: list[str]) -> Answer:
    given = request.json_object()
    messages = given.get("messages")
    if not isinstance(messages, list) or not all(isinstance(each, dict) for each in messages):
        raise Refused(400, f"messages: a list of objects, not {messages!r:.200}")
    producer = given.get("producerName") or PRODUCER
    if not isinstance(producer, str):
        raise Refused(400, f"producerName: a text, not {producer!r:.200}")
    if request.text("domain") != "persistent":
        raise Refused(501, "producing to a non-persistent topic is not implemented by this broker")
    kind, version = _schema(broker, request, given)
    prepared = [_message(broker, each, producer, kind, version) for each in messages]
    results = []
    for number, message in enumerate(prepared):
        result: dict[str, Any] = {"errorCode": 0, "schemaVersion": version}
        try:
            publish = broker.machine.message_administration.publish
            found = broker.command(publish, topics[number % len(topics)], message)
            result["messageId"] = f"{found.ledger_id}:{found.entry_id}:{found.partition}"
        except LocalProtocolError as error:
            partition = TopicName.parse(topics[number % len(topics)]).partition
            result |= {"errorCode": NOT_STORED, "errorMsg": str(error), "messageId": str(partition)}
        results.append(result)
    return json_answer({"messagePublishResults": results, "schemaVersion": version})


# --- schemas ------------------------------------------------------------------------------------------


def _schema(broker: AdministeredBroker, request: Request, given: dict[str, Any]) -> tuple[str, int]:
    """Return the type of the payloads and the version of their schema, which is registered now unless the
    body names a version. Raises `Refused`."""
    schemas = broker.machine.schema_administration
    version = whole_number(given.get("schemaVersion", -1), 64)
    if version >= 0:
        with answering((NotFound, 404, f"{FAILED}the topic has no schema of version {version}")):
            return _known_type(schemas.schema(request.topic, version)["type"]), version
    if given.get("keySchema"):
        raise Refused(501, "keySchema: pairs of a key and a value are not implemented by this broker")
    text = given.get("valueSchema") or UTF_8
    try:
        value = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        raise Refused(400, "Fail to add or retrieve schema.")
    kind = _known_type(value["type"])
    described = properties(value.get("properties") or {})
    refusals = ((NotApplicable, 409, ""), (LimitReached, 409, ""), (InvalidConfiguration, 422, ""))
    with answering(*refusals):
        registered = TEXTS.get(kind, kind)
        version = broker.command(schemas.register_schema, request.topic, registered, "", described, True)
    return kind, version


def _known_type(kind: str) -> str:
    if kind not in TEXTS and kind not in INTEGERS:
        raise Refused(501, f"producing values of the type {kind:.100} is not implemented by this broker")
    return kind


# --- messages -----------------------------------------------------------------------------------------


def _message(
    broker: AdministeredBroker, given: dict[str, Any], producer: str, kind: str, version: int
) -> NewMessage:
    """Read one message of the body. Raises `Refused`."""
    payload, key = given.get("payload"), given.get("key")
    if not isinstance(payload, str) or not isinstance(key, str | None):
        raise Refused(400, "payload and key of a message have to be texts")
    now = broker.machine.wall_time
    deliver_at = whole_number(given.get("deliverAt") or 0, 64)
    delay = whole_number(given.get("deliverAfterMs") or 0, 64)
    numbers = {name: whole_number(given.get(name) or 0, 64) for name in ("sequenceId", "eventTime")}
    if min(deliver_at, delay, *numbers.values()) < 0 or now + delay >= 1 << 63:
        raise Refused(400, "sequenceId, eventTime, deliverAt and deliverAfterMs have to be 0 or more")
    return NewMessage(
        _encoded(payload, kind),
        producer,
        version,
        numbers["sequenceId"],
        key or None,
        properties(given.get("properties") or {}),
        numbers["eventTime"],
        deliver_at or (now + delay if delay else None),
    )


def _encoded(payload: str, kind: str) -> bytes:
    size = INTEGERS.get(kind)
    if size is None:
        try:
            return payload.encode()
        except UnicodeEncodeError:
            raise Refused(400, "a payload has no UTF-8 form") from None
    return whole_number(payload, 8 * size).to_bytes(size, "big", signed=True)


ROUTES: list[Route] = both_domains(
    [
        ("POST", _PATH, produce),
        ("POST", f"{_PATH}/partitions/{{partition}}", produce_to_partition),
    ]
)
