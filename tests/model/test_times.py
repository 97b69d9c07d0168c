"""Datetimes for the protocol's milliseconds, and back."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_sansio import (
    InvalidMessage,
    LocalProtocolError,
    OutgoingMessage,
    datetime_of,
    milliseconds_of,
)
from pulsar_sansio.model.config.checks import MAX_UINT63

LAST = milliseconds_of("t", datetime.max.replace(tzinfo=UTC))


@given(st.integers(0, LAST))
def test_there_and_back(milliseconds: int) -> None:
    when = datetime_of(milliseconds)
    assert when.utcoffset() == timedelta(0)
    assert milliseconds_of("t", when) == milliseconds
    elsewhere = when.replace(tzinfo=timezone(timedelta(hours=1)))
    assert milliseconds_of("t", elsewhere) == milliseconds - 3_600_000


def test_rounded_down_to_the_millisecond() -> None:
    assert milliseconds_of("t", datetime(1970, 1, 1, 0, 0, 1, 1_999, tzinfo=UTC)) == 1001


def test_without_a_time_zone_it_is_no_moment() -> None:
    with pytest.raises(LocalProtocolError, match="start: a datetime with a time zone, such as"):
        milliseconds_of("start", datetime(2026, 1, 1))


@pytest.mark.parametrize("milliseconds", [LAST + 1, 2**64 - 1])
def test_beyond_the_calendar(milliseconds: int) -> None:
    with pytest.raises(ValueError, match=f"{milliseconds} ms since 1970 is beyond the year 9999"):
        datetime_of(milliseconds)


def test_an_outgoing_message_keeps_milliseconds() -> None:
    when = datetime(2026, 2, 3, 4, 5, 6, 789_000, tzinfo=UTC)
    message = OutgoingMessage(b"x", event_time=when, deliver_at=when + timedelta(seconds=1))
    assert (datetime_of(message.event_time), message.deliver_at) == (when, message.event_time + 1000)
    assert type(message.event_time) is int


@pytest.mark.parametrize("field", ["event_time", "deliver_at"])
@pytest.mark.parametrize(
    "wrong", [datetime(2026, 1, 1), datetime(1969, 1, 1, tzinfo=UTC), -1, 2**63, 1.5, "now"]
)
def test_a_wrong_time_of_an_outgoing_message(field: str, wrong: object) -> None:
    with pytest.raises(InvalidMessage, match=f"^{field}: a datetime ") as raised:
        OutgoingMessage(b"x", **{field: wrong})  # type: ignore[arg-type]
    assert isinstance(wrong, datetime) or f"milliseconds since 1970, 0 to {MAX_UINT63}" in str(raised.value)
