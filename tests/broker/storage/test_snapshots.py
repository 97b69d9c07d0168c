"""A store that goes back to an earlier state, and the ids that it does not give twice."""

from pulsar_sansio.wire import unpack_payload
from tests.broker.peer import Type, World


def test_a_restored_store_has_the_messages_and_cursors_of_its_snapshot() -> None:
    world = World()
    peer = world.connect()
    peer.producer()
    peer.subscribe()
    for sequence in range(2):
        peer.publish(b"%d" % sequence, sequence)
        peer.expect(Type.SEND_RECEIPT)
        peer.ack(peer.expect(Type.MESSAGE))
    world.broker.flush(world.now)
    world.pump()
    snapshot = world.store.load()
    peer.publish(b"lost", 2)
    peer.expect(Type.SEND_RECEIPT)
    lost = peer.expect(Type.MESSAGE)
    for _ in range(2):  # a snapshot may be restored any number of times
        world.broker.shutdown(world.now)
        world.pump()
        world.store.restore(snapshot)
        world.start()
        again = world.connect()
        again.subscribe()
        again.nothing()
        again.producer()
        again.publish(b"new", 2)
        receipt = again.expect(Type.SEND_RECEIPT)
        assert receipt.ledger_id > lost.ledger_id, "no message id is given twice"
        lost = again.expect(Type.MESSAGE)
        assert unpack_payload(lost.payload).payload == b"new"


def test_flush_stores_acknowledgements_at_once() -> None:
    world = World()
    peer = world.connect()
    peer.producer()
    peer.subscribe()
    peer.publish(b"x")
    peer.expect(Type.SEND_RECEIPT)
    peer.ack(peer.expect(Type.MESSAGE))

    def acknowledged() -> int:
        (topic,) = world.store.load().topics.values()
        return topic.cursors["s"].mark_delete

    before = acknowledged()
    world.broker.flush(world.now)
    world.pump()
    assert acknowledged() == before + 1


def test_ids_of_producers_and_transactions_go_on() -> None:
    world = World()
    snapshot = world.store.load()
    name = world.connect().producer().producer_name
    first = world.broker.coordinators.begin(0, 60_000, "")
    world.pump()
    world.broker.shutdown(world.now)
    world.pump()
    world.store.restore(snapshot)
    world.start()
    assert world.connect().producer().producer_name != name
    assert world.broker.coordinators.begin(0, 60_000, "").number > first.number
