"""Preconditions on the schemas of a world."""

from ...engine.profile import Profile


def schemas(profile: Profile) -> bool:
    """Producers and consumers have schemas."""
    return profile.schemas is not None


def questions(profile: Profile) -> bool:
    """Consumers ask for definitions."""
    return profile.schemas is not None and profile.schemas.kind in ("avro", "pairs")


def several_topics(profile: Profile) -> bool:
    """Consumers of one client ask for definitions of several topics."""
    return questions(profile) and profile.topics > 1


def bytes_among_values(profile: Profile) -> bool:
    """Some producers have no schema."""
    return profile.schemas is not None and bool(profile.schemas.bytes_permille) and questions(profile)


def adopting(profile: Profile) -> bool:
    """Some producers adopt the definition of their topic, which changes."""
    return profile.schemas is not None and bool(profile.schemas.adopting_permille)


def mixed(profile: Profile) -> bool:
    """Producers send messages of several definitions to consumers that decode by definitions."""
    return questions(profile) and profile.schemas is not None and bool(profile.schemas.mixed_every)


def refusals(profile: Profile) -> bool:
    """Questions are refused."""
    return questions(profile) and "schema_refused" in profile.faults


def lost_questions(profile: Profile) -> bool:
    """Questions get no answer."""
    return questions(profile) and "schema_unanswered" in profile.faults


def old_brokers(profile: Profile) -> bool:
    """Some brokers know no questions for definitions."""
    return questions(profile) and any(each.protocol_version < 13 for each in profile.brokers)


def in_order(profile: Profile) -> bool:
    """A subscription delivers messages in order."""
    return any(plan.kind.cumulative for plan in profile.subscriptions)


def losses(profile: Profile) -> bool:
    """Connections are lost with a question on its way."""
    return questions(profile) and "schema_question_cut" in profile.faults


def letters(profile: Profile) -> bool:
    """Messages with values become dead letters, or are reconsumed later."""
    found = any(plan.dead_letters for plan in profile.receivers)
    return profile.schemas is not None and (found or any(group.retry for group in profile.groups))


def seeks(profile: Profile) -> bool:
    """Readers of values seek."""
    return questions(profile) and bool(profile.single_topic_seekers or profile.multi_topics_seekers)


def strange(profile: Profile) -> bool:
    """Producers and consumers have definitions that brokers refuse."""
    return profile.schemas is not None and bool(profile.schemas.strange_permille)


def one_way(profile: Profile) -> bool:
    """A definition may follow in one direction only."""
    plan = profile.schemas
    return strange(profile) and plan is not None and plan.measured and plan.strategy.startswith("BACKWARD")


def transitive(profile: Profile) -> bool:
    """All versions count, not the latest one alone."""
    plan = profile.schemas
    strategies = ("BACKWARD_TRANSITIVE", "FULL_TRANSITIVE")
    return strange(profile) and plan is not None and plan.measured and plan.strategy in strategies


def deletions(profile: Profile) -> bool:
    """An administrator deletes the versions of a topic."""
    return profile.schemas is not None and bool(profile.schemas.deleted_after)


def kills(profile: Profile) -> bool:
    """Brokers with schemas die."""
    kinds = ("broker_killed", "broker_machine_lost", "broker_killed_while_writing")
    return profile.schemas is not None and any(kind in profile.faults for kind in kinds)
