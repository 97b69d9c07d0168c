"""Functions of bytes: each gives them to one entry of the library and checks the outcome.

A target returns if the outcome is right: a value, or one of the errors that the entry declares. Everything
else is an exception, which a fuzzer looks for. Targets compare the readers written by hand with protobuf's
reading of the same bytes.
"""

from collections.abc import Callable

from fuzz import reference, web_server
from fuzz.broker_side import BrokerRound
from fuzz.ciphers import encrypted, encryption_keys, key_files
from fuzz.client_side import ClientRound
from fuzz.credentials import certificate_names, challenges, tokens
from fuzz.draws import Draws
from fuzz.mutations import frame as framed
from fuzz.reports import Report
from fuzz.values import avro_data, definitions, json_data, key_value
from pulsar_sansio import (
    InvalidMessage,
    InvalidServiceUrl,
    InvalidTopicName,
    ServiceUrl,
    TopicName,
    decode_message_id,
    encode_message_id,
)
from pulsar_sansio.core.buffers import ReceiveBuffer
from pulsar_sansio.model.errors import DecompressionFailed, FrameError, RemoteProtocolError
from pulsar_sansio.model.http_url import HttpUrl
from pulsar_sansio.wire import (
    MESSAGE_TAG,
    Ack,
    FrameDecoder,
    HotCommand,
    MessageCommand,
    MetadataDecoder,
    UniformMessageReader,
    UniformMessages,
    bits_from_words,
    decode_single_metadata,
    decompress,
    encode_message_metadata,
    encode_single_metadata,
    max_frame_size,
    proto,
    split_batch,
    unpack_payload,
    words_from_bits,
)

Target = Callable[[bytes], None]

LIMIT = 64 * 1024
"""Bytes of one message, wherever a target needs a limit."""

FRAME_LIMIT = max_frame_size(LIMIT)

VALIDATION_ERRORS = {None, *proto.CommandAck.ValidationError.values()}

ROUND = 60
"""Hostile frames of one round of the targets that drive a machine."""


def frame(data: bytes) -> None:
    """A stream: cut into the same commands, and refused at the same place, whole or in two reads. The first
    byte says where it is cut."""
    if not data:
        return
    cut, stream = data[0] % len(data), data[1:]
    whole, pieces = _commands(stream), _commands(stream[:cut], stream[cut:])
    if whole != pieces:
        # A size that contradicts another is noticed at once, or when its frame would be complete.
        assert whole == [*pieces, FrameError]


def _commands(*reads: bytes) -> list[object]:
    """The commands in some reads, as a connection takes them; a refusal ends the list."""
    buffer = ReceiveBuffer()
    decoder = FrameDecoder()
    found: list[object] = []
    for read in reads:
        whole = buffer.feed(read)
        if whole is None:
            continue
        position = 0
        try:
            while (decoded := decoder.decode(whole, position, FRAME_LIMIT)) is not None:
                kind, command, behind = decoded
                assert position + 8 <= behind <= len(whole)
                position = behind
                found.append((kind, command))
        except FrameError:
            return [*found, FrameError]
        buffer.hold(whole, position)
        assert len(buffer) <= 4 + FRAME_LIMIT
    return found


def command(data: bytes) -> None:
    """One command: read by hand it is what protobuf makes of it, and writing it again changes nothing."""
    expected = reference.parse_command(data)
    try:
        decoded = FrameDecoder().decode(framed(data), 0, 4 + len(data))
    except FrameError as error:
        # Protobuf makes bytes of such text, and overlooks such a value where a known one came before it.
        if "not UTF-8" not in str(error) and "unknown ack_type" not in str(error):
            _agree(None, expected, error)
        return
    assert decoded is not None
    kind, found, _ = decoded
    _agree(found, expected)
    if expected is None:
        return
    assert kind == expected[0]
    if isinstance(found, Ack) and found.validation_error not in VALIDATION_ERRORS:
        return  # protobuf goes on with a known one that came before it
    if isinstance(found, HotCommand):
        again = found.encode()
        size = int.from_bytes(again[4:8], "big")
        parsed = reference.parse_command(again[8 : 8 + size])
        assert parsed is not None
        assert parsed[0] == kind
        reference.same_messages(parsed[1], expected[1])
    else:
        assert found == expected[1]


def _agree(found: object | None, expected: object | None, why: Exception | None = None) -> None:
    """Both take the bytes or neither does. Protobuf overlooks the number 0 in groups that it skips."""
    if found is None and "number 0" in str(why):
        return
    if found is None:
        assert expected is None, f"protobuf takes it: {why}"
    else:
        assert expected is not None, "protobuf does not take it"


def uniform(data: bytes) -> None:
    """Read a stream whose uniform messages are taken many at once. Each of them must equal the result of the
    general reader, and be an entry by itself."""
    decoder = FrameDecoder()
    reader = UniformMessageReader(decoder.deliveries, MetadataDecoder())
    position = 0
    try:
        while True:
            run = None
            if data.startswith(MESSAGE_TAG, position + 8):
                run = reader.take(data, position, FRAME_LIMIT)
            end = position if run is None else run.end
            for place in range(1 if run is None else len(run.entry_ids)):
                decoded = decoder.decode(data, position, FRAME_LIMIT)
                if decoded is None:
                    assert run is None
                    return
                if run is not None:
                    _same_entry(run, place, decoded[1])
                position = decoded[2]
            assert run is None or position == end
    except FrameError:
        assert run is None, "taken, and refused by the general way"


def _same_entry(run: UniformMessages, place: int, command: MessageCommand) -> None:
    facts = run.facts
    assert facts == (
        command.consumer_id,
        command.ledger_id,
        command.partition,
        command.redelivery_count,
        command.consumer_epoch,
    )
    assert run.entry_ids[place] == command.entry_id
    assert command.ack_set is None
    entry = unpack_payload(command.payload)
    assert entry.checksum_ok
    assert entry.broker_entry_metadata is None
    assert run.payloads[place] == entry.payload
    header = run.headers[place]
    found = MetadataDecoder().decode(header) if isinstance(header, bytes) else header
    assert found == entry.metadata
    assert found.num_messages_in_batch is None
    assert found.num_chunks_from_msg is None
    assert found.marker_type is None
    assert not found.null_value
    assert not found.compression
    assert not found.encryption_keys


def metadata(data: bytes) -> None:
    """The header of an entry."""
    expected = reference.parse(proto.MessageMetadata, data)
    decoder = MetadataDecoder()
    try:
        found = decoder.decode(data)
    except FrameError as error:
        _agree(None, expected, error)
        return
    _agree(found, expected)
    assert expected is not None
    reference.same_fields(found, expected)
    assert decoder.decode(data) == found
    assert decoder.decode(encode_message_metadata(found)) == found


def single_metadata(data: bytes) -> None:
    """The header of a message in a batch."""
    expected = reference.parse(proto.SingleMessageMetadata, data)
    try:
        found = decode_single_metadata(data)
    except FrameError as error:
        _agree(None, expected, error)
        return
    _agree(found, expected)
    assert expected is not None
    reference.same_fields(found, expected)
    assert decode_single_metadata(encode_single_metadata(found)) == found


def payload(data: bytes) -> None:
    """Headers and payload of an entry."""
    try:
        found = unpack_payload(data)
    except RemoteProtocolError:
        return
    assert data.endswith(found.payload)
    encode_message_metadata(found.metadata)


def batch(data: bytes) -> None:
    """Two bytes that say how many messages there are, and the payload of the batch."""
    count, body = int.from_bytes(data[:2], "little", signed=True), data[2:]
    expected = reference.split(body, count) if count > 0 else None
    try:
        found = split_batch(body, count)
    except FrameError as error:
        _agree(None, expected, error)
        return
    _agree(found, expected)
    assert expected is not None
    assert found.payloads == [payload for _, payload in expected]
    for index, (single, _) in enumerate(expected):
        reference.same_fields(found.single(index), single)
        assert not found.plain or not single.ListFields()[2:]


def decompression(data: bytes) -> None:
    """A codec, three bytes that say the size, and the compressed data: never more than the limit comes out,
    and always what was said."""
    if len(data) < 4:
        return
    size = int.from_bytes(data[1:4], "little")
    try:
        output = decompress(data[0] % 7, data[4:], size, LIMIT)
    except DecompressionFailed:
        return
    assert data[0] % 7 == 0 or len(output) == size <= LIMIT


def ack_sets(data: bytes) -> None:
    """Eight bytes a word: a set and its words are the same thing."""
    words = [
        int.from_bytes(data[place : place + 8], "little", signed=True) for place in range(0, len(data), 8)
    ]
    bits = bits_from_words(words)
    assert bits >= 0
    again = words_from_bits(bits)
    assert bits_from_words(again) == bits
    assert not again or again[-1]
    assert again == words[: len(again)]
    assert not any(words[len(again) :])
    for index in range(len(words) * 64):
        assert bits >> index & 1 == words[index // 64] >> index % 64 & 1


def message_id(data: bytes) -> None:
    """An id that was kept outside."""
    expected = reference.parse(proto.MessageIdData, data)
    try:
        found = decode_message_id(data)
    except InvalidMessage as error:
        _agree(None, expected, error)
        return
    _agree(found, expected)
    assert expected is not None
    ids = found.ledger_id % 2**64, found.entry_id % 2**64, found.partition, found.batch_index
    assert ids == (expected.ledgerId, expected.entryId, expected.partition, expected.batch_index)
    again = decode_message_id(encode_message_id(found))
    assert again[:2] == found[:2]
    str(found)


def names(data: bytes) -> None:
    """Text as a topic name and as a service URL: what is accepted comes back from its own text."""
    text = data.decode("utf-8", "replace")
    try:
        topic = TopicName.parse(text)
    except InvalidTopicName as error:
        str(error)
    else:
        assert TopicName.parse(str(topic)) == topic
        assert -1 <= topic.partition < 2**31
        assert (topic.base == topic) == (topic.partition < 0)
        if topic.partition >= 0:
            assert topic.base.partition_name(topic.partition) == topic
    try:
        url = ServiceUrl.parse(text)
    except InvalidServiceUrl as error:
        str(error)
    else:
        assert ServiceUrl.parse(str(url)) == url
        for address in url.addresses:
            assert address.host
            assert 1 <= address.port <= 65535
    try:
        target = HttpUrl.parse("http://host/a").joined(text)
    except InvalidServiceUrl as error:
        str(error)
    else:
        assert HttpUrl.parse(str(target)) == target
        assert target.target.isascii()


def http_answer(data: bytes) -> None:
    """The answer of a web server to a lookup."""
    web_server.answer(data)


def scenario(data: bytes) -> None:
    """A client, its application and hostile brokers, all of it decided by the bytes."""
    ClientRound(Draws.of_bytes(data), Report("client")).run(ROUND)


def broker(data: bytes) -> None:
    """A broker and hostile clients, all of it decided by the bytes."""
    BrokerRound(Draws.of_bytes(data), Report("broker")).run(ROUND)


TARGETS: dict[str, Target] = {
    target.__name__: target
    for target in (
        frame,
        command,
        uniform,
        metadata,
        single_metadata,
        payload,
        batch,
        decompression,
        ack_sets,
        message_id,
        names,
        http_answer,
        challenges,
        tokens,
        certificate_names,
        definitions,
        avro_data,
        json_data,
        key_value,
        encryption_keys,
        key_files,
        encrypted,
        scenario,
        broker,
    )
}
"""The targets by name. `python -m fuzz` can run each, and the corpus has a folder for each."""

MACHINES = ("scenario", "broker")
"""Targets that drive a machine: some milliseconds each, where the others take microseconds."""
