"""`SchemaVersions`: consumers of one topic share the definitions and the questions for them."""

from typing import Any

from pulsar_sansio.client.schemas import schema_versions
from pulsar_sansio.client.schemas.schema_versions import TopicVersions
from pulsar_sansio.model.config import ConsumerSpec
from pulsar_sansio.model.schema import SchemaInfo, SchemaType
from pulsar_sansio.model.topic_name import TopicName
from pulsar_sansio.wire import encode_message, proto
from tests.client.broker_script import entry_bytes
from tests.client.schemas.schema_script import NEW, TOPIC, Order, SchemaScript, payload, version
from tests.client.topics_script import full, ready


class TwoConsumers(SchemaScript):
    """A second consumer of the topic, on another subscription and the same connection."""

    def __init__(self) -> None:
        super().__init__()
        self.second = self.client.subscribe(self.now, ConsumerSpec("t", "other", schema=NEW))
        (subscribe,) = self.expect("SUBSCRIBE")
        self.say("SUCCESS", proto.CommandSuccess(request_id=subscribe.request_id))
        self.frames()
        self.outputs()

    def order_for_second(self, entry: int, number: int) -> None:
        stored = entry_bytes(payload(entry, number), schema_version=version(number))
        self.bytes(b"".join(encode_message(1, 1, entry, stored=stored)))
        self.pump()

    def values_of_second(self) -> list[Any]:
        return [message.value for message in self.client.take(self.now, self.second, 100)]


def test_a_question_in_flight_is_shared() -> None:
    s = TwoConsumers()
    s.order(1, 0)
    s.order_for_second(1, 0)
    assert s.asked() == [(TOPIC, version(0))]
    s.answer(0)
    assert (s.values(), s.values_of_second()) == ([Order("o1", 1)], [Order("o1", 1)])


def test_a_definition_is_known_to_the_next_consumer() -> None:
    s = TwoConsumers()
    s.order(1, 0)
    s.asked()
    s.answer(0)
    s.order_for_second(1, 0)
    assert s.asked() == []
    assert s.values_of_second() == [Order("o1", 1)]


def test_a_consumer_that_ends_leaves_the_question_to_the_other_one() -> None:
    s = TwoConsumers()
    s.order(1, 0)
    s.order_for_second(1, 0)
    s.asked()
    question = s.questions
    s.close()
    (close,) = s.expect("CLOSE_CONSUMER")
    s.say("SUCCESS", proto.CommandSuccess(request_id=close.request_id))
    s.questions = question
    s.answer(0)
    assert s.values_of_second() == [Order("o1", 1)]


def test_a_question_outlives_its_consumer_and_serves_the_next_one() -> None:
    """A new consumer of the topic does not ask for what was asked for already."""
    s = SchemaScript()
    s.order(1, 0)
    s.asked()
    question = s.questions
    s.close()
    (close,) = s.expect("CLOSE_CONSUMER")
    s.say("SUCCESS", proto.CommandSuccess(request_id=close.request_id))
    next_one = s.client.subscribe(s.now, ConsumerSpec("t", "other", schema=NEW))
    (subscribe,) = s.expect("SUBSCRIBE")
    s.say("SUCCESS", proto.CommandSuccess(request_id=subscribe.request_id))
    s.frames()
    stored = entry_bytes(payload(1, 0), schema_version=version(0))
    s.bytes(b"".join(encode_message(subscribe.consumer_id, 1, 1, stored=stored)))
    s.pump()
    assert s.asked() == []
    s.questions = question
    s.answer(0)
    assert [message.value for message in s.client.take(s.now, next_one, 100)] == [Order("o1", 1)]
    s.client.close(s.now, next_one)
    (close,) = s.expect("CLOSE_CONSUMER")
    s.say("SUCCESS", proto.CommandSuccess(request_id=close.request_id))
    assert s.client._services.schemas._topics == {}


def test_definitions_are_forgotten_with_the_last_consumer_of_their_topic() -> None:
    s = TwoConsumers()
    versions = s.client._services.schemas
    for consumer in (s.consumer, s.second):
        assert TOPIC in versions._topics
        s.client.close(s.now, consumer)
        (close,) = s.expect("CLOSE_CONSUMER")
        s.say("SUCCESS", proto.CommandSuccess(request_id=close.request_id))
    assert versions._topics == {}


def test_a_consumer_leaves_the_definitions_to_those_of_its_partitions() -> None:
    """The consumers of the partitions are the users of the topic, once it turns out to have partitions."""
    world = ready("a", {"a": 2}, schema=NEW)
    versions = world.script.client._services.schemas
    assert versions._topics[full("a")].users == 2
    world.script.client.close(world.script.now, world.handle)
    world.answer()
    assert versions._topics == {}


def test_the_definitions_of_a_topic_have_limits() -> None:
    """Definitions that were used longest ago are dropped, beyond a number and beyond a size."""
    topic = TopicVersions(TopicName.parse("t"))
    for number in range(schema_versions.MAX_VERSIONS + 1):
        topic.keep(version(number), SchemaInfo(SchemaType.AVRO, data=b"x"))
    assert version(0) not in topic.known
    assert version(1) in topic.known
    topic.keep(version(1), SchemaInfo(SchemaType.AVRO, data=b"y"))  # the latest one, and one by its version
    assert topic.size == schema_versions.MAX_VERSIONS
    large = SchemaInfo(SchemaType.AVRO, data=b"x" * schema_versions.MAX_DEFINITION_BYTES)
    topic.keep(version(1000), large)
    assert list(topic.known) == [version(1000)]
    assert topic.size == schema_versions.MAX_DEFINITION_BYTES
