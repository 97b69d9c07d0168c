"""Batch reads: a snapshot of topics, divided among tasks, and what every task does with its part.

A snapshot is two offsets. It is taken once for a DataFrame, and once for every action where the user gave the
schema.
"""

import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from pulsar_sansio import TopicNotFound as NoSuchTopic
from pulsar_sansio.schemas import SchemaInfo

from ..errors import DataLoss, InvalidOption
from ..link import Link, open_link
from ..options.option_table import Use
from ..options.query_options import ReadOptions, parse_read
from ..schemas.decoders import decoder_of
from ..schemas.definitions import Definitions
from ..schemas.spark_types import NoArrowTypeError, arrow_of
from .columns import ALL_COLUMNS, MAYBE_TEXT
from .offsets import Offsets, Place, Position, Range, WantedPositions, as_text, to_json, wanted_at
from .overtaken import Watch
from .plan import Extent, Lost, lost_by_deletion, lost_by_retention, pack, ranges, split
from .range_reader import read_ranges
from .topics import QueryTopics
from .typed_value import UNDECODABLE

_log = logging.getLogger("pulsar_spark")


class TaskPartition(InputPartition):
    """The ranges that one task reads, one after the other."""

    def __init__(self, parts: tuple[Range, ...]) -> None:
        super().__init__(None)
        self.ranges = parts

    def __repr__(self) -> str:
        return f"TaskPartition({', '.join(map(str, self.ranges))})"


# --- a snapshot -------------------------------------------------------------------------------------


def take_snapshot(options: ReadOptions) -> tuple[Offsets, Offsets]:
    """Where a batch read begins and ends, as the topics are now."""
    with closing(QueryTopics(options, reading_link(options))) as topics:
        return _places(topics, options)


def _places(topics: QueryTopics, options: ReadOptions) -> tuple[Offsets, Offsets]:
    lasts, _ = topics.wait_for(topics.discover())
    if options.starting_timestamp is not None:
        wanted = wanted_at(options.starting_timestamp)
    else:
        wanted = options.starting or WantedPositions(Place.EARLIEST, {}, {})
    starts = topics.resolve(wanted, lasts)
    if options.ending_timestamp is not None:
        until = wanted_at(options.ending_timestamp)
    else:
        until = options.ending or WantedPositions(Place.LATEST, {}, {})
    ends = topics.resolve(until, lasts)
    return starts, {name: min(end, lasts[name]) for name, end in ends.items()}


def snapshot(**given: object) -> dict[str, str]:
    """Return where a batch read with these options would begin and end now, as `startingOffsets` and
    `endingOffsets` for reads that are to see equal data. Names with a dot: `**{"service.url": …}`."""
    from ..data_source import option_texts

    starts, ends = take_snapshot(parse_read(option_texts(given), Use.BATCH_READ))
    return {"startingOffsets": json.dumps(to_json(starts)), "endingOffsets": json.dumps(to_json(ends))}


def check_retention(topics: QueryTopics, options: ReadOptions, starts: Mapping[str, Position]) -> Offsets:
    """Return the starts of the topics that still exist. Raises `DataLoss` where one does not, or no longer
    has what comes behind its start; logs it instead where `failOnDataLoss` is false."""
    there: Offsets = {}
    for name, start in starts.items():
        lost: Lost | None
        try:
            begins = topics.begins(name)
            lost = lost_by_retention(name, start, begins, topics.ends_of_ledgers(name))
            if lost is not None and options.subscription is not None and topics.held(name, start, begins):
                lost = None
            there[name] = start
        except NoSuchTopic:
            lost = lost_by_deletion({name: start}, [])[0]
        if lost is not None:
            report(lost, options)
    return there


def report(lost: Lost, options: ReadOptions) -> None:
    """Raise `DataLoss`, or log it, as the query wants it."""
    found = "nothing" if lost.found is None else as_text(lost.found)
    error = DataLoss(lost.topic, as_text(lost.expected), found, lost.reason)
    if options.fail_on_data_loss:
        raise error
    _log.warning(
        "going on after data loss in %s: %s; expected %s, found %s",
        lost.topic,
        lost.reason,
        error.expected,
        found,
        extra={"context": {"topic": lost.topic, "expected": error.expected, "found": found}},
    )


def divide(
    topics: QueryTopics, options: ReadOptions, starts: Mapping[str, Position], ends: Mapping[str, Position]
) -> list[TaskPartition]:
    """The tasks that read what lies between two offsets; the same offsets give the same tasks."""
    whole = ranges(starts, ends)
    extents: dict[str, Extent] = {}
    if options.min_partitions is not None and len(whole) < options.min_partitions:
        extents = {each.topic: topics.extent(each.topic, each.start, each.end) for each in whole}
        whole = split(whole, extents, options.min_partitions)
    whole = [replace(each, next_ledger=topics.next_ledger(each.topic, each.start)) for each in whole]
    return [TaskPartition(task) for task in pack(whole, options.max_partitions, extents)]


# --- the reader -------------------------------------------------------------------------------------


class PulsarReader(DataSourceReader):
    """One action of a batch read. `taken`: the DataFrame's snapshot, None where there is none yet."""

    def __init__(
        self,
        options: ReadOptions,
        schema: Any,
        taken: tuple[Offsets, Offsets] | None,
        definition: SchemaInfo | None = None,
    ) -> None:
        """`definition`: the one that the schema was inferred from; None for a schema of the user's."""
        self._options = options
        self._schema = arrow_schema(schema, options)
        self._taken = taken
        self._definition = definition

    def partitions(self) -> list[InputPartition]:
        starts, ends = self._taken or take_snapshot(self._options)
        topics = QueryTopics(self._options, reading_link(self._options))
        wanted = {name: start for name, start in starts.items() if start < ends[name]}
        if not self._options.read_compacted:
            wanted = check_retention(topics, self._options, wanted)
        wanted, ends = self.narrow(topics, wanted, ends)
        return list(divide(topics, self._options, wanted, {name: ends[name] for name in wanted}))

    def narrow(self, topics: QueryTopics, starts: Offsets, ends: Offsets) -> tuple[Offsets, Offsets]:
        """Return the part of the offsets that the filters leave; all of it without filters."""
        return starts, ends

    def read(self, partition: Any) -> Iterator[Any]:
        return read_part(self._options, self._schema, partition, self._definition)


# --- tasks ------------------------------------------------------------------------------------------


def read_part(
    options: ReadOptions, schema: Any, part: Any, definition: SchemaInfo | None = None
) -> Iterator[Any]:
    """Read the ranges of one task as record batches, one after the other. Spark makes a task
    of its own where there are none."""
    if not isinstance(part, TaskPartition):
        return
    link = reading_link(options)
    topics = QueryTopics(options, link)

    def watch(wanted: Range) -> Watch:
        return Watch(topics, wanted, partial(report, options=options))

    yield from read_ranges(
        link,
        part.ranges,
        schema,
        watch=None if options.read_compacted else watch,
        batch_rows=options.batch_rows,
        batch_bytes=options.batch_bytes,
        timeout_s=options.poll_timeout_s,
        read_compacted=options.read_compacted,
        receiver_queue=options.receiver_queue,
        subscription_prefix=options.reader_name_prefix,
        key_files=options.key_files,
        definitions=_definitions(options, schema, link, definition),
        undecodable_fails=options.undecodable == "fail",
    )


def _definitions(
    options: ReadOptions, schema: Any, link: Link, definition: SchemaInfo | None
) -> Definitions | None:
    """Return what decodes the column `value`; None where it is bytes or text, or is not asked for."""
    if options.value_type != "schema" or "value" not in schema.names:
        return None

    def ask(topic: str, version: bytes | None) -> SchemaInfo | None:
        return link.definition(topic, version, options.operation_timeout_s)

    reader = None if definition is None else decoder_of(definition).type
    return Definitions(ask, schema.field("value").type, reader)


def link_settings(options: ReadOptions) -> dict[str, Any]:
    """The configuration of a link."""
    return {
        "access": options.access,
        "connect_timeout": options.connect_timeout_s,
        "operation_timeout": options.operation_timeout_s,
    }


def reading_link(options: ReadOptions) -> Link:
    """The link of this process."""
    return open_link(options.service_url, **link_settings(options))


def arrow_schema(schema: Any, options: ReadOptions) -> Any:
    """Spark's schema as Arrow's: it has to be equal to what Spark makes of it. Raises `InvalidOption` for
    columns that there are not, or not of that type."""
    typed, keeps = options.value_type == "schema", options.undecodable == "bytes"
    fields = []
    for field in schema.fields:
        if field.name == "value" and typed:
            arrow = _typed(field)
        elif field.name == UNDECODABLE and keeps and field.dataType.simpleString() == "binary":
            arrow = pa.binary()
        else:
            arrow = _usual(field)
        fields.append(pa.field(field.name, arrow, nullable=field.nullable))
    names = [each.name for each in fields]
    if keeps and "value" in names and UNDECODABLE not in names:
        raise InvalidOption(f"schema: undecodable=bytes needs the column {UNDECODABLE} binary")
    if not fields:  # Arrow has no rows without columns, and count() would be 0
        raise InvalidOption(f"schema: there are no columns; allowed: some of {', '.join(ALL_COLUMNS)}")
    return pa.schema(fields)


def _typed(field: Any) -> Any:
    try:
        return arrow_of(field.dataType.jsonValue())
    except NoArrowTypeError as error:
        raise InvalidOption(f"schema: column {field.name!r}: {error}") from None


def _usual(field: Any) -> Any:
    """Return the Arrow type of a column that is read as it is."""
    column, type_name = ALL_COLUMNS.get(field.name), field.dataType.simpleString()
    if column is None:
        raise InvalidOption(
            f"schema: there is no column {field.name!r}; allowed: some of {', '.join(ALL_COLUMNS)}"
        )
    if type_name == "string" and field.name in MAYBE_TEXT:
        return pa.string()
    if type_name == column.ddl:
        return column.arrow
    text = " or string" if field.name in MAYBE_TEXT else ""
    more = ", or of another type with valueType=schema" if field.name == "value" else ""
    raise InvalidOption(f"schema: column {field.name!r} is {column.ddl}{text}, not {type_name}{more}")
