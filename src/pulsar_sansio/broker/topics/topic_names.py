"""The names of topics as clients list them, by namespace.

`TopicNames` holds all names and announces each that comes or goes. `Topics` is a dict of topics that keeps it
up to date.
"""

from collections.abc import Callable, Iterable
from typing import TypeVar

from ...model.topic_name import TopicName
from ...model.topics_pattern import without_domain

Matches = Callable[[str], bool]
TopicT = TypeVar("TopicT")


class TopicNames:
    """The names of all topics that exist, as answers to clients list them."""

    def __init__(self) -> None:
        self.on_change: Callable[[str, bool], None] = lambda name, exists: None
        """Called with the full name of a topic that was created (True) or deleted (False)."""
        self._all: set[str] = set()
        self._listed: dict[str, dict[str, str]] = {}
        """Namespace -> listed names, each with the text that patterns are matched with."""

    def __contains__(self, name: str) -> bool:
        return name in self._all

    def add(self, name: str) -> None:
        """Add a name; nothing happens where it is there already."""
        if name in self._all:
            return
        self._all.add(name)
        parts = TopicName.parse(name)
        if not is_system(parts):
            names = self._listed.setdefault(parts.namespace_name, {})
            names[name] = without_domain(str(parts.base))
        self.on_change(name, True)

    def remove(self, name: str) -> None:
        """Remove a name; nothing happens where it is not there."""
        if name not in self._all:
            return
        self._all.remove(name)
        namespace = TopicName.parse(name).namespace_name
        names = self._listed.get(namespace, {})
        names.pop(name, None)
        if not names:
            self._listed.pop(namespace, None)
        self.on_change(name, False)

    def listed(self, namespace: str) -> list[str]:
        """Full names, sorted, without system topics (WIRE-04)."""
        return sorted(self._listed.get(namespace, ()))

    def count(self, namespace: str) -> int:
        """Count the names that are listed."""
        return len(self._listed.get(namespace, ()))

    def matching(self, namespace: str, names: Iterable[str], matches: Matches) -> list[str]:
        """Select from `names`, all of them listed, those that match.

        A name matches as a whole, without its scheme and its partition suffix.
        """
        texts = self._listed.get(namespace, {})
        return [name for name in names if matches(texts[name])]


class Topics(dict[str, TopicT]):
    """The topics that a broker serves, by full name.

    `names` follows them; None where an embedder announces which topics exist.
    """

    def __init__(self, names: TopicNames | None) -> None:
        self._names = names

    def __setitem__(self, name: str, topic: TopicT) -> None:
        super().__setitem__(name, topic)
        if self._names is not None:
            self._names.add(name)

    def __delitem__(self, name: str) -> None:
        super().__delitem__(name)
        if self._names is not None:
            self._names.remove(name)


def is_system(name: TopicName) -> bool:
    """True for a topic that brokers keep for themselves; it is never listed."""
    return name.local.startswith("__")
