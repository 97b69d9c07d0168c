"""The sink of a stream: apart from the sink of a DataFrame, because PySpark 4.0 has no Arrow for it."""

import logging
from collections.abc import Sequence
from typing import Any

from pyspark.sql.datasource import DataSourceStreamArrowWriter

from ..options.query_options import WriteOptions
from .sink import TaskWritten, Writing, checked, summary

log = logging.getLogger("pulsar_spark.stream_sink")


class PulsarStreamWriter(Writing, DataSourceStreamArrowWriter):
    """`df.writeStream.format("pulsar")`."""

    def commit(self, messages: Sequence[TaskWritten | None], batchId: int) -> None:
        self.commit_all(messages)
        log.info("batch %d written: %s", batchId, summary(messages))

    def abort(self, messages: Sequence[TaskWritten | None], batchId: int) -> None:
        self.abort_all(messages)
        log.warning("batch %d not written as a whole: %s", batchId, summary(messages))


def stream_writer(options: WriteOptions, schema: Any, overwrite: bool) -> PulsarStreamWriter:
    """Make the writer that `DataSource.streamWriter` returns. Raises the errors of `checked`."""
    return checked(PulsarStreamWriter, options, schema, overwrite)
