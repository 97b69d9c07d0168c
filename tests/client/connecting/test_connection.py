"""One connection: handshake, keepalive, framing, poison."""

from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsar_sansio.client.connecting import connection_states
from pulsar_sansio.client.connecting.connection import COMMANDS
from pulsar_sansio.client.connecting.connection_states import TRANSITIONS, Handshaking, Ready
from pulsar_sansio.client.outputs import Connect, Detached, Disconnect, ProducerFailed
from pulsar_sansio.core.transitions import IllegalMove
from pulsar_sansio.model.config import ProducerSpec
from pulsar_sansio.model.errors import LocalProtocolError
from pulsar_sansio.model.service_url import Address
from pulsar_sansio.wire import (
    Ack,
    Flow,
    MessageCommand,
    Send,
    SendReceipt,
    encode_command,
    encode_ping,
    encode_pong,
    max_frame_size,
    proto,
)
from tests.client.script import (
    WALL,
    Command,
    Script,
    frame_close_producer,
    frame_connected,
    frame_error,
    frame_producer_success,
    frame_receipt,
    frame_success,
)

BROKER = Address("broker", 6650)
SPEC = ProducerSpec(topic="demo")


def opened() -> tuple[Script, int]:
    """A link on which CONNECT was written."""
    script = Script()
    script.client.open_producer(script.now, SPEC)
    link = script.expect_one(Connect).link
    script.open(link)
    return script, link


def test_the_world_is_asked_for_a_link_to_the_service_url() -> None:
    script = Script()
    script.client.open_producer(script.now, SPEC)
    script.expect(Connect(1, BROKER, None))
    tls = Script(service_url="pulsar+ssl://broker")
    tls.client.open_producer(tls.now, SPEC)
    tls.expect(Connect(1, Address("broker", 6651), "broker"))


def test_connect_is_the_first_frame_with_the_fields_java_sends() -> None:
    """WIRE-01; flags 1, 2, 3, 5, 6 as in the recordings."""
    script, link = opened()
    connect = script.sent(link, Command.CONNECT)
    assert connect.client_version.startswith("pulsar-trio")
    assert connect.protocol_version == 21
    assert connect.auth_method_name == "none"
    assert connect.HasField("auth_data")
    assert connect.auth_data == b""
    assert not connect.HasField("proxy_to_broker_url")
    assert [field.number for field, _ in connect.feature_flags.ListFields()] == [1, 2, 3, 5, 6]


def test_nothing_is_asked_before_connected_has_come() -> None:
    """Rules CONN-05 and POOL-09."""
    script, link = opened()
    script.sent(link, Command.CONNECT)
    script.advance(1)
    assert script.commands(link) == []
    script.feed(link, frame_connected())
    script.sent(link, Command.PARTITIONED_METADATA)


def test_the_lower_protocol_version_and_the_brokers_limit_count() -> None:
    script, link = opened()
    script.feed(link, frame_connected(version=15, max_message_size=4096))
    connection = script.connection(link)
    assert connection.protocol_version == 15
    assert connection.max_message_size == 4096
    newer, link = opened()
    newer.feed(link, frame_connected(version=99, max_message_size=0))
    connection = newer.connection(link)
    assert connection.protocol_version == 21
    assert connection.max_message_size == 5 * 1024 * 1024


@pytest.mark.parametrize(
    "error",
    [proto.AuthenticationError, proto.AuthorizationError, proto.NotAllowedError],
)
def test_a_refused_handshake_fails_what_waits_for_it(error: proto.ServerError) -> None:
    """Permanent while creating. Rule POOL-09."""
    script, link = opened()
    script.feed(link, frame_error(2**64 - 1, error, "go away"))
    gone, failed = script.said()
    assert isinstance(gone, Disconnect)
    assert isinstance(failed, ProducerFailed)
    assert "go away" in str(failed.error)


def test_a_broker_that_is_not_ready_is_asked_again() -> None:
    """Rule POOL-10."""
    script, link = opened()
    script.feed(link, frame_error(2**64 - 1, proto.ServiceNotReady))
    script.expect_one(Disconnect)
    script.advance(0.2)
    assert script.expect_one(Connect).link == 2


def test_a_challenge_cannot_be_answered_and_says_so() -> None:
    script, link = opened()
    challenge = proto.CommandAuthChallenge(challenge=proto.AuthData(auth_method_name="token", auth_data=b""))
    script.feed(link, encode_command(Command.AUTH_CHALLENGE, challenge))
    _, failed = script.said()
    assert isinstance(failed, ProducerFailed)
    assert "'token'" in str(failed.error)


def test_connect_and_handshake_together_have_one_limit_of_time() -> None:
    """Rule POOL-11."""
    script = Script(connect_timeout=4.0)
    script.client.open_producer(script.now, SPEC)
    link = script.expect_one(Connect).link
    script.advance(3)
    script.open(link)
    script.advance(0.9)
    assert script.said() == []
    script.advance(0.2)
    gone, again = script.said()
    assert gone == Disconnect(link, "no answer to CONNECT to broker:6650 within 4 s")
    assert isinstance(again, Connect)


def test_a_link_that_never_opens_times_out_too() -> None:
    """Rule POOL-07."""
    script = Script(connect_timeout=4.0)
    script.client.open_producer(script.now, SPEC)
    link = script.expect_one(Connect).link
    script.advance(4)
    script.expect(Disconnect(link, "no connection to broker:6650 within 4 s"))


# --- keepalive (CONN-01) -------------------------------------------------------------------------


def test_ping_is_answered_at_once_in_every_state() -> None:
    script, link = opened()
    script.sent(link, Command.CONNECT)
    script.feed(link, encode_ping())
    script.sent(link, Command.PONG)
    script.feed(link, frame_connected())
    script.sent(link, Command.PARTITIONED_METADATA)
    script.feed(link, encode_ping())
    script.sent(link, Command.PONG)


def test_a_ping_every_interval_while_the_peer_lives() -> None:
    """Rule TIMER-04."""
    script = Script()
    _, link = script.ready_producer()
    for _ in range(3):
        script.advance(30)
        script.sent(link, Command.PING)
        script.feed(link, encode_pong())
    assert script.said() == []


def test_any_frame_is_a_sign_of_life() -> None:
    """Rule GAP-03."""
    script = Script()
    _, link = script.ready_producer()
    script.advance(30)
    script.sent(link, Command.PING)
    script.feed(link, frame_success(12345))  # the answer to nothing
    script.advance(30)
    script.sent(link, Command.PING)
    assert script.said() == []


def test_half_a_frame_is_no_sign_of_life_and_silence_ends_the_link() -> None:
    script = Script()
    producer, link = script.ready_producer()
    script.advance(30)
    script.sent(link, Command.PING)
    script.feed(link, encode_pong()[:5])
    script.advance(30)
    gone, detached = script.said()
    assert gone == Disconnect(link, "broker:6650 did not answer a PING within 30 s")
    assert isinstance(detached, Detached)
    assert detached.id == producer


def idle_link(script: Script) -> int:
    """A link with one pending request."""
    script.client.partitions(script.now, "demo")
    link = script.ready_link()
    script.check_partitions(link)
    script.said()
    return link


def live_for(script: Script, link: int, intervals: int) -> None:
    for _ in range(intervals):
        script.advance(30)
        if script.commands(link):
            script.feed(link, encode_pong())


def test_a_link_that_nobody_uses_is_ended_after_a_minute_or_little_more() -> None:
    """Rules POOL-13 and GAP-24."""
    script = Script()
    link = idle_link(script)
    live_for(script, link, 2)
    assert script.said() == []
    live_for(script, link, 1)
    script.expect(Disconnect(link, "the connection to broker:6650 was not used for a minute"))
    assert script.client.next_deadline() is None


def test_a_link_in_use_is_not_idle() -> None:
    script = Script()
    link = idle_link(script)
    live_for(script, link, 2)
    script.client.partitions(script.now, "demo")
    script.check_partitions(link)
    script.said()
    live_for(script, link, 2)
    assert script.said() == []
    handle, link = script.ready_producer(link=link)
    live_for(script, link, 20)
    assert script.said() == []
    assert handle > 0


@pytest.mark.parametrize("told", [False, True])
def test_a_link_is_idle_from_when_the_last_has_left_it(told: bool) -> None:
    """POOL-13: idle time counts from the last use, not from the last check, up to half a minute earlier."""
    script = Script()
    producer, link = script.ready_producer()
    live_for(script, link, 1)
    script.advance(29)
    if told:
        script.feed(link, frame_close_producer(0))
    script.client.abandon(script.now, producer)
    for kind, command in script.commands(link):
        if kind == Command.CLOSE_PRODUCER:
            script.feed(link, frame_success(command.request_id))
    script.said()
    live_for(script, link, 2)
    assert script.said() == []
    live_for(script, link, 1)
    script.expect(Disconnect(link, "the connection to broker:6650 was not used for a minute"))


# --- dispatching -----------------------------------------------------------------------------------


def test_what_names_an_unknown_handle_is_ignored() -> None:
    """Rules CONN-07, CONN-10, CONN-11: receipts, errors, messages and answers for unknown ids."""
    script = Script()
    _, link = script.ready_producer()
    script.feed(
        link,
        frame_receipt(0, producer_id=99),
        frame_success(4711),
        frame_error(4711, proto.MetadataError),
        frame_error(2**64 - 1, proto.UnknownError),
        frame_producer_success(4711),
        encode_command(Command.CLOSE_PRODUCER, proto.CommandCloseProducer(producer_id=99, request_id=0)),
        encode_command(Command.CLOSE_CONSUMER, proto.CommandCloseConsumer(consumer_id=99, request_id=0)),
        encode_command(
            Command.SEND_ERROR,
            proto.CommandSendError(producer_id=99, sequence_id=0, error=proto.UnknownError, message=""),
        ),
        encode_command(
            Command.ACTIVE_CONSUMER_CHANGE, proto.CommandActiveConsumerChange(consumer_id=99, is_active=True)
        ),
        encode_command(Command.REACHED_END_OF_TOPIC, proto.CommandReachedEndOfTopic(consumer_id=99)),
        encode_command(
            Command.TOPIC_MIGRATED,
            proto.CommandTopicMigrated(
                resource_id=0, resource_type=proto.CommandTopicMigrated.Producer, brokerServiceUrl="x"
            ),
        ),
    )
    assert script.said() == []
    assert script.commands(link) == []


def test_an_unknown_command_is_ignored() -> None:
    """A command of a later version: type 200, in a frame that is otherwise right."""
    script = Script()
    producer, link = script.ready_producer()
    script.feed(link, bytes([0, 0, 0, 7, 0, 0, 0, 3, 0x08, 200, 1]))
    script.client.send(script.now, producer, b"x", WALL)
    script.advance(0.01)
    script.sent(link, Command.SEND)
    assert script.said() == []


@pytest.mark.parametrize(
    ("state", "kind"),
    [
        (state, kind)
        for state, kind in product((Handshaking, Ready), Command.Type.values())
        if (state, kind) not in COMMANDS
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else Command.Type.Name(value),
)
def test_every_command_that_is_not_in_the_table_poisons_the_link(state: type, kind: int) -> None:
    """Exhaustive: a command that the table does not allow ends the link with a declared cause, and nothing
    else."""
    script, link = opened()
    if state is Ready:
        script.feed(link, frame_connected())
    script.commands(link)
    frame = any_frame(kind)
    script.feed(link, frame)
    gone = script.expect_one(Disconnect)
    assert gone.link == link
    assert Command.Type.Name(kind) in gone.reason
    assert script.commands(link) == []


def any_frame(kind: int) -> bytes:
    """A well-formed frame of this type."""
    hot: dict[int, Any] = {
        Command.SEND: Send(0, 0, payload=b"\0\0\0\0"),
        Command.MESSAGE: MessageCommand(0, 1, 1, payload=b"\0\0\0\0"),
        Command.SEND_RECEIPT: SendReceipt(0, 0, 1, 1),
        Command.ACK: Ack(0, 0, [(1, 1, None)]),
        Command.FLOW: Flow(0, 1),
    }
    if kind in hot:
        encoded = hot[kind].encode()
        assert isinstance(encoded, bytes)
        return encoded
    message = getattr(Command(), Command.DESCRIPTOR.fields_by_number[kind].name).__class__()
    fill(message)
    return encode_command(Command.Type.ValueType(kind), message)


def fill(message: Any) -> None:
    """Give every required field some value."""
    for field in message.DESCRIPTOR.fields:
        if not field.is_required:
            continue
        if field.message_type is not None:
            fill(getattr(message, field.name))
            getattr(message, field.name).SetInParent()
        elif field.enum_type is not None:
            setattr(message, field.name, field.enum_type.values[0].number)
        elif field.type in (field.TYPE_STRING, field.TYPE_BYTES):
            setattr(message, field.name, "" if field.type == field.TYPE_STRING else b"")
        else:
            setattr(message, field.name, 1)


# --- poison ----------------------------------------------------------------------------------------


def test_a_frame_over_the_limit_poisons_as_soon_as_its_size_is_there() -> None:
    script = Script()
    producer, link = script.ready_producer()
    limit = max_frame_size(5 * 1024 * 1024)
    script.feed(link, limit.to_bytes(4, "big"))
    assert script.said() == []
    other = Script()
    producer, link = other.ready_producer()
    other.feed(link, (limit + 1).to_bytes(4, "big"))
    gone, detached = other.said()
    assert isinstance(gone, Disconnect)
    assert str(limit + 1) in gone.reason
    assert isinstance(detached, Detached)
    assert detached.id == producer


def test_after_poison_the_link_is_dead_and_the_producer_comes_back_over_a_new_one() -> None:
    script = Script()
    _, link = script.ready_producer()
    script.feed(link, b"HTTP/1.1 400 Bad Request\r\n\r\n")
    script.said()
    script.feed(link, frame_success(1))
    script.lose(link)
    assert script.said() == []
    script.advance(0.2)
    assert script.ready_link() == link + 1


def test_how_much_came_behind_what_ended_the_link_is_known() -> None:
    """A watcher of both byte streams learns which frames the client read."""
    alive = encode_ping() + frame_success(1)
    for ends, unread in (
        (b"\x7f\xff\xff\xff", 4 + len(alive)),  # no valid frame: none of its bytes count as read
        (frame_connected(), len(alive)),  # a frame that must not come
    ):
        script = Script()
        _, link = script.ready_producer()
        connection = script.connection(link)
        script.feed(link, alive)
        assert connection.unread == 0
        script.feed(link, alive + ends + alive)
        assert link not in script.client.links
        assert connection.unread == unread


def test_one_poisoned_link_leaves_the_others_alone() -> None:
    """Rule POOL-06."""
    script = Script()
    _, first = script.ready_producer()
    second = script.client.open_producer(script.now, ProducerSpec(topic="other"))
    script.check_partitions(first)
    script.find_topic(first, "pulsar://elsewhere:6650")
    link = script.ready_link("elsewhere")
    asked = script.sent(link, Command.PRODUCER)
    script.feed(link, frame_producer_success(asked.request_id, "p-2"))
    script.said()
    script.feed(first, bytes(20))
    assert all(not isinstance(output, Detached) or output.id != second for output in script.said())
    script.client.send(script.now, second, b"on it goes", WALL)
    script.advance(0.01)
    script.sent(link, Command.SEND)


@settings(max_examples=150)
@given(st.lists(st.binary(max_size=60), max_size=6), st.booleans())
def test_random_bytes_never_raise_and_memory_is_bounded(pieces: list[bytes], ready: bool) -> None:
    """Rule INV-N12."""
    script, link = opened()
    if ready:
        script.feed(link, frame_connected())
    for piece in pieces:
        script.feed(link, piece)
    if link in script.client.links:
        assert len(script.connection(link)._received) <= max_frame_size(5 * 1024 * 1024) + 60


@settings(max_examples=150)
@given(
    st.sampled_from(sorted(set(Command.Type.values()))),
    st.integers(0, 400),
    st.integers(0, 255),
    st.booleans(),
)
@pytest.mark.breaks("WIRE-21", why="the version in CONNECTED is what was damaged")
def test_damaged_frames_never_raise(kind: int, position: int, value: int, ready: bool) -> None:
    script, link = opened()
    if ready:
        script.feed(link, frame_connected())
    frame = bytearray(any_frame(kind))
    frame[position % len(frame)] = value
    script.feed(link, bytes(frame))
    script.feed(link, encode_ping())


def test_a_truncated_frame_is_waited_for_and_dropped_with_the_link() -> None:
    script = Script()
    _, link = script.ready_producer()
    script.feed(link, frame_success(1)[:-1])
    assert script.said() == []
    script.client.receive_eof(script.now, link)
    gone, detached = script.said()
    assert gone == Disconnect(link, "broker:6650: the peer closed the connection")
    assert isinstance(detached, Detached)


def test_a_wrong_kind_of_answer_poisons() -> None:
    script, link = opened()
    script.feed(link, frame_connected())
    _, (_, asked) = script.commands(link)
    script.feed(link, frame_success(asked.request_id))
    gone = script.expect_one(Disconnect)
    assert "instead of PARTITIONED_METADATA_RESPONSE" in gone.reason


# --- the caller's mistakes and stale facts -----------------------------------------------------------


def test_facts_about_unknown_links_are_ignored() -> None:
    client = Script().client
    client.connected(0, 17)
    client.receive_data(0, 17, b"x")
    client.receive_eof(0, 17)
    client.disconnected(0, 17, "gone")
    assert client.data_to_send(17) == []
    assert not client.has_output


@pytest.mark.breaks("CHECK-01", why="received by a link that is not connected, so not received")
def test_a_link_cannot_be_connected_twice_nor_receive_before() -> None:
    script = Script()
    script.client.open_producer(script.now, SPEC)
    link = script.expect_one(Connect).link
    with pytest.raises(LocalProtocolError, match="before it was reported connected"):
        script.client.receive_data(script.now, link, b"x")
    script.open(link)
    script.sent(link, Command.CONNECT)
    with pytest.raises(LocalProtocolError, match="twice"):
        script.client.connected(script.now, link)
    assert script.said() == []
    script.feed(link, frame_connected())
    script.sent(link, Command.PARTITIONED_METADATA)


def test_what_was_written_before_a_disconnect_can_still_be_pulled() -> None:
    script = Script()
    script.client.open_producer(script.now, SPEC)
    link = script.expect_one(Connect).link
    script.client.connected(script.now, link)
    script.client.receive_data(script.now, link, bytes(8))  # poison, before CONNECT was pulled
    script.sent(link, Command.CONNECT)
    assert script.client.data_to_send(link) == []


def test_transmit_is_said_once_until_it_is_pulled() -> None:
    script = Script()
    producer, link = script.ready_producer(batching=None)
    client = script.client
    for _ in range(3):
        client.send(script.now, producer, b"x", WALL)
    outputs = []
    while (output := client.next_output()) is not None:
        outputs.append(type(output).__name__)
    assert outputs == ["Transmit"]
    client.data_to_send(link)
    client.send(script.now, producer, b"x", WALL)
    assert client.has_output


def test_the_table_is_exhaustive() -> None:
    """Every pair of state and input that is not in the table changes nothing and raises."""
    states: list[Any] = [
        connection_states.Opening(),
        connection_states.Authenticating(),
        Handshaking(),
        Ready(),
        connection_states.Closed(LocalProtocolError()),
    ]
    assert TRANSITIONS.states == {type(state) for state in states}
    for state, event, following in product(states, connection_states.ConnectionInput, states):
        if TRANSITIONS.table.get((type(state), event)) is type(following):
            TRANSITIONS.check(state, event, following)
        else:
            with pytest.raises(IllegalMove):
                TRANSITIONS.check(state, event, following)


def test_closing_twice_is_closing_once() -> None:
    script = Script()
    _, link = script.ready_producer()
    connection = script.connection(link)
    connection.close(LocalProtocolError("first"))
    assert len(script.said()) == 2
    connection.close(LocalProtocolError("second"))
    assert script.said() == []
    assert isinstance(connection.state, connection_states.Closed)
    assert str(connection.state.cause) == "first"
    connection.write(b"late")
    assert script.said() == []
