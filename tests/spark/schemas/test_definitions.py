"""`Definitions` and decoders: what is asked, once for each version, and payloads that hold no value."""

from typing import Any

import pyarrow as pa
import pytest

from pulsar_sansio.schemas import (
    INT32,
    STRING,
    AvroSchema,
    JsonSchema,
    KeyValueEncoding,
    KeyValueSchema,
    SchemaInfo,
    SchemaType,
)
from pulsar_spark.schemas import definitions
from pulsar_spark.schemas.avro_types import NoSparkTypeError
from pulsar_spark.schemas.decoders import decode_each, decoder_of
from pulsar_spark.schemas.definitions import Definitions, NoDecoderError, version_words
from pulsar_spark.schemas.value_types import UnfitError

pytestmark = pytest.mark.spark

RECORD: dict[str, Any] = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "long"}]}
AVRO = AvroSchema(definition=RECORD)
STRUCT = pa.struct([("a", pa.int64())])


class Registry:
    """The definitions of all topics, and what was asked."""

    def __init__(self, **known: SchemaInfo) -> None:
        self.known = known
        self.asked: list[tuple[str, bytes | None]] = []

    def __call__(self, topic: str, version: bytes | None) -> SchemaInfo | None:
        self.asked.append((topic, version))
        return self.known.get("latest" if version is None else version.decode())


def test_a_version_is_asked_for_once_for_all_partitions() -> None:
    """Rule SCHEMA-07."""
    registry = Registry(one=AVRO.info, latest=AVRO.info)
    found = Definitions(registry, STRUCT, None)
    for topic in ("t-partition-0", "t-partition-1", "persistent://public/default/t"):
        assert found.decode(topic, b"one")([AVRO.encode({"a": 1})], [None]).to_pylist() == [{"a": 1}]
        found.decode(topic, None)
    found.decode("other", b"one")
    assert registry.asked == [("t-partition-0", b"one"), ("t-partition-0", None), ("other", b"one")]


def test_those_used_longest_ago_are_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(definitions, "MAX_DEFINITIONS", 2)
    registry = Registry(**dict.fromkeys("abc", AVRO.info))
    found = Definitions(registry, STRUCT, None)
    for version in "abacab":
        found.decode("t", version.encode())
    assert [version for _, version in registry.asked] == [b"a", b"b", b"c", b"b"]


@pytest.mark.parametrize(
    ("version", "says"),
    [
        (b"gone", "the broker has no such version"),
        (None, "the topic has no schema"),
        (b"text", "value: string where struct<`a`:bigint> is wanted"),
        (b"proto", "values of the schema type PROTOBUF have no type in Spark"),
        (b"native", "schema PROTOBUF_NATIVE: the definition is wrong"),
        (b"pair", "schema KEY_VALUE: no length at byte 0 of 0"),
    ],
)
def test_a_version_without_values_of_the_type_says_why(version: bytes | None, says: str) -> None:
    registry = Registry(
        text=STRING.info,
        proto=SchemaInfo(SchemaType.PROTOBUF),
        native=SchemaInfo(SchemaType.PROTOBUF_NATIVE),
        pair=SchemaInfo(SchemaType.KEY_VALUE),
    )
    found = Definitions(registry, STRUCT, None)
    for _ in range(2):
        with pytest.raises(NoDecoderError, match=says):
            found.decode("t", version)
    assert len(registry.asked) == 1


def test_versions_in_words() -> None:
    assert version_words(bytes(7) + b"\x03") == "schema version 3"
    assert version_words(b"\xab") == "schema version ab"
    assert version_words(None) == version_words(b"") == "no schema version"


@pytest.mark.parametrize(
    ("info", "good", "bad", "expected"),
    [
        (AVRO.info, AVRO.encode({"a": 5}), b"", {"a": 5}),
        (JsonSchema(definition=RECORD).info, b'{"a":5,"z":1}', b'{"a":5.5}', {"a": 5}),
        (JsonSchema(definition=RECORD).info, b'{"a":5}', b"{}", {"a": 5}),
        (INT32.info, b"\0\0\0\5", b"\0\0\0\0\5", 5),
        (STRING.info, b"a", b"\xff", "a"),
        (
            KeyValueSchema(STRING, INT32, KeyValueEncoding.INLINE).info,
            b"\0\0\0\1k\0\0\0\4\0\0\0\5",
            b"\0\0\0\1k\0\0\0\4\0\0\0",
            {"key": "k", "value": 5},
        ),
        (
            SchemaInfo(SchemaType.TIMESTAMP),
            bytes(8),
            b"\x7f" * 8,
            pa.scalar(0, pa.timestamp("us", tz="UTC")).as_py(),
        ),
    ],
    ids=["AVRO", "JSON, a number", "JSON, a field", "INT32", "STRING", "KEY_VALUE", "TIMESTAMP"],
)
def test_payloads_that_hold_no_value_are_found_among_others(
    info: SchemaInfo, good: bytes, bad: bytes, expected: Any
) -> None:
    decoder = decoder_of(info)
    payloads = [good, None, bad, good, good, bad, None, good]
    found: list[Any] = []
    for count, part in decode_each(decoder.decode, payloads, [None] * 8):
        found += ["bad"] * count if isinstance(part, Exception) else part.to_pylist()
    assert found == [expected, None, "bad", expected, expected, "bad", None, expected]


def test_a_key_that_holds_no_value_is_found_among_others() -> None:
    """Rule SCHEMA-09."""
    decoder = decoder_of(KeyValueSchema(INT32, STRING, KeyValueEncoding.SEPARATED).info)
    keys = [None, b"\0\0\0\1", b"\0", b"\0\0\0\2"]
    found: list[Any] = [part for _, part in decode_each(decoder.decode, [b"a", None, None, b"b"], keys)]
    assert isinstance(found[1], UnfitError)
    assert [part.to_pylist() for part in found if not isinstance(part, Exception)] == [
        [{"key": None, "value": "a"}, {"key": 1, "value": None}],
        [{"key": 2, "value": "b"}],
    ]


def test_a_definition_that_is_wrong() -> None:
    with pytest.raises(NoSparkTypeError, match="the definition is wrong"):
        decoder_of(SchemaInfo(SchemaType.AVRO, "", b"{"))
