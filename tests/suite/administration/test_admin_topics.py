"""Topics over HTTP: made, grown, listed, unloaded, ended and deleted as a real Pulsar does it."""

from typing import Any

import trio

from pulsar_sansio import MessageId, TopicTerminated
from pulsar_trio import BatchingPolicy, Client
from tests.patience import PATIENCE
from tests.real_pulsar.admin import topic_path
from tests.suite.brokers import NO_TOPIC_CREATION, BrokerUnderTest
from tests.suite.helpers import numbers, payloads, receive, receive_and_acknowledge, rest, until

IDS = {"ledgerId", "entryId", "partitionIndex", "batchIndex", "batchSize"}


async def test_a_topic_from_making_to_deleting(broker: BrokerUnderTest, topic: str) -> None:
    """Rules BROKER-47 and ADMIN-01."""
    path = topic_path(topic)
    not_found = (404, f"Topic {topic} not found")
    assert await broker.request("GET", f"{path}/stats") == not_found
    assert await broker.request("GET", f"{path}/partitions") == not_found
    assert await broker.request("DELETE", path) == not_found
    assert await broker.request("PUT", path) == (204, None)
    assert await broker.request("PUT", path) == (409, "This topic already exists")
    assert await broker.request("PUT", f"{path}/partitions", 2) == (409, "This topic already exists")
    assert await broker.request("GET", f"{path}/partitions") == (200, {"partitions": 0, "deleted": False})
    _, listed = await broker.request("GET", "/admin/v2/persistent/public/default")
    assert topic in listed
    _, listed = await broker.request("GET", "/admin/v2/namespaces/public/default/topics")
    assert topic in listed
    assert (await broker.request("DELETE", f"{path}/partitions"))[0] == 409
    assert await broker.request("DELETE", path) == (204, None)
    assert await broker.request("GET", f"{path}/stats") == not_found


async def test_a_topic_with_properties(broker: BrokerUnderTest, topic: str) -> None:
    assert await broker.request("PUT", topic_path(topic), {"colour": "blue"}) == (204, None)
    assert await broker.request("GET", f"{topic_path(topic)}/properties") == (200, {"colour": "blue"})


async def test_names_with_letters_that_paths_escape(broker: BrokerUnderTest, topic: str) -> None:
    name = f"{topic} ü?#%&+"
    assert await broker.request("PUT", topic_path(name)) == (204, None)
    _, listed = await broker.request("GET", "/admin/v2/persistent/public/default")
    assert name in listed
    assert await broker.request("DELETE", topic_path(name)) == (204, None)


async def test_a_partitioned_topic_from_making_to_deleting(broker: BrokerUnderTest, topic: str) -> None:
    path = topic_path(topic)
    assert await broker.request("PUT", f"{path}/partitions", 2) == (204, None)
    assert await broker.request("PUT", f"{path}/partitions", 2) == (409, "This topic already exists")
    assert await broker.request("PUT", path) == (409, "This topic already exists")
    assert await broker.request("GET", f"{path}/partitions") == (200, {"partitions": 2, "deleted": False})
    _, partitioned = await broker.request("GET", "/admin/v2/persistent/public/default/partitioned")
    assert topic in partitioned
    _, listed = await broker.request("GET", "/admin/v2/persistent/public/default")
    assert {f"{topic}-partition-0", f"{topic}-partition-1"} <= set(listed)
    assert topic not in listed
    assert (await broker.request("DELETE", path))[0] == 409
    assert await broker.request("PUT", f"{path}/unload") == (204, None)
    assert await broker.request("DELETE", f"{path}/partitions") == (204, None)
    gone = await broker.request("DELETE", f"{path}/partitions")
    assert gone == (404, f"Topic {topic} not found.")
    _, listed = await broker.request("GET", "/admin/v2/persistent/public/default")
    assert f"{topic}-partition-0" not in listed


async def test_numbers_of_partitions_that_cannot_be(broker: BrokerUnderTest, topic: str) -> None:
    path = f"{topic_path(topic)}/partitions"
    for number in (0, -1):
        refused = await broker.request("PUT", path, number)
        assert refused == (406, "Number of partitions should be more than 0")
    assert (await broker.request("PUT", path, "x"))[0] == 400
    assert (await broker.request("PUT", path, [3]))[0] == 400
    assert await broker.request("PUT", path) == (400, "The request entity cannot be empty.")
    one_of_them = topic_path(f"{topic}-partition-1")
    named_like_one = await broker.request("PUT", f"{one_of_them}/partitions", 2)
    assert named_like_one == (412, "Partitioned Topic Name should not contain '-partition-'")
    assert (await broker.request("PUT", one_of_them))[0] == 412, "of which topic?"


async def test_partitions_grow_and_keep_what_is_in_the_old_ones(
    broker: BrokerUnderTest, client: Client, topic: str
) -> None:
    """Rule TOPIC-05."""
    path = f"{topic_path(topic)}/partitions"
    assert await broker.request("PUT", path, 1) == (204, None)
    assert len(await client.partitions(topic)) == 1
    async with client.subscribe(f"{topic}-partition-0", "sub"):
        pass
    async with client.create_producer(f"{topic}-partition-0") as producer:
        await producer.send_many(payloads(5))
    assert await broker.request("POST", path, 3) == (204, None)
    assert await broker.request("POST", path, 3) == (204, None), "as many as there are"
    assert len(await client.partitions(topic)) == 3
    fewer = await broker.request("POST", path, 2)
    assert fewer == (422, "Desired partitions 2 can't be less than the current partitions 3.")
    assert len(await client.partitions(topic)) == 3
    async with client.create_producer(f"{topic}-partition-2") as producer:
        await producer.send_many(payloads(2))
    for partition, count in ((0, 5), (2, 2)):
        async with client.subscribe(f"{topic}-partition-{partition}", "sub") as consumer:
            assert numbers(await receive_and_acknowledge(consumer, count)) == list(range(count))


async def test_only_partitioned_topics_grow(broker: BrokerUnderTest, topic: str) -> None:
    """Rule TOPIC-05."""
    path = f"{topic_path(topic)}/partitions"
    refused = (409, f"Topic {topic} is not the partitioned topic.")
    assert await broker.request("POST", path, 3) == refused
    assert await broker.request("PUT", topic_path(topic)) == (204, None)
    assert await broker.request("POST", path, 3) == refused


async def test_topics_need_a_namespace(broker: BrokerUnderTest, local_name: str) -> None:
    path = f"/admin/v2/persistent/public/{local_name}"
    assert await broker.request("PUT", f"{path}/t") == (404, "Namespace not found")
    assert await broker.request("PUT", f"{path}/t/partitions", 2) == (404, "Namespace not found")
    assert await broker.request("GET", f"{path}/t/partitions") == (404, "Namespace not found")
    assert await broker.request("GET", path) == (404, "Namespace does not exist")
    assert await broker.request("GET", f"{path}/partitioned") == (404, "Namespace does not exist")
    assert (await broker.request("GET", f"/lookup/v2/topic/persistent/public/{local_name}/t"))[0] == 404


async def test_partitions_asked_for_by_a_client_that_will_use_the_topic(
    broker: BrokerUnderTest, topic: str
) -> None:
    """As a client with an http:// service URL asks: 0 for a topic that may come into being."""
    found = await broker.request("GET", f"{topic_path(topic)}/partitions?checkAllowAutoCreation=true")
    assert found == (200, {"partitions": 0, "deleted": False})


async def test_lookup(broker: BrokerUnderTest, topic: str) -> None:
    path = f"/lookup/v2/topic/persistent/public/default/{topic.rpartition('/')[2]}"
    status, found = await broker.request("GET", path)
    assert status == 200
    assert found["brokerUrl"] == found["nativeUrl"]
    assert found["brokerUrl"].endswith(broker.url.rpartition(":")[2])
    assert found["brokerUrlSsl"] == ""
    assert found["httpUrl"].endswith(broker.admin.url.rpartition(":")[2])
    status, bundle = await broker.request("GET", f"{path}/bundle")
    assert status == 200
    assert bundle.startswith("0x")


async def test_lookup_of_a_topic_that_must_not_be_created(broker: BrokerUnderTest, local_name: str) -> None:
    """Only persistent topics that exist, partitions among them, are found."""
    path = f"/v2/topic/persistent/{NO_TOPIC_CREATION}/{local_name}"
    name = f"persistent://{NO_TOPIC_CREATION}/{local_name}"
    assert await broker.request("GET", f"/lookup{path}") == (404, f"Topic not found {name}")
    temporary = path.replace("persistent", "non-persistent")
    assert (await broker.request("GET", f"/lookup{temporary}"))[0] == 200
    assert (await broker.request("GET", f"/lookup{path}/bundle"))[0] == 200
    await broker.create_partitioned_topic(name, 2)
    expected = {"": 200, "-partition-0": 200, "-partition-1": 200, "-partition-2": 404}
    found = {end: (await broker.request("GET", f"/lookup{path}{end}"))[0] for end in expected}
    assert found == expected
    await broker.create_topic(f"{name}-plain")
    assert (await broker.request("GET", f"/lookup{path}-plain"))[0] == 200


async def test_unloading_sends_everybody_away_and_they_come_back(
    broker: BrokerUnderTest, client: Client, topic: str
) -> None:
    async with client.subscribe(topic, "sub", "exclusive") as consumer:
        async with client.create_producer(topic) as producer:
            await producer.send_many(payloads(5))
            await receive_and_acknowledge(consumer, 5)
            await consumer.flush()
            before = (await broker.request("GET", f"{topic_path(topic)}/stats"))[1]["publishers"][0]
            assert await broker.request("PUT", f"{topic_path(topic)}/unload") == (204, None)
            await producer.send_many(payloads(5, start=5))
            after = (await broker.request("GET", f"{topic_path(topic)}/stats"))[1]["publishers"][0]
            assert numbers(await receive_and_acknowledge(consumer, 5)) == list(range(5, 10))
            assert await rest(consumer) == []
            assert before["producerName"] == after["producerName"]
            assert before["connectedSince"] != after["connectedSince"], "it is a new one"


async def test_unloading_a_namespace(broker: BrokerUnderTest, client: Client, local_name: str) -> None:
    assert await broker.request("PUT", f"/admin/v2/namespaces/public/{local_name}") == (204, None)
    topic = f"persistent://public/{local_name}/t"
    async with client.create_producer(topic) as producer:
        await producer.send(b"0")
        before = (await broker.request("GET", f"{topic_path(topic)}/stats"))[1]["publishers"][0]
        assert await broker.request("PUT", f"/admin/v2/namespaces/public/{local_name}/unload") == (204, None)
        await producer.send(b"1")
        after = (await broker.request("GET", f"{topic_path(topic)}/stats"))[1]["publishers"][0]
        assert before["connectedSince"] != after["connectedSince"]


async def test_a_terminated_topic_takes_no_more(broker: BrokerUnderTest, client: Client, topic: str) -> None:
    path = topic_path(topic)
    async with client.create_producer(topic, batching=None) as producer:
        last = await producer.send(b"0")
        status, message_id = await broker.request("POST", f"{path}/terminate")
        assert (status, set(message_id)) == (200, IDS)
        assert (message_id["ledgerId"], message_id["entryId"]) == (last.ledger_id, last.entry_id)
        assert await broker.request("POST", f"{path}/terminate") == (200, message_id), "twice is once"
        assert await broker.request("GET", f"{path}/lastMessageId") == (200, message_id)
        try:
            await producer.send(b"1")
        except TopicTerminated:
            pass
        else:
            raise AssertionError("a terminated topic took a message")


async def test_terminating_what_is_empty_or_partitioned(broker: BrokerUnderTest, topic: str) -> None:
    path = topic_path(topic)
    assert await broker.request("PUT", f"{path}/partitions", 2) == (204, None)
    refused = await broker.request("POST", f"{path}/terminate")
    assert refused == (405, "Termination of a partitioned topic is not allowed")
    status, each = await broker.request("POST", f"{path}/terminate/partitions")
    assert (status, set(each)) == (200, {"0", "1"})
    assert all(set(one) == IDS and one["entryId"] == -1 for one in each.values())
    volatile = path.replace("/persistent/", "/non-persistent/")
    refused = await broker.request("POST", f"{volatile}/terminate")
    assert refused == (406, "Need to provide a persistent topic name")


async def test_a_topic_in_use_is_deleted_only_by_force(
    broker: BrokerUnderTest, client: Client, topic: str
) -> None:
    path = topic_path(topic)
    async with client.create_producer(topic) as producer, client.subscribe(topic, "sub"):
        await producer.send(b"0")
        refused = await broker.request("DELETE", path)
        assert refused == (412, "Topic has 2 connected producers/consumers")

    async def deleted() -> bool:
        """Try to delete; the broker may still count a consumer or producer that has just left."""
        answer = await broker.request("DELETE", path)
        assert answer == (204, None) or answer[0] == 412
        return bool(answer[0] == 204)

    await until(deleted)  # subscriptions without consumers go with it
    async with client.create_producer(topic) as producer:
        await producer.send(b"1")
        assert await broker.request("DELETE", f"{path}?force=true") == (204, None)


async def test_deduplication_is_switched_on_and_off(
    broker: BrokerUnderTest, client: Client, local_name: str
) -> None:
    """Deduplication of a namespace in use: messages sent again are stored again without it, and are not
    stored again with it."""
    namespace = f"/admin/v2/namespaces/public/{local_name}"
    assert await broker.request("PUT", namespace) == (204, None)
    topic = f"persistent://public/{local_name}/t"
    path = topic_path(topic)

    async def send_twice() -> None:
        for _ in range(2):
            async with client.create_producer(
                topic, name="p", batching=None, initial_sequence_id=-1
            ) as producer:
                await producer.send(b"0")

    async def stored() -> int:
        count: int = (await broker.request("GET", f"{path}/internalStats"))[1]["numberOfEntries"]
        return count

    async def status_is(wanted: str) -> None:
        """A real Pulsar applies policies a little later."""
        while (await broker.request("GET", f"{path}/stats"))[1]["deduplicationStatus"] != wanted:  # noqa: ASYNC110
            await trio.sleep(0.02)

    await send_twice()
    assert await stored() == 2
    assert await broker.request("POST", f"{namespace}/deduplication", True) == (204, None)
    await status_is("Enabled")
    await send_twice()
    assert await stored() == 3, "the first is new to it"
    assert await broker.request("POST", f"{path}/deduplicationEnabled", False) == (204, None)
    await status_is("Disabled")
    await send_twice()
    assert await stored() == 5
    while (await broker.request("GET", f"{path}/deduplicationEnabled")) != (200, False):  # noqa: ASYNC110
        await trio.sleep(0.02)
    assert await broker.request("DELETE", f"{path}/deduplicationEnabled") == (204, None)
    await status_is("Enabled")


async def test_topics_come_into_being_with_the_partitions_a_namespace_says(
    broker: BrokerUnderTest, client: Client, local_name: str
) -> None:
    namespace = f"/admin/v2/namespaces/public/{local_name}"
    assert await broker.request("PUT", namespace) == (204, None)
    policy = {"allowAutoTopicCreation": True, "topicType": "partitioned", "defaultNumPartitions": 3}
    assert await broker.request("POST", f"{namespace}/autoTopicCreation", policy) == (204, None)
    path = f"/admin/v2/persistent/public/{local_name}/t/partitions?checkAllowAutoCreation=true"
    assert await broker.request("GET", path) == (200, {"partitions": 3, "deleted": False})
    assert len(await client.partitions(f"persistent://public/{local_name}/t")) == 3


async def test_a_subscription_from_making_to_deleting(
    broker: BrokerUnderTest, client: Client, topic: str
) -> None:
    path = topic_path(topic)
    async with client.create_producer(topic, batching=None) as producer:
        ids = [await producer.send(payload) for payload in payloads(4)]
    assert await broker.request("PUT", f"{path}/subscription/all", "earliest") == (204, None)
    assert await broker.request("PUT", f"{path}/subscription/none", "latest") == (204, None)
    exists = await broker.request("PUT", f"{path}/subscription/all", "latest")
    assert exists == (409, "Subscription already exists for topic")
    _, names = await broker.request("GET", f"{path}/subscriptions")
    assert sorted(names) == ["all", "none"]

    async def backlogs() -> tuple[int, int]:
        subscriptions = (await broker.request("GET", f"{path}/stats"))[1]["subscriptions"]
        return subscriptions["all"]["msgBacklog"], subscriptions["none"]["msgBacklog"]

    assert await backlogs() == (4, 0)
    assert await broker.request("POST", f"{path}/subscription/all/skip/1") == (204, None)
    assert await backlogs() == (3, 0)
    assert await broker.request("POST", f"{path}/subscription/all/skip_all") == (204, None)
    assert await backlogs() == (0, 0)
    position = {"ledgerId": ids[2].ledger_id, "entryId": ids[2].entry_id, "partitionIndex": -1}
    assert await broker.request("POST", f"{path}/subscription/none/resetcursor", position) == (204, None)
    assert await backlogs() == (0, 2)
    async with client.subscribe(topic, "none") as consumer:
        assert numbers(await receive(consumer, 2)) == [2, 3]
        busy = await broker.request("DELETE", f"{path}/subscription/none")
        assert busy == (412, "Subscription has active connected consumers")

    async def deleted() -> bool:
        answer = await broker.request("DELETE", f"{path}/subscription/none")
        assert answer in ((204, None), busy)
        return bool(answer[0] == 204)

    await until(deleted)
    missing = f"Subscription none not found for topic {topic}"
    assert await broker.request("DELETE", f"{path}/subscription/none") == (404, missing)
    assert await broker.request("POST", f"{path}/subscription/none/skip_all") == (404, missing)


async def test_non_persistent_topics(broker: BrokerUnderTest, client: Client, topic: str) -> None:
    volatile = topic.replace("persistent://", "non-persistent://")
    path = topic_path(volatile)
    async with client.subscribe(volatile, "sub") as consumer, client.create_producer(volatile) as producer:
        await producer.send(b"0")
        assert numbers(await receive(consumer, 1)) == [0]
        _, listed = await broker.request("GET", "/admin/v2/non-persistent/public/default")
        assert volatile in listed
        _, listed = await broker.request("GET", "/admin/v2/persistent/public/default")
        assert volatile not in listed
        _, listed = await broker.request("GET", "/admin/v2/namespaces/public/default/topics?mode=ALL")
        assert volatile in listed
        assert await broker.request("GET", f"{path}/subscriptions") == (200, ["sub"])
        refused = await broker.request("DELETE", path)
        assert refused == (412, "Topic has 2 connected producers/consumers")
        assert await broker.request("PUT", f"{path}/unload") == (204, None)
        with trio.fail_after(PATIENCE):
            while not (consumer.connected and producer.connected):  # noqa: ASYNC110
                await trio.sleep(0.02)
        await producer.send(b"1")
        assert numbers(await receive(consumer, 1)) == [1]
    await trio.sleep(0.1)


async def test_messages_that_are_too_old_for_a_subscription(
    broker: BrokerUnderTest, client: Client, topic: str
) -> None:
    path = topic_path(topic)
    for name in ("one", "other"):
        async with client.subscribe(topic, name):
            pass
    async with client.create_producer(topic, batching=None) as producer:
        await producer.send_many(payloads(3))
        sent = trio.current_time()
        await trio.sleep(3.1)
        await producer.send_many(payloads(2, start=3))

    async def left() -> list[list[int]]:
        found = []
        for name in ("one", "other"):
            async with client.subscribe(topic, name) as consumer:
                found.append(sorted(numbers(await rest(consumer))))
        return found

    one = f"{path}/subscription/one"
    assert await broker.request("POST", f"{one}/expireMessages/600") == (204, None)
    age = int(trio.current_time() - sent)  # three seconds, or more where all goes slowly
    with trio.fail_after(PATIENCE):
        # A real broker may not be done with the one before.
        while (answer := await broker.request("POST", f"{one}/expireMessages/{age}"))[0] == 409:  # noqa: ASYNC110
            await trio.sleep(0.1)
    assert answer == (204, None)
    await trio.sleep(1.0)
    assert await left() == [[3, 4], [0, 1, 2, 3, 4]]
    async with client.subscribe(topic, "one"):  # the subscription is nearly done anyhow
        assert (await broker.request("POST", f"{one}/expireMessages/600"))[0] == 409
    assert await broker.request("POST", f"{path}/all_subscription/expireMessages/1") == (204, None)
    await trio.sleep(0.2)
    assert await left() == [[], []]
    assert (await broker.request("POST", f"{one}/expireMessages/0"))[0] == 409
    assert (await broker.request("POST", f"{path}/all_subscription/expireMessages/0"))[0] == 409
    missing = f"{path}/subscription/none/expireMessages/1"
    assert (await broker.request("POST", missing))[0] == 404


async def test_messages_expire_up_to_one_of_them(broker: BrokerUnderTest, client: Client, topic: str) -> None:
    path = topic_path(topic)
    async with client.subscribe(topic, "sub"):
        pass
    async with client.create_producer(topic, batching=None) as producer:
        ids = await producer.send_many(payloads(5))
    position = {"ledgerId": ids[1].ledger_id, "entryId": ids[1].entry_id, "partitionIndex": -1}
    expire = f"{path}/subscription/sub/expireMessages"
    assert await broker.request("POST", expire, position) == (204, None)
    await trio.sleep(0.2)
    async with client.subscribe(topic, "sub") as consumer:
        assert sorted(numbers(await rest(consumer))) == [2, 3, 4]


async def test_a_batch_expires_as_a_whole(broker: BrokerUnderTest, client: Client, topic: str) -> None:
    """A batch expires as a whole, whichever message id of it is named, even one that it does not have. The
    broker refuses an id that the topic does not have."""
    path = topic_path(topic)
    batching = BatchingPolicy(max_messages=4, max_delay=10.0)
    for number, index in enumerate((0, 2, 3, 9)):
        async with client.subscribe(topic, f"s{number}"):
            pass
        async with client.create_producer(topic, batching=batching) as producer:
            ids = await producer.send_many(payloads(8))
        expire = f"{path}/subscription/s{number}/expireMessages"
        place = {"ledgerId": ids[0].ledger_id, "entryId": ids[0].entry_id, "batchIndex": index}
        assert await broker.request("POST", expire, {**place, "partitionIndex": -1}) == (204, None)
        beyond = {**place, "entryId": ids[0].entry_id + 2, "partitionIndex": -1}
        assert (await broker.request("POST", expire, beyond))[0] == 409
        await trio.sleep(0.2)
        async with client.subscribe(topic, f"s{number}") as consumer:
            assert sorted(numbers(await rest(consumer))) == [4, 5, 6, 7]


async def test_properties_of_a_subscription(broker: BrokerUnderTest, client: Client, topic: str) -> None:
    path = topic_path(topic)
    async with client.subscribe(topic, "one", subscription_properties={"owner": "me"}):
        pass
    beginning = {"ledgerId": -1, "entryId": -1, "partitionIndex": -1, "properties": {"a": "b"}}
    assert await broker.request("PUT", f"{path}/subscription/two", beginning) == (204, None)
    one = f"{path}/subscription/one/properties"
    assert await broker.request("GET", one) == (200, {"owner": "me"})
    assert await broker.request("GET", f"{path}/subscription/two/properties") == (200, {"a": "b"})
    assert await broker.request("PUT", one, {"owner": "you", "team": "x"}) == (204, None)
    assert await broker.request("GET", one) == (200, {"owner": "you", "team": "x"})
    assert await broker.request("PUT", f"{path}/unload") == (204, None)
    async with client.subscribe(topic, "one", subscription_properties={"owner": "none"}):
        assert await broker.request("GET", one) == (200, {"owner": "you", "team": "x"})
    assert (await broker.request("GET", f"{path}/subscription/none/properties"))[0] == 404


async def test_a_subscription_is_moved_behind_a_message_or_into_a_batch(
    broker: BrokerUnderTest, client: Client, topic: str
) -> None:
    path = topic_path(topic)
    async with client.create_producer(topic) as producer:
        ids = await producer.send_many(payloads(4))
        last = await producer.send(b"4")
    assert len({message_id.entry_id for message_id in ids}) == 1

    def place(message_id: MessageId, **more: Any) -> dict[str, Any]:
        return {
            "ledgerId": message_id.ledger_id,
            "entryId": message_id.entry_id,
            "partitionIndex": -1,
            **more,
        }

    cases = {
        "whole": (place(ids[0]), [0, 1, 2, 3, 4]),
        "behind": (place(ids[0], excluded=True), [4]),
        "inside": (place(ids[2], batchIndex=2), [2, 3, 4]),
        "inside, behind": (place(ids[2], batchIndex=2, excluded=True), [3, 4]),
        "behind all": (place(ids[3], batchIndex=3, excluded=True), [4]),
        "the last one": (place(last), [4]),
    }
    for number, (position, expected) in enumerate(cases.values()):
        subscription = f"{path}/subscription/s{number}"
        assert await broker.request("PUT", subscription, position) == (204, None)
        async with client.subscribe(topic, f"s{number}") as consumer:
            # a new one begins with a whole entry
            whole = [4] if position["entryId"] == last.entry_id else [0, 1, 2, 3, 4]
            assert numbers(await receive(consumer, len(whole))) == whole
        assert await broker.request("POST", f"{subscription}/resetcursor", position) == (204, None)
        async with client.subscribe(topic, f"s{number}") as consumer:
            assert numbers(await receive(consumer, len(expected))) == expected


async def test_looking_into_a_backlog(broker: BrokerUnderTest, client: Client, topic: str) -> None:
    path = topic_path(topic)
    assert await broker.request("PUT", f"{path}/subscription/sub", "earliest") == (204, None)
    async with client.create_producer(topic) as producer:
        await producer.send_many(payloads(4))
        second = await producer.send(b"4")
        third = await producer.send(b"5")
    analysis = f"{path}/subscription/sub/analyzeBacklog"
    status, found = await broker.request("POST", analysis)
    assert status == 200
    assert (found["entries"], found["messages"], found["aborted"]) == (3, 6, False)
    async with client.subscribe(topic, "sub", kind="shared") as consumer:
        messages = await receive(consumer, 6)
        consumer.acknowledge(messages[4])
    status, found = await broker.request("POST", analysis)
    assert (found["entries"], found["messages"]) == (2, 5)
    position = {"ledgerId": second.ledger_id, "entryId": second.entry_id, "partitionIndex": -1}
    status, found = await broker.request("POST", analysis, position)
    assert (status, found["entries"], found["messages"]) == (200, 1, 1)
    assert found["firstMessageId"] == found["lastMessageId"] == f"{third.ledger_id}:{third.entry_id}"


async def test_all_backlogs_of_a_namespace(broker: BrokerUnderTest, client: Client, local_name: str) -> None:
    """Rule STORE-39."""
    namespace = f"public/{local_name}"
    path = f"/admin/v2/namespaces/{namespace}"
    assert await broker.request("PUT", path) == (204, None)
    topics = [f"persistent://{namespace}/{name}" for name in ("a", "b")]
    for topic in topics:
        for subscription in ("s1", "s2"):
            made = await broker.request("PUT", f"{topic_path(topic)}/subscription/{subscription}", "earliest")
            assert made == (204, None)
        async with client.create_producer(topic) as producer:
            await producer.send_many(payloads(3))

    async def backlogs() -> list[int]:
        stats = [(await broker.request("GET", f"{topic_path(topic)}/stats"))[1] for topic in topics]
        return [each["msgBacklog"] for topic in stats for _, each in sorted(topic["subscriptions"].items())]

    assert await backlogs() == [1, 1, 1, 1]
    assert await broker.request("POST", f"{path}/clearBacklog/s1") == (204, None)
    assert await backlogs() == [0, 1, 0, 1]
    assert await broker.request("POST", f"{path}/clearBacklog") == (204, None)
    assert await backlogs() == [0, 0, 0, 0]
    async with client.subscribe(topics[0], "s1"):
        assert (await broker.request("POST", f"{path}/unsubscribe/s1"))[0] == 412
    assert await broker.request("POST", f"{path}/unsubscribe/s2") == (204, None)
    # Of what was refused, a Java broker may have done a part.
    assert (await broker.request("GET", f"{topic_path(topics[0])}/subscriptions"))[1] == ["s1"]
    assert "s2" not in (await broker.request("GET", f"{topic_path(topics[1])}/subscriptions"))[1]


async def test_a_topics_messages_are_not_larger_than_the_brokers(broker: BrokerUnderTest, topic: str) -> None:
    assert await broker.request("PUT", topic_path(topic)) == (204, None)
    words = (
        "topic-level maxMessageSize must be greater than or equal to 0 and must be smaller than that in the"
    )
    path = f"{topic_path(topic)}/maxMessageSize"
    assert await broker.request("POST", path, 99_999_999) == (412, f"{words} broker-level")
    assert (await broker.request("POST", path, -1))[0] == 412
    assert await broker.request("POST", path, 1000) == (204, None)
