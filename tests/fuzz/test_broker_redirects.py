"""Redirects and requests without end: the client gives up, or waits between its attempts."""

import pytest

from fuzz.payloads import header, sealed
from pulsar_sansio import (
    TooManyRedirects,
    client_outputs,
)
from pulsar_sansio.wire import encode_command, encode_pong, proto
from tests.client.script import (
    SECOND,
    Command,
    Script,
    frame_close_producer,
    frame_connected,
    frame_lookup,
    frame_producer_success,
)
from tests.fuzz.lying_broker import MIB, PRODUCER, held, is_alive, message, subscribed


def test_redirects_without_end() -> None:
    """From broker to broker: the lookup gives up after the configured number, and begins again no faster than
    its backoff allows."""
    script = Script(max_lookup_redirects=20, operation_timeout=5.0)
    script.client.open_producer(script.now, PRODUCER)
    link = script.ready_link()
    script.check_partitions(link)
    hops = 0
    failed: list[client_outputs.ProducerFailed] = []
    for _ in range(100_000):
        script.drain()
        outputs = script.said()
        failed += [output for output in outputs if isinstance(output, client_outputs.ProducerFailed)]
        for output in outputs:
            if isinstance(output, client_outputs.Connect):
                script.open(output.link)
                script.feed(output.link, frame_connected())
        asked = False
        for each in script.client.links:
            for kind, command in script.commands(each):
                if kind == Command.LOOKUP:
                    asked = True
                    hops += 1
                    url = f"pulsar://hop-{hops % 7}:6650"
                    script.feed(each, frame_lookup(command.request_id, url, redirect=True))
        if failed:
            break
        if not asked and not script.client.has_output:
            script.advance(0.05)
    [last] = failed
    assert isinstance(last.error.__cause__, TooManyRedirects)
    # 100 ms, 200 ms, … within five seconds: six or seven attempts of 21 questions.
    assert 21 <= hops <= 8 * 21
    assert len(script.client.links) <= 8


@pytest.mark.slow
def test_redirects_to_ever_new_hosts_for_an_hour() -> None:
    """Each hop is another connection, which answers every PING. A producer that was attached once tries for
    ever. What is not used any more is closed, so the connections are those of the last attempts."""
    script = Script(max_lookup_redirects=20)
    _, link = script.ready_producer(PRODUCER)
    script.feed(link, frame_close_producer(0))
    hops = most = 0
    end = script.now + 3600 * SECOND
    while script.now < end:
        busy = False
        for output in script.said():
            if isinstance(output, client_outputs.Connect):
                script.open(output.link)
                script.feed(output.link, frame_connected())
                busy = True
        for each in list(script.client.links):
            for kind, command in script.commands(each):
                if kind == Command.PING:
                    script.feed(each, encode_pong())
                elif kind == Command.LOOKUP:
                    hops += 1
                    url = f"pulsar://hop-{hops}:6650"
                    script.feed(each, frame_lookup(command.request_id, url, redirect=True))
                    busy = True
        most = max(most, len(script.client.links))
        script.history.clear()
        if not busy:
            due = script.client.next_deadline()
            assert due is not None
            script.advance(max(0.0, (due - script.now) / SECOND))
    assert hops > 1000
    assert most <= 10 * 21


def test_a_lookup_that_redirects_to_the_asked_broker() -> None:
    script = Script()
    script.client.open_producer(script.now, PRODUCER)
    link = script.ready_link()
    script.check_partitions(link)
    hops = 0
    while asked := [command for kind, command in script.commands(link) if kind == Command.LOOKUP]:
        hops += 1
        script.feed(link, frame_lookup(asked[0].request_id, "pulsar://broker:6650", redirect=True))
    assert hops == 21


def test_closed_and_migrated_without_end() -> None:
    """CLOSE_PRODUCER that names a broker is followed at once, but not for ever without a pause."""
    script = Script()
    producer, link = script.ready_producer(PRODUCER)
    attempts = 0
    for _ in range(1000):
        asked = [command for kind, command in script.commands(link) if kind == Command.PRODUCER]
        attempts += len(asked)
        for command in asked:
            script.feed(link, frame_producer_success(command.request_id))
        script.feed(link, frame_close_producer(0, "pulsar://broker:6650"))
    assert attempts == 20
    assert is_alive(script, link)
    script.advance(0.2)
    script.sent(link, Command.LOOKUP)
    assert producer in {output.id for output in script.said() if isinstance(output, client_outputs.Detached)}


def test_requests_that_are_over_are_not_kept_behind_one_that_is_not() -> None:
    """The queue of timeouts is in the order of asking, and its first may wait for half a minute."""
    script, link, consumer = subscribed()
    script.client.partitions(script.now, "another")
    script.sent(link, Command.PARTITIONED_METADATA)
    payload = sealed(header(), b"x")

    def talk() -> None:
        for entry_id in range(1500):
            script.feed(link, message(payload, entry_id))
            script.client.acknowledge(script.now, consumer, script.client.take(script.now, consumer, 1))
            request = script.client.flush_acknowledgements(script.now, consumer)
            for kind, command in script.commands(link):
                if kind == Command.ACK:
                    answer = proto.CommandAckResponse(consumer_id=0, request_id=command.request_id)
                    script.feed(link, encode_command(Command.ACK_RESPONSE, answer))
            assert script.said()[-1] == client_outputs.RequestDone(request, None)
            script.history.clear()

    now, _ = held(talk)
    assert now < MIB
