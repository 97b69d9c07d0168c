"""Lists of topics: the question for one, and what a broker answers (WIRE-04, PATTERN-08)."""

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
    """The topics of a namespace. `pattern`: what the broker may filter them by. `known`: the hash of the list
    that is there already and need not be sent again."""

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
    """The answer. `names`: as the broker lists them, partitions one by one; without meaning where it has not
    `changed`. `filtered`: the pattern was applied. `hash`: of the whole list, None of an old broker."""

    names: Sequence[str]
    changed: bool
    filtered: bool
    hash: str | None


def listing(answer: proto.CommandGetTopicsOfNamespaceResponse) -> TopicListing:
    known = answer.topics_hash if answer.HasField("topics_hash") else None
    return TopicListing(tuple(answer.topics), answer.changed, answer.filtered, known)


def parsed(name: str) -> TopicName | None:
    """None for what is no name: a broker of another version may have topics of other forms."""
    try:
        return TopicName.parse(name)
    except InvalidTopicName:
        return None


def named_topics(listed: TopicListing) -> list[str]:
    """Partitions folded to their topics, each once."""
    names = (parsed(name) for name in listed.names)
    return sorted({str(name.base) for name in names if name is not None})
