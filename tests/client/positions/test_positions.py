"""The position at which a consumer begins and goes on, and whether there is more."""

import pytest

from pulsar_sansio.client.outputs import RequestDone
from pulsar_sansio.model.message_id import EARLIEST, LATEST, MessageId
from tests.client.broker_script import SECOND
from tests.client.positions.positions_script import (
    NOTHING,
    answer,
    asked,
    back,
    deliver_chunk,
    has_more,
    seek,
    started,
)


class TestIsThereMore:
    def test_what_has_arrived(self) -> None:
        s = started()
        s.frames()
        s.message(1)
        assert has_more(s)
        assert s.frames() == []

    def test_in_an_empty_topic_there_is_not(self) -> None:
        assert not has_more(started(), NOTHING, (153, -1))

    def test_after_what_was_delivered(self) -> None:
        s = started()
        s.message(1)
        s.receive()
        assert not has_more(s, (1, 1, -1))
        assert has_more(s, (1, 2, -1))
        assert has_more(s)  # known already
        s.message(2)
        s.receive()
        assert has_more(s, (2, 0, 7))

    def test_of_what_is_read_compacted_an_older_answer_is_not_believed(self) -> None:
        """The message that was the last one may have been compacted away since."""
        s = started(durable=False, start_message_id=EARLIEST, read_compacted=True)
        s.message(1)
        s.receive()
        assert has_more(s, (1, 2, -1))
        assert not has_more(s, (1, 1, -1))

    @pytest.mark.parametrize(
        ("mark_delete", "last", "more"),
        [
            ((5, -1), (5, 0, -1), True),
            ((5, 3), (5, 3, -1), False),
            ((5, 3), (5, 3, 9), False),  # of a whole entry
            ((6, -1), (5, 3, -1), False),  # the next ledger was begun, and is empty
            ((5, 3), (6, 0, -1), True),
            (None, (5, 3, -1), True),  # a broker that does not say
        ],
    )
    def test_of_a_durable_subscription_its_cursor_decides(
        self, mark_delete: tuple[int, int] | None, last: tuple[int, int, int], more: bool
    ) -> None:
        assert has_more(started(), last, mark_delete) is more

    @pytest.mark.parametrize(
        ("start", "inclusive", "last", "more"),
        [
            (EARLIEST, False, (1, 0, -1), True),
            (EARLIEST, False, NOTHING, False),
            (MessageId(1, 5), False, (1, 5, -1), False),
            (MessageId(1, 5), True, (1, 5, -1), True),
            (MessageId(1, 5), False, (1, 6, -1), True),
            (MessageId(1, 5), True, (1, 4, -1), False),
            (MessageId(1, 5, -1, 2, 4), False, (1, 5, 3), True),
            (MessageId(1, 5, -1, 3, 4), False, (1, 5, 3), False),
            (MessageId(1, 5, -1, 3, 4), True, (1, 5, 3), True),
        ],
    )
    def test_of_another_one_its_start(
        self, start: MessageId, inclusive: bool, last: tuple[int, int, int], more: bool
    ) -> None:
        s = started(durable=False, start_message_id=start, start_message_id_inclusive=inclusive)
        assert has_more(s, last) is more

    def test_what_is_of_no_use_does_not_count(self) -> None:
        """A last message that is never delivered must not keep a reader waiting."""
        s = started(durable=False, start_message_id=MessageId(1, 5))
        s.message(5)  # before the start
        assert not has_more(s, (1, 5, 3))
        s.deliver(6, b"\x0e\x01 this is no entry")
        assert not has_more(s, (1, 6, -1))
        assert has_more(s, (1, 7, -1))

    def test_nor_does_the_rest_of_a_batch_that_is_not_delivered(self) -> None:
        s = started()
        s.batch(1, 4, ack_set=0b0011)
        assert len(s.take()) == 2
        assert not has_more(s, (1, 1, 3))

    @pytest.mark.parametrize(
        "chunks", [[(1, 2)], [(0, 3), (2, 3)], [(0, 2), (1, 2), (1, 2)]], ids=["rest", "gap", "twice"]
    )
    def test_chunks_that_make_no_message_do_not_count(self, chunks: list[tuple[int, int]]) -> None:
        """A question ends at its deadline when no answer comes."""
        s = started(durable=False, start_message_id=EARLIEST)
        s.message(0)
        for entry, (number, total) in enumerate(chunks, 1):
            deliver_chunk(s, entry, number, total)
        while s.receive() is not None:
            pass
        assert not has_more(s, (1, len(chunks), -1))
        assert has_more(s, (1, len(chunks) + 1, -1))

    def test_chunks_of_which_more_may_come_count_until_their_time_is_over(self) -> None:
        s = started(durable=False, start_message_id=EARLIEST, incomplete_chunked_message_timeout=5.0)
        deliver_chunk(s, 1, 0, 2)
        assert has_more(s, (1, 1, -1))
        s.pass_time(6 * SECOND)
        assert not has_more(s, (1, 1, -1))

    def test_chunks_before_a_seek_count_again(self) -> None:
        s = started()
        deliver_chunk(s, 1, 1, 2)
        assert not has_more(s, (1, 1, -1), (1, -1))
        seek(s, EARLIEST)
        assert has_more(s, (1, 1, -1), (1, -1))

    @pytest.mark.parametrize(("last", "expected"), [((1, 0, -1), False), ((1, 1, -1), True)])
    def test_what_came_after_a_seek_to_the_end_counts(
        self, last: tuple[int, int, int], expected: bool
    ) -> None:
        """The end was where the subscription is, and not where the topic ends now."""
        s = started()
        seek(s, LATEST)
        assert has_more(s, last, (1, 0)) is expected

    def test_a_message_in_chunks_that_is_too_large_does_not_count(self) -> None:
        s = started(durable=False, start_message_id=EARLIEST, max_chunked_message_size=1024)
        deliver_chunk(s, 1, 0, 1025)
        assert not has_more(s, (1, 1, -1))

    def test_what_is_redelivered_after_a_reconnect_counts(self) -> None:
        s = started(durable=False, start_message_id=EARLIEST)
        s.message(1)
        s.deliver(2, b"\x0e\x01 this is no entry")
        s.reconnect()
        assert has_more(s, (1, 2, -1))

    @pytest.mark.parametrize("durable", [False, True])
    def test_so_does_the_rest_of_a_batch_that_is_redelivered(self, durable: bool) -> None:
        s = started() if durable else started(durable=False, start_message_id=EARLIEST)
        s.batch(1, 3)
        assert [message.data for message in s.take(2)] == [b"1.0", b"1.1"]
        s.reconnect()
        assert has_more(s, (1, 1, 2))
        s.batch(1, 3)
        s.take()
        assert not has_more(s, (1, 1, 2))

    def test_while_a_seek_is_under_way_it_is_not_known(self) -> None:
        s = started()
        s.message(1)
        s.frames()
        s.client.seek(s.now, s.consumer, LATEST)
        (command,) = s.expect("SEEK")
        request = s.client.has_message_available(s.now, s.consumer)
        assert s.frames() == []
        back(s, command)
        s.outputs()
        answer(s, asked(s), (1, 1, -1), (1, 1))
        assert s.outputs() == [RequestDone(request, False)]

    def test_nor_while_another_one_waits_for_it(self) -> None:
        """After a seek to the end the client asks for the position; the application's question waits."""
        s = started(durable=False, start_message_id=EARLIEST)
        first, second = seek(s, LATEST), s.client.seek(s.now, s.consumer, EARLIEST)
        request = s.client.has_message_available(s.now, s.consumer)
        (where,) = s.expect("GET_LAST_MESSAGE_ID")
        assert s.frames() == []
        answer(s, where.request_id, (1, 1, -1), (1, 1))
        assert s.outputs() == [RequestDone(first, None)]
        (command,) = s.expect("SEEK")
        assert s.frames() == []
        back(s, command)
        assert RequestDone(second, None) in s.outputs()
        answer(s, asked(s), (1, 1, -1), (1, -1))
        assert s.outputs() == [RequestDone(request, True)]

    def test_a_seek_asked_for_after_the_question(self) -> None:
        s = started()
        request = s.client.has_message_available(s.now, s.consumer)
        first = asked(s)
        s.client.seek(s.now, s.consumer, EARLIEST)
        (command,) = s.expect("SEEK")
        answer(s, first, NOTHING)  # of before
        assert s.outputs() == []
        back(s, command)
        s.outputs()
        answer(s, asked(s), (1, 1, -1), (1, -1))
        assert s.outputs() == [RequestDone(request, True)]


def test_a_batch_without_measure_makes_no_bits() -> None:
    """The broker may announce any size for the last message's batch: no bitset is made of that size."""
    s = started(durable=False, start_message_id=LATEST, start_message_id_inclusive=True)
    answer(s, asked(s), (5, 6, 2**31 - 2), (5, 6))
    (seek,) = [command for name, command in s.frames() if name == "SEEK"]
    assert (seek.message_id.ledgerId, seek.message_id.entryId) == (5, 6)
    assert not seek.message_id.ack_set
