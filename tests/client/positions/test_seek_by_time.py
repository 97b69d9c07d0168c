"""After a seek by time, the client leaves out older messages, because the broker may have forgotten the
seek."""

from pulsar_sansio.client.outputs import RequestFailed
from pulsar_sansio.model.errors import ConnectionLost, TimedOut
from pulsar_sansio.model.message_id import EARLIEST, LATEST, MessageId
from pulsar_sansio.wire import proto
from tests.client.broker_script import SECOND, entry_bytes
from tests.client.positions.positions_script import answer, asked, back, refuse, seek, started


def test_what_is_older_comes_where_a_message_before_it_was_sought_since() -> None:
    """Only the later seek counts."""
    s = started(durable=False, start_message_id=EARLIEST)
    s.client.seek(s.now, s.consumer, 1_700_000_000_000)
    back(s, s.frames()[-1][1])
    answer(s, asked(s), (1, 9, -1), (1, -1))
    seek(s, MessageId(1, 3))
    s.deliver(4, entry_bytes(b"old", publish_time=1_699_999_999_999))
    assert [message.data for message in s.take()] == [b"old"]


def test_without_a_durable_cursor_it_subscribes_at_the_beginning_until_it_is_known_where_that_is() -> None:
    """SUBSCRIBE has to name a position. The SEEK follows it, or has moved the subscription already."""
    s = started(durable=False, start_message_id=MessageId(1, 5))
    s.frames()
    s.client.seek(s.now, s.consumer, 1_700_000_000_000)
    (command,) = s.expect("SEEK")
    s.close_by_broker()
    s.say("SUCCESS", proto.CommandSuccess(request_id=command.request_id))
    s.pass_time(SECOND)
    start = s.accept().start_message_id
    assert (start.ledgerId, start.entryId) == (2**64 - 1, 2**64 - 1)


def test_a_seek_that_was_lost_with_its_connection_says_so_when_its_time_is_over() -> None:
    s = started()
    request = s.client.seek(s.now, s.consumer, 1_700_000_000_000)
    s.frames()
    s.lose()
    s.answers_lookups = False
    s.pass_time(30 * SECOND)
    (failed,) = [each for each in s.outputs() if isinstance(each, RequestFailed)]
    assert failed.request == request
    assert isinstance(failed.error, TimedOut)
    assert isinstance(failed.error.__cause__, ConnectionLost)


def test_a_consumer_that_is_not_attached_has_no_time_to_ask_again_where_it_is() -> None:
    """The consumer asks when it is attached again."""
    s = started(durable=False, start_message_id=LATEST)
    s.answers_positions = False
    refuse(s, asked(s), proto.ServiceNotReady)
    s.lose()
    s.pass_time(SECOND // 2)
    s.expect("SUBSCRIBE")
    deadline = s.client.next_deadline()
    assert deadline is not None
    assert deadline > s.now + 10 * SECOND
