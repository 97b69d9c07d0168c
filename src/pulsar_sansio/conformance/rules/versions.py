"""Rules about what the negotiated protocol version and the feature flags allow."""

from typing import Any

from ...wire import proto
from .. import commands as c
from ..findings import Finding, Side
from ..registry import rule
from ..state.state import State
from ..traits import BROKER_BLOCK

_JSON = proto.Schema.Json
_AUTO_CONSUME = proto.Schema.AutoConsume
_NONE = getattr(proto.Schema, "None")


@rule("WIRE-21", side=Side.CLIENT)
def commands_the_broker_knows(state: State, kind: int) -> Finding:
    """A client sends only commands that the negotiated version has."""
    needed = c.CLIENT_SINCE.get(kind, 0)
    if state.version >= needed or not state.connected:
        return None
    return f"{c.name_of(kind)} needs protocol version {needed}, agreed is {state.version}"


@rule("CHECK-08", side=Side.BROKER)
def pushes_the_client_knows(state: State, kind: int) -> Finding:
    """A broker pushes only commands that the negotiated version has."""
    needed = c.BROKER_SINCE.get(kind, 0)
    if state.version >= needed or not state.connected:
        return None
    return f"{c.name_of(kind)} needs protocol version {needed}, agreed is {state.version}"


@rule("ACK-10", c.ACK)
def several_ids(state: State, ack: Any) -> Finding:
    """Several ids in one ACK need protocol version 12."""
    if len(ack.message_ids) < 2 or state.version >= 12:
        return None
    return f"an ACK with {len(ack.message_ids)} ids at protocol version {state.version}"


@rule("CHECK-09", c.ACK)
def confirmed_acknowledgements(state: State, ack: Any) -> Finding:
    """An ACK asks for a response only at protocol version 17 or more."""
    if ack.request_id is None or state.version >= 17 or ack.txnid_most_bits is not None:
        return None
    return f"an ACK with a request id at protocol version {state.version}"


@rule("CHECK-10", c.WATCH_TOPIC_LIST)
def watching_was_offered(state: State, watch: Any) -> Finding:
    """WATCH_TOPIC_LIST goes only to brokers that offer it (feature flag 4)."""
    if state.handshake.broker_flags is None or state.handshake.broker_flags.supports_topic_watchers:
        return None
    return "WATCH_TOPIC_LIST to a broker without supports_topic_watchers"


@rule("CHECK-11", c.PARTITIONED_METADATA)
def no_creation_was_offered(state: State, query: Any) -> Finding:
    """metadata_auto_creation_enabled is false only towards brokers that honour it (feature flag 5)."""
    if query.metadata_auto_creation_enabled or state.handshake.broker_flags is None:
        return None
    if state.handshake.broker_flags.supports_get_partitioned_metadata_without_auto_creation:
        return None
    return "metadata_auto_creation_enabled=false to a broker that does not honour it"


@rule("CHECK-12", c.MESSAGE, traits=BROKER_BLOCK)
def broker_entry_metadata_was_offered(state: State, message: Any) -> Finding:
    """Broker entry metadata goes only to clients that can read it (version 18, feature flag 2)."""
    if not state.entry.broker_block:
        return None
    if state.version >= 18 and state.handshake.client_flags.supports_broker_entry_metadata:
        return None
    return "broker entry metadata to a client that cannot read it"


@rule("SCHEMA-04", c.PRODUCER, c.SUBSCRIBE, side=Side.CLIENT)
def plain_bytes_have_no_schema(state: State, command: Any) -> Finding:
    """BYTES and NONE are not sent as a schema."""
    if not command.HasField("schema") or command.schema.type != _NONE:
        return None
    return "a schema of type None"


@rule("SCHEMA-05", c.PRODUCER, c.SUBSCRIBE, side=Side.CLIENT)
def json_schemas(state: State, command: Any) -> Finding:
    """JSON schemas are sent with Avro-style definitions, to brokers of protocol 13 or more."""
    if not command.HasField("schema") or command.schema.type != _JSON or state.version >= 13:
        return None
    return f"a JSON schema at protocol version {state.version}"


@rule("SCHEMA-06", c.PRODUCER, c.GET_OR_CREATE_SCHEMA)
def producers_know_their_schema(state: State, command: Any) -> Finding:
    """A producer may not use auto-consume."""
    return (
        f"{c.name_of(state.kind)} with schema AutoConsume" if command.schema.type == _AUTO_CONSUME else None
    )


@rule("CHECK-13", c.SUBSCRIBE)
def auto_consume(state: State, command: Any) -> Finding:
    """SUBSCRIBE has the schema AutoConsume only at protocol version 21 or more."""
    if command.schema.type != _AUTO_CONSUME or state.version >= 21:
        return None
    return f"schema AutoConsume at protocol version {state.version}"
