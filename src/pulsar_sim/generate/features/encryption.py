"""Worlds in which producers encrypt their messages, and consumers may miss the keys for a while."""

from ...engine.clock import MILLISECOND, SECOND
from ...engine.profile import Profile
from ...engine.randomness import Stream
from ...engine.security.encryption_plan import EncryptionPlan
from ...faults.catalogue import ENCRYPTION_FAULTS
from ..producers import send_singly
from .consumers import give_up

ENCRYPTION_PERMILLE = 50
"""Worlds with encrypted messages, per thousand."""

TYPED_PERMILLE = 250
"""Worlds with schemas that have encrypted messages, too, per thousand."""

SOUND_PERMILLE = 200
"""Worlds of these whose key readers always have the keys in time, per thousand."""

TIMEOUT_PERMILLE = 400
"""Consumers that withhold messages and get an acknowledgement timeout, per thousand."""

LETTERS_PERMILLE = 300
"""Worlds whose consumers withhold messages and dead-letter others, per thousand."""


def draw_encryption(draw: Stream, profile: Profile, faults: bool) -> None:
    """Let the producers of some worlds encrypt."""
    if draw.chance(ENCRYPTION_PERMILLE) and profile.schemas is None:
        _encrypt(draw, profile, faults)


def draw_encrypted_values(draw: Stream, profile: Profile, faults: bool) -> None:
    """Let the producers of some worlds with schemas encrypt. No message is delivered as it is there: it would
    have no value to check."""
    if profile.schemas is None or not draw.chance(TYPED_PERMILLE):
        return
    _encrypt(draw, profile, faults)
    plan = profile.encryption
    assert plan is not None
    plan.actions = ["discard" if action == "consume" else action for action in plan.actions]


def _encrypt(draw: Stream, profile: Profile, faults: bool) -> None:
    plan = profile.encryption = EncryptionPlan()
    if profile.compactions:  # a broker cannot look into encrypted batches, and keeps or drops them as a whole
        for producer in profile.producers:
            send_singly(producer)
    plan.recipients = draw.weighted([(1, 4), (2, 2), (3, 1)])
    plan.clear_permille = draw.choice([0, 0, 300])
    plan.delay = draw.choice([0, draw.spread(MILLISECOND, 300 * MILLISECOND), SECOND])
    plan.rotation = draw.choice([0, draw.spread(300 * MILLISECOND, 10 * SECOND)])
    plan.renewal = draw.choice([0, draw.spread(50 * MILLISECOND, 4 * SECOND)])
    if plan.renewal:
        _send_slowly(profile, plan.renewal)
    plan.letters = draw.chance(500)
    if not faults or not profile.fault_gap or draw.chance(SOUND_PERMILLE):
        return
    plan.late_permille = draw.choice([0, 0, 100, 300])
    plan.refused_permille = draw.choice([0, 0, 100, 400])
    plan.sends_in_clear = draw.chance(300)
    if any(each.chunk_size for each in profile.producers):
        return  # chunks of one message that a consumer can decrypt in part never make a message
    plan.actions = draw.choice([["fail"], ["discard"], ["consume"], ["fail", "discard", "consume"]])
    plan.wrong_permille = draw.choice([0, 0, 100, 300])
    plan.missing = draw.choice([0, draw.spread(100 * MILLISECOND, 15 * SECOND)])
    plan.keyless_permille = draw.choice([0, 0, 300])
    if "fail" in plan.actions:
        for consumer in profile.receivers:
            if not consumer.timeout and draw.chance(TIMEOUT_PERMILLE):
                consumer.timeout, consumer.tick = draw.choice([0.5, 1.0, 3.0]), 0.25
        moved = profile.migrations or any(each.deleted for each in profile.ends)
        if not moved and draw.chance(LETTERS_PERMILLE):
            give_up(draw, profile)
    profile.faults = sorted([*profile.faults, *ENCRYPTION_FAULTS])


def _send_slowly(profile: Profile, renewal: int) -> None:
    """Let producers send while their data keys are renewed."""
    for producer in profile.producers:
        producer.burst = min(producer.burst, 8)
        producer.pause = max(producer.pause, renewal // 2)
