"""Breaking the rules of framing, handshake, keep-alive and versions."""

from pulsar_sansio.conformance import Side
from pulsar_sansio.conformance import commands as c
from pulsar_sansio.wire import Send, proto
from tests.conformance.cases.case import breaks
from tests.conformance.script import TOPIC, Script, stored

# --- frames ----------------------------------------------------------------------------------------


@breaks("GAP-06")
def a_frame_over_the_limit(s: Script) -> None:
    s.connect()
    s.raw(Side.CLIENT, (5 * 1024 * 1024 + 10240 - 3).to_bytes(4, "big"))


@breaks("GAP-06")
def a_frame_over_the_limit_the_broker_has_set(s: Script) -> None:
    s.client(c.CONNECT, client_version="test", protocol_version=21)
    s.connected(max_message_size=1000)
    s.raw(Side.BROKER, (1000 + 10240 - 3).to_bytes(4, "big"))


@breaks("GAP-01")
def a_command_larger_than_its_frame(s: Script) -> None:
    s.connect()
    s.raw(Side.BROKER, bytes.fromhex("00000009 00000006 08129201 00"))


@breaks("GAP-01")
def a_payload_behind_a_command_that_has_none(s: Script) -> None:
    s.connect()
    s.raw(Side.CLIENT, bytes.fromhex("0000000b 00000005 0812920100 0000"))


@breaks("CHECK-77")
def a_command_without_its_field(s: Script) -> None:
    s.connect()
    s.raw(Side.CLIENT, bytes.fromhex("00000006 00000002 0812"))


@breaks("CHECK-77")
def a_command_without_a_required_field(s: Script) -> None:
    s.connect()
    s.raw(Side.BROKER, bytes.fromhex("00000008 00000004 080d 6a00"))


@breaks("WIRE-22")
def the_client_answers_like_a_broker(s: Script) -> None:
    s.connect()
    s.client(c.SUCCESS, request_id=1)


@breaks("WIRE-22")
def the_broker_sends_like_a_client(s: Script) -> None:
    s.connect()
    s.raw(Side.BROKER, Send(0, 0, payload=stored()).encode())


@breaks("CHECK-78")
def a_command_from_the_future(s: Script) -> None:
    s.connect()
    s.raw(Side.BROKER, bytes.fromhex("00000009 00000005 0864 a20600"))


# --- handshake -------------------------------------------------------------------------------------


@breaks("CONN-01")
def a_lookup_before_connect(s: Script) -> None:
    s.client(c.LOOKUP, topic=TOPIC, request_id=1)


@breaks("CHECK-01")
def a_lookup_before_connected(s: Script) -> None:
    s.client(c.CONNECT, client_version="test", protocol_version=21)
    s.client(c.LOOKUP, topic=TOPIC, request_id=1)


@breaks("CHECK-02")
def the_broker_pings_first(s: Script) -> None:
    s.broker(c.PING)


@breaks("CHECK-02", also=("WIRE-01",))
def connected_without_connect(s: Script) -> None:
    s.connected()


@breaks("CONN-03", also=("CHECK-60",))
def news_before_connected(s: Script) -> None:
    s.client(c.CONNECT, client_version="test", protocol_version=21)
    s.broker(c.REACHED_END_OF_TOPIC, consumer_id=0)


@breaks("CHECK-03")
def connect_twice(s: Script) -> None:
    s.connect()
    s.client(c.CONNECT, client_version="test", protocol_version=21)


@breaks("CONN-04")
def connected_twice(s: Script) -> None:
    s.connect()
    s.connected()


@breaks("WIRE-01")
def a_version_above_the_clients(s: Script) -> None:
    s.client(c.CONNECT, client_version="test", protocol_version=20)
    s.connected(21)


@breaks("CONN-02")
def a_proxy_target_with_a_scheme(s: Script) -> None:
    s.client(c.CONNECT, client_version="test", protocol_version=21, proxy_to_broker_url="pulsar://b:6650")


def _challenge(s: Script, data: bytes = b"?") -> None:
    s.broker(c.AUTH_CHALLENGE, challenge={"auth_method_name": "m", "auth_data": data}, protocol_version=21)


def _response(s: Script) -> None:
    response = {"auth_method_name": "m", "auth_data": b"!"}
    s.client(c.AUTH_RESPONSE, client_version="test", response=response, protocol_version=21)


@breaks("CHECK-04")
def a_response_without_a_challenge(s: Script) -> None:
    s.connect()
    _challenge(s, b"PulsarAuthRefresh")
    _response(s)
    _response(s)


@breaks("CHECK-05")
def a_response_without_data(s: Script) -> None:
    s.connect()
    _challenge(s)
    s.client(c.AUTH_RESPONSE, response={"auth_method_name": "m"}, protocol_version=21)


@breaks("CHECK-06")
def a_refresh_that_was_not_offered(s: Script) -> None:
    s.connect(feature_flags={})
    _challenge(s, b"PulsarAuthRefresh")


@breaks("GAP-33")
def eleven_rounds(s: Script) -> None:
    s.client(c.CONNECT, client_version="test", protocol_version=21)
    for _ in range(11):
        _challenge(s)
        _response(s)


# --- keep-alive ------------------------------------------------------------------------------------


@breaks("CHECK-07")
def a_pong_without_a_ping(s: Script) -> None:
    s.connect()
    s.broker(c.PING)
    s.client(c.PONG)
    s.client(c.PONG)


@breaks("CHECK-07")
def a_pong_of_the_broker_without_a_ping(s: Script) -> None:
    s.connect()
    s.broker(c.PONG)


@breaks("WIRE-17")
def the_client_goes_on_without_pong(s: Script) -> None:
    s.connect()
    request_id = s.open_producer()
    s.broker(c.PING)
    s.producer_success(request_id)
    s.send(0)


@breaks("WIRE-17")
def the_client_acknowledges_without_pong(s: Script) -> None:
    s.connect()
    s.consumer()
    s.broker(c.PING)
    s.message(0)
    s.ack(0)


@breaks("WIRE-17")
def the_broker_goes_on_without_pong(s: Script) -> None:
    s.connect()
    s.client(c.PING)
    request_id = s.ask(c.PARTITIONED_METADATA, topic=TOPIC)
    s.broker(c.PARTITIONED_METADATA_RESPONSE, request_id=request_id, partitions=0, response=0)


@breaks("WIRE-17")
def the_broker_confirms_without_pong(s: Script) -> None:
    s.connect()
    s.producer()
    s.client(c.PING)
    s.send(0)
    s.receipt(0)


@breaks("INV-N7")
def a_silent_broker_is_asked_again(s: Script) -> None:
    s.connect()
    s.client(c.PING)
    s.broker(c.PONG)
    s.client(c.PING)
    s.client(c.PING)


# --- versions and flags ----------------------------------------------------------------------------


@breaks("WIRE-21")
def a_seek_the_broker_does_not_know(s: Script) -> None:
    s.connect(21, 11)
    s.consumer()
    s.ask(c.SEEK, consumer_id=0, message_publish_time=1)


@breaks("CHECK-08")
def a_close_an_old_client_does_not_know(s: Script) -> None:
    s.connect(4)
    s.producer()
    s.broker(c.CLOSE_PRODUCER, producer_id=0, request_id=c.NONE_ID)


@breaks("ACK-10")
def two_ids_for_an_old_broker(s: Script) -> None:
    s.connect(21, 11)
    s.consumer()
    s.message(0)
    s.message(1)
    s.ack(0, 1)


@breaks("CHECK-09")
def a_confirmation_an_old_broker_cannot_give(s: Script) -> None:
    s.connect(21, 16)
    s.consumer()
    s.message(0)
    s.ack(0, request_id=7)


@breaks("CHECK-10")
def watching_without_the_flag(s: Script) -> None:
    s.client(c.CONNECT, client_version="test", protocol_version=21)
    s.connected(feature_flags={})
    s.ask(c.WATCH_TOPIC_LIST, watcher_id=0, namespace="public/default", topics_pattern="public/default/.*")


@breaks("CHECK-11")
def no_creation_without_the_flag(s: Script) -> None:
    s.client(c.CONNECT, client_version="test", protocol_version=21)
    s.connected(feature_flags={})
    s.ask(c.PARTITIONED_METADATA, topic=TOPIC, metadata_auto_creation_enabled=False)


@breaks("CHECK-12")
def broker_entry_metadata_for_a_client_that_cannot_read_it(s: Script) -> None:
    s.connect(feature_flags={})
    s.consumer()
    s.message(0, b"\x0e\x02\x00\x00\x00\x02\x08\x01" + stored())


def _schema(type: int) -> dict[str, object]:
    return {"name": "", "schema_data": b"", "type": type}


@breaks("SCHEMA-04")
def a_schema_of_plain_bytes(s: Script) -> None:
    s.connect()
    s.subscribe(schema=_schema(0))


@breaks("SCHEMA-05")
def a_json_schema_for_an_old_broker(s: Script) -> None:
    s.connect(21, 12)
    s.open_producer(schema=_schema(proto.Schema.Json))


@breaks("SCHEMA-06")
def a_producer_that_does_not_know_its_schema(s: Script) -> None:
    s.connect()
    s.open_producer(schema=_schema(proto.Schema.AutoConsume))


@breaks("CHECK-13")
def auto_consume_for_an_old_broker(s: Script) -> None:
    s.connect(21, 20)
    s.subscribe(schema=_schema(proto.Schema.AutoConsume))
