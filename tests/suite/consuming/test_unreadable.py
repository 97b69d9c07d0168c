"""Entries that no consumer can read: the client tells the broker, which does not redeliver them.

Messages between and behind such entries are delivered.
"""

from typing import Any
from urllib.parse import urlsplit

import pytest
import trio

from pulsar_sansio.wire import (
    FrameDecoder,
    MessageMetadata,
    Send,
    encode_batch_payloads,
    encode_command,
    encode_message_metadata,
    pack_payload,
    proto,
)
from pulsar_trio import Client
from pulsar_trio.client.options import Kind
from tests.suite.brokers import BrokerUnderTest
from tests.suite.helpers import receive_and_acknowledge, rest

_Command = proto.BaseCommand


def entry(payload: bytes, **fields: Any) -> bytes:
    """Headers and payload, whether they go together or not; the checksum is right."""
    metadata = MessageMetadata("by hand", 0, 1_700_000_000_000, **fields)
    return b"".join(pack_payload(encode_message_metadata(metadata), payload))


async def send_by_hand(broker: BrokerUnderTest, topic: str, entries: list[tuple[bytes, int]]) -> None:
    """Send entries as they are, and wait until they are confirmed. With each, how many messages it says to
    have."""
    port = urlsplit(broker.url).port
    assert port is not None
    async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
        received = b""

        async def answer(kind: int) -> None:
            nonlocal received
            while (found := FrameDecoder().decode(received, 0, 5 << 20)) is None:
                more = await stream.receive_some()
                assert more, "the broker has closed the connection"
                received += more
            type_, command, end = found
            assert type_ == kind, command
            received = received[end:]

        connect = proto.CommandConnect(client_version="by hand", protocol_version=19)
        await stream.send_all(encode_command(_Command.CONNECT, connect))
        await answer(_Command.CONNECTED)
        producer = proto.CommandProducer(topic=topic, producer_id=0, request_id=0)
        await stream.send_all(encode_command(_Command.PRODUCER, producer))
        await answer(_Command.PRODUCER_SUCCESS)
        for sequence_id, (data, messages) in enumerate(entries):
            await stream.send_all(Send(0, sequence_id, messages, payload=data).encode())
            await answer(_Command.SEND_RECEIPT)


UNREADABLE = {
    "a codec that it is not of": (entry(b"no frame", compression=proto.LZ4, uncompressed_size=100), 1),
    "another size than it says": (entry(b"\x10x", compression=proto.LZ4, uncompressed_size=5000), 1),
    "larger than is allowed": (entry(b"x", compression=proto.ZLIB, uncompressed_size=1 << 30), 1),
    "a batch of nothing": (entry(b"no batch at all", num_messages_in_batch=3), 3),
    "a batch cut off": (entry(encode_batch_payloads([b"a", b"b"], 0)[:-1], num_messages_in_batch=2), 2),
    "a batch of more": (entry(encode_batch_payloads([b"a", b"b"], 0), num_messages_in_batch=3), 3),
}


@pytest.mark.parametrize("kind", ["exclusive", "shared"])
@pytest.mark.parametrize("what", UNREADABLE)
async def test_what_cannot_be_read_does_not_block_other_messages(
    broker: BrokerUnderTest, client: Client, topic: str, what: str, kind: Kind
) -> None:
    """More of it than the queue is large, so the flow would stand if its permits did not come back.
    Rule CONS-35."""
    bad, good = UNREADABLE[what], (entry(b"good"), 1)
    async with client.subscribe(topic, "sub", kind=kind, receiver_queue_size=3) as consumer:
        await send_by_hand(broker, topic, [bad, good, *[bad] * 8, good])
        messages = await receive_and_acknowledge(consumer, 2)
        assert [message.data for message in messages] == [b"good", b"good"]
        await consumer.flush()
        assert consumer.statistics().undelivered.discarded > 0
    async with client.subscribe(topic, "sub", kind=kind) as consumer:
        assert await rest(consumer) == []
        assert consumer.statistics().undelivered.discarded == 0
