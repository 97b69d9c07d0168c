"""Messages for tests to read: sent by the protocol core through a link of their own, without PySpark."""

import time
from collections.abc import Sequence
from typing import Any

from pulsar_sansio import (
    BatchingPolicy,
    MessageId,
    OutgoingMessage,
    ProducerSpec,
)
from pulsar_sansio import client_outputs as outputs
from pulsar_spark.link import Link, wall_time


class Sender:
    """A producer that waits for every receipt. `options` are those of `ProducerSpec`."""

    def __init__(self, url: str, topic: str, **options: Any) -> None:
        self._link = Link(url, create_topics=True)
        options.setdefault("batching", BatchingPolicy(max_delay=60.0))
        self._ready: list[outputs.Output] = []
        self._ids: list[MessageId] = []
        self._producer = self._link.client.open_producer(time.monotonic_ns(), ProducerSpec(topic, **options))
        self._link.listen(self._producer, self._hear)
        self._link.wait(lambda: self._ready or None, 30.0, "a producer")

    def _hear(self, output: outputs.Output) -> None:
        match output:
            case outputs.ProducerReady():
                self._ready.append(output)
            case outputs.Receipts(_, _, message_ids):
                self._ids += message_ids
            case outputs.SendFailed(_, _, _, error) | outputs.ProducerFailed(_, error):
                raise error

    def send(
        self, messages: Sequence[bytes | OutgoingMessage], publish_time: int | None = None
    ) -> list[MessageId]:
        """All of them, in batches as long as the producer makes them, the last one included; their ids."""
        client, producer = self._link.client, self._producer
        self._ids = []
        moment = wall_time() if publish_time is None else publish_time
        taken = 0
        while taken < len(messages):
            taken += len(client.send_many(time.monotonic_ns(), producer, messages[taken:], moment))
            self._link.serve()
        client.push(time.monotonic_ns(), producer)
        self._link.wait(lambda: len(self._ids) >= len(messages) or None, 60.0, "receipts")
        return self._ids

    def close(self) -> None:
        self._link.close()


def send(
    url: str, topic: str, messages: Sequence[bytes | OutgoingMessage], **options: Any
) -> list[MessageId]:
    """As one batch unless the options say otherwise."""
    sender = Sender(url, topic, **options)
    try:
        return sender.send(messages)
    finally:
        sender.close()
