"""Conversations written by hand, frame by frame.

A `Script` holds frames of both sides in the order in which they pass. Its methods say what happens in the
words of the protocol; everything that is not given has the value a correct peer would send."""

from typing import Any

from pulsar_sansio.conformance import Side
from pulsar_sansio.conformance import commands as c
from pulsar_sansio.wire import (
    Ack,
    Flow,
    MessageCommand,
    MessageMetadata,
    Send,
    SendReceipt,
    SingleMessageMetadata,
    encode_command,
    encode_single,
    pack_payload,
    proto,
)

TOPIC = "persistent://public/default/t"
NO_ID = (1 << 64) - 1
TRANSACTION: dict[str, Any] = {"txnid_least_bits": 5, "txnid_most_bits": 0}
"""The id of the transaction that a script begins."""

_MESSAGES: dict[int, Any] = {
    field.number: getattr(proto, field.message_type.name)
    for field in proto.BaseCommand.DESCRIPTOR.fields
    if field.message_type is not None
}

VERSION_FLAGS = {"supports_auth_refresh": True, "supports_broker_entry_metadata": True}
BROKER_FLAGS = {
    "supports_topic_watchers": True,
    "supports_get_partitioned_metadata_without_auto_creation": True,
}


def command(kind: int, **fields: Any) -> bytes:
    """A frame of any command without payload; nested messages are given as dictionaries."""
    return encode_command(kind, _MESSAGES[kind](**fields))


def stored(
    sequence_id: int = 0, payload: bytes = b"x", *, name: str = "p", checksum: bool = True, **fields: Any
) -> bytes:
    """Headers and payload of an entry; `fields` are fields of the metadata."""
    metadata = MessageMetadata(name, sequence_id, 1, **fields).encode()
    if checksum:
        return b"".join(pack_payload(metadata, payload))
    return len(metadata).to_bytes(4, "big") + metadata + payload


def batch(first: int, count: int, **fields: Any) -> bytes:
    """An entry that is a batch of `count` messages with the sequence ids from `first` on."""
    fields = {"highest_sequence_id": first + count - 1, "num_messages_in_batch": count, **fields}
    return stored(first, members(first, count), **fields)


def members(first: int, count: int) -> bytes:
    return b"".join(
        encode_single(SingleMessageMetadata(sequence_id=first + index), b"x") for index in range(count)
    )


class Script:
    """Frames that pass, each with its connection and its sender."""

    def __init__(self) -> None:
        self.frames: list[tuple[int, Side, bytes]] = []
        self.connection = 0
        self._requests = 100

    # --- frames of any kind ---

    def client(self, kind: int, **fields: Any) -> None:
        self.raw(Side.CLIENT, command(kind, **fields))

    def broker(self, kind: int, **fields: Any) -> None:
        self.raw(Side.BROKER, command(kind, **fields))

    def raw(self, side: Side, data: bytes) -> None:
        self.frames.append((self.connection, side, data))

    def request_id(self) -> int:
        self._requests += 1
        return self._requests

    def ask(self, kind: int, **fields: Any) -> int:
        """Send a request with a fresh id, and return the id."""
        request_id = self.request_id()
        self.client(kind, request_id=request_id, **fields)
        return request_id

    def success(self, request_id: int) -> None:
        self.broker(c.SUCCESS, request_id=request_id)

    def error(self, request_id: int, code: int = proto.ServiceNotReady) -> None:
        self.broker(c.ERROR, request_id=request_id, error=code, message="no")

    # --- what happens often ---

    def connect(self, version: int = 21, agreed: int | None = None, **fields: Any) -> None:
        fields = {"feature_flags": VERSION_FLAGS, **fields}
        self.client(c.CONNECT, client_version="test", protocol_version=version, **fields)
        self.connected(version if agreed is None else agreed)

    def connected(self, version: int = 21, **fields: Any) -> None:
        fields = {"feature_flags": BROKER_FLAGS, **fields}
        self.broker(c.CONNECTED, server_version="test", protocol_version=version, **fields)

    def reconnect(self, **fields: Any) -> None:
        """The connection is lost, and the client comes on another."""
        self.connection += 1
        self.connect(**fields)

    def open_producer(self, producer_id: int = 0, **fields: Any) -> int:
        fields = {"topic": TOPIC, "epoch": 0, "user_provided_producer_name": False, **fields}
        return self.ask(c.PRODUCER, producer_id=producer_id, **fields)

    def producer_success(self, request_id: int, name: str = "p", **fields: Any) -> None:
        fields = {"schema_version": b"", **fields}
        self.broker(c.PRODUCER_SUCCESS, request_id=request_id, producer_name=name, **fields)

    def producer(self, producer_id: int = 0, name: str = "p", **fields: Any) -> None:
        """A producer is opened and open."""
        self.producer_success(self.open_producer(producer_id, **fields), name)

    def close_producer(self, producer_id: int = 0) -> None:
        self.success(self.ask(c.CLOSE_PRODUCER, producer_id=producer_id))

    def send(
        self, sequence_id: int = 0, entry: bytes | None = None, producer_id: int = 0, **fields: Any
    ) -> None:
        payload = stored(sequence_id) if entry is None else entry
        self.raw(Side.CLIENT, Send(producer_id, sequence_id, payload=payload, **fields).encode())

    def send_batch(self, first: int, count: int, **metadata: Any) -> None:
        entry = batch(first, count, **metadata)
        self.send(first, entry, num_messages=count, highest_sequence_id=first + count - 1)

    def receipt(self, sequence_id: int, entry: int = 0, ledger: int = 1, **fields: Any) -> None:
        fields = {"producer_id": 0, **fields}
        position = {"ledger_id": ledger, "entry_id": entry}
        self.raw(Side.BROKER, SendReceipt(sequence_id=sequence_id, **{**position, **fields}).encode())

    def stored_message(self, sequence_id: int, entry: int) -> None:
        """A message is sent and confirmed."""
        self.send(sequence_id)
        self.receipt(sequence_id, entry)

    def subscribe(self, consumer_id: int = 0, kind: int = c.EXCLUSIVE, **fields: Any) -> int:
        fields = {"topic": TOPIC, "subscription": "sub", "consumer_name": "c", **fields}
        return self.ask(c.SUBSCRIBE, consumer_id=consumer_id, subType=kind, **fields)

    def consumer(
        self, consumer_id: int = 0, kind: int = c.EXCLUSIVE, permits: int = 10, **fields: Any
    ) -> None:
        """A consumer is subscribed and grants permits."""
        self.success(self.subscribe(consumer_id, kind, **fields))
        if permits:
            self.flow(permits, consumer_id)

    def flow(self, permits: int, consumer_id: int = 0) -> None:
        self.raw(Side.CLIENT, Flow(consumer_id, permits).encode())

    def message(self, entry: int = 0, data: bytes | None = None, ledger: int = 1, **fields: Any) -> None:
        payload = stored(entry) if data is None else data
        fields = {"consumer_id": 0, **fields}
        self.raw(
            Side.BROKER, MessageCommand(ledger_id=ledger, entry_id=entry, payload=payload, **fields).encode()
        )

    def ack(self, *entries: int, ack_type: int = 0, sets: tuple[int, ...] = (), **fields: Any) -> None:
        """Entries of ledger 1, with acknowledgement sets where given."""
        ids = [(1, entry, sets[index] if sets else None) for index, entry in enumerate(entries)]
        fields = {"consumer_id": 0, **fields}
        self.raw(Side.CLIENT, Ack(ack_type=ack_type, message_ids=ids, **fields).encode())

    def redeliver(self, *entries: int, consumer_id: int = 0, **fields: Any) -> None:
        ids = [{"ledgerId": 1, "entryId": entry} for entry in entries]
        self.client(c.REDELIVER, consumer_id=consumer_id, message_ids=ids, **fields)

    def close_consumer(self, consumer_id: int = 0) -> None:
        self.success(self.ask(c.CLOSE_CONSUMER, consumer_id=consumer_id))

    def introduce(self, coordinator: int) -> None:
        """A transaction coordinator knows the connection from now on."""
        request_id = self.ask(c.TC_CLIENT_CONNECT, tc_id=coordinator)
        self.broker(c.TC_CLIENT_CONNECT_RESPONSE, request_id=request_id)

    def begin_transaction(self, number: int = 5) -> None:
        self.introduce(0)
        request_id = self.ask(c.NEW_TXN, tc_id=0, txn_ttl_millis=30_000)
        self.broker(c.NEW_TXN_RESPONSE, request_id=request_id, txnid_least_bits=number, txnid_most_bits=0)

    def add_partition(self) -> None:
        request_id = self.ask(c.ADD_PARTITION_TO_TXN, partitions=[TOPIC], **TRANSACTION)
        self.broker(c.ADD_PARTITION_TO_TXN_RESPONSE, request_id=request_id, **TRANSACTION)

    def add_subscription(self) -> None:
        subscription = [{"topic": TOPIC, "subscription": "sub"}]
        request_id = self.ask(c.ADD_SUBSCRIPTION_TO_TXN, subscription=subscription, **TRANSACTION)
        self.broker(c.ADD_SUBSCRIPTION_TO_TXN_RESPONSE, request_id=request_id, **TRANSACTION)

    def send_in_transaction(self, sequence_id: int = 0) -> None:
        self.send(sequence_id, stored(sequence_id, **TRANSACTION), **TRANSACTION)

    def end_transaction(self, action: int) -> int:
        """Ask for a commit or an abort, and return the request's id."""
        return self.ask(c.END_TXN, txn_action=action, **TRANSACTION)
