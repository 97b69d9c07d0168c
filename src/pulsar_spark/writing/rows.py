"""From Arrow to messages: the order of a task's rows, where each goes, and what it becomes.

Which columns there may be is in `write_columns`; here they are known to be right. The key of a row is text
where it can be. The task writes bytes that are UTF-8 as that text, as most producers write their keys. It
writes other bytes as Pulsar writes keys of bytes. Readers get the same bytes from both.

It knows nothing of producers and sequence ids.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pulsar_sansio import (
    NULL_KEY,
    InvalidMessage,
    InvalidTopicName,
    NullKey,
    OutgoingMessage,
    TopicName,
    TransactionId,
)
from pulsar_sansio.schemas import RegisteredSchema
from pulsar_sansio.schemas.key_value import is_separated

from ..errors import InvalidRows
from .numbering import key_partition, keyless_partition
from .original_schemas import OriginalSchemas

Payload = bytes | OutgoingMessage

SLICE = 16_384
"""Rows that are made into messages together."""

REMEMBERED_KEYS = 10_000
"""Keys whose partition is kept."""

PROPERTIES_TEXT = "__messageProperties as text"

ORDER = (
    "__topic",
    "__key",
    "value",
    "__eventTime",
    "__orderingKey",
    PROPERTIES_TEXT,
    "__schemaTopic",
    "__schemaVersion",
)
"""The columns that decide the order, after those that the query names. They are all that a message is made
of, so rows that are equal in them are the same message, and their order makes no difference."""


# --- order ------------------------------------------------------------------------------------------


def in_order(batches: Iterable[Any], topic_is_given: bool, order_by: Sequence[str] | None) -> Iterator[Any]:
    """All rows of a task in an order that depends on nothing but the rows. Holds them in memory.

    Raises `InvalidRows` for a column that cannot be compared.
    """
    table = pa.Table.from_batches(batches) if (batches := list(batches)) else None
    if table is None or not table.num_rows:
        return
    schema = pa.schema([pa.field(each.name, _large(each.type)) for each in table.schema])
    table = table.cast(schema).combine_chunks()
    keys = table
    if "__messageProperties" in table.column_names:
        texts = [canonical_properties(each) for each in table.column("__messageProperties").to_pylist()]
        keys = table.append_column(PROPERTIES_TEXT, pa.array(texts, pa.large_string()))
    names = dict.fromkeys([*(order_by or ()), *ORDER])
    if topic_is_given and "__topic" not in (order_by or ()):
        del names["__topic"]
    by = [(name, "ascending") for name in names if name in keys.column_names]
    try:
        indices = pc.sort_indices(keys, sort_keys=by)
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise InvalidRows(
            f"rows cannot be put in order by {', '.join(order_by or ORDER)}: {error}"
        ) from error
    for start in range(0, len(indices), SLICE):
        yield from table.take(indices.slice(start, SLICE)).to_batches()


def _large(kind: Any) -> Any:
    """Return the type with offsets of 64 bits: a task may have more than 2 GB."""
    if pa.types.is_binary(kind):
        return pa.large_binary()
    return pa.large_string() if pa.types.is_string(kind) else kind


def canonical_properties(pairs: Sequence[tuple[str, str]] | None) -> str | None:
    """Properties as one text: the same for the same properties, whatever order Spark has them in."""
    return None if pairs is None else repr(sorted(dict(pairs).items(), key=lambda pair: pair[0]))


# --- messages ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Portion:
    """Consecutive rows for one topic without partitions, or one partition; `sizes` in bytes. `schema`: of all
    messages, beside that of the producer."""

    topic: str
    messages: Sequence[Payload]
    sizes: Sequence[int]
    schema: RegisteredSchema | None = None

    def by_schema(self) -> "Iterator[Portion]":
        """Cut the rows where their schema changes: a batch has one."""
        start = 0
        for schema, run in groupby(self.messages, _schema_of):
            end = start + sum(1 for _ in run)
            yield Portion(self.topic, self.messages[start:end], self.sizes[start:end], schema)
            start = end


def _schema_of(message: Payload) -> Any:
    return None if isinstance(message, bytes) else message.schema


class Routing:
    """Choose the destinations of the rows of one task.

    `partitions` is asked once for each topic: how many it has, 0 for none. `transaction`: the one that the
    messages are in.
    Keys are routed as the Java client does; rows without a key go round, by their index in the task.
    """

    def __init__(
        self,
        topic: str | None,
        partitions: Callable[[str], int],
        *,
        keys_are_bytes: bool = False,
        transaction: TransactionId | None = None,
        schemas: OriginalSchemas | None = None,
    ) -> None:
        """`keys_are_bytes`: keys are not text, even where they could be, and a null key is a key. `schemas`:
        the definitions that rows name; None where they name none."""
        self._schemas = schemas
        self._keys_are_bytes = keys_are_bytes
        self._transaction = transaction
        self._topic = None if topic is None else str(TopicName.parse(topic))
        self._ask = partitions
        self._partitions: dict[str, int] = {}
        self._names: dict[str, str] = {}
        """Full names of topics as rows write them."""
        self._keys: dict[tuple[str, int], int] = {}
        self._row = 0

    def portions(self, batch: Any) -> list[Portion]:
        """The rows of a batch, by where they go. Raises `InvalidRows`."""
        found = self._portions(batch)
        return found if self._schemas is None else [part for each in found for part in each.by_schema()]

    def _portions(self, batch: Any) -> list[Portion]:
        schemas = None if self._schemas is None else _schemas(batch, self._schemas)
        messages, keys, sizes = _messages(batch, self._row, self._keys_are_bytes, self._transaction, schemas)
        first, self._row = self._row, self._row + len(messages)
        if self._topic is not None:
            return self._of_topic(self._topic, messages, keys, sizes, range(first, self._row))
        given = batch.column("__topic").to_pylist()
        chosen: dict[str, list[int]] = {}
        for index, name in enumerate(given):
            chosen.setdefault(self._full_name(name, first + index), []).append(index)
        found: list[Portion] = []
        for topic, indices in chosen.items():
            found += self._of_topic(
                topic,
                [messages[index] for index in indices],
                None if keys is None else [keys[index] for index in indices],
                [sizes[index] for index in indices],
                [first + index for index in indices],
            )
        return found

    def _of_topic(
        self,
        topic: str,
        messages: Sequence[Payload],
        keys: Sequence[str | None] | None,
        sizes: Sequence[int],
        rows: Sequence[int],
    ) -> list[Portion]:
        partitions = self._partitions.get(topic)
        if partitions is None:
            partitions = self._partitions[topic] = self._ask(topic)
        if not partitions:
            return [Portion(topic, messages, sizes)]
        chosen = [
            keyless_partition(row, partitions) if key is None else self._of_key(key, partitions)
            for row, key in zip(rows, [None] * len(rows) if keys is None else keys, strict=True)
        ]
        by_partition: dict[int, list[int]] = {}
        for index, partition in enumerate(chosen):
            by_partition.setdefault(partition, []).append(index)
        return [
            Portion(
                f"{topic}-partition-{partition}",
                [messages[index] for index in indices],
                [sizes[index] for index in indices],
            )
            for partition, indices in sorted(by_partition.items())
        ]

    def _of_key(self, key: str, partitions: int) -> int:
        known = self._keys.get((key, partitions))
        if known is None:
            if len(self._keys) >= REMEMBERED_KEYS:
                self._keys.clear()
            known = self._keys[key, partitions] = key_partition(key, partitions)
        return known

    def _full_name(self, topic: str | None, row: int) -> str:
        if topic is None:
            raise InvalidRows(
                f"row {row} of the task has no topic: its column __topic is null, and option topic is "
                "not given"
            )
        name = self._names.get(topic)
        if name is None:
            try:
                parsed = TopicName.parse(topic)
            except InvalidTopicName as error:
                raise InvalidRows(f"row {row} of the task, column __topic: {error}") from error
            if not parsed.persistent:
                raise InvalidRows(f"row {row} of the task, column __topic: {topic} is not persistent")
            name = self._names[topic] = str(parsed)
        return name


def _schemas(batch: Any, schemas: OriginalSchemas) -> list[RegisteredSchema | None] | None:
    """Return the definition that each row names; None where no row names one."""
    if not {"__schemaTopic", "__schemaVersion"} <= set(batch.schema.names):
        return None
    topics, versions = (batch.column(name).to_pylist() for name in ("__schemaTopic", "__schemaVersion"))
    found = list(map(schemas.of, topics, versions))
    return found if any(each is not None for each in found) else None


def _messages(
    batch: Any,
    first: int,
    keys_are_bytes: bool,
    transaction: TransactionId | None,
    schemas: Sequence[RegisteredSchema | None] | None = None,
) -> tuple[list[Payload], list[str | None] | None, list[int]]:
    """Messages, keys as they travel (None where no row has one), sizes. `first`: the number of the first
    row. Payloads do not name the transaction: the `TaskProducer` does. `schemas`: that of each row; None for
    no schemas."""
    names = set(batch.schema.names)
    values: list[Any] = _bytes(batch.column("value"))
    complete = not batch.column("value").null_count
    sizes = list(map(len, values)) if complete else [len(value or b"") for value in values]
    more = [
        name
        for name in ("__key", "__eventTime", "__messageProperties", "__orderingKey")
        if name in names and batch.column(name).null_count < batch.num_rows
    ]
    if keys_are_bytes and "__key" not in more:
        more.append("__key")
    if not more and schemas is None:
        if complete:
            return values, None, sizes
        return [_null(transaction) if value is None else value for value in values], None, sizes
    nothing: list[Any] = [None] * len(values)
    columns: dict[str, list[Any]] = {
        name: batch.column(name).to_pylist() for name in more if name not in ("__key", "__eventTime")
    }
    column = batch.column("__key") if "__key" in more else None
    parts = [keys_are_bytes] * len(values) if schemas is None else _are_parts(schemas, keys_are_bytes)
    keys = _keys(column, parts) if column is not None or any(parts) else nothing
    times = _milliseconds(batch.column("__eventTime")) if "__eventTime" in more else nothing
    properties = columns.get("__messageProperties", nothing)
    ordering = columns.get("__orderingKey", nothing)
    messages: list[Payload] = []
    row = first
    try:
        for value, key, time, pairs, order, schema in zip(
            values, keys, times, properties, ordering, nothing if schemas is None else schemas, strict=True
        ):
            messages.append(
                OutgoingMessage(
                    value,
                    key=key,
                    event_time=time or 0,
                    properties=dict(sorted(pairs)) if pairs else None,
                    ordering_key=order,
                    transaction=transaction,
                    schema=schema,
                )
            )
            row += 1
    except (InvalidMessage, TypeError) as error:
        raise InvalidRows(f"row {row} of the task cannot be a message: {error}") from error
    for name, given in (("__key", keys), ("__orderingKey", ordering)):
        if name in more:
            sizes = [
                size + _size(each) if isinstance(each, str | bytes) else size
                for size, each in zip(sizes, given, strict=True)
            ]
    if "__messageProperties" in more:
        sizes = [
            size + sum(_size(name) + _size(text) for name, text in pairs) if pairs else size
            for size, pairs in zip(sizes, properties, strict=True)
        ]
    travelling = (
        [None if isinstance(each, bytes) else each.key for each in messages] if "__key" in more else None
    )
    return messages, travelling, sizes


def _null(transaction: TransactionId | None) -> OutgoingMessage:
    return OutgoingMessage(None, transaction=transaction)


def _size(given: str | bytes) -> int:
    """Bytes that it takes in an entry."""
    return len(given) if given.isascii() or isinstance(given, bytes) else len(given.encode())


def _bytes(column: Any) -> list[bytes | None]:
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        column = column.cast(pa.large_binary())
    values: list[bytes | None] = column.to_pylist()
    return values


def _are_parts(schemas: Sequence[RegisteredSchema | None], otherwise: bool) -> list[bool]:
    """Tell for each row whether its key is a part of its value. `otherwise`: for rows without a definition of
    their own."""
    separated = {
        schema: otherwise if schema is None else is_separated(schema.info) for schema in set(schemas)
    }
    return [separated[schema] for schema in schemas]


def _keys(column: Any, parts: Sequence[bool]) -> list[str | bytes | NullKey | None]:
    """Keys are text where they can be. Those that are parts of values (`parts`) are bytes, and null is one of
    them. `column`: None where all keys are null."""
    if column is None:
        return [NULL_KEY if part else None for part in parts]
    if not any(parts):
        try:
            texts: list[str | bytes | NullKey | None] = column.cast(pa.large_string()).to_pylist()
        except pa.ArrowInvalid:
            pass
        else:
            return texts
    return [_key(key, part) for key, part in zip(_bytes(column), parts, strict=True)]


def _key(key: bytes | None, is_part: bool) -> str | bytes | NullKey | None:
    if key is None:
        return NULL_KEY if is_part else None
    if is_part:
        return key
    try:
        return key.decode()
    except UnicodeDecodeError:
        return key


def _milliseconds(column: Any) -> list[int | None]:
    micros = column.cast(pa.timestamp("us", tz=column.type.tz)).cast(pa.int64()).to_pylist()
    return [None if each is None else each // 1000 for each in micros]
