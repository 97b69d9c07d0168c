"""`KeyValueSchema`: messages whose key and value each have a schema.

In the encoding SEPARATED the payload is the value, and the key is the message's key, as Base64. In INLINE
both are in the payload, each behind its length (rule SCHEMA-09).
"""

import json
import struct
from collections.abc import Callable
from enum import Enum
from typing import Any, Generic, NamedTuple, TypeVar

from ..model.errors import InvalidConfiguration, InvalidMessage, SchemaDecodingError
from ..model.schema import Schema, SchemaInfo, SchemaType

K = TypeVar("K")
V = TypeVar("V")

_LENGTH = struct.Struct(">i")
_NULL = -1
_ENCODING = "kv.encoding.type"
"""The property of a definition that has the encoding."""


class KeyValueEncoding(Enum):
    """The place of the key."""

    INLINE = "INLINE"
    """In the payload, with the value. Messages have no key for routing, ordering and compaction."""
    SEPARATED = "SEPARATED"
    """In the message's key; the payload is the value."""


class KeyValue(NamedTuple, Generic[K, V]):
    """A key and a value, each of which may be null."""

    key: K
    value: V


class KeyValueSchema(Schema[KeyValue[K, V]], Generic[K, V]):
    """`KeyValueSchema(STRING, AvroSchema(Order))`: `KeyValue`s of text and orders."""

    def __init__(
        self,
        key: Schema[K],
        value: Schema[V],
        encoding: KeyValueEncoding = KeyValueEncoding.SEPARATED,
    ) -> None:
        for name, part in (("key", key), ("value", value)):
            if not isinstance(part, Schema) or part.info.type in _NOT_WITHIN:
                raise InvalidConfiguration(
                    f"{name}: a schema of bytes, a primitive type or a struct, not {part!r}"
                )
        self.key = key
        self.value = value
        self.encoding = KeyValueEncoding(encoding)
        self.wants_writer = key.wants_writer or value.wants_writer
        self._info = key_value_info(key.info, value.info, self.encoding)

    @property
    def info(self) -> SchemaInfo:
        return self._info

    def encode(self, value: KeyValue[K, V]) -> bytes:
        """Return the payload; that of the encoding SEPARATED has no key, see `encode_key`."""
        key, inner = _pair(value)
        if self.encoding is KeyValueEncoding.SEPARATED:
            return b"" if inner is None else self.value.encode(inner)
        return join_inline(
            None if key is None else self.key.encode(key),
            None if inner is None else self.value.encode(inner),
        )

    def encode_key(self, value: KeyValue[K, V]) -> bytes | None:
        """Return the bytes of the message's key; None for a null key. Only for the encoding SEPARATED."""
        key, _ = _pair(value)
        return None if key is None else self.key.encode(key)

    def decode(self, data: bytes) -> KeyValue[K, V]:
        return self.decoder(None)(data)

    def decoder(self, writer: SchemaInfo | None) -> Callable[[bytes], KeyValue[K, V]]:
        key, value = self._decoders(writer)
        if self.encoding is KeyValueEncoding.SEPARATED:
            raise SchemaDecodingError(
                "schema KEY_VALUE: the key is not in the payload, see `separated_decoder`"
            )

        def decode(data: bytes) -> KeyValue[K, V]:
            key_data, value_data = split_inline(data)
            return _key_value(key_data, value_data, key, value)

        return decode

    def keys_are_separate(self, writer: SchemaInfo | None) -> bool:
        """Tell if the key is in the message's key, so that values need `separated_decoder`."""
        return self.encoding is KeyValueEncoding.SEPARATED

    def separated_decoder(
        self, writer: SchemaInfo | None
    ) -> Callable[[bytes | None, bytes | None], KeyValue[K, V]]:
        """Return a function of the message's key and payload, each None where it is null."""
        key, value = self._decoders(writer)
        return lambda key_data, value_data: _key_value(key_data, value_data, key, value)

    def _decoders(self, writer: SchemaInfo | None) -> tuple[Callable[[bytes], K], Callable[[bytes], V]]:
        if writer is None:
            return self.key.decoder(None), self.value.decoder(None)
        key, value, _ = parts_of(writer)
        return self.key.decoder(key), self.value.decoder(value)

    def __repr__(self) -> str:
        return f"<schema KEY_VALUE {self.key!r} {self.value!r} {self.encoding.value}>"


_NOT_WITHIN = (SchemaType.KEY_VALUE, SchemaType.AUTO_CONSUME, SchemaType.EXTERNAL)


def _pair(value: Any) -> tuple[Any, Any]:
    if isinstance(value, tuple) and len(value) == 2:
        return value
    raise InvalidMessage(f"schema KEY_VALUE: a KeyValue, not {type(value).__name__}")


def _key_value(key_data: bytes | None, value_data: bytes | None, key: Any, value: Any) -> KeyValue[Any, Any]:
    return KeyValue(
        None if key_data is None else key(key_data), None if value_data is None else value(value_data)
    )


def join_inline(key: bytes | None, value: bytes | None) -> bytes:
    """Return an INLINE payload of a key and a value, each of which may be null."""
    return b"".join(
        _LENGTH.pack(_NULL) if part is None else _LENGTH.pack(len(part)) + part for part in (key, value)
    )


def split_inline(data: bytes) -> tuple[bytes | None, bytes | None]:
    """Return key and value of an INLINE payload. Raises `SchemaDecodingError` for lengths beyond it."""
    key, rest = _taken(data, 0)
    value, end = _taken(data, rest)
    if end != len(data):
        raise SchemaDecodingError(f"schema KEY_VALUE: {len(data) - end} bytes after the value")
    return key, value


def _taken(data: bytes, start: int) -> tuple[bytes | None, int]:
    if len(data) < start + 4:
        raise SchemaDecodingError(f"schema KEY_VALUE: no length at byte {start} of {len(data)}")
    (length,) = _LENGTH.unpack_from(data, start)
    start += 4
    if length == _NULL:
        return None, start
    if not 0 <= length <= len(data) - start:
        raise SchemaDecodingError(
            f"schema KEY_VALUE: length {length} at byte {start - 4}, where {len(data) - start} bytes are left"
        )
    return data[start : start + length], start + length


# --- the definition ---------------------------------------------------------------------------------------


def key_value_info(key: SchemaInfo, value: SchemaInfo, encoding: KeyValueEncoding) -> SchemaInfo:
    """Return the definition: both definitions, each behind its length, and their kinds as properties."""
    properties = []
    for name, part in (("key", key), ("value", value)):
        properties.append((f"{name}.schema.name", part.name))
        properties.append((f"{name}.schema.type", _type_name(part.type)))
        inner = json.dumps(dict(part.properties), separators=(",", ":"), ensure_ascii=False)
        properties.append((f"{name}.schema.properties", inner))
    properties.append((_ENCODING, encoding.value))
    return SchemaInfo(SchemaType.KEY_VALUE, "KeyValue", join_inline(key.data, value.data), tuple(properties))


def _type_name(type: SchemaType) -> str:
    """Return Java's name of a type; its clients write BYTES for none."""
    return "BYTES" if type is SchemaType.NONE else type.name


def is_separated(info: SchemaInfo | None) -> bool:
    """Tell if a definition is one of pairs whose key is in the message's key."""
    if info is None or info.type is not SchemaType.KEY_VALUE:
        return False
    return (_ENCODING, KeyValueEncoding.SEPARATED.value) in info.properties


def parts_of(info: SchemaInfo) -> tuple[SchemaInfo, SchemaInfo, KeyValueEncoding]:
    """Return key, value and encoding of a definition. Raises `SchemaDecodingError` for a malformed one."""
    if info.type is not SchemaType.KEY_VALUE:
        raise SchemaDecodingError(f"schema KEY_VALUE: the message was written as {info.type.name}")
    key_data, value_data = split_inline(info.data)
    properties = dict(info.properties)
    parts = []
    for name, data in (("key", key_data), ("value", value_data)):
        type_name = properties.get(f"{name}.schema.type", "BYTES")
        try:
            kind = SchemaType.NONE if type_name == "BYTES" else SchemaType[type_name]
            inner = json.loads(properties.get(f"{name}.schema.properties", "{}"))
            pairs = tuple((str(key), str(value)) for key, value in inner.items())
        except (KeyError, ValueError, AttributeError, RecursionError):
            raise SchemaDecodingError(f"schema KEY_VALUE: wrong properties of the {name}") from None
        if kind in _NOT_WITHIN:
            raise SchemaDecodingError(f"schema KEY_VALUE: the {name} is of type {type_name}")
        parts.append(SchemaInfo(kind, properties.get(f"{name}.schema.name", ""), data or b"", pairs))
    try:
        encoding = KeyValueEncoding(properties.get(_ENCODING, "INLINE"))
    except ValueError:
        raise SchemaDecodingError(f"schema KEY_VALUE: {_ENCODING} is INLINE or SEPARATED") from None
    return parts[0], parts[1], encoding
