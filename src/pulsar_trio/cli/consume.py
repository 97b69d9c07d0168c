"""`pulsar-trio consume`: prints messages, and acknowledges them after they are printed."""

import argparse
import json
import sys
from base64 import b64encode

import trio

from pulsar_sansio import Message

from ..client import open_client
from ..consumer import Consumer
from .console import Output, number, printable
from .signals import until_signal

AT_ONCE = 1000
"""Messages printed and acknowledged together, at most."""


async def run(given: argparse.Namespace, output: Output) -> None:
    async with (
        open_client(given.url) as client,
        client.subscribe(
            given.topic,
            given.subscription,
            given.kind,
            initial_position="earliest",
            batch_index_acknowledgement=True,  # --count may end in the middle of a batch
        ) as consumer,
    ):
        began = trio.current_time()
        printed: list[int] = []
        await until_signal(lambda: _print_messages(consumer, given.count, given.json, printed))
        seconds = trio.current_time() - began
    received = sum(printed)
    rate = received / seconds if seconds else 0.0
    output.note(f"consumed {received} messages in {seconds:.2f} s, {number(rate)}/s")


async def _print_messages(consumer: Consumer, count: int | None, as_json: bool, printed: list[int]) -> None:
    write = sys.stdout.write
    left = count
    while left is None or left > 0:
        try:
            messages = await consumer.receive_many(AT_ONCE if left is None else min(AT_ONCE, left))
        except trio.EndOfChannel:
            return
        for message in messages:
            write((json.dumps(_values(message), ensure_ascii=False) if as_json else _line(message)) + "\n")
        sys.stdout.flush()
        consumer.acknowledge(messages)
        printed.append(len(messages))
        if left is not None:
            left -= len(messages)


def _line(message: Message) -> str:
    key = f" {printable(message.key)}:" if message.key is not None else ""
    text = "null" if message.value is None else printable(message.data.decode(errors="backslashreplace"))
    return f"{message.message_id}{key} {text}"


def _values(message: Message) -> dict[str, object]:
    """A message for machines: the payload as text where it is UTF-8, else as Base64."""
    values: dict[str, object] = {
        "message_id": str(message.message_id),
        "key": message.key,
        "properties": message.properties,
        "publish_time": message.publish_time,
        "redelivery_count": message.redelivery_count,
    }
    try:
        values["value"] = None if message.value is None else message.data.decode()
    except UnicodeDecodeError:
        values["base64"] = b64encode(message.data).decode()
    return values
