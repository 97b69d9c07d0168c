"""`MetadataDecoder`: decodes the metadata of entries, and remembers parts that repeat.

Every client writes producer_name, sequence_id and publish_time first, in this order
(`uniform.metadata_front`). The fields behind them are, for most messages, the same few bytes again and again.
So decode caches turn these bytes into values. The decoder by table, `MessageMetadata.decode_range`, takes all
other metadata. Of an encrypted entry only the nonce changes, which stands between bytes that repeat: the
wrapped data keys are compared at once.
"""

from typing import Any, NamedTuple

from ...model.encryption_context import NONCE_SIZE, EncryptionKey
from ...model.errors import FrameError
from ..fields import decode_text
from ..uniform.decode_cache import DecodeCache, remember
from ..uniform.metadata_front import PUBLISH_TIME_SIZE, read_name, read_time
from ..varint import read_varint
from .metadata import NONCE_TAG, MessageMetadata, Property, read_encryption_key, short_pair

LONGEST_TAIL = 24
"""Bytes behind publish_time up to which remembering them is worth it: no keys, no properties."""

LONGEST_ENCRYPTION_KEY = 1024
"""Bytes up to which an encryption key is remembered: an RSA key of 4096 bits, with its name and metadata."""

LONGEST_RUN = 16 * 1024
"""Bytes of one entry's encryption keys up to which they are remembered."""

_KEY_TAG = 0x6A
"""The tag of encryption_keys."""

Fields = tuple[tuple[str, Any], ...]
"""Names and values of fields."""

_new = object.__new__


class EncryptionFields(NamedTuple):
    """Metadata of an encrypted entry, behind publish_time."""

    before: Fields
    """The fields before the encryption keys."""
    keys: tuple[EncryptionKey, ...]
    """The keys. Entries whose keys are the same bytes one after the other have the same tuple."""
    nonce: int
    """The position of the nonce."""
    behind: Fields
    """The fields behind the nonce."""


_NO_RUN: tuple[bytes, tuple[EncryptionKey, ...]] = b"", ()


class MetadataDecoder:
    """Decodes metadata; one connection owns it, or one pass over stored entries."""

    __slots__ = ("_keys_run", "_parts", "encryption_keys", "names", "tails", "times")

    def __init__(self) -> None:
        self.names: DecodeCache[bytes, str] = {}
        self.times: DecodeCache[bytes, int] = {}
        self.tails: DecodeCache[bytes, Fields] = {}
        self.encryption_keys: DecodeCache[bytes, EncryptionKey] = {}
        self._keys_run = _NO_RUN
        """The bytes of the last entry's encryption keys, up to its nonce, and the keys."""
        self._parts: DecodeCache[bytes, Fields] = {}
        """Fields before the encryption keys, and behind the nonce."""

    def decode(self, data: bytes) -> MessageMetadata:
        """Raises `FrameError` when `data` is malformed or lacks a required field."""
        return self.decode_range(data, 0, len(data))

    def decode_range(self, data: bytes, start: int, end: int) -> MessageMetadata:
        """Decode the metadata at `data[start:end]`. Raises `FrameError` as `decode` does."""
        if end - start < 2:
            return MessageMetadata.decode_range(data, start, end)
        position = start + 3 + data[start + 1]
        prefix = data[start:position]
        name = self.names.get(prefix) or self._learn_name(prefix)
        if name is None or position + 1 + PUBLISH_TIME_SIZE > end:
            return MessageMetadata.decode_range(data, start, end)
        sequence_id = data[position]
        position += 1
        if sequence_id > 0x7F:
            if data[position] < 0x80:
                sequence_id = sequence_id & 0x7F | data[position] << 7
                position += 1
            else:
                try:
                    sequence_id, position = read_varint(data, position - 1)
                except IndexError:
                    raise FrameError("MessageMetadata ends inside a field") from None
        tail_start = position + PUBLISH_TIME_SIZE
        if tail_start > end:
            return MessageMetadata.decode_range(data, start, end)
        time = data[position:tail_start]
        publish_time = self.times.get(time) or self._learn_time(time)
        if publish_time is None:
            return MessageMetadata.decode_range(data, start, end)
        metadata = _new(MessageMetadata)
        metadata.producer_name = name
        metadata.sequence_id = sequence_id
        metadata.publish_time = publish_time
        if tail_start < end and data[tail_start] == 0x22:
            behind = _take_properties(data, tail_start, end, metadata)
            if not behind:
                return MessageMetadata.decode_range(data, start, end)
            tail_start = behind
        if end - tail_start > LONGEST_TAIL:
            encryption = self.find_encryption(data, tail_start, end)
            if encryption is not None:
                before, metadata.encryption_keys, nonce, behind_it = encryption
                metadata.encryption_param = data[nonce : nonce + NONCE_SIZE]
                for field, value in before + behind_it if behind_it else before:
                    setattr(metadata, field, value)
                return metadata
        tail = data[tail_start:end]
        fields = self.tails.get(tail)
        if fields is None:
            fields = self._learn_tail(tail)
        for field, value in fields:
            setattr(metadata, field, value)
        return metadata

    def find_encryption(self, data: bytes, start: int, end: int) -> EncryptionFields | None:
        """Take apart the metadata behind publish_time of an encrypted entry, as producers write them: the
        encryption keys one behind the other, and the nonce behind them.

        Returns None for other metadata, and for those that are malformed.
        """
        run, keys = self._keys_run
        first_key = data.find(run, start, end) if run else -1
        if first_key < 0:
            first_key = _first_key(data, start, end)
            run, keys = self._learn_keys(data, first_key, end)
            if not run:
                return None
        nonce = first_key + len(run)
        behind = nonce + NONCE_SIZE
        if behind > end:
            return None
        # The part before has to be whole fields: the run might be inside of a longer one.
        before = self._part(data[start:first_key])
        after = self._part(data[behind:end]) if behind < end else ()
        return None if before is None or after is None else EncryptionFields(before, keys, nonce, after)

    def _part(self, data: bytes) -> Fields | None:
        """Decode fields beside the encryption keys and the nonce. Returns None where they are malformed, or
        would have to be merged with fields elsewhere."""
        fields = self._parts.get(data)
        if fields is not None:
            return fields
        try:
            values, unknown = MessageMetadata._layout.decode_part(data, 0, len(data))
        except FrameError:
            return None
        if unknown or not values.keys().isdisjoint(_ENCRYPTION_FIELDS):
            return None
        if any(isinstance(value, list) for value in values.values()):
            return None
        fields = tuple(values.items())
        if len(data) <= LONGEST_TAIL:
            remember(self._parts, data, fields)
        return fields

    def is_name(self, prefix: bytes) -> bool:
        """Tell whether `prefix` is producer_name, in its shortest form, and the tag of sequence_id."""
        return prefix in self.names or (len(prefix) > 3 and self._learn_name(prefix) is not None)

    def is_time(self, field: bytes) -> bool:
        """Tell whether these `PUBLISH_TIME_SIZE` bytes are the field publish_time."""
        return field in self.times or self._learn_time(field) is not None

    def _learn_name(self, prefix: bytes) -> str | None:
        name = read_name(prefix)
        if name is not None:
            remember(self.names, prefix, name)
        return name

    def _learn_time(self, field: bytes) -> int | None:
        time = read_time(field)
        if time is not None:
            remember(self.times, field, time)
        return time

    def _learn_keys(self, data: bytes, start: int, end: int) -> tuple[bytes, tuple[EncryptionKey, ...]]:
        """Read the encryption keys from `start` on. Returns their bytes with the tag of the nonce behind
        them; `_NO_RUN` for other bytes, and for `start` -1."""
        position = start
        keys = []
        while 0 <= position < end - 2 and data[position] == _KEY_TAG:
            size = data[position + 1]
            position += 2
            if size > 0x7F:
                if data[position] > 0x7F:
                    return _NO_RUN
                size = size & 0x7F | data[position] << 7
                position += 1
            key = data[position : position + size]
            position += size
            try:
                keys.append(self.encryption_keys.get(key) or self._learn_encryption_key(key))
            except FrameError:
                return _NO_RUN
        nonce = position + len(NONCE_TAG)
        if not keys or nonce > end or data[position:nonce] != NONCE_TAG:
            return _NO_RUN
        run = data[start:nonce], tuple(keys)
        if len(run[0]) <= LONGEST_RUN:
            self._keys_run = run
        return run

    def _learn_encryption_key(self, data: bytes) -> EncryptionKey:
        key = read_encryption_key(data)
        if len(data) <= LONGEST_ENCRYPTION_KEY:
            remember(self.encryption_keys, data, key)
        return key

    def _learn_tail(self, tail: bytes) -> Fields:
        values, unknown = MessageMetadata._layout.decode_part(tail, 0, len(tail))
        if unknown:
            values["unknown"] = unknown
        fields = tuple(values.items())
        # All messages with this tail would share a list, and an application might change it.
        if len(tail) <= LONGEST_TAIL and not any(isinstance(value, list) for value in values.values()):
            remember(self.tails, tail, fields)
        return fields


_ENCRYPTION_FIELDS = ("encryption_keys", "encryption_param")


def _first_key(data: bytes, position: int, end: int) -> int:
    """Return the position of the first encryption key behind numbers and short fields; -1 where there is
    none."""
    while position < end - 2 and (tag := data[position]) != _KEY_TAG:
        position += 2
        if tag & 7 == 2:
            position += data[position - 1]
        else:
            while position < end and data[position - 1] > 0x7F:
                position += 1
    return position if position < end - 2 else -1


def _take_properties(data: bytes, position: int, end: int, metadata: MessageMetadata) -> int:
    """Read properties one behind the other, and a key behind them, all with lengths of one byte.

    All producers write them so, and no property anywhere else. Gives the position behind; 0 for other bytes.
    """
    properties: list[Property] = []
    while position + 5 < end and data[position] == 0x22:
        start = position + 2
        position = start + data[start - 1]
        if data[start - 1] > 0x7F or position > end:
            return 0
        middle = short_pair(data, start, position)
        if not middle:
            return 0
        properties.append((decode_text(data[start + 2 : middle]), decode_text(data[middle + 2 : position])))
    metadata.properties = properties
    if position + 1 < end and data[position] == 0x32 and data[position + 1] < 0x80:
        start = position + 2
        position = start + data[start - 1]
        metadata.partition_key = decode_text(data[start:position])
    return position if position <= end and b"\x22" not in data[position:end] else 0
