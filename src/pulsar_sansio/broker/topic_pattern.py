"""`TopicPattern`: the topics that a person names, for faults and for questions about a broker's state."""

from ..model.errors import InvalidConfiguration
from ..model.topic_name import TopicName, is_text

MAX_LENGTH = 4096
"""The number of characters of a pattern."""

PARTITION = "-partition-"


class TopicPattern:
    """A topic by any of its names, or the topics whose full names a text with `*` in it matches.

    `*` stands for any characters, none included; `*` alone matches every topic. The name of a partitioned
    topic matches its partitions, too. A short pattern grows as a short name does. Raises
    `InvalidConfiguration`.
    """

    __slots__ = ("_exact", "_parts", "every", "text")

    def __init__(self, text: str) -> None:
        if not is_text(text) or not text or len(text) > MAX_LENGTH:
            raise InvalidConfiguration(
                f"topic: a name or a pattern of at most {MAX_LENGTH} characters, not {text!r:.200}"
            )
        self.text = text
        self.every = text == "*"
        """True for the pattern that matches all topics."""
        self._exact: str | None = None
        if "*" in text:
            self._parts = _full(text).split("*")
        else:
            self._exact = str(TopicName.parse(text))
            self._parts = []

    def matches(self, topic: str) -> bool:
        """`topic`: a full name."""
        if self.every:
            return True
        if self._exact is not None:
            rest = topic.removeprefix(self._exact)
            return topic == self._exact or (rest != topic and rest.startswith(PARTITION))
        first, *middle, last = self._parts
        if not topic.startswith(first):
            return False
        position = len(first)
        for part in middle:
            found = topic.find(part, position)
            if found < 0:
                return False
            position = found + len(part)
        return len(topic) - len(last) >= position and topic.endswith(last)


def _full(pattern: str) -> str:
    """Return a pattern of full names."""
    if "://" in pattern or pattern == "*":
        return pattern
    slashes = pattern.count("/")
    if slashes == 0:
        return f"persistent://public/default/{pattern}"
    if slashes == 2:
        return f"persistent://{pattern}"
    raise InvalidConfiguration(
        f"topic: a short pattern is 'topic*' or 'tenant/namespace/topic*', not {pattern!r}"
    )
