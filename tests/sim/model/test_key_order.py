"""The order of each key on a Key_Shared subscription: which earlier message a delivery has overtaken."""

from collections.abc import Callable

import pytest

from pulsar_sansio.model.config import SubscriptionType
from pulsar_sim.model.key_order import KeyOrder
from pulsar_sim.model.records.entry import StoredChunk, StoredEntry
from pulsar_sim.model.records.subscription_record import SubscriptionRecord
from tests.sim.model.scenes import TopicScene


def given(*entries: str) -> tuple[TopicScene, SubscriptionRecord, KeyOrder]:
    scene = TopicScene()
    scene.store_all(*entries)
    subscription = scene.subscription(SubscriptionType.KEY_SHARED)
    assert subscription.keys is not None
    return scene, subscription, subscription.keys


def test_the_first_message_of_the_key_comes_first() -> None:
    _, subscription, order = given("a", "b", "a", "a")
    assert order.overtaken("a", (1, 0, 0)) is None
    assert order.overtaken("b", (1, 1, 0)) is None, "another key does not matter"
    assert order.overtaken("a", (1, 2, 0)) == (1, 0, 0)
    subscription.delivered[1, 0, 0] = 1
    assert order.overtaken("a", (1, 2, 0)) is None
    assert order.overtaken("a", (1, 3, 0)) == (1, 2, 0)


def test_messages_of_a_batch_follow_each_other() -> None:
    _, subscription, order = given("aa", "a")
    assert order.overtaken("a", (1, 0, 1)) == (1, 0, 0)
    subscription.delivered[1, 0, 0] = 1
    assert order.overtaken("a", (1, 0, 1)) is None
    assert order.overtaken("a", (1, 1, 0)) == (1, 0, 1)


def test_an_entry_that_becomes_known_late_counts_in_its_place() -> None:
    scene, _, order = given("b", "b")
    scene.store((1, 5), "a")
    assert order.overtaken("a", (1, 5, 0)) is None
    scene.store((1, 4), "a")
    assert order.overtaken("a", (1, 5, 0)) == (1, 4, 0)


def acknowledge(scene: TopicScene, subscription: SubscriptionRecord) -> None:
    subscription.acknowledged.add((1, 0, 0))


def ask_for_it(scene: TopicScene, subscription: SubscriptionRecord) -> None:
    assert subscription.keys is not None
    subscription.keys.asked_for((1, 0))


def ask_for_everything(scene: TopicScene, subscription: SubscriptionRecord) -> None:
    assert subscription.keys is not None
    subscription.keys.asked_for_everything()


def drop_useless_chunks(scene: TopicScene, subscription: SubscriptionRecord) -> None:
    subscription.useless_chunks.add((1, 0))


def delete(scene: TopicScene, subscription: SubscriptionRecord) -> None:
    scene.topic.gone = 1


@pytest.mark.parametrize(
    "cause",
    [acknowledge, ask_for_it, ask_for_everything, drop_useless_chunks, delete],
    ids=lambda it: it.__name__,
)
def test_a_message_may_be_missing_for_a_cause(
    cause: Callable[[TopicScene, SubscriptionRecord], None],
) -> None:
    scene, subscription, order = given("a")
    scene.store((2, 0), "a")
    assert order.overtaken("a", (2, 0, 0)) == (1, 0, 0)
    cause(scene, subscription)
    assert order.overtaken("a", (2, 0, 0)) is None


def test_what_is_stored_after_everything_was_asked_for_is_in_order() -> None:
    scene, _, order = given("a")
    order.asked_for_everything()
    scene.store((2, 0), "a")
    scene.store((2, 1), "a")
    assert order.overtaken("a", (2, 1, 0)) == (2, 0, 0)


def test_everything_asked_for_stays_so_when_an_entry_becomes_known_late() -> None:
    scene, _, order = given("a")
    order.asked_for_everything()
    scene.store((2, 1), "a")
    scene.store((2, 0), "b")
    assert order.overtaken("a", (2, 1, 0)) is None


@pytest.mark.parametrize("kind", ["two keys", "a key and none", "delayed", "chunk"])
def test_an_entry_without_one_key_has_no_place_in_the_order(kind: str) -> None:
    """Such an entry overtakes nothing and is not overtaken."""
    scene, _, order = given()
    if kind == "chunk":
        sent = scene.sent("a")
        scene.topic.stored((1, 0), StoredEntry(b"c", (sent,), StoredChunk(0, 1, "u")))
    else:
        entry = scene.store((1, 0), {"two keys": "ab", "a key and none": "a.", "delayed": "a"}[kind])
        entry.source.deliver_at = 5 if kind == "delayed" else None
    scene.store((1, 1), "a")
    assert order.overtaken("a", (1, 1, 0)) is None
    scene.store((1, 2), "a")
    assert order.overtaken("a", (1, 2, 0)) == (1, 1, 0)
    scene.store((1, 3), "ab")
    assert order.overtaken("a", (1, 3, 0)) is None
