"""The schemas of primitive values: text, numbers, and the types of dates and times.

Numbers are big-endian, and a payload has exactly the length of its type. Times with a zone are datetimes in
UTC. Python counts microseconds: nanoseconds below one are dropped when a payload of the types `INSTANT`,
`LOCAL_TIME` and `LOCAL_DATE_TIME` is decoded; `TIMESTAMP`, `DATE` and `TIME` hold whole milliseconds, so that
encoding rounds down.
"""

import struct
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from typing import Generic, TypeVar

from ..model.errors import InvalidMessage, SchemaDecodingError
from ..model.schema import Schema, SchemaInfo, SchemaType
from ..model.times import datetime_of, milliseconds_of

T = TypeVar("T")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_MICROSECOND = timedelta(microseconds=1)
_SECOND = timedelta(seconds=1)
_DAY_MS = 86_400_000
_DAY_NS = 86_400_000_000_000


class BytesSchema(Schema[bytes]):
    """Payloads as they are. It registers nothing: the default of producers and consumers (SCHEMA-01)."""

    @property
    def info(self) -> SchemaInfo:
        return SchemaInfo(SchemaType.NONE, "Bytes")

    def encode(self, value: bytes) -> bytes:
        if not isinstance(value, (bytes, bytearray, memoryview)):
            raise _wrong("BYTES", "bytes", value)
        return bytes(value)

    def decode(self, data: bytes) -> bytes:
        return data

    def __repr__(self) -> str:
        return "<schema BYTES>"


class StringSchema(Schema[str]):
    """Text as UTF-8."""

    @property
    def info(self) -> SchemaInfo:
        return SchemaInfo(SchemaType.STRING, "String")

    def encode(self, value: str) -> bytes:
        try:
            return value.encode()
        except (AttributeError, TypeError):
            raise _wrong("STRING", "text", value) from None
        except UnicodeEncodeError:
            raise InvalidMessage("schema STRING: half a surrogate pair is no character") from None

    def decode(self, data: bytes) -> str:
        try:
            return str(data, "utf-8")
        except UnicodeDecodeError as error:
            raise SchemaDecodingError(f"schema STRING: no UTF-8 at byte {error.start}") from None

    def __repr__(self) -> str:
        return "<schema STRING>"


class FixedSchema(Schema[T], Generic[T]):
    """A primitive type whose payloads have one length (rule SCHEMA-08).

    `pack` and `unpack` convert between a value and the numbers of `form`.
    """

    def __init__(
        self,
        type: SchemaType,
        name: str,
        form: str,
        words: str,
        pack: Callable[[T], tuple[int | float, ...]],
        unpack: Callable[..., T],
    ) -> None:
        self._info = SchemaInfo(type, name)
        self._form = struct.Struct(form)
        self._words = words
        self._pack = pack
        self._unpack = unpack

    @property
    def info(self) -> SchemaInfo:
        return self._info

    def encode(self, value: T) -> bytes:
        try:
            return self._form.pack(*self._pack(value))
        except InvalidMessage:
            raise
        except (TypeError, ValueError, AttributeError, OverflowError, struct.error):
            raise _wrong(self._info.type.name, self._words, value) from None

    def decode(self, data: bytes) -> T:
        if len(data) != self._form.size:
            raise SchemaDecodingError(
                f"schema {self._info.type.name}: {self._form.size} bytes, not {len(data)}"
            )
        try:
            return self._unpack(*self._form.unpack(data))
        except (ValueError, OverflowError):
            raise SchemaDecodingError(
                f"schema {self._info.type.name}: the value is beyond what Python's type can hold"
            ) from None

    def __reduce__(self) -> str:
        return self._info.type.name

    def __repr__(self) -> str:
        return f"<schema {self._info.type.name}>"


def _wrong(schema: str, words: str, value: object) -> InvalidMessage:
    return InvalidMessage(f"schema {schema}: {words}, not {type(value).__name__} {value!r:.100}")


# --- numbers ----------------------------------------------------------------------------------------------


def _integer(type: SchemaType, form: str) -> FixedSchema[int]:
    bits = 8 * struct.calcsize(form)

    def pack(value: int) -> tuple[int]:
        if isinstance(value, bool):
            raise TypeError
        return (value,)

    words = f"a whole number from -2**{bits - 1} to 2**{bits - 1} - 1"
    return FixedSchema(type, type.name, form, words, pack, int)


def _pack_number(value: float) -> tuple[float]:
    if isinstance(value, bool):
        raise TypeError
    return (value,)


def _pack_boolean(value: bool) -> tuple[int]:
    if not isinstance(value, bool):
        raise TypeError
    return (value,)


# --- dates and times --------------------------------------------------------------------------------------


def _pack_milliseconds(value: datetime) -> tuple[int]:
    return (milliseconds_of("value", value, InvalidMessage),)


def _pack_time(value: time) -> tuple[int]:
    return (_microseconds(value) // 1000,)


def _unpack_time(milliseconds: int) -> time:
    return _time_of(milliseconds % _DAY_MS * 1000)


def _pack_instant(value: datetime) -> tuple[int, int]:
    milliseconds_of("value", value, InvalidMessage)
    seconds, rest = divmod(value - _EPOCH, _SECOND)
    return seconds, rest // _MICROSECOND * 1000


def _unpack_instant(seconds: int, nanoseconds: int) -> datetime:
    return _EPOCH + timedelta(seconds=seconds, microseconds=nanoseconds // 1000)


def _pack_date(value: date) -> tuple[int]:
    if isinstance(value, datetime):
        raise TypeError
    return (value.toordinal() - _EPOCH_DAY,)


def _unpack_date(days: int) -> date:
    return date.fromordinal(days + _EPOCH_DAY)


def _pack_local_time(value: time) -> tuple[int]:
    return (_microseconds(value) * 1000,)


def _unpack_local_time(nanoseconds: int) -> time:
    if not 0 <= nanoseconds < _DAY_NS:
        raise ValueError
    return _time_of(nanoseconds // 1000)


def _pack_local_datetime(value: datetime) -> tuple[int, int]:
    if value.tzinfo is not None:
        raise TypeError
    return value.toordinal() - _EPOCH_DAY, _microseconds(value.time()) * 1000


def _unpack_local_datetime(days: int, nanoseconds: int) -> datetime:
    return datetime.combine(_unpack_date(days), _unpack_local_time(nanoseconds))


def _microseconds(value: time) -> int:
    """Microseconds since midnight. Raises `TypeError` for a time with a zone: it has no place for one."""
    if isinstance(value, datetime) or value.tzinfo is not None:
        raise TypeError
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond


def _time_of(microseconds: int) -> time:
    seconds, rest = divmod(microseconds, 1_000_000)
    return time(seconds // 3600, seconds // 60 % 60, seconds % 60, rest)


BYTES = BytesSchema()
STRING = StringSchema()
BOOLEAN: FixedSchema[bool] = FixedSchema(
    SchemaType.BOOLEAN, "Boolean", ">B", "True or False", _pack_boolean, bool
)
INT8 = _integer(SchemaType.INT8, ">b")
INT16 = _integer(SchemaType.INT16, ">h")
INT32 = _integer(SchemaType.INT32, ">i")
INT64 = _integer(SchemaType.INT64, ">q")
FLOAT: FixedSchema[float] = FixedSchema(
    SchemaType.FLOAT, "Float", ">f", "a number that 32 bits can hold", _pack_number, float
)
DOUBLE: FixedSchema[float] = FixedSchema(SchemaType.DOUBLE, "Double", ">d", "a number", _pack_number, float)

_MOMENT = "a datetime with a time zone"
DATE = FixedSchema(SchemaType.DATE, "Date", ">q", _MOMENT, _pack_milliseconds, datetime_of)
"""A `java.util.Date`, which is a moment and not a day; a day is `LOCAL_DATE`."""
TIME = FixedSchema(SchemaType.TIME, "Time", ">q", "a time without a zone", _pack_time, _unpack_time)
TIMESTAMP = FixedSchema(SchemaType.TIMESTAMP, "Timestamp", ">q", _MOMENT, _pack_milliseconds, datetime_of)
INSTANT = FixedSchema(SchemaType.INSTANT, "Instant", ">qi", _MOMENT, _pack_instant, _unpack_instant)
LOCAL_DATE = FixedSchema(
    SchemaType.LOCAL_DATE, "LocalDate", ">q", "a date without a time", _pack_date, _unpack_date
)
LOCAL_TIME = FixedSchema(
    SchemaType.LOCAL_TIME, "LocalTime", ">q", "a time without a zone", _pack_local_time, _unpack_local_time
)
LOCAL_DATE_TIME = FixedSchema(
    SchemaType.LOCAL_DATE_TIME,
    "LocalDateTime",
    ">qq",
    "a datetime without a time zone",
    _pack_local_datetime,
    _unpack_local_datetime,
)

PRIMITIVES: dict[SchemaType, Schema[object]] = {
    schema.info.type: schema  # type: ignore[misc]
    for schema in (
        BYTES,
        STRING,
        BOOLEAN,
        INT8,
        INT16,
        INT32,
        INT64,
        FLOAT,
        DOUBLE,
        DATE,
        TIME,
        TIMESTAMP,
        INSTANT,
        LOCAL_DATE,
        LOCAL_TIME,
        LOCAL_DATE_TIME,
    )
}
"""The schema of each primitive type."""
