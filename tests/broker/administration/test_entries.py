"""The entries, properties, permissions and schemas that administrators read and keep."""

import pytest

from pulsar_sansio.broker import NotApplicable, NotFound
from pulsar_sansio.model.errors import InvalidConfiguration
from pulsar_sansio.model.message_id import MessageId
from tests.broker.peer import TOPIC, WALL, World

NAMESPACE = "public/default"
P = "persistent://public/default/p"


def test_entries_by_id_by_place_and_by_time() -> None:
    world = World()
    peer = world.connect()
    peer.producer()
    peer.publish(b"a", 0, publish_time=WALL)
    peer.publish(b"b", 1, publish_time=WALL + 1000)
    peer.publish_batch([b"c", b"d"], 2)
    (_, ledger, _), *_ = peer.receipts()
    broker = world.broker
    assert broker.topic_administration.read_entry(TOPIC, ledger, 1).payload == b"b"
    assert broker.topic_administration.read_entry(TOPIC, ledger, 2).metadata.num_messages_in_batch == 2
    for absent in ((ledger, 3), (ledger, -1), (ledger + 1, 0), (-1, 0)):
        with pytest.raises(NotFound):
            broker.topic_administration.read_entry(TOPIC, *absent)
    assert broker.topic_administration.examine(TOPIC, 1, from_end=False).payload == b"a"
    assert broker.topic_administration.examine(TOPIC, 2, from_end=True).payload == b"b"
    assert broker.topic_administration.examine(TOPIC, 99, from_end=True).payload == b"a"
    assert broker.topic_administration.message_id_at(TOPIC, WALL + 1).entry_id == 1
    assert broker.topic_administration.message_id_at(TOPIC, WALL + 9999) == MessageId(ledger, 3, -1)


def test_an_entry_is_not_read_before_it_is_durable() -> None:
    world = World()
    peer = world.connect()
    peer.producer()
    world.hold_writes = True
    peer.publish(b"a")
    log = world.broker.topics.by_name[TOPIC].log  # type: ignore[union-attr]
    ledger, entry = log.position(0)
    with pytest.raises(NotFound):
        world.broker.topic_administration.read_entry(TOPIC, ledger, entry)
    with pytest.raises(NotFound):
        world.broker.topic_administration.examine(TOPIC, 1, from_end=True)
    world.sync()
    assert world.broker.topic_administration.read_entry(TOPIC, ledger, entry).payload == b"a"


def test_only_single_persistent_topics_have_entries() -> None:
    world = World()
    world.broker.topic_administration.create_partitioned_topic(0, P, 2)
    world.broker.topic_administration.create_topic(0, "non-persistent://public/default/n")
    for topic in (P, "non-persistent://public/default/n"):
        with pytest.raises(NotApplicable):
            world.broker.topic_administration.read_entry(topic, 0, 0)
        with pytest.raises(NotApplicable):
            world.broker.topic_administration.message_id_at(topic, 0)


def test_properties_of_namespaces_and_topics_are_changed_one_by_one() -> None:
    world = World()
    broker = world.broker
    broker.topic_administration.create_topic(0, TOPIC, {"a": "1"})
    broker.administration.update_topic_properties(0, TOPIC, {"b": "2"})
    broker.administration.remove_topic_property(0, TOPIC, "a")
    broker.administration.remove_topic_property(0, TOPIC, "never")
    broker.administration.update_namespace_properties(0, NAMESPACE, {"k": "v", "l": "w"})
    broker.administration.remove_namespace_properties(0, NAMESPACE, "l")
    with pytest.raises(InvalidConfiguration):
        broker.administration.update_namespace_properties(0, NAMESPACE, {"a": "b" * 70_000})
    for call in (
        broker.administration.update_namespace_properties,
        broker.administration.update_topic_properties,
    ):
        with pytest.raises(NotFound):
            call(0, "persistent://public/no/t" if "topic" in call.__name__ else "public/no", {})
    world.pump()
    world.start()
    assert world.broker.administration.topic_properties(TOPIC) == {"b": "2"}
    assert world.broker.administration.namespace_properties(NAMESPACE) == {"k": "v"}
    world.broker.administration.remove_namespace_properties(0, NAMESPACE)
    world.pump()
    world.start()
    assert world.broker.administration.namespace_properties(NAMESPACE) == {}


def test_permissions_are_kept_and_go_with_what_they_are_for() -> None:
    world = World()
    broker = world.broker
    broker.administration.create_namespace(0, "public/n")
    broker.topic_administration.create_topic(0, "persistent://public/n/t")
    broker.administration.grant(0, "public/n", {"r": (action for action in ["produce"]), "s": ["consume"]})
    broker.administration.grant(0, "public/n", {"s": []})
    broker.administration.grant(0, "persistent://public/n/t", {"u": ["consume", "produce", "consume"]})
    broker.administration.grant_subscription(0, "public/n", {"sub": (role for role in "ab")})
    with pytest.raises(InvalidConfiguration):
        broker.administration.grant(0, "public/n", {"r": ["fly"]})
    with pytest.raises(InvalidConfiguration):
        broker.administration.grant(0, "public/n", {str(number): ["produce"] for number in range(1001)})
    with pytest.raises(InvalidConfiguration):
        broker.administration.grant_subscription(0, "public/n", {"sub": ["r" * 70_000]})
    with pytest.raises(NotFound):
        broker.administration.grant(0, "public/none", {"r": ["produce"]})
    world.pump()
    world.start()
    grants = world.broker.administration.grants_of("public/n")
    assert dict(grants.roles) == {"r": ("produce",)}
    assert dict(grants.subscriptions) == {"sub": ("a", "b")}
    assert world.broker.administration.topic_grants("public/n") == {
        "persistent://public/n/t": {"u": ("consume", "produce")}
    }
    world.broker.topic_administration.delete_topic(0, "persistent://public/n/t")
    world.broker.administration.delete_namespace(0, "public/n")
    world.pump()
    world.start()
    world.broker.administration.create_namespace(0, "public/n")
    world.broker.topic_administration.create_topic(0, "persistent://public/n/t")
    for scope in ("public/n", "persistent://public/n/t"):
        assert not world.broker.administration.grants_of(scope).roles


def test_a_schema_is_registered_deleted_and_counted_on() -> None:
    world = World()
    broker = world.broker
    assert broker.schema_administration.register_schema(0, TOPIC, "STRING", properties={"a": "b"}) == 0
    assert broker.schema_administration.register_schema(0, TOPIC, "STRING") == 0
    with pytest.raises(NotApplicable, match="Incompatible schema"):
        broker.schema_administration.register_schema(0, TOPIC, "INT32")
    with pytest.raises(InvalidConfiguration):
        broker.schema_administration.register_schema(0, TOPIC, "AVRO")
    with pytest.raises(NotFound):
        broker.schema_administration.register_schema(0, "persistent://public/no/t", "STRING")
    found = broker.schema_administration.schema(TOPIC)
    assert found == {
        "version": 0,
        "type": "STRING",
        "timestamp": WALL,
        "data": "",
        "properties": {"a": "b"},
    }
    for half in ({"\ud800": "b"}, {"a": "\ud800"}):
        with pytest.raises(InvalidConfiguration, match="surrogate"):
            broker.schema_administration.register_schema(0, TOPIC + "2", "STRING", properties=half)
    assert broker.schema_administration.delete_schema(0, TOPIC) == 1
    assert broker.schema_administration.delete_schema(0, TOPIC) == 1
    world.pump()
    world.start()
    with pytest.raises(NotFound):
        world.broker.schema_administration.schema(TOPIC)
    assert world.broker.schema_administration.register_schema(0, TOPIC, "LOCAL_DATE_TIME") == 2
    assert world.broker.schema_administration.schema(TOPIC, 2)["type"] == "LOCAL_DATE_TIME"
    with pytest.raises(NotFound):
        world.broker.schema_administration.schema(TOPIC, 0)
    assert world.broker.schema_administration.delete_schema(0, TOPIC, force=True) == -1
    assert world.broker.schema_administration.register_schema(0, TOPIC, "BOOLEAN") == 0
