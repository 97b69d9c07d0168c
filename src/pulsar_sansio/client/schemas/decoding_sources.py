"""`DecodingSources`: the sources of a consumer's messages, one for each definition they were written with.

A schema that wants the writer's definition cannot decode a message before that definition is there. The
consumer asks for one version at a time: that of the first message that waits for one. A question that fails
releases its messages, whose values then raise `SchemaUnavailable`, unless the schema decodes without. After a
pause, the next message of that version makes the consumer ask anew.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from ...model.errors import ConnectionLost, PulsarError, TimedOut, UnsupportedVersion
from ...model.message import Source, ValueDecoder
from ...model.schema import Schema, SchemaInfo
from ...model.topic_name import TopicName
from ...schemas import AutoConsume
from ..connecting.connection import Connection
from ..connecting.services import Services
from .schema_question import QUESTION_VERSION, SchemaQuestion, VersionedSchema
from .schema_versions import MAX_VERSIONS, Asker
from .value_decoder import NoDecoder, WriterDecoder

PAUSE = 1_000_000_000
"""Nanoseconds in which the consumer does not ask again for what it could not have: one question a second,
however many messages arrive."""


def needs_definitions(schema: Schema[Any], letters: bool) -> bool:
    """Tell if a consumer asks for the definitions that its messages were written with: to decode them, or to
    give them to their letters. A primitive type has one definition only."""
    return schema.wants_writer or (letters and bool(schema.info.data))


class DecodingSources:
    """`plain`: the source of messages without a version. `released` is called when messages that wait may
    have a source."""

    __slots__ = (
        "_ask_again",
        "_asker",
        "_connection",
        "_plain",
        "_refused",
        "_schema",
        "_services",
        "_sources",
        "_versions",
        "released",
    )

    def __init__(self, services: Services, topic: TopicName, schema: Schema[Any], plain: Source) -> None:
        self._services = services
        self._schema = schema
        self._plain = plain
        self._versions = services.schemas.join(topic)
        self._sources: OrderedDict[bytes, Source] = OrderedDict()
        self._connection: Connection | None = None
        self._asker: Asker | None = None
        self._refused: list[bytes] = []
        """Versions that could not be had, since the pause began."""
        self._ask_again = services.context.deadlines.slot(self._forget_refused)
        self.released: Callable[[], None] = _nothing

    def of(self, version: bytes | None) -> Source | None:
        """Return the source of messages of that version; None while its definition is not known, which is
        asked for."""
        if not version:
            return self._plain
        source = self._sources.get(version)
        if source is not None:
            return source
        info = self._services.schemas.get(self._versions, version)
        if info is None:
            if self._is_too_old():
                return self._plain.decoding(self._undefined(version, self._too_old()))
            self._ask(version)
            return None
        return self._keep(version, WriterDecoder(self._schema, info))

    def define(
        self, version: bytes, known: Callable[[SchemaInfo], None], failed: Callable[[PulsarError], None]
    ) -> None:
        """Ask for a definition that is not known, for a message that is not delivered. One of the callbacks
        is called, once, also after the consumer has ended."""
        assert self._connection is not None
        if self._is_too_old():
            failed(self._too_old())
            return
        self._services.schemas.ask(self._versions, version, self._connection, known, failed)

    def ask_latest(
        self, connection: Connection, proceed: Callable[[], None], failed: Callable[[PulsarError], None]
    ) -> SchemaQuestion | None:
        """Ask for the latest definition before SUBSCRIBE, for a consumer that detects it (rule CLIENT-16).
        Most messages are written with it. Return None where nothing is asked.

        A refusal fails nothing: the consumer asks again for the versions of its messages.
        """
        old = connection.protocol_version < QUESTION_VERSION
        if not isinstance(self._schema, AutoConsume) or self._versions.known or old:
            return None

        def known(found: VersionedSchema) -> None:
            if found.version:
                self._versions.keep(found.version, found.info)
            proceed()

        def not_known(error: PulsarError) -> None:
            if isinstance(error, ConnectionLost | TimedOut):
                failed(error)
            else:
                proceed()

        return SchemaQuestion(self._services, connection, self._versions.topic, None, known, not_known)

    def attach(self, connection: Connection) -> None:
        self._connection = connection

    def detach(self) -> None:
        """Ask nothing more: the broker redelivers the messages that wait."""
        self._connection = None
        if self._asker is not None:
            self._asker.cancel()
            self._asker = None

    def end(self) -> None:
        """The consumer has ended."""
        self.detach()
        self._ask_again.clear()
        self._refused.clear()
        self._services.schemas.leave(self._versions)

    def _is_too_old(self) -> bool:
        """True when the broker answers no question for a definition."""
        return self._connection is not None and self._connection.protocol_version < QUESTION_VERSION

    def _too_old(self) -> UnsupportedVersion:
        assert self._connection is not None
        return UnsupportedVersion(f"the broker speaks protocol {self._connection.protocol_version}")

    def _undefined(self, version: bytes, error: PulsarError) -> ValueDecoder:
        """Return the decoder of messages whose definition could not be had."""
        if not self._schema.wants_writer:
            return WriterDecoder(self._schema, None)
        number = int.from_bytes(version, "big") if len(version) == 8 else version.hex()
        return NoDecoder(
            f"version {number} of the schema of {self._versions.topic} could not be had: {error}"
        )

    def _keep(self, version: bytes, decoder: ValueDecoder) -> Source:
        source = self._sources[version] = self._plain.decoding(decoder)
        if len(self._sources) > MAX_VERSIONS:
            self._sources.popitem(last=False)
        return source

    def _forget_refused(self) -> None:
        for version in self._refused:
            self._sources.pop(version, None)
        self._refused.clear()

    def _ask(self, version: bytes) -> None:
        connection = self._connection
        if connection is None or self._asker is not None:
            return

        def known(_: SchemaInfo) -> None:
            self._asker = None
            self.released()

        def failed(error: PulsarError) -> None:
            self._asker = None
            if isinstance(error, ConnectionLost):  # of another consumer, or the next attachment begins anew
                if connection.ready:
                    self.released()
                return
            self._keep(version, self._undefined(version, error))
            self._refused.append(version)
            if self._ask_again.when is None:
                self._ask_again.set(self._services.context.now + PAUSE)
            self.released()

        self._asker = self._services.schemas.ask(self._versions, version, connection, known, failed)


def _nothing() -> None:
    """Stands for a queue that does not exist yet."""
