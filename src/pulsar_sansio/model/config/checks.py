"""Checks that every spec makes of its options, and the conversion of durations to nanoseconds.

Each check takes the option's name and the given value. It raises `InvalidConfiguration` with both and with
the allowed values. No check knows which spec calls it.
"""

from collections.abc import Mapping
from typing import Any

from ..errors import InvalidConfiguration
from ..message_id import is_message_id
from ..topic_name import is_text

MAX_DURATION = 10.0 * 365 * 86_400
"""Seconds. Longer than any sensible timer, short enough for 64-bit nanoseconds."""

MAX_UINT63 = 2**63 - 1


def nanoseconds_of(seconds: float) -> int:
    """Float seconds as integer nanoseconds; the only place where durations are converted."""
    return round(seconds * 1_000_000_000)


def integer(name: str, value: object, minimum: int, maximum: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value <= maximum:
        raise InvalidConfiguration(f"{name}: a whole number from {minimum} to {maximum}, not {value!r}")


def duration(name: str, value: object, minimum: float = 0.0, maximum: float = MAX_DURATION) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not minimum <= value <= maximum:
        raise InvalidConfiguration(f"{name}: seconds from {minimum:g} to {maximum:g}, not {value!r}")


def instance(name: str, value: object, kind: Any, words: str) -> None:
    if not isinstance(value, kind):
        raise InvalidConfiguration(f"{name}: {words}, not {value!r}")


def optional_text(name: str, value: object) -> None:
    if value is not None and (not is_text(value) or not value.strip()):
        raise InvalidConfiguration(f"{name}: text that is not blank, or None, not {value!r}")


def text_mapping(name: str, value: object) -> None:
    properties_of_message(name, value)
    assert isinstance(value, Mapping)
    if not all(is_text(key) and is_text(item) for key, item in value.items()):
        raise InvalidConfiguration(f"{name}: half a surrogate pair is no character")


def properties_of_message(name: str, value: object) -> None:
    """Check names and values for text only: a message keeps text that is not UTF-8 as other clients wrote
    it."""
    if not isinstance(value, Mapping) or not all(
        isinstance(key, str) and isinstance(item, str) for key, item in value.items()
    ):
        raise InvalidConfiguration(f"{name}: a mapping of text to text")


def message_id(name: str, value: object) -> None:
    if not is_message_id(value):
        raise InvalidConfiguration(f"{name}: a message id, not {value!r}")


def host_names(name: str, value: object) -> None:
    """Port, scheme and blanks are refused: they would never match, and the application would not learn
    why."""
    if not isinstance(value, tuple) or not all(map(_is_host_name, value)):
        raise InvalidConfiguration(
            f"{name}: a tuple of host names, or suffixes such as '.example.com', without scheme and port, "
            f"not {value!r}"
        )


def _is_host_name(host: object) -> bool:
    """Tell a host from other text: an IPv6 address has at least two colons, a name has none."""
    return (
        isinstance(host, str)
        and host.strip(".") != ""
        and host.count(":") != 1
        and not any(character in "/,@[]" or character.isspace() for character in host)
    )
