"""Transactions with `exactly_once`: an end is reported when it is known, and no message is sent twice."""

from typing import Any

import pytest

from pulsar_sansio.client.outputs import RequestDone, RequestFailed, SendFailed
from pulsar_sansio.model.config import OutgoingMessage
from pulsar_sansio.model.errors import (
    ConnectionLost,
    ServerError,
    TransactionNotOpen,
    TransactionOutcomeUnknown,
    TransactionTimedOut,
)
from pulsar_sansio.model.transaction_id import TransactionId
from pulsar_sansio.wire import proto
from tests.client.script import (
    URL,
    WALL,
    Command,
    frame_close_producer,
    frame_lookup,
    frame_producer_success,
    frame_receipt,
)

from .transaction_script import TransactionScript


def opened(timeout: float = 60.0, **config: float) -> tuple[TransactionScript, TransactionId]:
    script = TransactionScript(**config)
    return script, script.begin(timeout=timeout, exactly_once=True)


def back(script: TransactionScript) -> None:
    """Connect again, and find the coordinator."""
    script.lose(script.link)
    script.said()
    script.advance(1)
    script.link = script.ready_link()
    script.find_topic(script.link)
    script.answer(Command.TC_CLIENT_CONNECT_REQUEST)


def asked_again(script: TransactionScript) -> Any:
    """Wait for the next END_TXN, and answer what leads to it."""
    for _ in range(100):
        for kind, command in script.commands(script.link):
            if kind == Command.END_TXN:
                return command
            if kind == Command.LOOKUP:
                script.feed(script.link, frame_lookup(command.request_id, URL))
            elif kind == Command.TC_CLIENT_CONNECT_REQUEST:
                script.reply(Command.TC_CLIENT_CONNECT_REQUEST, command)
        script.advance(1)
    raise AssertionError("the coordinator is not asked again")


def test_the_coordinator_is_asked_for_longer_than_the_operation_timeout() -> None:
    """TXN-03"""
    script, id_ = opened(operation_timeout=5.0)
    request = script.commit(id_)
    for _ in range(4):
        asked_again(script)
        script.advance(5.1)
        assert not [each for each in script.said() if isinstance(each, RequestDone | RequestFailed)]
    script.reply(Command.END_TXN, asked_again(script))
    assert RequestDone(request, None) in script.said()


@pytest.mark.parametrize("error", [ServerError.MetadataError, ServerError.NotAllowedError])
def test_a_refusal_that_tells_no_end_is_no_answer(error: int) -> None:
    """TXN-03: such as that of a coordinator whose log is not there just now."""
    script, id_ = opened()
    request = script.commit(id_)
    script.answer(Command.END_TXN, error)
    script.reply(Command.END_TXN, asked_again(script))
    assert RequestDone(request, None) in script.said()


def test_an_unknown_outcome_is_that_of_a_transaction_that_is_over() -> None:
    """INV-T3, TXN-03"""
    script, id_ = opened()
    request = script.commit(id_)
    script.sent(script.link, Command.END_TXN)
    back(script)
    script.answer(Command.END_TXN, ServerError.TransactionNotFound)
    assert isinstance(script.failed(request), TransactionOutcomeUnknown)


def test_a_commit_during_the_abort_waits_for_its_end() -> None:
    """TXN-03: the coordinator is aborting it, and forgets it when it has done so."""
    script, id_ = opened()
    request = script.commit(id_)
    script.answer(Command.END_TXN, ServerError.InvalidTxnStatus)
    asked = asked_again(script)
    assert not [each for each in script.said() if isinstance(each, RequestDone | RequestFailed)]
    assert asked.txn_action == proto.COMMIT, "a client that does not know the end asks for no other one"
    script.reply(Command.END_TXN, asked, ServerError.TransactionNotFound)
    assert isinstance(script.failed(request), TransactionOutcomeUnknown)


@pytest.mark.parametrize("command", ["commit", "abort"])
def test_the_timeout_asks_for_the_abort(command: str) -> None:
    """TXN-03: the request for the end waits for that."""
    script, id_ = opened(timeout=2.0)
    script.advance(2.1)
    asked = script.sent(script.link, Command.END_TXN)
    assert asked.txn_action == proto.ABORT
    with pytest.raises(TransactionNotOpen):
        script.client.flush_transaction(script.now, id_)
    request = getattr(script.client, command)(script.now, id_)
    with pytest.raises(TransactionNotOpen):
        script.client.commit(script.now, id_)
    assert script.said() == []
    script.reply(Command.END_TXN, asked)
    assert isinstance(script.failed(request), TransactionTimedOut)


def test_the_timeout_does_not_wait_for_receipts() -> None:
    """TXN-03: a producer may wait for them for ever, and the coordinator does not."""
    script = TransactionScript()
    handle = script.producer(send_timeout=0)
    id_ = script.begin(timeout=2.0, exactly_once=True)
    script.client.send(script.now, handle, OutgoingMessage(b"x", transaction=id_), WALL)
    script.drain()
    script.answer(Command.ADD_PARTITION_TO_TXN)
    script.sent(script.link, Command.SEND)
    request = script.commit(id_)
    script.advance(2.1)
    assert script.answer(Command.END_TXN).txn_action == proto.ABORT
    assert isinstance(script.failed(request), TransactionTimedOut)


def test_the_timeout_ends_what_joins() -> None:
    """CHECK-98"""
    script = TransactionScript()
    handle = script.producer()
    id_ = script.begin(timeout=2.0, exactly_once=True)
    script.client.send(script.now, handle, OutgoingMessage(b"x", transaction=id_), WALL)
    script.drain()
    script.sent(script.link, Command.ADD_PARTITION_TO_TXN)
    script.advance(2.1)
    script.answer(Command.END_TXN)
    script.advance(60)
    assert [each for each in script.said() if isinstance(each, SendFailed)]
    assert Command.ADD_PARTITION_TO_TXN not in [kind for kind, _ in script.commands(script.link)]


def test_a_transaction_that_is_over_has_no_end() -> None:
    script, id_ = opened(timeout=2.0)
    script.advance(2.1)
    script.answer(Command.END_TXN, ServerError.TransactionNotFound)
    with pytest.raises(TransactionNotOpen):
        script.client.commit(script.now, id_)


def test_closing_the_client_ends_the_questions() -> None:
    script, id_ = opened()
    request = script.commit(id_)
    script.sent(script.link, Command.END_TXN)
    script.client.close(script.now)
    script.advance(100)
    [failed] = [each for each in script.said() if isinstance(each, RequestFailed)]
    assert failed.request == request
    assert isinstance(failed.error, TransactionOutcomeUnknown)


def test_a_message_that_may_be_stored_fails() -> None:
    """TXN-04: sent again it might be stored twice, and both would be committed."""
    script = TransactionScript()
    handle = script.producer()
    id_ = script.begin(exactly_once=True)
    other = script.again(8)
    for each in (id_, other):
        script.client.send(script.now, handle, OutgoingMessage(b"x", transaction=each), WALL)
        script.drain()
        asked = script.sent(script.link, Command.ADD_PARTITION_TO_TXN)
        script.reply(Command.ADD_PARTITION_TO_TXN, asked)
        script.sent(script.link, Command.SEND)
    script.lose(script.link)
    script.said()
    script.advance(1)
    script.link = script.ready_link()
    script.find_topic(script.link)
    opened = script.sent(script.link, Command.PRODUCER)
    script.feed(script.link, frame_producer_success(opened.request_id))
    [resent] = [command for _, command in script.commands(script.link)]
    assert resent.txnid_least_bits == 8, "that of the transaction without exactly_once"
    [failed] = [each for each in script.said() if isinstance(each, SendFailed)]
    assert isinstance(failed.error, ConnectionLost)
    script.feed(script.link, frame_receipt(1))
    request = script.commit(id_)
    script.find_topic(script.link)
    script.answer(Command.TC_CLIENT_CONNECT_REQUEST)
    assert script.answer(Command.END_TXN).txn_action == proto.ABORT
    assert isinstance(script.failed(request), ConnectionLost)


def test_a_message_that_was_never_written_is_sent() -> None:
    """TXN-04: no broker has it; its topic was unloaded while the transaction joined the topic."""
    script = TransactionScript()
    handle = script.producer()
    id_ = script.begin(exactly_once=True)
    script.client.send(script.now, handle, OutgoingMessage(b"x", transaction=id_), WALL)
    asked = script.sent(script.link, Command.ADD_PARTITION_TO_TXN)
    script.feed(script.link, frame_close_producer())
    script.reply(Command.ADD_PARTITION_TO_TXN, asked)
    script.client.send(script.now, handle, OutgoingMessage(b"y", transaction=id_), WALL)
    script.advance(1)
    script.find_topic(script.link)
    opened = script.sent(script.link, Command.PRODUCER)
    script.feed(script.link, frame_producer_success(opened.request_id))
    assert [command.sequence_id for _, command in script.commands(script.link)] == [0, 1]
    assert not [each for each in script.said() if isinstance(each, SendFailed)]


def test_a_message_held_behind_one_that_fails_is_sent_once() -> None:
    """PROD-46: it is sealed when the one before it fails, while the producer sends everything again."""
    script = TransactionScript()
    handle = script.producer()
    id_ = script.begin(exactly_once=True)
    script.client.send(script.now, handle, OutgoingMessage(b"x", transaction=id_), WALL)
    script.drain()
    script.answer(Command.ADD_PARTITION_TO_TXN)
    script.sent(script.link, Command.SEND)
    script.client.send(script.now, handle, b"y", WALL)
    script.lose(script.link)
    script.said()
    script.advance(1)
    script.link = script.ready_link()
    script.find_topic(script.link)
    opened = script.sent(script.link, Command.PRODUCER)
    script.feed(script.link, frame_producer_success(opened.request_id))
    assert [command.sequence_id for _, command in script.commands(script.link)] == [1]


def test_a_flush_waits_for_every_receipt() -> None:
    script = TransactionScript()
    handle = script.producer()
    id_ = script.begin()
    script.client.send(script.now, handle, OutgoingMessage(b"x", transaction=id_), WALL)
    request = script.client.flush_transaction(script.now, id_)
    script.drain()
    script.answer(Command.ADD_PARTITION_TO_TXN)
    script.commands(script.link)
    assert script.said() == []
    script.feed(script.link, frame_receipt(0))
    assert RequestDone(request, None) in script.said()
    request = script.client.flush_transaction(script.now, id_)
    script.done(request)


def test_a_flush_fails_when_the_abort_is_asked_for() -> None:
    """INV-T1: messages that fail after that are no failure of the abort, and were not confirmed either."""
    script = TransactionScript()
    handle = script.producer()
    id_ = script.begin()
    script.client.send(script.now, handle, OutgoingMessage(b"a", transaction=id_), WALL)
    script.answer(Command.ADD_PARTITION_TO_TXN)
    request = script.client.flush_transaction(script.now, id_)
    script.client.abort(script.now, id_)
    assert isinstance(script.failed(request), TransactionNotOpen)


def test_a_flush_of_a_transaction_that_times_out() -> None:
    script = TransactionScript()
    handle = script.producer()
    id_ = script.begin(timeout=2.0)
    script.client.send(script.now, handle, OutgoingMessage(b"x", transaction=id_), WALL)
    request = script.client.flush_transaction(script.now, id_)
    script.advance(2.1)
    assert isinstance(script.failed(request), TransactionTimedOut)
