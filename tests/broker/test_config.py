"""`BrokerConfig` checks its options, and is the lowest level of policies."""

from typing import Any

import pytest

from pulsar_sansio.broker import BrokerConfig
from pulsar_sansio.broker.policies import Policies
from pulsar_sansio.model.errors import InvalidConfiguration


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"protocol_version": 11}, "protocol_version: a whole number from 12 to 21"),
        ({"protocol_version": True}, "protocol_version"),
        ({"max_message_size": 1023}, "max_message_size: a whole number from 1024"),
        ({"ledger_max_entries": 0}, "ledger_max_entries: a whole number from 1"),
        ({"auto_topic_partitions": 10_001}, "auto_topic_partitions"),
        ({"max_unacked_messages_per_consumer": -1}, "max_unacked_messages_per_consumer"),
        ({"default_policies": None}, "default_policies: Policies"),
        ({"default_policies": Policies(deduplication=True)}, "deduplication is an option of its own"),
        ({"reached_end_of_topic": "always"}, "'not to C[+][+]' or 'never', not 'always'"),
    ],
)
def test_a_bad_option_is_named(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidConfiguration, match=words):
        BrokerConfig(**options)


def test_options_and_default_policies_are_one_level() -> None:
    policies = BrokerConfig(
        deduplication=True, default_policies=Policies(max_producers=7, message_ttl=5)
    ).policies()
    assert (policies.deduplication, policies.max_producers, policies.message_ttl) == (True, 7, 5)
    assert (policies.max_consumers, policies.retention_time) == (0, 0)
