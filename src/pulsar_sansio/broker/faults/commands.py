"""The commands that rules of faults name, and how each of them tells its topic.

A name is that of Pulsar's `BaseCommand.Type`. Commands that brokers send each other are left out.
"""

from enum import Enum
from typing import Literal

from ...wire import proto

Sender = Literal["client", "broker"]

ANY = "*"
"""The name that stands for every command."""


class Subject(Enum):
    """The part of a command that tells its topic."""

    NONE = "none"
    TOPIC = "topic"
    PRODUCER = "producer_id"
    CONSUMER = "consumer_id"
    REQUEST = "request_id"
    RESOURCE = "resource_id"
    PARTITIONS = "partitions"
    SUBSCRIPTIONS = "subscription"


FROM_CLIENT: dict[str, Subject] = {
    "CONNECT": Subject.NONE,
    "AUTH_RESPONSE": Subject.NONE,
    "PING": Subject.NONE,
    "PONG": Subject.NONE,
    "LOOKUP": Subject.TOPIC,
    "PARTITIONED_METADATA": Subject.TOPIC,
    "PRODUCER": Subject.TOPIC,
    "SEND": Subject.PRODUCER,
    "CLOSE_PRODUCER": Subject.PRODUCER,
    "SUBSCRIBE": Subject.TOPIC,
    "FLOW": Subject.CONSUMER,
    "ACK": Subject.CONSUMER,
    "REDELIVER_UNACKNOWLEDGED_MESSAGES": Subject.CONSUMER,
    "SEEK": Subject.CONSUMER,
    "GET_LAST_MESSAGE_ID": Subject.CONSUMER,
    "CONSUMER_STATS": Subject.CONSUMER,
    "UNSUBSCRIBE": Subject.CONSUMER,
    "CLOSE_CONSUMER": Subject.CONSUMER,
    "GET_TOPICS_OF_NAMESPACE": Subject.NONE,
    "WATCH_TOPIC_LIST": Subject.NONE,
    "WATCH_TOPIC_LIST_CLOSE": Subject.NONE,
    "GET_SCHEMA": Subject.TOPIC,
    "GET_OR_CREATE_SCHEMA": Subject.TOPIC,
    "TC_CLIENT_CONNECT_REQUEST": Subject.NONE,
    "NEW_TXN": Subject.NONE,
    "ADD_PARTITION_TO_TXN": Subject.PARTITIONS,
    "ADD_SUBSCRIPTION_TO_TXN": Subject.SUBSCRIPTIONS,
    "END_TXN": Subject.NONE,
}
"""Commands of clients."""

FROM_BROKER: dict[str, Subject] = {
    "CONNECTED": Subject.NONE,
    "AUTH_CHALLENGE": Subject.NONE,
    "PING": Subject.NONE,
    "PONG": Subject.NONE,
    "SUCCESS": Subject.REQUEST,
    "ERROR": Subject.REQUEST,
    "LOOKUP_RESPONSE": Subject.REQUEST,
    "PARTITIONED_METADATA_RESPONSE": Subject.REQUEST,
    "PRODUCER_SUCCESS": Subject.REQUEST,
    "SEND_RECEIPT": Subject.PRODUCER,
    "SEND_ERROR": Subject.PRODUCER,
    "CLOSE_PRODUCER": Subject.PRODUCER,
    "MESSAGE": Subject.CONSUMER,
    "ACK_RESPONSE": Subject.CONSUMER,
    "CLOSE_CONSUMER": Subject.CONSUMER,
    "ACTIVE_CONSUMER_CHANGE": Subject.CONSUMER,
    "REACHED_END_OF_TOPIC": Subject.CONSUMER,
    "TOPIC_MIGRATED": Subject.RESOURCE,
    "CONSUMER_STATS_RESPONSE": Subject.REQUEST,
    "GET_LAST_MESSAGE_ID_RESPONSE": Subject.REQUEST,
    "GET_TOPICS_OF_NAMESPACE_RESPONSE": Subject.NONE,
    "WATCH_TOPIC_LIST_SUCCESS": Subject.NONE,
    "WATCH_TOPIC_UPDATE": Subject.NONE,
    "GET_SCHEMA_RESPONSE": Subject.REQUEST,
    "GET_OR_CREATE_SCHEMA_RESPONSE": Subject.REQUEST,
    "TC_CLIENT_CONNECT_RESPONSE": Subject.NONE,
    "NEW_TXN_RESPONSE": Subject.NONE,
    "ADD_PARTITION_TO_TXN_RESPONSE": Subject.REQUEST,
    "ADD_SUBSCRIPTION_TO_TXN_RESPONSE": Subject.REQUEST,
    "END_TXN_RESPONSE": Subject.NONE,
}
"""Commands of the broker."""

BY_SENDER: dict[Sender, dict[str, Subject]] = {"client": FROM_CLIENT, "broker": FROM_BROKER}

NOT_REFUSABLE = ("PING", "PONG", "FLOW", "REDELIVER_UNACKNOWLEDGED_MESSAGES")
"""Commands of clients to which a broker has no answer that says no."""

WITH_PAYLOAD = ("SEND", "MESSAGE")
"""Commands with a payload and its checksum."""


def name_of(number: int) -> str:
    """Return Pulsar's name of a command's type; that of a type which is not known is its number."""
    return _NAMES.get(number) or str(number)


_NAMES = {number: name for name, number in proto.BaseCommand.Type.items()}
