"""GET_SCHEMA: one question for a definition of a topic, over a connection to the broker of that topic."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from ...model.errors import PulsarError, RemoteProtocolError, broker_error
from ...model.schema import SchemaInfo
from ...model.topic_name import TopicName
from ...wire import encode_command, proto
from ..connecting.connection import Connection
from ..connecting.services import Services
from .schema_message import schema_info

_Command = proto.BaseCommand

QUESTION_VERSION = 13
"""The protocol version from which a broker answers GET_SCHEMA (rule WIRE-21)."""


class VersionedSchema(NamedTuple):
    """An answer. `version`: the bytes of the definition's version, as the broker gives them."""

    info: SchemaInfo
    version: bytes


class SchemaQuestion:
    """A question in flight. One of the callbacks is called, once, unless the question is cancelled.

    `version`: None for the latest one. `failed` gets `TopicNotFound` where the topic has no such definition.
    """

    __slots__ = ("_connection", "_failed", "_known", "_request_id", "_services")

    def __init__(
        self,
        services: Services,
        connection: Connection,
        topic: TopicName,
        version: bytes | None,
        known: Callable[[VersionedSchema], None],
        failed: Callable[[PulsarError], None],
    ) -> None:
        self._services = services
        self._connection = connection
        self._known = known
        self._failed = failed
        self._request_id = services.requests.send(
            connection,
            partial(_frame, topic, version),
            self._answered,
            failed,
            reply=_Command.GET_SCHEMA_RESPONSE,
        )

    def cancel(self) -> None:
        """Prevent both callbacks."""
        self._services.requests.cancel(self._connection, self._request_id)

    def _answered(self, answer: proto.CommandGetSchemaResponse) -> None:
        if answer.HasField("error_code"):
            self._failed(broker_error(answer.error_code, answer.error_message))
            return
        try:
            info = schema_info(answer.schema)
        except RemoteProtocolError as error:
            self._failed(error)
            return
        self._known(VersionedSchema(info, answer.schema_version))


def _frame(topic: TopicName, version: bytes | None, request_id: int) -> bytes:
    command = proto.CommandGetSchema(request_id=request_id, topic=str(topic))
    if version is not None:
        command.schema_version = version
    return encode_command(_Command.GET_SCHEMA, command)
