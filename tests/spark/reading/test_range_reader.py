"""Ranges of a topic as record batches: where they end, what they leave out, what they survive."""

import socket
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import Any

import pyarrow as pa
import pytest

from pulsar_sansio import (
    BatchingPolicy,
    CompressionType,
    ConsumerSpec,
    InitialPosition,
    MessageId,
    OutgoingMessage,
    ReceivedSingles,
    SubscriptionType,
)
from pulsar_sansio.model.message import Source
from pulsar_sansio.wire import EncryptionKey, MessageMetadata
from pulsar_spark.errors import DataLoss, LinkTimeout, UnreadableMessages
from pulsar_spark.link import Link
from pulsar_spark.options.option_table import Use
from pulsar_spark.options.query_options import parse_read
from pulsar_spark.reading.batch_source import TaskPartition, read_part
from pulsar_spark.reading.columns import Builder
from pulsar_spark.reading.offsets import NOTHING, Position, Range
from pulsar_spark.reading.overtaken import Watch
from pulsar_spark.reading.range_reader import _RangeReader, read_range, read_ranges
from tests.patience import PATIENCE
from tests.real_pulsar.admin import topic_path
from tests.spark.scenes.brokers import RealBroker, SparkBroker
from tests.spark.scenes.reading_back import keep
from tests.spark.scenes.sending import Sender, send

pytestmark = pytest.mark.spark

VALUES = pa.schema([("value", pa.binary())])

BY_HAND = pytest.mark.unwatched(why="entries are sent that no producer of ours would send")

MARKER = 20
"""Marker type of a committed transaction: an entry that no consumer gets."""


@pytest.fixture
def link(broker: SparkBroker) -> Iterator[Link]:
    link = Link(broker.url)
    yield link
    link.close()


@pytest.fixture
def sender(broker: SparkBroker, topic: str) -> Iterator[Sender]:
    sender = Sender(broker.url, topic)
    yield sender
    sender.close()


def values(link: Link, topic: str, start: Position, end: Position, **options: Any) -> list[bytes]:
    options.setdefault("timeout_s", 120.0)
    batches = read_range(link, Range(topic, start, end), VALUES, **options)
    return [value for batch in batches for value in batch.column(0).to_pylist()]


def numbers(first: int, end: int) -> list[bytes]:
    return [b"%d" % number for number in range(first, end)]


def places(ids: list[MessageId]) -> list[Position]:
    return sorted({each[:2] for each in ids})


# --- where it begins and ends ------------------------------------------------------------------------


def test_ranges_cover_the_topic_without_overlap(link: Link, topic: str, sender: Sender) -> None:
    ids = [each for first in range(0, 50, 10) for each in sender.send(numbers(first, first + 10))]
    entries = places(ids)
    assert len(entries) == 5
    assert values(link, topic, NOTHING, entries[1]) == numbers(0, 20)
    assert values(link, topic, entries[1], entries[3]) == numbers(20, 40)
    assert values(link, topic, entries[3], entries[4]) == numbers(40, 50)
    assert values(link, topic, entries[4], entries[4]) == []


def test_messages_that_are_entries_by_themselves(broker: SparkBroker, link: Link, topic: str) -> None:
    entries = places(send(broker.url, topic, numbers(0, 300), batching=None))
    assert len(entries) == 300
    assert values(link, topic, entries[9], entries[199]) == numbers(10, 200)


def test_what_is_published_meanwhile_is_not_in_the_range(link: Link, topic: str, sender: Sender) -> None:
    end = sender.send(numbers(0, 10))[-1][:2]
    batches = read_range(link, Range(topic, NOTHING, end), VALUES, batch_rows=1)
    sender.send(numbers(10, 20))
    assert [batch.num_rows for batch in batches] == [10]


def test_a_range_whose_end_holds_no_message_is_over_when_the_broker_says_so(
    link: Link, topic: str, sender: Sender
) -> None:
    ledger, entry = sender.send(numbers(0, 10))[-1][:2]
    assert values(link, topic, NOTHING, (ledger, entry + 5)) == numbers(0, 10)
    assert values(link, topic, (ledger, entry), (ledger, entry + 5)) == []


@BY_HAND
@pytest.mark.real
def test_markers_at_the_end_and_in_between(real_broker: SparkBroker, topic: str) -> None:
    """Ours takes no markers of clients."""
    with closing(Link(real_broker.url)) as link, closing(Sender(real_broker.url, topic)) as sender:
        check_markers(link, topic, sender)


def check_markers(link: Link, topic: str, sender: Sender) -> None:
    sender.send(numbers(0, 10))
    sender.send_entry(b"", marker_type=MARKER)
    last = sender.send(numbers(10, 20))[-1][:2]
    end = (last[0], last[1] + 3)
    for _ in range(3):
        sender.send_entry(b"", marker_type=MARKER)
    assert values(link, topic, NOTHING, end) == numbers(0, 20)
    assert values(link, topic, last, end) == []
    sender.send(numbers(20, 30))
    assert values(link, topic, NOTHING, end) == numbers(0, 20)
    assert values(link, topic, last, end) == []


def test_a_range_over_several_ledgers_some_of_them_empty(
    broker: SparkBroker, link: Link, topic: str, sender: Sender
) -> None:
    keep(broker, topic)
    entries = []
    for part in range(4):
        entries.append(sender.send(numbers(10 * part, 10 * part + 10))[-1][:2])
        for _ in range(1 + part % 2):
            broker.admin.unload(topic)
            link.first_position(topic)  # which makes the broker load it again
    assert values(link, topic, NOTHING, entries[-1]) == numbers(0, 40)
    assert values(link, topic, entries[0], entries[2]) == numbers(10, 30)
    assert values(link, topic, entries[-1], (entries[-1][0] + 1, -1)) == []


def test_an_empty_topic(broker: SparkBroker, link: Link, topic: str) -> None:
    broker.admin.create_topic(topic)
    assert values(link, topic, NOTHING, (0, 0)) == []


def test_many_small_ranges_share_record_batches(broker: SparkBroker, link: Link, topic: str) -> None:
    ranges, expected = [], []
    for number in range(40):
        end = send(broker.url, f"{topic}-{number}", [b"%d" % number] * 3)[-1][:2]
        ranges.append(Range(f"{topic}-{number}", NOTHING, end))
        expected += [b"%d" % number] * 3
    batches = list(read_ranges(link, ranges, VALUES, batch_rows=50, timeout_s=120.0))
    assert [value for batch in batches for value in batch.column(0).to_pylist()] == expected
    assert [batch.num_rows for batch in batches] == [51, 51, 18]
    some = read_ranges(link, ranges, VALUES, batch_rows=1, timeout_s=120.0)
    assert next(some).num_rows == 3
    some.close()  # type: ignore[attr-defined]


@pytest.mark.real
def test_what_retention_has_removed_is_not_waited_for(real_broker: SparkBroker, topic: str) -> None:
    """Nothing keeps it: no subscription, no retention. The ledger that is written to stays."""
    with closing(Link(real_broker.url)) as link, closing(Sender(real_broker.url, topic)) as sender:
        first = sender.send(numbers(0, 10))[-1][:2]
        real_broker.admin.unload(topic)
        second = sender.send(numbers(10, 20))[-1][:2]
        real_broker.admin.request("DELETE", f"{topic_path(topic)}/truncate")
        until = time.monotonic() + PATIENCE
        while link.first_position(topic) < first:
            assert time.monotonic() < until
        assert values(link, topic, NOTHING, first) == []
        left = values(link, topic, NOTHING, second)
        assert left in ([], numbers(10, 20))
        third = sender.send(numbers(20, 30))[-1][:2]
        assert values(link, topic, NOTHING, first) == []
        assert values(link, topic, first, third) == left + numbers(20, 30)


@pytest.fixture
def three_ledgers(real_broker: RealBroker, topic: str) -> list[Position]:
    """The last entries of three ledgers of forty large messages each, which are kept until `trim`."""
    keep(real_broker, topic)
    ends = []
    with closing(Sender(real_broker.url, topic, batching=None)) as sender:
        for part in range(3):
            ends.append(sender.send([b"%d" % part + bytes(500_000)] * 40)[-1][:2])
            if part < 2:
                real_broker.admin.unload(topic)
    return ends


def trim(broker: SparkBroker, topic: str, gone: Position) -> None:
    """Nothing is kept any more: what lies before goes, up to and including the ledger of `gone`."""
    broker.admin.request("DELETE", f"{topic_path(topic)}/subscription/keep")
    with closing(Link(broker.url)) as link:
        until = time.monotonic() + PATIENCE
        while link.first_position(topic)[0] <= gone[0]:
            assert time.monotonic() < until
            broker.admin.request("POST", f"{topic_path(topic)}/trim")
            time.sleep(0.05)


def part_of(broker: SparkBroker, wanted: Range, **options: str) -> Iterator[Any]:
    """Read one range as a task of a query with these options does."""
    given = {"service.url": broker.url, "topic": wanted.topic, "batchRows": "1", **options}
    return read_part(parse_read(given, Use.BATCH_READ), VALUES, TaskPartition((wanted,)))


@pytest.mark.real
def test_ledgers_that_retention_takes_while_a_task_reads_are_a_loss(
    real_broker: RealBroker, topic: str, three_ledgers: list[Position]
) -> None:
    first, second, third = three_ledgers
    batches = part_of(real_broker, Range(topic, (first[0], 3), third))
    tolerant = part_of(real_broker, Range(topic, (first[0], 3), third), failOnDataLoss="false")
    for begun in (batches, tolerant):
        assert next(begun).num_rows
    trim(real_broker, topic, second)
    with pytest.raises(DataLoss, match=f"data loss in {topic}: the ledger .* was taken away"):
        list(batches)
    left = [value[:1] for batch in tolerant for value in batch.column(0).to_pylist()]
    assert left.count(b"2") == 40, "and all of the last ledger"


@pytest.mark.real
def test_ledgers_that_went_before_the_task_began(
    real_broker: RealBroker, topic: str, three_ledgers: list[Position]
) -> None:
    """A position in a ledger that is gone is a loss, unless the driver saw that it was the end of it."""
    first, second, third = three_ledgers
    whole = list(part_of(real_broker, Range(topic, first, third)))
    assert sum(batch.num_rows for batch in whole) == 80
    trim(real_broker, topic, second)
    seen = Range(topic, first, third, next_ledger=second[0])  # and nothing of the second
    for lost in (Range(topic, first, third), Range(topic, first, second), seen):
        with pytest.raises(DataLoss, match="was taken away"):
            list(part_of(real_broker, lost))
    behind = Range(topic, second, third, next_ledger=third[0])
    assert sum(batch.num_rows for batch in part_of(real_broker, behind)) == 40


def test_what_comes_behind_the_range_says_nothing_of_it() -> None:
    """Its last entry has come: whether its ledger is still there is of no interest any more."""

    class Watched(Watch):
        def enter(self, ledger: int, reached: Position) -> None:
            entered.append((reached, ledger))

    entered: list[tuple[Position, int]] = []
    topic, rows = "persistent://public/default/t", Builder(VALUES)
    watch = Watched(None, Range(topic, (5, 8), (6, 0)), lambda _: None)  # type: ignore[arg-type]
    reader = _RangeReader(None, watch._range, rows, 1.0, {}, lambda _: watch)  # type: ignore[arg-type]
    places, header = [(5, 9), (6, 0), (7, 0)], MessageMetadata("p", 0, 0)
    unused: Any = None
    item = ReceivedSingles(Source(topic, -1), places, [header] * 3, 0, unused, [b"a", b"b", b"c"], unused)
    reader._take(item)
    assert entered == [((5, 9), 6)]
    assert rows.finish().column(0).to_pylist() == [b"a", b"b"]


# --- what the messages are ---------------------------------------------------------------------------


def test_what_was_acknowledged_in_part_is_read_whole(
    broker: SparkBroker, link: Link, topic: str, sender: Sender
) -> None:
    """The acknowledgements of others are theirs."""
    spec = ConsumerSpec(
        topic,
        "others",
        SubscriptionType.EXCLUSIVE,
        initial_position=InitialPosition.EARLIEST,
        batch_index_acknowledgement=True,
    )
    client = link.client
    consumer = client.subscribe(time.monotonic_ns(), spec)
    end = sender.send(numbers(0, 10))[-1][:2]
    link.wait(lambda: client.available(consumer) >= 10 or None, 20.0, "messages")
    for message in list(client.take(time.monotonic_ns(), consumer, 10))[::2]:
        client.acknowledge(time.monotonic_ns(), consumer, message)
    link.call(lambda now: client.flush_acknowledgements(now, consumer), 20.0, "acknowledgements")
    assert values(link, topic, NOTHING, end) == numbers(0, 10)


def test_compacted(broker: SparkBroker, link: Link, topic: str, sender: Sender) -> None:
    """The end is an entry that compaction has taken away, and so is all of the last range."""
    sender.send([OutgoingMessage(b"%d" % n, key=f"k{n % 4}") for n in range(20)])
    middle = sender.send([OutgoingMessage(b"%d" % n, key=f"k{n % 4}") for n in range(20, 22)])[-1][:2]
    end = sender.send([OutgoingMessage(None, key="k0"), OutgoingMessage(None, key="k3")])[-1][:2]
    path = f"{topic_path(topic)}/compaction"
    broker.admin.request("PUT", path)
    while broker.admin.request("GET", path)["status"] != "SUCCESS":
        time.sleep(0.05)
    compacted = values(link, topic, NOTHING, end, read_compacted=True)
    assert compacted == [b"18", b"21"]
    assert values(link, topic, middle, end, read_compacted=True) == []
    assert len(values(link, topic, NOTHING, end)) == 24


def test_large_messages_and_small_permits(broker: SparkBroker, link: Link, topic: str) -> None:
    batching = BatchingPolicy(max_messages=50, max_delay=60.0)
    messages = [b"%d" % n + b"." * 5_000 for n in range(500)]
    end = send(broker.url, topic, messages, batching=batching)[-1][:2]
    batches = list(
        read_range(link, Range(topic, NOTHING, end), VALUES, receiver_queue=10, batch_bytes=300_000)
    )
    assert [value for batch in batches for value in batch.column(0).to_pylist()] == messages
    assert len(batches) > 1


@pytest.mark.parametrize("batching", [None, BatchingPolicy(2, 1_100_000, max_delay=60.0)])
def test_what_inflates_a_lot_is_in_memory_as_far_as_it_became_rows(
    link: Link, broker: SparkBroker, topic: str, batching: BatchingPolicy | None
) -> None:
    size, count = 500_000, 40
    end = send(broker.url, topic, [bytes(size)] * count, batching=batching, compression=CompressionType.ZSTD)[
        -1
    ][:2]
    rows = 0
    tracemalloc.start()
    try:
        for batch in read_range(link, Range(topic, NOTHING, end), VALUES, batch_bytes=size):
            rows += batch.num_rows
            assert batch.num_rows <= 2  # one entry
        assert tracemalloc.get_traced_memory()[1] < 16 * size
    finally:
        tracemalloc.stop()
    assert rows == count


# --- chunks ------------------------------------------------------------------------------------------


def chunk(sender: Sender, uuid: str, number: int, of: int, payload: bytes, whole: int) -> Position:
    return sender.send_entry(
        payload, uuid=uuid, chunk_id=number, num_chunks_from_msg=of, total_chunk_msg_size=whole
    )


@BY_HAND
def test_a_message_in_chunks_belongs_to_the_range_of_its_last_chunk(
    link: Link, topic: str, sender: Sender
) -> None:
    before = sender.send([b"before"])[-1][:2]
    first = chunk(sender, "a", 0, 3, b"aa", 6)
    between = sender.send([b"between"])[-1][:2]
    chunk(sender, "b", 0, 2, b"b", 2)
    second = chunk(sender, "a", 1, 3, b"bb", 6)
    third = chunk(sender, "a", 2, 3, b"cc", 6)
    end = chunk(sender, "b", 1, 2, b"b", 2)
    assert values(link, topic, before, end) == [b"between", b"aabbcc", b"bb"]
    assert values(link, topic, before, second) == [b"between"]
    assert values(link, topic, first, second) == [b"between"]
    for start in (first, between, second):
        expected = [b"between"] * (start == first) + [b"aabbcc", b"bb"]
        assert values(link, topic, start, end) == expected
    assert values(link, topic, third, end) == [b"bb"]


@BY_HAND
def test_chunks_without_a_beginning_stop_nothing(link: Link, topic: str, sender: Sender) -> None:
    chunk(sender, "lost", 1, 3, b"b", 3)
    chunk(sender, "lost", 2, 3, b"c", 3)
    end = sender.send(numbers(0, 10))[-1][:2]
    assert values(link, topic, NOTHING, end) == numbers(0, 10)


@BY_HAND
def test_a_message_that_is_not_complete_yet_is_not_waited_for(link: Link, topic: str, sender: Sender) -> None:
    """Its producer may be gone; if it is not, the message is of a later range."""
    sender.send([b"before"])
    first = chunk(sender, "a", 0, 3, b"aa", 6)
    assert values(link, topic, NOTHING, first) == [b"before"]
    orphan = chunk(sender, "b", 1, 3, b"b", 3)
    assert values(link, topic, NOTHING, orphan) == [b"before"]
    assert values(link, topic, first, orphan) == []
    chunk(sender, "a", 1, 3, b"bb", 6)
    last = chunk(sender, "a", 2, 3, b"cc", 6)
    assert values(link, topic, orphan, last) == [b"aabbcc"]


# --- what cannot be read -----------------------------------------------------------------------------


@BY_HAND
@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"num_messages_in_batch": 3}, "damaged"),
        ({"compression": 1, "uncompressed_size": 100}, "damaged"),
        ({"compression": 1, "uncompressed_size": 1_000_000}, "damaged"),
        ({"compression": 1, "uncompressed_size": 1_000_000, "num_messages_in_batch": 3}, "damaged"),
        ({"encryption_keys": [EncryptionKey("k", b"v")]}, "encrypted"),
    ],
    ids=["batch", "compression", "inflating", "inflating batch", "encryption"],
)
def test_what_cannot_be_read_is_no_success(
    link: Link, topic: str, sender: Sender, fields: dict[str, Any], why: str
) -> None:
    sender.send(numbers(0, 10))
    end = sender.send_entry(b"garbage that is long enough to hold three", **fields)
    with pytest.raises(UnreadableMessages, match=why):
        values(link, topic, NOTHING, end)
    behind = sender.send(numbers(10, 20))[-1][:2]
    assert values(link, topic, end, behind) == numbers(10, 20)
    assert values(link, topic, NOTHING, (end[0], end[1] - 1)) == numbers(0, 10)


# --- connections -------------------------------------------------------------------------------------


def cut(link: Link) -> None:
    """Cut a link's sockets as the network would."""
    for sock in link._sockets.values():
        with suppress(OSError):  # it is down already, and the link has not looked since
            sock.shutdown(socket.SHUT_RDWR)


def test_a_connection_that_is_lost_in_the_middle(broker: SparkBroker, link: Link, topic: str) -> None:
    batching = BatchingPolicy(max_messages=100, max_delay=60.0)
    messages = [b"%d" % n + b"." * 1_000 for n in range(20_000)]
    end = send(broker.url, topic, messages, batching=batching)[-1][:2]
    read: list[bytes] = []
    for number, batch in enumerate(read_range(link, Range(topic, NOTHING, end), VALUES, batch_rows=1_000)):
        read += batch.column(0).to_pylist()
        if number % 5 == 0:
            cut(link)
    assert read == messages


def test_a_topic_that_moves_in_the_middle(broker: SparkBroker, link: Link, topic: str) -> None:
    batching = BatchingPolicy(max_messages=100, max_delay=60.0)
    messages = [b"%d" % n + b"." * 1_000 for n in range(10_000)]
    keep(broker, topic)
    end = send(broker.url, topic, messages, batching=batching)[-1][:2]
    read: list[bytes] = []
    for number, batch in enumerate(read_range(link, Range(topic, NOTHING, end), VALUES, batch_rows=1_000)):
        read += batch.column(0).to_pylist()
        if number == 2:
            broker.admin.unload(topic)
    assert read == messages


def test_an_abandoned_range_leaves_the_link_usable(broker: SparkBroker, link: Link, topic: str) -> None:
    batching = BatchingPolicy(max_messages=100, max_delay=60.0)
    messages = [b"%d" % n + b"." * 1_000 for n in range(5_000)]
    end = send(broker.url, topic, messages, batching=batching)[-1][:2]
    batches = read_range(link, Range(topic, NOTHING, end), VALUES, batch_rows=100)
    next(batches)
    batches.close()  # type: ignore[attr-defined]
    assert values(link, topic, NOTHING, end) == messages


def test_no_answer_comes(link: Link, topic: str, sender: Sender, monkeypatch: pytest.MonkeyPatch) -> None:
    end = sender.send(numbers(0, 10))[-1][:2]
    monkeypatch.setattr(link, "_read", lambda _: time.sleep(0.01))
    with pytest.raises(LinkTimeout, match=r"subscribing to .* not within 0\.3 s"):
        values(link, topic, NOTHING, end, timeout_s=0.3)
