"""Places in a topic on the command line: words, times and message ids."""

import argparse
from datetime import datetime, timedelta, timezone

import pytest

from pulsar_sansio import MessageId, TopicMessageId
from pulsar_trio_command.options.positions import FORMS, place_in, position


@pytest.mark.parametrize("word", ["earliest", "latest"])
def test_a_word_is_itself(word: str) -> None:
    assert position(word) == word


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("0", 0),
        ("1700000000000", 1_700_000_000_000),
        (str(2**63 - 1), 2**63 - 1),
        ("7:42", MessageId(7, 42)),
        ("7:42:-1", MessageId(7, 42)),
        ("7:42:3", MessageId(7, 42, 3)),
        ("7:42:-1:5", MessageId(7, 42, -1, 5)),
        ("0:0:0:0", MessageId(0, 0, 0, 0)),
        (f"{2**63 - 1}:0", MessageId(2**63 - 1, 0)),
    ],
)
def test_milliseconds_and_message_ids(text: str, place: int | MessageId) -> None:
    assert position(text) == place


@pytest.mark.parametrize("message_id", [MessageId(7, 42), MessageId(7, 42, 3), MessageId(7, 42, -1, 5)])
def test_an_id_as_it_is_printed(message_id: MessageId) -> None:
    assert position(str(message_id)) == message_id


def test_a_time_with_a_zone_and_one_of_this_machine() -> None:
    there = datetime(2026, 1, 31, 12, tzinfo=timezone(timedelta(hours=1)))
    assert position("2026-01-31T12:00+01:00") == there
    here = position("2026-01-31")
    assert isinstance(here, datetime)
    assert here.tzinfo is not None
    assert here.replace(tzinfo=None) == datetime(2026, 1, 31)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "first",
        "Latest",
        "-1",
        str(2**63),
        "٣",
        f"{2**63}:0",
        f"0:{2**63}",
        "7:42:2147483648",
        "7:42:0:2147483648",
        "7:42:-2",
        "7:42:0:-1",
        "7:42:",
        "7:42:0:0:0",
        "٣:42",
        "2026-13-01",
    ],
)
def test_what_is_no_place(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError) as caught:
        position(text)
    assert str(caught.value) == f"{FORMS}, not {text!r}"


def test_an_id_that_names_a_partition_needs_its_topic() -> None:
    partition = MessageId(7, 42, 3)
    assert place_in("t", partition) == TopicMessageId("t", partition)
    for place in (MessageId(7, 42), "latest", 5):
        assert place_in("t", place) is place
