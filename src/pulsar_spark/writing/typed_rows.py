"""Rows whose value has a schema: encoded before everything else, so that the sink sees rows of bytes.

The driver decides on the schema and compares the columns with it. A task encodes; its producers register the
schema with the broker, which may refuse it.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa

from pulsar_sansio.schemas import SchemaInfo

from ..errors import InvalidRows, NoSchema
from ..options.query_options import WriteOptions
from ..schemas.avro_types import NoSparkTypeError
from ..schemas.encoders import Encoder, UnencodableError, encoder_of, schema_of_column
from ..schemas.spark_types import NoArrowTypeError, arrow_of
from ..schemas.value_types import UnfitError

Ask = Callable[[str], SchemaInfo | None]
"""Asks the broker for the latest definition of a topic."""


def schema_of_rows(options: WriteOptions, columns: Any, ask: Ask) -> SchemaInfo | None:
    """Return the schema that rows are written with; None for bytes. `columns`: Spark's schema.

    Raises `InvalidRows` for columns that the schema cannot have, and `NoSchema` where the topic has none.
    """
    if options.value_schema == "none":
        return None
    if options.key_value == "separated" and "__key" in columns.names:
        raise InvalidRows("column __key: keyValue=separated writes the key of value there; drop the column")
    try:
        arrow = arrow_of(columns["value"].dataType.jsonValue())
        if options.value_schema != "topic":
            info = schema_of_column(arrow, options.value_schema, options.key_value)
            encoder_of(info).check(arrow)
            return info
        assert options.topic is not None
        found = ask(options.topic)
        if found is None:
            raise NoSchema(f"topic {options.topic} has no schema; valueSchema=avro or json registers one")
        encoder_of(found).check(arrow)
    except (NoArrowTypeError, NoSparkTypeError, UnfitError) as error:
        raise InvalidRows(
            f"column value cannot be written with valueSchema={options.value_schema}: {error}"
        ) from None
    return found


def encoded(batches: Iterable[Any], encoder: Encoder) -> Iterator[Any]:
    """Return the batches with payloads in place of values, and keys where they are parts of values.

    Raises `InvalidRows`."""
    row = 0
    for batch in batches:
        column = batch.column("value")
        try:
            payloads, keys = encoder.encode(column)
        except UnencodableError as error:
            raise InvalidRows(f"row {row + error.row} of the task, column value: {error}") from error
        except (UnfitError, pa.ArrowException) as error:
            raise InvalidRows(
                f"rows {row} to {row + len(column) - 1} of the task, column value: {error}"
            ) from error
        row += len(column)
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        columns["value"] = pa.array(payloads, pa.binary())
        if keys is not None:
            columns["__key"] = pa.array(keys, pa.binary())
        yield pa.RecordBatch.from_pydict(columns)
