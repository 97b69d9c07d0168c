"""Positions that the broker has set and the client has to ask for."""

from typing import Any

import pytest

from pulsar_sansio.client.outputs import ConsumerFailed, ConsumerReady, RequestDone
from pulsar_sansio.model.errors import (
    InvalidConfiguration,
)
from pulsar_sansio.model.message_id import EARLIEST, LATEST
from pulsar_sansio.wire import proto
from tests.client.broker_script import SECOND, ConsumerScript, entry_bytes
from tests.client.positions.positions_script import (
    NOTHING,
    answer,
    asked,
    back,
    deliver_chunk,
    refuse,
    started,
)


class TestWhereTheBrokerPutIt:
    """A subscription that is not durable, and begins where only the broker knows."""

    def test_it_goes_on_there_though_nothing_came_yet(self) -> None:
        """At the end of the topic, as it was: what is published meanwhile is not passed over."""
        s = started(durable=False, start_message_id=LATEST)
        answer(s, asked(s), (7, 3, 9), (7, 3))
        subscribe = s.reconnect()
        start = subscribe.start_message_id
        assert (start.ledgerId, start.entryId) == (7, 3)
        s.batch(3, 2, ledger=7)  # the broker begins with the whole entry
        s.message(4, b"new", ledger=7)
        assert [message.data for message in s.take()] == [b"new"]

    def test_nor_does_what_lies_there_come_because_a_part_of_a_message_came(self) -> None:
        s = started(durable=False, start_message_id=LATEST)
        answer(s, asked(s), (1, 3, -1), (1, 3))
        deliver_chunk(s, 4, 0, 2)
        s.reconnect()
        s.message(3, b"old")
        deliver_chunk(s, 4, 0, 2)
        deliver_chunk(s, 5, 1, 2)
        assert [message.data for message in s.take()] == [b"xx"]

    @pytest.mark.parametrize("between", [2, 3])
    def test_a_reader_that_did_not_get_back_to_all_chunks_goes_as_far_back_again(self, between: int) -> None:
        """The message between them was delivered, the one in chunks was waiting when it was lost."""
        s = started(durable=False, start_message_id=EARLIEST)

        def come() -> None:
            deliver_chunk(s, 1, 0, 3)
            for entry in (2, 3):
                s.message(entry, b"between") if entry == between else deliver_chunk(s, entry, 1, 3)

        come()
        assert [message.data for message in s.take()] == [b"between"]
        deliver_chunk(s, 4, 2, 3)
        assert s.reconnect().start_message_id.entryId == 0
        deliver_chunk(s, 1, 0, 3)
        assert s.reconnect().start_message_id.entryId == 0
        come()
        deliver_chunk(s, 4, 2, 3)
        assert [message.data for message in s.take()] == [b"xxx"]

    def test_it_is_ready_when_that_is_known(self) -> None:
        """Messages published from then on are read, whatever happens to the connection."""
        s = ConsumerScript(durable=False, start_message_id=LATEST)
        s.answers_positions = False
        s.accept()
        request = asked(s)
        assert s.outputs() == []
        s.close_by_broker()
        assert s.outputs() == []  # the application was not told that the consumer was attached
        s.pass_time(SECOND)
        s.accept()
        request = asked(s)
        answer(s, request, (7, 3, -1), (7, 3))
        assert s.outputs() == [ConsumerReady(s.consumer, "persistent://public/default/t")]
        s.expect("FLOW")

    @pytest.mark.parametrize("answers", [False, True])
    def test_a_reader_that_is_closed_meanwhile_lets_nothing_in(self, answers: bool) -> None:
        s = ConsumerScript(durable=False, start_message_id=LATEST)
        s.answers_positions = False
        s.accept()
        request = asked(s)
        s.close()
        if answers:
            answer(s, request, (7, 3, -1), (7, 3))
        else:
            refuse(s, request, proto.NotAllowedError)
        (close,) = s.expect("CLOSE_CONSUMER")
        s.say("SUCCESS", proto.CommandSuccess(request_id=close.request_id))
        assert [type(each) for each in s.outputs()] == [ConsumerFailed, RequestDone]

    @pytest.mark.parametrize("answers", [False, True])
    def test_or_when_it_cannot_be_known(self, answers: bool) -> None:
        s = ConsumerScript(durable=False, start_message_id=LATEST)
        s.answers_positions = False
        s.accept()
        request = asked(s)
        if answers:
            refuse(s, request, proto.NotAllowedError)
        else:
            s.pass_time(30 * SECOND)
        assert [type(each) for each in s.outputs()] == [ConsumerReady]

    def test_a_broker_that_cannot_say_yet_is_asked_again(self) -> None:
        s = ConsumerScript(durable=False, start_message_id=LATEST)
        s.answers_positions = False
        s.accept()
        for _ in range(3):
            refuse(s, asked(s), proto.ServiceNotReady)
            assert s.outputs() == []
            s.pass_time(SECOND)
        answer(s, asked(s), (7, 3, -1), (7, 3))
        assert [type(each) for each in s.outputs()] == [ConsumerReady]
        assert s.reconnect().start_message_id.entryId == 3

    def test_but_not_waited_for_without_end(self) -> None:
        """The consumer asks again and again: an answer after messages were let in is as good."""
        s = ConsumerScript(durable=False, start_message_id=LATEST)
        s.answers_positions = False
        s.accept()
        for _ in range(30):
            refuse(s, asked(s), proto.ServiceNotReady)
            assert s.outputs() == []
            s.pass_time(SECOND)
        refuse(s, asked(s), proto.ServiceNotReady)
        assert [type(each) for each in s.outputs()] == [ConsumerReady]
        s.pass_time(SECOND)
        answer(s, asked(s), (7, 3, -1), (7, 3))
        assert s.reconnect().start_message_id.entryId == 3

    def test_a_silent_broker_is_asked_again(self) -> None:
        s = ConsumerScript(durable=False, start_message_id=LATEST)
        s.answers_positions = False
        s.accept()
        asked(s)
        s.pass_time(30 * SECOND)
        assert [type(each) for each in s.outputs()] == [ConsumerReady]
        s.pass_time(SECOND)
        answer(s, asked(s), (7, 3, -1), (7, 3))
        assert s.reconnect().start_message_id.entryId == 3
        before = s.client.next_deadline()
        s.pass_time(SECOND)
        assert s.client.next_deadline() == before

    def test_in_a_ledger_without_entries(self) -> None:
        s = started(durable=False, start_message_id=LATEST)
        answer(s, asked(s), NOTHING, (7, -1))
        start = s.reconnect().start_message_id
        assert (start.ledgerId, start.entryId) == (7, 2**64 - 1)
        s.message(0, b"new", ledger=7)
        assert [message.data for message in s.take()] == [b"new"]

    def test_what_has_come_is_a_better_answer(self) -> None:
        s = started(durable=False, start_message_id=LATEST)
        request = asked(s)
        s.message(5)
        s.receive()
        answer(s, request, (1, 5, -1), (1, 4))
        assert s.reconnect().start_message_id.entryId == 5

    def test_asked_again_where_the_answer_is_lost(self) -> None:
        s = started(durable=False)
        asked(s)
        s.reconnect()
        answer(s, asked(s), (1, 5, -1), (1, 5))
        assert s.reconnect().start_message_id.entryId == 5
        assert [name for name, _ in s.frames()] == ["FLOW"]

    def test_by_time_it_goes_on_with_what_that_was(self) -> None:
        s = started(durable=False, start_message_id=EARLIEST)
        s.client.seek(s.now, s.consumer, 1_000)
        seek = s.frames()[-1][1]
        s.close_by_broker()
        s.say("SUCCESS", proto.CommandSuccess(request_id=seek.request_id))
        s.pass_time(SECOND)
        s.accept()
        answer(s, asked(s), (1, 9, -1), (1, 4))
        assert s.reconnect().start_message_id.entryId == 4
        assert [name for name, _ in s.frames()] == ["FLOW"]

    def test_or_is_moved_once_more(self) -> None:
        """The SEEK's effect was lost with the connection, before the client knew the position."""
        s = started(durable=False, start_message_id=EARLIEST)
        request = s.client.seek(s.now, s.consumer, 1_000)
        seek = s.frames()[-1][1]
        s.close_by_broker()
        s.say("SUCCESS", proto.CommandSuccess(request_id=seek.request_id))
        s.pass_time(SECOND)
        s.accept()
        assert RequestDone(request, None) not in s.outputs()
        s.reconnect()
        (seek,) = [command for name, command in s.frames() if name == "SEEK"]
        assert seek.message_publish_time == 1_000
        s.close_by_broker()
        s.say("SUCCESS", proto.CommandSuccess(request_id=seek.request_id))
        s.pass_time(SECOND)
        s.accept()
        answer(s, asked(s), (1, 9, -1), (1, 4))
        s.expect("FLOW")
        assert [each.request for each in s.outputs() if isinstance(each, RequestDone)] == [request]

    @pytest.mark.parametrize(
        ("mark_delete", "left_out"),
        [
            ((1, -1), True),
            ((1, 0), False),
            ((2, -1), False),  # the next ledger was begun, and is empty: it is the end
            (None, False),
        ],
    )
    def test_or_leaves_out_what_is_older_where_that_may_be_lost(
        self, mark_delete: tuple[int, int] | None, left_out: bool
    ) -> None:
        """The topic was unloaded since the SEEK: SUBSCRIBE made another subscription, at its beginning."""
        s = started(durable=False, start_message_id=EARLIEST, receiver_queue_size=4)
        s.client.seek(s.now, s.consumer, 1_700_000_000_000)
        back(s, s.frames()[-1][1])
        answer(s, asked(s), (1, 9, -1), mark_delete)
        s.deliver(1, entry_bytes(b"old", publish_time=1_699_999_999_999))
        if not left_out:
            assert [message.data for message in s.take()] == [b"old"]
            return
        s.frames()
        s.reconnect()
        for entry, time in enumerate((-2, -1, 0, -1), 1):  # the last one by a clock that is slow
            s.deliver(entry, entry_bytes(b"%d" % entry, publish_time=1_700_000_000_000 + time))
        assert [message.data for message in s.take()] == [b"3", b"4"]
        granted = sum(command.message_permits for name, command in s.frames() if name == "FLOW")
        assert granted == 4 + 4  # those of what was left out came back

    def test_so_long_ago(self) -> None:
        s = ConsumerScript(durable=False, start_message_rollback=10.0)
        s.answers_positions = False
        subscribe = s.accept()
        assert subscribe.start_message_rollback_duration_sec == 10
        assert subscribe.start_message_id.entryId == 2**64 - 1
        s.pass_time(30 * SECOND)
        assert s.reconnect().start_message_rollback_duration_sec == 41  # the same moment, or just before
        answer(s, asked(s), (1, 9, -1), (1, 4))
        again = s.reconnect()
        assert again.start_message_rollback_duration_sec == 0
        assert again.start_message_id.entryId == 4

    @pytest.mark.parametrize("options", [{}, {"durable": False, "start_message_id": EARLIEST}])
    def test_so_long_ago_and_nothing_else(self, options: dict[str, Any]) -> None:
        with pytest.raises(InvalidConfiguration, match="start_message_rollback"):
            ConsumerScript(start_message_rollback=1.0, **options)

    def test_with_the_last_message(self) -> None:
        """Inclusive, at the end of the topic: the last message there is, whichever that is."""
        s = started(durable=False, start_message_id=LATEST, start_message_id_inclusive=True)
        answer(s, asked(s), (7, 3, 9), (7, 3))
        (seek,) = s.expect("SEEK")
        assert (seek.message_id.ledgerId, seek.message_id.entryId) == (7, 3)
        s.close_by_broker()
        s.say("SUCCESS", proto.CommandSuccess(request_id=seek.request_id))
        s.pass_time(SECOND)
        s.accept()
        s.batch(3, 10, ledger=7)
        assert [message.data for message in s.take()] == [b"3.9"]

    def test_which_there_may_not_be(self) -> None:
        s = started(durable=False, start_message_id=LATEST, start_message_id_inclusive=True)
        answer(s, asked(s), NOTHING, (7, -1))
        s.expect("FLOW")
