"""`Client`: ids, mistakes, outputs and the end of everything."""

from collections.abc import Callable
from typing import Any

import pytest

import pulsar_sansio
from pulsar_sansio import Client, ClientConfig, ConsumerSpec, ReaderSpec, TableViewSpec
from pulsar_sansio.client.closed_handles import REMEMBERED_ENDS
from pulsar_sansio.client.consuming.consumer import Consumer
from pulsar_sansio.client.outputs import (
    Closed,
    Connect,
    Disconnect,
    ProducerFailed,
    RequestDone,
    RequestFailed,
    SendFailed,
    Transmit,
)
from pulsar_sansio.client.producing.producer import Producer
from pulsar_sansio.model.config import ProducerSpec
from pulsar_sansio.model.errors import (
    ClosedError,
    InvalidConfiguration,
    InvalidServiceUrl,
    InvalidTopicName,
    LocalProtocolError,
    TopicTerminated,
)
from pulsar_sansio.model.message_id import EARLIEST
from pulsar_sansio.wire import proto
from tests.client.script import (
    SECOND,
    WALL,
    Command,
    Script,
    frame_close_producer,
    frame_error,
    frame_partitions,
    frame_producer_success,
    frame_success,
)

SPEC = ProducerSpec(topic="demo", batching=None)


# --- ids -------------------------------------------------------------------------------------------


def test_producers_consumers_and_requests_have_different_ids_and_wire_ids_of_their_own() -> None:
    """Rules CLIENT-17 and PROD-01."""
    script = Script()
    client, now = script.client, script.now
    ids = [
        client.open_producer(now, SPEC),
        client.subscribe(now, ConsumerSpec(topic="demo", subscription="s")),
        client.open_producer(now, SPEC),
        client.partitions(now, "demo"),
    ]
    assert len(set(ids)) == 4
    first, second = client._handles.producers[ids[0]], client._handles.producers[ids[2]]
    assert isinstance(first, Producer)
    assert isinstance(second, Producer)
    consumer = client._handles.consumers[ids[1]]
    assert isinstance(consumer, Consumer)
    assert first.wire_id == consumer.wire_id == 0
    assert second.wire_id == 1


def test_the_same_seed_and_inputs_give_the_same_outputs_and_bytes() -> None:
    def run(seed: int) -> list[Any]:
        script = Script(seed=seed, service_url="pulsar://a,b,c", connections_per_broker=4)
        for _ in range(3):
            script.client.open_producer(script.now, SPEC)
        found: list[Any] = []
        for _ in range(4):
            for output in script.said():
                found.append((script.now, output))
                if isinstance(output, Connect):
                    script.lose(output.link)
            script.advance(0.3)
        return found

    assert run(1) == run(1)
    assert any(run(1) != run(seed) for seed in range(2, 6))


def test_several_connections_to_one_broker_are_shared_out() -> None:
    """The client spreads its producers and consumers over the connections to a broker (rules POOL-01,
    POOL-02)."""
    script = Script(connections_per_broker=3)
    for number in range(30):
        script.client.open_producer(script.now, ProducerSpec(topic=f"demo-{number}"))
    assert len([output for output in script.said() if isinstance(output, Connect)]) == 3


# --- what comes out --------------------------------------------------------------------------------


def test_nothing_is_said_and_nothing_is_due_without_a_reason() -> None:
    """Rule CLIENT-02."""
    client = Client(0, ClientConfig(service_url="pulsar://x"), seed=1)
    assert client.next_output() is None
    assert not client.has_output
    assert client.next_deadline() is None
    assert client.links == ()
    client.handle_deadline(10**12)
    assert not client.has_output


def test_a_deadline_that_is_handled_too_early_or_twice_does_nothing() -> None:
    """Rule TIMER-16."""
    script = Script()
    script.ready_producer()
    deadline = script.client.next_deadline()
    assert deadline is not None
    script.client.handle_deadline(deadline - 1)
    assert not script.client.has_output
    script.client.handle_deadline(deadline)
    assert script.client.next_output() == Transmit(1)
    script.client.handle_deadline(deadline)
    assert not script.client.has_output


@pytest.mark.parametrize(
    "command",
    [
        lambda client, now: client.open_producer(now, SPEC),
        lambda client, now: client.subscribe(now, ConsumerSpec(topic="demo", subscription="s")),
        lambda client, now: client.open_reader(now, ReaderSpec("demo", EARLIEST)),
        lambda client, now: client.open_table_view(now, TableViewSpec("demo")),
    ],
    ids=["producer", "consumer", "reader", "table view"],
)
def test_the_time_to_open_runs_from_the_command_on(command: Callable[[Client, int], int]) -> None:
    """No other input gave the client the time before."""
    script = Script(operation_timeout=1.0)
    script.now += 100 * SECOND
    command(script.client, script.now)
    assert script.client.next_deadline() == script.now + SECOND


def test_inputs_may_come_before_outputs_are_taken() -> None:
    script = Script()
    producer, link = script.ready_producer(SPEC)
    client, now = script.client, script.now
    client.send(now, producer, b"x", WALL)
    client.send(now, producer, b"y", WALL)
    client.disconnected(now, link, "gone")
    client.send(now, producer, b"z", WALL)
    kinds = []
    while (output := client.next_output()) is not None:
        kinds.append(type(output).__name__)
    assert kinds == ["Transmit", "Detached", "Retrying"]
    assert client.data_to_send(link) == []


# --- closing everything ------------------------------------------------------------------------------


def test_close_closes_producers_then_links_then_is_done() -> None:
    """Producers and consumers close before the connections (rules CLIENT-22, CLIENT-25). Rule POOL-12. Rule
    TIMER-01."""
    script = Script()
    client = script.client
    first, link = script.ready_producer(SPEC)
    second = client.open_producer(script.now, SPEC)
    script.check_partitions(link)
    script.find_topic(link)
    asked = script.sent(link, Command.PRODUCER)
    script.feed(link, frame_producer_success(asked.request_id, "p-2"))
    script.said()
    request = client.close(script.now)
    again = client.close(script.now)
    closes = script.sent(link, Command.CLOSE_PRODUCER, Command.CLOSE_PRODUCER)
    assert script.said() == []
    for close in closes:
        script.feed(link, frame_success(close.request_id))
    script.expect(
        Closed(first, None),
        Closed(second, None),
        Disconnect(link, "the client is closed"),
        RequestDone(request, None),
        RequestDone(again, None),
    )
    assert client.next_deadline() is None
    assert client.links == ()
    late = client.close(script.now)
    script.expect(RequestDone(late, None))


def test_a_refused_close_of_one_does_not_leave_the_client_half_closed() -> None:
    """A broker may refuse one close; the client closes all the same (rule CLIENT-23, section 41.4)."""
    script = Script()
    handle, link = script.ready_producer(SPEC)
    request = script.client.close(script.now)
    close = script.sent(link, Command.CLOSE_PRODUCER)
    script.feed(link, frame_error(close.request_id, proto.UnknownError))
    outputs = script.said()
    assert outputs[0] == Closed(handle, None)
    assert outputs[-1] == RequestDone(request, None)


def test_an_idle_client_closes_at_once() -> None:
    script = Script()
    request = script.client.close(script.now)
    script.expect(RequestDone(request, None))
    assert script.client.next_deadline() is None


def test_close_ends_what_is_under_way() -> None:
    """Rule CLIENT-24."""
    script = Script()
    client = script.client
    producer = client.open_producer(script.now, SPEC)
    client.send(script.now, producer, b"never", WALL)
    question = client.partitions(script.now, "demo")
    link = script.expect_one(Connect).link
    request = client.close(script.now)
    failed, unsent, never, gone, done = script.said()
    assert isinstance(failed, RequestFailed)
    assert failed.request == question
    assert isinstance(unsent, SendFailed)
    assert isinstance(unsent.error, ClosedError)
    assert isinstance(never, ProducerFailed)
    assert gone == Disconnect(link, "the client is closed")
    assert done == RequestDone(request, None)
    assert client.next_deadline() is None
    script.client.connected(script.now, link)  # the link is stale by now
    assert script.said() == []


def test_close_is_bounded_by_the_operation_timeout() -> None:
    script = Script(operation_timeout=3.0)
    script.ready_producer(SPEC)
    request = script.client.close(script.now)
    script.advance(3)
    assert script.said()[-1] == RequestDone(request, None)


@pytest.mark.parametrize(
    "command",
    [
        lambda client, now: client.open_producer(now, SPEC),
        lambda client, now: client.subscribe(now, ConsumerSpec(topic="demo", subscription="s")),
        lambda client, now: client.partitions(now, "demo"),
        lambda client, now: client.update_service_url(now, "pulsar://x"),
        lambda client, now: client.send(now, 1, b"x", WALL),
        lambda client, now: client.send_many(now, 1, [b"x"], WALL),
        lambda client, now: client.flush(now, 1),
        lambda client, now: client.receive(now, 1),
        lambda client, now: client.take(now, 1, 1),
        lambda client, now: client.available(1),
        lambda client, now: client.acknowledge(now, 1, []),
        lambda client, now: client.unsubscribe(now, 1),
    ],
)
def test_a_closed_client_takes_no_commands(command: Callable[[Client, int], object]) -> None:
    """A command after the end raises `ClosedError` (rule CLIENT-05). Rules CLIENT-09 and ERR-03."""
    script = Script()
    script.client.open_producer(script.now, SPEC)
    script.client.close(script.now)
    script.said()
    with pytest.raises(ClosedError):
        command(script.client, script.now)
    assert script.said() == []


# --- abandon ---------------------------------------------------------------------------------------


def test_an_abandoned_producer_is_closed_even_if_it_opens_after_all() -> None:
    """Rules HAND-10, HAND-12 and PROD-15."""
    script = Script()
    producer = script.client.open_producer(script.now, SPEC)
    link = script.ready_link()
    script.check_partitions(link)
    script.find_topic(link)
    asked = script.sent(link, Command.PRODUCER)
    script.client.abandon(script.now, producer)
    close = script.sent(link, Command.CLOSE_PRODUCER)
    script.feed(link, frame_producer_success(asked.request_id), frame_success(close.request_id))
    assert not [output for output in script.said() if isinstance(output, (RequestDone, Closed))]
    script.client.abandon(script.now, producer)
    with pytest.raises(ClosedError):
        script.client.send(script.now, producer, b"x", WALL)


def test_an_abandoned_close_is_not_reported() -> None:
    script = Script()
    producer, link = script.ready_producer(SPEC)
    request = script.client.close(script.now, producer)
    script.client.abandon(script.now, request)
    close = script.sent(link, Command.CLOSE_PRODUCER)
    script.feed(link, frame_success(close.request_id))
    script.expect(Closed(producer, None))
    whole = script.client.close(script.now)
    script.expect(Disconnect(link, "the client is closed"), RequestDone(whole, None))


# --- mistakes --------------------------------------------------------------------------------------


def test_bad_specs_and_names_are_refused_by_what_is_wrong() -> None:
    """Rule CLIENT-09."""
    script = Script()
    client, now = script.client, script.now
    with pytest.raises(InvalidConfiguration, match="ProducerSpec"):
        client.open_producer(now, ConsumerSpec(topic="t", subscription="s"))  # type: ignore[arg-type]
    with pytest.raises(InvalidConfiguration, match="ConsumerSpec"):
        client.subscribe(now, SPEC)  # type: ignore[arg-type]
    with pytest.raises(InvalidTopicName):
        client.partitions(now, "a/b")
    with pytest.raises(InvalidServiceUrl):
        client.update_service_url(now, "ftp://x")
    assert script.said() == []
    assert client.next_deadline() is None


def test_a_closed_producer_says_so_and_why() -> None:
    """Rules PROD-32 and ERR-04."""
    script = Script()
    producer, link = script.ready_producer(SPEC)
    script.feed(link, frame_close_producer())
    script.advance(0.2)
    script.find_topic(link)
    asked = script.sent(link, Command.PRODUCER)
    script.feed(link, frame_error(asked.request_id, proto.TopicTerminatedError, "it is over"))
    script.said()
    with pytest.raises(
        ClosedError, match=rf"producer {producer} is closed: TopicTerminatedError: it is over"
    ) as caught:
        script.client.send(script.now, producer, b"x", WALL)
    assert isinstance(caught.value.__cause__, TopicTerminated)
    request = script.client.close(script.now, producer)
    script.expect(RequestDone(request, None))


def test_why_they_ended_is_remembered_of_so_many_only() -> None:
    script = Script()
    client = script.client
    handles = [client.open_producer(script.now, SPEC) for _ in range(REMEMBERED_ENDS + 10)]
    for handle in handles:
        client.close(script.now, handle)
    script.said()
    assert len(client._handles.closed) == REMEMBERED_ENDS
    with pytest.raises(ClosedError):
        client.send(script.now, handles[0], b"x", WALL)


def test_a_number_that_was_never_given_is_a_mistake() -> None:
    """Rules ERR-05 and ERR-17."""
    script = Script()
    with pytest.raises(LocalProtocolError) as caught:
        script.client.close(script.now, 7)
    assert not isinstance(caught.value, ClosedError)
    assert script.said() == []


# --- the public names --------------------------------------------------------------------------------


def test_every_public_name_is_there_once() -> None:
    names = pulsar_sansio.__all__
    assert len(names) == len(set(names))
    for name in names:
        assert getattr(pulsar_sansio, name) is not None


def test_partitions_over_the_root() -> None:
    """Rule LOOKUP-09."""
    script = Script()
    request = script.client.partitions(script.now, "demo")
    link = script.ready_link()
    asked = script.sent(link, Command.PARTITIONED_METADATA)
    script.feed(link, frame_partitions(asked.request_id, 4))
    script.expect(RequestDone(request, 4))
