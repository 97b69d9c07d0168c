"""The topics that one consumer may have."""

from ..errors import InvalidConfiguration
from ..topic_name import TopicName
from .pattern import TopicsPattern


def names_of(topic: str | tuple[str, ...] | TopicsPattern) -> tuple[TopicName, ...]:
    """Return the names of the named topics; a pattern names none. Raises `InvalidTopicName`."""
    if isinstance(topic, TopicsPattern):
        return ()
    return tuple(map(TopicName.parse, topic if isinstance(topic, tuple) else (topic,)))


def check_topics(topic: str | tuple[str, ...] | TopicsPattern, receiver_queue_size: int) -> None:
    """Check several topics: at least one, all valid, none of them twice, not even as a partition (rule
    MULTI-08). No present client requires any more that they lie in one namespace.

    A consumer with a queue of size 0 asks for a message when the application wants one. It cannot know which
    topic to ask (MULTI-03). Raises `InvalidConfiguration`, `InvalidTopicName`.
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
