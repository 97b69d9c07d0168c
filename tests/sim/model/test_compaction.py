"""Compaction in the reference model: which messages a reader of the compacted topic may miss."""

import pytest

from pulsar_sansio.wire import (
    MessageMetadata,
    SingleMessageMetadata,
    encode_message_metadata,
    encode_single,
    pack_payload,
)
from pulsar_sim.model.compaction import Compacted
from pulsar_sim.model.records.entry import StoredEntry
from tests.sim.model.scenes import TopicScene


def given(*entries: str, horizon: int) -> tuple[TopicScene, Compacted]:
    scene = TopicScene()
    scene.store_all(*entries)
    compacted = scene.topic.compacted
    compacted.begins((1, horizon))
    return scene, compacted


@pytest.mark.parametrize(
    ("horizon", "missing"),
    [
        (-1, []),
        (0, []),
        (1, [(1, 1, 0)]),
        (2, [(1, 0, 0), (1, 1, 0)]),
        (4, [(1, 0, 0), (1, 1, 0), (1, 2, 0), (1, 2, 1)]),
    ],
)
def test_up_to_the_horizon_older_messages_of_a_key_and_those_without_one_may_be_missing(
    horizon: int, missing: list[tuple[int, int, int]]
) -> None:
    """Entries: a; none; a and b; a; b."""
    scene, compacted = given("a", ".", "ab", "a", "b", horizon=horizon)
    positions = [
        (*position, index)
        for position in scene.topic.order
        for index in range(len(scene.topic.log[position].messages))
    ]
    assert [each for each in positions if compacted.may_lack(each)] == missing


@pytest.mark.parametrize("payload", [None, b""])
def test_a_message_that_deletes_its_key_may_be_missing_with_those_before_it(payload: bytes | None) -> None:
    scene, compacted = given("a", horizon=1)
    scene.store((1, 1), "a", payload)
    assert compacted.may_lack((1, 0, 0))
    assert compacted.may_lack((1, 1, 0))


def test_the_horizon_never_goes_back() -> None:
    _, compacted = given("a", "a", horizon=1)
    compacted.begins((1, 0))
    assert compacted.horizon == (1, 1)
    assert compacted.may_lack((1, 0, 0))


def test_an_entry_that_becomes_known_later_counts() -> None:
    scene, compacted = given("a", horizon=9)
    assert not compacted.may_lack((1, 0, 0))
    scene.store((1, 4), "a")
    assert compacted.may_lack((1, 0, 0))
    assert compacted.last_of_keys() == {"a": ((1, 4, 0), b"v")}
    scene.store((2, 0), "a")
    assert compacted.last_of_keys() == {"a": ((1, 4, 0), b"v")}, "it lies behind the horizon"
    assert [each for each, _ in compacted.messages_of_keys()["a"]] == [(1, 0, 0), (1, 4, 0), (2, 0, 0)]


@pytest.mark.parametrize(
    ("position", "read", "later"),
    [
        ((1, 0, 0), (1, 0), True),
        ((1, 0, 0), (1, 2), False),
        ((1, 2, 0), (1, 0), False),
        ((1, 3, 0), (1, 0), False),
        ((-1, -1, -1), (1, 0), False),
    ],
)
def test_a_later_message_of_the_key_stands_for_it_unless_it_was_read(
    position: tuple[int, int, int], read: tuple[int, int], later: bool
) -> None:
    _, compacted = given("a", "b", "a", "a", horizon=2)
    assert compacted.comes_later("a", position, read) == later


def batch(*messages: tuple[str, bool]) -> bytes:
    """A batch: each message's payload, and if compaction has removed it."""
    body = b"".join(
        encode_single(
            SingleMessageMetadata(sequence_id=place, compacted_out=removed), b"" if removed else text.encode()
        )
        for place, (text, removed) in enumerate(messages)
    )
    metadata = MessageMetadata("p", 0, 0, num_messages_in_batch=len(messages))
    return b"".join(pack_payload(encode_message_metadata(metadata), body))


WHOLE = batch(("x", False), ("y", False))


@pytest.mark.parametrize(
    ("payload", "left"),
    [
        (WHOLE, True),
        (batch(("x", True), ("y", False)), True),
        (batch(("x", False), ("y", True)), False),
        (batch(("x", True), ("y", True)), False),
        (batch(("z", False), ("y", False)), False),
        (batch(("x", False)), False),
        (batch(("x", True), ("y", False), ("z", False)), False),
    ],
)
def test_an_entry_lacks_only_messages_that_may_be_missing(payload: bytes, left: bool) -> None:
    """The first message of the batch has a later one of its key, and the second has none."""
    scene = TopicScene()
    entry = StoredEntry(WHOLE, (scene.sent("a"), scene.sent("b")))
    scene.topic.stored((1, 0), entry)
    scene.store((1, 1), "a")
    compacted = scene.topic.compacted
    assert not compacted.is_left_of((1, 0), entry, payload), "no compaction has begun"
    compacted.begins((1, 1))
    assert compacted.is_left_of((1, 0), entry, payload) == left
