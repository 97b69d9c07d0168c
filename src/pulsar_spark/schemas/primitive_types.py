"""Pulsar's primitive types as types of Spark: their payloads as arrays, many at once, and back.

Payloads are big-endian numbers of one length, and texts. Moments become timestamps, days dates. Times of day
stay the numbers that Pulsar writes, as Spark has no type for them everywhere.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from pulsar_sansio.schemas import SchemaType

from .spark_types import TIMESTAMP
from .value_types import UnfitError

Payloads = Sequence[bytes | None]

_NTZ = pa.timestamp("us")
_MOMENT = np.dtype([("seconds", ">i8"), ("nanos", ">i4")])
_LOCAL = np.dtype([("days", ">i8"), ("nanos", ">i8")])
_DAY = 86_400_000_000


class Primitive(NamedTuple):
    """`arrow`: the type in Spark. `wire`: the numbers of a payload (NumPy). `read` gives the numbers that
    Arrow holds for those of payloads; `write` is the reverse."""

    arrow: Any
    wire: Any
    read: Callable[[Any], Any]
    write: Callable[[Any], Any]


def _same(numbers: Any) -> Any:
    return numbers


def _scaled(numbers: Any, factor: int) -> Any:
    """Multiply, within 64 bits."""
    most = (2**63 - 1) // factor
    if len(numbers) and (numbers.max() > most or numbers.min() < -most):
        raise UnfitError("a moment beyond what a timestamp can hold")
    return numbers.astype(np.int64) * factor


def _moment_of(numbers: Any) -> Any:
    return _scaled(numbers["seconds"], 1_000_000) + numbers["nanos"] // 1000


def _moment(micros: Any) -> Any:
    found = np.empty(len(micros), _MOMENT)
    found["seconds"], found["nanos"] = micros // 1_000_000, micros % 1_000_000 * 1000
    return found


def _local_of(numbers: Any) -> Any:
    return _scaled(numbers["days"], _DAY) + numbers["nanos"] // 1000


def _local(micros: Any) -> Any:
    found = np.empty(len(micros), _LOCAL)
    found["days"], found["nanos"] = micros // _DAY, micros % _DAY * 1000
    return found


def _days_of(numbers: Any) -> Any:
    if len(numbers) and (numbers.max() >= 2**31 or numbers.min() < -(2**31)):
        raise UnfitError("a day beyond what a date can hold")
    return numbers


def _plain(arrow: Any, wire: str) -> Primitive:
    return Primitive(arrow, np.dtype(wire), _same, _same)


_MILLIS = Primitive(
    TIMESTAMP, np.dtype(">i8"), lambda numbers: _scaled(numbers, 1000), lambda micros: micros // 1000
)

NUMBERS: dict[SchemaType, Primitive] = {
    SchemaType.BOOLEAN: Primitive(pa.bool_(), np.dtype("u1"), lambda numbers: numbers != 0, _same),
    SchemaType.INT8: _plain(pa.int8(), ">i1"),
    SchemaType.INT16: _plain(pa.int16(), ">i2"),
    SchemaType.INT32: _plain(pa.int32(), ">i4"),
    SchemaType.INT64: _plain(pa.int64(), ">i8"),
    SchemaType.FLOAT: _plain(pa.float32(), ">f4"),
    SchemaType.DOUBLE: _plain(pa.float64(), ">f8"),
    SchemaType.DATE: _MILLIS,
    SchemaType.TIMESTAMP: _MILLIS,
    SchemaType.INSTANT: Primitive(TIMESTAMP, _MOMENT, _moment_of, _moment),
    SchemaType.LOCAL_DATE: Primitive(pa.date32(), np.dtype(">i8"), _days_of, _same),
    SchemaType.LOCAL_DATE_TIME: Primitive(_NTZ, _LOCAL, _local_of, _local),
    SchemaType.TIME: _plain(pa.int64(), ">i8"),
    SchemaType.LOCAL_TIME: _plain(pa.int64(), ">i8"),
}
"""The types whose payloads are numbers. `DATE` is a moment: Java's `java.util.Date`."""

PRIMITIVES: dict[SchemaType, Any] = {
    SchemaType.NONE: pa.binary(),
    SchemaType.STRING: pa.string(),
    **{kind: each.arrow for kind, each in NUMBERS.items()},
}
"""All primitive types, as Arrow has them. A payload of the type NONE is its own value."""

BY_ARROW: dict[Any, SchemaType] = {
    PRIMITIVES[kind]: kind
    for kind in (
        SchemaType.NONE,
        SchemaType.STRING,
        SchemaType.BOOLEAN,
        SchemaType.INT8,
        SchemaType.INT16,
        SchemaType.INT32,
        SchemaType.INT64,
        SchemaType.FLOAT,
        SchemaType.DOUBLE,
        SchemaType.INSTANT,
        SchemaType.LOCAL_DATE,
        SchemaType.LOCAL_DATE_TIME,
    )
}
"""The primitive type that a column is written as. Timestamps become `INSTANT`, which keeps microseconds."""


def read(kind: SchemaType, payloads: Payloads) -> Any:
    """Return the values of payloads. Raises `UnfitError`, and `ArrowInvalid` for text that is not UTF-8."""
    if kind not in NUMBERS:
        return pa.array(payloads, pa.binary()).cast(PRIMITIVES[kind])
    primitive = NUMBERS[kind]
    size = primitive.wire.itemsize
    for payload in payloads:
        if payload is not None and len(payload) != size:
            raise UnfitError(f"{kind.name} takes {size} bytes, not {len(payload)}")
    zero = bytes(size)
    data = b"".join([zero if each is None else each for each in payloads])
    numbers = primitive.read(np.frombuffer(data, primitive.wire))
    native = numbers.astype(numbers.dtype.newbyteorder("="))
    nulls = np.fromiter((each is None for each in payloads), bool, len(payloads))
    if pa.types.is_date32(primitive.arrow):
        native = native.astype(np.int32)
    return pa.array(native, mask=nulls).cast(primitive.arrow)


def write(kind: SchemaType, values: Any) -> list[bytes | None]:
    """Return the payloads of values, which are an array of the type in `PRIMITIVES`."""
    if kind not in NUMBERS:
        found: list[bytes | None] = values.cast(pa.binary()).to_pylist()
        return found
    primitive = NUMBERS[kind]
    numbers = values
    if pa.types.is_timestamp(values.type):
        numbers = values.cast(pa.int64())
    elif pa.types.is_date32(values.type):
        numbers = values.cast(pa.int32())
    filled = numbers.fill_null(False if pa.types.is_boolean(numbers.type) else 0)
    wire = primitive.write(filled.to_numpy(zero_copy_only=False)).astype(primitive.wire)
    data, size = wire.tobytes(), primitive.wire.itemsize
    valid = values.is_valid().to_pylist()
    return [data[row * size : (row + 1) * size] if there else None for row, there in enumerate(valid)]
