"""The texts that options have, as values: each function takes a text, or raises `ValueRefused`.

The functions know the form of a topic's name and of a service URL. They do not know which option they are
for, except where the text itself says better what is wrong with it.
"""

import re
from collections.abc import Callable
from datetime import datetime, timezone

from pulsar_sansio import (
    InvalidConfiguration,
    InvalidServiceUrl,
    InvalidTopicName,
    Secret,
    ServiceUrl,
    TopicName,
    TopicsPattern,
)
from pulsar_security import KeyFiles

from ..errors import InvalidOption, UnsupportedTopic
from ..security.carried_secret import CarriedSecret


class ValueRefused(ValueError):
    """A value that a parser does not take."""


def text(value: str) -> str:
    if not value.strip():
        raise ValueRefused
    return value.strip()


def user(value: str) -> str:
    """A colon would end the name (RFC 7617, 2). The error quotes nothing, as a password may be behind it."""
    if ":" in value:
        raise InvalidOption("option auth.user: a name without a colon; the password is auth.password")
    return text(value)


def secret(value: str) -> CarriedSecret:
    """As it is: a password may begin or end with a space."""
    try:
        Secret(value)
    except InvalidConfiguration:
        raise ValueRefused from None
    if not value:
        raise ValueRefused
    return CarriedSecret(value)


def boolean(value: str) -> bool:
    known = {"true": True, "false": False}
    try:
        return known[value.strip().lower()]
    except KeyError:
        raise ValueRefused from None


def choice(*choices: str) -> Callable[[str], str]:
    def parse(value: str) -> str:
        found = value.strip().lower()
        if found not in choices:
            raise ValueRefused
        return found

    return parse


def whole(least: int, most: int) -> Callable[[str], int]:
    def parse(value: str) -> int:
        if not re.fullmatch(r"\s*\d{1,19}\s*", value, re.ASCII) or not least <= int(value) <= most:
            raise ValueRefused
        return int(value)

    return parse


def milliseconds(least: int, most: int) -> Callable[[str], float]:
    """Whole milliseconds as seconds."""
    count = whole(least, most)
    return lambda value: count(value) / 1000


def service_url(value: str) -> str:
    try:
        return str(ServiceUrl.parse(value.strip()))
    except InvalidServiceUrl as error:
        raise InvalidOption(f"option service.url: {error}") from None


def namespace(value: str) -> str:
    """A name like `public/default`."""
    found = value.strip()
    try:
        parsed = TopicName.parse(f"persistent://{found}/t")
    except InvalidTopicName:
        raise ValueRefused from None
    if f"{parsed.tenant}/{parsed.namespace}" != found:
        raise ValueRefused
    return found


def topic(value: str) -> str:
    try:
        name = TopicName.parse(value.strip())
    except InvalidTopicName as error:
        raise InvalidOption(f"option topic: {error}") from None
    if not name.persistent:
        raise UnsupportedTopic(
            f"topic {name}: a non-persistent topic has no positions, so Spark cannot read it again; "
            "allowed: persistent topics"
        )
    return str(name)


def topic_to_read(value: str) -> tuple[str, ...]:
    return (topic(value),)


def topics(value: str) -> tuple[str, ...]:
    names = [topic(part) for part in value.split(",") if part.strip()]
    if not names:
        raise ValueRefused
    return tuple(dict.fromkeys(names))


def pattern(value: str) -> str:
    """A pattern as the core has it (RE2 syntax), for persistent topics."""
    try:
        parsed = TopicsPattern(value.strip())
    except InvalidConfiguration as error:
        raise InvalidOption(f"option topicsPattern: {error}") from None
    if parsed.pattern.startswith("non-persistent://"):
        raise UnsupportedTopic(
            "option topicsPattern: non-persistent topics have no positions to come back to"
        )
    return parsed.pattern


def timestamp(value: str) -> int:
    """Milliseconds since 1970, from themselves or from ISO 8601; without a zone it is UTC."""
    text = value.strip()
    if re.fullmatch(r"\d{1,18}", text, re.ASCII):
        return int(text)
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise ValueRefused from None
    if when.tzinfo is None:
        when = when.replace(tzinfo=timezone.utc)  # noqa: UP017
    milliseconds = round(when.timestamp() * 1000)
    if milliseconds < 0:
        raise ValueRefused
    return milliseconds


def key_files(value: str) -> KeyFiles:
    """One file for every key, or NAME=FILE with commas between."""
    parts = [part.strip() for part in value.split(",") if part.strip()]
    if len(parts) == 1 and "=" not in parts[0]:
        return KeyFiles(every=parts[0])
    named = tuple(
        (name.strip(), file.strip()) for name, separator, file in (part.partition("=") for part in parts)
    )
    if not named or not all(name and file for name, file in named) or len(dict(named)) < len(named):
        raise ValueRefused
    return KeyFiles(named)


def names(value: str) -> tuple[str, ...]:
    found = tuple(part.strip() for part in value.split(",") if part.strip())
    if not found or len(set(found)) != len(found):
        raise ValueRefused
    return found
