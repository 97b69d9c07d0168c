"""Where a consumer of several topics goes, and where it is (rule MULTI-26).

An ordinary id belongs to one topic, so it moves that one alone. What means something in every topic moves all
of them: earliest, latest, a time, or a function that is asked about each.
"""

from collections.abc import Iterable, Mapping

from ...model.message import Message
from ...model.message_id import EARLIEST, LATEST, MessageId, TopicMessageId
from ..consuming.consumer import Consumer
from ..consuming.seeking import SeekTarget, Target
from .ack_commands import MultiTopicsAckCommands
from .member import Member


def seek_places(
    members: Iterable[Member], verdicts: MultiTopicsAckCommands, target: SeekTarget | TopicMessageId
) -> dict[str, tuple[Consumer, Target]]:
    """By the name of its topic, every consumer that is to go somewhere, and where to.

    Raises `LocalProtocolError` for what is no place, or not said of which topic.
    """
    in_all = (
        target in (EARLIEST, LATEST)
        if isinstance(target, MessageId)
        else not isinstance(target, Message | TopicMessageId)
    )
    if in_all:
        assert not isinstance(target, TopicMessageId)
        return {member.name: (member.consumer, member.consumer.check_seek(target)) for member in members}
    assert isinstance(target, Message | MessageId | TopicMessageId)
    return {
        str(consumer.topic): (consumer, consumer.check_seek(place))
        for consumer, place in verdicts.spread_one(target)
    }


def last_ids(results: Mapping[str, MessageId]) -> list[TopicMessageId]:
    """The last message of each topic, by the names of the topics."""
    return [TopicMessageId(name, results[name]) for name in sorted(results)]


def anything(results: Mapping[str, bool]) -> bool:
    """Whether any topic has a message."""
    return any(results.values())
