"""Checks at rest: when everything is done, and when nothing may be left.

Owns the questions that a world asks between its phases. They read what the applications were told, the
broker's public statistics and the accounts of both watches. Only the checks of INV-L1 read a machine's
internal state.
"""

from typing import TYPE_CHECKING, Any

from pulsar_sansio import StatsOptions
from pulsar_sansio.model.config import ConsumerSpec, SubscriptionType

from ..engine.failures import ViolationError
from ..engine.leftovers.audit import ALONE, BROKER_RESTING, RESTING
from ..engine.leftovers.opening import is_opening
from ..engine.nodes.client_node import ClientNode
from ..engine.profile import AUDIT
from ..engine.web.http_listener import HttpListener
from ..model.multi_topics_subscriptions import GroupRecord
from ..model.positions.single_topic_position import TransientSubscription
from ..model.records.consumer_record import ConsumerRecord
from ..model.records.topic_record import TopicRecord
from .client_side_state import PendingClose
from .receive_frames import held_back

if TYPE_CHECKING:
    from ..engine.surroundings import Surroundings


BACKLOGS = StatsOptions(publishers=False, consumers=False)
"""The statistics of backlogs alone, without those of each producer and consumer."""

MOST_PARTITIONS = 16
"""A number above the partitions of any topic in a world."""

END_OF_TOPIC_VERSION = 21
"""The protocol version from which our broker reports that a topic has ended: a client of version 20 drops its
connection."""


def all_sent(world: "Surroundings") -> bool:
    return all(app.done for app in world.apps.producers)


def all_roamed(world: "Surroundings") -> bool:
    """True when the outages of the roaming client are over."""
    return all(app.outages_are_over for app in world.apps.roaming)


def all_transacted(world: "Surroundings") -> bool:
    """True when the application with transactions has ended those that it opens while there are faults."""
    return all(app.has_finished for app in world.apps.transactors)


def drained(world: "Surroundings") -> bool:
    if world.reset_due or not all_sent(world):
        return False
    for topic in world.model.topics.values():
        for subscription in topic.subscriptions.values():
            if subscription.name != AUDIT and not subscription.everything_acknowledged():
                return False
    if not all(app.done for app in world.apps.transient) or not all(app.done for app in world.apps.asking):
        return False
    if not (world.administrator.done and all_attached(world) and all_told_of_end(world)):
        return False
    if holding(world) or not still(world) or _failed_copies_due(world):
        return False
    if not all(app.done for app in world.apps.transactors):
        return False
    # Statistics are expensive: read them last.
    for name, topic in world.model.topics.items():
        if name in world.model.copy_topics.difference(
            world.model.retry_topics
        ):  # perhaps no producer has come back
            continue
        if name in world.administrator.vanished:
            if world.cluster.serving(name) is not None:
                return False
            continue
        if world.cluster.serving(name) is None:
            return False
        for broker in world.holding(name):
            if name in world.administrator.migrated and broker is world.cluster.serving(name):
                if not _is_deserted(broker.topic_administration.stats(name)):
                    return False
            elif not _is_drained(
                world, topic, broker.topic_administration.stats(name, BACKLOGS)["subscriptions"]
            ):
                return False
    return True


def _is_drained(world: "Surroundings", topic: TopicRecord, found: dict[str, Any]) -> bool:
    for subscription in topic.subscriptions.values():
        if isinstance(subscription, TransientSubscription):
            # Without faults no SUBSCRIBE arrives after the UNSUBSCRIBE that ended the subscription.
            if subscription.durable and subscription.name in found and not world.profile.fault_gap:
                return False
        elif (
            subscription.name in found and subscription.name != AUDIT and found[subscription.name]["backlog"]
        ):
            return False
    return True


def _is_deserted(stats: dict[str, Any]) -> bool:
    """INV-N13: all producers and consumers have followed the topic that migrated.

    A broker that died, or lost the topic, may not have written all acknowledgements; another one then keeps
    them in its backlog. On a Key_Shared subscription that may be the backlog of a consumer that has gone
    while others stay.
    """
    return not stats["publishers"] and not any(
        each["consumers"] and not (each["backlog"] and each["type"] == "Key_Shared")
        for each in stats["subscriptions"].values()
    )


def holding(world: "Surroundings") -> list[str]:
    """Return the clients that still hold memory for messages that no application waits for. These belong to
    abandoned producers whose closes are unanswered, or are copies that consumers send of messages
    acknowledged since by other consumers (DLQ-08). The memory is released in time too."""
    copy_topics = world.model.copy_topics
    return [
        host.node.name
        for host in world.hosts
        if (host.abandoned_bytes or copy_topics) and host.closing is None and host.node.client.memory_held
    ]


def _failed_copies_due(world: "Surroundings") -> bool:
    """True while messages whose copy failed are yet to be asked for; they keep their permits (DLQ-05)."""
    return any(app.asks_until > world.clock.now for app in world.apps.receivers)


def all_told_of_end(world: "Surroundings") -> bool:
    """BROKER-43: a consumer that has acknowledged everything of an ended topic is told so, if its version
    knows the command. A consumer that waits for its turn at an exclusive subscription is told when the turn
    comes."""
    for consumer in world.apps.consumers:
        topic = world.topics.names[consumer.plan.topic]
        if (
            topic in world.administrator.ends
            and consumer.state == "open"
            and consumer.attached
            and not consumer.reached_end
            and world.cluster.node_of(topic).config.protocol_version >= END_OF_TOPIC_VERSION
        ):
            return False
    return True


def all_attached(world: "Surroundings") -> bool:
    """INV-N5: all are attached, and their requests are answered. Of several consumers of an exclusive
    subscription one is attached."""
    for app in world.apps.producers:
        if app.left_for_good:
            continue
        if not app.ended and (app.state != "open" or not app.attached or not app.knows_all_partitions):
            return False
    exclusive: dict[str, bool] = {}
    for consumer in world.apps.consumers:
        record = consumer.record
        attached = consumer.state == "open" and consumer.attached
        if not isinstance(record, ConsumerRecord) or (attached and consumer.waits):
            return False
        if record.subscription.kind is SubscriptionType.EXCLUSIVE:
            name = record.subscription.name
            exclusive[name] = exclusive.get(name, False) or attached
        elif not attached:
            return False
    for group in world.apps.groups:
        attached = group.state == "open" and group.attached
        if group.record is None or (attached and group.waits):
            return False
        if group.topics.kind is not SubscriptionType.EXCLUSIVE and not (attached and group.has_all_topics):
            return False
    return all(exclusive.values()) and _exclusive_groups_complete(world)


def _exclusive_groups_complete(world: "Surroundings") -> bool:
    """True when the consumers of each exclusive group hold all topics together; each may hold some and wait
    for the others."""
    taken: dict[str, set[str]] = {}
    for group in world.apps.groups:
        found = group.subscribed() if group.state == "open" else ()
        taken.setdefault(group.topics.name, set()).update(found)
    return all(taken[group.topics.name] == set(world.topics_of(group.topics)) for group in world.apps.groups)


def describe_rest(world: "Surroundings") -> str:
    left = []
    for app in world.apps.producers:
        if not app.done and app.record is not None:
            left.append(
                f"producer {app.record.tag} is {app.state}, {app.left} not "
                f"sent, {len(app.record.pending)} pending, "
                f"{len(app.record.flushes)} flushes"
            )
    for topic in world.model.topics.values():
        for subscription in topic.subscriptions.values():
            missing = subscription.missing()
            if missing and subscription.name != AUDIT:
                left.append(
                    f"{subscription.name} of {topic.name}: {len(missing)} "
                    f"not acknowledged, first {missing[0]}"
                )
    if not left:
        left = [
            f"{name}/{subscription}: backlog {found['backlog']} at the broker"
            for name in world.model.topics
            for broker in world.holding(name)
            for subscription, found in broker.topic_administration.stats(name)["subscriptions"].items()
            if subscription != AUDIT and found["backlog"]
        ]
    left += [
        f"{app.handle} is {app.state} and not attached" for app in world.apps.lasting if not app.attached
    ]
    left += [
        f"{each.handle} is not subscribed to all topics"
        for each in world.apps.groups
        if each.state == "open" and not each.has_all_topics
    ]
    left += [
        f"transient application {each.handle} is {each.state}"
        for each in world.apps.transient
        if not each.done
    ]
    left += [app.describe() for app in world.apps.transactors if not app.done]
    left += [f"{name} holds memory of messages that no application waits for" for name in holding(world)]
    if not still(world):
        left.append("frames are under way, or a broker writes")
    if not all_told_of_end(world):
        left.append("a consumer is not told that a topic has ended")
    left += [
        f"some clients have not left {name}, which has migrated"
        for name in world.administrator.migrated
        if (broker := world.cluster.serving(name)) is not None
        and not _is_deserted(broker.topic_administration.stats(name))
    ]
    return "not done in time: " + ("; ".join(left) or "acknowledgements are not confirmed")


def still(world: "Surroundings") -> bool:
    """True when nothing is in flight, no provider owes credentials, and brokers have read and written
    everything. A message whose send failed may still be stored, and must be delivered then."""
    if any(host.node.waits_for_credentials or host.node.waits_for_keys for host in world.hosts):
        return False
    return all(node.is_done for node in world.brokers) and not any(
        pipe.queue for wire in world.network.wires.values() for pipe in (wire.to_broker, wire.to_client)
    )


def check_permits(world: "Surroundings") -> None:
    """INV-C6 at rest: three accounts of every consumer's permits agree, and few permits are held back."""
    for wire in world.network.wires.values():
        client_end = world.client_watch.ends.get(wire.number)
        broker_end = world.broker_watch.ends.get(wire.number)
        sound = wire.client_open and wire.broker_open and not wire.to_broker.lost and not wire.to_client.lost
        if client_end is None or broker_end is None or not sound:
            continue
        for consumer_id, consumer in client_end.consumers.items():
            at_broker = broker_end.consumers.get(consumer_id)
            if not consumer.ready or consumer.closed or consumer.record.closed or at_broker is None:
                continue
            name = consumer.record.name
            if at_broker.permits != consumer.granted - consumer.arrived:
                raise ViolationError(
                    "INV-C6",
                    f"{name}: granted {consumer.granted}, arrived "
                    f"{consumer.arrived}, the broker has "
                    f"{at_broker.permits} left",
                )
            node = wire.client
            assert isinstance(node, ClientNode)
            waiting = node.client.available(consumer.handle)
            group = world.model.groups.get(name)
            if group is not None and (waiting or _shares_its_queue(group.spec)):
                continue  # the message's topic, and that topic's share of the queue, are unknown
            if consumer.record.halted:
                continue  # the consumer has only just subscribed, and the application will resume it
            held = held_back(consumer, waiting)
            if not consumer.queue or (consumer.record.spec.auto_scaled_receiver_queue_size and held >= 0):
                continue
            if not 0 <= held < max(1, consumer.queue // 2):
                raise ViolationError(
                    "INV-C6", f"{name}: {held} permits of {consumer.queue} are held back at rest"
                )


def _shares_its_queue(spec: ConsumerSpec) -> bool:
    """True when the receiver queue of a partition may be smaller than that of one topic."""
    return spec.max_total_receiver_queue_size < MOST_PARTITIONS * spec.receiver_queue_size


def _asks_over_http(node: ClientNode) -> bool:
    """True while the client connects to a server, or waits for an answer over HTTP."""
    return bool(node.attempts) or any(isinstance(wire.broker, HttpListener) for wire in node.wires.values())


def check_leftovers(world: "Surroundings") -> None:
    """INV-L1 at rest: nothing is in flight, so no machine holds anything that is. A busy client is not
    checked."""
    for host in world.hosts:
        if host.closing is None and not _asks_over_http(host.node) and not _is_busy(world, host.node):
            client = host.node.client
            RESTING.check_root(host.node.name, client, client._context.deadlines)
    if _is_left_untold(world) or any(_waits(world, host.node) for host in world.hosts):
        return
    for node in world.brokers:
        if node.broker is not None:
            BROKER_RESTING.check_root(node.name, node.broker, node.broker.context.deadlines)


def _is_busy(world: "Surroundings", node: ClientNode) -> bool:
    """True while the client has messages to take, a request without an answer or a paused consumer, or opens
    something."""
    if node.client.has_messages or _waits(world, node):
        return True
    consumers = [*world.apps.consumers, *world.apps.groups]
    if any(each.host.node is node and each.record is not None and each.record.halted for each in consumers):
        return True
    return is_opening(node.client)


def _waits(world: "Surroundings", node: ClientNode) -> bool:
    """True while a broker owes the client an answer: it may wait for a sign of life of a rival consumer."""
    ends = [world.client_watch.ends.get(wire.number) for wire in node.wires.values()]
    return any(end is not None and end.requests for end in ends)


def _is_left_untold(world: "Surroundings") -> bool:
    """True when a cluster may still hold something of a handle that went to another one and could not say so:
    its topic has migrated, or the cluster was away when the client changed."""
    roaming = world.roaming
    return (roaming is not None and roaming.changes > 0) or bool(world.administrator.migrated)


def check_no_clients(world: "Surroundings") -> None:
    """INV-L1 when every client is closed: brokers hold nothing of clients."""
    for node in world.brokers:
        if node.broker is not None:
            ALONE.check_root(node.name, node.broker, node.broker.context.deadlines)


UNANSWERED = {"request_unanswered", "closed_while_unsubscribing", "opened_too_late"}
"""Kinds of faults in which a broker leaves a request unanswered."""


def check_closes(world: "Surroundings") -> None:
    """INV-N1 at rest: on a sound wire the broker has answered every close of a producer or a consumer.

    TOPIC_MIGRATED may come in place of the answer. A late answer may be later than the client's timeout.
    """
    if world.administrator.migrated or UNANSWERED & world.faults.keys():
        return
    for wire in world.network.wires.values():
        end = world.client_watch.ends.get(wire.number)
        sound = wire.client_open and wire.broker_open and not wire.to_broker.lost and not wire.to_client.lost
        if end is not None and sound:
            for request, what in end.requests.items():
                if isinstance(what, PendingClose) and (wire.number, request) not in world.misbehaviour.late:
                    raise ViolationError("INV-N1", f"{wire.client.name}: close {request} has no answer")


def check_memory(world: "Surroundings") -> None:
    """INV-P7 at rest: every message has an outcome, so no memory is held."""
    for host in world.hosts:
        if host.closing is None and (held := host.node.client.memory_held):
            raise ViolationError("INV-P7", f"{host.node.name} holds {held} bytes at rest")


def check_attachments(world: "Surroundings") -> None:
    """INV-N4: on a sound wire the broker has no producer or consumer that no application has."""
    tags = {app.record.tag for app in world.apps.producers if app.record is not None}
    records: list[ConsumerRecord | GroupRecord | None] = [app.record for app in world.apps.receivers]
    records += [app.record for app in world.apps.transient]
    names = {record.name for record in records if record is not None}
    sound = {
        f"{wire.client.name}:{wire.number}"
        for wire in world.network.wires.values()
        if wire.client_open and wire.broker_open and not wire.to_broker.lost and not wire.to_client.lost
    }
    everywhere = [(topic, broker) for topic in world.model.topics for broker in world.holding(topic)]
    for topic, broker in everywhere:
        stats = broker.topic_administration.stats(topic)
        for producer in stats["publishers"]:
            if topic in world.model.retry_topics:  # the broker names these producers
                continue
            if topic in world.model.copy_topics:
                producer_name = producer["producerName"]
                if producer["address"] in sound and not any(f"-{name}-" in producer_name for name in names):
                    raise ViolationError("INV-N4", f"{topic}: {producer_name} belongs to no application")
            elif producer["address"] in sound and producer["metadata"].get("tag") not in tags:
                raise ViolationError(
                    "INV-N4", f"{topic}: producer {producer['metadata']} belongs to no application"
                )
        for subscription in stats["subscriptions"].values():
            for consumer in subscription["consumers"]:
                if consumer["address"] in sound and consumer["consumerName"] not in names:
                    raise ViolationError(
                        "INV-N4", f"{topic}: consumer {consumer['consumerName']} belongs to no application"
                    )


def brokers_are_deserted(world: "Surroundings") -> bool:
    if world.network.wires:
        return False
    for name in world.model.topics:
        if not all(_is_deserted(broker.topic_administration.stats(name)) for broker in world.holding(name)):
            return False
    return True
