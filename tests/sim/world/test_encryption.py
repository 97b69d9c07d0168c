"""Worlds with end-to-end encryption: each fate of a question happens, and no message is lost or shown."""

from typing import Any

import pytest

from pulsar_sansio.model.config import CompressionType, SubscriptionType
from pulsar_sim import Outcome, World
from pulsar_sim.engine.clock import MILLISECOND, SECOND
from pulsar_sim.engine.network import Pipe
from pulsar_sim.engine.profile import Profile
from pulsar_sim.engine.security.encryption_plan import EncryptionPlan
from pulsar_sim.runs.scenarios import quiet_profile


def profile_of(*, messages: int = 40, timeout: float = 0.0, **plan: Any) -> Profile:
    """Two clients with a Shared subscription, and encrypted messages."""
    profile = quiet_profile(consumers=2, clients=2, kind=SubscriptionType.SHARED, messages=messages)
    for consumer in profile.consumers:
        consumer.timeout, consumer.tick = timeout, 0.25
    profile.encryption = EncryptionPlan(**plan)
    profile.run_time = 4 * SECOND
    return profile


def passed(profile: Profile, seed: int = 1) -> World:
    world = World(seed, profile, keep_trace=True)
    report = world.run()
    assert report.outcome is Outcome.PASSED, str(report)
    return world


@pytest.mark.parametrize(
    ("fate", "plan"),
    [
        ("key_refused", {"refused_permille": 400}),
        ("key_wrong", {"wrong_permille": 400}),
        ("key_late", {"late_permille": 400}),
        ("key_missing", {"missing": SECOND}),
    ],
)
@pytest.mark.parametrize("timeout", [0.0, 0.5])
def test_keys_that_are_missing_for_a_while_lose_no_message(
    fate: str, plan: dict[str, int], timeout: float
) -> None:
    world = passed(profile_of(timeout=timeout, recipients=2, renewal=100 * MILLISECOND, **plan))
    assert world.faults[fate]
    [topic] = world.model.topics.values()
    assert {sent.outcome for record in world.model.producers.values() for sent in record.sent} <= {
        "confirmed",
        "failed",
    }
    assert all(not each.missing() for each in topic.subscriptions.values() if each.name != "audit")


@pytest.mark.parametrize("action", ["discard", "consume"])
def test_each_failure_action_happens(action: str) -> None:
    world = passed(profile_of(actions=[action], missing=2 * SECOND))
    [topic] = world.model.topics.values()
    discarded = any(each.discarded for each in topic.subscriptions.values())
    assert discarded is (action == "discard")


def test_new_data_keys_and_new_key_pairs_are_used() -> None:
    world = passed(profile_of(rotation=20 * MILLISECOND, renewal=10 * MILLISECOND))
    [topic] = world.model.topics.values()
    sealed = [entry.sealed for entry in topic.log.values()]
    assert len({each.data_key for each in sealed if each is not None}) > 2
    assert len({each.keys for each in sealed if each is not None}) > 2


def test_two_runs_of_a_world_write_the_same_bytes() -> None:
    """Rule INV-D1: data keys, nonces and wraps come from the seed of the world."""
    first, second = (passed(profile_of(recipients=3, renewal=10 * MILLISECOND)) for _ in range(2))
    assert first.trace.hexdigest() == second.trace.hexdigest()


def test_no_payload_is_on_any_wire(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[bytes] = []

    def write(self: Pipe, data: bytes) -> None:
        written.append(data)
        original(self, data)

    original = Pipe.write
    monkeypatch.setattr(Pipe, "write", write)
    profile = profile_of()
    profile.producers[0].compression = CompressionType.NONE
    world = passed(profile)
    everything = b"".join(written)
    payloads = [sent.payload for record in world.model.producers.values() for sent in record.sent]
    assert len(payloads) == 40
    assert not any(payload and payload in everything for payload in payloads)
    profile = profile_of(clear_permille=1000)
    profile.producers[0].compression = CompressionType.NONE
    passed(profile)
    assert any(payload and payload in b"".join(written) for payload in payloads)
