"""Coordinators: which transactions are open, whose they are, and what takes part in them."""

import pytest

from pulsar_sansio import TooManyRequests, TransactionNotFound
from pulsar_sansio.broker import Broker, BrokerConfig
from pulsar_sansio.broker.coordinating import coordinators
from pulsar_sansio.model.transaction_id import TransactionId
from tests.broker.peer import TOPIC, World
from tests.broker.security.doors import guarded


def test_participants_are_counted_once() -> None:
    world = World()
    mine = world.broker.coordinators.begin(0, 1000, "")
    for _ in range(2):
        world.broker.coordinators.join(mine, (), [TOPIC, TOPIC], [(TOPIC, "s")])
    found = world.broker.coordinators.open[mine]
    assert (list(found.topics), list(found.subscriptions)) == ([TOPIC], [(TOPIC, "s")])
    world.broker.shutdown(world.now)
    world.pump()
    (stored,) = world.store.load().transactions.values()
    assert [each.topics for each in stored.joined] == [(TOPIC,)]


def test_a_transaction_has_a_limit_of_participants(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinators, "MAX_PARTICIPANTS", 2)
    broker = World().broker
    mine = broker.coordinators.begin(0, 1000, "")
    broker.coordinators.join(mine, (), ["a", "b"])
    with pytest.raises(TooManyRequests, match="More than 2"):
        broker.coordinators.join(mine, (), [], [("a", "s")])
    broker.coordinators.join(mine, (), ["a"])


def test_all_transactions_have_a_limit_of_participants(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client may open many transactions."""
    monkeypatch.setattr(coordinators, "MAX_PARTICIPANTS_OF_ALL", 3)
    world = World()
    mine, other = (world.broker.coordinators.begin(0, 3_600_000, "") for _ in range(2))
    world.broker.coordinators.join(mine, (), ["a", "b"])
    with pytest.raises(TooManyRequests, match="More than 3"):
        world.broker.coordinators.join(other, (), ["a"], [("a", "s")])
    world.broker.coordinators.join(other, (), [], [("a", "s")])
    world.broker.shutdown(world.now)
    world.pump()
    world.start()
    with pytest.raises(TooManyRequests):
        world.broker.coordinators.join(other, (), ["a"])
    world.broker.coordinators.end(mine, (), commits=False)
    world.broker.coordinators.join(other, (), ["a", "b"])


def test_one_of_several_brokers_has_no_coordinators() -> None:
    broker = Broker(0, BrokerConfig(), seed=1, wall_time=0, owner=lambda topic, authoritative: None)
    assert broker.coordinators.count == 0


def test_an_unknown_transaction() -> None:
    with pytest.raises(TransactionNotFound, match=r"\(0,5\)"):
        World().broker.coordinators.check_topic(TransactionId(0, 5), TOPIC)


def test_a_transaction_belongs_to_the_role_that_opened_it() -> None:
    """Superusers may end the transactions of others, as in Pulsar."""
    found = guarded(authorization=True, superusers=frozenset({"root"})).broker.coordinators
    mine = found.begin(0, 1000, "ann")
    with pytest.raises(TransactionNotFound):
        found.end(mine, ("bob",), commits=False)
    found.join(mine, ("ann",), [TOPIC])
    found.join(mine, ("proxy", "ann"), [TOPIC])
    found.end(mine, ("root",), commits=False)
    assert found.open == {}
