"""Headers and payload as strangers write them: batches that lie, chunks, codecs, bombs.

Behind SEND and MESSAGE stand metadata and payload, with a checksum in front. The producer controls all of
them, also if the broker in between is honest. Every lie of this module keeps everything else right, the
checksum too, so that the machine under attack meets it where it matters and not before.
"""

import zlib
from collections.abc import Callable
from functools import cache
from typing import Any

import zstandard

from fuzz.draws import Draws
from fuzz.mutations import cases_of, mutate
from fuzz.trees import Known, Tree, encode, make_tree, varint
from pulsar_sansio.model.config import CompressionType
from pulsar_sansio.wire import (
    EncryptionKey,
    MessageMetadata,
    SingleMessageMetadata,
    compress,
    crc32c,
    encode_batch_payloads,
    encode_message,
    encode_message_metadata,
    encode_single,
    pack_payload,
    proto,
)

METADATA = proto.MessageMetadata.DESCRIPTOR
SINGLE = proto.SingleMessageMetadata.DESCRIPTOR
_METADATA_CASES = cases_of(METADATA)
_SINGLE_CASES = cases_of(SINGLE)
WALL = 1_700_000_000_000

CODECS = tuple(CompressionType)[1:]

BOMB = 4 * 1024 * 1024
"""Bytes that a bomb holds: many times the limit it is thrown at, and still quick to make."""


def sealed(metadata: bytes, payload: bytes) -> bytes:
    """Headers and payload behind a right checksum."""
    return b"".join(pack_payload(metadata, payload))


def header(sequence_id: int = 0, **fields: Any) -> bytes:
    return encode_message_metadata(MessageMetadata("fuzz", sequence_id, WALL, **fields))


# --- honest ones -------------------------------------------------------------------------------------


def honest(draws: Draws, sequence_id: int = 0) -> bytes:
    """One message, or a batch, compressed or not, with or without what else may be in it."""
    count = draws.below(6)
    if count == 0:
        return sealed(header(sequence_id), draws.blob(draws.below(12)))
    members = [draws.blob(draws.below(6)) for _ in range(count)]
    if draws.chance(30):
        body = b"".join(
            encode_single(
                SingleMessageMetadata(partition_key=draws.choice(("", "k")), properties=(("a", "b"),)), member
            )
            for member in members
        )
    else:
        body = encode_batch_payloads(members, sequence_id)
    codec = draws.choice(tuple(CompressionType))
    fields: dict[str, Any] = {"num_messages_in_batch": count}
    if codec:
        fields |= {"compression": codec, "uncompressed_size": len(body)}
    return sealed(header(sequence_id, **fields), compress(codec, body))


def encode_frame(consumer_id: int, entry_id: int, payload: bytes) -> bytes:
    """A MESSAGE as a broker that is otherwise honest writes it."""
    return b"".join(encode_message(consumer_id, 1, entry_id, stored=payload))


def run_of_messages(draws: Draws, consumer_id: int, first: int, count: int) -> list[bytes]:
    """Uniform MESSAGE frames: consecutive entries of single messages from one producer."""
    return [
        encode_frame(consumer_id, entry_id, sealed(header(entry_id), draws.blob(draws.below(6))))
        for entry_id in range(first, first + count)
    ]


# --- bombs -------------------------------------------------------------------------------------------


@cache
def bomb(codec: int) -> bytes:
    """Zeros, as small as the codec makes them: `BOMB`, less where the codec makes less of them."""
    size = BOMB // {CompressionType.SNAPPY: 8, CompressionType.LZ4: 2}.get(CompressionType(codec), 1)
    return compress(codec, bytes(size))


@cache
def _zstd_variants() -> tuple[bytes, ...]:
    """Frames whose header says nothing, too little, too much, or asks for a window of two gigabytes."""
    silent = zstandard.ZstdCompressor(write_content_size=False).compress(bytes(BOMB))
    small = zstandard.ZstdCompressor().compress(b"x" * 100)
    # magic, then: single segment with an eight-byte content size; or a window descriptor of 2^31.
    lying = b"\x28\xb5\x2f\xfd\xe0" + (2**62).to_bytes(8, "little") + b"\x01\x00\x00"
    wide = b"\x28\xb5\x2f\xfd\x00" + bytes([21 << 3]) + b"\x01\x00\x00"
    skippable = b"\x50\x2a\x4d\x18" + (2**32 - 1).to_bytes(4, "little")
    return silent, small + small, lying, wide, skippable, small[:-3]


def bombs(draws: Draws, limit: int) -> bytes:
    """A payload that holds far more than it says, or says far more than it holds."""
    codec = draws.choice(CODECS)
    data = bomb(codec)
    if codec is CompressionType.ZSTD and draws.chance(50):
        data = draws.choice(_zstd_variants())
    elif codec is CompressionType.SNAPPY and draws.chance(50):
        data = varint(draws.choice((2**32 - 1, limit, limit + 1, 0))) + data[3:]
    elif draws.chance(20):
        data = data[: draws.below(len(data))]
    elif codec is CompressionType.ZLIB and draws.chance(30):
        data = zlib.compress(data)  # a bomb in a bomb
    says = draws.choice((0, 1, 100, limit - 1, limit, limit + 1, BOMB, 2**31 - 1, 2**32 - 1))
    fields: dict[str, Any] = {"compression": codec, "uncompressed_size": says}
    if draws.chance(50):
        fields["num_messages_in_batch"] = draws.choice((1, 2, 1000, limit // 6))
    return sealed(header(draws.below(8), **fields), data)


# --- lies --------------------------------------------------------------------------------------------

COUNTS = (0, -1, 2, 5, 4096, 2**20, 2**31 - 1, -(2**31))


def _count_lies(draws: Draws, limit: int) -> bytes:
    """More or fewer messages than there are, none, or fewer than none."""
    body = encode_batch_payloads([b"a", b"b", b"c"], 0)
    return sealed(header(num_messages_in_batch=draws.choice(COUNTS)), body)


def _size_lies(draws: Draws, limit: int) -> bytes:
    """A member of a batch that says another size than it has, or whose header does."""
    size = draws.choice((0, 1, 4, 255, 2**31 - 1, 2**31, 2**32 - 1, 2**64 - 1, -1))
    member = b"\x18" + varint(size)
    claimed = draws.choice((len(member), len(member), 0, 2**31 - 1, 2**32 - 1, len(member) + 1))
    body = encode_batch_payloads([b"a"] * draws.below(20), 0) + claimed.to_bytes(4, "big") + member + b"abc"
    return sealed(header(num_messages_in_batch=draws.between(1, 21)), body)


def _tiny_members(draws: Draws, limit: int) -> bytes:
    """A batch of as many members as fit: the most objects for the fewest bytes on the wire."""
    count = draws.choice((limit // 6, limit // 12, 1000))
    body = b"\0\0\0\2\x18\0" * count
    codec = draws.choice(tuple(CompressionType))
    return sealed(
        header(num_messages_in_batch=count, compression=codec, uncompressed_size=len(body)),
        compress(codec, body),
    )


def _chunks(draws: Draws, limit: int) -> bytes:
    counts = (0, 1, 2, -1, 2**31 - 1, -(2**31))
    fields: dict[str, Any] = {
        "uuid": draws.choice(("u", "v", "", "x" * 1000, f"u{draws.below(1000)}")),
        "num_chunks_from_msg": draws.choice(counts),
        "chunk_id": draws.choice(counts),
        "total_chunk_msg_size": draws.choice((0, 3, limit, -1, 2**31 - 1)),
    }
    for name in list(fields):
        if draws.chance(15):
            del fields[name]
    return sealed(header(**fields), b"abc")


def _special(draws: Draws, limit: int) -> bytes:
    """Markers, encryption, transactions, unknown codecs, times far away."""
    choices: tuple[dict[str, Any], ...] = (
        {"marker_type": draws.choice((0, 10, 21, 2**31 - 1, -1))},
        {"encryption_keys": (EncryptionKey("k", b"v"),), "encryption_param": b"x" * 12},
        {"txnid_least_bits": 1, "txnid_most_bits": 2**64 - 1},
        {"compression": draws.choice((5, 99, -1, 2**31 - 1)), "uncompressed_size": 3},
        {"publish_time": 2**64 - 1, "event_time": 2**63, "deliver_at_time": -(2**63)},
        {"sequence_id": 2**64 - 1, "highest_sequence_id": 2**64 - 1, "num_messages_in_batch": 1},
        {"null_value": True, "null_partition_key": True, "partition_key": "k"},
        {"partition_key": "no base64!", "partition_key_b64_encoded": True},
        {"properties": tuple((f"{place}", "x" * 20) for place in range(200))},
        {"schema_version": b"\xff" * 8, "schema_id": b"\0" * 5},
    )
    metadata = MessageMetadata("fuzz", 0, WALL)
    for name, value in draws.choice(choices).items():
        setattr(metadata, name, value)
    return sealed(encode_message_metadata(metadata), b"abc")


def _mutated_metadata(draws: Draws, limit: int) -> bytes:
    """Any mutation of any field of the metadata."""
    tree = _legal_metadata(draws)
    path, mutation = draws.choice(_METADATA_CASES)
    mutate(tree, path, mutation, draws, {})
    return sealed(encode(tree), draws.choice((b"", b"abc", b"\0\0\0\2\x18\0")))


def _mutated_single(draws: Draws, limit: int) -> bytes:
    """Any mutation of any field of the header of a message in a batch."""
    tree = make_tree(SINGLE, draws, {"payload_size": (3, 3, 3, 0)})
    path, mutation = draws.choice(_SINGLE_CASES)
    mutate(tree, path, mutation, draws, {})
    single = encode(tree)
    count = draws.between(1, 3)
    return sealed(
        header(num_messages_in_batch=count), (len(single).to_bytes(4, "big") + single + b"abc") * count
    )


def _legal_metadata(draws: Draws) -> Tree:
    known: Known = {
        "num_messages_in_batch": (1, 1, 2),
        "compression": (0, 0, 1, 2, 3, 4),
        "marker_type": (10,),
    }
    return make_tree(METADATA, draws, known)


def _metadata_size_lies(draws: Draws, limit: int) -> bytes:
    """The size in front of the metadata is not its size; the checksum is right."""
    metadata = header()
    size = draws.choice((0, 1, len(metadata) - 1, len(metadata) + 1, 2**31 - 1, 2**31, 2**32 - 1))
    covered = size.to_bytes(4, "big") + metadata + b"abc"
    return b"\x0e\x01" + crc32c(covered).to_bytes(4, "big") + covered


def _entry_metadata_lies(draws: Draws, limit: int) -> bytes:
    """The block that brokers put in front: a size that lies, bytes that are no message, twice, or alone."""
    whole = sealed(header(), b"abc")
    block = draws.choice((b"", b"\x08\x01", b"\xff" * 5, b"\x08\x01\x10\x02" * 100))
    size = draws.choice((len(block), len(block), 0, len(block) + 1, 2**31, 2**32 - 1))
    front = b"\x0e\x02" + size.to_bytes(4, "big") + block
    return draws.choice((front + whole, front + front + whole, front, front + whole[6:], whole + front))


def _checksum_lies(draws: Draws, limit: int) -> bytes:
    whole = honest(draws)
    return draws.choice(
        (
            whole[:2] + b"\0\0\0\0" + whole[6:],
            whole[6:],  # none at all, which is legal
            b"\x0e\x03" + whole[2:],
            b"\x0e\x01\x0e\x01" + whole[2:],
            whole[:-1] + b"?",
            whole[: draws.below(len(whole))],
            draws.blob(draws.below(30)),
            b"",
        )
    )


Lie = Callable[[Draws, int], bytes]

LIES: dict[str, Lie] = {
    "count of a batch": _count_lies,
    "sizes in a batch": _size_lies,
    "tiny messages": _tiny_members,
    "chunks": _chunks,
    "special": _special,
    "metadata": _mutated_metadata,
    "message in a batch": _mutated_single,
    "size of metadata": _metadata_size_lies,
    "broker entry metadata": _entry_metadata_lies,
    "checksum": _checksum_lies,
    "bomb": bombs,
}
"""The lies by name. Each makes headers and payload from draws and the peer's limit for one message."""

RARE = ("tiny messages", "bomb")
"""Lies that cost the peer more than they cost us: a few of them are enough."""

_COMMON = tuple(name for name in LIES if name not in RARE)


def entry(draws: Draws, limit: int, sequence_id: int = 0) -> tuple[str, bytes]:
    """Headers and payload, honest or not, and what is wrong with them."""
    if draws.chance(35):
        return "honest", honest(draws, sequence_id)
    name = draws.choice(RARE) if draws.chance(4) else draws.choice(_COMMON)
    return name, LIES[name](draws, limit)
