"""Preconditions on the encryption of a world."""

from ...engine.profile import Profile
from .general import fault


def encryption(profile: Profile) -> bool:
    """Producers encrypt their messages."""
    return profile.encryption is not None


def several_recipients(profile: Profile) -> bool:
    return profile.encryption is not None and profile.encryption.recipients > 1


def renewals(profile: Profile) -> bool:
    """Producers have a new data key every few seconds."""
    return profile.encryption is not None and 0 < profile.encryption.renewal < profile.run_time


def rotations(profile: Profile) -> bool:
    """Key pairs are replaced while messages are sent."""
    return profile.encryption is not None and 0 < profile.encryption.rotation < profile.run_time


def failing_keys(profile: Profile) -> bool:
    """Key readers refuse many keys, or are late."""
    plan = profile.encryption
    return plan is not None and plan.refused_permille + plan.late_permille + plan.wrong_permille >= 200


def failing_renewals(profile: Profile) -> bool:
    """A data key cannot be renewed, after the producer had one."""
    return renewals(profile) and failing_keys(profile)


def wrong_keys(profile: Profile) -> bool:
    """Key readers have other keys than are wanted."""
    return profile.encryption is not None and bool(profile.encryption.wrong_permille)


def slow_keys(profile: Profile) -> bool:
    """Key readers take long enough that messages arrive meanwhile."""
    return profile.encryption is not None and profile.encryption.delay > 4 * profile.latency


def _withheld(profile: Profile, action: str) -> bool:
    plan = profile.encryption
    return plan is not None and action in plan.actions and bool(plan.missing or failing_keys(profile))


def fails(profile: Profile) -> bool:
    """Consumers withhold messages that they cannot decrypt."""
    return _withheld(profile, "fail")


def fails_with_timeouts(profile: Profile) -> bool:
    """Consumers withhold such messages, and have an acknowledgement timeout."""
    return fails(profile) and any(plan.timeout for plan in profile.receivers)


def discards(profile: Profile) -> bool:
    """Consumers acknowledge messages that they cannot decrypt."""
    return _withheld(profile, "discard")


def consumes(profile: Profile) -> bool:
    """Consumers deliver messages as they are that they cannot decrypt."""
    return _withheld(profile, "consume")


def changes(profile: Profile) -> bool:
    """A hostile broker changes ciphertexts."""
    return profile.encryption is not None and fault("ciphertext_changed")(profile)


def letters(profile: Profile) -> bool:
    """Dead letters or retry letters are encrypted."""
    plan = profile.encryption
    some = any(each.dead_letters for each in profile.consumers) or any(each.retry for each in profile.groups)
    return plan is not None and plan.letters and some


def dead_letters(profile: Profile) -> bool:
    """Consumers with an acknowledgement timeout and dead letters withhold messages."""
    return fails(profile) and any(plan.timeout and plan.dead_letters for plan in profile.consumers)
