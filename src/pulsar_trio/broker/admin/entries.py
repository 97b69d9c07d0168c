"""Routes that read single entries of a topic: by id, by their place, and the id at a publish time."""

from pulsar_sansio import NotFound

from .messages import Answer, Refused, Request, answering, json_answer, message_id_json, path_number
from .peeking import entry_answer
from .routes import AdministeredBroker, Route, both_domains
from .topics import TOPIC


def _persistent_topic(broker: AdministeredBroker, request: Request, what: str, not_partitioned: str) -> str:
    """The topic of the path, which has entries. Raises `Refused`."""
    topic = request.topic
    with answering((NotFound, 404, "Namespace not found")):
        broker.machine.topic_administration.topics(request.namespace)
    with answering((NotFound, 404, f"Topic {topic} not found")):
        partitions = broker.machine.topic_administration.topic_partitions(topic)
    if request.text("domain") != "persistent":
        raise Refused(405, f"{what} on a non-persistent topic is not allowed")
    if partitions:
        raise Refused(405, not_partitioned)
    return topic


def read(broker: AdministeredBroker, request: Request) -> Answer:
    ledger_id = path_number(request.text("ledger"), signed=True)
    entry_id = path_number(request.text("entry"), signed=True)
    topic = _persistent_topic(
        broker, request, "GetMessageById", "GetMessageById is not allowed on partitioned-topic"
    )
    with answering((NotFound, 404, "Message id not found")):
        return entry_answer(broker.machine.topic_administration.read_entry(topic, ledger_id, entry_id))


def examine(broker: AdministeredBroker, request: Request) -> Answer:
    """Positions count entries from 1; any other `initialPosition` than `earliest` means the end."""
    topic = _persistent_topic(
        broker,
        request,
        "Examine messages",
        "Examine messages on a partitioned topic is not allowed, please try examine message on specific "
        "topic partition",
    )
    position = max(1, path_number(request.query.get("messagePosition", "1"), signed=True))
    from_end = request.query.get("initialPosition", "latest") != "earliest"
    with answering((NotFound, 412, "Could not examine messages due to the total message is zero")):
        return entry_answer(broker.machine.topic_administration.examine(topic, position, from_end=from_end))


def message_id_at(broker: AdministeredBroker, request: Request) -> Answer:
    timestamp = path_number(request.text("timestamp"), signed=True)
    topic = _persistent_topic(
        broker,
        request,
        "Get message ID by timestamp",
        "Get message ID by timestamp on a partitioned topic is not allowed, please try do it on specific "
        "topic partition",
    )
    found = broker.machine.topic_administration.message_id_at(topic, timestamp)
    return json_answer(message_id_json(found) | {"partitionIndex": found.partition})


ROUTES: list[Route] = both_domains(
    [
        ("GET", f"{TOPIC}/ledger/{{ledger}}/entry/{{entry}}", read),
        ("GET", f"{TOPIC}/examinemessage", examine),
        ("GET", f"{TOPIC}/messageid/{{timestamp}}", message_id_at),
    ]
)
