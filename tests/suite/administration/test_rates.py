"""Rates of publishing, dispatch and subscribing, and the deletion of inactive topics."""

from typing import Any

import pytest
import trio

from pulsar_sansio import EARLIEST, TimedOut
from pulsar_trio import Client, InitialPosition, SubscriptionType, open_client
from tests.real_pulsar.admin import topic_path
from tests.suite.brokers import BrokerUnderTest
from tests.suite.helpers import numbers, receive, rest, until

EVER = 100_000
"""Seconds of a period that does not end while a test runs."""

RATE = {
    "dispatchThrottlingRateInMsg": 10,
    "dispatchThrottlingRateInByte": 20,
    "relativeToPublishRate": False,
    "ratePeriodInSecond": 2,
}
RELATIVE = RATE | {"relativeToPublishRate": True}
NO_RATE = {
    "dispatchThrottlingRateInMsg": 0,
    "dispatchThrottlingRateInByte": 0,
    "relativeToPublishRate": False,
    "ratePeriodInSecond": 0,
}
INACTIVE = {
    "inactiveTopicDeleteMode": "delete_when_subscriptions_caught_up",
    "maxInactiveDurationSeconds": 60,
    "deleteWhileInactive": True,
}

FORMS: dict[str, list[tuple[dict[str, Any], dict[str, Any]]]] = {
    "publishRate": [
        (
            {"publishThrottlingRateInMsg": 1},
            {"publishThrottlingRateInMsg": 1, "publishThrottlingRateInByte": -1},
        ),
        ({}, {"publishThrottlingRateInMsg": -1, "publishThrottlingRateInByte": -1}),
    ],
    "dispatchRate": [(RATE, RATE), (RELATIVE, RELATIVE), ({}, NO_RATE)],
    "subscriptionDispatchRate": [(RATE, RATE), ({}, NO_RATE)],
    "subscribeRate": [
        (
            {"subscribeThrottlingRatePerConsumer": 7, "ratePeriodInSecond": 8},
            {"subscribeThrottlingRatePerConsumer": 7, "ratePeriodInSecond": 8},
        ),
        ({}, {"subscribeThrottlingRatePerConsumer": -1, "ratePeriodInSecond": 30}),
    ],
    "inactiveTopicPolicies": [(INACTIVE, INACTIVE)],
}
"""Policy -> what is set, and what is then read."""

APPLIED = {
    "dispatchRate": NO_RATE | {"ratePeriodInSecond": 1},
    "subscriptionDispatchRate": NO_RATE | {"ratePeriodInSecond": 1},
    "subscribeRate": {"subscribeThrottlingRatePerConsumer": 0, "ratePeriodInSecond": 30},
}
"""Policy -> the value of a topic where no level sets one."""


@pytest.fixture
async def namespace(broker: BrokerUnderTest, local_name: str) -> str:
    name = f"public/{local_name}".lower()
    assert await broker.request("PUT", f"/admin/v2/namespaces/{name}") == (204, None)
    return name


@pytest.mark.parametrize("of_topic", [False, True], ids=["namespace", "topic"])
@pytest.mark.parametrize("policy", FORMS)
async def test_how_a_policy_is_written_and_read(
    broker: BrokerUnderTest, namespace: str, policy: str, of_topic: bool
) -> None:
    topic = f"persistent://{namespace}/t"
    await broker.create_topic(topic)
    path = f"{topic_path(topic) if of_topic else f'/admin/v2/namespaces/{namespace}'}/{policy}"
    unset = (204 if of_topic and policy == "publishRate" else 200, None)
    assert await broker.request("GET", path) == unset
    if of_topic and policy in APPLIED:
        assert await broker.request("GET", f"{path}?applied=true") == (200, APPLIED[policy])

    async def reads(expected: object) -> None:
        async def it_does() -> bool:
            return await broker.request("GET", path) == expected

        await until(it_does)

    for given, shown in FORMS[policy]:
        assert await broker.request("POST", path, given) == (204, None)
        await reads((200, shown))
        if of_topic:
            assert await broker.request("GET", f"{path}?applied=true") == (200, shown)
    wrong_ones: list[object] = [3, [], "x"]
    for wrong in wrong_ones:
        assert (await broker.request("POST", path, wrong))[0] == 400
    assert await broker.request("DELETE", path) == (204, None)
    await reads(unset)
    absent = path.replace(namespace, "public/nowhere")
    assert (await broker.request("POST", absent, FORMS[policy][0][0]))[0] == 404


async def test_rates_in_the_record_of_a_namespace(broker: BrokerUnderTest, local_name: str) -> None:
    path = f"/admin/v2/namespaces/public/{local_name}".lower()
    subscribe = {"subscribeThrottlingRatePerConsumer": 7, "ratePeriodInSecond": 8}
    publish = {"publishThrottlingRateInMsg": 1, "publishThrottlingRateInByte": 2}
    given = {
        "publishMaxMessageRate": {"standalone": publish},
        "topicDispatchRate": {"standalone": RATE},
        "subscriptionDispatchRate": {"standalone": RATE | {"ratePeriodInSecond": 3}},
        "clusterSubscribeRate": {"standalone": subscribe},
        "inactive_topic_policies": INACTIVE,
    }
    assert await broker.request("PUT", path, given) == (204, None)
    _, record = await broker.request("GET", path)
    assert {name: record[name] for name in given} == given
    assert await broker.request("GET", f"{path}/dispatchRate") == (200, RATE)
    assert await broker.request("GET", f"{path}/subscribeRate") == (200, subscribe)
    assert await broker.request("POST", f"{path}/publishRate") == (204, None)
    assert await broker.request("GET", f"{path}/publishRate") == (200, None)
    _, record = await broker.request("GET", path)
    assert record["publishMaxMessageRate"] == {}


async def test_all_policies_of_a_topic_are_removed_together(broker: BrokerUnderTest, namespace: str) -> None:
    """The policies of its namespace stay, and a topic that does not exist has none to remove."""
    topic, of_namespace = f"persistent://{namespace}/t", f"/admin/v2/namespaces/{namespace}"
    await broker.create_topic(topic)
    path = topic_path(topic)
    assert await broker.request("POST", f"{of_namespace}/maxConsumersPerTopic", 7) == (204, None)
    for policy, value in (("maxProducers", 5), ("dispatchRate", RATE)):
        assert await broker.request("POST", f"{path}/{policy}", value) == (204, None)

        async def set_now(policy: str = policy, value: object = value) -> bool:
            return await broker.request("GET", f"{path}/{policy}") == (200, value)

        await until(set_now)
    assert await broker.request("DELETE", f"{path}/policies") == (204, None)

    async def removed() -> bool:
        answers = [
            await broker.request("GET", f"{path}/{policy}") for policy in ("maxProducers", "dispatchRate")
        ]
        return answers == [(200, None), (200, None)]

    await until(removed)
    assert await broker.request("GET", f"{of_namespace}/maxConsumersPerTopic") == (200, 7)
    assert await broker.request("DELETE", f"{path}-none/policies") == (204, None)


@pytest.mark.parametrize("policy", ["dispatchRate", "subscriptionDispatchRate"])
@pytest.mark.parametrize("kind", SubscriptionType)
async def test_a_consumer_receives_as_its_rate_allows(
    broker: BrokerUnderTest, client: Client, namespace: str, policy: str, kind: SubscriptionType
) -> None:
    topic, path = f"persistent://{namespace}/t", f"/admin/v2/namespaces/{namespace}/{policy}"
    rate = {"dispatchThrottlingRateInMsg": 3, "ratePeriodInSecond": EVER}
    assert await broker.request("POST", path, rate) == (204, None)
    async with client.create_producer(topic, batching=None) as producer:
        for number in range(8):
            await producer.send(b"%d" % number)
    position = InitialPosition.EARLIEST
    async with client.subscribe(topic, "sub", kind=kind, initial_position=position) as consumer:
        assert numbers(await receive(consumer, 3)) == [0, 1, 2]
        assert await rest(consumer) == []
        assert await broker.request("DELETE", path) == (204, None)
        assert numbers(await receive(consumer, 5)) == [3, 4, 5, 6, 7]


async def test_the_rate_of_one_subscription(broker: BrokerUnderTest, client: Client, namespace: str) -> None:
    """The topic has the policy, so the subscription may be absent."""
    topic = f"persistent://{namespace}/t"
    await broker.create_topic(topic)
    path = f"{topic_path(topic)}/slow/dispatchRate"
    assert await broker.request("GET", path) == (200, None)
    assert await broker.request("GET", f"{path}?applied=true") == (200, NO_RATE | {"ratePeriodInSecond": 1})
    rate = RATE | {"dispatchThrottlingRateInMsg": 3, "ratePeriodInSecond": EVER}
    rate["dispatchThrottlingRateInByte"] = 0
    assert await broker.request("POST", path, rate) == (204, None)

    async def it_is_set() -> bool:
        return await broker.request("GET", path) == (200, rate)

    await until(it_is_set)
    assert await broker.request("GET", f"{path}?applied=true") == (200, rate)
    assert await broker.request("GET", path.replace("slow", "fast")) == (200, None)
    async with client.create_producer(topic, batching=None) as producer:
        for number in range(8):
            await producer.send(b"%d" % number)
    position = InitialPosition.EARLIEST
    async with (
        client.subscribe(topic, "slow", initial_position=position) as slow,
        client.subscribe(topic, "fast", initial_position=position) as fast,
    ):
        assert numbers(await receive(fast, 8)) == list(range(8))
        assert numbers(await receive(slow, 3)) == [0, 1, 2]
        assert await rest(slow) == []
        assert await broker.request("DELETE", path) == (204, None)
        assert numbers(await receive(slow, 5)) == [3, 4, 5, 6, 7]
    assert await broker.request("GET", path) == (200, None)
    wrong_ones: list[object] = [3, [], "x"]
    for wrong in wrong_ones:
        assert (await broker.request("POST", path, wrong))[0] == 400
    absent = topic_path(f"persistent://{namespace}/none")
    reason = f"Topic persistent://{namespace}/none not found"
    for method, body in (("GET", None), ("POST", rate), ("DELETE", None)):
        assert await broker.request(method, f"{absent}/slow/dispatchRate", body) == (404, reason)


async def test_a_producer_is_slowed_down_by_its_rate(
    broker: BrokerUnderTest, client: Client, namespace: str
) -> None:
    """The first message is stored at once, and its bytes are those of more than a second."""
    topic, path = f"persistent://{namespace}/t", f"/admin/v2/namespaces/{namespace}/publishRate"
    assert await broker.request("POST", path, {"publishThrottlingRateInByte": 500}) == (204, None)
    async with client.create_producer(topic, batching=None, send_timeout=0) as producer:
        await producer.send(b"x" * 1_100)
        receipt = await producer.enqueue(b"y")
        with trio.move_on_after(0.5) as waited:
            await receipt.wait()
        assert waited.cancelled_caught
        await receipt.wait()


async def test_an_inactive_topic_is_deleted(broker: BrokerUnderTest, client: Client, namespace: str) -> None:
    """A topic with a subscription is deleted when it has no backlog, where the policy says so."""
    unused, idle, behind = (f"persistent://{namespace}/{name}" for name in ("unused", "idle", "behind"))
    path = f"/admin/v2/namespaces/{namespace}/inactiveTopicPolicies"
    policy = INACTIVE | {"maxInactiveDurationSeconds": 1}
    assert await broker.request("POST", path, policy) == (204, None)
    await broker.create_topic(unused)
    async with client.create_producer(behind) as producer, client.subscribe(behind, "sub"):
        await producer.send(b"x")
    async with client.subscribe(idle, "sub"):
        pass

    async def deleted() -> bool:
        _, topics = await broker.request("GET", f"/admin/v2/namespaces/{namespace}/topics")
        return bool(topics == [behind])

    await until(deleted)
    async with client.create_producer(idle) as producer:
        await producer.send(b"x")


async def test_a_consumer_that_attaches_too_often_is_refused(broker: BrokerUnderTest, namespace: str) -> None:
    """A seek makes it attach again, with its name and id, on the connection that it had (BROKER-15)."""
    topic, path = f"persistent://{namespace}/t", f"/admin/v2/namespaces/{namespace}/subscribeRate"
    rate = {"subscribeThrottlingRatePerConsumer": 2, "ratePeriodInSecond": EVER}
    assert await broker.request("POST", path, rate) == (204, None)
    async with (
        open_client(broker.url, operation_timeout=2.0, max_backoff=0.3) as client,
        client.subscribe(topic, "sub") as consumer,
    ):
        await consumer.seek(EARLIEST)
        async with client.subscribe(topic, "other"):
            pass
        with pytest.raises(TimedOut) as refused:
            await consumer.seek(EARLIEST)
        assert "limited by subscribe rate limit per consumer" in str(refused.value.__cause__)
        assert await broker.request("DELETE", path) == (204, None)
        await consumer.seek(EARLIEST)
