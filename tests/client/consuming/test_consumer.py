"""One consumer from SUBSCRIBE to its end."""

from typing import Any

import pytest

from pulsar_sansio.client.outputs import (
    ActiveChanged,
    Attached,
    Closed,
    ConsumerFailed,
    ConsumerReady,
    Deliverable,
    Detached,
    EndOfTopic,
)
from pulsar_sansio.model.config import InitialPosition, KeySharedPolicy, SubscriptionType
from pulsar_sansio.model.errors import (
    ClosedError,
    ConsumerBusy,
    SubscriptionNotFound,
)
from pulsar_sansio.model.message_id import EARLIEST, LATEST, MessageId
from pulsar_sansio.wire import encode_command, proto
from tests.client.broker_script import SECOND, ConsumerScript, entry_bytes
from tests.client.consuming.consumer_script import refuse, started

RECORDED_REQUEST_ID = 2056520648352742325


RECORDED_SUBSCRIBE = (
    "0a2e70657273697374656e743a2f2f7075626c69632f64656661756c742f636f6e73756d652d696e646976696475616c"
    "12037375621800200028b5f7c8f2a3d48ec51c32057a3373567938004001580068017801980100"
)


def subscribe_of(script: ConsumerScript) -> Any:
    (command,) = script.expect("SUBSCRIBE")
    return command


class TestSubscribe:
    def test_the_bytes_are_those_of_the_java_client(self) -> None:
        """As recorded: every field it writes, in its order, and no other. Rules WIRE-09 and CONS-13."""
        s = ConsumerScript(
            topic="consume-individual",
            subscription="sub",
            consumer_name="z3sVy",
            initial_position=InitialPosition.EARLIEST,
        )
        command = subscribe_of(s)
        command.request_id = RECORDED_REQUEST_ID
        assert command.SerializeToString().hex() == RECORDED_SUBSCRIBE

    @pytest.mark.parametrize(
        ("kind", "number"),
        [
            (SubscriptionType.EXCLUSIVE, 0),
            (SubscriptionType.SHARED, 1),
            (SubscriptionType.FAILOVER, 2),
            (SubscriptionType.KEY_SHARED, 3),
        ],
    )
    def test_the_four_types(self, kind: SubscriptionType, number: int) -> None:
        """Rule SUBT-01."""
        command = subscribe_of(ConsumerScript(subscription_type=kind))
        assert command.subType == number
        assert not command.HasField("keySharedMeta")  # seen: java-key-shared

    def test_all_options(self) -> None:
        """Rules WIRE-09 and CONS-01."""
        command = subscribe_of(
            ConsumerScript(
                consumer_name="named",
                priority_level=2,
                properties={"team": "x"},
                subscription_properties={"owner": "me"},
                replicate_subscription_state=True,
            )
        )
        assert command.consumer_name == "named"
        assert command.priority_level == 2
        assert [(pair.key, pair.value) for pair in command.metadata] == [("team", "x")]
        assert [(pair.key, pair.value) for pair in command.subscription_properties] == [("owner", "me")]
        assert command.replicate_subscription_state  # seen: java-subscription-options
        assert command.force_topic_creation
        assert command.durable
        assert not command.HasField("start_message_id")  # CONS-10

    def test_sticky_ranges(self) -> None:
        policy = KeySharedPolicy(ranges=((0, 99), (200, 65535)))
        meta = subscribe_of(
            ConsumerScript(subscription_type=SubscriptionType.KEY_SHARED, key_shared=policy)
        ).keySharedMeta
        assert meta.keySharedMode == proto.STICKY
        assert [(each.start, each.end) for each in meta.hashRanges] == [(0, 99), (200, 65535)]
        assert meta.HasField("allowOutOfOrderDelivery")  # seen: java-key-shared-sticky
        assert not meta.allowOutOfOrderDelivery

    def test_keys_divided_by_the_broker_in_any_order(self) -> None:
        policy = KeySharedPolicy(allow_out_of_order=True)
        meta = subscribe_of(
            ConsumerScript(subscription_type=SubscriptionType.KEY_SHARED, key_shared=policy)
        ).keySharedMeta
        assert (meta.keySharedMode, meta.allowOutOfOrderDelivery) == (proto.AUTO_SPLIT, True)
        assert not meta.hashRanges

    def test_a_made_up_name_stays_the_same(self) -> None:
        s = ConsumerScript()
        name = s.accept().consumer_name
        assert len(name) == 5
        assert s.reconnect().consumer_name == name  # CONS-03

    @pytest.mark.parametrize(
        ("start", "ledger", "entry", "index"),
        [
            (EARLIEST, 2**64 - 1, 2**64 - 1, -1),  # seen: java-reader
            (LATEST, 2**63 - 1, 2**63 - 1, -1),
            (MessageId(3, 4), 3, 4, -1),
            (MessageId(3, 4, -1, 2, 5), 3, 4, 2),
        ],
    )
    def test_where_a_subscription_that_is_not_durable_starts(
        self, start: MessageId, ledger: int, entry: int, index: int
    ) -> None:
        command = subscribe_of(ConsumerScript(durable=False, start_message_id=start))
        assert not command.durable
        id_ = command.start_message_id
        assert (id_.ledgerId, id_.entryId, id_.batch_index) == (ledger, entry, index)

    def test_or_does_not_say(self) -> None:
        command = subscribe_of(ConsumerScript(durable=False))
        assert not command.HasField("start_message_id")  # CONS-17

    def test_accepted(self) -> None:
        """Rules CONS-08, CONS-11 and CONS-12."""
        s = ConsumerScript(receiver_queue_size=10)
        s.accept()
        (flow,) = s.expect("FLOW")
        assert flow.message_permits == 10  # FLOW-02
        assert s.outputs() == [ConsumerReady(s.consumer, "persistent://public/default/t")]

    def test_refused_for_good(self) -> None:
        """Rule CONS-14."""
        s = ConsumerScript()
        refuse(s, subscribe_of(s).request_id, 5)
        (failed,) = s.outputs()
        assert isinstance(failed, ConsumerFailed)
        assert isinstance(failed.error, ConsumerBusy)
        with pytest.raises(ClosedError):
            s.receive()

    def test_a_consumer_that_is_being_closed_has_no_checkpoint(self) -> None:
        s = ConsumerScript()
        s.accept()
        s.client.close(s.now, s.consumer)
        with pytest.raises(ClosedError):
            s.client.checkpoint(s.consumer)

    def test_refused_for_now(self) -> None:
        """Rules CONS-04, CONS-15 and TIMER-14."""
        s = ConsumerScript()
        refuse(s, subscribe_of(s).request_id, 6)
        s.pass_time(SECOND)
        s.accept()
        assert [type(output) for output in s.outputs()] == [ConsumerReady]  # CONS-15

    def test_the_subscription_is_gone_when_it_comes_back(self) -> None:
        s = started()
        s.lose()
        s.pass_time(SECOND)
        refuse(s, subscribe_of(s).request_id, 12)
        closed = s.outputs()[-1]
        assert isinstance(closed, Closed)
        assert isinstance(closed.error, SubscriptionNotFound)


class TestDelivery:
    def test_is_announced_once_per_change_from_nothing_to_something(self) -> None:
        s = started()
        s.message(0)
        s.batch(1, 2)
        assert s.outputs() == [Deliverable(s.consumer)]
        assert s.client.available(s.consumer) == 3
        s.message(2)
        assert s.outputs() == []
        s.take()
        assert s.outputs() == []
        s.message(3)
        assert s.outputs() == [Deliverable(s.consumer)]

    @pytest.mark.parametrize("limit", [1, 2, 3, 100])
    @pytest.mark.parametrize("size", [1, 3])
    def test_is_announced_again_while_something_is_left(self, limit: int, size: int) -> None:
        """An application that takes once for each `Deliverable` gets everything, and is told nothing then."""
        s = started()
        for entry in range(12):
            if size > 1:
                s.batch(entry, size)
            else:
                s.message(entry)
        taken = 0
        while told := s.outputs():
            assert told == [Deliverable(s.consumer)]
            taken += len(s.take(limit))
        assert taken == 12 * size

    def test_is_announced_again_when_one_was_received_of_several(self) -> None:
        s = started()
        s.batch(0, 3)
        received = 0
        while told := s.outputs():
            assert told == [Deliverable(s.consumer)]
            received += s.receive() is not None
        assert received == 3

    def test_taking_in_a_loop_adds_one_announcement(self) -> None:
        s = started()
        s.batch(0, 9)
        s.outputs()
        while s.client.take(s.now, s.consumer, 2):
            pass
        s.pump()
        assert s.outputs() == [Deliverable(s.consumer)]

    def test_what_is_dropped_is_not_announced(self) -> None:
        s = started()
        s.deliver(0, entry_bytes(b"", marker_type=1))
        s.batch(1, 3, ack_set=0)
        assert s.outputs() == []
        s.message(2)
        assert s.outputs() == [Deliverable(s.consumer)]

    def test_the_grants_of_a_recorded_consumer(self) -> None:
        """java-batch-index-ack: a queue of 10, a batch of 8, and after the fifth message FLOW 5."""
        s = started(receiver_queue_size=10)
        s.batch(0, 8)
        for _ in range(4):
            s.receive()
        s.expect()
        s.receive()
        (flow,) = s.expect("FLOW")
        assert flow.message_permits == 5

    @pytest.mark.parametrize("queue_size", [1, 2])
    def test_small_queues_take_whole_batches_and_go_on(self, queue_size: int) -> None:
        s = started(receiver_queue_size=queue_size)  # CONS-37, FLOW-05
        s.batch(0, 5)
        assert [message.data for message in s.take()] == [b"0.0", b"0.1", b"0.2", b"0.3", b"0.4"]
        assert sum(flow.message_permits for _, flow in s.frames()) == 5

    def test_one_connection_s_frames_in_any_pieces(self) -> None:
        s = started()
        wholes = ConsumerScript()
        wholes.accept()
        for entry in range(3):
            wholes.batch(entry, 2)
        whole = [message.data for message in wholes.take()]
        sent: list[bytes] = []
        s.bytes = sent.append  # type: ignore[method-assign,assignment]
        for entry in range(3):
            s.batch(entry, 2)
        for byte in b"".join(sent):
            s.client.receive_data(s.now, s.link, bytes([byte]))
        assert [message.data for message in s.take()] == whole


class TestReconnecting:
    def test_the_queue_goes_when_the_next_connection_is_open_and_not_before(self) -> None:
        s = started(receiver_queue_size=4)
        for entry in range(4):
            s.message(entry)
        s.lose()
        assert s.receive().message_id == MessageId(1, 0)  # CONS-18: receiving goes on meanwhile
        s.pass_time(SECOND)
        s.accept()
        assert s.receive() is None  # CONS-09
        (flow,) = s.expect("FLOW")
        assert flow.message_permits == 4  # FLOW-09
        assert [type(output) for output in s.outputs()] == [Deliverable, Detached, Deliverable, Attached]

    def test_messages_of_the_old_connection_give_no_permits(self) -> None:
        """Rules CONS-22 and FLOW-12."""
        s = started(receiver_queue_size=4)
        for entry in range(3):
            s.message(entry)
        s.frames()
        s.lose()
        s.take()
        s.expect()  # FLOW-12
        s.pass_time(SECOND)
        s.accept()
        s.frames()
        s.message(0)
        s.receive()
        s.expect()

    def test_nor_do_those_of_a_subscription_that_the_broker_closed(self) -> None:
        s = started(receiver_queue_size=4)
        for entry in range(3):
            s.message(entry)
        s.close_by_broker()
        s.frames()
        s.take()
        s.expect()

    def test_what_was_delivered_before_can_be_acknowledged_after(self) -> None:
        s = started()
        s.message(0)
        s.batch(1, 2)
        messages = s.take()
        s.acknowledge(messages[1])
        s.reconnect()
        s.frames()
        s.acknowledge([messages[0], messages[2]])
        s.pass_time(SECOND)
        (ack,) = s.expect("ACK")
        assert ack.message_ids == [(1, 0, None), (1, 1, None)]

    def test_of_a_batch_delivered_again_the_rest_is_delivered(self) -> None:
        s = started()
        s.batch(0, 3)
        s.acknowledge(s.take()[:2])
        s.reconnect()
        s.frames()
        s.batch(0, 3)
        (last,) = s.take()
        assert last.batch_index == 2
        assert s.machine.counters.duplicates == 2
        s.pass_time(SECOND)
        s.expect()
        s.acknowledge(last)
        s.pass_time(SECOND)
        (ack,) = s.expect("ACK")
        assert ack.message_ids == [(1, 0, None)]

    def test_a_cumulative_mark_of_the_old_connection_filters_nothing_on_the_new_one(self) -> None:
        """BUG: the mark rose before its ACK arrived, and what was redelivered was dropped for ever."""
        s = started()
        s.message(0)
        s.message(1)
        s.acknowledge_cumulative(s.take()[1])
        s.pass_time(SECOND)
        s.expect("ACK")
        s.reconnect()
        s.message(0)
        s.message(1)
        assert len(s.take()) == 2

    def test_closed_by_the_broker_it_comes_back_over_the_same_connection(self) -> None:
        s = started()
        s.message(0)
        s.close_by_broker()
        s.pass_time(SECOND)
        s.accept()
        assert [type(output) for output in s.outputs()] == [Deliverable, Detached, Attached]
        s.expect("FLOW")

    @pytest.mark.parametrize(
        ("taken", "start"),
        [
            (0, MessageId(1, 4)),  # before the first message waiting
            (1, MessageId(1, 5)),  # before the batch
            (2, MessageId(1, 6, -1, 0)),
            (3, MessageId(1, 6, -1, 1)),
            (4, MessageId(1, 6, -1, 2)),  # nothing waits: the last one delivered
        ],
    )
    def test_a_subscription_that_is_not_durable_goes_on_where_it_was(
        self, taken: int, start: MessageId
    ) -> None:
        s = started(durable=False, start_message_id=MessageId(1, 1), start_message_id_inclusive=True)
        s.message(5)
        s.batch(6, 3)
        s.take(taken)
        s.lose()
        s.pass_time(SECOND)
        id_ = s.accept().start_message_id
        assert (id_.ledgerId, id_.entryId, id_.batch_index) == (1, start.entry_id, start.batch_index)
        # The broker begins with that very entry; every message comes once (CONS-16).
        s.frames()
        for entry in range(start.entry_id, 7):
            if entry == 6:
                s.batch(6, 3)
            else:
                s.message(entry)
        places = [(message.message_id.entry_id, message.batch_index) for message in s.take()]
        assert places == [(5, -1), (6, 0), (6, 1), (6, 2)][taken:]

    def test_where_nothing_was_received_the_start_stays(self) -> None:
        s = started(durable=False, start_message_id=MessageId(1, 1), start_message_id_inclusive=True)
        command = s.reconnect()
        assert command.start_message_id.entryId == 1
        s.message(1)
        assert len(s.take()) == 1  # still inclusive


class TestNews:
    def test_active_and_not(self) -> None:
        """Rule GAP-34."""
        s = started(subscription_type=SubscriptionType.FAILOVER)
        for active in (False, True, True, False):
            command = proto.CommandActiveConsumerChange(consumer_id=0, is_active=active)
            s.say("ACTIVE_CONSUMER_CHANGE", command)
        assert s.outputs() == [ActiveChanged(s.consumer, active) for active in (False, True, False)]

    def test_active_in_the_same_piece_as_the_answer_to_subscribe(self) -> None:
        """BUG: frames right behind the answer were dropped, because no consumer was registered yet. Rules
        HAND-11 and INV-N3."""
        s = ConsumerScript(subscription_type=SubscriptionType.FAILOVER)
        success = proto.CommandSuccess(request_id=subscribe_of(s).request_id)
        change = proto.CommandActiveConsumerChange(consumer_id=0, is_active=True)
        s.bytes(
            encode_command(proto.BaseCommand.SUCCESS, success)
            + encode_command(proto.BaseCommand.ACTIVE_CONSUMER_CHANGE, change)
        )
        assert s.outputs()[1:] == [ActiveChanged(s.consumer, True)]

    def test_not_active_before_the_answer_to_subscribe(self) -> None:
        """A Java broker says so to a consumer that is not chosen before it answers its SUBSCRIBE."""
        s = ConsumerScript(subscription_type=SubscriptionType.FAILOVER)
        change = proto.CommandActiveConsumerChange(consumer_id=0, is_active=False)
        s.say("ACTIVE_CONSUMER_CHANGE", change)
        assert s.outputs() == []
        s.accept()
        assert s.outputs()[1:] == [ActiveChanged(s.consumer, False)]
        s.expect("FLOW")
        s.redeliver()
        s.expect()  # REDEL-01: the broker would ignore it

    def test_not_active_in_an_attempt_that_failed_says_nothing_of_the_next(self) -> None:
        s = ConsumerScript(subscription_type=SubscriptionType.FAILOVER)
        change = proto.CommandActiveConsumerChange(consumer_id=0, is_active=False)
        s.say("ACTIVE_CONSUMER_CHANGE", change)
        s.reconnect()
        assert ActiveChanged(s.consumer, False) not in s.outputs()

    def test_the_end_of_the_topic_is_told_once_and_the_consumer_stays(self) -> None:
        """Rule GAP-34."""
        s = started()
        s.message(0)
        message = s.receive()
        s.outputs()
        for _ in range(2):
            s.say("REACHED_END_OF_TOPIC", proto.CommandReachedEndOfTopic(consumer_id=0))
        assert s.outputs() == [EndOfTopic(s.consumer)]  # CONS-42
        s.acknowledge(message)
        s.pass_time(SECOND)
        s.expect("ACK")
