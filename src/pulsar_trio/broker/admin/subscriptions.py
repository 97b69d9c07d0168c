"""Subscriptions: list, create, delete, move, look into."""

from functools import partial
from typing import Any

from pulsar_sansio import (
    EARLIEST,
    AlreadyExists,
    InUse,
    LimitReached,
    MessageId,
    NotFound,
)

from .messages import NO_CONTENT, Answer, Refused, Request, answering, json_answer, path_number
from .namespaces.namespaces import NO_NAMESPACE, check_bundle
from .namespaces.policies import NAMESPACE
from .peeking import entry_answer
from .routes import AdministeredBroker, Route, both_domains
from .topics import TOPIC

SUBSCRIPTION = f"{TOPIC}/subscription/{{subscription}}"

LATEST = 2**63 - 1
"""Ledger and entry id that mean the end."""

LONG = range(-(2**63), 2**63)


def list_subscriptions(broker: AdministeredBroker, request: Request) -> Answer:
    topic = request.topic
    with answering((NotFound, 404, f"Topic {topic} not found")):
        return json_answer(broker.machine.subscription_administration.subscriptions(topic))


def create(broker: AdministeredBroker, request: Request) -> Answer:
    """Create a subscription that begins with a whole entry, whatever else is said of the position, as a Java
    broker does."""
    topic = request.topic
    value = request.json() if request.body else "latest"
    properties = value.pop("properties", None) if isinstance(value, dict) else None
    _excluded(value)
    position = _position(value)
    if request.text("domain") != "persistent":
        raise Refused(400, "Create subscription on non-persistent topic can only be done through client")
    if request.flag("replicated"):
        raise Refused(501, "replicated subscriptions are not implemented by this broker")
    exists = (AlreadyExists, 409, "Subscription already exists for topic")
    with answering((NotFound, 404, f"Topic {topic} not found"), exists):
        create = broker.machine.subscription_administration.create_subscription
        broker.command(create, topic, request.text("subscription"), position, _text_for_text(properties))
    return NO_CONTENT


def delete(broker: AdministeredBroker, request: Request) -> Answer:
    with (
        _subscription_of(broker, request),
        answering((InUse, 412, "Subscription has active connected consumers")),
    ):
        broker.command(
            broker.machine.subscription_administration.delete_subscription,
            request.topic,
            request.text("subscription"),
            request.flag("force"),
        )
    return NO_CONTENT


def properties(broker: AdministeredBroker, request: Request) -> Answer:
    with _subscription_of(broker, request):
        return json_answer(
            broker.machine.subscription_administration.subscription_properties(
                request.topic, request.text("subscription")
            )
        )


def set_properties(broker: AdministeredBroker, request: Request) -> Answer:
    given = _text_for_text(request.json())
    with _subscription_of(broker, request):
        command = broker.machine.subscription_administration.set_subscription_properties
        broker.command(command, request.topic, request.text("subscription"), given)
    return NO_CONTENT


def _text_for_text(value: Any) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(isinstance(each, str) for each in value.values()):
        raise Refused(400, f"properties are text for text, not {value!r:.200}")
    return value


def skip_all(broker: AdministeredBroker, request: Request) -> Answer:
    with _subscription_of(broker, request):
        broker.command(
            broker.machine.subscription_administration.skip_messages,
            request.topic,
            request.text("subscription"),
            None,
        )
    return NO_CONTENT


def skip(broker: AdministeredBroker, request: Request) -> Answer:
    count = path_number(request.text("count"))
    with _subscription_of(broker, request):
        if broker.machine.topic_administration.topic_partitions(request.topic):
            raise Refused(405, "Skip messages on a partitioned topic is not allowed")
        broker.command(
            broker.machine.subscription_administration.skip_messages,
            request.topic,
            request.text("subscription"),
            count,
        )
    return NO_CONTENT


def expire_by_time(broker: AdministeredBroker, request: Request) -> Answer:
    seconds = path_number(request.text("seconds"))
    with _subscription_of(broker, request):
        expire = broker.machine.subscription_administration.expire_messages
        _check_expired(broker.command(expire, request.topic, request.text("subscription"), seconds), request)
    return NO_CONTENT


def expire_by_time_everywhere(broker: AdministeredBroker, request: Request) -> Answer:
    """Expire messages of all subscriptions. Answers 409 if one of them has no message that is old enough."""
    seconds = path_number(request.text("seconds"))
    topic = request.topic
    with answering((NotFound, 404, f"Topic {topic} not found")):
        expired = True
        for subscription in broker.machine.subscription_administration.subscriptions(topic):
            expired &= broker.command(
                broker.machine.subscription_administration.expire_messages, topic, subscription, seconds
            )
    _check_expired(expired, request)
    return NO_CONTENT


def expire_by_message(broker: AdministeredBroker, request: Request) -> Answer:
    """Expire messages before that message's entry, and the whole entry too unless it is excluded."""
    value = request.json()
    excluded = _excluded(value)
    position = _position(value) or MessageId(LATEST, LATEST)
    if excluded:
        position = MessageId(position.ledger_id, position.entry_id - 1)
    with _subscription_of(broker, request):
        if broker.machine.topic_administration.topic_partitions(request.topic):
            raise Refused(405, "Expire message at position is not supported for partitioned-topic")
        expire = broker.machine.subscription_administration.expire_messages
        expired = broker.command(expire, request.topic, request.text("subscription"), position)
        _check_expired(expired, request, "the position is beyond its last message")
    return NO_CONTENT


def _check_expired(expired: bool, request: Request, why: str = "nothing is old enough") -> None:
    if not expired:
        raise Refused(409, f"Expire message not issued on topic {request.topic}: {why}")


def reset_to_time(broker: AdministeredBroker, request: Request) -> Answer:
    timestamp = path_number(request.text("timestamp"))
    with _subscription_of(broker, request):
        broker.command(
            broker.machine.subscription_administration.reset_cursor,
            request.topic,
            request.text("subscription"),
            timestamp,
        )
    return NO_CONTENT


def reset_to_message(broker: AdministeredBroker, request: Request) -> Answer:
    value = request.json()
    excluded = _excluded(value)
    position = _position(value) or MessageId(LATEST, LATEST)
    with _subscription_of(broker, request):
        if broker.machine.topic_administration.topic_partitions(
            request.topic
        ) and EARLIEST != position != MessageId(LATEST, LATEST):
            raise Refused(405, "Reset-cursor at position is not allowed for partitioned-topic")
        reset = partial(broker.machine.subscription_administration.reset_cursor, inclusive=not excluded)
        broker.command(reset, request.topic, request.text("subscription"), position)
    return NO_CONTENT


def peek(broker: AdministeredBroker, request: Request) -> Answer:
    """A subscription that is not there is created, at the first entry, as a Java broker does it."""
    number = path_number(request.text("number"))
    topic = request.topic
    with _subscription_of(broker, request):
        if broker.machine.topic_administration.topic_partitions(topic):
            raise Refused(405, "Peek messages on a partitioned topic is not allowed")
        subscription = request.text("subscription")
        if request.text(
            "domain"
        ) == "persistent" and subscription not in broker.machine.subscription_administration.subscriptions(
            topic
        ):
            with answering((LimitReached, 404, _no_subscription(request))):
                broker.command(
                    broker.machine.subscription_administration.create_subscription,
                    topic,
                    subscription,
                    EARLIEST,
                )
        with answering((NotFound, 404, "Message not found")):
            return entry_answer(
                broker.machine.subscription_administration.peek(topic, subscription, max(1, number))
            )


def analyze_backlog(broker: AdministeredBroker, request: Request) -> Answer:
    position = _position(request.json()) if request.body else EARLIEST
    with _subscription_of(broker, request):
        if broker.machine.topic_administration.topic_partitions(request.topic):
            raise Refused(
                405,
                "Analyze backlog on a partitioned topic is not allowed, please try do it on specific topic "
                "partition",
            )
        at = position or MessageId(LATEST, LATEST)
        found = broker.machine.subscription_administration.analyze_backlog(
            request.topic, request.text("subscription"), at
        )
    return json_answer(
        {
            "entries": found.entries,
            "messages": found.messages,
            "filterRejectedEntries": 0,
            "filterAcceptedEntries": found.entries,
            "filterRescheduledEntries": 0,
            "filterRejectedMessages": 0,
            "filterAcceptedMessages": found.messages,
            "filterRescheduledMessages": 0,
            "aborted": False,
            "firstMessageId": _place_text(found.first),
            "lastMessageId": _place_text(found.last),
        }
    )


def _place_text(message_id: MessageId | None) -> str | None:
    return None if message_id is None else f"{message_id.ledger_id}:{message_id.entry_id}"


def clear_backlogs(broker: AdministeredBroker, request: Request) -> Answer:
    """Clear one subscription, or all, of every topic in a namespace or in its one bundle."""
    check_bundle(request)
    with answering(NO_NAMESPACE):
        broker.command(
            broker.machine.subscription_administration.clear_backlogs,
            request.namespace,
            request.parameters.get("subscription"),
        )
    return NO_CONTENT


def unsubscribe_everywhere(broker: AdministeredBroker, request: Request) -> Answer:
    check_bundle(request)
    in_use = (InUse, 412, "Subscription has active connected consumers")
    with answering(NO_NAMESPACE, in_use):
        broker.command(
            broker.machine.subscription_administration.unsubscribe_everywhere,
            request.namespace,
            request.text("subscription"),
        )
    return NO_CONTENT


def _subscription_of(broker: AdministeredBroker, request: Request) -> Any:
    """Refusals in the right order: first the topic, then its subscription."""
    topic = request.topic
    with answering((NotFound, 404, f"Topic {topic} not found")):
        broker.machine.subscription_administration.subscriptions(topic)
    return answering((NotFound, 404, _no_subscription(request)))


def _no_subscription(request: Request) -> str:
    return f"Subscription {request.text('subscription')} not found for topic {request.topic}"


def _position(value: Any) -> MessageId | None:
    """None is the end. Raises `Refused`."""
    if value == "latest":
        return None
    if value == "earliest":
        return EARLIEST
    if not isinstance(value, dict):
        raise Refused(400, f'a position is a message id, "earliest" or "latest", not {value!r:.200}')
    ids: list[Any] = [value.get("ledgerId"), value.get("entryId")]
    if not all(isinstance(each, int) and not isinstance(each, bool) and each in LONG for each in ids):
        raise Refused(400, f"a message id has ledgerId and entryId, not {value!r:.200}")
    index = value.get("batchIndex")
    if index is not None and (isinstance(index, bool) or not isinstance(index, int) or abs(index) >= 2**31):
        raise Refused(400, f"batchIndex is a whole number, not {index!r:.100}")
    if ids == [LATEST, LATEST]:
        return None
    return MessageId(ids[0], ids[1], -1, -1 if index is None else max(index, -1))


def _excluded(value: Any) -> bool:
    """True if the request leaves out the message with that id itself. Raises `Refused`.

    A Java broker reads `excluded`, and passes over the `isExcluded` of its own documentation.
    """
    excluded = value.get("excluded") if isinstance(value, dict) else None
    if excluded is not None and not isinstance(excluded, bool):
        raise Refused(400, f"excluded is true or false, not {excluded!r:.100}")
    return bool(excluded)


_OF_TOPICS: list[Route] = [
    ("GET", f"{TOPIC}/subscriptions", list_subscriptions),
    ("PUT", SUBSCRIPTION, create),
    ("DELETE", SUBSCRIPTION, delete),
    ("GET", f"{SUBSCRIPTION}/properties", properties),
    ("PUT", f"{SUBSCRIPTION}/properties", set_properties),
    ("POST", f"{SUBSCRIPTION}/skip_all", skip_all),
    ("POST", f"{SUBSCRIPTION}/skip/{{count}}", skip),
    ("POST", f"{SUBSCRIPTION}/expireMessages", expire_by_message),
    ("POST", f"{SUBSCRIPTION}/expireMessages/{{seconds}}", expire_by_time),
    ("POST", f"{TOPIC}/all_subscription/expireMessages/{{seconds}}", expire_by_time_everywhere),
    ("POST", f"{SUBSCRIPTION}/resetcursor", reset_to_message),
    ("POST", f"{SUBSCRIPTION}/resetcursor/{{timestamp}}", reset_to_time),
    ("GET", f"{SUBSCRIPTION}/position/{{number}}", peek),
    ("POST", f"{SUBSCRIPTION}/analyzeBacklog", analyze_backlog),
]
_OF_NAMESPACES: list[Route] = [
    ("POST", f"{NAMESPACE}/clearBacklog", clear_backlogs),
    ("POST", f"{NAMESPACE}/clearBacklog/{{subscription}}", clear_backlogs),
    ("POST", f"{NAMESPACE}/unsubscribe/{{subscription}}", unsubscribe_everywhere),
    ("POST", f"{NAMESPACE}/{{bundle}}/clearBacklog", clear_backlogs),
    ("POST", f"{NAMESPACE}/{{bundle}}/clearBacklog/{{subscription}}", clear_backlogs),
    ("POST", f"{NAMESPACE}/{{bundle}}/unsubscribe/{{subscription}}", unsubscribe_everywhere),
]

ROUTES = both_domains(_OF_TOPICS) + _OF_NAMESPACES
