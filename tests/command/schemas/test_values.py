"""Values on the command line: JSON lines in, values out, and what is wrong with a line."""

import json
from pathlib import Path
from typing import Any

import pytest
import trio
from google.protobuf.source_context_pb2 import SourceContext

from pulsar_sansio import OutgoingMessage
from pulsar_sansio.schemas import INT32, ProtobufNativeSchema, Schema
from pulsar_trio import open_client
from tests.command.test_cli import BrokerThread, Command, Done, broker, command, one_line
from tests.command.test_messages import consume, produce, values

__all__ = ["broker", "command"]

RECORD = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "when", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "day", "type": ["null", {"type": "int", "logicalType": "date"}], "default": None},
        {"name": "at", "type": ["null", {"type": "long", "logicalType": "time-micros"}], "default": None},
        {
            "name": "price",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        },
        {"name": "seal", "type": {"type": "fixed", "name": "Seal", "size": 2}},
        {"name": "ratio", "type": "double"},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "parts", "type": {"type": "map", "values": "bytes"}},
        {"name": "next", "type": ["null", "Order"], "default": None},
    ],
}

ORDER: dict[str, Any] = {
    "id": "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
    "when": "2026-01-31T12:00:00+00:00",
    "day": "2026-01-31",
    "at": "12:30:00.000001",
    "price": "12.50",
    "seal": "AAE=",
    "ratio": "NaN",
    "tags": ["a", "ä"],
    "parts": {"k": "/w=="},
    "next": None,
}

NESTED = ORDER | {"next": ORDER}


def definition(tmp_path: Path, given: Any) -> str:
    file = tmp_path / "definition.json"
    file.write_text(json.dumps(given))
    return str(file)


def lines(*given: Any) -> bytes:
    return "".join(json.dumps(each) + "\n" for each in given).encode()


def produced_values(
    run: Command, at: BrokerThread, schema: str, given: bytes, *options: str
) -> list[dict[str, Any]]:
    done = produce(run, at, "--schema", schema, *options, given=given)
    assert done.code == 0, done.err
    return consume(run, at, len(given.splitlines()), "--json").objects


def test_records_of_avro(broker: BrokerThread, command: Command, tmp_path: Path) -> None:
    """A printed line is one that `produce` takes, and the topic's own definition makes no new version."""
    file = definition(tmp_path, {"type": "AVRO", "schema": RECORD})
    first = produced_values(command, broker, file, lines(NESTED), "--key", "k")
    assert [(each["key"], each["value"]) for each in first] == [("k", NESTED)]
    again = produced_values(command, broker, "topic", lines(first[0]["value"]))
    assert [each["value"] for each in again] == [NESTED]
    assert values(consume(command, broker, 1, name="again")) == [
        f"k: {json.dumps(NESTED, ensure_ascii=False)}"
    ]


def test_dates_may_be_the_numbers_of_avro(broker: BrokerThread, command: Command, tmp_path: Path) -> None:
    file = definition(tmp_path, {"type": "AVRO", "schema": RECORD})
    given = ORDER | {"when": 1_769_860_800_000, "day": 20_484, "at": 45_000_000_001, "price": 12.5}
    (message,) = produced_values(command, broker, file, lines(given))
    assert message["value"] == ORDER


def test_records_of_json(broker: BrokerThread, command: Command, tmp_path: Path) -> None:
    """A payload of JSON is printed as the producer wrote it: dates are numbers there."""
    file = definition(tmp_path, {"type": "JSON", "schema": json.dumps(RECORD)})
    given = ORDER | {"ratio": 0.5}
    (message,) = produced_values(command, broker, file, lines(given))
    assert message["value"] == given | {"when": 1_769_860_800_000, "day": 20_484, "at": 45_000_000_001}


@pytest.mark.parametrize(
    ("schema", "given"),
    [
        ("string", ["ä", ""]),
        ("bytes", ["/w=="]),
        ("boolean", [True, False]),
        ("int8", [-128]),
        ("INT64", [2**63 - 1]),
        ("float", [0.5, "NaN", "-Infinity"]),
        ("double", [1e300, "Infinity"]),
        ("date", ["2026-01-31T12:00:00+00:00"]),
        ("timestamp", ["2026-01-31T12:00:00.001000+00:00"]),
        ("instant", ["2026-01-31T12:00:00.000001+00:00"]),
        ("time", ["12:30:00.001000"]),
        ("local_date", ["2026-01-31"]),
        ("local_time", ["12:30:00.000001"]),
        ("local_date_time", ["2026-01-31T12:00:00"]),
    ],
)
def test_primitive_values(schema: str, given: list[Any], broker: BrokerThread, command: Command) -> None:
    messages = produced_values(command, broker, schema, lines(*given, None))
    printed = [each.get("value", each.get("base64")) for each in messages]
    assert printed == [*given, None]


def test_an_object_is_a_protobuf_message(broker: BrokerThread, command: Command) -> None:
    write(broker, ProtobufNativeSchema(SourceContext), SourceContext(file_name="a"))
    (message,) = consume(command, broker, 1, "--json").objects
    assert message["value"] == {"file_name": "a"}
    (again,) = produced_values(command, broker, "topic", lines({"file_name": "b"}))
    assert again["value"] == {"file_name": "b"}
    done = produce(command, broker, "--schema", "topic", given=lines({"name": "c"}))
    assert "line 1 of standard input is no value: schema PROTOBUF_NATIVE: " in one_line(done.err)


# --- pairs --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("encoding", "key"), [("SEPARATED", "b25l"), ("INLINE", None)])
def test_pairs(
    encoding: str, key: str | None, broker: BrokerThread, command: Command, tmp_path: Path
) -> None:
    pairs = {
        "type": "KEY_VALUE",
        "key": {"type": "STRING"},
        "value": {"type": "INT32"},
        "encoding": encoding,
    }
    given = [{"key": "one", "value": 1}, {"key": "one", "value": None}, {"key": None, "value": 2}]
    messages = produced_values(command, broker, definition(tmp_path, pairs), lines(*given))
    assert [each["value"] for each in messages] == given
    assert [each["key"] for each in messages] == [key, key, None]
    done = produce(command, broker, "--schema", "topic", given=lines({"key": "one"}))
    assert "line 1 of standard input is no value: schema KEY_VALUE: an object" in one_line(done.err)


def test_a_pair_has_its_own_key(broker: BrokerThread, command: Command, tmp_path: Path) -> None:
    pairs = {"type": "KEY_VALUE", "key": {"type": "STRING"}, "value": {"type": "STRING"}}
    for option in ("--key", "--key-separator"):
        done = produce(command, broker, "--schema", definition(tmp_path, pairs), option, "k")
        assert done.code == 2
        assert f"{option}: the key of each value is the key of its message" in one_line(done.err)


# --- what is wrong ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [(), ("--rate", "100000")])
@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"{", "is no JSON: Expecting property name enclosed in double quotes"),
        (b"\xff", "is no JSON: "),
        (b'"7"', "is no value: schema INT32: a whole number from -2**31 to 2**31 - 1"),
    ],
)
def test_a_wrong_line_is_named(
    line: bytes, why: str, rate: tuple[str, ...], broker: BrokerThread, command: Command
) -> None:
    done = produce(command, broker, "--schema", "int32", *rate, given=b"1\n2\n" + line + b"\n4\n")
    assert done.code == 1
    told = one_line(done.err)
    assert f"line 3 of standard input {why}" in told
    assert "(hint: the 2 lines before it were sent)" in told
    assert values(consume(command, broker, 2)) == ["1", "2"]


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"day": "soon"}, "day: an ISO 8601 date"),
        ({"price": "much"}, "price: the text of a decimal number"),
        ({"seal": "AAE"}, "seal: Base64 text"),
        ({"parts": {"k": 1}}, "parts['k']: Base64 text, not an int"),
        ({"next": ORDER | {"id": "me"}}, "next.id: the text of a UUID"),
        ({"extra": 1}, "Order has no field 'extra'"),
        ({"tags": "a"}, "tags: "),
    ],
)
def test_a_wrong_field_is_named(
    wrong: dict[str, Any], why: str, broker: BrokerThread, command: Command, tmp_path: Path
) -> None:
    file = definition(tmp_path, {"type": "AVRO", "schema": RECORD})
    done = produce(command, broker, "--schema", file, given=lines(ORDER | wrong))
    assert f"line 1 of standard input is no value: schema AVRO: {why}" in one_line(done.err)


def test_keys_before_values(broker: BrokerThread, command: Command) -> None:
    done = produce(command, broker, "--schema", "int32", "--key-separator", ":", given=b"a:1\nb:2\n")
    assert done.code == 0
    assert values(consume(command, broker, 2)) == ["a: 1", "b: 2"]


def test_a_topic_without_a_schema(broker: BrokerThread, command: Command) -> None:
    done = produce(command, broker, "--schema", "topic", given=b"1\n")
    assert done.code == 1
    assert "topic t has no schema (hint: " in one_line(done.err)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("no such", "is no file, and none of bytes, string, boolean"),
        ({"type": "record"}, "type: one of STRING, JSON"),
        ({"type": "AVRO", "schema": {"type": "record"}}, "schema AVRO: record: a name"),
        ({"type": "AVRO", "scheme": {}}, "'scheme' is none of type, name, schema, properties"),
        ({"type": "INT32", "schema": "int"}, "schema: INT32 has none"),
        ({"type": "KEY_VALUE", "key": {"type": "STRING"}}, "value: a definition is an object"),
        (
            {"type": "KEY_VALUE", "key": {"type": "STRING"}, "value": {"type": "STRING"}, "encoding": "both"},
            "encoding: SEPARATED or INLINE, not 'both'",
        ),
        ({"type": "PROTOBUF", "schema": {}}, "only the producer's own classes can write it"),
        ([], "a definition is an object"),
    ],
)
def test_a_wrong_definition_is_one_line(
    given: Any, why: str, broker: BrokerThread, command: Command, tmp_path: Path
) -> None:
    schema = given if isinstance(given, str) else definition(tmp_path, given)
    done = produce(command, broker, "--schema", schema, given=b"1\n")
    assert done.code == 2
    assert why in one_line(done.err)


def test_generated_messages_have_no_schema(command: Command) -> None:
    done = command("produce", "t", "--schema", "int32", "--count", "1")
    assert done.code == 2
    assert "argument --schema: not allowed with argument --count" in one_line(done.err)


# --- values that cannot be decoded --------------------------------------------------------------------------


def write(at: BrokerThread, schema: Schema[Any], *messages: Any) -> None:
    async def main() -> None:
        async with open_client(at.url) as client, client.create_producer("t", schema=schema) as producer:
            await producer.send_many(messages)

    trio.run(main)


def some_undecodable(at: BrokerThread) -> None:
    write(at, INT32, 1, OutgoingMessage(b"\xff"), OutgoingMessage(b"ab", key="k"), 2)


def told(done: Done) -> list[str]:
    return [line for line in done.err.splitlines() if "printed as its payload" in line]


def test_what_cannot_be_decoded_is_printed_as_it_is(broker: BrokerThread, command: Command) -> None:
    some_undecodable(broker)
    done = consume(command, broker, 4)
    assert values(done) == ["1", "\\xff", "k: ab", "2"]
    (line,) = told(done)
    assert "schema INT32: 4 bytes, not 1" in line
    objects = consume(command, broker, 4, "--json", name="json").objects
    assert [each.get("value", each.get("base64")) for each in objects] == [1, "/w==", "ab", 2]


def test_payloads_in_place_of_values(broker: BrokerThread, command: Command) -> None:
    some_undecodable(broker)
    done = consume(command, broker, 4, "--payloads")
    assert values(done)[0] == "\\x00\\x00\\x00\\x01"
    assert told(done) == []
