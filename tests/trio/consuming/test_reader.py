"""Readers: reading up to the last message, whatever becomes of it."""

from typing import Any, NoReturn

import pytest
import trio
import trio.testing

from pulsar_sansio import EARLIEST, LATEST, MessageId, TopicMessageId
from pulsar_trio import Client, Message, Reader
from tests.patience import PATIENCE
from tests.trio.consuming.test_consumer import filled

TOPIC = "persistent://public/default/t"


class LastIsOfNoUse:
    """A consumer whose broker has said that there is more, and what comes then is dropped."""

    def __init__(self) -> None:
        self.more = [True, True, False]

    async def last_message_ids(self) -> list[TopicMessageId]:
        return [TopicMessageId(TOPIC, MessageId(1, 0))]

    def positions(self) -> dict[str, MessageId]:
        return {}

    async def has_message_available(self) -> bool:
        return self.more.pop(0)

    async def receive(self) -> NoReturn:
        await trio.sleep_forever()
        raise AssertionError


async def test_a_last_message_of_no_use_keeps_no_task_waiting(autojump_clock: trio.testing.MockClock) -> None:
    """The last message came alone and corrupt, or was compacted away, after the question whether there is
    more."""
    consumer: Any = LastIsOfNoUse()
    with trio.fail_after(10):
        assert [message async for message in Reader(consumer).until_latest()] == []
    assert consumer.more == []


class MoreComes:
    """A consumer to whose topic messages come just after it was asked which one is the last."""

    def __init__(self, last: MessageId, position: MessageId) -> None:
        self.last = last
        self.position = position

    async def last_message_ids(self) -> list[TopicMessageId]:
        return [TopicMessageId(TOPIC, self.last)]

    def positions(self) -> dict[str, MessageId]:
        return {TOPIC: self.position}

    async def has_message_available(self) -> bool:
        return True

    async def receive(self) -> NoReturn:
        raise AssertionError("it is for the next one to receive")


@pytest.mark.parametrize(
    ("last", "position"),
    [
        (MessageId(1, 5), MessageId(1, 5)),
        (MessageId(1, 5, -1, 2, 3), MessageId(1, 5, -1, 2, 3)),
        (MessageId(-1, -1), EARLIEST),
        (MessageId(-1, -1), LATEST),
    ],
)
async def test_what_comes_after_the_question_is_left_for_the_next(
    last: MessageId, position: MessageId
) -> None:
    consumer: Any = MoreComes(last, position)
    assert [message async for message in Reader(consumer).until_latest()] == []


async def test_the_end_of_another_channel_is_not_the_end_of_the_topic(client: Client) -> None:
    async def handle(message: Message) -> None:
        raise trio.EndOfChannel

    async with filled(client, 2), client.create_reader("t", "earliest") as reader:
        with trio.fail_after(PATIENCE), pytest.raises(trio.EndOfChannel):
            await reader.run(handle)
