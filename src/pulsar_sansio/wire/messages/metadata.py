"""Headers of payloads: `MessageMetadata` and `SingleMessageMetadata`, written by hand.

The attributes have the names of the schema. An attribute that is not set reads as the schema's default,
or as None where presence is a statement of its own (`num_messages_in_batch`, `deliver_at_time`, …).
Which fields are present is what was set: `metadata.event_time = 0` writes a zero, and setting None
takes the field out again. Repeated fields read as an empty tuple until they are set.

Text a foreign client wrote that is not UTF-8 is kept with surrogate escapes and written back as it was.
Fields the schema does not know are kept and written back at the end.
"""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Self

from ...model.encryption_context import EncryptionContext, EncryptionKey
from ..fields import (
    BOOL,
    BYTES,
    ENUM,
    INT32,
    INT64,
    TEXT,
    UINT32,
    UINT64,
    Field,
    Layout,
    decode_text,
    encode_text,
    message_kind,
)
from ..varint import encode_varint, read_varint

# --- values inside ---------------------------------------------------------------------------------

Property = tuple[str, str]
"""Name and value of an application's property."""

_PAIR = Layout("KeyValue", [Field(1, "key", TEXT, required=True), Field(2, "value", TEXT, required=True)])


def short_pair(data: bytes, start: int, end: int) -> int:
    """Find the tag of the value in the KeyValue at `data[start:end]`, of at most 127 bytes.

    Gives 0 when the KeyValue is not a key and a value, as producers write it. `end` may lie behind the data.

    Raises `IndexError` where the data end too soon.
    """
    middle = start + 2 + data[start + 1]
    if (
        middle + 1 < end
        and data[start] == 0x0A
        and data[middle] == 0x12
        and middle + 2 + data[middle + 1] == end
    ):
        return middle
    return 0


def _read_pair(data: bytes) -> Property:
    """A KeyValue."""
    end = len(data)
    middle = short_pair(data, 0, end) if 1 < end < 0x80 else 0
    if middle:
        return decode_text(data[2:middle]), decode_text(data[middle + 2 :])
    values, _ = _PAIR.decode(data, 0, end)
    return values["key"], values["value"]


def _write_pair(pair: Property) -> bytes:
    name, value = map(encode_text, pair)
    return b"\x0a" + encode_varint(len(name)) + name + b"\x12" + encode_varint(len(value)) + value


PAIR = message_kind(_read_pair, _write_pair)


_ENCRYPTION_KEY = Layout(
    "EncryptionKeys",
    [
        Field(1, "key", TEXT, required=True),
        Field(2, "value", BYTES, required=True),
        Field(3, "metadata", PAIR, repeated=True),
    ],
)


def read_encryption_key(data: bytes) -> EncryptionKey:
    """Raises `FrameError` when `data` is malformed or lacks a required field."""
    values, _ = _ENCRYPTION_KEY.decode(data, 0, len(data))
    return EncryptionKey(values["key"], values["value"], tuple(values.get("metadata", ())))


def _write_encryption_key(key: EncryptionKey) -> bytes:
    return _ENCRYPTION_KEY.encode({"key": key.key, "value": key.value, "metadata": key.metadata})


NONCE_TAG = b"\x7a\x0c"
"""The tag of encryption_param, with the length of a nonce."""


def encode_encryption(keys: Iterable[EncryptionKey]) -> bytes:
    """Return the fields encryption_keys and encryption_param of `MessageMetadata`, up to the nonce. Raises
    `InvalidMessage` for text that has no UTF-8 form."""
    encoded = map(_write_encryption_key, keys)
    return b"".join(b"\x6a" + encode_varint(len(key)) + key for key in encoded) + NONCE_TAG


_ENCRYPTION_KEYS = message_kind(read_encryption_key, _write_encryption_key)

# --- the records -----------------------------------------------------------------------------------


class _Record:
    """Fields live in the instance's dictionary; what is not there is the class's default."""

    _layout: ClassVar[Layout]
    unknown: bytes = b""
    """Fields the schema does not know, as they came."""

    def has(self, name: str) -> bool:
        """Tell whether the field is present, even with its default value."""
        return self.__dict__.get(name) is not None

    def encode(self) -> bytes:
        """The bytes of the message, fields in the order of their numbers.

        Raises `InvalidMessage` for text that has no UTF-8 form.
        """
        fields = self.__dict__
        if "unknown" not in fields:
            return self._layout.encode(fields)
        known = {name: value for name, value in fields.items() if name != "unknown"}
        return self._layout.encode(known, self.unknown)

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Decode by table. Raises `FrameError` when `data` is malformed or lacks a required field."""
        return cls.decode_range(data, 0, len(data))

    @classmethod
    def decode_range(cls, data: bytes, start: int, end: int) -> Self:
        """Decode `data[start:end]` as `decode` does."""
        record = cls.__new__(cls)
        values, unknown = cls._layout.decode(data, start, end)
        record.__dict__.update(values)
        if unknown:
            record.unknown = unknown
        return record

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and _present(self) == _present(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in _present(self).items())
        return f"{type(self).__name__}({fields})"


def _present(record: _Record) -> dict[str, Any]:
    return {
        name: list(value) if isinstance(value, (list, tuple)) else value
        for name, value in record.__dict__.items()
        if value is not None and value != [] and value != ()
    }


class MessageMetadata(_Record):
    """Precedes every stored payload; the broker keeps and delivers it as the producer wrote it."""

    producer_name: str
    sequence_id: int
    """The id of the message; the lowest one in a batch."""
    publish_time: int
    """Milliseconds since 1970, by the producer's clock."""
    properties: Sequence[Property] = ()
    replicated_from: str | None = None
    partition_key: str | None = None
    replicate_to: Sequence[str] = ()
    compression: int = 0
    """A CompressionType; a codec unknown here stays the number it is."""
    uncompressed_size: int = 0
    num_messages_in_batch: int | None = None
    """Present means that the payload has the batch format, even with the value 1 (MSG-10)."""
    event_time: int = 0
    encryption_keys: Sequence[EncryptionKey] = ()
    encryption_algo: str | None = None
    encryption_param: bytes | None = None
    schema_version: bytes | None = None
    partition_key_b64_encoded: bool = False
    ordering_key: bytes | None = None
    deliver_at_time: int | None = None
    marker_type: int | None = None
    """Present means an entry that is no message; it never reaches an application."""
    txnid_least_bits: int | None = None
    txnid_most_bits: int | None = None
    highest_sequence_id: int | None = None
    null_value: bool = False
    uuid: str | None = None
    num_chunks_from_msg: int | None = None
    total_chunk_msg_size: int | None = None
    chunk_id: int | None = None
    null_partition_key: bool = False
    compacted_batch_indexes: Sequence[int] = ()
    schema_id: bytes | None = None

    _layout = Layout(
        "MessageMetadata",
        [
            Field(1, "producer_name", TEXT, required=True),
            Field(2, "sequence_id", UINT64, required=True),
            Field(3, "publish_time", UINT64, required=True),
            Field(4, "properties", PAIR, repeated=True),
            Field(5, "replicated_from", TEXT),
            Field(6, "partition_key", TEXT),
            Field(7, "replicate_to", TEXT, repeated=True),
            Field(8, "compression", ENUM),
            Field(9, "uncompressed_size", UINT32),
            Field(11, "num_messages_in_batch", INT32),
            Field(12, "event_time", UINT64),
            Field(13, "encryption_keys", _ENCRYPTION_KEYS, repeated=True),
            Field(14, "encryption_algo", TEXT),
            Field(15, "encryption_param", BYTES),
            Field(16, "schema_version", BYTES),
            Field(17, "partition_key_b64_encoded", BOOL),
            Field(18, "ordering_key", BYTES),
            Field(19, "deliver_at_time", INT64),
            Field(20, "marker_type", INT32),
            Field(22, "txnid_least_bits", UINT64),
            Field(23, "txnid_most_bits", UINT64),
            Field(24, "highest_sequence_id", UINT64),
            Field(25, "null_value", BOOL),
            Field(26, "uuid", TEXT),
            Field(27, "num_chunks_from_msg", INT32),
            Field(28, "total_chunk_msg_size", INT32),
            Field(29, "chunk_id", INT32),
            Field(30, "null_partition_key", BOOL),
            Field(31, "compacted_batch_indexes", INT32, repeated=True),
            Field(32, "schema_id", BYTES),
        ],
    )

    def encryption(self, decryption_failed: bool, /) -> EncryptionContext | None:
        """Return the encryption of the payload; None for one that is not encrypted."""
        if not self.encryption_keys:
            return None
        return EncryptionContext(
            tuple(self.encryption_keys),
            self.encryption_param or b"",
            self.encryption_algo,
            self.compression,
            self.uncompressed_size,
            self.num_messages_in_batch,
            self.uuid,
            self.chunk_id,
            self.num_chunks_from_msg,
            decryption_failed,
        )

    def __init__(self, producer_name: str, sequence_id: int, publish_time: int, **fields: Any) -> None:
        """`fields`: further fields by their names in the schema."""
        self.producer_name = producer_name
        self.sequence_id = sequence_id
        self.publish_time = publish_time
        self.__dict__.update(fields)


class SingleMessageMetadata(_Record):
    """Precedes each message inside a batch's payload."""

    payload_size: int
    properties: Sequence[Property] = ()
    partition_key: str | None = None
    compacted_out: bool = False
    """The compactor took the message out: only its place is left, and no consumer delivers it."""
    event_time: int = 0
    partition_key_b64_encoded: bool = False
    ordering_key: bytes | None = None
    sequence_id: int | None = None
    null_value: bool = False
    null_partition_key: bool = False

    _layout = Layout(
        "SingleMessageMetadata",
        [
            Field(1, "properties", PAIR, repeated=True),
            Field(2, "partition_key", TEXT),
            Field(3, "payload_size", INT32, required=True),
            Field(4, "compacted_out", BOOL),
            Field(5, "event_time", UINT64),
            Field(6, "partition_key_b64_encoded", BOOL),
            Field(7, "ordering_key", BYTES),
            Field(8, "sequence_id", UINT64),
            Field(9, "null_value", BOOL),
            Field(10, "null_partition_key", BOOL),
        ],
    )

    def __init__(self, payload_size: int = 0, **fields: Any) -> None:
        """`fields`: further fields by their names in the schema."""
        self.payload_size = payload_size
        self.__dict__.update(fields)

    def encode(self) -> bytes:
        """Encode as every record does, faster where the record has no ordering key and no unknown field."""
        fields = self.__dict__
        if not fields.keys() <= _UNORDERED_FIELDS:
            return super().encode()
        get = fields.get
        return encode_unordered_single(
            self.payload_size,
            get("properties") or (),
            get("partition_key"),
            get("partition_key_b64_encoded"),
            get("event_time"),
            get("sequence_id"),
            get("null_value"),
        )


_UNORDERED_FIELDS = {
    "payload_size",
    "properties",
    "partition_key",
    "partition_key_b64_encoded",
    "event_time",
    "sequence_id",
    "null_value",
}


def encode_unordered_single(
    payload_size: int,
    properties: Iterable[Property],
    key: str | None,
    is_base64: bool | None,
    event_time: int | None,
    sequence_id: int | None,
    null_value: bool | None,
) -> bytes:
    """A `SingleMessageMetadata` of these fields, without making one; None leaves a field out.

    Raises `InvalidMessage` for text that has no UTF-8 form.
    """
    parts: list[bytes] = []
    for pair in properties:
        encoded = _write_pair(pair)
        parts += (b"\x0a", encode_varint(len(encoded)), encoded)
    if key is not None:
        encoded = encode_text(key)
        parts += (b"\x12", encode_varint(len(encoded)), encoded)
    parts += (b"\x18", encode_varint(payload_size))
    if event_time is not None:
        parts += (b"\x28", encode_varint(event_time))
    if is_base64 is not None:
        parts.append(b"\x30\x01" if is_base64 else b"\x30\x00")
    if sequence_id is not None:
        parts += (b"\x40", encode_varint(sequence_id))
    if null_value is not None:
        parts.append(b"\x48\x01" if null_value else b"\x48\x00")
    return b"".join(parts)


# --- the functions the machines call ---------------------------------------------------------------


def encode_message_metadata(metadata: MessageMetadata) -> bytes:
    """Raises `InvalidMessage` for text that has no UTF-8 form."""
    return metadata.encode()


def decode_single_metadata(data: bytes) -> SingleMessageMetadata:
    """Raises `FrameError` when `data` is malformed or lacks a required field."""
    return decode_single_range(data, 0, len(data))


def decode_single_range(data: bytes, start: int, end: int) -> SingleMessageMetadata:
    """The header at `data[start:end]`. Raises `FrameError` as `decode_single_metadata` does."""
    # The fast path: fields in the order of their numbers. The layout decodes every other header.
    single = object.__new__(SingleMessageMetadata)
    position = start
    try:
        tag = data[position]
        if tag == 0x0A:
            properties: list[Property] = []
            single.properties = properties
            while tag == 0x0A:
                pair = position + 2
                position = pair + data[pair - 1]
                middle = short_pair(data, pair, position)
                if not middle or data[pair - 1] > 0x7F:
                    return SingleMessageMetadata.decode_range(data, start, end)
                name = data[pair + 2 : middle].decode("utf-8", "surrogateescape")
                properties.append((name, data[middle + 2 : position].decode("utf-8", "surrogateescape")))
                tag = data[position]
        if tag == 0x12:
            key = position + 2
            size = data[key - 1]
            if size > 0x7F:
                size, key = read_varint(data, key - 1)
            position = key + size
            single.partition_key = data[key:position].decode("utf-8", "surrogateescape")
            tag = data[position]
        if tag != 0x18:
            return SingleMessageMetadata.decode_range(data, start, end)
        value = data[position + 1]
        position += 2
        if value > 0x7F:
            value, position = read_varint(data, position - 1)
        if value >> 31:
            return SingleMessageMetadata.decode_range(data, start, end)
        single.payload_size = value
        while position < end:
            tag = data[position]
            value = data[position + 1]
            position += 2
            if value > 0x7F:
                if tag & 1:  # of another wire type: what follows is no varint
                    return SingleMessageMetadata.decode_range(data, start, end)
                if data[position] < 0x80:
                    value = value & 0x7F | data[position] << 7
                    position += 1
                else:
                    value, position = read_varint(data, position - 1)
            if tag == 0x40:
                single.sequence_id = value
            elif tag == 0x30:
                single.partition_key_b64_encoded = value != 0
            elif tag == 0x28:
                single.event_time = value
            elif tag == 0x48:
                single.null_value = value != 0
            else:
                return SingleMessageMetadata.decode_range(data, start, end)
    except IndexError:
        return SingleMessageMetadata.decode_range(data, start, end)
    return single if position == end else SingleMessageMetadata.decode_range(data, start, end)


def encode_single_metadata(single: SingleMessageMetadata) -> bytes:
    """Raises `InvalidMessage` for text that has no UTF-8 form."""
    return single.encode()
