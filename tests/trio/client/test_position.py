"""Places in a topic, as an application says them."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from pulsar_sansio import LocalProtocolError
from pulsar_trio.client.position import core_place

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("milliseconds", [0, 1, 2_105_981_513, 1_767_225_600_001, 2_198_993_433_338])
def test_a_time_is_exact(milliseconds: int) -> None:
    """In float seconds some are one less."""
    moment = EPOCH + timedelta(milliseconds=milliseconds)
    assert core_place(moment) == milliseconds
    assert core_place(moment.astimezone(timezone(timedelta(hours=5, minutes=30)))) == milliseconds


def test_of_a_part_of_a_millisecond_the_whole_one() -> None:
    """Messages have whole ones: what was published within it is not left out."""
    assert core_place(EPOCH + timedelta(microseconds=1999)) == 1


def test_a_time_without_zone_is_none() -> None:
    with pytest.raises(LocalProtocolError, match="time zone"):
        core_place(datetime(2026, 1, 1))
