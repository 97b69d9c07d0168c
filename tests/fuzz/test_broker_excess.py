"""A broker that sends more than the client asked for.

The client holds no more memory than the configuration allows.
"""

import pytest

from fuzz.payloads import CODECS, header, sealed
from pulsar_sansio import CompressionType
from pulsar_sansio.client.connecting import connection
from pulsar_sansio.client.delivery import permits
from pulsar_sansio.client.delivery.permits import MAX_ENTRIES_BEYOND_GRANT
from pulsar_sansio.wire import compress, encode_batch_payloads, encode_ping, encode_pong
from tests.fuzz.lying_broker import LIMIT, QUEUE, feed_unread, held, is_alive, message, subscribed, why_ended


def test_messages_beyond_the_permits() -> None:
    """A broker may overshoot by what it had read ahead; one that ignores permits loses the link, and what is
    held until then is the queue and that excess."""
    script, link, consumer = subscribed()
    payload = sealed(header(), b"x" * 1000)
    frames = 0

    def flood() -> None:
        nonlocal frames
        while is_alive(script, link):
            script.feed(link, message(payload, frames))
            frames += 1

    now, _ = held(flood)
    assert "after its permits were used up" in why_ended(script)
    assert frames == QUEUE + MAX_ENTRIES_BEYOND_GRANT + 1
    assert now < frames * (1000 + 2048)
    assert script.client.available(consumer) == frames - 1


@pytest.mark.parametrize("codec", [CompressionType.NONE, *CODECS], ids=lambda codec: codec.name)
def test_the_bytes_that_a_consumer_can_be_made_to_hold(
    codec: CompressionType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """docs/limits.md: the queue's number of the largest messages, and a fixed excess, which is counted as it
    is held and not as it came. The link ends there; what came before can still be taken."""
    beyond = 5 * LIMIT
    monkeypatch.setattr(permits, "MAX_BYTES_BEYOND_GRANT", beyond)
    script, link, consumer = subscribed()
    data = bytes(LIMIT)
    body, said = (data, 0) if codec is CompressionType.NONE else (compress(codec, data), LIMIT)
    payload = sealed(header(compression=codec, uncompressed_size=said), body)
    frames = 0

    def flood() -> None:
        nonlocal frames
        while is_alive(script, link):
            script.feed(link, message(payload, frames))
            frames += 1

    now, peak = held(flood)
    assert "after its permits were used up" in why_ended(script)
    assert frames in (QUEUE + 5, QUEUE + 6), "headers may count, too"
    bound = QUEUE * LIMIT + beyond + LIMIT
    assert (frames - 1) * LIMIT <= now <= bound + frames * 2048
    assert peak <= bound + 4 * LIMIT + frames * 2048, "and the frame that is being read"
    delivered = script.client.take(script.now, consumer, 100)
    assert sum(len(each.data) for each in delivered) == (frames - 1) * LIMIT


def test_the_most_objects_for_the_least_of_the_wire_beyond_the_permits() -> None:
    """Batches of six-byte messages: as many objects as there can be in a limited number of bytes."""
    script, link, _ = subscribed()
    count = 1000
    payload = sealed(header(num_messages_in_batch=count), b"\0\0\0\2\x18\0" * count)

    def flood() -> None:
        for entry_id in range(100):
            script.feed(link, message(payload, entry_id))

    now, _ = held(flood)
    assert now < 100 * (16 * len(payload) + 2048)


def test_messages_that_cost_no_permit_are_not_kept() -> None:
    """An ack set without a message, a batch of none: they may come without end, and nothing grows."""
    script, link, _ = subscribed(acknowledgement_group_size=100)
    batch = sealed(header(num_messages_in_batch=2), encode_batch_payloads([b"a", b"b"], 0))
    empty = sealed(header(num_messages_in_batch=0), b"")

    def flood() -> None:
        for entry_id in range(1000):
            script.feed(link, message(batch, entry_id, ack_set=0), message(empty, 10_000 + entry_id))
            script.commands(link)
            script.history.clear()

    now, _ = held(flood)
    assert is_alive(script, link)
    assert now < 50_000


def test_pings_without_end_whose_answers_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """One PONG for each, which takes less memory than the PING did; and at some point it is enough."""
    most = 100_000
    monkeypatch.setattr(connection, "MAX_UNREAD_ANSWERS", most)
    script, link, _ = subscribed()
    pings = 0

    def flood() -> None:
        nonlocal pings
        while is_alive(script, link):
            feed_unread(script, link, encode_ping() * 100)
            pings += 100

    now, _ = held(flood)
    assert pings * len(encode_pong()) < most + 100 * len(encode_pong())
    assert now < most
    assert "does not read the answers" in why_ended(script)


def test_a_broker_that_sends_rubbish_and_reads_no_answer_is_disconnected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each broken entry is answered by an ACK that says why. What waits to be written has an end."""
    most = 100_000
    assert most <= connection.MAX_UNREAD_ANSWERS
    monkeypatch.setattr(connection, "MAX_UNREAD_ANSWERS", most)
    script, link, _ = subscribed()
    rubbish = message(b"rubbish") * 100

    def flood() -> None:
        for _ in range(1000):
            feed_unread(script, link, rubbish)
            if not is_alive(script, link):
                return

    flood()
    script.drain()
    assert "does not read the answers" in why_ended(script)
    assert len(script.written[link]) < most + 100 * 100


def test_commands_of_the_future_without_end() -> None:
    script, link, _ = subscribed()
    frame = b"\0\0\0\x07\0\0\0\x03\x08\xc8\x01"

    def flood() -> None:
        for _ in range(10):
            feed_unread(script, link, frame * 200)

    now, _ = held(flood)
    assert is_alive(script, link)
    assert script.commands(link) == []
    assert now < 10_000
