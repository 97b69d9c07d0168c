"""Items of the receiver queue, and `Messages`: several messages delivered at once.

An item is a batch, a row of plain entries of one message each that arrived together, or a list of other
entries of one message each. Its `Message` objects are made one by one when the application looks at them. A
list of a thousand waiting objects would cost more than all other work, mostly in Python's garbage collector.

This module knows nothing of permits, commands and the order of items.
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, overload

from ...model.message import Entry, Message, Source
from ...model.message_id import EntryPosition
from ...wire import Batch, Compressed, MessageMetadata, MetadataDecoder
from .ack_records import EntryAcknowledgement

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    T = TypeVar("T", default=bytes)
else:
    from typing import TypeVar

    T = TypeVar("T")


class ReceivedBatch(NamedTuple):
    """A batch, or the part of it to be delivered; also one message whose payload stays compressed."""

    entry: Entry
    payloads: Sequence[bytes]
    """Never empty."""
    indexes: Sequence[int]
    """The index in the batch of each payload."""


class CompressedSingle(Sequence[bytes]):
    """The single payload of an entry, decompressed anew at each access. Access raises `DecompressionFailed`
    for a payload that cannot be decompressed."""

    __slots__ = ("_payload",)

    def __init__(self, payload: Compressed) -> None:
        self._payload = payload

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Iterator[bytes]:
        return iter([self._payload.decompress()])

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> list[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | list[bytes]:
        return [self._payload.decompress()][index]


class PlainEntry(Entry):
    """An entry of one message whose header is parsed on first access; few applications need it."""

    __slots__ = ("_decoder", "_undecoded")

    batch = None
    size = 0

    _undecoded: bytes | MessageMetadata
    _decoder: MetadataDecoder

    @staticmethod
    def of(
        source: Source,
        position: EntryPosition,
        header: bytes | MessageMetadata,
        redelivery_count: int,
        acknowledgement: EntryAcknowledgement,
        decoder: MetadataDecoder,
    ) -> "PlainEntry":
        """`decoder`: decodes a header that is still bytes."""
        # `Entry.__init__` is skipped because it sets more: this happens once per message.
        entry = PlainEntry.__new__(PlainEntry)
        entry.source = source
        entry.position = position
        entry._undecoded = header
        entry._decoder = decoder
        entry.redelivery_count = redelivery_count
        entry.acknowledgement = acknowledgement
        return entry

    def __getattr__(self, name: str) -> Any:
        if name != "header":
            raise AttributeError(name)
        header = self._undecoded
        self.header = self._decoder.decode(header) if isinstance(header, bytes) else header
        return self.header


class ReceivedSingles(NamedTuple):
    """Plain entries of one message each: their shared attributes, and the position, header and payload of
    each."""

    source: Source
    positions: Sequence[EntryPosition]
    headers: Sequence[bytes | MessageMetadata]
    redelivery_count: int
    acknowledgement: EntryAcknowledgement
    payloads: Sequence[bytes]
    """Never empty."""
    decoder: MetadataDecoder
    """The decoder for headers that are still bytes: that of the connection which brought them."""
    schema_version: bytes | None = None
    """The version of the schema of them all; None for bytes."""

    def entry(self, index: int) -> PlainEntry:
        """Make the entry at this index."""
        position, header = self.positions[index], self.headers[index]
        return PlainEntry.of(
            self.source, position, header, self.redelivery_count, self.acknowledgement, self.decoder
        )

    def without_first(self, count: int) -> "ReceivedSingles":
        """Return the entries but the first `count`, of which at least one must be left."""
        return self._replace(
            positions=self.positions[count:], headers=self.headers[count:], payloads=self.payloads[count:]
        )


Item = ReceivedBatch | ReceivedSingles | list[Message[Any]]


def size_of(item: Item) -> int:
    """Return the number of messages in the item."""
    return len(item) if isinstance(item, list) else len(item.payloads)


def messages_of(item: Item) -> Iterator[Message[Any]]:
    """Iterate over the item's messages; each is made when the iterator reaches it."""
    return unpack(item)[1]


def unpack(item: Item) -> tuple[Iterator[object], Iterator[Message[Any]]]:
    """Return two iterators over the rest of the item: one that only counts, and one that makes the messages.
    Exhausting the first exhausts the second."""
    if isinstance(item, list):
        messages = iter(item)
        return messages, messages
    payloads = iter(item.payloads)
    if isinstance(item, ReceivedBatch):
        return payloads, _batch_messages(item, payloads)
    return payloads, _single_messages(item, payloads)


def _batch_messages(item: ReceivedBatch, payloads: Iterator[bytes]) -> Iterator[Message[Any]]:
    entry = item.entry
    for payload, index in zip(payloads, item.indexes, strict=False):
        message: Message[Any] = Message()
        message.data = payload
        message.entry = entry
        message.batch_index = index
        yield message


def _single_messages(item: ReceivedSingles, payloads: Iterator[bytes]) -> Iterator[Message[Any]]:
    entry_of = PlainEntry.of
    source, positions, headers, redelivery_count, acknowledgement, _, decoder, _ = item
    for payload, position, header in zip(payloads, positions, headers, strict=False):
        message: Message[Any] = Message()
        message.data = payload
        message.entry = entry_of(source, position, header, redelivery_count, acknowledgement, decoder)
        message.batch_index = -1
        yield message


def keys_of(item: Item) -> Sequence[str | None]:
    """Return the keys of the messages, without making the messages."""
    if isinstance(item, ReceivedBatch):
        batch = item.entry.batch
        assert isinstance(batch, Batch)
        keys = batch.keys()
        return keys if len(item.indexes) == len(keys) else [keys[index] for index in item.indexes]
    if isinstance(item, ReceivedSingles):
        headers, decoder = item.headers, item.decoder
        return [
            (decoder.decode(header) if isinstance(header, bytes) else header).partition_key
            for header in headers
        ]
    return [message.key for message in item]


def payloads_of(item: Item) -> Sequence[bytes]:
    """Return the payloads of the messages, without making the messages."""
    return [message.data for message in item] if isinstance(item, list) else item.payloads


def message_at(item: Item, position: int) -> tuple[Entry, int]:
    """Return the entry of the message at that position in the item, and its index in the batch."""
    if isinstance(item, ReceivedBatch):
        return item.entry, item.indexes[position]
    return item[position].entry if isinstance(item, list) else item.entry(position), -1


class Messages(Sequence[Message[T]], Generic[T]):
    """Several messages delivered together, in order.

    Each access makes a new `Message`: iterating is cheap, and so is acknowledging all of them at once. To
    keep a single message, keep its `Message`.
    """

    __slots__ = ("_length", "items")

    def __init__(self, items: Sequence[Item]) -> None:
        self.items = items
        self._length = sum(map(size_of, items))

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Message[T]]:
        items = self.items
        return messages_of(items[0]) if len(items) == 1 else chain.from_iterable(map(messages_of, items))

    @overload
    def __getitem__(self, index: int) -> Message[T]: ...
    @overload
    def __getitem__(self, index: slice) -> list[Message[T]]: ...
    def __getitem__(self, index: int | slice) -> Message[T] | list[Message[T]]:
        if isinstance(index, slice):
            return list(self)[index]
        position = index + self._length if index < 0 else index
        for item in self.items:
            size = size_of(item)
            if 0 <= position < size:
                if isinstance(item, list):
                    return item[position]
                return Message.of(item.payloads[position], *message_at(item, position))
            position -= size
        raise IndexError(f"message {index} of {self._length}")

    def __repr__(self) -> str:
        return f"<{self._length} messages>"

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(self),)
