"""Producers of partitioned topics under trio: nothing is different but where messages go."""

import pytest
import trio
import trio.testing

from pulsar_sansio import (
    HashingScheme,
    InvalidConfiguration,
    InvalidMessage,
    ProducerBusy,
    ProducerQueueIsFull,
    RoutingMode,
    TimedOut,
    TopicTerminated,
)
from pulsar_trio import (
    BatchingPolicy,
    Client,
    EmbeddedBroker,
    OutgoingMessage,
    Producer,
    ResourceClosed,
    open_client,
)
from tests.patience import PATIENCE
from tests.trio.proxy import Proxy, open_proxy

SLOW = BatchingPolicy(max_messages=1000, max_delay=30.0)
"""A batch that nothing fills: what is enqueued stays in the window until it is flushed."""


@pytest.fixture
async def topic(broker: EmbeddedBroker) -> str:
    broker.create_partitioned_topic("t", 3)
    return "t"


def first_digit(message: OutgoingMessage, partitions: int) -> int:
    assert message.payload is not None
    return int(message.payload[:1])


async def stored(client: Client, partition: int) -> list[bytes]:
    """Everything in a partition."""
    name = f"t-partition-{partition}"
    async with (
        client.subscribe(name, "all", "exclusive", initial_position="earliest") as consumer,
        client.create_producer(name) as producer,
    ):
        await producer.send(b"the end")
        payloads: list[bytes] = []
        async for message in consumer:
            if message.data == b"the end":
                return payloads
            payloads.append(message.data)
        raise AssertionError("the topic ended")


async def test_a_producer_of_a_partitioned_topic(client: Client, topic: str) -> None:
    async with client.create_producer(topic, routing=first_digit) as producer:
        assert (producer.topic, producer.partitions) == ("persistent://public/default/t", 3)
        assert producer.connected
        assert (await producer.send(b"2")).partition == 2
        receipts = [await producer.enqueue(b"%d" % (number % 3)) for number in range(6)]
        await producer.flush()
        assert [receipt.result().partition for receipt in receipts] == [0, 1, 2, 0, 1, 2]
        message_ids = await producer.send_many([b"1", b"1", b"0"])
        assert [message_id.partition for message_id in message_ids] == [1, 1, 0]
        assert producer.statistics().confirmed == 10
        assert [each.confirmed for each in producer.partition_statistics()] == [3, 4, 3]
    with pytest.raises(ResourceClosed):
        producer.partitions  # noqa: B018
    assert await stored(client, 1) == [b"1"] * 4


async def test_a_topic_without_partitions_has_none(client: Client) -> None:
    async with client.create_producer("plain") as producer:
        assert producer.partitions == 0
        assert list(producer.partition_statistics()) == []


async def test_what_is_enqueued_follows_into_the_open_batch(client: Client, topic: str) -> None:
    """The short path: one partition for as long as the batch is open, one entry."""
    async with client.create_producer(topic, batching=SLOW) as producer:
        receipts = [await producer.enqueue(b"%d" % number) for number in range(300)]
        await producer.flush()
        message_ids = [receipt.result() for receipt in receipts]
    assert len({message_id[:3] for message_id in message_ids}) == 1
    assert [message_id.batch_index for message_id in message_ids] == list(range(300))
    assert await stored(client, message_ids[0].partition) == [b"%d" % number for number in range(300)]


async def test_closing_sends_what_is_in_all_windows(client: Client, topic: str) -> None:
    async with client.create_producer(topic, batching=SLOW, routing=first_digit) as producer:
        for number in range(30):
            await producer.enqueue(b"%d/%d" % (number % 3, number))
    for partition in range(3):
        assert await stored(client, partition) == [b"%d/%d" % (n % 3, n) for n in range(partition, 30, 3)]


async def test_a_full_partition_is_waited_for_and_cancelling_takes_nothing(
    client: Client, topic: str
) -> None:
    async with client.create_producer(
        topic, batching=SLOW, routing=first_digit, max_pending_messages_across_partitions=6
    ) as producer:
        await producer.enqueue(b"0a")
        await producer.enqueue(b"1a")
        await producer.enqueue(b"0b")  # fills the window, which closes the batch
        with pytest.raises(ProducerQueueIsFull):
            producer.enqueue_nowait(b"0c")
        with trio.move_on_after(0) as scope:
            await producer.enqueue(b"0d")
        assert scope.cancelled_caught
        await producer.enqueue(b"0e")
        assert producer.enqueue_nowait(b"1b").done() is False
        await producer.flush()
    assert await stored(client, 0) == [b"0a", b"0b", b"0e"]
    assert await stored(client, 1) == [b"1a", b"1b"]


async def test_cancelling_a_send_in_the_window_only_stops_waiting(client: Client, topic: str) -> None:
    async with client.create_producer(topic, routing=first_digit) as producer:
        with trio.CancelScope() as scope:
            scope.cancel()
            await producer.send(b"2")
        assert scope.cancelled_caught
        await producer.flush()
        assert producer.statistics().confirmed == 1
    assert await stored(client, 2) == [b"2"]


@pytest.mark.parametrize("batching", [None, BatchingPolicy()], ids=["unbatched", "batched"])
async def test_tasks_send_at_the_same_time(
    client: Client, topic: str, batching: BatchingPolicy | None
) -> None:
    """Each task's messages stay in order in each partition, and each send gets its own id."""
    found: dict[bytes, tuple[int, int, int]] = {}

    async def send_some(producer: Producer, task: int) -> None:
        for number in range(40):
            payload = b"%d %d" % (task, number)
            message_id = await producer.send(payload, key=None if number % 2 else f"k{number}")
            found[payload] = message_id[:3]

    async with client.create_producer(topic, batching=batching) as producer, trio.open_nursery() as nursery:
        for task in range(5):
            nursery.start_soon(send_some, producer, task)
    everything = []
    for partition in range(3):
        payloads = await stored(client, partition)
        everything += payloads
        assert {found[payload][2] for payload in payloads} <= {partition}
        for task in range(5):
            mine = [int(payload.split()[1]) for payload in payloads if payload.split()[0] == b"%d" % task]
            assert mine == sorted(mine)
    assert sorted(everything) == sorted(found)


async def test_a_wrong_partition_is_an_error_before_anything_is_sent(client: Client, topic: str) -> None:
    """Rule PART-06."""
    async with client.create_producer(topic, routing=first_digit) as producer:
        with pytest.raises(InvalidMessage, match="gave 7; partitions are numbered from 0 to 2"):
            await producer.send(b"7")
        with pytest.raises(InvalidMessage, match="invalid literal"):
            await producer.enqueue(b"x")
        with pytest.raises(InvalidMessage, match="gave 9"):
            await producer.send_many([b"0", b"1", b"9", b"2"])
        await producer.flush()
        assert producer.statistics().confirmed == 2
    assert [await stored(client, partition) for partition in range(3)] == [[b"0"], [b"1"], []]


async def test_a_terminated_partition_fails_its_messages_and_no_others(
    broker: EmbeddedBroker, client: Client, topic: str
) -> None:
    async with client.create_producer(topic, routing=first_digit) as producer:
        await producer.send(b"0")
        broker.terminate("t-partition-0")
        with pytest.raises(TopicTerminated):
            await producer.send(b"0")
        receipt = await producer.enqueue(b"0")
        with pytest.raises(TopicTerminated):
            await receipt.wait()
        assert (await producer.send(b"1")).partition == 1
        assert producer.statistics().pending == 0
        assert [each.connected for each in producer.partition_statistics()] == [False, True, True]


async def test_one_partition_that_cannot_be_opened_fails_the_producer(client: Client, topic: str) -> None:
    async with client.create_producer("t-partition-2", name="taken"):
        with pytest.raises(ProducerBusy, match="taken"):
            async with client.create_producer(topic, name="taken"):
                raise AssertionError("not reached")
    async with client.create_producer(topic, name="taken") as producer:
        assert producer.name == "taken"


async def test_growth_is_found(broker: EmbeddedBroker, client: Client, topic: str) -> None:
    async with client.create_producer(topic, partitions_update_interval=0.01, batching=None) as producer:
        await producer.send(b"x")
        broker.update_partitions("t", 5)
        with trio.fail_after(PATIENCE):
            while producer.partitions != 5:  # noqa: ASYNC110
                await trio.sleep(0.01)
        message_ids = await producer.send_many([b"x"] * 5)
        assert {message_id.partition for message_id in message_ids} == set(range(5))


async def test_words_for_options(client: Client, topic: str) -> None:
    """Rules ROUTE-01 and CFG-107."""
    options = {"routing": "single_partition", "hashing": "murmur3_32"}
    async with client.create_producer(topic, **options) as producer:  # type: ignore[call-overload]
        message_ids = await producer.send_many([OutgoingMessage(b"", key="key-1"), b"a", b"b"])
        assert message_ids[0].partition == 414258592 % 3
        assert message_ids[1].partition == message_ids[2].partition
    async with client.create_producer(
        topic, routing=RoutingMode.ROUND_ROBIN, hashing=HashingScheme.BOOST, lazy_start=True
    ) as producer:
        assert (await producer.send(b"", key="key-3")).partition == 2
        assert (await producer.send(b"", key=b"\x00\xff")).partition in range(3)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"routing": "sideways"}, "routing: one of 'round_robin', 'single_partition', not 'sideways'"),
        ({"routing": RoutingMode}, "routing: a RoutingMode or a function"),
        ({"hashing": "md5"}, "hashing: one of 'java_string', 'murmur3_32', 'boost', not 'md5'"),
        ({"lazy_start": 1}, "lazy_start"),
        ({"max_pending_messages_across_partitions": 0}, "max_pending_messages_across_partitions"),
        ({"partitions_update_interval": 0}, "partitions_update_interval"),
    ],
)
async def test_wrong_options(client: Client, options: dict[str, object], text: str) -> None:
    """Rule CLIENT-08."""
    with pytest.raises(InvalidConfiguration, match=text):
        async with client.create_producer("t", **options):  # type: ignore[call-overload]
            raise AssertionError("not reached")


@pytest.mark.slow
async def test_a_partition_begun_late_is_given_up_in_time() -> None:
    """Its deadline is earlier than that of the messages before it, and nothing else happens until then."""
    async with (
        open_proxy() as proxy,
        open_client(proxy.url, operation_timeout=0.4) as client,
    ):
        proxy.broker.create_partitioned_topic("t", 3)
        await gives_up_in_time(client, proxy)


async def gives_up_in_time(client: Client, proxy: Proxy) -> None:
    async with client.create_producer("t", batching=None, lazy_start=True, routing=first_digit) as producer:
        await producer.send(b"1")
        await trio.sleep(0.5)  # the timers of opening are over
        proxy.hold()
        receipts = [producer.enqueue_nowait(payload) for payload in (b"1", b"1", b"2")]
        await trio.sleep(0.8)  # waiting for a receipt would look at the deadlines
        assert receipts[2].done()
        with pytest.raises(TimedOut):
            receipts[2].result()
        proxy.release()
        await receipts[1].wait()
