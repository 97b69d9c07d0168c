"""Transactions as conversations with their coordinators."""

import pytest

from pulsar_sansio.client.outputs import Connect, RequestDone, RequestFailed
from pulsar_sansio.model.errors import (
    ClosedError,
    ConnectionLost,
    InvalidConfiguration,
    InvalidTransactionStatus,
    LocalProtocolError,
    NotSupported,
    RemoteProtocolError,
    ServerError,
    TimedOut,
    TransactionCoordinatorNotFound,
    TransactionNotFound,
    TransactionNotOpen,
    TransactionOutcomeUnknown,
    TransactionTimedOut,
)
from pulsar_sansio.model.transaction_id import TransactionId
from pulsar_sansio.wire import proto
from tests.client.script import URL, Command, Script, frame_lookup, frame_partitions

from .transaction_script import TransactionScript

DEMO = "persistent://public/default/demo"


def test_a_coordinator_is_found_introduced_and_asked() -> None:
    """GAP-40: coordinators are the partitions of one system topic."""
    script = TransactionScript()
    request = script.client.begin_transaction(script.now, 1.5)
    script.link = script.ready_link()
    counted = script.sent(script.link, Command.PARTITIONED_METADATA)
    assert counted.topic == "persistent://pulsar/system/transaction_coordinator_assign"
    script.feed(script.link, frame_partitions(counted.request_id, 1))
    lookup = script.sent(script.link, Command.LOOKUP)
    assert lookup.topic == counted.topic + "-partition-0"
    script.feed(script.link, frame_lookup(lookup.request_id, URL))
    introduced = script.answer(Command.TC_CLIENT_CONNECT_REQUEST)
    assert introduced.tc_id == 0
    asked = script.answer(Command.NEW_TXN, txnid_least_bits=3, txnid_most_bits=0)
    assert (asked.txn_ttl_millis, asked.tc_id) == (1500, 0)
    [done] = script.said()
    assert (done.request, done.result) == (request, TransactionId(0, 3))  # type: ignore[union-attr]


def test_an_older_broker_wants_no_introduction() -> None:
    TransactionScript().begin(version=18)


def test_transactions_go_to_each_coordinator_in_turn() -> None:
    script = TransactionScript()
    first = script.begin(partitions=2)
    request = script.client.begin_transaction(script.now)
    script.find_topic(script.link)
    second = script.answer(Command.TC_CLIENT_CONNECT_REQUEST).tc_id
    assert {first.coordinator, second} == {0, 1}
    script.answer(Command.NEW_TXN, txnid_least_bits=1, txnid_most_bits=second)
    [done] = script.said()
    assert done.request == request  # type: ignore[union-attr]
    assert script.again(9).coordinator == first.coordinator, "no lookup and no introduction any more"


def test_a_cluster_without_transactions() -> None:
    script = TransactionScript()
    script.client.begin_transaction(script.now)
    script.link = script.ready_link()
    script.check_partitions(script.link, 0)
    assert isinstance(script.expect_one(RequestFailed).error, NotSupported)


def test_a_client_without_transactions() -> None:
    with pytest.raises(LocalProtocolError, match="transactions=True"):
        script = Script()
        script.client.begin_transaction(script.now)


@pytest.mark.parametrize("timeout", [0, -1, True, "60", 1e12])
def test_a_wrong_timeout(timeout: float) -> None:
    script = TransactionScript()
    with pytest.raises(InvalidConfiguration, match="timeout: seconds"):
        script.client.begin_transaction(script.now, timeout)
    assert script.said() == []


def test_a_coordinator_that_has_moved_is_looked_up_again() -> None:
    script = TransactionScript()
    script.begin()
    request = script.client.begin_transaction(script.now)
    script.answer(Command.NEW_TXN, ServerError.TransactionCoordinatorNotFound)
    script.advance(1)
    script.find_topic(script.link)
    script.answer(Command.TC_CLIENT_CONNECT_REQUEST, ServerError.ServiceNotReady)
    script.advance(1)
    script.find_topic(script.link)
    script.answer(Command.TC_CLIENT_CONNECT_REQUEST)
    script.opened(request, 8)


def test_a_coordinator_that_never_answers() -> None:
    script = TransactionScript(operation_timeout=5.0)
    script.begin()
    script.client.begin_transaction(script.now)
    script.advance(6)
    assert isinstance(script.expect_one(RequestFailed).error, TimedOut)


def test_an_abandoned_request_for_a_transaction_has_no_answer() -> None:
    script = TransactionScript()
    script.begin()
    request = script.client.begin_transaction(script.now)
    script.client.abandon(script.now, request)
    script.answer(Command.NEW_TXN, txnid_least_bits=8, txnid_most_bits=0)
    assert script.said() == []


def test_a_request_that_is_abandoned_before_the_coordinators_are_known_opens_nothing() -> None:
    script = TransactionScript()
    request = script.client.begin_transaction(script.now)
    script.link = script.ready_link()
    counted = script.sent(script.link, Command.PARTITIONED_METADATA)
    script.client.abandon(script.now, request)
    script.feed(script.link, frame_partitions(counted.request_id, 1))
    assert script.commands(script.link) == []
    assert script.said() == []


def test_an_id_that_the_coordinator_gives_twice() -> None:
    script = TransactionScript()
    id_ = script.begin(timeout=2.0)
    request = script.client.begin_transaction(script.now, 2.0)
    script.answer(Command.NEW_TXN, txnid_least_bits=id_.number, txnid_most_bits=id_.coordinator)
    assert isinstance(script.failed(request), RemoteProtocolError)
    script.advance(3)
    with pytest.raises(TransactionNotOpen):
        script.client.commit(script.now, id_)


def test_a_request_that_waits_for_the_coordinators_fails_when_the_client_closes() -> None:
    script = TransactionScript()
    request = script.client.begin_transaction(script.now)
    script.link = script.ready_link()
    script.sent(script.link, Command.PARTITIONED_METADATA)
    script.client.close(script.now)
    assert isinstance(script.failed(request), ClosedError | ConnectionLost)


# --- the end -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("command", "action"), [("commit", proto.COMMIT), ("abort", proto.ABORT)])
def test_an_end_without_operations(command: str, action: int) -> None:
    script = TransactionScript()
    id_ = script.begin()
    request = getattr(script.client, command)(script.now, id_)
    asked = script.answer(Command.END_TXN)
    assert (asked.txn_action, asked.txnid_most_bits, asked.txnid_least_bits) == (action, 0, 7)
    script.done(request)
    for again in (script.client.commit, script.client.abort):
        with pytest.raises(TransactionNotOpen, match=r"\(0,7\)"):
            again(script.now, id_)


def test_a_transaction_that_is_ending_takes_no_second_end() -> None:
    script = TransactionScript()
    id_ = script.begin()
    script.commit(id_)
    with pytest.raises(TransactionNotOpen, match="committing"):
        script.client.abort(script.now, id_)


def test_the_coordinator_that_has_aborted_it_meanwhile() -> None:
    script = TransactionScript()
    id_ = script.begin(timeout=60.0)
    request = script.commit(id_)
    script.answer(Command.END_TXN, ServerError.TransactionNotFound)
    error = script.failed(request)
    assert isinstance(error, TransactionTimedOut)
    assert "60 s" in str(error)


def test_an_abort_of_a_transaction_that_is_gone_has_nothing_left_to_do() -> None:
    script = TransactionScript()
    id_ = script.begin()
    request = script.client.abort(script.now, id_)
    script.answer(Command.END_TXN, ServerError.InvalidTxnStatus)
    assert isinstance(script.failed(request), TransactionTimedOut)


def test_an_end_that_is_lost_is_asked_for_again() -> None:
    """INV-T3: on the same transaction only, and its outcome is told as unknown where it is."""
    script = TransactionScript()
    id_ = script.begin()
    request = script.commit(id_)
    script.sent(script.link, Command.END_TXN)
    script.lose(script.link)
    script.said()
    script.advance(1)
    script.link = script.ready_link()
    script.find_topic(script.link)
    script.answer(Command.TC_CLIENT_CONNECT_REQUEST)
    asked = script.sent(script.link, Command.END_TXN)
    assert asked.txnid_least_bits == 7
    script.reply(Command.END_TXN, asked, ServerError.TransactionNotFound)
    error = script.failed(request)
    assert isinstance(error, TransactionOutcomeUnknown)
    assert "may be committed or not" in str(error)


def test_an_end_that_succeeds_at_the_second_attempt() -> None:
    script = TransactionScript()
    id_ = script.begin()
    request = script.commit(id_)
    script.answer(Command.END_TXN, ServerError.TransactionCoordinatorNotFound)
    script.advance(1)
    script.find_topic(script.link)
    script.answer(Command.TC_CLIENT_CONNECT_REQUEST)
    script.answer(Command.END_TXN)
    script.done(request)


def test_an_end_without_any_answer() -> None:
    script = TransactionScript(operation_timeout=5.0)
    id_ = script.begin()
    request = script.commit(id_)
    script.sent(script.link, Command.END_TXN)
    script.advance(6)
    assert isinstance(script.failed(request), TransactionOutcomeUnknown)


def test_a_commit_that_reached_no_coordinator_is_no_unknown_outcome() -> None:
    """INV-T3: END_TXN was never written, so the coordinator aborts the transaction."""
    script = TransactionScript(operation_timeout=5.0)
    id_ = script.begin()
    script.lose(script.link)
    request = script.commit(id_)
    script.advance(6)
    assert isinstance(script.failed(request), TimedOut)


def test_an_abort_without_any_answer_is_no_unknown_outcome() -> None:
    script = TransactionScript(operation_timeout=5.0)
    id_ = script.begin()
    request = script.client.abort(script.now, id_)
    script.sent(script.link, Command.END_TXN)
    script.advance(6)
    assert isinstance(script.failed(request), TimedOut)


def test_nothing_joins_after_the_timeout() -> None:
    script = TransactionScript()
    id_ = script.begin(timeout=2.0)
    script.advance(2.1)
    with pytest.raises(TransactionNotOpen):
        script.client.commit(script.now, id_)
    assert script.said() == []


def test_the_timeout_counts_from_the_request() -> None:
    """TXN-07: the coordinator counts from before its answer, and nothing may be sent after its end."""
    script = TransactionScript()
    script.begin()
    request = script.client.begin_transaction(script.now, 2.0)
    script.advance(1.5)
    id_ = script.opened(request, 8)
    script.client.join_transaction(script.now, id_, DEMO)
    script.advance(0.5)
    with pytest.raises(TransactionNotOpen):
        script.client.join_transaction(script.now, id_, DEMO)


def test_the_timeout_counts_from_the_last_request_that_was_written() -> None:
    """TXN-07: the first request has opened nothing that this answer tells of."""
    script = TransactionScript()
    script.begin()
    request = script.client.begin_transaction(script.now, 4.0)
    script.advance(1)
    script.answer(Command.NEW_TXN, ServerError.TransactionCoordinatorNotFound)
    script.advance(1)
    script.find_topic(script.link)
    script.answer(Command.TC_CLIENT_CONNECT_REQUEST)
    script.advance(1)
    id_ = script.opened(request, 8)
    script.advance(2.9)
    script.client.join_transaction(script.now, id_, DEMO)
    script.advance(0.1)
    with pytest.raises(TransactionNotOpen):
        script.client.join_transaction(script.now, id_, DEMO)


def test_the_timeout_is_whole_milliseconds_on_both_sides() -> None:
    """TXN-07"""
    script = TransactionScript()
    id_ = script.begin(timeout=1.0009)
    script.advance(1)
    with pytest.raises(TransactionNotOpen):
        script.client.commit(script.now, id_)


def test_an_answer_that_comes_after_the_timeout_opens_nothing() -> None:
    script = TransactionScript()
    script.begin()
    request = script.client.begin_transaction(script.now, 2.0)
    script.advance(2.5)
    id_ = script.opened(request, 8)
    script.advance(0)
    with pytest.raises(TransactionNotOpen):
        script.client.commit(script.now, id_)


def test_closing_the_client_ends_its_transactions() -> None:
    script = TransactionScript()
    open_, committing = script.begin(), script.again(8)
    request = script.commit(committing)
    script.client.close(script.now)
    error = script.failed(request)
    assert isinstance(error, TransactionOutcomeUnknown)
    assert isinstance(error.__cause__, ConnectionLost)
    with pytest.raises(TransactionNotOpen):
        script.client.commit(script.now, open_)
    with pytest.raises(ClosedError):
        script.client.begin_transaction(script.now)


def test_another_cluster_has_other_coordinators() -> None:
    script = TransactionScript()
    id_ = script.begin()
    script.client.update_service_url(script.now, "pulsar://other:6650")
    script.said()
    with pytest.raises(TransactionNotOpen):
        script.client.abort(script.now, id_)
    script.client.begin_transaction(script.now)
    assert script.expect_one(Connect).address.host == "other"


def test_a_refusal_of_the_coordinator() -> None:
    script = TransactionScript()
    script.begin()
    script.client.begin_transaction(script.now)
    script.answer(Command.NEW_TXN, ServerError.NotAllowedError)
    error = script.expect_one(RequestFailed).error
    assert not isinstance(error, TransactionCoordinatorNotFound)
    assert "no" in str(error)


def test_a_topic_joins_before_the_first_message() -> None:
    """GAP-40: once, however often it is asked for."""
    script = TransactionScript()
    id_ = script.begin()
    first, second = (script.client.join_transaction(script.now, id_, DEMO) for _ in range(2))
    assert list(script.answer(Command.ADD_PARTITION_TO_TXN).partitions) == [DEMO]
    third = script.client.join_transaction(script.now, id_, DEMO)
    assert script.said() == [RequestDone(each, None) for each in (first, second, third)]
    assert script.commands(script.link) == []


def test_a_topic_that_cannot_join() -> None:
    script = TransactionScript()
    id_ = script.begin()
    request = script.client.join_transaction(script.now, id_, DEMO)
    script.answer(Command.ADD_PARTITION_TO_TXN, ServerError.InvalidTxnStatus)
    assert isinstance(script.failed(request), InvalidTransactionStatus)


# --- transactions that one client opens and another ends ----------------------------------------------


def test_a_released_transaction_stays_open_at_its_coordinator() -> None:
    script = TransactionScript()
    id_ = script.begin(timeout=2.0)
    script.client.release_transaction(script.now, id_)
    assert script.commands(script.link) == []
    with pytest.raises(TransactionNotOpen, match="ended, or was never opened by this client"):
        script.client.commit(script.now, id_)
    script.advance(2.1)
    assert script.said() == []


@pytest.mark.parametrize(("commits", "action"), [(True, proto.COMMIT), (False, proto.ABORT)])
def test_a_released_transaction_is_ended_by_another_client(commits: bool, action: int) -> None:
    """GAP-40: END_TXN names the transaction by its id alone, at the coordinator of the id."""
    script = TransactionScript()
    request = script.client.end_released_transaction(script.now, TransactionId(3, 9), commits=commits)
    script.link = script.ready_link()
    lookup = script.sent(script.link, Command.LOOKUP)
    assert lookup.topic == "persistent://pulsar/system/transaction_coordinator_assign-partition-3"
    script.feed(script.link, frame_lookup(lookup.request_id, URL))
    assert script.answer(Command.TC_CLIENT_CONNECT_REQUEST).tc_id == 3
    asked = script.answer(Command.END_TXN)
    assert (asked.txnid_most_bits, asked.txnid_least_bits, asked.txn_action) == (3, 9, action)
    script.done(request)


@pytest.mark.parametrize("commits", [True, False])
def test_a_released_transaction_that_has_ended_before_is_no_timeout(commits: bool) -> None:
    """INV-T3: it may have been committed, so the answer of the coordinator is all that is said."""
    script = TransactionScript()
    script.begin()
    request = script.client.end_released_transaction(script.now, TransactionId(0, 9), commits=commits)
    script.answer(Command.END_TXN, ServerError.TransactionNotFound)
    assert isinstance(script.failed(request), TransactionNotFound)


def test_a_commit_of_a_released_transaction_without_an_answer_is_of_unknown_outcome() -> None:
    """INV-T3"""
    script = TransactionScript(operation_timeout=5.0)
    script.begin()
    request = script.client.end_released_transaction(script.now, TransactionId(0, 9), commits=True)
    script.sent(script.link, Command.END_TXN)
    script.advance(6)
    assert isinstance(script.failed(request), TransactionOutcomeUnknown)


def test_a_transaction_of_this_client_is_no_released_one() -> None:
    script = TransactionScript()
    id_ = script.begin()
    with pytest.raises(LocalProtocolError, match="opened by this client"):
        script.client.end_released_transaction(script.now, id_, commits=True)
    script.client.release_transaction(script.now, id_)
    request = script.client.end_released_transaction(script.now, id_, commits=True)
    script.answer(Command.END_TXN)
    script.done(request)


def test_a_client_without_transactions_ends_none() -> None:
    with pytest.raises(LocalProtocolError, match="transactions=True"):
        Script().client.end_released_transaction(0, TransactionId(0, 9), commits=True)
