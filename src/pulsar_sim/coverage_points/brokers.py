"""Marks of brokers: which client gets what, where topics are served, what is lost with a process."""

from typing import Any

from pulsar_sansio.broker.administration.ownership import Ownership
from pulsar_sansio.broker.dispatching.key_shared import KeyShared
from pulsar_sansio.broker.dispatching.shared import Shared
from pulsar_sansio.broker.dispatching.single_active import SingleActive
from pulsar_sansio.broker.topics.topic import Topic

from ..engine.nodes.broker_node import BrokerNode
from ..world.world import World
from .coverage_point import coverage_point


@coverage_point(SingleActive, "_change_due")
def failover_switch(dispatcher: Any) -> object:
    """A Failover subscription of several consumers went on with another one."""
    return len(dispatcher.consumers) > 1


@coverage_point(SingleActive, "check")
def exclusive_taken(dispatcher: Any, _newcomer: Any) -> object:
    """A second consumer wanted an Exclusive subscription."""
    return not dispatcher.failover and bool(dispatcher.consumers)


@coverage_point(Shared, "remove")
def left_with_unacknowledged(_dispatcher: Any, consumer: Any) -> object:
    """A Shared consumer left, and what it had went to others."""
    return bool(consumer.pending)


@coverage_point(Shared, "_count_acknowledged")
def unacknowledged_limit(_dispatcher: Any, holder: Any, _messages: int) -> object:
    """A consumer was cut off for holding too many unacknowledged messages."""
    return bool(holder.blocked)


@coverage_point(Shared, "_check_subscription_limit")
def unacknowledged_limit_of_all(dispatcher: Any) -> object:
    """A subscription was cut off because its consumers together held too many unacknowledged messages."""
    return bool(dispatcher.blocked)


@coverage_point(KeyShared, "add")
def key_owner_changed(dispatcher: Any, _newcomer: Any) -> object:
    """Keys got another owner while the old one had messages of them."""
    return bool(dispatcher._holders)


@coverage_point(KeyShared, "_hold")
def key_held_back(*_: Any) -> object:
    """A message waited because the consumer of its key could not take it."""
    return True


@coverage_point(Topic, "unload")
def unloaded_while_sending(topic: Any) -> object:
    """A topic was unloaded with messages on their way to the disk."""
    return _sends(topic)


@coverage_point(Topic, "_roll")
def ledger_rolled(*_: Any) -> object:
    """A ledger was full and another one begun."""
    return True


@coverage_point(BrokerNode, "kill")
def restarted_with_loss(node: Any, keep_unsynced: bool, _silently: bool) -> object:
    """A broker died with a write under way, and the write was lost."""
    return node._writing is not None and not keep_unsynced


@coverage_point(BrokerNode, "kill")
def stored_and_never_said(node: Any, keep_unsynced: bool, _silently: bool) -> object:
    """A broker died with a write under way that had reached the disk; no client was told."""
    return node._writing is not None and keep_unsynced


@coverage_point(World, "count_fault")
def clock_step_while_sending(world: Any, name: str) -> object:
    """The wall clock was set while messages were unconfirmed."""
    return name == "wall_clock_set" and any(each.pending for each in world.model.producers.values())


@coverage_point(Ownership, "release")
def moved_while_sending(ownership: Any, _now: int, topic: str, *_: Any) -> object:
    """A topic went to another broker with messages on their way to the disk."""
    return _sends(ownership._topics.by_name.get(topic))


@coverage_point(Ownership, "lose")
def stolen_while_sending(ownership: Any, _now: int, topic: str, *_: Any) -> object:
    """A broker learnt, with messages on their way to the disk, that another one has its topic."""
    return _sends(ownership._topics.by_name.get(topic))


@coverage_point(Ownership, "adopt")
def topic_adopted(_ownership: Any, _now: int, _topic: str, stored: Any) -> object:
    """A broker took over a topic that another one had filled."""
    return any(ledger.entries for ledger in stored.ledgers.values())


@coverage_point(Topic, "terminate")
def terminated_while_sending(topic: Any) -> object:
    """A topic was ended with messages on their way to the disk."""
    return _sends(topic)


def _sends(topic: Any) -> bool:
    return topic is not None and any(producer.pending for producer in topic.producers.by_name.values())
