"""The administrator's last round reads and moves topics, and its results agree with the store."""

from collections.abc import Callable
from typing import Any

import pytest

from pulsar_sansio.broker.administration import admin
from pulsar_sansio.broker.administration.admin import Administration
from pulsar_sansio.broker.storage.cursor import Cursor
from pulsar_sansio.broker.storage.journal import Journal
from pulsar_sansio.broker.topics.compaction.compaction import Compaction
from pulsar_sansio.broker.topics.subscription import Subscription
from pulsar_sim.mutants import broken_by
from pulsar_sim.world import last_round


@pytest.fixture(autouse=True)
def _in_every_world(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(last_round, "ROUNDS_PERMILLE", 1000)


@pytest.mark.parametrize(
    "world", ["consume-shared: order of time", "move-to-a-given-address: order of time", "seed 1", "seed 2"]
)
def test_all_agrees(world: str) -> None:
    """The round passes with one broker, with several, and in drawn worlds."""
    assert broken_by(world) == ""


def _nothing(*_arguments: Any, **_options: Any) -> None:
    """Do nothing, in place of a method."""


_SKIP = Subscription.skip_up_to


def _skip_one_less(subscription: Subscription, offset: int) -> bool:
    return _SKIP(subscription, offset - 1)


def _expire_uncounted(subscription: Subscription, offset: int) -> bool:
    return subscription.skip_up_to(offset)


def _failed_once(_compaction: Compaction) -> dict[str, int]:
    return {"lastCompactionFailedTimestamp": 1}


@pytest.mark.parametrize(
    ("owner", "name", "wrong", "text"),
    [
        (Subscription, "skip_up_to", _skip_one_less, "broker-0: backlog: 6 found, 5 expected"),
        (Subscription, "expire_up_to", _expire_uncounted, "broker-0: expired: 0 found, 1 expected"),
        (Cursor, "reset", _nothing, "broker-0: backlog: 5 found, 3 expected"),
        (Compaction, "stats", _failed_once, "FailedTimestamp of a new topic: 1 found, 0 expected"),
        (Administration, "set_policy", _nothing, "a policy: 0 found, 7 expected"),
        (Administration, "update_topic_properties", _nothing, "properties, round: None found, last expected"),
        (Journal, "cursor_moved", _nothing, "sub-0, markDeletePosition: 0:-1 found, 0:5 expected"),
    ],
)
def test_what_does_not_agree_is_named(
    monkeypatch: pytest.MonkeyPatch, owner: type, name: str, wrong: Callable[..., Any], text: str
) -> None:
    """Wrong numbers, and positions that are not written. Rule INV-A1."""
    monkeypatch.setattr(owner, name, wrong)
    found = broken_by("consume-shared: order of time")
    assert found.startswith("INV-A1")
    assert found.endswith(text)


def test_a_command_that_is_not_refused_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """INV-A1: a broker refuses properties that are no Unicode text."""
    monkeypatch.setattr(admin, "text_pairs", lambda properties: tuple(properties.items()))
    found = broken_by("consume-shared: order of time")
    assert found.startswith("INV-A1")
    assert "is not refused" in found
