"""The data source as Spark meets it: a name, a schema, readers and writers.

It knows PySpark's interface and sends on: batch reads to `batch_source`, streams to `stream_source`, writes
to `sink`. Spark makes an instance for every DataFrame, asks for the schema and keeps the instance pickled.
So what the instance finds out meanwhile is the same for all actions of that DataFrame.
"""

from collections.abc import Mapping, MutableMapping
from typing import Any

import pyspark
from pyspark.sql.datasource import DataSource

from pulsar_sansio.schemas import SchemaInfo

from .errors import InvalidOption, PulsarSparkError, UnsupportedSparkVersion
from .options.option_table import Use
from .options.query_options import ReadOptions, is_stream_only, parse_read, parse_write
from .reading.columns import ALL_COLUMNS
from .reading.offsets import Offsets
from .reading.typed_value import UNDECODABLE

USUAL_COLUMNS = tuple(ALL_COLUMNS)[:7]
"""A DataFrame has these columns by default. They are the columns of Pulsar's other connector."""

STREAMS_SINCE = (4, 2)
"""Before that, PySpark does not tell a source where the query is, so that no limit can be kept."""

FILTERS_SINCE = STREAM_WRITES_SINCE = (4, 1)
"""Before that, PySpark has no filters for sources in Python, and no Arrow for streams that are written."""


class PulsarDataSource(DataSource):
    """`format("pulsar")`."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._given = dict(options)
        self._snapshot: tuple[Offsets, Offsets] | None = None
        self._definition: SchemaInfo | None = None

    @classmethod
    def name(cls) -> str:
        return "pulsar"

    def schema(self) -> str:
        """The columns, where the user gave none. What is to be read is found out here, so that the DataFrame
        stays what it is; where that fails, the action says why."""
        streams = is_stream_only(self._given)
        options = parse_read(self._given, Use.STREAM_READ if streams else Use.BATCH_READ)
        if not streams:
            from .reading.batch_source import take_snapshot

            try:
                self._snapshot = take_snapshot(options)
            except PulsarSparkError:
                self._snapshot = None
        types = {name: ALL_COLUMNS[name].ddl for name in columns_of(options)}
        if "value" in types and options.value_type != "bytes":
            types["value"] = "string" if options.value_type == "text" else self._inferred(options)
            if options.undecodable == "bytes":
                types[UNDECODABLE] = "binary"
        return ", ".join(f"`{name}` {ddl}" for name, ddl in types.items())

    def _inferred(self, options: ReadOptions) -> str:
        """Return the type of the topic's schema."""
        from .reading.inference import infer, type_text

        self._definition = infer(options)
        return type_text("", self._definition)

    def reader(self, schema: Any) -> Any:
        options = parse_read(self._given, Use.BATCH_READ)
        if options.pushdown:
            require(FILTERS_SINCE, "the option pushdown")
            from .reading.filtered_source import FilteredReader

            return FilteredReader(options, schema, self._snapshot, self._definition)
        from .reading.batch_source import PulsarReader

        return PulsarReader(options, schema, self._snapshot, self._definition)

    def streamReader(self, schema: Any) -> Any:
        require(STREAMS_SINCE, "reading a stream")
        from .reading.stream_source import PulsarStreamReader

        return PulsarStreamReader(parse_read(self._given, Use.STREAM_READ), schema, self._definition)

    def writer(self, schema: Any, overwrite: bool) -> Any:
        from .writing.sink import batch_writer

        return batch_writer(parse_write(self._given, Use.BATCH_WRITE), schema, overwrite)

    def streamWriter(self, schema: Any, overwrite: bool) -> Any:
        require(STREAM_WRITES_SINCE, "writing a stream")
        from .writing.stream_sink import stream_writer

        return stream_writer(parse_write(self._given, Use.STREAM_WRITE), schema, overwrite)


class PulsarPyDataSource(PulsarDataSource):
    """The data source under the name `pulsar_py`, where a jar has taken the name `pulsar`; it has to be
    registered."""

    @classmethod
    def name(cls) -> str:
        return "pulsar_py"


def require(since: tuple[int, int], what: str) -> None:
    """Raises `UnsupportedSparkVersion` where this PySpark is older than `what` needs."""
    if tuple(int(part) for part in pyspark.__version__.split(".")[:2]) < since:
        raise UnsupportedSparkVersion(
            f"{what} needs PySpark {since[0]}.{since[1]} or later, this is {pyspark.__version__}; batch "
            "reads and writes work with 4.0"
        )


def columns_of(options: ReadOptions) -> tuple[str, ...]:
    """The columns that the option `columns` means. Raises `InvalidOption` for one that there is not."""
    if options.columns is None:
        return USUAL_COLUMNS
    if options.columns == ("all",):
        return tuple(ALL_COLUMNS)
    for name in options.columns:
        if name not in ALL_COLUMNS:
            raise InvalidOption(
                f"option columns: no column is called {name!r}; allowed: all, or {', '.join(ALL_COLUMNS)}"
            )
    return options.columns


def option_texts(given: Mapping[str, object]) -> dict[str, str]:
    """Options as Spark hands them over: texts, `true` and `false`."""
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in given.items()
    }
