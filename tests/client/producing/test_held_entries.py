"""Entries of a transaction that joins the topic: sealed at once, and written when it has joined."""

from random import Random

import pytest

from pulsar_sansio.client.outputs import Receipts, RequestDone, SendFailed
from pulsar_sansio.model.config import BatchingPolicy, CompressionType, OutgoingMessage
from pulsar_sansio.model.errors import ClosedError, ServerError, TimedOut, TransactionNotOpen
from pulsar_sansio.model.transaction_id import TransactionId
from pulsar_sansio.wire import unpack_payload
from tests.client.producing.transactional_sender import Scene, inside
from tests.client.script import (
    URL,
    WALL,
    Command,
    frame_lookup,
    frame_producer_success,
    frame_receipt,
    frame_send_error,
)

ONE = None
"""The number of messages that an entry of one message names."""

BATCHING = BatchingPolicy(max_messages=4, max_delay=0.01)


def written(scene: Scene) -> list[tuple[int, int | None]]:
    """Return the sequence id and the number of messages of each entry since the last call."""
    found = []
    for number, command in scene.commands(scene.link):
        assert number == Command.SEND
        metadata = unpack_payload(command.payload).metadata
        assert metadata.txnid_least_bits == command.txnid_least_bits
        found.append((command.sequence_id, metadata.num_messages_in_batch))
    return found


def append(scene: Scene, *payloads: bytes, id_: TransactionId | None = None) -> list[int]:
    """Send payloads by the fast path, else by `send`. Returns what the fast path gave."""
    id_ = id_ or scene.id
    appender = scene.client.appender(scene.handle)
    fast = []
    for payload in payloads:
        ticket = appender(payload, id_)
        fast.append(ticket)
        if ticket < 0:
            scene.client.send(scene.now, scene.handle, inside(payload, id_), WALL)
    scene.drain()
    return fast


def test_a_full_batch_is_written_when_the_topic_has_joined() -> None:
    scene = Scene(batching=BATCHING)
    append(scene, *[b"x"] * 9)
    asked = scene.sent(scene.link, Command.ADD_PARTITION_TO_TXN)
    scene.advance(1)
    assert scene.commands(scene.link) == []
    scene.reply(Command.ADD_PARTITION_TO_TXN, asked)
    assert written(scene) == [(0, 4), (4, 4), (8, ONE)]


def test_payloads_of_a_transaction_take_the_fast_path() -> None:
    """The first payload of a batch and the one that fills it do not, nor do those outside."""
    scene = Scene(batching=BATCHING)
    assert append(scene, b"a", b"b", b"c", b"d", b"e", b"f") == [-1, 1, 2, -1, -1, 5]
    scene.joined()
    assert written(scene) == [(0, 4)]
    request = scene.commit(scene.id)
    assert written(scene) == [(4, 2)]
    scene.feed(scene.link, frame_receipt(0, highest=3))
    assert scene.commands(scene.link) == []
    scene.feed(scene.link, frame_receipt(4, highest=5))
    scene.answer(Command.END_TXN)
    assert scene.said()[-1] == RequestDone(request, None)


def test_a_payload_of_another_transaction_does_not_join_the_batch() -> None:
    scene = Scene(batching=BATCHING)
    other = scene.again(8)
    append(scene, b"a", b"b")
    appender = scene.client.appender(scene.handle)
    assert appender(b"c", other) == -1
    assert appender(b"c") == -1


def test_the_fast_path_writes_the_bytes_of_the_slow_path() -> None:
    fast, slow = Scene(batching=BATCHING), Scene(batching=BATCHING)
    append(fast, b"a", b"bb", b"ccc")
    slow.send(inside(b"a", slow.id), inside(b"bb", slow.id), inside(b"ccc", slow.id))
    many = Scene(batching=BATCHING)
    many.client.send_many(many.now, many.handle, [b"a", b"bb", b"ccc"], WALL, many.id)
    many.drain()
    payloads = []
    for scene in (fast, slow, many):
        scene.joined()
        scene.advance(1)
        ((_, command),) = scene.commands(scene.link)
        payloads.append((command.sequence_id, command.txnid_least_bits, bytes(command.payload)))
    assert payloads[0] == payloads[1] == payloads[2]


def test_many_payloads_of_a_transaction() -> None:
    scene = Scene(batching=BATCHING)
    tickets = scene.client.send_many(scene.now, scene.handle, [b"x"] * 10, WALL, scene.id)
    scene.drain()
    scene.joined()
    assert (tickets, written(scene)) == (range(10), [(0, 4), (4, 4)])
    scene.commit(scene.id)
    assert written(scene) == [(8, 2)]


def test_a_message_among_many_names_its_own_transaction() -> None:
    scene = Scene()
    messages: list[bytes | OutgoingMessage] = [b"a", OutgoingMessage(b"b"), inside(b"c", scene.id)]
    scene.client.send_many(scene.now, scene.handle, messages, WALL, scene.id)
    scene.drain()
    scene.joined()
    scene.confirm(0)
    scene.confirm(1)
    assert scene.entries() == [(0, b"a", 7), (1, b"b", None), (2, b"c", 7)]


def test_many_payloads_of_a_transaction_that_has_ended_are_refused() -> None:
    scene = Scene()
    scene.client.abort(scene.now, scene.id)
    with pytest.raises(TransactionNotOpen):
        scene.client.send_many(scene.now, scene.handle, [b"x"], WALL, scene.id)


@pytest.mark.parametrize("ending", ["commit", "abort"])
def test_the_fast_path_ends_with_the_transaction(ending: str) -> None:
    scene = Scene(batching=BATCHING)
    append(scene, b"a", b"b")
    getattr(scene.client, ending)(scene.now, scene.id)
    assert scene.client.appender(scene.handle)(b"c", scene.id) == -1


def test_the_fast_path_ends_with_the_timeout_of_the_transaction() -> None:
    scene = Scene(batching=BatchingPolicy(max_delay=60.0), send_timeout=0)
    append(scene, b"a", b"b")
    scene.joined()
    scene.advance(59.9)
    assert scene.client.appender(scene.handle)(b"c", scene.id) == 2
    scene.advance(0.2)
    assert scene.client.appender(scene.handle)(b"c", scene.id) == -1
    assert [each.count for each in scene.said() if isinstance(each, SendFailed)] == [3]


def test_a_reconnect_writes_nothing_that_is_held() -> None:
    """A broker would refuse the messages of a transaction that has not joined."""
    scene = Scene()
    scene.send(inside(b"a", scene.id))
    scene.joined()
    assert scene.entries() == [(0, b"a", 7)]
    other = scene.again(8)
    scene.send(inside(b"b", other))
    scene.sent(scene.link, Command.ADD_PARTITION_TO_TXN)
    scene.lose(scene.link)
    scene.said()
    scene.advance(1)
    scene.link = scene.ready_link()
    lookups = [command for number, command in scene.commands(scene.link) if number == Command.LOOKUP]
    for lookup in lookups:
        scene.feed(scene.link, frame_lookup(lookup.request_id, URL))
    asked, introduced = scene.sent(scene.link, Command.PRODUCER, Command.TC_CLIENT_CONNECT_REQUEST)
    scene.feed(scene.link, frame_producer_success(asked.request_id))
    assert scene.entries() == [(0, b"a", 7)]
    scene.reply(Command.TC_CLIENT_CONNECT_REQUEST, introduced)
    scene.joined()
    assert scene.entries() == [(1, b"b", 8)]


def test_messages_of_others_wait_while_a_transaction_joins() -> None:
    scene = Scene()
    other = scene.again(8)
    scene.send(inside(b"a", scene.id), inside(b"b", other), b"c")
    scene.joined()
    (_, sent), (_, asked) = scene.commands(scene.link)
    assert (sent.sequence_id, sent.txnid_least_bits) == (0, 7)
    scene.reply(Command.ADD_PARTITION_TO_TXN, asked)
    assert scene.entries() == [(1, b"b", 8)]
    scene.confirm(0, 1)
    assert scene.entries() == [(2, b"c", None)]


def test_a_close_fails_what_is_held() -> None:
    """PROD-52"""
    scene = Scene(batching=BATCHING)
    append(scene, *[b"x"] * 6)
    scene.client.close(scene.now, scene.handle)
    scene.drain()
    failed = [each for each in scene.said() if isinstance(each, SendFailed)]
    assert [(each.first, each.count) for each in failed] == [(0, 4), (4, 2)]
    assert isinstance(failed[0].error, ClosedError)


def test_a_send_timeout_fails_what_is_held_and_later_messages_are_held_too() -> None:
    """PROD-47"""
    scene = Scene(send_timeout=1.0)
    scene.send(inside(b"a", scene.id))
    asked = scene.sent(scene.link, Command.ADD_PARTITION_TO_TXN)
    scene.advance(1)
    assert isinstance(scene.expect_one(SendFailed).error, TimedOut)
    scene.send(inside(b"b", scene.id))
    assert scene.commands(scene.link) == []
    scene.reply(Command.ADD_PARTITION_TO_TXN, asked)
    assert scene.entries() == [(1, b"b", 7)]


def test_a_refusal_fails_held_entries_batch_and_waiting_messages_in_their_order() -> None:
    scene = Scene(batching=BATCHING, max_pending_messages=100)
    append(scene, *[b"x"] * 6)
    scene.send(b"outside", inside(b"y", scene.id))
    scene.joined(ServerError.TransactionNotFound)
    failed = [each for each in scene.said() if isinstance(each, SendFailed)]
    assert [(each.first, each.count) for each in failed] == [(0, 6), (7, 1)]
    scene.advance(1)
    assert scene.entries() == [(6, b"outside", None)]


def test_memory_of_messages_that_fail_is_free_again() -> None:
    scene = Scene(batching=BATCHING)
    append(scene, *[b"x" * 10] * 6)
    scene.joined(ServerError.TransactionNotFound)
    assert scene.client.memory_held == 0


@pytest.mark.parametrize("settled_by", ["timeout", "early receipt", "refusal", "size"])
def test_a_message_outside_is_not_held_with_a_transaction(settled_by: str) -> None:
    """TXN-01: the refusal of a transaction fails no other message, also when no entry of it is left."""
    scene = Scene(send_timeout=1.0, compression=CompressionType.ZLIB)
    scene.send(inside(Random(1).randbytes(6_000_000) if settled_by == "size" else b"a", scene.id))
    asked = scene.sent(scene.link, Command.ADD_PARTITION_TO_TXN)
    match settled_by:
        case "timeout":
            scene.advance(1)
        case "early receipt":
            scene.confirm(0)
        case "refusal":
            scene.feed(scene.link, frame_send_error(0, ServerError.NotAllowedError))
    scene.said()
    scene.send(b"outside", OutgoingMessage(b"too"))
    assert scene.commands(scene.link) == []
    scene.reply(Command.ADD_PARTITION_TO_TXN, asked, ServerError.TransactionNotFound)
    assert scene.said() == []
    first = 0 if settled_by == "size" else 1
    assert [(number, id_) for number, _, id_ in scene.entries()] == [(first, None), (first + 1, None)]


def test_tickets_behind_a_batch_that_is_left_over() -> None:
    """PROD-42: the batch has the ticket of the first message outside; those behind it have failed."""
    scene = Scene(batching=BATCHING)
    scene.send(inside(b"a", scene.id), b"outside", inside(b"b", scene.id))
    scene.joined(ServerError.TransactionNotFound)
    scene.said()
    assert scene.client.appender(scene.handle)(b"c") == -1
    scene.send(b"c")
    scene.advance(1)
    assert written(scene) == [(1, ONE), (2, ONE)]
    scene.confirm(1, 2)
    assert [each.first for each in scene.said() if isinstance(each, Receipts)] == [1, 3]
