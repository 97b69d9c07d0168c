"""Compaction: the messages that it keeps of a topic, and the consumers that read them."""

import pytest

from pulsar_sansio.wire import (
    CUMULATIVE,
    proto,
)
from tests.broker.peer import TOPIC, WALL, Peer, SubType, Type, ids
from tests.broker.topics.compaction.compacting import (
    EARLIEST,
    compact,
    data,
    members,
    publish,
    publish_batch,
    publish_chunks,
    reader,
    world_with,
)
from tests.broker.transacting import InTransaction


class TestWhatStays:
    def test_the_last_message_of_every_key(self) -> None:
        """Seen: java-compaction. Rule COMPACT-01."""
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
        """Every message keeps its id (COMPACT-02)."""
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
        compact(world)  # from now on uncompacted entries are kept
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

    def test_what_an_open_transaction_has_acknowledged_is_withheld(self) -> None:
        """TXN-01: until the transaction ends, and after an abort it is delivered again."""
        world, producing = world_with()
        for key in ("a", "b", "c"):
            publish(producing, key, key.encode())
        publish_batch(producing, ("d", b"d"), ("e", b"e"))
        compact(world)
        peer = world.connect()
        peer.subscribe(read_compacted=True)
        received = peer.messages()
        transaction = InTransaction(peer)
        transaction.join_subscription()
        batch = received[3]
        assert transaction.ack(received[1], (batch.ledger_id, batch.entry_id, 0b10)) == ""
        peer.redeliver()
        again = peer.messages()
        assert [(each.entry_id, each.ack_set) for each in again] == [(0, None), (2, None), (3, 0b10)]
        assert transaction.abort() == ""
        again = peer.messages()
        assert [(each.entry_id, each.ack_set) for each in again] == [(each, None) for each in range(4)]

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
        """A reader up to that id must not wait for a removed message."""
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
        """Otherwise one corrupt batch would stop every consumer that reads compacted."""
        world, producing = world_with()
        producing.publish(b"no batch at all", count=2, highest=1, num_messages_in_batch=2, partition_key="b")
        producing.expect(Type.SEND_RECEIPT)
        compact(world)
        peer = reader(world)
        peer.messages()
        assert self.ask(peer) == (0, 1)
