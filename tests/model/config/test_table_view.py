"""`TableViewSpec` checks its limits, and makes the spec of its reader."""

from typing import Any

import pytest

from pulsar_sansio.model.config import TableViewSpec
from pulsar_sansio.model.errors import InvalidConfiguration, InvalidTopicName
from pulsar_sansio.model.message_id import EARLIEST


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"receiver_queue_size": 0}, "receiver_queue_size: a whole number from 1"),
        ({"receiver_queue_size": 1_000_001}, "receiver_queue_size"),
        ({"max_size": 0}, "max_size"),
        ({"partitions_update_interval": 0.0}, "partitions_update_interval"),
        ({"name": ""}, "name"),
    ],
)
def test_a_bad_option_is_named(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidConfiguration, match=words):
        TableViewSpec("a", **options)


def test_a_bad_topic_is_refused_at_once() -> None:
    with pytest.raises(InvalidTopicName):
        TableViewSpec("a/b")


def test_its_reader_reads_everything() -> None:
    reader = TableViewSpec(("a", "b"), name="me", receiver_queue_size=7).reader()
    assert (reader.topic, reader.start, reader.name) == (("a", "b"), EARLIEST, "me")
    assert reader.receiver_queue_size == 7


def test_only_persistent_topics_are_read_compacted() -> None:
    assert TableViewSpec("a").reader().read_compacted
    assert not TableViewSpec("non-persistent://public/default/a").reader().read_compacted
    assert not TableViewSpec(("a", "non-persistent://public/default/b")).reader().read_compacted
