"""Requests that need no producer or consumer: LOOKUP, partitions, schemas.

Handlers answer from the broker's state; only the creation of topics and schemas changes it.
"""

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

from ...model.errors import (
    AuthorizationError,
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
from ...model.topic_name import TopicName
from ...wire import encode_pong, proto
from ..schemas.registry import schema_message

if TYPE_CHECKING:
    from ..config import BrokerConfig
    from ..owner import OtherBroker
    from .connection import Connection

Type = proto.BaseCommand.Type

MAX_NAME_LENGTH = 4096
"""The number of characters of a name that a client chooses."""


def parse_topic(text: str) -> TopicName:
    """Raises `TopicNameRefused`."""
    if isinstance(text, str) and len(text) > MAX_NAME_LENGTH:
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
    """Raises `ProducerBusy`, Pulsar's error for a bad name (GAP-19)."""
    if len(name) > MAX_NAME_LENGTH:
        raise ProducerBusy(f"{what} of {len(name)} characters, allowed are {MAX_NAME_LENGTH}")


MAX_PROPERTIES = 64 * 1024
"""The number of characters of all names and values of a producer, a subscription or a schema together.

Each pair counts for `PAIR` more, since an empty pair costs memory, too.
"""

PAIR = 16


def is_unicode(text: str) -> bool:
    """True when protobuf can write the text as UTF-8. JSON may hold half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_text_properties(pairs: Iterable[tuple[str, str]]) -> None:
    """Raises `InvalidConfiguration` where properties are not Unicode text, or more than `MAX_PROPERTIES`."""
    size = 0
    for name, value in pairs:
        if not isinstance(name, str) or not isinstance(value, str):
            raise InvalidConfiguration(f"properties: text for text, not {name!r}: {value!r}")
        if not is_unicode(name) or not is_unicode(value):
            raise InvalidConfiguration(
                f"properties: a half of a surrogate pair in {name!r:.200}: {value!r:.200}"
            )
        size += len(name) + len(value) + PAIR
    if size > MAX_PROPERTIES:
        raise InvalidConfiguration(f"properties of {size} characters, allowed are {MAX_PROPERTIES}")


def text_pairs(properties: Mapping[str, str] | None) -> tuple[tuple[str, str], ...]:
    """Return properties as pairs. Raises `InvalidConfiguration` as `check_text_properties`."""
    pairs = tuple((properties or {}).items())
    check_text_properties(pairs)
    return pairs


def check_properties(what: str, pairs: Iterable[proto.KeyValue], most: int = MAX_PROPERTIES) -> None:
    """Raises `MetadataError` where the properties have more than `most` characters."""
    size = sum(len(pair.key) + len(pair.value) + PAIR for pair in pairs)
    if size > most:
        raise MetadataError(f"{what} of {size} characters, allowed are {most}")


def server_error(code: ServerError) -> proto.ServerError:
    """Convert a code to protobuf's type."""
    return cast(proto.ServerError, int(code))


def code(error: BrokerError) -> proto.ServerError:
    """Convert the code of an error to protobuf's type."""
    return server_error(error.code)


def refuse_request(connection: "Connection", command: Any, error: BrokerError) -> None:
    """Answer a request with ERROR."""
    connection.refuse(command.request_id, error)


def on_ping(connection: "Connection", command: proto.CommandPing) -> None:
    connection.write(encode_pong())


def on_pong(connection: "Connection", command: proto.CommandPong) -> None:
    """Do nothing: every frame is a sign of life."""


def on_lookup(connection: "Connection", command: proto.CommandLookupTopic) -> None:
    """Answer with this broker (WIRE-02), unless another one serves the topic or knows its broker."""
    config = connection.services.config
    try:
        topic = parse_topic(command.topic)
        elsewhere = None
        if not connection.broker.coordinators.is_coordinator(topic):
            if not connection.broker.authorization.may_look_up(connection.roles, topic):
                raise AuthorizationError("Client is not authorized to Lookup")
            connection.broker.metadata.check_namespace(topic.namespace_name)
            elsewhere = connection.broker.topics.other_broker(str(topic), command.authoritative)
    except BrokerError as error:
        refuse_lookup(connection, command, error)
        return
    where: BrokerConfig | OtherBroker = config if elsewhere is None else elsewhere
    answer = proto.CommandLookupTopicResponse(
        request_id=command.request_id,
        response=proto.CommandLookupTopicResponse.Connect,
        authoritative=True,
        brokerServiceUrl=where.service_url,
        brokerServiceUrlTls=where.service_url_tls,
        proxy_through_service_url=config.proxy_through_service_url,
    )
    if elsewhere is not None and elsewhere.redirect:
        answer.response = proto.CommandLookupTopicResponse.Redirect
        answer.authoritative = elsewhere.authoritative
    connection.send(Type.LOOKUP_RESPONSE, answer)


def refuse_lookup(connection: "Connection", command: proto.CommandLookupTopic, error: BrokerError) -> None:
    answer = proto.CommandLookupTopicResponse(
        request_id=command.request_id,
        response=proto.CommandLookupTopicResponse.Failed,
        error=code(error),
        message=error.text,
    )
    connection.send(Type.LOOKUP_RESPONSE, answer)


def on_partitioned_metadata(connection: "Connection", command: proto.CommandPartitionedTopicMetadata) -> None:
    """Answer with the number of partitions; 0 for a topic without, or one to be created (WIRE-03)."""
    broker = connection.broker
    answer = proto.CommandPartitionedTopicMetadataResponse(request_id=command.request_id)
    try:
        topic = parse_topic(command.topic)
        coordinators = broker.coordinators.partitions_of(topic)
        if coordinators is not None:
            answer.partitions = coordinators
        else:
            if not broker.authorization.may_look_up(connection.roles, topic):
                broker.metadata.check_namespace(topic.namespace_name)
                raise AuthorizationError("Client is not authorized to Get Partition Metadata")
            broker.metadata.check_namespace(topic.namespace_name)
            answer.partitions = broker.topics.partitions_for(topic, command.metadata_auto_creation_enabled)
        answer.response = proto.CommandPartitionedTopicMetadataResponse.Success
    except BrokerError as error:
        refuse_partitioned_metadata(connection, command, error)
        return
    connection.services.journal.confirm(lambda: connection.send(Type.PARTITIONED_METADATA_RESPONSE, answer))


def refuse_partitioned_metadata(
    connection: "Connection", command: proto.CommandPartitionedTopicMetadata, error: BrokerError
) -> None:
    answer = proto.CommandPartitionedTopicMetadataResponse(
        request_id=command.request_id,
        response=proto.CommandPartitionedTopicMetadataResponse.Failed,
        error=code(error),
        message=error.text,
    )
    connection.services.journal.confirm(lambda: connection.send(Type.PARTITIONED_METADATA_RESPONSE, answer))


def on_late_handshake(connection: "Connection", command: Any) -> None:
    """Disconnect on a second CONNECT (WIRE-22)."""
    raise RemoteProtocolError("a command of the handshake after the handshake")


def on_auth_response(connection: "Connection", command: proto.CommandAuthResponse) -> None:
    """Take renewed credentials. Disconnect on an AUTH_RESPONSE without a challenge (WIRE-22)."""
    if connection.authentication is None:
        raise RemoteProtocolError("an AUTH_RESPONSE without an AUTH_CHALLENGE")
    connection.authentication.respond(command)


# --- schemas ------------------------------------------------------------------------------------------


def on_get_schema(connection: "Connection", command: proto.CommandGetSchema) -> None:
    answer = proto.CommandGetSchemaResponse(request_id=command.request_id)
    try:
        topic = parse_topic(command.topic)
        if not connection.broker.authorization.may_look_up(connection.roles, topic):
            raise AuthorizationError("Client is not authorized to GetSchema")
        version = command.schema_version if command.HasField("schema_version") else None
        stored = connection.broker.schemas.get(topic, version)
        answer.schema.CopyFrom(schema_message(stored, topic))
        answer.schema_version = stored.version.to_bytes(8, "big")
    except BrokerError as error:
        refuse_get_schema(connection, command, error)
        return
    connection.services.journal.confirm(lambda: connection.send(Type.GET_SCHEMA_RESPONSE, answer))


def refuse_get_schema(connection: "Connection", command: proto.CommandGetSchema, error: BrokerError) -> None:
    answer = proto.CommandGetSchemaResponse(
        request_id=command.request_id, error_code=code(error), error_message=error.text
    )
    connection.services.journal.confirm(lambda: connection.send(Type.GET_SCHEMA_RESPONSE, answer))


def on_get_or_create_schema(connection: "Connection", command: proto.CommandGetOrCreateSchema) -> None:
    broker = connection.broker
    answer = proto.CommandGetOrCreateSchemaResponse(request_id=command.request_id)
    try:
        topic = parse_topic(command.topic)
        if not broker.authorization.may_produce(connection.roles, topic):
            raise AuthorizationError("Client is not authorized to GetOrCreateSchema")
        if str(topic) not in broker.topics.by_name:
            raise TopicNotFound(f"Topic {topic} does not exist")
        policies = broker.topics.by_name[str(topic)].policies
        version = b""
        if command.schema.type != proto.Schema.Type.Value("None"):
            wall_time = connection.services.wall_time
            version = broker.schemas.register(topic, command.schema, policies, wall_time)
        answer.schema_version = version
    except BrokerError as error:
        refuse_get_or_create_schema(connection, command, error)
        return
    connection.services.journal.confirm(lambda: connection.send(Type.GET_OR_CREATE_SCHEMA_RESPONSE, answer))


def refuse_get_or_create_schema(
    connection: "Connection", command: proto.CommandGetOrCreateSchema, error: BrokerError
) -> None:
    answer = proto.CommandGetOrCreateSchemaResponse(
        request_id=command.request_id, error_code=code(error), error_message=error.text
    )
    connection.services.journal.confirm(lambda: connection.send(Type.GET_OR_CREATE_SCHEMA_RESPONSE, answer))


def refuse_handshake(connection: "Connection", command: Any, error: BrokerError) -> None:
    """Refuse a CONNECT or an AUTH_RESPONSE, which ends the connection."""
    connection.reject(error, f"the handshake is refused: {error}")


HANDLERS: dict[int, Any] = {
    Type.CONNECT: on_late_handshake,
    Type.AUTH_RESPONSE: on_auth_response,
    Type.PING: on_ping,
    Type.PONG: on_pong,
    Type.LOOKUP: on_lookup,
    Type.PARTITIONED_METADATA: on_partitioned_metadata,
    Type.GET_SCHEMA: on_get_schema,
    Type.GET_OR_CREATE_SCHEMA: on_get_or_create_schema,
}

REFUSALS: dict[int, Any] = {
    Type.CONNECT: refuse_handshake,
    Type.AUTH_RESPONSE: refuse_handshake,
    Type.LOOKUP: refuse_lookup,
    Type.PARTITIONED_METADATA: refuse_partitioned_metadata,
    Type.GET_SCHEMA: refuse_get_schema,
    Type.GET_OR_CREATE_SCHEMA: refuse_get_or_create_schema,
}
"""Command -> its answer with an error, as a rule of faults gives it."""
