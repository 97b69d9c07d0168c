"""Facts about commands that are the same in every conversation: numbers, senders, questions and answers,
versions.

Numbers are those of BaseCommand.Type.
"""

from ..wire import proto
from .findings import Side

CONNECT, CONNECTED, SUBSCRIBE, PRODUCER, SEND, SEND_RECEIPT, SEND_ERROR, MESSAGE, ACK, FLOW = range(2, 12)
UNSUBSCRIBE, SUCCESS, ERROR, CLOSE_PRODUCER, CLOSE_CONSUMER, PRODUCER_SUCCESS, PING, PONG = range(12, 20)
REDELIVER, PARTITIONED_METADATA, PARTITIONED_METADATA_RESPONSE, LOOKUP, LOOKUP_RESPONSE = range(20, 25)
CONSUMER_STATS, CONSUMER_STATS_RESPONSE, REACHED_END_OF_TOPIC, SEEK = range(25, 29)
GET_LAST_MESSAGE_ID, GET_LAST_MESSAGE_ID_RESPONSE, ACTIVE_CONSUMER_CHANGE = range(29, 32)
GET_TOPICS_OF_NAMESPACE, GET_TOPICS_OF_NAMESPACE_RESPONSE, GET_SCHEMA, GET_SCHEMA_RESPONSE = range(32, 36)
AUTH_CHALLENGE, AUTH_RESPONSE, ACK_RESPONSE = range(36, 39)
GET_OR_CREATE_SCHEMA, GET_OR_CREATE_SCHEMA_RESPONSE = 39, 40
NEW_TXN, NEW_TXN_RESPONSE, ADD_PARTITION_TO_TXN, ADD_PARTITION_TO_TXN_RESPONSE = range(50, 54)
ADD_SUBSCRIPTION_TO_TXN, ADD_SUBSCRIPTION_TO_TXN_RESPONSE, END_TXN, END_TXN_RESPONSE = range(54, 58)
END_TXN_ON_PARTITION, END_TXN_ON_PARTITION_RESPONSE = 58, 59
END_TXN_ON_SUBSCRIPTION, END_TXN_ON_SUBSCRIPTION_RESPONSE = 60, 61
TC_CLIENT_CONNECT, TC_CLIENT_CONNECT_RESPONSE = 62, 63
WATCH_TOPIC_LIST, WATCH_TOPIC_LIST_SUCCESS, WATCH_TOPIC_UPDATE, WATCH_TOPIC_LIST_CLOSE = range(64, 68)
TOPIC_MIGRATED = 68

EXCLUSIVE, SHARED, FAILOVER, KEY_SHARED = 0, 1, 2, 3
"""CommandSubscribe.SubType."""

FENCING_MODES = (1, 2, 3)
"""The ProducerAccessModes with a topic epoch: Exclusive, WaitForExclusive, ExclusiveWithFencing."""
WAIT_FOR_EXCLUSIVE, EXCLUSIVE_WITH_FENCING = 2, 3

NONE_ID = (1 << 64) - 1
"""A request id or sequence id that is none: what the wire has for -1."""


def name_of(kind: int) -> str:
    """The command's name in BaseCommand.Type."""
    try:
        return str(proto.BaseCommand.Type.Name(kind))
    except ValueError:
        return f"command {kind}"


ANSWERS: dict[int, frozenset[int]] = {
    PRODUCER: frozenset({PRODUCER_SUCCESS, ERROR}),
    SUBSCRIBE: frozenset({SUCCESS, ERROR}),
    UNSUBSCRIBE: frozenset({SUCCESS, ERROR}),
    SEEK: frozenset({SUCCESS, ERROR}),
    CLOSE_PRODUCER: frozenset({SUCCESS, ERROR}),
    CLOSE_CONSUMER: frozenset({SUCCESS, ERROR}),
    PARTITIONED_METADATA: frozenset({PARTITIONED_METADATA_RESPONSE}),
    LOOKUP: frozenset({LOOKUP_RESPONSE}),
    CONSUMER_STATS: frozenset({CONSUMER_STATS_RESPONSE, ERROR}),
    GET_LAST_MESSAGE_ID: frozenset({GET_LAST_MESSAGE_ID_RESPONSE, ERROR}),
    GET_TOPICS_OF_NAMESPACE: frozenset({GET_TOPICS_OF_NAMESPACE_RESPONSE, ERROR}),
    GET_SCHEMA: frozenset({GET_SCHEMA_RESPONSE, ERROR}),
    GET_OR_CREATE_SCHEMA: frozenset({GET_OR_CREATE_SCHEMA_RESPONSE, ERROR}),
    ACK: frozenset({ACK_RESPONSE}),
    NEW_TXN: frozenset({NEW_TXN_RESPONSE, ERROR}),
    ADD_PARTITION_TO_TXN: frozenset({ADD_PARTITION_TO_TXN_RESPONSE, ERROR}),
    ADD_SUBSCRIPTION_TO_TXN: frozenset({ADD_SUBSCRIPTION_TO_TXN_RESPONSE, ERROR}),
    END_TXN: frozenset({END_TXN_RESPONSE, ERROR}),
    END_TXN_ON_PARTITION: frozenset({END_TXN_ON_PARTITION_RESPONSE, ERROR}),
    END_TXN_ON_SUBSCRIPTION: frozenset({END_TXN_ON_SUBSCRIPTION_RESPONSE, ERROR}),
    TC_CLIENT_CONNECT: frozenset({TC_CLIENT_CONNECT_RESPONSE, ERROR}),
    WATCH_TOPIC_LIST: frozenset({WATCH_TOPIC_LIST_SUCCESS, ERROR}),
    WATCH_TOPIC_LIST_CLOSE: frozenset({SUCCESS, ERROR}),
}
"""The kinds of command that may answer a request. ACK is a request only where it has a request id."""

REQUESTS = frozenset(ANSWERS)
ANSWER_KINDS = frozenset(kind for kinds in ANSWERS.values() for kind in kinds)

LOOKUP_KINDS = frozenset({PARTITIONED_METADATA, LOOKUP, GET_TOPICS_OF_NAMESPACE, GET_SCHEMA})
"""Requests of the lookup service: in the C++ client they have a counter of their own, so that one number may
be outstanding twice on one connection."""
LOOKUP_ANSWERS = frozenset(
    {
        PARTITIONED_METADATA_RESPONSE,
        LOOKUP_RESPONSE,
        GET_TOPICS_OF_NAMESPACE_RESPONSE,
        GET_SCHEMA_RESPONSE,
    }
)

_BOTH = frozenset({CLOSE_PRODUCER, CLOSE_CONSUMER, PING, PONG})
_OF_CLIENT = (
    (REQUESTS - {CLOSE_PRODUCER, CLOSE_CONSUMER}) | {CONNECT, SEND, FLOW, REDELIVER, AUTH_RESPONSE}
) | _BOTH
_OF_BROKER = (
    ANSWER_KINDS
    | _BOTH
    | {CONNECTED, SEND_RECEIPT, SEND_ERROR, MESSAGE, REACHED_END_OF_TOPIC, ACTIVE_CONSUMER_CHANGE}
    | {AUTH_CHALLENGE, WATCH_TOPIC_UPDATE, TOPIC_MIGRATED}
)
SENT_BY: dict[Side, frozenset[int]] = {Side.CLIENT: _OF_CLIENT, Side.BROKER: _OF_BROKER}
"""The commands each side may send at all."""

CLIENT_SINCE: dict[int, int] = {
    PING: 1,
    PONG: 1,
    REDELIVER: 2,
    PARTITIONED_METADATA: 7,
    LOOKUP: 7,
    CONSUMER_STATS: 8,
    SEEK: 12,
    GET_LAST_MESSAGE_ID: 12,
    GET_TOPICS_OF_NAMESPACE: 12,
    GET_SCHEMA: 13,
    AUTH_RESPONSE: 14,
    GET_OR_CREATE_SCHEMA: 15,
    TC_CLIENT_CONNECT: 19,
}
"""The lowest negotiated protocol version that knows a client's command; absent: 0."""

BROKER_SINCE: dict[int, int] = {
    PING: 1,
    PONG: 1,
    CLOSE_PRODUCER: 5,
    CLOSE_CONSUMER: 5,
    REACHED_END_OF_TOPIC: 9,
    ACTIVE_CONSUMER_CHANGE: 12,
    AUTH_CHALLENGE: 14,
    ACK_RESPONSE: 17,
    TOPIC_MIGRATED: 20,
}
"""The lowest version that knows a command that a broker sends on its own account; answers follow their
questions."""

HANDSHAKE_OF_CLIENT = frozenset({CONNECT, AUTH_RESPONSE, PING, PONG})
HANDSHAKE_OF_BROKER = frozenset({CONNECTED, AUTH_CHALLENGE, ERROR, PING, PONG})
"""The commands that a broker may send up to CONNECTED; `HANDSHAKE_OF_CLIENT` has those of a client."""
