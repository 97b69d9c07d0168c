"""Schemas on the brokers' ends of the wires: what a broker registers, refuses and answers (INV-S6, INV-S7).

Owns the requests that name a schema or ask for one, until they are answered. What the answers must be belongs
to `model.schemas.versions`.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from pulsar_sansio.wire import proto

from ..engine.network import Wire
from ..model.reference_model import ReferenceModel
from ..model.schemas.definition import Definition
from ..model.schemas.questions import whole

T = proto.BaseCommand


class NamedSchema(NamedTuple):
    """PRODUCER, GET_OR_CREATE_SCHEMA or SUBSCRIBE with a schema."""

    topic: str
    definition: Definition
    of_producer: bool
    at: int


class VersionAsked(NamedTuple):
    """GET_SCHEMA for one version."""

    topic: str
    version: bytes
    at: int


class BrokerSchemaWatch:
    """The schemas at all brokers' ends."""

    def __init__(self, model: ReferenceModel) -> None:
        self._model = model
        self._open: dict[tuple[int, int], NamedSchema | VersionAsked] = {}
        """Requests by wire and request id."""

    def got(self, wire: Wire, kind: int, command: Any) -> None:
        if self._model.schemas is None:
            return
        now = wire.network.clock.now
        if kind == T.GET_SCHEMA and command.HasField("schema_version"):
            self._open[wire.number, command.request_id] = VersionAsked(
                command.topic, command.schema_version, now
            )
        elif kind in (T.PRODUCER, T.GET_OR_CREATE_SCHEMA, T.SUBSCRIBE) and command.HasField("schema"):
            schemas = self._model.schemas
            definition = schemas.known_as(command.schema.type, command.schema.schema_data)
            if definition is not None:
                topic = whole(command.topic)
                key = wire.number, command.request_id
                self._open[key] = NamedSchema(topic, definition, kind != T.SUBSCRIBE, now)
                if kind != T.SUBSCRIBE:
                    schemas.versions.try_out(topic, definition)

    def wrote(self, wire: Wire, kind: int, command: Any) -> None:
        if self._model.schemas is None or kind not in _ANSWERS:
            return
        if kind == T.PRODUCER_SUCCESS and not command.producer_ready:
            return
        request = self._open.pop((wire.number, command.request_id), None)
        if request is None or request.at <= self._model.schemas.versions.of(request.topic).deleted_at:
            return
        if isinstance(request, VersionAsked):
            self._answered(request, command)
        elif kind == T.ERROR:
            if command.error == proto.IncompatibleSchema:
                self._refused(request)
        elif kind == T.GET_OR_CREATE_SCHEMA_RESPONSE and command.HasField("error_code"):
            if command.error_code == proto.IncompatibleSchema:
                self._refused(request)
        else:
            self._accepted(request, command)

    def died(self, topics: Iterable[str]) -> None:
        """A broker that served these topics was killed."""
        if self._model.schemas is not None:
            for topic in topics:
                self._model.schemas.versions.may_be_forgotten(whole(topic))

    def forget(self, wire: Wire) -> None:
        for key in [key for key in self._open if key[0] == wire.number]:
            del self._open[key]

    def _answered(self, request: VersionAsked, command: Any) -> None:
        schemas = self._model.schemas
        assert schemas is not None
        definition = None
        if type(command) is proto.CommandGetSchemaResponse and command.HasField("schema"):
            definition = schemas.known_as(command.schema.type, command.schema.schema_data)
        schemas.versions.answers(request.topic, request.version, definition)

    def _refused(self, request: NamedSchema) -> None:
        schemas = self._model.schemas
        assert schemas is not None
        refused = schemas.versions.refused if request.of_producer else schemas.versions.keeps_out
        refused(request.topic, request.definition)

    def _accepted(self, request: NamedSchema, command: Any) -> None:
        schemas = self._model.schemas
        assert schemas is not None
        topic, definition, strategy = request.topic, request.definition, schemas.strategy
        if request.of_producer:
            schemas.versions.returned(topic, command.schema_version, definition, strategy)
        else:
            schemas.versions.lets_in(topic, definition, strategy)


_ANSWERS = (
    T.PRODUCER_SUCCESS,
    T.SUCCESS,
    T.ERROR,
    T.GET_SCHEMA_RESPONSE,
    T.GET_OR_CREATE_SCHEMA_RESPONSE,
)
