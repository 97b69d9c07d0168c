"""`CommandTopics`: which topics the commands of one connection are about.

Most commands name a producer, a consumer or a request. So the topic is remembered when the client opens the
producer or consumer, or sends the request.
"""

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, NamedTuple

from ...model.errors import InvalidTopicName
from ...model.topic_name import TopicName
from ...wire import proto
from ..dispatching.consumer import Consumer
from ..topics.producing.producer import Producer
from .commands import FROM_BROKER, FROM_CLIENT, Subject
from .remembered import Remembered

if TYPE_CHECKING:
    from ..serving.connection import Connection

MAX_NAME = 4096
"""The number of characters of a topic's name that are remembered."""


class About(NamedTuple):
    """The subject of a command. `owner`: the producer or consumer whose commands keep their order."""

    topics: tuple[str, ...] = ()
    owner: Hashable = None


NOTHING = About()


class CommandTopics:
    """The producers and consumers that the connection has already are known."""

    def __init__(self, connection: "Connection") -> None:
        self._owned: Remembered[tuple[Subject, int], About] = Remembered()
        """The kind and id of a producer or consumer -> its topic."""
        self._requests: Remembered[int, About] = Remembered()
        for producer in connection.producers.values():
            if isinstance(producer, Producer):
                self._open(Subject.PRODUCER, producer.id, (producer.topic.name,))
        for consumer in connection.consumers.values():
            if isinstance(consumer, Consumer):
                self._open(Subject.CONSUMER, consumer.id, (consumer.subscription.topic.name,))

    def of_client(self, name: str, command: Any) -> About:
        """Tell what a client's command is about, and remember that for the answer."""
        match FROM_CLIENT.get(name):
            case Subject.TOPIC:
                topics = (_full_name(command.topic),)
                if name == "PRODUCER":
                    about = self._open(Subject.PRODUCER, command.producer_id, topics)
                elif name == "SUBSCRIBE":
                    about = self._open(Subject.CONSUMER, command.consumer_id, topics)
                else:
                    about = About(topics)
            case Subject.PRODUCER:
                about = self._owner(Subject.PRODUCER, command.producer_id)
            case Subject.CONSUMER:
                about = self._owner(Subject.CONSUMER, command.consumer_id)
            case Subject.PARTITIONS:
                about = About(tuple(map(_full_name, command.partitions)))
            case Subject.SUBSCRIPTIONS:
                about = About(tuple(_full_name(each.topic) for each in command.subscription))
            case _:
                return NOTHING
        request_id = getattr(command, "request_id", None)
        if request_id is not None:
            self._requests[request_id] = about
        return about

    def of_broker(self, name: str, command: Any) -> About:
        """Tell what a command of the broker is about."""
        match FROM_BROKER.get(name):
            case Subject.PRODUCER:
                return self._owner(Subject.PRODUCER, command.producer_id)
            case Subject.CONSUMER:
                return self._owner(Subject.CONSUMER, command.consumer_id)
            case Subject.REQUEST:
                return self._requests.get(command.request_id, NOTHING)
            case Subject.RESOURCE:
                of_producer = command.resource_type == proto.CommandTopicMigrated.Producer
                return self._owner(Subject.PRODUCER if of_producer else Subject.CONSUMER, command.resource_id)
        return NOTHING

    def _open(self, kind: Subject, number: int, topics: tuple[str, ...]) -> About:
        about = self._owned[kind, number] = About(topics, (kind, number))
        return about

    def _owner(self, kind: Subject, number: int) -> About:
        return self._owned.get((kind, number), About((), (kind, number)))


def _full_name(topic: str) -> str:
    """Return the full name of a topic; a name that cannot be is shortened, and else as it came."""
    try:
        return str(TopicName.parse(topic[:MAX_NAME]))
    except InvalidTopicName:
        return topic[:MAX_NAME]
