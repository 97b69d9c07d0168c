"""Readers: reading up to the last message, whatever becomes of it (READER-06)."""

from typing import Any, NoReturn

import trio
import trio.testing

from pulsar_sansio import MessageId, TopicMessageId
from pulsar_trio import Reader


class LastIsOfNoUse:
    """A consumer whose broker has said that there is more, and what comes then is dropped."""

    def __init__(self) -> None:
        self.more = [True, True, False]

    async def last_message_ids(self) -> list[TopicMessageId]:
        return [TopicMessageId("persistent://public/default/t", MessageId(1, 0))]

    async def has_message_available(self) -> bool:
        return self.more.pop(0)

    async def receive(self) -> NoReturn:
        await trio.sleep_forever()
        raise AssertionError


async def test_a_last_message_of_no_use_keeps_nobody_waiting(autojump_clock: trio.testing.MockClock) -> None:
    """It came alone and corrupt, or was compacted away, after the question whether there is more."""
    consumer: Any = LastIsOfNoUse()
    with trio.fail_after(10):
        assert [message async for message in Reader(consumer).until_latest()] == []
    assert consumer.more == []
