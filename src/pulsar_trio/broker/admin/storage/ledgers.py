"""Ledgers and cursors of topics over HTTP: describe, measure, truncate, trim."""

from typing import Any

from pulsar_sansio import LimitReached, MessageId, NotApplicable, NotFound

from ..messages import (
    NO_CONTENT,
    Answer,
    Refused,
    Request,
    answering,
    json_answer,
    message_id_json,
    path_number,
    whole_number,
)
from ..routes import AdministeredBroker, Route, both_domains
from ..topics import NO_NAMESPACE, TOPIC

BY_INDEX = "GetMessageIDByIndex"


def _not_found(request: Request) -> tuple[type[NotFound], int, str]:
    return NotFound, 404, f"Topic {request.topic} not found"


def _check_namespace(broker: AdministeredBroker, request: Request) -> None:
    with answering(NO_NAMESPACE):
        broker.machine.topic_administration.topics(request.namespace)


def internal_info(broker: AdministeredBroker, request: Request) -> Answer:
    _check_namespace(broker, request)
    volatile = (NotApplicable, 405, "Internal info on a non-persistent topic is not allowed")
    with answering(_not_found(request), volatile):
        return json_answer(broker.machine.storage_administration.internal_info(request.topic))


def backlog(broker: AdministeredBroker, request: Request) -> Answer:
    no_single_topic = (NotApplicable, 405, "The backlog is that of a persistent topic without partitions")
    with answering(NO_NAMESPACE, no_single_topic):
        found = broker.machine.storage_administration.stored_backlog(request.topic)
    url = str(broker.machine.config.web_service_url)
    return json_answer(found | {"brokerName": url.partition("://")[2].rpartition(":")[0]})


def backlog_size(broker: AdministeredBroker, request: Request) -> Answer:
    position = _position(request.json())
    partitioned = (NotApplicable, 405, "calculate backlog size is not allowed for partitioned-topic")
    with answering(_not_found(request)):
        broker.machine.topic_administration.topic_partitions(request.topic)
    if request.text("domain") != "persistent":
        raise Refused(405, "Calculate backlog size on a non-persistent topic is not allowed")
    with answering(partitioned):
        return json_answer(broker.machine.storage_administration.backlog_size(request.topic, position))


def _position(value: Any) -> MessageId:
    """Read a message id; only its ledger and its entry count. Raises `Refused`."""
    if not isinstance(value, dict):
        raise Refused(400, f"the body has to be a message id, not {value!r:.200}")
    return MessageId(whole_number(value.get("ledgerId"), 64), whole_number(value.get("entryId"), 64))


def message_id_by_index(broker: AdministeredBroker, request: Request) -> Answer:
    """Answer as Pulsar 4.1 does; 4.0 lacks the path."""
    if not broker.machine.config.broker_entry_metadata:
        raise Refused(412, f"{BY_INDEX} is not allowed when broker entry metadata is disabled")
    index = path_number(request.query.get("index", ""), signed=True)
    if index < 0:
        raise Refused(404, f"Invalid message index: {index}")
    _check_namespace(broker, request)
    with answering(_not_found(request)):
        partitions = broker.machine.topic_administration.topic_partitions(request.topic)
    if request.text("domain") != "persistent":
        raise Refused(405, "Get message id by index on a non-persistent topic is not allowed")
    if partitions:
        raise Refused(
            405,
            f"{BY_INDEX} is not allowed on partitioned-topic, please try do it on specific topic partition",
        )
    with answering((NotFound, 404, "")):
        found = broker.machine.storage_administration.message_id_at_index(request.topic, index)
    return json_answer(message_id_json(found) | {"partitionIndex": found.partition})


def truncate(broker: AdministeredBroker, request: Request) -> Answer:
    if request.text("domain") != "persistent":
        raise Refused(412, "unsupport truncate")
    with answering(_not_found(request)):
        broker.command(broker.machine.storage_administration.truncate, request.topic)
    return NO_CONTENT


def trim(broker: AdministeredBroker, request: Request) -> Answer:
    if request.text("domain") != "persistent":
        raise Refused(405, "Trim on a non-persistent topic is not allowed")
    with answering(_not_found(request)):
        broker.command(broker.machine.storage_administration.trim, request.topic)
    return Answer(200)


def create_missed_partitions(broker: AdministeredBroker, request: Request) -> Answer:
    with answering((NotFound, 404, f"Topic {request.topic} does not exist"), (LimitReached, 412, "")):
        create = broker.machine.topic_administration.create_missing_partitions
        broker.command(create, request.topic)
    return NO_CONTENT


ROUTES: list[Route] = both_domains(
    [
        ("GET", f"{TOPIC}/internal-info", internal_info),
        ("GET", f"{TOPIC}/backlog", backlog),
        ("PUT", f"{TOPIC}/backlogSize", backlog_size),
        ("GET", f"{TOPIC}/getMessageIdByIndex", message_id_by_index),
        ("DELETE", f"{TOPIC}/truncate", truncate),
        ("POST", f"{TOPIC}/trim", trim),
        ("POST", f"{TOPIC}/createMissedPartitions", create_missed_partitions),
    ]
)
