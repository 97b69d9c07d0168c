"""Attachments: finding the broker, opening, loss, reconnecting, closing."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from pulsar_sansio.client.attaching import attachment_states as states
from pulsar_sansio.client.attaching.attachment import Attachment
from pulsar_sansio.client.attaching.attachment_states import TRANSITIONS, AttachmentInput
from pulsar_sansio.client.connecting.refusal_policy import REFUSALS, Decision
from pulsar_sansio.client.consuming.consumer import Consumer
from pulsar_sansio.client.outputs import (
    Attached,
    Closed,
    Connect,
    ConsumerFailed,
    Detached,
    Disconnect,
    ProducerFailed,
    ProducerReady,
    RequestDone,
)
from pulsar_sansio.client.producing.producer import Producer
from pulsar_sansio.core.transitions import IllegalMove
from pulsar_sansio.model.config import (
    ConsumerSpec,
    ProducerAccessMode,
    ProducerSpec,
    SubscriptionType,
)
from pulsar_sansio.model.errors import (
    BrokerError,
    ConnectionLost,
    NotSupported,
    ServerError,
    TimedOut,
)
from pulsar_sansio.wire import proto
from tests.client.script import (
    SECOND,
    URL,
    Command,
    Script,
    frame_close_producer,
    frame_connected,
    frame_error,
    frame_lookup,
    frame_producer_success,
    frame_success,
)

SPEC = ProducerSpec(topic="demo")


def opening(**config: Any) -> tuple[Script, int, int, Any]:
    """A producer that has sent PRODUCER: script, handle, link and command."""
    script = Script(**config)
    handle = script.client.open_producer(script.now, SPEC)
    link = script.ready_link()
    script.check_partitions(link)
    script.find_topic(link)
    return script, handle, link, script.sent(link, Command.PRODUCER)


def attachment_of(script: Script, handle: int) -> Attachment:
    producer = script.client._handles.producers[handle]
    assert isinstance(producer, Producer)
    return producer.attachment


# --- opening ---------------------------------------------------------------------------------------


def test_the_whole_way() -> None:
    """Rules HAND-04, PROD-10, PROD-11 and PROD-13."""
    script, handle, link, asked = opening()
    script.feed(link, frame_producer_success(asked.request_id, "standalone-0-2", 41))
    script.expect(ProducerReady(handle, "standalone-0-2", 41, "persistent://public/default/demo"))


def test_who_can_do_nothing_with_partitions_names_the_partition_to_use() -> None:
    """Rule ERR-16."""
    script = Script()
    handle = script.client.subscribe(script.now, ConsumerSpec("demo", "sub", SubscriptionType.EXCLUSIVE))
    consumer = script.client._handles.consumers[handle]
    assert isinstance(consumer, Consumer)
    consumer.attachment.on_partitioned = None
    link = script.ready_link()
    script.check_partitions(link, 3)
    failed = script.expect_one(ConsumerFailed)
    assert failed.consumer == handle
    assert isinstance(failed.error, NotSupported)
    assert "has 3 partitions" in str(failed.error)
    assert "public/default/demo-partition-0 for the first" in str(failed.error)


def test_what_producer_says_is_what_java_says() -> None:
    """java-produce-single, java-producer-name-conflict: fields and their presence. Rules WIRE-06, PROD-09 and
    PROD-12."""
    _, _, _, asked = opening()
    assert {field.name for field, _ in asked.ListFields()} == {
        "topic",
        "producer_id",
        "request_id",
        "encrypted",
        "epoch",
        "user_provided_producer_name",
        "producer_access_mode",
        "txn_enabled",
    }
    assert not asked.user_provided_producer_name
    script = Script()
    script.client.open_producer(script.now, ProducerSpec(topic="demo", name="n", properties={"a": "b"}))
    link = script.ready_link()
    script.check_partitions(link)
    script.find_topic(link)
    named = script.sent(link, Command.PRODUCER)
    assert named.user_provided_producer_name
    assert named.producer_name == "n"
    assert [(pair.key, pair.value) for pair in named.metadata] == [("a", "b")]


@pytest.mark.parametrize("code", list(ServerError))
def test_a_refusal_while_creating_follows_the_table(code: ServerError) -> None:
    """GAP-04, while creating. Rule PROD-24."""
    script, _, link, asked = opening()
    script.feed(link, frame_error(asked.request_id, code, "because"))
    if REFUSALS[code][0] is Decision.FAIL:
        failed = script.expect_one(ProducerFailed)
        assert isinstance(failed.error, BrokerError)
        assert failed.error.code is code
        script.advance(5)
        assert script.commands(link) == []
    else:
        assert script.said() == []
        script.advance(0.2)
        script.find_topic(link)  # a fresh lookup, and partitions are not asked again
        again = script.sent(link, Command.PRODUCER)
        assert again.epoch == 1


@pytest.mark.parametrize("code", list(ServerError))
def test_a_refusal_when_it_was_attached_before_follows_the_table(code: ServerError) -> None:
    """PROD-23, once it was attached."""
    script = Script()
    handle, link = script.ready_producer()
    script.feed(link, frame_close_producer())
    script.advance(0.2)
    script.find_topic(link)
    asked = script.sent(link, Command.PRODUCER)
    script.said()
    script.feed(link, frame_error(asked.request_id, code, "because"))
    if REFUSALS[code][1] is Decision.FAIL:
        closed = script.expect_one(Closed)
        assert closed.id == handle
        assert isinstance(closed.error, BrokerError)
    else:
        assert script.said() == []
        script.advance(0.3)
        script.sent(link, Command.LOOKUP)


def test_creation_has_a_deadline_and_fails_with_the_brokers_last_word() -> None:
    """Rules PROD-07, PROD-25 and TIMER-14."""
    script, _, link, asked = opening(operation_timeout=3.0)
    end = script.now + 3 * SECOND
    while script.now < end:
        script.feed(link, frame_error(asked.request_id, proto.PersistenceError, "disk"))
        while script.now < end and not (found := script.commands(link)):
            script.advance(0.05)
        if script.now < end:
            script.feed(link, lookup_answer(found[0][1]))
            asked = script.sent(link, Command.PRODUCER)
    failed = script.expect_one(ProducerFailed)
    assert str(failed.error) == "PersistenceError: disk"


def lookup_answer(lookup: Any) -> bytes:
    return frame_lookup(lookup.request_id, URL)


def test_when_creation_times_out_the_broker_is_told_to_forget_it() -> None:
    """CLOSE_PRODUCER with the same id."""
    script, handle, link, asked = opening(operation_timeout=3.0)
    script.advance(3)
    failed = script.expect_one(ProducerFailed)
    assert failed.producer == handle
    assert isinstance(failed.error, TimedOut)
    assert script.sent(link, Command.CLOSE_PRODUCER).producer_id == asked.producer_id
    script.feed(link, frame_producer_success(asked.request_id))
    assert script.said() == []


def test_a_timeout_when_coming_back_closes_first_and_has_no_deadline() -> None:
    script = Script(keepalive_interval=1000.0)
    _handle, link = script.ready_producer()
    script.feed(link, frame_close_producer())
    script.said()
    script.advance(0.2)
    script.find_topic(link)
    asked = script.sent(link, Command.PRODUCER)
    for _ in range(4):
        script.advance(30.0)
        close = script.sent(link, Command.CLOSE_PRODUCER)
        assert close.producer_id == asked.producer_id
        script.advance(5)
        script.find_topic(link)
        script.sent(link, Command.PRODUCER)
    assert script.said() == []


# --- losing and coming back ------------------------------------------------------------------------


def test_a_lost_connection_is_followed_by_a_wait_a_lookup_and_the_next_epoch() -> None:
    """Rules HAND-08, PROD-17; java-unload: the adopted name, epoch 1, user_provided false. Rules CONN-16,
    LOOKUP-02, HAND-06 and GAP-03."""
    script = Script()
    handle, link = script.ready_producer()
    script.lose(link)
    detached = script.expect_one(Detached)
    assert detached.id == handle
    assert isinstance(detached.cause, ConnectionLost)
    script.advance(0.094)
    assert script.said() == []
    script.advance(0.012)
    link = script.ready_link()
    script.find_topic(link)
    asked = script.sent(link, Command.PRODUCER)
    assert (asked.epoch, asked.producer_name, asked.user_provided_producer_name) == (1, "p-1", False)
    script.feed(link, frame_producer_success(asked.request_id))
    script.expect(Attached(handle))


def test_the_wait_grows_and_success_makes_it_short_again() -> None:
    """Rules HAND-09, PROD-16 and TIMER-02."""
    script = Script()
    handle, link = script.ready_producer()
    script.lose(link)
    script.said()
    waits = []
    for _ in range(5):
        began = script.now
        while not (outputs := script.said()):
            script.advance(0.01)
        waits.append((script.now - began) / SECOND)
        assert isinstance(outputs[0], Connect)
        script.lose(outputs[0].link, "refused")
    for wait, expected in zip(waits, [0.1, 0.2, 0.4, 0.8, 1.6], strict=True):
        assert expected * 0.94 < wait < expected * 1.06 + 0.011
    script.advance(4)
    link = script.ready_link()
    script.find_topic(link)
    asked = script.sent(link, Command.PRODUCER)
    script.feed(link, frame_producer_success(asked.request_id))
    script.expect(Attached(handle))
    script.lose(link)
    script.said()
    script.advance(0.11)
    script.expect_one(Connect)


def test_the_brokers_close_without_an_address_means_wait_and_look_up() -> None:
    """GAP-37; java-unload. Rule LB-08."""
    script = Script()
    handle, link = script.ready_producer()
    script.feed(link, frame_close_producer())
    assert script.expect_one(Detached).id == handle
    assert script.commands(link) == []
    script.advance(0.11)
    script.find_topic(link)
    script.sent(link, Command.PRODUCER)


def test_the_brokers_close_with_an_address_means_go_there_at_once() -> None:
    """Rule LOOKUP-02."""
    script = Script()
    handle, link = script.ready_producer()
    script.feed(link, frame_close_producer(url="pulsar://next:1"))
    detached, connect = script.said()
    assert isinstance(detached, Detached)
    assert isinstance(connect, Connect)
    assert connect.address.host == "next"
    script.open(connect.link)
    script.sent(connect.link, Command.CONNECT)
    assert script.commands(link) == []
    assert handle == detached.id


def test_an_assigned_address_that_is_stale_falls_back_to_a_lookup() -> None:
    script = Script()
    _, link = script.ready_producer()
    script.feed(link, frame_close_producer(url="pulsar://next:1"))
    _, connect = script.said()
    assert isinstance(connect, Connect)
    script.lose(connect.link, "refused")
    script.advance(0.2)
    script.find_topic(link)
    script.sent(link, Command.PRODUCER)


def test_so_many_assigned_addresses_in_a_row_are_gone_to_at_once() -> None:
    """GAP-37: two brokers that name each other do not keep the client busy."""
    script = Script(max_lookup_redirects=2)
    _, link = script.ready_producer()
    for number in (1, 2):
        script.feed(link, frame_close_producer(url=f"pulsar://next-{number}:1"))
        script.outputs = [output for output in script.said() if isinstance(output, Connect)]
        link = script.ready_link(f"next-{number}")
        script.sent(link, Command.PRODUCER)
    script.feed(link, frame_close_producer(url="pulsar://next-3:1"))
    assert script.said() == []


def test_an_assigned_address_of_no_use_is_ignored() -> None:
    script = Script()
    _, link = script.ready_producer()
    script.feed(link, frame_close_producer(url="gopher://x"))
    script.expect_one(Detached)
    script.advance(0.2)
    script.sent(link, Command.LOOKUP)


def test_through_a_proxy_the_assigned_broker_is_reached_through_the_proxy() -> None:
    script = Script()
    script.client.open_producer(script.now, SPEC)
    link = script.ready_link()
    script.check_partitions(link)
    script.find_topic(link, "pulsar://inner:1", proxy=True)
    link = script.ready_link("broker")
    asked = script.sent(link, Command.PRODUCER)
    script.feed(link, frame_producer_success(asked.request_id))
    script.said()
    script.feed(link, frame_close_producer(url="pulsar://inner:2"))
    _, connect = script.said()
    assert isinstance(connect, Connect)
    assert connect.address.host == "broker"
    script.open(connect.link)
    assert script.sent(connect.link, Command.CONNECT).proxy_to_broker_url == "inner:2"


def test_a_close_while_opening_ends_the_attempt() -> None:
    script, _, link, asked = opening()
    script.feed(link, frame_close_producer(), frame_producer_success(asked.request_id))
    assert script.said() == []
    script.advance(0.2)
    script.find_topic(link)
    script.sent(link, Command.PRODUCER)


def test_only_the_connection_in_use_matters() -> None:
    """HAND-08: the old connection ends after the producer has moved on."""
    script = Script()
    _, old = script.ready_producer()
    script.feed(old, frame_close_producer(url="pulsar://next:1"))
    script.said()
    link = next(link for link in script.client.links if link != old)
    script.open(link)
    script.sent(link, Command.CONNECT)
    script.feed(link, frame_connected())
    asked = script.sent(link, Command.PRODUCER)
    script.feed(link, frame_producer_success(asked.request_id))
    assert isinstance(script.said()[0], Attached)
    script.lose(old)
    script.feed(link, frame_close_producer(producer_id=77))
    assert script.said() == []


# --- closing ---------------------------------------------------------------------------------------


def reach_checking(script: Script) -> int:
    handle = script.client.open_producer(script.now, SPEC)
    script.sent(script.ready_link(), Command.PARTITIONED_METADATA)
    return handle


def reach_looking_up(script: Script) -> int:
    handle = script.client.open_producer(script.now, SPEC)
    link = script.ready_link()
    script.check_partitions(link)
    script.sent(link, Command.LOOKUP)
    return handle


def reach_connecting(script: Script) -> int:
    handle = script.client.open_producer(script.now, SPEC)
    link = script.ready_link()
    script.check_partitions(link)
    script.find_topic(link, "pulsar://other:1")
    script.expect_one(Connect)
    return handle


def reach_opening(script: Script) -> int:
    handle = script.client.open_producer(script.now, SPEC)
    link = script.ready_link()
    script.check_partitions(link)
    script.find_topic(link)
    script.sent(link, Command.PRODUCER)
    return handle


def reach_queued(script: Script) -> int:
    spec = replace(SPEC, access_mode=ProducerAccessMode.WAIT_FOR_EXCLUSIVE)
    handle = script.client.open_producer(script.now, spec)
    link = script.ready_link()
    script.check_partitions(link)
    script.find_topic(link)
    asked = script.sent(link, Command.PRODUCER)
    script.feed(link, frame_producer_success(asked.request_id, ready=False))
    return handle


def reach_leaving(script: Script) -> int:
    handle = reach_opening(script)
    attachment_of(script, handle).close(True)
    return handle


def reach_attached(script: Script) -> int:
    return script.ready_producer()[0]


def reach_backing_off(script: Script) -> int:
    handle, link = script.ready_producer()
    script.feed(link, frame_close_producer())
    script.said()
    return handle


def reach_closing(script: Script) -> int:
    handle = reach_attached(script)
    script.client.close(script.now, handle)
    script.sent(1, Command.CLOSE_PRODUCER)
    return handle


REACH: dict[type, Callable[[Script], int]] = {
    states.CheckingPartitions: reach_checking,
    states.LookingUp: reach_looking_up,
    states.Connecting: reach_connecting,
    states.Opening: reach_opening,
    states.Queued: reach_queued,
    states.Leaving: reach_leaving,
    states.Attached: reach_attached,
    states.BackingOff: reach_backing_off,
    states.Closing: reach_closing,
}

SAMPLES: dict[type, Callable[[], Any]] = {
    states.Idle: states.Idle,
    states.CheckingPartitions: states.CheckingPartitions,
    states.LookingUp: states.LookingUp,
    states.Connecting: states.Connecting,
    states.Opening: lambda: states.Opening(None, 0),  # type: ignore[arg-type]
    states.Queued: lambda: states.Queued(None, 0),  # type: ignore[arg-type]
    states.Leaving: lambda: states.Leaving(None, 0),  # type: ignore[arg-type]
    states.Attached: lambda: states.Attached(None),  # type: ignore[arg-type]
    states.BackingOff: lambda: states.BackingOff(ConnectionLost("x")),
    states.Closing: lambda: states.Closing(None, 0),  # type: ignore[arg-type]
    states.Closed: states.Closed,
    states.Failed: lambda: states.Failed(ConnectionLost("x")),
}


@pytest.mark.parametrize("state", REACH, ids=lambda state: state.__name__)
@pytest.mark.parametrize("event", AttachmentInput, ids=lambda event: event.name)
def test_every_move_that_is_not_in_the_table_changes_nothing_and_raises(
    state: type, event: AttachmentInput
) -> None:
    """Exhaustive over the states of a live machine, its inputs, and the next states. Rules HAND-02, HAND-03
    and HAND-10."""
    script = Script()
    attachment = attachment_of(script, REACH[state](script))
    before = attachment.state
    assert type(before) is state
    deadline = script.client.next_deadline()
    for target, sample in SAMPLES.items():
        if TRANSITIONS.table.get((state, event)) is target:
            continue
        with pytest.raises(IllegalMove):
            attachment._depart(event, sample())
        with pytest.raises(IllegalMove):
            attachment._move(event, sample())
    assert attachment.state is before
    assert script.client.next_deadline() == deadline
    assert script.said() == []


def test_the_table_names_all_states_and_inputs_and_terminal_ones_lead_nowhere() -> None:
    """Rule HAND-01."""
    assert TRANSITIONS.states == set(SAMPLES)
    assert {event for _, event in TRANSITIONS.table} == set(AttachmentInput)
    assert not [pair for pair in TRANSITIONS.table if pair[0] in (states.Closed, states.Failed)]


@pytest.mark.parametrize("state", REACH, ids=lambda state: state.__name__)
def test_close_is_legal_in_every_state(state: type) -> None:
    """Closing is complete at once, or after the answer of a broker that knows the producer; the shared link
    stays. Rule CONN-17."""
    script = Script()
    handle = REACH[state](script)
    was_ready = attachment_of(script, handle).was_attached
    request = script.client.close(script.now, handle)
    if state in (states.Opening, states.Queued, states.Leaving, states.Attached):
        close = script.sent(1, Command.CLOSE_PRODUCER)
        assert script.said() == []
        script.feed(1, frame_success(close.request_id))
    elif state is states.Closing:
        close_id = script.connection(1).pending.copy().popitem()[0]
        script.feed(1, frame_success(close_id))
    outputs = script.said()
    assert outputs[-1] == RequestDone(request, None)
    assert [output for output in outputs if isinstance(output, Closed)] == [Closed(handle, None)] * was_ready
    assert 1 in script.client.links
    script.advance(29)
    assert script.commands(1) == []


def test_an_answer_without_a_name_ends_the_link_and_creation_goes_on() -> None:
    script, _, link, asked = opening(operation_timeout=2.0)
    script.feed(link, frame_producer_success(asked.request_id, ""))
    gone = script.expect_one(Disconnect)
    assert "no name" in gone.reason
    script.advance(2)
    connect, failed = script.said()
    assert isinstance(connect, Connect)
    assert isinstance(failed, ProducerFailed)


def test_a_connection_that_comes_too_late_is_not_used() -> None:
    """Rule HAND-12."""
    script = Script()
    handle = reach_connecting(script)
    script.client.close(script.now, handle)
    script.said()
    other = max(script.client.links)
    script.open(other)
    script.sent(other, Command.CONNECT)
    script.feed(other, frame_connected())
    assert script.commands(other) == []
    assert script.said() == []
