"""Rules about schemas: questions for definitions, registrations, and the versions that brokers give.

`versions` has what a protocol version allows of schemas, and `payloads` the version that a SEND is stamped
with. A checker sees no deletion of a schema, so no rule compares the definitions of one version.
"""

import json
from typing import Any

from ...wire import proto
from .. import commands as c
from ..findings import Finding, Side
from ..registry import rule
from ..state.state import State
from ..traits import CHUNK

_Type = proto.Schema

_NONE = getattr(proto.Schema, "None")
_KEY_VALUE = _Type.Type.Value("KeyValue")
_AUTO_CONSUME = _Type.AutoConsume
_AVRO_TYPES = (_Type.Avro, _Type.Json, _Type.Protobuf)
"""The types whose definition is one of Avro."""
_UNCHECKED = (_NONE, _AUTO_CONSUME, _Type.External)
_NATIVE_FIELDS = {"fileDescriptorSet", "rootMessageTypeName", "rootFileDescriptorName"}

_VERSION_SIZE = 8
"""Bytes of a version: a number from 0, big-endian."""


# --- questions -------------------------------------------------------------------------------------


@rule("CHECK-80", c.GET_SCHEMA, side=Side.CLIENT)
def questions_name_a_version(state: State, question: Any) -> Finding:
    """GET_SCHEMA asks for the latest definition without a version, never with an empty one."""
    return "an empty version" if question.HasField("schema_version") and not question.schema_version else None


@rule("CHECK-82", c.GET_SCHEMA_RESPONSE)
def answers_have_the_version(state: State, answer: Any) -> Finding:
    """GET_SCHEMA_RESPONSE has the version of its definition: the one that was asked for, where one was."""
    request = state.request
    if request is None or request.kind != c.GET_SCHEMA or not answer.HasField("schema"):
        return None
    if not answer.schema_version:
        return "a definition without its version"
    asked = request.command
    if not asked.HasField("schema_version") or asked.schema_version == answer.schema_version:
        return None
    return f"version {answer.schema_version.hex()}, asked for was {asked.schema_version.hex()}"


# --- registrations ---------------------------------------------------------------------------------


@rule("CHECK-81", c.PRODUCER_SUCCESS, c.GET_SCHEMA_RESPONSE, c.GET_OR_CREATE_SCHEMA_RESPONSE)
def versions_have_eight_bytes(state: State, answer: Any) -> Finding:
    """A broker's version of a schema has eight bytes; it is empty where there is no schema."""
    size = len(answer.schema_version)
    return None if size in (0, _VERSION_SIZE) else f"a version of {size} bytes"


def _registered(state: State, answer: Any) -> Any:
    """The PRODUCER or GET_OR_CREATE_SCHEMA whose schema the broker has accepted; None for other answers."""
    request = state.request
    if request is None or request.kind not in (c.PRODUCER, c.GET_OR_CREATE_SCHEMA):
        return None
    if request.kind == c.GET_OR_CREATE_SCHEMA and answer.HasField("error_code"):
        return None
    return request.command


@rule("CHECK-83", c.PRODUCER_SUCCESS, c.GET_OR_CREATE_SCHEMA_RESPONSE)
def registered_definitions_are_of_their_type(state: State, answer: Any) -> Finding:
    """A broker registers no definition that is none of its type."""
    asked = _registered(state, answer)
    if asked is None or not asked.HasField("schema"):
        return None
    wrong = _mistake(asked.schema.type, asked.schema.schema_data)
    return wrong and f"a schema of type {_Type.Type.Name(asked.schema.type)} is accepted: {wrong}"


@rule("CHECK-84", c.PRODUCER_SUCCESS, c.GET_OR_CREATE_SCHEMA_RESPONSE)
def schemas_get_a_version(state: State, answer: Any) -> Finding:
    """A client that registers a schema gets its version; one that registers none gets none."""
    asked = _registered(state, answer)
    if asked is None:
        return None
    if not asked.HasField("schema"):
        version = answer.schema_version
        return f"version {version.hex()} for a producer without a schema" if version else None
    if answer.schema_version or asked.schema.type == _NONE:
        return None
    return "no version for a schema"


@rule("CHECK-86", c.ERROR)
def consumers_without_a_schema_are_compatible(state: State, error: Any) -> Finding:
    """A SUBSCRIBE without a definition is not refused because of a schema."""
    request = state.request
    if request is None or request.kind != c.SUBSCRIBE or error.error != proto.IncompatibleSchema:
        return None
    asked = request.command
    if asked.HasField("schema") and asked.schema.type != _AUTO_CONSUME:
        return None
    return "IncompatibleSchema for a consumer without a definition"


# --- messages --------------------------------------------------------------------------------------


@rule("CHECK-85", c.SEND, traits=CHUNK)
def chunks_have_one_version(state: State, send: Any) -> Finding:
    """The chunks of a message have one schema version."""
    metadata, producer = state.entry.metadata, state.producer
    if metadata is None or producer is None or not metadata.chunk_id or producer.match >= 0:
        return None
    before = producer.memory.chunk
    if before is None or before[0] != metadata.uuid or producer.memory.chunk_bytes < 0:
        return None
    version, first = metadata.schema_version or b"", producer.memory.chunk_version
    return None if version == first else f"version {version.hex()!r}, the first chunk has {first.hex()!r}"


# --- definitions -----------------------------------------------------------------------------------


def _mistake(kind: int, data: bytes) -> str | None:
    """Return what is wrong with a definition of that type, as far as its form shows it."""
    if kind in _UNCHECKED:
        return None
    if kind in _AVRO_TYPES:
        return None if isinstance(_json(data), dict | list | str) else "it is no JSON of Avro"
    if kind == _Type.ProtobufNative:
        found = _json(data)
        whole = isinstance(found, dict) and found.keys() >= _NATIVE_FIELDS
        return None if whole else "it has no descriptors"
    if kind == _KEY_VALUE:
        return None if _is_pair(data) else "it is not two definitions behind their lengths"
    return None if data in (b"", b"null") else "a primitive type has none"  # old Python clients send null


def _json(data: bytes) -> Any:
    """Return the value of a JSON text; None for what is no JSON."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _is_pair(data: bytes) -> bool:
    position = 0
    for _ in range(2):
        if position + 4 > len(data):
            return False
        position += 4 + int.from_bytes(data[position : position + 4], "big")
    return position == len(data)
