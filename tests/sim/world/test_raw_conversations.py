"""Brokers that answer a raw peer otherwise than the rules say."""

from collections.abc import Callable
from typing import Any

import pytest

from pulsar_sansio.broker.serving import subscribing, topic_list_watch
from pulsar_sansio.broker.topics.nonpersistent import NonPersistentSubscription
from pulsar_sansio.broker.topics.subscription import Subscription
from pulsar_sansio.broker.topics.topic import Topic
from pulsar_sim import SeedReport, World
from pulsar_sim.runs.scenarios import quiet_profile
from pulsar_sim.world import last_round


@pytest.fixture(autouse=True)
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every world have a last round."""
    monkeypatch.setattr(last_round, "ROUNDS_PERMILLE", 1000)


def run() -> SeedReport:
    return World(1, quiet_profile(messages=5)).run()


def test_conversations_pass() -> None:
    """INV-A2: a right broker gives the answers."""
    assert run().rule == ""


WRONG: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "an unanswered rival": (subscribing, "_probe", lambda *_: None),
    "an unlimited topic": (subscribing, "check_room", lambda topic: None),
    "no filter": (topic_list_watch, "_filter", lambda pattern: None),
    "two exclusive consumers": (NonPersistentSubscription, "check", lambda self, newcomer, durable: None),
    "no end for newcomers": (Subscription, "check_end_of_topic", lambda self: None),
}


@pytest.mark.parametrize("what", WRONG)
def test_another_answer_is_noticed(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    """INV-A2"""
    monkeypatch.setattr(*WRONG[what])
    assert run().rule == "INV-A2"


def test_deduplication_that_stays_on_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """INV-A2"""
    set_policies = Topic.set_policies

    def stubborn(self: Topic, policies: Any) -> None:
        before = self.deduplication
        set_policies(self, policies)
        self.deduplication = self.deduplication or before

    monkeypatch.setattr(Topic, "set_policies", stubborn)
    assert run().rule == "INV-A2"
