"""Commands of transactions that change nothing, or must not change anything."""

import pytest

from pulsar_sansio.wire import CUMULATIVE, proto
from tests.broker.peer import TOPIC, WALL, Peer, Type, World
from tests.broker.serving.stored_topics import backlog
from tests.broker.transacting import InTransaction, ask, error_of


def scene() -> tuple[World, Peer]:
    """Return a world, and a peer that produces and consumes."""
    world = World()
    peer = world.connect()
    peer.producer()
    peer.subscribe()
    return world, peer


def test_a_transaction_is_not_ended_by_an_unknown_action() -> None:
    """An enumeration's unknown value reads as its first one, which is COMMIT."""
    world, peer = scene()
    transaction = InTransaction(peer)
    command = proto.CommandEndTxn(**transaction.bits)
    command.MergeFromString(b"\x20\x07")
    answer = ask(peer, Type.END_TXN, command, Type.END_TXN_RESPONSE)
    assert error_of(answer) == "NotAllowedError"
    assert list(world.broker.coordinators.open) == [(0, 0)]
    assert transaction.abort() == ""


@pytest.mark.parametrize(
    ("kind", "ids"),
    [
        (0, [(99, 0, None)]),
        (0, [(0, 0, 0b111)]),
        (CUMULATIVE, [(0, 0, 0b110)]),
        (CUMULATIVE, [(0, 0, None)]),
    ],
    ids=["absent", "no message", "cumulative in part", "cumulative"],
)
def test_acknowledgements_that_change_nothing_are_not_stored(
    kind: int, ids: list[tuple[int, int, int | None]]
) -> None:
    """A client could fill the store with them."""
    world, peer = scene()
    peer.publish_batch([b"0", b"1", b"2"])
    (ledger,) = {frame.ledger_id for number, frame in peer.inbox if number == Type.MESSAGE}
    transaction = InTransaction(peer)
    transaction.join_subscription()
    named = [(ledger + each[0], *each[1:]) for each in ids]
    for _ in range(3):
        assert transaction.ack(*named, kind=kind) == ""
    stored = world.store.load().topics[TOPIC].pending_acks.get("s", [])
    assert [each.cumulative for each in stored] == [(0, ids[0][2])] * (kind == CUMULATIVE)


def test_a_cumulative_acknowledgement_does_not_shrink() -> None:
    world, peer = scene()
    peer.publish_batch([b"0", b"1", b"2"])
    (message,) = [frame for number, frame in peer.inbox if number == Type.MESSAGE]
    transaction = InTransaction(peer)
    transaction.join_subscription()
    position = message.ledger_id, message.entry_id
    for remaining in (0b100, None, 0b110):
        assert transaction.ack((*position, remaining), kind=CUMULATIVE) == ""
    assert transaction.end() == ""
    assert backlog(world) == 0


def test_old_messages_of_an_open_transaction_are_not_expired_by_hand() -> None:
    world, peer = scene()
    peer.publish(b"before", 0, publish_time=WALL)
    transaction = InTransaction(peer, timeout=3_600_000)
    transaction.join_topic()
    transaction.send(b"inside", 1)
    world.advance(60)
    assert world.broker.subscription_administration.expire_messages(world.now, TOPIC, "s", 10)
    world.pump()
    assert backlog(world) == 1


def test_a_cumulative_acknowledgement_within_a_batch_is_stored_a_few_times() -> None:
    """A client could fill the store with sets of bits that do not contain each other, or are long."""
    world, peer = scene()
    peer.publish_batch([b"0", b"1", b"2", b"3"])
    (message,) = [frame for number, frame in peer.inbox if number == Type.MESSAGE]
    transaction = InTransaction(peer)
    transaction.join_subscription()
    position = message.ledger_id, message.entry_id
    for remaining in [1 << 5000 | 0b1100, 0b1010] * 20:
        assert transaction.ack((*position, remaining), kind=CUMULATIVE) == ""
    stored = world.store.load().topics[TOPIC].pending_acks["s"]
    assert [each.cumulative for each in stored] == [(0, 0b1100), (0, 0b1000)]


@pytest.mark.parametrize("milliseconds", [0, 2**63, 2**64 - 1])
def test_timeouts_that_are_over_at_once(milliseconds: int) -> None:
    """A Pulsar broker, too, aborts these transactions at once: the timeout is a signed number."""
    world, peer = scene()
    transaction = InTransaction(peer, timeout=milliseconds)
    world.advance(0.001)
    assert transaction.end() == "TransactionNotFound"


def test_the_longest_timeout() -> None:
    world, peer = scene()
    transaction = InTransaction(peer, timeout=2**63 - 1)
    world.advance(7200)
    peer.inbox.clear()
    assert list(world.broker.coordinators.open) == [(0, 0)]
    world.start()
    assert list(world.broker.coordinators.open) == [(0, 0)]
    transaction.peer = world.connect()
    assert transaction.end() == ""
