"""Payloads that lie: they cost one entry, and the client holds no more than its limit allows."""

from typing import Any

import pytest

from fuzz.accounts import read_everything
from fuzz.draws import Draws
from fuzz.payloads import CODECS, LIES, bomb, header, sealed
from pulsar_sansio import (
    client_outputs,
)
from pulsar_sansio.wire import encode_batch_payloads, proto
from tests.client.script import Script
from tests.fuzz.lying_broker import LIMIT, MIB, held, is_alive, message, subscribed, validation_error


@pytest.mark.parametrize("lie", sorted(set(LIES) - {"chunks"}))
def test_an_entry_that_lies_costs_at_most_itself(lie: str) -> None:
    """Headers, batches and codecs of which something is wrong: the link lives, the consumer goes on, and what
    was delivered can be looked at."""
    script, link, consumer = subscribed()
    for seed in range(40 if lie != "tiny messages" else 3):
        payload = LIES[lie](Draws.of_seed(seed), LIMIT)
        if len(payload) > LIMIT:
            continue  # no broker would have taken it
        script.feed(link, message(payload, seed))
        assert is_alive(script, link)
        if any(
            isinstance(output, client_outputs.Closed) for output in script.said()
        ):  # it looked like a chunk
            script, link, consumer = subscribed()
        for each in script.client.take(script.now, consumer, 100_000):
            read_everything(each)
    script.feed(link, message(sealed(header(), b"good"), 10_000))
    assert [each.data for each in script.client.take(script.now, consumer, 10)] == [b"good"]


@pytest.mark.parametrize("count", [0, -1, 2, 4, 2**20, 2**31 - 1, -(2**31)])
def test_a_batch_that_lies_about_its_number_of_messages(count: int) -> None:
    """Nothing is allocated for what is only said."""
    script, link, consumer = subscribed()
    payload = sealed(header(num_messages_in_batch=count), encode_batch_payloads([b"a", b"b", b"c"], 0))
    _, peak = held(lambda: script.feed(link, message(payload)))
    assert peak < 100_000
    assert script.client.available(consumer) == 0
    assert validation_error(script, link) == proto.CommandAck.BatchDeSerializeError


@pytest.mark.parametrize("said", ["little", "limit", "everything", "more than anything"])
@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)
def test_a_bomb_goes_off_within_the_limit(codec: int, said: str) -> None:
    """Never more than one message of the greatest size comes out, whatever the codec and the size stated."""
    script, link, consumer = subscribed()
    data = bomb(codec)[: LIMIT + 5000]
    sizes = {"little": 10, "limit": LIMIT, "everything": 4 * MIB, "more than anything": 2**32 - 1}
    payload = sealed(header(compression=codec, uncompressed_size=sizes[said]), data)
    _, peak = held(lambda: script.feed(link, message(payload)))
    assert peak < 12 * LIMIT
    assert is_alive(script, link)
    assert script.client.available(consumer) == 0
    too_large = said in ("everything", "more than anything")
    expected = (
        proto.CommandAck.UncompressedSizeCorruption if too_large else proto.CommandAck.DecompressionError
    )
    assert validation_error(script, link) == expected


def chunk(uuid: str, payload: bytes, **fields: Any) -> bytes:
    fields = {"num_chunks_from_msg": 100, "chunk_id": 0, "total_chunk_msg_size": 100 * MIB, **fields}
    return message(sealed(header(uuid=uuid, **fields), payload))


def test_a_chunked_message_of_two_gigabytes_is_not_waited_for() -> None:
    script, link, consumer = subscribed()
    lie = {"num_chunks_from_msg": 2**31 - 1, "total_chunk_msg_size": 2**31 - 1}
    _, peak = held(lambda: script.feed(link, chunk("u", b"abc", **lie)))
    assert peak < 100_000
    assert is_alive(script, link)
    assert script.client.arrival_counters(consumer).chunks_oversized == 1


def test_what_a_chunked_message_promises_is_not_reserved_and_the_begun_ones_are_counted() -> None:
    """Ten may be incomplete at a time; an eleventh takes the oldest one's place."""
    size = 12_000
    frames = [chunk(f"u-{number}", bytes(size)) for number in range(100)]
    for _ in ("the process makes once what it needs", "measured"):
        script, link, consumer = subscribed()

        def feed(script: Script = script, link: int = link) -> None:
            for frame in frames:
                script.feed(link, frame)

        _, peak = held(feed)
    assert peak < 20 * size
    assert is_alive(script, link)
    assert script.client.arrival_counters(consumer).chunks_dropped == 90


def test_times_of_another_age_are_delivered_and_decide_nothing() -> None:
    script, link, consumer = subscribed()
    payload = sealed(header(event_time=2**64 - 1, deliver_at_time=-(2**63)), b"x")
    script.feed(link, message(payload))
    [delivered] = script.client.take(script.now, consumer, 10)
    assert (delivered.data, delivered.event_time) == (b"x", 2**64 - 1)
