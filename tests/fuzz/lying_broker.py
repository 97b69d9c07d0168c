"""A client with one consumer, fed by a broker that lies, and the measures of what the client keeps."""

import gc
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pulsar_sansio import (
    ConsumerSpec,
    ProducerSpec,
    SubscriptionType,
    client_outputs,
)
from pulsar_sansio.wire import Ack, MessageCommand
from tests.client.script import Command, Script, frame_success

LIMIT = 16 * 1024
MIB = 1024 * 1024
QUEUE = 10
CONSUMER = ConsumerSpec("demo", "s", SubscriptionType.SHARED, receiver_queue_size=QUEUE)
PRODUCER = ProducerSpec("demo", batching=None, send_timeout=0)


def subscribed(**options: Any) -> tuple[Script, int, int]:
    """A client with one consumer: script, link and consumer."""
    script = Script(max_message_size=LIMIT)
    consumer = script.client.subscribe(script.now, replace(CONSUMER, **options))
    link = script.ready_link(max_message_size=LIMIT)
    script.check_partitions(link)
    script.find_topic(link)
    asked = script.sent(link, Command.SUBSCRIBE)
    script.feed(link, frame_success(asked.request_id))
    assert isinstance(script.said()[-1], client_outputs.ConsumerReady)
    script.sent(link, Command.FLOW)
    return script, link, consumer


def message(payload: bytes, entry_id: int = 0, **fields: Any) -> bytes:
    return MessageCommand(0, 1, entry_id, payload=payload, **fields).encode()


def feed_unread(script: Script, link: int, data: bytes) -> None:
    """Feed bytes to the client, and leave what it writes unread."""
    script.client.receive_data(script.now, link, data)


def held(act: Callable[[], object]) -> tuple[int, int]:
    """Bytes that are held after it and were not before, and the most on the way."""
    tracemalloc.start()
    try:
        act()
        gc.collect()
        return tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()


def why_ended(script: Script) -> str:
    """The reason for which the one link was ended."""
    [reason] = [output.reason for output in script.said() if isinstance(output, client_outputs.Disconnect)]
    return reason


def is_alive(script: Script, link: int) -> bool:
    return link in script.client.links


def validation_error(script: Script, link: int) -> int | None:
    """Return the validation error of the one ACK by which the client tells that it cannot use an entry."""
    [ack] = [command for kind, command in script.commands(link) if kind == Command.ACK]
    assert isinstance(ack, Ack)
    return ack.validation_error
