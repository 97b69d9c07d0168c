"""`pulsar-trio consume`: prints messages, and acknowledges them after they are printed."""

import argparse
import json
import sys
from base64 import b64encode

import trio

from pulsar_sansio import Message, SubscriptionType
from pulsar_trio.consuming.consumer import Consumer

from .console import Output, number, printable
from .options.arguments import positive
from .options.connecting import reporting_client
from .options.connection import connection
from .options.positions import FORMS, place_in, position
from .signals import until_signal

AT_ONCE = 1000
"""Messages printed and acknowledged together, at most."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `consume`."""
    parser.add_argument("topic")
    parser.add_argument(
        "--subscription",
        required=True,
        help="name; a new subscription starts at the earliest message, or see --from",
    )
    parser.add_argument(
        "--kind",
        choices=[kind.value for kind in SubscriptionType],
        default="shared",
        help="kind of subscription (default %(default)s)",
    )
    parser.add_argument(
        "--from",
        dest="start",
        type=position,
        metavar="PLACE",
        help=f"move the subscription there first, with all its consumers: {FORMS}",
    )
    parser.add_argument("--count", type=positive, help="stop after so many messages")


async def run(given: argparse.Namespace, output: Output) -> None:
    async with (
        reporting_client(connection(given), output) as client,
        client.subscribe(
            given.topic,
            given.subscription,
            given.kind,
            initial_position="latest" if given.start == "latest" else "earliest",
            start_paused=given.start is not None,  # what the seek passes over need not come
            batch_index_acknowledgement=True,  # --count may end in the middle of a batch
        ) as consumer,
    ):
        began = trio.current_time()
        printed: list[int] = []

        async def work() -> None:
            if given.start is not None:
                await consumer.seek(place_in(given.topic, given.start), inclusive=True)
                consumer.resume()
            await _print_messages(consumer, given.count, given.json, printed)

        await until_signal(work)
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
    """`id key: value {name=value, …}`, without the parts that the message has not."""
    key = f" {printable(message.key)}:" if message.key is not None else ""
    text = "null" if message.value is None else printable(message.data.decode(errors="backslashreplace"))
    pairs = [f"{printable(name)}={printable(value)}" for name, value in message.properties.items()]
    properties = f" {{{', '.join(pairs)}}}" if pairs else ""
    return f"{message.message_id}{key} {text}{properties}"


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
