"""`ReaderSpec` checks where it starts, and makes the spec of its consumer."""

from typing import Any

import pytest

from pulsar_sansio.model.config import ReaderSpec
from pulsar_sansio.model.errors import InvalidConfiguration
from pulsar_sansio.model.message_id import EARLIEST, LATEST, MessageId

FIRST = "persistent://public/default/a"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"start": None}, "one of them, and not both"),
        ({"start": EARLIEST, "start_rollback": 1.0}, "one of them, and not both"),
        ({"start": True}, "a message id, a time or a checkpoint"),
        ({"start": "earliest"}, "a message id, a time or a checkpoint"),
        ({"start": -1}, "milliseconds since 1970, not -1"),
        ({"start": 2**63}, "milliseconds since 1970"),
        ({"start": {FIRST: "1:2"}}, "a mapping of names of topics to message ids"),
        ({"start": 5, "start_inclusive": True}, "only with a message id"),
        ({"start": EARLIEST, "raw_batches": 1}, "raw_batches: True or False"),
        ({"start": EARLIEST, "subscription": " "}, "subscription: text"),
        ({"start": EARLIEST, "key_hash_ranges": ((5, 4),)}, "key_hash_ranges"),
    ],
)
def test_a_bad_option_is_named(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidConfiguration, match=words):
        ReaderSpec("a", **options)


def test_an_id_is_of_one_topic_or_of_its_partition() -> None:
    ReaderSpec("a", MessageId(1, 2))
    ReaderSpec("a-partition-3", MessageId(1, 2, partition=3))
    ReaderSpec(("a", "b"), LATEST)
    for topic, start in ((("a", "b"), MessageId(1, 2)), ("a-partition-3", MessageId(1, 2, partition=4))):
        with pytest.raises(InvalidConfiguration, match="for several, a mapping of names"):
            ReaderSpec(topic, start)


def test_its_subscription_is_not_durable_and_begins_at_the_id() -> None:
    spec = ReaderSpec("a", MessageId(1, 2), start_inclusive=True, subscription_prefix="mine").reading("xyz")
    assert (spec.subscription, spec.durable) == ("mine-xyz", False)
    assert (spec.start_message_id, spec.start_message_id_inclusive) == (MessageId(1, 2), True)
    assert ReaderSpec("a", EARLIEST, subscription="given").reading("xyz").subscription == "given"


def test_a_time_and_a_checkpoint_begin_at_the_earliest_message() -> None:
    """The reader moves on from there by itself."""
    timed = ReaderSpec("a", 1234).reading("x")
    assert (timed.start_message_id, timed.start_time) == (EARLIEST, 1234)
    position = {FIRST: MessageId(1, 2)}
    restored = ReaderSpec("a", position).reading("x")
    assert (restored.start_message_id, restored.positions) == (EARLIEST, position)


def test_a_rollback_leaves_the_start_to_the_broker() -> None:
    spec = ReaderSpec("a", None, start_rollback=60.0).reading("x")
    assert (spec.start_message_id, spec.start_message_rollback) == (None, 60.0)
