"""Requests that need no producer or consumer: LOOKUP, partitions, lists of topics, schemas, transactions.

Pure answers from what the root knows; only auto-creation of a partitioned topic changes anything. What this
broker does not do (transactions, topic watchers) is refused by an error that says so, never by silence.
"""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, cast

from ..model.errors import (
    BrokerError,
    InvalidConfiguration,
    InvalidTopicName,
    MetadataError,
    ProducerBusy,
    RemoteProtocolError,
    ServerError,
    TopicNameRefused,
    TopicNotFound,
)
from ..model.topic_name import TopicName
from ..wire import crc32c, encode_pong, proto
from .schemas import schema_message

if TYPE_CHECKING:
    from .config import BrokerConfig
    from .connection import Connection
    from .ownership import Elsewhere

Type = proto.BaseCommand.Type

MAX_PATTERN_LENGTH = 50
"""Characters of a pattern this broker applies itself; longer ones are left to the client (PATTERN-02)."""

MAX_REPETITIONS = 2
"""Repetitions in such a pattern; matching takes at most the name's length to this power."""

DOUBTFUL = ("[[", "--", "&&", "~~", "||")
"""Signs in a set of characters that Python warns of, on the host's standard error."""

NO_TRANSACTIONS = "Transactions are not supported by this broker"
NO_WATCHERS = "Topic list watchers are not supported by this broker"


MAX_NAME_LENGTH = 4096
"""Characters of a name that a client chooses."""


def parse_topic(text: str) -> TopicName:
    """Raises `TopicNameRefused`."""
    if len(text) > MAX_NAME_LENGTH:
        raise TopicNameRefused(f"topic name of {len(text)} characters, allowed are {MAX_NAME_LENGTH}")
    try:
        name = TopicName.parse(text)
    except InvalidTopicName as error:
        raise TopicNameRefused(str(error)) from None
    if _CONTROL.search(name.local):
        raise TopicNameRefused(f"topic name {text!r}: control characters are not allowed")
    return name


_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def check_name(what: str, name: str) -> None:
    """Raises `ProducerBusy`, which is what a bad name is called (GAP-19)."""
    if len(name) > MAX_NAME_LENGTH:
        raise ProducerBusy(f"{what} of {len(name)} characters, allowed are {MAX_NAME_LENGTH}")


MAX_PROPERTIES = 64 * 1024
"""Characters of all names and values of a producer, a subscription or a schema together, where each pair
counts for `PAIR` more: an empty one is an object too."""

PAIR = 16


def check_text_properties(pairs: Iterable[tuple[str, str]]) -> None:
    """Raises `InvalidConfiguration` where they are not text, or more than `MAX_PROPERTIES`."""
    size = 0
    for name, value in pairs:
        if not isinstance(name, str) or not isinstance(value, str):
            raise InvalidConfiguration(f"properties: text for text, not {name!r}: {value!r}")
        size += len(name) + len(value) + PAIR
    if size > MAX_PROPERTIES:
        raise InvalidConfiguration(f"properties of {size} characters, allowed are {MAX_PROPERTIES}")


def check_properties(what: str, pairs: Iterable[proto.KeyValue], most: int = MAX_PROPERTIES) -> None:
    """Raises `MetadataError` where they are more than `most`."""
    size = sum(len(pair.key) + len(pair.value) + PAIR for pair in pairs)
    if size > most:
        raise MetadataError(f"{what} of {size} characters, allowed are {most}")


def server_error(code: ServerError) -> proto.ServerError:
    """The same number, as protobuf's own type."""
    return cast(proto.ServerError, int(code))


def code(error: BrokerError) -> proto.ServerError:
    """As protobuf wants it."""
    return server_error(error.code)


def on_ping(connection: "Connection", command: proto.CommandPing) -> None:
    connection.write(encode_pong())


def on_pong(connection: "Connection", command: proto.CommandPong) -> None:
    """Any frame is a sign of life; this one is nothing more."""


def on_lookup(connection: "Connection", command: proto.CommandLookupTopic) -> None:
    """Connect, to this broker (WIRE-02), unless another one serves the topic or knows who does."""
    config = connection.broker.config
    answer = proto.CommandLookupTopicResponse(request_id=command.request_id)
    try:
        topic = parse_topic(command.topic)
        connection.broker.check_namespace(topic.namespace_name)
        elsewhere = connection.broker.elsewhere(str(topic), command.authoritative)
    except BrokerError as error:
        answer.response = proto.CommandLookupTopicResponse.Failed
        answer.error = code(error)
        answer.message = error.text
    else:
        where: BrokerConfig | Elsewhere = config if elsewhere is None else elsewhere
        answer.response = proto.CommandLookupTopicResponse.Connect
        answer.authoritative = True
        if elsewhere is not None and elsewhere.redirect:
            answer.response = proto.CommandLookupTopicResponse.Redirect
            answer.authoritative = elsewhere.authoritative
        answer.brokerServiceUrl = where.service_url
        if where.service_url_tls is not None:
            answer.brokerServiceUrlTls = where.service_url_tls
        answer.proxy_through_service_url = config.proxy_through_service_url
    connection.send(Type.LOOKUP_RESPONSE, answer)


def on_partitioned_metadata(connection: "Connection", command: proto.CommandPartitionedTopicMetadata) -> None:
    """How many partitions; 0 for a topic that is not, or not yet, there (WIRE-03)."""
    broker = connection.broker
    answer = proto.CommandPartitionedTopicMetadataResponse(request_id=command.request_id)
    try:
        topic = parse_topic(command.topic)
        broker.check_namespace(topic.namespace_name)
        answer.partitions = broker.partitions_for(topic, command.metadata_auto_creation_enabled)
        answer.response = proto.CommandPartitionedTopicMetadataResponse.Success
    except BrokerError as error:
        answer.response = proto.CommandPartitionedTopicMetadataResponse.Failed
        answer.error = code(error)
        answer.message = error.text
    broker.journal.confirm(lambda: connection.send(Type.PARTITIONED_METADATA_RESPONSE, answer))


def on_late_handshake(connection: "Connection", command: Any) -> None:
    """CONNECT a second time, or AUTH_RESPONSE that nobody asked for: Close (WIRE-22)."""
    raise RemoteProtocolError("a command of the handshake after the handshake")


# --- lists of topics ----------------------------------------------------------------------------------


def topics_hash(names: list[str]) -> str:
    """CRC32C of the sorted names, joined by commas: its four bytes, lowest first, in hexadecimal
    (WIRE-04).
    """
    return crc32c(",".join(sorted(names)).encode("utf-8", "surrogateescape")).to_bytes(4, "little").hex()


def _compiled(pattern: str) -> re.Pattern[str] | None:
    """None for a pattern that is left to the client. Raises `MetadataError` for what is no pattern.

    Python's matcher goes back over and over, so a stranger's pattern could stop the broker: here only
    patterns without groups and with few repetitions are matched, which is nearly all there are. Longer ones
    are not even compiled: deep nesting would exhaust the stack. The protocol lets a broker answer unfiltered
    (WIRE-04).
    """
    if len(pattern) > MAX_PATTERN_LENGTH or any(sign in pattern for sign in DOUBTFUL):
        return None
    try:
        compiled = re.compile(pattern.split("://", 1)[-1])
    except (re.error, OverflowError) as error:
        raise MetadataError(f"The pattern is not a regular expression: {error}") from None
    repetitions = sum(pattern.count(sign) for sign in "*+?{")
    return None if "(" in pattern or repetitions > MAX_REPETITIONS else compiled


def _matching(names: list[str], pattern: re.Pattern[str]) -> list[str]:
    """Names that match as a whole, without scheme and partition suffix."""
    return [name for name in names if pattern.fullmatch(str(TopicName.parse(name).base).split("://", 1)[1])]


def on_topics_of_namespace(connection: "Connection", command: proto.CommandGetTopicsOfNamespace) -> None:
    try:
        names = connection.broker.topic_names(command.namespace)
        if command.mode != proto.CommandGetTopicsOfNamespace.ALL:
            persistent = command.mode == proto.CommandGetTopicsOfNamespace.PERSISTENT
            names = [name for name in names if name.startswith("persistent://") == persistent]
        answer = proto.CommandGetTopicsOfNamespaceResponse(request_id=command.request_id)
        if command.topics_pattern and (pattern := _compiled(command.topics_pattern)) is not None:
            names = _matching(names, pattern)
            answer.filtered = True
        answer.topics_hash = topics_hash(names)
        answer.changed = not command.HasField("topics_hash") or command.topics_hash != answer.topics_hash
        if answer.changed:
            answer.topics.extend(names)
    except BrokerError as error:
        connection.refuse(command.request_id, error)
        return
    connection.send(Type.GET_TOPICS_OF_NAMESPACE_RESPONSE, answer)


# --- schemas ------------------------------------------------------------------------------------------


def on_get_schema(connection: "Connection", command: proto.CommandGetSchema) -> None:
    answer = proto.CommandGetSchemaResponse(request_id=command.request_id)
    try:
        topic = parse_topic(command.topic)
        version = command.schema_version if command.HasField("schema_version") else None
        stored = connection.broker.schemas.get(topic, version)
        answer.schema.CopyFrom(schema_message(stored))
        answer.schema_version = stored.version.to_bytes(8, "big")
    except BrokerError as error:
        answer.error_code = code(error)
        answer.error_message = error.text
    connection.broker.journal.confirm(lambda: connection.send(Type.GET_SCHEMA_RESPONSE, answer))


def on_get_or_create_schema(connection: "Connection", command: proto.CommandGetOrCreateSchema) -> None:
    broker = connection.broker
    answer = proto.CommandGetOrCreateSchemaResponse(request_id=command.request_id)
    try:
        topic = parse_topic(command.topic)
        if str(topic) not in broker.all_topics:
            raise TopicNotFound(f"Topic {topic} does not exist")
        answer.schema_version = broker.schemas.register(topic, command.schema)
    except BrokerError as error:
        answer.error_code = code(error)
        answer.error_message = error.text
    broker.journal.confirm(lambda: connection.send(Type.GET_OR_CREATE_SCHEMA_RESPONSE, answer))


# --- what this broker does not do ---------------------------------------------------------------------


def on_transaction_command(connection: "Connection", command: Any) -> None:
    """As a Java broker whose coordinator is off."""
    connection.error(command.request_id, ServerError.NotAllowedError, NO_TRANSACTIONS)


def on_watch_topic_list(connection: "Connection", command: proto.CommandWatchTopicList) -> None:
    """Feature flag 4 is not announced; who asks all the same gets the error of a broker with it off."""
    connection.error(command.request_id, ServerError.NotAllowedError, NO_WATCHERS)


def on_watch_topic_list_close(connection: "Connection", command: proto.CommandWatchTopicListClose) -> None:
    """SUCCESS also for unknown watchers."""
    connection.success(command.request_id)


HANDLERS: dict[int, Any] = {
    Type.CONNECT: on_late_handshake,
    Type.AUTH_RESPONSE: on_late_handshake,
    Type.PING: on_ping,
    Type.PONG: on_pong,
    Type.LOOKUP: on_lookup,
    Type.PARTITIONED_METADATA: on_partitioned_metadata,
    Type.GET_TOPICS_OF_NAMESPACE: on_topics_of_namespace,
    Type.GET_SCHEMA: on_get_schema,
    Type.GET_OR_CREATE_SCHEMA: on_get_or_create_schema,
    Type.WATCH_TOPIC_LIST: on_watch_topic_list,
    Type.WATCH_TOPIC_LIST_CLOSE: on_watch_topic_list_close,
    Type.TC_CLIENT_CONNECT_REQUEST: on_transaction_command,
    Type.NEW_TXN: on_transaction_command,
    Type.ADD_PARTITION_TO_TXN: on_transaction_command,
    Type.ADD_SUBSCRIPTION_TO_TXN: on_transaction_command,
    Type.END_TXN: on_transaction_command,
    Type.END_TXN_ON_PARTITION: on_transaction_command,
    Type.END_TXN_ON_SUBSCRIPTION: on_transaction_command,
}
