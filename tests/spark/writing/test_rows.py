"""From Arrow to messages: order, routes, what a row becomes, and what is refused."""

import random
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from pulsar_sansio import OutgoingMessage
from pulsar_sansio.schemas import STRING, KeyValueEncoding, KeyValueSchema
from pulsar_spark.errors import InvalidOption, InvalidRows, MissingOption
from pulsar_spark.reading.columns import ALL_COLUMNS
from pulsar_spark.writing.numbering import key_partition
from pulsar_spark.writing.original_schemas import OriginalSchemas
from pulsar_spark.writing.rows import Routing, in_order
from pulsar_spark.writing.write_columns import GIVEN, WRITTEN, check_columns

pytestmark = pytest.mark.spark

TOPIC = "persistent://public/default/t"
TIME = pa.timestamp("us", tz="UTC")


def batch(**columns: Any) -> Any:
    types = {"__eventTime": TIME, "__messageProperties": pa.map_(pa.string(), pa.string())}
    arrays = {name: pa.array(data, types.get(name)) for name, data in columns.items()}
    return pa.record_batch(arrays)


PAIR = KeyValueSchema(STRING, STRING, KeyValueEncoding.SEPARATED).info
INLINE = KeyValueSchema(STRING, STRING, KeyValueEncoding.INLINE).info
WRONG = replace(PAIR, properties=(("kv.encoding.type", "BESIDE"),))


def routed(rows: Any, partitions: int = 0, topic: str | None = TOPIC) -> dict[str, list[Any]]:
    routing = Routing(topic, lambda _: partitions)
    return {each.topic: list(each.messages) for each in routing.portions(rows)}


def seen(message: bytes | OutgoingMessage) -> tuple[Any, ...]:
    assert isinstance(message, OutgoingMessage)
    return message.payload, message.key, message.has_base64_key, message.event_time, message.properties


# --- what a row becomes ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.string(), pa.large_string()])
def test_values_alone_are_payloads(kind: Any) -> None:
    values = pa.array(["a", "é", ""], pa.string()).cast(kind)
    assert routed(pa.record_batch({"value": values})) == {TOPIC: [b"a", "é".encode(), b""]}


def test_a_null_value_is_a_null_message() -> None:
    (message,) = routed(pa.record_batch({"value": pa.array([None], pa.binary())}))[TOPIC]
    assert message.payload is None


def test_all_that_goes_with_a_message() -> None:
    rows = batch(
        value=[b"v", b"w"],
        __key=["k", None],
        __eventTime=[1_700_000_000_123_456, None],
        __messageProperties=[[("b", "2"), ("a", "1")], None],
        __orderingKey=[b"o", None],
    )
    first, second = routed(rows)[TOPIC]
    assert seen(first) == (b"v", "k", False, 1_700_000_000_123, {"a": "1", "b": "2"})
    assert first.ordering_key == b"o"
    assert seen(second) == (b"w", None, False, 0, None)


def test_keys_of_bytes_are_text_where_they_can_be() -> None:
    first, second = routed(batch(value=[b"v", b"w"], __key=[b"k\xc3\xa9", b"\xff"]))[TOPIC]
    assert (first.key, first.has_base64_key) == ("ké", False)
    assert (second.key, second.has_base64_key) == ("/w==", True)


@pytest.mark.parametrize("keys", [[b"k", None], [None, None]])
def test_keys_that_are_parts_of_values_are_bytes_or_null(keys: list[bytes | None]) -> None:
    """Rule SCHEMA-09."""
    rows = pa.record_batch({"value": pa.array([b"v", None]), "__key": pa.array(keys, pa.binary())})
    (portion,) = Routing(TOPIC, lambda _: 0, keys_are_bytes=True).portions(rows)
    expected = [(None, False, True) if key is None else ("aw==", True, False) for key in keys]
    assert [
        (each.key, each.has_base64_key, each.has_null_key)
        for each in portion.messages
        if isinstance(each, OutgoingMessage)
    ] == expected


@pytest.mark.parametrize("key_kind", [pa.binary(), pa.string()])
@pytest.mark.parametrize("keys", [["k", None, "k", None, "k", None], [None] * 6])
def test_keys_of_rows_with_definitions_of_their_own(keys: list[str | None], key_kind: Any) -> None:
    """Rule SCHEMA-09: only the key of a separated pair is bytes or marked as null. A wrong definition is none
    of a separated pair."""
    named = ["pair", "pair", "inline", "inline", "wrong", "wrong"]
    known = {"pair": PAIR, "inline": INLINE, "wrong": WRONG}
    rows = pa.record_batch(
        {
            "value": pa.array([b"v"] * 6),
            "__key": pa.array(keys, pa.string()).cast(key_kind),
            "__schemaTopic": pa.array(named),
            "__schemaVersion": pa.array([b"0"] * 6),
        }
    )
    routing = Routing(TOPIC, lambda _: 0, schemas=OriginalSchemas(lambda topic, _: known[topic]))
    portions = routing.portions(rows)
    found = [
        (each.key, each.has_base64_key, each.has_null_key)
        for portion in portions
        for each in portion.messages
        if isinstance(each, OutgoingMessage)
    ]
    pairs = [(None, False, True) if key is None else ("aw==", True, False) for key in keys[:2]]
    assert found == [*pairs, *((key, False, False) for key in keys[2:])]
    sizes = [size for portion in portions for size in portion.sizes]
    assert sizes == [1 if key is None else 2 for key in keys]


def test_sizes_count_what_is_sent() -> None:
    rows = batch(
        value=[b"vvv", b""],
        __key=["ké", None],
        __messageProperties=[[("a", "bé")], None],
        __orderingKey=[b"\xff" * 9, None],
    )
    (portion,) = Routing(TOPIC, lambda _: 0).portions(rows)
    assert list(portion.sizes) == [3 + 3 + 4 + 9, 0]


# --- where it goes -----------------------------------------------------------------------------------


def test_keys_go_where_the_java_client_puts_them_and_the_rest_goes_round() -> None:
    keys = ["a", None, "b", None, "a"]
    found = routed(batch(value=[b"0", b"1", b"2", b"3", b"4"], __key=keys), partitions=3)
    places = {
        (each if isinstance(each, bytes) else each.payload): int(topic[-1])
        for topic, messages in found.items()
        for each in messages
    }
    assert places == {
        b"0": key_partition("a", 3),
        b"1": 1,
        b"2": key_partition("b", 3),
        b"3": 0,
        b"4": key_partition("a", 3),
    }


def test_rows_without_keys_go_round_over_batches() -> None:
    routing = Routing(TOPIC, lambda _: 2)
    first = routing.portions(batch(value=[b"0", b"1", b"2"]))
    second = routing.portions(batch(value=[b"3", b"4"]))
    assert [(each.topic[-1], list(each.messages)) for each in first + second] == [
        ("0", [b"0", b"2"]),
        ("1", [b"1"]),
        ("0", [b"4"]),
        ("1", [b"3"]),
    ]


def test_a_row_may_say_its_topic_and_option_topic_wins() -> None:
    rows = batch(value=[b"0", b"1", b"2"], __topic=["x", "y", "public/default/x"])
    base = "persistent://public/default/"
    assert routed(rows, topic=None) == {base + "x": [b"0", b"2"], base + "y": [b"1"]}
    assert routed(rows) == {TOPIC: [b"0", b"1", b"2"]}


@pytest.mark.parametrize(
    ("topic", "reason"),
    [
        (None, "row 1 of the task has no topic"),
        ("a/b", "row 1 of the task, column __topic"),
        ("non-persistent://public/default/x", "is not persistent"),
    ],
)
def test_a_row_without_a_proper_topic_is_refused(topic: str | None, reason: str) -> None:
    with pytest.raises(InvalidRows, match=reason):
        routed(batch(value=[b"0", b"1"], __topic=["x", topic]), topic=None)


def test_a_row_that_cannot_be_a_message_is_named() -> None:
    with pytest.raises(InvalidRows, match="row 1 of the task cannot be a message: event_time"):
        routed(batch(value=[b"0", b"1"], __eventTime=[0, -5_000_000]))


# --- order -------------------------------------------------------------------------------------------


def test_the_order_depends_on_the_rows_alone() -> None:
    draw = random.Random(7)
    rows = [
        {
            "value": draw.choice([b"a", b"b", None]),
            "__key": draw.choice(["k", "l", None]),
            "__eventTime": draw.choice([1_000_000, 2_000_000, None]),
            "__messageProperties": draw.choice(
                [None, [], [("x", "1"), ("y", "2")], [("y", "2"), ("x", "1")]]
            ),
        }
        for _ in range(300)
    ]
    found = []
    for _ in range(3):
        draw.shuffle(rows)
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        whole = batch(**columns)
        parts = [whole.slice(0, 100), whole.slice(100, 0), whole.slice(100)]
        messages = [each for part in in_order(parts, True, None) for each in routed(part)[TOPIC]]
        found.append([seen(OutgoingMessage(each) if isinstance(each, bytes) else each) for each in messages])
    assert len(found[0]) == 300
    assert found[0] == found[1] == found[2]


def test_the_query_may_say_what_comes_first() -> None:
    rows = batch(value=[b"a", b"b", b"c", b"d"], n=[2, 1, 2, 1])
    ordered = [each for part in in_order([rows], True, ("n",)) for each in routed(part)[TOPIC]]
    assert ordered == [b"b", b"d", b"a", b"c"]


def test_topics_come_one_after_the_other() -> None:
    rows = batch(value=[b"a", b"b", b"c"], __topic=["y", "x", "y"])
    (part,) = in_order([rows], False, None)
    assert part.column("value").to_pylist() == [b"b", b"a", b"c"]


def test_no_rows_need_no_order() -> None:
    assert list(in_order([], True, None)) == []
    assert list(in_order([batch(value=[b"a"]).slice(1)], True, None)) == []


def test_what_cannot_be_compared_gives_no_order() -> None:
    rows = batch(value=[b"a", b"b"], __messageProperties=[[("a", "b")], None])
    with pytest.raises(InvalidRows, match="cannot be put in order by __messageProperties"):
        list(in_order([rows], True, ("__messageProperties",)))


# --- which columns -----------------------------------------------------------------------------------


def test_what_was_read_can_be_written() -> None:
    assert set(ALL_COLUMNS) == set(WRITTEN) - {"__schemaTopic"} | GIVEN
    check_columns([(name, column.ddl) for name, column in ALL_COLUMNS.items()], None, None)


@pytest.mark.parametrize(
    ("columns", "topic", "order_by", "error", "text"),
    [
        ([("value", "bigint")], "t", None, InvalidRows, "column value has the type bigint; allowed: binary"),
        ([("value", "binary"), ("__key", "int")], "t", None, InvalidRows, "column __key has the type int"),
        ([("value", "binary"), ("name", "string")], "t", None, InvalidRows, "column name cannot be written"),
        ([("__key", "string")], "t", None, InvalidRows, "column value is missing"),
        ([("value", "binary")], None, None, MissingOption, "option topic is required"),
        ([("value", "binary")], "t", ("n",), InvalidOption, "option orderBy: there is no column n"),
    ],
)
def test_columns_that_make_no_messages(
    columns: list[tuple[str, str]],
    topic: str | None,
    order_by: tuple[str, ...] | None,
    error: type[Exception],
    text: str,
) -> None:
    with pytest.raises(error, match=text):
        check_columns(columns, topic, order_by)


def test_a_column_to_order_by_need_not_be_written() -> None:
    check_columns([("value", "binary"), ("n", "bigint")], "t", ("n",))
