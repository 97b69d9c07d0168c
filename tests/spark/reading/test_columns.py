"""Messages as columns: what is taken apart in runs is what the messages say one by one."""

from base64 import b64encode
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsar_sansio import FrameError, Message, Messages, RawBatch, ReceivedBatch, ReceivedSingles
from pulsar_sansio import encode_message_id as encode_id
from pulsar_sansio.model.message import Entry, Source
from pulsar_sansio.wire import (
    MessageMetadata,
    SingleMessageMetadata,
    encode_single,
    encode_single_metadata,
)
from pulsar_spark.errors import BadColumn, RecordBatchTooLarge
from pulsar_spark.reading import parts
from pulsar_spark.reading.columns import ALL_COLUMNS, SCHEMA, TIMESTAMP, Builder

pytestmark = pytest.mark.spark

TOPIC = "persistent://public/default/t-partition-3"
YEAR_9999 = 253_402_300_799_999
"""Its last millisecond, and the last one of Python and Spark."""
Member = tuple[dict[str, Any], bytes]
"""Fields of a message's header in a batch, and its payload."""


def batch(members: Sequence[Member], place: tuple[int, int] = (5, 7), **fields: Any) -> ReceivedBatch:
    """Return a batch as a reader with `raw_batches` delivers it."""
    data = b"head" + b"".join(
        encode_single(SingleMessageMetadata(**header), body) for header, body in members
    )
    metadata = MessageMetadata(
        "producer", 1000, 1_700_000_000_123, num_messages_in_batch=len(members), **fields
    )
    raw_batches = RawBatch(data, len(members), 4)
    entry = Entry(Source(TOPIC, 3), place, metadata, 2, None, raw_batches, len(members))
    return ReceivedBatch(entry, raw_batches, range(len(members)))


def built(*items: Any, schema: Any = SCHEMA) -> Any:
    made = Builder(schema)
    for item in items:
        made.add(item)
    result = made.finish()
    result.validate(full=True)
    assert result.schema == schema
    return result


def row(message: Message) -> dict[str, Any]:
    """Return the columns that the message itself calls for. Times are numbers."""
    header: Any = message.entry.header
    sequence_id = message.sequence_id
    return {
        "value": message.value,
        "__key": message.key_bytes,
        "__topic": TOPIC,
        "__messageId": encode_id(message.message_id),
        "__publishTime": message.publish_time * 1000,
        "__eventTime": message.event_time * 1000 if 0 < message.event_time <= YEAR_9999 else None,
        "__messageProperties": list(message.properties.items()),
        "__partition": 3,
        "__ledgerId": message.message_id.ledger_id,
        "__entryId": message.message_id.entry_id,
        "__batchIndex": message.message_id.batch_index,
        "__producerName": message.producer_name,
        "__sequenceId": sequence_id - 2**64 if sequence_id >= 2**63 else sequence_id,
        "__orderingKey": message.ordering_key,
        "__schemaVersion": header.schema_version,
        "__size": len(message.data),
        "__replicatedFrom": header.replicated_from,
        "__deliverAt": None if header.deliver_at_time is None else header.deliver_at_time * 1000,
        "__redeliveryCount": 2,
    }


def said(result: Any) -> list[dict[str, Any]]:
    """Rows of a record batch, times as numbers."""
    arrays = [column.cast(pa.int64()) if column.type == TIMESTAMP else column for column in result.columns]
    return pa.RecordBatch.from_arrays(arrays, names=result.schema.names).to_pylist()


# --- any batch ---------------------------------------------------------------------------------------

texts = st.text(st.characters(codec="utf-8"), max_size=3)
fields = st.fixed_dictionaries(
    {},
    optional={
        "sequence_id": st.sampled_from([0, 1, 127, 128, 16383, 2**21, 2**35, 2**63 - 1, 2**63 + 5]),
        "partition_key": texts,
        "event_time": st.sampled_from([0, 1, YEAR_9999, YEAR_9999 + 1, 2**62, 2**63 + 1]),
        "ordering_key": st.binary(max_size=3),
        "null_value": st.booleans(),
        "properties": st.lists(st.tuples(st.sampled_from(["a", "b", "é"]), texts), max_size=3),
    },
)
members = st.tuples(fields, st.sampled_from([b"", b"x", b"y" * 50, b"z" * 200]))
runs = st.lists(st.tuples(members, st.integers(1, 12)), min_size=1, max_size=6)


@settings(max_examples=150)
@given(runs)
def test_every_batch_is_what_its_messages_say(repeated: list[tuple[Member, int]]) -> None:
    item = batch([member for member, times in repeated for _ in range(times)])
    assert said(built(item)) == [row(message) for message in Messages([item])]


def test_what_differs_in_a_run() -> None:
    """All have one template: only keys, numbers and payloads differ."""
    header = [
        {
            "sequence_id": 20_000 + n,
            "partition_key": f"k{n:04}",
            "event_time": 1_700_000_000_000 + n,
            "properties": [("first", f"{n % 10}"), ("second", "x")],
        }
        for n in range(300)
    ]
    item = batch([(each, b"%05d" % n) for n, each in enumerate(header)], schema_version=b"\0" * 8)
    assert said(built(item)) == [row(message) for message in Messages([item])]


def test_ids_of_a_large_batch() -> None:
    """Their length changes at 128 and at 16384."""
    item = batch([({}, b"x")] * 17_000)
    schema = pa.schema(
        [SCHEMA.field("__messageId"), SCHEMA.field("__batchIndex"), SCHEMA.field("__sequenceId")]
    )
    made = built(item, schema=schema).to_pydict()
    assert made["__messageId"] == [encode_id(message.message_id) for message in Messages([item])]
    assert made["__batchIndex"] == list(range(17_000))
    assert made["__sequenceId"] == list(range(1000, 18_000))


def test_several_entries_in_one_record_batch() -> None:
    items = [
        batch([({}, b"a")] * 10),
        batch([({}, b"b")], (5, 8), replicated_from="elsewhere"),
        batch([({}, b"c")] * 3, (6, 0), deliver_at_time=1_800_000_000_000),
    ]
    expected = [row(message) for item in items for message in Messages([item])]
    assert said(built(*items)) == expected


def test_a_builder_begins_anew_after_each_record_batch() -> None:
    made = Builder(SCHEMA)
    for _ in range(3):
        made.add(item := batch([({"partition_key": "k"}, b"a" * 100_000)] * 5))
        assert said(made.finish()) == [row(message) for message in Messages([item])]
    assert made.finish().num_rows == 0


# --- what is special ---------------------------------------------------------------------------------


def test_keys_of_bytes() -> None:
    key = b64encode(b"\xff\0").decode()
    item = batch([({"partition_key": key, "partition_key_b64_encoded": True}, b"x")] * 20)
    assert built(item).column("__key").to_pylist() == [b"\xff\0"] * 20


def test_keys_that_are_not_what_they_say() -> None:
    item = batch([({"partition_key": "é", "partition_key_b64_encoded": True}, b"x")] * 20)
    assert built(item).column("__key").to_pylist() == ["é".encode()] * 20


def test_times_that_no_timestamp_can_say() -> None:
    item = batch([({"event_time": 2**63 - 1}, b"x")] * 20, deliver_at_time=2**63 - 1)
    assert built(item).column("__eventTime").null_count == 20
    assert built(item).column("__deliverAt").null_count == 20


@pytest.mark.parametrize("numbered", [{"sequence_id": 2**64 - 1}, {}], ids=["member", "batch"])
@pytest.mark.parametrize("count", [2, 20])
def test_sequence_ids_of_64_bits(numbered: dict[str, int], count: int) -> None:
    item = batch([(numbered, b"x")] * count)
    item.entry.header.sequence_id = 2**64 - 1  # type: ignore[misc]
    expected = [-1] * count if numbered else list(range(-1, count - 1))
    assert built(item).column("__sequenceId").to_pylist() == expected


def test_what_compaction_took_out_is_no_row() -> None:
    gone = {"compacted_out": True, "partition_key": "k"}
    item = batch([({}, b"0"), (gone, b""), (gone, b""), ({}, b"3"), *[(gone, b"")] * 20, ({}, b"24")])
    result = built(item)
    assert result.column("value").to_pylist() == [b"0", b"3", b"24"]
    assert result.column("__batchIndex").to_pylist() == [0, 3, 24]


def test_nothing_is_left_of_a_batch() -> None:
    assert built(batch([({"compacted_out": True}, b"")] * 3)).num_rows == 0


def test_of_two_properties_with_one_name_the_last_counts() -> None:
    item = batch([({"properties": [("a", "1"), ("a", "2")]}, b"x")] * 20)
    assert built(item).column("__messageProperties").to_pylist() == [[("a", "2")]] * 20


def test_text_that_is_not_utf_8() -> None:
    item = batch([({}, b"\xff")] * 20, replicated_from="\udcff")
    assert built(item).column("__replicatedFrom").to_pylist() == ["?"] * 20
    with pytest.raises(BadColumn, match="'value': a message is not UTF-8 text; ask for the column as binary"):
        built(item, schema=pa.schema([("value", pa.string())]))
    marked = batch([({"properties": [("n\udcff", "v")], "partition_key": "k"}, b"x")] * 20)
    assert built(marked).column("__messageProperties").to_pylist() == [[("n?", "v")]] * 20
    fine = batch([({"partition_key": "k"}, "é".encode())] * 20)
    schema = pa.schema([("value", pa.string()), ("__key", pa.string())])
    assert built(fine, schema=schema).to_pylist() == [{"value": "é", "__key": "k"}] * 20


@pytest.mark.parametrize("schema", [SCHEMA, pa.schema([SCHEMA.field("value")])], ids=["all", "value"])
def test_entries_of_one_message(schema: Any) -> None:
    source = Source(TOPIC, 3)
    headers = [MessageMetadata("producer", 7 + n, 1_700_000_000_000, partition_key=f"k{n}") for n in range(3)]
    item = ReceivedSingles(source, [(5, n) for n in range(3)], headers, 2, Any, [b"a", b"", b"c"], Any)  # type: ignore[arg-type]
    expected = [row(message) for message in Messages([item])]
    for each in expected:
        for name in set(each) - set(schema.names):
            del each[name]
    assert said(built(item, schema=schema)) == expected
    listed = list(Messages([item]))
    assert said(built(listed, schema=schema)) == expected


@pytest.mark.parametrize("cut", [1, 5, 60, 2000])
def test_a_batch_that_ends_too_early(cut: int) -> None:
    whole = batch([({"sequence_id": n}, b"x" * 50) for n in range(100)])
    data = whole.entry.batch.data[:-cut]  # type: ignore[union-attr]
    raw_batches = RawBatch(data, 100, 4)
    entry = Entry(Source(TOPIC, 3), (5, 7), whole.entry.header, 0, None, raw_batches, 100)
    with pytest.raises(FrameError):
        built(ReceivedBatch(entry, raw_batches, range(100)))


def test_a_batch_with_something_behind_it() -> None:
    whole = batch([({"sequence_id": n}, b"x" * 50) for n in range(100)])
    raw_batches = RawBatch(whole.entry.batch.data + b"more", 100, 4)  # type: ignore[union-attr]
    entry = Entry(Source(TOPIC, 3), (5, 7), whole.entry.header, 0, None, raw_batches, 100)
    with pytest.raises(FrameError):
        built(ReceivedBatch(entry, raw_batches, range(100)))


@settings(max_examples=200)
@given(st.binary(min_size=6, max_size=120), st.integers(1, 20), st.integers(0, 30))
def test_whatever_comes_only_frame_errors_go(data: bytes, size: int, alike: int) -> None:
    member = encode_single_metadata(SingleMessageMetadata(2, sequence_id=5))
    stored = (len(member).to_bytes(4, "big") + member + b"ab") * alike + data
    if size + alike > len(stored) // 6:
        return
    raw_batches = RawBatch(stored, size + alike, 0)
    header = MessageMetadata("producer", 0, 0, num_messages_in_batch=size + alike)
    entry = Entry(Source(TOPIC, 3), (5, 7), header, 0, None, raw_batches, size + alike)
    with suppress(FrameError):
        built(ReceivedBatch(entry, raw_batches, range(size + alike)))


def test_headers_count_in_the_size_where_they_are_wanted() -> None:
    """A record batch of such rows would otherwise have no bound."""
    header = {"partition_key": "k" * 1000, "properties": [("n", "v" * 1000)], "ordering_key": b"o" * 1000}
    for count in (3, 20):
        made = Builder(SCHEMA)
        made.add(batch([(header, b"")] * count))
        assert made.size >= 3000 * count


def test_a_column_has_no_more_bytes_than_arrow_can_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "MOST_BYTES", 100_000)
    made = Builder(pa.schema([("value", pa.binary())]))
    made.add(batch([({}, b"x" * 1000)] * 90))
    with pytest.raises(RecordBatchTooLarge, match="Lower the options receiverQueue and batchBytes"):
        made.add(batch([({}, b"x" * 1000)] * 20))


# --- schemas -----------------------------------------------------------------------------------------


def test_nulls_where_there_may_be_none() -> None:
    schema = pa.schema([pa.field("__key", pa.binary(), nullable=False)])
    assert built(batch([({"partition_key": "k"}, b"x")]), schema=schema).to_pydict() == {"__key": [b"k"]}
    with pytest.raises(BadColumn, match="'__key': it is asked for as NOT NULL, and a message has none"):
        built(batch([({}, b"x")]), schema=schema)


def test_only_what_is_asked_for_in_that_order() -> None:
    names = ["__entryId", "value", "__key"]
    schema = pa.schema([(name, ALL_COLUMNS[name].arrow) for name in names])
    assert built(batch([({}, b"x")]), schema=schema).to_pydict() == {
        "__entryId": [7],
        "value": [b"x"],
        "__key": [None],
    }
