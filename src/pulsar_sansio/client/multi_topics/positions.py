"""The positions of a consumer of several topics: seek targets, and last messages (rule MULTI-26).

An ordinary id belongs to one topic, so it moves one topic. A target that has a meaning in every topic moves
all topics: earliest, latest, a time, or a function that is called for each topic.
"""

from collections.abc import Iterable, Mapping

from ...model.message import Message
from ...model.message_id import EARLIEST, LATEST, MessageId, TopicMessageId
from ..consuming.consumer import Consumer
from ..positions.seeking import SeekTarget, Target
from .ack_commands import MultiTopicsAckCommands
from .member import Member


def seek_positions(
    members: Iterable[Member], ack_commands: MultiTopicsAckCommands, target: SeekTarget | TopicMessageId
) -> dict[str, tuple[Consumer, Target]]:
    """Return each consumer that moves, and its target, by the name of its topic.

    Raises `LocalProtocolError` for a target that is no position, or that does not name its topic.
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
        str(consumer.topic): (consumer, consumer.check_seek(position))
        for consumer, position in ack_commands.spread_one(target)
    }


def last_ids(results: Mapping[str, MessageId]) -> list[TopicMessageId]:
    """Return the last message of each topic, ordered by the names of the topics."""
    return [TopicMessageId(name, results[name]) for name in sorted(results)]


def anything(results: Mapping[str, bool]) -> bool:
    """Tell whether any topic has a message."""
    return any(results.values())
