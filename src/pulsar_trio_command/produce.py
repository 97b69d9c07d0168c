"""`pulsar-trio produce`: generated messages, or lines of standard input, with keys and properties."""

import argparse
import os
import sys
from collections import deque
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import aclosing

import trio

from pulsar_sansio import OutgoingMessage
from pulsar_trio.producing.producer import Producer
from pulsar_trio.producing.receipts import Receipt

from .console import Bar, CommandFailed, Output, number
from .options.arguments import byte_count, positive, rate
from .options.connecting import reporting_client
from .options.connection import connection

READ = 65536
"""Bytes read from standard input at a time."""

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
    return None


async def run(given: argparse.Namespace, output: Output) -> None:
    envelopes = Envelopes(given.key, dict(given.property), given.key_separator)
    async with (
        reporting_client(connection(given), output) as client,
        client.create_producer(given.topic) as producer,
    ):
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
    """Payloads, or lines of standard input, as messages with the keys and properties that were asked for."""

    def __init__(self, key: str | None, properties: dict[str, str], separator: bytes | None) -> None:
        self._key = key
        self._properties = properties
        self._separator = separator
        self._line = 0
        """Number of the last line, from 1 on."""

    def around(self, payloads: Iterable[bytes]) -> Iterable[bytes | OutgoingMessage]:
        """Raises `CommandFailed` at a line without a key, when the messages before it have been taken."""
        if self._separator is not None:
            return self._split(payloads, self._separator)
        if self._key is None and not self._properties:
            return payloads
        return (OutgoingMessage(each, key=self._key, properties=self._properties) for each in payloads)

    def _split(self, lines: Iterable[bytes], separator: bytes) -> Iterator[OutgoingMessage]:
        for line in lines:
            self._line += 1
            key, found, value = line.partition(separator)
            if not found:
                raise self._wrong(f"there is no {separator.decode()!r} in it")
            try:
                text = key.decode()
            except UnicodeDecodeError:
                raise self._wrong("its key is not UTF-8 text") from None
            yield OutgoingMessage(value, key=text, properties=self._properties)

    def _wrong(self, text: str) -> CommandFailed:
        return CommandFailed(
            f"line {self._line} of standard input has no key: {text}",
            f"the {self._line - 1} lines before it were sent",
        )


async def _send(producer: Producer, messages: Iterable[bytes | OutgoingMessage], pace: "Pace") -> None:
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
