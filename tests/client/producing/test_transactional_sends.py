"""Messages in transactions: registered first, stamped, in order with the others, and counted to the end."""

import pytest

from pulsar_sansio.client.outputs import Connect, Receipts, RequestDone, RequestFailed, SendFailed
from pulsar_sansio.model.config import BatchingPolicy, OutgoingMessage, ProducerSpec
from pulsar_sansio.model.errors import (
    InvalidMessage,
    LocalProtocolError,
    NotAllowed,
    ServerError,
    TransactionNotFound,
    TransactionNotOpen,
    TransactionTimedOut,
)
from pulsar_sansio.model.interceptors import ProducerInterceptor
from pulsar_sansio.model.transaction_id import TransactionId
from pulsar_sansio.schemas import INT32, INT64
from pulsar_sansio.wire import encode_command, proto, unpack_payload
from tests.client.producing.transactional_sender import DEMO, Scene, inside
from tests.client.script import WALL, Command, frame_producer_success, frame_receipt, frame_send_error
from tests.client.transactions.transaction_script import TransactionScript


def test_a_topic_joins_once_before_the_first_message() -> None:
    """TXN-01: SEND and the metadata name the transaction."""
    scene = Scene()
    scene.send(inside(b"a", scene.id), inside(b"b", scene.id))
    scene.joined()
    assert scene.entries() == [(0, b"a", 7), (1, b"b", 7)]
    scene.send(inside(b"c", scene.id))
    assert scene.entries() == [(2, b"c", 7)]


def test_the_commit_waits_for_every_receipt() -> None:
    """INV-T1"""
    scene = Scene()
    scene.send(inside(b"a", scene.id), inside(b"b", scene.id))
    request = scene.commit(scene.id)
    scene.joined()
    scene.entries()
    scene.confirm(0)
    assert scene.commands(scene.link) == []
    scene.confirm(1)
    scene.answer(Command.END_TXN)
    assert scene.said()[-1] == RequestDone(request, None)


def test_a_message_that_failed_aborts_the_commit() -> None:
    """INV-T1"""
    scene = Scene()
    scene.send(inside(b"a", scene.id))
    scene.joined()
    scene.entries()
    request = scene.commit(scene.id)
    scene.feed(scene.link, frame_send_error(0, ServerError.NotAllowedError))
    asked = scene.answer(Command.END_TXN)
    assert asked.txn_action == 1
    assert isinstance(scene.failed(request), NotAllowed)


@pytest.mark.parametrize("batching", [None, BatchingPolicy(max_messages=1)])
def test_a_transaction_is_released_when_every_message_is_confirmed(batching: BatchingPolicy | None) -> None:
    """INV-T1"""
    scene = Scene(batching=batching)
    scene.send(inside(b"a", scene.id))
    scene.joined()
    scene.entries()
    with pytest.raises(LocalProtocolError, match="not confirmed"):
        scene.client.release_transaction(scene.now, scene.id)
    scene.confirm(0)
    scene.client.release_transaction(scene.now, scene.id)
    with pytest.raises(TransactionNotOpen):
        scene.send(inside(b"b", scene.id))


def test_a_transaction_with_a_confirmed_batch_is_released() -> None:
    """INV-T1"""
    scene = Scene(batching=BatchingPolicy(max_delay=1.0))
    scene.send(inside(b"a", scene.id), inside(b"b", scene.id))
    scene.joined()
    scene.advance(1)
    scene.entries()
    scene.feed(scene.link, frame_receipt(0, highest=1))
    scene.client.release_transaction(scene.now, scene.id)


def test_a_transaction_with_a_failed_message_is_not_released() -> None:
    """INV-T1"""
    scene = Scene()
    scene.send(inside(b"a", scene.id))
    scene.joined()
    scene.entries()
    scene.feed(scene.link, frame_send_error(0, ServerError.NotAllowedError))
    with pytest.raises(NotAllowed):
        scene.client.release_transaction(scene.now, scene.id)
    request = scene.client.abort(scene.now, scene.id)
    scene.answer(Command.END_TXN)
    assert scene.said()[-1] == RequestDone(request, None)


@pytest.mark.parametrize("fails_first", [True, False])
def test_a_message_that_failed_is_no_failure_of_an_abort(fails_first: bool) -> None:
    """TXN-01: nothing of the transaction takes effect, as the application asked."""
    scene = Scene()
    scene.send(inside(b"a", scene.id))
    scene.joined()
    scene.entries()
    refusal = frame_send_error(0, ServerError.NotAllowedError)
    if fails_first:
        scene.feed(scene.link, refusal)
    request = scene.client.abort(scene.now, scene.id)
    if not fails_first:
        scene.feed(scene.link, refusal)
    scene.answer(Command.END_TXN)
    assert scene.said()[-1] == RequestDone(request, None)


def test_a_topic_that_cannot_join_fails_the_messages_and_the_commit() -> None:
    scene = Scene()
    scene.send(inside(b"a", scene.id), b"b")
    scene.joined(ServerError.TransactionNotFound)
    failed = scene.expect_one(SendFailed)
    assert (failed.first, failed.count) == (0, 1)
    assert isinstance(failed.error, TransactionNotFound)
    assert scene.entries() == [(1, b"b", None)]
    request = scene.commit(scene.id)
    scene.answer(Command.END_TXN)
    assert isinstance(scene.failed(request), TransactionNotFound)


def test_messages_in_and_outside_of_transactions_wait_for_each_other() -> None:
    """Seen with a real broker: it stores messages of transactions later than others behind them."""
    scene = Scene()
    scene.send(b"0", inside(b"1", scene.id), b"2", inside(b"3", scene.id))
    assert scene.entries() == [(0, b"0", None)]
    scene.confirm(0)
    scene.joined()
    assert scene.entries() == [(1, b"1", 7)]
    scene.confirm(1)
    assert scene.entries() == [(2, b"2", None)]
    scene.confirm(2)
    assert scene.entries() == [(3, b"3", 7)]
    scene.confirm(3)
    scene.send(b"4", b"5")
    assert scene.entries() == [(4, b"4", None), (5, b"5", None)]


def test_two_transactions_do_not_wait_for_each_other() -> None:
    scene = Scene()
    other = scene.again(8)
    scene.send(inside(b"a", scene.id), inside(b"b", other))
    scene.joined()
    sent, asked = scene.commands(scene.link)
    assert (sent[0], asked[0]) == (Command.SEND, Command.ADD_PARTITION_TO_TXN)
    scene.reply(Command.ADD_PARTITION_TO_TXN, asked[1])
    assert scene.entries() == [(1, b"b", 8)]


@pytest.mark.parametrize("by_key", [False, True])
def test_a_batch_is_of_one_transaction(by_key: bool) -> None:
    """BATCH-04"""
    scene = Scene(batching=BatchingPolicy(max_delay=1.0, by_key=by_key))
    other = scene.again(8)
    scene.send(inside(b"a", scene.id), inside(b"b", scene.id))
    scene.joined()
    scene.send(inside(b"c", other))
    sent, asked = scene.commands(scene.link)
    assert sent[1].num_messages == 2
    scene.reply(Command.ADD_PARTITION_TO_TXN, asked[1])
    scene.client.push(scene.now, scene.handle)
    assert [number for *_, number in scene.entries()] == [8]


def test_chunks_are_all_in_the_transaction() -> None:
    scene = Scene(chunking=True, chunk_max_message_size=3)
    scene.send(inside(b"123456", scene.id))
    scene.joined()
    assert [number for *_, number in scene.entries()] == [7, 7]
    request = scene.commit(scene.id)
    scene.confirm(0)
    assert scene.commands(scene.link) == []
    scene.feed(scene.link, frame_receipt(0, entry_id=9))
    scene.answer(Command.END_TXN)
    assert scene.said()[-1] == RequestDone(request, None)


def test_a_message_of_a_transaction_that_is_over_is_refused() -> None:
    scene = Scene()
    scene.commit(scene.id)
    with pytest.raises(TransactionNotOpen, match="committing"):
        scene.client.send(scene.now, scene.handle, inside(b"a", scene.id), WALL)
    assert scene.client.memory_held == 0
    with pytest.raises(TransactionNotOpen, match="never opened"):
        scene.client.send(scene.now, scene.handle, inside(b"a", TransactionId(0, 99)), WALL)


def test_several_messages_are_taken_only_if_their_transactions_are_open() -> None:
    scene = Scene()
    over = scene.id
    scene.client.abort(scene.now, over)
    scene.answer(Command.END_TXN)
    with pytest.raises(TransactionNotOpen):
        scene.client.send_many(scene.now, scene.handle, [b"a", inside(b"b", over)], WALL)
    assert scene.entries() == []


def test_intercepted_messages_are_taken_only_if_their_transactions_are_open() -> None:
    """INTC-01: the first message is taken, and the other one fails by its ticket."""
    scene = Scene(interceptors=(ProducerInterceptor(),))
    over = scene.id
    scene.client.abort(scene.now, over)
    scene.answer(Command.END_TXN)
    scene.said()
    with pytest.raises(TransactionNotOpen):
        scene.client.send_many(scene.now, scene.handle, [inside(b"b", over), b"a"], WALL)
    assert scene.client.send_many(scene.now, scene.handle, [b"a", inside(b"b", over)], WALL) == range(2)
    failed = scene.expect_one(SendFailed)
    assert (failed.first, type(failed.error)) == (1, TransactionNotOpen)
    assert scene.entries() == [(0, b"a", None)]


def test_a_message_without_a_form_fails_the_commit() -> None:
    """INV-T1: the message has a ticket, since those before it were taken."""
    scene = Scene()
    scene.send(inside(b"a", scene.id))
    scene.joined()
    bad = inside(b"c", scene.id, properties={"k": "\ud800"})
    scene.client.send_many(scene.now, scene.handle, [inside(b"b", scene.id), bad], WALL)
    scene.drain()
    assert scene.entries() == [(0, b"a", 7), (1, b"b", 7)]
    assert scene.expect_one(SendFailed).first == 2
    request = scene.commit(scene.id)
    scene.confirm(0, 1)
    assert scene.answer(Command.END_TXN).txn_action == 1
    assert isinstance(scene.failed(request), InvalidMessage)


@pytest.mark.parametrize("command", ["commit", "abort"])
def test_the_timeout_ends_an_end_that_waits_for_a_receipt(command: str) -> None:
    """INV-T1: the producer waits for receipts without an end, and the coordinator aborts meanwhile."""
    script = TransactionScript()
    handle = script.producer(send_timeout=0)
    id_ = script.begin(timeout=2.0)
    script.client.send(script.now, handle, inside(b"a", id_), WALL)
    script.answer(Command.ADD_PARTITION_TO_TXN)
    script.sent(script.link, Command.SEND)
    request = getattr(script.client, command)(script.now, id_)
    script.advance(1.9)
    assert script.said() == []
    script.advance(0.2)
    assert isinstance(script.failed(request), TransactionTimedOut)
    script.feed(script.link, frame_receipt(0))
    [receipts] = script.said()
    assert isinstance(receipts, Receipts)
    assert script.commands(script.link) == [], "its end is asked for no more"


def test_held_messages_fail_when_the_transaction_times_out() -> None:
    script = TransactionScript()
    handle = script.producer()
    id_ = script.begin(timeout=2.0)
    script.client.send(script.now, handle, inside(b"a", id_), WALL)
    script.sent(script.link, Command.ADD_PARTITION_TO_TXN)
    script.advance(2.5)
    assert script.expect_one(SendFailed).count == 1
    script.client.send(script.now, handle, b"b", WALL)
    assert [kind for kind, _ in script.commands(script.link)] == [Command.SEND]


def test_a_flush_of_early_messages_that_all_fail_is_answered() -> None:
    """PROD-49: one message is too large for the broker, and the transaction of the next one is over."""
    script = TransactionScript()
    id_ = script.begin(timeout=2.0)
    handle = script.client.open_producer(script.now, ProducerSpec("demo", batching=None))
    script.client.send(script.now, handle, b"too large", WALL)
    script.client.send(script.now, handle, inside(b"b", id_), WALL)
    request = script.client.flush(script.now, handle)
    script.lose(script.link)
    script.advance(2.5)
    script.outputs = [each for each in script.said() if isinstance(each, Connect)]
    script.link = script.ready_link(max_message_size=5)
    script.check_partitions(script.link)
    script.find_topic(script.link)
    asked = script.sent(script.link, Command.PRODUCER)
    script.feed(script.link, frame_producer_success(asked.request_id))
    outputs = script.said()
    assert [each.first for each in outputs if isinstance(each, SendFailed)] == [0, 1]
    assert [each.request for each in outputs if isinstance(each, RequestFailed)] == [request]


def test_entries_that_are_sent_again_keep_their_transaction() -> None:
    scene = Scene()
    scene.send(inside(b"a", scene.id))
    scene.joined()
    assert scene.entries() == [(0, b"a", 7)]
    scene.lose(scene.link)
    scene.said()
    scene.advance(1)
    scene.link = scene.ready_link()
    scene.find_topic(scene.link)
    asked = scene.sent(scene.link, Command.PRODUCER)
    scene.feed(scene.link, frame_producer_success(asked.request_id))
    assert scene.entries() == [(0, b"a", 7)]
    request = scene.commit(scene.id)
    scene.confirm(0)
    scene.find_topic(scene.link)
    scene.answer(Command.TC_CLIENT_CONNECT_REQUEST)
    scene.answer(Command.END_TXN)
    assert scene.said()[-1] == RequestDone(request, None)


def test_entries_of_a_transaction_that_is_over_are_not_sent_again() -> None:
    """A Pulsar broker would store them, and hold back the topic for a transaction that never ends."""
    script = TransactionScript()
    handle = script.producer(send_timeout=0)
    id_ = script.begin(timeout=2.0)
    for payload in (b"a", b"b"):
        script.client.send(script.now, handle, inside(payload, id_), WALL)
    script.answer(Command.ADD_PARTITION_TO_TXN)
    script.sent(script.link, Command.SEND, Command.SEND)
    request = script.client.flush(script.now, handle)
    script.lose(script.link)
    script.advance(2.5)
    script.outputs = [each for each in script.said() if isinstance(each, Connect)]
    script.link = script.ready_link()
    script.find_topic(script.link)
    asked = script.sent(script.link, Command.PRODUCER)
    script.feed(script.link, frame_producer_success(asked.request_id))
    assert script.commands(script.link) == []
    outputs = script.said()
    failed = [each for each in outputs if isinstance(each, SendFailed)]
    assert [each.first for each in failed] == [0, 1]
    assert isinstance(failed[0].error, TransactionNotOpen)
    assert [each.request for each in outputs if isinstance(each, RequestFailed)] == [request]
    script.client.send(script.now, handle, b"c", WALL)
    script.sent(script.link, Command.SEND)


def test_a_message_that_waits_behind_a_transaction_that_is_over_is_sent_once() -> None:
    """PROD-46: at a new connection it may go as soon as the messages before it have failed."""
    script = TransactionScript()
    handle = script.producer(send_timeout=0)
    id_ = script.begin(timeout=2.0)
    script.client.send(script.now, handle, inside(b"a", id_), WALL)
    script.answer(Command.ADD_PARTITION_TO_TXN)
    script.sent(script.link, Command.SEND)
    for payload in (b"b", b"c"):
        script.client.send(script.now, handle, payload, WALL)
    script.drain()
    assert script.commands(script.link) == []
    script.lose(script.link)
    script.advance(2.5)
    script.outputs = [each for each in script.said() if isinstance(each, Connect)]
    script.link = script.ready_link()
    script.find_topic(script.link)
    asked = script.sent(script.link, Command.PRODUCER)
    script.feed(script.link, frame_producer_success(asked.request_id))
    sent = [command.sequence_id for _, command in script.commands(script.link)]
    assert sent == [1, 2]
    assert [each.first for each in script.said() if isinstance(each, SendFailed)] == [0]


@pytest.mark.parametrize("code", [ServerError.TransactionNotFound, ServerError.InvalidTxnStatus])
def test_a_transaction_that_cannot_take_a_message_fails_that_message(code: int) -> None:
    """CONN-09: a new connection would not help."""
    scene = Scene()
    scene.send(inside(b"a", scene.id), inside(b"b", scene.id))
    scene.joined()
    scene.entries()
    scene.feed(scene.link, frame_send_error(0, code))
    assert scene.expect_one(SendFailed).first == 0
    scene.confirm(1)
    assert scene.expect_one(Receipts).first == 1


@pytest.mark.parametrize("by_key", [False, True])
def test_an_open_batch_of_a_transaction_that_is_over_fails(by_key: bool) -> None:
    script = TransactionScript()
    handle = script.producer(batching=BatchingPolicy(max_delay=5.0, by_key=by_key))
    id_ = script.begin(timeout=2.0)
    for payload in (b"a", b"b"):
        script.client.send(script.now, handle, inside(payload, id_), WALL)
    script.answer(Command.ADD_PARTITION_TO_TXN)
    script.advance(2.5)
    failed = script.expect_one(SendFailed)
    assert (failed.first, failed.count) == (0, 2)
    assert isinstance(failed.error, TransactionNotOpen)
    script.client.send(script.now, handle, b"c", WALL)
    script.advance(5)
    [(number, command)] = script.commands(script.link)
    assert (number, command.txnid_least_bits) == (Command.SEND, None)


@pytest.mark.parametrize("by_key", [False, True])
def test_an_open_batch_fails_before_the_abort_after_the_timeout_is_asked_for(by_key: bool) -> None:
    """TXN-06: a Pulsar broker would store it after the abort, and deliver nothing behind it."""
    script = TransactionScript()
    handle = script.producer(batching=BatchingPolicy(max_delay=5.0, by_key=by_key))
    id_ = script.begin(timeout=2.0, exactly_once=True)
    for payload in (b"a", b"b"):
        script.client.send(script.now, handle, inside(payload, id_), WALL)
    script.answer(Command.ADD_PARTITION_TO_TXN)
    script.advance(2.5)
    script.sent(script.link, Command.END_TXN)
    failed = script.expect_one(SendFailed)
    assert (failed.first, failed.count) == (0, 2)
    assert isinstance(failed.error, TransactionNotOpen)
    script.advance(5)
    assert script.commands(script.link) == []


def test_held_messages_fail_when_the_abort_after_the_timeout_is_asked_for() -> None:
    """TXN-06: they wait for the receipt of a message outside of the transaction."""
    script = TransactionScript()
    handle = script.producer(send_timeout=0)
    id_ = script.begin(timeout=2.0, exactly_once=True)
    script.client.send(script.now, handle, inside(b"a", id_), WALL)
    script.answer(Command.ADD_PARTITION_TO_TXN)
    script.sent(script.link, Command.SEND)
    script.feed(script.link, frame_receipt(0))
    script.client.send(script.now, handle, b"b", WALL)
    script.client.send(script.now, handle, inside(b"c", id_), WALL)
    script.sent(script.link, Command.SEND)
    script.said()
    script.advance(2.5)
    script.sent(script.link, Command.END_TXN)
    script.feed(script.link, frame_receipt(1))
    [failed] = [each for each in script.said() if isinstance(each, SendFailed)]
    assert (failed.first, failed.count) == (2, 1)
    assert isinstance(failed.error, TransactionNotOpen)
    assert script.commands(script.link) == []


def test_a_batch_that_was_held_before_the_commit() -> None:
    scene = Scene(batching=BatchingPolicy(max_delay=1.0))
    scene.send(inside(b"a", scene.id), inside(b"b", scene.id))
    request = scene.commit(scene.id)
    scene.joined()
    scene.advance(1)
    assert len(scene.entries()) == 1
    scene.feed(scene.link, frame_receipt(0, highest=1))
    scene.answer(Command.END_TXN)
    assert scene.said()[-1] == RequestDone(request, None)


def test_a_schema_is_given_up_when_its_message_fails_with_its_transaction() -> None:
    """A transaction that joins outlives the messages of a send timeout. Its refusal then fails a message that
    waits for its schema, and the message behind it wants another schema."""
    scene = Scene(send_timeout=1.0)
    scene.send(inside(b"a", scene.id))
    scene.joined()
    scene.entries()
    second = scene.again(8)
    scene.send(inside(b"b", second))
    scene.advance(1.0)
    failed = scene.expect_one(SendFailed)
    assert (failed.first, failed.count) == (0, 2)
    scene.send(inside(b"1234", second, schema=INT32), OutgoingMessage(b"12345678", schema=INT64))
    joins, given_up = scene.sent(scene.link, Command.ADD_PARTITION_TO_TXN, Command.GET_OR_CREATE_SCHEMA)
    scene.reply(Command.ADD_PARTITION_TO_TXN, joins, ServerError.TransactionNotFound)
    assert scene.expect_one(SendFailed).first == 2
    wanted = scene.sent(scene.link, Command.GET_OR_CREATE_SCHEMA)
    assert [each.schema.name for each in (given_up, wanted)] == ["INT32", "INT64"]
    for asked, version in ((given_up, b"old"), (wanted, b"new")):
        answer = proto.CommandGetOrCreateSchemaResponse(request_id=asked.request_id, schema_version=version)
        scene.feed(scene.link, encode_command(Command.GET_OR_CREATE_SCHEMA_RESPONSE, answer))
    ((_, sent),) = scene.commands(scene.link)
    assert unpack_payload(sent.payload).metadata.schema_version == b"new"


def test_messages_from_before_the_partitions_were_known() -> None:
    """The commit waits for them wherever they are."""
    script = TransactionScript()
    id_ = script.begin()
    handle = script.client.open_producer(script.now, ProducerSpec("demo", batching=None))
    for payload in (b"a", b"b"):
        script.client.send(script.now, handle, inside(payload, id_), WALL)
    script.check_partitions(script.link, 1)
    request = script.commit(id_)
    script.find_topic(script.link)
    asked = script.sent(script.link, Command.PRODUCER)
    script.feed(script.link, frame_producer_success(asked.request_id))
    joining = script.answer(Command.ADD_PARTITION_TO_TXN)
    assert list(joining.partitions) == [f"{DEMO}-partition-0"]
    assert len(script.commands(script.link)) == 2
    script.feed(script.link, frame_receipt(0))
    assert script.commands(script.link) == []
    script.feed(script.link, frame_receipt(1))
    script.answer(Command.END_TXN)
    assert script.said()[-1] == RequestDone(request, None)


def test_the_transaction_of_a_message_is_an_id() -> None:
    with pytest.raises(InvalidMessage, match="a TransactionId or None, not tuple"):
        OutgoingMessage(b"x", transaction=(0, 1))  # type: ignore[arg-type]


def test_the_tickets_of_a_batch_follow_one_another() -> None:
    """BATCH-02: a message between two others has failed, so those are in two batches."""
    scene = Scene(batching=BatchingPolicy(max_messages=10, max_delay=0.01))
    other = scene.again(8)
    payloads = ((b"b1", other), (b"a1", scene.id), (b"b2", other), (b"a2", scene.id))
    scene.send(*(inside(payload, id_) for payload, id_ in payloads))
    scene.joined(ServerError.TransactionNotFound)
    scene.joined()
    scene.advance(0.02)
    assert scene.entries() == [(1, b"a1", 7), (2, b"a2", 7)]
    scene.confirm(1, 2)
    said = scene.said()
    failed = [(each.first, each.count) for each in said if isinstance(each, SendFailed)]
    confirmed = [(each.first, len(each.message_ids)) for each in said if isinstance(each, Receipts)]
    assert failed == [(0, 1), (2, 1)]
    assert confirmed == [(1, 1), (3, 1)]


def test_messages_join_the_open_batch_of_their_transaction_alone() -> None:
    """TXN-01, BATCH-04: the fast path takes no message of another transaction, and none outside of one."""
    scene = Scene(batching=BatchingPolicy(max_messages=100, max_delay=0.01))
    scene.send(inside(b"a1", scene.id), inside(b"a2", scene.id))
    scene.joined()
    scene.send(inside(b"a3", scene.id, key="k"), inside(b"a4", scene.id))
    other = scene.again(8)
    scene.send(inside(b"b1", other))
    first, joining = scene.sent(scene.link, Command.SEND, Command.ADD_PARTITION_TO_TXN)
    assert (first.num_messages, first.txnid_least_bits) == (4, 7)
    scene.reply(Command.ADD_PARTITION_TO_TXN, joining)
    scene.send(inside(b"b2", other), b"outside", inside(b"b3", other))
    scene.advance(0.02)
    second = scene.sent(scene.link, Command.SEND)
    assert (second.num_messages, second.txnid_least_bits) == (2, 8)
    scene.feed(scene.link, frame_receipt(0, 1, 0, highest=3), frame_receipt(4, 1, 1, highest=5))
    scene.advance(0.02)
    assert scene.entries() == [(6, b"outside", None)]


def test_a_message_that_joins_an_open_batch_is_waited_for() -> None:
    """INV-T1"""
    scene = Scene(batching=BatchingPolicy(max_messages=100, max_delay=0.01))
    scene.send(inside(b"a", scene.id))
    scene.joined()
    scene.send(inside(b"b", scene.id), inside(b"c", scene.id))
    request = scene.commit(scene.id)
    with pytest.raises(TransactionNotOpen):
        scene.send(inside(b"late", scene.id))
    scene.advance(0.02)
    assert scene.sent(scene.link, Command.SEND).num_messages == 3
    scene.feed(scene.link, frame_receipt(0, highest=2))
    scene.answer(Command.END_TXN)
    assert scene.said()[-1] == RequestDone(request, None)


@pytest.mark.parametrize("end", ["commit", "abort"])
@pytest.mark.parametrize("joins_first", [True, False])
def test_the_end_waits_for_no_batch_to_fill(end: str, joins_first: bool) -> None:
    """INV-T1: it waits for receipts, so the open batch is sent at once."""
    scene = Scene(batching=BatchingPolicy(max_messages=100, max_delay=50.0))
    scene.send(inside(b"a", scene.id), inside(b"b", scene.id))
    if joins_first:
        scene.joined()
        assert scene.entries() == []
    request = getattr(scene.client, end)(scene.now, scene.id)
    scene.drain()
    if not joins_first:
        scene.joined()
    assert scene.sent(scene.link, Command.SEND).num_messages == 2
    scene.feed(scene.link, frame_receipt(0, highest=1))
    scene.answer(Command.END_TXN)
    assert scene.said()[-1] == RequestDone(request, None)


# --- what waits is sent when its receipt is waited for -----------------------------------------------------

SLOW = BatchingPolicy(max_messages=100, max_delay=50.0)
"""A batch that is not sent by itself within these tests."""


def test_a_push_holds_for_messages_that_wait_for_their_transaction() -> None:
    """PROD-28: a `send` that waits for the receipt does not wait for the batch delay after the join."""
    scene = Scene(batching=SLOW)
    scene.send(inside(b"a", scene.id), inside(b"b", scene.id))
    scene.client.push(scene.now, scene.handle)
    scene.joined()
    assert scene.sent(scene.link, Command.SEND).num_messages == 2
    scene.send(inside(b"c", scene.id))
    assert scene.entries() == [], "the push was for the messages before"


def test_a_push_holds_for_messages_that_wait_for_receipts() -> None:
    """PROD-28: a message outside of transactions waits for those inside."""
    scene = Scene(batching=SLOW)
    scene.send(inside(b"a", scene.id))
    scene.joined()
    scene.send(b"b")
    scene.client.push(scene.now, scene.handle)
    assert scene.entries() == [(0, b"a", 7)]
    scene.confirm(0)
    assert scene.entries() == [(1, b"b", None)]


def test_a_push_holds_for_messages_that_wait_for_the_producer() -> None:
    """PROD-28: there is nothing to push before the producer has a name."""
    script = TransactionScript()
    id_ = script.begin()
    handle = script.client.open_producer(script.now, ProducerSpec("demo", batching=SLOW))
    script.check_partitions(script.link)
    script.client.send(script.now, handle, inside(b"a", id_), WALL)
    script.client.push(script.now, handle)
    script.find_topic(script.link)
    asked = script.sent(script.link, Command.PRODUCER)
    script.feed(script.link, frame_producer_success(asked.request_id))
    script.answer(Command.ADD_PARTITION_TO_TXN)
    script.sent(script.link, Command.SEND)


@pytest.mark.parametrize("partitions", [0, 1])
@pytest.mark.parametrize("command", ["push", "flush"])
def test_a_push_holds_for_messages_from_before_the_partitions_are_known(
    command: str, partitions: int
) -> None:
    """PROD-28, PROD-49"""
    script = TransactionScript()
    id_ = script.begin()
    handle = script.client.open_producer(script.now, ProducerSpec("demo", batching=SLOW))
    script.client.send(script.now, handle, inside(b"a", id_), WALL)
    getattr(script.client, command)(script.now, handle)
    script.check_partitions(script.link, partitions)
    script.find_topic(script.link)
    asked = script.sent(script.link, Command.PRODUCER)
    script.feed(script.link, frame_producer_success(asked.request_id))
    script.answer(Command.ADD_PARTITION_TO_TXN)
    script.sent(script.link, Command.SEND)


def test_a_flush_of_the_producer_holds_for_messages_that_wait_for_their_transaction() -> None:
    """PROD-49"""
    scene = Scene(batching=SLOW)
    scene.send(inside(b"a", scene.id))
    request = scene.client.flush(scene.now, scene.handle)
    scene.joined()
    assert scene.entries() == [(0, b"a", 7)]
    scene.confirm(0)
    assert scene.said()[-1] == RequestDone(request, None)


@pytest.mark.parametrize("joins_first", [True, False])
def test_a_flush_of_the_transaction_waits_for_no_batch_to_fill(joins_first: bool) -> None:
    scene = Scene(batching=SLOW)
    scene.send(inside(b"a", scene.id), inside(b"b", scene.id))
    if joins_first:
        scene.joined()
    request = scene.client.flush_transaction(scene.now, scene.id)
    scene.drain()
    if not joins_first:
        scene.joined()
    assert scene.sent(scene.link, Command.SEND).num_messages == 2
    scene.feed(scene.link, frame_receipt(0, highest=1))
    assert RequestDone(request, None) in scene.said()


def test_the_receipt_comes_before_the_flush_of_its_transaction() -> None:
    """PROD-49"""
    scene = Scene()
    scene.send(inside(b"a", scene.id))
    scene.joined()
    request = scene.client.flush_transaction(scene.now, scene.id)
    scene.said()
    scene.confirm(0)
    receipts, done = scene.said()
    assert isinstance(receipts, Receipts)
    assert done == RequestDone(request, None)
