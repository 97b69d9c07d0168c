"""`ShortSend`: the SEND frames of one producer for messages that are a payload and nothing else.

Such a message has no key, properties or codec, and is an entry of its own. It may be encrypted. Unbatched
sending costs one frame per message, so the frame is built in one go from parts that stay equal from one
message to the next. The bytes are those that `MessageMetadata`, `pack_payload` and `encode_send` give for the
message.
"""

from ...model.encryption_context import NONCE_SIZE, TAG_SIZE
from ..checksum import crc32c
from ..fields import encode_text
from ..varint import CONTINUED_VARINTS, SMALL_VARINTS, encode_varint
from .hot_commands import SEND

SHORT_SEND_LIMIT = 16 * 1024
"""Bytes of payload up to which copying it into the frame is cheaper than a chunk of its own."""

MAX_SIZES = 256
"""The most pairs of sizes whose parts a producer keeps; they are then forgotten together."""

_TYPE_AND_TAG = b"\x08" + encode_varint(SEND) + encode_varint(SEND << 3 | 2)


class ShortSend:
    """`encryption`: what `encode_encryption` gives for encrypted messages; empty for others. Raises
    `InvalidMessage` for a producer name without UTF-8 form."""

    __slots__ = (
        "_command",
        "_encryption",
        "_metadata",
        "_publish_time",
        "_schema",
        "_sizes",
        "_time",
        "metadata_size",
    )

    def __init__(
        self,
        producer_id: int,
        producer_name: str,
        schema_version: bytes = b"",
        encryption: bytes = b"",
    ) -> None:
        name = encode_text(producer_name)
        self._command = b"\x08" + encode_varint(producer_id) + b"\x10"
        """CommandSend up to the value of its sequence_id."""
        self._metadata = b"\x0a" + encode_varint(len(name)) + name + b"\x10"
        """MessageMetadata up to the value of its sequence_id."""
        self._schema = (
            b"\x82\x01" + encode_varint(len(schema_version)) + schema_version if schema_version else b""
        )
        """MessageMetadata's schema_version, which follows the uncompressed_size and the nonce."""
        self._encryption = encryption
        """MessageMetadata's encryption_keys, and its encryption_param up to the nonce."""
        self.metadata_size = len(self._metadata) + len(self._encryption) + len(self._schema)
        """Bytes of the metadata without the values that differ, which take at most 40."""
        self._publish_time = -1
        self._time = b""
        """MessageMetadata's publish_time, and the tag of the uncompressed_size behind it."""
        self._sizes: dict[int, tuple[bytes, bytes, bytes]] = {}
        """The parts that depend on nothing but the sizes of payload and sequence id."""

    def encode(
        self, sequence_id: int, publish_time: int, payload: bytes, nonce: bytes | None = None
    ) -> bytes:
        """Return one frame, ready to write. `publish_time`: milliseconds since 1970. `nonce`: that of an
        encrypted payload; None without `encryption`."""
        if publish_time != self._publish_time:
            self._start_time(publish_time)
        if sequence_id < 16384:
            sequence = SMALL_VARINTS[sequence_id]
        elif sequence_id >> 28:
            sequence = encode_varint(sequence_id)
        else:
            sequence = CONTINUED_VARINTS[sequence_id & 0x3FFF] + SMALL_VARINTS[sequence_id >> 14]
        sizes = len(payload) << 4 | len(sequence)
        front, metadata, behind = self._sizes.get(sizes) or self._parts(sizes)
        sized = metadata + sequence + self._time + behind
        if nonce is not None:
            sized = sized + nonce + self._schema
        return b"".join(
            (front, sequence, b"\x0e\x01", crc32c(payload, crc32c(sized)).to_bytes(4, "big"), sized, payload)
        )

    def _start_time(self, publish_time: int) -> None:
        time = b"\x18" + encode_varint(publish_time) + b"\x48"
        if len(time) != len(self._time):
            self._sizes.clear()
        self._publish_time, self._time = publish_time, time

    def _parts(self, sizes: int) -> tuple[bytes, bytes, bytes]:
        """Build and keep the parts for these sizes.

        They are the frame up to the sequence id, the metadata up to its own copy of the sequence id with its
        size in front, and the value of uncompressed_size with what follows it, up to a nonce.
        """
        size, length = sizes >> 4, sizes & 15
        if self._encryption:
            behind = encode_varint(size - TAG_SIZE) + self._encryption
            behind_size = len(behind) + NONCE_SIZE + len(self._schema)
        else:
            behind = encode_varint(size) + self._schema
            behind_size = len(behind)
        metadata_size = len(self._metadata) + length + len(self._time) + behind_size
        front = _TYPE_AND_TAG + encode_varint(len(self._command) + length) + self._command
        command_size = len(front) + length
        total = command_size + 14 + metadata_size + size
        parts = (
            (total << 32 | command_size).to_bytes(8, "big") + front,
            metadata_size.to_bytes(4, "big") + self._metadata,
            behind,
        )
        if len(self._sizes) >= MAX_SIZES:
            self._sizes.clear()
        self._sizes[sizes] = parts
        return parts
