"""Decoders: the payloads of one definition as an array of values.

A decoder takes many payloads at once and raises where one of them holds no value; the caller finds out which.
It gives values of the type that they were written with. What a query reads may be another type.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from pulsar_sansio import SchemaDecodingError
from pulsar_sansio.schemas import (
    AvroSchema,
    JsonSchema,
    SchemaInfo,
    SchemaType,
)
from pulsar_sansio.schemas.key_value import split_inline
from pulsar_sansio.schemas.protobuf_schema import decode_message

from . import primitive_types
from .avro_types import payload_definition, tree_of, type_of
from .families import Family, family_of, pair_of
from .primitive_types import PRIMITIVES, Payloads
from .protobuf_types import MessageType, message_class
from .value_types import UnfitError, ValueField, ValueType, struct_of

REFUSALS = (SchemaDecodingError, UnfitError, pa.ArrowException, OverflowError, TypeError)
"""The errors of decoders for payloads that hold no value. Arrow has some of Python's own."""


class Decoder(ABC):
    """The decoder of one definition. `type`: of its values."""

    type: ValueType

    @abstractmethod
    def decode(self, payloads: Payloads, keys: Payloads) -> Any:
        """Return the array of values. `keys`: those of the messages, which most decoders ignore.

        A null payload is null. Raises one of `REFUSALS`."""


class PrimitiveDecoder(Decoder):
    """Payloads of a primitive type."""

    def __init__(self, info: SchemaInfo) -> None:
        self._kind = info.type
        self.type = ValueType(PRIMITIVES[info.type])

    def decode(self, payloads: Payloads, keys: Payloads) -> Any:
        return primitive_types.read(self._kind, payloads)


class StructureDecoder(Decoder):
    """Payloads of an AVRO or JSON schema. The core makes plain data of each, and Arrow arrays of it all."""

    def __init__(self, info: SchemaInfo) -> None:
        tree = tree_of(info)
        self.type = type_of(tree, info.type)
        schema = AvroSchema if info.type is SchemaType.AVRO else JsonSchema
        self._decode = schema(definition=payload_definition(tree, info.type)).decode

    def decode(self, payloads: Payloads, keys: Payloads) -> Any:
        decode = self._decode
        values = [None if each is None else decode(each) for each in payloads]
        return pa.array(values, self.type.arrow)


class ProtobufDecoder(Decoder):
    """Payloads of a PROTOBUF_NATIVE schema."""

    def __init__(self, info: SchemaInfo) -> None:
        self._schema_type = info.type
        self._model = message_class(info)
        self._messages = MessageType(self._model)
        self.type = self._messages.type

    def decode(self, payloads: Payloads, keys: Payloads) -> Any:
        read, model, kind = self._messages.read, self._model, self._schema_type
        values = [None if each is None else read(decode_message(model, kind, each)) for each in payloads]
        return pa.array(values, self.type.arrow)


class KeyValueDecoder(Decoder):
    """Pairs of a key and a value, each of which may be null."""

    def __init__(self, info: SchemaInfo) -> None:
        key, value, self._separated = pair_of(info)
        self._key, self._value = decoder_of(key), decoder_of(value)
        self.type = struct_of(
            (ValueField("key", self._key.type, None), ValueField("value", self._value.type, None))
        )

    def decode(self, payloads: Payloads, keys: Payloads) -> Any:
        nulls = None
        if not self._separated:
            nulls = pa.array([each is None for each in payloads], pa.bool_())
            pairs = [(None, None) if each is None else split_inline(each) for each in payloads]
            keys, payloads = [key for key, _ in pairs], [value for _, value in pairs]
        parts = [self._key.decode(keys, ()), self._value.decode(payloads, ())]
        return pa.StructArray.from_arrays(parts, fields=list(self.type.arrow), mask=nulls)


_DECODERS: dict[Family, Callable[[SchemaInfo], Decoder]] = {
    Family.PRIMITIVE: PrimitiveDecoder,
    Family.STRUCTURE: StructureDecoder,
    Family.PROTOBUF: ProtobufDecoder,
    Family.PAIR: KeyValueDecoder,
}


def decoder_of(info: SchemaInfo) -> Decoder:
    """Return the decoder of a definition. Raises `NoSparkTypeError` where Spark has no type for it."""
    return _DECODERS[family_of(info)](info)


def decode_each(
    decode: Callable[[Payloads, Payloads], Any], payloads: Payloads, keys: Payloads
) -> Iterator[tuple[int, Any | Exception]]:
    """Decode payloads of which some may hold no value: pairs of a number of payloads, and their array, or the
    error of the one. `decode` takes payloads and keys."""
    try:
        yield len(payloads), decode(payloads, keys)
        return
    except REFUSALS as error:
        if len(payloads) == 1:
            yield 1, error
            return
    half = len(payloads) // 2
    yield from decode_each(decode, payloads[:half], keys[:half])
    yield from decode_each(decode, payloads[half:], keys[half:])
