"""Our client replaces the recorded Java client: equal steps give equal frames.

The request ids of a recording begin anywhere. Ours are made to begin there too, so that whole frames can be
compared. Frames differ in the name of the client (CONNECT) and in nothing else. Every recording is played
twice: with the broker's bytes as they arrived, and byte by byte.
"""

import json
from itertools import count
from typing import Any

import pytest

from pulsar_sansio.client.outputs import (
    Closed,
    Connect,
    ProducerFailed,
    ProducerReady,
    Receipts,
    RequestDone,
)
from pulsar_sansio.model.config import (
    BatchingPolicy,
    CompressionType,
    HashingScheme,
    OutgoingMessage,
    ProducerSpec,
)
from pulsar_sansio.model.errors import MessageTooLarge, ProducerBusy, TopicNotFound
from pulsar_sansio.model.message_id import MessageId
from pulsar_sansio.wire import FrameDecoder, max_frame_size, unpack_payload
from tests.client.script import Command, Script
from tests.wire.recorded.recordings import FOLDER

TOPIC = "persistent://public/default/"


def conversation(name: str) -> list[tuple[str, bytes]]:
    """Return direction and bytes of every frame, in the order in which they were complete."""
    found = []
    buffers: dict[str, bytes] = {">": b"", "<": b""}
    for line in (FOLDER / f"{name}.jsonl").read_text().splitlines():
        piece = json.loads(line)
        if "x" not in piece:
            continue
        direction = piece["d"]
        data = buffers[direction] + bytes.fromhex(piece["x"])
        while len(data) >= 4 and len(data) >= (end := 4 + int.from_bytes(data[:4], "big")):
            found.append((direction, data[:end]))
            data = data[end:]
        buffers[direction] = data
    return found


class Replay:
    """One recording. `step` lets the application act, and compares the frames that the client writes then."""

    def __init__(self, name: str, chop: bool) -> None:
        self.frames = conversation(name)
        """Direction and bytes of every frame of the one connection, in order."""
        self.position = 0
        self.script = Script(service_url="pulsar://127.0.0.1:6650", chop=chop)
        self.client = self.script.client
        first = next(
            command.request_id for kind, command in self.commands() if kind == Command.PARTITIONED_METADATA
        )
        self.client._services.requests._next_request_id = count(first).__next__
        self.link = 0

    def commands(self) -> list[tuple[int, Any]]:
        found = []
        for direction, frame in self.frames:
            decoded = FrameDecoder().decode(frame, 0, max_frame_size())
            assert decoded is not None
            if direction == ">":
                found.append(decoded[:2])
        return found

    def publish_times(self) -> list[int]:
        sends = [command for kind, command in self.commands() if kind == Command.SEND]
        return [unpack_payload(send.payload).metadata.publish_time for send in sends]

    def run(self) -> list[Any]:
        """Play the recording until the next step, and return the client's outputs."""
        script = self.script
        script.drain()
        said: list[Any] = []
        while True:
            for output in script.said():
                if isinstance(output, Connect):
                    self.link = output.link
                    script.open(self.link)
                else:
                    said.append(output)
            written = script.written.pop(self.link, b"")
            while written:
                direction, expected = self.frames[self.position]
                assert direction == ">", "the client spoke out of turn"
                frame = FrameDecoder().decode(written, 0, max_frame_size())
                assert frame is not None
                kind, _, end = frame
                if kind != Command.CONNECT:
                    assert written[:end] == expected
                written = written[end:]
                self.position += 1
            progress = False
            while self.position < len(self.frames) and self.frames[self.position][0] == "<":
                script.feed(self.link, self.frames[self.position][1])
                self.position += 1
                progress = True
            if not progress:
                return said

    def close(self) -> None:
        """Close the client; the recording is over."""
        assert self.position == len(self.frames)
        self.client.close(self.script.now)
        self.script.drain()
        assert self.client.next_deadline() is None


BOTH_WAYS = pytest.mark.parametrize("chop", [False, True], ids=["as it came", "byte by byte"])


def ids(said: list[Any]) -> list[MessageId]:
    return [
        message_id for output in said if isinstance(output, Receipts) for message_id in output.message_ids
    ]


@BOTH_WAYS
def test_produce_single(chop: bool) -> None:
    replay = Replay("java-produce-single", chop)
    client, now = replay.client, replay.script.now
    times = iter(replay.publish_times())
    producer = client.open_producer(now, ProducerSpec(topic=TOPIC + "produce-single", batching=None))
    assert isinstance(replay.run()[0], ProducerReady)
    for number in range(3):
        client.send(now, producer, b"m%d" % number, next(times))
    said = replay.run()
    client.send(
        now,
        producer,
        OutgoingMessage(
            b"full", key="k", properties={"a": "1", "b": "2"}, event_time=1_700_000_000_000, ordering_key=b"o"
        ),
        next(times),
    )
    said += replay.run()
    client.send(now, producer, OutgoingMessage(None), next(times))
    said += replay.run()
    assert ids(said) == [MessageId(7, entry) for entry in range(5)]
    client.close(now, producer)
    assert [type(output) for output in replay.run()] == [Closed, RequestDone]
    replay.close()


@BOTH_WAYS
def test_produce_batch(chop: bool) -> None:
    replay = Replay("java-produce-batch", chop)
    client, now = replay.client, replay.script.now
    times = replay.publish_times()
    producer = client.open_producer(
        now,
        ProducerSpec(topic=TOPIC + "produce-batch", batching=BatchingPolicy(max_messages=5, max_delay=1.0)),
    )
    replay.run()
    for number in range(10):
        message = OutgoingMessage(b"m%d" % number, key=f"k{number % 3}", properties={"n": str(number)})
        client.send(now, producer, message, times[number // 5])
    assert ids(replay.run()) == [
        MessageId(8, entry, -1, index, 5) for entry in range(2) for index in range(5)
    ]
    client.close(now, producer)
    replay.run()
    replay.close()


@BOTH_WAYS
def test_message_too_large(chop: bool) -> None:
    replay = Replay("java-message-too-large", chop)
    client, now = replay.client, replay.script.now
    producer = client.open_producer(now, ProducerSpec(topic=TOPIC + "message-too-large", batching=None))
    replay.run()
    client.send(now, producer, b"fits", replay.publish_times()[0])
    with pytest.raises(MessageTooLarge):
        client.send(now, producer, bytes(6 * 1024 * 1024), 0)
    assert len(ids(replay.run())) == 1
    client.close(now, producer)
    replay.run()
    replay.close()


@BOTH_WAYS
def test_producer_name_conflict(chop: bool) -> None:
    replay = Replay("java-producer-name-conflict", chop)
    client, now = replay.client, replay.script.now
    spec = ProducerSpec(topic=TOPIC + "producer-name-conflict", name="n")
    first = client.open_producer(now, spec)
    replay.run()
    second = client.open_producer(now, spec)
    (failed,) = replay.run()
    assert isinstance(failed, ProducerFailed)
    assert failed.producer == second
    assert isinstance(failed.error, ProducerBusy)
    client.close(now, first)
    replay.run()
    replay.close()


@BOTH_WAYS
def test_deduplication(chop: bool) -> None:
    replay = Replay("java-deduplication", chop)
    client, now = replay.client, replay.script.now
    times = iter(replay.publish_times())
    spec = ProducerSpec(
        topic="persistent://public/dedup/deduplication", name="dd", batching=None, send_timeout=0.0
    )
    producer = client.open_producer(now, spec)
    replay.run()
    said = []
    for sequence_id, payload in ((0, b"0"), (1, b"1"), (0, b"0 again")):
        client.send(now, producer, OutgoingMessage(payload, sequence_id=sequence_id), next(times))
        said += replay.run()
    assert ids(said) == [MessageId(126, 0), MessageId(126, 1), MessageId(-1, -1)]
    client.close(now, producer)
    replay.run()
    again = client.open_producer(now, spec)
    (ready,) = replay.run()
    assert isinstance(ready, ProducerReady)
    assert ready.last_sequence_id == 1
    client.close(now, again)
    replay.run()
    replay.close()


@BOTH_WAYS
def test_unknown_namespace(chop: bool) -> None:
    replay = Replay("java-unknown-namespace", chop)
    client, now = replay.client, replay.script.now
    for topic in ("persistent://no-such/tenant/t", "persistent://public/no-such-ns/t"):
        client.open_producer(now, ProducerSpec(topic=topic))
        (failed,) = replay.run()
        assert isinstance(failed, ProducerFailed)
        assert isinstance(failed.error, TopicNotFound)
    replay.close()


@pytest.mark.parametrize("codec", [CompressionType.LZ4, CompressionType.SNAPPY, CompressionType.ZSTD])
def test_a_small_batch_is_compressed_as_the_recorded_client_does(codec: CompressionType) -> None:
    """A batch of 556 bytes is compressed, with these fields: the choice that `send_encoder` documents."""
    replay = Replay(f"java-codec-{codec.name.lower()}", chop=False)
    (recorded,) = [command for kind, command in replay.commands() if kind == Command.SEND]
    script = Script()
    producer, link = script.ready_producer(
        ProducerSpec(topic="demo", compression=codec, batching=BatchingPolicy(max_messages=4)),
        name="standalone-0-6",
    )
    for number in range(4):
        script.client.send(script.now, producer, b"message %d %s" % (number, b"abc" * 40), 1)
    ours = unpack_payload(script.sent(link, Command.SEND).payload).metadata
    theirs = unpack_payload(recorded.payload).metadata
    assert set(ours.__dict__) == set(theirs.__dict__)
    assert ours.uncompressed_size == theirs.uncompressed_size == 556


@BOTH_WAYS
def test_partitioned_murmur3(chop: bool) -> None:
    """The client opens one of four partitions, then the others under its name. Keys go where the Java client
    put them."""
    replay = Replay("java-partitioned-murmur3", chop)
    client, now = replay.client, replay.script.now
    times = iter(replay.publish_times())
    topic = TOPIC + "partitioned-murmur3"
    spec = ProducerSpec(topic=topic, batching=None, hashing=HashingScheme.MURMUR3_32)
    producer = client.open_producer(now, spec)
    (ready,) = replay.run()
    assert ready == ProducerReady(producer, "standalone-0-27", -1, topic)
    partitions = []
    for number in range(12):
        client.send(now, producer, OutgoingMessage(b"k%d" % number, key=f"key-{number}"), next(times))
        (message_id,) = ids(replay.run())
        partitions.append(message_id.partition)
    assert partitions == [3, 0, 0, 2, 2, 2, 2, 0, 0, 0, 0, 0]
    request = client.close(now, producer)
    assert replay.run() == [Closed(producer, None), RequestDone(request, None)]
    replay.close()
