"""Producing over HTTP: messages that consumers receive, and a result for each of them."""

from typing import Any

from pulsar_trio import Client, InitialPosition
from tests.real_pulsar.admin import topic_path
from tests.suite.brokers import BrokerUnderTest
from tests.suite.helpers import receive


def body_of(*messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"producerName": "rest", "messages": list(messages), **fields}


def path_of(topic: str) -> str:
    return f"/topics{topic_path(topic).removeprefix('/admin/v2')}"


async def test_messages_with_all_that_they_may_have(
    broker: BrokerUnderTest, client: Client, topic: str
) -> None:
    await broker.create_topic(topic)
    rich = {
        "payload": "first ü",
        "key": "k",
        "properties": {"a": "b"},
        "eventTime": "1603045262772",
        "sequenceId": 7,
    }
    status, answer = await broker.request("POST", path_of(topic), body_of(rich, {"payload": "second"}))
    assert status == 200
    results = answer["messagePublishResults"]
    assert [set(each) for each in results] == [{"messageId", "errorCode", "schemaVersion"}] * 2
    assert [each["errorCode"] for each in results] == [0, 0]
    ledger, entry, partition = results[1]["messageId"].split(":")
    _, last = await broker.request("GET", f"{topic_path(topic)}/lastMessageId")
    assert (int(ledger), int(entry), int(partition)) == (last["ledgerId"], last["entryId"], -1)
    async with client.subscribe(topic, "sub", initial_position=InitialPosition.EARLIEST) as consumer:
        first, second = await receive(consumer, 2)
    assert (first.payload, second.payload) == ("first ü".encode(), b"second")
    assert (first.key, dict(first.properties), first.sequence_id) == ("k", {"a": "b"}, 7)
    assert first.producer_name == "rest"
    assert second.key is None
    _, schema = await broker.request(
        "GET", f"{topic_path(topic).replace('/persistent/', '/schemas/')}/schema"
    )
    assert schema["type"] == "STRING"


async def test_messages_go_to_the_partitions_in_turn(
    broker: BrokerUnderTest, client: Client, topic: str
) -> None:
    await broker.create_partitioned_topic(topic, 2)
    body = body_of(*({"payload": str(number), "key": "k"} for number in range(4)))
    _, answer = await broker.request("POST", path_of(topic), body)
    places = [each["messageId"].split(":")[2] for each in answer["messagePublishResults"]]
    assert places in (["0", "1", "0", "1"], ["1", "0", "1", "0"])
    _, answer = await broker.request("POST", f"{path_of(topic)}/partitions/1", body)
    assert {each["messageId"].split(":")[2] for each in answer["messagePublishResults"]} == {"1"}
    async with client.subscribe(topic, "sub", initial_position=InitialPosition.EARLIEST) as consumer:
        assert len(await receive(consumer, 8)) == 8


async def test_numbers_and_bytes(broker: BrokerUnderTest, client: Client, topic: str) -> None:
    await broker.create_topic(topic)
    number = body_of({"payload": "12"}, valueSchema='{"type":"INT32","schema":"","properties":{}}')
    status, answer = await broker.request("POST", path_of(topic), number)
    assert (status, answer["schemaVersion"]) == (200, 0)
    status, answer = await broker.request("POST", path_of(topic), body_of({"payload": "-1"}, schemaVersion=0))
    assert (status, answer["schemaVersion"]) == (200, 0)
    async with client.subscribe(topic, "sub", initial_position=InitialPosition.EARLIEST) as consumer:
        received = await receive(consumer, 2)
    assert [each.payload for each in received] == [b"\0\0\0\x0c", b"\xff\xff\xff\xff"]


async def test_a_topic_that_takes_no_message(broker: BrokerUnderTest, topic: str) -> None:
    await broker.create_topic(topic)
    await broker.terminate(topic)
    status, answer = await broker.request("POST", path_of(topic), body_of({"payload": "x"}))
    (result,) = answer["messagePublishResults"]
    assert (status, result["errorCode"], result["messageId"]) == (200, 2, "-1")
    assert "already terminated" in result["errorMsg"]


async def test_no_messages_and_none_that_can_be_read(broker: BrokerUnderTest, topic: str) -> None:
    await broker.create_topic(topic)
    _, answer = await broker.request("POST", path_of(topic), body_of())
    assert answer["messagePublishResults"] == []
    refused = await broker.request("POST", path_of(topic), body_of({"payload": "x"}, valueSchema="{"))
    assert refused[1] == "Fail to add or retrieve schema."
    absent = await broker.request("POST", path_of(f"{topic}-none"), body_of({"payload": "x"}))
    assert absent[1] == f"Fail to publish message: Topic {topic}-none not found"
    assert refused[0] >= 400
    assert absent[0] >= 400
