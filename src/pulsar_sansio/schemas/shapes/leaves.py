"""The shapes of single values: numbers, text, bytes, dates, times, decimals, enums.

In Avro, plain data is the Python value itself, and encoding checks it. In JSON, logical types are numbers, as
their base type says; dates and times for which the application chooses no logical type are ISO 8601 text.
"""

from base64 import b64decode, b64encode
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from math import inf, isfinite
from typing import Any
from uuid import UUID

from .shape import Convert, Form, Shape, WrongValueError, same, wrong


def _kind(kind: type, words: str) -> Convert:
    def convert(value: Any) -> Any:
        if type(value) is kind or isinstance(value, kind):
            return value
        raise wrong(words, value)

    return convert


def _whole_number(bits: int) -> Convert:
    limit = 1 << bits - 1
    words = f"a whole number from -2**{bits - 1} to 2**{bits - 1} - 1"

    def convert(value: Any) -> Any:
        if isinstance(value, int) and type(value) is not bool and -limit <= value < limit:
            return value
        raise wrong(words, value)

    return convert


def _number(value: Any) -> Any:
    if isinstance(value, (float, int)) and type(value) is not bool:
        return value
    raise wrong("a number", value)


def _finite_number(value: Any) -> Any:
    number = _number(value)
    if not isfinite(number):
        raise WrongValueError(f"a number that JSON can hold, not {number}")
    return number


def _float_of_json(value: Any) -> float:
    """JSON can write more than 64 bits can hold, as a whole number and with an exponent."""
    try:
        number = value if type(value) is float else float(_number(value))
    except OverflowError:
        number = inf
    if isfinite(number):
        return number
    raise wrong("a number that 64 bits can hold", value)


def text_of(value: Any) -> Any:
    if isinstance(value, str):
        if value.isascii():
            return value
        try:
            value.encode()
        except UnicodeEncodeError:
            raise wrong("text without half surrogate pairs", value) from None
        return value
    raise wrong("text", value)


def _bytes_like(value: Any) -> Any:
    if isinstance(value, bytes):
        return value
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    raise wrong("bytes", value)


def _moment(value: Any) -> Any:
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value
    raise wrong("a datetime with a time zone", value)


def _local_moment(value: Any) -> Any:
    if isinstance(value, datetime) and value.tzinfo is None:
        return value
    raise wrong("a datetime without a time zone", value)


def _day(value: Any) -> Any:
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    raise wrong("a date without a time", value)


def _time_of_day(value: Any) -> Any:
    if isinstance(value, time) and value.tzinfo is None:
        return value
    raise wrong("a time without a zone", value)


_uuid = _kind(UUID, "a UUID")
_decimal = _kind(Decimal, "a Decimal")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LOCAL_EPOCH = datetime(1970, 1, 1)
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_MICROSECOND = timedelta(microseconds=1)
_MILLISECOND = timedelta(milliseconds=1)


def _from_text(parse: Callable[[str], Any], words: str, check: Convert = same) -> Convert:
    """Convert JSON text to a value."""

    def convert(value: Any) -> Any:
        if not isinstance(value, str):
            raise wrong(words, value)
        try:
            return check(parse(value))
        except (ValueError, InvalidOperation, OverflowError):
            raise wrong(words, value) from None

    return convert


def _from_number(parse: Callable[[int], Any], bits: int, words: str) -> Convert:
    """Convert a whole number of JSON to a value."""
    whole = _whole_number(bits)

    def convert(value: Any) -> Any:
        try:
            return parse(whole(value))
        except (OverflowError, ValueError):
            raise wrong(words, value) from None

    return convert


def _since(epoch: datetime, unit: timedelta, check: Convert) -> Convert:
    return lambda value: (check(value) - epoch) // unit


def _micros_of_day(value: time) -> int:
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond


def _time_from_micros(micros: int) -> time:
    return (datetime.min + timedelta(microseconds=micros)).time() if 0 <= micros < 86_400_000_000 else _bad()


def _bad() -> Any:
    raise ValueError


def _logical(base: str, logical: str) -> dict[str, str]:
    return {"type": base, "logicalType": logical}


def _leaf(
    avro: Any,
    check: Convert,
    fits: Convert,
    default: Convert = same,
    json_encode: Convert | None = None,
    json_decode: Convert | None = None,
) -> dict[Form, Shape]:
    """A shape for each form. In JSON, `check` also checks what is decoded, unless a conversion is given."""
    return {
        Form.AVRO: Shape(avro, check, None, default, fits),
        Form.JSON: Shape(avro, json_encode or check, json_decode or check, default, fits),
    }


def _of_type(*kinds: type) -> Convert:
    return lambda value: type(value) in kinds


def _moment_leaf(logical: str, epoch: datetime, unit: timedelta, check: Convert) -> dict[Form, Shape]:
    number = _since(epoch, unit, check)
    local = epoch.tzinfo is None
    return _leaf(
        _logical("long", logical),
        check,
        lambda value: isinstance(value, datetime) and (value.tzinfo is None) == local,
        number,
        number,
        _from_number(lambda count: epoch + count * unit, 64, "a moment that a datetime can hold"),
    )


def _time_leaf(base: str, logical: str, micros: int) -> dict[Form, Shape]:
    def number(value: Any) -> int:
        return _micros_of_day(_time_of_day(value)) // micros

    decode = _from_number(lambda count: _time_from_micros(count * micros), 64, "a time within one day")
    return _leaf(_logical(base, logical), _time_of_day, _of_type(time), number, number, decode)


def _day_number(value: Any) -> int:
    return int(_day(value).toordinal()) - _EPOCH_DAY


NULL = _leaf("null", _kind(type(None), "None"), _of_type(type(None)))
BOOLEAN = _leaf("boolean", _kind(bool, "True or False"), _of_type(bool))
INT = {  # a payload can hold more than 32 bits
    form: Shape("int", _whole_number(32), _whole_number(32), same, _of_type(int)) for form in Form
}
LONG = _leaf("long", _whole_number(64), _of_type(int))
FLOAT = _leaf("float", _number, _of_type(float, int), same, _finite_number, _float_of_json)
DOUBLE = _leaf("double", _number, _of_type(float, int), same, _finite_number, _float_of_json)
STRING = _leaf("string", text_of, _of_type(str))
BYTES = _leaf(
    "bytes",
    _bytes_like,
    _of_type(bytes, bytearray, memoryview),
    lambda value: str(_bytes_like(value), "latin-1"),
    lambda value: b64encode(_bytes_like(value)).decode(),
    _from_text(lambda text: b64decode(text, validate=True), "Base64 text"),
)

LOGICAL: dict[tuple[str, str], dict[Form, Shape]] = {
    ("long", "timestamp-millis"): _moment_leaf("timestamp-millis", _EPOCH, _MILLISECOND, _moment),
    ("long", "timestamp-micros"): _moment_leaf("timestamp-micros", _EPOCH, _MICROSECOND, _moment),
    ("long", "local-timestamp-millis"): _moment_leaf(
        "local-timestamp-millis", _LOCAL_EPOCH, _MILLISECOND, _local_moment
    ),
    ("long", "local-timestamp-micros"): _moment_leaf(
        "local-timestamp-micros", _LOCAL_EPOCH, _MICROSECOND, _local_moment
    ),
    ("int", "date"): _leaf(
        _logical("int", "date"),
        _day,
        lambda value: isinstance(value, date) and not isinstance(value, datetime),
        _day_number,
        _day_number,
        _from_number(lambda days: date.fromordinal(days + _EPOCH_DAY), 32, "a day that a date can hold"),
    ),
    ("int", "time-millis"): _time_leaf("int", "time-millis", 1000),
    ("long", "time-micros"): _time_leaf("long", "time-micros", 1),
    ("string", "uuid"): _leaf(
        _logical("string", "uuid"), _uuid, _of_type(UUID), str, lambda value: str(_uuid(value)),
        _from_text(UUID, "the text of a UUID"),
    ),
}  # fmt: skip
"""The logical types by base type and name. In JSON they are numbers, as the base type says."""

PRIMITIVES = {
    "null": NULL,
    "boolean": BOOLEAN,
    "int": INT,
    "long": LONG,
    "float": FLOAT,
    "double": DOUBLE,
    "string": STRING,
    "bytes": BYTES,
}


def _iso_leaf(check: Convert, fits: Convert, parse: Callable[[str], Any], words: str) -> Shape:
    """Dates and times in JSON where the application chooses no logical type: ISO 8601 text."""
    iso: Convert = lambda value: check(value).isoformat()  # noqa: E731
    return Shape("string", iso, _from_text(parse, words, check), iso, fits)


BY_TYPE: dict[type, dict[Form, Shape]] = {
    bool: BOOLEAN,
    int: LONG,
    float: DOUBLE,
    str: STRING,
    bytes: BYTES,
    datetime: {
        Form.AVRO: LOGICAL["long", "timestamp-micros"][Form.AVRO],
        Form.JSON: _iso_leaf(
            _moment,
            LOGICAL["long", "timestamp-micros"][Form.JSON].fits,
            datetime.fromisoformat,
            "an ISO 8601 moment with a time zone",
        ),
    },
    date: {
        Form.AVRO: LOGICAL["int", "date"][Form.AVRO],
        Form.JSON: _iso_leaf(
            _day, LOGICAL["int", "date"][Form.JSON].fits, date.fromisoformat, "an ISO 8601 date"
        ),
    },
    time: {
        Form.AVRO: LOGICAL["long", "time-micros"][Form.AVRO],
        Form.JSON: _iso_leaf(
            _time_of_day, _of_type(time), time.fromisoformat, "an ISO 8601 time without a zone"
        ),
    },
    UUID: LOGICAL["string", "uuid"],
}
"""The shapes of Python's own types."""


def decimal_shape(form: Form, avro: Any) -> Shape:
    """A decimal number; in JSON, text. Java's JSON has a number, which is read, too.

    In Avro, plain data are the bytes of the unscaled number.
    """
    precision, scale, size = avro["precision"], avro.get("scale", 0), avro.get("size")
    longest = size if size is not None else precision // 2 + 1  # a digit takes less than half a byte

    def check(value: Any) -> Decimal:
        number: Decimal = _decimal(value)
        if not number.is_finite():
            raise wrong("a finite Decimal", value)
        _, digits, exponent = number.as_tuple()
        assert isinstance(exponent, int)
        if -exponent > scale or len(digits) + exponent + scale > precision:
            raise wrong(f"a Decimal of at most {precision} digits, {scale} of them decimal places", value)
        return number

    def encode(value: Any) -> bytes:
        sign, digits, exponent = check(value).as_tuple()
        assert isinstance(exponent, int)
        zeros = exponent + scale
        number = int("".join(map(str, digits)) + "0" * zeros) * (-1 if sign else 1)
        length = number.bit_length() // 8 + 1 if size is None else size
        try:
            return number.to_bytes(length, "big", signed=True)
        except OverflowError:
            raise wrong(f"a Decimal that {size} bytes can hold", value) from None

    def decode_bytes(data: Any) -> Decimal:
        # The number is made of few bytes only: the time grows with their square.
        if len(_bytes_like(data)) > longest:
            raise WrongValueError(f"a Decimal of at most {precision} digits, not of {len(data)} bytes")
        return check(decimal_of(data, scale))

    def default(value: Any) -> str:
        return str(encode(value), "latin-1")

    if form is Form.AVRO:
        return Shape(avro, encode, decode_bytes, default, _of_type(Decimal))
    from_text = _from_text(Decimal, "the text of a decimal number", check)

    def decode(value: Any) -> Any:
        return from_text(str(value) if type(value) in (int, float) else value)

    return Shape(avro, lambda value: str(check(value)), decode, default, _of_type(Decimal))


def decimal_of(data: bytes, scale: int) -> Decimal:
    """Return the decimal number that Avro writes as these bytes."""
    sign, digits, _ = Decimal(int.from_bytes(data, "big", signed=True)).as_tuple()
    return Decimal((sign, digits, -scale))


def fixed_shape(form: Form, avro: Any) -> Shape:
    size = avro["size"]
    words = f"{size} bytes"

    def check(value: Any) -> bytes:
        data: bytes = _bytes_like(value)
        if len(data) != size:
            raise WrongValueError(f"{words}, not {len(data)}")
        return data

    fits = BYTES[form].fits
    default = BYTES[form].default
    if form is Form.AVRO:
        return Shape(avro, check, None, default, fits)
    decode = _from_text(lambda text: check(b64decode(text, validate=True)), f"Base64 text of {words}")
    return Shape(avro, lambda value: b64encode(check(value)).decode(), decode, default, fits)


def symbols_shape(avro: Any) -> Shape:
    """An enum whose values are the symbols themselves, as text."""
    symbols = frozenset(avro["symbols"])
    words = f"one of {', '.join(avro['symbols'])}"

    def check(value: Any) -> Any:
        if isinstance(value, str) and value in symbols:
            return value
        raise wrong(words, value)

    return Shape(avro, check, check, same, lambda value: isinstance(value, str) and value in symbols)
