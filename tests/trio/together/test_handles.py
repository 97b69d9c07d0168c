"""Properties of a client, a producer and a broker that an application may ask for."""

import re
from typing import Any

import pytest
import trio

from pulsar_trio import (
    Client,
    EmbeddedBroker,
    InvalidServiceUrl,
    NotAwaitable,
    ResourceClosed,
    open_broker,
    open_client,
)
from tests.trio.reading import first_value


async def test_partitions_by_name(client: Client, broker: EmbeddedBroker) -> None:
    """Rule CLIENT-20."""
    broker.create_partitioned_topic("public/default/many", 3)
    names = await client.partitions("many")
    assert names == [f"persistent://public/default/many-partition-{index}" for index in range(3)]
    assert await client.partitions("plain") == []
    async with (
        client.create_producer("many", batching=None) as producer,
        client.create_reader(names[1], "earliest") as reader,
    ):
        await producer.send_many([b"%d" % number for number in range(30)])
        assert (await reader.receive()).topic == names[1]


async def test_the_last_sequence_id_moves(client: Client) -> None:
    async with client.create_producer("t", batching=None, name="p") as producer:
        assert producer.last_sequence_id == -1
        for number in range(3):
            await producer.send(b"x")
            assert producer.last_sequence_id == number
        await producer.send(b"x", sequence_id=100)
        assert producer.last_sequence_id == 100
    assert producer.last_sequence_id == 100, "also after the end"
    async with client.create_producer("t") as producer:
        await producer.send_many([b"x"] * 50)
        assert producer.last_sequence_id == 49, "of a batch the last one's"


async def test_the_last_sequence_id_of_partitions(client: Client, broker: EmbeddedBroker) -> None:
    broker.create_partitioned_topic("public/default/many", 3)
    async with client.create_producer("many", batching=None) as producer:
        assert producer.last_sequence_id == -1
        for _ in range(9):
            await producer.send(b"x")
        assert producer.last_sequence_id == 2, "each partition has three"
        await producer.send(b"x", key="k", sequence_id=77)
        assert producer.last_sequence_id == 77
    assert producer.last_sequence_id == 77


async def test_another_service_url(nursery: trio.Nursery) -> None:
    async with open_broker() as former, open_broker() as latter:
        async with (
            open_client(former.url, initial_backoff=0.01) as client,
            client.create_producer("t") as producer,
        ):
            await producer.send(b"former")
            client.update_service_url(latter.url)
            await producer.send(b"latter")
            assert (await first_value(client)).value == b"latter"
            wrong: Any = client
            with pytest.raises(InvalidServiceUrl, match="begins with pulsar://"):
                client.update_service_url("ftp://localhost")
            with pytest.raises(NotAwaitable, match=r"^update_service_url is a plain call"):
                await wrong.update_service_url(latter.url)
        with pytest.raises(ResourceClosed):
            client.update_service_url(former.url)


async def test_reprs(client: Client, broker: EmbeddedBroker) -> None:
    assert repr(client) == f"<Client of {broker.url}, 0 connections>"
    async with client.create_producer("t") as producer, client.subscribe("t", "s") as consumer:
        assert re.fullmatch(rf"<Client of {broker.url}, [12] connections>", repr(client))
        await producer.send(b"secret")
        processing = (await consumer.receive()).processing()
        assert repr(processing) == (
            "<Processing of <Message 0:0:-1 of persistent://public/default/t, 6 bytes>>"
        )
    await client.aclose()
    assert repr(client) == f"<Client of {broker.url}, closed>"
    assert repr(broker) == f"<EmbeddedBroker at {broker.url}, running>"


async def test_a_broker_says_when_it_is_closed() -> None:
    async with open_broker() as broker:
        pass
    assert repr(broker) == f"<EmbeddedBroker at {broker.url}, closed>"
