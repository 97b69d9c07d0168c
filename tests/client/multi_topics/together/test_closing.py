"""The ends of a consumer of several topics, and of its topics."""

from collections.abc import Callable

import pytest

from pulsar_sansio.client.client import Client
from pulsar_sansio.client.outputs import EndOfTopic
from pulsar_sansio.model.errors import ClosedError
from pulsar_sansio.wire import proto
from tests.client.script import Command
from tests.client.topics_script import ready


@pytest.mark.parametrize(
    "command",
    [
        lambda client, now, handle: client.flush_acknowledgements(now, handle),
        lambda client, now, handle: client.last_message_id(now, handle),
        lambda client, now, handle: client.has_message_available(now, handle),
    ],
    ids=["flush", "last message", "is there more"],
)
def test_a_closing_consumer_is_not_asked_anything(command: Callable[[Client, int, int], int]) -> None:
    """The consumer reports its own end, and no `TopicLeft` for its topics."""
    world = ready()
    world.answer_closes = False
    world.script.client.close(world.script.now, world.handle)
    world.answer()
    with pytest.raises(ClosedError, match=r"a, .*b is closed"):
        command(world.script.client, world.script.now, world.handle)


def test_a_topic_that_is_attached_again_is_not_at_its_end_until_the_broker_says_so_again() -> None:
    world = ready()

    def end_of(name: str) -> None:
        end = proto.CommandReachedEndOfTopic(consumer_id=world.consumer_of[name])
        world.say(Command.REACHED_END_OF_TOPIC, end)

    end_of("a")
    world.close_by_broker("a")
    world.pass_time(1.0)
    end_of("b")
    assert EndOfTopic(world.handle) not in world.told()
    end_of("a")
    assert world.told() == [EndOfTopic(world.handle)]
