"""`TopicQueries`: partitions, definitions and names of topics, asked until the broker answers."""

from typing import Any

import pytest

from pulsar_sansio.client.outputs import RequestDone, RequestFailed, Retrying
from pulsar_sansio.model.config import TopicDomain
from pulsar_sansio.model.errors import (
    AuthorizationError,
    ClosedError,
    IncompatibleSchema,
    InvalidTopicName,
    NotSupported,
    RemoteProtocolError,
    TimedOut,
)
from pulsar_sansio.model.schema import SchemaInfo, SchemaType
from pulsar_sansio.schemas import STRING
from pulsar_sansio.wire import encode_command, proto
from tests.client.script import Command, Script, frame_partitions, frame_partitions_failed


def listed(request_id: int, *names: str) -> bytes:
    return encode_command(
        Command.GET_TOPICS_OF_NAMESPACE_RESPONSE,
        proto.CommandGetTopicsOfNamespaceResponse(request_id=request_id, topics=names, changed=True),
    )


def test_partitions_are_the_result() -> None:
    script = Script()
    request = script.client.partitions(script.now, "demo")
    link = script.ready_link()
    asked = script.sent(link, Command.PARTITIONED_METADATA)
    assert asked.topic == "persistent://public/default/demo"
    script.feed(link, frame_partitions(asked.request_id, 3))
    script.expect(RequestDone(request, 3))


def test_topics_are_sorted_and_partitions_are_folded() -> None:
    script = Script()
    request = script.client.topics(script.now, "public/default", TopicDomain.ALL)
    link = script.ready_link()
    asked = script.sent(link, Command.GET_TOPICS_OF_NAMESPACE)
    assert (asked.namespace, asked.mode) == ("public/default", proto.CommandGetTopicsOfNamespace.ALL)
    prefix = "persistent://public/default/"
    names = [f"{prefix}b-partition-1", f"{prefix}b-partition-0", f"{prefix}a", "not a topic://x"]
    script.feed(link, listed(asked.request_id, *names))
    script.expect(RequestDone(request, [f"{prefix}a", f"{prefix}b"]))


def asked_definition(script: Script, version: bytes | None = None) -> tuple[int, int, int]:
    """Ask for a definition, up to the question; return the link, and the ids of query and question."""
    request = script.client.definition(script.now, "demo-partition-1", version)
    link = script.ready_link()
    script.find_topic(link)
    asked = script.sent(link, Command.GET_SCHEMA)
    assert asked.topic == "persistent://public/default/demo-partition-1"
    assert (asked.schema_version if asked.HasField("schema_version") else None) == version
    return link, request, asked.request_id


def defined(request_id: int, **fields: Any) -> bytes:
    return encode_command(
        Command.GET_SCHEMA_RESPONSE, proto.CommandGetSchemaResponse(request_id=request_id, **fields)
    )


@pytest.mark.parametrize("version", [None, b"\0\0\0\0\0\0\0\1"])
def test_a_definition_is_asked_of_the_broker_of_its_topic(version: bytes | None) -> None:
    """Rule SCHEMA-07."""
    script = Script()
    link, request, question = asked_definition(script, version)
    schema = proto.Schema(name="s", type=proto.Schema.String, schema_data=b"")
    script.feed(link, defined(question, schema=schema))
    script.expect(RequestDone(request, SchemaInfo(SchemaType.STRING, "s")))


def test_a_topic_without_the_definition_has_none() -> None:
    script = Script()
    link, request, question = asked_definition(script)
    script.feed(link, defined(question, error_code=proto.TopicNotFound, error_message="no"))
    script.expect(RequestDone(request, None))


def gone(request_id: int, version: bytes) -> bytes:
    """The answer of a real broker whose latest definition is the mark of a deletion."""
    mark = proto.Schema(name="public/default/demo", type=getattr(proto.Schema, "None"), schema_data=b"")
    return defined(request_id, schema=mark, schema_version=version)


@pytest.mark.parametrize("is_registered", [False, True])
def test_a_definition_of_none_is_one_where_the_broker_has_its_version(is_registered: bool) -> None:
    """Seen with a real broker: a deleted schema is a definition of NONE that has no version. Go registers
    such a definition for bytes, which has one."""
    script = Script()
    link, request, question = asked_definition(script)
    script.feed(link, gone(question, b"\0\0\0\0\0\0\0\2"))
    asked = script.sent(link, Command.GET_SCHEMA)
    assert asked.schema_version == b"\0\0\0\0\0\0\0\2"
    if is_registered:
        script.feed(link, gone(asked.request_id, asked.schema_version))
        script.expect(RequestDone(request, SchemaInfo(SchemaType.NONE, "public/default/demo")))
    else:
        script.feed(link, defined(asked.request_id, error_code=proto.TopicNotFound, error_message="no"))
        script.expect(RequestDone(request, None))


def asked_version(script: Script) -> tuple[int, int, int]:
    """Ask for the latest version, up to the question; return the link, and the ids of query and question."""
    request = script.client.schema_version(script.now, "demo")
    link = script.ready_link()
    script.find_topic(link)
    asked = script.sent(link, Command.GET_SCHEMA)
    assert not asked.HasField("schema_version")
    return link, request, asked.request_id


def test_the_version_of_the_latest_definition_is_a_number() -> None:
    """SCHEMA-07"""
    script = Script()
    link, request, question = asked_version(script)
    schema = proto.Schema(name="s", type=proto.Schema.String, schema_data=b"")
    script.feed(link, defined(question, schema=schema, schema_version=b"\0\0\0\0\0\0\1\2"))
    script.expect(RequestDone(request, 258))


def test_a_topic_without_a_definition_has_no_version() -> None:
    script = Script()
    link, request, question = asked_version(script)
    script.feed(link, defined(question, error_code=proto.TopicNotFound, error_message="no"))
    script.expect(RequestDone(request, None))


def test_a_version_of_another_length_is_asked_for_again() -> None:
    script = Script()
    link, request, question = asked_version(script)
    schema = proto.Schema(name="s", type=proto.Schema.String, schema_data=b"")
    script.feed(link, defined(question, schema=schema, schema_version=b"\1"))
    (notice,) = script.notices
    assert isinstance(notice, Retrying)
    assert isinstance(notice.error, RemoteProtocolError)
    script.advance(1)
    script.find_topic(link)
    again = script.sent(link, Command.GET_SCHEMA)
    script.feed(link, defined(again.request_id, schema=schema, schema_version=bytes(8)))
    script.expect(RequestDone(request, 0))


def test_a_refused_question_for_a_definition_fails() -> None:
    script = Script()
    link, request, question = asked_definition(script)
    script.feed(link, defined(question, error_code=proto.AuthorizationError, error_message="no"))
    failed = script.expect_one(RequestFailed)
    assert failed.request == request
    assert isinstance(failed.error, AuthorizationError)


def test_a_cancelled_question_for_a_definition_has_no_outcome() -> None:
    script = Script()
    link, request, question = asked_definition(script)
    script.client.abandon(script.now, request)
    script.feed(link, defined(question, error_code=proto.TopicNotFound, error_message="no"))
    assert script.said() == []
    early = script.client.definition(script.now, "demo")
    script.client.abandon(script.now, early)
    script.find_topic(link)
    script.sent(link)


def asked_to_register(script: Script) -> tuple[int, int, int]:
    """Ask to register a schema; return the link, and the ids of query and request."""
    request = script.client.register_schema(script.now, "demo", STRING)
    link = script.ready_link()
    script.find_topic(link)
    asked = script.sent(link, Command.GET_OR_CREATE_SCHEMA)
    assert (asked.topic, asked.schema.type) == ("persistent://public/default/demo", proto.Schema.String)
    return link, request, asked.request_id


def registered(request_id: int, **fields: Any) -> bytes:
    answer = proto.CommandGetOrCreateSchemaResponse(request_id=request_id, **fields)
    return encode_command(Command.GET_OR_CREATE_SCHEMA_RESPONSE, answer)


@pytest.mark.parametrize(
    ("answer", "version"),
    [
        ({"schema_version": b"\0\0\0\0\0\0\0\1"}, b"\0\0\0\0\0\0\0\1"),
        ({"error_code": proto.TopicNotFound, "error_message": "no"}, b""),
    ],
)
def test_a_registered_schema_has_a_version(answer: dict[str, Any], version: bytes) -> None:
    script = Script()
    link, request, asked = asked_to_register(script)
    script.feed(link, registered(asked, **answer))
    script.expect(RequestDone(request, version))


def test_a_schema_that_the_broker_refuses_fails() -> None:
    script = Script()
    link, request, asked = asked_to_register(script)
    refusal = registered(asked, error_code=proto.IncompatibleSchema, error_message="amount")
    script.feed(link, refusal)
    failed = script.expect_one(RequestFailed)
    assert (failed.request, type(failed.error)) == (request, IncompatibleSchema)


def test_a_broker_that_registers_no_schema_by_itself_is_named() -> None:
    script = Script()
    request = script.client.register_schema(script.now, "demo", STRING)
    script.find_topic(script.ready_link(version=14))
    failed = script.expect_one(RequestFailed)
    assert (failed.request, type(failed.error)) == (request, NotSupported)


def test_a_cancelled_registration_has_no_outcome() -> None:
    script = Script()
    link, request, asked = asked_to_register(script)
    script.client.abandon(script.now, request)
    script.feed(link, registered(asked, schema_version=b"\0"))
    assert script.said() == []


def test_a_failure_that_may_pass_is_asked_again_until_the_operation_timeout() -> None:
    """Rule LOOKUP-08: a lookup never retries, its caller does."""
    script = Script(operation_timeout=5.0)
    request = script.client.partitions(script.now, "demo")
    link = script.ready_link()
    asked = script.sent(link, Command.PARTITIONED_METADATA)
    script.feed(link, frame_partitions_failed(asked.request_id, proto.ServiceNotReady))
    (notice,) = script.notices
    assert isinstance(notice, Retrying)
    script.advance(1)
    again = script.sent(link, Command.PARTITIONED_METADATA)
    script.feed(link, frame_partitions(again.request_id, 0))
    script.expect(RequestDone(request, 0))
    late = script.client.partitions(script.now, "demo")
    script.advance(6)
    failed = script.expect_one(RequestFailed)
    assert failed.request == late
    assert isinstance(failed.error, TimedOut)


def test_a_final_failure_ends_the_query_at_once() -> None:
    script = Script()
    request = script.client.partitions(script.now, "demo")
    link = script.ready_link()
    asked = script.sent(link, Command.PARTITIONED_METADATA)
    script.feed(link, frame_partitions_failed(asked.request_id, proto.AuthorizationError, "not yours"))
    failed = script.expect_one(RequestFailed)
    assert failed.request == request
    assert isinstance(failed.error, AuthorizationError)
    script.advance(5)
    assert script.said() == []
    script.sent(link)


def test_a_cancelled_query_has_no_outcome() -> None:
    script = Script()
    request = script.client.partitions(script.now, "demo")
    link = script.ready_link()
    asked = script.sent(link, Command.PARTITIONED_METADATA)
    script.client.abandon(script.now, request)
    script.client.abandon(script.now, request)
    script.feed(link, frame_partitions(asked.request_id, 3))
    assert script.said() == []


def test_queries_fail_when_the_client_is_closed() -> None:
    script = Script()
    requests = [script.client.partitions(script.now, f"demo-{number}") for number in range(3)]
    script.ready_link()
    closing = script.client.close(script.now)
    said = script.said()
    failed = [output for output in said if isinstance(output, RequestFailed)]
    assert [output.request for output in failed] == requests
    assert all(isinstance(output.error, ClosedError) for output in failed)
    assert RequestDone(closing, None) in said
    for ask in (script.client.partitions, script.client.topics):
        with pytest.raises(ClosedError, match="the client is closed"):
            ask(script.now, "public/default")


@pytest.mark.parametrize(
    "namespace", ["", "public", "public/default/more", "a b/c", "persistent://public/default"]
)
def test_a_wrong_namespace_is_refused_and_nothing_is_asked(namespace: str) -> None:
    script = Script()
    with pytest.raises(InvalidTopicName):
        script.client.topics(script.now, namespace)
    assert script.said() == []


def test_a_wrong_topic_is_refused_and_nothing_is_asked() -> None:
    script = Script()
    with pytest.raises(InvalidTopicName):
        script.client.partitions(script.now, "x://public/default/demo")
    assert script.said() == []
