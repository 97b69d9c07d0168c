"""Compaction of chunked messages, which are kept or removed as a whole."""

import pytest

from pulsar_sansio.broker.topics.compaction import compaction as compaction_module
from pulsar_sansio.wire import (
    proto,
)
from tests.broker.peer import TOPIC, WALL, Type, ids
from tests.broker.topics.compaction.compacting import (
    compact,
    data,
    publish,
    publish_chunks,
    reader,
    world_with,
)


class TestMessagesInChunksThatWereNotFinished:
    """Only a complete message replaces the last one of its key, and can be the last message (CHUNK-01)."""

    LONG_AGO = WALL - compaction_module.UNFINISHED_FOR

    def test_replace_nothing(self) -> None:
        world, producing = world_with()
        publish(producing, "a", b"before")
        publish_chunks(producing, "b", "p-0", [0, 1], 2)
        publish_chunks(producing, "a", "p-1", [0, 1], 3, publish_time=self.LONG_AGO)
        publish_chunks(producing, "b", "p-2", [0], 2, publish_time=self.LONG_AGO)
        publish_chunks(producing, None, "p-3", [0], 2)  # no key: always removed
        compact(world)
        assert data(reader(world).messages()) == [b"before", b"p-0.0", b"p-0.1"]
        assert (
            world.broker.topic_administration.stats(TOPIC)["compaction"]["lastCompactionRemovedEventCount"]
            == 4
        )

    @pytest.mark.parametrize(
        "numbers", [[1, 2], [0, 2], [0, 2, 1], [0, 1, 0, 2]], ids=lambda numbers: "".join(map(str, numbers))
    )
    def test_nor_do_those_that_lack_a_chunk(self, numbers: list[int]) -> None:
        """Only another first chunk could complete the message."""
        world, producing = world_with()
        publish(producing, "a", b"before")
        publish_chunks(producing, "a", "p-1", numbers, 3, publish_time=self.LONG_AGO)
        compact(world)
        assert data(reader(world).messages()) == [b"before"]

    def test_nor_does_what_says_another_number_of_chunks(self) -> None:
        world, producing = world_with()
        publish(producing, "a", b"before")
        publish_chunks(producing, "a", "p-1", [0], 3)
        publish_chunks(producing, "a", "p-1", [1], 2)
        compact(world)
        assert data(reader(world).messages()) == [b"before"]

    def test_nor_do_chunks_of_two_producers_that_give_their_messages_one_uuid(self) -> None:
        world, producing = world_with()
        publish(producing, "a", b"before")
        publish_chunks(producing, "a", "p-1", [0], 2, publish_time=self.LONG_AGO)
        publish_chunks(producing, "a", "p-1", [1], 2, producer_name="q")
        compact(world)
        assert data(reader(world).messages()) == [b"before"]

    @pytest.mark.parametrize(
        ("numbers", "left"),
        [
            ([0, 1, 1, 2], [0, 1, 3]),
            ([0, 1, 0, 1, 2], [2, 3, 4]),
            ([0, 1, 2, 2], [0, 1, 2]),
        ],
        ids=["one-twice", "from-the-first", "the-last-twice"],
    )
    def test_of_chunks_that_came_twice_those_stay_that_make_the_message(
        self, numbers: list[int], left: list[int]
    ) -> None:
        """A producer that reconnects resends unconfirmed chunks."""
        world, producing = world_with()
        publish_chunks(producing, "a", "p-1", numbers, 3)
        compact(world)
        messages = reader(world).messages()
        assert [entry_id for _, entry_id in ids(messages)] == left
        assert data(messages) == [b"p-1.0", b"p-1.1", b"p-1.2"]

    def test_what_was_sent_between_the_chunks_is_older(self) -> None:
        """The message counts from its last chunk on."""
        world, producing = world_with()
        publish_chunks(producing, "a", "p-1", [0], 2)
        publish(producing, "a", b"between")
        compact(world)
        assert data(reader(world).messages()) == [b"p-1.0", b"between"]
        publish_chunks(producing, "a", "p-1", [1], 2)
        compact(world)
        assert data(reader(world).messages()) == [b"p-1.0", b"p-1.1"]

    def test_several_at_a_time(self) -> None:
        world, producing = world_with()
        publish(producing, "a", b"before")
        publish_chunks(producing, "a", "p-1", [0], 2)
        publish_chunks(producing, "b", "p-2", [0], 2)
        publish_chunks(producing, "a", "p-1", [1], 2)
        publish_chunks(producing, "a", "p-3", [0], 2, publish_time=self.LONG_AGO)
        publish_chunks(producing, "b", "p-2", [1], 2)
        compact(world)
        assert data(reader(world).messages()) == [b"p-1.0", b"p-2.0", b"p-1.1", b"p-2.1"]


class TestMessagesInChunksAcrossTheHorizon:
    """Consumers that read compacted receive messages that begin before the horizon and end after it."""

    def test_come_whole(self) -> None:
        world, producing = world_with()
        publish(producing, "a", b"before")
        publish_chunks(producing, "a", "p-1", [0, 1], 3)
        compact(world)
        peer = reader(world)
        assert data(peer.messages()) == [b"before", b"p-1.0", b"p-1.1"]
        publish_chunks(producing, "a", "p-1", [2], 3)
        assert data(peer.messages()) == [b"p-1.2"]
        assert data(reader(world).messages()) == [b"before", b"p-1.0", b"p-1.1", b"p-1.2"]

    def test_replace_what_was_before_once_they_are_whole(self) -> None:
        """The topic is compacted before each chunk, and the broker restarts between chunks."""
        world, producing = world_with(ledger_max_entries=1, keep_without_subscription=0)
        compact(world)
        publish(producing, "a", b"before")
        for number in range(3):
            publish_chunks(producing, "a", "p-1", [number], 3)
            if number == 1:
                world.start()
                producing = world.connect()
                producing.producer()
            if number < 2:
                compact(world)
                expected = [b"before", *(b"p-1.%d" % each for each in range(number + 1))]
                assert data(reader(world).messages()) == expected
        compact(world)
        assert data(reader(world).messages()) == [b"p-1.0", b"p-1.1", b"p-1.2"]

    def test_are_given_up_when_their_producer_is_long_gone(self) -> None:
        world, producing = world_with()
        producing.producer(producer_id=1, name="p")
        publish(producing, "a", b"before")
        publish_chunks(producing, "a", "p-1", [0, 1], 3)
        world.advance(compaction_module.UNFINISHED_FOR / 1000)
        compact(world)
        left = [b"before", b"p-1.0", b"p-1.1"]
        assert data(reader(world).messages()) == left, "it is there"
        producing.send(Type.CLOSE_PRODUCER, proto.CommandCloseProducer(producer_id=1, request_id=1))
        producing.expect(Type.SUCCESS)
        compact(world)
        assert data(reader(world).messages()) == left[:1]
        publish_chunks(producing, "a", "p-1", [2], 3)
        compact(world)
        assert data(reader(world).messages()) == left[:1]

    def test_a_producer_may_be_away_for_a_while(self) -> None:
        world, producing = world_with()
        publish(producing, "a", b"before")
        publish_chunks(producing, "a", "p-1", [0], 2)
        for _ in range(2):
            world.advance(compaction_module.UNFINISHED_FOR / 1000 / 2 - 1)
            compact(world)
        assert data(reader(world).messages()) == [b"before", b"p-1.0"]
