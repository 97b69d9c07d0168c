"""After a seek no earlier message is delivered, and no earlier acknowledgement sent."""

import pytest

from pulsar_sansio.client.outputs import (
    RequestDone,
    RequestFailed,
)
from pulsar_sansio.model.config import SubscriptionType
from pulsar_sansio.model.errors import (
    TimedOut,
)
from pulsar_sansio.model.message_id import EARLIEST, LATEST, MessageId
from pulsar_sansio.wire import proto
from tests.client.broker_script import SECOND, ConsumerScript
from tests.client.positions.seeking_script import data, seek, sought, sought_and_back, started, success


class TestWhatComesNext:
    @pytest.mark.parametrize(("inclusive", "expected"), [(False, [b"3"]), (True, [b"2", b"3"])])
    def test_the_message_itself_or_the_one_behind_it(self, inclusive: bool, expected: list[bytes]) -> None:
        s = started(receiver_queue_size=4, acknowledgement_group_time=0.0)
        seek(s, MessageId(1, 2), inclusive)
        sought_and_back(s)
        s.frames()
        for entry in (2, 3):
            s.message(entry, b"%d" % entry)
        assert data(s.take()) == expected
        # What is not delivered is acknowledged: a durable subscription would deliver it for ever.
        acknowledged = [command.message_ids for name, command in s.frames() if name == "ACK"]
        assert acknowledged == ([] if inclusive else [[(1, 2, None)]])

    @pytest.mark.parametrize("size", [0, 4])
    @pytest.mark.parametrize(("inclusive", "expected"), [(False, [b"2.3"]), (True, [b"2.2", b"2.3"])])
    def test_in_a_batch(self, inclusive: bool, expected: list[bytes], size: int) -> None:
        """Earlier messages of the batch are dropped, whether the broker leaves them out or not."""
        s = started()
        seek(s, MessageId(1, 2, -1, 2, size), inclusive)
        sought_and_back(s)
        s.batch(2, 4, **({"ack_set": 0b1100} if size else {}))
        assert data(s.take()) == expected

    def test_by_time_the_broker_alone_decides(self) -> None:
        s = started()
        seek(s, 1_000)
        sought_and_back(s)
        s.batch(2, 2)
        assert data(s.take()) == [b"2.0", b"2.1"]

    def test_later_entries_are_not_looked_at_any_more(self) -> None:
        """A subscription that another client moves back delivers the sought message too."""
        s = started()
        seek(s, MessageId(1, 2))
        sought_and_back(s)
        s.message(3)
        s.close_by_broker()
        s.pass_time(SECOND)
        s.accept()
        s.message(2, b"2")
        assert data(s.take()) == [b"2"]

    def test_without_a_durable_cursor_it_goes_on_there_after_a_reconnect(self) -> None:
        """Rule CONS-16."""
        s = started(durable=False, start_message_id=EARLIEST)
        s.message(9)
        s.receive()
        seek(s, MessageId(1, 2))
        subscribe = sought_and_back(s)
        assert (subscribe.start_message_id.ledgerId, subscribe.start_message_id.entryId) == (1, 2)
        again = s.reconnect()
        assert again.start_message_id.entryId == 2
        s.message(2, b"2")
        s.message(3, b"3")
        assert data(s.take()) == [b"3"]


class TestWhatIsForgotten:
    def test_acknowledgements_that_wait(self) -> None:
        """Waiting acknowledgements would move the cursor again. Rules ACK-14 and SEEK-06."""
        s = started(acknowledgement_group_time=3600.0)
        for entry in range(3):
            s.message(entry)
        s.acknowledge_cumulative(s.take()[-1])
        seek(s, EARLIEST)
        sought_and_back(s)
        s.expect("FLOW")

    def test_and_those_given_meanwhile(self) -> None:
        s = started()
        s.message(0)
        message = s.receive()
        seek(s, EARLIEST)
        command = sought(s)
        s.close_by_broker()
        s.acknowledge(message)
        request = s.flush()
        s.outputs()
        success(s, command.request_id)
        assert s.outputs() == [RequestDone(request, None)]
        s.pass_time(SECOND)
        s.accept()
        s.expect("FLOW")

    def test_what_was_acknowledged_is_redelivered(self) -> None:
        """The filter of duplicates knows nothing of it any more."""
        s = started(acknowledgement_group_time=3600.0)
        s.message(0)
        s.acknowledge(s.receive())
        seek(s, EARLIEST)
        sought_and_back(s)
        s.message(0)
        assert len(s.take()) == 1

    def test_negative_acknowledgements(self) -> None:
        s = started(subscription_type=SubscriptionType.SHARED, negative_acknowledgement_delay=5.0)
        s.message(0)
        s.negative_acknowledge(s.receive())
        seek(s, LATEST)
        sought_and_back(s)
        s.expect("FLOW")
        s.pass_time(10 * SECOND)
        assert s.frames() == []

    def test_the_end_of_the_topic(self) -> None:
        """The broker says it again when it is reached again."""
        s = started()
        end = proto.CommandReachedEndOfTopic(consumer_id=0)
        s.say("REACHED_END_OF_TOPIC", end)
        assert len(s.outputs()) == 1
        seek(s, EARLIEST)
        sought_and_back(s)
        s.outputs()
        s.say("REACHED_END_OF_TOPIC", end)
        assert len(s.outputs()) == 1


def with_an_acknowledgement_under_way() -> tuple[ConsumerScript, int]:
    """Return such a consumer, and the request that waits for the confirmation."""
    s = started(acknowledgement_receipts=True, acknowledgement_group_time=0.0)
    s.message(0)
    s.acknowledge(s.receive())
    s.expect("ACK")
    return s, s.flush()


@pytest.mark.parametrize("order", [("answer", "close"), ("close", "answer")])
def test_an_acknowledgement_from_before_that_was_not_answered_is_not_said_again(
    order: tuple[str, str],
) -> None:
    """The late acknowledgement would cover what is to be redelivered (SEEK-06)."""
    s, flushed = with_an_acknowledgement_under_way()
    request = seek(s, EARLIEST)
    command = sought(s)
    for what in order:
        success(s, command.request_id) if what == "answer" else s.close_by_broker()
    s.pass_time(SECOND)
    s.accept()
    s.expect("FLOW")
    done = [output.request for output in s.outputs() if isinstance(output, RequestDone)]
    assert sorted(done) == [flushed, request]


@pytest.mark.parametrize("late", [False, True], ids=["closed first", "over first"])
def test_nor_is_it_said_where_it_is_unknown_whether_the_seek_was_done(late: bool) -> None:
    s = started(acknowledgement_group_time=100.0)
    s.message(0)
    s.acknowledge(s.receive())
    request = seek(s, EARLIEST)
    sought(s)
    s.answers_lookups = False
    for what in ("wait", "close") if late else ("close", "wait"):
        s.close_by_broker() if what == "close" else s.pass_time(30 * SECOND)
    assert [each.request for each in s.outputs() if isinstance(each, RequestFailed)] == [request]
    s.answers_lookups = True
    s.pass_time(60 * SECOND)
    s.accept()
    s.expect("FLOW")


def test_a_call_that_waits_for_its_confirmation_is_told_so() -> None:
    s, flushed = with_an_acknowledgement_under_way()
    request = seek(s, EARLIEST)
    s.answers_lookups = False
    s.close_by_broker()
    s.pass_time(30 * SECOND)
    failed = [each for each in s.outputs() if isinstance(each, RequestFailed)]
    assert [each.request for each in failed] == [flushed, request]
    assert all(isinstance(each.error, TimedOut) for each in failed)


def test_nothing_from_before_is_delivered_of_a_queue_that_scales() -> None:
    s = started(auto_scaled_receiver_queue_size=True)
    s.message(1)
    s.message(2)
    seek(s, EARLIEST)
    success(s, sought(s).request_id)
    assert s.take() == []
