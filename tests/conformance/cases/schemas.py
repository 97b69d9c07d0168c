"""Conversations that break a rule of schemas."""

from typing import Any

from pulsar_sansio.conformance import commands as c
from pulsar_sansio.wire import proto
from tests.conformance.cases.case import breaks
from tests.conformance.script import TOPIC, Script, stored

VERSION = bytes(8)
KEY_VALUE = proto.Schema.Type.Value("KeyValue")


def schema(kind: int, data: bytes = b"") -> dict[str, object]:
    return {"name": "", "schema_data": data, "type": kind}


STRING = schema(proto.Schema.String)


def _ask(s: Script, **fields: Any) -> int:
    s.connect()
    return s.ask(c.GET_SCHEMA, topic=TOPIC, **fields)


def _register(s: Script, given: dict[str, object]) -> int:
    s.connect()
    return s.ask(c.GET_OR_CREATE_SCHEMA, topic=TOPIC, schema=given)


# --- questions -------------------------------------------------------------------------------------


@breaks("CHECK-80")
def an_empty_version(s: Script) -> None:
    _ask(s, schema_version=b"")


@breaks("CHECK-81")
def a_version_of_four_bytes(s: Script) -> None:
    s.broker(c.GET_SCHEMA_RESPONSE, request_id=_ask(s), schema=STRING, schema_version=b"1234")


@breaks("CHECK-81")
def a_producer_with_a_long_version(s: Script) -> None:
    s.connect()
    s.producer_success(s.open_producer(schema=STRING), schema_version=bytes(9))


@breaks("CHECK-82")
def a_definition_without_its_version(s: Script) -> None:
    s.broker(c.GET_SCHEMA_RESPONSE, request_id=_ask(s), schema=STRING)


@breaks("CHECK-82")
def another_version(s: Script) -> None:
    asked = _ask(s, schema_version=VERSION)
    s.broker(c.GET_SCHEMA_RESPONSE, request_id=asked, schema=STRING, schema_version=b"\0\0\0\0\0\0\0\1")


# --- registrations ---------------------------------------------------------------------------------


@breaks("CHECK-83")
def a_primitive_type_with_a_definition(s: Script) -> None:
    asked = _register(s, schema(proto.Schema.Int32, b"int"))
    s.broker(c.GET_OR_CREATE_SCHEMA_RESPONSE, request_id=asked, schema_version=VERSION)


@breaks("CHECK-83")
def a_producer_whose_definition_is_no_json(s: Script) -> None:
    s.connect()
    s.producer_success(s.open_producer(schema=schema(proto.Schema.Avro, b"{")), schema_version=VERSION)


@breaks("CHECK-83")
def a_definition_of_json_that_is_a_number(s: Script) -> None:
    s.connect()
    s.producer_success(s.open_producer(schema=schema(proto.Schema.Json, b"7")), schema_version=VERSION)


@breaks("CHECK-83")
def a_message_without_descriptors(s: Script) -> None:
    asked = _register(s, schema(proto.Schema.ProtobufNative, b'{"rootMessageTypeName": "M"}'))
    s.broker(c.GET_OR_CREATE_SCHEMA_RESPONSE, request_id=asked, schema_version=VERSION)


@breaks("CHECK-83")
def a_pair_that_is_cut(s: Script) -> None:
    asked = _register(s, schema(KEY_VALUE, bytes(6)))
    s.broker(c.GET_OR_CREATE_SCHEMA_RESPONSE, request_id=asked, schema_version=VERSION)


@breaks("CHECK-83")
def a_pair_with_something_behind_it(s: Script) -> None:
    asked = _register(s, schema(KEY_VALUE, bytes(9)))
    s.broker(c.GET_OR_CREATE_SCHEMA_RESPONSE, request_id=asked, schema_version=VERSION)


@breaks("CHECK-84")
def a_schema_without_a_version(s: Script) -> None:
    s.connect()
    s.producer_success(s.open_producer(schema=STRING))


@breaks("CHECK-84")
def a_registration_without_a_version(s: Script) -> None:
    s.broker(c.GET_OR_CREATE_SCHEMA_RESPONSE, request_id=_register(s, STRING), schema_version=b"")


@breaks("CHECK-84")
def a_version_without_a_schema(s: Script) -> None:
    s.connect()
    s.producer_success(s.open_producer(), schema_version=VERSION)


@breaks("CHECK-86")
def a_consumer_of_bytes_is_incompatible(s: Script) -> None:
    s.connect()
    s.error(s.subscribe(), proto.IncompatibleSchema)


@breaks("CHECK-86")
def a_consumer_that_detects_is_incompatible(s: Script) -> None:
    s.connect()
    s.error(s.subscribe(schema=schema(proto.Schema.AutoConsume)), proto.IncompatibleSchema)


# --- messages --------------------------------------------------------------------------------------


@breaks("CHECK-85")
def a_chunk_of_another_version(s: Script) -> None:
    s.connect()
    s.producer_success(s.open_producer(schema=STRING), schema_version=VERSION)
    fields: dict[str, Any] = {"uuid": "u", "num_chunks_from_msg": 2, "total_chunk_msg_size": 4}
    s.send(0, stored(0, b"xx", chunk_id=0, schema_version=VERSION, **fields), is_chunk=True)
    s.send(0, stored(0, b"xx", chunk_id=1, **fields), is_chunk=True)
