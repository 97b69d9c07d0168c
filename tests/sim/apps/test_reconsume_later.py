"""Worlds in which messages are reconsumed later are drawn and pass, and the checks notice wrong copies."""

from functools import cache
from itertools import islice
from typing import Any

import pytest

from pulsar_sansio.client.letter_topics import letter_topics as letters
from pulsar_sansio.client.letter_topics.letter_topics import LetterTopics
from pulsar_sansio.model.config import ConsumerSpec, DeadLetterPolicy, ProducerSpec, SubscriptionType
from pulsar_sansio.wire import MessageMetadata
from pulsar_sim.checks.copy_frames import CopyWatch
from pulsar_sim.checks.encrypted_frames import EncryptionWatch
from pulsar_sim.engine.failures import Outcome
from pulsar_sim.engine.profile import Profile
from pulsar_sim.engine.randomness import Streams
from pulsar_sim.generate import draw
from pulsar_sim.model.records.consumer_record import ConsumerRecord
from pulsar_sim.model.records.producer_record import ProducerRecord
from pulsar_sim.model.records.sent import Sent
from pulsar_sim.model.records.subscription_record import SubscriptionRecord
from pulsar_sim.model.records.topic_record import TopicRecord
from pulsar_sim.model.reference_model import ReferenceModel
from pulsar_sim.model.retry_requests import DELAY, TIMES, Copy, RetryRequest
from pulsar_sim.world.world import World


@cache
def with_retries(count: int) -> list[tuple[int, Profile]]:
    found = ((seed, draw(Streams(seed))) for seed in range(2000))
    return list(islice((each for each in found if any(group.retry for group in each[1].groups)), count))


def test_they_pass() -> None:
    reconsume_later = letters_dead = 0
    for seed, profile in with_retries(12)[:6]:
        world = World(seed, profile)
        report = world.run()
        assert report.outcome is Outcome.PASSED, str(report)
        for name in world.model.copy_topics:
            if name in world.model.retry_topics:
                reconsume_later += len(world.model.topics[name].order)
            else:
                letters_dead += len(world.model.topics[name].order)
    assert reconsume_later
    assert letters_dead


def rules_broken() -> set[str]:
    return {World(seed, profile).run().rule for seed, profile in with_retries(12)}


def test_a_copy_that_counts_wrongly_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(letters, "times_reconsumed", lambda properties: 0)
    assert "INV-C10" in rules_broken()


def test_acknowledged_before_the_copy_is_safe_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    original = LetterTopics.reconsume_later

    def reconsume_later(self: Any, *arguments: Any) -> None:
        arguments[-1](None)
        original(self, *arguments)

    monkeypatch.setattr(LetterTopics, "reconsume_later", reconsume_later)
    assert rules_broken() & {"INV-C4", "INV-C10"}


def test_a_copy_that_does_not_wait_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    original = letters.copy_of

    def copy_of(message: Any, properties: Any, deliver_at: Any = None) -> Any:
        return original(message, properties)

    monkeypatch.setattr(letters, "copy_of", copy_of)
    assert "INV-C10" in rules_broken()


def test_a_copy_is_of_what_was_reconsumed_later_with_its_delay() -> None:
    """The request does not acknowledge all messages before it for another consumer."""
    topic, later = TopicRecord("t", False), TopicRecord("r", False)
    policy = DeadLetterPolicy(3, "d", "r")
    spec = ConsumerSpec("t", "s", subscription_type=SubscriptionType.FAILOVER, retry=True, dead_letter=policy)
    subscription = SubscriptionRecord(topic, "s", SubscriptionType.FAILOVER)
    sent = Sent(ProducerRecord("p", topic, ProducerSpec("t")), 0, b"1", None, {}, 0)
    at_once, in_time = (
        RetryRequest(ConsumerRecord(name, subscription, spec), (1, 0, 0), sent, delay, cumulative=True)
        for name, delay in (("a", 0), ("b", 300))
    )
    watch = CopyWatch(ReferenceModel(), EncryptionWatch(None))
    said = [(TIMES, "1"), (DELAY, "0")]
    metadata = MessageMetadata(producer_name="q", sequence_id=0, publish_time=5, properties=said)
    sources = watch._retry_sources(watch.opened(later, "q"), metadata, [in_time, at_once])
    assert [source.requested for source in sources] == [at_once]


def reconsumed_later_twice() -> tuple[RetryRequest, RetryRequest]:
    topic = TopicRecord("t", False)
    spec = ConsumerSpec("t", "s", subscription_type=SubscriptionType.SHARED, retry=True)
    record = ConsumerRecord("c", SubscriptionRecord(topic, "s", SubscriptionType.SHARED), spec)
    sent = Sent(ProducerRecord("p", topic, ProducerSpec("t")), 0, b"1", None, {}, 0)
    first, second = (RetryRequest(record, (1, 0, 0), sent, 0, cumulative=False) for _ in range(2))
    return first, second


def test_a_copy_is_counted_once() -> None:
    first, second = reconsumed_later_twice()
    copy = Copy(1)
    first.is_stored(copy)
    second.is_stored(copy)
    second.is_stored(copy)
    assert second.is_safe()
    assert not first.is_safe(), "there is one copy"
    first.is_stored(Copy(2))
    assert first.is_safe()


def test_the_first_copy_is_counted_that_may_be_its_own() -> None:
    """The copy was written before the second request; both copies are stored afterwards."""
    first, second = reconsumed_later_twice()
    early, late = Copy(1), Copy(2)
    first.is_stored(late)
    second.is_stored(late)
    first.is_stored(early)
    assert first.is_safe()
    assert second.is_safe()
