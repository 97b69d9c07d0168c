"""What is left out after a seek by time, where the broker may have forgotten it (rule SEEK-05)."""

from pulsar_sansio.model.message_id import EARLIEST, MessageId
from tests.client.broker_script import entry_bytes
from tests.client.consuming.test_positions import answer, asked, back, seek, started


def test_what_is_older_comes_where_a_message_before_it_was_sought_since() -> None:
    """The later seek alone counts."""
    s = started(durable=False, start_message_id=EARLIEST)
    s.client.seek(s.now, s.consumer, 1_700_000_000_000)
    back(s, s.frames()[-1][1])
    answer(s, asked(s), (1, 9, -1), (1, -1))
    seek(s, MessageId(1, 3))
    s.deliver(4, entry_bytes(b"old", publish_time=1_699_999_999_999))
    assert [message.data for message in s.take()] == [b"old"]
