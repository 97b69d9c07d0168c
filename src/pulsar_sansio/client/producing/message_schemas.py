"""`MessageSchemas`: the versions of schemas that messages of one producer have beside the producer's own.

A message is stamped with the version of its schema, which the broker gives when the schema is registered. A
schema is registered once, before its first message, and the version is kept over reconnects, as in the Java
client. The `Admission` holds the messages that wait for a version.
"""

from collections import OrderedDict
from collections.abc import Callable
from functools import partial

from ...model.errors import NotSupported, PulsarError
from ...model.schema import Schema, SchemaInfo, SchemaType
from ..connecting.connection import Connection
from ..lookup.questions import Query, Withdrawable
from ..lookup.retried_lookup import RetriedLookup
from ..schemas.schema_registration import SchemaRegistration
from .producer_services import ProducerServices

MAX_VERSIONS = 100
"""Versions that a producer keeps; a schema beyond them is registered again."""


class MessageSchemas:
    """`known` is called when a version has become known; `failed`, when the broker refused a schema."""

    __slots__ = ("_connection", "_failed", "_known", "_registration", "_services", "_versions", "wanted")

    def __init__(
        self,
        services: ProducerServices,
        known: Callable[[], None],
        failed: Callable[[SchemaInfo, PulsarError], None],
    ) -> None:
        self._services = services
        self._known = known
        self._failed = failed
        self._connection: Connection | None = None
        self._versions: OrderedDict[SchemaInfo, bytes] = OrderedDict()
        self._registration: RetriedLookup | None = None
        self.wanted: SchemaInfo | None = None
        """The schema that is being registered."""

    def version(self, schema: Schema[object]) -> bytes | None:
        """Return the version of a schema, empty for bytes; None where it has to be registered first."""
        info = schema.info
        if info.type is SchemaType.NONE:
            return b""
        version = self._versions.get(info)
        if version is not None:
            self._versions.move_to_end(info)
        return version

    def register(self, schema: Schema[object]) -> None:
        """Register a schema, now or on the next connection. `known` or `failed` follows within the operation
        timeout. Another schema that is wanted is given up: its messages have failed."""
        info = schema.info
        if self.wanted == info:
            return
        self.close()
        self.wanted = info
        services = self._services
        self._registration = RetriedLookup(
            services.client,
            services.handle,
            f"schema versions of {services.topic}",
            partial(self._ask, schema),
            partial(self._registered, info),
            partial(self._refused, info),
        )
        if self._connection is not None:
            self._registration.ask()

    def attached(self, connection: Connection) -> None:
        """Ask over this connection from now on."""
        self._connection = connection
        if self._registration is not None:
            self._registration.ask()

    def detached(self) -> None:
        """Wait for the next connection."""
        self._connection = None
        if self._registration is not None:
            self._registration.pause()

    def close(self) -> None:
        """Ask for nothing any more."""
        if self._registration is not None:
            self._registration.cancel()
        self._registration = self.wanted = None

    def _ask(
        self,
        schema: Schema[object],
        known: Callable[[bytes], None],
        failed: Callable[[PulsarError], None],
    ) -> Withdrawable:
        services = self._services
        assert self._connection is not None
        try:
            return SchemaRegistration(
                services.client, self._connection, services.topic, schema, known, failed
            )
        except NotSupported as error:
            failed(error)
            return Query(known, failed)

    def _registered(self, info: SchemaInfo, version: bytes) -> None:
        self._registration = self.wanted = None
        self._versions[info] = version
        if len(self._versions) > MAX_VERSIONS:
            self._versions.popitem(last=False)
        self._known()

    def _refused(self, info: SchemaInfo, error: PulsarError) -> None:
        self._registration = self.wanted = None
        self._failed(info, error)
