"""A backlog quota is exceeded."""

from typing import Any

import pytest
import trio

from pulsar_sansio import ProducerBlockedQuotaExceeded, ServerError
from pulsar_trio import Client, Producer, open_client
from tests.patience import PATIENCE
from tests.real_pulsar.admin import topic_path
from tests.suite.brokers import BrokerUnderTest
from tests.suite.helpers import receive_and_acknowledge, until

CODES = {
    "producer_request_hold": ServerError.ProducerBlockedQuotaExceededError,
    "producer_exception": ServerError.ProducerBlockedQuotaExceededException,
}

PAYLOAD = b"x" * 100

blocking = pytest.mark.parametrize(("policy", "code"), CODES.items())


@pytest.fixture
async def namespace(broker: BrokerUnderTest, local_name: str) -> str:
    name = f"public/{local_name}".lower()
    assert await broker.request("PUT", f"/admin/v2/namespaces/{name}") == (204, None)
    return name


@pytest.fixture
async def topic(client: Client, namespace: str) -> str:
    """With a subscription `sub`."""
    topic = f"persistent://{namespace}/t"
    async with client.subscribe(topic, "sub"):
        pass
    return topic


async def limit(broker: BrokerUnderTest, namespace: str, policy: str, size: int = 1000) -> None:
    quota = {"limitSize": size, "limitTime": -1, "policy": policy}
    path = f"/admin/v2/namespaces/{namespace}/backlogQuota"
    assert await broker.request("POST", path, quota) == (204, None)

    async def in_force() -> bool:
        return bool((await stats(broker, f"persistent://{namespace}/t"))["backlogQuotaLimitSize"] == size)

    await until(in_force)


async def fill(producer: Producer, count: int = 20) -> None:
    for _ in range(count):
        await producer.send(PAYLOAD)


async def stats(broker: BrokerUnderTest, topic: str) -> Any:
    _, found = await broker.request("GET", f"{topic_path(topic)}/stats")
    return found


@blocking
async def test_new_producers_are_refused(
    broker: BrokerUnderTest, client: Client, topic: str, namespace: str, policy: str, code: ServerError
) -> None:
    async with client.create_producer(topic, batching=None) as producer:
        await fill(producer)
    await limit(broker, namespace, policy)
    with pytest.raises(ProducerBlockedQuotaExceeded) as refused:
        async with open_impatient(broker) as impatient, impatient.create_producer(topic):
            pass
    assert refused.value.code == code
    found = await stats(broker, topic)
    assert (found["backlogQuotaLimitSize"], found["backlogQuotaLimitTime"]) == (1000, -1)


def open_impatient(broker: BrokerUnderTest) -> Any:
    """A client that does not wait half a minute for a hold to end."""
    return open_client(broker.url, operation_timeout=3.0, max_backoff=0.3)


@blocking
async def test_producers_that_are_there_are_sent_away_and_come_back_when_there_is_room(
    broker: BrokerUnderTest, client: Client, topic: str, namespace: str, policy: str, code: ServerError
) -> None:
    async with client.create_producer(topic, batching=None, send_timeout=0) as producer:
        await fill(producer)
        await limit(broker, namespace, policy)
        with trio.fail_after(PATIENCE):
            while producer.connected:  # noqa: ASYNC110  # nothing tells of it but the state
                await trio.sleep(0.05)
        async with client.subscribe(topic, "sub") as consumer:
            await receive_and_acknowledge(consumer, 20)
            await consumer.flush()
        with trio.fail_after(PATIENCE):
            while not producer.connected:  # noqa: ASYNC110
                await trio.sleep(0.05)
        await producer.send(PAYLOAD)


async def test_what_is_pending_waits_for_a_hold_to_end(
    broker: BrokerUnderTest, client: Client, topic: str, namespace: str
) -> None:
    """PROD-21: "error" keeps what is pending."""
    async with client.create_producer(topic, batching=None, send_timeout=0) as producer:
        await fill(producer)
        await limit(broker, namespace, "producer_request_hold")
        with trio.fail_after(PATIENCE):
            while producer.connected:  # noqa: ASYNC110
                await trio.sleep(0.05)
        receipt = await producer.enqueue(PAYLOAD)
        await trio.sleep(0.5)
        async with client.subscribe(topic, "sub") as consumer:
            await receive_and_acknowledge(consumer, 20)
            await consumer.flush()
            with trio.fail_after(PATIENCE):
                await receipt.wait()


async def test_what_is_pending_fails_with_an_exception(
    broker: BrokerUnderTest, client: Client, topic: str, namespace: str
) -> None:
    """PROD-21: "exception" does not."""
    async with client.create_producer(topic, batching=None, send_timeout=0) as producer:
        await fill(producer)
        await limit(broker, namespace, "producer_exception")
        with trio.fail_after(PATIENCE):
            while producer.connected:  # noqa: ASYNC110
                await trio.sleep(0.05)
        receipt = await producer.enqueue(PAYLOAD)
        with pytest.raises(ProducerBlockedQuotaExceeded), trio.fail_after(PATIENCE):
            await receipt.wait()


async def test_the_oldest_part_of_the_backlog_is_evicted(
    broker: BrokerUnderTest, client: Client, topic: str, namespace: str
) -> None:
    async with client.create_producer(topic, batching=None) as producer:
        await fill(producer)
        await limit(broker, namespace, "consumer_backlog_eviction")

        async def backlog() -> int:
            return int((await stats(broker, topic))["subscriptions"]["sub"]["msgBacklog"])

        async def evicted() -> bool:
            return await backlog() * len(PAYLOAD) <= 900

        await until(evicted)
        assert producer.connected
        left = await backlog()
        assert left > 0
        await producer.send(b"newest")
        async with client.subscribe(topic, "sub") as consumer:
            messages = await receive_and_acknowledge(consumer, left + 1)
            assert messages[-1].data == b"newest"
            await consumer.flush()


async def test_eviction_passes_over_an_open_transaction(
    broker: BrokerUnderTest, topic: str, namespace: str
) -> None:
    """The evicted messages of the transaction are gone, although it is committed later."""
    async with (
        open_client(broker.url, transactions=True) as client,
        client.create_producer(topic, batching=None) as producer,
    ):
        async with client.transaction() as transaction:
            await producer.send(b"first", transaction=transaction)
            await fill(producer)
            await limit(broker, namespace, "consumer_backlog_eviction")

            async def evicted() -> bool:
                found = await stats(broker, topic)
                return int(found["subscriptions"]["sub"]["msgBacklog"]) <= 10

            await until(evicted)
        await producer.send(b"last")
        async with client.subscribe(topic, "sub") as consumer:
            found = [(await consumer.receive()).data]
            while found[-1] != b"last":
                found.append((await consumer.receive()).data)
    assert set(found) == {PAYLOAD, b"last"}


async def test_how_a_quota_is_written_and_read(broker: BrokerUnderTest, namespace: str) -> None:
    path = f"/admin/v2/namespaces/{namespace}"
    assert await broker.request("GET", f"{path}/backlogQuotaMap") == (200, {})
    hold = {"limitSize": 1000, "policy": "producer_exception"}
    assert await broker.request("POST", f"{path}/backlogQuota", hold) == (204, None)
    aged = {"limitTime": 30, "policy": "consumer_backlog_eviction"}
    by_age = f"{path}/backlogQuota?backlogQuotaType=message_age"
    assert await broker.request("POST", by_age, aged) == (204, None)
    size = {"limit": 1000, "limitSize": 1000, "limitTime": 0, "policy": "producer_exception"}
    age = {"limit": 0, "limitSize": 0, "limitTime": 30, "policy": "consumer_backlog_eviction"}
    both = {"destination_storage": size, "message_age": age}
    assert await broker.request("GET", f"{path}/backlogQuotaMap") == (200, both)
    _, record = await broker.request("GET", path)
    assert record["backlog_quota_map"] == both
    assert await broker.request("DELETE", f"{path}/backlogQuota") == (204, None)
    assert await broker.request("GET", f"{path}/backlogQuotaMap") == (200, {"message_age": age})
    nonsense = {"limitSize": 1000, "policy": "nonsense"}
    assert (await broker.request("POST", f"{path}/backlogQuota", nonsense))[0] == 400
    assert (await broker.request("POST", f"{path}/backlogQuota?backlogQuotaType=x", hold))[0] == 404


async def test_retention_has_to_keep_more_than_may_be_backlog(
    broker: BrokerUnderTest, namespace: str
) -> None:
    path = f"/admin/v2/namespaces/{namespace}"
    keep = {"retentionTimeInMinutes": 1, "retentionSizeInMB": 1}
    quota = {"limitSize": 2_000_000, "policy": "producer_exception"}
    assert (await broker.request("POST", f"{path}/retention", keep))[0] == 204
    refused = await broker.request("POST", f"{path}/backlogQuota", quota)
    assert refused == (
        412,
        "Backlog Quota exceeds configured retention quota for namespace. Please increase retention quota "
        "and retry",
    )
    assert (await broker.request("DELETE", f"{path}/retention"))[0] == 204
    assert (await broker.request("POST", f"{path}/backlogQuota", quota))[0] == 204
    refused = await broker.request("POST", f"{path}/retention", keep)
    assert refused == (412, "Retention Quota must exceed configured backlog quota for namespace.")
