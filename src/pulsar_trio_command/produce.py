"""`pulsar-trio produce`: generated messages, or lines of standard input, with keys, properties and values."""

import argparse
import json
import os
import sys
from collections import deque
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import aclosing
from typing import Any

import trio

from pulsar_sansio import InvalidConfiguration, InvalidMessage, NullKey, OutgoingMessage
from pulsar_sansio.schemas import KeyValueEncoding, KeyValueSchema, Schema
from pulsar_sansio.schemas.encoding import Encoder, encoder_of
from pulsar_trio.client.client import Client
from pulsar_trio.producing.producer import Producer
from pulsar_trio.producing.receipts import Receipt

from .console import Bar, CommandFailed, Output, number
from .options.arguments import byte_count, positive, rate
from .options.connecting import reporting_client
from .options.connection import connection
from .options.encryption import add_producer_keys, mistake_in_producer_keys, producer_encryption
from .schemas.definition_file import read_definition
from .schemas.line_schema import line_schema, pair_of_json

READ = 65536
"""Bytes read from standard input at a time."""

TOPIC = "topic"
"""In place of a file: the latest definition of the topic."""

SHOW_EVERY = 1000
"""Messages between two drawings of the bar."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `produce`."""
    parser.add_argument("topic")
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--count", type=positive, help="send so many generated messages instead of lines")
    source.add_argument(
        "--key-separator",
        type=_separator,
        metavar="TEXT",
        help="each line is a key, this text (\\t is a tab) and a value, which may contain the text",
    )
    parser.add_argument(
        "--schema",
        metavar="SCHEMA",
        help="values are JSON, and become payloads of this schema: `topic` (the latest of the topic), a file "
        "with a definition, or the name of a primitive type, as `int32`",
    )
    parser.add_argument(
        "--size", type=byte_count, default=100, help="bytes of a generated message (default 100)"
    )
    parser.add_argument("--rate", type=rate, help="messages per second; default is as fast as possible")
    parser.add_argument("--key", help="key of every message; not with --key-separator")
    parser.add_argument(
        "--property",
        action="append",
        type=_property,
        default=[],
        metavar="NAME=VALUE",
        help="property of every message; may be repeated",
    )
    add_producer_keys(parser)
    parser.set_defaults(check=_check)


def _separator(text: str) -> bytes:
    if not text:
        raise argparse.ArgumentTypeError("a text of at least one character, not ''")
    return text.replace("\\t", "\t").encode()


def _property(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"NAME=VALUE with a name that is not empty, not {text!r}")
    return name, value


def _check(given: argparse.Namespace) -> str | None:
    """The mistake in options that exclude each other, if there is one."""
    if given.key is not None and given.key_separator is not None:
        return "argument --key: not allowed with argument --key-separator"
    if given.schema is not None and given.count is not None:
        return "argument --schema: not allowed with argument --count"
    return mistake_in_producer_keys(given)


async def run(given: argparse.Namespace, output: Output) -> None:
    async with reporting_client(connection(given), output) as client:
        schema = await _schema(client, given.topic, given.schema)
        separated = isinstance(schema, KeyValueSchema) and schema.encoding is KeyValueEncoding.SEPARATED
        if separated and (given.key is not None or given.key_separator is not None):
            option = "--key" if given.key_separator is None else "--key-separator"
            raise InvalidConfiguration(f"{option}: the key of each value is the key of its message")
        envelopes = Envelopes(given.key, dict(given.property), given.key_separator, schema)
        async with client.create_producer(
            given.topic, schema=schema or bytes, **producer_encryption(given)
        ) as producer:
            await _produce(given, producer, envelopes, output)


async def _schema(client: Client, topic: str, given: str | None) -> Schema[Any] | None:
    """Return the schema that the lines are written with; None for lines that are payloads."""
    if given is None:
        return None
    if given != TOPIC:
        return line_schema(read_definition(given))
    found = await client.schema(topic)
    if found is None:
        raise CommandFailed(
            f"topic {topic} has no schema", "without --schema lines are payloads; --schema FILE registers one"
        )
    return line_schema(found)


async def _produce(
    given: argparse.Namespace, producer: Producer[Any], envelopes: "Envelopes", output: Output
) -> None:
    began = trio.current_time()
    pace = Pace(given.rate)
    if given.count is None:
        async with aclosing(_lines()) as chunks:
            async for lines in chunks:
                await _send(producer, envelopes.around(lines), pace)
    else:
        payloads = generated(given.count, given.size)
        with output.bar("producing", given.count) as bar:
            await _send(producer, envelopes.around(_shown(payloads, bar)), pace)
    await pace.settled()
    seconds = trio.current_time() - began
    per_second = pace.sent / seconds if seconds else 0.0
    output.result(
        f"produced {pace.sent} messages to {producer.topic} in {seconds:.2f} s, {number(per_second)}/s",
        topic=producer.topic,
        produced=pace.sent,
        seconds=round(seconds, 6),
        rate=round(per_second, 1),
    )


class Envelopes:
    """Payloads, or lines of standard input, as messages with the keys and properties that were asked for.

    With a schema, lines are JSON: the values of the messages.
    """

    def __init__(
        self,
        key: str | None,
        properties: dict[str, str],
        separator: bytes | None,
        schema: Schema[Any] | None = None,
    ) -> None:
        self._key = key
        self._properties = properties
        self._separator = separator
        self._is_pair = isinstance(schema, KeyValueSchema)
        self._encode = None if schema is None else encoder_of(schema)
        self._line = 0
        """Number of the last line, from 1 on."""

    def around(self, payloads: Iterable[bytes]) -> Iterable[bytes | OutgoingMessage]:
        """Raises `CommandFailed` at a line that makes no message, when the messages before it have been
        taken."""
        if self._separator is not None or self._encode is not None:
            return map(self._message, payloads)
        if self._key is None and not self._properties:
            return payloads
        return (OutgoingMessage(each, key=self._key, properties=self._properties) for each in payloads)

    def _message(self, line: bytes) -> OutgoingMessage:
        self._line += 1
        key: str | bytes | NullKey | None = self._key
        if self._separator is not None:
            key, line = self._split(line, self._separator)
        payload: bytes | None = line
        if self._encode is not None:
            payload, own_key = self._value(line, self._encode)
            key = key if own_key is None else own_key
        return OutgoingMessage(payload, key=key, properties=self._properties)

    def _split(self, line: bytes, separator: bytes) -> tuple[str, bytes]:
        key, found, value = line.partition(separator)
        if not found:
            raise self._wrong(f"has no key: there is no {separator.decode()!r} in it")
        try:
            return key.decode(), value
        except UnicodeDecodeError:
            raise self._wrong("has no key: its key is not UTF-8 text") from None

    def _value(self, line: bytes, encode: Encoder) -> tuple[bytes | None, bytes | NullKey | None]:
        try:
            plain = json.loads(line)
        except (ValueError, RecursionError) as error:  # of JSON, and of text that is no UTF-8
            raise self._wrong(f"is no JSON: {error}") from None
        try:
            return encode(pair_of_json(plain) if self._is_pair else plain)
        except InvalidMessage as error:
            raise self._wrong(f"is no value: {error}") from None

    def _wrong(self, text: str) -> CommandFailed:
        return CommandFailed(
            f"line {self._line} of standard input {text}",
            f"the {self._line - 1} lines before it were sent",
        )


async def _send(producer: Producer[Any], messages: Iterable[bytes | OutgoingMessage], pace: "Pace") -> None:
    if pace.rate is None:
        pace.sent += len(await producer.send_many(messages))
        return
    for message in messages:
        await pace.due()
        pace.add(await producer.enqueue(message))


class Pace:
    """Keeps a rate, message n being due n / rate seconds after the first, and the receipts."""

    def __init__(self, rate: float | None) -> None:
        self.rate = rate
        self.sent = 0
        self._began = trio.current_time()
        self._receipts: deque[Receipt] = deque()

    async def due(self) -> None:
        """Wait until the next message is due. Raises what an earlier one failed with."""
        assert self.rate is not None
        when = self._began + self.sent / self.rate
        if when > trio.current_time():
            await trio.sleep_until(when)
        while self._receipts and self._receipts[0].done():
            self._receipts.popleft().result()

    def add(self, receipt: Receipt) -> None:
        self.sent += 1
        self._receipts.append(receipt)

    async def settled(self) -> None:
        """Wait until all are confirmed. Raises what the first that failed did with."""
        while self._receipts:
            await self._receipts.popleft().wait()


async def _lines() -> AsyncGenerator[list[bytes], None]:
    """The lines of standard input without their ends, as many at a time as have come."""
    rest = b""
    source = sys.stdin.fileno()
    while data := await trio.to_thread.run_sync(os.read, source, READ, abandon_on_cancel=True):
        *lines, rest = (rest + data).split(b"\n")
        if lines:
            yield lines
    if rest:
        yield [rest]


def generated(count: int, size: int) -> Iterator[bytes]:
    """`count` payloads of `size` bytes that begin with their number, as far as it fits."""
    for index in range(count):
        yield (b"%d " % index).ljust(size, b".")[:size]


def _shown(messages: Iterable[bytes], bar: Bar) -> Iterator[bytes]:
    for index, message in enumerate(messages, 1):
        yield message
        if index % SHOW_EVERY == 0:
            bar.show(index)
