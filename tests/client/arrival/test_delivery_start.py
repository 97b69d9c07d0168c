"""The first message that is wanted, and what arrives before it."""

from pulsar_sansio.client.arrival.chunk_assembly import ChunkAssembly
from pulsar_sansio.client.arrival.delivery_start import DeliveryStart
from pulsar_sansio.model.message_id import EARLIEST, LATEST, MessageId
from tests.client.broker_script import ConsumerScript


def a_start() -> DeliveryStart:
    chunks = ConsumerScript().machine._chunks
    assert isinstance(chunks, ChunkAssembly)
    return DeliveryStart(chunks)


def test_without_a_start_everything_is_wanted() -> None:
    start = a_start()
    assert not start.filters
    assert not start.is_behind((0, 0))
    assert start.skipped((0, 0), 5) == 0


def test_the_ends_of_the_topic_are_left_to_the_broker() -> None:
    start = a_start()
    for end in (EARLIEST, LATEST):
        start.start_at(end, False)
        assert not start.filters


def test_the_message_at_the_start_is_wanted_where_it_is_inclusive() -> None:
    start = a_start()
    start.start_at(MessageId(7, 2), True)
    assert not start.is_behind((7, 2))
    start.start_at(MessageId(7, 2), False)
    assert start.is_behind((7, 2))


def test_the_first_entry_behind_the_start_ends_the_filter() -> None:
    start = a_start()
    start.start_at(MessageId(7, 2), False)
    assert not start.is_behind((7, 3))
    assert not start.filters
    assert not start.is_behind((7, 2))


def test_an_entry_before_the_first_chunk_shows_that_the_subscription_was_moved() -> None:
    start = a_start()
    start.start_at(MessageId(7, 5, first_chunk=(7, 2)), False)
    assert start.is_behind((7, 2))
    assert start.is_behind((7, 4))
    assert not start.is_behind((7, 1))
    assert not start.filters


def test_of_a_batch_the_messages_before_the_index_are_skipped() -> None:
    start = a_start()
    start.start_at(MessageId(7, 2, -1, 3), False)
    assert start.skipped((7, 2), 10) == 4
    start.start_at(MessageId(7, 2, -1, 3), True)
    assert start.skipped((7, 2), 10) == 3


def test_an_id_without_an_index_is_before_its_batch_unless_its_batch_was_delivered() -> None:
    """Rule MSG-02."""
    start = a_start()
    start.start_at(MessageId(7, 2), False)
    assert start.skipped((7, 2), 10) == 0
    start.resume_after(MessageId(7, 2))
    assert start.skipped((7, 2), 10) == 10


def test_a_lost_delivery_is_returned_past_until_the_start_is_reached() -> None:
    """Rule CONS-16."""
    start = a_start()
    start.resume_after(MessageId(7, 2, -1, 3))
    assert start.is_returning_past(MessageId(7, 2, -1, 3))
    assert start.is_returning_past(MessageId(7, 1))
    assert not start.is_returning_past(MessageId(7, 2, -1, 4))
    assert not start.is_behind((7, 3))
    assert not start.is_returning_past(MessageId(7, 1))


def test_a_start_that_was_chosen_is_no_position_to_return_to() -> None:
    start = a_start()
    start.start_at(MessageId(7, 2), False)
    assert not start.is_returning_past(MessageId(7, 1))


def test_beginning_again_filters_as_at_first() -> None:
    start = a_start()
    start.start_at(MessageId(7, 2), False)
    assert not start.is_behind((7, 3))
    start.begin_again()
    assert start.is_behind((7, 2))


def test_starting_anew_forgets_a_publish_time() -> None:
    start = a_start()
    start.resume_after(MessageId(7, -1), 1_700_000_000_000)
    assert start.since == 1_700_000_000_000
    start.start_at(MessageId(7, 2), False)
    assert start.since is None
