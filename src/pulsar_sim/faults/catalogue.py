"""The catalogue of faults, by name.

Owns the kinds of faults; `fault_schedule` draws from them. A fault does something that a real network,
broker, application or machine could do, so no rule of the protocol excuses a client that fails because of it.
A kind that finds nothing to act on (no wire is open, say) reports so and is not counted.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from ..engine.clock import MICROSECOND, MILLISECOND, SECOND
from ..engine.network import Wire
from ..engine.randomness import Stream

if TYPE_CHECKING:
    from ..engine.nodes.broker_node import BrokerNode
    from ..engine.surroundings import Surroundings

Fault: TypeAlias = "Callable[[Surroundings, Stream], bool]"

FAULTS: dict[str, Fault] = {}
"""The faults by name; each returns True when it found something to act on."""


def fault(function: Fault) -> Fault:
    FAULTS[function.__name__] = function
    return function


def _wire(world: "Surroundings", stream: Stream) -> Wire | None:
    wires = list(world.network.wires.values())
    return stream.choice(wires) if wires else None


# --- network --------------------------------------------------------------------------------------------


@fault
def reset(world: "Surroundings", stream: Stream) -> bool:
    wire = _wire(world, stream)
    if wire is not None:
        wire.reset()
    return wire is not None


@fault
def reset_everything(world: "Surroundings", stream: Stream) -> bool:
    wires = list(world.network.wires.values())
    for wire in wires:
        wire.reset()
    return bool(wires)


@fault
def cut_in_flight(world: "Surroundings", stream: Stream) -> bool:
    """Deliver the bytes in flight up to some byte, then reset the wire."""
    wire = _wire(world, stream)
    if wire is None:
        return False
    for pipe in (wire.to_broker, wire.to_client):
        total = sum(len(data) for _, data in pipe.queue if data)
        keep = stream.below(total + 1) if total else 0
        pipe.truncate(keep)
    world.clock.after(world.network.conditions.latency + MILLISECOND, wire.reset)
    return True


@fault
def half_open(world: "Surroundings", stream: Stream) -> bool:
    wire = _wire(world, stream)
    if wire is not None:
        wire.half_open(to_broker=True, to_client=True)
    return wire is not None


@fault
def silent_to_broker(world: "Surroundings", stream: Stream) -> bool:
    wire = _wire(world, stream)
    if wire is not None:
        wire.half_open(to_broker=True, to_client=False)
    return wire is not None


@fault
def silent_to_client(world: "Surroundings", stream: Stream) -> bool:
    wire = _wire(world, stream)
    if wire is not None:
        wire.half_open(to_broker=False, to_client=True)
    return wire is not None


@fault
def clean_end(world: "Surroundings", stream: Stream) -> bool:
    wire = _wire(world, stream)
    if wire is not None:
        wire.clean_end()
    return wire is not None


@fault
def stall(world: "Surroundings", stream: Stream) -> bool:
    """Deliver nothing in both directions of a wire for a while, then everything at once."""
    wire = _wire(world, stream)
    if wire is None:
        return False
    until = world.clock.now + stream.spread(10 * MILLISECOND, 8 * SECOND)
    wire.to_broker.block(until)
    wire.to_client.block(until)
    return True


@fault
def slow_reader(world: "Surroundings", stream: Stream) -> bool:
    """Hold back one direction of a wire."""
    wire = _wire(world, stream)
    if wire is None:
        return False
    pipe = wire.to_broker if stream.chance(500) else wire.to_client
    pipe.block(world.clock.now + stream.spread(10 * MILLISECOND, 8 * SECOND))
    return True


@fault
def latency_change(world: "Surroundings", stream: Stream) -> bool:
    world.network.conditions.latency = stream.spread(20 * MICROSECOND, 500 * MILLISECOND)
    return True


@fault
def tiny_segments(world: "Surroundings", stream: Stream) -> bool:
    world.network.conditions.tiny_until = world.clock.now + stream.spread(MILLISECOND, 20 * MILLISECOND)
    return True


@fault
def connect_refused(world: "Surroundings", stream: Stream) -> bool:
    until = world.clock.now + stream.spread(10 * MILLISECOND, 5 * SECOND)
    world.network.conditions.refused[stream.choice(world.brokers).name] = until
    return True


@fault
def connect_hangs(world: "Surroundings", stream: Stream) -> bool:
    world.network.conditions.connect_fates.append("hang")
    return True


@fault
def connect_then_reset(world: "Surroundings", stream: Stream) -> bool:
    world.network.conditions.connect_fates.append("reset")
    return True


@fault
def partition(world: "Surroundings", stream: Stream) -> bool:
    """Cut off a broker: its wires lose everything and new connections hang, without notice to either side."""
    broker = stream.choice(world.brokers)
    for wire in list(broker.wires.values()):
        wire.half_open(to_broker=True, to_client=True)
    until = world.clock.now + stream.spread(100 * MILLISECOND, 10 * SECOND)
    world.network.conditions.silent[broker.name] = until
    return True


# --- broker ------------------------------------------------------------------------------------------


def _down_time(stream: Stream) -> int:
    return stream.spread(MILLISECOND, 5 * SECOND)


@fault
def broker_killed(world: "Surroundings", stream: Stream) -> bool:
    broker = stream.choice(world.brokers)
    return broker.cluster.kill(broker, stream.chance(500), False, _down_time(stream))


@fault
def broker_machine_lost(world: "Surroundings", stream: Stream) -> bool:
    broker = stream.choice(world.brokers)
    return broker.cluster.kill(broker, stream.chance(500), True, _down_time(stream))


@fault
def broker_killed_while_writing(world: "Surroundings", stream: Stream) -> bool:
    """Kill the broker while its next write is in progress."""
    broker = stream.choice(world.brokers)
    return broker.cluster.kill_while_writing(broker, stream.chance(500), _down_time(stream))


@fault
def broker_frozen(world: "Surroundings", stream: Stream) -> bool:
    broker = stream.choice(world.brokers)
    if broker.broker is None or broker.frozen_until:
        return False
    broker.freeze(world.clock.now + stream.spread(10 * MILLISECOND, 8 * SECOND))
    return True


@fault
def unload(world: "Surroundings", stream: Stream) -> bool:
    return world.unload(stream.choice(world.topics.names))


@fault
def unload_everything(world: "Surroundings", stream: Stream) -> bool:
    unloaded = [world.unload(topic) for topic in world.topics.names]
    return any(unloaded)


@fault
def unload_twice(world: "Surroundings", stream: Stream) -> bool:
    """Unload a topic, and again while the clients are reconnecting."""
    topic = stream.choice(world.topics.names)
    world.clock.after(stream.spread(MILLISECOND, SECOND), world.unload_later, topic)
    return world.unload(topic)


@fault
def topic_moved(world: "Surroundings", stream: Stream) -> bool:
    """Move a topic to another broker; clients must look the owner up."""
    return world.cluster.move(stream.choice(world.topics.names), stream, "nothing")


@fault
def topic_moved_with_address(world: "Surroundings", stream: Stream) -> bool:
    """Move a topic to another broker, and tell clients its address."""
    return world.cluster.move(stream.choice(world.topics.names), stream, "where")


@fault
def topic_moved_with_wrong_address(world: "Surroundings", stream: Stream) -> bool:
    """Move a topic, and tell clients an address that is wrong, or out of date when they connect."""
    return world.cluster.move(stream.choice(world.topics.names), stream, "wrong")


@fault
def topic_stolen(world: "Surroundings", stream: Stream) -> bool:
    """Let another broker serve a topic while its owner still believes to serve it."""
    return world.cluster.steal(stream.choice(world.topics.names), stream)


@fault
def slow_store(world: "Surroundings", stream: Stream) -> bool:
    world.timing.slow_store_until = world.clock.now + stream.spread(100 * MILLISECOND, 5 * SECOND)
    return True


# --- application ---------------------------------------------------------------------------------------


@fault
def consumer_pauses(world: "Surroundings", stream: Stream) -> bool:
    """Let an application stop taking messages for a while."""
    stream.choice(world.apps.receivers).pause(stream.spread(10 * MILLISECOND, 10 * SECOND))
    return True


@fault
def consumer_closed(world: "Surroundings", stream: Stream) -> bool:
    return stream.choice(world.apps.receivers).close_and_reopen()


@fault
def consumer_abandoned(world: "Surroundings", stream: Stream) -> bool:
    """Abandon a consumer in whatever state it is."""
    return stream.choice(world.apps.receivers).abandon_and_reopen()


@fault
def producer_closed(world: "Surroundings", stream: Stream) -> bool:
    return stream.choice(world.apps.producers).close_and_reopen()


@fault
def producer_abandoned(world: "Surroundings", stream: Stream) -> bool:
    return stream.choice(world.apps.producers).abandon_and_reopen()


@fault
def opening_abandoned(world: "Surroundings", stream: Stream) -> bool:
    """Let the next applications that open a handle abandon it before it is open."""
    world.fault_schedule.abandon_next = stream.between(1, 3)
    return False  # counted when it happens


@fault
def redeliver_all(world: "Surroundings", stream: Stream) -> bool:
    return stream.choice(world.apps.receivers).redeliver()


@fault
def nack_everything(world: "Surroundings", stream: Stream) -> bool:
    """Let the next application that takes messages negatively acknowledge all of them at once."""
    world.fault_schedule.nack_next = stream.between(1, 2)
    return False  # counted when it happens


@fault
def client_closed(world: "Surroundings", stream: Stream) -> bool:
    """Close a whole client in good order; its applications begin again with a new one."""
    return world.close_client(stream.below(len(world.hosts)))


@fault
def client_crashed(world: "Surroundings", stream: Stream) -> bool:
    return world.crash_client(stream.below(len(world.hosts)))


# --- environment -----------------------------------------------------------------------------------------


@fault
def wall_clock_set(world: "Surroundings", stream: Stream) -> bool:
    world.timing.wall_offset += stream.between(-3_600_000, 3_600_000)
    return True


# --- frames that a broker drops or adds -----------------------------------------------------------------


def _armed(name: str) -> None:
    def arm(world: "Surroundings", stream: Stream) -> bool:
        world.misbehaviour.arm(name, stream.between(1, 3))
        return False  # counted when it happens

    FAULTS[name] = arm


for _name in (
    "lookup_refused",
    "lookup_redirected",
    "producer_refused",
    "subscribe_refused",
    "request_unanswered",
    "send_refused",
    "acknowledgement_refused",
    "reply_late",
    "receipt_repeated",
    "receipt_lost",
    "opened_too_late",
    "pong_lost",
    "partitions_refused",
    "partitions_out_of_date",
    "message_not_allowed",
    "fenced_out",
    "cut_between_chunks",
    "seek_refused",
    "last_message_refused",
):
    _armed(_name)


RARE_FAULTS = ("closed_while_unsubscribing", "cut_at_migration")
"""Kinds for worlds that are about nothing else (`generate.rare_worlds`)."""

for _name in RARE_FAULTS:
    _armed(_name)


GROUP_FAULTS = ("topics_refused", "watch_refused", "watch_update_lost")
"""Kinds for worlds with consumers of several topics."""

for _name in GROUP_FAULTS:
    _armed(_name)


MISLEADING_FAULTS = ("lookup_to_a_stranger", "lookup_downgraded")
"""Kinds that name a broker to which a client with credentials may not connect."""

for _name in MISLEADING_FAULTS:
    _armed(_name)


SCHEMA_FAULTS = ("schema_refused", "schema_unanswered", "schema_answered_late", "schema_question_cut")
"""Kinds that strike questions for definitions, for worlds with schemas."""

for _name in SCHEMA_FAULTS:
    _armed(_name)


REGISTRATION_FAULTS = (
    "registration_refused",
    "registration_unanswered",
    "registration_answered_late",
    "registration_cut",
)
"""Kinds that strike registrations of the schemas of messages, for worlds with such messages."""

for _name in REGISTRATION_FAULTS:
    _armed(_name)


ENCRYPTION_FAULTS = ("ciphertext_changed",)
"""Kinds for worlds with encrypted messages."""

for _name in ENCRYPTION_FAULTS:
    _armed(_name)


COORDINATOR_FAULTS = (
    "coordinator_moved",
    "coordinator_unanswered",
    "coordinator_answer_lost",
    "coordinator_answered_late",
    "coordinator_question_cut",
    "coordinator_answer_cut",
)
"""Kinds that strike questions to transaction coordinators."""

for _name in COORDINATOR_FAULTS:
    _armed(_name)

TRANSACTION_FAULTS = (
    *COORDINATOR_FAULTS,
    "transacting_client_lost",
    "transacting_links_reset",
    "transacting_producer_closed",
    "transacting_consumer_closed",
    "transacting_topic_unloaded",
)
"""Kinds for worlds with transactions."""


@fault
def transacting_client_lost(world: "Surroundings", stream: Stream) -> bool:
    """Let the process of the client with transactions die, or close its client in good order."""
    index = len(world.hosts) - 1
    return world.crash_client(index) if stream.chance(500) else world.close_client(index)


@fault
def transacting_links_reset(world: "Surroundings", stream: Stream) -> bool:
    """Reset the connections of the client with transactions."""
    wires = list(world.hosts[-1].node.wires.values())
    for wire in wires:
        wire.reset()
    return bool(wires)


@fault
def transacting_producer_closed(world: "Surroundings", stream: Stream) -> bool:
    """Close a producer, perhaps with messages of open transactions."""
    return any(app.close_producer() for app in world.apps.transactors)


@fault
def transacting_consumer_closed(world: "Surroundings", stream: Stream) -> bool:
    """Close a consumer, perhaps with acknowledgements of open transactions."""
    return stream.choice(world.apps.transacting).close_and_reopen()


@fault
def transacting_topic_unloaded(world: "Surroundings", stream: Stream) -> bool:
    """Unload a topic with messages of open transactions."""
    plan = world.profile.transactions
    return plan is not None and world.unload(stream.choice(plan.names))


CREDENTIAL_FAULTS = ("credentials_expire", "all_credentials_expire", *MISLEADING_FAULTS)
"""Kinds for worlds in which brokers authenticate their clients."""

SPECIAL_FAULTS = (
    *RARE_FAULTS,
    *GROUP_FAULTS,
    *CREDENTIAL_FAULTS,
    *SCHEMA_FAULTS,
    *REGISTRATION_FAULTS,
    *ENCRYPTION_FAULTS,
    *TRANSACTION_FAULTS,
)
"""Kinds that are drawn for some worlds only."""


@fault
def credentials_expire(world: "Surroundings", stream: Stream) -> bool:
    """Let the credentials of one connection expire, so its broker asks for new ones at once."""
    wire = _wire(world, stream)
    return wire is not None and _expire(wire)


@fault
def all_credentials_expire(world: "Surroundings", stream: Stream) -> bool:
    """Let the credentials of all connections expire at one moment."""
    expired = [_expire(wire) for wire in list(world.network.wires.values())]
    return any(expired)


def _expire(wire: Wire) -> bool:
    broker: BrokerNode = wire.broker  # type: ignore[assignment]
    return broker.expire_credentials(wire.broker_link)


@fault
def lookup_redirected_for_ever(world: "Surroundings", stream: Stream) -> bool:
    """Let brokers redirect a client to each other."""
    world.misbehaviour.arm("lookup_redirected_for_ever", stream.between(20, 60))
    return False  # counted when it happens


@fault
def stray_reply(world: "Surroundings", stream: Stream) -> bool:
    return world.misbehaviour.stray_reply(_wire(world, stream))


@fault
def stray_push(world: "Surroundings", stream: Stream) -> bool:
    return world.misbehaviour.stray_push(_wire(world, stream))


@fault
def unknown_command(world: "Surroundings", stream: Stream) -> bool:
    return world.misbehaviour.unknown_command(_wire(world, stream))


@fault
def extra_ping(world: "Surroundings", stream: Stream) -> bool:
    return world.misbehaviour.ping(_wire(world, stream))


@fault
def malformed_to_client(world: "Surroundings", stream: Stream) -> bool:
    return world.misbehaviour.malformed(_wire(world, stream), to_broker=False)


@fault
def malformed_to_broker(world: "Surroundings", stream: Stream) -> bool:
    return world.misbehaviour.malformed(_wire(world, stream), to_broker=True)
