"""GET_OR_CREATE_SCHEMA: one request to register a definition for a topic, which returns its version."""

from collections.abc import Callable
from functools import partial

from ...model.errors import NotSupported, PulsarError, TopicNotFound, broker_error
from ...model.schema import Schema
from ...model.topic_name import TopicName
from ...wire import encode_command, proto
from ..connecting.connection import Connection
from ..connecting.services import Services
from .schema_message import schema_message

_Command = proto.BaseCommand

REGISTRATION_VERSION = 15
"""The protocol version from which brokers know the command."""


class SchemaRegistration:
    """A request in flight. One of the callbacks is called, once, unless the request is cancelled.

    `known` gets the version; it is empty where the broker does not have the topic yet (exchange
    GET_OR_CREATE_SCHEMA). Raises `NotSupported` for a broker that does not know the command.
    """

    __slots__ = ("_connection", "_failed", "_known", "_request_id", "_services")

    def __init__(
        self,
        services: Services,
        connection: Connection,
        topic: TopicName,
        schema: Schema[object],
        known: Callable[[bytes], None],
        failed: Callable[[PulsarError], None],
    ) -> None:
        if connection.protocol_version < REGISTRATION_VERSION:
            raise NotSupported("the broker takes one schema of a producer only: it is older than Pulsar 2.6")
        self._services = services
        self._connection = connection
        self._known = known
        self._failed = failed
        self._request_id = services.requests.send(
            connection,
            partial(_frame, topic, schema, connection.protocol_version),
            self._answered,
            failed,
            reply=_Command.GET_OR_CREATE_SCHEMA_RESPONSE,
        )

    def cancel(self) -> None:
        """Prevent both callbacks."""
        self._services.requests.cancel(self._connection, self._request_id)

    def _answered(self, answer: proto.CommandGetOrCreateSchemaResponse) -> None:
        if not answer.HasField("error_code"):
            self._known(answer.schema_version)
            return
        error = broker_error(answer.error_code, answer.error_message)
        if isinstance(error, TopicNotFound):
            self._known(b"")
        else:
            self._failed(error)


def _frame(topic: TopicName, schema: Schema[object], protocol_version: int, request_id: int) -> bytes:
    command = proto.CommandGetOrCreateSchema(request_id=request_id, topic=str(topic))
    message = schema_message(schema, protocol_version)
    if message is not None:
        command.schema.CopyFrom(message)
    return encode_command(_Command.GET_OR_CREATE_SCHEMA, command)
