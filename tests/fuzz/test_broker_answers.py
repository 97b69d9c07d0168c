"""Answers of a broker that lie: in the handshake, about partitions, and to requests."""

import pytest

from fuzz.payloads import header, sealed
from pulsar_sansio import (
    TooManyPartitions,
    client_outputs,
)
from pulsar_sansio.wire import encode_command, proto
from tests.client.script import (
    WALL,
    Command,
    Script,
    frame_error,
    frame_producer_success,
    frame_receipt,
    frame_send_error,
    frame_success,
)
from tests.fuzz.lying_broker import CONSUMER, MIB, PRODUCER, held, is_alive, message, why_ended


def test_receipts_without_a_send() -> None:
    """For a producer that is not there, for a message that is confirmed already, a second time: nothing.
    For a message that was not sent yet: the link ends, and everything is sent again."""
    script = Script()
    producer, link = script.ready_producer(PRODUCER)
    script.client.send(script.now, producer, b"a", WALL)
    script.feed(link, frame_receipt(0, producer_id=77), frame_receipt(2**64 - 1, producer_id=77))
    assert script.said() == []
    script.feed(link, frame_receipt(0))
    [receipts] = script.said()
    assert isinstance(receipts, client_outputs.Receipts)
    assert len(receipts.message_ids) == 1
    script.feed(link, frame_receipt(0), frame_receipt(5), frame_receipt(2**64 - 1))
    assert script.said() == [], "nothing is waiting, so nothing is ahead"
    script.client.send(script.now, producer, b"b", WALL)
    script.feed(link, frame_receipt(0))
    assert script.said() == [], "behind"
    script.feed(link, frame_receipt(2))
    assert "was not confirmed" in why_ended(script)


def test_errors_for_messages_and_requests_that_were_never_made() -> None:
    script = Script()
    _, link = script.ready_producer(PRODUCER)
    script.feed(
        link,
        frame_send_error(5, 22, producer_id=77),
        frame_send_error(5, 22),
        frame_error(12345, 1),
        frame_error(2**64 - 1, 1),
        frame_success(12345),
        frame_producer_success(12345),
    )
    assert script.said() == []
    assert is_alive(script, link)


def test_an_answer_of_another_kind_than_was_asked_for() -> None:
    script = Script()
    script.client.open_producer(script.now, PRODUCER)
    link = script.ready_link()
    asked = script.sent(link, Command.PARTITIONED_METADATA)
    script.feed(link, frame_success(asked.request_id))
    assert "instead of" in why_ended(script)


def test_words_without_end_are_cut() -> None:
    """An error is kept, logged and shown."""
    script = Script()
    script.client.open_producer(script.now, PRODUCER)
    link = script.ready_link()
    script.check_partitions(link)
    script.find_topic(link)
    asked = script.sent(link, Command.PRODUCER)
    script.feed(link, frame_error(asked.request_id, 16, "x" * MIB))
    [failed] = script.said()
    assert isinstance(failed, client_outputs.ProducerFailed)
    assert len(str(failed.error)) < 5000


@pytest.mark.parametrize("version", [0, -1, 5, 2**31 - 1])
def test_an_old_broker_does_not_turn_off_checks(version: int) -> None:
    """Below protocol version 6 the C++ client takes messages without a checksum, and below 1 it sends no
    PING. Here neither depends on what the broker says it is."""
    script = Script()
    consumer = script.client.subscribe(script.now, CONSUMER)
    link = script.ready_link(version=version)
    script.check_partitions(link)
    script.find_topic(link)
    asked = script.sent(link, Command.SUBSCRIBE)
    script.feed(link, frame_success(asked.request_id))
    wrong = sealed(header(), b"x")[:-1] + b"y"
    script.feed(link, message(wrong))
    assert script.client.available(consumer) == 0
    script.commands(link)
    script.advance(31)
    script.sent(link, Command.PING)
    script.advance(31)
    assert not is_alive(script, link)


def test_a_challenge_ends_the_link_and_says_nothing() -> None:
    """This client has no credentials yet, and gives none away."""
    script = Script()
    script.client.open_producer(script.now, PRODUCER)
    link = script.expect_one(client_outputs.Connect).link
    script.open(link)
    script.commands(link)
    challenge = proto.CommandAuthChallenge(server_version="x")
    challenge.challenge.auth_method_name = "token" * 1000
    challenge.challenge.auth_data = bytes(64 * 1024)
    script.feed(link, encode_command(Command.AUTH_CHALLENGE, challenge))
    assert len(why_ended(script)) < 300
    assert script.commands(link) == []


@pytest.mark.parametrize("count", [10_001, 2**31 - 1, 2**32 - 1])
def test_a_topic_of_thousands_of_millions_of_partitions(count: int) -> None:
    """For a producer and for a lookup: an error that names the limit, and nothing is made for any of them."""
    script = Script()
    script.client.open_producer(script.now, PRODUCER)
    link = script.ready_link()
    _, peak = held(lambda: script.check_partitions(link, count))
    [failed] = script.said()
    assert isinstance(failed, client_outputs.ProducerFailed)
    assert isinstance(failed.error, TooManyPartitions)
    assert f"{count} partitions, allowed are 10000 (max_partitions)" in str(failed.error)
    request = script.client.partitions(script.now, "demo")
    _, peak_of_asking = held(lambda: script.check_partitions(link, count))
    [refused] = script.said()
    assert isinstance(refused, client_outputs.RequestFailed)
    assert (refused.request, type(refused.error)) == (request, TooManyPartitions)
    assert max(peak, peak_of_asking) < 100_000


def test_as_many_partitions_as_are_allowed() -> None:
    script = Script(max_partitions=20_000)
    request = script.client.partitions(script.now, "demo")
    link = script.ready_link()
    script.check_partitions(link, 20_000)
    assert script.said() == [client_outputs.RequestDone(request, 20_000)]
