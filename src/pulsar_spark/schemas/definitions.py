"""`Definitions`: what makes values of messages, for each topic and version that they were written with.

A version of a topic never changes, so the broker is asked once for it; partitions share the definitions of
their topic. Messages without a version are read with the latest definition of their topic. Whatever a
message was written with, its value becomes one of the type that the query reads.
"""

from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any

from pulsar_sansio import TopicName
from pulsar_sansio.schemas import SchemaInfo

from .avro_types import NoSparkTypeError
from .decoders import Decoder, decoder_of
from .primitive_types import Payloads
from .value_types import UnfitError, ValueType, check_fit, check_members, conform

Ask = Callable[[str, bytes | None], SchemaInfo | None]
"""Asks the broker for the definition of a topic or partition: of a version, or the latest. None: no such."""

Decode = Callable[[Payloads, Payloads], Any]
"""Makes an array of payloads and keys. Raises one of `decoders.REFUSALS`."""

MAX_DEFINITIONS = 100
"""Definitions that a task keeps. Topics have few versions, and a task has few topics at a time."""


class NoDecoderError(ValueError):
    """No message of a version has a value of the wanted type; the text says why."""


class Definitions:
    """The definitions that one task has used last.

    `target`: the Arrow type of values, as Spark has it. `reader`: where defaults of fields come from that a
    message lacks; None where they are null.
    """

    def __init__(self, ask: Ask, target: Any, reader: ValueType | None) -> None:
        self._ask = ask
        self._target = target
        self._reader = reader
        self._known: OrderedDict[tuple[str, bytes | None], Decode | NoDecoderError] = OrderedDict()

    def decode(self, topic: str, version: bytes | None) -> Decode:
        """Return the function for messages of a topic or partition. Raises `NoDecoderError`, and the errors
        of a broker that cannot be asked."""
        key = str(TopicName.parse(topic).base), version or None
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._made(topic, version or None)
            if len(self._known) > MAX_DEFINITIONS:
                self._known.popitem(last=False)
        self._known.move_to_end(key)
        if isinstance(found, NoDecoderError):
            raise found
        return found

    def _made(self, topic: str, version: bytes | None) -> Decode | NoDecoderError:
        info = self._ask(topic, version)
        if info is None:
            return NoDecoderError(
                "the topic has no schema" if version is None else "the broker has no such version"
            )
        try:
            decoder = decoder_of(info)
            check_fit(decoder.type.arrow, self._target, self._reader)
            check_members(decoder.type, self._target)
        except (NoSparkTypeError, UnfitError) as error:
            return NoDecoderError(str(error))
        return partial(self._decoded, decoder)

    def _decoded(self, decoder: Decoder, payloads: Payloads, keys: Payloads) -> Any:
        return conform(decoder.decode(payloads, keys), self._target, self._reader)


def version_words(version: bytes | None) -> str:
    """Return a schema version as people count it."""
    if not version:
        return "no schema version"
    return f"schema version {int.from_bytes(version, 'big') if len(version) == 8 else version.hex()}"
