"""Unconfirmed entries: matching of receipts and the send timeout."""

from pulsar_sansio.client.outputs import (
    Detached,
    Disconnect,
    SendFailed,
)
from pulsar_sansio.model.errors import (
    TimedOut,
)
from tests.client.producing.sender import Sender
from tests.client.script import (
    Script,
    frame_receipt,
)

# --- matching receipts (rules PROD-42, PROD-43) -----------------------------------------------------


def test_a_receipt_above_the_oldest_closes_the_link_and_everything_goes_again() -> None:
    sender = Sender()
    for _ in range(3):
        sender.send()
    before = [send.payload for send in sender.sent()]
    sender.script.feed(sender.link, frame_receipt(1))
    gone, detached = sender.script.said()
    assert isinstance(gone, Disconnect)
    assert "confirmed message 1 of producer 0 while 0 was not" in gone.reason
    assert isinstance(detached, Detached)
    sender.reattach()
    again = sender.sent()
    assert [send.sequence_id for send in again] == [0, 1, 2]
    assert [send.payload for send in again] == before


def test_a_receipt_below_the_oldest_and_one_for_nothing_are_ignored() -> None:
    sender = Sender()
    sender.send()
    sender.send()
    sender.script.feed(sender.link, frame_receipt(0), frame_receipt(0))
    assert len(sender.script.said()) == 1
    sender.script.feed(sender.link, frame_receipt(1), frame_receipt(1), frame_receipt(5))
    assert len(sender.script.said()) == 1
    assert sender.script.client.links == (sender.link,)


# --- send timeout (rules PROD-47, PROD-48) -----------------------------------------------------------


def test_when_the_oldest_times_out_everything_fails_and_the_producer_goes_on() -> None:
    """Rules TIMER-05 and ERR-06."""
    sender = Sender(send_timeout=10.0)
    sender.send()
    sender.script.advance(6)
    sender.send()
    sender.script.advance(3.9)
    assert sender.script.said() == []
    sender.script.advance(0.2)
    failed = sender.script.expect_one(SendFailed)
    assert (failed.first, failed.count) == (0, 2)
    assert isinstance(failed.error, TimedOut)
    sender.script.feed(sender.link, frame_receipt(0), frame_receipt(1))  # late: ignored
    assert sender.script.said() == []
    assert sender.send() == 2
    assert [send.sequence_id for send in sender.sent()] == [0, 1, 2]
    sender.script.feed(sender.link, frame_receipt(1), frame_receipt(2))
    assert len(sender.script.said()) == 1


def test_a_confirmed_message_does_not_time_out_for_the_next() -> None:
    sender = Sender(send_timeout=10.0)
    sender.send()
    sender.script.advance(6)
    sender.send()
    sender.script.feed(sender.link, frame_receipt(0))
    sender.script.said()
    sender.script.advance(9)
    assert sender.script.said() == []
    sender.script.advance(1)
    failed = sender.script.expect_one(SendFailed)
    assert (failed.first, failed.count) == (1, 1)


def test_the_clock_runs_while_detached() -> None:
    sender = Sender(send_timeout=10.0)
    sender.script.lose(sender.link)
    sender.script.said()
    sender.send()
    sender.script.advance(10)
    assert [type(output) for output in sender.script.said() if isinstance(output, SendFailed)]


def test_without_a_send_timeout_messages_wait_for_ever() -> None:
    """Rule PROD-06."""
    sender = Sender(script=Script(keepalive_interval=100_000.0), send_timeout=0.0)
    sender.send()
    sender.script.advance(3600)
    assert sender.script.said() == []


def test_when_everything_is_confirmed_nothing_times_out() -> None:
    sender = Sender(send_timeout=10.0)
    sender.send()
    sender.script.feed(sender.link, frame_receipt(0))
    sender.script.said()
    sender.script.advance(29)
    assert sender.script.said() == []
