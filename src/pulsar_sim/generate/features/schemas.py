"""Worlds whose producers and consumers have schemas."""

from ...engine.clock import MILLISECOND, SECOND
from ...engine.profile import Profile, SchemaPlan
from ...engine.randomness import Stream
from ...faults.catalogue import REGISTRATION_FAULTS, SCHEMA_FAULTS

SCHEMAS_PERMILLE = 100
"""Worlds with schemas, per thousand."""

TABLES_PERMILLE = 400
"""Worlds with table views that have schemas, per thousand."""

QUESTION_VERSION = 13
"""The protocol version from which a broker answers questions for definitions."""

REGISTRATION_VERSION = 15
"""The protocol version from which a broker registers the schema of a message."""

MIXED_PERMILLE = 400
"""Worlds with schemas whose producers send messages of several definitions, per thousand."""

STRATEGIES = (
    ("FULL", 3),
    ("BACKWARD", 2),
    ("FORWARD", 2),
    ("FULL_TRANSITIVE", 1),
    ("BACKWARD_TRANSITIVE", 1),
    ("FORWARD_TRANSITIVE", 1),
    ("ALWAYS_COMPATIBLE", 1),
)
"""Compatibility strategies, each with its weight."""


def draw_schemas(draw: Stream, profile: Profile, faults: bool) -> None:
    """Give the topics of some worlds schemas. A topic that is deleted, or that another cluster takes, begins
    anew with its versions: such worlds have none."""
    permille = TABLES_PERMILLE if profile.tables else SCHEMAS_PERMILLE
    if not draw.chance(permille) or not may_have_schemas(profile):
        return
    plan = profile.schemas = SchemaPlan(draw.choice(["avro", "avro", "avro", "json", "text", "pairs"]))
    plan.strategy = draw.weighted(list(STRATEGIES))
    plan.bytes_permille = draw.choice([0, 0, 200])
    plan.adopting_permille = draw.choice([0, 200])
    plan.registrations = [draw.spread(10 * MILLISECOND, 10 * SECOND) for _ in range(draw.below(4))]
    if plan.kind == "text":
        plan.strategy = "FULL"
    elif not _has_letters(profile):  # a letter has the definition of its original, and its topic must take it
        plan.strange_permille = draw.choice([0, 200, 400])
        plan.measured = draw.chance(600)
        if draw.chance(200):
            plan.loosened_after = draw.spread(100 * MILLISECOND, 10 * SECOND)
    if plan.adopting_permille or plan.strange_permille:  # older brokers have nothing to adopt or to refuse
        for broker in profile.brokers:
            broker.protocol_version = max(broker.protocol_version, QUESTION_VERSION)
    if len(profile.brokers) > 1 and profile.partitioned:
        profile.brokers = profile.brokers[:1]  # the partitions of a topic share their versions
        profile.all_addresses = False
    # A broker that has lost a topic without knowing would register versions that no other broker knows.
    profile.faults = [kind for kind in profile.faults if kind != "topic_stolen"]
    if not (faults and profile.fault_gap):
        return
    if plan.bytes_permille == 0 and not plan.strange_permille and draw.chance(200):
        plan.deleted_after = draw.spread(100 * MILLISECOND, 10 * SECOND)
    kinds = [kind for kind in SCHEMA_FAULTS if draw.chance(600)]
    profile.faults = sorted({*profile.faults, *kinds})


def draw_schemas_of_messages(draw: Stream, profile: Profile, faults: bool) -> None:
    """Let producers of some worlds send messages with definitions of their own, which no strategy refuses and
    every broker registers. With faults, a registration may fail nevertheless."""
    plan = profile.schemas
    if plan is None or plan.kind == "text" or plan.strange_permille or plan.deleted_after:
        return
    old = any(broker.protocol_version < REGISTRATION_VERSION for broker in profile.brokers)
    if not old and draw.chance(MIXED_PERMILLE):
        plan.mixed_every = draw.choice([2, 5, 20])
        if faults and profile.fault_gap:
            kinds = [kind for kind in REGISTRATION_FAULTS if draw.chance(600)]
            profile.faults = sorted({*profile.faults, *kinds})


def may_have_schemas(profile: Profile) -> bool:
    """True when every topic of the world keeps its versions until the end."""
    return not (
        profile.migrations
        or profile.appearances
        or profile.failover is not None
        or any(plan.deleted for plan in profile.ends)
    )


def _has_letters(profile: Profile) -> bool:
    letters = any(plan.dead_letters for plan in profile.receivers)
    return letters or any(group.retry for group in profile.groups)
