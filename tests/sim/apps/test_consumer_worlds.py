"""Features of some consumers are drawn, and dead letters are checked."""

import pytest

from pulsar_sansio.model.config import ConsumerSpec, DeadLetterPolicy, ProducerSpec, SubscriptionType
from pulsar_sansio.wire import MessageMetadata, Send, pack_payload
from pulsar_sim import Streams, draw
from pulsar_sim.checks.copy_frames import CopyProducerEnd, CopyWatch
from pulsar_sim.checks.encrypted_frames import EncryptionWatch
from pulsar_sim.engine.failures import ViolationError
from pulsar_sim.model.records.consumer_record import ConsumerRecord
from pulsar_sim.model.records.entry import StoredEntry
from pulsar_sim.model.records.producer_record import ProducerRecord
from pulsar_sim.model.records.sent import Sent
from pulsar_sim.model.records.subscription_record import SubscriptionRecord
from pulsar_sim.model.records.topic_record import TopicRecord
from pulsar_sim.model.reference_model import ReferenceModel

ORIGIN = {
    "ORIGIN_MESSAGE_ID": "5:0:-1",
    "REAL_TOPIC": "persistent://public/default/t",
    "REAL_SUBSCRIPTION": "s",
}


def test_every_feature_is_drawn() -> None:
    profiles = [draw(Streams(seed)) for seed in range(200)]
    consumers = [plan for profile in profiles for plan in profile.consumers]
    single_topic_seekers = [plan for profile in profiles for plan in profile.single_topic_seekers]
    for found in (
        [plan for plan in consumers if plan.timeout],
        [plan for plan in consumers if plan.forget_permille],
        [plan for plan in consumers if plan.halt_permille],
        [plan for plan in consumers if not plan.queue],
        [plan for plan in consumers if plan.dead_letters],
        [plan for plan in single_topic_seekers if plan.durable],
        [plan for plan in single_topic_seekers if not plan.durable],
    ):
        assert 0 < len(found) < len(consumers) / 4


class LetterTopics:
    """A topic with one message, a consumer that got it too often, and a dead-letter producer."""

    def __init__(self) -> None:
        self.model = ReferenceModel()
        topic, dead = (TopicRecord(f"persistent://public/default/{name}", False) for name in ("t", "dead"))
        self.model.topics = {topic.name: topic, dead.name: dead}
        self.subscription = topic.subscriptions["s"] = SubscriptionRecord(topic, "s", SubscriptionType.SHARED)
        spec = ConsumerSpec(topic.name, "s", SubscriptionType.SHARED, dead_letter=DeadLetterPolicy(1))
        self.consumer = self.model.consumers["c"] = ConsumerRecord("c", self.subscription, spec)
        self.consumer.too_often[5, 0] = 1
        producer = ProducerRecord("p", topic, ProducerSpec(topic=topic.name))
        topic.stored((5, 0), StoredEntry(b"entry", (Sent(producer, 0, b"payload", "key", {"n": "1"}, 7),)))
        self.watch = CopyWatch(self.model, EncryptionWatch(None))
        self.end: CopyProducerEnd = self.watch.opened(dead, f"{topic.name}-s-c-abcde-DLQ")

    def copy(self, payload: bytes = b"payload", key: str = "key", **properties: str) -> None:
        said = {"n": "1", **ORIGIN, **properties}
        metadata = MessageMetadata(
            producer_name="x",
            sequence_id=3,
            publish_time=1,
            properties=list(said.items()),
            partition_key=key,
            event_time=7,
        )
        stored = b"".join(pack_payload(metadata.encode(), payload))
        self.watch.wrote(self.end, Send(0, 3, payload=stored))


def test_a_copy_is_safe_with_its_receipt() -> None:
    letters = LetterTopics()
    letters.copy()
    assert not letters.subscription.copied
    letters.subscription.acknowledge_copied((5, 0))
    assert not letters.subscription.is_acknowledged((5, 0, 0))
    letters.watch.got_receipt(letters.end, Send(0, 3), 0)
    letters.subscription.acknowledge_copied((5, 0))
    assert letters.subscription.is_acknowledged((5, 0, 0))


def test_a_copy_without_a_cause() -> None:
    letters = LetterTopics()
    letters.consumer.too_often.clear()
    with pytest.raises(ViolationError, match="without a cause"):
        letters.copy()


def test_a_copy_is_whole_and_says_where_it_is_from() -> None:
    with pytest.raises(ViolationError, match="another message"):
        LetterTopics().copy(payload=b"else")
    with pytest.raises(ViolationError, match="another message"):
        LetterTopics().copy(key="else")
    with pytest.raises(ViolationError, match="another message"):
        LetterTopics().copy(n="else")
    with pytest.raises(ViolationError, match="where it is from"):
        LetterTopics().copy(REAL_TOPIC="else")
    with pytest.raises(ViolationError, match="not there"):
        LetterTopics().copy(ORIGIN_MESSAGE_ID="5:1:-1")
