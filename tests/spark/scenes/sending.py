"""Messages for tests to read: sent by the protocol core through a link of their own, without PySpark."""

import time
from collections.abc import Sequence
from typing import Any

from pulsar_sansio import BatchingPolicy, MessageId, OutgoingMessage, ProducerSpec
from pulsar_sansio import client_outputs as outputs
from pulsar_sansio.wire import MessageMetadata, SendReceipt, encode_send, pack_payload, proto
from pulsar_spark.link import NO_ACCESS, Link, wall_time
from pulsar_spark.reading.offsets import Position
from pulsar_spark.security.access import Access


class Sender:
    """A producer that waits for every receipt; it is opened when it is used first, in the test that the
    checker listens to. `options` are those of `ProducerSpec`."""

    def __init__(self, url: str, topic: str, access: Access = NO_ACCESS, **options: Any) -> None:
        self._link = Link(url, access, create_topics=True)
        self._topic = topic
        self._options = {"batching": BatchingPolicy(max_delay=60.0), **options}
        self._producer: int | None = None
        self._ready = False
        self._ids: list[MessageId] = []
        self._sequence_id = 1_000_000

    def _open(self) -> int:
        if self._producer is None:
            spec = ProducerSpec(self._topic, **self._options)
            self._producer = self._link.client.open_producer(time.monotonic_ns(), spec)
            self._link.listen(self._producer, self._on_output)
            self._link.wait(lambda: self._ready or None, 30.0, "a producer")
        return self._producer

    def _on_output(self, output: outputs.Output) -> None:
        match output:
            case outputs.ProducerReady():
                self._ready = True
            case outputs.Receipts(_, _, message_ids):
                self._ids += message_ids
            case outputs.SendFailed(_, _, _, error) | outputs.ProducerFailed(_, error):
                raise error

    def send(
        self, messages: Sequence[bytes | OutgoingMessage], publish_time: int | None = None
    ) -> list[MessageId]:
        """All of them, in batches as the options say, none of which waits for more; their ids."""
        client, producer = self._link.client, self._open()
        self._ids = []
        moment = wall_time() if publish_time is None else publish_time
        taken = 0
        while taken < len(messages):
            taken += len(client.send_many(time.monotonic_ns(), producer, messages[taken:], moment))
            self._link.serve()
        client.push(time.monotonic_ns(), producer)
        self._link.wait(lambda: len(self._ids) >= len(messages) or None, 60.0, "receipts")
        return self._ids

    def send_entry(self, payload: bytes, **fields: Any) -> Position:
        """One entry that no producer of ours would write: these fields of its header, and this payload as it
        is stored. Gives its place."""
        machine: Any = self._link.client._handles.producers[self._open()]
        connection = machine.attachment.state.connection
        header = MessageMetadata("by hand", self._sequence_id, wall_time(), **fields)
        self._sequence_id += 1
        packed = pack_payload(header.encode(), payload)
        receipts: list[SendReceipt] = []
        connection._handlers = {**connection._handlers, proto.BaseCommand.SEND_RECEIPT: receipts.append}
        count = fields.get("num_messages_in_batch", 1)
        sizes = sum(map(len, packed))
        connection.write(encode_send(machine.wire_id, header.sequence_id, count, None, packed, sizes))
        self._link.wait(lambda: receipts or None, 20.0, "a receipt")
        connection._handlers = connection._handlers_of(type(connection.state))
        ledger_id, entry_id = receipts[0].ledger_id, receipts[0].entry_id
        assert ledger_id is not None
        assert entry_id is not None
        return ledger_id, entry_id

    def connections(self) -> Sequence[int]:
        """The numbers of the connections; a new connection has a new one."""
        return self._link.client.links

    def close(self) -> None:
        self._link.close()


def send(
    url: str, topic: str, messages: Sequence[bytes | OutgoingMessage], **options: Any
) -> list[MessageId]:
    """Send messages, as one batch unless the options say otherwise."""
    sender = Sender(url, topic, **options)
    try:
        return sender.send(messages)
    finally:
        sender.close()
