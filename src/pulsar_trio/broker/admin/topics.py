"""Topics: create, grow, list, unload, terminate, delete, look inside; and where to find one (`/lookup`).

The statuses and most reasons are those of a Java broker of version 4.0.
"""

from typing import Any

from pulsar_sansio import (
    AlreadyExists,
    InUse,
    InvalidConfiguration,
    LimitReached,
    NotApplicable,
    NotFound,
    StatsOptions,
    TopicName,
)

from .messages import (
    NO_CONTENT,
    PARTITIONED_METADATA,
    Answer,
    Refused,
    Request,
    answering,
    json_answer,
    message_id_json,
    properties,
    whole_number,
)
from .routes import AdministeredBroker, Route, both_domains

TOPIC = "/admin/v2/{domain}/{tenant}/{namespace}/{topic}"

EXISTS = (AlreadyExists, 409, "This topic already exists")
NO_COMPACTION = (NotApplicable, 405, "Compaction is possible on a persistent topic without partitions only")
NO_NAMESPACE = (NotFound, 404, "Namespace not found")


def _not_found(topic: str) -> tuple[type[NotFound], int, str]:
    return NotFound, 404, f"Topic {topic} not found"


def _no_single_topic(topic: str) -> tuple[type[NotApplicable], int, str]:
    """The refusal for a partitioned topic: only its partitions have stats and a last message."""
    return NotApplicable, 404, f"Topic {topic} not found"


# --- lists --------------------------------------------------------------------------------------------


def list_topics(broker: AdministeredBroker, request: Request) -> Answer:
    domain = request.text("domain")
    with answering((NotFound, 404, "Namespace does not exist")):
        names = broker.machine.topic_administration.topics(request.namespace)
    return json_answer([name for name in names if name.startswith(f"{domain}://")])


def list_partitioned(broker: AdministeredBroker, request: Request) -> Answer:
    domain = request.text("domain")
    with answering((NotFound, 404, "Namespace does not exist")):
        names = broker.machine.topic_administration.partitioned_topics(request.namespace)
    return json_answer([name for name in names if name.startswith(f"{domain}://")])


# --- topics without partitions ------------------------------------------------------------------------


def create(broker: AdministeredBroker, request: Request) -> Answer:
    topic = request.topic
    given = properties(request.json() or {}) if request.body else {}
    name = TopicName.parse(topic)
    wrong = (InvalidConfiguration, 412, "" if name.partition < 0 else _no_parent(name))
    with answering(EXISTS, NO_NAMESPACE, wrong):
        broker.command(broker.machine.topic_administration.create_topic, topic, given)
    return NO_CONTENT


def _no_parent(name: TopicName) -> str:
    return (
        f"Can't create topic {name.local} with \"-partition-\" followed by numeric value if there isn't a "
        f"partitioned topic {name.base.local} created, or it has fewer partitions."
    )


def delete(broker: AdministeredBroker, request: Request) -> Answer:
    topic = request.topic
    with answering(_not_found(topic)):
        if broker.machine.topic_administration.topic_partitions(topic):
            raise Refused(
                409,
                f"{topic} is a partitioned topic, instead of calling delete topic, please call "
                "delete-partitioned-topic.",
            )
        broker.command(broker.machine.topic_administration.delete_topic, topic, request.flag("force"))
    return NO_CONTENT


def read_properties(broker: AdministeredBroker, request: Request) -> Answer:
    topic = _persistent(request)
    with answering(_not_found(topic)):
        return json_answer(broker.machine.administration.topic_properties(topic))


def update_properties(broker: AdministeredBroker, request: Request) -> Answer:
    """Properties that are not named stay; without a body nothing changes."""
    topic = _persistent(request)
    given = properties(request.json() or {}) if request.body else {}
    with answering(_not_found(topic)):
        broker.command(broker.machine.administration.update_topic_properties, topic, given)
    return NO_CONTENT


def remove_property(broker: AdministeredBroker, request: Request) -> Answer:
    topic = _persistent(request)
    if "key" not in request.query:
        raise Refused(400, "key: the property to remove, in the query")
    with answering(_not_found(topic)):
        broker.command(broker.machine.administration.remove_topic_property, topic, request.query["key"])
    return NO_CONTENT


def _persistent(request: Request) -> str:
    if request.text("domain") != "persistent":
        raise Refused(406, "Need to provide a persistent topic name")
    return request.topic


# --- partitioned topics -------------------------------------------------------------------------------


def create_partitioned(broker: AdministeredBroker, request: Request) -> Answer:
    topic = request.topic
    given: Any = request.json()
    found: dict[str, str] = {}
    if request.content_type == PARTITIONED_METADATA:
        if not isinstance(given, dict):
            raise Refused(400, f"the body has to be a JSON object, not {given!r:.200}")
        given, found = given.get("partitions"), properties(given.get("properties") or {})
    partitions = whole_number(given)
    if partitions <= 0:
        raise Refused(406, "Number of partitions should be more than 0")
    _check_base_name(topic)
    with answering(EXISTS, NO_NAMESPACE, (LimitReached, 412, ""), (InvalidConfiguration, 406, "")):
        broker.command(broker.machine.topic_administration.create_partitioned_topic, topic, partitions, found)
    return NO_CONTENT


def _check_base_name(topic: str) -> None:
    if TopicName.parse(topic).partition >= 0:
        raise Refused(412, "Partitioned Topic Name should not contain '-partition-'")


def read_partitions(broker: AdministeredBroker, request: Request) -> Answer:
    topic = request.topic
    coordinators = broker.machine.coordinators.partitions_of(TopicName.parse(topic))
    if coordinators is not None:
        return json_answer({"partitions": coordinators, "deleted": False})
    with answering((NotFound, 404, "Namespace not found")):
        broker.machine.topic_administration.topics(request.namespace)
    with answering(_not_found(topic)):
        if request.flag("checkAllowAutoCreation"):
            return json_answer(broker.command(broker.machine.topic_administration.partitions_for_use, topic))
        return json_answer(broker.machine.topic_administration.partitions_metadata(topic))


def grow(broker: AdministeredBroker, request: Request) -> Answer:
    topic = request.topic
    partitions = whole_number(request.json())
    _check_base_name(topic)
    with answering(NO_NAMESPACE):
        broker.machine.topic_administration.topics(request.namespace)
    not_partitioned = f"Topic {topic} is not the partitioned topic."
    with answering((NotFound, 409, not_partitioned), (InvalidConfiguration, 422, "")):
        present = broker.machine.topic_administration.topic_partitions(topic)
        if not present:
            raise Refused(409, not_partitioned)
        if partitions < present:
            raise Refused(
                422, f"Desired partitions {partitions} can't be less than the current partitions {present}."
            )
        if partitions > present:
            broker.command(broker.machine.topic_administration.update_partitions, topic, partitions)
    return NO_CONTENT


def delete_partitioned(broker: AdministeredBroker, request: Request) -> Answer:
    topic = request.topic
    with answering((NotFound, 404, f"Topic {topic} not found.")):
        if not broker.machine.topic_administration.topic_partitions(topic):
            raise Refused(
                409,
                f"{topic} is a non-partitioned topic. Instead of calling delete-partitioned-topic please "
                "call delete.",
            )
        broker.command(broker.machine.topic_administration.delete_topic, topic, request.flag("force"))
    return NO_CONTENT


# --- unloading and ending -----------------------------------------------------------------------------


def unload(broker: AdministeredBroker, request: Request) -> Answer:
    topic = request.topic
    with answering(_not_found(topic)):
        broker.command(broker.machine.topic_administration.unload, topic)
    return NO_CONTENT


def terminate(broker: AdministeredBroker, request: Request) -> Answer:
    topic = _persistent(request)
    partitioned = (NotApplicable, 405, "Termination of a partitioned topic is not allowed")
    with answering(_not_found(topic), partitioned):
        return json_answer(
            message_id_json(broker.command(broker.machine.topic_administration.terminate, topic))
        )


def terminate_partitions(broker: AdministeredBroker, request: Request) -> Answer:
    topic = _persistent(request)
    name = TopicName.parse(topic)
    with answering(_not_found(topic)):
        partitions = broker.machine.topic_administration.topic_partitions(topic)
        if not partitions:
            raise Refused(
                405,
                "Termination of a non-partitioned topic is not allowed using partitioned-terminate, please "
                "use terminate commands",
            )
        names = [str(name.partition_name(index)) for index in range(partitions)]
        for each in names:
            broker.machine.subscription_administration.subscriptions(
                each
            )  # one may have been deleted by itself: then none is terminated
        last = {
            str(index): message_id_json(broker.command(broker.machine.topic_administration.terminate, each))
            for index, each in enumerate(names)
        }
    return json_answer(last)


def compact(broker: AdministeredBroker, request: Request) -> Answer:
    running = (InUse, 409, "Compaction already in progress")
    with answering(_not_found(request.topic), running, NO_COMPACTION):
        broker.command(broker.machine.topic_administration.compact, request.topic)
    return NO_CONTENT


def compaction_status(broker: AdministeredBroker, request: Request) -> Answer:
    partitioned = _no_single_topic(request.topic) if request.text("domain") == "persistent" else NO_COMPACTION
    with answering(_not_found(request.topic), partitioned):
        status, error = broker.machine.topic_administration.compaction_status(request.topic)
    return json_answer({"status": status, "lastError": error})


# --- looking ------------------------------------------------------------------------------------------


def _options(request: Request) -> StatsOptions:
    return StatsOptions(
        publishers=not request.flag("excludePublishers"),
        consumers=not request.flag("excludeConsumers"),
        earliest_time=request.flag("getEarliestTimeInBacklog"),
    )


def stats(broker: AdministeredBroker, request: Request) -> Answer:
    topic = request.topic
    with answering(_not_found(topic), _no_single_topic(topic)):
        return json_answer(broker.machine.topic_administration.stats(topic, _options(request)))


def partitioned_stats(broker: AdministeredBroker, request: Request) -> Answer:
    topic = request.topic
    reason = f"Partitioned Topic {topic} not found"
    with answering((NotFound, 404, reason), (NotApplicable, 404, reason)):
        each = request.query.get("perPartition", "true").lower() != "false"
        return json_answer(
            broker.machine.topic_administration.partitioned_stats(topic, _options(request), each)
        )


def internal_stats(broker: AdministeredBroker, request: Request) -> Answer:
    topic = request.topic
    with answering(_not_found(topic), _no_single_topic(topic)):
        return json_answer(broker.machine.topic_administration.internal_stats(topic))


def partitioned_internal_stats(broker: AdministeredBroker, request: Request) -> Answer:
    topic = request.topic
    reason = f"Partitioned Topic {topic} not found"
    with answering((NotFound, 404, reason), (NotApplicable, 404, reason)):
        return json_answer(broker.machine.topic_administration.partitioned_internal_stats(topic))


def last_message_id(broker: AdministeredBroker, request: Request) -> Answer:
    topic = request.topic
    if request.text("domain") != "persistent":
        raise Refused(405, "Get last message id on a non-persistent topic is not allowed")
    with answering(_not_found(topic), _no_single_topic(topic)):
        return json_answer(message_id_json(broker.machine.topic_administration.last_message_id(topic)))


# --- where it is --------------------------------------------------------------------------------------


def lookup(broker: AdministeredBroker, request: Request) -> Answer:
    """LookupData. The last two fields are always there: old C++ clients fail without them.

    A persistent topic that does not exist and that no client may create has the status 404, as in Pulsar.
    """
    _check_lookup(broker, request)
    config = broker.machine.config
    found: dict[str, Any] = {"brokerUrl": config.service_url}
    if config.service_url_tls is not None:
        found["brokerUrlTls"] = config.service_url_tls
    found |= {"httpUrl": config.web_service_url, "nativeUrl": config.service_url}
    if config.web_service_url_tls is not None:
        found["httpUrlTls"] = config.web_service_url_tls
    return json_answer(found | {"brokerUrlSsl": config.service_url_tls or ""})


def lookup_bundle(broker: AdministeredBroker, request: Request) -> Answer:
    """One broker has no need to divide a namespace: there is one bundle."""
    with answering(_NO_NAMESPACE):
        broker.machine.topic_administration.topics(TopicName.parse(request.topic).namespace_name)
    return Answer(200, WHOLE_BUNDLE.encode())


WHOLE_BUNDLE = "0x00000000_0xffffffff"


_NO_NAMESPACE = (NotFound, 404, "Namespace not found")


def _check_lookup(broker: AdministeredBroker, request: Request) -> None:
    topic = request.topic
    if broker.machine.coordinators.is_coordinator(TopicName.parse(topic)):
        return
    with answering(_NO_NAMESPACE):
        usable = broker.machine.topic_administration.has_or_may_create(topic)
    if not usable and request.text("domain") == "persistent":
        raise Refused(404, f"Topic not found {topic}")


ROUTES: list[Route] = both_domains(
    [
        ("GET", "/admin/v2/{domain}/{tenant}/{namespace}", list_topics),
        ("GET", "/admin/v2/{domain}/{tenant}/{namespace}/partitioned", list_partitioned),
        ("PUT", TOPIC, create),
        ("DELETE", TOPIC, delete),
        ("GET", f"{TOPIC}/properties", read_properties),
        ("PUT", f"{TOPIC}/properties", update_properties),
        ("DELETE", f"{TOPIC}/properties", remove_property),
        ("GET", f"{TOPIC}/partitions", read_partitions),
        ("PUT", f"{TOPIC}/partitions", create_partitioned),
        ("POST", f"{TOPIC}/partitions", grow),
        ("DELETE", f"{TOPIC}/partitions", delete_partitioned),
        ("PUT", f"{TOPIC}/unload", unload),
        ("PUT", f"{TOPIC}/compaction", compact),
        ("GET", f"{TOPIC}/compaction", compaction_status),
        ("POST", f"{TOPIC}/terminate", terminate),
        ("POST", f"{TOPIC}/terminate/partitions", terminate_partitions),
        ("GET", f"{TOPIC}/stats", stats),
        ("GET", f"{TOPIC}/partitioned-stats", partitioned_stats),
        ("GET", f"{TOPIC}/internalStats", internal_stats),
        ("GET", f"{TOPIC}/partitioned-internalStats", partitioned_internal_stats),
        ("GET", f"{TOPIC}/lastMessageId", last_message_id),
        ("GET", "/lookup/v2/topic/{domain}/{tenant}/{namespace}/{topic}", lookup),
        ("GET", "/lookup/v2/topic/{domain}/{tenant}/{namespace}/{topic}/bundle", lookup_bundle),
    ]
)
