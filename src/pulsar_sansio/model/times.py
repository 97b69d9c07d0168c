"""Times as `datetime`: between the protocol's milliseconds since 1970 and Python's aware datetimes.

This module converts values; it asks no clock. A datetime without a time zone is refused, because it would
mean another moment on every machine.
"""

from datetime import UTC, datetime, timedelta

from .errors import LocalProtocolError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def milliseconds_of(name: str, when: datetime, error: type[LocalProtocolError] = LocalProtocolError) -> int:
    """Milliseconds since 1970, rounded down. Raises `error`, which names the option `name`, for a datetime
    without a time zone."""
    if when.utcoffset() is None:
        raise error(
            f"{name}: a datetime with a time zone, such as datetime(2026, 1, 31, tzinfo=timezone.utc), "
            f"not {when!r}"
        )
    return (when - _EPOCH) // _MILLISECOND


def milliseconds_or_same(name: str, value: object, error: type[LocalProtocolError]) -> object:
    """Milliseconds of a datetime; every other value as it is, for the caller to check."""
    return milliseconds_of(name, value, error) if isinstance(value, datetime) else value


def datetime_of(milliseconds: int) -> datetime:
    """The moment so many milliseconds after 1970, in UTC. Raises `ValueError` beyond the year 9999, which a
    foreign producer may write."""
    try:
        return _EPOCH + milliseconds * _MILLISECOND
    except OverflowError:
        raise ValueError(f"{milliseconds} ms since 1970 is beyond the year 9999") from None
