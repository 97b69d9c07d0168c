"""What topics one consumer may have."""

from ..errors import InvalidConfiguration
from ..topic_name import TopicName
from .pattern import TopicsPattern


def names_of(topic: str | tuple[str, ...] | TopicsPattern) -> tuple[TopicName, ...]:
    """Of the topics that were named; a pattern names none. Raises `InvalidTopicName`."""
    if isinstance(topic, TopicsPattern):
        return ()
    return tuple(map(TopicName.parse, topic if isinstance(topic, tuple) else (topic,)))


def check_topics(topic: str | tuple[str, ...] | TopicsPattern, receiver_queue_size: int) -> None:
    """Of several: at least one, all valid, none of them twice, be it as a partition (rule MULTI-08; that they
    lie in one namespace is asked by no present client any more).

    A queue of size 0, which asks for a message when somebody wants one, cannot know of which topic
    (MULTI-03). Raises `InvalidConfiguration`, `InvalidTopicName`.
    """
    names = names_of(topic)
    if isinstance(topic, str):
        return
    if receiver_queue_size == 0:
        raise InvalidConfiguration("receiver_queue_size: 1 and more for several topics")
    if isinstance(topic, TopicsPattern):
        return
    if not names:
        raise InvalidConfiguration("topic: at least one")
    found = set(names)
    if len(found) < len(names):
        twice = next(name for index, name in enumerate(names) if name in names[:index])
        raise InvalidConfiguration(f"topic: {twice} is named twice")
    for name in names:
        if name.base != name and name.base in found:
            raise InvalidConfiguration(f"topic: {name} is a partition of {name.base}, which is named too")
