"""Scenes of compaction for tests: keyed messages, batches and chunks, and consumers that read compacted."""

from typing import Any

from pulsar_sansio.broker import BrokerConfig
from pulsar_sansio.wire import (
    MessageCommand,
    SingleMessageMetadata,
    compress,
    decompress,
    encode_single,
    proto,
    split_batch,
    unpack_payload,
)
from tests.broker.peer import TOPIC, Peer, Type, World

EARLIEST = proto.MessageIdData(ledgerId=2**64 - 1, entryId=2**64 - 1)
Member = tuple[str | None, bytes]


def publish(peer: Peer, key: str | None, payload: bytes, **fields: Any) -> None:
    peer.publish(payload, partition_key=key, **fields)
    peer.expect(Type.SEND_RECEIPT)


def publish_batch(peer: Peer, *members: Member, compression: int = 0) -> None:
    body = b"".join(
        encode_single(
            SingleMessageMetadata(0, partition_key=key, sequence_id=number, null_value=not payload), payload
        )
        for number, (key, payload) in enumerate(members)
    )
    count = len(members)
    size = len(body)
    if compression:
        body = compress(compression, body)
    peer.publish(
        body,
        0,
        highest=count - 1,
        count=count,
        num_messages_in_batch=count,
        compression=compression,
        uncompressed_size=size,
    )
    peer.expect(Type.SEND_RECEIPT)


def publish_chunks(
    peer: Peer, key: str | None, uuid: str, numbers: list[int], total: int, **fields: Any
) -> None:
    """Publish some of the chunks of a message, of five bytes each."""
    for number in numbers:
        publish(
            peer,
            key,
            f"{uuid}.{number}".encode(),
            uuid=uuid,
            num_chunks_from_msg=total,
            chunk_id=number,
            total_chunk_msg_size=5 * total,
            **fields,
        )


def compact(world: World) -> None:
    world.broker.topic_administration.compact(world.now, TOPIC)
    world.pump()
    world.advance(0)


def world_with(**config: Any) -> tuple[World, Peer]:
    world = World(BrokerConfig(keepalive_interval=10.0 * 365 * 86_400, **config))
    producing = world.connect()
    producing.producer()
    return world, producing


def reader(world: World, compacted: bool = True, **fields: Any) -> Peer:
    """A consumer that reads from the beginning."""
    peer = world.connect()
    fields.setdefault("subscription", f"reader-{world.links}")
    peer.subscribe(read_compacted=compacted, durable=False, **fields)
    return peer


def data(messages: list[MessageCommand]) -> list[bytes]:
    return [unpack_payload(each.payload).payload for each in messages]


def members(message: MessageCommand) -> list[tuple[str | None, bytes, bool]]:
    """Return key, payload and whether compaction removed it, for each message of a batch."""
    unpacked = unpack_payload(message.payload)
    metadata = unpacked.metadata
    assert metadata.num_messages_in_batch is not None
    payload = unpacked.payload
    if metadata.compression:
        payload = decompress(metadata.compression, payload, metadata.uncompressed_size, 2**20)
    batch = split_batch(payload, metadata.num_messages_in_batch)
    singles = [batch.single(index) for index in range(len(batch))]
    return [
        (single.partition_key, each, single.compacted_out)
        for single, each in zip(singles, batch.payloads, strict=True)
    ]
