"""This module makes record batches from messages, with exactly the columns that a query asks for.

`ALL_COLUMNS` is the table: names and types as Spark sees them. A `Builder` takes the items of a reader with
`raw_batches`. It makes columns of uniform members as a whole (`uniform_members`), and takes all
others one by one. It notes a field of an entry once and spreads it over the rows at the end.

It knows nothing of positions, ranges and Spark.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from pulsar_sansio import (
    Message,
    MessageId,
    Messages,
    RawBatch,
    ReceivedBatch,
    ReceivedSingles,
    encode_message_id,
)

from ..errors import BadColumn
from ..schemas.definitions import Definitions
from .parts import Bytes, ColumnParts, fixed, from_column
from .typed_value import UNDECODABLE, TypedValue, Undecodable
from .uniform_members import Comparison, UniformMembers, find_uniform

TIMESTAMP = pa.timestamp("us", tz="UTC")
PROPERTIES = pa.map_(pa.string(), pa.string())


class Column(NamedTuple):
    """A column: its type in Arrow and in Spark's DDL, and what it says."""

    arrow: Any
    ddl: str
    about: str


ALL_COLUMNS: dict[str, Column] = {
    "value": Column(pa.binary(), "binary", "the payload; null for a null value; may be asked for as string"),
    "__key": Column(pa.binary(), "binary", "the key's bytes, null where there is none"),
    "__topic": Column(pa.string(), "string", "full name of the topic, or of its partition"),
    "__messageId": Column(pa.binary(), "binary", "the message's id, as all Pulsar clients write it"),
    "__publishTime": Column(TIMESTAMP, "timestamp", "the producer's clock when it sent the message"),
    "__eventTime": Column(
        TIMESTAMP,
        "timestamp",
        "the application's own time, null where it gave none or one that Spark has no timestamp for",
    ),
    "__messageProperties": Column(PROPERTIES, "map<string,string>", "the application's properties"),
    "__partition": Column(pa.int32(), "int", "index of the partition, -1 where the topic has none"),
    "__ledgerId": Column(pa.int64(), "bigint", "of the message's entry"),
    "__entryId": Column(pa.int64(), "bigint", "of the message's entry"),
    "__batchIndex": Column(pa.int32(), "int", "index in its batch, -1 where it is an entry by itself"),
    "__producerName": Column(pa.string(), "string", "unique in the topic"),
    "__sequenceId": Column(pa.int64(), "bigint", "the producer's number of the message"),
    "__orderingKey": Column(pa.binary(), "binary", "replaces the key for key-shared dispatch; mostly null"),
    "__schemaVersion": Column(pa.binary(), "binary", "of the topic's schema; null where there was none"),
    "__size": Column(pa.int32(), "int", "bytes of the payload"),
    "__replicatedFrom": Column(pa.string(), "string", "the cluster it came from; null where it is this one"),
    "__deliverAt": Column(TIMESTAMP, "timestamp", "when consumers were to get it; mostly null"),
    "__redeliveryCount": Column(pa.int32(), "int", "how often the broker had delivered its entry before"),
}

SCHEMA = pa.schema([(name, column.arrow) for name, column in ALL_COLUMNS.items()])
"""All columns, in this order."""

MAYBE_TEXT = ("value", "__key")
"""Bytes that may be asked for as text."""


# --- what stands once in an entry ------------------------------------------------------------------

_OF_ENTRY: dict[str, Callable[[Any], object]] = {
    "__topic": lambda entry: entry.source.topic,
    "__publishTime": lambda entry: _micros(entry.header.publish_time),
    "__partition": lambda entry: entry.source.partition,
    "__ledgerId": lambda entry: entry.position[0],
    "__entryId": lambda entry: entry.position[1],
    "__producerName": lambda entry: _clean(entry.header.producer_name),
    "__schemaVersion": lambda entry: entry.header.schema_version,
    "__replicatedFrom": lambda entry: _clean(entry.header.replicated_from),
    "__deliverAt": lambda entry: _micros(entry.header.deliver_at_time),
    "__redeliveryCount": lambda entry: entry.redelivery_count,
}


def _clean(text: str | None) -> str | None:
    """Text that Arrow takes: what is not UTF-8 on the wire becomes question marks."""
    return text if text is None or text.isascii() else text.encode("utf-8", "replace").decode()


MAX_TIME = 253_402_300_799_999
"""Milliseconds since 1970 that a timestamp can say: until the end of the year 9999. Beyond it Spark writes
nothing that Python can read; a producer may write any number."""


def _micros(milliseconds: int | None) -> int | None:
    return None if milliseconds is None or abs(milliseconds) > MAX_TIME else milliseconds * 1000


class _EntryColumn:
    """A column of which every entry has one value."""

    def __init__(self, type: Any, of: Callable[[Any], object]) -> None:
        self._type = type
        self._of = of
        self._value: object = None
        self._same = pa.nulls(0, type)
        """Rows that are all of that value: most columns have one for all of a topic."""

    def finish(self, entries: Sequence[Any], counts: Sequence[int], rows: int) -> Any:
        """`counts`: how many rows each entry has."""
        values = [self._of(entry) for entry in entries]
        if len(set(values)) > 1:
            width = _WIDTHS.get(self._type)
            if width is not None and None not in values:
                return fixed(np.repeat(np.array(values, width), counts), self._type)
            indices = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
            return pa.array(values, self._type).take(fixed(indices, pa.int32()))
        if values and (values[0] != self._value or rows > len(self._same)):
            self._value = values[0]
            self._same = pa.repeat(pa.scalar(self._value, self._type), max(rows, _SAME_ROWS))
        return self._same.slice(0, rows)


_SAME_ROWS = 16 * 1024
_WIDTHS = {pa.int32(): np.int32, pa.int64(): np.int64, TIMESTAMP: np.int64}


# --- what every message has ------------------------------------------------------------------------


class _Value(Bytes):
    def add_members(self, _entry: Any, run: UniformMembers, _first: int) -> None:
        if run.template.null_value and not run.template.payload:
            self.add_nulls(len(run))
        else:
            self.add_run(run, run.payload)

    def add_messages(self, messages: Sequence[Message]) -> None:
        self.add_list([message.value for message in messages])


class _Key(Bytes):
    def add_members(self, _entry: Any, run: UniformMembers, _first: int) -> None:
        where = run.template.key
        if where is None:
            self.add_nulls(len(run))
        else:
            self.add_run(run, where)

    def add_messages(self, messages: Sequence[Message]) -> None:
        self.add_list([_key(message) for message in messages])


def _key(message: Message) -> bytes | None:
    """Return the key in bytes; a key that claims to be Base64 and is not stays the text that it is."""
    try:
        return message.key_bytes
    except ValueError:
        return (message.key or "").encode("utf-8", "surrogateescape")


class _OrderingKey(Bytes):
    def add_members(self, _entry: Any, run: UniformMembers, _first: int) -> None:
        where = run.template.ordering_key
        if where is None:
            self.add_nulls(len(run))
        else:
            self.add_run(run, where)

    def add_messages(self, messages: Sequence[Message]) -> None:
        self.add_list([message.ordering_key for message in messages])


class _MessageIdColumn(Bytes):
    def add_members(self, entry: Any, run: UniformMembers, first: int) -> None:
        source, size = entry.source, entry.size
        front = MessageId(entry.position[0], entry.position[1], -1, -1, 0)
        prefix = np.frombuffer(encode_message_id(front)[: -len(_NO_SIZE)], np.uint8)
        end = first + len(run)
        while first < end:
            start = _length_start(first)
            stop = min(end, _length_end(first))
            suffixes = _id_suffixes(source.partition, size, start)[first - start : stop - start]
            ids = np.empty((stop - first, len(prefix) + suffixes.shape[1]), np.uint8)
            ids[:, : len(prefix)] = prefix
            ids[:, len(prefix) :] = suffixes
            self.add_column(ids)
            first = stop

    def add_messages(self, messages: Sequence[Message]) -> None:
        self.add_list([encode_message_id(message.message_id) for message in messages])


_NO_SIZE = encode_message_id(MessageId(0, 0))[-2:]
"""The last bytes of an id outside of a batch: its batch size, 0."""


def _length_end(index: int) -> int:
    """The first index that takes more bytes than this one."""
    end = 0x80
    while index >= end:
        end <<= 7
    return end


def _length_start(index: int) -> int:
    """The first index that takes as many bytes as this one."""
    end = _length_end(index)
    return end >> 7 if end > 0x80 else 0


@lru_cache(maxsize=64)
def _id_suffixes(partition: int, size: int, first: int) -> Any:
    """Return the last bytes of the ids of a batch of that size, behind ledger and entry.

    There is one row for each index from `first` on that takes as many bytes as `first`."""
    count = min(size, _length_end(first)) - first
    whole = MessageId(0, 0, partition, first, size)
    sample, other = (
        np.frombuffer(encode_message_id(each)[4:], np.uint8)
        for each in (whole, whole._replace(batch_index=first ^ 1))
    )
    at = int((sample != other).argmax())
    suffixes = np.tile(sample, (count, 1))
    indexes = np.arange(first, first + count)
    more = first
    while True:
        more >>= 7
        suffixes[:, at] = indexes & 0x7F | (0x80 if more else 0)
        if not more:
            return suffixes
        at += 1
        indexes >>= 7


class _EventTime(ColumnParts):
    def add_members(self, _entry: Any, run: UniformMembers, _first: int) -> None:
        where = run.template.event_time
        if where is None:
            self.add_nulls(len(run))
            return
        times = run.numbers(where)
        if times.min() > 0 and times.max() <= MAX_TIME:
            self.add(times * 1000)
        else:
            self.add_list([_micros(time) if time > 0 else None for time in times.tolist()])

    def add_messages(self, messages: Sequence[Message]) -> None:
        self.add_list([_micros(message.event_time or None) for message in messages])


class _SequenceId(ColumnParts):
    def add_members(self, entry: Any, run: UniformMembers, first: int) -> None:
        where = run.template.sequence_id
        if where is None:
            self.add(np.arange(len(run), dtype=np.int64) + _signed((entry.header.sequence_id or 0) + first))
        else:
            self.add(run.numbers(where))

    def add_messages(self, messages: Sequence[Message]) -> None:
        self.add(np.array([_signed(message.sequence_id) for message in messages], np.int64))


def _signed(number: int) -> Any:
    """64 bits as Spark has them; a producer may write any."""
    return np.int64((number + 2**63) % 2**64 - 2**63)


class _BatchIndex(ColumnParts):
    def add_members(self, _entry: Any, run: UniformMembers, first: int) -> None:
        self.add(np.arange(first, first + len(run), dtype=np.int32))

    def add_messages(self, messages: Sequence[Message]) -> None:
        self.add(np.array([message.batch_index for message in messages], np.int32))


class _Size(ColumnParts):
    def add_members(self, _entry: Any, run: UniformMembers, _first: int) -> None:
        self.add(np.full(len(run), run.template.payload, np.int32))

    def add_messages(self, messages: Sequence[Message]) -> None:
        self.add(np.array([len(message.data) for message in messages], np.int32))


class _Properties(ColumnParts):
    def add_members(self, _entry: Any, run: UniformMembers, _first: int) -> None:
        pairs = run.template.properties
        count, each = len(run), len(pairs)
        if not pairs:
            offsets, names, values = np.zeros(count + 1, np.int32), _NO_TEXT, _NO_TEXT
        else:
            offsets = np.arange(0, (count + 1) * each, each, dtype=np.int32)
            names = _interleaved(run, [name for name, _ in pairs])
            values = _interleaved(run, [value for _, value in pairs])
        self.add(pa.MapArray.from_arrays(fixed(offsets, pa.int32()), names, values))

    def add_messages(self, messages: Sequence[Message]) -> None:
        self.add_list([_clean_pairs(message.properties) for message in messages])

    def finish(self) -> Any:
        array = super().finish()
        try:
            array.validate(full=True)
        except pa.ArrowInvalid:  # some text of a run is not UTF-8
            array = pa.MapArray.from_arrays(array.offsets, *map(_clean_texts, (array.keys, array.items)))
        return array


_NO_TEXT = pa.array([], pa.string())


def _interleaved(run: UniformMembers, slices: list[tuple[int, int]]) -> Any:
    """Texts of all members: the first of each slice, then the second of each, …"""
    if len(slices) == 1:
        return from_column(run.column(slices[0]), pa.string())
    data = np.concatenate([run.column(where) for where in slices], axis=1)
    offsets = np.zeros(len(run) * len(slices) + 1, np.int32)
    np.cumsum(np.tile([size for _, size in slices], len(run)), out=offsets[1:])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(data))]
    return pa.Array.from_buffers(pa.string(), len(offsets) - 1, buffers)


def _clean_texts(texts: Any) -> Any:
    known = texts.cast(pa.binary()).to_pylist()
    return pa.array([_clean(each.decode("utf-8", "surrogateescape")) for each in known], pa.string())


def _clean_pairs(properties: dict[str, str]) -> list[tuple[str | None, str | None]]:
    return [(_clean(name), _clean(value)) for name, value in properties.items()]


_OF_MESSAGE: dict[str, Callable[[Any], Any]] = {
    "value": _Value,
    "__key": _Key,
    "__orderingKey": _OrderingKey,
    "__messageId": _MessageIdColumn,
    "__eventTime": _EventTime,
    "__sequenceId": _SequenceId,
    "__batchIndex": _BatchIndex,
    "__size": _Size,
    "__messageProperties": _Properties,
}

# --- the builder -----------------------------------------------------------------------------------

_FIRST_STRETCH = 16
"""Messages taken one by one before a run is tried again, where there was none; it grows."""


class Builder:
    """Record batches of one schema. `rows`: messages taken since the last one; `size`: about how many bytes,
    payloads and what of their headers may be large."""

    def __init__(self, schema: Any, definitions: Definitions | None = None, fails: bool = True) -> None:
        """`schema`: some of `ALL_COLUMNS`, those of `MAYBE_TEXT` also as text. `definitions` decode the
        column `value`, of any type then; `fails`: see `TypedValue`."""
        self._schema = schema
        self.rows = 0
        self.size = 0
        self._of_message = {
            each.name: _OF_MESSAGE[each.name](each.type)
            for each in schema
            if each.name in _OF_MESSAGE and not (each.name == "value" and definitions is not None)
        }
        self._wants_key = "__key" in schema.names
        if definitions is not None and "value" in schema.names:
            self._add_typed(schema.field("value").type, definitions, fails)
        self._of_entry = {
            each.name: _EntryColumn(each.type, _OF_ENTRY[each.name])
            for each in schema
            if each.name in _OF_ENTRY
        }
        self._entries: list[Any] = []
        self._counts: list[int] = []
        """The number of rows of each entry."""
        self._last: Comparison | None = None
        """The comparison that the last run passed."""
        self._wants_properties = "__messageProperties" in schema.names
        self._wants_header = not {"__key", "__orderingKey", "__messageProperties"}.isdisjoint(schema.names)

    def _add_typed(self, type: Any, definitions: Definitions, fails: bool) -> None:
        keys = None
        if pa.types.is_struct(type) and type.get_field_index("key") >= 0:
            keys = _Key(pa.binary())
            self._wants_key = True
        values = TypedValue(type, definitions, fails, _Value(pa.binary()), keys)
        self._of_message["value"] = values
        if UNDECODABLE in self._schema.names:
            self._of_message[UNDECODABLE] = Undecodable(values)

    def add(self, item: Any) -> None:
        """All messages of one item of `Messages`. Raises `FrameError` for a malformed batch."""
        if isinstance(item, ReceivedBatch) and isinstance(item.entry.batch, RawBatch):
            self._add_raw_batch(item.entry, item.entry.batch)
        elif isinstance(item, ReceivedSingles) and not self._of_entry and len(self._of_message) == 1:
            (column,) = self._of_message.values()
            if isinstance(column, _Value):
                column.add_list(item.payloads)
                self._added(None, len(item.payloads), sum(map(len, item.payloads)))
            else:
                self._add_messages(list(Messages([item])))
        else:
            self._add_messages(list(Messages([item])))

    def _add_messages(self, messages: Sequence[Message]) -> None:
        if not messages:
            return
        for column in self._of_message.values():
            column.add_messages(messages)
        for message in messages:
            self._added(message.entry, 1, len(message.data) + self._header_size(message))

    def _header_size(self, message: Message) -> int:
        """Return the bytes of the header's fields that may be large, where a column needs them."""
        if not self._wants_header:
            return 0
        properties = sum(len(name) + len(value) for name, value in message.header.properties)
        return len(message.key or "") + len(message.ordering_key or b"") + properties

    def _added(self, entry: Any, rows: int, size: int) -> None:
        self.rows += rows
        self.size += size
        self._entries.append(entry)
        self._counts.append(rows)

    def _add_raw_batch(self, entry: Any, batch: RawBatch) -> None:
        data = np.frombuffer(batch.data, np.uint8)
        position = batch.start
        index = 0
        stretch = _FIRST_STRETCH
        while index < batch.size:
            run = find_uniform(data, position, batch.size - index, self._last)
            if run is None or self._is_odd(run):
                taken = min(batch.size - index, stretch)
                position = self._add_one_by_one(entry, batch, position, index, index + taken)
                index += taken
                stretch *= 4
                continue
            self._last = run.comparison
            if run.template.payload or not run.template.compacted_out:
                for column in self._of_message.values():
                    column.add_members(entry, run, index)
                self._added(entry, len(run), len(run) * run.template.stride)
            index += len(run)
            position += len(run) * run.template.stride
        if position != len(data):
            batch.split()  # which says what is wrong with it

    def _is_odd(self, run: UniformMembers) -> bool:
        """True if some column cannot be made of the run as a whole."""
        template = run.template
        if self._wants_key and template.key_is_base64 and template.key is not None:
            return True
        names = [name for name, _ in template.properties]
        if not self._wants_properties or len(names) < 2:
            return False
        # Of two properties with one name the last counts.
        columns = [run.column(name) for name in names]
        if any((column != column[0]).any() for column in columns):
            return True
        return len({column[0].tobytes() for column in columns}) < len(names)

    def _add_one_by_one(self, entry: Any, batch: RawBatch, position: int, first: int, end: int) -> int:
        """Take these messages; gives the position behind them."""
        members = batch.split()
        messages = []
        for index in range(first, end):
            payload = members.payloads[index]
            size = int.from_bytes(batch.data[position : position + 4], "big")
            position += 4 + size + len(payload)
            if payload or not members.single(index).compacted_out:
                messages.append(Message.of(payload, entry, index))
        self._add_messages(messages)
        return position

    def finish(self) -> Any:
        """The record batch of everything that was added since the last one. Raises `BadColumn` for text that
        is none, and nulls where the schema has none."""
        rows = sum(self._counts)
        arrays = {name: column.finish() for name, column in self._of_message.items()}
        for name, of_entry in self._of_entry.items():
            arrays[name] = of_entry.finish(self._entries, self._counts, rows)
        checked = [_checked(arrays[each.name], each) for each in self._schema]
        self.rows = self.size = 0
        self._entries = []
        self._counts = []
        return pa.RecordBatch.from_arrays(checked, schema=self._schema)


def _checked(array: Any, field: Any) -> Any:
    """Return the array. Raises `BadColumn` for text that is not UTF-8, and a null in a NOT NULL column."""
    if array.null_count and not field.nullable:
        raise BadColumn(f"column {field.name!r}: it is asked for as NOT NULL, and a message has none")
    if field.name in MAYBE_TEXT and field.type == pa.string():
        try:
            array.validate(full=True)
        except pa.ArrowInvalid:
            raise BadColumn(
                f"column {field.name!r}: a message is not UTF-8 text; ask for the column as binary"
            ) from None
    return array
