"""The commands of transactions, as transcripts of scripted clients."""

from typing import Any

import pytest

from pulsar_sansio.broker import BrokerConfig
from pulsar_sansio.wire import CUMULATIVE, Send, encode_ack, proto
from tests.broker.peer import TOPIC, Peer, SubType, Type, World
from tests.broker.serving.stored_topics import backlog
from tests.broker.transacting import InTransaction, ask, error_of

KINDS = [SubType.Exclusive, SubType.Failover, SubType.Shared, SubType.Key_Shared]


def scene(kind: SubType = SubType.Exclusive, config: BrokerConfig | None = None) -> tuple[World, Peer, Peer]:
    """Return a world, a producing peer and a consuming peer."""
    world = World(config)
    producing, consuming = world.connect(), world.connect()
    producing.producer()
    consuming.subscribe(kind)
    world.advance(1)
    consuming.inbox.clear()
    return world, producing, consuming


def test_coordinators_are_found_by_name() -> None:
    """GAP-40: the partitions of one name stand for the coordinators."""
    peer = World(BrokerConfig(transaction_coordinators=3)).connect()
    name = "persistent://pulsar/system/transaction_coordinator_assign"
    found = ask(
        peer,
        Type.PARTITIONED_METADATA,
        proto.CommandPartitionedTopicMetadata(topic=name),
        Type.PARTITIONED_METADATA_RESPONSE,
    )
    assert found.partitions == 3
    where = ask(
        peer, Type.LOOKUP, proto.CommandLookupTopic(topic=name + "-partition-2"), Type.LOOKUP_RESPONSE
    )
    assert where.response == proto.CommandLookupTopicResponse.Connect
    for coordinator, error in ((2, ""), (3, "TransactionCoordinatorNotFound")):
        command = proto.CommandTcClientConnectRequest(tc_id=coordinator)
        answer = ask(peer, Type.TC_CLIENT_CONNECT_REQUEST, command, Type.TC_CLIENT_CONNECT_RESPONSE)
        assert error_of(answer) == error


def test_each_coordinator_numbers_its_transactions() -> None:
    peer = World(BrokerConfig(transaction_coordinators=2)).connect()
    bits = [InTransaction(peer, coordinator=coordinator).bits for coordinator in (0, 0, 1)]
    assert [(each["txnid_most_bits"], each["txnid_least_bits"]) for each in bits] == [(0, 0), (0, 1), (1, 0)]


@pytest.mark.parametrize("kind", KINDS)
def test_messages_are_delivered_after_the_commit_and_hold_back_later_ones(kind: SubType) -> None:
    _, producing, consuming = scene(kind)
    producing.publish(b"before", 0)
    transaction = InTransaction(producing)
    producing.inbox.clear()
    transaction.publish(b"inside", 1)
    producing.publish(b"after", 2)
    assert consuming.payloads() == [b"before"]
    assert transaction.end() == ""
    assert consuming.payloads() == [b"inside", b"after"]


@pytest.mark.parametrize("kind", KINDS)
def test_messages_of_an_aborted_transaction_are_never_delivered(kind: SubType) -> None:
    world, producing, consuming = scene(kind)
    transaction = InTransaction(producing)
    transaction.publish(b"inside", 0)
    producing.publish(b"after", 1)
    assert consuming.payloads() == []
    assert transaction.abort() == ""
    messages = consuming.messages()
    assert [each.entry_id for each in messages] == [1]
    consuming.ack(*messages)
    assert backlog(world) == 0, "markers and aborted entries are passed over"
    late = world.connect()
    late.subscribe(subscription="late")
    assert late.payloads() == [b"after"]


def test_transactions_end_in_any_order() -> None:
    """The first open transaction holds back the others, whatever their order of ending."""
    _, producing, consuming = scene()
    first, second, third = (InTransaction(producing) for _ in range(3))
    first.publish(b"1", 0)
    second.publish(b"2", 1)
    third.publish(b"3", 2)
    first.publish(b"4", 3)
    assert third.end() == ""
    assert second.abort() == ""
    assert consuming.payloads() == []
    assert first.end() == ""
    assert consuming.payloads() == [b"1", b"3", b"4"]


def test_nothing_is_visible_before_the_commit_is_durable() -> None:
    world, producing, consuming = scene()
    transaction = InTransaction(producing)
    transaction.publish(b"inside")
    world.hold_writes = True
    producing.send(
        Type.END_TXN, proto.CommandEndTxn(request_id=7, txn_action=proto.COMMIT, **transaction.bits)
    )
    producing.nothing()
    consuming.nothing()
    world.sync()
    assert producing.expect(Type.END_TXN_RESPONSE).request_id == 7
    assert consuming.payloads() == [b"inside"]


def test_a_restart_finds_open_transactions_and_their_entries() -> None:
    """The number of a transaction is never given twice."""
    world, producing, _ = scene()
    committed, open_ = InTransaction(producing), InTransaction(producing)
    committed.publish(b"committed", 0)
    open_.publish(b"open", 1)
    assert committed.end() == ""
    world.start()
    peer = world.connect()
    peer.subscribe()
    assert peer.payloads() == [b"committed"]
    open_.peer = peer
    assert open_.end() == ""
    assert peer.payloads() == [b"open"]
    assert InTransaction(peer).bits["txnid_least_bits"] == 2


def test_a_transaction_is_aborted_after_its_timeout() -> None:
    world, producing, consuming = scene()
    transaction = InTransaction(producing, timeout=5000)
    transaction.publish(b"inside", 0)
    producing.publish(b"after", 1)
    world.advance(4.9)
    consuming.nothing()
    world.advance(0.2)
    assert consuming.payloads() == [b"after"]
    producing.inbox.clear()
    assert transaction.end() == "TransactionNotFound"


def test_a_timeout_goes_on_after_a_restart() -> None:
    world, producing, _ = scene()
    InTransaction(producing, timeout=5000).publish(b"inside", 0)
    producing.publish(b"after", 1)
    world.advance(3)
    world.start()
    peer = world.connect()
    peer.subscribe()
    world.advance(1.9)
    peer.nothing()
    world.advance(0.2)
    assert peer.payloads() == [b"after"]


def test_a_wall_clock_that_is_set_back_does_not_prolong_a_transaction() -> None:
    """GAP-40: a restarted broker counts by the wall clock."""
    world, producing, _ = scene()
    InTransaction(producing, timeout=5000).publish(b"inside", 0)
    world.wall -= 3_600_000
    world.start()
    world.advance(4.9)
    assert world.broker.coordinators.open
    world.advance(0.2)
    assert not world.broker.coordinators.open


@pytest.mark.parametrize("kind", KINDS)
def test_acknowledgements_take_effect_with_the_commit(kind: SubType) -> None:
    world, producing, consuming = scene(kind)
    for number in range(2):
        producing.publish(b"%d" % number, number)
    messages = consuming.messages()
    transaction = InTransaction(consuming)
    transaction.join_subscription()
    assert transaction.ack(messages[0]) == ""
    assert backlog(world) == 2
    assert transaction.end() == ""
    assert backlog(world) == 1
    world.start()
    assert backlog(world) == 1


@pytest.mark.parametrize("kind", [SubType.Shared, SubType.Key_Shared])
def test_an_abort_delivers_the_messages_again(kind: SubType) -> None:
    """Seen: java-transaction-abort."""
    world, producing, consuming = scene(kind)
    producing.publish(b"0", 0)
    for count in range(3):
        (message,) = consuming.messages()
        assert message.redelivery_count == count
        transaction = InTransaction(consuming)
        transaction.join_subscription()
        assert transaction.ack(message) == ""
        consuming.redeliver()
        consuming.nothing()
        assert transaction.abort() == ""
    assert backlog(world) == 1


def test_an_abort_on_an_exclusive_subscription_begins_anew() -> None:
    _, producing, consuming = scene()
    for number in range(3):
        producing.publish(b"%d" % number, number)
    messages = consuming.messages()
    transaction = InTransaction(consuming)
    transaction.join_subscription()
    assert transaction.ack(messages[1]) == ""
    consuming.redeliver(epoch=1)
    assert consuming.payloads() == [b"0", b"2"], "an open transaction acknowledges 1"
    assert transaction.abort() == ""
    assert consuming.payloads() == [b"0", b"1", b"2"]


def test_messages_of_a_batch() -> None:
    _, producing, consuming = scene(SubType.Shared)
    producing.publish_batch([b"0", b"1", b"2", b"3"])
    (message,) = consuming.messages()
    place = message.ledger_id, message.entry_id
    first, second = InTransaction(consuming), InTransaction(consuming)
    for each in (first, second):
        each.join_subscription()
    assert first.ack((*place, 0b1110)) == ""
    assert second.ack((*place, 0b1100)) == "TransactionConflict"
    assert second.ack((*place, 0b1101)) == ""
    consuming.redeliver()
    assert [each.ack_set for each in consuming.messages()] == [0b1100]
    assert first.end() == ""
    assert second.abort() == ""
    assert [each.ack_set for each in consuming.messages()] == [0b1110]


@pytest.mark.parametrize("ends", [True, False], ids=["committed", "open"])
def test_the_rest_of_a_batch_without_index_acknowledgement(ends: bool) -> None:
    """TXN-01: the client does not name messages that another transaction acknowledges."""
    world, producing, consuming = scene(SubType.Shared, BrokerConfig(batch_index_acknowledgement=False))
    producing.publish_batch([b"0", b"1", b"2"])
    (message,) = consuming.messages()
    place = message.ledger_id, message.entry_id
    transaction = InTransaction(consuming)
    transaction.join_subscription()
    assert transaction.ack((*place, 0b110)) == ""
    if ends:
        assert transaction.end() == ""
    consuming.ack((*place, 0b001))
    if not ends:
        assert transaction.end() == ""
    (subscription,) = world.broker.topic_administration.stats(TOPIC)["subscriptions"].values()
    assert subscription["backlog"] == 0


def test_two_transactions_cannot_acknowledge_one_message() -> None:
    """TXN-01: nothing of a refused ACK takes effect."""
    world, producing, consuming = scene(SubType.Shared)
    for number in range(2):
        producing.publish(b"%d" % number, number)
    zero, one = consuming.messages()
    first, second = InTransaction(consuming), InTransaction(consuming)
    for each in (first, second):
        each.join_subscription()
    assert first.ack(zero) == ""
    assert first.ack(zero) == "TransactionConflict", "not even a second time"
    assert second.ack(one, zero) == "TransactionConflict"
    assert second.end() == ""
    assert backlog(world) == 2
    assert first.end() == ""
    third = InTransaction(consuming)
    third.join_subscription()
    assert third.ack(zero) == "TransactionConflict", "acknowledged already"


def test_cumulative_acknowledgement() -> None:
    world, producing, consuming = scene()
    for number in range(3):
        producing.publish(b"%d" % number, number)
    messages = consuming.messages()
    first, second = InTransaction(consuming), InTransaction(consuming)
    for each in (first, second):
        each.join_subscription()
    assert first.ack(messages[0], kind=CUMULATIVE) == ""
    assert second.ack(messages[1], kind=CUMULATIVE) == "TransactionConflict"
    assert first.ack(messages[1], kind=CUMULATIVE) == ""
    assert first.ack(messages[0], kind=CUMULATIVE) == "TransactionConflict"
    assert backlog(world) == 3
    assert first.end() == ""
    assert backlog(world) == 1
    assert second.ack(messages[1], kind=CUMULATIVE) == "TransactionConflict"
    assert second.ack(messages[2], kind=CUMULATIVE) == ""
    assert second.abort() == ""
    consuming.nothing()
    assert backlog(world) == 1


def test_cumulative_acknowledgement_within_a_batch() -> None:
    _, producing, consuming = scene()
    producing.publish(b"0", 0)
    producing.publish_batch([b"1", b"2", b"3"], 1)
    _, batch = consuming.messages()
    transaction = InTransaction(consuming)
    transaction.join_subscription()
    assert transaction.ack((batch.ledger_id, batch.entry_id, 0b100), kind=CUMULATIVE) == ""
    assert transaction.end() == ""
    consuming.redeliver(epoch=1)
    assert [each.ack_set for each in consuming.messages()] == [0b100]


def test_a_cumulative_acknowledgement_needs_order() -> None:
    world, producing, consuming = scene(SubType.Shared)
    producing.publish(b"0", 0)
    (message,) = consuming.messages()
    transaction = InTransaction(consuming)
    transaction.join_subscription()
    assert transaction.ack(message, kind=CUMULATIVE) == "NotAllowedError"
    assert transaction.ack(kind=CUMULATIVE) == "NotAllowedError"
    assert backlog(world) == 1


def test_a_restart_keeps_pending_acknowledgements() -> None:
    world, producing, consuming = scene(SubType.Shared)
    for number in range(3):
        producing.publish(b"%d" % number, number)
    zero, one, _ = consuming.messages()
    first, second = InTransaction(consuming), InTransaction(consuming)
    for each in (first, second):
        each.join_subscription()
    assert (first.ack(zero), second.ack(one)) == ("", "")
    world.start()
    peer = world.connect()
    peer.subscribe(SubType.Shared)
    assert [each.entry_id for each in peer.messages()] == [2]
    first.peer = second.peer = peer
    assert second.abort() == ""
    assert [each.entry_id for each in peer.messages()] == [1]
    assert first.end() == ""
    assert backlog(world) == 2


def test_what_does_not_belong_to_a_transaction_is_refused() -> None:
    _, producing, consuming = scene()
    producing.publish(b"0", 0)
    (message,) = consuming.messages()
    transaction = InTransaction(consuming)
    assert transaction.ack(message) == "InvalidTxnStatus", "the subscription has not joined"
    mine = InTransaction(producing)
    producing.inbox.clear()
    mine.send(b"1", 1)
    assert error_of(producing.expect(Type.SEND_ERROR)) == "NotAllowedError"
    assert mine.end() == ""
    assert mine.end() == "TransactionNotFound"
    assert error_of(mine.join_topic()) == "TransactionNotFound"
    assert error_of(mine.join_subscription()) == "TransactionNotFound"
    mine.send(b"2", 2)
    refused = producing.expect(Type.SEND_ERROR)
    assert (error_of(refused), refused.message) == ("NotAllowedError", "Transaction (0,1) is not open")
    consuming.inbox.clear()
    consuming.feed(encode_ack(0, 0, [(0, 0, None)], txnid_least_bits=99, txnid_most_bits=0))
    consuming.nothing()


def test_names_are_checked() -> None:
    _, producing, _ = scene()
    transaction = InTransaction(producing)
    assert error_of(transaction.join_topic("persistent://a")) == "InvalidTopicName"
    assert error_of(transaction.join_subscription(subscription="s" * 5000)) == "ProducerBusy"
    assert transaction.end() == ""


def test_topics_that_are_not_persistent_take_no_part() -> None:
    peer = World().connect()
    topic = "non-persistent://public/default/t"
    peer.producer(topic)
    peer.subscribe(topic=topic)
    transaction = InTransaction(peer)
    transaction.join_topic(topic)
    transaction.join_subscription(topic)
    transaction.send(b"0")
    assert error_of(peer.expect(Type.SEND_ERROR)) == "NotAllowedError"
    assert transaction.ack((0, 0, None)) == "NotAllowedError"
    assert transaction.end() == ""


def test_a_topic_or_subscription_that_is_gone_does_not_stop_a_commit() -> None:
    world, producing, consuming = scene()
    producing.publish(b"0", 0)
    (message,) = consuming.messages()
    transaction = InTransaction(producing)
    producing.inbox.clear()
    transaction.publish(b"1", 1)
    other = InTransaction(consuming)
    other.join_subscription()
    assert other.ack(message) == ""
    world.broker.topic_administration.delete_topic(world.now, TOPIC, force=True)
    world.pump()
    producing.inbox.clear()
    consuming.inbox.clear()
    assert transaction.end() == ""
    assert other.end() == ""


def test_a_terminated_topic_ends_after_the_marker() -> None:
    """BROKER-43: consumers are told of the end once the transaction is over."""
    world, producing, consuming = scene()
    transaction = InTransaction(producing)
    transaction.publish(b"inside")
    world.broker.topic_administration.terminate(world.now, TOPIC)
    world.pump()
    producing.inbox.clear()
    consuming.nothing()
    assert transaction.end() == ""
    message = consuming.expect(Type.MESSAGE)
    consuming.ack(message)
    consuming.expect(Type.REACHED_END_OF_TOPIC)


def last_id(peer: Peer) -> tuple[int, int]:
    answer = ask(
        peer,
        Type.GET_LAST_MESSAGE_ID,
        proto.CommandGetLastMessageId(consumer_id=0),
        Type.GET_LAST_MESSAGE_ID_RESPONSE,
    )
    return answer.last_message_id.entryId, answer.last_message_id.batch_index


def test_the_last_message_is_the_last_that_consumers_may_receive() -> None:
    _, producing, consuming = scene()
    producing.publish(b"0", 0)
    open_, aborted = InTransaction(producing), InTransaction(producing)
    producing.inbox.clear()
    consuming.inbox.clear()
    aborted.publish(b"1", 1)
    assert aborted.abort() == ""
    assert last_id(consuming) == (0, -1)
    open_.publish(b"2", 2)
    producing.publish(b"3", 3)
    assert last_id(consuming) == (0, -1)
    producing.inbox.clear()
    assert open_.end() == ""
    consuming.inbox.clear()
    assert last_id(consuming) == (4, -1)


def test_messages_expire_only_after_their_transaction() -> None:
    world, producing, _ = scene()
    InTransaction(producing, timeout=3_600_000).publish(b"inside", 0)
    world.broker.administration.set_policy(world.now, TOPIC, "message_ttl", 1)
    world.advance(120)
    assert backlog(world) == 1


def test_unloading_keeps_open_transactions() -> None:
    world, producing, _ = scene()
    transaction = InTransaction(producing)
    transaction.publish(b"inside")
    world.broker.topic_administration.unload(world.now, TOPIC)
    world.pump()
    producing.inbox.clear()
    peer = world.connect()
    peer.subscribe()
    peer.nothing()
    assert transaction.end() == ""
    assert peer.payloads() == [b"inside"]


def test_the_stats_of_a_topic_count_its_transactions() -> None:
    world, producing, _ = scene()
    ended = [InTransaction(producing) for _ in range(4)]
    for number, each in enumerate(ended):
        each.publish(b"inside", number)
    assert [ended[0].end(), ended[1].abort(), ended[2].abort()] == ["", "", ""]
    stats = world.broker.topic_administration.stats(TOPIC)
    assert [stats[f"{name}TxnCount"] for name in ("ongoing", "committed", "aborted")] == [1, 1, 2]


def test_too_many_transactions() -> None:
    """The Java broker leaves the request without an answer; a refusal says more."""
    peer = World(BrokerConfig(max_transactions=1)).connect()
    transaction = InTransaction(peer)
    refused = ask(peer, Type.NEW_TXN, proto.CommandNewTxn(tc_id=0), Type.NEW_TXN_RESPONSE)
    assert error_of(refused) == "TooManyRequests"
    assert transaction.end() == ""
    InTransaction(peer)


REQUESTS: list[tuple[int, Any]] = [
    (Type.TC_CLIENT_CONNECT_REQUEST, proto.CommandTcClientConnectRequest(request_id=1, tc_id=0)),
    (Type.NEW_TXN, proto.CommandNewTxn(request_id=1)),
    (Type.ADD_PARTITION_TO_TXN, proto.CommandAddPartitionToTxn(request_id=1)),
    (Type.ADD_SUBSCRIPTION_TO_TXN, proto.CommandAddSubscriptionToTxn(request_id=1)),
    (Type.END_TXN, proto.CommandEndTxn(request_id=1)),
    (Type.END_TXN_ON_PARTITION, proto.CommandEndTxnOnPartition(request_id=1)),
    (Type.END_TXN_ON_SUBSCRIPTION, proto.CommandEndTxnOnSubscription(request_id=1)),
]


@pytest.mark.parametrize(("number", "command"), REQUESTS)
def test_a_broker_without_coordinators_refuses(number: int, command: Any) -> None:
    """Rule ERR-18: what is missing is named."""
    peer = World(BrokerConfig(transaction_coordinators=0)).connect()
    peer.send(number, command)
    error = peer.expect_error("NotAllowedError")
    assert (error.request_id, error.message) == (1, "Transactions are not enabled on this broker")


@pytest.mark.parametrize(("number", "command"), REQUESTS[-2:])
def test_clients_cannot_end_a_part_of_a_transaction(number: int, command: Any) -> None:
    peer = World().connect()
    peer.send(number, command)
    assert "only one of its cluster" in peer.expect_error("NotAllowedError").message


def test_messages_and_acknowledgements_without_coordinators() -> None:
    peer = World(BrokerConfig(transaction_coordinators=0)).connect()
    peer.producer()
    peer.subscribe()
    peer.feed(Send(0, 0, txnid_most_bits=0, txnid_least_bits=0, payload=b"").encode())
    assert error_of(peer.expect(Type.SEND_ERROR)) == "NotAllowedError"
    peer.feed(encode_ack(0, 0, [(0, 0, None)], request_id=5, txnid_most_bits=0, txnid_least_bits=0))
    assert error_of(peer.expect(Type.ACK_RESPONSE)) == "TransactionNotFound"
