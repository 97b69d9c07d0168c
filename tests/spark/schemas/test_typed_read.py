"""`valueType=schema`: values as the topic's schema has them, in a real Spark."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import pytest
from pyspark.errors import AnalysisException, PythonException
from pyspark.sql import DataFrame, Row, SparkSession

from pulsar_sansio import OutgoingMessage
from pulsar_sansio.schemas import (
    BOOLEAN,
    DOUBLE,
    INSTANT,
    INT8,
    INT32,
    INT64,
    LOCAL_DATE,
    LOCAL_DATE_TIME,
    STRING,
    TIMESTAMP,
    AvroSchema,
    AvroType,
    JsonSchema,
    KeyValue,
    KeyValueEncoding,
    KeyValueSchema,
    Schema,
)
from tests.spark.scenes.brokers import SparkBroker
from tests.spark.scenes.sending import send

pytestmark = pytest.mark.spark

DECIMAL = AvroType({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2})


@dataclass
class Line:
    article: str
    count: int


@dataclass
class Order:
    id: str
    price: Annotated[Decimal, DECIMAL]
    day: date
    at: datetime
    lines: list[Line]
    counts: dict[str, int]
    data: bytes
    note: str | None = None


ORDER = Order(
    "o1",
    Decimal("1.25"),
    date(2026, 1, 2),
    datetime(2026, 1, 2, 3, 4, 5, 678901, UTC),
    [Line("a", 1), Line("b", 2)],
    {"n": 1},
    b"\xff",
)
ORDER_TYPE = (
    "struct<id:string,price:decimal(9,2),day:date,at:timestamp,lines:array<struct<article:string,count:bigint>>,"
    "counts:map<string,bigint>,data:binary,note:string>"
)


@dataclass
class First:
    id: str
    amount: int


@dataclass
class Second:
    state: str = "new"
    amount: int = 1
    note: str | None = None
    id: str = ""


def read(spark: SparkSession, broker: SparkBroker, schema: str | None = None, **options: Any) -> DataFrame:
    reader = spark.read.format("pulsar").option("service.url", broker.url).option("valueType", "schema")
    reader = reader.options(**options)
    return (reader if schema is None else reader.schema(schema)).load()


def sent(broker: SparkBroker, topic: str, schema: Schema[Any], *values: Any) -> None:
    """Send values as a producer with that schema does; bytes go as they are, None is a null value."""
    payloads: list[bytes | OutgoingMessage] = [
        OutgoingMessage(None) if each is None else each if isinstance(each, bytes) else schema.encode(each)
        for each in values
    ]
    send(broker.url, topic, payloads, schema=schema)


def values(frame: DataFrame) -> Sequence[Any]:
    """The values in the order of their messages."""
    rows = frame.select("value", "__messageId").orderBy("__messageId").collect()
    return [plain(row.value) for row in rows]


def plain(value: Any) -> Any:
    return value.asDict(recursive=True) if isinstance(value, Row) else value


# --- types ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [AvroSchema, JsonSchema])
def test_a_record_becomes_a_struct(spark: SparkSession, broker: SparkBroker, topic: str, kind: Any) -> None:
    if kind is AvroSchema:
        schema: Schema[Any] = AvroSchema(Order)
        expected: dict[str, Any] = {"day": date(2026, 1, 2), "at": datetime(2026, 1, 2, 3, 4, 5, 678901)}
        kinds = ORDER_TYPE
    else:  # a dataclass has days and moments as text in JSON
        schema = JsonSchema(Order)
        expected = {"day": "2026-01-02", "at": "2026-01-02T03:04:05.678901+00:00"}
        kinds = ORDER_TYPE.replace("day:date", "day:string").replace("at:timestamp", "at:string")
    sent(broker, topic, schema, *[ORDER] * 20, None)
    frame = read(spark, broker, topic=topic)
    assert dict(frame.dtypes)["value"] == kinds
    *found, last = values(frame)
    whole = {
        "id": "o1",
        "price": Decimal("1.25"),
        "lines": [{"article": "a", "count": 1}, {"article": "b", "count": 2}],
        "counts": {"n": 1},
        "data": bytearray(b"\xff"),
        "note": None,
        **expected,
    }
    assert found == [whole] * 20
    assert last is None


@pytest.mark.parametrize(
    ("schema", "kind", "given", "expected"),
    [
        (STRING, "string", "grüße", "grüße"),
        (BOOLEAN, "boolean", True, True),
        (INT8, "tinyint", -3, -3),
        (INT32, "int", -(2**31), -(2**31)),
        (INT64, "bigint", 2**62, 2**62),
        (DOUBLE, "double", 0.1, 0.1),
        (TIMESTAMP, "timestamp", datetime(2026, 1, 2, 3, tzinfo=UTC), datetime(2026, 1, 2, 3)),
        (INSTANT, "timestamp", datetime(1960, 1, 1, 0, 0, 0, 1, UTC), datetime(1960, 1, 1, 0, 0, 0, 1)),
        (LOCAL_DATE, "date", date(1582, 10, 15), date(1582, 10, 15)),
        (LOCAL_DATE_TIME, "timestamp_ntz", datetime(1, 1, 1), datetime(1, 1, 1)),
    ],
    ids=lambda given: given.info.type.name if isinstance(given, Schema) else "",
)
def test_primitives(
    spark: SparkSession,
    our_broker: SparkBroker,
    topic: str,
    schema: Schema[Any],
    kind: str,
    given: Any,
    expected: Any,
) -> None:
    """Rule SCHEMA-08."""
    sent(our_broker, topic, schema, *[given] * 9, None)
    frame = read(spark, our_broker, topic=topic)
    assert dict(frame.dtypes)["value"] == kind
    assert values(frame) == [expected] * 9 + [None]


def test_pairs_of_key_and_value(spark: SparkSession, broker: SparkBroker, topic: str) -> None:
    """Rule SCHEMA-09. Both encodings become one struct."""
    pairs: list[Any] = [KeyValue("k", First("o1", 1)), KeyValue("l", None)]
    expected = [{"key": "k", "value": {"id": "o1", "amount": 1}}, {"key": "l", "value": None}]
    for name, kind in (("avro", AvroSchema(First)), ("json", JsonSchema(First))):
        inline = KeyValueSchema(STRING, kind, KeyValueEncoding.INLINE)
        sent(broker, f"{topic}-{name}-i", inline, *pairs)
        separated = KeyValueSchema(STRING, kind, KeyValueEncoding.SEPARATED)
        messages = [
            OutgoingMessage(separated.encode(each) or None, key=separated.encode_key(each)) for each in pairs
        ]
        send(broker.url, f"{topic}-{name}-s", messages, schema=separated)
        for place in ("i", "s"):
            frame = read(spark, broker, topic=f"{topic}-{name}-{place}")
            assert dict(frame.dtypes)["value"] == "struct<key:string,value:struct<id:string,amount:bigint>>"
            assert values(frame) == expected


# --- evolution -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [AvroSchema, JsonSchema])
def test_versions_in_one_stream_become_values_of_the_planned_one(
    spark: SparkSession, broker: SparkBroker, topic: str, tmp_path: Path, kind: Any
) -> None:
    """Rule SCHEMA-10. The first query was planned with the first version, the second with the second."""
    sent(broker, topic, kind(First), *(First(f"o{number}", number) for number in range(5)))
    reader = spark.readStream.format("pulsar").option("service.url", broker.url).option("topic", topic)
    reader = reader.options(valueType="schema", startingOffsets="earliest", maxPartitions="1")
    before = reader.load()
    sent(broker, topic, kind(Second), Second("old", 5, "n", "o5"), Second("old", 6, None, "o6"))
    sent(broker, topic, kind(First), First("o7", 7))
    after = reader.load()
    written = [{"id": f"o{number}", "amount": number} for number in range(8)]
    assert streamed(before, tmp_path / "before") == written
    assert streamed(after, tmp_path / "after") == [
        {**each, "state": "old" if each["amount"] in (5, 6) else "new", "note": note}
        for each, note in zip(written, [*[None] * 5, "n", None, None], strict=True)
    ]


def streamed(frame: DataFrame, folder: Path) -> Sequence[Any]:
    """Run the stream to the end of its topics; return the values in the order of their messages."""
    name = f"typed_{folder.name}"
    writer = frame.writeStream.format("memory").queryName(name).trigger(availableNow=True)
    writer.option("checkpointLocation", str(folder)).start().awaitTermination()
    found = values(frame.sparkSession.table(name))
    frame.sparkSession.catalog.dropTempView(name)
    return found


def test_a_schema_of_the_users_is_the_reader_s(
    spark: SparkSession, our_broker: SparkBroker, topic: str
) -> None:
    sent(our_broker, topic, AvroSchema(First), First("o1", 1))
    schema = "`__messageId` binary, value struct<amount: double, more: array<int>>"
    assert values(read(spark, our_broker, schema, topic=topic)) == [{"amount": 1.0, "more": None}]
    narrow = read(spark, our_broker, "value struct<amount: int>", topic=topic)
    with pytest.raises(PythonException, match=r"value.amount: bigint where int is wanted"):
        narrow.collect()


# --- what cannot be decoded ----------------------------------------------------------------------------


def test_messages_that_hold_no_value(spark: SparkSession, broker: SparkBroker, topic: str) -> None:
    sent(
        broker, topic, AvroSchema(First), First("o1", 1), b"\x08ab", None, First("o2", 2), b"", First("o3", 3)
    )
    frame = read(spark, broker, topic=topic)
    with pytest.raises(
        PythonException, match=rf"{topic}: message \d+:\d+:1 \(schema version 0\) .* cut or of"
    ):
        frame.collect()
    good = [{"id": "o1", "amount": 1}, None, None, {"id": "o2", "amount": 2}, None, {"id": "o3", "amount": 3}]
    assert values(read(spark, broker, topic=topic, undecodable="null")) == good
    kept = read(spark, broker, topic=topic, undecodable="bytes")
    assert values(kept) == good
    rows = kept.orderBy("__messageId").collect()
    assert [row["__undecodable"] for row in rows] == [None, b"\x08ab", None, None, b"", None]


def test_a_message_without_a_version_is_read_with_the_topics_definition(
    spark: SparkSession, our_broker: SparkBroker, topic: str
) -> None:
    sent(our_broker, topic, AvroSchema(First), First("o1", 1))
    send(our_broker.url, topic, [AvroSchema(First).encode(First("o2", 2))])
    assert [each["id"] for each in values(read(spark, our_broker, topic=topic))] == ["o1", "o2"]


def test_the_column_of_bytes_has_to_be_in_a_schema(
    spark: SparkSession, our_broker: SparkBroker, topic: str
) -> None:
    sent(our_broker, topic, STRING, "a", b"\xff")
    options = {"topic": topic, "undecodable": "bytes"}
    with pytest.raises(AnalysisException, match="undecodable=bytes needs the column __undecodable binary"):
        read(spark, our_broker, "value string", **options).collect()
    frame = read(spark, our_broker, "`__undecodable` binary, value string", **options)
    assert sorted(map(tuple, frame.collect()), key=str) == [(None, "a"), (bytearray(b"\xff"), None)]


# --- inference -----------------------------------------------------------------------------------------


def test_topics_of_a_query_have_to_agree(spark: SparkSession, broker: SparkBroker, topic: str) -> None:
    broker.admin.create_partitioned_topic(f"{topic}-a", 2)
    sent(broker, f"{topic}-a-partition-0", AvroSchema(First), First("o1", 1))
    sent(broker, f"{topic}-b", JsonSchema(First), First("o2", 2))
    sent(broker, f"{topic}-c", INT64, 3)
    both = read(spark, broker, topics=f"{topic}-a,{topic}-b")
    assert sorted(each["id"] for each in values(both)) == ["o1", "o2"]
    says = f"topics {topic}-a and {topic}-c disagree: struct<`id`:string,`amount`:bigint> and bigint"
    with pytest.raises(AnalysisException, match=says):
        read(spark, broker, topics=f"{topic}-a,{topic}-c")


def test_a_topic_without_a_type_says_so(spark: SparkSession, our_broker: SparkBroker, topic: str) -> None:
    send(our_broker.url, f"{topic}-none", [b"bytes"])
    with pytest.raises(
        AnalysisException, match=f"topic {topic}-none has no schema: read it with valueType=bytes"
    ):
        read(spark, our_broker, topic=f"{topic}-none")
    recursive = AvroSchema(
        definition="""{"type": "record", "name": "Tree", "fields": [
            {"name": "left", "type": ["null", "Tree"], "default": null}]}"""
    )
    sent(our_broker, f"{topic}-tree", recursive, {"left": {"left": None}})
    with pytest.raises(AnalysisException, match=r"-tree: value.left: recursive, Tree holds itself"):
        read(spark, our_broker, topic=f"{topic}-tree")
