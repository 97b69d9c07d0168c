"""Decode uniform messages at once: many MESSAGE frames, as a consumer of unbatched messages gets them.

Frames of one producer for one consumer from one ledger differ in little: the numbers of the entry and of the
message, the time, the checksum, the payload. The reader remembers the template of the last frame, as one
`Struct` that cuts all of a frame's head into pieces. It compares the pieces that should be equal, and
checks that the others make sense. If so, there is nothing else to read. This takes 1.5 µs a frame;
`FrameDecoder` and `open_payload` take 6. The caller gets all frames of one read in one call.

The reader takes only *plain* entries. Their checksum is right, and each has one message. They are neither
compressed nor chunked, no markers, and have no null value. All of a run have one version of a schema, and the
same wrapped data keys, or none; each encrypted one has a nonce of its own. Any other, damaged or incomplete
frame is left to `FrameDecoder`, which alone decides what it means: this module raises nothing.
"""

from collections.abc import Callable
from functools import lru_cache
from struct import Struct
from typing import TYPE_CHECKING, Any, NamedTuple

from ...model.encryption_context import NONCE_SIZE, EncryptionKey
from ...model.errors import FrameError
from ..checksum import crc32c
from ..command_frame import MESSAGE, command_tag
from ..varint import VALUE_OF_CONTINUED, VALUE_OF_SMALL
from .command_templates import DELIVERY_KEY, DeliveryTemplate, split_number
from .decode_cache import DecodeCache, remember
from .metadata_front import PUBLISH_TIME_SIZE

if TYPE_CHECKING:
    from ..commands.delivery_commands import DeliveryDecoder
    from ..messages.metadata import MessageMetadata
    from ..messages.metadata_decoder import MetadataDecoder

MESSAGE_TAG = command_tag(MESSAGE)
"""The first bytes of a MESSAGE frame's command, eight bytes behind the beginning of the frame."""

_CHECKSUM_MAGIC = b"\x0e\x01"
_NOT_CONTINUED = {b"": 0}
_BATCH_TAG = 0x58
_VIEW_FROM = 4096
"""Bytes from which a view is cheaper for the checksum than a copy."""

_TAIL_LIMIT = 24
"""Bytes behind publish_time up to which remembering them is worth it: no keys, no properties."""


class DeliveryFacts(NamedTuple):
    """The values that uniform messages have in common."""

    consumer_id: int
    ledger_id: int
    partition: int
    redelivery_count: int
    consumer_epoch: int | None


class UniformEncryption(NamedTuple):
    """The encryption of uniform messages."""

    keys: tuple[EncryptionKey, ...]
    """The wrapped data keys of each message: never empty."""
    nonces: list[bytes]
    """The nonce of each payload."""


class UniformMessages(NamedTuple):
    """Plain entries of one ledger for one consumer, in the order they came. There is at least one."""

    facts: DeliveryFacts
    entry_ids: list[int]
    headers: "list[bytes | MessageMetadata]"
    """The metadata; bytes for a `MetadataDecoder`, where the reader did not have to decode them."""
    payloads: list[bytes]
    end: int
    """Position behind the last of their frames."""
    schema_version: bytes | None
    encryption: UniformEncryption | None
    """The payloads are not encrypted where it is None."""


class _Tail(NamedTuple):
    """Metadata behind publish_time that are those of a plain entry."""

    schema_version: bytes | None
    keys: tuple[EncryptionKey, ...] = ()
    before: bytes = b""
    """The bytes before the nonce of an encrypted entry."""
    behind: bytes = b""
    """The bytes behind the nonce."""
    size: int = 0
    """The bytes of all three."""

    def goes_with(self, other: "_Tail") -> bool:
        """Tell whether messages with either tail are uniform."""
        return self.keys is other.keys and self.schema_version == other.schema_version


class _FrameTemplate(NamedTuple):
    """The places of all parts in frames of uniform messages."""

    read: Callable[[bytes, int], tuple[Any, ...]]
    size: int
    """Bytes up to the end of publish_time: what has to be there to be read."""
    front: bytes
    """The bytes from the size of the command to the tag of the entry's number."""
    back: bytes
    """The bytes from behind the entry's number to the magic number of the checksum."""
    entry_low: dict[bytes, int]
    entry_shift: int
    covered: int
    """Bytes in front of those that the checksum covers; the size of the metadata is their first."""
    sequence_low: dict[bytes, int]
    facts: DeliveryFacts


@lru_cache(maxsize=256)
def _reader(front: int, entry: int, back: int, name: int, sequence: int) -> Struct:
    """Build the reader of a frame's head, for parts of these lengths.

    It reads total size, front, entry's number, back, checksum, size of the metadata, producer_name,
    sequence_id and publish_time. The entry's number and sequence_id are two pieces each: the two lower bytes
    if there are more than two, and the others. What is cached is a function of sizes, never of a peer's
    bytes.
    """
    low, entry_rest = split_number(entry)
    sequence_low, sequence_rest = split_number(sequence)
    return Struct(
        f">I{front}s{low}s{entry_rest}s{back}sII{name}s{sequence_low}s{sequence_rest}s{PUBLISH_TIME_SIZE}s"
    )


class UniformMessageReader:
    """Takes uniform messages out of the bytes of one connection, which owns it."""

    __slots__ = ("_deliveries", "_encrypted_tail", "_metadata", "_template", "plain_tails")

    def __init__(self, deliveries: "DeliveryDecoder", metadata: "MetadataDecoder") -> None:
        self._deliveries = deliveries
        self._metadata = metadata
        self._template: _FrameTemplate | None = None
        """The template of the last frame."""
        self.plain_tails: DecodeCache[bytes, _Tail] = {}
        """Metadata behind publish_time that is known to be that of a plain entry, which is not encrypted."""
        self._encrypted_tail: _Tail | None = None
        """The tail of the last encrypted entry."""

    def take(self, data: bytes, position: int, limit: int) -> UniformMessages | None:
        """Take the plain entries of the uniform frames from `position` on.

        Gives None where `FrameDecoder` has to decode the first frame. `limit`: the largest `total_size`.
        """
        template = self._template
        if template is not None:
            taken = self._take(template, data, position, limit)
            if taken is not None:
                return taken
        command = self._command_template(data, position + 12)
        template = self._template = None if command is None else _frame_template(command, data, position)
        return None if template is None else self._take(template, data, position, limit)

    def _command_template(self, data: bytes, start: int) -> DeliveryTemplate | None:
        """Find the template of the command at `start`, behind its size of one byte, or learn the template.

        Gives None for a command that is incomplete, malformed or has no template.
        """
        templates = self._deliveries.templates
        key = data[start : start + DELIVERY_KEY]
        known = templates.get(key)
        if known is not None and data.startswith(known.front, start) and known.size == data[start - 1]:
            return known
        end = start + data[start - 1] if start <= len(data) else start
        if end > len(data):
            return None
        try:
            self._deliveries.decode(data, start, end, end)
        except (FrameError, IndexError):
            return None
        return templates.get(key)

    def _take(
        self, template: _FrameTemplate, data: bytes, position: int, limit: int
    ) -> UniformMessages | None:
        read, size, front, back, entry_low, shift, covered, sequence_low, facts = template
        small = VALUE_OF_SMALL
        decoder = self._metadata
        plain_tails = self.plain_tails
        length = len(data)
        last = length - size
        entry_ids: list[int] = []
        headers: list[bytes | MessageMetadata] = []
        payloads: list[bytes] = []
        nonces: list[bytes] = []
        last_name = last_time = last_tail = b""
        common: _Tail | None = None
        encrypted = self._encrypted_tail
        while position <= last:
            (
                total_size,
                found_front,
                low,
                high,
                found_back,
                checksum,
                metadata_size,
                name,
                sequence_first,
                sequence_last,
                time,
            ) = read(data, position)
            end = position + 4 + total_size
            if found_front != front or found_back != back or end > length or total_size > limit:
                break
            checked = position + covered
            metadata_end = checked + 4 + metadata_size
            tail_start = position + size
            if (
                metadata_end > end
                or tail_start > metadata_end
                or (name != last_name and not decoder.is_name(name))
                or sequence_last not in small
                or sequence_first not in sequence_low
                or (time != last_time and not decoder.is_time(time))
                or crc32c(data[checked:end] if total_size < _VIEW_FROM else memoryview(data)[checked:end])
                != checksum
            ):
                break
            last_name, last_time = name, time
            try:
                entry_id = (small[high] << shift) + entry_low[low]
            except KeyError:
                break
            header: bytes | MessageMetadata = data[checked + 4 : metadata_end]
            tail = data[tail_start:metadata_end]
            if (
                encrypted is not None
                and metadata_end - tail_start == encrypted.size
                and tail.startswith(encrypted.before)
                and tail.endswith(encrypted.behind)
            ):
                kind = encrypted
            elif common is not None and tail == last_tail:
                kind = common
            else:
                known = plain_tails.get(tail)
                if known is None:
                    learned = self._learn_tail(data, checked + 4, metadata_end, tail_start)
                    if learned is None:
                        break
                    known, header = learned
                    if known.keys:
                        encrypted = self._encrypted_tail = known
                kind, last_tail = known, tail
            if kind is not common:
                if common is not None and not kind.goes_with(common):
                    break
                common = kind
            if kind.keys:
                nonces.append(tail[len(kind.before) : len(kind.before) + NONCE_SIZE])
            entry_ids.append(entry_id)
            headers.append(header)
            payloads.append(data[metadata_end:end])
            position = end
        if common is None or not payloads:
            return None
        encryption = UniformEncryption(common.keys, nonces) if nonces else None
        return UniformMessages(
            facts, entry_ids, headers, payloads, position, common.schema_version, encryption
        )

    def _learn_tail(
        self, data: bytes, start: int, end: int, tail_start: int
    ) -> "tuple[_Tail, MessageMetadata] | None":
        """Decode the metadata, and learn its tail. Returns None where it is not that of a plain entry."""
        try:
            metadata = self._metadata.decode_range(data, start, end)
        except FrameError:
            return None
        if (
            metadata.num_messages_in_batch is not None
            or metadata.compression
            or metadata.marker_type is not None
            or metadata.num_chunks_from_msg is not None
            or metadata.null_value
        ):
            return None
        if metadata.encryption_keys:
            encryption = self._metadata.find_encryption(data, tail_start, end)
            if encryption is None:
                return None
            before, behind = data[tail_start : encryption.nonce], data[encryption.nonce + NONCE_SIZE : end]
            size = end - tail_start
            return _Tail(metadata.schema_version, encryption.keys, before, behind, size), metadata
        tail = _Tail(metadata.schema_version)
        if end - tail_start <= _TAIL_LIMIT:
            remember(self.plain_tails, data[tail_start:end], tail)
        return tail, metadata


def _frame_template(command: DeliveryTemplate, data: bytes, position: int) -> _FrameTemplate | None:
    """Learn the template of the frame at `position`, whose command probably has the template `command`.

    `UniformMessageReader` finds out whether the frame really has it.
    """
    front_size, entry_size, back_size = command.sizes
    command_end = position + 12 + command.size
    name_start = command_end + 10
    if name_start + 2 > len(data) or command.size > 0x7F:
        return None
    name_size = 3 + data[name_start + 1]
    sequence_end = sequence_start = name_start + name_size
    try:
        while data[sequence_end] > 0x7F:
            sequence_end += 1
    except IndexError:
        return None
    sequence_size = sequence_end + 1 - sequence_start
    if sequence_size > 4 or _is_batch(data, sequence_end + 1 + PUBLISH_TIME_SIZE):
        return None
    reader = _reader(8 + front_size, entry_size, back_size + 2, name_size, sequence_size)
    return _FrameTemplate(
        reader.unpack_from,
        reader.size,
        (command.size + 4).to_bytes(4, "big") + MESSAGE_TAG + bytes([command.size]) + command.front,
        command.back + _CHECKSUM_MAGIC,
        VALUE_OF_CONTINUED if entry_size > 2 else _NOT_CONTINUED,
        14 if entry_size > 2 else 0,
        command_end + 6 - position,
        VALUE_OF_CONTINUED if sequence_size > 2 else _NOT_CONTINUED,
        DeliveryFacts(
            command.consumer_id,
            command.ledger_id,
            command.partition,
            command.redelivery_count,
            command.consumer_epoch,
        ),
    )


def _is_batch(data: bytes, position: int) -> bool:
    """Tell whether the entry is a batch, as far as the fields behind publish_time show that easily.

    Fields are in order mostly. The reader need not look at a batch any further.
    """
    try:
        while (tag := data[position]) < _BATCH_TAG:
            if tag & 7:
                position += 2 + data[position + 1]
            else:
                position += 2
                while data[position - 1] > 0x7F:
                    position += 1
        return tag == _BATCH_TAG
    except IndexError:
        return False
