"""`SchemaStrategy`: which versions of a topic's schema must be able to read which others.

A schema can read another one if every payload that was written with the other one gives a value. For AVRO,
JSON and PROTOBUF, Avro's rules of resolution decide that (the library `avro`, extra `avro`).
"""

from collections.abc import Sequence
from enum import Enum
from functools import lru_cache
from typing import Any

from ...model.errors import IncompatibleSchema, SchemaDecodingError
from ...model.schema import SchemaInfo, SchemaType
from ...schemas.definitions import AvroDefinition, named_as
from ...schemas.key_value import parts_of
from ...schemas.shapes.shape import avro_text

AVRO_TYPES = (SchemaType.AVRO, SchemaType.JSON, SchemaType.PROTOBUF)
"""The types whose definition is an Avro type."""


class SchemaStrategy(Enum):
    """A policy of a topic, a namespace or the broker, by Pulsar's names.

    BACKWARD: the new schema reads the latest one. FORWARD: the latest one reads the new one. FULL: both. The
    transitive ones ask that of all versions, not of the latest one only.
    """

    ALWAYS_INCOMPATIBLE = "ALWAYS_INCOMPATIBLE"
    ALWAYS_COMPATIBLE = "ALWAYS_COMPATIBLE"
    BACKWARD = "BACKWARD"
    FORWARD = "FORWARD"
    FULL = "FULL"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"

    @property
    def transitive(self) -> bool:
        return self.name.endswith("_TRANSITIVE")

    @property
    def new_reads_old(self) -> bool:
        return self.name.startswith(("BACKWARD", "FULL"))

    @property
    def old_reads_new(self) -> bool:
        return self.name.startswith(("FORWARD", "FULL"))

    def check(self, new: SchemaInfo, versions: Sequence[SchemaInfo]) -> None:
        """Raise `IncompatibleSchema` where `new` may not follow `versions`, the latest one last."""
        if self is SchemaStrategy.ALWAYS_COMPATIBLE or not versions:
            return
        present = versions[-1]
        if new.type is not present.type:
            raise IncompatibleSchema(
                f"Incompatible schema: exists schema type {present.type.name}, "
                f"new schema type {new.type.name}"
            )
        if self is SchemaStrategy.ALWAYS_INCOMPATIBLE:
            raise IncompatibleSchema("Incompatible schema: the strategy is ALWAYS_INCOMPATIBLE")
        for old in versions if self.transitive else versions[-1:]:
            if self.new_reads_old:
                self._check_reads(new, old, "the new schema cannot read the present one")
            if self.old_reads_new:
                self._check_reads(old, new, "the present schema cannot read the new one")

    def check_reader(self, reader: SchemaInfo, versions: Sequence[SchemaInfo]) -> None:
        """Raise `IncompatibleSchema` where a consumer with the schema `reader` may not read `versions`.

        A consumer writes nothing: also FORWARD asks that it reads the latest version.
        """
        match self:
            case SchemaStrategy.BACKWARD_TRANSITIVE | SchemaStrategy.FULL_TRANSITIVE:
                self.check(reader, versions)
            case SchemaStrategy.ALWAYS_COMPATIBLE | SchemaStrategy.ALWAYS_INCOMPATIBLE:
                self.check(reader, versions)
            case _:
                SchemaStrategy.BACKWARD.check(reader, versions)

    def _check_reads(self, reader: SchemaInfo, writer: SchemaInfo, words: str) -> None:
        reason = unreadable(reader, writer)
        if reason:
            raise IncompatibleSchema(f"Incompatible schema: {words} ({self.value}): {reason}")


def unreadable(reader: SchemaInfo, writer: SchemaInfo) -> str:
    """Return the reason why `reader` cannot read what was written with `writer`; an empty text if it can."""
    if reader.type is not writer.type:
        return f"exists schema type {writer.type.name}, new schema type {reader.type.name}"
    if reader.type in AVRO_TYPES:
        return _avro_reason(reader.data, writer.data)
    if reader.type is SchemaType.PROTOBUF_NATIVE:
        from .validation import root_message

        names = root_message(reader.data), root_message(writer.data)
        return "" if names[0] == names[1] else f"the root message is {names[1]} and not {names[0]}"
    if reader.type is SchemaType.KEY_VALUE:
        return _key_value_reason(reader, writer)
    return ""


def _key_value_reason(reader: SchemaInfo, writer: SchemaInfo) -> str:
    try:
        halves = zip(("key", "value"), parts_of(reader)[:2], parts_of(writer)[:2], strict=True)
    except SchemaDecodingError as error:
        return str(error)
    for name, mine, theirs in halves:
        reason = unreadable(mine, theirs)
        if reason:
            return f"{name}: {reason}"
    return ""


@lru_cache(maxsize=64)
def _avro_reason(reader: bytes, writer: bytes) -> str:
    """Ask the library, which says what differs and where."""
    compatibility, schema = avro_library()
    written = AvroDefinition(writer).avro
    wanted = named_as(AvroDefinition(reader).avro, written)
    try:
        found: Any = compatibility.ReaderWriterCompatibilityChecker().get_compatibility(
            schema.parse(avro_text(wanted), validate_names=False),
            schema.parse(avro_text(written), validate_names=False),
        )
    except schema.avro.errors.AvroException as error:
        return f"the library avro refuses a definition: {error}"[:300]
    except RecursionError:
        return "the definitions are nested too deep to be compared"
    if found.compatibility.value == "compatible":
        return ""
    kinds = sorted(each.value.replace("_", " ") for each in found.incompatibilities)
    return f"{', '.join(kinds)}: {', '.join(sorted(found.messages))} at {', '.join(sorted(found.locations))}"


def avro_library() -> tuple[Any, Any]:
    """Return the modules of `avro`. Raises `IncompatibleSchema` where it is not installed."""
    try:
        import avro.compatibility
        import avro.schema
    except ImportError:
        raise IncompatibleSchema(
            "this broker compares no Avro definitions: install the extra 'avro' "
            "(pip install 'pulsar-trio[avro]')"
        ) from None
    return avro.compatibility, avro.schema
