"""Frames taken many at once against frames decoded one by one: equal entries, or nothing taken."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pulsar_sansio.model.errors import FrameError
from pulsar_sansio.wire import (
    EncryptionKey,
    FrameDecoder,
    MessageMetadata,
    MetadataDecoder,
    UniformMessageReader,
    encode_message,
    max_frame_size,
    pack_payload,
    unpack_payload,
)

LIMIT = max_frame_size()
MESSAGE = 9
TIME = 1_700_000_000_000
NOT_PLAIN: dict[str, Any] = {
    "num_messages_in_batch": 1,
    "compression": 1,
    "encryption_keys": [EncryptionKey("k", b"v")],
    "marker_type": 0,
    "num_chunks_from_msg": 1,
    "null_value": True,
}
READ_BY_DEFAULT = ("compression", "encryption_keys")
"""Their values are checked: an entry with the value 0, or with a nonce, is plain."""
PLAIN: dict[str, Any] = {
    "uncompressed_size": 300,
    "partition_key": "a key",
    "properties": [("name", "value"), ("other", "v" * 40)],
    "event_time": 5,
    "ordering_key": b"o",
    "schema_version": b"\x00",
    "unknown": b"\xc8\x3e\x01",
}


def stored(
    payload: bytes = b"payload", name: str = "standalone-0-1", sequence_id: int = 0, **more: Any
) -> bytes:
    metadata = MessageMetadata(name, sequence_id, more.pop("publish_time", TIME), **more)
    return b"".join(pack_payload(metadata.encode(), payload))


def frame(entry: bytes, consumer: int = 0, ledger: int = 57, entry_id: int = 0, **more: Any) -> bytes:
    return b"".join(encode_message(consumer, ledger, entry_id, stored=entry, **more))


class Reader:
    """The decoders of one connection."""

    def __init__(self) -> None:
        decoder = FrameDecoder()
        self.metadata = MetadataDecoder()
        self.decode = decoder.decode
        self.take = UniformMessageReader(decoder.deliveries, self.metadata).take


def read_all(data: bytes, reader: Reader) -> int:
    """Reads a stream by both ways together; how many frames were taken many at once.

    The entries taken are plain, and those that `FrameDecoder` gives for these frames.
    """
    position = taken = 0
    while True:
        run = reader.take(data, position, LIMIT)
        if run is not None:
            assert run.entry_ids
            nonces = iter(run.encryption.nonces if run.encryption else ())
            for entry_id, header, payload in zip(run.entry_ids, run.headers, run.payloads, strict=True):
                found = reader.decode(data, position, LIMIT)
                assert found is not None
                kind, command, position = found
                facts = run.facts
                assert kind == MESSAGE
                assert command == (
                    facts.consumer_id,
                    facts.ledger_id,
                    entry_id,
                    facts.partition,
                    -1,
                    facts.redelivery_count,
                    None,
                    facts.consumer_epoch,
                    command.payload,
                    b"",
                    b"",
                )
                unpacked = unpack_payload(command.payload)
                metadata = reader.metadata.decode(header) if isinstance(header, bytes) else header
                assert unpacked.broker_entry_metadata is None
                assert unpacked.checksum_ok
                assert unpacked.payload == payload
                assert unpacked.metadata == metadata
                assert not any(metadata.has(name) for name in NOT_PLAIN if name not in READ_BY_DEFAULT)
                assert not metadata.compression
                assert metadata.schema_version == run.schema_version
                if run.encryption is None:
                    assert not metadata.encryption_keys
                else:
                    assert list(metadata.encryption_keys) == list(run.encryption.keys) != []
                    assert metadata.encryption_param == next(nonces)
            assert next(nonces, None) is None
            assert position == run.end
            taken += len(run.payloads)
            continue
        found = reader.decode(data, position, LIMIT)
        if found is None:
            return taken
        position = found[2]


KEYS = [EncryptionKey("k", b"w" * 300), EncryptionKey("j", b"v", (("version", "1"),))]
ENTRY_IDS = st.integers(0, 300) | st.integers(16_000, 17_000) | st.integers(0, 2**63 - 1)
METADATA: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "sequence_id": ENTRY_IDS,
        "name": st.sampled_from(["standalone-0-1", "standalone-0-2", "standalone-0-10", "", "é" * 70]),
        "publish_time": st.sampled_from([TIME, TIME + 1, 0, 2**64 - 1]),
        "payload": st.binary(max_size=40) | st.just(b"x" * 5000),
    },
    optional={name: st.just(value) for name, value in (PLAIN | NOT_PLAIN).items()}
    | {
        "encryption_keys": st.lists(st.sampled_from(KEYS), max_size=2),
        "encryption_param": st.sampled_from([b"n" * 12, b"n" * 11]),
        "schema_version": st.sampled_from([b"", b"\x00", b"\x01" * 8]),
    },
)
COMMANDS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "consumer": st.sampled_from([0, 1, 200]),
        "ledger": st.sampled_from([57, 300, 2**40, -1]),
        "entry_id": ENTRY_IDS,
        "partition": st.sampled_from([-1, 0, 500]),
    },
    optional={
        "redelivery_count": st.integers(0, 300),
        "consumer_epoch": st.integers(0, 3),
        "ack_set": st.just(5),
        "batch_index": st.just(0),
    },
)
BROKER_ENTRY = b"\x0e\x02\x00\x00\x00\x02\x08\x01"


@st.composite
def streams(draw: st.DrawFn) -> list[bytes]:
    """Frames in groups that are uniform, as far as what was drawn for the group allows."""
    frames: list[bytes] = []
    for command, metadata in draw(st.lists(st.tuples(COMMANDS, METADATA), min_size=1, max_size=4)):
        for step in range(draw(st.integers(1, 5))):
            if "encryption_param" in metadata and draw(st.booleans()):
                metadata = metadata | {"encryption_param": draw(st.binary(min_size=12, max_size=12))}
            entry = stored(**metadata | {"sequence_id": min(metadata["sequence_id"] + step, 2**64 - 1)})
            form = draw(st.integers(0, 9))
            if form == 0:
                entry = entry[6:]  # without a checksum
            elif form == 1:
                entry = BROKER_ENTRY + entry
            frames.append(frame(entry, **command | {"entry_id": min(command["entry_id"] + step, 2**63 - 1)}))
    return frames


@given(streams())
@settings(max_examples=150)
def test_what_is_taken_is_what_the_general_way_gives(frames: Sequence[bytes]) -> None:
    read_all(b"".join(frames), Reader())


@given(streams(), st.data())
@settings(max_examples=250)
def test_damaged_frames_are_left_to_the_general_way(frames: Sequence[bytes], data: st.DataObject) -> None:
    whole = b"".join(frames)
    reader = Reader()
    read_all(whole, reader)  # so that something is remembered
    position = data.draw(st.integers(0, len(whole) - 1))
    byte = bytes([data.draw(st.integers(0, 255))])
    end = data.draw(st.sampled_from([len(whole), position]))
    damaged = (whole[:position] + byte + whole[position + 1 :])[:end]
    with suppress(FrameError):  # of FrameDecoder; the reader raises nothing
        read_all(damaged, reader)


def uniform(count: int, first: int = 0, **metadata: Any) -> bytes:
    return b"".join(
        frame(stored(sequence_id=number, **metadata), entry_id=number)
        for number in range(first, first + count)
    )


def test_all_but_the_first_of_uniform_frames_are_taken_at_once() -> None:
    reader = Reader()
    data = uniform(50, uncompressed_size=7)
    first = reader.decode(data, 0, LIMIT)
    assert first is not None
    taken = reader.take(data, first[2], LIMIT)
    assert taken is not None
    assert taken.entry_ids == list(range(1, 50))
    assert taken.end == len(data)
    assert isinstance(taken.headers[-1], bytes)


def test_larger_numbers_change_the_template_and_nothing_else() -> None:
    first = 16_300
    assert read_all(uniform(200, first), Reader()) >= 195


def test_two_producers_in_turn() -> None:
    names = ["standalone-0-9", "standalone-0-10"]
    frames = [frame(stored(name=names[n % 2], sequence_id=n), entry_id=n) for n in range(100)]
    assert read_all(b"".join(frames), Reader()) >= 98


def test_keys_and_properties_are_plain() -> None:
    for name, value in PLAIN.items():
        assert read_all(uniform(20, **{name: value}), Reader()) >= 18, name


def test_what_is_not_plain_is_never_taken() -> None:
    for name, value in NOT_PLAIN.items():
        reader = Reader()
        read_all(uniform(3), reader)
        assert read_all(uniform(20, **{name: value}), reader) == 0, name


def test_a_wrong_checksum_ends_what_is_taken() -> None:
    good = uniform(9)
    bad = bytearray(frame(stored(sequence_id=10), entry_id=10))
    bad[-1] ^= 1
    reader = Reader()
    read_all(good, reader)
    taken = reader.take(good + bytes(bad) + good, 0, LIMIT)
    assert taken is not None
    assert taken.end == len(good)
    assert reader.take(bytes(bad), 0, LIMIT) is None


def test_a_frame_over_the_limit_is_not_taken() -> None:
    data = uniform(1)
    reader = Reader()
    read_all(data, reader)
    assert reader.take(data, 0, len(data) - 4) is not None
    assert reader.take(data, 0, len(data) - 5) is None


def encrypted(count: int, first: int = 0, **metadata: Any) -> bytes:
    """Frames of encrypted entries, as producers of this client and of Java write them."""
    fields: dict[str, Any] = {"uncompressed_size": 7, "encryption_keys": KEYS} | metadata
    return b"".join(
        frame(stored(sequence_id=n, encryption_param=n.to_bytes(12, "big"), **fields), entry_id=n)
        for n in range(first, first + count)
    )


def test_entries_that_differ_in_the_nonce_only_are_taken_at_once() -> None:
    reader = Reader()
    data = encrypted(20) + encrypted(20, 20, schema_version=b"\x01")
    taken = reader.take(data, 0, LIMIT)
    assert taken is not None
    assert taken.encryption is not None
    assert taken.encryption.keys == tuple(KEYS)
    assert taken.encryption.nonces == [n.to_bytes(12, "big") for n in range(20)]
    assert (taken.entry_ids, taken.schema_version) == (list(range(20)), None)
    assert [isinstance(header, bytes) for header in taken.headers] == [False] + [True] * 19
    rest = reader.take(data, taken.end, LIMIT)
    assert rest is not None
    assert (rest.entry_ids, rest.schema_version) == (list(range(20, 40)), b"\x01")


def test_entries_of_other_keys_or_of_none_are_taken_apart() -> None:
    data = encrypted(5) + encrypted(5, 5, encryption_keys=KEYS[:1]) + uniform(5, 10, uncompressed_size=7)
    reader, position, sizes = Reader(), 0, []
    read_all(data, Reader())
    while run := reader.take(data, position, LIMIT):
        sizes.append((len(run.entry_ids), len(run.encryption.keys) if run.encryption else 0))
        position = run.end
    assert sizes == [(5, 2), (5, 1), (5, 0)]


def test_encrypted_payloads_of_several_sizes_are_taken_at_once() -> None:
    data = b"".join(encrypted(1, n, uncompressed_size=n * 60, payload=b"x" * n * 60) for n in range(9))
    assert read_all(data, Reader()) == 9
    taken = Reader().take(data, 0, LIMIT)
    assert taken is not None
    assert len(taken.payloads) == 9
