"""Scripted raw peers for the broker's tests: the bytes that a client writes, and those it receives.

`World` is a broker with a memory store and a clock that the test sets. As an adapter, it pulls bytes after
`Transmit`, writes and confirms after `Persist`, and drops a link after `Disconnect`. `Peer` uses the wire
package alone, and none of the client's machines.
"""

from collections import deque
from dataclasses import replace
from typing import Any

from pulsar_sansio.broker import Broker, BrokerConfig, MemoryStore
from pulsar_sansio.broker.outputs import Disconnect, Persist, ResumeReading, Transmit
from pulsar_sansio.wire import (
    INDIVIDUAL,
    FrameDecoder,
    MessageCommand,
    MessageMetadata,
    Send,
    SingleMessageMetadata,
    encode_ack,
    encode_command,
    encode_flow,
    encode_message_metadata,
    encode_send,
    encode_single,
    max_frame_size,
    pack_payload,
    proto,
    split_batch,
    unpack_payload,
)
from pulsar_sim.engine.paged_store import PagedStore

SECOND = 1_000_000_000
WALL = 1_700_000_000_000
TOPIC = "persistent://public/default/t"
Type = proto.BaseCommand.Type
SubType = proto.CommandSubscribe.SubType
LIMIT = max_frame_size()


class World:
    """A broker, its store and its clock. `hold_writes`: `Persist` waits for `sync()`.

    `wall`: milliseconds since 1970 at the beginning. Where `reads_back` is True, brokers keep no durable
    entry in memory, and read each one back when they need it.
    """

    reads_back = False

    def __init__(
        self, config: BrokerConfig | None = None, store: MemoryStore | None = None, wall: int = WALL
    ) -> None:
        self.wall = wall
        self.config = config if config is not None else BrokerConfig()
        if self.reads_back:
            self.config = replace(self.config, entry_cache_bytes=0)
            store = PagedStore() if store is None else store
        self.store = store if store is not None else MemoryStore()
        self.now = 0
        self.links = 0
        self.hold_writes = False
        self.held: deque[Persist] = deque()
        self.peers: dict[int, Peer] = {}
        self.start()

    def start(self) -> None:
        """Start a new broker over the store that survived."""
        self.peers.clear()
        self.held.clear()
        store = self.store
        self.broker = Broker(
            self.now,
            self.config,
            store.load_unread() if isinstance(store, PagedStore) else store.load(),
            seed=1,
            wall_time=self.wall + self.now // 1_000_000,
            reader=store.reader,
        )
        self.pump()

    def connect(self, version: int = 21, address: str = "127.0.0.1") -> "Peer":
        """Return a connected client."""
        peer = self.raw(address=address)
        peer.send(
            Type.CONNECT,
            proto.CommandConnect(client_version="test", protocol_version=version, auth_method_name="none"),
        )
        peer.expect(Type.CONNECTED)
        return peer

    def raw(self, certificate_role: str | None = None, address: str = "127.0.0.1") -> "Peer":
        """Return a link without any frame sent."""
        self.links += 1
        peer = Peer(self, self.links)
        self.peers[self.links] = peer
        self.broker.accepted(self.now, self.links, f"{address}:{self.links}", certificate_role)
        self.pump()
        return peer

    def pump(self) -> None:
        while (output := self.broker.next_output()) is not None:
            match output:
                case Transmit(link):
                    peer = self.peers[link]
                    if peer.reads:
                        peer.take(b"".join(self.broker.data_to_send(link)))
                case Disconnect(link, reason):
                    peer = self.peers.pop(link)
                    peer.take(b"".join(self.broker.data_to_send(link)))
                    peer.closed = reason
                case Persist():
                    self.held.append(output)
                    if not self.hold_writes:
                        self.sync()
                case ResumeReading(link):
                    self.peers[link].resumed += 1

    def sync(self) -> None:
        """Make the outstanding records durable."""
        while self.held:
            persist = self.held.popleft()
            self.store.write(persist.records)
            self.broker.persisted(self.now, persist.write)
            self.pump()

    def advance(self, seconds: float) -> None:
        """Let time pass; every timer fires at its moment."""
        end = self.now + round(seconds * SECOND)
        while (due := self.broker.next_deadline()) is not None and due <= end:
            self.now = max(self.now, due)
            self.broker.handle_deadline(self.now)
            self.pump()
        self.now = end


class Peer:
    """One connection of a scripted client."""

    def __init__(self, world: World, link: int) -> None:
        self.world = world
        self.link = link
        self.closed: str | None = None
        self.reads = True
        self.resumed = 0
        self.inbox: deque[tuple[int, Any]] = deque()
        self._bytes = b""
        self._requests = 100

    # --- wire -----------------------------------------------------------------------------------------

    def feed(self, data: bytes) -> None:
        self.world.broker.receive_data(self.world.now, self.link, data)
        self.world.pump()

    def send(self, number: int, command: Any) -> None:
        self.feed(encode_command(number, command))

    def take(self, data: bytes) -> None:
        self._bytes += data
        position = 0
        while (frame := FrameDecoder().decode(self._bytes, position, LIMIT)) is not None:
            number, command, position = frame
            self.inbox.append((number, command))
        self._bytes = self._bytes[position:]

    def read_all(self) -> None:
        """Read until no more bytes come, for a peer that did not read."""
        while data := b"".join(self.world.broker.data_to_send(self.link)):
            self.take(data)
            self.world.pump()

    def expect(self, number: int) -> Any:
        """Return the next frame, which must be of this type."""
        assert self.inbox, f"expected {Type.Name(number)}, got nothing (closed: {self.closed})"
        found, command = self.inbox.popleft()
        assert found == number, f"expected {Type.Name(number)}, got {Type.Name(found)}: {command}"
        return command

    def expect_error(self, code: str) -> Any:
        error = self.expect(Type.ERROR)
        assert proto.ServerError.Name(error.error) == code, error
        return error

    def nothing(self) -> None:
        assert not self.inbox, [(Type.Name(number), command) for number, command in self.inbox]

    def messages(self) -> list[MessageCommand]:
        """Return all frames received, which must be of type MESSAGE."""
        return [self.expect(Type.MESSAGE) for _ in range(len(self.inbox))]

    def payloads(self) -> list[bytes]:
        """Return the payloads of all frames received, which must be single messages."""
        return [unpack_payload(message.payload).payload for message in self.messages()]

    def request(self) -> int:
        self._requests += 1
        return self._requests

    # --- commands of a client -------------------------------------------------------------------------

    def producer(
        self, topic: str = TOPIC, producer_id: int = 0, name: str | None = None, **fields: Any
    ) -> Any:
        """Send PRODUCER and expect PRODUCER_SUCCESS."""
        self.ask_producer(topic, producer_id, name, **fields)
        return self.expect(Type.PRODUCER_SUCCESS)

    def ask_producer(
        self, topic: str = TOPIC, producer_id: int = 0, name: str | None = None, **fields: Any
    ) -> int:
        request_id = self.request()
        self.send(
            Type.PRODUCER,
            proto.CommandProducer(
                topic=topic, producer_id=producer_id, request_id=request_id, producer_name=name, **fields
            ),
        )
        return request_id

    def publish(
        self,
        payload: bytes,
        sequence_id: int = 0,
        producer_id: int = 0,
        highest: int | None = None,
        count: int = 1,
        publish_time: int = WALL,
        producer_name: str = "p",
        **metadata: Any,
    ) -> None:
        """Send one message."""
        header = MessageMetadata(producer_name, sequence_id, publish_time, **metadata)
        packed = pack_payload(encode_message_metadata(header), payload)
        frame = encode_send(producer_id, sequence_id, count, highest, packed, sum(map(len, packed)))
        self.feed(frame if isinstance(frame, bytes) else b"".join(frame))

    def publish_batch(
        self, payloads: list[bytes], sequence_id: int = 0, producer_id: int = 0, **metadata: Any
    ) -> None:
        """Send one batch."""
        last = sequence_id + len(payloads) - 1
        body = b"".join(
            encode_single(SingleMessageMetadata(sequence_id=sequence_id + place), payload)
            for place, payload in enumerate(payloads)
        )
        self.publish(
            body,
            sequence_id,
            producer_id,
            last,
            len(payloads),
            num_messages_in_batch=len(payloads),
            **metadata,
        )

    def receipts(self) -> list[tuple[int, int, int]]:
        """Return (sequence, ledger, entry) of all frames received, which must be receipts."""
        found = [self.expect(Type.SEND_RECEIPT) for _ in range(len(self.inbox))]
        return [(each.sequence_id, each.ledger_id, each.entry_id) for each in found]

    def subscribe(
        self,
        kind: SubType = SubType.Exclusive,
        consumer_id: int = 0,
        topic: str = TOPIC,
        subscription: str = "s",
        permits: int = 1000,
        **fields: Any,
    ) -> None:
        """Send SUBSCRIBE, expect SUCCESS and, for permits > 0, send FLOW."""
        self.ask_subscribe(kind, consumer_id, topic, subscription, **fields)
        self.expect(Type.SUCCESS)
        if permits:
            self.flow(permits, consumer_id)

    def ask_subscribe(
        self,
        kind: SubType = SubType.Exclusive,
        consumer_id: int = 0,
        topic: str = TOPIC,
        subscription: str = "s",
        earliest: bool = True,
        **fields: Any,
    ) -> int:
        request_id = self.request()
        fields.setdefault("consumer_name", f"c{consumer_id}")
        self.send(
            Type.SUBSCRIBE,
            proto.CommandSubscribe(
                topic=topic,
                subscription=subscription,
                subType=kind,
                consumer_id=consumer_id,
                request_id=request_id,
                initialPosition=(
                    proto.CommandSubscribe.Earliest if earliest else proto.CommandSubscribe.Latest
                ),
                **fields,
            ),
        )
        return request_id

    def flow(self, permits: int, consumer_id: int = 0) -> None:
        self.feed(encode_flow(consumer_id, permits))

    def ack(
        self, *messages: Any, consumer_id: int = 0, kind: int = INDIVIDUAL, request_id: int | None = None
    ) -> None:
        """Send ACK for MESSAGE commands, or for (ledger, entry, ack set)."""
        ids = [
            message
            if not isinstance(message, MessageCommand)
            else (message.ledger_id, message.entry_id, None)
            for message in messages
        ]
        self.feed(encode_ack(consumer_id, kind, ids, request_id=request_id))

    def redeliver(self, *messages: MessageCommand, consumer_id: int = 0, epoch: int | None = None) -> None:
        command = proto.CommandRedeliverUnacknowledgedMessages(consumer_id=consumer_id, consumer_epoch=epoch)
        for message in messages:
            command.message_ids.add(ledgerId=message.ledger_id, entryId=message.entry_id)
        self.send(Type.REDELIVER_UNACKNOWLEDGED_MESSAGES, command)

    def close_consumer(self, consumer_id: int = 0) -> None:
        self.send(
            Type.CLOSE_CONSUMER,
            proto.CommandCloseConsumer(consumer_id=consumer_id, request_id=self.request()),
        )
        self.expect(Type.SUCCESS)

    def close_producer(self, producer_id: int = 0) -> None:
        self.send(
            Type.CLOSE_PRODUCER,
            proto.CommandCloseProducer(producer_id=producer_id, request_id=self.request()),
        )

    def drop(self) -> None:
        """Break the connection."""
        self.world.peers.pop(self.link, None)
        self.world.broker.disconnected(self.world.now, self.link, "test")
        self.world.pump()


def ids(messages: list[MessageCommand]) -> list[tuple[int, int]]:
    return [(message.ledger_id, message.entry_id) for message in messages]


def batch_payloads(message: MessageCommand) -> list[bytes]:
    """Return the payloads of the messages in a batch."""
    unpacked = unpack_payload(message.payload)
    count = unpacked.metadata.num_messages_in_batch
    assert count is not None
    return list(split_batch(unpacked.payload, count).payloads)


__all__ = [
    "LIMIT",
    "SECOND",
    "TOPIC",
    "WALL",
    "Peer",
    "Send",
    "SubType",
    "Type",
    "World",
    "batch_payloads",
    "ids",
]
