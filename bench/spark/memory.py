"""A source in Python that gives the batches that `pulsar_spark` would give, out of memory: what is left of
the time of a read when nothing is read.

It is sent to Spark's workers by value, as they cannot import this package.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

BATCH = 32 * 1024
"""Rows, as many as `pulsar_spark` hands over together."""

PAYLOAD = 100
"""Bytes in each."""


class MemorySource(DataSource):
    """`format("memory")`: option `rows`, divided among as many tasks as option `tasks` says."""

    @classmethod
    def name(cls) -> str:
        return "memory"

    def schema(self) -> str:
        return "value binary"

    def reader(self, schema: Any) -> "MemoryReader":
        return MemoryReader(int(self.options["rows"]), int(self.options["tasks"]))


class MemoryReader(DataSourceReader):
    """One batch, again and again."""

    def __init__(self, rows: int, tasks: int) -> None:
        self._rows = rows
        self._tasks = tasks

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(index) for index in range(self._tasks)]

    def read(self, partition: Any) -> Iterator[Any]:
        left = self._rows // self._tasks
        data = pa.py_buffer(np.full(BATCH * PAYLOAD, ord("."), np.uint8))
        offsets = pa.py_buffer(np.arange(0, (BATCH + 1) * PAYLOAD, PAYLOAD, dtype=np.int32))
        values = pa.Array.from_buffers(pa.binary(), BATCH, [None, offsets, data])
        batch = pa.RecordBatch.from_arrays([values], schema=pa.schema([("value", pa.binary())]))
        while left > 0:
            yield batch.slice(0, left)
            left -= BATCH
