"""`pulsar-trio consume`: prints messages, and acknowledges them after they are printed."""

import argparse
import json
import sys
from base64 import b64encode
from typing import Any

import trio

from pulsar_sansio import Message, NotSupported, SchemaDecodingError, SchemaUnavailable, SubscriptionType
from pulsar_sansio.schemas import AutoConsume
from pulsar_trio.consuming.consumer import Consumer

from .console import Output, number, printable
from .options.arguments import positive
from .options.connecting import reporting_client
from .options.connection import connection
from .options.encryption import add_consumer_keys, consumer_encryption, mistake_in_consumer_keys
from .options.positions import FORMS, place_in, position
from .schemas.json_of_value import json_of_value
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
    parser.add_argument(
        "--payloads",
        action="store_true",
        help="print payloads; the default is values, as the topic's schema has them",
    )
    add_consumer_keys(parser)
    parser.set_defaults(check=mistake_in_consumer_keys)


async def run(given: argparse.Namespace, output: Output) -> None:
    async with (
        reporting_client(connection(given), output) as client,
        client.subscribe(
            given.topic,
            given.subscription,
            given.kind,
            schema=bytes if given.payloads else AutoConsume(),
            **consumer_encryption(given),
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
            await _print_messages(consumer, given.count, Printer(output), printed)

        await until_signal(work)
        seconds = trio.current_time() - began
    received = sum(printed)
    rate = received / seconds if seconds else 0.0
    output.note(f"consumed {received} messages in {seconds:.2f} s, {number(rate)}/s")


async def _print_messages(
    consumer: Consumer[Any], count: int | None, printer: "Printer", printed: list[int]
) -> None:
    write = sys.stdout.write
    left = count
    while left is None or left > 0:
        try:
            messages = await consumer.receive_many(AT_ONCE if left is None else min(AT_ONCE, left))
        except trio.EndOfChannel:
            return
        for message in messages:
            write(printer.line(message) + "\n")
        sys.stdout.flush()
        consumer.acknowledge(messages)
        printed.append(len(messages))
        if left is not None:
            left -= len(messages)


class Printer:
    """Messages as lines. A value that cannot be decoded is printed as its payload; the first one is told."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._has_told = False

    def line(self, message: Message[Any]) -> str:
        try:
            value = message.value
            plain = value if isinstance(value, bytes) else json_of_value(value)
            return self._line(message, plain)
        except (SchemaDecodingError, SchemaUnavailable, RecursionError) as error:
            if not self._has_told:
                self._has_told = True
                self._output.warning(
                    f"message {message.message_id} is printed as its payload, and so is each other one that "
                    f"cannot be decoded: {_reason(error)}"
                )
            return self._line(message, message.data)

    def _line(self, message: Message[Any], plain: Any) -> str:
        if self._output.as_json:
            return json.dumps(_values(message, plain), ensure_ascii=False)
        return _line(message, plain)


def _reason(error: Exception) -> str:
    """Return the text of an error, with that of what is missing on this machine."""
    if isinstance(error, RecursionError):
        return "its value is nested too deep"
    return f"{error}" + (f": {error.__cause__}" if isinstance(error.__cause__, NotSupported) else "")


def _line(message: Message[Any], plain: Any) -> str:
    """`id key: value {name=value, …}`, without the parts that the message has not."""
    key = f" {printable(message.key)}:" if message.key is not None else ""
    match plain:
        case bytes():
            text = plain.decode(errors="backslashreplace")
        case str():
            text = plain
        case _:
            text = json.dumps(plain, ensure_ascii=False)
    pairs = [f"{printable(name)}={printable(value)}" for name, value in message.properties.items()]
    properties = f" {{{', '.join(pairs)}}}" if pairs else ""
    return f"{message.message_id}{key} {printable(text)}{properties}"


def _values(message: Message[Any], plain: Any) -> dict[str, object]:
    """A message for machines: its value, and bytes as text where they are UTF-8, else as Base64."""
    values: dict[str, object] = {
        "message_id": str(message.message_id),
        "key": message.key,
        "properties": message.properties,
        "publish_time": message.publish_time,
        "redelivery_count": message.redelivery_count,
    }
    if not isinstance(plain, bytes):
        values["value"] = plain
        return values
    try:
        values["value"] = plain.decode()
    except UnicodeDecodeError:
        values["base64"] = b64encode(plain).decode()
    return values
