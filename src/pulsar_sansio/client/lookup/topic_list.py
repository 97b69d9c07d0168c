"""Requests for the topics of a namespace, and the broker's answers (WIRE-04, PATTERN-08)."""

from collections.abc import Sequence
from dataclasses import dataclass

from ...model.config import TopicDomain
from ...model.errors import InvalidTopicName
from ...model.topic_name import TopicName
from ...wire import proto

_MODES = {
    TopicDomain.PERSISTENT: proto.CommandGetTopicsOfNamespace.PERSISTENT,
    TopicDomain.NON_PERSISTENT: proto.CommandGetTopicsOfNamespace.NON_PERSISTENT,
    TopicDomain.ALL: proto.CommandGetTopicsOfNamespace.ALL,
}


@dataclass(frozen=True, slots=True)
class TopicList:
    """A request for the topics of a namespace.

    `pattern`: an optional filter for the broker. `known`: the hash of the list that the client has; the
    broker omits an unchanged list.
    """

    namespace: str
    domain: TopicDomain
    pattern: str | None = None
    known: str | None = None

    def command(self, request_id: int) -> proto.CommandGetTopicsOfNamespace:
        command = proto.CommandGetTopicsOfNamespace(
            request_id=request_id, namespace=self.namespace, mode=_MODES[self.domain]
        )
        if self.pattern is not None:
            command.topics_pattern = self.pattern
        if self.known is not None:
            command.topics_hash = self.known
        return command

    def __str__(self) -> str:
        return f"the topics of {self.namespace}"


@dataclass(frozen=True, slots=True)
class TopicListing:
    """The answer to a `TopicList`.

    `names`: the names as listed by the broker, each partition separately; meaningless unless `changed`.
    `filtered`: the broker applied the pattern. `hash`: the hash of the whole list; None from an old broker.
    """

    names: Sequence[str]
    changed: bool
    filtered: bool
    hash: str | None


def listing(answer: proto.CommandGetTopicsOfNamespaceResponse) -> TopicListing:
    known = answer.topics_hash if answer.HasField("topics_hash") else None
    return TopicListing(tuple(answer.topics), answer.changed, answer.filtered, known)


def parsed(name: str) -> TopicName | None:
    """Parse a name. Return None for an invalid name: brokers of other versions may use other forms."""
    try:
        return TopicName.parse(name)
    except InvalidTopicName:
        return None


def named_topics(listed: TopicListing) -> list[str]:
    """Return the sorted topic names of a listing, with partitions folded to their topic."""
    names = (parsed(name) for name in listed.names)
    return sorted({str(name.base) for name in names if name is not None})
