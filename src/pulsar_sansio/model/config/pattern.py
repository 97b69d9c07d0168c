"""`TopicsPattern`: all topics of a namespace whose names match (rules PATTERN-01, PATTERN-09)."""

import re
from dataclasses import dataclass
from enum import Enum

from ..errors import InvalidConfiguration
from ..topic_name import TopicName
from ..topics_pattern import BadPattern, matcher, matches_topic, without_domain
from .checks import duration

_FLAGS = {re.IGNORECASE: "i", re.MULTILINE: "m", re.DOTALL: "s"}
_NAMESPACE = re.compile(r"[-=:.\w]+/[-=:.\w]+")
_DOMAINS = ("persistent", "non-persistent")


class TopicDomain(Enum):
    """The topics of a namespace that a pattern is about (rule PATTERN-09)."""

    PERSISTENT = "persistent"
    NON_PERSISTENT = "non_persistent"
    ALL = "all"

    def has(self, name: TopicName) -> bool:
        """Return True if that topic is of this domain."""
        return self is TopicDomain.ALL or name.persistent == (self is TopicDomain.PERSISTENT)


@dataclass(frozen=True, slots=True)
class TopicsPattern:
    """All topics of a namespace whose names match.

    `pattern`: `tenant/namespace/` and a regular expression for the topic's own part, with or without
    `persistent://` before, or that expression alone for the namespace `public/default`. The expression has to
    match in full. `domain`: persistent topics, non-persistent ones or both. None takes the domain that the
    pattern begins with, and persistent topics where it begins with none.
    `discovery_interval`: seconds between two requests for the list of topics, 0.001 and more; None never
    asks. A broker that can tell of new topics by itself also does so at once.

    Raises `InvalidConfiguration`.
    """

    pattern: str
    domain: TopicDomain | None = None
    discovery_interval: float | None = 60.0

    def __post_init__(self) -> None:
        pattern, domain = self.pattern, self.domain
        if not isinstance(pattern, str) or not pattern:
            raise InvalidConfiguration(f"pattern: text, not {pattern!r}")
        if domain is not None and not isinstance(domain, TopicDomain):
            raise InvalidConfiguration(f"domain of {pattern!r}: a TopicDomain or None, not {domain!r}")
        if self.discovery_interval is not None:
            duration("discovery_interval", self.discovery_interval, minimum=0.001)
        scheme, separator, rest = pattern.partition("://")
        if separator and scheme not in _DOMAINS:
            raise InvalidConfiguration(
                f"pattern {pattern!r}: the domain is 'persistent' or 'non-persistent', not {scheme!r}"
            )
        parts = (rest if separator else pattern).split("/", 2)
        if len(parts) == 2 or (separator and len(parts) == 1):
            raise InvalidConfiguration(
                f"pattern {pattern!r}: 'topics', 'tenant/namespace/topics' or "
                "'domain://tenant/namespace/topics'"
            )
        if len(parts) == 3 and not _NAMESPACE.fullmatch("/".join(parts[:2])):
            raise InvalidConfiguration(
                f"pattern {pattern!r}: tenant and namespace are names; only the topic's own part is a pattern"
            )
        try:
            matcher(self.expression)
        except BadPattern as error:
            raise InvalidConfiguration(f"pattern {pattern!r}: {error} (RE2 syntax)") from None

    @classmethod
    def of(cls, pattern: re.Pattern[str]) -> "TopicsPattern":
        """Make it of a pattern compiled by Python. Raises `InvalidConfiguration` for syntax that RE2 does not
        know."""
        if not isinstance(pattern.pattern, str):
            raise InvalidConfiguration(f"pattern: of text, not {pattern.pattern!r}")
        flags = "".join(letter for flag, letter in _FLAGS.items() if pattern.flags & flag)
        if pattern.flags & ~(re.UNICODE | re.IGNORECASE | re.MULTILINE | re.DOTALL):
            raise InvalidConfiguration(f"pattern {pattern.pattern!r}: flags other than I, M and S")
        if not flags:
            return cls(pattern.pattern)
        scheme, separator, rest = pattern.pattern.rpartition("://")
        *namespace, own = rest.split("/", 2)
        return cls(scheme + separator + "/".join([*namespace, f"(?{flags}){own}"]))

    @property
    def topics_of(self) -> TopicDomain:
        """The domain, given or not."""
        if self.domain is not None:
            return self.domain
        return TopicDomain.NON_PERSISTENT if self.pattern.startswith("non-") else TopicDomain.PERSISTENT

    @property
    def namespace(self) -> str:
        """`tenant/namespace`, where all of them lie (PATTERN-01)."""
        parts = without_domain(self.pattern).split("/", 2)
        return "/".join(parts[:2]) if len(parts) == 3 else "public/default"

    @property
    def expression(self) -> str:
        """The expression that whole names are matched with, `tenant/namespace/` included."""
        rest = without_domain(self.pattern)
        return rest if rest.count("/") >= 2 else f"public/default/{rest}"

    @property
    def text(self) -> str:
        """The pattern in full, as brokers are told it."""
        domain = "non-persistent" if self.topics_of is TopicDomain.NON_PERSISTENT else "persistent"
        return f"{domain}://{self.expression}"

    def matches(self, name: TopicName) -> bool:
        """Return True if the pattern matches that topic, or the topic that it is a partition of."""
        return (
            name.namespace_name == self.namespace
            and self.topics_of.has(name)
            and not name.local.startswith("__")
            and matches_topic(matcher(self.expression), name)
        )

    def __str__(self) -> str:
        return self.text
