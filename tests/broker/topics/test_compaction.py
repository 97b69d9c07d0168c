"""Compaction: what stays of a topic, and who reads it (rules COMPACT-01 to COMPACT-03)."""

from typing import Any, ClassVar

import pytest

from pulsar_sansio.broker import BrokerConfig, InUse, NotApplicable, NotFound
from pulsar_sansio.broker.topics import compaction as compaction_module
from pulsar_sansio.wire import (
    CUMULATIVE,
    MessageCommand,
    SingleMessageMetadata,
    compress,
    decompress,
    encode_single,
    proto,
    split_batch,
    unpack_payload,
)
from tests.broker.peer import TOPIC, WALL, Peer, SubType, Type, World, ids

EARLIEST = proto.MessageIdData(ledgerId=2**64 - 1, entryId=2**64 - 1)
Member = tuple[str | None, bytes]


def publish(peer: Peer, key: str | None, payload: bytes, **fields: Any) -> None:
    peer.publish(payload, partition_key=key, **fields)
    peer.expect(Type.SEND_RECEIPT)


def publish_batch(peer: Peer, *members: Member, compression: int = 0) -> None:
    body = b"".join(
        encode_single(
            SingleMessageMetadata(0, partition_key=key, sequence_id=number, null_value=not payload), payload
        )
        for number, (key, payload) in enumerate(members)
    )
    count = len(members)
    size = len(body)
    if compression:
        body = compress(compression, body)
    peer.publish(
        body,
        0,
        highest=count - 1,
        count=count,
        num_messages_in_batch=count,
        compression=compression,
        uncompressed_size=size,
    )
    peer.expect(Type.SEND_RECEIPT)


def publish_chunks(
    peer: Peer, key: str | None, uuid: str, numbers: list[int], total: int, **fields: Any
) -> None:
    """Some of the chunks of a message, of five bytes each."""
    for number in numbers:
        publish(
            peer,
            key,
            f"{uuid}.{number}".encode(),
            uuid=uuid,
            num_chunks_from_msg=total,
            chunk_id=number,
            total_chunk_msg_size=5 * total,
            **fields,
        )


def compact(world: World) -> None:
    world.broker.topic_administration.compact(world.now, TOPIC)
    world.pump()
    world.advance(0)


def world_with(**config: Any) -> tuple[World, Peer]:
    world = World(BrokerConfig(keepalive_interval=10.0 * 365 * 86_400, **config))
    producing = world.connect()
    producing.producer()
    return world, producing


def reader(world: World, compacted: bool = True, **fields: Any) -> Peer:
    """A consumer that reads from the beginning."""
    peer = world.connect()
    fields.setdefault("subscription", f"reader-{world.links}")
    peer.subscribe(read_compacted=compacted, durable=False, **fields)
    return peer


def data(messages: list[MessageCommand]) -> list[bytes]:
    return [unpack_payload(each.payload).payload for each in messages]


def members(message: MessageCommand) -> list[tuple[str | None, bytes, bool]]:
    """Key, payload and whether it was taken out."""
    unpacked = unpack_payload(message.payload)
    metadata = unpacked.metadata
    assert metadata.num_messages_in_batch is not None
    payload = unpacked.payload
    if metadata.compression:
        payload = decompress(metadata.compression, payload, metadata.uncompressed_size, 2**20)
    batch = split_batch(payload, metadata.num_messages_in_batch)
    singles = [batch.single(index) for index in range(len(batch))]
    return [
        (single.partition_key, each, single.compacted_out)
        for single, each in zip(singles, batch.payloads, strict=True)
    ]


class TestWhatStays:
    def test_the_last_message_of_every_key(self) -> None:
        """Seen: java-compaction."""
        world, producing = world_with()
        for number in range(6):
            publish(producing, f"k{number % 2}", b"v%d" % number)
        compact(world)
        messages = reader(world).messages()
        assert data(messages) == [b"v4", b"v5"]
        assert [entry_id for _, entry_id in ids(messages)] == [4, 5]
        assert all(each.consumer_epoch is None for each in messages)

    def test_a_key_that_was_deleted_does_not(self) -> None:
        world, producing = world_with()
        publish(producing, "a", b"1")
        publish(producing, "b", b"1")
        publish(producing, "c", b"1")
        publish(producing, "a", b"", null_value=True)
        publish(producing, "b", b"")
        compact(world)
        assert data(reader(world).messages()) == [b"1"]

    def test_nor_does_what_has_no_key(self) -> None:
        world, producing = world_with()
        publish(producing, None, b"1")
        publish(producing, "a", b"2")
        compact(world)
        assert data(reader(world).messages()) == [b"2"]

    @pytest.mark.parametrize("compression", [0, proto.LZ4, proto.ZLIB, proto.ZSTD, proto.SNAPPY])
    def test_of_a_batch_the_places_of_the_others(self, compression: int) -> None:
        """So that every message keeps its id (COMPACT-02)."""
        world, producing = world_with()
        publish_batch(producing, ("a", b"1"), ("b", b"2"), (None, b"3"), ("c", b"4"), compression=compression)
        publish_batch(producing, ("b", b"5"), ("c", b""), compression=compression)
        publish_batch(producing, ("d", b"6"), ("d", b""), compression=compression)
        compact(world)
        first, second = reader(world).messages()
        out = (None, b"", True)
        assert members(first) == [("a", b"1", False), out, out, out]
        assert members(second) == [("b", b"5", False), out]
        metadata = proto.MessageMetadata.FromString(
            first.payload[10 : 10 + int.from_bytes(first.payload[6:10], "big")]
        )
        assert list(metadata.compacted_batch_indexes) == [0]

    def test_a_batch_of_which_all_stays_is_left_alone(self) -> None:
        world, producing = world_with()
        publish_batch(producing, ("a", b"1"), ("b", b"2"))
        plain = reader(world, compacted=False).messages()
        compact(world)
        assert [each.payload for each in reader(world).messages()] == [each.payload for each in plain]

    def test_what_cannot_be_read_stays_by_the_key_of_the_whole(self) -> None:
        world, producing = world_with()
        keys = [proto.EncryptionKeys(key="k", value=b"v")]
        for key in ("a", None):
            producing.publish(
                b"\x01\x02" * 20,
                count=3,
                highest=2,
                num_messages_in_batch=3,
                partition_key=key,
                encryption_keys=keys,
            )
            producing.expect(Type.SEND_RECEIPT)
        producing.publish(b"no batch at all", count=2, highest=1, num_messages_in_batch=2, partition_key="b")
        producing.expect(Type.SEND_RECEIPT)
        compact(world)
        assert [entry_id for _, entry_id in ids(reader(world).messages())] == [0, 2]

    def test_a_message_in_chunks_as_a_whole(self) -> None:
        world, producing = world_with()
        publish_chunks(producing, "a", "p-0", [0, 1], 2)
        publish_chunks(producing, "a", "p-1", [0, 1], 2)
        publish_chunks(producing, "b", "p-2", [0, 1], 2)
        publish(producing, "b", b"small")
        compact(world)
        assert data(reader(world).messages()) == [b"p-1.0", b"p-1.1", b"small"]

    def test_of_a_compacted_topic_that_grew(self) -> None:
        world, producing = world_with()
        publish_batch(producing, ("a", b"1"), ("b", b"1"), ("c", b"1"))
        compact(world)
        publish(producing, "a", b"2")
        compact(world)
        publish(producing, "b", b"2")
        compact(world)
        messages = reader(world).messages()
        out = (None, b"", True)
        assert members(messages[0]) == [out, out, ("c", b"1", False)]
        assert data(messages[1:]) == [b"2", b"2"]

    def test_of_nothing_nothing(self) -> None:
        world, producing = world_with()
        compact(world)
        assert world.broker.topic_administration.compaction_status(TOPIC) == ("SUCCESS", "")
        publish(producing, "a", b"1")
        assert data(reader(world).messages()) == [b"1"]


class TestMessagesInChunksThatWereNotFinished:
    """Only one that is whole replaces what its key had, and is counted among the last (CHUNK-01)."""

    LONG_AGO = WALL - compaction_module.UNFINISHED_FOR

    def test_replace_nothing(self) -> None:
        world, producing = world_with()
        publish(producing, "a", b"before")
        publish_chunks(producing, "b", "p-0", [0, 1], 2)
        publish_chunks(producing, "a", "p-1", [0, 1], 3, publish_time=self.LONG_AGO)
        publish_chunks(producing, "b", "p-2", [0], 2, publish_time=self.LONG_AGO)
        publish_chunks(producing, None, "p-3", [0], 2)  # of no use, whatever becomes of it
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
        """Nothing but another first chunk would make them whole."""
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

    def test_nor_do_chunks_of_two_producers_that_call_their_message_alike(self) -> None:
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
        """A producer that reconnects sends again what was not confirmed."""
        world, producing = world_with()
        publish_chunks(producing, "a", "p-1", numbers, 3)
        compact(world)
        messages = reader(world).messages()
        assert [entry_id for _, entry_id in ids(messages)] == left
        assert data(messages) == [b"p-1.0", b"p-1.1", b"p-1.2"]

    def test_what_was_sent_between_the_chunks_is_older(self) -> None:
        """The message is there with its last chunk."""
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
    """What is begun before it and finished behind it is for those who read compacted, too."""

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
        """Compacted before each chunk, and a broker that starts anew between them."""
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


class TestWhoReadsIt:
    def test_others_see_everything(self) -> None:
        world, producing = world_with()
        for number in range(4):
            publish(producing, "k", b"%d" % number)
        compact(world)
        assert data(reader(world, compacted=False).messages()) == [b"0", b"1", b"2", b"3"]

    def test_what_came_after_the_horizon_comes_as_it_is(self) -> None:
        world, producing = world_with()
        publish(producing, "k", b"0")
        publish(producing, "k", b"1")
        compact(world)
        publish(producing, "k", b"2")
        publish(producing, "k", b"3")
        peer = reader(world)
        assert data(peer.messages()) == [b"1", b"2", b"3"]
        publish(producing, "k", b"4")
        assert data(peer.messages()) == [b"4"]

    def test_with_few_permits_at_a_time(self) -> None:
        world, producing = world_with()
        for number in range(6):
            publish(producing, f"k{number}", b"%d" % number)
        compact(world)
        publish(producing, "k0", b"6")
        peer = reader(world, permits=2)
        found: list[bytes] = []
        while messages := data(peer.messages()):
            assert len(messages) <= 2
            found += messages
            peer.flow(2)
        assert found == [b"%d" % number for number in range(7)]

    def test_what_the_ledgers_have_no_more(self) -> None:
        world, producing = world_with(ledger_max_entries=2, keep_without_subscription=0)
        compact(world)  # from now on nothing goes that is not compacted
        for number in range(10):
            publish(producing, f"k{number % 5}", b"%d" % number)
        compact(world)
        publish(producing, "x", b"10")
        assert world.broker.topic_administration.internal_stats(TOPIC)["numberOfEntries"] < 5
        peer = reader(world)
        assert data(peer.messages()) == [b"5", b"6", b"7", b"8", b"9", b"10"]
        start = proto.MessageIdData(ledgerId=0, entryId=0, batch_index=-1)
        assert data(reader(world, start_message_id=start).messages())[0] == b"5"

    def test_a_durable_subscription_goes_on_where_it_was(self) -> None:
        world, producing = world_with()
        for number in range(6):
            publish(producing, f"k{number % 3}", b"%d" % number)
        compact(world)
        peer = world.connect()
        peer.subscribe(read_compacted=True)
        messages = peer.messages()
        assert data(messages) == [b"3", b"4", b"5"]
        peer.ack(messages[0], messages[1])
        peer.close_consumer()
        peer.subscribe(read_compacted=True)
        assert data(peer.messages()) == [b"5"]
        peer.ack((messages[2].ledger_id, messages[2].entry_id, None), kind=CUMULATIVE)
        peer.close_consumer()
        peer.subscribe(read_compacted=True)
        peer.nothing()

    @pytest.mark.parametrize("kind", [SubType.Shared, SubType.Key_Shared])
    def test_shared_subscriptions_do_not(self, kind: SubType) -> None:
        world, _ = world_with()
        peer = world.connect()
        peer.ask_subscribe(kind, read_compacted=True)
        assert peer.expect(Type.ERROR).error == proto.NotAllowedError

    def test_seeks_find_what_is_left(self) -> None:
        world, producing = world_with(ledger_max_entries=2, keep_without_subscription=0)
        compact(world)
        for number in range(8):
            publish(producing, f"k{number % 4}", b"%d" % number, publish_time=WALL + number)
        compact(world)
        peer = world.connect()
        peer.subscribe(SubType.Exclusive, read_compacted=True)
        peer.messages()
        for target, expected in (
            ({"message_publish_time": WALL + 5}, [b"5", b"6", b"7"]),
            ({"message_publish_time": WALL + 50}, []),
            ({"message_id": proto.MessageIdData(ledgerId=3, entryId=1)}, [b"5", b"6", b"7"]),
            (
                {"message_id": EARLIEST},
                [b"4", b"5", b"6", b"7"],
            ),
        ):
            peer.send(Type.SEEK, proto.CommandSeek(consumer_id=0, request_id=peer.request(), **target))
            peer.expect(Type.CLOSE_CONSUMER)
            peer.expect(Type.SUCCESS)
            peer.subscribe(SubType.Exclusive, read_compacted=True)
            assert data(peer.messages()) == expected


class TestTheLastMessage:
    def ask(self, peer: Peer) -> tuple[int, int]:
        peer.send(
            Type.GET_LAST_MESSAGE_ID,
            proto.CommandGetLastMessageId(consumer_id=0, request_id=peer.request()),
        )
        last = peer.expect(Type.GET_LAST_MESSAGE_ID_RESPONSE).last_message_id
        return last.entryId, last.batch_index

    def test_is_the_last_that_is_left(self) -> None:
        """Who reads up to it must not wait for one that never comes."""
        world, producing = world_with()
        publish_batch(producing, ("a", b"1"), ("b", b"2"), ("c", b"3"))
        publish(producing, "c", b"")
        compact(world)
        peer = reader(world)
        peer.messages()
        assert self.ask(peer) == (0, 1)
        plain = reader(world, compacted=False)
        plain.messages()
        assert self.ask(plain) == (1, -1)
        publish(producing, "d", b"4")
        peer.messages()
        assert self.ask(peer) == (2, -1)

    def test_of_nothing(self) -> None:
        world, producing = world_with()
        publish(producing, "a", b"1")
        publish(producing, "a", b"")
        compact(world)
        peer = reader(world)
        peer.nothing()
        assert self.ask(peer) == (2**64 - 1, -1)

    def test_is_no_chunk_of_a_message_that_is_not_finished(self) -> None:
        world, producing = world_with()
        publish_chunks(producing, "c", "p-0", [0], 2)
        publish_batch(producing, ("a", b"1"), ("b", b"2"))
        publish_chunks(producing, "a", "p-1", [0, 1], 3)
        compact(world)
        peer = reader(world)
        peer.messages()
        assert self.ask(peer) == (1, 1)
        publish_chunks(producing, "a", "p-1", [2], 3)
        compact(world)
        peer.messages()
        assert self.ask(peer) == (4, -1)

    def test_is_none_where_nothing_is_finished(self) -> None:
        world, producing = world_with()
        publish_chunks(producing, "a", "p-1", [0], 2)
        compact(world)
        peer = reader(world)
        assert data(peer.messages()) == [b"p-1.0"]
        assert self.ask(peer) == (2**64 - 1, -1)

    def test_is_told_where_it_cannot_be_read(self) -> None:
        """Else one bad batch would keep everybody from reading compacted."""
        world, producing = world_with()
        producing.publish(b"no batch at all", count=2, highest=1, num_messages_in_batch=2, partition_key="b")
        producing.expect(Type.SEND_RECEIPT)
        compact(world)
        peer = reader(world)
        peer.messages()
        assert self.ask(peer) == (0, 1)


class TestRunning:
    def test_in_steps_and_one_at_a_time(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(compaction_module, "ENTRIES_PER_STEP", 2)
        world, producing = world_with()
        for number in range(6):
            publish(producing, f"k{number % 2}", b"%d" % number)
        assert world.broker.topic_administration.compaction_status(TOPIC) == ("NOT_RUN", "")
        world.broker.topic_administration.compact(world.now, TOPIC)
        steps = 0
        while world.broker.topic_administration.compaction_status(TOPIC)[0] == "RUNNING":
            with pytest.raises(InUse):
                world.broker.topic_administration.compact(world.now, TOPIC)
            world.broker.handle_deadline(world.now)
            world.pump()
            steps += 1
            if steps == 2:
                publish(producing, "k0", b"new")  # not looked at any more
        assert steps > 4
        assert data(reader(world).messages()) == [b"4", b"5", b"new"]

    def test_what_goes_meanwhile_is_gone(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """An administrator skips what is still to be compacted."""
        monkeypatch.setattr(compaction_module, "ENTRIES_PER_STEP", 2)
        world, producing = world_with(ledger_max_entries=2, keep_without_subscription=0)
        compact(world)
        for number in range(10):
            publish(producing, f"k{number}", b"%d" % number)
        world.broker.topic_administration.compact(world.now, TOPIC)
        world.broker.handle_deadline(world.now)
        world.broker.subscription_administration.delete_subscription(world.now, TOPIC, "__compaction")
        world.pump()
        world.advance(0)
        assert world.broker.topic_administration.compaction_status(TOPIC) == ("SUCCESS", "")
        assert data(reader(world).messages()) == [b"8", b"9"]

    def test_it_is_read_when_it_is_durable(self) -> None:
        world, producing = world_with()
        publish(producing, "k", b"0")
        publish(producing, "k", b"1")
        world.hold_writes = True
        compact(world)
        assert world.broker.topic_administration.compaction_status(TOPIC)[0] == "RUNNING"
        world.sync()
        assert world.broker.topic_administration.compaction_status(TOPIC)[0] == "SUCCESS"

    def test_it_outlives_the_broker(self) -> None:
        world, producing = world_with()
        for number in range(4):
            publish(producing, "k", b"%d" % number)
        compact(world)
        world.start()
        assert data(reader(world).messages()) == [b"3"]
        again = world.connect()
        again.producer()
        publish(again, "k", b"4")
        compact(world)
        assert data(reader(world).messages()) == [b"4"]

    @pytest.mark.parametrize("away", ["unload", "delete_topic"])
    def test_a_topic_that_goes_away_meanwhile(self, away: str) -> None:
        world, producing = world_with()
        publish(producing, "k", b"0")
        publish(producing, "k", b"1")
        world.broker.topic_administration.compact(world.now, TOPIC)
        if away == "unload":
            world.broker.topic_administration.unload(world.now, TOPIC)
        else:
            world.broker.topic_administration.delete_topic(world.now, TOPIC, force=True)
        world.pump()
        world.advance(1)
        if away == "unload":
            assert world.broker.topic_administration.compaction_status(TOPIC)[0] == "NOT_RUN"
            assert data(reader(world).messages()) == [b"0", b"1"]

    def test_one_that_was_stopped_does_not_end_the_next(self) -> None:
        """Not even when what it has written becomes durable then."""
        world, producing = world_with()
        publish(producing, "k", b"0")
        publish(producing, "k", b"1")
        world.hold_writes = True
        compact(world)
        world.broker.topic_administration.unload(world.now, TOPIC)
        world.pump()
        world.broker.topic_administration.compact(world.now, TOPIC)
        world.sync()
        assert world.broker.topic_administration.compaction_status(TOPIC)[0] == "RUNNING"
        world.advance(0)
        world.sync()
        assert world.broker.topic_administration.compaction_status(TOPIC)[0] == "SUCCESS"
        assert data(reader(world).messages()) == [b"1"]

    def test_partitions_all_at_once(self) -> None:
        world, _ = world_with()
        world.broker.topic_administration.create_partitioned_topic(world.now, "parts", 2)
        world.broker.topic_administration.compact(world.now, "parts")
        world.advance(0)
        for partition in range(2):
            assert (
                world.broker.topic_administration.compaction_status(f"parts-partition-{partition}")[0]
                == "SUCCESS"
            )
        with pytest.raises(NotApplicable):
            world.broker.topic_administration.compaction_status("parts")

    def test_topics_that_cannot_be(self) -> None:
        world, producing = world_with()
        producing.producer("non-persistent://public/default/n", 1)
        with pytest.raises(NotApplicable):
            world.broker.topic_administration.compact(world.now, "non-persistent://public/default/n")
        with pytest.raises(NotFound):
            world.broker.topic_administration.compact(world.now, "nowhere")

    def test_stats(self) -> None:
        world, producing = world_with()
        for number in range(5):
            publish(producing, "k", b"%d" % number)
        assert world.broker.topic_administration.internal_stats(TOPIC)["compactedLedger"]["ledgerId"] == -1
        compact(world)
        stats = world.broker.topic_administration.stats(TOPIC)
        assert stats["compaction"]["lastCompactionRemovedEventCount"] == 4
        assert stats["compaction"]["lastCompactionSucceedTimestamp"] >= WALL
        assert stats["subscriptions"]["__compaction"]["msgBacklog"] == 0
        ledger = world.broker.topic_administration.internal_stats(TOPIC)["compactedLedger"]
        assert ledger["entries"] == 1
        assert ledger["size"] > 0


def test_what_expires_is_compacted_all_the_same() -> None:
    """STORE-32 is not for the subscription that keeps what is to be compacted."""
    world, producing = world_with()
    other = world.connect()
    other.subscribe(SubType.Shared, permits=0)
    publish(producing, "a", b"1")
    compact(world)
    publish(producing, "b", b"2")
    world.broker.administration.set_policy(world.now, TOPIC, "message_ttl", 1.0)
    world.advance(70)
    backlogs = {
        name: stats["backlog"]
        for name, stats in world.broker.topic_administration.stats(TOPIC)["subscriptions"].items()
    }
    assert backlogs == {"s": 0, compaction_module.SUBSCRIPTION: 1}


class TestByItself:
    """Where policies have a threshold."""

    CONFIG: ClassVar[dict[str, Any]] = {"housekeeping_interval": 60.0}
    HOUSE = 61.0

    def test_when_more_than_that_is_not_compacted(self) -> None:
        world, producing = world_with(**self.CONFIG)
        world.broker.administration.set_policy(world.now, TOPIC, "compaction_threshold", 1000)
        for number in range(4):
            publish(producing, "k", b"%d" % number * 150)
        world.advance(self.HOUSE)
        assert world.broker.topic_administration.compaction_status(TOPIC) == ("NOT_RUN", "")
        for number in range(4, 8):
            publish(producing, "k", b"%d" % number * 150)
        world.advance(self.HOUSE)
        assert world.broker.topic_administration.compaction_status(TOPIC) == ("SUCCESS", "")
        assert data(reader(world).messages()) == [b"7" * 150]
        before = world.broker.topic_administration.stats(TOPIC)["compaction"][
            "lastCompactionSucceedTimestamp"
        ]
        publish(producing, "k", b"8")
        world.advance(self.HOUSE)
        assert (
            world.broker.topic_administration.stats(TOPIC)["compaction"]["lastCompactionSucceedTimestamp"]
            == before
        )

    def test_nothing_goes_before_it_was_compacted(self) -> None:
        """A broker that compacts by itself keeps what nobody else needs."""
        world, producing = world_with(ledger_max_entries=2, **self.CONFIG)
        world.broker.administration.set_policy(world.now, "public/default", "compaction_threshold", 10_000)
        for number in range(10):
            publish(producing, "k", b"%d" % number)
        world.advance(self.HOUSE)
        assert (
            world.broker.topic_administration.stats(TOPIC)["subscriptions"]["__compaction"]["backlog"] == 10
        )
        world.broker.administration.set_policy(world.now, "public/default", "compaction_threshold", 1)
        world.advance(self.HOUSE)
        assert world.broker.topic_administration.stats(TOPIC)["subscriptions"]["__compaction"]["backlog"] == 0
        assert data(reader(world).messages()) == [b"9"]

    def test_a_topic_made_later(self) -> None:
        world = World(BrokerConfig(keepalive_interval=10.0 * 365 * 86_400, **self.CONFIG))
        world.broker.administration.set_policy(world.now, "public/default", "compaction_threshold", 100)
        producing = world.connect()
        producing.producer()
        for number in range(5):
            publish(producing, "k", b"%d" % number * 50)
        world.advance(self.HOUSE)
        assert data(reader(world).messages()) == [b"4" * 50]

    def test_none_by_default(self) -> None:
        world, producing = world_with(**self.CONFIG)
        publish(producing, "k", b"x" * 1000)
        world.advance(self.HOUSE)
        assert world.broker.topic_administration.compaction_status(TOPIC) == ("NOT_RUN", "")
        assert "__compaction" not in world.broker.topic_administration.stats(TOPIC)["subscriptions"]
