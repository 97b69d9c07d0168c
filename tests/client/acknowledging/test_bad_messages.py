"""One bad message in a batch: its neighbours are neither delivered again nor copied."""

from typing import Any

import pytest

from pulsar_sansio.client.outputs import LetterFailed
from pulsar_sansio.model.config import SubscriptionType
from pulsar_sansio.model.message_id import MessageId
from pulsar_sansio.wire import proto
from tests.client.broker_script import SECOND
from tests.client.letter_topics.letters_script import LettersScript

REDELIVER = "REDELIVER_UNACKNOWLEDGED_MESSAGES"


def acked(s: LettersScript) -> list[Any]:
    return [each for name, command in s.frames() if name == "ACK" for each in command.message_ids]


@pytest.mark.parametrize("kind", [SubscriptionType.SHARED, SubscriptionType.KEY_SHARED])
@pytest.mark.parametrize("index_acknowledgement", [False, True])
def test_one_bad_message_of_eight(kind: SubscriptionType, index_acknowledgement: bool) -> None:
    s = LettersScript(kind, receiver_queue_size=100, batch_index_acknowledgement=index_acknowledgement)
    for count in range(3):
        s.batch(0, 8, redelivery_count=count)
        messages = s.take()
        assert [message.batch_index for message in messages] == ([3] if count else list(range(8)))
        s.negative_acknowledge(next(message for message in messages if message.batch_index == 3))
        s.acknowledge([message for message in messages if message.batch_index != 3])
        s.pass_time(2 * SECOND)
        assert REDELIVER in [name for name, _ in s.frames()]
    s.batch(0, 8, redelivery_count=3)
    assert s.take() == []
    s.accept_producer()
    ((metadata, payload),) = s.sends()
    assert payload == b"0.3"
    assert dict(metadata.properties)["ORIGIN_MESSAGE_ID"] == "1:0:-1:3"
    s.confirm(0)
    assert acked(s) == [(1, 0, None)]
    assert s.machine.counters.dead_letters == 1
    assert s.machine.counters.duplicates == 21
    assert s.permits() == 100


def test_a_neighbour_that_was_tried_less_often_is_delivered() -> None:
    """The neighbour waited in the queue whenever the connection was lost."""
    s = LettersScript()
    for count in range(3):
        s.batch(0, 2, redelivery_count=count)
        assert s.receive().batch_index == 0
        s.reconnect()
        s.frames()
    s.batch(0, 2, redelivery_count=3)
    (good,) = s.take()
    assert (good.batch_index, good.redelivery_count) == (1, 3)
    s.accept_producer()
    ((_, payload),) = s.sends()
    assert payload == b"0.0"
    s.acknowledge(good)
    assert acked(s) == []
    s.confirm(0)
    assert acked(s) == [(1, 0, None)]
    assert s.permits() == 10


def test_entries_of_one_message_that_only_waited() -> None:
    s = LettersScript()
    for count in range(4):
        s.message(0, redelivery_count=count)
        s.message(1, redelivery_count=count)
        (message,) = s.take(1)
        if count < 3:
            assert message.message_id.entry_id == 0
            s.reconnect()
            s.frames()
    assert message.message_id.entry_id == 1
    s.accept_producer()
    assert len(s.sends()) == 1


def test_a_delivery_that_still_waits_is_no_try_yet() -> None:
    """The broker has delivered again what waits in the queue: both are delivered."""
    s = LettersScript(receiver_queue_size=100)
    for count in (2, 3):
        s.message(0, redelivery_count=count)
        s.batch(1, 2, redelivery_count=count)
    assert [message.redelivery_count for message in s.take()] == [2, 2, 2, 3, 3, 3]
    s.message(0, redelivery_count=4)
    assert s.take() == []


def test_deliveries_to_others_are_tries() -> None:
    """A consumer does not know the deliveries to other consumers: the broker's count stands."""
    s = LettersScript()
    s.batch(0, 2, redelivery_count=3)
    assert s.take() == []
    s.accept_producer()
    assert len(s.sends(2)) == 2


def test_a_seek_forgets_the_tries() -> None:
    s = LettersScript()
    s.message(0)
    request = s.client.seek(s.now, s.consumer, 1)
    s.pump()
    ((_, command),) = [frame for frame in s.frames() if frame[0] == "SEEK"]
    s.say("SUCCESS", proto.CommandSuccess(request_id=command.request_id))
    assert request
    s.frames()
    s.message(0, redelivery_count=3)
    assert s.take() == []


class TestCopiedInPart:
    """Each message is acknowledged when its own copy is safe."""

    def two_dead(self) -> LettersScript:
        s = LettersScript()
        s.batch(0, 2, redelivery_count=3)
        s.accept_producer()
        s.sends(2)
        return s

    def fail_second(self, s: LettersScript) -> None:
        s.say(
            "SEND_ERROR",
            proto.CommandSendError(
                producer_id=0, sequence_id=1, error=proto.NotAllowedError, message="too bad"
            ),
        )
        s.pass_time(0)

    def test_what_was_copied_is_not_copied_again(self) -> None:
        s = self.two_dead()
        s.confirm(0)
        self.fail_second(s)
        (failed,) = [output for output in s.outputs() if isinstance(output, LetterFailed)]
        assert failed.message_id.batch_index == 1
        assert acked(s) == []
        s.pass_time(2 * SECOND)
        assert REDELIVER in [name for name, _ in s.frames()]
        s.batch(0, 2, redelivery_count=4)
        ((_, payload),) = s.sends()
        assert payload == b"0.1"
        s.confirm(2)
        assert acked(s) == [(1, 0, None)]
        assert s.permits() == 10

    def test_acknowledged_meanwhile(self) -> None:
        """By its id: another consumer has perhaps told."""
        s = self.two_dead()
        self.fail_after_first(s)
        s.pass_time(5 * SECOND)
        assert REDELIVER not in [name for name, _ in s.frames()]
        assert s.permits() == 10

    def fail_after_first(self, s: LettersScript) -> None:
        s.confirm(0)
        self.fail_second(s)
        s.acknowledge(MessageId(1, 0, -1, 1, 2))

    def test_delivered_again_while_copies_are_on_their_way(self) -> None:
        s = self.two_dead()
        s.lose()
        s.pass_time(SECOND)
        (command,) = [command for name, command in s.frames() if name == "SUBSCRIBE"]
        s.say("SUCCESS", proto.CommandSuccess(request_id=command.request_id))
        s.batch(0, 2, redelivery_count=4)
        assert s.client.arrival_counters(s.consumer).dead_letters == 4
        assert s.take() == []

    def test_a_neighbour_that_is_being_handled_is_waited_for(self) -> None:
        """One message could not be copied; the other one is the application's, and not done yet."""
        s = LettersScript()
        for count in range(3):
            s.batch(0, 2, redelivery_count=count)
            s.receive()
            s.reconnect()
            s.frames()
        s.batch(0, 2, redelivery_count=3)
        good = s.receive()
        s.refuse_producer()
        s.pass_time(5 * SECOND)
        assert REDELIVER not in [name for name, _ in s.frames()]
        s.acknowledge(good)
        assert REDELIVER in [name for name, _ in s.frames()]
