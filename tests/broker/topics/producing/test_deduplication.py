"""Deduplication: a message that a producer name sent before is confirmed and not stored."""

from pulsar_sansio.broker import BrokerConfig
from tests.broker.peer import TOPIC, Type, World
from tests.broker.serving.test_publishing import producing, send_error


def test_a_repeated_message_is_confirmed_and_not_stored() -> None:
    """Rule GAP-36. Rule BROKER-38."""
    world, peer = producing(deduplication=True)
    for sequence in (0, 1, 0):
        peer.publish(b"m", sequence)
    assert peer.receipts() == [(0, 0, 0), (1, 0, 1), (0, -1, -1)], "-1:-1 is 2^64-1 on the wire"
    assert world.broker.topic_administration.stats(TOPIC)["msgInCounter"] == 2


def test_a_repeated_message_that_is_not_durable_yet_is_undecidable() -> None:
    """BROKER-40."""
    world, peer = producing(deduplication=True)
    world.hold_writes = True
    peer.publish(b"m", 5)
    peer.publish(b"m", 5)
    world.sync()
    assert peer.expect(Type.SEND_RECEIPT).sequence_id == 5
    assert send_error(peer) == ("PersistenceError", 5)
    peer.nothing()


def test_a_batch_is_judged_by_its_lowest_and_remembered_by_its_highest() -> None:
    """Rule BROKER-39."""
    _, peer = producing(deduplication=True)
    peer.publish_batch([b"a", b"b", b"c"], 0)
    peer.publish_batch([b"c", b"d"], 2)
    peer.publish(b"d", 3)
    assert [entry for _, _, entry in peer.receipts()] == [0, -1, 1]


def test_what_a_name_sent_last_is_known_again() -> None:
    """A restarted broker knows it too; without deduplication it is -1 (BROKER-37)."""
    world, peer = producing(deduplication=True)
    peer.publish_batch([b"a", b"b", b"c"], 4)
    peer.drop()
    assert world.connect().producer(name="p").last_sequence_id == 6
    world.start()
    again = world.connect()
    assert again.producer(name="p").last_sequence_id == 6
    assert again.producer(name="q", producer_id=1).last_sequence_id == -1
    world.broker.administration.set_policy(world.now, TOPIC, "deduplication", False)
    assert again.producer(name="r", producer_id=2).last_sequence_id == -1


def test_of_a_chunked_message_only_the_last_chunk_is_looked_at() -> None:
    """Otherwise a message cut off by a crash could never be sent again."""
    world, peer = producing(deduplication=True)

    def chunk(number: int) -> None:
        peer.publish(b"x", 9, chunk_id=number, num_chunks_from_msg=2, uuid="u", total_chunk_msg_size=2)

    chunk(0)
    peer.drop()
    world.start()
    peer = world.connect()
    assert peer.producer(name="p").last_sequence_id == -1
    chunk(0)
    chunk(1)
    chunk(0)
    chunk(1)
    assert [entry for _, _, entry in peer.receipts()] == [1, 2, 3, -1]


def test_names_that_were_away_for_long_are_forgotten() -> None:
    world, peer = producing(deduplication=True)
    peer.publish(b"m", 3)
    peer.drop()
    world.advance(6 * 3600 + 120)
    assert world.connect().producer(name="p").last_sequence_id == -1
    world.start()
    assert world.connect().producer(name="p").last_sequence_id == -1


def test_names_that_were_away_when_the_broker_ended_are_forgotten_too() -> None:
    world, peer = producing(deduplication=True)
    peer.publish(b"m", 3)
    world.start()
    world.advance(6 * 3600 + 120)
    assert world.connect().producer(name="p").last_sequence_id == -1
    assert world.store.load().topics[TOPIC].sequences == {}


def test_of_the_names_without_a_producer_so_many_are_remembered() -> None:
    """The name absent longest is discarded first, from the store, too; a name with a producer never is."""
    world = World(BrokerConfig(deduplication=True, deduplication_max_producers=3))
    present, peer = world.connect(), world.connect()
    present.producer(name="p")
    present.publish(b"m", 9)
    for number in range(6):
        peer.producer(name=f"p-{number}")
        peer.publish(b"m", number)
        peer.receipts()
        peer.close_producer()
        peer.expect(Type.SUCCESS)
    asked = world.connect()
    known = [asked.producer(name=f"p-{number}", producer_id=number).last_sequence_id for number in range(6)]
    assert known == [-1, -1, -1, 3, 4, 5]
    assert world.store.load().topics[TOPIC].sequences == {"p": 9, "p-3": 3, "p-4": 4, "p-5": 5}
    present.publish(b"m", 9)
    assert present.receipts()[-1] == (9, -1, -1)


def test_a_name_is_forgotten_while_its_message_is_on_the_way_to_the_store() -> None:
    world = World(BrokerConfig(deduplication=True, deduplication_max_producers=1))
    peer = world.connect()
    peer.producer(name="any")
    world.hold_writes = True
    for number in range(3):
        peer.ask_producer(name=f"p-{number}", producer_id=number + 1)
        world.sync()
        peer.publish(b"m", 7, number + 1)
    peer.drop()
    world.sync()
    assert world.store.load().topics[TOPIC].sequences == {"p-2": 7}
    assert world.broker.topic_administration.stats(TOPIC)["msgInCounter"] == 3
