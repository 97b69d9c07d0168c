"""`Metadata`: the first namespaces, policies by level, and properties that are recorded."""

import pytest

from pulsar_sansio.broker import BrokerConfig
from pulsar_sansio.broker.admin_errors import NotFound
from pulsar_sansio.broker.metadata import Metadata
from pulsar_sansio.broker.outputs import Output
from pulsar_sansio.broker.policies import Policies
from pulsar_sansio.broker.records import PoliciesSaved, PropertiesSaved, TenantSaved
from pulsar_sansio.broker.storage.journal import Journal
from pulsar_sansio.broker.storage.store import StoredState
from pulsar_sansio.core.context import Context
from pulsar_sansio.model.errors import TopicNotFound
from pulsar_sansio.model.topic_name import TopicName

TOPIC = "persistent://public/default/t"


def metadata(state: StoredState | None = None) -> tuple[Metadata, Journal]:
    context: Context[Output] = Context(0, seed=1)
    journal = Journal(context, 0)
    return Metadata(BrokerConfig(), journal, state or StoredState()), journal


def test_a_fresh_broker_records_its_first_namespaces() -> None:
    found, journal = metadata()
    assert set(found.tenants) == {"public", "pulsar"}
    assert journal.records == [
        TenantSaved("public"),
        PoliciesSaved("public/default", Policies()),
        TenantSaved("pulsar"),
        PoliciesSaved("pulsar/system", Policies()),
    ]
    state = StoredState()
    for record in journal.records:
        state.apply(record)
    restored, journal = metadata(state)
    assert journal.records == []
    assert restored.policies == found.policies


def test_policies_of_a_partition_a_topic_and_a_namespace_in_this_order() -> None:
    found, _ = metadata()
    found.policies["public/default"] = Policies(max_producers=1, max_consumers=1, max_subscriptions=1)
    found.policies[TOPIC] = Policies(max_producers=2, max_consumers=2)
    found.policies[f"{TOPIC}-partition-3"] = Policies(max_producers=3)
    effective = found.effective_policies(TopicName.parse(f"{TOPIC}-partition-3"))
    assert (effective.max_producers, effective.max_consumers, effective.max_subscriptions) == (3, 2, 1)
    other = found.effective_policies(TopicName.parse(f"{TOPIC}-partition-4"))
    assert other.max_producers == 2
    assert found.effective_policies(TopicName.parse("x/y/t")) == found.defaults


def test_a_missing_namespace_is_an_error_to_clients_and_to_administrators() -> None:
    found, _ = metadata()
    found.policies[TOPIC] = Policies()
    found.check_namespace("public/default")
    found.require_namespace("public/default")
    with pytest.raises(TopicNotFound):
        found.check_namespace("public/other")
    for wrong in ("public/other", TOPIC, None, 7):
        with pytest.raises(NotFound):
            found.require_namespace(wrong)  # type: ignore[arg-type]


def test_partitioned_topics_are_those_of_one_namespace() -> None:
    found, _ = metadata()
    found.partitions.update({TOPIC: 3, "persistent://public/default/a": 2, "persistent://t/n/a": 2})
    assert found.partitioned_topics("public/default") == ["persistent://public/default/a", TOPIC]


def test_no_properties_remove_those_there_are() -> None:
    found, journal = metadata()
    journal.records.clear()
    found.set_properties(TOPIC, (("a", "b"),))
    assert found.properties[TOPIC] == (("a", "b"),)
    found.set_properties(TOPIC, ())
    assert TOPIC not in found.properties
    assert journal.records == [PropertiesSaved(TOPIC, (("a", "b"),)), PropertiesSaved(TOPIC, ())]


def test_nothing_is_kept_of_a_deleted_scope() -> None:
    found, _ = metadata()
    found.policies[TOPIC] = Policies()
    found.set_properties(TOPIC, (("a", "b"),))
    found.discard(TOPIC)
    found.discard(TOPIC)
    assert TOPIC not in found.policies
    assert TOPIC not in found.properties
