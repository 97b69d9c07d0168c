"""The message that may come next for a consumer that seeks."""

import pytest

from pulsar_sansio.model.config import ProducerSpec
from pulsar_sansio.wire import MessageMetadata, pack_payload
from pulsar_sim.model.positions.expected_position import START, Base, ExpectedPosition, after, whole
from pulsar_sim.model.records.entry import StoredChunk, StoredEntry
from pulsar_sim.model.records.producer_record import ProducerRecord
from pulsar_sim.model.records.sent import Sent
from pulsar_sim.model.records.topic_record import TopicRecord

PUBLISHED = (1000, 1000, 2000, 3000)


@pytest.fixture
def topic() -> TopicRecord:
    """Entries 0 to 3 of ledger 5; the second is a batch of two. They are submitted at 10, 20, 30, 40."""
    record = TopicRecord("persistent://public/default/t", deduplication=False)
    producer = ProducerRecord("p", record, ProducerSpec(topic=record.name))
    for number, published in enumerate(PUBLISHED):
        sent = [Sent(producer, number, b"", None, {}, 0) for _ in range(1 + (number == 1))]
        for each in sent:
            each.sent_at = 10 * number + 10
        metadata = MessageMetadata(producer_name="p", sequence_id=number, publish_time=published)
        payload = b"".join(pack_payload(metadata.encode(), b"%d" % number))
        record.stored((5, number), StoredEntry(payload, tuple(sent)))
    return record


def test_in_order_from_the_beginning(topic: TopicRecord) -> None:
    where = ExpectedPosition(topic)
    for place in [(5, 0, 0), (5, 1, 0), (5, 1, 1), (5, 2, 0)]:
        assert where.came(place) == ""
    assert where.has_more(where.end)
    assert where.came((5, 3, 0)) == ""
    assert not where.has_more(where.end)


def test_nothing_is_left_out_and_nothing_comes_twice(topic: TopicRecord) -> None:
    where = ExpectedPosition(topic)
    assert where.came((5, 1, 0)) == "(5, 0, 0) was left out, from (-1, -1, -1) on"
    assert where.came((5, 1, 0)) == "it lies before (5, 1, 1)"


def test_where_it_was_moved(topic: TopicRecord) -> None:
    where = ExpectedPosition(topic)
    where.moved(Base(after((5, 1, 0))))
    assert where.came((5, 1, 0)) == "it lies before (5, 1, 1)"
    where.moved(Base(after((5, 1, 0))))
    assert where.came((5, 1, 1)) == ""
    where.moved(Base(whole((5, 1, 1))))
    assert where.came((5, 1, 0)) == ""


def test_one_of_several_places(topic: TopicRecord) -> None:
    """A seek was not answered: messages come from before or after it, but in order from there."""
    where = ExpectedPosition(topic)
    assert where.came((5, 0, 0)) == ""
    where.unsettled(Base((5, 3, 0)))
    assert where.came((5, 3, 0)) == ""
    where.back()
    assert where.came((5, 1, 0)) == ""
    assert where.came((5, 1, 1)) == ""
    where.back()
    assert where.came((5, 2, 0)) != ""


def test_a_seek_behind_a_message_that_was_given_up(topic: TopicRecord) -> None:
    """The broker may go to the named message; only the client knew that the next one was wanted."""
    where = ExpectedPosition(topic)
    where.moved(Base((5, 2, 0)))
    where.unanswered(Base(after((5, 1, 1))))
    assert where.came((5, 1, 1)) == ""
    assert where.came((5, 2, 0)) == ""
    where.back()
    assert where.came((5, 1, 0)) == ""  # of a batch the broker may know only the whole entry
    where.back()
    assert where.came((5, 0, 0)) != ""


def test_the_end_is_where_it_was_at_some_moment(topic: TopicRecord) -> None:
    """Messages submitted before may come or not; those submitted later must come."""
    where = ExpectedPosition(topic)
    where.moved(Base((5, 1, 0), since=30))
    assert where.came((5, 3, 0)) == ""
    where.moved(Base((5, 1, 0), since=20))
    assert where.came((5, 3, 0)) == "(5, 2, 0) was left out, from (5, 1, 0) on"
    where.moved(where_end := Base(where.end, since=100))
    assert not where.has_more(where.end)
    assert where_end.message_position == (5, 4, -1)


def test_a_time(topic: TopicRecord) -> None:
    where = ExpectedPosition(topic)
    where.moved(Base(START.message_position, time=1500, known=where.end))
    assert where.came((5, 1, 1)) == "it was published before 1500"
    where.moved(Base(START.message_position, time=1500, known=(5, 1, 0)))
    assert where.came((5, 1, 1)) == ""
    where.moved(Base(START.message_position, time=1500))
    assert where.came((5, 2, 0)) == ""
    where.moved(Base(START.message_position, time=1500))
    assert where.came((5, 3, 0)) == "(5, 2, 0) was left out, from (-1, -1, -1) on"


def test_positions_that_may_be_anywhere(topic: TopicRecord) -> None:
    where = ExpectedPosition(topic)
    for index in range(20):
        where.may_be_at(Base((4, index, 0)))
    assert where.came((5, 2, 0)) == ""
    assert where.least == (5, 2, 1)


@pytest.fixture
def torn(topic: TopicRecord) -> TopicRecord:
    """A log with ledger 6: a message in two chunks, 0 and 2, with others between and behind them."""
    producer = ProducerRecord("q", topic, ProducerSpec(topic=topic.name))
    metadata = MessageMetadata(producer_name="q", sequence_id=0, publish_time=3000)
    for position, number in (((6, 0), 0), ((6, 2), 1)):
        payload = b"".join(pack_payload(metadata.encode(), b"chunk %d" % number))
        if number == 0:
            sent = Sent(producer, 0, b"", None, {}, 0)
            sent.sent_at = 50
        topic.stored(position, StoredEntry(payload, (sent,), StoredChunk(number, 2, "u")))
    for entry, at in ((1, 60), (3, 70)):
        plain = Sent(producer, entry, b"", None, {}, 0)
        plain.sent_at = at
        metadata = MessageMetadata(producer_name="q", sequence_id=entry, publish_time=3000)
        topic.stored(
            (6, entry), StoredEntry(b"".join(pack_payload(metadata.encode(), b"%d" % entry)), (plain,))
        )
    return topic


def test_a_message_whose_first_chunk_lies_before_where_it_began(torn: TopicRecord) -> None:
    """Half of the message was stored when the end was sought: a consumer that begins behind its first chunk
    never has all chunks."""
    where = ExpectedPosition(torn)
    where.moved(Base(START.message_position, since=45))
    assert where.came((6, 1, 0)) == ""
    assert where.came((6, 3, 0)) == ""
    where.moved(Base((6, 0, -1)))
    assert where.came((6, 1, 0)) == ""
    assert where.came((6, 3, 0)) == "(6, 2, 0) was left out, from (6, 1, 1) on"


def test_one_that_lies_about_what_was_acknowledged_when_it_began_again(torn: TopicRecord) -> None:
    where = ExpectedPosition(torn)
    for place in [(5, 0, 0), (5, 1, 0), (5, 1, 1), (5, 2, 0), (5, 3, 0), (6, 1, 0), (6, 2, 0), (6, 3, 0)]:
        assert where.came(place) == ""
    where.may_be_at(Base((6, 1, 1)))
    where.back()
    assert where.came((6, 3, 0)) == ""
