"""`OriginalSchemas`: the definitions of messages that were read, for the copies of them that are written.

A row names its definition by a topic, in `__schemaTopic`, and a version of that topic's schema, in
`__schemaVersion`. The task asks the broker once for each. A copy has the definition of its original, and not
its version: versions count by topic. This module knows nothing of rows.
"""

import logging
from collections.abc import Callable
from typing import TypeAlias

from pulsar_sansio.schemas import RegisteredSchema, SchemaInfo

log = logging.getLogger("pulsar_spark.sink")

Ask: TypeAlias = Callable[[str, bytes], SchemaInfo | None]
"""Asks the broker for the definition that a topic has under a version."""


class OriginalSchemas:
    """The definitions that the rows of one task name."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._known: dict[tuple[str, bytes], RegisteredSchema | None] = {}
        self._by_definition: dict[SchemaInfo, RegisteredSchema] = {}

    def of(self, topic: str | None, version: bytes | None) -> RegisteredSchema | None:
        """Return the definition of a row; None for bytes, and where the broker has no such version. Equal
        definitions are one object. Raises what `ask` raises."""
        if topic is None or not version:
            return None
        if (topic, version) not in self._known:
            info = self._ask(topic, version)
            if info is None:
                log.warning("%s has no schema of version %s: copies have none", topic, version.hex())
            found = None if info is None else self._by_definition.setdefault(info, RegisteredSchema(info))
            self._known[topic, version] = found
        return self._known[topic, version]
