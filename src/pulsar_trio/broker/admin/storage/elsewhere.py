"""Copies of topics elsewhere, over HTTP: replicated subscriptions, shadow topics and offloading.

This broker has none of them. Reading says so, and asking for one is 501 with its name.
"""

from pulsar_sansio import NotFound

from ..messages import NO_CONTENT, NOTHING_SET, Answer, Refused, Request, answering, json_answer, truth
from ..routes import AdministeredBroker, Route, both_domains
from ..topics import TOPIC

_STATUS = f"{TOPIC}/subscription/{{subscription}}/replicatedSubscriptionStatus"

NOT_OFFLOADED = {
    "status": "NOT_RUN",
    "lastError": "",
    "firstUnoffloadedMessage": {
        "ledgerId": -1,
        "entryId": -1,
        "partitionIndex": -1,
        "batchSize": 0,
        "batchIndex": -1,
    },
}


def _check_topic(broker: AdministeredBroker, request: Request, volatile: str) -> None:
    """Raises `Refused` for a topic that does not exist, or that is not persistent."""
    if request.text("domain") != "persistent":
        raise Refused(405, volatile)
    with answering((NotFound, 404, f"Topic {request.topic} not found")):
        broker.machine.topic_administration.topic_partitions(request.topic)


def read_replicated(broker: AdministeredBroker, request: Request) -> Answer:
    """Answer for the topic, or for each of its partitions: none has replicated subscriptions."""
    _check_topic(broker, request, "Cannot get replicated subscriptions on non-persistent topics")
    return json_answer(dict.fromkeys(_subscribed(broker, request), False))


def set_replicated(broker: AdministeredBroker, request: Request) -> Answer:
    enabled = truth(request.json())
    _check_topic(broker, request, "Cannot enable/disable replicated subscriptions on non-persistent topics")
    _subscribed(broker, request)
    if enabled:
        raise Refused(501, "replicatedSubscriptionStatus: replication is not implemented by this broker")
    return NO_CONTENT


def _subscribed(broker: AdministeredBroker, request: Request) -> list[str]:
    """Return the topic, or its partitions. Raises `Refused` where one lacks the subscription."""
    subscription = request.text("subscription")
    administration = broker.machine.subscription_administration
    with answering((NotFound, 404, f"Subscription {subscription} not found for topic {request.topic}")):
        return administration.topics_with(request.topic, subscription)


def read_offload(broker: AdministeredBroker, request: Request) -> Answer:
    _check_topic(broker, request, "Offload on a non-persistent topic is not allowed")
    return json_answer(NOT_OFFLOADED)


def offload(broker: AdministeredBroker, request: Request) -> Answer:
    if not request.body:
        raise Refused(400, "messageId is null")
    _check_topic(broker, request, "Offload on a non-persistent topic is not allowed")
    raise Refused(501, "offload: tiered storage is not implemented by this broker")


def no_shadow_topics(broker: AdministeredBroker, request: Request) -> Answer:
    """Answer that there are none; there is nothing to remove, either."""
    _check_topic(broker, request, "Shadow topics of a non-persistent topic are not allowed")
    return NOTHING_SET if request.method in ("GET", "HEAD") else NO_CONTENT


def set_shadow_topics(broker: AdministeredBroker, request: Request) -> Answer:
    _check_topic(broker, request, "Shadow topics of a non-persistent topic are not allowed")
    raise Refused(501, "shadowTopics are not implemented by this broker")


ROUTES: list[Route] = both_domains(
    [
        ("GET", _STATUS, read_replicated),
        ("POST", _STATUS, set_replicated),
        ("GET", f"{TOPIC}/offload", read_offload),
        ("PUT", f"{TOPIC}/offload", offload),
        ("GET", f"{TOPIC}/shadowTopics", no_shadow_topics),
        ("PUT", f"{TOPIC}/shadowTopics", set_shadow_topics),
        ("DELETE", f"{TOPIC}/shadowTopics", no_shadow_topics),
    ]
)
