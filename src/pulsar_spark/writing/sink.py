"""The sinks: what Spark calls to write a DataFrame, and what a stream's batches have in common with that.

Each task passes its rows, in order, to a `TaskProducer`. Its name and number come from Spark. For a stream
they are the query's id and the batch's number. A batch write has the option `writeId` for its name. The
number of the sink partition is part of every name. A task is done with a receipt for every row. The driver
has nothing to commit, unless the rows are in transactions. For those it also prepares the topic.

Spark pickles a writer for every task, and makes another to commit: there is no state in one.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from pulsar_sansio import CompressionType, PulsarError, TransactionId
from pulsar_sansio.schemas import RegisteredSchema, SchemaInfo
from pulsar_sansio.schemas.key_value import is_separated

from ..errors import InvalidOption, LinkTimeout, PulsarSparkError
from ..link import Link, open_link
from ..options.query_options import WriteOptions
from ..schemas.encoders import encoder_of
from . import transactions
from .numbering import producer_name
from .original_schemas import OriginalSchemas
from .preparing import prepare
from .producing import Limits, Numbered, TaskProducer, WriteFailed, Written
from .rows import Routing, in_order
from .transactions import BatchEnd, TaskTransaction
from .typed_rows import encoded, schema_of_rows
from .write_columns import check_columns

log = logging.getLogger("pulsar_spark.sink")

WriterT = TypeVar("WriterT", bound="Writing")

BATCH_PROPERTY = "streaming.sql.batchId"
QUERY_PROPERTY = "sql.streaming.queryId"
"""The properties in which Spark tells a task its batch and its query; also within foreachBatch."""


@dataclass
class TaskWritten(WriterCommitMessage):
    """The totals of one task. `known`: rows that the broker had already from an earlier attempt.

    `transaction`: the one that the rows are in, with deliveryGuarantee=transactions."""

    partition: int
    rows: int
    bytes: int
    known: int
    transaction: TaskTransaction | None = None


class Writing:
    """The base of both sinks. `options` are checked, and so are the columns. `schema`: the one that values
    are encoded with; None where they are bytes."""

    def __init__(self, options: WriteOptions, schema: SchemaInfo | None = None) -> None:
        self.options = options
        self.schema = schema

    def write(self, iterator: Iterator[Any]) -> TaskWritten:
        context = TaskContext.get()
        if context is None:
            raise PulsarSparkError("the sink writes in a Spark task only")
        written, transaction = self._write_rows(iterator, context)
        return TaskWritten(context.partitionId(), written.rows, written.bytes, written.known, transaction)

    def _write_rows(self, iterator: Iterable[Any], context: Any) -> tuple[Written, TaskTransaction | None]:
        options = self.options
        if self.schema is not None:
            iterator = encoded(iterator, encoder_of(self.schema))
        numbered = self.numbered(context) if options.delivery_guarantee == "exactly-once" else None
        if numbered is not None and options.canonical_order:
            iterator = in_order(iterator, options.topic is not None, options.order_by)
        batches = (batch for batch in iterator if batch.num_rows)
        first = next(batches, None)
        if first is None:
            return Written(), None
        link = self.link()
        transaction = self.begin(link, context) if options.delivery_guarantee == "transactions" else None
        transaction_id = None if transaction is None else transaction.id
        task = self.producer(link, numbered, transaction_id)
        try:
            routing = Routing(
                options.topic,
                partial(partitions_of, link, options.operation_timeout_s),
                keys_are_bytes=is_separated(self.schema),
                transaction=transaction_id,
                schemas=OriginalSchemas(partial(_definition_of, link, options.operation_timeout_s)),
            )
            batch = first
            while batch is not None:
                portions = routing.portions(batch)
                task.open(each.topic for each in portions)
                for each in portions:
                    task.send(each.topic, each.messages, each.sizes, each.schema)
                batch = next(batches, None)
            written = task.finish()
            if transaction is not None:
                transactions.release(link, transaction)
            return written, transaction
        except BaseException:
            task.abandon()
            if transaction is not None:
                transactions.abort_quietly(link, transaction, options.operation_timeout_s)
            link.drop()  # nothing of a failed attempt is left in the worker, which lives on
            raise

    def link(self) -> Link:
        """The connection of this worker."""
        return writing_link(self.options)

    def prepare(self) -> None:
        """In the driver, before the first task: prepare the topic for transactions. Topics that rows say are
        not known here. Raises what `preparing.prepare` does."""
        options = self.options
        if options.delivery_guarantee != "transactions" or options.topic is None:
            return
        link = self.link()
        try:
            partitions = partitions_of(link, options.operation_timeout_s, options.topic)
            prepare(link, options.topic, partitions, self._limits())
        except BaseException:
            link.drop()
            raise

    def producer(
        self, link: Link, numbered: Numbered | None, transaction: TransactionId | None
    ) -> TaskProducer:
        """Make the producer that sends the rows of one task."""
        return TaskProducer(link, self._limits(), numbered, transaction)

    def _limits(self) -> Limits:
        """The options say how a task sends, and what its entries are."""
        options = self.options
        return Limits(
            options.batch_max_messages,
            options.batch_max_bytes,
            options.max_in_flight,
            options.send_timeout_s,
            options.producer_busy_timeout_s,
            options.operation_timeout_s,
            CompressionType[options.compression.upper()],
            options.encryption_keys or (),
            options.key_files,
            None if self.schema is None else RegisteredSchema(self.schema),
        )

    def numbered(self, context: Any) -> Numbered:
        """The name and number under which a task writes exactly once."""
        owner, batch = self._owner(context)
        return Numbered(producer_name(self.options.producer_prefix, owner, context.partitionId()), batch)

    def begin(self, link: Link, context: Any) -> TaskTransaction:
        """Open the transaction of a task."""
        owner, batch = self._owner(context)
        options = self.options
        return transactions.begin(
            link, owner, batch, options.transaction_timeout_s, options.operation_timeout_s
        )

    def _owner(self, context: Any) -> tuple[str, int]:
        """The name of the query or write that a task is of, and the number of its batch."""
        batch, query = context.getLocalProperty(BATCH_PROPERTY), context.getLocalProperty(QUERY_PROPERTY)
        owner = "-".join(filter(None, (query, self.options.write_id)))
        if not owner:
            raise PulsarSparkError(
                "Spark does not say which query this task is of; exactly once needs to know"
            )
        return owner, int(batch) if batch is not None else 0

    def commit_all(self, messages: Sequence[TaskWritten | None]) -> None:
        """Commit the transactions of all tasks, if they have any."""
        end = self._end(messages)
        if end is not None and not end.commit():
            log.warning("committed by an earlier run, so that these rows are dropped: %s", summary(messages))

    def abort_all(self, messages: Sequence[TaskWritten | None]) -> None:
        """Abort the transactions of the tasks that were done, if they have any."""
        end = self._end(messages)
        if end is not None:
            end.abort()

    def _end(self, messages: Sequence[TaskWritten | None]) -> BatchEnd | None:
        found = [each.transaction for each in messages if each is not None and each.transaction is not None]
        if not found:
            return None
        options = self.options
        place = f"{options.topic}-" if options.topic else f"persistent://{options.commit_namespace}/"
        topic = partial(transactions.log_topic, place, options.producer_prefix)
        return BatchEnd(self.link(), topic, found, options.transaction_timeout_s, options.operation_timeout_s)


class PulsarBatchWriter(Writing, DataSourceArrowWriter):
    """`df.write.format("pulsar").mode("append")`."""

    def commit(self, messages: Sequence[TaskWritten | None]) -> None:
        self.commit_all(messages)
        log.info("written: %s", summary(messages))

    def abort(self, messages: Sequence[TaskWritten | None]) -> None:
        self.abort_all(messages)
        log.warning("not written as a whole: %s", summary(messages))


def batch_writer(options: WriteOptions, schema: Any, overwrite: bool) -> PulsarBatchWriter:
    """Make the writer that `DataSource.writer` returns.

    Raises an `OptionError` or `InvalidRows` for what cannot be written."""
    return checked(PulsarBatchWriter, options, schema, overwrite)


def checked(
    kind: Callable[[WriteOptions, SchemaInfo | None], WriterT],
    options: WriteOptions,
    schema: Any,
    overwrite: bool,
) -> WriterT:
    """A writer of this kind, whose topic is prepared for transactions where it needs them. Raises an
    `OptionError`, `InvalidRows` or `NoSchema` for what cannot be written, and `WriteFailed`."""
    if overwrite:
        raise InvalidOption(
            "mode overwrite (outputMode complete of a stream) is not possible: a topic cannot be replaced; "
            "write with mode append"
        )
    columns = [(field.name, field.dataType.simpleString()) for field in schema.fields]
    check_columns(columns, options.topic, options.order_by, options.value_schema != "none")
    writer = kind(options, schema_of_rows(options, schema, partial(_definition, options)))
    writer.prepare()
    return writer


def writing_link(options: WriteOptions) -> Link:
    """The connection of this process."""
    return open_link(
        options.service_url,
        options.access,
        create_topics=True,
        memory_limit=None,
        transactions=options.delivery_guarantee == "transactions",
        operation_timeout=options.operation_timeout_s,
        connect_timeout=options.connect_timeout_s,
    )


def _definition(options: WriteOptions, topic: str) -> SchemaInfo | None:
    """Return the latest definition of a topic; its partitions have it, too."""
    return _definition_of(writing_link(options), options.operation_timeout_s, topic, None)


def _definition_of(link: Link, timeout: float, topic: str, version: bytes | None) -> SchemaInfo | None:
    """Return the definition of that version, or the latest. Raises `WriteFailed`."""
    first = f"{topic}-partition-0" if partitions_of(link, timeout, topic) else topic
    try:
        return link.definition(first, version, timeout)
    except (PulsarError, LinkTimeout) as error:
        raise WriteFailed(f"the schema of {topic} is not known: {error}") from error


def partitions_of(link: Link, timeout: float, topic: str) -> int:
    """Return the topic's number of partitions, 0 for none. Raises `WriteFailed`."""
    try:
        return link.partitions(topic, timeout)
    except (PulsarError, LinkTimeout) as error:
        raise WriteFailed(f"writing to {topic} failed: {error}") from error


def summary(messages: Sequence[TaskWritten | None]) -> str:
    """For the log; None stands for a task that failed."""
    done = [each for each in messages if each is not None]
    failed = len(messages) - len(done)
    rows, size = sum(each.rows for each in done), sum(each.bytes for each in done)
    text = f"{rows} rows, {size} bytes by {len(done)} tasks"
    if known := sum(each.known for each in done):
        text += f", {known} of the rows known from an earlier attempt"
    return f"{text}; {failed} tasks failed" if failed else text
